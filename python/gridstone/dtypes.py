"""Names of datatypes, and single values as the text that schemas and boxes hold.

The core's names are NumPy's (`int32`, `datetime64[us]`) plus `string` and `bytes`. A value is a Python int, float,
bool, str or bytes, or a `numpy.datetime64` / `timedelta64` of the datatype's unit.
"""

import datetime as dt
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import SchemaError, UnsupportedError

Value = int | float | bool | str | bytes | np.datetime64 | np.timedelta64
"""One cell's value, or one coordinate."""

AnyArray = npt.NDArray[Any]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
_TIME = re.compile(r"(datetime64|timedelta64)\[(\w+)\]")
_PYTHON: dict[Any, str] = {bool: "bool", int: "int64", float: "float64", str: "string", bytes: "bytes"}
_ALIASES = {
    "str": "string",
    "object": "string",
    "utf8": "string",
    "binary": "bytes",
    "int": "int64",
    "float": "float64",
}
_RESERVED = ("float16", "complex64", "complex128")


def parse(dtype: Any) -> str:
    """The core's name of `dtype`: one of its names, a NumPy dtype, or `bool`, `int`, `float`, `str`, `bytes`."""
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    if isinstance(dtype, str):
        dtype = _ALIASES.get(dtype, dtype)
        if dtype in ("string", "bytes", "bool", *INTEGERS, *FLOATS):
            return str(dtype)
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise SchemaError(
            f"unknown datatype {dtype!r}; use bool, (u)int8 to (u)int64, float32, float64, datetime64[unit], "
            f"timedelta64[unit], string or bytes"
        ) from None
    return _of_numpy(found)


def _of_numpy(dtype: np.dtype[Any]) -> str:
    name = dtype.name
    if dtype.kind in "UT":
        return "string"
    if dtype.kind == "S":
        return "bytes"
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        if unit not in UNITS or count != 1:
            raise SchemaError(f"the datatype {name} needs one unit from Y to as, such as datetime64[us]")
        return name
    if name in ("bool", *INTEGERS, *FLOATS):
        return name
    if name in _RESERVED:
        raise UnsupportedError(f"the datatype {name} is not supported by this version; use float32 or float64")
    raise SchemaError(f"the datatype {name} cannot be stored; use a number, datetime, string or bytes type")


def is_var(name: str) -> bool:
    """Whether values vary in length."""
    return name in ("string", "bytes")


def is_time(name: str) -> bool:
    """Whether values count time (and so have a NaT)."""
    return name.endswith("]")


def is_float(name: str) -> bool:
    """Whether this is a float type."""
    return name in FLOATS


def unit_of(name: str) -> str:
    """The unit of a datetime or timedelta type."""
    found = _TIME.fullmatch(name)
    if found is None:
        raise SchemaError(f"the datatype {name} has no unit of time")
    return found[2]


def numpy_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of values of type `name`; object for strings and bytes."""
    return np.dtype(object) if is_var(name) else np.dtype(name)


def default_fill(name: str) -> Value:
    """What an unwritten dense cell reads as unless the schema says otherwise: 0, "", NaT."""
    if name == "string":
        return ""
    if name == "bytes":
        return b""
    if is_time(name):
        return _tick(name, "NaT")
    return {"bool": False, "float32": 0.0, "float64": 0.0}.get(name, 0)


def scalar(name: str, value: Any, what: str) -> Value:
    """`value` as one value of type `name`, or a `SchemaError` that begins with `what`."""
    if name == "string":
        made: Value | None = str(value) if isinstance(value, str) else None
    elif name == "bytes":
        made = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
    elif name == "bool":
        made = bool(value) if isinstance(value, bool | np.bool_) else None
    elif is_time(name):
        made = time_value(name, value)
    elif is_float(name):
        made = _float(name, value)
    else:
        made = _integer(name, value)
    if made is None:
        raise SchemaError(f"{what}: {value!r} is no value of type {name}")
    return made


def _float(name: str, value: Any) -> float | None:
    if not isinstance(value, int | float | np.integer | np.floating):
        return None
    made = rounded(name, value)
    return None if np.isinf(made) and abs(value) != np.inf else made


def rounded(name: str, value: Any) -> float:
    """`value` as the float type `name` holds it: bounds of float32 are compared with coordinates that were read."""
    try:
        with np.errstate(over="ignore"):
            return float(np.dtype(name).type(value))
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _tick(name: str, ticks: int | str) -> np.datetime64 | np.timedelta64:
    """The value of a time type that is `ticks` of its unit, or "NaT"."""
    kind: Any = np.datetime64 if name.startswith("datetime64") else np.timedelta64
    return _as_time(kind(ticks, unit_of(name)))


def _as_time(value: Any) -> np.datetime64 | np.timedelta64:
    made: np.datetime64 | np.timedelta64 = value
    return made


def _integer(name: str, value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if not isinstance(value, int | np.integer):
        return None
    info = np.iinfo(name)
    return int(value) if int(info.min) <= int(value) <= int(info.max) else None


def time_value(name: str, value: Any) -> np.datetime64 | np.timedelta64 | None:
    """`value` as a datetime or timedelta of the unit of `name`; None if it is none, or would lose something."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        if not -(2**63) <= int(value) < 2**63:
            return None
        return _tick(name, int(value))
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    kind: Any = np.datetime64 if name.startswith("datetime64") else np.timedelta64
    try:
        found = kind(value)
        made = found.astype(name)
    except (ValueError, TypeError, OverflowError):
        return None
    if np.isnat(found) or made.astype(found.dtype) == found:
        return _as_time(made)
    return None


def to_text(name: str, value: Value) -> str:
    """The text of a value of type `name`, as the core writes it."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return "NaT" if np.isnat(value) else str(int(value.astype(np.int64)))
    if isinstance(value, bytes):
        return value.hex()
    if name == "bool":
        return "true" if value else "false"
    if is_float(name):
        return str(np.float32(value)) if name == "float32" else repr(float(value))
    return str(value)


def from_text(name: str, text: str) -> Value:
    """The value of type `name` written in `text`; the mirror of `to_text`."""
    if name == "string":
        return text
    if name == "bytes":
        return bytes.fromhex(text)
    if name == "bool":
        return text == "true"
    if is_time(name):
        return _tick(name, "NaT" if text == "NaT" else int(text))
    return rounded(name, float(text)) if is_float(name) else int(text)


def ticks_of(value: Value) -> int:
    """A coordinate of an integer, datetime or timedelta dimension as an integer."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return int(value.astype(np.int64))
    return int(value)


def show(value: Value, name: str = "") -> str:
    """A value (of type `name`) for people: numbers plain, times as ISO text, strings quoted."""
    if name == "float32":
        return to_text(name, value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    return repr(value)
