"""Makes columns of what callers give: values, categories, Arrow arrays, Series of pandas."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from . import codes, masked, series, values
from .columns import Column, Field
from .datatype import AnyArray
from .stored import Stored


def from_values(field: Field, data: Any, shape: tuple[int, ...] | None = None, *, nan_is_null: bool = False) -> Column:
    """The column that `data` makes for `field`.

    Args:
        field: what is expected.
        data: an array, masked array, sequence or scalar; an Arrow array; None or NaT for null where nullable.
        shape: broadcast to this shape as NumPy's assignment does.
        nan_is_null: take NaN as null in a nullable field (what pandas means by it).

    Raises:
        InputError: the type does not fit without loss, a null where none may be, or shapes that do not broadcast.
    """
    if isinstance(data, Stored):
        data = of_handle(data)
    elif isinstance(data, list | tuple):
        data = masked.of_list(data)
    elif data is np.ma.masked:
        data = None
    if not _is_series(data):
        return _made(field, data, shape, nan_is_null)
    given, missing_is_null = series.values_of(field, data)
    return values.shaped(field, _made(field, given, None, missing_is_null), shape)


def of_handle(handle: Stored) -> AnyArray:
    """The values of a handle of one attribute, masked where null."""
    found = handle._taken()
    if not isinstance(found, Mapping):
        return found
    if len(found) != 1:
        raise InputError(f"the array has the attributes {list(found)}; take one: a[{next(iter(found))!r}]")
    return next(iter(found.values()))


def _made(field: Field, data: Any, shape: tuple[int, ...] | None, nan_is_null: bool) -> Column:
    if field.categories is not None:
        return codes.column_of(field, field.categories, data, shape, nan_is_null)
    return values.column_of(field, data, shape, nan_is_null)


def _is_series(data: Any) -> bool:
    """Whether these are the values of a pandas Series or flat Index."""
    kind = type(data)
    named = kind.__name__ == "Series" or (kind.__name__.endswith("Index") and kind.__name__ != "MultiIndex")
    return named and kind.__module__.partition(".")[0] == "pandas"
