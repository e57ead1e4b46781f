"""The positions that labels choose, by the rules of xarray's `sel`.

- A slice is closed at both ends, which may come in either order.
- A written date or time is a period of its last written unit, if that is longer than what the labels tell apart.
- A single label drops the dimension, a list keeps it.
"""

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import datatype, period
from ..column.datatype import AnyArray
from ..errors import InputError, MissingLabelError, UnsupportedError
from ..query import ends
from ..schema.dimension import Dim
from . import resolution
from .index import Index, Key

_SUGGESTED_FROM = 10_000
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Found:
    """Positions along a dimension."""

    positions: AnyArray
    """int64, in the order asked for."""
    drop: bool
    """Whether a single label chose one."""
    is_exact: bool
    """Whether labels that others add cannot belong to it."""


def positions_of(index: Index, asked: Any, method: str | None) -> Found:
    """The positions that `asked` chooses: one label, a list, a slice, a date or time that is written.

    Raises:
        MissingLabelError: there is no such label.
        InputError: a label stands at several positions, or is of another type.
    """
    if isinstance(asked, slice):
        if method is not None:
            raise InputError(f"method= is for single labels and lists of them; {_named(index)} was given a slice")
        return Found(_between(index, asked), False, False)
    if is_list(asked):
        found = [_one(index, one, method) for one in items_of(index.dim.name, asked)]
        return Found(np.array(found, np.int64), False, method is None)
    if isinstance(asked, np.ndarray) or (hasattr(asked, "__array__") and not isinstance(asked, np.generic)):
        asked = np.asarray(asked)[()]
    if period.is_written(index.dtype, asked) and method is None:
        span = period.written(_typed(index), asked)
        if resolution.is_longer(span, index):
            return Found(_in_period(index, asked, span), False, False)
    return Found(np.array([_one(index, asked, method)], np.int64), True, method is None)


def _typed(index: Index) -> str:
    return f"{index.title} are {index.dtype}"


def _named(index: Index) -> str:
    return f"dimension {index.dim.name!r}"


def is_list(asked: Any) -> bool:
    """Whether these are several labels."""
    if isinstance(asked, str | bytes):
        return False
    return isinstance(asked, list | tuple | range | set) or getattr(asked, "ndim", 0) > 0


def items_of(name: str, asked: Any) -> list[Any]:
    """Several labels of the dimension `name`, one by one.

    Raises:
        UnsupportedError: they are along other dimensions, or more than one.
    """
    if isinstance(asked, list | tuple | range | set):
        return list(asked)
    dims = getattr(asked, "dims", None)
    if isinstance(dims, tuple) and dims != (name,):
        raise UnsupportedError(
            f"dimension {name!r} was given labels along {', '.join(map(repr, dims))}; sel() takes every combination of "
            f"labels: use points() or vindex for single cells, or labels.values for every combination"
        )
    values = np.asarray(asked)
    if values.ndim != 1:
        raise UnsupportedError(
            f"dimension {name!r} was given an array of {values.ndim} dimensions; labels are chosen by a flat list"
        )
    if values.dtype.kind == "b":
        raise InputError(f"dimension {name!r} was given a mask; a[mask] takes masks, sel() takes labels")
    return list(values) if values.dtype.kind in "mM" else values.tolist()


# Single labels.


def _one(index: Index, value: Any, method: str | None) -> int:
    """The position of one label."""
    if method is None:
        return _position(index, _key(index, value), value)
    if index.is_text:
        raise InputError(f'{index.title} are texts, of which none is nearest; leave method="nearest" out')
    return _nearest(index, _end(index, value), value)


def _key(index: Index, value: Any) -> Key:
    """What was given as a label of the type; an error if the type does not hold it."""
    if index.is_text:
        if not isinstance(value, str):
            raise InputError(f"{index.title} are texts, {brief(value)} is none")
        return value
    end = _end(index, value)
    if not end.held:
        raise _no_label(index, value, end)
    return end.floor


def _position(index: Index, key: Key, value: Any) -> int:
    found = _positions(index, key, value)
    if len(found) > 1:
        shown = index.show(key)
        bound = shown
        if index.dtype.startswith("datetime64"):
            bound = repr(shown)
        elif datatype.is_time(index.dtype):
            bound = repr(datatype.from_text(index.dtype, repr(key)))
        raise InputError(
            f"{_several(index, found, shown)}; a slice takes all of them: {index.dim.name}=slice({bound}, {bound})"
        )
    return found[0]


def _positions(index: Index, key: Key, value: Any) -> list[int]:
    """All positions of a label, ascending; an error if there is none."""
    low, high = index.below(key), index.up_to(key)
    if low == high:
        raise _no_label(index, value, None if index.is_text else _end(index, value))
    return sorted(index.positions(low, high).tolist())


def _several(index: Index, found: list[int], shown: str) -> str:
    places = ", ".join(map(str, found[:_SHOWN])) + (", …" if len(found) > _SHOWN else "")
    return f"{index.title} have {shown} at {len(found)} positions ({places})"


def _ranks_near(index: Index, end: ends.End) -> list[int]:
    """The ranks of the labels on both sides of `end`."""
    at = index.up_to(end.floor)
    return [rank for rank in (at - 1, at) if 0 <= rank < index.count]


def _nearest_key(index: Index, end: ends.End) -> Key | None:
    """The label nearest to `end`, the greater one of two; None if there is no label."""
    near = [index.ranked(rank) for rank in _ranks_near(index, end)]
    if not near:
        return None
    like = _like(index)

    def distance(key: Key) -> Any:
        return abs(ends.end_of(like, key).value - end.value)

    return min(reversed(near), key=distance)


def _nearest(index: Index, end: ends.End, value: Any) -> int:
    key = _nearest_key(index, end)
    if key is None:
        raise MissingLabelError(f"{index.title}: there are none, so none is near {brief(value)}")
    return _position(index, key, value)


def _no_label(index: Index, value: Any, end: "ends.End | None") -> MissingLabelError:
    """The error that names what is there instead."""
    if index.count == 0:
        return MissingLabelError(f"{index.title} have no {brief(value)}: there are none")
    if end is not None:
        near = _nearest_key(index, end)
        shown = "" if near is None else index.show(near)
        return MissingLabelError(
            f'{index.title} have no {brief(value)}; the nearest is {shown}, which method="nearest" takes'
        )
    known = [str(key) for key in index.sample(_SUGGESTED_FROM)]
    found = difflib.get_close_matches(str(value), known, 1, 0.0) or known[:1]
    return MissingLabelError(f"{index.title} have no {brief(value)}; the nearest is {found[0]!r}")


# Periods and slices.


def _in_period(index: Index, asked: Any, span: period.Period) -> AnyArray:
    low, high = _ticks_of(index, span)
    first, last = index.below(low), index.up_to(high)
    if first >= last:
        raise _no_label(index, asked, _end(index, span.begin))
    return _in_order(index, first, last)


def _in_order(index: Index, first: int, last: int) -> AnyArray:
    """The positions of ranks, ascending."""
    return np.sort(index.positions(first, max(first, last))).astype(np.int64)


def _between(index: Index, asked: slice) -> AnyArray:
    """The positions between two labels, both included."""
    step = 1 if asked.step is None else asked.step
    if isinstance(step, bool) or not isinstance(step, int | np.integer) or step < 1:
        raise InputError(f"{_named(index)}: the step of a slice of labels is a positive number of positions")
    if asked.start is None and asked.stop is None:
        return np.arange(0, index.dim.size, step)
    if index.direction == 0:
        return _between_positions(index, asked)[::step]
    spans = [None if bound is None else _bounds(index, bound) for bound in (asked.start, asked.stop)]
    if spans[0] is not None and spans[1] is not None:
        # Either order: what lies between is meant.
        low, high = min(spans[0][0], spans[1][0]), max(spans[0][1], spans[1][1])
        return _in_order(index, index.below(low), index.up_to(high))[::step]
    low_end, high_end = (spans[0], spans[1]) if index.direction > 0 else (spans[1], spans[0])
    return _rest(index, low_end, high_end)[::step]


def _rest(index: Index, low: "tuple[Key, Key] | None", high: "tuple[Key, Key] | None") -> AnyArray:
    """The positions on one side of a label, up to the end of the dimension, with those that have no label."""
    first = 0 if low is None else index.below(low[0])
    last = index.count if high is None else index.up_to(high[1])
    found = _in_order(index, first, last)
    if found.size == 0:
        return found
    is_to_end = (high is None) == (index.direction > 0)
    ends = (int(found[0]), index.dim.size) if is_to_end else (0, int(found[-1]) + 1)
    return np.arange(*ends)


def _between_positions(index: Index, asked: slice) -> AnyArray:
    """The positions from one label to another in a list that is in no order; both have to be there once. All positions
    of a label from it to itself."""
    keys = [None if bound is None else _key(index, bound) for bound in (asked.start, asked.stop)]
    places = [
        None if key is None else _positions(index, key, bound)
        for key, bound in zip(keys, (asked.start, asked.stop), strict=True)
    ]
    if keys[0] is not None and keys[0] == keys[1]:
        return np.array(places[0], np.int64)
    for key, found in zip(keys, places, strict=True):
        if key is not None and found is not None and len(found) > 1:
            raise InputError(
                f"{_several(index, found, index.show(key))}, and are in no order, so that no slice begins or ends "
                f"there; choose positions: a[…]"
            )
    low = 0 if places[0] is None else places[0][0]
    high = index.dim.size - 1 if places[1] is None else places[1][0]
    return np.arange(low, high + 1) if low <= high else np.arange(high, low + 1)


def _bounds(index: Index, bound: Any) -> "tuple[Key, Key]":
    """The least and the greatest label that an end of a slice may stand for."""
    if index.is_text:
        if not isinstance(bound, str):
            raise InputError(f"{index.title} are texts, {brief(bound)} is none")
        return bound, bound
    if period.is_written(index.dtype, bound):
        return _ticks_of(index, period.written(_typed(index), bound))
    end = _end(index, bound)
    like = _like(index)
    return ends.lowest(like, end), ends.highest(like, end)


def bounds_of(dim: Dim, bound: Any) -> "tuple[Key, Key]":
    """The least and the greatest coordinate that an end of a slice, or a written time, of a sparse dimension stands
    for."""
    if period.is_written(dim.dtype, bound):
        what = f"the coordinates of dimension {dim.name!r} are {dim.dtype}"
        return ends.bounds_of(dim, period.written(what, bound))
    end = ends.end_of(dim, _rounded(dim.dtype, bound))
    return ends.lowest(dim, end), ends.highest(dim, end)


def _rounded(dtype: str, value: Any) -> Any:
    """A float as the type of float labels holds it; anything else as it is."""
    if datatype.is_float(dtype) and isinstance(value, float | np.floating) and np.isfinite(value):
        return datatype.rounded(dtype, value)
    return value


def _ticks_of(index: Index, span: period.Period) -> "tuple[Key, Key]":
    """The least and the greatest label that a period can have."""
    return ends.bounds_of(_like(index), span)


def _like(index: Index) -> Dim:
    """A dimension whose coordinates are of the type of the labels."""
    zero = 0.0 if datatype.is_float(index.dtype) else 0
    return Dim(index.dim.name, (zero, zero), dtype=index.dtype)


def _end(index: Index, value: Any) -> ends.End:
    """What was given, among labels of numbers or times."""
    if period.is_written(index.dtype, value):
        value = period.written(_typed(index), value).begin
    try:
        return ends.end_of(_like(index), _rounded(index.dtype, value))
    except InputError:
        raise InputError(f"{index.title} are {index.dtype}; {brief(value)} is none") from None
