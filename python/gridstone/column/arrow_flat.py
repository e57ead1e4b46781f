"""Columns of numbers, times, booleans, texts and bytes as Arrow arrays over the same memory, and back."""

from typing import Any

import numpy as np
import pyarrow as pa

from ..base.interrupt import interruptible
from ..base.printable import brief
from ..errors import InputError, UnsupportedError
from . import arrow_capsule, datatype
from .arrow_types import bits, decoded, dtype_of, joined, type_of, unit_of, validity_of
from .cast import cast, is_missing
from .columns import Column, Field
from .datatype import AnyArray


def array_of(column: Column, *, keep_nat: bool = False) -> "pa.Array":
    """The Arrow array of a flat column of such values (bools and validity are packed to bits); `keep_nat` as in
    `arrow.array_of`.
    """
    arrow_type, count = type_of(column.dtype), len(column)
    valid, values = column.validity, column.values
    if column.offsets is not None:
        buffers = [bits(valid), pa.py_buffer(column.offsets), pa.py_buffer(values)]
        return pa.Array.from_buffers(arrow_type, count, buffers)
    if column.dtype == "bool":
        return pa.Array.from_buffers(arrow_type, count, [bits(valid), bits(values)])
    if datatype.is_time(column.dtype):
        valid = valid if keep_nat else _without_nat(values, valid)
        unit = unit_of(column.dtype)
        if unit is not None and unit != datatype.step_of(column.dtype):
            values = _in_unit(column.dtype, values, unit)
        values = values.view(np.int64)
    return pa.Array.from_buffers(arrow_type, count, [bits(valid), pa.py_buffer(values)])


def _without_nat(values: AnyArray, valid: AnyArray | None) -> AnyArray | None:
    """NaT is Arrow's null."""
    nat = np.isnat(values)
    if not nat.any():
        return valid
    return ~nat if valid is None else valid & ~nat


def _in_unit(dtype: str, values: AnyArray, unit: str) -> AnyArray:
    made = values.astype(f"{dtype.partition('[')[0]}[{unit}]")
    if not np.array_equal(made.astype(dtype), values, equal_nan=True):
        raise InputError(f"values of type {dtype} lie beyond what Arrow's timestamps hold; read with .to_numpy()")
    return made


def column_of(field: Field, data: Any) -> Column:
    """The column that an Arrow array or chunked array makes for a field of such a type."""
    return column_of_chunk(field, one_chunk(field, data))


def column_of_chunk(field: Field, array: Any) -> Column:
    """The same of what `one_chunk` gives."""
    _check_kind(field, array)
    if field.dtype in ("string", "bytes"):
        return _var_column(field, array)
    validity = validity_of(array) if field.nullable else None
    return Column(field.dtype, cast(field, _fixed_values(field, array), validity), None, validity)


def one_chunk(field: Field, data: Any) -> Any:
    """Data as one Arrow array without a dictionary; an `InputError` for a null that may not be."""
    array = _joined(field, data)
    if array.null_count and not field.nullable and not datatype.is_time(field.dtype):
        row = int(np.flatnonzero(np.asarray(array.is_null()))[0])
        raise InputError(f"{field.title} is not nullable, but row {row} is null; drop the row or fill it")
    return array


def _check_kind(field: Field, array: Any) -> None:
    """Refuses types that have no counterpart here, and text for what is no text (times may be written as text)."""
    try:
        kind = dtype_of(array.type)
    except UnsupportedError:
        kind = None
    if field.dtype in ("string", "bytes"):
        fits = kind == field.dtype or (field.dtype == "bytes" and pa.types.is_fixed_size_binary(array.type))
    else:
        fits = kind is not None and datatype.is_primitive(kind)
    if not fits and not (kind == "string" and datatype.is_time(field.dtype)):
        raise InputError(f"{field.title} is {field.dtype}, found an Arrow column of type {array.type}; cast it first")


def _joined(field: Field, data: Any) -> Any:
    if not isinstance(data, pa.Array | pa.ChunkedArray):
        data = arrow_capsule.chunks_of(field.title, data) if hasattr(data, "__arrow_c_stream__") else pa.array(data)
    if isinstance(data, pa.ChunkedArray):
        if len(data.chunks) == 1:
            data = data.chunk(0)
        else:
            size, chunked = data.nbytes, data
            data = interruptible(size, lambda: joined(chunked))
    if pa.types.is_dictionary(data.type):
        data = interruptible(data.nbytes, lambda: decoded(data))
    if pa.types.is_null(data.type):
        data = pa.nulls(len(data), type_of(field.dtype))
    return data


def _fixed_values(field: Field, array: Any) -> AnyArray:
    """The values as NumPy sees them; nulls as zero, or NaT in datetimes."""
    if array.null_count:
        array = (
            array.fill_null(False if pa.types.is_boolean(array.type) else pa.scalar(0).cast(array.type))
            if not (pa.types.is_temporal(array.type))
            else array
        )
    if datatype.is_time(field.dtype) and dtype_of(array.type) == "string":
        array = _times_of(field, array)
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit))
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _times_of(field: Field, texts: Any) -> Any:
    """Texts in ISO 8601 as times; an `InputError` names the row of the first that is none."""
    texts, kind = texts.cast(pa.large_string()), pa.timestamp("ns" if field.dtype.endswith("[ns]") else "us")
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid as error:
        row = _first_untimely(texts, kind)
        raise InputError(
            f"{field.title}, row {row}: {brief(texts[row].as_py())} is no value of type {field.dtype}; write it in ISO "
            f"8601, without an offset, or make the column one of times first"
        ) from error


def _first_untimely(texts: Any, kind: Any) -> int:
    """The first text that is no time, found by halving."""
    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            texts.slice(low, middle - low).cast(kind)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low


def _var_column(field: Field, array: Any) -> Column:
    wanted = type_of(field.dtype)
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    if array.type != wanted:
        narrow = array
        array = interruptible(narrow.nbytes, lambda: narrow.cast(wanted))
    _, offsets_buffer, bytes_buffer = array.buffers()
    if len(array) == 0 or offsets_buffer is None:
        return Column(field.dtype, np.empty(0, np.uint8), np.zeros(len(array) + 1, np.int64), validity_of(array))
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    start, stop = int(offsets[0]), int(offsets[-1])
    packed = np.empty(0, np.uint8) if bytes_buffer is None else np.frombuffer(bytes_buffer, np.uint8)[start:stop]
    offsets = offsets if start == 0 else offsets - start
    return Column(field.dtype, packed, offsets, validity_of(array))


def pack(field: Field, flat: AnyArray) -> Column:
    """A flat array of str or bytes objects (None and NaN: null), or of NumPy's fixed-length ones, as a column."""
    wanted = type_of(field.dtype)
    if flat.dtype.kind == "O" and field.dtype == "bytes":
        _refuse_strangers(field, flat)
    try:
        array = pa.array(flat.tolist() if flat.dtype.kind != "O" else flat, type=wanted, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        _refuse_strangers(field, flat)
        raise InputError(f"{field.title} is {field.dtype}: {error}") from error
    return _var_column(field, array)


def _refuse_strangers(field: Field, flat: AnyArray) -> None:
    known = (str,) if field.dtype == "string" else (bytes, bytearray, memoryview)
    for row, value in enumerate(flat):
        if not isinstance(value, known) and not is_missing(value):
            raise InputError(
                f"{field.title} is {field.dtype}, found {brief(value)} ({type(value).__name__}) in row {row}"
            )
