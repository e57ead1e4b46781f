"""What the placeholders of a query stand for, as DuckDB binds it."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.arguments import is_iterable
from ..base.printable import brief
from ..errors import InputError
from .engine import duckdb_module

_ATTOSECONDS = {
    "W": 604_800 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18, "s": 10**18,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}  # fmt: skip
_MICROSECOND, _NANOSECOND = 10**12, 10**9
_MONTHS = {"Y": 12, "M": 1}
_DAYS_MAX, _MONTHS_MAX, _TICKS_MAX = 2**31 - 2, 2**31 - 1, 2**63 - 2
_NANOSECONDS_MIN = -9_223_286_400 * 10**9
"""DuckDB's earliest moment in nanoseconds, 1677-09-22."""
_YEARS_MAX = 6_000_000
"""More years than any date of DuckDB has."""


def parameters(params: Any) -> Any:
    """What the placeholders of a query stand for: a list for `?` and `$1`, a mapping for `$name`."""
    if params is None:
        return None
    if isinstance(params, Mapping):
        strange = next((name for name in params if not isinstance(name, str)), None)
        if strange is not None:
            raise InputError(f"params= has names for $name, found {brief(strange)}")
        return {name: _plain(value) for name, value in params.items()}
    if isinstance(params, str | bytes) or not is_iterable(params):
        raise InputError(
            f"params= takes a list of values for ? and $1, or a mapping for $name, found {brief(params)}; one value is "
            f"a list of one: [{brief(params)}]"
        )
    return [_plain(value) for value in params]


def _plain(value: Any) -> Any:
    """A value that DuckDB binds as what it is: it takes some of NumPy's for plain integers, and cuts those of pandas.

    Raises:
        InputError: a time, or a difference of times, that DuckDB does not have exactly.
    """
    if value is np.ma.masked:
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _plain(value[()])
    if isinstance(value, list | tuple) or _is_listed(value):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, np.datetime64):
        return _moment(value)
    if isinstance(value, np.timedelta64):
        return _span(value)
    if hasattr(value, "to_datetime64"):
        return _moment(value.to_datetime64(), zoned=value.tzinfo is not None)
    if hasattr(value, "to_timedelta64"):
        return _span(value.to_timedelta64())
    return value.item() if isinstance(value, np.generic) and value.dtype.itemsize <= 8 else value


def _is_listed(value: Any) -> bool:
    """Whether it is an array whose entries DuckDB does not take for what they are."""
    return isinstance(value, np.ma.MaskedArray) or (isinstance(value, np.ndarray) and value.dtype.kind in "mMO")


def _ticks(value: Any) -> tuple[int, str]:
    """How many of which unit a time of NumPy has."""
    unit, count = np.datetime_data(value.dtype)
    return int(value.astype(np.int64)) * count, unit


def _moment(value: Any, *, zoned: bool = False) -> Any:
    """A date or a moment; `zoned`: in UTC. Python's go as such, others have types of DuckDB's own."""
    if np.isnat(value):
        return None
    ticks, unit = _ticks(value)
    duckdb = duckdb_module("params=")
    if unit in ("Y", "M", "W", "D"):
        return _day(value, ticks, unit)
    attoseconds = ticks * _ATTOSECONDS[unit]
    microseconds, rest = divmod(attoseconds, _MICROSECOND)
    if rest == 0 and abs(microseconds) <= _TICKS_MAX:
        found = np.datetime64(microseconds, "us")
        plain = found.item()
        if isinstance(plain, dt.datetime):
            return plain.replace(tzinfo=dt.UTC) if zoned else plain
        return (
            duckdb.TimestampTimeZoneValue(_written(found) + "+00") if zoned else duckdb.TimestampValue(_written(found))
        )
    nanoseconds, rest = divmod(attoseconds, _NANOSECOND)
    if rest == 0 and _NANOSECONDS_MIN <= nanoseconds <= _TICKS_MAX:
        text = _written(np.datetime64(nanoseconds, "ns"))
        return _zoned_nanoseconds(value, text) if zoned else duckdb.TimestampNanosecondValue(text)
    raise InputError(
        f"params= has the moment {brief(value)}, which DuckDB does not have: its moments are whole microseconds from "
        f"290309 BC to 294247, or whole nanoseconds from 1677-09-22 to 2262-04-11; give a number or a text instead"
    )


def _zoned_nanoseconds(value: Any, text: str) -> Any:
    """A moment with a zone, in nanoseconds, for which DuckDB 1.4 has no type yet."""
    duckdb = duckdb_module("params=")
    try:
        return duckdb.Value(text + "+00", duckdb.sqltype("TIMESTAMPTZ_NS"))
    except (duckdb.Error, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"params= has the moment {brief(value)} with a zone; those of DuckDB {duckdb.__version__} have whole "
            f"microseconds: round it, or give it without the zone"
        ) from error


def _day(value: Any, ticks: int, unit: str) -> Any:
    """A date."""
    year, month = divmod(ticks * _MONTHS.get(unit, 0), 12)
    days = ticks * _ATTOSECONDS.get(unit, 0) // _ATTOSECONDS["D"]
    if abs(year) <= _YEARS_MAX and unit in _MONTHS:
        days = int(np.datetime64(12 * year + month, "M").astype("datetime64[D]").astype(np.int64))
    if abs(year) > _YEARS_MAX or abs(days) > _DAYS_MAX:
        raise InputError(
            f"params= has the date {brief(value)}, which DuckDB does not have: its dates are from 5877642-06-25 BC to "
            f"5881580-07-10; give a number or a text instead"
        )
    found = np.datetime64(days, "D")
    plain: Any = found.item()
    return plain if isinstance(plain, dt.date) else duckdb_module("params=").DateValue(_written(found))


def _written(moment: Any) -> str:
    """A moment as DuckDB reads it. It has no year 0: the one before 1 is 1 BC."""
    date, _, time = str(moment).partition("T")
    before, year, rest = date.startswith("-"), *date.removeprefix("-").split("-", 1)
    if before or int(year) == 0:
        date = f"{int(year) + 1:04}-{rest} (BC)"
    return f"{date} {time}".rstrip()


def _span(value: Any) -> Any:
    """A difference of times."""
    if np.isnat(value):
        return None
    ticks, unit = _ticks(value)
    if unit == "generic":
        raise InputError(
            f"params= has the difference {brief(value)}, which has no unit; give it one, such as "
            f'numpy.timedelta64({ticks}, "s")'
        )
    if unit in _MONTHS and abs(ticks * _MONTHS[unit]) <= _MONTHS_MAX:
        return duckdb_module("params=").IntervalValue(f"{ticks * _MONTHS[unit]} months")
    microseconds, rest = divmod(ticks * _ATTOSECONDS.get(unit, 0), _MICROSECOND)
    if rest:
        raise InputError(f"params= has a difference of {brief(value)}; DuckDB's intervals have whole microseconds")
    try:
        if unit not in _MONTHS:
            return dt.timedelta(microseconds=microseconds)
    except OverflowError:
        pass
    raise InputError(
        f"params= has a difference of {brief(value)}, which is longer than DuckDB's intervals: 999999999 days, or "
        f"2147483647 months"
    )
