"""Columns of values that are no single number: bytes of a fixed length, vectors and lists."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.printable import brief
from ..errors import InputError
from . import datatype
from .cast import broadcast, cast, checked_validity, is_missing
from .columns import Column, Field
from .datatype import AnyArray

Cells = tuple[AnyArray, AnyArray | None]
"""Values, and which of them are not null (None: all)."""


def base_field(field: Field, *, nullable: bool = False) -> Field:
    """What the items of a vector or list must hold."""
    return field._replace(dtype=datatype.base_of(field.dtype), nullable=nullable)


# Bytes of a fixed length.


def fixed_bytes(field: Field, data: Any) -> Cells:
    """Bytes of a fixed length: of NumPy's S or V, or objects. Shorter ones are padded with zero bytes."""
    valid: AnyArray | None = None
    if isinstance(data, np.ma.MaskedArray):
        valid, data = (None if data.mask is np.ma.nomask else ~np.ma.getmaskarray(data)), data.data
    width, target = datatype.length_of(field.dtype), datatype.numpy_of(field.dtype)
    found = data if isinstance(data, np.ndarray) else _objects_of_bytes(data)
    if found.dtype.kind == "V" and found.dtype.names is None and found.dtype.itemsize == width:
        return np.ascontiguousarray(found).view(target).reshape(found.shape), valid
    if found.dtype.kind == "O":
        present = np.array([not is_missing(v) for v in found.ravel()], np.bool_).reshape(found.shape)
        valid = present if valid is None else valid & present
        for row, value in enumerate(found.ravel()):
            if not isinstance(value, bytes | bytearray | memoryview) and not is_missing(value):
                raise InputError(
                    f"{field.title} is {field.dtype}, found {brief(value)} ({type(value).__name__}) in row {row}"
                )
        plain: Any = [b"" if is_missing(v) else bytes(v) for v in found.ravel()]
        lengths = np.array([len(v) for v in plain], np.int64)
    elif found.dtype.kind == "S":
        plain, lengths = found.ravel(), np.char.str_len(found.ravel())
    else:
        raise InputError(f"{field.title} is {field.dtype}, found {found.dtype.name}; make the values bytes first")
    check_lengths(field, lengths, None if valid is None else valid.ravel())
    return np.array(plain, target).reshape(found.shape), valid


def check_lengths(field: Field, lengths: AnyArray, valid: AnyArray | None) -> None:
    """An `InputError` names the first value that is too long."""
    width = datatype.length_of(field.dtype)
    long = lengths > width if valid is None else (lengths > width) & valid
    if long.any():
        row = int(np.flatnonzero(long)[0])
        raise InputError(f"{field.title} is {field.dtype}, found {int(lengths[row])} bytes in row {row}")


def _objects_of_bytes(data: Any) -> AnyArray:
    """NumPy would cut the zeros at the end of bytes, and make text of None."""
    if isinstance(data, bytes | bytearray | memoryview | np.bytes_) or is_missing(data):
        return _one(data)
    found = np.asarray(data)
    made = np.empty(found.shape, object)
    made[...] = data if found.ndim != 1 else [None if v is None else v for v in data]
    return made


def _one(value: Any) -> AnyArray:
    made = np.empty((), object)
    made[()] = value
    return made


# Vectors.


def vectors(field: Field, data: Any) -> Cells:
    """Vectors as cells (see `datatype.packed`), from arrays whose last axes are a vector's, or from objects."""
    inner = datatype.shape_of(field.dtype)
    mask = None
    if isinstance(data, np.ma.MaskedArray):
        mask, data = (None if data.mask is np.ma.nomask else np.ma.getmaskarray(data)), data.data
    try:
        found = np.asarray(data)
    except ValueError:  # of several lengths, or None among them
        found = _objects(data)
    valid: AnyArray | None = None
    if found.shape == (0,) and isinstance(data, list | tuple):  # NumPy takes it for floats.
        found = np.empty((0, *inner), datatype.numpy_of(base_field(field).dtype))
    if found.dtype.kind == "O":
        found, valid = _stacked(field, found, inner)
    _check_inner(field, found.shape, inner)
    if mask is not None:
        whole = mask.reshape(*mask.shape[: mask.ndim - len(inner)], -1)
        if bool((whole.any(-1) & ~whole.all(-1)).any()):
            raise InputError(f"{field.title}: a vector is null as a whole; found one of which a part is masked")
        valid = np.asarray(~whole.all(-1))
    spread = None if valid is None else np.broadcast_to(valid.reshape(*valid.shape, *(1,) * len(inner)), found.shape)
    return datatype.packed(field.dtype, cast(base_field(field), found, spread)), valid


def _check_inner(field: Field, shape: tuple[int, ...], inner: tuple[int, ...]) -> None:
    if len(shape) < len(inner) or shape[len(shape) - len(inner) :] != inner:
        raise InputError(f"{field.title} is {field.dtype}: values have a shape that ends in {inner}, found {shape}")


def _stacked(field: Field, found: AnyArray, inner: tuple[int, ...]) -> Cells:
    """Objects that are vectors or missing, or the numbers of vectors as objects, as an array of numbers."""
    flat = found.ravel()
    present = np.array([isinstance(v, list | tuple | np.ndarray) for v in flat], np.bool_)
    if not present.any() and not all(is_missing(v) for v in flat):
        return np.asarray(found.tolist()), None
    kept = []
    for row, value in enumerate(flat):
        if present[row]:
            one = np.asarray(value)
            kept.append(np.asarray(one.tolist()) if one.dtype.kind == "O" else one)
            if kept[-1].shape != inner:
                raise InputError(f"{field.title} is {field.dtype}, found shape {kept[-1].shape} in row {row}")
        elif not is_missing(value):
            raise InputError(
                f"{field.title} is {field.dtype}, found {brief(value)} ({type(value).__name__}) in row {row}"
            )
    made = np.zeros((flat.size, *inner), kept[0].dtype if kept else datatype.numpy_of(field.dtype))
    if kept:
        stacked = np.stack(kept)
        made = made.astype(stacked.dtype)
        made[present] = stacked
    return made.reshape(*found.shape, *inner), present.reshape(found.shape)


def _objects(data: Any) -> AnyArray:
    flat = np.empty(len(data), object)
    flat[:] = [np.ma.getdata(v) if isinstance(v, np.ma.MaskedArray) else v for v in data]
    return flat


# Lists.


def lists_of(data: Any) -> AnyArray:
    """What is given for lists as an object array, each of whose elements is one: objects are taken as they are, of
    other arrays the last axis is the lists', and sequences are nested as the array's axes are.
    """
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind == "O":
        made = data.data.copy()
        made[np.ma.getmaskarray(data)] = None
        return made
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind == "O" else _rows(data)
    if not _is_sequence(data) or not any(item is None or _is_sequence(item) for item in data):
        return _one(data)
    parts = [lists_of(item) for item in data]
    if len({part.shape for part in parts}) > 1:
        return _objects(data)
    made = np.empty((len(parts), *parts[0].shape), object)
    for place, part in enumerate(parts):
        made[place] = part[()]
    return made


def _is_sequence(value: Any) -> bool:
    return isinstance(value, np.ndarray | Sequence) and not isinstance(value, str | bytes)


def _rows(array: AnyArray) -> AnyArray:
    made = np.empty(array.shape[:-1], object)
    for place in np.ndindex(made.shape):
        made[place] = array[place]
    return made


def lists(field: Field, data: Any, shape: tuple[int, ...] | None) -> Column:
    """Lists packed end to end; offsets count bytes."""
    flat_given = shape is None and isinstance(data, Sequence) and len(data) == 0
    found = np.empty(0, object) if flat_given else lists_of(data)
    found = found if shape is None else broadcast(field.title, found, shape)
    if shape is None and found.ndim != 1:
        raise InputError(f"{field.title}: cells are a flat list of lists, found shape {found.shape}")
    base, flat = base_field(field), found.ravel()
    parts = [_items(field, value, row) for row, value in enumerate(flat)]
    valid = np.array([part is not None for part in parts], np.bool_)
    filled = [part for part in parts if part is not None and part.size]
    target = datatype.numpy_of(base.dtype)
    if not filled:
        values = np.empty(0, target)
    elif len({part.dtype for part in filled}) == 1:
        values = _cast_all(field, base, np.concatenate(filled), parts)
    else:
        values = np.concatenate(
            [_cast_row(field, base, part, row) for row, part in enumerate(parts) if part is not None]
        )
    sizes = np.array([0, *(0 if part is None else part.size for part in parts)], np.int64)
    checked = checked_validity(field, valid, valid.shape)
    return Column(field.dtype, np.ascontiguousarray(values).view(np.uint8), np.cumsum(sizes) * target.itemsize, checked)


def _items(field: Field, value: Any, row: int) -> AnyArray | None:
    """The items of one list; None for null."""
    if isinstance(value, np.ma.MaskedArray) and value.mask is not np.ma.nomask and value.mask.any():
        raise InputError(f"{field.title}, row {row}: a list is null as a whole; found one with a masked item")
    if not _is_sequence(value):
        if is_missing(value):
            return None
        raise InputError(f"{field.title} is {field.dtype}, found {brief(value)} ({type(value).__name__}) in row {row}")
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{field.title} is {field.dtype}, found a list of several shapes in row {row}") from error
    if found.ndim != 1:
        raise InputError(f"{field.title} is {field.dtype}, found a value of shape {found.shape} in row {row}")
    if found.dtype.kind == "O":
        found = _of_objects(field, found, row)
    return found


def _of_objects(field: Field, items: AnyArray, row: int) -> AnyArray:
    base = datatype.base_of(field.dtype)
    if datatype.is_time(base):
        return np.array([datatype.scalar(base, v, f"{field.title}, row {row}") for v in items], base)
    made = np.asarray(items.tolist())
    if made.dtype.kind == "O":
        raise InputError(f"{field.title} is {field.dtype}, found {brief(items.tolist())} in row {row}")
    return made


def _cast_all(field: Field, base: Field, values: AnyArray, parts: list[AnyArray | None]) -> AnyArray:
    try:
        return cast(base, values)
    except InputError:
        for row, part in enumerate(parts):
            if part is not None:
                _cast_row(field, base, part, row)
        raise


def _cast_row(field: Field, base: Field, part: AnyArray, row: int) -> AnyArray:
    if part.size == 0:
        return np.empty(0, datatype.numpy_of(base.dtype))
    try:
        return cast(base, part)
    except InputError as error:
        raise InputError(f"{field.title} is {field.dtype}: the list in row {row}: {error}") from error


def objects(column: Column) -> AnyArray:
    """The lists of a column as an object array of arrays, which share the column's memory."""
    assert column.offsets is not None
    target = datatype.numpy_of(datatype.base_of(column.dtype))
    items = column.values.view(target)
    ends = (column.offsets // target.itemsize).tolist()
    made = np.empty(len(ends) - 1, object)
    for row in range(made.size):
        made[row] = items[ends[row] : ends[row + 1]]
    return made
