"""What labels that are times tell apart: a written period that is longer than this chooses several positions."""

from ..column import datatype
from ..column.period import Period
from .index import Index

_UNITS = datatype.TIME_UNITS
_FACTORS = (24, 60, 60, 1000, 1000, 1000, 1000, 1000, 1000)
"""How many of each unit from hours on make one of the unit before."""
_LOOKED_AT = 1 << 16


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
