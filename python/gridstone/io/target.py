"""The array that a load appends to, and the command that makes it wider where its types are in the way."""

import os
import shlex
from typing import Any, NamedTuple

import numpy as np

from ..column import datatype

_LENGTH_MAX = 256
"""Bytes of a text that is a coordinate."""


class Target(NamedTuple):
    """An array that is there."""

    uri: str
    path: str

    def copy(self, option: str, value: str) -> str:
        """The sentence that names the command: a copy with this option takes the value."""
        stem, end = os.path.splitext(self.uri.rstrip("/"))
        places = [self.uri, f"{stem}-wider{end}"]
        places += [] if self.path == "/" else ["--path", self.path, "--to", self.path]
        return f"`gridstone copy {shlex.join([*places, option, value])}` makes a copy that takes it"


def type_advice(target: Target | None, name: str, dtype: str, value: Any) -> str:
    """What to do about a value that a column's type does not hold, behind a semicolon; "" of a new array."""
    if target is None:
        return ""
    wanted = type_for(dtype, value)
    advice = "; the type of a column never changes"
    return advice if wanted is None else f"{advice}: {target.copy('--type', f'{name}={wanted}')}"


def length_advice(target: Target | None, name: str, length: int) -> str:
    """What to do about a text that is too long for a dimension."""
    if target is None or length > _LENGTH_MAX:
        return f"give a schema with a larger max_bytes, of up to {_LENGTH_MAX}"
    return f"max_bytes never changes: {target.copy('--max-bytes', f'{name}={room(length)}')}"


def room(longest: int) -> int:
    """`max_bytes` for texts of which the longest has so many bytes: twice as many, 32 to 256, in words of 8 bytes."""
    return max(min(_LENGTH_MAX, max(32, -(-2 * longest // 8) * 8)), -(-longest // 8) * 8)


def type_for(dtype: str, value: Any) -> str | None:
    """A type that holds what `dtype` holds and this value, which is text or a value of Arrow; None if there is none."""
    wanted = _type_of(dtype, value)
    return None if wanted == dtype or datatype.is_var(dtype) or datatype.base_of(dtype) != dtype else wanted


def _type_of(dtype: str, value: Any) -> str | None:
    if datatype.is_time(dtype):
        return _time_for(dtype, value)
    if isinstance(value, bool | np.bool_):
        return None
    number = _number(value)
    if number is None:
        return "string" if isinstance(value, str) else None
    if isinstance(number, float) or datatype.is_float(dtype):
        return "float64" if dtype != "float64" else "string"
    whole = "uint64" if dtype.startswith("u") and number >= 0 else "int64"
    fits = np.iinfo(whole).min <= number <= np.iinfo(whole).max
    return whole if fits and not (dtype == "uint64" and whole == "int64") else "string"


def _time_for(dtype: str, value: Any) -> str:
    """A finer unit, if it is a time."""
    if not isinstance(value, str) or not dtype.startswith("datetime64"):
        return "string"
    try:
        unit = np.datetime_data(datatype.moment(value))[0]
    except ValueError:
        return "string"
    units = ("D", "h", "m", "s", "ms", "us", "ns")
    return f"datetime64[{unit if unit in units else 'ns'}]"


def _number(value: Any) -> int | float | None:
    if not isinstance(value, str):
        return value if isinstance(value, int | float) else None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return None
