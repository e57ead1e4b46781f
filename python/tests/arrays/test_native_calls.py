"""One operation of Python is one call of the engine: no loop over tiles or cells passes through Python."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import gridstone as gs

SIDE, TILE = 100, 10
ASKED = "schema_since"
"""What `Array._schema` asks of the engine: a stamp kept in memory is compared with the one known."""


def called(operation: Callable[[], object]) -> list[str]:
    """The functions of the native module that an operation calls; reading a property of a native object is no call."""
    found: list[str] = []

    def note(_: FrameType, event: str, function: Any) -> None:
        if event != "c_call":
            return
        owner = getattr(function, "__self__", None)
        module = owner.__name__ if isinstance(owner, type(sys)) else type(owner).__module__
        if module == "gridstone._native" or getattr(owner, "__module__", "") == "gridstone._native":
            found.append(function.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        operation()
    finally:
        sys.setprofile(before)
    return found


def check(operation: Callable[[], object], *working: str) -> None:
    """What works is called once each, in this order; the schema is asked for a few times, as often for any size."""
    found = called(operation)
    assert [name for name in found if name != ASKED] == list(working)
    assert found.count(ASKED) <= 4, found


@pytest.fixture
def dense(memory_uri: str) -> gs.Array:
    """Two attributes in 100 tiles; a box of it takes many."""
    dims = [gs.Dim(name, (0, SIDE - 1), TILE) for name in "xy"]
    array = gs.create(f"{memory_uri}-dense", gs.Schema(dims, [gs.Attr("a", "int32"), gs.Attr("b", "float64")]))
    array.write({"a": np.arange(SIDE**2, dtype=np.int32).reshape(SIDE, SIDE), "b": np.ones((SIDE, SIDE))})
    return array


@pytest.fixture
def sparse(memory_uri: str) -> gs.Array:
    """1,000 cells in many tiles, in blocks of 10."""
    dims = [gs.Dim(name, (0, SIDE - 1), TILE) for name in "xy"]
    schema = gs.Schema(dims, [gs.Attr("a", "int32")], sparse=True, duplicates=True, capacity=10)
    array = gs.create(f"{memory_uri}-sparse", schema)
    x, y = np.divmod(np.arange(0, SIDE**2, 10), SIDE)
    array.write_cells((x, y), np.arange(1_000, dtype=np.int32))
    return array


PLACES = np.arange(0, SIDE, 3), np.arange(0, SIDE, 3)


def test_reading_a_dense_array(dense: gs.Array) -> None:
    check(lambda: dense[5:95, 7:93], "read")
    check(lambda: dense["a"][5:95, 7:93], "read")
    check(lambda: dense[::3, ::-2], "read_positions")
    mask = np.arange(SIDE**2).reshape(SIDE, SIDE) % 7 == 0
    for select in (lambda a: a[[1, 50, 3], 5:], lambda a: a[mask], lambda a: a[[[1], [50]], [3, 4]]):
        check(lambda select=select: select(dense), "read_positions")
    check(lambda: dense.oindex[[1, 50, 3], ::2], "read_positions")
    check(lambda: dense[3, 4], "read")
    check(lambda: dense.loc[5:95, 7:93], "read")
    check(lambda: dense.read({"x": (5, 94)}).to_numpy(), "read")


def test_reading_into_a_buffer(dense: gs.Array) -> None:
    buffers = {"a": np.empty((90, 80), np.int32), "b": np.empty((90, 80))}
    check(lambda: dense.read((slice(0, 90), slice(0, 80)), out=buffers), "read_into")


def test_points(dense: gs.Array, sparse: gs.Array) -> None:
    check(lambda: dense.points(PLACES).to_numpy(), "points")
    check(lambda: dense.vindex[PLACES], "read_positions")
    check(lambda: dense["a"].vindex[PLACES], "read_positions")
    check(lambda: sparse.points(PLACES).to_numpy(), "points")


def test_reading_cells(sparse: gs.Array) -> None:
    check(lambda: sparse.read({"x": (5, 94)}).to_numpy(), "read_cells")
    # What a condition says is parsed first, before anything is read.
    check(lambda: sparse.read({"x": (5, 94)}, where="a > 500").to_numpy(), "parse_condition", "read_cells")


def test_writing(dense: gs.Array, sparse: gs.Array) -> None:
    """Two calls: what writes the fragment, and what makes it a version. Several fragments share the second."""
    values = np.ones((90, 80), np.int32)
    check(lambda: dense.write({"a": values, "b": 2.0}, (slice(0, 90), slice(0, 80))), "stage_dense", "commit")
    check(lambda: dense.__setitem__((slice(5, 95), slice(7, 87)), {"a": values, "b": 0.5}), "stage_dense", "commit")
    check(lambda: dense.__setitem__((slice(0, 90, 3), 5), {"a": 1, "b": 0.5}), "stage_positions", "commit")
    check(lambda: dense.__setitem__(([1, 50], [3, 4]), {"a": 1, "b": 0.5}), "stage_positions", "commit")
    check(lambda: dense.vindex.__setitem__(PLACES, {"a": 1, "b": 0.5}), "stage_positions", "commit")
    check(lambda: dense.oindex.__setitem__(([1, 50], [3, 4]), {"a": 1, "b": 0.5}), "stage_positions", "commit")
    check(lambda: dense.write_cells(PLACES, {"a": PLACES[0].astype(np.int32)}), "stage_cells", "commit")
    check(lambda: sparse.write_cells(PLACES, PLACES[0].astype(np.int32)), "stage_cells", "commit")


def test_more_cells_are_no_more_calls(dense: gs.Array) -> None:
    assert called(lambda: dense[:12, :12]) == called(lambda: dense[:, :])
    assert called(lambda: dense.vindex[[1, 2], [3, 4]]) == called(lambda: dense.vindex[PLACES])
    few, many = ((places, places) for places in (np.arange(2), np.arange(SIDE)))
    assert called(lambda: dense.write_cells(few, {"a": np.ones(2, np.int32)})) == called(
        lambda: dense.write_cells(many, {"a": np.ones(SIDE, np.int32)})
    )
