"""Dates and times that are written: periods of their last written unit."""

from typing import NamedTuple

import numpy as np

from ..base.printable import brief
from ..column import datatype
from ..errors import InputError
from .index import Index

_UNITS = datatype.TIME_UNITS
_FACTORS = (24, 60, 60, 1000, 1000, 1000, 1000, 1000, 1000)
"""How many of each unit from hours on make one of the unit before."""
_LOOKED_AT = 1 << 16


class Period(NamedTuple):
    """A time that is written."""

    begin: np.datetime64
    next: np.datetime64
    """The first moment after it."""
    unit: str


def written(what: str, text: str) -> Period:
    """The period of a text; an `InputError` that begins with `what` if it is no date or time."""
    try:
        begin = datatype.moment(text)
    except ValueError:
        begin = np.datetime64("NaT")
    if np.isnat(begin):
        raise InputError(
            f"{what}: {brief(text)} is no date or time; write 2026, 2026-03, 2026-03-05 or 2026-03-05T12:30"
        )
    unit = str(np.datetime_data(begin.dtype)[0])
    return Period(begin, begin + np.timedelta64(1, unit), unit)  # type: ignore[call-overload]


def is_longer(period: Period, index: Index) -> bool:
    """Whether a period is longer than what the labels tell apart."""
    return _UNITS.index(period.unit) < _UNITS.index(resolution(index))


def resolution(index: Index) -> str:
    """The longest unit that all labels are whole numbers of; at most a day, unless their type counts longer ones."""
    unit = datatype.unit_of(index.dtype)
    place = _UNITS.index(unit)
    if place <= _UNITS.index("D"):
        return unit
    several = int(datatype.step_of(index.dtype).removesuffix(unit) or 1)
    ticks = [int(index.ranked(rank)) * several for rank in range(min(index.count, _LOOKED_AT))]
    per = 1
    while place > _UNITS.index("D"):
        longer = per * _FACTORS[place - _UNITS.index("h")]
        if any(tick % longer for tick in ticks):
            break
        per, place = longer, place - 1
    return _UNITS[place]
