"""Columns of pandas, where NaN means null in what may be null, and is a value elsewhere."""

from typing import Any

import numpy as np

from . import columns, datatype
from .columns import Column, Field


def column_of(field: Field, series: Any) -> Column:
    """The flat column that a Series makes for `field`; an `InputError` if it does not fit."""
    if datatype.base_of(field.dtype) != field.dtype:  # Arrow would take NaN in vectors and lists as null.
        return columns.from_values(field, series.to_numpy(dtype=object))
    values = series.array
    if type(values).__name__ == "Categorical" and field.categories is not None:
        return columns.from_values(field, values)
    if type(values).__name__ == "NumpyExtensionArray" and values.dtype.numpy_dtype.kind in "biufcmM":
        return columns.from_values(field, series.to_numpy(), nan_is_null=True)
    import pyarrow as pa

    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        # Mixed objects, integers from 2^63 on, complex numbers in lists.
        return columns.from_values(field, series.to_numpy(dtype=object), nan_is_null=True)
    return columns.from_values(field, array)


def _is_missing(value: Any) -> bool:
    """What pandas has in the place of a value: None, NaN, NaT, NA."""
    import pandas as pd

    return value is None or value is pd.NA or (isinstance(value, float) and value != value) or value is pd.NaT


def nested_array(item: tuple[Any, Any]) -> Any:
    """The Arrow field and array of a name and a Series of complex numbers, or of arrays of floats or of several axes;
    None of any other, which Arrow makes itself (but takes NaN in arrays as null). A complex number that is NaN is null
    and keeps what it was underneath."""
    from . import arrow

    name, series = item
    if not isinstance(series.dtype, np.dtype) or series.dtype.kind not in "cO":
        return None
    values = series.to_numpy()
    if values.dtype.kind == "c":
        dtype = datatype.parse(values.dtype)
        return arrow.field_of(str(name), dtype, True), arrow.array_of(Column(dtype, values, None, ~np.isnan(values)))
    first = next((value for value in values if not _is_missing(value)), None)
    if not isinstance(first, np.ndarray) or (first.ndim < 2 and first.dtype.kind not in "fc"):
        return None
    kind = datatype.parse(first.dtype)
    dtype = datatype.list_of(kind) if first.ndim == 1 else datatype.shaped(kind, first.shape)
    found = columns.from_values(Field(str(name), dtype, True, "column"), values)
    return arrow.field_of(str(name), dtype, True), arrow.array_of(found)


def table_of(frame: Any) -> Any:
    """A data frame as a table, with columns that Arrow does not know how to make, and the named levels of its index."""
    import pyarrow as pa

    made = {place: found for place, found in enumerate(map(nested_array, frame.items())) if found is not None}
    plain = [place for place in range(frame.shape[1]) if place not in made]
    named = any(name is not None for name in frame.index.names)
    table = pa.Table.from_pandas(frame.iloc[:, plain], preserve_index=named)
    for field, found in made.values():
        table = table.append_column(field, found)
    return table
