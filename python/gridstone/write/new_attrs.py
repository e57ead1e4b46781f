"""Attributes for columns that an array lacks: all nullable, of the types that the columns have."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import category, codes, datatype, masked
from ..column.columns import Field
from ..column.stored import Stored
from ..errors import InputError, SchemaError, UnsupportedError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from .input import is_table, named_columns


def new_attrs(schema: Schema, data: Any, attrs: Any = None) -> list[Attr]:
    """The attributes that columns of a table, or of a dict of values, make in addition to those of the schema.

    Raises:
        InputError: a column of values that no attribute takes.
    """
    given = data if attrs is None else attrs
    if not isinstance(given, Mapping) and not is_table(given):
        return []
    named = named_columns(given)
    have = {*(attr.name for attr in schema.attrs), *(dim.name for dim in schema.dims if attrs is None)}
    found = []
    for name in named:
        if name not in have:
            try:
                found.append(_attr(name, named[name], given))
            except (SchemaError, UnsupportedError) as error:
                raise InputError(f"column {brief(name)} is new, and makes no attribute: {error}") from error
    return found


def kept(data: Any) -> Any:
    """The data, in a form that can be read more than once: a stream becomes a table."""
    if isinstance(data, Mapping) or not is_table(data) or type(data).__module__.partition(".")[0] == "pandas":
        return data
    import pyarrow as pa

    from ..column import arrow_capsule

    return data if isinstance(data, pa.Table | pa.RecordBatch) else arrow_capsule.table_of(data)


def _attr(name: Any, data: Any, given: Any) -> Attr:
    if not isinstance(name, str):
        raise SchemaError(f"its name is no text but {type(name).__name__}")
    if isinstance(data, list | tuple):
        data = masked.of_list(data)
    if isinstance(data, Stored):
        raise SchemaError("a handle of an array does not say which part of it is meant; give a[...]")
    if isinstance(data, np.ndarray) and data.dtype.kind != "O":
        return Attr(name, datatype.parse(data.dtype), nullable=True)
    return _of_arrow(*_arrow_of(name, data, given))


def _arrow_of(name: str, data: Any, given: Any) -> tuple[Any, Any]:
    """The Arrow field and the chunks of a column."""
    import pyarrow as pa

    from ..column import arrow_capsule, pandas

    schema = getattr(given, "schema", None)
    if isinstance(schema, pa.Schema):
        return schema.field(name), data
    if type(data).__module__.partition(".")[0] == "pandas":
        from pandas import Series

        # Its index would be a column besides.
        table = pandas.table_of(Series(data, name=name).reset_index(drop=True).to_frame())
        return table.schema.field(name), table.column(name)
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return pa.field(name, data.type), data
    if hasattr(data, "__arrow_c_stream__"):
        made = arrow_capsule.chunks_of(f"column {name!r}", data)
        return pa.field(name, made.type), made
    values, mask = (np.ma.getdata(data), np.ma.getmaskarray(data)) if np.ma.isMaskedArray(data) else (data, None)
    try:
        made = pa.array(values, mask=mask)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(f"{' '.join(map(str, error.args))}; give values of one type") from error
    return pa.field(name, made.type), made


def _of_arrow(field: Any, data: Any) -> Attr:
    """The attribute that a typed column makes, as loads make it: dictionaries are categories, nulls alone are text."""
    import pyarrow as pa

    from ..column import arrow_types
    from ..schema.arrow import metadata_categories

    kind = pa.string() if pa.types.is_null(field.type) else field.type
    dtype = arrow_types.metadata_dtype(field) or arrow_types.dtype_of(kind)
    known = metadata_categories(field)
    if known is None and pa.types.is_dictionary(kind) and category.may_be(dtype):
        entries: list[Any] | None = []
        for chunk in getattr(data, "chunks", [data]):
            more = codes.entries_of(Field(field.name, dtype, True, "column"), chunk.dictionary)
            entries = None if entries is None or more is None else category.gathered(entries, more)
        known = None if entries is None else {"categories": entries, "ordered": kind.ordered}
    return Attr(field.name, dtype, nullable=True, **(known or {}))
