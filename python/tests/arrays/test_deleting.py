"""Deleting by box, by condition and by coordinates."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import Stores

import gridstone as gs


def points(uri: str, *, duplicates: bool, count: int = 3_000) -> gs.Array:
    """`count` cells at x = 0, 1, 2, … with v = x % 10 and, every seventh, no w."""
    schema = gs.Schema(
        [gs.Dim("x", domain=(0, 9_999), tile=500)],
        [gs.Attr("v", "int32"), gs.Attr("w", "float64", nullable=True)],
        sparse=True,
        capacity=100,
        duplicates=duplicates,
    )
    array = gs.create(uri, schema)
    x = np.arange(count)
    w = np.ma.masked_array(x / 2, mask=x % 7 == 0)
    array.write_cells({"x": x}, {"v": x % 10, "w": w})
    return array


def held(array: gs.Array) -> list[int]:
    return [int(x) for x in array.read().to_numpy()["x"]]


@pytest.mark.parametrize("duplicates", [False, True])
def test_a_box_takes_all_that_is_older(stores: Stores, duplicates: bool) -> None:
    a = points(stores("a"), duplicates=duplicates)
    before = a.version
    assert a.delete({"x": (100, 2_899)}) == before + 1
    assert held(a) == [*range(100), *range(2_900, 3_000)]
    assert a.delete((slice(0, 100),)) == before + 2
    a.write_cells({"x": [50, 150]}, {"v": [1, 2], "w": [0.5, 1.5]})
    assert held(a) == [50, 150, *range(2_900, 3_000)]
    assert held(a.at(version=before)) == list(range(3_000))
    kinds = [f for f in a.fragments.column("kind").to_pylist() if f == "deletion"]
    assert len(kinds) == 2
    a.consolidate("all")
    assert held(a) == [50, 150, *range(2_900, 3_000)]
    assert a.fragments.num_rows == 1, "nothing older is left that the deletions could take"


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("where", ["v in (2, 5) and x >= 1000", (gs.col("v").isin([2, 5])) & (gs.col("x") >= 1000)])
def test_a_condition_takes_what_it_selects(stores: Stores, duplicates: bool, where: Any) -> None:
    a = points(stores("a"), duplicates=duplicates)
    before = a.version
    a.delete(where=where)
    left = [x for x in range(3_000) if not (x % 10 in (2, 5) and x >= 1_000)]
    assert held(a) == left
    assert held(a.at(version=before)) == list(range(3_000))
    found = a.points({"x": [1_002, 1_003, 2]}).to_numpy()
    assert sorted(int(x) for x in found["x"]) == [2, 1_003]
    a.delete({"x": (0, 99)}, where="w is null")
    left = [x for x in left if not (x < 100 and x % 7 == 0)]
    assert held(a) == left
    assert a.delete(where="v == 77") == a.version, "nothing is selected: no version is made"
    a.consolidate("all")
    assert held(a) == left
    assert [f for f in a.fragments.column("kind").to_pylist() if f == "mask"] == []
    assert a.verify()["damage"] == []


def test_what_was_written_under_a_deleted_cell_stays_gone(stores: Stores) -> None:
    a = points(stores("a"), duplicates=False)
    a.write_cells({"x": [10, 11]}, {"v": [500, 0], "w": [1.0, 1.0]})
    a.delete(where="v == 500")
    assert 10 not in held(a)
    a.delete(where="x == 11 and v == 1")
    assert 11 in held(a), "the older value of the cell is not what it holds"


def test_with_duplicates_each_cell_is_judged_alone(stores: Stores) -> None:
    a = points(stores("a"), duplicates=True, count=10)
    a.write_cells({"x": [3, 3, 4]}, {"v": [100, 3, 100], "w": [0.0, 0.0, 0.0]})
    a.delete(where="v == 100")
    assert held(a) == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9]
    a.delete(where="v == 3")
    assert held(a) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_dense_cells_are_as_if_never_written(stores: Stores) -> None:
    schema = gs.Schema(
        [gs.Dim("y", domain=(0, 99), tile=32), gs.Dim("x", domain=(0, 99), tile=32)],
        [gs.Attr("v", "int32", fill=-1), gs.Attr("w", "float32", nullable=True)],
    )
    a = gs.create(stores("a"), schema)
    v = np.arange(10_000, dtype="int32").reshape(100, 100)
    a.write({"v": v, "w": v.astype("float32")})
    a.write_cells({"y": [5], "x": [5]}, {"v": [20_000]})
    seen = a.version
    a.delete(where="v >= 9000 or v between 1000 and 1010")
    expected = v.copy()
    expected[5, 5] = 20_000
    gone = (expected >= 9_000) | ((expected >= 1_000) & (expected <= 1_010))
    expected[gone] = -1
    assert np.array_equal(a["v"][:], expected)
    assert np.array_equal(np.ma.getmaskarray(a["w"][:]), gone)
    a.delete({"y": (10, 20), "x": (30, 40)})
    expected[10:21, 30:41] = -1
    assert np.array_equal(a["v"][:], expected)
    assert np.array_equal(a["v"][8:30, 25:50], expected[8:30, 25:50])
    flat = a.points({"y": [10, 10, 99], "x": [30, 29, 0]}, attrs=["v"]).to_numpy()["v"]
    assert list(flat) == [-1, 1_029, -1]
    assert a.at(version=seen)["v"][99, 0] == 9_900


def test_what_others_write_meanwhile_stays(stores: Stores) -> None:
    a = points(stores("a"), duplicates=False, count=100)
    b = gs.open(stores("a"), mode="r+")
    assert isinstance(b, gs.Array)
    b.write_cells({"x": [3, 200]}, {"v": [3, 3], "w": [9.0, 9.0]})
    a.delete(where="v == 3")
    assert {3, 200} <= set(held(a)) and 13 not in held(a), "a condition takes what the handle saw"
    a.delete({"x": (150, 9_999)})
    assert 200 not in held(a), "a box takes all that is there"


def overwritten(uri: str) -> tuple[gs.Array, gs.Array]:
    """A dense array whose first half was written again; and a handle that has not seen that."""
    a = gs.array(uri, np.full(10, 9, "int32"), name="n")
    behind = gs.open(uri, mode="r+")
    assert isinstance(behind, gs.Array)
    a[0:5] = np.full(5, 1, "int32")
    return a, behind


def test_a_merge_that_came_first_hides_nothing_from_a_delete(stores: Stores) -> None:
    a, behind = overwritten(stores("a"))
    a.consolidate("all")
    assert a.fragments.num_rows == 1
    behind.delete(where="n > 5")
    a.refresh()
    assert a[:].tolist() == [1] * 5 + [0] * 5


def test_a_merge_that_comes_after_a_delete_brings_nothing_back(stores: Stores) -> None:
    a, behind = overwritten(stores("a"))
    behind.delete(where="n > 5")
    report = a.consolidate("all")
    assert report.overtaken == 1
    a.refresh()
    assert a[:].tolist() == [1] * 5 + [0] * 5
    a.consolidate("all")
    assert a[:].tolist() == [1] * 5 + [0] * 5


def test_a_delete_that_a_merge_overtakes_looks_again(stores: Stores) -> None:
    a = points(stores("a"), duplicates=False, count=100)
    a.write_cells({"x": [200]}, {"v": [3], "w": [9.0]})
    b = gs.open(stores("a"), mode="r+")
    assert isinstance(b, gs.Array)
    b.consolidate("all")
    assert b.fragments.num_rows == 1
    a.delete(where="v == 3")
    assert [x for x in held(a) if x % 10 == 3 or x == 200] == []


def test_deletes_and_merges_at_once(stores: Stores) -> None:
    a = points(stores("a"), duplicates=False, count=2_000)
    failures: list[BaseException] = []

    def work(turn: int) -> None:
        try:
            mine = gs.open(stores("a"), mode="r+")
            assert isinstance(mine, gs.Array)
            for step in range(12):
                if turn == 0:
                    mine.consolidate("all")
                else:
                    mine.delete(where=f"v == {turn} and x < {200 * step}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    a.refresh()
    assert held(a) == [x for x in range(2_000) if x % 10 not in (1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "say what to delete"),
        ({"coords": {"x": [1]}, "where": "v == 1"}, "without box and where"),
        ({"where": "speed > 3"}, "speed"),
        ({"where": "v >"}, "v >"),
        ({"where": "v == 'a'"}, "int32"),
        ({"box": {"y": (1, 2)}}, "no dimension"),
    ],
)
def test_what_cannot_be_deleted_is_said(stores: Stores, arguments: dict[str, Any], message: str) -> None:
    a = points(stores("a"), duplicates=False, count=10)
    version = a.version
    with pytest.raises(gs.errors.InputError, match=message):
        a.delete(**arguments)
    assert a.version == version and len(held(a)) == 10
    with pytest.raises(gs.errors.AccessError):
        gs.open(stores("a")).delete(where="v == 1")  # type: ignore[union-attr]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(0, 9)), min_size=1, max_size=8))
def test_many_deletes_agree_with_a_set(stores: Stores, steps: list[tuple[int, int, int]]) -> None:
    a = points(stores(), duplicates=False, count=300)
    left = set(range(300))
    for number, (lo, hi, v) in enumerate(steps):
        lo, hi = min(lo, hi), max(lo, hi)
        if number % 3 == 0:
            a.delete({"x": (lo, hi)})
            left -= set(range(lo, hi + 1))
        else:
            a.delete({"x": (lo, hi)}, where=gs.col("v") <= v)
            left -= {x for x in range(lo, hi + 1) if x % 10 <= v}
        if number % 4 == 3:
            a.consolidate("all")
        assert held(a) == sorted(left)


@pytest.mark.parametrize("duplicates", [False, True])
def test_a_delete_says_how_many_cells_went(stores: Stores, duplicates: bool) -> None:
    a = points(stores("a"), duplicates=duplicates, count=1_000)
    reader = gs.open(a.uri)
    for chosen, wanted in (
        ({"where": "v == 3"}, 100),
        ({"box": {"x": (0, 49)}, "where": "v != 3"}, 45),
        ({"box": [{"x": (0, 99)}, {"x": (90, 109)}]}, 54),
        ({"coords": {"x": [500, 501, 501, 9_000, 503]}}, 2),
        ({"where": "v == 77"}, 0),
        ({"box": []}, 0),
    ):
        before, rows = a.version, len(held(a))
        tried = a.delete(**chosen, dry_run=True)
        assert (tried, tried.cells, a.version, len(held(a))) == (before, wanted, before, rows)
        made = a.delete(**chosen, count=True, message="counted")
        assert made.cells == wanted and len(held(a)) == rows - wanted
        assert made == a.version == (before + 1 if wanted else made)
    assert reader.delete(where="v == 0", dry_run=True).cells == 100, "of the version that the handle shows"
    assert a.delete({"x": (0, 9)}).cells is None
    with pytest.raises(gs.InputError, match="receipt"):
        a.delete({"x": (0, 9)}, count=True, commit=False)
    with pytest.raises(gs.InputError, match="say what to delete"):
        a.delete(dry_run=True)
    with gs.transaction(a.uri) as tx:
        inner = tx["/"]
        inner.write_cells({"x": [7]}, {"v": [1], "w": [None]})
        assert inner.delete({"x": (0, 9)}, count=True).cells == 1
        assert inner.delete({"x": (0, 9)}, count=True).cells == 0


def test_all_positions_of_a_dense_array_are_cells(stores: Stores) -> None:
    a = gs.create(stores("a"), gs.Schema([gs.Dim("x", (0, 9)), gs.Dim("y", (0, 4))], [gs.Attr("v", "int64")]))
    a.write(np.ones((2, 5), np.int64), {"x": (0, 1)})
    assert a.delete(where="v == 0", dry_run=True).cells == 40 == a.count(where="v == 0")
    assert a.delete({"x": (1, 2)}, count=True).cells == 10
    assert a.delete(coords={"x": [0, 0], "y": [1, 1]}, count=True).cells == 1
    assert int(a[...].sum()) == 4


@pytest.mark.parametrize("chosen", [{"box": {"x": (0, 99)}}, {"where": "v < 5"}], ids=["box", "where"])
def test_a_count_is_of_what_went_beside_other_writers(memory_uri: str, chosen: Any) -> None:
    a = points(memory_uri, duplicates=True, count=0)
    counted, written, quick = [], [], gs.Context(durability="close")

    def write(number: int) -> None:
        mine = gs.open(memory_uri, mode="r+", context=quick)
        for step in range(10):
            mine.write_cells({"x": [number, step, 50]}, {"v": [1, 2, 3], "w": [0.5, None, 1.5]})
            written.append(3)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        counted.append(a.delete(**chosen, count=True).cells)
    for thread in threads:
        thread.join()
    counted.append(a.delete(**chosen, count=True).cells)
    assert sum(counted) == sum(written) == 90 and a.count() == 0


@pytest.mark.parametrize("sparse", [True, False])
def test_coordinates_outside_get_advice_that_a_deletion_can_follow(sparse: bool) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), 5)], [gs.Attr("v", "int8")], sparse=sparse)
    a = gs.create(f"mem://deleting-outside-{sparse}", schema, overwrite=True)
    with pytest.raises(gs.BoundsError, match=r"row 1: coordinate 99 .*no cell lies there: leave the row out$"):
        a.delete(coords={"x": [3, 99]})
    assert a.version == a.refresh()
    with pytest.raises(gs.BoundsError, match="grow=True"):
        a.write_cells({"x": [99]}, {"v": [1]})
