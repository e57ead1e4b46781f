"""Correcting cells: `update` against a model, atomic, and right beside other writers."""

import json
import os
import pickle
import re
import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import Stores

import gridstone as gs

NUMBERS = count()
Row = tuple[int, int, int, int | None, str, str]
Rows = list[Row]
CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "v > 2": lambda r: r[2] > 2,
    "v % 2 == 0 and x < 3": lambda r: r[2] % 2 == 0 and r[0] < 3,
    "w is null": lambda r: r[3] is None,
    "w > 1": lambda r: r[3] is not None and r[3] > 1,
    "k in ('a', 'b')": lambda r: r[4] in ("a", "b"),
    "s == 'p' or y == 1": lambda r: r[5] == "p" or r[1] == 1,
    "v > 1000": lambda r: False,
}
VALUES: list[tuple[dict[str, Any], Callable[[Row], Row]]] = [
    ({"v": "v + 1"}, lambda r: (*r[:2], r[2] + 1, *r[3:])),
    ({"v": "y", "w": "v"}, lambda r: (*r[:2], r[1], r[2], *r[4:])),
    ({"w": None, "k": "'c'"}, lambda r: (*r[:3], None, "c", r[5])),
    ({"w": "w * 2"}, lambda r: (*r[:3], None if r[3] is None else r[3] * 2, *r[4:])),
    (
        {"s": gs.lit("k"), "k": "case when v > 2 then 'b' else k end"},
        lambda r: (*r[:4], "b" if r[2] > 2 else r[4], "k"),
    ),
    ({"s": "k", "v": 7}, lambda r: (*r[:2], 7, r[3], r[4], r[4])),
    ({"w": "coalesce(w, 5)", "s": "upper(s)"}, lambda r: (*r[:3], 5 if r[3] is None else r[3], r[4], r[5].upper())),
]
ROW = st.tuples(
    st.integers(0, 4),
    st.integers(0, 2),
    st.integers(0, 5),
    st.none() | st.integers(0, 5),
    st.sampled_from("abc"),
    st.sampled_from(["p", "quay", ""]),
)
BOX = st.none() | st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda ends: tuple(sorted(ends)))


def schema(*, sparse: bool, duplicates: bool = False) -> gs.Schema:
    return gs.Schema(
        [gs.Dim("x", (0, 4), 2), gs.Dim("y", (0, 2), 2)],
        [
            gs.Attr("v", "int32"),
            gs.Attr("w", "int64", nullable=True),
            gs.Attr("k", "string", categories=["c", "a", "b"]),
            gs.Attr("s", "string"),
        ],
        sparse=sparse,
        capacity=3,
        duplicates=duplicates,
    )


def write(a: gs.Array, rows: Rows) -> None:
    x, y, v, w, k, s = zip(*rows, strict=True)
    values = {"v": np.array(v), "w": list(w), "k": list(k), "s": list(s)}
    a.write_cells({"x": np.array(x), "y": np.array(y)}, values, dedup="error" if a.schema.duplicates else "last")


def held(a: gs.Array) -> Rows:
    found = a.read(where="v >= -1").to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)  # type: ignore[arg-type]


def newest(rows: Rows) -> Rows:
    """The last of the rows at each place."""
    return list({row[:2]: row for row in rows}.values())


@settings(deadline=None)
@given(
    st.booleans(),
    st.lists(
        st.lists(ROW, min_size=1, max_size=8)
        | st.tuples(st.none() | st.sampled_from(sorted(CONDITIONS)), st.sampled_from(VALUES), BOX, st.booleans()),
        min_size=2,
        max_size=6,
    ),
)
def test_a_sparse_array_is_a_list_of_rows(duplicates: bool, steps: list[Any]) -> None:
    a = gs.create(f"mem://updating-{next(NUMBERS)}", schema(sparse=True, duplicates=duplicates))
    rows: Rows = []
    for step in steps:
        if isinstance(step, list):
            write(a, step)
            rows += step
        else:
            where, (values, change), ends, inside = step
            box = None if ends is None else {"x": ends}

            def chosen(row: Row, where: Any = where, ends: Any = ends) -> bool:
                return (where is None or CONDITIONS[where](row)) and (ends is None or ends[0] <= row[0] <= ends[1])

            wanted = sum(map(chosen, rows))
            assert a.update(values, where, box, dry_run=True).cells == wanted
            if inside:
                with gs.transaction(a.uri) as tx:
                    assert tx["/"].update(values, where, box).cells == wanted
                a.refresh()
            else:
                before, version = a.version, a.update(values, where, box, message="corrected")
                assert version.cells == wanted and version == before + (wanted > 0) == a.version
                assert wanted == 0 or a.history()[-1].message == "corrected"
            rows = [change(row) if chosen(row) else row for row in rows]
        rows = rows if duplicates else newest(rows)
        assert held(a) == sorted(rows, key=repr)


@settings(deadline=None)
@given(st.lists(st.tuples(st.none() | st.sampled_from(sorted(CONDITIONS)), st.sampled_from(VALUES), BOX), max_size=4))
def test_a_dense_array_has_a_cell_at_every_position(steps: list[Any]) -> None:
    a = gs.create(f"mem://updating-{next(NUMBERS)}", schema(sparse=False))
    rows: Rows = [(x, y, 0, None, "c", "") for x in range(5) for y in range(3)]
    written: Rows = [(1, y, y, 3, "b", "quay") for y in range(3)] + [(4, 2, 4, None, "a", "p")]
    write(a, written)
    rows = newest(rows + written)
    for where, (values, change), ends in steps:
        box = None if ends is None else {"x": ends}
        chosen = [
            (where is None or CONDITIONS[where](row)) and (ends is None or ends[0] <= row[0] <= ends[1]) for row in rows
        ]
        assert a.update(values, where, box).cells == sum(chosen)
        rows = [change(row) if one else row for row, one in zip(rows, chosen, strict=True)]
        assert held(a) == sorted(rows, key=repr)


def positions(uri: str, duplicates: bool = True) -> gs.Array:
    attrs = [gs.Attr("mmsi", "int32"), gs.Attr("sog", "float32"), gs.Attr("status", "string"), gs.Attr("ok", "bool")]
    attrs += [gs.Attr("t", "datetime64[s]"), gs.Attr("tags", "list[int32]"), gs.Attr("uv", "float32", shape=(2,))]
    a = gs.create(uri, gs.Schema([gs.Dim("x", (0.0, 9.0), dtype="float64")], attrs, sparse=True, duplicates=duplicates))
    values = {
        "mmsi": [1, 2, 2],
        "sog": [1.0, 2.0, 3.0],
        "status": ["a", "b", "c"],
        "ok": [True, True, False],
        "t": np.arange(3).astype("datetime64[s]"),
        "tags": [[1], [], [1, 2]],
        "uv": [[1, 2], [3, 4], [5, 6]],
    }
    a.write_cells({"x": [1.5, 1.5, 2.5] if duplicates else [1.5, 2.0, 2.5]}, values)
    return a


def test_the_front_page_s_correction(stores: Stores) -> None:
    a = positions(stores("a"))
    version = a.update({"mmsi": 999, "sog": "sog * 0.5", "status": gs.lit("moored")}, where="mmsi == 2")
    assert (version.cells, version, json.dumps([version]), f"{version}") == (2, 3, "[3]", "3")
    assert (pickle.loads(pickle.dumps(version)).cells, repr(version)) == (2, "<version 3, cells: 2>")
    found = a.read(order="global")
    assert found["mmsi"].tolist() == [1, 999, 999] and found["sog"].tolist() == [1.0, 1.0, 1.5]
    assert found["status"].tolist() == ["a", "moored", "moored"] and [list(t) for t in found["tags"]] == [
        [1],
        [],
        [1, 2],
    ]
    assert a.at(version=version - 1).read()["mmsi"].tolist() == [1, 2, 2]


VALUE_CASES: list[tuple[str, Any, Any]] = [
    ("t", "'2026-03-01'", np.datetime64("2026-03-01", "s")),
    ("t", np.datetime64("2026-03-01T00:01"), np.datetime64("2026-03-01T00:01", "s")),
    ("t", gs.lit("2026-03-01"), np.datetime64("2026-03-01", "s")),
    ("t", "date(t)", np.datetime64(0, "s")),
    ("ok", "sog > 100", False),
    ("ok", gs.col("mmsi") < 3, True),
    ("ok", False, False),
    ("sog", "mmsi + x", 3.5),
    ("mmsi", "x * 2", 3),
    ("mmsi", gs.col("mmsi"), 2),
    ("status", "'it''s'", "it's"),
    ("tags", [7, 8], [7, 8]),
    ("uv", (0.5, 1), [0.5, 1.0]),
]


@pytest.mark.parametrize(("name", "value", "wanted"), VALUE_CASES, ids=lambda v: str(v)[:30])
def test_values_of_all_types(name: str, value: Any, wanted: Any) -> None:
    a = positions(f"mem://updating-{next(NUMBERS)}")
    value = gs.lit(value) if isinstance(value, list | tuple) else value
    assert a.update({name: value}, where="mmsi == 2 and x < 2").cells == 1
    found = a.read(order="global")[name][1]
    assert (np.asarray(found) == np.asarray(wanted)).all()
    assert len(a.read()) == 3, "the other cell of the place stays"


REFUSED: list[tuple[dict[Any, Any], str]] = [
    ({"status": "moored"}, r"""no dimension or attribute "moored".*write "'moored'" or gs\.lit\('moored'\)"""),
    ({"status": "under way"}, r"""write "'under way'" or gs\.lit"""),
    ({"x": "x + 1"}, "'x' is a dimension.*delete them and write them"),
    ({"speed": 1}, "no attribute 'speed'; there are 'mmsi'"),
    ({"mmsi": "mmsi * 2000000000"}, "attribute 'mmsi' is int32.*4000000000.*Nothing was changed"),
    ({"mmsi": "mmsi * 0.3"}, "attribute 'mmsi' is int32.*0.3"),
    ({"mmsi": 2**40}, "attribute 'mmsi' is int32.*1099511627776"),
    ({"mmsi": None}, "attribute 'mmsi' is not nullable.*alter"),
    ({"mmsi": "nullif(mmsi, 2)"}, "attribute 'mmsi' is not nullable.*coalesce\\(…, 0\\)"),
    ({"status": "case when mmsi > 99 then status end"}, "attribute 'status' is not nullable.*coalesce\\(…, ''\\)"),
    ({"ok": "case when mmsi > 9 then 1 end"}, "attribute 'ok' is not nullable.*coalesce\\(…, false\\)"),
    ({"status": ""}, r"is an empty text.*gs\.lit\(''\) is the text itself"),
    ({"mmsi": "  "}, "is an empty text, which is no expression; give a number or an expression$"),
    ({"mmsi": "NULL"}, "give None for null$"),
    ({"status": "null"}, r"give None for null, and gs\.lit\('null'\)"),
    ({"sog": "mean(sog) + 1"}, "mean is an aggregate.*'mean\\(…\\)'"),
    ({"sog": "count(*)"}, "count is an aggregate"),
    ({"sog": "count(distinct mmsi)"}, "count is an aggregate"),
    ({"sog": "distinct sog"}, "expected the end, found the name sog\n  distinct sog\n           \\^$"),
    ({"sog": "sog, mmsi"}, 'expected the end, found ","\n'),
    ({"sog": "sog sog"}, "expected the end, found the name sog\n"),
    ({"sog": "round(sog"}, 'expected "," or "\\)", found the end'),
    ({"sog": "sog), (mmsi"}, 'this "\\)" closes none\n  sog\\), \\(mmsi\n     \\^$'),
    ({"sog": "*"}, "expected a value, found"),
    ({"status": "mmsi"}, "attribute 'status' is string, found int32; give an expression of its type"),
    ({"sog": "1e300"}, "attribute 'sog' is float32.*1e\\+300"),
    ({"status": 5}, "attribute 'status' is string, found 5"),
    ({"ok": "mmsi"}, "attribute 'ok' is bool, found 2.*compare"),
    ({"sog": "sog * "}, "expected a value, found its end\n  sog \\* \n"),
    ({"sog": [1, 2]}, "one value for all cells"),
    ({}, "say what changes"),
    ({3: 4}, "names of attributes, found 3"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED, ids=lambda v: str(v)[:30])
@pytest.mark.parametrize("inside", [False, True])
def test_what_does_not_fit_changes_nothing(values: Any, message: str, inside: bool) -> None:
    a = positions(f"mem://updating-{next(NUMBERS)}")
    before = a.read().to_arrow()
    with pytest.raises(gs.InputError, match=f"(?s){message}") as raised:
        if inside:
            with gs.transaction(a.uri) as tx:
                try:
                    tx["/"].update(values)
                except gs.InputError:
                    assert tx["/"].read().to_arrow() == before
                    raise
        else:
            a.update(values)
    assert not re.search(r"any_value|\brow\b|astype|make the values", str(raised.value))
    assert a.version == 2 == a.refresh() and a.read().to_arrow() == before


def test_an_error_in_the_middle_of_many_cells_leaves_nothing(stores: Stores) -> None:
    n = 30_000
    small = gs.Context("8MiB", 2, durability="close")
    one = gs.Schema([gs.Dim("x", (0, n - 1))], [gs.Attr("v", "int16")], sparse=True)
    a = gs.create(stores("a"), one, context=small)
    a.write_cells({"x": np.arange(n)}, {"v": np.arange(n, dtype=np.int16)})
    with pytest.raises(gs.InputError, match=r"'v' is int16.*32768"):
        a.update({"v": "v + 2769"})
    assert a.version == 2 and a.fragments.num_rows == 1
    assert a.update({"v": "v + 2768"}).cells == n
    assert (a.read()["v"] == np.arange(n) + 2768).all() and a.verify()["damage"] == []


@pytest.mark.parametrize("duplicates", [False, True])
def test_cells_beyond_the_budget_are_streamed(stores: Stores, duplicates: bool) -> None:
    n, small = 400_000, gs.Context("6MiB", 2, durability="close")
    attrs = [gs.Attr("v", "int64"), gs.Attr("w", "float64")]
    a = gs.create(
        stores("a"), gs.Schema([gs.Dim("x", (0, n))], attrs, sparse=True, duplicates=duplicates), context=small
    )
    with a.writer() as writer:
        for part in np.array_split(np.arange(n), 10):
            writer.append({"x": part}, {"v": part, "w": part / 2})
    assert a.update({"w": "v * 2.0"}, where="v % 2 == 0").cells == n // 2
    found = gs.open(a.uri).aggregate({"n": "count(*)", "sum": "sum(w)"})
    x = np.arange(n)
    assert found["n"][0] == n and found["sum"][0] == np.where(x % 2 == 0, x * 2.0, x / 2).sum()


@pytest.mark.parametrize("kind", ["dense", "sparse", "duplicates"])
@pytest.mark.parametrize("remote", [False, True])
def test_no_increment_is_lost(tmp_path: Any, kind: str, remote: bool) -> None:
    uri = f"mem://updating-{next(NUMBERS)}" if remote else str(tmp_path / "a.gs")
    quick = gs.Context(durability="close")
    one = gs.Schema(
        [gs.Dim("x", (0, 9), 5)],
        [gs.Attr("v", "int64"), gs.Attr("by", "int8")],
        sparse=kind != "dense",
        duplicates=kind == "duplicates",
    )
    a = gs.create(uri, one, context=quick)
    a.write_cells({"x": np.arange(10)}, {"v": np.zeros(10, np.int64), "by": np.zeros(10, np.int8)})
    errors: list[BaseException] = []

    def add(number: int) -> None:
        mine = gs.open(uri, mode="r+", context=quick)
        try:
            for step in range(8):
                chosen = "x < 5" if (number + step) % 2 else "x >= 3"
                found = mine.update({"v": "v + 1", "by": number}, where=chosen)
                assert found.cells == (5 if (number + step) % 2 else 7)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    a.refresh()
    assert a.read()["v"].tolist() == [16] * 3 + [32] * 2 + [16] * 5
    assert a.count() == 10


@pytest.mark.parametrize("duplicates", [False, True])
def test_two_handles_take_turns(stores: Stores, duplicates: bool) -> None:
    a = positions(stores("a"), duplicates)
    b = gs.open(a.uri, mode="r+")
    for step in range(3):
        (a, b)[step % 2].update({"sog": "sog + 1"}, where="mmsi == 2")
    b.refresh()
    assert b.read(order="global")["sog"].tolist() == [1.0, 5.0, 6.0]
    c = gs.open(a.uri, mode="r+")
    c.write_cells(c.read(where="mmsi == 1").to_arrow())
    assert a.update({"mmsi": 5}).cells == (4 if duplicates else 3), "an update sees what others have committed"


def test_a_transaction_whose_cells_another_updates_fails(stores: Stores) -> None:
    a = positions(stores("a"))
    tx = gs.transaction(a.uri)
    tx["/"].update({"sog": "sog + 1"}, where="mmsi == 2")
    a.update({"sog": "sog * 2"}, where="mmsi == 2")
    with pytest.raises(gs.ConflictError):
        tx.commit()
    a.refresh()
    assert sorted(a.read()["sog"].tolist()) == [1.0, 4.0, 6.0]


def test_a_key_makes_a_correction_once(stores: Stores) -> None:
    a = positions(stores("a"))
    first = a.update({"sog": "sog + 1"}, commit_key="fix-1")
    a.update({"sog": "sog * 2"})
    again = gs.open(a.uri, mode="r+").update({"sog": "sog + 1"}, commit_key="fix-1")
    assert (first, again, again.cells) == (3, 3, 3)
    a.refresh()
    assert sorted(a.read()["sog"].tolist()) == [4.0, 6.0, 8.0]
    with pytest.raises(gs.ConflictError, match="key"):
        a.update({"sog": "sog + 2"}, commit_key="fix-1")


def test_lists_of_boxes_and_an_empty_box(stores: Stores) -> None:
    a = gs.array(stores("a"), np.zeros((6, 4)))
    assert a.update({"value": "d0 * 10 + d1"}, box=[{"d0": (0, 1)}, {"d0": (1, 2), "d1": (0, 0)}]).cells == 9
    want = np.zeros((6, 4))
    want[:2] = np.add.outer([0, 10], range(4))
    want[2, 0] = 20
    assert (a[...] == want).all()
    before = a.version
    none = a.update({"value": 1}, box=[])
    assert (none, none.cells, a.version) == (before, 0, before)
    with pytest.raises(gs.AccessError):
        gs.open(a.uri).update({"value": 1})
    assert gs.open(a.uri).update({"value": 1}, dry_run=True).cells == 24


def test_a_transaction_has_the_key_and_the_message() -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True)
    uri = "mem://update-in-transaction"
    gs.create(uri, schema, overwrite=True).write_cells({"x": [1]}, {"v": [1]})
    with gs.transaction(uri) as tx:
        for told in ({"commit_key": "k"}, {"message": "m"}):
            with pytest.raises(gs.InputError, match="transaction"):
                tx["/"].update({"v": "v * 2"}, **told)
        tx["/"].update({"v": "v * 3"})
    assert gs.open(uri).read()["v"].tolist() == [3]


@pytest.mark.parametrize("where", ["v > 2", None])
def test_an_interrupt_anywhere_leaves_all_old_cells_or_all_new_ones(where: str | None) -> None:
    """The caller swallows an interrupt at each line of an update in turn, and commits what the transaction has."""
    package = os.path.dirname(gs.__file__)
    uri = f"mem://update-interrupted-{next(NUMBERS)}"
    a = gs.create(uri, schema(sparse=True, duplicates=True))
    rows: Rows = [(x, y, n, None, "a", "p") for n in range(4) for x in range(3) for y in range(2)]
    write(a, rows)
    before, ends = held(a), set()
    after = sorted(((*r[:2], r[2] + 10, *r[3:]) if where is None or r[2] > 2 else r for r in rows), key=repr)
    for stop in count(1):
        seen = 0

        def trace(frame: Any, event: str, _: Any, stop: int = stop) -> Any:
            nonlocal seen
            if not frame.f_code.co_filename.startswith(package):
                return None
            if event == "line" and os.path.basename(frame.f_code.co_filename) in ("update.py", "array.py"):
                seen += 1
                if seen == stop:
                    raise KeyboardInterrupt
            return trace

        tx = gs.transaction(uri)
        interrupted = False
        try:
            sys.settrace(trace)
            tx["/"].update({"v": "v + 10"}, where)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        tx.commit()
        a.refresh()
        found = held(a)
        assert found in (before, after), f"line {stop}"
        ends.add((interrupted, found == after))
        if not interrupted:
            break
        if found == after:
            a.delete((...,))
            write(a, rows)
    assert (True, False) in ends and (False, True) in ends
