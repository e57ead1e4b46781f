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
    if found.dtype.kind == "f" and isinstance(data, list | tuple) and bool((np.abs(found) >= 2.0**53).any()):
        # Integers among floats, of which NumPy has made floats too.
        return np.asarray(data, object)
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
    if target.kind in "mM":
        found = _times(field, array, target)
    elif target.kind in "iuf" and any(_is_whole(v) for v in values) and all(_is_real(v) for v in values):
        found = _exact(field, array, target)
    else:
        try:
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


def _is_real(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, float | np.floating)


def _times(field: Field, array: AnyArray, target: np.dtype[Any]) -> AnyArray:
    """Objects that are not null as times; an `InputError` names the row of the first that is none."""
    made = []
    for row, value in enumerate(array.ravel().tolist()):
        if not is_missing(value):
            found = datatype.time_value(field.dtype, value)
            if found is None:
                raise InputError(f"{field.title}, row {row}: {brief(value)} is no value of type {field.dtype}")
            made.append(found)
    return np.array(made, target)


def _exact(field: Field, array: AnyArray, target: np.dtype[Any]) -> AnyArray:
    """Numbers that are not null, some of them integers. NumPy makes floats of integers beside floats, and of small ones
    beside very large ones, which would lose digits.
    """
    flat = array.ravel().tolist()
    values = [v for v in flat if not is_missing(v)]
    if target.kind == "f":
        large = any(_is_whole(v) and abs(int(v)) > 2**53 for v in values)
        floats = any(not _is_whole(v) for v in values)
        return np.array(values, np.float64) if floats and not large else _checked(field, flat, target)
    whole = [int(v) if _is_whole(v) or float(v).is_integer() else None for v in values]
    try:
        return np.array(whole, target)
    except (OverflowError, TypeError):
        return _checked(field, flat, target)


def _checked(field: Field, flat: list[Any], target: np.dtype[Any]) -> AnyArray:
    """The same one by one; an `InputError` names the first that the type does not hold."""
    made = []
    for row, value in enumerate(flat):
        if is_missing(value):
            continue
        if not _holds(target, value):
            raise InputError(
                f"{field.title} is {field.dtype}, found {brief(value)} at row {row}, which {field.dtype} cannot hold; "
                f"convert the values first"
            )
        made.append(int(value) if target.kind in "iu" else float(value))
    return np.array(made, target)


def _holds(target: np.dtype[Any], value: Any) -> bool:
    if target.kind in "iu":
        ends = np.iinfo(target)
        return (_is_whole(value) or float(value).is_integer()) and ends.min <= int(value) <= ends.max
    try:
        with np.errstate(over="ignore"):
            made = float(target.type(float(value)))
    except OverflowError:
        return False
    if np.isinf(made):
        return not _is_whole(value) and np.isinf(value)
    return not _is_whole(value) or int(made) == int(value)


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
