"""Written dates and times are periods, in boxes, slices, domains and `at`; everything else is an instant."""

import datetime as dt
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gridstone as gs
from gridstone.column import datatype, period

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "6h", "15m", "3M", "2W")
WRITTEN = (
    *("2024", "2024-02", "2023-02", "2024-02-29", "2023-12-31", "1969-12-31", "1900-02", "2000-02", "2100-02-28"),
    *("2024-02-28T23", "2023-12-31 23", "2024-02-29T23:59", "1970-01-01T00:00:00", "1969-12-31T23:59:59.999"),
    *("2024-12-31T23:59:59.999999", "1970-01-01T00:00:00.000000001", "20240229", "0100-01", "9999", "1582-10-15"),
)


def made(name: str, schema: gs.Schema) -> gs.Array:
    return gs.create(f"mem://periods-{name}", schema, overwrite=True)


def limits(text: str) -> tuple[np.datetime64, np.datetime64]:
    """The beginnings of a written period and of the next one, by pandas' periods where these reach so far."""
    begin = np.datetime64(text.replace("20240229", "2024-02-29").replace(" ", "T"))
    return begin, begin + 1


def line(unit: str, around: np.datetime64) -> gs.Array:
    """Cells near a moment: every tick there, each with its number."""
    name = f"datetime64[{unit}]"
    middle = int(around.astype(name).astype(np.int64))
    ticks = np.arange(max(middle - 40, -(2**63) + 1), min(middle + 40, 2**63 - 1) + 1)
    a = made("line", gs.Schema([gs.Dim("t", (ticks[0], ticks[-1]), dtype=name)], [gs.Attr("v", "int64")]))
    a.write(ticks)
    return a


def reaches(text: str, unit: str) -> bool:
    """Whether 64 bits of a unit hold the times around a text."""
    begin = limits(text)[0].astype("datetime64[D]").astype(np.int64)
    per_day = {"ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}.get(unit, 1) * 86_400
    return abs(int(begin) + 400) * per_day < 2**62 or unit not in ("ns", "ps", "fs", "as")


def exact(value: np.datetime64) -> int:
    """Attoseconds since 1970, by Python's calendar."""
    unit, _ = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64))
    if unit in "YM":
        months = ticks * (12 if unit == "Y" else 1)
        year, month = 1970 + months // 12, months % 12 + 1
        if year > 9999:
            return (dt.date(9999, 12, 31).toordinal() + 1 - dt.date(1970, 1, 1).toordinal()) * 86_400 * 10**18
        return (dt.date(year, month, 1).toordinal() - dt.date(1970, 1, 1).toordinal()) * 86_400 * 10**18
    length = {"W": 7 * 86_400 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18}
    length |= {"s": 10**18, "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}
    return ticks * length[unit]


@given(st.sampled_from(WRITTEN), st.sampled_from(WRITTEN), st.sampled_from(UNITS))
@example("2024-02", "2024-02", "s")
@example("2023-12-31", "2024", "D")
def test_pairs_begin_with_the_first_instant_and_end_with_the_last(low: str, high: str, unit: str) -> None:
    if exact(limits(low)[0]) > exact(limits(high)[1]) - 1:
        low, high = high, low
    for text in (low, high):
        if not reaches(text, unit.lstrip("0123456789")):
            continue
        a = line(unit, limits(text)[0])
        ticks = a[...]
        step = int(datatype.step_of(a.schema.dims[0].dtype).removesuffix(unit.lstrip("0123456789")) or 1)
        instants = [exact(np.datetime64(int(tick) * step, unit.lstrip("0123456789"))) for tick in ticks]
        first, after = exact(limits(low)[0]), exact(limits(high)[1])
        expected = [int(t) for t, at in zip(ticks, instants, strict=True) if first <= at < after]
        assert a.read({"t": (low, high)}).to_numpy()["v"].tolist() == expected
        assert a.read({"t": slice(low, high)}).to_numpy()["v"].tolist() == expected
        assert a.read((slice(low, high),)).to_numpy()["v"].tolist() == expected
        assert a.loc[low:high].tolist() == expected


@pytest.mark.parametrize(
    ("unit", "text", "first", "last"),
    [
        ("D", "2024-02", "2024-02-01", "2024-02-29"),
        ("D", "2023-02", "2023-02-01", "2023-02-28"),
        ("D", "1900-02", "1900-02-01", "1900-02-28"),
        ("D", "2000-02", "2000-02-01", "2000-02-29"),
        ("h", "2023-12-31", "2023-12-31T00", "2023-12-31T23"),
        ("s", "2023-12-31T23", "2023-12-31T23:00:00", "2023-12-31T23:59:59"),
        ("M", "2024", "2024-01", "2024-12"),
        ("ms", "1969-12-31T23:59:59", "1969-12-31T23:59:59.000", "1969-12-31T23:59:59.999"),
        ("15m", "2024-02-29T06", "2024-02-29T06:00", "2024-02-29T06:45"),
        ("ns", "1970-01-01T00:00:00.5", "1970-01-01T00:00:00.500000000", "1970-01-01T00:00:00.500999999"),
    ],
)
def test_one_period_selects_itself(unit: str, text: str, first: str, last: str) -> None:
    name = f"datetime64[{unit}]"
    ends = [np.datetime64(end).astype(name) for end in (first, last)]
    dims = [gs.Dim("t", (ends[0] - 3, ends[1] + 3), dtype=name)]
    sparse = made("one", gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True))
    edges = np.array([ends[0] - 1, ends[0], ends[1], ends[1] + 1])
    sparse.write_cells({"t": edges}, {"v": np.arange(4)})
    for look in (text, (text, text), slice(text, text)):
        assert sparse.read({"t": look})["v"].tolist() == [1, 2]
    assert sparse.loc[text]["v"].tolist() == sparse.loc[text:text]["v"].tolist() == [1, 2]
    assert sparse.read(where=f"t in period('{text}')")["v"].tolist() == [1, 2]
    assert sparse.read(where=f"t not in period('{text}')")["v"].tolist() == [0, 3]
    assert sparse.delete({"t": text}) and sparse.read()["v"].tolist() == [0, 3]


def test_a_single_coordinate_drops_its_axis_and_a_longer_period_keeps_it() -> None:
    a = made(
        "drop",
        gs.Schema([gs.Dim("t", ("2026-01", "2026-12"), dtype="M8[D]"), gs.Dim("x", (0, 2))], [gs.Attr("v", "i4")]),
    )
    assert a.shape == (365, 3)
    a[...] = np.arange(365 * 3).reshape(365, 3)
    assert a.loc["2026-02"].shape == (28, 3) and a.loc["2026"].shape == (365, 3)
    for day in ("2026-02-01", "2026-02-01T00", "20260201", dt.date(2026, 2, 1), np.datetime64("2026-02-01")):
        assert a.loc[day].tolist() == a[31].tolist()
    assert a.loc[np.datetime64("2026-02")].tolist() == a[31].tolist()  # An instant: the first of February.
    with pytest.raises(gs.InputError, match="no coordinate"):
        a.loc["2026-02-01T12"]
    a.loc["2026-02"] = 7
    a.loc["2026-03-01":"2026-03-03", 1] = 8
    assert (a[31:59] == 7).all() and (a[59:62, 1] == 8).all() and a[62, 1] == 62 * 3 + 1
    assert a.read({"t": "2026-02"}).shape == (28, 3)


def test_only_texts_and_dates_are_periods() -> None:
    hours = np.arange("2026-03-01", "2026-03-04", dtype="M8[h]")
    a = made("kinds", gs.Schema([gs.Dim("t", (hours[0], hours[-1]), dtype="M8[h]")], [gs.Attr("v", "i4")]))
    a.write(np.arange(72))
    whole, instant = list(range(24, 48)), [24]
    for day in ("2026-03-02", dt.date(2026, 3, 2)):
        assert a.read({"t": (day, day)}).to_numpy()["v"].tolist() == whole
        assert a.loc[day:day].tolist() == a.loc[day].tolist() == whole
    for moment in (dt.datetime(2026, 3, 2), np.datetime64("2026-03-02"), pd.Timestamp("2026-03-02")):
        assert a.read({"t": (moment, moment)}).to_numpy()["v"].tolist() == instant
        assert a.loc[moment:moment].tolist() == [] and a.loc[moment] == 24
    assert a.points({"t": ["2026-03-02"]})["v"].tolist() == instant
    assert (
        a.read(where="t = '2026-03-02'")["v"].tolist()
        == a.read(where="t between '2026-03-02' and '2026-03-02'")["v"].tolist()
        == instant
    )
    assert a.read(where="date(t) = '2026-03-02'")["v"].tolist() == a.read(where="day(t) = 2")["v"].tolist() == whole
    assert a.read(where="t in period('2026-03-02')")["v"].tolist() == whole
    b = made("cells", gs.Schema([gs.Dim("t", (hours[0], hours[-1]), dtype="M8[h]")], [gs.Attr("v", "i4")], sparse=True))
    b.write_cells({"t": ["2026-03-02"]}, {"v": [1]})
    assert b.read()["t"].tolist() == [dt.datetime(2026, 3, 2)]
    assert b.delete(coords={"t": ["2026-03-02"]}) and len(b.read()) == 0


def test_labels_take_dates_as_days() -> None:
    hours = np.arange("2026-03-01", "2026-03-04", dtype="M8[h]")
    a = gs.array("mem://labelled", np.arange(72), dims=["t"], coords={"t": hours}, name="v")
    for day in ("2026-03-02", dt.date(2026, 3, 2)):
        assert a.sel(t=day)["v"].tolist() == a.sel(t=slice(day, day))["v"].tolist() == list(range(24, 48))
    assert a.sel(t=dt.datetime(2026, 3, 2))["v"] == 24
    assert a.sel(t="2026-03-02", method="nearest")["v"] == 24


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("text", ["2024-02", "2024", "2023-12-31", "2024-02-29T23"])
def test_domains_end_with_the_last_instant(unit: str, text: str) -> None:
    name, plain = f"datetime64[{unit}]", unit.lstrip("0123456789")
    if not reaches(text, plain):
        return
    step = int(unit.removesuffix(plain) or 1)
    begin, after = (exact(end) for end in limits(text))
    try:
        dim = gs.Dim("t", (0, text), dtype=name)
    except gs.SchemaError:
        # A period that is finer than the type, and no value of it.
        assert exact(limits(text)[0].astype(name).astype(f"M8[{plain}]")) != begin
        return
    last = int(dim.domain[1].astype(np.int64))
    ends = [exact(np.datetime64(tick * step, plain)) for tick in (last, last + 1)]
    assert ends[0] <= max(begin, after - 1) < ends[1] or ends[0] == begin


def test_domains_of_every_kind() -> None:
    a = made("grow", gs.Schema([gs.Dim("t", ("2026-03", "2026-03"), dtype="M8[s]")], [gs.Attr("v", "i4")]))
    assert a.domain[0][1] == np.datetime64("2026-03-31T23:59:59")
    a.resize(t=("2026-03", "2026-04"))
    assert a.domain[0] == (np.datetime64("2026-03-01T00:00:00"), np.datetime64("2026-04-30T23:59:59"))
    with pytest.raises(gs.SchemaError):
        a.resize(t=("2026-03", "2026-03"))
    a.write(1, {"t": ("2026-04-30", "2026-04-30")})
    assert a.loc["2026-04-30"].sum() == 86_400
    a.write(np.ones(86_400), {"t": ("2026-05-01", "2026-05-01")}, grow=True)
    assert a.domain[0][1] == np.datetime64("2026-05-01T23:59:59")


def test_a_load_takes_domains_that_are_written(tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("t,v\n2026-03-01T05:00:00,1\n2026-03-02T06:00:00,2\n")
    a = gs.io.from_csv(tmp_path / "a.gs", tmp_path / "a.csv", dims=["t"], domain={"t": ("2026-03", "2026-03-31")})
    unit = np.datetime_data(a.schema.dims[0].dtype)[0]
    assert a.domain[0][1] == np.datetime64("2026-04-01", unit) - 1
    again = gs.io.from_csv(a.uri, tmp_path / "a.csv", domain={"t": ("2026-03", "2026-03-31")})
    assert len(again.read()) >= 2


def test_at_a_written_time_is_at_its_end() -> None:
    a = made("at", gs.Schema([gs.Dim("x", (0, 3))], [gs.Attr("v", "i4")]))
    a[...] = 1
    now = a.timestamp
    for text in (f"{now:%Y}", f"{now:%Y-%m}", f"{now:%Y-%m-%d}", f"{now:%Y-%m-%dT%H}", f"{now:%Y-%m-%d %H:%M}"):
        assert a.at(timestamp=text).version == a.version
    assert a.at(timestamp=now.date()).version == a.version
    assert a.at(timestamp=f"{now:%Y-%m-%dT%H:%M:%S.%f}").version == a.version
    with pytest.raises(gs.NotFoundError):
        a.at(timestamp=np.datetime64(f"{now:%Y-%m-%d}"))  # An instant: midnight.
    with pytest.raises(gs.InputError, match="not 'May'"):
        a.at(timestamp="May")


@given(st.sampled_from(WRITTEN), st.sampled_from(UNITS))
def test_the_last_value_of_a_type_is_the_last_before_the_next_period(text: str, unit: str) -> None:
    name, plain = f"datetime64[{unit}]", unit.lstrip("0123456789")
    step = int(unit.removesuffix(plain) or 1)
    found = period.last_value(name, text)
    begin, after = (exact(end) for end in limits(text))
    if found is text:
        return
    at, following = (
        exact(np.datetime64(tick * step, plain)) if abs(tick * step) < 2**63 else None for tick in (found, found + 1)
    )
    assert at is not None and begin - 400 * 86_400 * 10**18 < at < after
    assert following is None or following >= after


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"])
@pytest.mark.parametrize("unit", ["D", "m", "6h"])
def test_today_is_the_day_in_utc_and_now_is_no_date(zone: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the program runs: stored times are UTC. NumPy takes the local day, and the second for `now`."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        before = np.datetime64(dt.datetime.now(dt.UTC).date())
        days = (before - 3, before + 3)
        a = made("today", gs.Schema([gs.Dim("t", days, dtype=f"datetime64[{unit}]")], [gs.Attr("v", "int64")]))
        a.write(np.arange(a.shape[0]))
        for text in ("today", "TODAY"):
            found = a.read({"t": text})["t"].astype("M8[D]")
            day = np.datetime64(dt.datetime.now(dt.UTC).date())
            assert set(found) in ({before}, {day}) and len(found) == {"D": 1, "6h": 4, "m": 1_440}[unit]
            ends = slice(text, text)
            assert len(a.loc[ends]) == len(found) == len(a.sel(t=ends)["t"])
        assert a.at(timestamp="today").version == a.version
        for text in ("now", "Now"):
            calls: list[Any] = [
                lambda text=text: a.read({"t": text}),
                lambda text=text: a.loc[slice("2026", text)],
                lambda text=text: a.at(timestamp=text),
                lambda text=text: a.points({"t": [text]}),
                lambda text=text: gs.Dim("t", ("2020", text), dtype=f"datetime64[{unit}]"),
            ]
            for call in calls:
                with pytest.raises((gs.InputError, gs.SchemaError), match=f"'{text}'"):
                    call()
    finally:
        monkeypatch.undo()
        time.tzset()
