"""Times on one scale of Python's integers: attoseconds since 1970. NumPy's own casts wrap where a unit does not reach.

The calendar repeats after 400 years, which are 146,097 days: years beyond NumPy's reach are found in the first cycle.
"""

import numpy as np

_ATTOSECONDS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15, "s": 10**18}
_DAY = 86_400 * _ATTOSECONDS["s"]
_ATTOSECONDS |= {"m": 60 * 10**18, "h": 3_600 * 10**18, "D": _DAY, "W": 7 * _DAY}
_MONTHS = {"M": 1, "Y": 12}


def instant_of(ticks: int, unit: str, is_span: bool) -> int:
    """Attoseconds since 1970, or of a span; the months of one in months."""
    if unit not in _MONTHS:
        return ticks * _ATTOSECONDS[unit]
    months = ticks * _MONTHS[unit]
    return months if is_span else _days(months) * _DAY


def ticks_of(instant: int, unit: str, is_span: bool) -> int:
    """The last tick of `unit` that is not after `instant`."""
    if unit not in _MONTHS:
        return instant // _ATTOSECONDS[unit]
    return (instant if is_span else _month(instant // _DAY)) // _MONTHS[unit]


_CYCLE = 146_097
"""Days of 400 years, after which the calendar repeats."""


def _days(months: int) -> int:
    """The days from 1970-01-01 to the first of the month that is so many months later."""
    cycles, month = divmod(months, 4_800)
    return cycles * _CYCLE + int(np.datetime64(month, "M").astype("datetime64[D]").astype(np.int64))


def _month(day: int) -> int:
    """The months from 1970-01 to the one that holds this day."""
    cycles, rest = divmod(day, _CYCLE)
    return cycles * 4_800 + int(np.datetime64(rest, "D").astype("datetime64[M]").astype(np.int64))


def in_months(unit: str) -> bool:
    """Whether a unit is a number of months, which have no fixed number of days."""
    return unit in _MONTHS
