"""Dates and times that are written: periods of their last written unit.

`2026-03` is a month, `2026-03-01` a day, `2026-03-01T06` an hour, `today` the day in UTC; `now` is none. Only texts and
`datetime.date` are periods: `datetime`, `numpy.datetime64` and `pandas.Timestamp` are instants.
"""

import datetime as dt
from typing import Any, NamedTuple

import numpy as np

from ..base.printable import brief
from ..errors import InputError
from . import datatype, instant


class Period(NamedTuple):
    """A time that is written."""

    begin: np.datetime64
    unit: str

    @property
    def first_instant(self) -> int:
        """Its beginning, in attoseconds since 1970."""
        return instant.instant_of(self._tick, self.unit, False)

    @property
    def last_instant(self) -> int:
        """Its last attosecond."""
        return instant.instant_of(self._tick + 1, self.unit, False) - 1

    @property
    def _tick(self) -> int:
        return int(self.begin.astype(np.int64))


def is_written(dtype: str, value: Any) -> bool:
    """Whether a value given for a type is a written date or time, and so a period."""
    if not dtype.startswith("datetime64"):
        return False
    return isinstance(value, str) or (isinstance(value, dt.date) and not isinstance(value, dt.datetime))


def period_of(value: Any) -> Period | None:
    """The period of a written date or time; None if it is none."""
    found = datatype.time_of("datetime64[D]", value)
    if found is None or np.isnat(found):
        return None
    unit = str(np.datetime_data(found.dtype)[0])
    return None if unit == "generic" else Period(np.datetime64(found), unit)  # type: ignore[arg-type]


def written(what: str, value: Any) -> Period:
    """The period of a text or a date; an `InputError` that begins with `what` if it is no date or time."""
    found = period_of(value)
    if found is None:
        now = isinstance(value, str) and value.strip().lower() == "now"
        other = ", or give datetime.now(UTC) for this moment" if now else ""
        raise InputError(
            f"{what}: {brief(value)} is no date or time; write 2026, 2026-03, 2026-03-05 or 2026-03-05T12:30{other}"
        )
    return found


def last_value(dtype: str, value: Any) -> Any:
    """The last value of a datetime type in a written period that is longer than a step of it; `value` as it is if it is
    no such period."""
    if not is_written(dtype, value):
        return value
    found = period_of(value)
    if found is None:
        return value
    unit = datatype.unit_of(dtype)
    several = int(datatype.step_of(dtype).removesuffix(unit) or 1)
    first, last = (instant.ticks_of(end, unit, False) // several for end in (found.first_instant, found.last_instant))
    low, high = datatype.ends_of(dtype)
    return last if last > first and low <= last <= high else value
