"""Columns of pandas, where NaN means null in what may be null, and is a value elsewhere."""

from typing import Any

from . import columns, dtypes
from .columns import Column, Field


def column_of(field: Field, series: Any) -> Column:
    """The flat column that a Series makes for `field`; an `InputError` if it does not fit."""
    if dtypes.base_of(field.dtype) != field.dtype:  # Arrow would take NaN in vectors and lists as null.
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
