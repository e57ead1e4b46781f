"""Promise: a frame of Dask has the cells that pandas would have, whichever columns and filters reach the array."""

import pickle
import sys
import uuid
import warnings
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs

DAY = np.timedelta64(1, "D")
SCHEMA = gs.Schema(
    [
        gs.Dim("t", ("2024-01-01", "2024-12-31"), np.timedelta64(30, "D"), dtype="datetime64[s]"),
        gs.Dim("x", (-10.0, 10.0), 2.5, dtype="float64"),
        gs.Dim("n", dtype="string"),
    ],
    [
        gs.Attr("i", "int32", nullable=True),
        gs.Attr("j", "int64"),
        gs.Attr("f", "float32"),
        gs.Attr("g", "float64", nullable=True),
        gs.Attr("s", "string", nullable=True),
        gs.Attr("b", "bool"),
        gs.Attr("c", "bool", nullable=True),
        gs.Attr("d", "datetime64[ms]", nullable=True),
        gs.Attr("k", "string", categories=["low", "high"]),
        gs.Attr("by", "bytes"),
        gs.Attr("span", "timedelta64[s]"),
    ],
    sparse=True,
    capacity=6,
)
KEYS = ["t", "x", "n"]


def write(a: gs.Array, count: int, seed: int) -> None:
    """Cells with nulls, NaN and NaT among the values, and values that come again."""
    rng = np.random.default_rng(seed)

    def some(share: int) -> Any:
        return rng.integers(0, share, count) == 0

    t = np.datetime64("2024-01-01", "s") + rng.integers(0, 360 * 86_400, count).astype("timedelta64[s]")
    d = np.datetime64("2024-02-01", "ms") + rng.integers(0, 3, count) * DAY
    d[some(4)] = np.datetime64("NaT")
    columns = {
        "i": np.ma.masked_array(rng.integers(-3, 4, count), some(3)),
        "j": rng.integers(-3, 4, count),
        "f": np.where(some(3), np.nan, rng.integers(-3, 4, count)).astype("float32"),
        "g": np.ma.masked_array(np.where(some(4), np.nan, rng.integers(-3, 4, count) / 2), some(4)),
        "s": [None if null else f"s{k}" for null, k in zip(some(3), rng.integers(0, 4, count), strict=True)],
        "b": some(2),
        "c": np.ma.masked_array(some(2), some(3)),
        "d": np.ma.masked_array(d, some(5)),
        "k": np.array(["low", "high"], object)[rng.integers(0, 2, count)],
        "by": [b"x" * int(k) for k in rng.integers(0, 3, count)],
        "span": rng.integers(0, 9, count).astype("timedelta64[s]"),
    }
    names = [f"n{k}" for k in rng.integers(0, 9, count)]
    a.write_cells({"t": t, "x": rng.uniform(-10, 10, count), "n": names}, columns)


# A nullable attribute with NaT among its values.
pytestmark = pytest.mark.filterwarnings("ignore::gridstone.NatWarning")


def made(count: int = 90, seed: int = 1) -> gs.Array:
    a = gs.create(f"mem://{uuid.uuid4()}", SCHEMA)
    for part in range(3):
        if count:
            write(a, count // 3, seed + part)
    return a


def pandas_of(a: gs.Array) -> pd.DataFrame:
    """What pandas has, with the types of all partitions."""
    found = a.read().to_pandas()
    return found.astype({"i": "Int32", "c": "boolean"})


def check_same(found: pd.DataFrame, wanted: pd.DataFrame, by: list[str] | None = None) -> None:
    """The same rows in whatever order."""
    by = by or [name for name in KEYS if name in wanted.columns]
    tidy = [part.sort_values(by, kind="stable").reset_index(drop=True) for part in (found, wanted)]
    pd.testing.assert_frame_equal(*tidy)


def has_filter(frame: Any) -> bool:
    """Whether pandas filters after the array was read."""
    return any(type(e).__name__ == "Filter" for e in frame.optimize(fuse=False).expr.walk())


def reads(frame: Any) -> list[Any]:
    return [e for e in frame.optimize(fuse=False).expr.walk() if type(e).__name__ == "ReadCells"]


@pytest.fixture(scope="module")
def world() -> tuple[gs.Array, pd.DataFrame]:
    a = made()
    return a, pandas_of(a)


def test_all_cells_come_once_in_partitions_of_the_promised_types(world: tuple[gs.Array, pd.DataFrame]) -> None:
    a, wanted = world
    f = gs.dask.frame(a, blocksize="2KiB")
    assert 5 < f.npartitions < 60 and list(f.columns) == list(wanted.columns) and not f.known_divisions
    check_same(f.compute(), wanted)
    assert len(f) == len(wanted)
    for place in range(f.npartitions):
        assert f.partitions[place].compute().dtypes.equals(f._meta.dtypes)
    assert gs.dask.frame(a).npartitions == 1


SAID = [
    "d[d.f > 1]", "d[d.f != 1]", "d[~(d.f > 1)]", "d[~(d.f != 1)]", "d[d.g >= 0.5]", "d[d.g != 0.5]", "d[~(d.g < 0.5)]",
    "d[~(d.g != 0.5)]", "d[d.i != 1]", "d[~(d.i == 1)]", "d[d.i <= 0]", "d[2 > d.j]", "d[d.j == np.int8(2)]",
    "d[d.j > 0.5]", "d[(d.i > 0) | (d.f < 2)]", "d[~((d.i > 0) | (d.f < 2))]", "d[~((d.i > 0) & (d.g < 2))]",
    "d[(d.i > 0) & ~(d.s == 's1')]", "d[d.s == 's1']", "d[d.s != 's1']", "d[~(d.s >= 's1')]", "d[~(d.s != 's1')]",
    "d[d.n < 'n4']", "d[d.b]", "d[~d.b]", "d[d.c]", "d[~d.c]", "d[d.b == True]", "d[d.c != False]",
    "d[d.d == '2024-02-02']", "d[d.d != '2024-02-02']", "d[~(d.d >= np.datetime64('2024-02-02'))]",
    "d[d.t > pd.Timestamp('2024-05-05 12:00')]", "d[d.t <= datetime.datetime(2024, 5, 5)]", "d[d.x < 3.25]",
    "d[d.s.isna()]", "d[~d.s.isna()]", "d[d.s.notnull()]", "d[d.f.isna()]", "d[d.g.isna()]", "d[d.g.notnull()]",
    "d[d.d.isna()]", "d[~d.d.notnull()]", "d[d.i.isnull()]", "d[d.c.isna() | d.b]",
    "d[(d.x > 0) & (d.t > '2024-03-01') & (d.j < 2)]",
]  # fmt: skip
LEFT = [
    "d[d.f == 0.1]", "d[d.f > 1e30]", "d[d.j == 2**60]", "d[d.f == float('nan')]", "d[d.j + 1 > 2]", "d[d.i == d.j]",
    "d[d.k == 'low']", "d[d.by == b'x']", "d[d.span > pd.Timedelta(3, 's')]", "d[d.s.str.startswith('s1')]",
    "d[d.j.isin([1, 2])]", "d[d.x.between(0, 3)]", "d[d.j > d.j.mean()]", "d[d.j.isna()]", "d[d.b > False]",
]  # fmt: skip


def ask(text: str, frame: Any) -> Any:
    import datetime

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"d": frame, "np": np, "pd": pd, "datetime": datetime})


@pytest.mark.parametrize("text", SAID)
def test_filters_that_the_array_answers(world: tuple[gs.Array, pd.DataFrame], text: str) -> None:
    a, wanted = world
    asked = ask(text, gs.dask.frame(a, blocksize="8KiB"))
    assert not has_filter(asked)
    with dask.config.set(scheduler="sync"):
        check_same(asked.compute(), ask(text, wanted))


@pytest.mark.parametrize("text", LEFT)
def test_filters_that_stay_with_pandas(world: tuple[gs.Array, pd.DataFrame], text: str) -> None:
    """Where the array would compare otherwise, or not at all."""
    a, wanted = world
    asked = ask(text, gs.dask.frame(a, blocksize="8KiB"))
    assert has_filter(asked)
    with dask.config.set(scheduler="sync"):
        check_same(asked.compute(), ask(text, wanted))


def test_a_part_of_a_filter_reaches_the_array(world: tuple[gs.Array, pd.DataFrame]) -> None:
    a, wanted = world
    text = "d[(d.x > 0) & (d.f % 2 == 1) & (d.s != 's1')][['j', 't', 'x', 'n']]"
    asked = ask(text, gs.dask.frame(a))
    (read,) = {e._name: e for e in reads(asked)}.values()
    assert has_filter(asked) and "x" in read.operand("where") and set(read.columns) == {"j", "t", "x", "n", "f"}
    check_same(asked.compute(), ask(text, wanted))


def test_columns_that_are_not_used_are_not_read(world: tuple[gs.Array, pd.DataFrame]) -> None:
    a, wanted = world
    f = gs.dask.frame(a)
    assert [e.columns for e in reads(f.j.sum())] == [["j"]] and f.j.sum().compute() == wanted.j.sum()
    assert [e.columns for e in reads(f[f.x > 0].j.sum())] == [["j"]], "the condition needs no column"
    assert [e.columns for e in reads(f[["s", "j"]])] == [["j", "s"]] and list(f[["s", "j"]].compute()) == ["s", "j"]
    assert [e.columns for e in reads(f.groupby("k").j.max())] == [["j", "k"]]
    found = f.groupby("j").f.max().compute()
    pd.testing.assert_series_equal(found.sort_index(), wanted.groupby("j").f.max())
    assert [e.columns for e in reads(f.index)] == [[]] and len(f.index.compute()) == len(wanted)


def test_columns_and_a_condition_are_given(world: tuple[gs.Array, pd.DataFrame]) -> None:
    a, wanted = world
    f = gs.dask.frame(a, ["s", "t", "x", "n"], "j > 0 and s == 's1'", blocksize="4KiB")
    check_same(f.compute(), wanted[(wanted.j > 0) & (wanted.s == "s1")][["s", "t", "x", "n"]])
    check_same(f[f.x > 0].compute(), wanted[(wanted.j > 0) & (wanted.s == "s1") & (wanted.x > 0)][["s", *KEYS]])
    assert gs.dask.frame(a, "j", gs.col("j") > 0).compute().j.min() == 1


@pytest.mark.parametrize("index", KEYS)
def test_an_index_has_known_divisions_that_hold(world: tuple[gs.Array, pd.DataFrame], index: str) -> None:
    a, wanted = world
    f = gs.dask.frame(a, index=index, blocksize="2KiB")
    assert f.known_divisions and f.npartitions > 1 and f.index.name == index and index not in f.columns
    assert f.divisions[0] == wanted[index].min() and f.divisions[-1] == wanted[index].max()
    for place in range(f.npartitions):
        rows = f.partitions[place].compute()
        assert rows.index.is_monotonic_increasing
        low, high = f.divisions[place], f.divisions[place + 1]
        assert all(low <= one and (one < high or place == f.npartitions - 1) for one in rows.index)
    check_same(f.compute().reset_index(), wanted[[index, *(n for n in wanted.columns if n != index)]], KEYS)
    ends = wanted[index].sort_values().iloc[[10, 40]].tolist()
    found = f.loc[ends[0] : ends[1]].compute()
    assert sorted(found.index) == sorted(one for one in wanted[index] if ends[0] <= one <= ends[1])
    assert f[f.j > 0].b.sum().compute() == wanted[wanted.j > 0].b.sum()


def test_edges_of_divisions_are_edges_of_tiles(world: tuple[gs.Array, pd.DataFrame]) -> None:
    a, _ = world
    edges = gs.dask.frame(a, index="t", blocksize="2KiB").divisions[1:-1]
    assert edges and all(
        (edge - pd.Timestamp("2024-01-01")) % pd.Timedelta(30, "D") == pd.Timedelta(0) for edge in edges
    )


@pytest.mark.parametrize("index", [None, "t", "n"])
def test_an_array_without_cells(index: str | None) -> None:
    a = gs.create(f"mem://{uuid.uuid4()}", SCHEMA)
    f = gs.dask.frame(a, index=index)
    assert f.npartitions == 1 and len(f) == 0 and f.compute().dtypes.equals(f._meta.dtypes) and f.j.sum().compute() == 0


def test_partitions_without_rows_keep_their_types(world: tuple[gs.Array, pd.DataFrame]) -> None:
    a, wanted = world
    f = gs.dask.frame(a, where="t < '2024-02-01'", blocksize="2KiB")
    assert (f.map_partitions(len).compute() == 0).any()
    check_same(f.compute(), wanted[wanted.t < "2024-02-01"])


def test_cells_that_share_coordinates_all_come(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "int32")], sparse=True, duplicates=True, capacity=3)
    a = gs.create(store_uri, schema)
    for _ in range(2):
        a.write_cells({"x": np.arange(0, 100, 5).repeat(3)}, {"v": np.arange(60)})
    for index in (None, "x"):
        f = gs.dask.frame(a, index=index, blocksize="256 B").compute()
        assert sorted(f.v) == sorted(np.arange(60).tolist() * 2)
    assert gs.dask.frame(a, index="x", blocksize="256 B").loc[50].compute().v.count() == 6


@given(st.data())
def test_boxes_cover_every_cell_once(data: st.DataObject) -> None:
    """Any dimensions, tiles, orders and sizes of partitions: each cell is in one partition, deletions and newer values
    included."""
    kinds = data.draw(
        st.lists(st.sampled_from(["int8", "uint64", "float32", "datetime64[h]", "string"]), min_size=1, max_size=3)
    )
    dims = [_dim(data, f"d{i}", kind) for i, kind in enumerate(kinds)]
    orders = st.sampled_from(["row", "col"])
    cells = data.draw(st.sampled_from(["row", "col"] if "string" in kinds else ["row", "col", "hilbert"]))
    schema = gs.Schema(
        dims, [gs.Attr("v", "int32")], sparse=True, capacity=data.draw(st.integers(1, 5)),
        tile_order=data.draw(orders), cell_order=cells,
    )  # fmt: skip
    a = gs.create(f"mem://{uuid.uuid4()}", schema)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    for _ in range(data.draw(st.integers(1, 3))):
        count = data.draw(st.integers(1, 30))
        coords = {dim.name: _coordinates(rng, dim, count) for dim in dims}
        a.write_cells(coords, {"v": rng.integers(0, 99, count)}, dedup="last")
    if data.draw(st.booleans()):
        a.delete(where="v > 50")
    wanted = a.read().to_pandas()
    index = data.draw(st.sampled_from([None, *(dim.name for dim in dims)]))
    f = gs.dask.frame(a, index=index, blocksize=data.draw(st.sampled_from([40, 200, 1000])))
    with dask.config.set(scheduler="sync"):
        found = f.compute()
    names = [dim.name for dim in dims]
    if index is None:
        check_same(found, wanted, names)
    else:
        check_same(found.reset_index(), wanted.set_index(index).reset_index(), names)
    if index and f.known_divisions:
        assert list(f.divisions) == sorted(f.divisions)


def _dim(data: st.DataObject, name: str, kind: str) -> gs.Dim:
    if kind == "string":
        return gs.Dim(name, dtype=kind)
    tile = data.draw(st.sampled_from([None, 7, 30]))
    domain: Any = {"int8": (-90, 90), "uint64": (2**64 - 200, 2**64 - 101), "float32": (-9.5, 9.5)}.get(kind)
    if kind == "datetime64[h]":
        domain = (np.datetime64("2024-01-01T00", "h"), np.datetime64("2024-01-04T23", "h"))
        tile = None if tile is None else np.timedelta64(tile, "h")
    if kind == "float32" and tile is not None:
        tile = tile / 10
    return gs.Dim(name, domain, tile, dtype=kind)


def _coordinates(rng: np.random.Generator, dim: gs.Dim, count: int) -> Any:
    if dim.dtype == "string":
        return [f"{'abcdefghij' * int(k % 2)}{k}" for k in rng.integers(0, 12, count)]
    if dim.dtype == "float32":
        return (rng.integers(-95, 95, count) / 10).astype("float32")
    low, high = (np.asarray(end).astype(object) for end in (0, dim.size - 1))
    steps = rng.integers(int(low), int(high), count, endpoint=True)
    if dim.dtype == "datetime64[h]":
        return dim.domain[0] + steps.astype("timedelta64[h]")
    return np.array([int(dim.domain[0]) + int(step) for step in steps], dim.dtype)


def test_the_frame_stays_at_its_version_and_pickles(tmp_path: Path) -> None:
    a = gs.create(tmp_path / "a.gs", SCHEMA)
    write(a, 60, 3)
    f, name = gs.dask.frame(a, blocksize="4KiB"), gs.dask.frame(a).expr._name
    assert name == gs.dask.frame(gs.open(a.uri)).expr._name, "the same version has the same name"
    write(a, 60, 4)
    assert gs.dask.frame(a).expr._name != name and len(gs.dask.frame(a)) == 120
    assert len(f) == 60 == len(pickle.loads(pickle.dumps(f)))
    text = pickle.dumps(f.optimize().__dask_graph__())
    assert len(text) < 40_000, "boxes and types, and no cell"


def test_without_the_expressions_of_dask_the_frame_is_the_same(
    world: tuple[gs.Array, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they build on is not public: a version of Dask without it gets columns pushed down, and no filters."""
    a, wanted = world
    monkeypatch.setitem(sys.modules, "gridstone.dask.expression", None)
    f = gs.dask.frame(a, where="x > -5", blocksize="4KiB")
    wanted = wanted[wanted.x > -5]
    assert not reads(f)
    check_same(f.compute(), wanted)
    check_same(ask("d[~(d.g < 0.5)]", f).compute(), ask("d[~(d.g < 0.5)]", wanted))
    assert f.j.sum().compute() == wanted.j.sum() and len(f) == len(wanted)
    g = gs.dask.frame(a, index="t", blocksize="2KiB")
    assert g.known_divisions and g.compute().index.is_monotonic_increasing


def test_what_does_not_fit_is_told(world: tuple[gs.Array, pd.DataFrame], store_uri: str) -> None:
    a, _ = world
    with pytest.raises(gs.MissingColumnError, match="no column 'nope'"):
        gs.dask.frame(a, columns=["t", "nope"])
    with pytest.raises(gs.InputError, match="twice"):
        gs.dask.frame(a, columns=["t", "t"])
    with pytest.raises(gs.InputError, match="index= is a dimension, one of 't', 'x', 'n', not 'j'"):
        gs.dask.frame(a, index="j")
    with pytest.raises(gs.InputError, match="nope"):
        gs.dask.frame(a, where="nope > 3")
    with pytest.raises(gs.InputError, match="blocksize"):
        gs.dask.frame(a, blocksize="many")
    with pytest.raises(gs.InputError, match=r"gridstone\.open"):
        gs.dask.frame(a["j"])  # type: ignore[arg-type]
    dense = gs.array(store_uri, np.ones((3, 3)))
    with pytest.raises(gs.UnsupportedError, match=r"gridstone\.dask\.array"):
        gs.dask.frame(dense)
    with gs.transaction(a.uri) as tx, pytest.raises(gs.UnsupportedError, match="outside of a transaction"):
        gs.dask.frame(tx["/"])
