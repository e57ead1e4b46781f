"""Dates and times of day in CSV: those that Python's `strptime` takes, in the zone that the tz database tells."""

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.io import Rejected, date_formats, from_csv, zones

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def put(folder: Path, text: str, name: str = "a.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def schema(dtype: str, **options: Any) -> gs.Schema:
    return gs.Schema([gs.Dim("x", (0, 999))], [gs.Attr("t", dtype, **options)], sparse=True)


def by_python(text: str, form: str) -> tuple[bool, int, int, bool]:
    """Whether `strptime` takes a text, its seconds and microseconds since 1970, and whether it has an offset."""
    try:
        found = datetime.strptime(text, form)
    except ValueError:
        return False, 0, 0, False
    aware = found.tzinfo is not None
    since = (found if aware else found.replace(tzinfo=UTC)) - EPOCH
    return True, since.days * 86_400 + since.seconds, since.microseconds, aware


def by_scan(texts: list[str], forms: list[str]) -> list[tuple[Any, ...]]:
    found = date_formats.read(pa.array(texts, pa.string()), forms)
    return list(zip(*(column.tolist() for column in found[:4]), strict=True))


FORMATS = [
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M:%S.%f", "%m/%d/%y", "%Y%m%d", "%Y%m%dT%H%M%S", "%d-%b-%Y",
    "%I:%M:%S %p, %d %b %Y", "%Y-%m-%dT%H:%M:%S%z", "%H:%M", "%Y-%j", "%G-W%V-%u", "%Y %U %w", "%B %d, %Y",
    "%a %d %b %y",
    "%d %m %Y", "day %d of %m in %Y", "%Y-%m-%d%%", "%f", "%y%m", "%d.%m.", "%S.%f", "%Y", "%m/%Y", "%c", " %d.%m.%Y",
    "%d  %m %Y", "%d\t%m\t%Y",
]  # fmt: skip
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)) | st.datetimes(
    datetime(1960, 1, 1), datetime(2080, 1, 1)
)
changes = st.lists(st.tuples(st.integers(0, 40), st.sampled_from("0123 9.:/-+TZamPtJ\t٣é_")), max_size=2)


def spoiled(text: str, edits: list[tuple[int, str]], way: int) -> str:
    """A text with some characters replaced, put in or left out."""
    for place, char in edits:
        at = place % (len(text) + 1)
        text = text[:at] + (char if way else "") + text[at + (way < 2) :]
    return text


@given(
    form=st.sampled_from(FORMATS),
    rows=st.lists(st.tuples(moments, changes, st.integers(0, 2), st.booleans()), min_size=1, max_size=8),
)
def test_every_text_is_what_strptime_makes_of_it(
    form: str, rows: list[tuple[datetime, list[tuple[int, str]], int, bool]]
) -> None:
    texts = []
    for moment, edits, way, bare in rows:
        text = moment.replace(tzinfo=UTC).strftime(form)
        text = text.replace("+0000", ["Z", "+05:30", "-0315"][way])
        texts.append(spoiled(text.replace(".0", ".").replace("/0", "/") if bare else text, edits, way))
    assert by_scan(texts, [form]) == [by_python(text, form) for text in texts]


@given(
    forms=st.lists(st.sampled_from(FORMATS), min_size=1, max_size=3),
    rows=st.lists(st.tuples(moments, st.sampled_from(FORMATS)), min_size=1, max_size=6),
)
def test_the_first_format_that_takes_a_text_wins(forms: list[str], rows: list[tuple[datetime, str]]) -> None:
    texts = [moment.replace(tzinfo=UTC).strftime(form) for moment, form in rows]
    first = [next((r for form in forms if (r := by_python(text, form))[0]), (False, 0, 0, False)) for text in texts]
    assert by_scan(texts, forms) == first


WRONG = [
    ("%d.%m.%Y", "31.02.2020", "28.02.2020"),
    ("%d.%m.%Y", "29.02.2100", "29.02.2000"),
    ("%d.%m.%Y", "00.01.2020", "1.1.2020"),
    ("%d.%m.%Y", "01.13.2020", "01.12.2020"),
    ("%d.%m.%Y %H:%M", "01.01.2020 24:00", "01.01.2020 23:59"),
    ("%Y-%m-%d %H:%M:%S", "2016-12-31 23:59:60", "2016-12-31 23:59:59"),
    ("%m/%d/%y", "02/30/69", "02/28/69"),
    ("%d %B %Y", "31 June 2020", "30 june 2020"),
    ("%a %d %b %Y", "Tue 31 Jun 2020", "Tue 30 Jun 2020"),
    ("%Y-%m-%dT%H:%M:%S%z", "2020-01-01T00:00:00+25:00", "2020-01-01T00:00:00+05:30"),
]


@pytest.mark.parametrize(("form", "wrong", "right"), WRONG)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize("typed", [True, False], ids=["schema", "inferred"])
def test_a_date_that_is_none_is_refused_with_its_row(
    tmp_path: Path, store_uri: str, form: str, wrong: str, right: str, block_bytes: int, typed: bool
) -> None:
    file = put(tmp_path, f"x,t\n1,{right}\n2,{wrong}\n3,{right}\n")
    options: dict[str, Any] = {"schema": schema("datetime64[s]")} if typed else {"dims": ["x"]}
    options |= {"times": [form], "block_bytes": block_bytes}
    with pytest.raises(gs.errors.InputError, match=r"line 3, column 't'.*ISO 8601"):
        from_csv(store_uri, file, **options)
    assert not gs.exists(store_uri)
    rejected: list[Rejected] = []
    array = from_csv(store_uri, file, **options, on_error="collect", rejected=rejected)
    assert [(row.line, row.column) for row in rejected] == [(3, "t")] and wrong in rejected[0].reason
    seconds = by_python(right, form)[1]
    assert array.read()["t"].astype("M8[s]").astype(int).tolist() == [seconds, seconds]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("%m/%d/%y", "01/02/68", "2068-01-02"),
        ("%m/%d/%y", "01/02/69", "1969-01-02"),
        ("%G-W%V-%u", "2020-W53-5", "2021-01-01"),
        ("%G-W%V-%u", "2020-W54-5", None),
        ("%Y-%j", "2020-366", "2020-12-31"),
        ("%Y-%j", "2020-367", None),
        ("%Y %U %w", "2020 01 1", "2020-01-06"),
        ("%Y%m%d", "2020131", "2020-01-31"),
        ("%d.%m.%Y", " 1.2.2020", "2020-02-01"),
        ("%d.%m.%Y", "1.2.2020 ", None),
        ("%d.%m.%Y", "1.2.20", None),
        ("%d.%m.%Y", "3.2.٢٠٢٠", "2020-02-03"),
        ("%d.%m.%Y", "٣.2.2020", None),
        ("%d-%b-%Y", "05-mAr-2020", "2020-03-05"),
        ("%H:%M", "10:30", "1900-01-01T10:30"),
        ("%I:%M %p", "12:30 am", "1900-01-01T00:30"),
    ],
)
def test_directives_mean_what_they_mean_to_python(
    tmp_path: Path, store_uri: str, form: str, text: str, expected: str | None
) -> None:
    file = put(tmp_path, f"x,t\n1,{text}\n")
    rejected: list[Rejected] = []
    array = from_csv(
        store_uri, file, schema=schema("datetime64[s]"), times=[form], on_error="collect", rejected=rejected
    )
    if by_python(text, form)[0] != (expected is not None):  # Older Pythons take a week or a day that a year has not.
        pytest.skip("this Python has other rules")
    assert array.read()["t"].tolist() == [] if expected is None else array.read()["t"][0] == np.datetime64(expected)
    assert [row.line for row in rejected] == ([2] if expected is None else [])


def test_words_among_dates_make_a_column_of_text(tmp_path: Path, stores: Stores) -> None:
    file = put(tmp_path, "x,t\n1,31.12.2025\n2,never\n")
    array = from_csv(stores("a"), file, dims=["x"], times=["%d.%m.%Y"])
    assert array.read()["t"].tolist() == ["31.12.2025", "never"]
    given = {"schema": schema("datetime64[D]"), "times": ["%d.%m.%Y"]}
    assert from_csv(stores("b"), file, **given, on_error="skip").read()["t"].astype(str).tolist() == ["2025-12-31"]


def test_formats_come_before_iso_8601(tmp_path: Path, stores: Stores) -> None:
    """A column that looks like ISO 8601 and is not, and one whose rows are in several forms."""
    file = put(tmp_path, "x,t,u\n1,2026-02-01,01.02.2026\n2,2026-12-03,2026-02-03 04:05:06\n")
    for block_bytes in (1, 1 << 20):
        options: dict[str, Any] = {"times": ["%Y-%d-%m", "%d.%m.%Y"], "block_bytes": block_bytes}
        array = from_csv(stores(f"a{block_bytes}"), file, dims=["x"], **options)
        assert array.read()["t"].astype("M8[D]").astype(str).tolist() == ["2026-01-02", "2026-03-12"]
        assert array.read()["u"].astype(str).tolist() == ["2026-02-01T00:00:00", "2026-02-03T04:05:06"]


@pytest.mark.parametrize(
    ("dtype", "text", "expected"),
    [
        ("datetime64[us]", "01.02.2026 03:04:05.25", "2026-02-01T03:04:05.250000"),
        ("datetime64[ms]", "01.02.2026 03:04:05.25", "2026-02-01T03:04:05.250"),
        ("datetime64[ns]", "01.02.2026 03:04:05.000001", "2026-02-01T03:04:05.000001000"),
        ("datetime64[s]", "01.02.2026 03:04:05.000000", "2026-02-01T03:04:05"),
        ("datetime64[s]", "01.02.2026 03:04:05.25", None),
        ("datetime64[ms]", "01.02.2026 03:04:05.0001", None),
        ("datetime64[ns]", "01.02.1500 03:04:05.0", None),
        ("datetime64[us]", "01.02.1500 03:04:05.5", "1500-02-01T03:04:05.500000"),
    ],
)
def test_fractions_of_seconds(tmp_path: Path, stores: Stores, dtype: str, text: str, expected: str | None) -> None:
    file, form = put(tmp_path, f"x,t\n1,{text}\n"), "%d.%m.%Y %H:%M:%S.%f"
    if expected is None:
        with pytest.raises(gs.errors.InputError, match="line 2, column 't'"):
            from_csv(stores("a"), file, schema=schema(dtype), times=[form])
        return
    assert from_csv(stores("b"), file, schema=schema(dtype), times=[form]).read()["t"].astype(str).tolist() == [
        expected
    ]
    inferred = from_csv(stores("c"), file, dims=["x"], times=[form]).read()["t"]
    assert inferred[0] == np.datetime64(expected)


@pytest.mark.parametrize("form", ["%Q", "%", "%d %d", 5])
def test_what_is_no_format_is_told_at_once(tmp_path: Path, store_uri: str, form: Any) -> None:
    with pytest.raises(gs.errors.InputError, match="times="):
        from_csv(store_uri, put(tmp_path, "x,t\n1,2\n"), dims=["x"], times=[form])
    with pytest.raises(gs.errors.InputError, match="times= is a list"):
        from_csv(store_uri, put(tmp_path, "x,t\n1,2\n"), dims=["x"], times="%d.%m.%Y")  # type: ignore[arg-type]


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu", "UTC"]
seconds = st.one_of(
    st.integers(-62_135_596_800, 253_402_300_799),
    st.integers(0, 4_000_000_000),
    # Around the days when clocks change.
    st.builds(
        lambda year, day, second: year * 31_556_952 + day * 86_400 + second,
        st.integers(0, 130),
        st.integers(80, 90),
        st.integers(0, 86_399),
    ),
)


@given(zone=st.sampled_from(ZONES), local=st.lists(seconds, min_size=1, max_size=20))
def test_offsets_are_those_of_the_tz_database(zone: str, local: list[int]) -> None:
    found = zones.offsets(np.array(local), zone)
    for at, offset, doubtful in zip(local, found.seconds.tolist(), found.doubtful.tolist(), strict=True):
        naive = datetime(1970, 1, 1) + timedelta(seconds=at)
        early, late = (naive.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1))
        assert timedelta(seconds=offset) == early and doubtful == (early != late)


@pytest.mark.parametrize("year", [1, 1850, 1945, 1979, 2020, 2037, 2038, 2050, 2400, 9998])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_local_times_of_every_year(tmp_path: Path, stores: Stores, year: int, zone: str) -> None:
    local = [datetime(year, month, 15, 12, 30) for month in range(1, 13)]
    text = "x,t\n" + "".join(f"{i},{moment.isoformat()}\n" for i, moment in enumerate(local))
    wanted = [moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None) for moment in local]
    for name, options in (("a", {"dims": ["x"]}), ("b", {"schema": schema("datetime64[us]")})):
        array = from_csv(stores(name), put(tmp_path, text), timezone=zone, **options)
        assert array.read()["t"].astype("M8[us]").tolist() == wanted


def test_clocks_that_change_after_2037(tmp_path: Path, stores: Stores) -> None:
    """The hours that summer time skips and repeats in 2045, whose rows are named."""
    rows = ["2045-03-26T02:30:00", "2045-10-29T02:30:00", "2045-03-26T03:30:00"]
    text = "x,t\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows))
    rejected: list[Rejected] = []
    options: dict[str, Any] = {"timezone": "Europe/Berlin", "on_error": "collect", "rejected": rejected}
    array = from_csv(stores("a"), put(tmp_path, text), dims=["x"], **options)
    assert [row.line for row in rejected] == [2, 3]
    assert array.read()["t"].astype(str).tolist() == ["2045-03-26T01:30:00"]


@pytest.mark.parametrize("typed", [True, False])
def test_offsets_in_formats_win_over_the_zone(tmp_path: Path, stores: Stores, typed: bool) -> None:
    form, texts = (
        "%d.%m.%Y %H:%M:%S %z",
        ["01.07.2050 12:00:00 +0000", "01.07.2050 12:00:00 +05:30", "01.07.2050 12:00:00 Z"],
    )
    text = "x,t\n" + "".join(f"{i},{row}\n" for i, row in enumerate(texts))
    options: dict[str, Any] = {"schema": schema("datetime64[s]")} if typed else {"dims": ["x"]}
    array = from_csv(stores("a"), put(tmp_path, text), times=[form], timezone="Europe/Berlin", **options)
    wanted = ["2050-07-01T12:00:00", "2050-07-01T06:30:00", "2050-07-01T12:00:00"]
    assert array.read()["t"].astype(str).tolist() == wanted


def test_dates_of_many_rows_and_blocks(tmp_path: Path, stores: Stores) -> None:
    days = [datetime(1999, 12, 25) + timedelta(days=i, seconds=i) for i in range(900)]
    text = "x,t,u\n" + "".join(
        f"{i},{day:%d.%m.%Y %H:%M:%S},{day.day}.{day.month}.{day.year}\n" for i, day in enumerate(days)
    )
    for block_bytes, (name, more) in itertools.product((100, 1 << 20), (("i", {"dims": ["x"]}), ("s", {}))):
        attrs = [gs.Attr("t", "datetime64[s]"), gs.Attr("u", "datetime64[D]")]
        given = more or {"schema": gs.Schema([gs.Dim("x", (0, 999))], attrs, sparse=True)}
        forms = ["%d.%m.%Y %H:%M:%S", "%d.%m.%Y"]
        array = from_csv(
            stores(f"{name}{block_bytes}"), put(tmp_path, text), times=forms, block_bytes=block_bytes, **given
        )
        found = array.read()
        assert found["t"].astype("M8[us]").tolist() == days
        assert found["u"].astype("M8[D]").tolist() == [day.date() for day in days]


@pytest.mark.parametrize("wrong", ["2026-02-31", "never"])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_times_with_a_mistake_among_them_make_no_dimension_of_texts(
    tmp_path: Path, stores: Stores, wrong: str, block_bytes: int
) -> None:
    file = put(tmp_path, f"t,v\n2026-01-01,1\n{wrong},2\n2026-01-03T10:00:00,3\n")
    with pytest.raises(gs.errors.UnsupportedError, match=r"'t' has .*times and others.*dtype='string'"):
        from_csv(stores("a"), file, dims=["t"], block_bytes=block_bytes)
