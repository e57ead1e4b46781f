"""Columns as NumPy arrays: one element per cell, masked where null, or single values."""

from dataclasses import replace
from typing import Any

import numpy as np

from . import datatype, nested
from .columns import Column
from .datatype import AnyArray


def cells_of(column: Column) -> AnyArray:
    """One element per cell; strings, bytes and lists as objects, nulls as whatever stands there."""
    if column.categories is not None:
        return column.categories.decoded(column.values, column.validity)
    return column.values if column.offsets is None else objects(column)


def numpy_of(column: Column) -> AnyArray:
    """The values as one array; masked where null; strings, bytes and lists as an object array. Vectors add their
    axes at the end."""
    cells, mask = cells_of(column), None if column.validity is None else ~column.validity
    if column.shape is not None:
        order: Any = "F" if column.layout == "col" else "C"
        cells = cells.reshape(column.shape, order=order)
        mask = None if mask is None else mask.reshape(column.shape, order=order)
    return shown(cells, mask)


def shown(cells: AnyArray, mask: AnyArray | None) -> AnyArray:
    """An array of cells as users get it: vectors unpacked, masked where `mask` says so."""
    values = datatype.unpacked(cells)
    if mask is None:
        return values
    if values.ndim > mask.ndim:
        mask = np.broadcast_to(mask.reshape(*mask.shape, *(1,) * (values.ndim - mask.ndim)), values.shape).copy()
    return np.ma.MaskedArray(values, mask=mask)


def one(values: AnyArray) -> Any:
    """An array without axes as its only value (`numpy.ma.masked` where null); others as they are."""
    if values.ndim == 0 and np.ma.isMaskedArray(values) and np.ma.getmaskarray(values):
        return np.ma.masked  # NumPy would give a masked array for a list.
    return values[()]


def one_cell(dtype: str, value: Any) -> AnyArray:
    """A value of the schema (a fill) as an array of one cell without axes."""
    if datatype.is_var(dtype):
        made = np.empty((), object)
        made[()] = np.array(value, datatype.numpy_of(datatype.base_of(dtype))) if datatype.is_list(dtype) else value
        return made
    return datatype.packed(dtype, np.array(value, datatype.numpy_of(dtype)))


def objects(column: Column) -> AnyArray:
    """Strings, bytes or lists as a flat object array."""

    if datatype.is_list(column.dtype):
        return nested.objects(column)
    from . import arrow_flat

    flat: AnyArray = arrow_flat.array_of(replace(column, validity=None)).to_numpy(zero_copy_only=False)
    return flat
