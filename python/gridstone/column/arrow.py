"""Columns of any type as Arrow arrays over the same memory, and back; tables as columns by name."""

from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import SchemaError
from . import arrow_capsule, arrow_nested, codes, datatype
from .columns import Column, Field


def array_of(column: Column, *, keep_nat: bool = False) -> "pa.Array":
    """The Arrow array of a flat column, over the same memory (bools and validity are packed to bits).

    NaT becomes null, unless `keep_nat` says that it stays what it is for columns that this package reads again.
    """
    if column.categories is not None:
        return codes.array_of(column)
    return arrow_nested.array_of(column, keep_nat=keep_nat)


def has_nat(column: Column) -> bool:
    """Whether a time in it is NaT and no null."""
    if not datatype.is_time(column.dtype):
        return False
    nat = np.isnat(column.values)
    return bool((nat if column.validity is None else nat & column.validity).any())


def column_of(field: Field, data: Any) -> Column:
    """The column that an Arrow array or chunked array makes for `field`; an `InputError` if it does not fit."""
    if field.categories is not None:
        return codes.column_of(field, field.categories, data, None)
    return arrow_nested.column_of(field, data)


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
