"""Makes columns of values without categories: arrays, sequences, scalars, Arrow arrays."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..base.printable import brief
from ..errors import InputError
from . import datatype, decode, nested
from .cast import broadcast, cast, checked_validity, is_missing
from .columns import Column, Field
from .datatype import AnyArray


def column_of(field: Field, data: Any, shape: tuple[int, ...] | None = None, nan_is_null: bool = False) -> Column:
    """The column that `data` makes for a field without categories; see `encode.from_values`."""
    if _is_arrow(data):
        from . import arrow_nested

        return shaped(field, arrow_nested.column_of(field, data), shape)
    if datatype.is_list(field.dtype):
        return nested.lists(field, data, shape)
    array, valid = _cells(field, data, nan_is_null)
    if shape is not None:
        array = broadcast(field.title, array, shape)
        valid = None if valid is None else broadcast(field.title, valid, shape)
    if datatype.is_var(field.dtype):
        return _encode_var(field, array, valid)
    return Column(field.dtype, array, None, checked_validity(field, valid, array.shape))


def shaped(field: Field, made: Column, shape: tuple[int, ...] | None) -> Column:
    """The cells of a flat column broadcast to `shape`."""
    if shape is None or shape == (len(made),):
        return made
    if made.offsets is not None:
        cells = decode.objects(made)
        if made.validity is not None:
            cells = cells.copy()
            cells[~made.validity] = None
        return column_of(field, cells, shape)
    valid = None if made.validity is None else broadcast(field.title, made.validity, shape)
    return replace(made, values=broadcast(field.title, made.values, shape), validity=valid)


def _cells(field: Field, data: Any, nan_is_null: bool) -> tuple[AnyArray, AnyArray | None]:
    """One element per cell, and the cells that are not null."""
    if datatype.is_fixed_bytes(field.dtype):
        return nested.fixed_bytes(field, data)
    if datatype.shape_of(field.dtype):
        return nested.vectors(field, data)
    return _plain(field, data, nan_is_null)


def cells_shape(field: Field, data: Any) -> tuple[int, ...]:
    """The shape of the cells that `data` has values for; () for a single value."""
    if datatype.is_list(field.dtype):
        return tuple(nested.lists_of(data).shape)
    found: tuple[int, ...] = np.shape(data)
    return found[: max(len(found) - len(datatype.shape_of(field.dtype)), 0)]


def _is_arrow(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "pyarrow" or (
        hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    )


def _plain(field: Field, data: Any, nan_is_null: bool) -> tuple[AnyArray, AnyArray | None]:
    """The values as an array of the field's dtype (objects for strings and bytes) and the cells that are not null."""
    valid: AnyArray | None = None
    if isinstance(data, np.ma.MaskedArray):
        if data.mask is not np.ma.nomask:
            valid = ~np.ma.getmaskarray(data)
            data = data.filled(data.dtype.type()) if data.dtype.kind not in "OT" else data.data
        else:
            data = data.data
    array = _as_array(field, data)
    if array.dtype.kind == "O" and not datatype.is_var(field.dtype):
        array, missing = _typed_objects(field, array)
        valid = missing if valid is None else valid & missing
    if nan_is_null and field.nullable and array.dtype.kind in "fcmM":
        nan = np.isnan(array) if array.dtype.kind in "fc" else np.isnat(array)
        valid = ~nan if valid is None else valid & ~nan
    if datatype.is_var(field.dtype):
        return array, valid
    return cast(field, array, valid), valid


def _as_array(field: Field, data: Any) -> AnyArray:
    if isinstance(data, np.ndarray):
        return data.astype(object) if data.dtype.kind == "T" else data
    try:
        found = np.asarray(data)
    except ValueError as error:
        raise InputError(f"{field.title}: the values make no array: {error}") from error
    if found.size == 0 and isinstance(data, list | tuple):  # NumPy takes it for floats.
        return np.empty(found.shape, datatype.numpy_of(field.dtype))
    if datatype.is_var(field.dtype) or found.dtype.kind in "US":
        # NumPy would turn None into "None" and cut trailing zeros of bytes.
        return _object_array(data)
    return found


def _object_array(data: Any) -> AnyArray:
    if isinstance(data, str | bytes | bytearray) or not hasattr(data, "__len__"):
        scalar = np.empty((), object)
        scalar[()] = data
        return scalar
    if any(isinstance(item, list | tuple | np.ndarray) for item in data):
        return np.array(data, dtype=object)
    flat = np.empty(len(data), object)
    flat[:] = list(data)
    return flat


def _typed_objects(field: Field, array: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Objects as an array that NumPy has a type for, and which of them are not null."""
    present = np.array([not is_missing(v) for v in array.ravel()], np.bool_).reshape(array.shape)
    target = datatype.numpy_of(field.dtype)
    values = [v for v in array.ravel().tolist() if not is_missing(v)]
    try:
        if target.kind in "mM":
            found = np.array([datatype.scalar(field.dtype, v, field.title) for v in values], target)
        elif target.kind in "iu" and all(_is_whole(v) for v in values):
            found = _whole(values, target)
        else:
            found = np.array(values, None if values else target)
    except ValueError as error:
        raise InputError(f"{field.title} is {field.dtype}: {error}") from error
    if found.ndim != 1 or found.dtype.kind in "OUS":
        raise InputError(f"{field.title} is {field.dtype}: {_first_stranger(array)}")
    made = np.zeros(array.shape, found.dtype)
    made[present] = found
    return made, present


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(values: list[Any], target: np.dtype[Any]) -> AnyArray:
    """Integers as `target`; as NumPy takes them where one does not fit. NumPy makes floats of small and very large ones
    together, which would lose digits.
    """
    try:
        return np.array([int(value) for value in values], target)
    except OverflowError:
        return np.array(values)


def _first_stranger(array: AnyArray) -> str:
    for row, value in enumerate(array.ravel().tolist()):
        if not is_missing(value) and not isinstance(value, bool | int | float | complex | np.generic):
            return f"found {brief(value)} ({type(value).__name__}) in row {row}"
    return "found values of several shapes"


def _encode_var(field: Field, array: AnyArray, valid: AnyArray | None) -> Column:
    """Strings or bytes packed end to end."""
    from . import arrow_flat

    flat = np.ravel(array)
    if flat.dtype.kind in "US" and flat.dtype.kind != ("U" if field.dtype == "string" else "S"):
        raise InputError(f"{field.title} is {field.dtype}, found {flat.dtype.name}")
    if flat.dtype.kind not in "OUS":
        raise InputError(f"{field.title} is {field.dtype}, found {flat.dtype.name}; make the values str or bytes first")
    if valid is not None:
        flat = flat.astype(object)
        flat[~np.ravel(valid)] = None
    packed = arrow_flat.pack(field, flat)
    checked_validity(field, packed.validity, (len(packed),))
    return packed
