"""Ends of boxes as coordinates: values that a dimension's type may not hold, moved inward to ones that it holds.

An end lies anywhere: between two float32, between two integers, between two ticks of a time, or beyond all that the
type has. A box holds the coordinates between its ends, compared without rounding, as conditions compare them. A written
date or time is a period: a box begins with its first instant, and ends with its last.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..base.printable import brief
from ..column import datatype, instant, period
from ..errors import InputError
from ..schema.dimension import Dim

Bound = int | float
"""A coordinate: ticks for datetimes, a float for float dimensions."""

_Exact = int | float | Fraction


class End(NamedTuple):
    """An end of a box along one dimension."""

    value: _Exact
    """What was given, for comparisons with the other end; of times attoseconds, or months of spans in months."""
    floor: Bound
    """The greatest coordinate of the type that is not above it."""
    held: bool
    """Whether that is what was given."""


def end_of(dim: Dim, value: Any) -> End:
    """What a caller gave as an end. An `InputError` if it has no place among the coordinates of `dim`, as NaN."""
    if isinstance(value, float) and dim.dtype == "float64" and value == value:
        return End(float(value), float(value), True)
    found = _time(dim, value) if datatype.is_time(dim.dtype) else _number(dim, value)
    if found is None:
        raise InputError(f"dimension {dim.name!r} is {dim.dtype}: {brief(value)} is no coordinate of it")
    return found


def high_end_of(dim: Dim, value: Any) -> End:
    """As `end_of`, of a high end: of a written date or time its last instant."""
    if not period.is_written(dim.dtype, value):
        return end_of(dim, value)
    return _end_at(dim, period.written(f"dimension {dim.name!r} is {dim.dtype}", value).last_instant)


def bounds_of(dim: Dim, span: period.Period) -> tuple[Bound, Bound]:
    """The first and the last coordinate of a written date or time; the last lies before the first if there is none."""
    return lowest(dim, _end_at(dim, span.first_instant)), highest(dim, _end_at(dim, span.last_instant))


def several_of(dim: Dim, value: Any) -> tuple[Bound, Bound] | None:
    """The first and the last coordinate of a written date or time that holds one or more; None of anything else."""
    if not period.is_written(dim.dtype, value):
        return None
    low, high = bounds_of(dim, period.written(f"dimension {dim.name!r} is {dim.dtype}", value))
    return (low, high) if low <= high else None


def lowest(dim: Dim, end: End) -> Bound:
    """The least coordinate from `end` on; above all of the type if there is none."""
    if datatype.is_float(dim.dtype):
        up = end.floor if end.held else _next(dim, end.floor, np.inf)
        return max(up, datatype.ends_of(dim.dtype)[0])
    return max(int(end.floor) + (not end.held), datatype.ends_of(dim.dtype)[0])


def highest(dim: Dim, end: End) -> Bound:
    """The greatest coordinate up to `end`; below all of the type if there is none."""
    if datatype.is_float(dim.dtype):
        return min(end.floor, datatype.ends_of(dim.dtype)[1])
    return min(int(end.floor), datatype.ends_of(dim.dtype)[1])


def highest_below(dim: Dim, end: End) -> Bound:
    """The greatest coordinate less than `end`."""
    return below(dim, end.floor) if end.held else highest(dim, end)


def below(dim: Dim, bound: Bound) -> Bound:
    """The greatest coordinate less than `bound`, which is one, or lies beyond the type."""
    if datatype.is_float(dim.dtype):
        return min(_next(dim, bound, -np.inf), datatype.ends_of(dim.dtype)[1])
    return min(int(bound) - 1, datatype.ends_of(dim.dtype)[1])


def coordinate(dim: Dim, value: Any) -> Bound:
    """A single coordinate, which the type must hold, since it names a place and bounds nothing."""
    end = end_of(dim, value)
    if not end.held:
        near = f"; the float next to it is numpy.{dim.dtype}({brief(value)})" if datatype.is_float(dim.dtype) else ""
        raise InputError(
            f"dimension {dim.name!r} is {dim.dtype}, of which {brief(value)} is no coordinate{near}; a pair or "
            f"a slice selects what lies between two ends"
        )
    return end.floor


def _next(dim: Dim, bound: Bound, towards: float) -> float:
    kind = datatype.numpy_of(dim.dtype).type
    with np.errstate(all="ignore"):
        return float(np.nextafter(kind(bound), kind(towards)))


def _number(dim: Dim, value: Any) -> End | None:
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        return None
    exact = _exact(value)
    if exact != exact:
        return None
    of_floats = datatype.is_float(dim.dtype)
    if isinstance(exact, int) and not of_floats:
        return End(exact, exact, True)
    if of_floats:
        near = datatype.rounded(dim.dtype, exact)
        floor: Bound = _next(dim, near, -np.inf) if near > exact else near
    elif exact in (np.inf, -np.inf):
        low, high = datatype.ends_of(dim.dtype)
        floor = high + 1 if exact > 0 else low - 1
    else:
        floor = math.floor(exact)
    return End(exact, floor, floor == exact)


def _exact(value: Any) -> _Exact:
    """A number as one of Python's, which compare without rounding."""
    if isinstance(value, int | np.integer):
        return int(value)
    plain = float(value)
    if isinstance(value, float):  # float64 is one, too.
        return plain
    return plain if plain == value or value != value else Fraction(*value.as_integer_ratio())


def _time(dim: Dim, value: Any) -> End | None:
    unit, step = _unit(dim)
    is_span = dim.dtype.startswith("timedelta64")
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return End(instant.instant_of(int(value) * step, unit, is_span), int(value), True)
    given = datatype.time_of(dim.dtype, value)
    if given is None or np.isnat(given):
        return None
    theirs, count = np.datetime_data(given.dtype)
    ticks = int(given.astype(np.int64)) * count
    if theirs == "generic":
        return End(instant.instant_of(ticks * step, unit, is_span), ticks, True)
    if is_span and instant.in_months(theirs) != instant.in_months(unit):
        return None  # Months have no fixed number of days.
    return _end_at(dim, instant.instant_of(ticks, theirs, is_span))


def _unit(dim: Dim) -> tuple[str, int]:
    """The unit of a dimension of times, and how many of it are a step."""
    unit = datatype.unit_of(dim.dtype)
    return unit, int(datatype.step_of(dim.dtype).removesuffix(unit) or 1)


def _end_at(dim: Dim, at: int) -> End:
    """An end at an instant, or at a span of attoseconds or months."""
    unit, step = _unit(dim)
    is_span = dim.dtype.startswith("timedelta64")
    floor = instant.ticks_of(at, unit, is_span) // step
    return End(at, floor, instant.instant_of(floor * step, unit, is_span) == at)
