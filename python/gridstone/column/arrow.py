"""Between the core's columns and Arrow, without copying values.

Arrow has no datetimes coarser than seconds, nor finer than nanoseconds. Coarser ones (and timedeltas from weeks to
minutes) become seconds; finer ones, and timedeltas in years or months, become int64 ticks. Each field's metadata keeps
the datatype and nullability under `gridstone.dtype` and `gridstone.nullable`, so that `Schema.from_arrow` gives them
back (NaT is null in Arrow, so its datetimes are always nullable). Arrow has no complex numbers either. They are
fixed-size lists of two floats; vectors are fixed-size lists too, lists of lists if of several axes (`arrow_nested`).
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..base.interrupt import interruptible
from ..base.printable import brief
from ..errors import InputError, SchemaError, UnsupportedError
from . import arrow_capsule, category, datatype
from .columns import Column, Field
from .datatype import AnyArray

if TYPE_CHECKING:
    import pandas as pd

    from ..schema.array_schema import Attr, Schema

_DTYPE = b"gridstone.dtype"
_NULLABLE = b"gridstone.nullable"
_CATEGORIES = b"gridstone.categories"
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
    unit = _arrow_unit(dtype)
    if unit is None:
        return pa.int64()
    return pa.timestamp(unit) if dtype.startswith("datetime64") else pa.duration(unit)


def _arrow_unit(dtype: str) -> str | None:
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
    metadata = {_DTYPE: dtype.encode(), _NULLABLE: str(nullable).lower().encode()}
    return pa.field(name, type_of(dtype), nullable or datatype.is_time(dtype), metadata)


def attr_field(attr: "Attr") -> "pa.Field":
    """The Arrow field of an attribute; of an enumerated one with a dictionary type."""
    made, known = field_of(attr.name, attr.dtype, attr.nullable), attr.enumeration
    if known is None:
        return made
    metadata = {**made.metadata, _CATEGORIES: known.to_json().encode()}
    return pa.field(attr.name, category.type_of(known), attr.nullable, metadata)


def schema_of(schema: "Schema", attrs: list[str] | None = None) -> "pa.Schema":
    """Dimensions, then the attributes named (all if None)."""
    fields = [field_of(dim.name, dim.dtype, False) for dim in schema.dims]
    wanted = schema.attrs if attrs is None else [schema.attr(name) for name in attrs]
    return pa.schema(fields + [attr_field(attr) for attr in wanted])


def attr_of(field: "pa.Field") -> "Attr":
    """The attribute that an Arrow field describes."""
    from ..schema.array_schema import Attr

    told = field.metadata or {}
    dtype = told_dtype(field) or dtype_of(field.type)
    nullable = told[_NULLABLE] == b"true" if _NULLABLE in told else bool(field.nullable)
    return Attr(field.name, dtype, nullable=nullable, **(told_categories(field) or {}))


def told_dtype(field: "pa.Field") -> str | None:
    """The datatype that a field's metadata tells, where this package wrote it."""
    told = field.metadata or {}
    return told[_DTYPE].decode() if _DTYPE in told else None


def told_categories(field: "pa.Field") -> dict[str, Any] | None:
    """The categories that a field's metadata tells, where this package wrote it, as arguments of `Attr`."""
    told = field.metadata or {}
    dtype = told_dtype(field)
    return category.told(dtype, told[_CATEGORIES]) if dtype is not None and _CATEGORIES in told else None


def array_of(column: Column) -> "pa.Array":
    """The Arrow array of a flat column, over the same memory (bools and validity are packed to bits)."""
    if column.categories is not None:
        return category.array_of(column)
    arrow_type, count = type_of(column.dtype), len(column)
    valid, values = column.validity, column.values
    if datatype.is_list(column.dtype) or datatype.is_complex(column.dtype) or datatype.shape_of(column.dtype):
        from . import arrow_nested

        return arrow_nested.array_of(column)
    if column.offsets is not None:
        buffers = [bits(valid), pa.py_buffer(column.offsets), pa.py_buffer(values)]
        return pa.Array.from_buffers(arrow_type, count, buffers)
    if column.dtype == "bool":
        return pa.Array.from_buffers(arrow_type, count, [bits(valid), bits(values)])
    if datatype.is_time(column.dtype):
        valid = _without_nat(values, valid)
        unit = _arrow_unit(column.dtype)
        if unit is not None and unit != datatype.unit_of(column.dtype):
            values = _in_seconds(column.dtype, values)
        values = values.view(np.int64)
    return pa.Array.from_buffers(arrow_type, count, [bits(valid), pa.py_buffer(values)])


def bits(flags: AnyArray | None) -> Any:
    """A validity bitmap; None where all are valid."""
    if flags is None:
        return None
    return pa.py_buffer(np.packbits(np.ascontiguousarray(flags, np.bool_), bitorder="little"))


def _without_nat(values: AnyArray, valid: AnyArray | None) -> AnyArray | None:
    """NaT is Arrow's null."""
    nat = np.isnat(values)
    if not nat.any():
        return valid
    return ~nat if valid is None else valid & ~nat


def _in_seconds(dtype: str, values: AnyArray) -> AnyArray:
    made = values.astype(f"{dtype.partition('[')[0]}[s]")
    if not np.array_equal(made.astype(dtype), values, equal_nan=True):
        raise InputError(f"values of type {dtype} lie beyond what Arrow's timestamps hold; read with .to_numpy()")
    return made


def column_of(field: Field, data: Any) -> Column:
    """The column that an Arrow array or chunked array makes for `field`; an `InputError` if it does not fit."""
    if field.categories is not None:
        return category.column_of(field, field.categories, data, None)
    array = _one_chunk(field, data)
    if array.null_count and not field.nullable and not datatype.is_time(field.dtype):
        row = int(np.flatnonzero(np.asarray(array.is_null()))[0])
        raise InputError(f"{field.title} is not nullable, but row {row} is null; drop the row or fill it")
    if not datatype.is_primitive(field.dtype) or datatype.is_complex(field.dtype):
        from . import arrow_nested

        if field.dtype in ("string", "bytes"):
            _check_kind(field, array)
        return _var_column(field, array) if field.dtype in ("string", "bytes") else arrow_nested.column_of(field, array)
    _check_kind(field, array)
    validity = validity_of(array) if field.nullable else None
    values = _fixed_values(field, array)
    from . import columns

    return Column(field.dtype, columns.cast(field, values, validity), None, validity)


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


def _one_chunk(field: Field, data: Any) -> Any:
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


def _fixed_values(field: Field, array: Any) -> AnyArray:
    """The values as NumPy sees them; nulls as zero, or NaT in datetimes."""
    if array.null_count:
        array = (
            array.fill_null(False if pa.types.is_boolean(array.type) else pa.scalar(0).cast(array.type))
            if not (pa.types.is_temporal(array.type))
            else array
        )
    if datatype.is_time(field.dtype) and dtype_of(array.type) == "string":
        array = array.cast(pa.timestamp("ns" if field.dtype.endswith("[ns]") else "us"))
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit))
    return np.asarray(array.to_numpy(zero_copy_only=False))


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
    from .columns import is_missing

    known = (str,) if field.dtype == "string" else (bytes, bytearray, memoryview)
    for row, value in enumerate(flat):
        if not isinstance(value, known) and not is_missing(value):
            raise InputError(
                f"{field.title} is {field.dtype}, found {brief(value)} ({type(value).__name__}) in row {row}"
            )


def pandas_of(table: "pa.Table") -> "pd.DataFrame":
    """A data frame of a table made here. Complex numbers, which Arrow lacks, are NaN where null.

    Integers and booleans that have nulls become pandas' nullable types, since NumPy's have no place for a null and
    floats none for all integers. Vectors of several axes are arrays of that shape, not arrays of arrays.
    """
    for place, field in enumerate(table.schema):
        # pandas has no index, and so no categories, of halves.
        if pa.types.is_dictionary(field.type) and pa.types.is_float16(field.type.value_type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    made = _frame_of(table)
    for field in table.schema:
        dtype = (field.metadata or {}).get(_DTYPE, b"").decode()
        if not datatype.is_complex(datatype.base_of(dtype)) and len(datatype.shape_of(dtype)) < 2:
            continue
        column = column_of(Field(field.name, dtype, True, "attribute"), table.column(field.name))
        if datatype.is_complex(dtype):
            values = column.values if column.validity is None else np.where(column.validity, column.values, np.nan)
            made[field.name] = values.astype(dtype, copy=False)
        else:
            made[field.name] = _objects(column)
    return made


def _frame_of(table: "pa.Table") -> "pd.DataFrame":
    """A data frame of a table; integers and booleans that have nulls in pandas' nullable types."""
    import pandas as pd

    exact = {field.name: _exact(table.column(place)) for place, field in enumerate(table.schema)}
    plain = table.select([name for name, column in exact.items() if column is None]).to_pandas()
    if len(plain.columns) == len(exact):
        return plain  # type: ignore[no-any-return]
    columns = {name: plain[name] if column is None else column for name, column in exact.items()}
    return pd.DataFrame(columns, copy=False)


def _exact(column: "pa.ChunkedArray") -> Any:
    """Integers or booleans with nulls as an array of pandas' nullable type; None for all other columns."""
    import pandas as pd

    kind = column.type
    if not column.null_count or not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    name = "boolean" if pa.types.is_boolean(kind) else str(kind).replace("uint", "UInt").replace("int", "Int")
    dtype: Any = pd.api.types.pandas_dtype(name)
    return dtype.__from_arrow__(column)


def _objects(column: Column) -> AnyArray:
    """Vectors or lists as an object array; None where null."""
    found = np.empty(len(column), object)
    values = datatype.unpacked(column.cells)
    for row in range(found.size):
        found[row] = values[row] if column.validity is None or column.validity[row] else None
    return found


def with_nan_for_null(data: Any, dtype: str) -> Any:
    """Floats with NaN where they are null; complex numbers with the NaN that they were made of."""
    if pa.types.is_floating(data.type):
        return data.fill_null(float("nan"))
    if datatype.is_complex(dtype) and pa.types.is_fixed_size_list(data.type):
        return pa.FixedSizeListArray.from_arrays(data.values.slice(2 * data.offset, 2 * len(data)), 2)
    return data


def columns_of_table(data: Any) -> dict[str, Any]:
    """Columns by name of an Arrow table, record batch or anything that exports an Arrow stream."""
    if not isinstance(data, pa.Table | pa.RecordBatch):
        data = arrow_capsule.table_of(data)
    if len(set(data.schema.names)) != len(data.schema.names):
        raise SchemaError(f"the table has columns of the same name: {data.schema.names}")
    return {name: data.column(name) for name in data.schema.names}
