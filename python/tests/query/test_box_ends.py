"""Ends of boxes that a dimension's type does not hold: a box selects what a condition with the same numbers selects."""

import datetime as dt
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs
from gridstone import plot
from gridstone.cli import run
from gridstone.errors import BoundsError, InputError


def sparse(dim: gs.Dim, values: Any) -> gs.Array:
    """A sparse array that has a cell at each of these coordinates, whose value is its place among them."""
    a = gs.create("mem://ends", gs.Schema([dim], [gs.Attr("v", "int64")], sparse=True), overwrite=True)
    a.write_cells({dim.name: values}, {"v": np.arange(len(values))})
    return a


# Floats.

_POSITIVE = [1e-45, 1e-38, 0.1, 0.25, 0.3, 1, 1 + 2**-23, 3.3, 1e10, 3.4028235e38]
F32 = np.unique(np.array([0, *_POSITIVE, *(-value for value in _POSITIVE)], np.float32))
FLOATS = sparse(gs.Dim("f", (float(F32[0]), float(F32[-1])), dtype="float32"), F32)
SPECIAL = [0.1, 0.3, 1e-50, -1e-50, 1e39, -1e39, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1 + 2**-24, 3.3, 10**50]
NUMBER = (
    st.sampled_from(SPECIAL)
    | st.floats(allow_nan=False)
    | st.integers(-(10**45), 10**45)
    | st.sampled_from([float(value) for value in F32] + [math.nextafter(float(value), math.inf) for value in F32])
)


@given(low=NUMBER, high=NUMBER)
def test_boxes_of_floats_hold_what_lies_between_their_ends(low: float, high: float) -> None:
    low, high = sorted([low, high])
    exact = [Fraction(float(value)) for value in F32]
    closed = [i for i, value in enumerate(exact) if low <= value <= high]
    below = [i for i, value in enumerate(exact) if low <= value < high]
    assert FLOATS.read({"f": (low, high)})["v"].tolist() == closed
    assert FLOATS.read({"f": slice(low, high)})["v"].tolist() == below
    assert FLOATS.loc[low:high]["v"].tolist() == below
    assert FLOATS.scan([{"f": (low, high)}]).to_numpy()["v"].tolist() == closed
    if abs(low) < 2**126 and abs(high) < 2**126:
        assert FLOATS.read(where=gs.col("f").between(low, high))["v"].tolist() == closed


def test_a_cell_outside_of_a_deleted_box_stays() -> None:
    a = sparse(gs.Dim("f", (-1.0, 1.0), dtype="float32"), np.array([0, 1e-45, 1], np.float32))
    a.delete({"f": (1e-50, 1)})
    assert a.read()["f"].tolist() == [0]
    a.delete({"f": slice(-1, 1e-50)})
    assert len(a.read()) == 0


def test_a_single_float_is_one_that_the_type_holds() -> None:
    a = sparse(gs.Dim("f", (-1.0, 1.0), dtype="float32"), np.array([0, 0.1], np.float32))
    assert a.read({"f": np.float32(0.1)})["v"].tolist() == [1]
    assert a.loc[float(np.float32(0.1))]["v"].tolist() == [1]
    for number in (0.1, 1e-50):
        with pytest.raises(InputError, match=r"no coordinate.*numpy.float32"):
            a.read({"f": number})
        with pytest.raises(InputError, match="no coordinate"):
            a.delete({"f": number})
    assert len(a.read()) == 2


# Integers.


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@given(data=st.data())
def test_boxes_of_integers_hold_what_lies_between_their_ends(dtype: str, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    ints = sorted({int(info.min), int(info.min) + 1, 0, 1, 2, 5, 100, int(info.max) - 1, int(info.max)})
    a = sparse(gs.Dim("x", (int(info.min), int(info.max)), dtype=dtype), np.array(ints, dtype))
    near = st.sampled_from(ints).flatmap(lambda value: st.sampled_from([value - 0.5, value + 0.25, value - 1, value]))
    number = near | st.floats(allow_nan=False) | st.integers(-(2**70), 2**70) | st.sampled_from([math.inf, -math.inf])
    low, high = sorted([data.draw(number), data.draw(number)])
    closed = [i for i, value in enumerate(ints) if low <= value <= high]
    below = [i for i, value in enumerate(ints) if low <= value < high]
    assert a.read({"x": (low, high)})["v"].tolist() == closed
    assert a.read((slice(low, high),))["v"].tolist() == below
    assert a.loc[low:high]["v"].tolist() == below
    if abs(low) < 2**126 and abs(high) < 2**126:
        assert a.read(where=gs.col("x").between(low, high))["v"].tolist() == closed
    before = len(a.read())
    a.delete({"x": (low, high)})
    assert len(a.read()) == before - len(closed)


@pytest.fixture
def row() -> gs.Array:
    """A dense array of the numbers 0 to 9 along "x", from 0."""
    return gs.array("mem://row", np.arange(10), name="v", overwrite=True)


def test_dense_arrays_take_ends_between_coordinates(row: gs.Array) -> None:
    assert row.read({"d0": (1.5, 4.5)})["v"].tolist() == [2, 3, 4]
    assert row.read({"d0": (-0.5, 9.5)})["v"].tolist() == list(range(10))
    assert row.loc[1.5:4.0].tolist() == [2, 3] and row["v"].loc[1.5:9.5:3].tolist() == [2, 5, 8]
    assert row.read({"d0": (1.5, 4.5)}, where="v != 3")["v"].tolist() == [2, 4]
    row.write(np.array([7, 7]), {"d0": (1.5, 3.5)})
    row.loc[7.5:9.5] = 5
    assert row[...].tolist() == [0, 1, 7, 7, 4, 5, 6, 7, 5, 5]
    out = np.empty(2, np.int64)
    row.read({"d0": (1.5, 3.5)}, out=out)
    assert out.tolist() == [7, 7]
    row.delete({"d0": (-0.5, 0.5)})
    row.delete({"d0": slice(0.5, 2)})
    assert row[...].tolist() == [0, 0, 7, 7, 4, 5, 6, 7, 5, 5]


def test_boxes_between_two_coordinates_are_empty(row: gs.Array) -> None:
    before = row.version
    for box in ({"d0": (1.25, 1.75)}, {"d0": slice(1.25, 1.75)}, {"d0": (9.1, 9.9)}, {"d0": (-0.9, -0.1)}):
        assert row.read(box)["v"].shape == (0,)
        assert len(row.read([box])) == 0
        assert row.read(box, where="v >= 0")["v"].tolist() == []
        assert row.delete(box) == row.version == before
        assert list(row.scan(box)) == []
        with pytest.raises(InputError, match="empty"):
            row.write(1, box)
        with pytest.raises(InputError, match="empty"):
            row.writer(box)
        with pytest.raises(InputError, match="no coordinate"):
            gs.advise(row, queries=[box])
    assert row.loc[1.25:1.75].tolist() == []


def test_boxes_that_reach_beyond_the_domain_are_cut_unless_that_is_an_error(row: gs.Array) -> None:
    for box, shown in (
        ({"d0": (0, 10)}, r"\(0, 10\)"),
        ({"d0": (-1.5, 4)}, r"\(-1, 4\)"),
        ({"d0": (20.2, 20.7)}, r"\(20.2, 20.7\)"),
        ({"d0": (0, math.inf)}, r"\(0, 9223372036854775807\)"),
    ):
        with pytest.raises(BoundsError, match=shown):
            row.read(box, clip="error")
        low, high = box["d0"]
        assert row.read(box)["d0"].tolist() == [x for x in row.read()["d0"].tolist() if low <= x <= high]
    with pytest.raises(InputError, match="lower end first"):
        row.read({"d0": (1.75, 1.25)})
    for wrong in (math.nan, True, "1", 1j, None):
        with pytest.raises(InputError, match="no coordinate"):
            row.read({"d0": slice(0, wrong)} if wrong is not None else ({"d0": None}))
    with pytest.raises(InputError, match="no coordinate"):
        row.loc[1.5]


def test_the_command_line_takes_ends_between_coordinates(
    row: gs.Array, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = str(tmp_path / "row.gs")
    gs.copy(row.uri, uri)
    assert run(["read", uri, "--box", "d0=1.5:4.5", "--json"]) == 0
    assert [line["v"] for line in map(json.loads, capsys.readouterr().out.splitlines())] == [2, 3, 4]
    assert run(["delete", uri, "--box", "d0=1.5:3.5"]) == 0
    assert gs.open(uri)[...].tolist() == [0, 1, 0, 0, 4, 5, 6, 7, 8, 9]
    assert run(["read", uri, "--box", "d0=x:3"]) == 2
    assert "is no int64" in capsys.readouterr().err


def test_plots_and_tables_of_tiles_take_ends_between_coordinates() -> None:
    a = sparse(gs.Dim("f", (-1.0, 1.0), dtype="float32"), np.array([0, 0.1, 1], np.float32))
    dims = [gs.Dim("f", (-1.0, 1.0), dtype="float32"), gs.Dim("x", (0, 9))]
    b = gs.create("mem://two", gs.Schema(dims, [gs.Attr("v", "float64")], sparse=True))
    b.write_cells({"f": np.array([0, 0.5], np.float32), "x": [1, 2]}, {"v": [1.0, 2.0]})
    box = plot._box(b, {"f": (1e-50, 0.9), "x": (0.5, 8.5)})
    assert plot.density(b, ("f", "x"), box, (2, 2)).sum() == 1
    assert a.tiles({"f": (1e-50, 1)}).num_rows == 1
    assert a.tiles({"f": (1e-50, 2e-50)}).num_rows == a.tiles({"f": (7.0, 8.0)}).num_rows == 0


# Times.

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "6h", "15m", "3M"]


@pytest.mark.parametrize("step", UNITS)
@given(data=st.data())
def test_boxes_of_times_hold_what_lies_between_their_ends(step: str, data: st.DataObject) -> None:
    ticks = np.array([-3, -2, -1, 0, 1, 2, 3, 40])
    dim = gs.Dim("t", (-(2**63) + 1, 2**63 - 1), dtype=f"datetime64[{step}]")
    a = sparse(dim, ticks.astype(dim.dtype))
    unit = data.draw(st.sampled_from(["Y", "M", "D", "h", "s", "ms", "ns", "as", "7m"]))
    low, high = sorted(np.datetime64(data.draw(st.integers(-200, 200)), unit) for _ in range(2))
    t = gs.col("t")
    assert a.read({"t": (low, high)})["v"].tolist() == a.read(where=(t >= low) & (t <= high))["v"].tolist()
    assert a.read({"t": slice(low, high)})["v"].tolist() == a.read(where=(t >= low) & (t < high))["v"].tolist()


def test_times_finer_than_the_unit() -> None:
    a = sparse(
        gs.Dim("t", ("2020-01-01", "2020-01-09"), dtype="datetime64[D]"),
        np.arange("2020-01-01", "2020-01-10", dtype="M8[D]"),
    )
    noon = [
        "2020-01-03T12:00",
        np.datetime64("2020-01-03T12:00:00.5"),
        dt.datetime(2020, 1, 3, 12),
        dt.datetime(2020, 1, 3, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        pd.Timestamp("2020-01-03T12:00:00.000000001"),
    ]
    for low in noon:
        assert a.read({"t": (low, "2020-01-05T23:59")})["v"].tolist() == [3, 4]
        assert a.loc[low:"2020-01-05T00:00:00.001"]["v"].tolist() == [3, 4]  # type: ignore[misc]
        assert a.read({"t": slice(None, low)})["v"].tolist() == [0, 1, 2]
        with pytest.raises(InputError, match="no coordinate"):
            a.read({"t": low})
    with pytest.raises(InputError, match="no coordinate"):
        a.read({"t": (np.datetime64("NaT"), None)})


def test_times_beyond_the_range_of_the_unit() -> None:
    a = sparse(gs.Dim("t", (-(2**63) + 1, 2**63 - 1), dtype="datetime64[ns]"), np.array([-5, 0, 5]).astype("M8[ns]"))
    for box in ({"t": ("1000-01-01", "9999-12-31")}, {"t": slice("1000-01-01", "9999-12-31")}):
        assert a.read(box)["v"].tolist() == [0, 1, 2]
    assert a.read({"t": ("9999-12-31", None)})["v"].tolist() == []


@pytest.mark.parametrize("step", ["M", "D", "h", "15m"])
def test_spans_of_time(step: str) -> None:
    a = sparse(
        gs.Dim("t", (-100, 100), dtype=f"timedelta64[{step}]"), np.array([-2, -1, 0, 1, 2]).astype(f"m8[{step}]")
    )
    unit = "Y" if step == "M" else "s"
    low = np.timedelta64(-1, unit)
    wanted = a.read(where=(gs.col("t") >= low) & (gs.col("t") <= np.timedelta64(1, unit)))["v"].tolist()
    assert a.read({"t": (low, np.timedelta64(1, unit))})["v"].tolist() == wanted
    other = np.timedelta64(1, "s" if step == "M" else "M")
    with pytest.raises(InputError, match="no coordinate"):
        a.read({"t": slice(None, other)})
    with pytest.raises(InputError, match="no coordinate"):
        a.read({"t": slice(None, np.datetime64("2020-01-01"))})
