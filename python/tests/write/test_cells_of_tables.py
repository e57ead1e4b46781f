"""`write_cells` and `append` of tables and frames of every kind, and streams that are handed on lazily."""

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from places import Stores

import gridstone as gs

pl = pytest.importorskip("polars")

ATTRS = [
    gs.Attr("i", "int16", nullable=True),
    gs.Attr("u", "uint64", nullable=True),
    gs.Attr("f", "float64", nullable=True),
    gs.Attr("b", "bool", nullable=True),
    gs.Attr("s", "string", nullable=True),
    gs.Attr("r", "bytes", nullable=True),
    gs.Attr("c", "string", nullable=True),
    gs.Attr("t", "datetime64[us]", nullable=True),
    gs.Attr("z", "datetime64[us]", nullable=True),
    gs.Attr("d", "datetime64[D]", nullable=True),
    gs.Attr("w", "timedelta64[us]", nullable=True),
]
SCHEMA = gs.Schema([gs.Dim("x", (0, 99)), gs.Dim("y", (0.0, 1.0), None, "float64")], ATTRS, sparse=True)
NOON = dt.datetime(2026, 7, 1, 12)
COLUMNS: dict[str, Any] = {
    "x": [1, 2, 3],
    "y": [0.5, 0.25, 1.0],
    "i": [-5, None, 7],
    "u": [2**64 - 1, None, 0],
    "f": [1.5, None, float("inf")],
    "b": [True, None, False],
    "s": ["häfen", None, ""],
    "r": [b"\x00\xff", None, b""],
    "c": ["p", None, "q"],
    "t": [NOON, None, dt.datetime(1969, 12, 31)],
    "z": [NOON, None, NOON],
    "d": [dt.date(2026, 7, 1), None, dt.date(1, 1, 1)],
    "w": [dt.timedelta(days=1), None, dt.timedelta(microseconds=-1)],
}


def arrow() -> pa.Table:
    table = pa.table({**COLUMNS, "u": pa.array(COLUMNS["u"], pa.uint64())})
    berlin = pa.array(COLUMNS["z"], pa.timestamp("us", "Europe/Berlin"))
    table = table.set_column(table.schema.get_field_index("z"), "z", berlin)
    return table.set_column(table.schema.get_field_index("c"), "c", pa.array(COLUMNS["c"]).dictionary_encode())


def pandas() -> pd.DataFrame:
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in COLUMNS.items()})
    frame["x"], frame["y"] = frame["x"].astype("int64"), frame["y"].astype("float64")
    frame["i"], frame["u"], frame["b"] = (
        frame["i"].astype("Int16"),
        frame["u"].astype("UInt64"),
        frame["b"].astype("boolean"),
    )
    frame["f"], frame["c"] = frame["f"].astype("float64"), frame["c"].astype("category")
    frame["z"] = (
        pd.to_datetime(COLUMNS["z"], utc=True).tz_convert("Europe/Berlin").astype("datetime64[us, Europe/Berlin]")
    )
    frame["t"], frame["w"] = frame["t"].astype("datetime64[us]"), frame["w"].astype("timedelta64[us]")
    return frame


def polars(category: Any = None) -> pl.DataFrame:
    return pl.from_arrow(arrow()).with_columns(pl.Series("c", COLUMNS["c"], dtype=category or pl.Categorical))


class Stream:
    """What only exports an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.to_reader(2).__arrow_c_stream__(requested_schema)


FORMS: dict[str, Callable[[], Any]] = {
    "table": arrow,
    "chunks": lambda: pa.concat_tables([arrow().slice(i, 1) for i in (0, 1, 2)]),
    "batch": lambda: arrow().combine_chunks().to_batches()[0],
    "reader": lambda: arrow().to_reader(1),
    "stream": lambda: Stream(arrow()),
    "pandas": pandas,
    "pandas-arrow": lambda: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars,
    "polars-enum": lambda: polars(pl.Enum(["q", "p"])),
    "dict": lambda: dict(COLUMNS),
    "dict-of-arrow": lambda: {name: arrow().column(name) for name in COLUMNS},
    "dict-of-series": lambda: dict(pandas().items()),
    "dict-of-polars": lambda: {name: polars()[name] for name in COLUMNS},
    "dict-of-numpy": lambda: {
        name: np.array(values) if None not in values else np.array(values, object) for name, values in COLUMNS.items()
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_table(store_uri: str, form: str) -> None:
    array = gs.create(store_uri, SCHEMA)
    array.write_cells(FORMS[form]())
    found = array.read().to_arrow().to_pydict()
    moments = found.pop("d")
    assert [None if m is None else m.date() for m in moments] == COLUMNS["d"]
    assert found == {name: values for name, values in COLUMNS.items() if name != "d"}
    with array.writer() as out:
        out.append(arrow().set_column(0, "x", pa.array([11, 12, 13])))
    assert array.read()["s"].tolist() == COLUMNS["s"] * 2


@pytest.mark.parametrize("form", ["table", "polars", "pandas", "dict"])
def test_coordinates_of_a_table(store_uri: str, form: str) -> None:
    array = gs.create(store_uri, SCHEMA)
    array.write_cells(arrow())
    frame = FORMS[form]()
    assert len(array.points({name: frame[name] for name in ("x", "y")})) == 3
    if form != "dict":
        assert len(array.points(frame)) == 3
        array.delete(coords=frame[:1] if form == "pandas" else frame.slice(0, 1))
        assert len(array.read()) == 2


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "decimal": ("float64", pa.array([decimal.Decimal("1.5"), None]), "'v' is float64.*decimal"),
    "list": ("float64", pa.array([[1.0], None]), "'v' is float64.*list"),
    "struct": ("string", pa.array([{"a": 1}, None]), "'v' is string.*struct"),
    "time": ("int64", pa.array([dt.time(1), None]), "'v' is int64.*time64"),
    "text": ("int8", pa.array(["1", "2"]), "'v' is int8.*string"),
    "number": ("string", pa.array([1, 2]), "'v' is string.*int64"),
    "range": ("int8", pa.array([1, 200]), "200 at row 1"),
    "sign": ("uint8", pa.array([1, -1]), "-1 at row 1"),
    "half": ("int8", pa.array([1.0, 0.5]), "0.5 at row 1"),
    "bool": ("int8", pa.array([True, False]), "'v' is int8.*bool"),
    "null": ("int8!", pa.array([1, None]), "not nullable, but row 1"),
    "zoned": ("int64", pa.array([NOON, None], pa.timestamp("us", "UTC")), "'v' is int64"),
    "unit": ("datetime64[s]", pa.array([0, 1], pa.timestamp("ns")), "row 1"),
    "categories": ("int8", pa.array(["a", "b"]).dictionary_encode(), "'v' is int8.*string"),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("form", ["arrow", "polars", "pandas"])
def test_what_does_not_fit_is_named(store_uri: str, kind: str, form: str) -> None:
    dtype, column, word = REFUSED[kind]
    attr = gs.Attr("v", dtype.rstrip("!"), nullable=not dtype.endswith("!"))
    array = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], [attr], sparse=True))
    table = pa.table({"x": [1, 2], "v": column})
    if form == "polars" and kind == "unit":
        word = "row 1"
    given = {"arrow": lambda: table, "polars": lambda: pl.from_arrow(table), "pandas": lambda: table.to_pandas()}[
        form
    ]()
    loose = form == "pandas" and kind in ("decimal", "list", "struct", "time", "null", "bool")
    with pytest.raises(gs.errors.InputError, match="'v'" if loose or form != "arrow" else word):
        array.write_cells(given)
    assert len(array.read()) == 0


def test_series_and_lazy_frames(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int8")], sparse=True, duplicates=True)
    array = gs.create(store_uri, schema)
    array.write_cells(pl.Series([1, 2]), pl.Series([3, 4]))
    array.write_cells(pd.Series([1, 2]), pd.Series([5, 6]))
    array.write_cells(pa.array([1, 2]), pa.chunked_array([[7], [8]]))
    assert sorted(array.read()["v"].tolist()) == [3, 4, 5, 6, 7, 8]
    with pytest.raises(gs.errors.InputError, match="found only LazyFrame"):
        array.write_cells(pl.DataFrame({"x": [1], "v": [1]}).lazy())


def test_columns_that_are_not_there(store_uri: str) -> None:
    array = gs.create(store_uri, SCHEMA)
    for table, word in (
        (arrow().drop_columns(["y"]), "no column for dimension 'y'"),
        (arrow().append_column("q", pa.array([1, 2, 3])), "no attribute 'q'"),
        (pa.table([[1], [2]], names=["x", "x"]), "same name"),
    ):
        with pytest.raises((gs.errors.InputError, gs.errors.SchemaError), match=word):
            array.write_cells(table)
    array.write_cells(arrow().slice(0, 0))
    assert len(array.read()) == 0


def test_a_stream_is_handed_on_batch_by_batch(store_uri: str, stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 10**6), 1000)], [gs.Attr("v", "int64")], sparse=True)
    array = gs.create(store_uri, schema)
    array.write_cells({"x": np.arange(50_000), "v": np.arange(50_000) * 2})
    stream = array.scan(order="row", batch_bytes=20_000)
    reader = pa.RecordBatchReader.from_stream(stream)
    assert reader.schema == schema.to_arrow()
    first = reader.read_next_batch()
    assert 0 < first.num_rows < 5_000 and stream.stats["cells_returned"] < 10_000
    rest = reader.read_all()
    assert first.num_rows + rest.num_rows == 50_000
    frame = pl.DataFrame(array.scan(order="row"))
    assert frame["v"].to_list() == list(range(0, 100_000, 2)) and array.scan(order="row").to_polars().equals(frame)
    assert array.scan({"x": slice(5, 5)}).to_polars().shape == (0, 2)
    assert array.scan({"x": (5, 9)}, order="row").to_pandas()["v"].tolist() == [10, 12, 14, 16, 18]
    other = gs.create(stores("o"), schema)
    other.write_cells(array.scan(batch_bytes=20_000))
    assert other.read().to_arrow().equals(array.read().to_arrow())


def test_a_stream_of_nullable_text(store_uri: str) -> None:
    array = gs.create(store_uri, SCHEMA)
    array.write_cells(arrow())
    with array.writer() as out:
        out.append(arrow().set_column(0, "x", pa.array([11, 12, 13])))
    small, whole = array.scan(order="row", batch_bytes=1).to_numpy(), array.read().to_numpy()
    for name, values in whole.items():
        np.testing.assert_array_equal(np.ma.getmaskarray(small[name]), np.ma.getmaskarray(values))
        assert small[name].tolist() == values.tolist() and small[name].dtype == values.dtype
    assert array.scan({"x": slice(5, 5)}).to_numpy()["s"].shape == (0,)
