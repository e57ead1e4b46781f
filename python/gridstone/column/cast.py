"""Values cast to the type of a field without loss, broadcast to a shape, and checked for nulls."""

from typing import Any

import numpy as np

from ..base.printable import brief
from ..errors import InputError
from . import datatype
from .columns import Field
from .datatype import AnyArray


def is_missing(value: Any) -> bool:
    """Whether a Python object stands for null: None, pandas' NA, NaT, a NaN among objects, or `numpy.ma.masked`."""
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType") or value != value


def cast(field: Field, array: AnyArray, valid: AnyArray | None = None) -> AnyArray:
    """`array` in the field's dtype and native byte order. Values must survive it, except that floats may be rounded to
    a narrower float; else an `InputError` names the first value that does not.
    """
    target = datatype.numpy_of(field.dtype)
    source = array.dtype
    if source.newbyteorder("=") == target:
        return array.astype(target, copy=False)
    kinds = (source.kind, target.kind)
    time = target.kind in "mM"
    if source.kind == "U" and time:
        made = _parse_times(field, array, target)
    elif kinds in (("i", "M"), ("i", "m"), ("M", "M"), ("m", "m")) or (
        source.kind in "iufc" and target.kind in ("iuf" if source.kind != "c" else "") + "c"
    ):
        with np.errstate(all="ignore"):
            made = array.astype(target)
            lost = _lost(array, made)
        if valid is not None:
            lost &= valid
        if lost.any():
            raise InputError(_loss(field, array, lost))
    else:
        raise InputError(
            f"{field.title} is {field.dtype}, found {source.name}; convert the values with .astype({field.dtype!r})"
        )
    return made


def _lost(array: AnyArray, made: AnyArray) -> AnyArray:
    """Which values did not survive."""
    source, target = array.dtype, made.dtype
    if target.kind == "c":
        parts = [array.real, array.imag] if source.kind == "c" else [array]
        lost: AnyArray = np.zeros(array.shape, np.bool_)
        for given, part in zip(parts, (made.real, made.imag), strict=False):
            lost |= _lost(given, part)
    elif source.kind == "f" and target.kind == "f":
        lost = np.isinf(made) & ~np.isinf(array)
    elif source.kind in "iu" and target.kind in "iu":
        info = np.iinfo(target)
        lost = np.zeros(array.shape, np.bool_)
        if np.iinfo(source).min < info.min:
            lost |= array < max(info.min, np.iinfo(source).min)
        if np.iinfo(source).max > info.max:
            lost |= array > info.max
    elif source.kind == "f":
        info = np.iinfo(target)
        lost = ~((array >= float(info.min)) & (array < float(info.max) + 1)) | (np.trunc(array) != array)
    elif source.kind in "mM":
        lost = (made.astype(source) != array) & ~np.isnat(array)
    elif np.can_cast(source, target) and source.itemsize < 8:
        lost = np.zeros(array.shape, np.bool_)
    else:
        lost = (made.astype(source) if target.kind != "f" else _back(made, source)) != array
    return lost


def _back(made: AnyArray, source: np.dtype[Any]) -> AnyArray:
    """Floats as integers again; those beyond the type's range as its least value, which they cannot have come from."""
    inside = made < float(np.iinfo(source).max)
    back = np.where(inside, made, 0).astype(source)
    return np.where(inside, back, np.iinfo(source).min)


def _loss(field: Field, array: AnyArray, lost: AnyArray) -> str:
    flat = int(np.flatnonzero(lost)[0])
    place = (
        f"row {flat}" if array.ndim < 2 else f"position {tuple(int(i) for i in np.unravel_index(flat, array.shape))}"
    )
    value = array.ravel()[flat].item() if array.dtype.kind not in "mM" else str(array.ravel()[flat])
    return (
        f"{field.title} is {field.dtype}, found {array.dtype.name} with {brief(value)} at {place}, "
        f"which {field.dtype} cannot hold; convert the values first"
    )


def _parse_times(field: Field, array: AnyArray, target: np.dtype[Any]) -> AnyArray:
    values = []
    for row, text in enumerate(array.ravel().tolist()):
        found = datatype.time_value(field.dtype, text)
        if found is None:
            raise InputError(f"{field.title}, row {row}: {brief(text)} is no value of type {field.dtype}")
        values.append(found)
    return np.array(values, target).reshape(array.shape)


def broadcast(title: str, array: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """`array` repeated to `shape` by NumPy's rules of assignment (leading axes of length 1 may be dropped)."""
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0, ...]
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise InputError(f"{title}: values of shape {array.shape} do not fit the selection's shape {shape}") from None


def checked_validity(field: Field, valid: AnyArray | None, shape: tuple[int, ...]) -> AnyArray | None:
    """The validity of a nullable field; None where all cells are valid. Null in any other field is an error."""
    if valid is None or bool(valid.all()):
        return None
    if not field.nullable:
        row = int(np.flatnonzero(~valid)[0])
        raise InputError(f"{field.title} is not nullable, but row {row} is null; drop the row or fill it")
    return np.broadcast_to(valid, shape)
