"""Lists of positions and masks in plain brackets: `a[[1, 5], :]`, `a[mask]`, NumPy's advanced indexing.

A key means what it means to NumPy. Lists, masks (as the positions where they are true) and the integers beside them
broadcast together, point by point; slices stand for all their positions. The axes of the lists stand where the first
of them stood in the key if they are neighbours there. Else they stand in front.

A read and an assignment are one call of the core each, which plans them by the blocks as they are stored. What is left
here are NumPy's rules: what the parts of a key mean, and the shape and the order of the axes that they make. Where an
assignment names a cell twice, in row order of the selection, the last value stays.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from .. import _native
from ..base.printable import brief
from ..column import encode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import BoundsError, UnsupportedError
from ..query.axis import NEW_AXIS, Axis, axes_of, axis_of
from ..schema.array_schema import Schema
from ..schema.fields import attr_field
from ..write.values import by_attribute
from . import chosen, dense, lists
from .handle import Handle

Arrays = dict[str, AnyArray]

_BASIC = frozenset((int, slice, EllipsisType, NoneType))
"""Types of which no list or mask is."""


@dataclass(frozen=True, slots=True)
class Picks:
    """What a key with lists or a mask asks for."""

    parts: tuple[AnyArray | Axis | None, ...]
    """By dimension: positions of a list (uint64, of any shape), the axis of a slice, None where the mask tells."""
    shape: tuple[int, ...]
    """What the lists broadcast to; of a mask the number of cells that it chooses."""
    at: int
    """Where the axes of `shape` begin in the result."""
    mask: AnyArray | None = None

    @property
    def across(self) -> tuple[int, ...]:
        """How many positions each slice has."""
        return tuple([part.count for part in self.parts if isinstance(part, Axis)])

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (*self.across[: self.at], *self.shape, *self.across[self.at :])

    def plan(self) -> "Plan":
        """How the core is asked, and how its answer becomes the result."""
        return _masked(self) if self.mask is not None else _apart(self) or _paired(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """A call of the core: its choices, the shape of its answer, and the order of that one's axes in the result."""

    chosen: "list[_native._Chosen]"
    mask: "_native._Mask | None"
    shape: tuple[int, ...]
    order: tuple[int, ...]
    result: tuple[int, ...]

    def placed(self, values: AnyArray) -> AnyArray:
        """An answer as the result has it; values of several elements keep their last axes."""
        inner = range(len(self.shape), values.ndim)
        moved: AnyArray = values.transpose((*self.order, *inner))
        return moved.reshape((*self.result, *values.shape[len(self.shape) :]))

    def asked(self, column: Column) -> Column:
        """A column in row order of the result as the core takes it."""
        flat = dense.row_major(column)
        if self.order == tuple(range(len(self.order))):
            return flat
        cells = np.arange(math.prod(self.result)).reshape([self.shape[axis] for axis in self.order])
        return _reordered(flat, cells.transpose(np.argsort(self.order)).ravel())


def _chosen_of(part: AnyArray | Axis | None, kind: Callable[[AnyArray], "_native._Chosen"]) -> "_native._Chosen":
    return chosen.strided(part) if isinstance(part, Axis) else "masked" if part is None else kind(part)


def _masked(picks: Picks) -> Plan:
    """One axis of points in front of those of the slices."""
    choices = [_chosen_of(part, chosen.listed) for part in picks.parts]
    mask = None if picks.mask is None else chosen.mask_over(picks.parts.index(None), picks.mask)
    return Plan(choices, mask, (*picks.shape, *picks.across), _behind(picks, 1), picks.result)


def _paired(picks: Picks) -> Plan:
    """Point by point: one axis of points in front of those of the slices."""
    spread = [
        part if part is None or isinstance(part, Axis) else np.broadcast_to(part, picks.shape) for part in picks.parts
    ]
    choices = [_chosen_of(part, chosen.paired) for part in spread]
    return Plan(choices, None, (math.prod(picks.shape), *picks.across), _behind(picks, 1), picks.result)


def _behind(picks: Picks, points: int) -> tuple[int, ...]:
    """The axes of the slices around those of the points, which come first in the answer."""
    sliced = range(points, points + len(picks.across))
    return (*sliced[: picks.at], *range(points), *sliced[picks.at :])


def _apart(picks: Picks) -> Plan | None:
    """Every combination of lists that have no axis in common; None if some have. An integer has none."""
    choices, shape, labels = [], [], []
    slices = 0
    for part in picks.parts:
        if isinstance(part, Axis):
            choices.append(chosen.strided(part))
            shape.append(part.count)
            labels.append((0 if slices < picks.at else 2, slices))
            slices += 1
        elif part is not None:
            choices.append(chosen.listed(part))
            wide = [axis for axis, size in enumerate(part.shape) if size != 1]
            shape += [part.shape[axis] for axis in wide]
            labels += [(1, axis + len(picks.shape) - part.ndim) for axis in wide]
    if len(set(labels)) < len(labels):
        return None
    order = tuple(sorted(range(len(labels)), key=labels.__getitem__))
    return Plan(choices, None, tuple(shape), order, picks.result)


def _reordered(column: Column, cells: AnyArray) -> Column:
    """The cells of a flat column in another order."""
    validity = None if column.validity is None else column.validity[cells]
    if column.offsets is None:
        return replace(column, values=column.values[cells], validity=validity)
    lengths = np.diff(column.offsets)[cells]
    offsets = np.zeros(cells.size + 1, column.offsets.dtype)
    np.cumsum(lengths, out=offsets[1:])
    shift = np.repeat(column.offsets[:-1][cells] - offsets[:-1], lengths)
    values = column.values[np.arange(offsets[-1], dtype=shift.dtype) + shift]
    return replace(column, values=values, offsets=offsets, validity=validity)


def read_at(array: Handle, schema: Schema, names: Sequence[str], key: Any) -> Arrays:
    """What `array[key]` gives of a dense array, by attribute."""
    asked = parsed(schema, key)
    if asked is None:
        return dense.read_at(array, schema, names, key)
    plan = asked.plan()
    found = chosen.read(array, schema, names, plan.chosen, plan.mask, plan.shape)
    return {name: plan.placed(values) for name, values in found.items()}


def assign(array: Handle, name: str | None, key: Any, value: Any) -> None:
    """`array[key] = value` of a dense array, or of one of its attributes."""
    array._writable()
    schema = array._schema
    asked = parsed(schema, key)
    if asked is None:
        dense.write(array, name, axes_of(schema, key), value)
        return
    given = by_attribute(schema, value, name)
    made = {n: encode.from_values(attr_field(schema, n), v, asked.result) for n, v in given.items()}
    if math.prod(asked.result):
        plan = asked.plan()
        chosen.write(array, plan.chosen, plan.mask, {n: plan.asked(column) for n, column in made.items()})


# What a key means.


def array_of(part: Any) -> AnyArray | None:
    """A list of positions, or a mask, as an array; None of anything else."""
    if type(part) in _BASIC:
        return None
    try:
        operator.index(part)
    except TypeError:
        pass
    else:
        return None
    try:
        found = np.asarray(part)
    except ValueError as error:
        raise BoundsError(f"{brief(part)} is no list of positions: {error}") from error
    return found if found.ndim else None


def parsed(schema: Schema, key: Any) -> Picks | None:
    """What a key with lists or masks asks for; None of one without."""
    given = key if isinstance(key, tuple) else (key,)
    for part in given:
        if type(part) not in _BASIC:
            break
    else:
        return None
    arrays = [array_of(part) for part in given]
    if all(found is None for found in arrays):
        return None
    missing = schema.ndim - _dimensions(schema, given, arrays)
    parts: list[AnyArray | Axis | None] = []
    masks: list[tuple[int, AnyArray]] = []
    for part, found in zip(given, arrays, strict=True):
        axis = len(parts)
        if found is not None and found.dtype.kind == "b":
            masks.append((axis, _checked_mask(schema, found, axis)))
            parts += [None] * found.ndim
        elif found is not None:
            parts.append(lists.offsets_of(schema.dims[axis], found if found.dtype.kind in "iu" else part, axis))
        elif part is Ellipsis:
            parts += [axis_of(schema.dims[axis + i], slice(None), axis + i) for i in range(missing)]
        else:
            parts.append(_along(schema, part, axis))
    parts += [axis_of(schema.dims[axis], slice(None), axis) for axis in range(len(parts), schema.ndim)]
    at = _place(schema, given, arrays)
    axis, mask = masks[0] if masks else (0, None)
    listed = sum(not isinstance(part, Axis) for part in parts)
    # One along one axis of several is a list of positions.
    if mask is not None and listed == mask.ndim and (mask.ndim > 1 or schema.ndim == 1):
        return Picks(tuple(parts), (int(np.count_nonzero(mask)),), at, mask)
    for axis, mask in masks:
        parts[axis : axis + mask.ndim] = [places.astype(np.uint64) for places in np.nonzero(mask)]
    return Picks(tuple(parts), _broadcast([part for part in parts if isinstance(part, np.ndarray)]), at)


def _dimensions(schema: Schema, given: Sequence[Any], arrays: Sequence[AnyArray | None]) -> int:
    """How many dimensions the parts of a key stand for, without an ellipsis."""
    if sum(part is Ellipsis for part in given) > 1:
        raise BoundsError("an index can have only one ellipsis (...)")
    if any(part is None for part in given):
        raise UnsupportedError(NEW_AXIS)
    taken = 0
    for part, found in zip(given, arrays, strict=True):
        taken += 0 if part is Ellipsis else 1 if found is None or found.dtype.kind != "b" else found.ndim
    if taken > schema.ndim:
        raise BoundsError(
            f"too many indices: the array has {schema.ndim} dimensions, {taken} were given (a mask counts as many as "
            f"it has)"
        )
    return taken


def _along(schema: Schema, part: Any, axis: int) -> AnyArray | Axis:
    """The axis of a slice; of an integer, beside lists, the position as an array without axes."""
    found = axis_of(schema.dims[axis], part, axis)
    return found if isinstance(part, slice) else np.array(found.start, np.uint64)


def _checked_mask(schema: Schema, mask: AnyArray, axis: int) -> AnyArray:
    dims = schema.dims[axis : axis + mask.ndim]
    shape = tuple(dim.size for dim in dims)
    if mask.shape != shape:
        names = ", ".join(repr(dim.name) for dim in dims)
        raise BoundsError(
            f"a mask of shape {mask.shape} was given for the dimensions {names} (from axis {axis} on), which have "
            f"shape {shape}; a mask has the shape of the dimensions it stands for, here all of {schema.shape} or some "
            f"of them"
        )
    return mask


def _broadcast(parts: Sequence[AnyArray]) -> tuple[int, ...]:
    """The shape that the lists make together."""
    shapes = [part.shape for part in parts]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " ".join(str(shape) for shape in shapes if shape)
        raise BoundsError(
            f"the lists of positions have shapes {shown}, which do not broadcast together: lists in brackets are taken "
            f"point by point, as NumPy does; every combination of them is .oindex[...]"
        ) from None


def _place(schema: Schema, given: Sequence[Any], arrays: Sequence[AnyArray | None]) -> int:
    """Where the lists' axes begin in the result: NumPy says it itself, of an array of one cell."""
    key: list[Any] = []
    for part, found in zip(given, arrays, strict=True):
        if found is not None:
            key += [np.zeros(2, np.intp)] * (found.ndim if found.dtype.kind == "b" else 1)
        else:
            key.append(part if part is Ellipsis else slice(None) if isinstance(part, slice) else 0)
    made: AnyArray = np.empty((1,) * schema.ndim, np.bool_)[tuple(key)]
    return made.shape.index(2)
