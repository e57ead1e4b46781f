"""Data frames with columns that have no place in an array: named, and in the way only if they are wanted."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from places import Stores

import gridstone as gs
from gridstone import io

OBJECTS = pl.Series([{"a": 1}, "zz"], dtype=pl.Object)
LONG = pl.Series([1, 2], dtype=pl.Int128)
LOADS: list[Callable[..., Any]] = [
    io.from_polars,
    io.from_arrow,
    lambda uri, frame, *dims, **options: io.from_polars(uri, frame.lazy(), *dims, **options),
]


@pytest.mark.parametrize("column", [OBJECTS, LONG], ids=["objects", "int128"])
@pytest.mark.parametrize("load", LOADS)
def test_columns_of_polars_without_a_type_are_named(stores: Stores, column: pl.Series, load: Any) -> None:
    frame = pl.DataFrame({"x": [1, 2], "c": column, "v": [3, 4]})
    for dims, attrs in ((["x"], None), (["x"], ["v", "c"]), (["c"], ["v"])):
        with pytest.raises(gs.errors.UnsupportedError, match=r"column 'c' (has Python objects|is Int128).* leave it"):
            load(stores("a"), frame, dims, attrs=attrs)
        assert not gs.exists(stores("a"))
    a = load(stores("a"), frame, ["x"], attrs=["v"])
    load(stores("a"), frame, attrs=["v"])  # the columns that are left out do not count
    a.refresh()
    assert a.read()["v"].tolist() == [3, 3, 4, 4]


@pytest.mark.parametrize(("column", "dtype"), [(OBJECTS, "bytes[8]"), (OBJECTS, "int64"), (LONG, "int64")])
def test_such_columns_are_not_written(stores: Stores, column: pl.Series, dtype: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("c", dtype)], sparse=True)
    a = gs.create(stores("a"), schema)
    for cells in ([pl.DataFrame({"x": [1, 2], "c": column})], [{"x": [1, 2]}, {"c": column}]):
        with pytest.raises(gs.errors.UnsupportedError, match=r"'c' (has Python objects|is Int128)"):
            a.write_cells(*cells)
    with pytest.raises(gs.errors.UnsupportedError, match=r"'c' (has Python objects|is Int128)"):
        io.from_polars(stores("a"), pl.DataFrame({"x": [1, 2], "c": column}))
    assert len(a.read()) == 0
    dense = gs.create(stores("d"), gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("c", dtype)]))
    with pytest.raises(gs.errors.UnsupportedError, match=r"'c' (has Python objects|is Int128)"):
        dense.write(column)


def test_a_lazy_frame_that_fails_says_so(store_uri: str) -> None:
    with pytest.raises(gs.errors.InputError, match='cannot be computed: unable to find column "y"'):
        io.from_polars(store_uri, pl.LazyFrame({"x": [1]}).select("y"), ["x"])
    with pytest.raises(gs.errors.InputError, match="cannot be computed: "):
        io.from_polars(store_uri, pl.LazyFrame({"x": ["a"], "v": [1]}).select(pl.col("x").cast(int), "v"), ["x"])
    assert not gs.exists(store_uri)


def test_sparse_columns_of_pandas_are_loaded(stores: Stores) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "v": pd.arrays.SparseArray([0, 7, 0]), "w": [1.0, 2.0, 3.0]})
    frame["w"] = frame["w"].where(frame["x"] > 1).astype(pd.SparseDtype("float64"))
    a = io.from_pandas(stores("a"), frame, ["x"])
    b = gs.create(stores("b"), a.schema)
    b.write_cells(frame)
    for array in (a, b):
        found = array.read()
        assert found["v"].tolist() == [0, 7, 0] and found["w"].tolist() == [None, 2, 3]


@pytest.mark.parametrize(
    "bad", [[1, "a"], [2**70, 1], [object(), 1], [{1: 2}, 3]], ids=["mixed", "large", "object", "dict"]
)
def test_columns_of_pandas_without_a_type_are_named(stores: Stores, bad: list[Any]) -> None:
    frame = pd.DataFrame({"x": [1, 2], "bad": bad, "v": [3, 4]}, index=pd.Index([5, 6], name="y"))
    for dims, attrs in ((["x", "y"], None), (["x"], ["bad"]), (["bad"], ["v"])):
        with pytest.raises(gs.errors.InputError, match="column 'bad' of the data frame makes no column"):
            io.from_pandas(stores("a"), frame, dims, attrs=attrs)
        assert not gs.exists(stores("a"))
    assert io.from_pandas(stores("a"), frame, ["x", "y"], attrs=["v"]).read()["v"].tolist() == [3, 4]


def test_names_of_pandas_that_are_the_same_as_text(store_uri: str) -> None:
    with pytest.raises(gs.errors.InputError, match="duplicate names of columns"):
        io.from_pandas(store_uri, pd.DataFrame([[1, 2, 3]], columns=[1, "1", "x"]), ["x"])
    with pytest.raises(gs.errors.InputError, match="duplicate names of columns"):
        io.from_pandas(store_uri, pd.DataFrame({"x": [1]}, index=pd.Index([5], name="x")), ["x"])


def test_streams_that_break_off_or_have_unknown_types(store_uri: str) -> None:
    class Foreign:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return pl.DataFrame({"x": [1], "i": LONG.head(1)}).__arrow_c_stream__(requested_schema)

    with pytest.raises(gs.errors.InputError, match="this Foreign cannot be taken over"):
        io.from_arrow(store_uri, Foreign(), ["x"])
    for bad in ([1, "a"], [2**70, 1], pd.arrays.SparseArray([0, 1])):
        with pytest.raises(gs.errors.InputError, match="this DataFrame cannot be taken over"):
            io.from_arrow(store_uri, pd.DataFrame({"x": [1, 2], "bad": bad}), ["x"])
    schema = pa.schema([("x", pa.int64()), ("v", pa.int64())])

    def batches() -> Any:
        yield pa.record_batch([[1], [2]], schema=schema)
        raise pa.ArrowKeyError("gone")

    with pytest.raises(gs.errors.InputError, match=r"the stream broke off: .*gone"):
        io.from_arrow(store_uri, pa.RecordBatchReader.from_batches(schema, batches()), ["x"])
    assert not gs.exists(store_uri)
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True))

    class Broken:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__(requested_schema)

    with pytest.raises(gs.errors.InputError, match="this Broken cannot be taken over"):
        a.write_cells(Broken())
    with pytest.raises(gs.errors.InputError, match="this Foreign cannot be taken over"):
        a.write_cells(Foreign())
    assert len(a.read()) == 0
