"""Values as text in CSV, where Arrow's reader and writer have no form for them.

Vectors and lists are JSON: `[1, 2, 3]`, NaN and Infinity as Python writes them. Complex numbers are JSON of both parts,
and `1+2j` is read too. Lengths of time are ticks. Bytes of a fixed length lose the zero bytes at their end.
"""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..column import arrow, arrow_types, datatype, encode
from ..column.columns import Column, Field
from ..column.datatype import AnyArray
from ..errors import InputError, UnsupportedError

TICKS = pa.duration("ns")
"""What a column of ticks is parsed as: whole numbers, or NaT."""
_DAY_SECONDS = 86_400
_NAT = int(np.iinfo(np.int64).min)


def written_schema(schema: "pa.Schema") -> "pa.Schema":
    """The schema of what is given to the CSV writer for cells of `schema`; `UnsupportedError` if there is no form."""
    return pa.schema([(field.name, _written_type(field)) for field in schema])


def _written_type(field: "pa.Field") -> Any:
    kinds, kind = pa.types, field.type
    if kinds.is_dictionary(kind):
        return _written_type(field.with_type(kind.value_type))
    if kinds.is_nested(kind):
        inner = kind
        while kinds.is_nested(inner):
            inner = inner.value_type
        if kinds.is_duration(inner):
            raise UnsupportedError(f"column {field.name!r}: {kind} has no form in CSV; leave it out, or write Arrow")
        return pa.large_string()
    if kinds.is_fixed_size_binary(kind):
        return pa.large_binary()
    if kinds.is_timestamp(kind) and arrow_types.metadata_dtype(field) == "datetime64[D]":
        return pa.date32()
    return pa.int64() if kinds.is_duration(kind) else pa.float32() if kinds.is_float16(kind) else kind


def written(batch: "pa.RecordBatch", fields: "pa.Schema") -> "pa.RecordBatch":
    """A batch of cells as `written_schema` says."""
    columns = [_in_own_ticks(c, f) for c, f in zip(batch.columns, batch.schema, strict=True)]
    return pa.RecordBatch.from_arrays(
        [_written(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=fields
    )


def nat_of(batch: "pa.RecordBatch") -> dict[str, AnyArray]:
    """The rows that are NaT, by column, of the columns that have some and come with NaT as a value."""
    found = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type) or _is_ticks(field):
            nat = np.asarray(pc.equal(column.cast(pa.int64()), _NAT).fill_null(False))
            if nat.any():
                found[field.name] = nat
    return found


def _is_ticks(field: "pa.Field") -> bool:
    return pa.types.is_int64(field.type) and datatype.is_time(arrow_types.metadata_dtype(field) or "")


def without_nat(batch: "pa.RecordBatch", nat: Mapping[str, AnyArray]) -> "pa.RecordBatch":
    """A batch with null in the place of NaT."""
    columns = [
        pc.if_else(pa.array(nat[field.name]), pa.scalar(None, field.type), column) if field.name in nat else column
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def with_nat(batch: "pa.RecordBatch", nat: Mapping[str, AnyArray]) -> "pa.RecordBatch":
    """A batch of what is written, with the text `NaT` in the place of NaT."""
    columns = {
        name: pc.if_else(pa.array(nat[name]), "NaT", column.cast(pa.string())) if name in nat else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.RecordBatch.from_pydict(columns)


def _in_own_ticks(column: Any, field: "pa.Field") -> Any:
    """Lengths of time as numbers of their own unit, which Arrow has none of if it is coarser than seconds."""
    if pa.types.is_dictionary(column.type) and pa.types.is_duration(column.type.value_type):
        column = column.dictionary_decode()
    dtype = arrow_types.metadata_dtype(field)
    if not pa.types.is_duration(column.type) or dtype is None:
        return column
    tick = np.ones(1, datatype.numpy_of(dtype)).astype(f"timedelta64[{column.type.unit}]")
    return pc.divide(column.cast(pa.int64()), tick.view(np.int64)[0].item())


def _written(column: Any, kind: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        return pa.array([None if v is None else json.dumps(v, default=str) for v in column.to_pylist()], kind)
    if pa.types.is_fixed_size_binary(column.type):
        return pa.array([None if v is None else v.rstrip(b"\0") for v in column.to_pylist()], kind)
    if pa.types.is_date32(kind):
        # Arrow's own cast of far days overflows and says nothing.
        return pc.divide(column.cast(pa.int64()), _DAY_SECONDS).cast(pa.int32()).cast(kind)
    return column.cast(kind)


def read_type(dtype: str) -> Any:
    """The Arrow type to parse a column with; lengths of time are ticks in text (`TICKS`).

    Days are read as times: as dates Arrow takes ISO 8601 alone, and none with midnight behind it.
    """
    if dtype == "bytes" or datatype.is_fixed_bytes(dtype):
        return pa.binary()
    if _is_json(dtype) or dtype == "string":
        return pa.string()
    if dtype == "float16":
        return pa.float32()
    found = arrow_types.type_of(dtype)
    return TICKS if datatype.is_time(dtype) and not pa.types.is_timestamp(found) else found


def read(field: Field, column: Any) -> Column:
    """The column for the core; empty text is "", or a list of nothing, where it cannot be null."""
    if _is_json(field.dtype) and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        empty: list[Any] | None = None if field.nullable or not datatype.is_list(field.dtype) else []
        return encode.from_values(field, [_parsed(field, text) if text else empty for text in column.to_pylist()])
    if not field.nullable and pa.types.is_int64(column.type) and datatype.is_time(field.dtype):
        column = column.fill_null(datatype.ticks_of(np.timedelta64("NaT")))
    plain = field.dtype in ("string", "bytes")
    if plain and not field.nullable and column.null_count:
        column = column.fill_null("" if field.dtype == "string" else b"")
    return arrow.column_of(field, column)


def judged(dtype: str) -> bool:
    """Whether text that Arrow's reader takes may still be no value of this type, which `read` finds."""
    if datatype.is_time(dtype):
        return datatype.step_of(dtype) not in ("s", "ms", "us", "ns", "ps", "fs", "as")
    return _is_json(dtype) or datatype.is_fixed_bytes(dtype) or dtype == "float16"


def unread(field: Field, column: Any) -> Iterator[tuple[int, str]]:
    """The rows that `read` takes no value of, and why; found by halving."""
    pending = [(0, len(column))]
    while pending:
        low, high = pending.pop()
        try:
            read(field, column.slice(low, high - low))
        except (InputError, pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            if high - low == 1:
                value = column[low].as_py()
                shown = repr(value.isoformat() if isinstance(value, datetime) else value)
                yield low, f"{shown} is no {field.dtype}; {_form(field.dtype)}"
                continue
            middle = (low + high) // 2
            pending += [(middle, high), (low, middle)]


def _form(dtype: str) -> str:
    """How values of a type are written."""
    base = datatype.base_of(dtype)
    if base != dtype:
        inner = datatype.shape_of(dtype)
        numbers = f"{inner[-1] if inner else 'any number of'} values of {base}"
        return f"such a value is written as JSON: {'lists of ' if len(inner) > 1 else ''}{numbers} in brackets"
    if datatype.is_complex(dtype):
        return "such a value is written as 1+2j or [1, 2]"
    if datatype.is_fixed_bytes(dtype):
        return f"it has at most {datatype.length_of(dtype)} bytes"
    return "correct the file, or give the column another type"


def _is_json(dtype: str) -> bool:
    return datatype.base_of(dtype) != dtype or datatype.is_complex(dtype)


def _parsed(field: Field, text: str) -> Any:
    form = "1+2j or [1, 2]" if datatype.is_complex(field.dtype) else "[1, 2, 3]"
    wrong = f"{field.title} is {field.dtype}: {text!r} is none; such a value is written as {form}"
    try:
        if datatype.is_complex(field.dtype) and not text.startswith("["):
            return _complex_of(text.replace(" ", ""))
        found = json.loads(text, parse_float=_finite)
        if datatype.is_complex(datatype.base_of(field.dtype)):
            found = _complex(found)
        if datatype.is_time(datatype.base_of(field.dtype)):
            found = _with_nat(found)
        inner = datatype.shape_of(field.dtype)
        if inner and np.shape(found) != inner:
            raise InputError(wrong)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(wrong) from error
    if not isinstance(found, list | complex):
        raise InputError(wrong)
    return found


def _finite(text: str) -> float:
    """The number of a JSON text; a `ValueError` if float64 has none so large."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is beyond float64")
    return value


def _complex_of(text: str) -> complex:
    """The complex number of a text; a `ValueError` for what only Python takes for one, and for parts without end."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text} is no number")
    value = complex(text)
    if (math.isinf(value.real) or math.isinf(value.imag)) and "inf" not in text.lower():
        raise ValueError(f"{text} is beyond complex128")
    return value


def _with_nat(value: Any) -> Any:
    """Lists of times with NaT for what is null."""
    return [_with_nat(part) for part in value] if isinstance(value, list) else "NaT" if value is None else value


def _complex(value: Any) -> Any:
    """Lists whose innermost ones are pairs, with these as complex numbers."""
    if len(value) == 2 and not any(isinstance(part, list) for part in value):
        return complex(*value)
    return [_complex(part) for part in value]
