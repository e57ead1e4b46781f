"""Reads the cells of a sparse array at chosen positions: slices with steps, and lists of positions per axis.

Positions that lie side by side are read as boxes, all of them at once. If these are too many, one box around them is
read, and the cells between them are dropped.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..column import columns, datatype
from ..column.datatype import AnyArray
from ..errors import UnsupportedError
from ..query.axis import Axis, axis_of, expand
from ..query.box import Box, Region, box_of_parts, whole
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from . import fancy, lists
from .handle import Handle

_BOXES_MAX = 1_024
"""Boxes that are read at once, at most."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Positions along one axis: those from `low` to `high` that lie a multiple of `step` above `low`; or those in
    `listed` (ascending, each once); `whole`: all, of texts and floats too."""

    low: int = 0
    high: int = -1
    step: int = 1
    listed: AnyArray | None = None
    whole: bool = False

    @property
    def runs(self) -> list[tuple[int, int]] | None:
        """Positions side by side, first and last of each run; None: they are too many."""
        if self.listed is not None:
            if not self.listed.size:
                return []
            breaks = np.flatnonzero(np.diff(self.listed) != 1) + 1
            if breaks.size >= _BOXES_MAX:
                return None
            return [(int(part[0]), int(part[-1])) for part in np.split(self.listed, breaks)]
        if self.step == 1 or self.low >= self.high:
            return [(self.low, self.high)] if self.low <= self.high else []
        many = (self.high - self.low) // self.step >= _BOXES_MAX
        return None if many else [(at, at) for at in range(self.low, self.high + 1, self.step)]

    @property
    def hull(self) -> tuple[int, int]:
        """The lowest and the highest position."""
        return (self.low, self.high) if self.listed is None else (int(self.listed[0]), int(self.listed[-1]))

    def holds(self, positions: AnyArray) -> AnyArray:
        """Which of these positions (uint64), all of them in the hull, are wanted."""
        if self.listed is not None:
            held: AnyArray = np.isin(positions, self.listed)
            return held
        apart: AnyArray = (positions - np.uint64(self.low)) % np.uint64(self.step) == 0
        return apart


def read(array: Handle, schema: Schema, key: Any, names: Sequence[str] | None) -> Result:
    """The cells at the positions that `a[key]` asks for, each once, in row order."""
    given = key if isinstance(key, tuple) else (key,)
    arrays = [found for found in map(fancy.array_of, given) if found is not None]
    if arrays:
        return _listed(array, schema, key, arrays, names)
    parts = expand(key, schema.ndim)
    wanted = []
    for i, (dim, part) in enumerate(zip(schema.dims, parts, strict=True)):
        if isinstance(part, slice) and part == slice(None):
            wanted.append(_Wanted(whole=True))
        else:
            wanted.append(_of_axis(axis_of(dim, part, i)))
    return _read(array, schema, wanted, names)


def _listed(array: Handle, schema: Schema, key: Any, arrays: Sequence[AnyArray], names: Sequence[str] | None) -> Result:
    """The cells at a list of positions, or where a mask is true."""
    if len(arrays) > 1:
        raise UnsupportedError(
            f"{len(arrays)} lists were given for a sparse array, which could mean two things: .vindex[...] pairs them "
            f"point by point, .oindex[...] takes every combination of them"
        )
    (found,) = arrays
    if found.dtype.kind != "b" or found.ndim == 1:
        return orthogonal(array, schema, key, names)
    if isinstance(key, tuple) and len(key) > 1:
        raise UnsupportedError(
            f"a mask of {found.ndim} dimensions stands alone in the key of a sparse array, where it has the array's "
            f"shape; along one axis a flat one is taken"
        )
    wanted = [attr.name for attr in schema.attrs] if names is None else names
    return lists.read(array, lists.points_of(schema, found), wanted)


def orthogonal(array: Handle, schema: Schema, key: Any, names: Sequence[str] | None) -> Result:
    """The cells at the positions that `a.oindex[key]` asks for, each once, in row order."""
    parts = expand(key, schema.ndim)
    wanted = []
    for i, (dim, part) in enumerate(zip(schema.dims, parts, strict=True)):
        if isinstance(part, slice):
            wanted.append(_Wanted(whole=True) if part == slice(None) else _of_axis(axis_of(dim, part, i)))
        else:
            positions, _ = lists.axis_list(dim, part, i)
            wanted.append(_Wanted(listed=np.unique(positions)))
    return _read(array, schema, wanted, names)


def _of_axis(axis: Axis) -> _Wanted:
    low, high = axis.covering if axis.count else (0, -1)
    return _Wanted(low, high, abs(axis.step) if axis.count > 1 else 1)


def _read(array: Handle, schema: Schema, wanted: Sequence[_Wanted], names: Sequence[str] | None) -> Result:
    runs = [[(0, 0)] if axis.whole else axis.runs for axis in wanted]
    if any(run == [] for run in runs):
        return array.read(Box(schema.dims, ((0, -1),) * schema.ndim), names)
    # The axis with the most runs is the first to be read as one.
    while any(run is None for run in runs) or math.prod(len(run or ()) for run in runs) > _BOXES_MAX:
        longest = max(range(len(runs)), key=lambda i: math.inf if runs[i] is None else len(runs[i] or ()))
        runs[longest] = [wanted[longest].hull]
    boxes = [
        _box(schema.dims, wanted, chosen) for chosen in itertools.product(*(run for run in runs if run is not None))
    ]
    found = array.read(boxes[0] if len(boxes) == 1 else Region(schema.dims, tuple(boxes), True), names)
    tests = [
        (dim, axis)
        for dim, axis, run in zip(schema.dims, wanted, runs, strict=True)
        if not axis.whole and run != axis.runs
    ]
    held = np.ones(len(found), np.bool_)
    for dim, axis in tests:
        held &= axis.holds(_positions(dim, found._column(dim.name)))
    return found._picked(held) if tests else found


def _box(dims: tuple[Dim, ...], wanted: Sequence[_Wanted], chosen: Sequence[tuple[int, int]]) -> Box:
    parts: list[Any] = []
    for dim, axis, (low, high) in zip(dims, wanted, chosen, strict=True):
        if axis.whole:
            parts.append(whole(dim))
        else:
            first = datatype.ticks_of(dim.domain[0])
            parts.append((first + low, first + high))
    return box_of_parts(dims, parts)


def _positions(dim: Dim, column: columns.Column) -> AnyArray:
    values = column.values
    ticks = values.view(np.int64) if values.dtype.kind in "mM" else values
    wide: AnyArray = ticks.astype(np.uint64 if ticks.dtype.kind == "u" else np.int64).view(np.uint64)
    made: AnyArray = wide - np.uint64(datatype.ticks_of(dim.domain[0]) & (2**64 - 1))
    return made
