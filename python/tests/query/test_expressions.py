"""Values computed of cells, as aggregates take them, are those that NumPy and pandas compute."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import gridstone as gs

_INTS = ["i", "b", "u", "x", "7", "-3"]
_FLOATS = ["f", "g", "0.25", "1e3"]


def _array(folder: Path, seed: int) -> tuple[gs.Array, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    n = 60
    cells: dict[str, Any] = {
        "i": rng.integers(-1000, 1000, n),
        "b": rng.integers(-128, 128, n).astype("int8"),
        "u": rng.integers(0, 2**16, n).astype("uint16"),
        "f": rng.normal(size=n) * 10,
        "g": rng.normal(size=n).astype("float32"),
        "s": np.array([["Äb", "", "xYz", "日本"][k] for k in rng.integers(0, 4, n)], object),
        "t": rng.integers(-(10**10), 10**10, n).astype("M8[s]"),
        "h": rng.integers(-(10**6), 10**6, n).astype("M8[h]"),
    }
    mask = rng.random(n) < 0.2
    cells["m"] = np.ma.MaskedArray(rng.integers(-9, 9, n), mask=mask)
    attrs = [
        gs.Attr(name, "string" if name == "s" else str(values.dtype), nullable=name == "m")
        for name, values in cells.items()
    ]
    schema = gs.Schema([gs.Dim("x", (0, n - 1), dtype="int64", tile=7)], attrs, sparse=True)
    array = gs.create(folder / f"e{seed}.gs", schema)
    array.write_cells({"x": np.arange(n)}, cells)
    return array, {"x": np.arange(n), **cells}


def _computed(array: gs.Array, text: str) -> Any:
    """The values of an expression in the order of x: each is the greatest of its group."""
    return array.aggregate({"r": f"max({text})"}, by="x")["r"]


@st.composite
def _texts(draw: Any, depth: int = 0) -> str:
    if depth == 3 or draw(st.integers(0, 2)) == 0:
        return str(draw(st.sampled_from([*_INTS, *_FLOATS])))
    kind = draw(st.integers(0, 6))
    left = draw(_texts(depth + 1))
    if kind == 0:
        return f"-({left})"
    if kind == 1:
        return f"{draw(st.sampled_from(['abs', 'floor', 'ceil', 'round']))}({left})"
    return f"({left} {draw(st.sampled_from(['+', '-', '*', '/', '//', '%']))} {draw(_texts(depth + 1))})"


class _Exact:
    """Python's integers and float64 for each cell, None for null: the model."""

    @staticmethod
    def of(text: str, row: dict[str, Any]) -> Any:
        import ast

        def value(node: ast.expr) -> Any:
            if isinstance(node, ast.Constant):
                return node.value
            if isinstance(node, ast.Name):
                found = row[node.id]
                return float(found) if isinstance(found, np.floating) else int(found)
            if isinstance(node, ast.UnaryOp):
                return -value(node.operand)
            if isinstance(node, ast.Call):
                return _Exact._call(node.func.id, value(node.args[0]))  # type: ignore[attr-defined]
            assert isinstance(node, ast.BinOp)
            return _Exact._joined(type(node.op).__name__, value(node.left), value(node.right))

        try:
            return value(ast.parse(text, mode="eval").body)
        except _Null:
            return None

    @staticmethod
    def _call(name: str, arg: Any) -> Any:
        if isinstance(arg, int):
            return abs(arg) if name == "abs" else arg
        with np.errstate(all="ignore"):
            return float({"abs": np.abs, "floor": np.floor, "ceil": np.ceil, "round": np.rint}[name](arg))

    @staticmethod
    def _joined(name: str, a: Any, b: Any) -> Any:
        if name != "Div" and isinstance(a, int) and isinstance(b, int):
            if name in ("FloorDiv", "Mod") and b == 0:
                raise _Null
            return {
                "Add": a + b,
                "Sub": a - b,
                "Mult": a * b,
                "FloorDiv": a // b if b else 0,
                "Mod": a % b if b else 0,
            }[name]
        a, b = np.float64(a), np.float64(b)
        with np.errstate(all="ignore"):
            if name == "FloorDiv":
                return float(np.floor(a / b))
            if name == "Mod":
                left = np.fmod(a, b)
                return float(left + b if left != 0 and (left < 0) != (b < 0) else left)
            return float({"Add": a + b, "Sub": a - b, "Mult": a * b, "Div": a / b}[name])


class _Null(Exception):
    pass


@given(seed=st.integers(0, 50), text=_texts())
def test_arithmetic_is_exact_for_integers_and_float64_else(
    tmp_path_factory: pytest.TempPathFactory, seed: int, text: str
) -> None:
    array, cells = _array(tmp_path_factory.mktemp("e"), seed)
    rows = [{name: values[k] for name, values in cells.items() if name not in "smth"} for k in range(60)]
    expected = [_Exact.of(text, row) for row in rows]
    if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in expected):
        with pytest.raises(gs.InputError, match="64 bits"):
            _computed(array, text)
        return
    try:
        found = _computed(array, text)
    except gs.InputError as error:
        assert "64 bits" in str(error)  # A part of it does not fit, though the whole would.
        return
    for k, value in enumerate(expected):
        if value is None:
            assert found[k] is np.ma.masked, text
        else:
            assert found[k] is not np.ma.masked, text
            same = found[k] == value or (np.isnan(value) and np.isnan(found[k]))
            assert same, f"{text}: {found[k]} {value} of {rows[k]}"


def test_functions(tmp_path: Path) -> None:
    array, cells = _array(tmp_path, 1)
    f = cells["f"]
    with np.errstate(all="ignore"):
        for text, expected in [
            ("sqrt(abs(f))", np.sqrt(np.abs(f))),
            ("exp(g)", np.exp(cells["g"].astype("f8"))),
            ("ln(abs(f))", np.log(np.abs(f))),
            ("log10(abs(f))", np.log10(np.abs(f))),
            ("cast(b as float64) / 3", cells["b"] / 3),
            ("cast(f as int64) * 2", np.trunc(f) * 2),
            ("cast(f as float32) + 0.0", f.astype("f4").astype("f8")),
            ("u::int64 * 65536", cells["u"].astype("int64") * 65536),
            ("length(s)", np.array([len(s) for s in cells["s"]])),
        ]:
            assert np.allclose(_computed(array, text), expected, rtol=1e-14), text
    assert _computed(array, "lower(s)").tolist() == [s.lower() for s in cells["s"]]
    assert _computed(array, "upper(s)").tolist() == [s.upper() for s in cells["s"]]
    filled = _computed(array, "coalesce(m, 100)")
    assert filled.tolist() == np.ma.filled(cells["m"], 100).tolist()
    plus = _computed(array, "m + 1")
    assert np.ma.getmaskarray(plus).tolist() == np.ma.getmaskarray(cells["m"]).tolist()


def test_parts_of_times_are_those_of_pandas(tmp_path: Path) -> None:
    array, cells = _array(tmp_path, 2)
    times = pd.DatetimeIndex(cells["t"].astype("M8[s]"))
    for part in ("year", "month", "day", "hour", "minute", "second"):
        assert _computed(array, f"{part}(t)").tolist() == getattr(times, part).tolist(), part


@pytest.mark.parametrize("name", ["t", "h"])
@pytest.mark.parametrize("width", ["1h", "6h", "15m", "1D", "3D", "1W", "2W", "1M", "1Q", "1Y", "10Y"])
def test_periods_begin_where_the_calendar_has_it(tmp_path: Path, name: str, width: str) -> None:
    array, cells = _array(tmp_path, 3)
    found = _computed(array, f"period({name}, '{width}')")
    count, unit = int(width[:-1]), width[-1]
    for at, start in zip(cells[name], found, strict=True):
        assert start.dtype == at.dtype and start <= at
        if unit in "hmD":
            length = np.timedelta64(count, unit)
            finer = length < np.timedelta64(1, "h") and name == "h"
            assert at - start < length or finer
            since = (start - np.datetime64(0, "s")).astype("m8[s]").astype(int)
            assert finer or since % length.astype("m8[s]").astype(int) == 0
        elif unit == "W":
            assert at - start < np.timedelta64(7 * count, "D") and pd.Timestamp(start).day_of_week == 0
        else:
            months = count * {"M": 1, "Q": 3, "Y": 12}[unit]
            first = at.astype("M8[M]").astype(int) // months * months
            assert start == first.astype("M8[M]")


def test_bins_of_times(tmp_path: Path) -> None:
    array, cells = _array(tmp_path, 4)
    found = array.aggregate({"n": "count(*)"}, by={"t": "1M"})
    expected = pd.Series(cells["t"]).dt.to_period("M").value_counts().sort_index()
    assert found["t"].astype("M8[M]").tolist() == [p.start_time.date() for p in expected.index]
    assert found["n"].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sog +", "expected a value"),
        ("(i", r"expected"),
        ("i + s", "cannot be computed"),
        ("i + nothing", "no dimension or attribute"),
        ("nothing(i)", "no function"),
        ("period(t, '1 fortnight')", "no period"),
        ("period(i, '1h')", "of times"),
        ("period(t, '1h') + 1", "cannot be computed"),
        ("coalesce(m, 0.5)", "cannot be computed"),
        ("abs(s)", "cannot be computed"),
        ("cast(f as int8) * 1e9::int8", "does not fit"),
        ("cast(s as int8)", "cannot be computed"),
        ("i * 99999999999999999999999999999999999999", "64 bits"),
        ("+".join(["i"] * 30_000), "operators"),
        ("-" * 10_000 + "i", "levels"),
        ("i" + "::int64" * 9000, "operators"),
        ("((" * 200 + "i" + "))" * 200, "levels"),
    ],
)
def test_what_is_wrong_is_shown(tmp_path: Path, text: str, message: str) -> None:
    array, _ = _array(tmp_path, 5)
    with pytest.raises(gs.InputError, match=message):
        array.aggregate({"r": f"max({text})"})
