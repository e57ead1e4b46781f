"""Columns without categories as Arrow arrays, and back.

Complex numbers, vectors, lists and bytes of a fixed length are nested or binary types in Arrow. All other columns are
those of `arrow_flat`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from . import arrow_flat, columns, datatype, nested
from .arrow_types import bits, type_of, validity_of
from .columns import Column, Field
from .datatype import AnyArray


def array_of(column: Column, *, keep_nat: bool = False) -> "pa.Array":
    """The Arrow array of a flat column, over the same memory; `keep_nat` as in `arrow.array_of`."""
    base = datatype.base_of(column.dtype)
    if datatype.is_list(column.dtype) and column.offsets is not None:
        width = datatype.numpy_of(base).itemsize
        child = array_of(Column(base, column.values.view(datatype.numpy_of(base))), keep_nat=keep_nat)
        buffers = [bits(column.validity), pa.py_buffer(column.offsets // width)]
        return pa.Array.from_buffers(type_of(column.dtype), len(column), buffers, children=[child])
    if datatype.is_complex(column.dtype):
        part = "float32" if column.dtype == "complex64" else "float64"
        return _of_fixed(column, array_of(Column(part, column.values.view(part))))
    if datatype.shape_of(column.dtype):
        flat = column.values.view(datatype.numpy_of(base))
        return _of_fixed(column, array_of(Column(base, flat), keep_nat=keep_nat))
    return arrow_flat.array_of(column, keep_nat=keep_nat)


def column_of(field: Field, data: Any) -> Column:
    """The column that an Arrow array or chunked array makes for `field`; an `InputError` if it does not fit."""
    array = arrow_flat.one_chunk(field, data)
    if field.dtype in ("string", "bytes"):
        return arrow_flat.column_of_chunk(field, array)
    if datatype.is_fixed_bytes(field.dtype):
        return _fixed_bytes(field, array)
    if datatype.is_list(field.dtype):
        return _lists(field, array)
    if datatype.is_complex(field.dtype):
        return _complex(field, array)
    if datatype.shape_of(field.dtype):
        return _vectors(field, array)
    return arrow_flat.column_of_chunk(field, array)


def _of_fixed(column: Column, child: "pa.Array") -> "pa.Array":
    """Fixed-size lists over their items, from the innermost axis to the outermost."""
    made = type_of(column.dtype)
    levels = []
    while made != child.type:
        levels.append(made)
        made = made.value_type
    for level in reversed(levels):
        count = len(column) if level is levels[0] else len(child) // level.list_size
        buffers = [bits(column.validity) if level is levels[0] else None]
        child = pa.Array.from_buffers(level, count, buffers, children=[child])
    return child


def _unfit(field: Field, array: Any) -> InputError:
    return InputError(f"{field.title} is {field.dtype}, found an Arrow column of type {array.type}; cast it first")


def _fixed_bytes(field: Field, array: Any) -> Column:
    kinds, target = pa.types, datatype.numpy_of(field.dtype)
    array = array.cast(pa.large_binary()) if kinds.is_binary_view(array.type) else array
    valid = validity_of(array)
    if kinds.is_fixed_size_binary(array.type) and array.type.byte_width == target.itemsize and len(array):
        start = array.offset * target.itemsize
        flat = np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * target.itemsize]
        return Column(field.dtype, flat.view(target), None, valid)
    known = kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary
    if not any(is_kind(array.type) for is_kind in known):
        raise _unfit(field, array)
    nested.check_lengths(field, pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False), valid)
    plain = [b"" if value is None else value for value in array.to_pylist()]
    return Column(field.dtype, np.array(plain, target), None, valid)


def _items(field: Field, array: Any, valid_parents: AnyArray | None) -> Column:
    """The items of lists or vectors; an item that is null is an error, unless what it belongs to is null. A time that
    is null is NaT: items have no nulls.
    """
    base = nested.base_field(field, nullable=not datatype.is_time(datatype.base_of(field.dtype)))
    made = column_of(base, array)
    bad = None if made.validity is None else ~made.validity
    if bad is not None and valid_parents is not None:
        bad &= valid_parents
    if bad is not None and bad.any():
        raise InputError(f"{field.title} is {field.dtype}: item {int(np.flatnonzero(bad)[0])} is null; fill such items")
    return made


def _lists(field: Field, array: Any) -> Column:
    kinds = pa.types
    if kinds.is_fixed_size_list(array.type):
        array = array.cast(pa.large_list(array.type.value_type))
    if not (kinds.is_list(array.type) or kinds.is_large_list(array.type)):
        raise _unfit(field, array)
    valid = validity_of(array)
    if len(array) == 0:
        return replace(columns.empty(field.dtype, (0,), False), shape=None)
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False)).astype(np.int64)
    start, stop = int(offsets[0]), int(offsets[-1])
    parents = None if valid is None else np.repeat(valid, np.diff(offsets))
    items = _items(field, array.values.slice(start, stop - start), parents)
    flat = np.ascontiguousarray(items.values).view(np.uint8)
    return Column(field.dtype, flat, (offsets - start) * items.values.dtype.itemsize, valid)


def _complex(field: Field, array: Any) -> Column:
    part = "float32" if field.dtype == "complex64" else "float64"
    if not (pa.types.is_fixed_size_list(array.type) and array.type.list_size == 2):
        if pa.types.is_nested(array.type):
            raise _unfit(field, array)
        real = arrow_flat.column_of(field._replace(dtype=part), array)
        return Column(field.dtype, real.values.astype(field.dtype), None, real.validity)
    valid = validity_of(array)
    parents = None if valid is None else np.repeat(valid, 2)
    items = _items(field._replace(dtype=part), _children(array), parents)
    return Column(field.dtype, np.ascontiguousarray(items.values).view(field.dtype), None, valid)


def _children(array: Any) -> Any:
    """The items of fixed-size lists, those of null ones too."""
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def _vectors(field: Field, array: Any) -> Column:
    inner, kinds = datatype.shape_of(field.dtype), pa.types
    valid, child = validity_of(array), array
    for side in inner:
        if kinds.is_list(child.type) or kinds.is_large_list(child.type):
            child = _regular(field, child, side)
        elif kinds.is_fixed_size_list(child.type) and child.type.list_size == side:
            child = _children(child)
        else:
            raise _unfit(field, array)
    parents = None if valid is None else np.repeat(valid, int(np.prod(inner)))
    items = _items(field, child, parents)
    return Column(field.dtype, datatype.packed(field.dtype, items.values.reshape(-1, *inner)), None, valid)


def _regular(field: Field, array: Any, side: int) -> Any:
    """The items of lists that are all `side` long; those of null ones are null."""
    lengths = pc.fill_null(pc.list_value_length(array), side).to_numpy(zero_copy_only=False)
    if (lengths != side).any():
        row = int(np.flatnonzero(lengths != side)[0])
        raise InputError(f"{field.title} is {field.dtype}, found a list of {int(lengths[row])} values in row {row}")
    valid = validity_of(array)
    if valid is None:
        return array.flatten()
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False)).astype(np.int64)
    places = np.repeat(offsets[:-1], side).reshape(-1, side) + np.arange(side)
    mask = np.repeat(~valid, side)
    return array.values.take(pa.array(np.where(mask, 0, places.ravel()), mask=mask))
