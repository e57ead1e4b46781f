"""The spans of coordinates that `sel` chooses along a sparse dimension: as far as there are coordinates."""

from typing import Any, NamedTuple

from ..base.printable import brief
from ..column import datatype
from ..errors import InputError, MissingLabelError
from ..schema.dimension import Dim
from . import lookup


class Spans(NamedTuple):
    """Closed spans, of which None is an open end."""

    spans: list[tuple[Any, Any]]
    is_cut: bool
    """Whether the ends of the domain cut what was asked for, so that they count as read."""


def spans_of(dim: Dim, part: Any) -> Spans:
    """What one label, a list, a slice or a written time chooses.

    Raises:
        MissingLabelError: a label or a time that lies outside the domain, or is no coordinate of the type.
        InputError: a label of another type.
    """
    if isinstance(part, slice):
        return _between(dim, part)
    if lookup.is_list(part):
        found = [spans_of(dim, one) for one in lookup.items_of(dim.name, part)]
        return Spans([span for one in found for span in one.spans], any(one.is_cut for one in found))
    if dim.is_text:
        if not isinstance(part, str):
            raise InputError(f"dimension {dim.name!r} is string: {brief(part)} is no coordinate of it")
        return Spans([(part, part)], False)
    found_one = _within(dim, *lookup.bounds_of(dim, part))
    if not found_one.spans:
        raise _no_coordinate(dim, part, found_one.is_cut)
    return found_one


def _between(dim: Dim, part: slice) -> Spans:
    if part.step is not None:
        raise InputError(f"dimension {dim.name!r}: a slice of coordinates of a sparse array has no step")
    low, high = part.start, part.stop
    if dim.is_text:
        if low is not None and high is not None and low > high:
            low, high = high, low
        return Spans([(low, high)], False)
    if low is not None and high is not None:
        keys = lookup.bounds_of(dim, low), lookup.bounds_of(dim, high)
        return _within(dim, min(keys[0][0], keys[1][0]), max(keys[0][1], keys[1][1]))
    low = None if low is None else lookup.bounds_of(dim, low)[0]
    high = None if high is None else lookup.bounds_of(dim, high)[1]
    return _within(dim, low, high)


def _within(dim: Dim, low: Any, high: Any) -> Spans:
    """The part of a span that lies in the domain: none, or one."""
    first, last = (datatype.ticks_of(end) for end in dim.reach)
    is_cut = (low is not None and low < first) or (high is not None and high > last)
    low = None if low is None else max(low, first)
    high = None if high is None else min(high, last)
    is_empty = (first if low is None else low) > (last if high is None else high)
    return Spans([] if is_empty else [(low, high)], is_cut)


def _no_coordinate(dim: Dim, part: Any, is_cut: bool) -> MissingLabelError:
    what = f"the coordinates of dimension {dim.name!r} have no {brief(part)}"
    if dim.is_empty:
        return MissingLabelError(f"{what}: there are none yet")
    if not is_cut:
        return MissingLabelError(f"{what}: they are {dim.dtype}; a slice takes what lies between two")
    low, high = (datatype.show(end, dim.dtype) for end in dim.reach)
    return MissingLabelError(f"{what}: they reach from {low} to {high}")
