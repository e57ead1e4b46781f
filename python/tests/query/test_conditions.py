"""Conditions: text and `gs.col`, what they mean for a schema, and the rows that they select."""

import datetime as dt
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs
from gridstone import _native
from gridstone.column import columns, encode
from gridstone.errors import InputError
from gridstone.query import condition as expressions

SCHEMA = gs.Schema(
    [gs.Dim("x", (-1000, 1000)), gs.Dim("t", ("2000-01-01", "2030-01-01"), dtype="datetime64[s]")],
    [
        gs.Attr("i", "int32"),
        gs.Attr("u", "uint8"),
        gs.Attr("f", "float32"),
        gs.Attr("d", "float64"),
        gs.Attr("n", "int64", nullable=True),
        gs.Attr("flag", "bool"),
        gs.Attr("when", "datetime64[us]"),
        gs.Attr("name", "string"),
        gs.Attr("raw", "bytes"),
    ],
    sparse=True,
)
COL = {name: gs.col(name) for name in ("x", "t", "i", "u", "f", "d", "n", "flag", "when", "name", "raw")}


def selected(where: Any, values: dict[str, Any], schema: gs.Schema = SCHEMA) -> np.ndarray:
    """The rows that `where` selects, as a mask."""
    held = {}
    for name, data in values.items():
        attr = next((a for a in schema.attrs if a.name == name), None)
        dtype = attr.dtype if attr else next(d.dtype for d in schema.dims if d.name == name)
        field = columns.Field(name, dtype, bool(attr and attr.nullable), "attribute")
        held[name] = encode.from_values(field, data).native()
    found = _native.select_rows(expressions.condition_json(where), schema.to_json(), held)
    return np.frombuffer(found, np.bool_)


def test_expressions_and_texts_are_the_same() -> None:
    pairs = [
        ((COL["f"] > 3) & COL["i"].isin([1, 5]), "f > 3 and i in (1, 5)"),
        (~(COL["flag"] | (COL["n"] != 1)), "not (flag or n != 1)"),
        (COL["x"].between(-1, 2.5) & COL["n"].is_null(), "x between -1 and 2.5 and n is null"),
        (COL["n"].is_not_null() | COL["flag"], "n is not null or flag"),
        (COL["x"] <= COL["i"], "x <= i"),
        (3 < COL["i"], "i > 3"),  # noqa: SIM300
        (np.int64(3) >= COL["i"], "i <= 3"),
        (np.float32(0.1) == COL["f"], "f == 0.1f32"),
        (COL["name"] == "it's", "name == 'it''s'"),
        (COL["raw"] == b"\x00'", "raw == b'\\x00\\''"),
        (gs.col("my col") != True, '"my col" != true'),  # noqa: E712
        (COL["f"].is_nan() | COL["f"].is_not_nan(), "f is nan or f is not nan"),
        (COL["when"] == np.datetime64("2024-05-01T12:00:00"), "when == timestamp '2024-05-01T12:00:00'"),
        (COL["when"] == dt.date(2024, 5, 1), "when == date '2024-05-01'"),
        (COL["i"] < float("inf"), "i < inf"),
        (True & COL["flag"], "true and flag"),
    ]  # fmt: skip
    for expression, text in pairs:
        assert expression == gs.Expression.parse(text), text
        assert gs.Expression.parse(repr(expression)) == expression
        assert gs.Expression.from_json(expression.to_json()) == expression
        assert expressions.condition_json(text) == expressions.condition_json(expression)
        again = pickle.loads(pickle.dumps(expression))
        assert again == expression and hash(again) == hash(expression)
        if "my col" not in text:
            _native.check_condition(expression.to_json(), SCHEMA.to_json())


def test_times_of_every_kind() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    same = [
        dt.datetime(2024, 5, 1, 12, 30),
        dt.datetime(2024, 5, 1, 14, 30, tzinfo=zone),
        pd.Timestamp("2024-05-01T12:30"),
        np.datetime64("2024-05-01T12:30"),
        np.datetime64(5_715_222, "5m"),
        pa.scalar(dt.datetime(2024, 5, 1, 12, 30)),
        "2024-05-01 12:30",
    ]
    data = {"when": np.array(["2024-05-01T12:30", "2024-05-01T12:31", "NaT"], "datetime64[us]")}
    for value in same:
        assert selected(COL["when"] == value, data).tolist() == [True, False, False], value
        assert selected(COL["when"] != value, data).tolist() == [False, True, True], value
    assert selected(COL["when"] != np.datetime64("NaT"), data).all()
    assert selected(COL["when"] == pd.NaT, data).sum() == 0
    assert repr(gs.col("w") > np.timedelta64(3, "10s")) == "w > timedelta '30 s'"
    assert repr(gs.col("w") > dt.timedelta(hours=1)) == "w > timedelta '3600000000 us'"
    assert repr(gs.col("w") > pd.Timedelta(5, "s")).startswith("w > timedelta '5")


def test_what_is_no_condition_says_what_to_do() -> None:
    for wrong in (
        lambda: bool(COL["i"] > 1),
        lambda: (COL["i"] > 1) and (COL["x"] < 3),
        lambda: 1 < COL["i"] < 5,
        lambda: not COL["flag"],
    ):
        with pytest.raises(TypeError, match=r"join conditions with & \| ~"):
            wrong()
    with pytest.raises(TypeError, match="unhashable"):
        hash(COL["i"])
    for wrong, words in (
        (lambda: COL["i"] == None, "is_null"),  # noqa: E711
        (lambda: COL["i"].isin([1, None]), "is_null"),
        (lambda: COL["i"].isin("abc"), "list of values"),
        (lambda: COL["i"] > object(), "cannot stand"),
        (lambda: COL["i"] > 2**127, "128 bits"),
        (lambda: COL["i"] > (COL["x"] < 3), "cannot stand"),
        (lambda: COL["i"] & 3, "join conditions"),
        (lambda: gs.col(""), "name"),
        (lambda: COL["i"] == np.timedelta64(1), "unit of time"),
        (lambda: expressions.condition_json(True), "happen in Python already"),
        (lambda: expressions.condition_json(None), "NoneType"),
        (lambda: gs.Expression.from_json('{"op":"and","args":[]}'), "two parts"),
    ):
        with pytest.raises(InputError, match=words):
            wrong()
    with pytest.raises(InputError, match=r"found the end\n  i >\n     *\^"):
        gs.Expression.parse("i >")


def test_check_against_a_schema() -> None:
    def check(text: str) -> dict[str, Any]:
        return json.loads(_native.check_condition(expressions.condition_json(text), SCHEMA.to_json()))

    found = check("x > 3 and t < '2000-01-01T00:00:05' and f > 1")
    assert found["columns"] == ["x", "t", "f"] and found["constant"] is None
    assert found["box"] == [["4", "1000"], ["946684800", "946684804"]]
    assert check("x > 5000") == {"columns": ["x"], "box": None, "constant": None}
    assert check("u > 300") == {"columns": [], "box": None, "constant": False}
    assert check("u < 300")["constant"] is True
    with pytest.raises(InputError, match='did you mean "flag"'):
        check("flg")
    with pytest.raises(InputError, match="is float32"):
        check("f == 'fast'")
    with pytest.raises(InputError, match="was not given"):
        selected("f > 1 and i > 1", {"f": [1.0]})


def test_nulls_are_neither() -> None:
    data = {"n": np.ma.MaskedArray([1, 2, 3], [False, True, False])}
    for text, rows in [
        ("n > 1", [2]),
        ("not n > 1", [0]),
        ("n != 1", [2]),
        ("n is null", [1]),
        ("not n is null", [0, 2]),
        ("n > 1 or n is null", [1, 2]),
        ("n > 1 or true", [0, 1, 2]),
        ("not (n > 1 and false)", [0, 1, 2]),
        ("n in (1, 3)", [0, 2]),
        ("n not in (1)", [2]),
        ("n == n", [0, 2]),
        ("n between 2 and 9", [2]),
    ]:
        assert np.flatnonzero(selected(text, data)).tolist() == rows, text


INTS = st.integers(-5, 5)
FLOATS = st.one_of(st.integers(-5, 5).map(float), st.floats(width=32), st.sampled_from([0.1, -0.0, 1e39, 2.5]))
SIGNS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
OPERATORS = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, np.ndarray]:
    rows = draw(st.integers(0, 80))
    many = lambda values, dtype: np.array(draw(st.lists(values, min_size=rows, max_size=rows)), dtype)  # noqa: E731
    return {
        "i": many(INTS, np.int32),
        "u": many(st.integers(0, 255), np.uint8),
        "f": many(st.floats(width=32), np.float32),
        "d": many(FLOATS, np.float64),
        "flag": many(st.booleans(), np.bool_),
    }


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> tuple[str, Any, Any]:
    """A condition as text, as an expression, and as a function from a table to NumPy's mask."""
    kind = draw(st.integers(0, 3 + depth))
    if kind >= 4:
        a, b = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        if kind == 4:
            return f"not ({a[0]})", ~a[1], lambda table: ~a[2](table)
        if kind == 5:
            return f"({a[0]}) and ({b[0]})", a[1] & b[1], lambda table: a[2](table) & b[2](table)
        return f"({a[0]}) | ({b[0]})", a[1] | b[1], lambda table: a[2](table) | b[2](table)
    name = draw(st.sampled_from(["i", "u", "f", "d"]))
    if kind == 0:
        return "flag", COL["flag"], lambda table: table["flag"]
    if kind == 1:
        some = draw(st.lists(INTS, max_size=12))
        text = f"{name} in ({', '.join(map(str, some))})"
        return text, COL[name].isin(some), lambda table: np.isin(table[name], np.array(some, float))
    value, sign = draw(st.one_of(INTS, FLOATS, st.sampled_from([300, 2**40]))), draw(SIGNS)
    function = OPERATORS[sign]
    made = {"==": COL[name] == value, "!=": COL[name] != value, "<": COL[name] < value}
    made |= {"<=": COL[name] <= value, ">": COL[name] > value, ">=": COL[name] >= value}
    # Every number drawn, and every column, is exact in float64.
    return f"{name} {sign} {value!r}", made[sign], lambda table: function(table[name].astype(float), float(value))


@given(tables(), conditions())
def test_rows_are_those_of_numpy(table: dict[str, np.ndarray], condition: tuple[str, Any, Any]) -> None:
    text, expression, mask = condition
    expected = np.asarray(mask(table), bool)
    assert np.array_equal(selected(text, table), expected), text
    assert np.array_equal(selected(expression, table), expected), text


@given(
    st.lists(st.tuples(INTS, INTS.map(float)), max_size=60),
    st.sampled_from(
        [
            "i > 1 and d < 3",
            "i == d or not d >= 2",
            "(i != 2) & ~(d == 1.5) | (i < -3)",
            "-2 < i <= 3",
            "i in [1, 2, -5]",
            "i not in [1, 2] and d > i",
            "`i` <= 0x2",
        ]
    ),
)
def test_rows_are_those_of_pandas_query(rows: list[tuple[int, float]], text: str) -> None:
    frame = pd.DataFrame(rows, columns=["i", "d"]).astype({"i": np.int32, "d": np.float64})
    expected = frame.query(text, engine="python").index.to_list()
    found = selected(text, {"i": frame["i"].to_numpy(), "d": frame["d"].to_numpy()})
    assert np.flatnonzero(found).tolist() == expected


@given(st.lists(st.text(max_size=4), max_size=30), st.text(max_size=3), SIGNS)
def test_texts_compare_as_utf8(names: list[str], wanted: str, sign: str) -> None:
    found = selected(f"name {sign} '{wanted.replace(chr(39), chr(39) * 2)}'", {"name": np.array(names, object)})
    order = [(name.encode() > wanted.encode()) - (name.encode() < wanted.encode()) for name in names]
    assert found.tolist() == [bool(OPERATORS[sign](o, 0)) for o in order]


@given(st.text(max_size=30))
def test_any_text_is_a_condition_or_an_input_error(text: str) -> None:
    try:
        found = gs.Expression.parse(text)
    except InputError as error:
        assert "^" in str(error)
    else:
        assert gs.Expression.parse(repr(found)) == found
