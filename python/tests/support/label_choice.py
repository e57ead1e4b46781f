"""What labels choose, in plain Python and by the rules of the guide: for the machine of `test_label_machine`."""

from random import Random
from typing import Any, NamedTuple

import numpy as np
from label_model import Axis, Refused, is_time

from gridstone import errors


class Asked(NamedTuple):
    """What is asked of `sel` along a dimension."""

    key: Any
    """A label, a list, a slice; times as NumPy's, or written."""
    method: str | None


class Chosen(NamedTuple):
    """Positions along a dimension."""

    positions: list[int]
    drop: bool


class Ladder:
    """The labels of a dimension, or its coordinates, as numbers that compare; of times nanoseconds."""

    def __init__(self, axis: Axis) -> None:
        self.dtype = axis.dtype if axis.labels is None else axis.labels.dtype
        ticks = list(range(axis.low, axis.high + 1)) if axis.labels is None else axis.shown
        self.is_time = is_time(self.dtype)
        self.shown = [None if tick is None else self.number(self._value(tick)) for tick in ticks]
        self.held = [one for one in self.shown if one is not None]
        pairs = list(zip(self.held, self.held[1:], strict=False))
        is_rising, is_falling = all(a <= b for a, b in pairs), all(a >= b for a, b in pairs)
        self.direction = 1 if is_rising else -1 if is_falling else 0

    def _value(self, tick: Any) -> Any:
        return np.int64(tick).view(self.dtype) if self.is_time else tick

    def number(self, key: Any) -> Any:
        """A key as a number that compares; refused if it is of another type."""
        if self.dtype == "string":
            if not isinstance(key, str):
                raise Refused(errors.InputError)
            return key
        if not self.is_time:
            if isinstance(key, str):
                raise Refused(errors.InputError)
            return key
        if isinstance(key, str):
            return self.period(key)[0]
        if not isinstance(key, np.generic):
            raise Refused(errors.InputError)
        fine = "datetime64[ns]" if isinstance(key, np.datetime64) else "timedelta64[ns]"
        return int(key.astype(fine).astype(np.int64))

    def period(self, text: str) -> tuple[int, int]:
        """The first moment of a written date, and the first one after it."""
        if not self.dtype.startswith("datetime64"):
            raise Refused(errors.InputError)
        begin = np.datetime64(text)
        after = begin + 1
        return self.number(begin), self.number(after)

    def is_period(self, text: str) -> bool:
        """Whether a written date is longer than what the labels tell apart."""
        units = ["Y", "M", "D", "h", "m", "s", "ns"]
        per_hour = 3_600 * 10**9
        lengths = {"D": 24 * per_hour, "h": per_hour, "m": per_hour // 60, "s": 10**9, "ns": 1}
        own = self.dtype.removeprefix("datetime64[").rstrip("]")
        fine = next(
            unit for unit, length in lengths.items() if unit == own or all(one % length == 0 for one in self.held)
        )
        return units.index(str(np.datetime_data(np.datetime64(text).dtype)[0])) < units.index(fine)

    # Choices.

    def choose(self, asked: Asked) -> Chosen:
        """The positions that are asked for; refused where `sel` raises an error."""
        key, method = asked
        if isinstance(key, slice):
            return Chosen(self._between(key), False)
        if isinstance(key, list):
            return Chosen([self._one(one, method) for one in key], False)
        if method is None and isinstance(key, str) and self.dtype.startswith("datetime64") and self.is_period(key):
            begin, after = self.period(key)
            found = self._where(lambda one: begin <= one < after)
            if not found:
                raise Refused(errors.BoundsError)
            return Chosen(found, False)
        return Chosen([self._one(key, method)], True)

    def _where(self, holds: Any) -> list[int]:
        return [place for place, one in enumerate(self.shown) if one is not None and holds(one)]

    def _one(self, key: Any, method: str | None) -> int:
        if method == "nearest":
            if self.dtype == "string":
                raise Refused(errors.InputError)
            wanted = self.number(key)
            if not self.held:
                raise Refused(errors.BoundsError)
            # The greater one of two that are as near.
            key = min(self.held, key=lambda one: (abs(one - wanted), -one))
        else:
            key = self.number(key)
        return self._alone(key)

    def _alone(self, number: Any) -> int:
        found = self._where(lambda one: one == number)
        if not found:
            raise Refused(errors.BoundsError)
        if len(found) > 1:
            raise Refused(errors.InputError)
        return found[0]

    def _between(self, key: slice) -> list[int]:
        step, count = key.step or 1, len(self.shown)
        if key.start is None and key.stop is None:
            return list(range(count))[::step]
        if self.direction == 0:
            return self._from_to(key)[::step]
        ends = [None if end is None else self._span(end) for end in (key.start, key.stop)]
        if ends[0] is not None and ends[1] is not None:
            low, high = min(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])
            return self._where(lambda one: low <= one <= high)[::step]
        is_low = (ends[0] is not None) == (self.direction > 0)
        end = ends[0] or ends[1]
        assert end is not None
        found = self._where(lambda one: one >= end[0] if is_low else one <= end[1])
        if not found:
            return []
        # Towards the open end also positions without a label.
        return list(range(found[0], count) if key.stop is None else range(found[-1] + 1))[::step]

    def _span(self, end: Any) -> tuple[Any, Any]:
        """The least and the greatest that an end of a slice stands for."""
        if isinstance(end, str) and self.dtype != "string":
            begin, after = self.period(end)
            return begin, after - 1
        number = self.number(end)
        return number, number

    def _from_to(self, key: slice) -> list[int]:
        """From one label to another, in a list that is in no order."""
        numbers = [None if end is None else self.number(end) for end in (key.start, key.stop)]
        places = [self._where(lambda one, n=n: one == n) for n in numbers]
        for number, found in zip(numbers, places, strict=True):
            if number is not None and not found:
                raise Refused(errors.BoundsError)
        if numbers[0] == numbers[1]:
            return places[0]
        if any(number is not None and len(found) > 1 for number, found in zip(numbers, places, strict=True)):
            raise Refused(errors.InputError)
        low = 0 if numbers[0] is None else places[0][0]
        high = len(self.shown) - 1 if numbers[1] is None else places[1][0]
        return list(range(min(low, high), max(low, high) + 1))


def asked(r: Random, axis: Axis) -> Asked:
    """A key for a dimension: labels that are there and others, of every form."""
    ladder = Ladder(axis)
    form = r.choice(["one", "one", "list", "slice", "slice", "slice", "nearest", "nearest list", "wrong"])
    if form == "wrong":
        return Asked(3 if ladder.dtype == "string" else 3.5 if ladder.dtype[0] == "d" else "north", None)
    if form == "slice":
        ends = [None if r.random() < 0.2 else _key(r, axis, ladder) for _ in range(2)]
        return Asked(slice(*ends, r.choice([None, None, 2])), None)
    method = "nearest" if form.startswith("nearest") else None
    if form.endswith("list"):
        return Asked([_key(r, axis, ladder) for _ in range(r.randint(0, 3))], method)
    return Asked(_key(r, axis, ladder), method)


def _key(r: Random, axis: Axis, ladder: Ladder) -> Any:
    """A label, or one beside a label, in a form that a user writes."""
    ticks = list(range(axis.low, axis.high + 1)) if axis.labels is None else axis.shown
    held = [tick for tick in ticks if tick is not None] or ["s050" if ladder.dtype == "string" else 20_510]
    tick = r.choice(held)
    if ladder.dtype == "string":
        return tick if r.random() < 0.8 else tick + r.choice(["", "x"])
    if r.random() < 0.3:
        tick += r.choice([-1, 1, 3, -7])
    if not ladder.is_time:
        return tick + r.choice([0, 0, 0, 0, 0.25, 0.5])
    moment = np.int64(tick).view(ladder.dtype)
    if ladder.dtype.startswith("timedelta64"):
        return moment if r.random() < 0.8 else moment + np.timedelta64(30, "m")
    written = np.datetime_as_string(moment, unit=r.choice(["Y", "M", "M", "D", "D", "h"]))
    return r.choice([moment, moment, written, moment.astype("datetime64[D]"), moment + np.timedelta64(5, "h")])
