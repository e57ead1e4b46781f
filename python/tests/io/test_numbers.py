"""Numbers: one grammar of their text, and one rule for values that do not fit, in every way into an array."""

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import cli, errors, io
from gridstone.io import integers, numbers
from gridstone.io.csv import parser
from gridstone.io.csv.dialect import Dialect
from gridstone.io.csv.rows import Block

GRAMMAR = re.compile(r"[ \t]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*")
NAMED = re.compile(r"[ \t]*[+-]?(inf|infinity|nan)[ \t]*", re.IGNORECASE)
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def put(folder: Path, text: str, name: str = "a.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def schema(dtype: str, count: int = 99) -> gs.Schema:
    return gs.Schema([gs.Dim("x", (0, count))], [gs.Attr("v", dtype)], sparse=True)


whole = st.integers(-(2**70), 2**70) | st.integers(-300, 300)
texts = st.one_of(
    whole.map(str),
    whole.map("{:+}".format),
    st.builds("{}{}".format, st.sampled_from(["", "+", "-", "0", "00", "0x", " ", "\t"]), st.integers(0, 2**65)),
    st.builds("{}{}".format, whole, st.sampled_from([".", ".0", ".00", ".5", "e0", "E2", "e-1", "e400", "_0", "L"])),
    st.floats().map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map("{:+.3e}".format),
    st.sampled_from(["inf", "-INF", "Infinity", "nan", "nan(1)", "infinit", ".", "+", "e5"]),
    st.sampled_from(["1e39", "-1e39", "1e309", "1e-400", "-0.0e5"]),
    st.text("0123456789+-.eExXnaif_ ", max_size=8),
)  # fmt: skip


@given(rows=st.lists(texts, min_size=1, max_size=10), dtype=st.sampled_from(INTEGERS))
def test_whole_numbers_by_the_grammar(rows: list[str], dtype: str) -> None:
    made, bad = numbers.converted(pa.array(rows, pa.string()), pa.from_numpy_dtype(np.dtype(dtype)))
    ends = np.iinfo(dtype)
    for text, value, wrong in zip(rows, made.to_pylist(), bad.tolist(), strict=True):
        found = GRAMMAR.fullmatch(text)
        exact = None if found is None else Fraction(found[1].rstrip("."))
        fits = exact is not None and exact.denominator == 1 and ends.min <= exact <= ends.max
        assert (not wrong, value) == ((True, int(exact or 0)) if fits else (False, None))


@given(rows=st.lists(texts, min_size=1, max_size=10), dtype=st.sampled_from(["float32", "float64"]))
def test_floats_by_the_grammar(rows: list[str], dtype: str) -> None:
    made, bad = numbers.converted(pa.array(rows, pa.string()), pa.from_numpy_dtype(np.dtype(dtype)))
    largest = Fraction(float(np.finfo(dtype).max))
    for text, value, wrong in zip(rows, made.to_pylist(), bad.tolist(), strict=True):
        if NAMED.fullmatch(text):
            assert not wrong and str(value) == str(float(text))
            continue
        found = GRAMMAR.fullmatch(text)
        exact = None if found is None else Fraction(found[1].rstrip("."))
        # What is less than half a step beyond the largest number is rounded to it.
        if exact is None or abs(exact) > largest * Fraction(10**8 + 9, 10**8):
            assert wrong and value is None
        elif abs(exact) <= largest:
            near = float(exact) if dtype == "float64" else value
            assert (
                not wrong and value == near and abs(Fraction(value) - exact) <= abs(exact) / 2**23 + Fraction(1, 2**149)
            )


def test_exponents_without_measure() -> None:
    made, bad = numbers.converted(
        pa.array(["0e999999999", "1e-999999999", "1e999999999", "1e99999999999999999999"]), pa.int64()
    )
    assert made.to_pylist() == [0, None, None, None] and bad.tolist() == [False, True, True, True]


Way = Callable[[str, gs.Schema, list[Any], Path], gs.Array]


def _by_cells(made: Callable[[list[Any]], Any]) -> Way:
    def way(uri: str, wanted: gs.Schema, values: list[Any], folder: Path) -> gs.Array:
        array = gs.create(uri, wanted)
        array.write_cells({"x": np.arange(len(values))}, {"v": made(values)})
        return array

    return way


def _table(values: list[Any]) -> pa.Table:
    kind = pa.uint64() if any(value >= 2**63 and isinstance(value, int) for value in values) else None
    return pa.table({"x": np.arange(len(values)), "v": pa.array(values, kind)})


def _by_csv(uri: str, wanted: gs.Schema, values: list[Any], folder: Path) -> gs.Array:
    file = put(folder, "x,v\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values)))
    return io.from_csv(uri, file, schema=wanted)


def _by_command(uri: str, wanted: gs.Schema, values: list[Any], folder: Path) -> gs.Array:
    file = put(folder, "x,v\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values)))
    put(folder, wanted.to_json(), "s.json")
    kept: list[BaseException] = []
    ended = cli.run(["load", uri, str(file), "--schema", str(folder / "s.json")])
    if ended:
        kept.append(errors.InputError("line " + str(ended)))
        raise kept[0]
    return gs.open(uri)


def _by_parquet(uri: str, wanted: gs.Schema, values: list[Any], folder: Path) -> gs.Array:
    pq.write_table(_table(values), folder / "a.parquet")
    return io.from_parquet(uri, folder / "a.parquet", schema=wanted)


def _by_feather(uri: str, wanted: gs.Schema, values: list[Any], folder: Path) -> gs.Array:
    pa.feather.write_feather(_table(values), folder / "a.arrow")
    return io.from_feather(uri, folder / "a.arrow", schema=wanted)


def _by_append(uri: str, wanted: gs.Schema, values: list[Any], folder: Path) -> gs.Array:
    array = gs.create(uri, wanted)
    with array.writer(order="any") as writer:
        writer.append({"x": np.arange(len(values))}, {"v": np.array(values)})
    return array


def _by_assignment(uri: str, wanted: gs.Schema, values: list[Any], folder: Path) -> gs.Array:
    array = gs.create(uri, gs.Schema([gs.Dim("x", (0, len(values) - 1))], wanted.attrs))
    array[...] = np.array(values)
    return array


WAYS: dict[str, Way] = {
    "csv": _by_csv,
    "command": _by_command,
    "arrow": lambda uri, wanted, values, _: io.from_arrow(uri, _table(values), schema=wanted),
    "parquet": _by_parquet,
    "feather": _by_feather,
    "pandas": lambda uri, wanted, values, _: io.from_pandas(uri, _table(values).to_pandas(), schema=wanted),
    "polars": lambda uri, wanted, values, _: io.from_polars(uri, pl.DataFrame(_table(values)), schema=wanted),
    "cells of NumPy": _by_cells(np.array),
    "cells of a list": _by_cells(list),
    "cells of objects": _by_cells(lambda values: np.array(values, object)),
    "cells of Arrow": _by_cells(lambda values: _table(values).column("v")),
    "cells of pandas": _by_cells(pd.Series),
    "cells of polars": _by_cells(lambda values: pl.Series("v", np.array(values))),
    "masked cells": _by_cells(lambda values: np.ma.MaskedArray(values, [False] * len(values))),
    "writer": _by_append,
    "dense": _by_assignment,
}
FITS = [
    ("int8", [1, -128, 127]), ("int8", [1.0, -5.0]), ("uint64", [2**64 - 1, 2**63]), ("int64", [2**53 + 1, -(2**63)]),
    ("float32", [0.1, 3e38, 1e-50]), ("float32", [1.5, float("inf"), float("-inf")]), ("float16", [0.1, 65_504.0]),
    ("float64", [1e308, -1e-308]), ("float32", [1, 2**24]),
]  # fmt: skip
MISFITS = [
    ("int8", [1, 300]), ("int8", [1, -129]), ("uint8", [1, -1]), ("int16", [5.0, 1.5]), ("int64", [0.5]),
    ("int32", [1.0, 1e10]), ("int8", [1.0, float("inf")]), ("float32", [0.5, 1e39]), ("float32", [0.5, -3.5e38]),
    ("float16", [0.5, 65_536.0]), ("float16", [0.5, 1e39]), ("uint64", [1.0, 2.0**64]), ("int64", [1.0, 2.0**63]),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dtype", "values"), FITS)
def test_what_fits_is_taken_everywhere(tmp_path: Path, way: str, dtype: str, values: list[Any]) -> None:
    found = WAYS[way](str(tmp_path / "a.gs"), schema(dtype), values, tmp_path)
    assert found.read()["v"].tolist() == [np.dtype(dtype).type(value).item() for value in values]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dtype", "values"), MISFITS)
def test_what_does_not_fit_is_refused_everywhere(
    tmp_path: Path, way: str, dtype: str, values: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    row = len(values) - 1
    told = f"line {row + 2}" if way == "csv" else f"row {row}"
    with pytest.raises(errors.InputError, match="line 2" if way == "command" else told):
        WAYS[way](str(tmp_path / "a.gs"), schema(dtype), values, tmp_path)
    if way == "command":
        assert f"line {row + 2}, column 'v'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("int64", [2**53 + 1, 1.0]), ("uint64", [2**64 - 1, 2.0]), ("int64", [-(2**63), 0.0]), ("float64", [2**70, 0.5])],
)
def test_integers_beside_floats_in_a_list_keep_their_digits(store_uri: str, dtype: str, values: list[Any]) -> None:
    array = gs.create(store_uri, schema(dtype))
    array.write_cells({"x": [0, 1]}, {"v": values})
    assert [int(value * 2) for value in array.read()["v"].tolist()] == [int(value * 2) for value in values]


@pytest.mark.parametrize("values", [[5, 2**64], [2**63, -1], [-1, 2**63], [1, 10**400], [0.5, 2**63]])
def test_integers_of_any_size_are_named_by_their_row(store_uri: str, values: list[Any]) -> None:
    row = max(range(len(values)), key=lambda at: abs(values[at])) if values[0] != 0.5 else 0
    array = gs.create(store_uri, schema("int64"))
    for cells in (values, np.array(values, object)):
        with pytest.raises(errors.InputError, match=f"at row {row}, which int64 cannot hold"):
            array.write_cells({"x": [0, 1]}, {"v": cells})
    with pytest.raises(errors.InputError, match="at row 1, which float64 cannot hold"):
        gs.create(store_uri, schema("float64"), overwrite=True).write_cells({"x": [0, 1]}, {"v": [0.5, 2**53 + 1]})


@pytest.mark.parametrize("text", ["0xFF", "0xFFFFFFFFFFFFFFFF", "0X1f", '"0xff"', '"0"xFF', "0x", "-0x1", " 0x1"])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_hexadecimal_text_is_no_number(tmp_path: Path, stores: Stores, text: str, block_bytes: int) -> None:
    file = put(tmp_path, f"x,v\n1,5\n2,{text}\n")
    array = io.from_csv(stores("a"), file, dims=["x"], block_bytes=block_bytes)
    assert array.schema.attrs[0].dtype == "string" and array.read()["v"].tolist() == ["5", text.replace('"', "")]
    for dtype in (*INTEGERS, "float32", "float64", "timedelta64[s]"):
        with pytest.raises(errors.InputError, match=r"line 3, column 'v': .* is no "):
            io.from_csv(stores(f"b{dtype}"), file, schema=schema(dtype), block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["+5", "7"], "int64"),
        (["+9007199254740993", "-1"], "int64"),
        (["+18446744073709551615", "1"], "uint64"),
        (["+18446744073709551616", "1"], "string"),
        (["+9223372036854775808", "-1"], "string"),
        (["+0.5", "+7"], "float64"),
        (["+5", "x"], "string"),
        (["1e+05", "2e+06"], "float64"),
        (["1e400", "1"], "string"),
        (["inf", "1.5"], "float64"),
        (["nan", "+1"], "float64"),
        (["nan(1)", "0.5"], "string"),
    ],
)
def test_signs_and_sizes_are_inferred(
    tmp_path: Path, store_uri: str, values: list[str], dtype: str, block_bytes: int
) -> None:
    file = put(tmp_path, "x,v\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values)))
    array = io.from_csv(store_uri, file, dims=["x"], block_bytes=block_bytes)
    assert array.schema.attrs[0].dtype == dtype
    read = {"string": str, "float64": float}.get(dtype, int)
    assert list(map(str, array.read()["v"].tolist())) == [str(read(value)) for value in values]


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["01234", "10115"], "string"),
        (["10115", "01234"], "string"),
        (["00", "7"], "string"),
        (["-01", "7"], "string"),
        (["+007", "7"], "string"),
        (['"01234"', "5"], "string"),
        ([" 01234", "5"], "string"),
        (["007", "0.5"], "string"),
        (["007", "1e300"], "string"),
        (["0", "-0", "10"], "int64"),
        (["0.5", "00.5", "0"], "float64"),
        (["0", "100", "2000"], "int64"),
        (["09:30", "10:00"], "string"),
    ],
)
def test_whole_numbers_with_leading_zeros_are_text(
    tmp_path: Path, stores: Stores, values: list[str], dtype: str, block_bytes: int
) -> None:
    file = put(tmp_path, "x,v\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values)))
    array = io.from_csv(stores("a"), file, dims=["x"], block_bytes=block_bytes)
    assert array.schema.attrs[0].dtype == dtype
    if dtype == "string":
        assert array.read()["v"].tolist() == [value.replace('"', "") for value in values]
    if ":" not in values[0]:
        assert gs.advise(file, dims=["x"]).schema.attrs[0].dtype == dtype


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_postcodes_are_a_dimension_of_texts(tmp_path: Path, stores: Stores, block_bytes: int) -> None:
    file = put(tmp_path, "zip,v\n10115,1\n01067,2\n99999,3\n0A123,4\n")
    array = io.from_csv(stores("a"), file, dims=["zip"], block_bytes=block_bytes)
    assert array.read()["zip"].tolist() == ["01067", "0A123", "10115", "99999"]
    file = put(tmp_path, "zip,v\n10115,1\n01067,2\n")
    wanted = gs.Schema([gs.Dim("zip", (0, 99_999))], [gs.Attr("v", "int8")], sparse=True)
    assert io.from_csv(stores("b"), file, schema=wanted).read()["zip"].tolist() == [1067, 10115]


def test_words_for_null_come_besides_the_empty_field(tmp_path: Path, stores: Stores) -> None:
    file = put(tmp_path, "x,v,s\n1,NA,\n2,,NA\n3,7,b\n")
    for name, nulls in (("a", ["NA"]), ("b", ["NA", ""]), ("c", ("", "NA"))):
        array = io.from_csv(stores(name), file, dims=["x"], nulls=nulls)
        assert array.schema.attrs[0].dtype == "int64" and array.read()["v"].tolist() == [None, None, 7]
        assert array.read()["s"].tolist() == [None, None, "b"]
    assert cli.run(["load", stores("d"), str(file), "--dims", "x", "--null", "NA"]) == 0
    assert gs.open(stores("d")).read()["v"].tolist() == [None, None, 7]
    with pytest.raises(errors.InputError, match=r"nulls= is a list of texts, such as nulls=\['NA'\]"):
        io.from_csv(stores("e"), file, dims=["x"], nulls="NA")


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float32[2]", "[1, 1e39]"),
        ("float64[2]", "[1, 1e400]"),
        ("list[float64]", "[-1e400]"),
        ("list[int64]", "[99999999999999999999]"),
        ("complex128", "1e400+2j"),
        ("complex64", "1e39"),
        ("complex64", "[0.5, 1e39]"),
        ("complex128", "1_0+2j"),
        ("float16", "1e39"),
    ],
)
def test_numbers_within_values_follow_the_rule(tmp_path: Path, stores: Stores, dtype: str, text: str) -> None:
    file = put(tmp_path, f'x,v\n1,"{text}"\n')
    with pytest.raises(errors.InputError, match=r"line 2, column 'v'"):
        io.from_csv(stores("a"), file, schema=schema(dtype))


def test_decimal_commas(tmp_path: Path, stores: Stores) -> None:
    file = put(tmp_path, "x;v;w\n1;0,5;+7\n2;1e2;8\n3;-,25;+9\n")
    options: dict[str, Any] = {"delimiter": ";", "decimal": ","}
    found = io.from_csv(stores("a"), file, dims=["x"], **options).read()
    assert found["v"].tolist() == [0.5, 100.0, -0.25] and found["w"].tolist() == [7, 8, 9]
    for text in ("1.5", "1e39", "0x1"):
        with pytest.raises(errors.InputError, match="line 2, column 'v'"):
            io.from_csv(stores("b"), put(tmp_path, f"x;v\n1;{text}\n"), schema=schema("float32"), **options)


@pytest.mark.parametrize("text", ["1_0", "0x10", "١", "1e400", "abc"])
def test_numbers_on_the_command_line(stores: Stores, text: str) -> None:
    uri = stores("a")
    assert cli.run(["create", uri, "--sparse", "--dim", "x:int64:0:99", "--attr", "v:float32"]) == 0
    assert cli.run(["read", uri, "--box", f"x=0:{text}"]) == 2
    assert cli.run(["create", stores("b"), "--dim", f"x:int64:0:{text}", "--attr", "v:int8"]) == 2


def test_fills_on_the_command_line(stores: Stores) -> None:
    uri = stores("a")
    assert cli.run(["create", uri, "--dim", "x:int64:0:9", "--attr", "v:int64"]) == 0
    for kind, fill in (("float32", "1e39"), ("int8", "300"), ("int8", "0x1"), ("int8", "1_0"), ("bool", "yes")):
        assert cli.run(["alter", uri, "--add", f"a:{kind}:fill={fill}"]) != 0
    for name, kind, fill in (
        ("a", "float32", "+1e38"),
        ("b", "int8", "1.0"),
        ("c", "bool", "true"),
        ("d", "float32", "inf"),
    ):
        assert cli.run(["alter", uri, "--add", f"{name}:{kind}:fill={fill}"]) == 0
    found = gs.open(uri)
    assert isinstance(found, gs.Array)
    assert [attr.fill for attr in found.schema.attrs[1:]] == [float(np.float32(1e38)), 1, True, float("inf")]


fields = st.one_of(
    texts,
    st.sampled_from(["01", "-01", " 007", "00", "0.5", "09:30", "01.02.2020", "", "0-1"]),
    st.sampled_from(['"01"', '"0"x1', '0"x1', '"+0"1', '""01']),
    st.text('0159x+- "a.', max_size=5),
).filter(lambda text: text.count('"') % 2 == 0)  # fmt: skip


@given(rows=st.lists(st.tuples(fields, fields), min_size=1, max_size=6), delimiter=st.sampled_from([",", ";"]))
def test_cheap_hints_miss_nothing(rows: list[tuple[str, str]], delimiter: str) -> None:
    """What a block's bytes tell leaves out no look at a text that would change a column."""
    dialect = Dialect(delimiter)
    data = "".join(f"{row}{delimiter}{a}{delimiter}{b}\n" for row, (a, b) in enumerate(rows)).encode()
    block = Block(Path("a.csv"), 1, data, ("x", "a", "b"))
    try:
        found = parser.table(dialect, block, {}, ["x", "a", "b"])
    except errors.InputError:
        return  # Marks in odd places make rows of other lengths.
    with patch.object(integers.Hints, "of", lambda *_: integers.Hints()):
        again = parser.table(dialect, block, {}, ["x", "a", "b"])
    assert found.schema == again.schema and str(found.to_pydict()) == str(again.to_pydict())
    for name in ("a", "b"):
        kind = found.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            written = parser.table(dialect, block, {name: pa.string()}, [name]).column(0).to_pylist()
            assert all(text is None or numbers.is_number(text) for text in written)
            assert not any(text and re.fullmatch(r"[ \t]*[+-]?0[0-9]+[ \t]*", text) for text in written)


@given(st.text('0159,"\n+- .:', max_size=14).map(str.encode), st.integers(1, 5))
def test_leading_zeros_are_found_in_any_portion(data: bytes, portion: int) -> None:
    whole_look = integers.Hints.of(data, ",", '"', None)
    with patch.object(integers, "_PORTION", portion):
        assert integers.Hints.of(data, ",", '"', None) == whole_look
