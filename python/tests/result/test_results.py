"""Results in NumPy, Arrow and pandas."""

import uuid
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs

CELLS = {
    "b": np.array([True, False, True]),
    "i": np.array([-1, 2, 3], np.int16),
    "f": np.array([0.5, np.nan, np.inf], np.float32),
    "t": np.array(["2026-01-01T12:00", "NaT", "1960-01-01"], "M8[us]"),
    "d": np.array([1, 2, 3], "m8[ms]"),
    "s": np.array(["", "häfen", "x" * 300], object),
    "r": np.array([b"", b"\x00\xff", b"ab"], object),
}


@pytest.fixture
def cells(store_uri: str) -> gs.Array:
    attrs = [gs.Attr(n, v.dtype if v.dtype.kind != "O" else type(v[0])) for n, v in CELLS.items()]
    nullable = [gs.Attr(n + "0", a.dtype, nullable=True) for n, a in zip(CELLS, attrs, strict=True)]
    dims = [gs.Dim("x", (0.0, 10.0), 2.5, "float64"), gs.Dim("y", (0, 99), 10, "uint8")]
    array = gs.create(store_uri, gs.Schema(dims, attrs + nullable, sparse=True))
    masked = {n + "0": np.ma.MaskedArray(v, mask=[False, True, False]) for n, v in CELLS.items()}
    array.write_cells({"x": [0.5, 1.5, 9.75], "y": [7, 8, 9]}, {**CELLS, **masked})
    return array


def test_every_type_comes_back(cells: gs.Array) -> None:
    found = cells.read().to_numpy()
    assert list(found) == ["x", "y", *CELLS, *(n + "0" for n in CELLS)]
    for name, values in CELLS.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)
        masked = found[name + "0"]
        assert np.ma.isMaskedArray(masked)
        assert masked.mask.tolist() == [False, True, False]
        np.testing.assert_array_equal(masked[[0, 2]].data, values[[0, 2]])


def test_arrow(cells: gs.Array) -> None:
    table = cells.read().to_arrow()
    table.validate(full=True)
    assert table.schema.equals(cells.schema.to_arrow(), check_metadata=True)
    assert table["s"].to_pylist() == CELLS["s"].tolist()
    assert table["s0"].to_pylist() == ["", None, "x" * 300]
    assert table["t"].null_count == 1 and table["b0"].to_pylist() == [True, None, True]
    assert table["d"].type == pa.duration("ms")
    names = ["b0", "i", "s0", "r", "d0"]
    table = table.select(["x", "y", *names])
    assert pa.table(cells.read(attrs=names)).equals(table)
    assert cells.scan(attrs=names, order="row").to_arrow().equals(table)
    assert pa.RecordBatchReader.from_stream(cells.scan(attrs=names, order="row")).read_all().equals(table)


def test_pandas(cells: gs.Array) -> None:
    frame = cells.read(attrs=["i", "s0"]).to_pandas()
    assert frame["i"].tolist() == [-1, 2, 3]
    assert frame["s0"].isna().tolist() == [False, True, False]


def test_pandas_types(cells: gs.Array) -> None:
    """Nulls make integers and booleans nullable in pandas, of results, streams and points alike; nothing else does."""
    kinds = {"b": "bool", "i": "int16", "f": "float32", "b0": "boolean", "i0": "Int16", "f0": "float32"}
    for found in (cells.read(), cells.scan(order="row"), cells.points({"x": [0.5, 1.5, 9.75], "y": [7, 8, 9]})):
        frame = found.to_pandas()
        assert list(frame.columns) == ["x", "y", *cells.schema_names]
        assert {name: str(frame[name].dtype) for name in kinds} == kinds
        assert frame["b0"].tolist() == [True, pd.NA, True] and frame["i0"].tolist() == [-1, pd.NA, 3]
        assert np.isnan(frame["f0"][1]) and frame["t0"].dtype == "M8[us]" and frame["t0"][1] is pd.NaT
    assert cells.read({"x": (3.0, 4.0)}).to_pandas()["i0"].dtype == np.int16
    assert cells.read({"x": (0.5, 0.5)}).to_pandas()["b0"].dtype == np.bool_


def test_ticks_that_pandas_has_no_time_for_are_exact(store_uri: str) -> None:
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("t", "datetime64[ps]")], sparse=True))
    a.write_cells([1, 2], np.array([2**62 + 1, np.iinfo(np.int64).min]).view("M8[ps]"))
    assert a.read().to_pandas()["t"].tolist() == [2**62 + 1, pd.NA]


WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@st.composite
def nullable_series(draw: st.DrawFn) -> pd.Series:
    """Integers or booleans, some of them null, in a type of pandas that knows nulls."""
    kind = draw(st.sampled_from([*WHOLE, "bool"]))
    values: st.SearchStrategy = st.booleans()
    if kind != "bool":
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        values = st.sampled_from([low, low + 1, 0, 1, high - 1, high]) | st.integers(low, high)
    told = "boolean" if kind == "bool" else kind.replace("uint", "UInt").replace("int", "Int")
    dtype = draw(st.sampled_from([told, f"{kind}[pyarrow]"]))
    return pd.Series(draw(st.lists(st.none() | values, min_size=1, max_size=8)), dtype=dtype)


@given(series=nullable_series(), loaded=st.booleans())
def test_pandas_there_and_back_is_exact(series: pd.Series, loaded: bool) -> None:
    uri, frame = f"mem://{uuid.uuid4().hex}", pd.DataFrame({"x": range(len(series)), "v": series})
    plain = str(series.dtype).removesuffix("[pyarrow]").lower().replace("boolean", "bool")
    if loaded:
        a = gs.io.from_pandas(uri, frame, dims=["x"])
    else:
        attr = gs.Attr("v", plain, nullable=True)
        a = gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], [attr], sparse=True))
        a.write_cells(frame)
    found = a.read(order="row").to_pandas()
    gs.delete(uri)
    nullable = "boolean" if plain == "bool" else plain.replace("uint", "UInt").replace("int", "Int")
    assert found["v"].dtype == (nullable if series.isna().any() else plain)
    assert found["v"].tolist() == series.tolist()
    assert [type(value) for value in found["v"].tolist()] == [type(value) for value in series.tolist()]
    if series.dtype == nullable and series.isna().any():
        pd.testing.assert_frame_equal(found, frame)


def test_one_column_and_what_there_is(cells: gs.Array) -> None:
    found = cells.read(attrs="i")
    assert len(found) == 3 and list(found) == ["x", "y", "i"] and "i" in found
    assert found["i"].tolist() == [-1, 2, 3]
    with pytest.raises(gs.errors.InputError, match="'i'"):
        found["j"]
    assert "3 cells" in repr(found) and "<table>" in found._repr_html_()
    assert found.stats["cells_returned"] == 3 and cells.stats == found.stats
    repr(cells.read())


def test_nothing_found(cells: gs.Array) -> None:
    for found in (cells.read({"x": (3.0, 4.0)}), cells.read({"x": slice(3.0, 3.0)})):
        assert len(found) == 0
        assert found.to_arrow().num_rows == 0
        assert found.to_numpy()["s"].shape == (0,)
    assert cells.scan({"x": slice(3.0, 3.0)}).to_arrow().num_rows == 0


@pytest.mark.parametrize("order", ["row", "col", "global"])
def test_dense_in_every_order(store_uri: str, order: str) -> None:
    values = np.arange(20 * 30).reshape(20, 30)
    array = gs.array(store_uri, values, tile=(7, 9))
    found = array.read({"d0": (3, 17), "d1": (2, 28)}, order=order)
    expected = values[3:18, 2:29]
    np.testing.assert_array_equal(found.to_dense(), expected)
    table = found.to_arrow()
    np.testing.assert_array_equal(values[table["d0"].to_numpy(), table["d1"].to_numpy()], table["value"].to_numpy())
    if order == "global":
        assert found["value"].shape == (15 * 27,)
    else:
        assert found["value"].flags["C_CONTIGUOUS" if order == "row" else "F_CONTIGUOUS"]
    assert array.scan({"d0": (3, 17), "d1": (2, 28)}, order=order).to_arrow().equals(table)
    small = array.scan({"d0": (3, 17), "d1": (2, 28)}, order=order, batch_bytes=600)
    assert small.to_arrow().equals(table)


def test_dense_nullable_and_strings(store_uri: str) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0, 3), 3), gs.Dim("y", (0, 2), 2)],
        [gs.Attr("s", str, fill="?"), gs.Attr("n", "int8", nullable=True), gs.Attr("t", "datetime64[h]")],
    )
    array = gs.create(store_uri, schema)
    array[1, :2] = {"s": ["a", "b"], "n": [1, None], "t": ["2026-01-01T01", "2026-01-01T02"]}
    found = array[...]
    assert found["s"].tolist() == [["?"] * 3, ["a", "b", "?"], ["?"] * 3, ["?"] * 3]
    assert found["n"].mask.sum() == 11 and found["n"][1, 0] == 1
    assert np.isnat(found["t"]).sum() == 10
    column = array.read(order="col")
    assert column["s"].tolist() == found["s"].tolist()
    assert column.to_arrow()["s"].to_pylist() == found["s"].T.ravel().tolist()
    assert array["s"][1, 0] == "a" and array["n"][1, 1] is np.ma.masked


def test_out(store_uri: str) -> None:
    values = np.arange(12.0).reshape(3, 4)
    array = gs.array(store_uri, values)
    target = np.empty((2, 4))
    array.read({"d0": (1, 2)}, out=target)
    np.testing.assert_array_equal(target, values[1:])
    array.read({"d0": (1, 2)}, out={"value": target})
    for wrong in (np.empty((2, 3)), np.empty((2, 4), np.float32), {"v": target}):
        with pytest.raises(gs.errors.InputError, match="out="):
            array.read({"d0": (1, 2)}, out=wrong)


def strided(shape: tuple[int, ...], *strides: int) -> np.ndarray:
    """Zeros of int64 with these strides, counted in quarters of a cell."""
    first = sum((n - 1) * -s for n, s in zip(shape, strides, strict=True) if s < 0)
    return np.ndarray(shape, "int64", bytearray(1024), first * 2, [s * 2 for s in strides])


@pytest.mark.parametrize(
    "strides", [(0, 4), (4, 0), (0, 0), (4, 4), (12, 4), (-12, 4), (3, 16), (16, 2), (12, 24), (6, 4)]
)
def test_out_that_lies_over_itself(store_uri: str, strides: tuple[int, int]) -> None:
    """Refused before anything is read, whoever would fill it."""
    schema = gs.Schema(
        [gs.Dim("x", (0, 2)), gs.Dim("y", (0, 3))], [gs.Attr("v", "int64"), gs.Attr("n", "int64", nullable=True)]
    )
    array = gs.create(store_uri, schema)
    array[...] = {"v": np.arange(12).reshape(3, 4), "n": np.arange(12).reshape(3, 4)}
    for name in ("v", "n"):
        target = strided((3, 4), *strides)
        with pytest.raises(gs.errors.InputError, match=r"out= for '.'.* own .*threads.* strides .*np.empty"):
            array.read(attrs=name, out=target)
        assert not target.any(), "nothing was written"


@pytest.mark.parametrize(
    "strides", [(16, 4), (4, 12), (-16, 4), (16, -4), (64, 8), (32, 4), (16, 12), (8, 24), (12, 16)]
)
def test_out_with_a_place_for_every_cell(store_uri: str, strides: tuple[int, int]) -> None:
    """However its axes lie among each other."""
    values = np.arange(12).reshape(3, 4)
    target = strided((3, 4), *strides)
    gs.array(store_uri, values).read(out=target)
    np.testing.assert_array_equal(target, values)


@pytest.mark.parametrize("order", ["row", "col", "global"])
@pytest.mark.parametrize("fill", [0, -7])
def test_memory_used_again_shows_nothing_of_what_it_held(store_uri: str, fill: int, order: str) -> None:
    """A large result comes from the memory of one that was dropped; cells that nobody wrote are fill all the same."""
    dims, rows = [gs.Dim("y", (0, 1023), 128), gs.Dim("x", (0, 255), 128)], 256
    context = gs.Context("64MiB", 2)
    array = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", "int64", fill=fill)]), context=context)
    expected = np.full((1024, 256), fill)
    expected[:rows] = array[:rows] = np.arange(1, rows * 256 + 1).reshape(rows, 256)
    # Nothing is written from 256 to 511; some cells, one by one, from 512 on; a box that fits no tile from 768 on.
    y, x = np.arange(550, 700, 3), np.arange(0, 250, 5)
    array.write_cells((y, x), x + 1)
    expected[y, x] = x + 1
    array.delete(coords=(y[:9], x[:9]))
    expected[y[:9], x[:9]] = fill
    expected[800:900, 100:200] = array[800:900, 100:200] = np.arange(10_000).reshape(100, 100)
    for low in (256, 512, 768):
        used = array.read({"y": (0, rows - 1)}, order=order)["v"]
        assert used.min() > 0 and used.nbytes >= 128 << 10
        dropped = used.__array_interface__["data"][0]
        del used
        # Other memory of this size may wait too. Each result that is kept takes a piece of it away, so the turn comes.
        kept: list[gs.Cells] = []
        while not kept or kept[-1]["v"].__array_interface__["data"][0] != dropped:
            assert len(kept) < 64, "no memory is used again: this tests nothing"
            kept.append(array.read({"y": (low, low + rows - 1)}, order=order))
            np.testing.assert_array_equal(kept[-1].to_dense(), expected[low : low + rows])


def test_to_dense(store_uri: str) -> None:
    dims = [gs.Dim("x", (-2, 3), 2, "int8"), gs.Dim("y", (0, 4), 2)]
    attrs = [gs.Attr("v", "float64"), gs.Attr("n", "int32", nullable=True)]
    array = gs.create(store_uri, gs.Schema(dims, attrs, sparse=True))
    array.write_cells({"x": [-2, 3, 0], "y": [0, 4, 2]}, {"v": [1.0, 2.0, 3.0], "n": [1, None, 3]})
    found = array.read().to_dense()
    assert found["v"].shape == (6, 5) and found["v"].sum() == 6 and found["v"][2, 2] == 3
    assert found["n"].mask.sum() == 28
    assert array.read(attrs="v").to_dense(fill=-1).min() == -1


def test_to_dense_checks_the_size_first(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 999_999)), gs.Dim("y", (0, 999_999))], [gs.Attr("v", int)], sparse=True)
    found = gs.create(store_uri, schema).read()
    with pytest.raises(gs.errors.BudgetError, match="memory budget"):
        found.to_dense()


def test_arrow_types_for_coarse_and_fine_times(store_uri: str) -> None:
    kinds = {
        "Y": pa.timestamp("s"),
        "D": pa.timestamp("s"),
        "h": pa.timestamp("s"),
        "ns": pa.timestamp("ns"),
        "ps": pa.int64(),
    }
    attrs = [gs.Attr(unit, f"datetime64[{unit}]") for unit in kinds]
    array = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], attrs, sparse=True))
    array.write_cells([1], {unit: np.array([5], f"M8[{unit}]") for unit in kinds})
    table = array.read().to_arrow()
    assert {name: table.schema.field(name).type for name in kinds} == kinds
    assert table["D"].to_pylist() == [pd.Timestamp("1970-01-06")]
    assert table["ps"].to_pylist() == [5]


def test_numpy_protocol(store_uri: str) -> None:
    values = np.arange(6.0).reshape(2, 3)
    array = gs.array(store_uri, values)
    np.testing.assert_array_equal(np.asarray(array), values)
    assert np.asarray(array, dtype=np.float32).dtype == np.float32
    assert np.asarray(array["value"]).sum() == 15
    assert len(array) == 2 and [row.sum() for row in array] == [3, 12]
    assert not hasattr(array, "__array_function__")
    with pytest.raises(gs.errors.InputError, match="copy"):
        np.array(array, copy=False)


def test_out_must_be_an_array_that_may_be_written(stores: Stores) -> None:
    array = gs.array(stores("out"), np.arange(4))
    closed = np.zeros(4, np.int64)
    closed.flags.writeable = False
    for wrong in (closed, [0, 0, 0, 0]):
        with pytest.raises(gs.errors.InputError, match="may be written"):
            array.read(out=wrong)  # type: ignore[arg-type]


PLACES = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), max_size=9)
COORDINATES = [gs.Dim("x", (0, 30), 7, "int16"), gs.Dim("s", dtype="string", max_bytes=8)]


@given(
    written=st.lists(PLACES, min_size=1, max_size=3),
    duplicates=st.booleans(),
    order=st.sampled_from(["row", "col", "global", "any"]),
    where=st.sampled_from([None, "v > 3", "x < 9 or t = 'b'"]),
    box=st.sampled_from([None, {"x": (3, 20)}, [{"x": (0, 4)}, {"x": (3, 9), "s": ("b", "b")}]]),
)
def test_coordinates_alone(
    written: list[list[tuple[int, str]]], duplicates: bool, order: str, where: str | None, box: Any
) -> None:
    """`attrs=[]` gives the coordinates of the cells that a read with attributes gives, whatever it selects."""
    uri = f"mem://{uuid.uuid4().hex}"
    attrs = [gs.Attr("t", "string"), gs.Attr("v", "int8", nullable=True), gs.Attr("w", "float64")]
    a = gs.create(uri, gs.Schema(COORDINATES, attrs, sparse=True, duplicates=duplicates, capacity=4))
    for cells in written:
        places = {"x": [x for x, _ in cells], "s": [s for _, s in cells]}
        values = {"t": places["s"], "v": [x if x % 3 else None for x in places["x"]], "w": places["x"]}
        a.write_cells(places, values, dedup="error" if duplicates else "last")
    whole, alone = a.read(box, None, where, order), a.read(box, [], where, order)
    assert list(alone) == ["x", "s"] and len(alone) == len(whole) and alone.stats["cells_returned"] == len(whole)
    expected = whole.to_arrow().select(["x", "s"])
    assert alone.to_arrow().equals(expected) and alone.schema.equals(expected.schema)
    stream = a.scan(box, [], where, order)
    assert stream.schema.equals(expected.schema) and stream.to_arrow().num_rows == len(whole)
    assert alone.to_pandas().equals(expected.to_pandas()) and alone.to_polars().height == len(whole)
    places = [a.points(expected.to_pydict(), attrs) for attrs in (None, [])]
    assert places[1].to_arrow().equals(places[0].to_arrow().select(["x", "s"]))
    gs.delete(uri)


def test_coordinates_alone_have_no_attribute_to_show(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9)), gs.Dim("y", (0, 9))], [gs.Attr("v", int)], sparse=True)
    found = gs.create(stores("s"), schema).read(attrs=[])
    for show in (found.to_dense, found.to_scipy, found.to_sparse):
        with pytest.raises(gs.errors.InputError, match=r"leave out attrs=\[\]"):
            show()
    dense = gs.array(stores("d"), np.arange(4))
    for read in (dense.read, dense.scan):
        with pytest.raises(gs.errors.InputError, match="sparse array, and of those of a dense one that a condition"):
            read(attrs=[])
    with pytest.raises(gs.errors.InputError, match=r"leave out attrs=\[\]"):
        dense.read(where="value > 1", attrs=[]).to_dense()
    for a, name in ((gs.open(stores("s")), "x"), (dense, "d0")):
        with pytest.raises(gs.errors.InputError, match=f"'{name}' is a dimension.*coordinates always come along"):
            a.read(attrs=[name])
