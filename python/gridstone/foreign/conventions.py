"""The conventions of NetCDF ("CF"): fill values, packed numbers and times, by xarray's rules of types."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .values import Stored

_UNITS = {
    "microsecond": 1, "microsec": 1, "us": 1, "millisecond": 10**3, "millisec": 10**3, "msec": 10**3, "ms": 10**3,
    "second": 10**6, "sec": 10**6, "s": 10**6, "minute": 60 * 10**6, "min": 60 * 10**6,
    "hour": 3600 * 10**6, "hr": 3600 * 10**6, "h": 3600 * 10**6, "day": 86400 * 10**6, "d": 86400 * 10**6,
}  # fmt: skip
_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_SINCE = re.compile(
    r"\s*(?P<unit>[A-Za-z]+)\s+since\s+(?P<y>\d{1,4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
    r"(?:[T\s]+(?P<H>\d{1,2}):(?P<M>\d{1,2})(?::(?P<S>\d{1,2})(?:\.(?P<f>\d{1,6})\d*)?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|(?P<sign>[+-])(?:(?P<zh>\d{1,2}):(?P<zm>\d{2})|(?P<h4>\d{3,4})|(?P<h2>\d{1,2})))?\s*",
    re.IGNORECASE,
)
_FIRST_GREGORIAN = (1582, 10, 15)
_DECODED = ("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "units", "calendar")


@dataclass(frozen=True)
class Decoded:
    """A value as conventions show it."""

    stored: Stored
    nullable: bool
    encoding: Mapping[str, Any]
    """The attributes that are decoded, as they are in the file."""


def decoded(stored: Stored, attributes: Mapping[str, Any]) -> Decoded:
    """A number as its attributes say it is meant; other values unchanged."""
    if not stored.is_number:
        return Decoded(stored, False, {})
    given = {name: attributes[name] for name in _DECODED if name in attributes}
    stored, taken = _unsigned(stored, given)
    steps: list[Mapping[str, Any]] = []
    if nulls := _nulls(stored, given):
        steps.append({"step": "null", "values": nulls})
        taken |= {"_FillValue", "missing_value"}
    packed = _scale(stored, given)
    time = _time(given)
    if packed and time:
        # Times that are packed too: the numbers, with all that is said of them.
        return Decoded(replace(stored, steps=tuple(steps)), bool(nulls), {n: v for n, v in given.items() if n in taken})
    if scale := packed:
        stored = replace(stored, dtype=f"float{8 * scale['width']}")
        steps.append(scale)
        taken |= {"scale_factor", "add_offset"}
    elif time:
        stored = replace(stored, dtype=time[0])
        steps.append(time[1])
        taken |= {"units", "calendar"}
    encoding = {name: value for name, value in given.items() if name in taken}
    return Decoded(replace(stored, steps=tuple(steps)), bool(nulls), encoding)


def _unsigned(stored: Stored, given: Mapping[str, Any]) -> tuple[Stored, set[str]]:
    flag = str(given.get("_Unsigned", "")).lower()
    if stored.kind == "int" and flag == "true":
        return replace(stored, kind="u_int", dtype=f"u{stored.dtype}"), {"_Unsigned"}
    if stored.kind == "u_int" and flag == "false":
        return replace(stored, kind="int", dtype=stored.dtype[1:]), {"_Unsigned"}
    return stored, set()


def _numpy(stored: Stored) -> np.dtype[Any]:
    return np.dtype({"int": "i", "u_int": "u", "float": "f"}[stored.kind] + str(stored.width))


def _nulls(stored: Stored, given: Mapping[str, Any]) -> list[str]:
    """The stored numbers that are null, their bits in hexadecimal digits; one that the type does not have is none."""
    own, found = _numpy(stored), []
    for name in ("_FillValue", "missing_value"):
        for value in np.atleast_1d(np.asarray(given.get(name, ()))).ravel():
            if not isinstance(value, np.number):
                continue
            made = _as(value, own)
            if made is not None:
                found.append(f"{int.from_bytes(made.astype(own.newbyteorder('<')).tobytes(), 'little'):x}")
    return list(dict.fromkeys(found))


def _as(value: Any, own: np.dtype[Any]) -> Any:
    """A fill value in the type of the values; None if it does not fit. One of the other sign counts by its bits."""
    if own.kind == "f":
        with np.errstate(over="ignore"):
            return own.type(value)
    if value.dtype.kind == "f" and (not np.isfinite(value) or value != np.floor(value)):
        return None
    whole, info, span = int(value), np.iinfo(own), 2 ** (8 * own.itemsize)
    if own.kind == "u" and -(span // 2) <= whole < 0:
        whole += span
    elif own.kind == "i" and span // 2 <= whole < span:
        whole -= span
    return own.type(whole) if info.min <= whole <= info.max else None


def _scale(stored: Stored, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The step that unpacks numbers; xarray's rules decide between float32 and float64."""
    factor, add = (_single(given.get(name)) for name in ("scale_factor", "add_offset"))
    if factor is None and add is None:
        return None
    widths = {value.dtype.itemsize if value.dtype.kind == "f" else 8 for value in (factor, add) if value is not None}
    width = 8 if add is not None and (factor is None or len(widths) > 1) else max(4, *widths)
    if stored.kind != "float" and stored.width == 4 and add is not None and factor is not None:
        width = 8
    if stored.kind == "float" and _masks_nothing(given):
        # Then xarray keeps the type that the file has.
        width = max(4, stored.width)
    return {"step": "scale", "factor": _bits(factor), "add": _bits(add), "width": width}


def _masks_nothing(given: Mapping[str, Any]) -> bool:
    """Whether there are fill values, and all are NaN."""
    fills = [np.atleast_1d(np.asarray(given[name])) for name in ("_FillValue", "missing_value") if name in given]
    return bool(fills) and all(one.dtype.kind == "f" and bool(np.isnan(one).all()) for one in fills)


def _single(value: Any) -> Any:
    if value is None:
        return None
    found = np.asarray(value).ravel()
    return found[0] if found.size == 1 and found.dtype.kind in "iuf" else None


def _bits(value: Any) -> dict[str, int] | None:
    if value is None:
        return None
    width = 4 if value.dtype == np.float32 else 8
    return {"bits": int(np.float64(value).view(np.uint64)), "width": width}


def _time(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The type of times and the step that makes them, if the units are those of a time of a standard calendar."""
    units, calendar = given.get("units"), str(given.get("calendar", "standard")).lower()
    found = _SINCE.fullmatch(units) if isinstance(units, str) else None
    if found is None or calendar not in _CALENDARS:
        return None
    name = found["unit"].lower()
    unit = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
    epoch = None if unit is None else _microseconds(found, calendar)
    if unit is None or epoch is None:
        return None
    return "datetime64[us]", {"step": "time", "factor": unit, "add": epoch}


def _microseconds(found: re.Match[str], calendar: str) -> int | None:
    """Microseconds from 1970 to the date in units; None if there is no such date."""
    year, month, day = int(found["y"]), int(found["m"]), int(found["d"])
    days = _days(year, month, day, calendar)
    if days is None:
        return None
    seconds = days * 86400 + int(found["H"] or 0) * 3600 + int(found["M"] or 0) * 60 + int(found["S"] or 0)
    return (seconds - _zone(found)) * 10**6 + int((found["f"] or "0").ljust(6, "0"))


def _days(year: int, month: int, day: int, calendar: str) -> int | None:
    if calendar != "proleptic_gregorian" and (year, month, day) < _FIRST_GREGORIAN:
        return _julian_days(year, month, day)
    try:
        return (dt.date(year, month, day) - dt.date(1970, 1, 1)).days
    except ValueError:
        return None


def _julian_days(year: int, month: int, day: int) -> int | None:
    """Days from 1970-01-01 to a date of the Julian calendar (E. G. Richards, Explanatory Supplement, 2013)."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    number = 367 * year - (7 * (year + 5001 + int((month - 9) / 7))) // 4 + (275 * month) // 9 + day + 1729777
    return number - 2440588


def _zone(found: re.Match[str]) -> int:
    """Seconds that the time zone is ahead of UTC: "+5:30", "+0530", "-9"."""
    if found["sign"] is None:
        return 0
    if found["h4"] is not None:
        hours, minutes = int(found["h4"][:-2]), int(found["h4"][-2:])
    else:
        hours, minutes = int(found["zh"] or found["h2"]), int(found["zm"] or 0)
    seconds = hours * 3600 + minutes * 60
    return -seconds if found["sign"] == "-" else seconds
