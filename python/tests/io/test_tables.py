"""Tables in and out: Arrow, Parquet, Feather, pandas, polars; equal to what went in, and clear about what cannot."""

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import io

pl = pytest.importorskip("polars")

BERLIN = "Europe/Berlin"
COLUMNS = {
    "i8": pa.array([-128, 127, None], pa.int8()),
    "u16": pa.array([0, 65535, 1], pa.uint16()),
    "u64": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "f4": pa.array([0.5, float("nan"), None], pa.float32()),
    "f8": pa.array([0.1, float("inf"), -0.0], pa.float64()),
    "b": pa.array([True, None, False]),
    "s": pa.array(["", "häfen", None], pa.string()),
    "ls": pa.array(["a", "b", "c" * 300], pa.large_string()),
    "vs": pa.array(["x" * 40, None, "z"], pa.string_view()),
    "vb": pa.array([b"x" * 40, None, b"\xff"], pa.binary_view()),
    "r": pa.array([b"", b"\x00\xff", None], pa.binary()),
    "fb": pa.array([b"ab", b"cd", b"\x00\x00"], pa.binary(2)),
    "d": pa.array([dt.date(2026, 1, 1), None, dt.date(1960, 2, 29)], pa.date32()),
    "t_s": pa.array([0, -1, None], pa.timestamp("s")),
    "t_ns": pa.array([1, 2, None], pa.timestamp("ns")),
    "t_tz": pa.array([0, None, 10**15], pa.timestamp("us", BERLIN)),
    "du": pa.array([1, None, -5], pa.duration("ms")),
    "cat": pa.array(["p", "q", None], pa.string()).dictionary_encode(),
    "ci": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), pa.array([10, 20], pa.int32())),
    "none": pa.nulls(3),
}
TABLE = pa.table({"x": pa.array([5, 5, -3], pa.int32()), "y": [0.5, -1.5, 2.0], **COLUMNS})


def plain(table: pa.Table, dims: list[str]) -> list[tuple[Any, ...]]:
    """The rows as a sorted list, in terms that do not know how Arrow keeps them; NaN equals NaN."""
    made = []
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type):
            unit = "D" if pa.types.is_date32(column.type) else column.type.unit
            factor = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
            ticks = column.cast(pa.int32()) if unit == "D" else column.cast(pa.int64())
            made.append([None if tick is None else tick * factor for tick in ticks.to_pylist()])
        elif pa.types.is_duration(column.type):
            made.append(column.cast(pa.int64()).to_pylist())
        elif name in dims and pa.types.is_floating(column.type):
            made.append([value + 0.0 for value in column.to_pylist()])  # coordinates know no -0.0
        else:
            made.append(column.to_pylist())
    return sorted(tuple(map(repr, row)) for row in zip(*made, strict=True))


def same(array: gs.Array, table: pa.Table) -> None:
    """The array's cells are the table's rows."""
    found = array.read().to_arrow()
    assert plain(found.select(table.column_names), list(array.dims)) == plain(table, list(array.dims))


def as_parquet(folder: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, folder / "t.parquet", **options)
    return folder / "t.parquet"


def as_feather(folder: Path, table: pa.Table, **options: Any) -> Path:
    feather.write_feather(table, folder / "t.arrow", **options)
    return folder / "t.arrow"


class Capsule:
    """Anything that exports an Arrow stream, once."""

    def __init__(self, table: pa.Table) -> None:
        self.reader: Any = table.to_reader(2)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader, self.reader = self.reader, None
        return reader.__arrow_c_stream__(requested_schema)


IN_MEMORY: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda t: t,
    "batch": lambda t: t.combine_chunks().to_batches()[0],
    "reader": lambda t: t.to_reader(1),
    "dataset": pa_dataset.dataset,
    "scanner": lambda t: pa_dataset.dataset(t).scanner(),
    "capsule": Capsule,
}


@pytest.mark.parametrize("form", IN_MEMORY)
def test_from_arrow(store_uri: str, form: str) -> None:
    array = io.from_arrow(store_uri, IN_MEMORY[form](TABLE), dims=["x", "y"])
    assert array.domain == ((-3, 5), (-1.5, 2.0)) and array.schema.duplicates and len(array.history()) == 2
    kinds = {a.name: (a.dtype, a.nullable) for a in array.schema.attrs}
    assert kinds["u16"] == ("uint16", False) and kinds["i8"] == ("int8", True) and kinds["none"] == ("string", True)
    assert kinds["t_tz"] == ("datetime64[us]", True) and kinds["d"][0] == "datetime64[D]" and kinds["ci"][0] == "int32"
    same(array, TABLE)
    # The same again is appended to what is there, whatever it is.
    io.from_arrow(store_uri, IN_MEMORY[form](TABLE))
    array.refresh()
    same(array, pa.concat_tables([TABLE, TABLE]))


PARQUET = TABLE.drop_columns(["vs", "vb"])


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_from_parquet(tmp_path: Path, store_uri: str, rows: int, statistics: bool) -> None:
    file = as_parquet(tmp_path, PARQUET, row_group_size=rows)
    array = io.from_parquet(store_uri, file, dims=["x", "y"], statistics=statistics)
    assert array.domain == ((-3, 5), (-1.5, 2.0))
    same(array, PARQUET)


@pytest.mark.parametrize("name", ["i8", "u16", "u64", "f4", "f8", "d", "t_s", "t_ns", "t_tz", "du"])
@pytest.mark.parametrize(
    "options", [{}, {"write_statistics": False}, {"version": "1.0"}, {"use_deprecated_int96_timestamps": True}]
)
def test_every_type_is_a_dimension(
    tmp_path: Path, stores: Stores, store_uri: str, name: str, options: dict[str, Any]
) -> None:
    data = TABLE.select([name, "ls"]).filter(pa.compute.is_valid(TABLE[name]))
    data = data.filter(pa.compute.is_finite(data[name])) if pa.types.is_floating(data[name].type) else data
    if options.get("version") == "1.0" and name in ("t_ns", "u16"):
        return  # that version has no such types
    array = io.from_parquet(store_uri, as_parquet(tmp_path, data, row_group_size=1, **options), dims=[name])
    again = io.from_feather(stores("f"), as_feather(tmp_path, data), dims=[name])
    if not options and name != "t_s":  # of which Parquet makes milliseconds
        assert array.schema == again.schema
    for made in (array, again):
        same(made, data)
        values = np.sort(made.read()[name])
        assert tuple(made.domain[0]) == (values[0], values[-1])


@pytest.mark.parametrize("options", [{"compression": "zstd"}, {"compression": "uncompressed", "chunksize": 1}])
def test_from_feather(tmp_path: Path, store_uri: str, options: dict[str, Any]) -> None:
    array = io.from_feather(store_uri, as_feather(tmp_path, TABLE, **options), dims=["x", "y"])
    same(array, TABLE)


def test_a_stream_file_and_compressed_files(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    with pa.ipc.new_stream(tmp_path / "s.arrows", TABLE.schema) as out:
        out.write_table(TABLE, 1)
    same(io.from_feather(store_uri, tmp_path / "s.arrows", dims=["x", "y"]), TABLE)
    import gzip

    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(as_parquet(tmp_path, PARQUET).read_bytes()))
    same(io.from_parquet(stores("p"), packed, dims=["x", "y"]), PARQUET)
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(gs.errors.InputError, match="decompressed"):
        io.from_parquet(stores("q"), packed, dims=["x", "y"])


def test_from_polars(store_uri: str, stores: Stores) -> None:
    frame = pl.DataFrame(
        {
            "x": [1, 2, 3],
            "c": pl.Series(["a", None, "b"], dtype=pl.Categorical),
            "e": pl.Series(["lo", "hi", None], dtype=pl.Enum(["lo", "hi"])),
            "s": ["", None, "zoë" * 20],
            "b": [b"\xff", None, b""],
            "u": pl.Series([1, 2**32 - 1, None], dtype=pl.UInt32),
            "t": pl.Series([dt.datetime(2026, 1, 1), None, dt.datetime(1999, 1, 1)], dtype=pl.Datetime("ms", BERLIN)),
            "d": [dt.timedelta(seconds=1), None, dt.timedelta(-1)],
            "day": [dt.date(2026, 1, 1), None, dt.date(1, 1, 1)],
            "f": [1.5, float("nan"), None],
        }
    )
    expected = frame.with_columns(
        pl.col("c", "e").cast(pl.String), pl.col("t").dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    )
    for place, source in enumerate((frame, frame.lazy())):
        array = io.from_polars(stores(str(place)), source, dims=["x"])
        found = array.read().to_polars().sort("x").select(frame.columns)
        assert found.equals(expected.with_columns(pl.col("day").cast(found.schema["day"])), null_equal=True)
        assert array.read()["f"].mask.tolist() == [False, False, True] and np.isnan(array.read()["f"][1])
    array.write_cells(frame)
    assert len(array.read()) == 6
    with pytest.raises(gs.errors.InputError, match="lazy frame"):
        io.from_polars(store_uri, {"x": [1]}, dims=["x"])


def test_from_pandas(store_uri: str, stores: Stores) -> None:
    frame = pd.DataFrame(
        {
            "v": [1.5, np.nan, 2.5],
            "n": pd.array([1, None, 3], "Int16"),
            "b": pd.array([True, None, False], "boolean"),
            "s": ["a", None, "c"],
            "c": pd.Categorical(["u", "v", None]),
            "t": pd.to_datetime(["2026-01-01", None, "2026-06-01"]).tz_localize(BERLIN),
            "o": np.array([1, None, 2], object),
        },
        index=pd.MultiIndex.from_tuples([(1, 0.5), (2, 1.5), (3, 0.0)], names=["x", "y"]),
    )
    array = io.from_pandas(store_uri, frame, dims=["x", "y"])
    found = array.read().to_pandas().set_index(["x", "y"]).sort_index()
    assert found["v"].isna().tolist() == [False, True, False] and array.schema.attr("v").nullable
    assert found["n"].tolist()[::2] == [1, 3] and found["c"].tolist()[:2] == ["u", "v"]
    assert found["t"].tolist()[0] == pd.Timestamp("2025-12-31T23:00") and pd.isna(found["t"].tolist()[1])
    assert found["b"].tolist() == [True, pd.NA, False] and found["s"].tolist()[::2] == ["a", "c"]
    array.write_cells(frame.reset_index())
    assert len(array.read()) == 6
    # Where the schema has no nulls, NaN stays NaN.
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "float64")], sparse=True)
    kept = io.from_pandas(stores("n"), frame.reset_index()[["x", "v"]], schema=schema)
    assert np.isnan(kept.read()["v"][1])
    kept.write_cells(frame.reset_index().assign(x=[4, 5, 6])[["x", "v"]])
    assert np.isnan(kept.read()["v"][4])
    for bad, word in ((frame.assign(o=[1, "a", 2.5]), "'?o'?"), (pd.concat([frame, frame], axis=1), "[Dd]uplicate")):
        with pytest.raises(gs.errors.InputError, match=word):
            io.from_pandas(stores("b"), bad, dims=["x", "y"])
    assert not gs.exists(stores("b"))


def test_bytes_of_a_fixed_length_come_back_from_lazy_polars(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("b", "bytes[3]", nullable=True)], sparse=True)
    frame = pl.DataFrame({"x": [1, 2, 3], "b": [b"\0a", b"abc", None]})
    for place, source in enumerate((frame, frame.lazy())):
        found = io.from_polars(stores(str(place)), source, schema=schema).read()
        assert found["b"].tolist() == [b"\0a", b"abc", None]


def test_complex_numbers_and_arrays_come_back_from_pandas(stores: Stores) -> None:
    attrs = [
        gs.Attr("z", "complex64"),
        gs.Attr("n", "complex128", nullable=True),
        gs.Attr("m", "float32", shape=(2, 2)),
        gs.Attr("f", "list[float64]"),
        gs.Attr("w", "complex64", shape=(2,)),
    ]
    a = gs.create(stores("a"), gs.Schema([gs.Dim("x", (0, 9))], attrs, sparse=True))
    lists = np.empty(3, object)
    lists[:] = [np.array([1.5, np.nan]), np.array([]), np.array([np.inf])]
    values = {
        "z": np.array([1 + 2j, complex(np.nan, 3), -0j], "c8"),
        "n": np.ma.MaskedArray([1j, 2j, 3j], [0, 1, 0]),
        "m": np.arange(12, dtype="f4").reshape(3, 2, 2),
        "f": lists,
        "w": np.arange(6).reshape(3, 2).astype("c8"),
    }
    a.write_cells({"x": [1, 2, 3]}, values)
    frame = a.read().to_pandas()
    back = io.from_pandas(stores("b"), frame, schema=a.schema)
    assert repr(back.read().to_arrow().to_pylist()) == repr(a.read().to_arrow().to_pylist())  # NaN equals NaN so
    told = io.from_pandas(stores("c"), frame[["x", "z", "n", "m"]], dims=["x"])
    assert [(attr.dtype, attr.nullable) for attr in told.schema.attrs] == [
        ("complex64", True),
        ("complex128", True),
        ("float32[2,2]", False),
    ]


def test_an_index_without_a_name_is_no_column(store_uri: str) -> None:
    frame = pd.DataFrame({"x": [1, 2], "v": [3, 4]}, index=["p", "q"])
    assert [a.name for a in io.from_pandas(store_uri, frame, dims=["x"]).schema.attrs] == ["v"]


UNSUPPORTED = {
    "decimal": pa.array([decimal.Decimal("1.5")]),
    "list of text": pa.array([["a"]]),
    "struct": pa.array([{"a": 1}]),
    "time": pa.array([dt.time(1)]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
}


@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_types_that_have_no_place_are_named(tmp_path: Path, stores: Stores, store_uri: str, kind: str) -> None:
    table = pa.table({"x": [1], "odd": UNSUPPORTED[kind], "v": [2]})
    with pytest.raises(gs.errors.UnsupportedError, match="column 'odd'"):
        io.from_arrow(store_uri, table, dims=["x"])
    with pytest.raises(gs.errors.UnsupportedError, match="column 'odd'"):
        io.from_parquet(store_uri, as_parquet(tmp_path, table), dims=["x"])
    assert not gs.exists(store_uri)
    same(io.from_parquet(store_uri, as_parquet(tmp_path, table), dims=["x"], attrs=["v"]), table.select(["x", "v"]))
    array = gs.create(stores("w"), gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("odd", "float64")], sparse=True))
    with pytest.raises(gs.errors.InputError, match="'odd'"):
        array.write_cells(table.select(["x", "odd"]))


def test_dimensions_that_cannot_be(store_uri: str) -> None:
    for column, word in (([True, False], "bool"), ([0.5, None], "row 1, column 'x': a coordinate is null"),
                         ([0.5, float("nan")], "row 1, column 'x': a coordinate is null or not a number")):  # fmt: skip
        with pytest.raises((gs.errors.InputError, gs.errors.UnsupportedError), match=word):
            io.from_arrow(store_uri, pa.table({"x": column, "v": [1, 2]}), dims=["x"])
    for dims, word in ((None, "dims="), ("x", "dims="), (["x", "x"], "once"), (["z"], "no column 'z'")):
        with pytest.raises(gs.errors.InputError, match=word):
            io.from_arrow(store_uri, pa.table({"x": [1], "v": [1]}), dims=dims)
    with pytest.raises(gs.errors.InputError, match="no rows"):
        io.from_arrow(store_uri, pa.table({"x": pa.array([], pa.int8()), "v": pa.array([], pa.int8())}), dims=["x"])
    with pytest.raises(gs.errors.InputError, match="same name"):
        io.from_arrow(store_uri, pa.table([[1], [2]], names=["x", "x"]), dims=["x"])
    with pytest.raises(gs.errors.InputError, match="from_parquet"):
        io.from_arrow(store_uri, "a.parquet", dims=["x"])
    with pytest.raises(TypeError, match="capcity"):
        io.from_arrow(store_uri, pa.table({"x": [1], "v": [1]}), dims=["x"], capcity=3)
    assert not gs.exists(store_uri)


SCHEMA = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "int16"), gs.Attr("s", "string")], sparse=True)


@pytest.mark.parametrize(
    ("x", "v", "s", "word"),
    [
        ([1, 2], [1, 70000], ["a", "b"], "row 1, column 'v': 70000"),
        ([1, 2], [1, None], ["a", "b"], "row 1, column 'v': the value is null"),
        ([1, 2], ["a", "b"], ["a", "b"], "row 0, column 'v': a .string. is no int16"),
        ([1, 2], [1.0, 1.5], ["a", "b"], "row 1, column 'v': 1.5"),
        ([1, 2], [1, 2], [1, 2], "row 0, column 's'"),
        ([1, 100], [1, 2], ["a", "b"], "row 1, column 'x': 100 is outside the domain"),
        ([1, None], [1, 2], ["a", "b"], "row 1, column 'x'"),
        ([1, 1], [1, 2], ["a", "b"], "1"),
    ],
)
def test_rows_that_do_not_fit_are_named(tmp_path: Path, store_uri: str, x: Any, v: Any, s: Any, word: str) -> None:
    table = pa.table({"x": x, "v": v, "s": s})
    file = as_parquet(tmp_path, table)
    with pytest.raises(gs.errors.InputError, match=word):
        io.from_parquet(store_uri, file, schema=SCHEMA)
    assert not gs.exists(store_uri)
    good = io.from_arrow(store_uri, pa.table({"x": [7], "v": [8], "s": ["c"]}), schema=SCHEMA)
    for options in ({}, {"schema": SCHEMA, "overwrite": True}):
        if (options and x == [1, 1]) or (not options and v == [1, None]):
            continue  # duplicates are seen when they are written; a load may bring the first nulls
        with pytest.raises(gs.errors.InputError, match=word):
            io.from_parquet(store_uri, file, grow=False, **options)
        assert gs.open(store_uri).version == good.version and gs.open(store_uri).read()["v"].tolist() == [8]


def test_a_second_row_group_and_file_are_named(tmp_path: Path, store_uri: str) -> None:
    fine = pa.table({"x": [1, 2], "v": [1, 2], "s": ["a", "b"]})
    pq.write_table(fine, tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"x": [3, 4, 5], "v": [1, 2, 70000], "s": ["a"] * 3}), tmp_path / "b.parquet", row_group_size=1
    )
    with pytest.raises(gs.errors.InputError, match=r"b\.parquet, row 2, column 'v'"):
        io.from_parquet(store_uri, tmp_path / "*.parquet", schema=SCHEMA)
    pq.write_table(pa.table({"x": [3], "v": [1]}), tmp_path / "b.parquet")
    with pytest.raises(gs.errors.InputError, match=r"b\.parquet has no column 's'"):
        io.from_parquet(store_uri, tmp_path / "*.parquet", dims=["x"], union=False)
    pq.write_table(pa.table({"s": ["c"], "v": [False], "x": [3]}), tmp_path / "b.parquet")
    with pytest.raises(gs.errors.InputError, match=r"column 'v' is bool in .*b\.parquet and int64 in .*a\.parquet"):
        io.from_parquet(store_uri, tmp_path / "*.parquet", dims=["x"])
    pq.write_table(
        pa.table({"s": ["c"], "v": pa.array([2**40]), "x": pa.array([3], pa.int8())}), tmp_path / "b.parquet"
    )
    array = io.from_parquet(store_uri, tmp_path / "*.parquet", dims=["x"])
    assert sorted(array.read()["v"].tolist()) == [1, 2, 2**40] and array.domain == ((1, 3),)


@pytest.mark.parametrize("load", [io.from_parquet, io.from_feather])
def test_damaged_files(tmp_path: Path, store_uri: str, load: Callable[..., gs.Array]) -> None:
    rng = np.random.default_rng(7)
    table = pa.table({"x": np.arange(4000), "s": [f"{v:.3f}" for v in rng.random(4000)]})
    name = (as_parquet if load is io.from_parquet else as_feather)(tmp_path, table)
    data = name.read_bytes()
    name.write_bytes(b"")
    for part in (b"", b"PAR1", b"ARROW1\0\0", data[:-1], data[: len(data) // 2], data[len(data) // 2 :], b"x,y\n1,2\n"):
        name.write_bytes(part)
        with pytest.raises(gs.errors.InputError, match=name.name):
            load(store_uri, name, dims=["x"])
        assert not gs.exists(store_uri)
    for _ in range(60):
        at = int(rng.integers(0, len(data)))
        name.write_bytes(data[:at] + bytes([data[at] ^ (1 << int(rng.integers(0, 8)))]) + data[at + 1 :])
        try:
            load(store_uri, name, dims=["x"])
        except gs.errors.GridstoneError:
            assert not gs.exists(store_uri)
        else:
            gs.delete(store_uri)  # what the formats do not check themselves
    with pytest.raises(gs.errors.NotFoundError):
        load(store_uri, tmp_path / "missing", dims=["x"])


def test_feather_version_1(tmp_path: Path, store_uri: str) -> None:
    (tmp_path / "a.feather").write_bytes(b"FEA1" + b"\0" * 100)
    with pytest.raises(gs.errors.InputError, match="version 1"):
        io.from_feather(store_uri, tmp_path / "a.feather", dims=["x"])


def test_a_stream_larger_than_the_budget(store_uri: str) -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {"x": rng.integers(-(2**60), 2**60, 120_000), "v": np.arange(120_000), "s": [f"n{i}" for i in range(120_000)]}
    )
    told: list[tuple[int, int]] = []
    context = gs.Context("2MB", cache=0)
    array = io.from_arrow(store_uri, table.to_reader(5_000), dims=["x"], context=context,
                          progress=lambda done, total: told.append((done, total)))  # fmt: skip
    assert array.fragments.num_rows == 1 and len(array.history()) == 2
    same(gs.open(store_uri), table)
    assert [done for done, _ in told] == sorted(done for done, _ in told) and told[-1] == (240_000, 240_000)


def test_progress_of_files(tmp_path: Path, stores: Stores) -> None:
    table = pa.table({"x": np.arange(300_000), "v": np.arange(300_000.0)})
    for load, file in (
        (io.from_parquet, as_parquet(tmp_path, table)),
        (io.from_feather, as_feather(tmp_path, table, chunksize=9_000)),
    ):
        for option in (
            {"dims": ["x"]},
            {"schema": gs.Schema([gs.Dim("x", (0, 10**6))], [gs.Attr("v", "float64")], sparse=True)},
        ):
            told: list[tuple[int, int]] = []
            load(
                stores(f"{len(told)}{file.name}{list(option)}"),
                file,
                progress=lambda d, t, told=told: told.append((d, t)),
                **option,
            )
            assert told == sorted(told) and told[-1][0] == told[-1][1] > 0, told


def test_dense(store_uri: str) -> None:
    table = pa.table(
        {"i": np.repeat(np.arange(5), 10)[::-1], "j": np.tile(np.arange(10), 5)[::-1], "v": np.arange(50)[::-1]}
    )
    array = io.from_arrow(store_uri, table, dims=["i", "j"], sparse=False)
    np.testing.assert_array_equal(array[...], np.arange(50).reshape(5, 10))


@pytest.fixture
def ships(store_uri: str) -> gs.Array:
    dims = [gs.Dim("lon", (-180, 180), 1, "float64"), gs.Dim("day", ("2026-01-01", "2026-12-31"), 7, "datetime64[D]")]
    attrs = [gs.Attr("v", "int16", nullable=True), gs.Attr("s", "string"), gs.Attr("w", "timedelta64[h]")]
    attrs += [gs.Attr("t", "datetime64[ns]", nullable=True), gs.Attr("u", "uint64"), gs.Attr("as", "datetime64[as]")]
    array = gs.create(store_uri, gs.Schema(dims, attrs, sparse=True, duplicates=True, capacity=7, cell_order="col"))
    rng = np.random.default_rng(5)
    for _ in range(3):
        array.write_cells(
            {"lon": rng.uniform(-180, 180, 40), "day": np.datetime64("2026-01-01") + rng.integers(0, 365, 40)},
            {"v": np.ma.MaskedArray(rng.integers(0, 99, 40), rng.random(40) < 0.3), "s": [f"s{i}" for i in range(40)],
             "w": rng.integers(0, 99, 40).astype("m8[h]"), "t": rng.integers(0, 2**60, 40).astype("M8[ns]"),
             "u": rng.integers(0, 2**63, 40).astype("u8") * 2, "as": rng.integers(0, 2**60, 40).astype("M8[as]")},
        )  # fmt: skip
    return array


OUT: dict[str, tuple[Any, Any]] = {
    "t.parquet": (io.to_parquet, io.from_parquet),
    "t.arrow": (io.to_feather, io.from_feather),
}


@pytest.mark.parametrize("name", OUT)
def test_files_there_and_back_without_being_told_anything(tmp_path: Path, ships: gs.Array, name: str) -> None:
    write, load = OUT[name]
    for place, compression in enumerate(("zstd", "lz4", "none")):
        assert write(ships, tmp_path / name, compression=compression) == 120
        back = load(f"{ships.uri}-{place}", tmp_path / name)
        assert back.schema == ships.schema
        assert back.read().to_arrow().equals(ships.read().to_arrow(), check_metadata=True)
    with pytest.raises(gs.errors.InputError, match="compression"):
        write(ships, tmp_path / name, compression="none at all")
    assert write(ships.uri, tmp_path / name, {"lon": (0.0, 90.0)}, ["s"]) == len(ships.read({"lon": (0.0, 90.0)}))
    assert [a.name for a in load(f"{ships.uri}-b", tmp_path / name, attrs=["s"]).schema.attrs] == ["s"]
    # Other dimensions than it had.
    other = load(f"{ships.uri}-c", tmp_path / name, dims=["lon"], attrs=["day"])
    assert other.dims == ("lon",) and other.schema.attr("day").dtype == "datetime64[D]"
    assert not (tmp_path / (name + ".part")).exists()


def test_a_subset_of_attributes_comes_back(tmp_path: Path, ships: gs.Array) -> None:
    io.to_parquet(ships, tmp_path / "t.parquet", attrs=["s", "v"])
    back = io.from_parquet(ships.uri + "-back", tmp_path / "t.parquet")
    assert [a.name for a in back.schema.attrs] == ["v", "s"] and len(back.read()) == 120


def test_odd_requests_are_told_apart(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    table = pa.table({"x": [1, 2], "b": [b"ok", b"\xff\x00"]})
    array = io.from_arrow(store_uri, table, dims=["x"])
    requests: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: io.from_arrow(stores("n"), table, dims=["x"], attrs=[]), gs.errors.SchemaError, "attributes"),
        (lambda: io.from_arrow(stores("n"), table, schema="x"), gs.errors.InputError, "Schema, found str"),
        (lambda: io.from_parquet(stores("n"), tmp_path, dims=["x"]), gs.errors.InputError, "is a folder"),
        (lambda: io.to_csv(array, tmp_path / "b.csv"), gs.errors.InputError, "bytes"),
        (lambda: io.to_parquet(array, tmp_path), gs.errors.InputError, "is a folder"),
        (lambda: io.to_feather(array, tmp_path / "no" / "b.arrow"), gs.errors.NotFoundError, "no folder"),
    ]
    for request, kind, word in requests:
        with pytest.raises(kind, match=word):
            request()
    assert not gs.exists(stores("n")) and list(tmp_path.iterdir()) == []
    assert io.to_csv(array, tmp_path / "b.csv", {"x": (1, 1)}) == 1


@pytest.mark.parametrize("told", [b"{", b"\xff", b'{"dims": 3}'])
def test_a_told_schema_that_is_none(store_uri: str, told: bytes) -> None:
    table = pa.table({"x": [1], "v": [2]}).replace_schema_metadata({b"gridstone.schema": told})
    with pytest.raises(gs.errors.InputError, match=r"gridstone\.schema.*dims="):
        io.from_arrow(store_uri, table)
    same(io.from_arrow(store_uri, table, dims=["x"]), table)


def test_to_arrow_is_lazy(ships: gs.Array) -> None:
    reader = io.to_arrow(ships, batch_bytes=500)
    first = next(iter(reader))
    assert 0 < first.num_rows < 120
    back = io.from_arrow(ships.uri + "-back", io.to_arrow(ships.uri))
    assert back.schema == ships.schema and back.read().to_arrow().equals(ships.read().to_arrow())


def test_results_and_streams_are_sources(ships: gs.Array) -> None:
    expected = sorted(map(repr, ships.read().to_arrow().to_pylist()))
    for place, source in enumerate((ships.read(), ships.scan(batch_bytes=700), ships.read().to_arrow())):
        back = io.from_arrow(f"{ships.uri}-{place}", source, dims=["lon", "day"])
        assert sorted(map(repr, back.read().to_arrow().to_pylist())) == expected


@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=20),
    kind=st.sampled_from(["float32", "float64", "uint8", "int16", "uint32", "uint64", "date32", "time"]),
    chunk=st.integers(1, 7),
    dictionary=st.booleans(),
)
def test_domains_from_statistics_are_those_of_the_values(
    tmp_path: Path, stores: Stores, values: list[float], kind: str, chunk: int, dictionary: bool
) -> None:
    if kind.startswith("float"):
        column = pa.array(np.array(values, kind))
    else:
        wide = {"uint8": 2**8, "int16": 2**15, "uint32": 2**32, "uint64": 2**64, "date32": 2**20, "time": 2**60}[kind]
        integers = [int(abs(value) * 977) % wide for value in values]
        column = pa.array(integers, pa.int64() if wide == 2**60 else pa.int32() if kind == "date32" else kind)
        column = column.cast(pa.date32() if kind == "date32" else pa.timestamp("us") if kind == "time" else kind)
    table = pa.table({"x": column, "v": range(len(values))})
    file = as_parquet(tmp_path, table, row_group_size=chunk, use_dictionary=dictionary)
    uri = stores(f"{np.random.default_rng().integers(2**60)}")
    told = io.from_parquet(uri + "a", file, dims=["x"]).schema
    looked = io.from_parquet(uri + "b", file, dims=["x"], statistics=False)
    try:
        assert told == looked.schema
        same(looked, table)
    finally:
        gs.delete(uri + "a")
        gs.delete(uri + "b")


cells = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.one_of(st.none(), st.integers(-128, 127)),
        st.one_of(st.none(), st.text(max_size=5)),
        st.one_of(st.none(), st.floats()),
        st.one_of(st.none(), st.integers(-(2**62), 2**62)),
    ),
    min_size=1,
    max_size=30,
)


@given(rows=cells, chunk=st.integers(1, 9), form=st.sampled_from(["parquet", "feather", "reader", "table", "polars"]))
def test_any_table_comes_back(tmp_path: Path, stores: Stores, rows: list[Any], chunk: int, form: str) -> None:
    x, i, s, f, t = zip(*rows, strict=True)
    table = pa.table(
        {"x": pa.array(x, pa.int64()), "i": pa.array(i, pa.int8()), "s": pa.array(s, pa.string()),
         "f": pa.array(f, pa.float64()), "t": pa.array(t, pa.timestamp("us"))}
    )  # fmt: skip
    uri = stores(f"{np.random.default_rng().integers(2**60)}")
    if form == "parquet":
        array = io.from_parquet(uri, as_parquet(tmp_path, table, row_group_size=chunk), dims=["x"])
    elif form == "feather":
        array = io.from_feather(uri, as_feather(tmp_path, table, chunksize=chunk), dims=["x"])
    elif form == "polars":
        array = io.from_polars(uri, pl.from_arrow(table), dims=["x"])
    else:
        array = io.from_arrow(uri, table.to_reader(chunk) if form == "reader" else table, dims=["x"])
    try:
        assert array.domain == ((min(x), max(x)),)
        same(array, table)
    finally:
        gs.delete(uri)
