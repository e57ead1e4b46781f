"""Positions of a dense array: reading any stride, writing boxes and strided cells."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..column import datatype, decode, encode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..column.values import cells_shape
from ..errors import InputError
from ..query.axis import Axis, axes_of
from ..query.box import Box, covering
from ..schema.array_schema import Schema
from ..schema.fields import attr_field
from ..version.receipt import Closing, Receipt
from ..write.values import by_attribute
from .handle import Handle
from .stretches import PIECE_CELLS, stretches

Arrays = dict[str, AnyArray]

_SPLIT_CELLS = 1 << 20
_SPLIT_SHARE = 4
"""A large box is read in pieces if so many times as many cells lie in it as were asked for."""
_WINDOW = 1 << 20
"""Positions along an axis that are looked at at once, which bounds their memory."""


def read(array: Handle, names: Sequence[str], axes: Sequence[Axis]) -> Arrays:
    """The attributes at these positions; integers drop their axis, single cells come as scalars."""
    return _ones(read_arrays(array, array.schema, names, axes))


def read_at(array: Handle, schema: Schema, names: Sequence[str], key: Any) -> Arrays:
    """What `array[key]` gives: as in NumPy, an ellipsis keeps a single cell an array."""
    found = read_arrays(array, schema, names, axes_of(schema, key))
    dotted = key is Ellipsis or (isinstance(key, tuple) and any([part is Ellipsis for part in key]))
    return found if dotted else _ones(found)


def _ones(found: Arrays) -> Arrays:
    """Those without axes as values."""
    return {name: decode.one(values) for name, values in found.items()}


def read_arrays(array: Handle, schema: Schema, names: Sequence[str], axes: Sequence[Axis]) -> Arrays:
    """The attributes at these positions as arrays, of no dimension where integers chose one cell."""
    found = _read_strided(array, schema, names, axes)
    dropped = tuple([0 if axis.drop else slice(None) for axis in axes])
    return {name: values[(*dropped, ...)] for name, values in found.items()} if 0 in dropped else found


def _read_strided(array: Handle, schema: Schema, names: Sequence[str], axes: Sequence[Axis]) -> Arrays:
    """Reads the covering box and strides over it; piece by piece where it is large and holds much besides."""
    box = covering(schema, axes)
    cells, asked = math.prod(box.shape), math.prod([axis.count for axis in axes])
    if box.empty or cells <= _SPLIT_CELLS or cells < _SPLIT_SHARE * asked:
        return _covered(array, schema, names, axes, box)
    # All pieces of one version, whatever is committed through the handle meanwhile.
    still = array._still()
    found = _by_pieces(still, names, axes, frozenset())
    array._stats = still._stats
    return found


def _covered(array: Handle, schema: Schema, names: Sequence[str], axes: Sequence[Axis], box: Box) -> Arrays:
    found = array._read_box(schema, box, list(names))
    if all([axis.step == 1 and axis.count for axis in axes]):
        return found
    strides = tuple([_stride(axis) for axis in axes])
    made = {name: values[strides] for name, values in found.items()}
    # A view would hold all that was read.
    wide = math.prod(box.shape) > 2 * math.prod([axis.count for axis in axes])
    return {name: values.copy() for name, values in made.items()} if wide else made


def _by_pieces(array: Handle, names: Sequence[str], axes: Sequence[Axis], settled: frozenset[int]) -> Arrays:
    """As `_read_strided`, cut along the axis of the widest stride but the settled ones, then along the next; along
    those without a stride only where a piece is still large."""
    schema = array.schema
    box = covering(schema, axes)
    shape = box.shape
    left = [i for i, axis in enumerate(axes) if i not in settled and axis.count > 1]
    strided = [i for i in left if abs(axes[i].step) > 1]
    cells = math.prod(shape)
    if cells <= _SPLIT_CELLS or (not strided and (not left or cells <= PIECE_CELLS)):
        return _covered(array, schema, names, axes, box)
    wide = max(strided or left, key=lambda i: (abs(axes[i].step), axes[i].count))
    axis = axes[wide]
    parts = []
    for run in _runs(schema, axis, wide, cells // shape[wide]):
        # Of a falling stride the last positions come first.
        first = run.start if axis.step > 0 else axis.count - run.stop
        part = Axis(axis.start + first * axis.step, run.stop - run.start, axis.step, False)
        part_axes = [part if i == wide else other for i, other in enumerate(axes)]
        parts.append(_by_pieces(array, names, part_axes, settled | {wide}))
    if axis.step < 0:
        parts.reverse()
    return {name: _joined([part[name] for part in parts], wide) for name in names}


def _runs(schema: Schema, axis: Axis, number: int, across: int) -> Iterator[slice]:
    """The positions of an axis, ascending, in runs that are read together, looked at a window at a time."""
    for start in range(0, axis.count, _WINDOW):
        steps = np.arange(start, min(start + _WINDOW, axis.count), dtype=np.uint64)
        offsets = np.uint64(axis.covering[0]) + steps * np.uint64(abs(axis.step))
        for run in stretches(schema, number, offsets, across):
            yield slice(start + run.start, start + run.stop)


def _joined(parts: Sequence[AnyArray], axis: int) -> AnyArray:
    masked = any(np.ma.isMaskedArray(part) for part in parts)
    join: Any = np.ma.concatenate if masked else np.concatenate
    joined: AnyArray = join(parts, axis)
    return joined


def _stride(axis: Axis) -> slice:
    if axis.count == 0:
        return slice(0, 0)
    return slice(None, None, axis.step) if axis.count > 1 else slice(0, 1)


def write(array: Handle, name: str | None, axes: Sequence[Axis], value: Any) -> None:
    """`array[axes] = value`: a scalar, an array that broadcasts, or a dict of them by attribute."""
    schema = array.schema
    shape = tuple(axis.count for axis in axes if not axis.drop)
    full = tuple(axis.count for axis in axes)
    given = by_attribute(schema, value, name)
    made = {n: encode.from_values(attr_field(schema, n), v, shape) for n, v in given.items()}
    if math.prod(full) == 0:
        return
    if all(axis.step == 1 or axis.count == 1 for axis in axes):
        _stage_box(array, covering(schema, axes), made, full)
        return
    made = {n: row_major(column) for n, column in made.items()}
    array._stage_cells(positions(schema, axes), made, sorted=False, dedup="error", message=None, progress=None)


def row_major(column: Column) -> Column:
    """The column's cells as a flat one."""
    if column.offsets is not None:
        return column
    validity = None if column.validity is None else column.validity.ravel()
    return replace(column, values=column.values.ravel(), validity=validity)


def positions(schema: Schema, axes: Sequence[Axis]) -> dict[str, Column]:
    """The coordinates of every cell of a strided selection, in row-major order."""
    box = covering(schema, axes)
    shape = tuple(axis.count for axis in axes)
    found = {}
    for i, (dim, axis) in enumerate(zip(schema.dims, axes, strict=True)):
        first, last = axis.covering
        along = box.coordinates(i)
        along = along[:: abs(axis.step)] if last > first else along
        along = along[::-1] if axis.step < 0 else along
        spread = [1] * len(axes)
        spread[i] = axis.count
        found[dim.name] = Column(dim.dtype, np.broadcast_to(along.reshape(spread), shape).ravel())
    return found


def write_box(array: Handle, box: Box, value: Any, message: Closing, progress: Any) -> int | Receipt:
    """Writes arrays of exactly the box's shape (or single values) to it."""
    shape = box.shape
    made = {}
    for name, data in by_attribute(array.schema, value, None).items():
        field = attr_field(array.schema, name)
        found = cells_shape(field, data)
        if found not in ((), shape):
            inner = datatype.shape_of(field.dtype)
            values = f", each value {inner}" if inner else ""
            raise InputError(
                f"attribute {name!r}: the data has shape {np.shape(data)}, the box {box} has shape {shape}{values}"
            )
        made[name] = encode.from_values(field, data, shape)
    return _stage_box(array, box, made, shape, message, progress)


def _stage_box(
    array: Handle,
    box: Box,
    made: Mapping[str, Column],
    shape: tuple[int, ...],
    message: Closing = None,
    progress: Any = None,
) -> int | Receipt:
    layout = "col" if made and all(_is_col(column) for column in made.values()) else "row"
    native = {name: _shaped(column, shape).native(layout) for name, column in made.items()}
    return array._stage_box(box, native, layout, message, progress)


def _is_col(column: Column) -> bool:
    flags = column.values.flags
    return column.offsets is None and column.values.ndim > 1 and flags.f_contiguous and not flags.c_contiguous


def _shaped(column: Column, shape: tuple[int, ...]) -> Column:
    """The column with the axes that integers dropped put back."""
    if column.offsets is not None:
        return column
    validity = None if column.validity is None else column.validity.reshape(shape)
    return replace(column, values=column.values.reshape(shape), validity=validity)
