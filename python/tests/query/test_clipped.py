"""Boxes that reach beyond the domain are cut to it where cells are read, and refused where they are written."""

import datetime as dt
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs

LOW, HIGH, WIDTH = -5, 14, 7
ENDS = st.integers(-30, 40)


@pytest.fixture(scope="module")
def dense() -> gs.Array:
    dims = [gs.Dim("x", (LOW, HIGH), 4, "int16"), gs.Dim("y", (0, WIDTH - 1), 3)]
    a = gs.create(
        "mem://clipped-dense", gs.Schema(dims, [gs.Attr("v", "int64"), gs.Attr("w", "float32")]), overwrite=True
    )
    values = np.arange(20 * WIDTH).reshape(20, WIDTH)
    a.write({"v": values, "w": values / 2})
    return a


@pytest.fixture(scope="module")
def sparse() -> gs.Array:
    dims = [gs.Dim("x", (LOW, HIGH), 4, "int16"), gs.Dim("y", (0.0, 1.0), 0.25, "float64")]
    a = gs.create("mem://clipped-sparse", gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True), overwrite=True)
    x = np.arange(LOW, HIGH + 1)
    a.write_cells({"x": x, "y": np.linspace(0, 1, 20)}, {"v": x * 10})
    return a


@given(ENDS, ENDS, ENDS, ENDS)
def test_a_dense_box_is_what_numpy_has_inside(dense: gs.Array, a: int, b: int, c: int, d: int) -> None:
    (x0, x1), (y0, y1) = sorted((a, b)), sorted((c, d))
    whole = np.arange(20 * WIDTH).reshape(20, WIDTH)
    xs, ys = np.arange(LOW, HIGH + 1), np.arange(WIDTH)
    expected = whole[(xs >= x0) & (xs <= x1)][:, (ys >= y0) & (ys <= y1)]
    box = {"x": (x0, x1), "y": (y0, y1)}
    found = dense.read(box)
    assert found["v"].dtype == np.int64 and found["w"].dtype == np.float32
    assert np.array_equal(found["v"], expected) and found.shape == expected.shape
    assert np.array_equal(dense["v"].loc[x0 : x1 + 1, y0 : y1 + 1], expected)
    out = np.empty(expected.shape, np.int64)
    dense.read(box, "v", out=out)
    assert np.array_equal(out, expected)
    assert sorted(dense.scan(box, "v").to_arrow()["v"].to_pylist()) == sorted(expected.ravel().tolist())
    assert sorted(dense.read(box, where="v % 2 = 0")["v"].tolist()) == sorted(expected[expected % 2 == 0].tolist())
    assert dense.aggregate({"n": "count(*)", "s": "sum(v)"}, box=box).to_arrow().to_pylist() == [
        {"n": expected.size, "s": int(expected.sum()) if expected.size else None}
    ]
    assert dense["v"].sum(box=box) == expected.sum()
    assert np.array_equal(dense["v"].sum(axis=0, box=box), expected.sum(axis=0))
    twice = dense.read([box, {"x": (HIGH + 1, HIGH + 9)}])
    assert sorted(twice["v"].tolist()) == sorted(expected.ravel().tolist())
    is_inside = x0 >= LOW and x1 <= HIGH and y0 >= 0 and y1 < WIDTH
    if is_inside:
        assert np.array_equal(dense.read(box, clip="error")["v"], expected)
        return
    for strict in (lambda: dense.read(box, clip="error"), lambda: dense.scan(box, clip=False)):
        with pytest.raises(gs.BoundsError, match="not inside the domain"):
            strict()


@given(ENDS, ENDS, st.floats(-3, 3), st.floats(-3, 3))
def test_a_sparse_box_is_what_lies_inside(sparse: gs.Array, a: int, b: int, c: float, d: float) -> None:
    (x0, x1), (y0, y1) = sorted((a, b)), sorted((c, d))
    xs, ys = np.arange(LOW, HIGH + 1), np.linspace(0, 1, 20)
    expected = (xs[(xs >= x0) & (xs <= x1) & (ys >= y0) & (ys <= y1)] * 10).tolist()
    box = {"x": (x0, x1), "y": (y0, y1)}
    assert sparse.read(box)["v"].tolist() == expected
    assert sparse.read((slice(x0, x1 + 1), slice(y0, np.nextafter(y1, 9))))["v"].tolist() == expected
    assert sparse.loc[x0 : x1 + 1, y0 : np.nextafter(y1, 9)]["v"].tolist() == expected
    assert sparse.aggregate({"n": "count(*)"}, box=box).to_arrow()["n"].to_pylist() == [len(expected)]
    assert sparse.read([box, box])["v"].tolist() == expected


def test_what_lies_wholly_outside_is_empty_with_its_types(dense: gs.Array, sparse: gs.Array) -> None:
    found = dense.read({"x": (100, 200), "y": (2, 400)})
    assert found.shape == (0, WIDTH - 2) and found["w"].dtype == np.float32
    assert dense.loc[100:200].keys() == {"v", "w"} and dense.loc[100:200]["v"].shape == (0, WIDTH)
    assert dense.read({"x": (-(10**9), 10**9)})["v"].shape == (20, WIDTH)
    assert dense.read({"x": (2.5, 1e300)})["v"].shape == (12, WIDTH)
    empty = sparse.read({"y": (7.0, 8.0)})
    assert len(empty) == 0 and empty["v"].dtype == np.int64 and empty["x"].dtype == np.int16
    assert empty.to_arrow().schema == sparse.read().to_arrow().schema
    assert list(sparse.scan({"x": (15, 99)})) == []
    assert sparse.tiles({"x": (15, 99)}).num_rows == 0


def test_a_single_coordinate_outside_is_an_error(dense: gs.Array, sparse: gs.Array) -> None:
    for look in (
        lambda: dense.loc[15],
        lambda: dense.read({"x": -6}),
        lambda: sparse.loc[15],
        lambda: sparse.read({"y": 1.5}),
        lambda: dense[20],
        lambda: dense["v"].loc[0, 7],
        lambda: dense["v"].points({"x": [0, 99], "y": [0, 0]}),
    ):
        with pytest.raises(gs.BoundsError):
            look()
    for box in ({"x": (5, 4)}, {"x": (99, 98)}):
        with pytest.raises(gs.InputError, match="lower end first"):
            dense.read(box)
    with pytest.raises(gs.InputError, match="clip= is True"):
        dense.read(clip="no")  # type: ignore[arg-type]


def test_points_outside_give_no_row(dense: gs.Array, sparse: gs.Array) -> None:
    found = dense.points({"x": [0, 99, 5, -6, 0], "y": [1, 1, 99, 1, 2]})
    assert (found["x"].tolist(), found["y"].tolist()) == ([0, 0], [1, 2])
    assert found["v"].tolist() == [5 * WIDTH + 1, 5 * WIDTH + 2]
    assert sparse.points({"x": [LOW, LOW, 300], "y": [0.0, 3.0, 0.0]})["v"].tolist() == [LOW * 10]
    assert len(dense.points({"x": [99], "y": [0]})) == 0
    with pytest.raises(gs.InputError):
        sparse.points({"x": [0], "y": [np.nan]})
    texts = gs.create(
        "mem://clipped-text",
        gs.Schema([gs.Dim("n", dtype="string"), gs.Dim("x", (0, 9))], [gs.Attr("v", "i4")], sparse=True),
        overwrite=True,
    )
    texts.write_cells({"n": ["a", "bcd", "é"], "x": [1, 2, 3]}, {"v": [1, 2, 3]})
    found = texts.points({"n": ["zzz", "bcd", "a", "é"], "x": [50, 2, 10, 3]})
    assert (found["n"].tolist(), found["v"].tolist()) == (["bcd", "é"], [2, 3])


def test_writes_are_never_cut(dense: gs.Array, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((2, WIDTH), "int64"))
    before = dense.version
    for write in (
        lambda: dense.write({"v": np.zeros((3, WIDTH)), "w": np.zeros((3, WIDTH))}, {"x": (HIGH - 1, HIGH + 1)}),
        lambda: dense["v"].loc.__setitem__(slice(HIGH, HIGH + 2), 0),
        lambda: dense.write_cells({"x": [HIGH + 1], "y": [0]}, {"v": [0], "w": [0]}),
        lambda: dense.writer({"x": (HIGH, HIGH + 1), "y": (0, 1)}),
        lambda: gs.io.from_npy(dense.uri, tmp_path / "v.npy", name="v", box={"x": (HIGH, HIGH + 1)}),
    ):
        with pytest.raises(gs.BoundsError):
            write()
    assert dense.version == before


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_deletion_holds_for_cells_that_another_commit_made_room_for(tmp_path: Path, is_sparse: bool) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), 5)], [gs.Attr("v", "int64", fill=-1)], sparse=is_sparse)
    mine = gs.create(tmp_path / "a.gs", schema)
    mine.write_cells({"x": [1, 7]}, {"v": [1, 7]})
    other = gs.open(tmp_path / "a.gs", "r+") if False else gs.open(tmp_path / "a.gs", mode="r+")
    other.write_cells({"x": [12, 18]}, {"v": [12, 18]}, grow=True)
    version = mine.delete({"x": (7, 15)})
    kept = gs.open(tmp_path / "a.gs").read(where="v >= 0")
    assert kept["x"].tolist() == [1, 18]
    assert gs.open(tmp_path / "a.gs", version=int(version) - 1).read(where="v >= 0")["x"].tolist() == [1, 7, 12, 18]
    other.refresh()
    other.write_cells({"x": [13]}, {"v": [13]}, grow=True)
    other.consolidate("all")
    assert gs.open(tmp_path / "a.gs").read(where="v >= 0")["x"].tolist() == [1, 13, 18]
    assert mine.delete({"x": (500, 600)}) and mine.delete([{"x": (-9, 1)}, {"x": (13, 99)}])
    assert gs.open(tmp_path / "a.gs").read(where="v >= 0")["x"].tolist() == []
    assert gs.verify(tmp_path / "a.gs").ok


def test_a_period_that_is_deleted_may_reach_beyond_the_domain(tmp_path: Path) -> None:
    days = gs.Dim("t", ("2026-05-01", "2026-05-15"), dtype="M8[D]")
    mine = gs.create(tmp_path / "a.gs", gs.Schema([days], [gs.Attr("v", "int64")], sparse=True))
    mine.write_cells({"t": ["2026-05-10"]}, {"v": [10]})
    gs.open(tmp_path / "a.gs", mode="r+").write_cells({"t": ["2026-05-20", "2026-06-01"]}, {"v": [20, 1]}, grow=True)
    for outside in ("2026-07", "2026-07-01", np.datetime64("2026-05-20")):
        with pytest.raises(gs.BoundsError, match="not inside the domain"):
            mine.delete({"t": outside})
    mine.delete({"t": "2026-05"})
    assert gs.open(tmp_path / "a.gs").read()["v"].tolist() == [1]


DAY = np.datetime64("2026-05-01")
GROWING: dict[str, Any] = {
    "int64": lambda n: n,
    "uint8": lambda n: n,
    "int8": lambda n: n - 20,
    "uint64": lambda n: n,
    "float32": float,
    "float64": float,
    "datetime64[D]": lambda n: DAY + n,
    "datetime64[6h]": lambda n: DAY + np.timedelta64(6 * n, "h"),
    "timedelta64[s]": lambda n: np.timedelta64(n, "s"),
}
NAMES = count()


@pytest.mark.parametrize("dtype", sorted(GROWING))
def test_an_open_end_of_a_deletion_reaches_as_far_as_the_type(dtype: str) -> None:
    """Another commit has made room on both sides; its cells go, up to the ends that are given."""
    place, none = GROWING[dtype], slice(None)
    boxes: list[tuple[Any, list[int]]] = [
        ((...,), []),
        ({"x": none}, []),
        ({"x": (None, None)}, []),
        ({"x": (place(6), None)}, [2, 5]),
        ({"x": slice(place(12), None)}, [2, 5, 7]),
        ({"x": (place(13), None)}, [2, 5, 7, 12]),
        ({"x": (None, place(12))}, [18]),
        ({"x": slice(None, place(3))}, [5, 7, 12, 18]),
        ([{"x": (None, place(1))}, {"x": (place(15), None)}], [2, 5, 7, 12]),
    ]
    for is_sparse in [True] if dtype.startswith("float") else [True, False]:
        for box, left in boxes:
            uri = f"mem://open-deletions-{next(NAMES)}"
            dims = [gs.Dim("x", (place(4), place(9)), dtype=dtype)]
            mine = gs.create(uri, gs.Schema(dims, [gs.Attr("v", "int64", fill=-1)], sparse=is_sparse))
            mine.write_cells({"x": [place(5), place(7)]}, {"v": [5, 7]})
            other = gs.open(uri, "r+")
            other.write_cells({"x": [place(2), place(12), place(18)]}, {"v": [2, 12, 18]}, grow=True)
            assert mine.domain[0] == (place(4), place(9))
            mine.delete(box)
            other.refresh()
            assert other.read(where="v >= 0")["v"].tolist() == left, box
            other.write_cells({"x": [place(18), place(20)]}, {"v": [180, 200]}, grow=True)
            other.consolidate("all")
            kept = [*(v for v in left if v != 18), 180, 200]
            assert other.read(where="v >= 0")["v"].tolist() == kept, box
            assert other.at(version=3).read(where="v >= 0")["v"].tolist() == [2, 5, 7, 12, 18]
            assert gs.verify(uri).ok and other.domain[0] == (place(2), place(20))


def test_an_open_end_reaches_further_in_an_array_without_a_coordinate(tmp_path: Path) -> None:
    days = gs.Dim("t", (0, None), 4)
    mine = gs.create(tmp_path / "a.gs", gs.Schema([days], [gs.Attr("v", "int64", fill=-1)]))
    other = gs.open(tmp_path / "a.gs", "r+")
    other.write({"v": np.arange(6)}, box={"t": (0, 5)})
    mine.delete({"t": (3, None)})
    other.refresh()
    assert other.shape == (6,) and other.read()["v"].tolist() == [0, 1, 2, -1, -1, -1]


def test_an_update_of_all_cells_deletes_only_what_it_read() -> None:
    uri = f"mem://open-deletions-{next(NAMES)}"
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True, duplicates=True)
    gs.create(uri, schema).write_cells({"x": [1, 7]}, {"v": [1, 7]})
    tx = gs.transaction(uri)
    tx["/"].update({"v": "v + 100"})
    gs.open(uri, "r+").write_cells({"x": [50]}, {"v": [50]}, grow=True)
    try:
        tx.commit()
        changed = [101, 107]
    except gs.ConflictError:
        changed = [1, 7]
    assert gs.open(uri).read()["v"].tolist() == [*changed, 50]


def test_pandas_periods_are_refused_by_name(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    days = gs.Dim("t", ("2026-03", "2026-04"), dtype="M8[D]")
    a = gs.create(tmp_path / "a.gs", gs.Schema([days], [gs.Attr("v", "int64")]))
    month = pd.Period("2026-03")
    for look in (lambda: a.read({"t": month}), lambda: a.loc[month], lambda: a.delete({"t": (month, month)})):
        with pytest.raises(gs.InputError, match="no coordinate"):
            look()
    assert len(a.loc[str(month)]) == 31


def test_boxes_of_differences_exports_and_filters(tmp_path: Path) -> None:
    one, two = (
        gs.create(tmp_path / name, gs.Schema([gs.Dim("x", (0, last))], [gs.Attr("v", "int64")], sparse=True))
        for name, last in (("one.gs", 9), ("two.gs", 99))
    )
    one.write_cells({"x": [1, 5]}, {"v": [1, 5]})
    two.write_cells({"x": [1, 5, 50]}, {"v": [1, 6, 50]})
    assert gs.diff(one, two, box={"x": (0, 4)}).same and not gs.diff(one, two, box={"x": (40, 60)}).same
    assert not gs.diff(one, two, box={"x": (8, None)}).same and not gs.diff(two, one, box={"x": (6, None)}).same
    gs.io.to_csv(one, tmp_path / "cut.csv", box={"x": (4, 400)})
    assert (tmp_path / "cut.csv").read_text().split() == ['"x","v"', "5,5"]
    gs.io.to_csv(one, tmp_path / "none.csv", box={"x": (400, 500)})
    assert (tmp_path / "none.csv").read_text().split() == ['"x","v"']
    made = one.filter(box={"x": (2, 500)}, to=str(tmp_path / "made.gs"))
    assert made.read()["v"].tolist() == [5]
    block = gs.array(tmp_path / "block.gs", np.arange(10), name="v")
    part = block.filter(box={block.dims[0]: (7, 70)}, to=str(tmp_path / "part.gs"))
    assert part.read(where="v > 0")["v"].tolist() == [7, 8, 9]
    gs.io.to_npy(block, tmp_path / "b.npy", box={block.dims[0]: (-3, 2)})
    assert np.load(tmp_path / "b.npy").tolist() == [0, 1, 2]


NONEMPTY: dict[str, tuple[Any, list[Any]]] = {
    "int8": ((-128, 127), [-128, 0, 127]),
    "uint64": ((0, 2**64 - 1), [0, 2**63, 2**64 - 1]),
    "float32": ((-1e30, 1e30), [-0.1, 0.1, 3.3]),
    "float64": ((-1e300, 1e300), [-0.1, 5e-324, 1 / 3]),
    "datetime64[ns]": ((-(2**63) + 1, 2**63 - 1), ["1890-01-01T00:00:00.000000001", "2026-03-01"]),
    "datetime64[M]": (("1900", "2100"), ["1999-12", "2026-03"]),
    "datetime64[6h]": ((-10, 10**6), [3, 7]),
    "timedelta64[s]": ((-(10**9), 10**9), [np.timedelta64(-5, "s"), dt.timedelta(days=3)]),
    "string": (None, ["", "a", "zürich and beyond"]),
}


@pytest.mark.parametrize("dtype", NONEMPTY)
def test_the_nonempty_domain_is_a_box(dtype: str) -> None:
    domain, values = NONEMPTY[dtype]
    dims = [gs.Dim("d", domain, dtype=dtype), gs.Dim("x", (0, 9))]
    a = gs.create("mem://nonempty", gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True), overwrite=True)
    a.write_cells({"d": values, "x": [5] * len(values)}, {"v": list(range(len(values)))})
    ends = a.nonempty_domain
    assert ends is not None
    assert len(a.read(ends)) == len(a.read(dict(zip(a.dims, ends, strict=True)))) == len(values)
    assert len(a.read(ends[:1])) == len(values)
    assert a.aggregate({"n": "count(*)"}, box=ends).to_arrow()["n"].to_pylist() == [len(values)]


def test_a_tuple_of_pairs_is_a_box_and_a_list_of_coordinates_is_not(sparse: gs.Array) -> None:
    assert sparse.read(((0, 2), (0.0, 1.0)))["x"].tolist() == [0, 1, 2]
    with pytest.raises(gs.InputError, match=r"sel\(\) takes lists"):
        sparse.loc[[0, 2]]
    with pytest.raises(gs.InputError, match="lower end first"):
        sparse.read(((2, 0),))
