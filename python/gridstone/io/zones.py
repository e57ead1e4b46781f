"""Local times of a zone in UTC, by the tz database for every year: `zoneinfo` decides, beyond 2037 and long ago too.

The offset of a day at whose ends, and between them, it is the same holds all day. On the few days when clocks change
each distinct second is looked up. Before year 1 and after year 9999 the offsets of these years hold.
"""

from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from ..column.datatype import AnyArray

_DAY = 86_400
_PROBES = (0, 21_600, 43_200, 64_800, _DAY)
_EPOCH = datetime(1970, 1, 1)
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The seconds since 1970 that a `datetime` has."""


class Offsets(NamedTuple):
    """Seconds east of UTC."""

    seconds: AnyArray
    doubtful: AnyArray
    """Whether the zone's clocks skip the time, or show it twice."""


def offsets(local: AnyArray, zone: str) -> Offsets:
    """The offsets of local times, given as whole seconds since 1970 as clocks show them."""
    found = ZoneInfo(zone)
    days, at = np.unique(local // _DAY, return_inverse=True)
    made = [_of_day(int(day) * _DAY, found) for day in days]
    steady = np.array([offset is not None for offset in made], np.bool_)
    seconds = np.array([offset or 0 for offset in made], np.int64)[at]
    doubtful = np.zeros(len(local), np.bool_)
    rows = np.flatnonzero(~steady[at])
    times, places = np.unique(local[rows], return_inverse=True)
    pairs = np.array([_both(int(time), found) for time in times], np.int64).reshape(-1, 2)
    seconds[rows] = pairs[places, 0]
    doubtful[rows] = (pairs[:, 0] != pairs[:, 1])[places]
    return Offsets(seconds, doubtful)


def _of_day(start: int, zone: ZoneInfo) -> int | None:
    """The offset of a whole day; None if it changes."""
    seen = {offset for probe in _PROBES for offset in _both(start + probe, zone)}
    return seen.pop() if len(seen) == 1 else None


def _both(local: int, zone: ZoneInfo) -> tuple[int, int]:
    """The offsets before and after a change of the clocks; the same at all other times."""
    moment = _EPOCH + timedelta(seconds=min(max(local, _FIRST), _LAST))
    pair = [moment.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta() for fold in (0, 1)]
    early, late = (offset.days * _DAY + offset.seconds for offset in pair)
    return early, late
