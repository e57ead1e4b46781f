"""Values on their way into a query and out of it: as what they are, or an error, never as something else."""

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import gridstone as gs

pytestmark = pytest.mark.filterwarnings("ignore::gridstone.NatWarning")


def _bound(value: Any) -> list[Any]:
    """A parameter as DuckDB knows it: its text and its type."""
    found = gs.sql("select ?::varchar as v, typeof(?) as t", [value, value])
    return [found[name].tolist()[0] for name in ("v", "t")]


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (np.datetime64("20000-01-01", "D"), "20000-01-01", "DATE"),
        (np.datetime64("-2024", "Y"), "2025-01-01 (BC)", "DATE"),
        (np.datetime64("0000-03-01", "D"), "0001-03-01 (BC)", "DATE"),
        (np.datetime64(2**31 - 2, "D"), "5881580-07-10", "DATE"),
        (np.datetime64(2 - 2**31, "D"), "5877642-06-25 (BC)", "DATE"),
        (np.datetime64("-5000-01-01", "s"), "5001-01-01 (BC) 00:00:00", "TIMESTAMP"),
        (np.datetime64(2**63 - 2, "us"), "294247-01-10 04:00:54.775806", "TIMESTAMP"),
        (np.datetime64(2 - 2**63, "us"), "290309-12-21 (BC) 19:59:05.224194", "TIMESTAMP"),
        (np.datetime64(10**6, "ps"), "1970-01-01 00:00:00.000001", "TIMESTAMP"),
        (np.datetime64(-1, "25s"), "1969-12-31 23:59:35", "TIMESTAMP"),
        (np.datetime64(10**3, "ps"), "1970-01-01 00:00:00.000000001", "TIMESTAMP_NS"),
        (np.array(5, "M8[ns]"), "1970-01-01 00:00:00.000000005", "TIMESTAMP_NS"),
        ([np.datetime64(5, "ns")], "['1970-01-01 00:00:00.000000005']", "TIMESTAMP_NS[]"),
        (np.array([5], "M8[ns]"), "['1970-01-01 00:00:00.000000005']", "TIMESTAMP_NS[]"),
        ({"a": np.datetime64(5, "ns")}, "{'a': '1970-01-01 00:00:00.000000005'}", "STRUCT(a TIMESTAMP_NS)"),
        (np.ma.array([1, 2], mask=[False, True]), "[1, NULL]", "INTEGER[]"),
        (pd.Timestamp(np.datetime64("20000-01-01", "s")), "20000-01-01 00:00:00", "TIMESTAMP"),
        (pd.Timestamp("2024-05-01T02", tz="Europe/Berlin"), "2024-05-01 00:00:00+00", "TIMESTAMP WITH TIME ZONE"),
        (np.timedelta64(5, "M"), "5 months", "INTERVAL"),
        (np.timedelta64(-2, "Y"), "-2 years", "INTERVAL"),
        (np.array(2, "m8[W]"), "14 days", "INTERVAL"),
        (np.array(True), "true", "BOOLEAN"),
    ],
)
def test_parameters_are_bound_as_what_they_are(value: Any, text: str, kind: str) -> None:
    assert _bound(value) == [text, kind]


@pytest.mark.parametrize(
    "value", [np.datetime64("NaT"), np.timedelta64("NaT"), pd.NaT, np.ma.masked, np.array("NaT", "M8[s]")]
)
def test_parameters_that_are_missing_are_null(value: Any) -> None:
    assert _bound(value) == [None, '"NULL"']


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.datetime64(1, "ps"), "which DuckDB does not have"),
        (np.datetime64(2**63 - 1, "us"), "which DuckDB does not have"),
        (np.datetime64(1 - 2**63, "us"), "which DuckDB does not have"),
        (np.datetime64(2**63 - 1, "ns"), "which DuckDB does not have"),
        (np.datetime64(2**62, "s"), "which DuckDB does not have"),
        (np.datetime64(2**31 - 1, "D"), "its dates are from"),
        (np.datetime64(2**62, "Y"), "its dates are from"),
        (np.datetime64(2**62, "W"), "its dates are from"),
        (np.timedelta64(2**62, "s"), "longer than DuckDB's intervals"),
        (np.timedelta64(2**62, "Y"), "longer than DuckDB's intervals"),
        (np.timedelta64(-(10**9), "D"), "longer than DuckDB's intervals"),
        (np.timedelta64(5), "has no unit"),
        (np.timedelta64(1, "ns"), "whole microseconds"),
        ([np.timedelta64(1, "as")], "whole microseconds"),
    ],
)
def test_times_that_duckdb_does_not_have_are_errors(value: Any, message: str) -> None:
    with pytest.raises(gs.InputError, match=message):
        gs.sql("select ?", [value])


def test_a_time_with_a_zone_keeps_its_nanoseconds_or_is_an_error() -> None:
    value = pd.Timestamp("2020-01-01T00:00:00.000000001", tz="Europe/Berlin")
    try:
        duckdb.sqltype("TIMESTAMPTZ_NS")
    except duckdb.Error:
        with pytest.raises(gs.InputError, match="with a zone"):
            _bound(value)
    else:
        assert _bound(value)[0] == "2019-12-31 23:00:00.000000001+00"
    moments = pd.DataFrame({"t": [value.floor("us")]})
    assert gs.sql("select t = ? as same from m", [value], m=moments)["same"].tolist() == [False]


def test_a_difference_in_months_is_added_to_a_date() -> None:
    found = gs.sql("select date '2024-01-31' + ? as t", [np.timedelta64(1, "M")])
    assert found["t"].tolist() == [dt.datetime(2024, 2, 29)]
    with pytest.raises(gs.InputError, match="interval of months, which have no fixed number of days"):
        gs.sql("select ?", [np.timedelta64(5, "M")])


def _answer(how: str, query: str, path: Path) -> Any:
    if how == "to":
        return gs.sql(query, to=path / "a.gs", dims=["d"]).read().to_arrow()["c"].to_pylist()
    return gs.sql(query, stream=how == "stream").to_arrow()["c"].to_pylist()


HOWS = pytest.mark.parametrize("how", ["result", "stream", "to"])


@HOWS
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("340282366920938463463374607431768211455::uhugeint", "column 'c' .* does not fit 64 bits; .* c::double"),
        ("170141183460469231731687303715884105728::uhugeint", "column 'c' .* does not fit 64 bits; .* c::double"),
        ("'infinity'::timestamp", "column 'c' .* infinity.* c::varchar"),
        ("'-infinity'::timestamp_ns", "column 'c' .* infinity.* c::varchar"),
        ("'infinity'::timestamptz", "column 'c' .* infinity.* c::varchar"),
        ("'-infinity'::date", "column 'c' .* infinity.* c::varchar"),
        ("['infinity'::date]", "column 'c' .* infinity.* c::varchar"),
    ],
)
def test_what_an_answer_cannot_hold_is_an_error(how: str, value: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(gs.InputError, match=message):
        _answer(how, f"select 1 as d, {value} as c", tmp_path)
    assert not gs.exists(tmp_path / "a.gs")


@HOWS
@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("5::uhugeint", 5),
        ("null::uhugeint", None),
        ("null::timestamp", None),
        ("[null::date]", [None]),
        ("timestamp '294247-01-10 04:00:54.775806'::varchar", "294247-01-10 04:00:54.775806"),
    ],
)
def test_what_an_answer_can_hold_is_given(how: str, value: str, held: Any, tmp_path: Path) -> None:
    assert _answer(how, f"select 1 as d, {value} as c", tmp_path) == [held]


@HOWS
def test_sums_above_int64_need_a_cast_unless_the_answer_is_whole(how: str, tmp_path: Path) -> None:
    query = "select 1 as d, sum(9223372036854775807) as c from range(2)"
    if how == "result":
        assert _answer(how, query, tmp_path) == [2**64 - 2]
    else:
        with pytest.raises(gs.InputError, match=r"column 'c' .* in a stream and with to=; .* c::ubigint"):
            _answer(how, query, tmp_path)
    assert _answer(how, query.replace("as c", "::ubigint as c"), tmp_path) == [2**64 - 2]
