"""Data frames of pandas as Arrow tables, and back."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from . import arrow, byte_order, datatype, decode, encode
from .arrow_types import field_of, metadata_dtype
from .columns import Column, Field
from .datatype import AnyArray

if TYPE_CHECKING:
    import pandas as pd


def _is_missing(value: Any) -> bool:
    """What pandas has in the place of a value: None, NaN, NaT, NA."""
    import pandas as pd

    return value is None or value is pd.NA or (isinstance(value, float) and value != value) or value is pd.NaT


def nested_array(item: tuple[Any, Any]) -> Any:
    """The Arrow field and array of a name and a Series of complex numbers, or of arrays of floats or of several axes;
    None of any other, which Arrow makes itself (but takes NaN in arrays as null). A complex number that is NaN is null
    and keeps what it was underneath."""
    name, series = item
    if not isinstance(series.dtype, np.dtype) or series.dtype.kind not in "cO":
        return None
    values = series.to_numpy()
    if values.dtype.kind == "c":
        dtype = datatype.parse(values.dtype)
        return field_of(str(name), dtype, True), arrow.array_of(Column(dtype, values, None, ~np.isnan(values)))
    first = next((value for value in values if not _is_missing(value)), None)
    if not isinstance(first, np.ndarray):
        return None
    if first.ndim < 2 and first.dtype.kind not in "fc" and not byte_order.has_swapped(values):
        return None
    kind = datatype.parse(first.dtype)
    dtype = datatype.list_of(kind) if first.ndim == 1 else datatype.shaped(kind, first.shape)
    found = encode.from_values(Field(str(name), dtype, True, "column"), values)
    return field_of(str(name), dtype, True), arrow.array_of(found)


def table_of(frame: Any) -> Any:
    """A data frame as a table, with columns that Arrow does not know how to make, and the named levels of its index."""
    frame = byte_order.native(frame)
    made = {place: found for place, found in enumerate(map(nested_array, frame.items())) if found is not None}
    plain = [place for place in range(frame.shape[1]) if place not in made]
    named = any(name is not None for name in frame.index.names)
    table = pa.Table.from_pandas(frame.iloc[:, plain], preserve_index=named)
    for field, found in made.values():
        table = table.append_column(field, found)
    return table


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
        dtype = metadata_dtype(field) or ""
        if not datatype.is_complex(datatype.base_of(dtype)) and len(datatype.shape_of(dtype)) < 2:
            continue
        column = arrow.column_of(Field(field.name, dtype, True, "attribute"), table.column(field.name))
        if datatype.is_complex(dtype):
            values = column.values if column.validity is None else np.where(column.validity, column.values, np.nan)
            made[field.name] = values.astype(dtype, copy=False)
        else:
            made[field.name] = _objects_of(column)
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


def _objects_of(column: Column) -> AnyArray:
    """Vectors or lists as an object array; None where null."""
    found = np.empty(len(column), object)
    values = datatype.unpacked(decode.cells_of(column))
    for row in range(found.size):
        found[row] = values[row] if column.validity is None or column.validity[row] else None
    return found
