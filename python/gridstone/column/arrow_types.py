"""Arrow types of datatypes, fields whose metadata keeps the datatype, dictionaries, validity bitmaps.

Arrow has no datetimes coarser than seconds, nor finer than nanoseconds. Coarser ones (and timedeltas from weeks to
minutes) become seconds. Finer ones, and timedeltas in years or months, become int64 ticks. Each field's metadata keeps
the datatype and nullability under `gridstone.dtype` and `gridstone.nullable`, so that `Schema.from_arrow` restores
them. NaT is null in Arrow, so its datetimes are always nullable. Between parts of this package, and into CSV, NaT of
nullable attributes goes as a value, the least int64 (`keep_nat`). Arrow has no complex numbers either: they are
fixed-size lists of two floats. Vectors are fixed-size lists too, nested if they have several axes (`arrow_nested`).
"""

from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import SchemaError, UnsupportedError
from . import datatype
from .datatype import AnyArray

_DTYPE = b"gridstone.dtype"
NULLABLE = b"gridstone.nullable"
_ARROW_UNITS = ("s", "ms", "us", "ns")
_COARSE = ("Y", "M", "W", "D", "h", "m")


def type_of(dtype: str) -> "pa.DataType":
    """The Arrow type that values of type `dtype` have."""
    if dtype == "string":
        return pa.large_string()
    if dtype == "bytes":
        return pa.large_binary()
    if datatype.is_fixed_bytes(dtype):
        return pa.binary(datatype.length_of(dtype))
    if datatype.is_list(dtype):
        return pa.large_list(type_of(datatype.base_of(dtype)))
    if datatype.is_complex(dtype):
        return pa.list_(type_of("float32" if dtype == "complex64" else "float64"), 2)
    if shape := datatype.shape_of(dtype):
        made = type_of(datatype.base_of(dtype))
        for side in reversed(shape):
            made = pa.list_(made, side)
        return made
    if not datatype.is_time(dtype):
        return pa.bool_() if dtype == "bool" else pa.from_numpy_dtype(np.dtype(dtype))
    unit = unit_of(dtype)
    if unit is None:
        return pa.int64()
    return pa.timestamp(unit) if dtype.startswith("datetime64") else pa.duration(unit)


def unit_of(dtype: str) -> str | None:
    """The Arrow unit that values of a time type are given in; None: as plain ticks."""
    unit = datatype.unit_of(dtype)
    if unit in _ARROW_UNITS:
        return unit
    months = dtype.startswith("timedelta64") and unit in ("Y", "M")
    return "s" if unit in _COARSE and not months else None


def dtype_of(arrow_type: "pa.DataType") -> str:
    """The datatype of this package for an Arrow type; an `UnsupportedError` if there is none."""
    kinds = pa.types
    if kinds.is_dictionary(arrow_type):
        return dtype_of(arrow_type.value_type)
    if kinds.is_string(arrow_type) or kinds.is_large_string(arrow_type) or kinds.is_string_view(arrow_type):
        return "string"
    if kinds.is_fixed_size_binary(arrow_type):
        return f"bytes[{arrow_type.byte_width}]"
    if kinds.is_binary(arrow_type) or kinds.is_large_binary(arrow_type) or kinds.is_binary_view(arrow_type):
        return "bytes"
    if kinds.is_list(arrow_type) or kinds.is_large_list(arrow_type) or kinds.is_fixed_size_list(arrow_type):
        try:
            return _list_type(arrow_type)
        except SchemaError as error:
            raise UnsupportedError(f"the Arrow type {arrow_type} is not supported: {error}") from error
    if kinds.is_timestamp(arrow_type):
        return f"datetime64[{arrow_type.unit}]"
    if kinds.is_duration(arrow_type):
        return f"timedelta64[{arrow_type.unit}]"
    if kinds.is_date32(arrow_type):
        return "datetime64[D]"
    if kinds.is_date64(arrow_type):
        return "datetime64[ms]"
    name = {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(arrow_type), str(arrow_type))
    if name in ("bool", *datatype.INTEGERS, *datatype.FLOATS):
        return name
    raise UnsupportedError(f"the Arrow type {arrow_type} is not supported by this version; cast the column first")


def _list_type(arrow_type: "pa.DataType") -> str:
    inner = dtype_of(arrow_type.value_type)
    if not pa.types.is_fixed_size_list(arrow_type):
        return datatype.list_of(inner)
    return datatype.shaped(datatype.base_of(inner), (arrow_type.list_size, *datatype.shape_of(inner)))


def field_of(name: str, dtype: str, nullable: bool) -> "pa.Field":
    """The Arrow field of a dimension or attribute."""
    metadata = {_DTYPE: dtype.encode(), NULLABLE: str(nullable).lower().encode()}
    return pa.field(name, type_of(dtype), nullable or datatype.is_time(dtype), metadata)


def metadata_dtype(field: "pa.Field") -> str | None:
    """The datatype in a field's metadata, where this package wrote it."""
    kept = field.metadata or {}
    return kept[_DTYPE].decode() if _DTYPE in kept else None


def metadata_nullable(field: "pa.Field") -> bool | None:
    """Whether a field's metadata says that it may be null; None where this package did not write it."""
    kept = field.metadata or {}
    return kept[NULLABLE] == b"true" if NULLABLE in kept else None


def bits(flags: AnyArray | None) -> Any:
    """A validity bitmap; None where all are valid."""
    if flags is None:
        return None
    return pa.py_buffer(np.packbits(np.ascontiguousarray(flags, np.bool_), bitorder="little"))


def joined(column: "pa.ChunkedArray") -> Any:
    """The chunks of a column as one array, of dictionaries with one dictionary.

    Arrow up to 26 and perhaps beyond merges dictionaries of halves as if their bits were whole numbers, and 1.0 becomes
    15360.0: their bits are merged here.
    """
    kind, chunks = column.type, column.chunks
    if len(chunks) < 2:
        return chunks[0] if chunks else pa.array([], kind)
    inner = kind
    while pa.types.is_list(inner) or pa.types.is_large_list(inner) or pa.types.is_fixed_size_list(inner):
        inner = inner.value_type
    if inner is not kind and pa.types.is_dictionary(inner) and pa.types.is_float16(inner.value_type):
        raise UnsupportedError(f"a column of {kind} in several chunks cannot be joined; make its values plain first")
    if not (pa.types.is_dictionary(kind) and pa.types.is_float16(kind.value_type)):
        return pa.concat_arrays(chunks)
    one = pa.concat_arrays([_with_entries(chunk, pa.uint16()) for chunk in chunks])
    return _with_entries(one, kind.value_type)


def _with_entries(array: Any, kind: "pa.DataType") -> Any:
    """A dictionary array with the bits of its entries taken for another type."""
    entries = array.dictionary.view(kind)
    return pa.DictionaryArray.from_arrays(array.indices, entries, ordered=array.type.ordered)


def decoded(array: Any) -> Any:
    """The values of a dictionary array. Arrow cannot take views of text by index, so they become plain text first."""
    plain = undictionaried(array.dictionary)
    if plain is not array.dictionary:
        array = pa.DictionaryArray.from_arrays(array.indices, plain)
    return array.dictionary_decode()


def undictionaried(values: Any) -> Any:
    """The entries of a dictionary, views of text as plain text."""
    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}.get(str(values.type))
    return values if plain is None else values.cast(plain)


def validity_of(array: Any) -> AnyArray | None:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False)) if array.null_count else None
