"""Positions along the axes of an array, from a key in brackets, by NumPy's rules.

Positions count from 0 at the low end of each dimension's domain.
"""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import datatype
from ..errors import BoundsError, GridstoneError, UnsupportedError
from ..schema.array_schema import Schema
from ..schema.dimension import Dim

NEW_AXIS = "numpy.newaxis is not supported; index the result instead: a[...][None]"


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions along one dimension: `count` of them from `start` in steps of `step`; `drop`: an integer chose one."""

    start: int
    count: int
    step: int
    drop: bool

    @property
    def covering(self) -> tuple[int, int]:
        """The lowest and highest position."""
        last = self.start + (self.count - 1) * self.step
        return min(self.start, last), max(self.start, last)


def expand(key: Any, ndim: int) -> tuple[Any, ...]:
    """A key with one entry per dimension: ellipsis and missing trailing entries filled with `:`."""
    parts = key if isinstance(key, tuple) else (key,)
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise BoundsError("an index can have only one ellipsis (...)")
    if len(parts) - len(dots) > ndim:
        if any(part is None for part in parts):
            raise UnsupportedError(NEW_AXIS)
        raise BoundsError(f"too many indices: the array has {ndim} dimensions, {len(parts) - len(dots)} were given")
    at = dots[0] if dots else len(parts)
    fill = (slice(None),) * (ndim - len(parts) + len(dots))
    return (*parts[:at], *fill, *parts[at + len(dots) :])


def ends_used(schema: Schema, key: Any) -> list[tuple[bool, bool]]:
    """By dimension, whether a key chooses by the low end and by the high one. A position counts from the low end, a
    negative one from the high end; a list or a mask may count from both."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) != schema.ndim or not all(isinstance(part, int | np.integer | slice) for part in parts):
        try:
            parts = expand(parts, schema.ndim)
        except GridstoneError:
            parts = (None,) * schema.ndim
    return [_ends_of(dim, part) for dim, part in zip(schema.dims, parts, strict=True)]


def _ends_of(dim: Dim, part: Any) -> tuple[bool, bool]:
    if dim.is_text or datatype.is_float(dim.dtype) or not isinstance(part, int | np.integer | slice):
        return True, True
    if not isinstance(part, slice):
        return bool(part >= 0), bool(part < 0)
    step = 1 if part.step is None else part.step
    ends = (part.start, part.stop) if _is_forwards(step) else (part.stop, part.start)
    if not all(end is None or isinstance(end, int | np.integer) for end in ends):
        return True, True
    if any(end is not None and not -dim.size <= end <= dim.size for end in ends):
        return True, True  # The domain cuts it.
    low, high = ends
    counts_down = [end is not None and bool(end < 0) for end in ends]
    counts_up = [end is not None and bool(end >= 0) for end in ends]
    return low is None or any(counts_up), high is None or any(counts_down)


def _is_forwards(step: Any) -> bool:
    return isinstance(step, int | np.integer) and bool(step > 0)


def axes_of(schema: Schema, key: Any) -> tuple[Axis, ...]:
    """The positions that `a[key]` asks for, by NumPy's rules."""
    parts = expand(key, schema.ndim)
    return tuple([axis_of(dim, part, axis) for axis, (dim, part) in enumerate(zip(schema.dims, parts, strict=True))])


def axis_of(dim: Dim, part: Any, axis: int) -> Axis:
    """The positions along one dimension that an integer or a slice asks for."""
    check_positions(dim, axis)
    size = dim.size
    if isinstance(part, slice):
        start, stop, step = part.indices(size)
        return Axis(start, slice_count(start, stop, step), step, False)
    position = _position(dim, part)
    if not -size <= position < size:
        raise BoundsError(
            f"position {brief(position)} is out of bounds for dimension {dim.name!r} (axis {axis}) with {size} "
            f"positions; positions count from 0, coordinates are asked for with .loc[...]"
        )
    return Axis(position % size, 1, 1, True)


def check_positions(dim: Dim, axis: int) -> None:
    """A `BoundsError` for a dimension of texts."""
    if dim.is_text:
        raise BoundsError(
            f"dimension {dim.name!r} (axis {axis}) is string and has no positions; give ':' for all of it, or ask for "
            f"coordinates: a.loc[...] or a.read(box={{{dim.name!r}: ...}})"
        )


def slice_count(start: int, stop: int, step: int) -> int:
    span = stop - start if step > 0 else start - stop
    return max(0, -(-span // abs(step)))


def _position(dim: Dim, part: Any) -> int:
    if part is None:
        raise UnsupportedError(NEW_AXIS)
    if isinstance(part, bool | np.bool_) or (isinstance(part, np.ndarray) and part.dtype == np.bool_):
        raise UnsupportedError(
            "True or False alone would be a new axis, which is not supported; a mask has one value per position"
        )
    try:
        return operator.index(part)
    except TypeError:
        pass
    raise BoundsError(
        f"dimension {dim.name!r}: an index is an integer, a slice, a list of positions, a mask or ..., not "
        f"{brief(part)}; an attribute is chosen by its name first: a['attr'][...]"
    )
