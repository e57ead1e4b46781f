"""Lists of positions and masks in plain brackets: `a[[1, 5], :]`, `a[mask]`, what NumPy calls advanced indexing.

A key means what it means to NumPy. Lists, masks (as the positions where they are true) and the integers beside them
broadcast together, point by point; slices stand for all their positions. The axes of the lists stand in the result
where the first of them stood in the key if they are neighbours there, and in front if something lies between them.

Cells are read in whichever of three ways takes least: as the few boxes that hold every combination of the positions,
point by point, or, where slices make much of each point, a box for each. All of it is of one version. Beside the result
a read takes a bounded piece or, where lists broadcast, up to four times as much; a mask over several dimensions is
looked at part by part. An assignment is one commit, and holds the coordinates of the cells that it chooses; of a cell
that is named twice, in row order of the selection, the last value stays.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import decode, encode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import BoundsError, UnsupportedError
from ..query.axis import NEW_AXIS, Axis, axes_of, axis_of
from ..schema.array_schema import Schema
from ..schema.fields import attr_field, empty_of
from ..write.values import by_attribute
from ..write.writer import Writer
from . import dense, lists
from .handle import Handle
from .stretches import PIECE_CELLS

Arrays = dict[str, AnyArray]

_BASIC = frozenset((int, slice, EllipsisType, NoneType))
"""Types of which no list or mask is."""
_SPREAD = 4
"""Every combination of lists that broadcast is read if it is at most so many times as many cells as the points."""
_MASK_SPREAD = 32
"""The box around a piece of a mask is read if it holds at most so many times as many cells as the mask chooses."""
_POINTS_MAX = 1 << 22
"""Cells read one by one in one go, which bounds the memory of their coordinates."""
_STREAMED_CELLS = 1 << 20
"""More cells than this are written piece by piece."""
_ROW_CELLS = 512
"""Where slices make as many cells of each point they are read as a box."""


@dataclass(frozen=True, slots=True)
class Picks:
    """What lists ask for: per dimension positions (uint64, from 0), flat ones of a slice, of any shape else."""

    parts: tuple[AnyArray, ...]
    sliced: tuple[bool, ...]
    """By dimension, whether a slice chose the positions."""
    shape: tuple[int, ...]
    """What the lists broadcast to."""
    at: int
    """Where the axes of `shape` begin in the result."""

    @property
    def listed(self) -> list[int]:
        """The dimensions whose positions are not a slice's."""
        return [i for i, sliced in enumerate(self.sliced) if not sliced]

    @property
    def across(self) -> tuple[int, ...]:
        """How many positions each slice has."""
        return tuple(part.size for part, sliced in zip(self.parts, self.sliced, strict=True) if sliced)

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (*self.across[: self.at], *self.shape, *self.across[self.at :])

    def coordinates(self, schema: Schema, start: int, stop: int) -> dict[str, Column]:
        """The coordinates of some cells of the result, which are counted in row order."""
        places = np.unravel_index(np.arange(start, stop), self.result)
        chosen = places[self.at : self.at + len(self.shape)]
        others = iter((*places[: self.at], *places[self.at + len(self.shape) :]))
        found = {}
        for dim, part, sliced in zip(schema.dims, self.parts, self.sliced, strict=True):
            offsets = part[next(others)] if sliced else np.broadcast_to(part, self.shape)[chosen]
            found[dim.name] = Column(dim.dtype, lists.coordinates(dim, offsets))
        return found

    def placed(self, values: AnyArray) -> AnyArray:
        """Values whose axes are those of the lists and then those of the slices as the result has them."""
        count = len(self.shape)
        moved: AnyArray = np.moveaxis(values, range(count), range(self.at, self.at + count))
        return moved

    @property
    def axes(self) -> list[Axis] | None:
        """The same as a box, if it is one whose axes are in their order."""
        arrays = [i for i in self.listed if self.parts[i].ndim]
        natural = len(self.shape) == 1 and len(arrays) == 1 and self.at == sum(self.sliced[: arrays[0]])
        if not natural or not all(lists.is_run(np.ravel(part)) for part in self.parts):
            return None
        return [Axis(int(part.flat[0]) if part.size else 0, part.size, 1, part.ndim == 0) for part in self.parts]


@dataclass(frozen=True, slots=True)
class Masked:
    """The cells where a mask over neighbouring dimensions is true, at positions (uint64) along the others."""

    before: tuple[AnyArray, ...]
    mask: AnyArray
    after: tuple[AnyArray, ...]

    def picks(self, part: AnyArray, low: Sequence[int]) -> Picks:
        """The cells that a part of the mask chooses, whose first one is at `low`, as lists."""
        places = [
            found.astype(np.uint64) + np.uint64(first) for found, first in zip(np.nonzero(part), low, strict=True)
        ]
        sliced = (*(True,) * len(self.before), *(False,) * part.ndim, *(True,) * len(self.after))
        return Picks((*self.before, *places, *self.after), sliced, places[0].shape, len(self.before))


def read_at(array: Handle, schema: Schema, names: Sequence[str], key: Any) -> Arrays:
    """What `array[key]` gives of a dense array, by attribute."""
    asked = parsed(schema, key)
    if asked is None:
        return dense.read_at(array, schema, names, key)
    if isinstance(asked, Masked):
        return _read_masked(array, schema, names, asked)
    return _read(array, schema, names, asked)


def assign(array: Handle, name: str | None, key: Any, value: Any) -> None:
    """`array[key] = value` of a dense array, or of one of its attributes."""
    schema = array.schema
    asked = parsed(schema, key)
    if asked is None:
        dense.write(array, name, axes_of(schema, key), value)
        return
    picks = asked.picks(asked.mask, (0,) * asked.mask.ndim) if isinstance(asked, Masked) else asked
    axes = picks.axes
    if axes is not None:
        dense.write(array, name, axes, value)
    else:
        _write(array, name, picks, value)


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


def parsed(schema: Schema, key: Any) -> Picks | Masked | None:
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
    parts: list[AnyArray] = []
    sliced: list[bool] = []
    masks: list[tuple[int, AnyArray]] = []
    for part, found in zip(given, arrays, strict=True):
        axis = len(parts)
        if found is not None and found.dtype.kind == "b":
            masks.append((axis, _checked_mask(schema, found, axis)))
            made = [np.empty(0, np.uint64)] * found.ndim
        elif found is not None:
            made = [lists.offsets_of(schema.dims[axis], found if found.dtype.kind in "iu" else part, axis)]
        elif part is Ellipsis:
            made = [_along(schema, slice(None), axis + i) for i in range(missing)]
        else:
            made = [_along(schema, part, axis)]
        parts += made
        sliced += [part is Ellipsis or isinstance(part, slice)] * len(made)
    for axis in range(len(parts), schema.ndim):
        parts.append(_along(schema, slice(None), axis))
        sliced.append(True)
    axis, mask = masks[0] if masks else (0, None)
    # One along one axis of several is a list of positions.
    if mask is not None and sliced.count(False) == mask.ndim and (mask.ndim > 1 or schema.ndim == 1):
        return Masked(tuple(parts[:axis]), mask, tuple(parts[axis + mask.ndim :]))
    for axis, mask in masks:
        parts[axis : axis + mask.ndim] = [places.astype(np.uint64) for places in np.nonzero(mask)]
    return Picks(tuple(parts), tuple(sliced), _broadcast(parts, sliced), _place(schema, given, arrays))


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


def _along(schema: Schema, part: Any, axis: int) -> AnyArray:
    """The positions along a dimension that an integer (an array without axes then) or a slice asks for."""
    dim = schema.dims[axis]
    if isinstance(part, slice):
        return lists.axis_list(dim, part, axis)[0]
    return np.array(axis_of(dim, part, axis).start, np.uint64)


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


def _broadcast(parts: Sequence[AnyArray], sliced: Sequence[bool]) -> tuple[int, ...]:
    """The shape that the lists make together."""
    shapes = [part.shape for part, is_slice in zip(parts, sliced, strict=True) if not is_slice]
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


# Reading.


def _empty(schema: Schema, names: Sequence[str], shape: tuple[int, ...]) -> Arrays:
    return {name: decode.numpy_of(empty_of(schema.attr(name), shape)) for name in names}


def _read(array: Handle, schema: Schema, names: Sequence[str], picks: Picks) -> Arrays:
    if 0 in picks.result:
        return _empty(schema, names, picks.result)
    listed, flat = picks.listed, [np.ravel(part) for part in picks.parts]
    # One list, perhaps with integers beside it, is a list along its axis.
    if sum(picks.parts[i].size > 1 for i in listed) <= 1:
        found = _in_front(lists.orthogonal(array, names, flat), listed)
        return {
            name: picks.placed(values.reshape(*picks.shape, *values.shape[len(listed) :]))
            for name, values in found.items()
        }
    unique = {}
    if math.prod(picks.result) >= _ROW_CELLS:
        unique = {i: np.unique(picks.parts[i], return_inverse=True) for i in listed}
    if unique and math.prod(values.size for values, _ in unique.values()) <= _SPREAD * math.prod(picks.shape):
        along = [unique[i][0] if i in unique else part for i, part in enumerate(flat)]
        places = tuple(unique[i][1].reshape(picks.parts[i].shape) for i in listed)
        found = _in_front(lists.orthogonal(array, names, along), listed)
        return {name: picks.placed(values[places]) for name, values in found.items()}
    still = array._still()
    made = _scattered(still, names, picks)
    array._stats = still._stats
    return made


def _in_front(found: Arrays, listed: Sequence[int]) -> Arrays:
    """The axes of the lists before those of the slices."""
    return {name: np.moveaxis(values, listed, range(len(listed))) for name, values in found.items()}


def _scattered(array: Handle, names: Sequence[str], picks: Picks) -> Arrays:
    """Points that lie apart: one by one, or with a box for each."""
    return (_by_rows if math.prod(picks.across) >= _ROW_CELLS else _by_points)(array, names, picks)


def _by_points(array: Handle, names: Sequence[str], picks: Picks) -> Arrays:
    made: Arrays = {}
    shape = picks.result
    cells = math.prod(shape)
    for start in range(0, cells, _POINTS_MAX):
        stop = min(start + _POINTS_MAX, cells)
        found = lists.values_at(array, picks.coordinates(array.schema, start, stop), names, (stop - start,))
        for name, values in found.items():
            if stop - start == cells:
                made[name] = values
            else:
                lists.target(made, name, values, (cells,))[start:stop] = values
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in made.items()}


def _by_rows(array: Handle, names: Sequence[str], picks: Picks) -> Arrays:
    made: Arrays = {}
    listed = picks.listed
    spread = [np.ravel(np.broadcast_to(picks.parts[i], picks.shape)) for i in listed]
    points, places = np.unique(np.stack(spread, axis=1), axis=0, return_inverse=True)
    along = [np.ravel(part) for part in picks.parts]
    for row, point in enumerate(points):
        for axis, i in enumerate(listed):
            along[i] = point[axis : axis + 1]
        for name, values in _in_front(lists.orthogonal(array, names, along), listed).items():
            values = values.reshape(1, *values.shape[len(listed) :])
            lists.target(made, name, values, (len(points), *picks.across))[row : row + 1] = values
    shaped = places.reshape(picks.shape)
    return {name: picks.placed(values[shaped]) for name, values in made.items()}


def _read_masked(array: Handle, schema: Schema, names: Sequence[str], asked: Masked) -> Arrays:
    """The cells where a mask is true: as boxes where it is dense, one by one where it is not."""
    across = tuple(part.size for part in (*asked.before, *asked.after))
    first = len(asked.before)
    shape = (*across[:first], int(np.count_nonzero(asked.mask)), *across[first:])
    if 0 in shape:
        return _empty(schema, names, shape)
    made: Arrays = {}
    done, still = 0, array._still()
    for part, low in _pieces(asked.mask, (0,) * asked.mask.ndim, math.prod(across)):
        count = int(np.count_nonzero(part))
        found = _of_piece(still, names, asked, part, low)
        array._stats = still._stats
        if count == shape[first]:
            return found
        for name, values in found.items():
            lists.target(made, name, values, shape)[(slice(None),) * first + (slice(done, done + count),)] = values
        done += count
    return made


def _pieces(mask: AnyArray, low: tuple[int, ...], across: int) -> Iterator[tuple[AnyArray, tuple[int, ...]]]:
    """Cuts a mask, whose first cell is at `low`, into parts that are read in one go, in row order, and leaves out what
    chooses nothing."""
    count = int(np.count_nonzero(mask))
    if not count:
        return
    held = _held(mask)
    mask = mask[tuple(slice(int(places[0]), int(places[-1]) + 1) for places in held)]
    low = tuple(first + int(places[0]) for first, places in zip(low, held, strict=True))
    box = math.prod(places.size for places in held)
    fits = box * across <= PIECE_CELLS if box <= _MASK_SPREAD * count else count * across <= _POINTS_MAX
    if fits or mask.size == 1:
        yield mask, low
        return
    axis = next(i for i, size in enumerate(mask.shape) if size > 1)
    half = mask.shape[axis] // 2
    yield from _pieces(mask[(slice(None),) * axis + (slice(half),)], low, across)
    above = (*low[:axis], low[axis] + half, *low[axis + 1 :])
    yield from _pieces(mask[(slice(None),) * axis + (slice(half, None),)], above, across)


def _held(mask: AnyArray) -> list[AnyArray]:
    """Along each axis the places where a mask is true somewhere."""
    axes = range(mask.ndim)
    return [np.flatnonzero(mask.any(axis=tuple(other for other in axes if other != axis))) for axis in axes]


def _of_piece(array: Handle, names: Sequence[str], asked: Masked, part: AnyArray, low: tuple[int, ...]) -> Arrays:
    held = _held(part)
    if math.prod(places.size for places in held) > _MASK_SPREAD * int(np.count_nonzero(part)):
        return _scattered(array, names, asked.picks(part, low))
    along = [places.astype(np.uint64) + np.uint64(first) for places, first in zip(held, low, strict=True)]
    found = lists.orthogonal(array, names, [*asked.before, *along, *asked.after])
    chosen = (slice(None),) * len(asked.before) + (part[np.ix_(*held)],)
    return {name: values[chosen] for name, values in found.items()}


# Writing.


def _write(array: Handle, name: str | None, picks: Picks, value: Any) -> None:
    """Writes cells with their coordinates, in one commit."""
    schema, shape = array.schema, picks.result
    given = by_attribute(schema, value, name)
    made = {n: encode.from_values(attr_field(schema, n), v, shape) for n, v in given.items()}
    cells = math.prod(shape)
    if cells == 0:
        return
    if cells <= _STREAMED_CELLS:
        flat = {n: dense.row_major(column) for n, column in made.items()}
        dims = picks.coordinates(schema, 0, cells)
        array._stage_cells(dims, flat, sorted=False, dedup="last", message=None, progress=None)
        return
    native = array._writable().unsorted_writer(list(made), "last")
    with Writer(array, native, None, list(made), None) as out:
        for start in range(0, cells, _STREAMED_CELLS):
            stop = min(start + _STREAMED_CELLS, cells)
            parts = {n: _part(column, shape, start, stop) for n, column in made.items()}
            out.append_columns(list(picks.coordinates(schema, start, stop).values()), parts)


def _part(column: Column, shape: tuple[int, ...], start: int, stop: int) -> Column:
    """Some cells of a column for a selection of this shape, which are counted in row order."""
    if column.offsets is not None:
        offsets = column.offsets[start : stop + 1]
        values = column.values[offsets[0] : offsets[-1]]
        validity = None if column.validity is None else column.validity[start:stop]
        return replace(column, values=values, offsets=offsets - offsets[0], validity=validity)
    places = np.unravel_index(np.arange(start, stop), shape)
    validity = None if column.validity is None else column.validity.reshape(shape)[places]
    return replace(column, values=column.values.reshape(shape)[places], validity=validity)
