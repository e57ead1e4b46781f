"""What the placeholders of a query stand for, as DuckDB binds it."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..base.printable import brief
from ..errors import InputError
from .engine import duckdb_module


def parameters(params: Any) -> Any:
    """What the placeholders of a query stand for: a list for `?` and `$1`, a mapping for `$name`."""
    if params is None:
        return None
    if isinstance(params, Mapping):
        strange = next((name for name in params if not isinstance(name, str)), None)
        if strange is not None:
            raise InputError(f"params= has names for $name, found {brief(strange)}")
        return {name: _plain(value) for name, value in params.items()}
    if isinstance(params, str | bytes) or not isinstance(params, Iterable):
        raise InputError(
            f"params= takes a list of values for ? and $1, or a mapping for $name, found {brief(params)}; one value is "
            f"a list of one: [{brief(params)}]"
        )
    return [_plain(value) for value in params]


def _plain(value: Any) -> Any:
    """A value that DuckDB binds: those of NumPy have their own types there only in arrays.

    Raises:
        InputError: a difference of times of less than a microsecond, which DuckDB's intervals do not have.
    """
    library = type(value).__module__.partition(".")[0]
    if isinstance(value, np.datetime64):
        return _time(value)
    if isinstance(value, np.timedelta64):
        return _difference(value)
    if library == "pandas" and getattr(value, "nanosecond", False) and value.tzinfo is None:
        return _time(value.to_datetime64())
    if library == "pandas" and getattr(value, "nanoseconds", False):
        return _difference(value.to_timedelta64())
    is_scalar = library == "numpy" and getattr(value, "ndim", 1) == 0
    return value.item() if is_scalar and value.dtype.itemsize <= 8 else value


def _time(value: Any) -> Any:
    """A moment. DuckDB binds Python's, which have microseconds; one that is finer has a type of its own."""
    if isinstance(value.item(), int) and np.datetime_data(value.dtype)[0] == "ns":
        whole = value.astype("datetime64[us]")
        if whole != value:
            return duckdb_module("params=").TimestampNanosecondValue(str(value).replace("T", " "))
        value = whole
    found = value.item()
    return value if isinstance(found, int) else found


def _difference(value: Any) -> Any:
    if np.isnat(value):
        return None
    whole = value.astype("timedelta64[us]")
    if whole != value:
        raise InputError(f"params= has a difference of {brief(value)}; DuckDB's intervals have whole microseconds")
    return whole.item()
