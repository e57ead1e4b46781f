"""Series of pandas, in which NaN means null in a nullable field, and is a value elsewhere."""

from typing import Any

from . import datatype
from .columns import Field


def values_of(field: Field, series: Any) -> tuple[Any, bool]:
    """What a Series holds, as an array of NumPy, of Arrow or of categories, and whether NaN in it means null."""
    if datatype.base_of(field.dtype) != field.dtype:  # Arrow would take NaN in vectors and lists as null.
        return series.to_numpy(dtype=object), False
    values = series.array
    if type(values).__name__ == "Categorical" and field.categories is not None:
        return values, False
    if type(values).__name__ == "NumpyExtensionArray" and values.dtype.numpy_dtype.kind in "biufcmM":
        return series.to_numpy(), True
    import pyarrow as pa

    try:
        return pa.array(series, from_pandas=True), False
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        # Mixed objects, integers from 2^63 on, complex numbers in lists.
        return series.to_numpy(dtype=object), True
