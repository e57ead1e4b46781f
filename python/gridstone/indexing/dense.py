"""Reads any strides of a dense array, and writes boxes and strided cells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..column import datatype, decode, encode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..column.values import cells_shape
from ..errors import InputError
from ..query import pieces
from ..query.axis import Axis, axes_of
from ..query.box import Box, covering
from ..schema.array_schema import Schema
from ..schema.fields import attr_field
from ..version.receipt import Closing, Receipt
from ..write.values import by_attribute, frozen, nbytes_of
from . import chosen
from .handle import Handle

Arrays = dict[str, AnyArray]


def read(array: Handle, names: Sequence[str], axes: Sequence[Axis]) -> Arrays:
    """The attributes at these positions; integers drop their axis, single cells come as scalars."""
    return _ones(read_arrays(array, array._schema, names, axes))


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
    """Reads a box where every step is 1, else the positions alone."""
    if all([axis.step == 1 or axis.count == 1 for axis in axes]):
        return array._read_box(schema, covering(schema, axes), list(names))
    shape = tuple([axis.count for axis in axes])
    return chosen.read(array, schema, names, [chosen.strided(axis) for axis in axes], None, shape)


def write(array: Handle, name: str | None, axes: Sequence[Axis], value: Any) -> None:
    """`array[axes] = value`: a scalar, an array that broadcasts, or a dict of them by attribute."""
    array._writable()
    schema = array._schema
    shape = tuple(axis.count for axis in axes if not axis.drop)
    full = tuple(axis.count for axis in axes)
    if shape == full and all(axis.step == 1 for axis in axes):
        streamed = _streamed(value, full)
        if streamed is not None:
            _stream(array, name, covering(schema, axes), streamed, None, None)
            return
    given = by_attribute(schema, value, name)
    made = {n: encode.from_values(attr_field(schema, n), v, shape) for n, v in given.items()}
    if math.prod(full) == 0:
        return
    if all(axis.step == 1 or axis.count == 1 for axis in axes):
        _stage_box(array, covering(schema, axes), made, full)
        return
    made = {n: row_major(column) for n, column in made.items()}
    chosen.write(array, [chosen.strided(axis) for axis in axes], None, made)


def row_major(column: Column) -> Column:
    """The column's cells as a flat one."""
    if column.offsets is not None:
        return column
    validity = None if column.validity is None else column.validity.ravel()
    return replace(column, values=column.values.ravel(), validity=validity)


def write_box(
    array: Handle, box: Box, value: Any, message: Closing, progress: Any, grow: bool = False
) -> int | Receipt:
    """Writes arrays of exactly the box's shape (or single values) to it."""
    shape = box.shape
    streamed = _streamed(value, shape)
    if streamed is not None:
        return _stream(array, None, box, streamed, message, progress, grow)
    made = {}
    for name, data in by_attribute(array._schema, value, None).items():
        field = attr_field(array._schema, name)
        found = cells_shape(field, data)
        if found not in ((), shape):
            inner = datatype.shape_of(field.dtype)
            values = f", each value {inner}" if inner else ""
            raise InputError(
                f"attribute {name!r}: the data has shape {np.shape(data)}, the box {box} has shape {shape}{values}"
            )
        made[name] = encode.from_values(field, data, shape)
    return _stage_box(array, box, made, shape, message, progress, grow)


_WHOLE_BYTES_MAX = 64 << 20
"""Handles of more than this are written piece by piece."""
_PIECE_BYTES = 8 << 20


def _streamed(value: Any, shape: tuple[int, ...]) -> Any:
    """Handles of this shape that are too large to be read at once, as `_stream` takes them; None of anything else."""
    return frozen(value, shape) if nbytes_of(value) > _WHOLE_BYTES_MAX else None


def _stream(
    array: Handle, name: str | None, box: Box, value: Any, message: Closing, progress: Any, grow: bool = False
) -> int | Receipt:
    """Writes what handles hold to a box of their shape, in one commit and bounded memory."""
    schema = array._schema
    corner = by_attribute(schema, value, name, (slice(0, 1),) * schema.ndim)
    cells_max = max(1, _PIECE_BYTES * math.prod(box.shape) // nbytes_of(value))
    with array._writer(box, list(corner), message, progress, grow) as out:
        for part in pieces.runs(schema, box, cells_max):
            given = by_attribute(schema, value, name, part)
            out.append({n: pieces.listed(v, schema.ndim, schema.cell_order) for n, v in given.items()})
    return out.outcome


def _stage_box(
    array: Handle,
    box: Box,
    made: Mapping[str, Column],
    shape: tuple[int, ...],
    message: Closing = None,
    progress: Any = None,
    grow: bool = False,
) -> int | Receipt:
    layout, native = _native_columns(made, shape)
    return array._stage_box(box, native, layout, message, progress, grow)


def columns_of_box(schema: Schema, given: Mapping[str, Any], shape: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
    """Values of a box of this shape by attribute, as the core takes them, and how they are laid out."""
    made = {name: encode.from_values(attr_field(schema, name), data, shape) for name, data in given.items()}
    return _native_columns(made, shape)


def _native_columns(made: Mapping[str, Column], shape: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
    layout = "col" if made and all(_is_col(column) for column in made.values()) else "row"
    return layout, {name: _shaped(column, shape).native(layout) for name, column in made.items()}


def _is_col(column: Column) -> bool:
    flags = column.values.flags
    return column.offsets is None and column.values.ndim > 1 and flags.f_contiguous and not flags.c_contiguous


def _shaped(column: Column, shape: tuple[int, ...]) -> Column:
    """The column with the axes that integers dropped put back."""
    if column.offsets is not None:
        return column
    validity = None if column.validity is None else column.validity.reshape(shape)
    return replace(column, values=column.values.reshape(shape), validity=validity)
