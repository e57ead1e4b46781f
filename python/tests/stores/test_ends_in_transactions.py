"""What a transaction learns from the ends of the domain counts as read: two that both found nothing beyond it and write
there do not both commit, and a position stays the cell that it was.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridstone as gs

DENSE = gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "int64", fill=-1)])
UNTILED = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "int64", fill=-1)])
SPARSE = gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "int64")], sparse=True)
BEYOND = np.arange(100, 110)

Look = Callable[[gs.Array], Any]


def refused(look: Look) -> Look:
    """A look beyond the domain, whose error is caught."""

    def looked(array: gs.Array) -> None:
        with pytest.raises(gs.errors.BoundsError):
            look(array)

    return looked


def _into(array: gs.Array) -> None:
    filling = array.read_into({"v": np.empty(10, np.int64)}, slice(100, None))
    assert filling.submit() == 0


BOTH: dict[str, Look] = {
    "a condition that excludes the domain": lambda a: a.read(where="x > 99"),
    "a slice without an end": lambda a: a.read(slice(100, None)),
    "a tuple of slices": lambda a: a.read((slice(100, None),)),
    "a pair without an end": lambda a: a.read({"x": (100, None)}),
    "a slice that is empty, with a condition": lambda a: a.read(slice(100, None), where="v > 0"),
    "a list, one of whose boxes is empty": lambda a: a.read([{"x": (0, 1)}, {"x": slice(100, None)}]),
    "a stream": lambda a: list(a.scan(slice(100, None))),
    "a stream with a condition": lambda a: list(a.scan(where="x > 99")),
    "buffers": _into,
    "loc": lambda a: a.loc[100:],
    "loc of an attribute": lambda a: a["v"].loc[100:],
    "a delete of nothing": lambda a: a.delete(slice(100, None), where="v > 0"),
    "a delete by a condition": lambda a: a.delete(where="x > 99"),
    "positions": lambda a: a[100:],
    "oindex from the end": lambda a: a.oindex[[-1]],
    "oindex of an attribute by a mask": lambda a: a["v"].oindex[np.arange(100) == 5],
    "vindex from the end": lambda a: a.vindex[[-1]],
    "vindex by a mask": lambda a: a.vindex[np.arange(100) == 5],
    "the schema": lambda a: a.schema.dims[0].domain,
    "the domain": lambda a: a.domain,
    "the shape": lambda a: a.shape,
    "the length": len,
    "a position that is not there": refused(lambda a: a[150]),
    "a box that is not inside": refused(lambda a: a.read({"x": (100, 109)}, clip="error")),
    "a coordinate that is not there": refused(lambda a: a.loc[105]),
    "a box that is cut to nothing": lambda a: a.read({"x": (100, 109)}),
    "a box that is cut": lambda a: a.read({"x": (90, 109)}),
    "a stream that is cut": lambda a: list(a.scan({"x": (90, 109)})),
    "a list with a box that is cut": lambda a: a.read([{"x": (0, 1)}, {"x": (90, 109)}]),
    "a question about a box that is cut": lambda a: a.aggregate({"n": "count(*)"}, box={"x": (90, 109)}),
    "a delete by a condition in a box that is cut": lambda a: a.delete({"x": (90, 109)}, where="v > 0"),
    "a stretch of loc that is cut": lambda a: a.loc[90:110],
    "a stretch of loc that is cut to nothing": lambda a: a.loc[100:110],
    "a point that is not there": lambda a: a.points({"x": [105]}),
}


def grown(array: gs.Array, x: Any, value: int) -> None:
    array.write_cells({"x": np.asarray(x)}, {"v": np.full(len(x), value)}, grow=True)


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("schema", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("look", BOTH.values(), ids=BOTH)
def test_of_two_that_found_nothing_beyond_the_end_and_write_there_one_commits(
    look: Look, schema: gs.Schema, isolation: Any
) -> None:
    uri = f"mem://ends-{look.__name__}-{id(look)}-{schema.sparse}-{isolation}"
    gs.create(uri, schema)
    both = [gs.transaction(uri, isolation=isolation) for _ in range(2)]
    for value, tx in enumerate(both):
        inside = tx["/"]
        look(inside)
        grown(inside, BEYOND, value)
    both[0].commit()
    with pytest.raises(gs.errors.ConflictError):
        both[1].commit()
    assert set(np.asarray(gs.open(uri)["v"].loc[100:110]).tolist()) == {0}
    gs.delete(uri)


def test_tiles_of_the_whole_domain_are_a_look_at_its_ends() -> None:
    for schema, stands in [(UNTILED, False), (DENSE, True)]:
        uri = f"mem://chunks-{stands}"
        array = gs.create(uri, schema if stands else gs.Schema([gs.Dim("x", (0, 99), None)], UNTILED.attrs))
        tx = gs.transaction(uri, isolation="serializable")
        chunks = tx["/"].chunks
        tx["/"].meta["chunks"] = list(chunks)
        grown(array, BEYOND, 1)
        outcome = contextlib.nullcontext() if chunks != (100,) else pytest.raises(gs.errors.ConflictError)
        with outcome:
            tx.commit()
        gs.delete(uri)


# A look at a place, and whether it counts from the low end and from the high one.
PLACES: dict[str, tuple[Look, bool, bool]] = {
    "a position": (lambda a: a[5], True, False),
    "a position of an attribute": (lambda a: a["v"][5], True, False),
    "a position as NumPy has it": (lambda a: a[np.int64(5)], True, False),
    "a stretch": (lambda a: a[2:4], True, False),
    "a stretch in steps": (lambda a: a[2:9:3], True, False),
    "a stretch backwards": (lambda a: a[9:2:-1], True, False),
    "a stretch that is cut": (lambda a: a[90:200], True, True),
    "a stretch from the start": (lambda a: a[:4], True, False),
    "from the end": (lambda a: a[-5], False, True),
    "a stretch from the end": (lambda a: a[-5:-2], False, True),
    "a stretch up to the end": (lambda a: a[-5:], False, True),
    "between both ends": (lambda a: a[2:-2], True, True),
    "oindex": (lambda a: a.oindex[5], True, False),
    "vindex": (lambda a: a.vindex[5], True, False),
    "everything": (lambda a: a[...], True, True),
    "coordinates": (lambda a: a.loc[5:7], False, False),
    "a coordinate": (lambda a: a.loc[5], False, False),
    "a box": (lambda a: a.read({"x": (5, 7)}), False, False),
    "points": (lambda a: a.points({"x": [5]}), False, False),
    "a condition": (lambda a: a.read(where="x > 5 and x < 9"), False, False),
    "a delete": (lambda a: a.delete({"x": (5, 7)}, where="v > 0"), False, False),
    "a box up to the end": (lambda a: a.read({"x": (5, None)}), False, True),
    "an attribute": (lambda a: a["v"].dtype, False, False),
    "cells that are written": (lambda a: a.write_cells({"x": [5]}, {"v": [1]}), False, False),
}


@pytest.mark.parametrize("schema", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("beyond", ["low", "high"])
@pytest.mark.parametrize(("look", "low", "high"), PLACES.values(), ids=PLACES)
def test_a_position_conflicts_with_cells_beyond_the_end_that_it_counts_from(
    look: Look, low: bool, high: bool, beyond: str, schema: gs.Schema
) -> None:
    uri = f"mem://places-{id(look)}-{beyond}-{schema.sparse}"
    array = gs.create(uri, schema)
    grown(array, np.arange(100), 1)
    tx = gs.transaction(uri, isolation="serializable")
    inside = tx["/"]
    look(inside)
    inside.meta["k"] = 1
    grown(array, [-10, -9] if beyond == "low" else [100, 101], 2)
    outcome = pytest.raises(gs.errors.ConflictError) if (low, high)[beyond == "high"] else contextlib.nullcontext()
    with outcome:
        tx.commit()
    gs.delete(uri)


def test_a_position_that_is_assigned_to_is_still_the_same_cell_at_the_commit() -> None:
    for assign in (
        lambda a: a.__setitem__(5, 7),
        lambda a: a["v"].__setitem__(slice(2, 4), 7),
        lambda a: a.oindex.__setitem__(([5, 9],), 7),
        lambda a: a.vindex.__setitem__(([5, 9],), 7),
    ):
        array = gs.create("mem://assigned", DENSE)
        tx = gs.transaction("mem://assigned", isolation="serializable")
        assign(tx["/"])
        grown(array, [-10, -9], 2)
        with pytest.raises(gs.errors.ConflictError):
            tx.commit()
        gs.delete("mem://assigned")


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_a_row_that_grows_downwards_by_what_stands_at_a_position_has_no_gap(isolation: Any) -> None:
    """Each step reads the cell at position 1, and writes below the domain what follows from it."""
    uri, threads, rounds = f"mem://downwards-{isolation}", 3, 15
    array = gs.create(uri, gs.Schema([gs.Dim("x", (-1, 0), 2)], [gs.Attr("v", "int64", fill=-1)]))
    array[...] = [1, 0]

    def work() -> None:
        done = 0
        while done < rounds:
            try:
                with gs.transaction(uri, isolation=isolation) as tx:
                    inside = tx["/"]
                    more = int(inside[1]) + 2
                    grown(inside, [-more], more)
                done += 1
            except gs.errors.ConflictError:
                continue

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    array.refresh()
    assert array[...].tolist() == list(range(threads * rounds + 1, -1, -1))
