"""Names of datatypes, and single values as the text that schemas and boxes hold.

The core's names are NumPy's (`int32`, `datetime64[us]`), `string`, `bytes` and `bytes[16]` (of fixed length). There are
vectors (`uint8[3]`, `float32[2,3]`) and lists (`list[int32]`). Vectors and lists are of *primitives*: numbers, booleans
and times. A value is a Python int, float, complex, bool, str or bytes, or a `numpy.datetime64` / `timedelta64` of the
datatype's unit or, where it counts several (`datetime64[6h]`), of so many. The value of a vector or
list is a tuple of these, nested as the vector's axes are.
"""

import datetime as dt
import math
import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.arguments import utf8
from ..base.printable import brief
from ..errors import SchemaError

Value = int | float | complex | bool | str | bytes | np.datetime64 | np.timedelta64 | tuple[Any, ...]
"""One cell's value, or one coordinate."""

AnyArray = npt.NDArray[Any]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
_BOUNDS = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTEGERS}
_ENDS: dict[str, tuple[float, float]] = {
    **_BOUNDS,
    **{name: (-float(np.finfo(name).max), float(np.finfo(name).max)) for name in FLOATS},
}
_PLAIN = frozenset(("string", "bytes", "bool", *INTEGERS, *FLOATS, *COMPLEX))
"""Names without a unit, a length or a shape."""
_TIME = re.compile(r"(datetime64|timedelta64)\[(\w+)\]")
_SHAPED = re.compile(r"(.+)\[(\d+(?:,\d+)*)\]")
_LIST = re.compile(r"list\[(.+)\]")
_PYTHON: dict[Any, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    complex: "complex128",
    str: "string",
    bytes: "bytes",
}
_ALIASES = {
    "str": "string",
    "object": "string",
    "utf8": "string",
    "binary": "bytes",
    "int": "int64",
    "float": "float64",
    "complex": "complex128",
}
_ANY = "v"
"""The field of the structured dtype that holds a vector as one cell."""


def parse(dtype: Any) -> str:
    """The core's name of `dtype`: one of its names, a NumPy dtype, or a Python type such as `float` or `str`."""
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    if isinstance(dtype, str):
        utf8("dtype", dtype)
        dtype = _ALIASES.get(dtype.strip(), dtype.strip())
        if dtype in _PLAIN:
            return str(dtype)
        if found := _LIST.fullmatch(dtype):
            return list_of(parse(found[1]))
        if found := _SHAPED.fullmatch(dtype):
            return shaped(parse(found[1]), tuple(int(side) for side in found[2].split(",")))
    try:
        made = np.dtype(dtype)
    except (TypeError, ValueError):
        raise SchemaError(
            f"unknown datatype {brief(dtype)}; use bool, (u)int8 to (u)int64, float16 to float64, complex64, "
            f"complex128, datetime64[unit], timedelta64[unit] (or several units: 6h), string, bytes, "
            f"bytes[length], a vector such as uint8[3] or a list such as list[int32]"
        ) from None
    return _of_numpy(made)


def _of_numpy(dtype: np.dtype[Any]) -> str:
    name = dtype.name
    if dtype.subdtype is not None:
        return shaped(_of_numpy(dtype.subdtype[0]), dtype.subdtype[1])
    if dtype.kind in "UT":
        return "string"
    if dtype.kind == "S" or (dtype.kind == "V" and dtype.names is None):
        return f"bytes[{dtype.itemsize}]" if dtype.itemsize else "bytes"
    if dtype.kind in "mM":
        if np.datetime_data(dtype)[0] not in UNITS:
            raise SchemaError(f"the datatype {name} needs a unit from Y to as, such as datetime64[us]")
        return name
    if name in ("bool", *INTEGERS, *FLOATS, *COMPLEX):
        return name
    raise SchemaError(f"the datatype {name} cannot be stored; use a number, datetime, string or bytes type")


def shaped(name: str, shape: tuple[int, ...]) -> str:
    """The name of vectors of primitives; "bytes" with one side is bytes of that length."""
    sides = ",".join(str(int(side)) for side in shape)
    if is_primitive(name) or (name == "bytes" and len(shape) == 1):
        return f"{name}[{sides}]"
    raise SchemaError(f"a vector is of numbers, booleans or times, not of {name}")


def list_of(name: str) -> str:
    """The name of lists of primitives."""
    if is_primitive(name):
        return f"list[{name}]"
    raise SchemaError(f"a list is of numbers, booleans or times, not of {name}")


def is_primitive(name: str) -> bool:
    """Whether this is a single value of fixed width, of which vectors and lists may be made."""
    return name in _BOUNDS or name == "bool" or name in FLOATS or name in COMPLEX or is_time(name)


def ends_of(name: str) -> tuple[float, float]:
    """The least and the greatest finite number of a type; of times in ticks, where the one below the least is NaT."""
    return (-(2**63) + 1, 2**63 - 1) if is_time(name) else _ENDS[name]


def is_var(name: str) -> bool:
    """Whether values vary in length."""
    return name in ("string", "bytes") or is_list(name)


def is_list(name: str) -> bool:
    """Whether values are lists."""
    return name.startswith("list[")


def is_fixed_bytes(name: str) -> bool:
    """Whether values are bytes of a fixed length."""
    return name.startswith("bytes[")


def is_time(name: str) -> bool:
    """Whether values count time (and so have a NaT)."""
    return name.startswith(("datetime64[", "timedelta64[")) and _TIME.fullmatch(name) is not None


def is_float(name: str) -> bool:
    """Whether this is a float type."""
    return name in FLOATS


def is_complex(name: str) -> bool:
    """Whether this is a complex type."""
    return name in COMPLEX


@cache
def base_of(name: str) -> str:
    """What a vector or list is made of; of other types, these themselves."""
    found = _LIST.fullmatch(name) or (None if is_fixed_bytes(name) else _SHAPED.fullmatch(name))
    return name if found is None else found[1]


@cache
def shape_of(name: str) -> tuple[int, ...]:
    """The shape of a value: () but for vectors."""
    found = None if is_fixed_bytes(name) or is_list(name) else _SHAPED.fullmatch(name)
    return () if found is None else tuple(int(side) for side in found[2].split(","))


def step_of(name: str) -> str:
    """What a datetime or timedelta type is counted in: a unit, or several ("6h")."""
    found = _TIME.fullmatch(name)
    if found is None:
        raise SchemaError(f"the datatype {name} has no unit of time")
    return found[2]


def unit_of(name: str) -> str:
    """The unit of a datetime or timedelta type, whatever number of them a step is."""
    return step_of(name).lstrip("0123456789")


@cache
def numpy_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of arrays of type `name`: object for what varies in length, of vectors that of their numbers."""
    if is_var(name):
        return np.dtype(object)
    if is_fixed_bytes(name):
        return np.dtype(f"S{length_of(name)}")
    return np.dtype(base_of(name))


@cache
def cell_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of one cell: as `numpy_of`, but for vectors one that holds a whole vector (see `packed`)."""
    shape = shape_of(name)
    return np.dtype([(_ANY, numpy_of(name), shape)]) if shape else numpy_of(name)


def length_of(name: str) -> int:
    """The length of bytes of a fixed length."""
    return int(name[len("bytes[") : -1])


def cell_bytes(name: str) -> int:
    """Bytes of one cell in a NumPy array; of what varies in length those of the reference."""
    return numpy_of(name).itemsize * math.prod(shape_of(name))


def packed(name: str, array: AnyArray) -> AnyArray:
    """An array of `numpy_of(name)` whose last axes are a vector's, as one of cells; all others as they are."""
    inner = shape_of(name)
    if not inner:
        return array
    cells = array.shape[: array.ndim - len(inner)]
    if array.size == 0:
        return np.empty(cells, cell_of(name))
    made: AnyArray = np.ascontiguousarray(array).reshape(-1).view(cell_of(name))
    return made.reshape(cells)


def unpacked(cells: AnyArray) -> AnyArray:
    """The mirror of `packed`."""
    return cells if cells.dtype.names is None else cells[_ANY]


def default_fill(name: str) -> Value:
    """What an unwritten dense cell reads as unless the schema says otherwise: 0, "", NaT, a list of nothing."""
    if name == "string":
        return ""
    if name == "bytes" or is_fixed_bytes(name):
        return b""
    if is_list(name):
        return ()
    if shape := shape_of(name):
        return _nested([default_fill(base_of(name))] * math.prod(shape), shape)
    if is_time(name):
        return _tick(name, "NaT")
    return 0j if is_complex(name) else 0.0 if is_float(name) else False if name == "bool" else 0


def _nested(flat: list[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Values in row-major order as tuples of tuples."""
    if len(shape) == 1:
        return tuple(flat)
    step = len(flat) // shape[0]
    return tuple(_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0]))


def _flat(value: Any) -> list[Any]:
    """The mirror of `_nested`, for arrays and lists too."""
    if isinstance(value, tuple | list | np.ndarray) and np.ndim(value):
        return [one for part in value for one in _flat(part)]
    return [value]


def scalar(name: str, value: Any, what: str) -> Value:
    """`value` as one value of type `name`, or a `SchemaError` that begins with `what`."""
    if name == "string":
        made: Value | None = str(value) if isinstance(value, str) else None
    elif name == "bytes" or is_fixed_bytes(name):
        made = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
        if made is not None and name != "bytes":
            made = bytes(made).rstrip(b"\0") if len(bytes(made)) <= length_of(name) else None
    elif is_list(name) or shape_of(name):
        made = _several(name, value, what)
    elif name == "bool":
        made = bool(value) if isinstance(value, bool | np.bool_) else None
    elif is_time(name):
        made = time_value(name, value)
    elif is_float(name):
        made = _float(name, value)
    elif is_complex(name):
        made = _complex(name, value)
    else:
        made = _integer(name, value)
    if made is None:
        raise SchemaError(f"{what}: {brief(value)} is no value of type {name}")
    return made


def _several(name: str, value: Any, what: str) -> tuple[Any, ...] | None:
    """The value of a vector or list."""
    try:
        found = np.shape(value)
    except ValueError:
        return None
    shape = shape_of(name) or found
    if found != shape or len(shape) != len(shape_of(name) or (0,)):
        return None
    flat = [scalar(base_of(name), one, what) for one in _flat(value)] if math.prod(shape) else []
    return _nested(flat, shape)


def _complex(name: str, value: Any) -> complex | None:
    if not isinstance(value, int | float | complex | np.number):
        return None
    try:
        given = complex(value)
    except OverflowError:
        return None
    part = "float32" if name == "complex64" else "float64"
    real, imaginary = _float(part, given.real), _float(part, given.imag)
    return None if real is None or imaginary is None else complex(real, imaginary)


def _float(name: str, value: Any) -> float | None:
    if not isinstance(value, int | float | np.integer | np.floating):
        return None
    made = rounded(name, value)
    return None if np.isinf(made) and abs(value) != np.inf else made


def rounded(name: str, value: Any) -> float:
    """`value` as the float type `name` holds it: bounds of narrow ones are compared with coordinates that were read."""
    if name == "float64" and isinstance(value, float):
        return float(value)
    try:
        with np.errstate(over="ignore"):
            return float(np.dtype(name).type(value))
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _tick(name: str, ticks: int | str) -> np.datetime64 | np.timedelta64:
    """The value of a time type that is `ticks` of its steps, or "NaT"."""
    kind: Any = np.datetime64 if name.startswith("datetime64") else np.timedelta64
    return _as_time(kind(ticks, step_of(name)))


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
    low, high = _BOUNDS[name]
    return int(value) if low <= int(value) <= high else None


def time_value(name: str, value: Any) -> np.datetime64 | np.timedelta64 | None:
    """`value` as a datetime or timedelta of the unit of `name`; None if it is none, or would lose something."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        if not -(2**63) <= int(value) < 2**63:
            return None
        return _tick(name, int(value))
    found: Any = time_of(name, value)
    if found is None:
        return None
    try:
        made = found.astype(name)
    except (ValueError, TypeError, OverflowError):
        return None
    if np.isnat(found) or made.astype(found.dtype) == found:
        return _as_time(made)
    return None


_ZONED = re.compile(r"(.+[T ]\d\d.*?) ?([+-])(\d\d)(?::?(\d\d))?")


def moment(text: str) -> np.datetime64:
    """A written date or time, UTC, in the unit of its last written field; one with an offset in that of the offset if
    this is finer.

    Raises:
        ValueError: the text is none.
    """
    if text[-1:] in ("Z", "z"):
        return np.datetime64(hyphenated(text[:-1].rstrip()))
    found = _ZONED.fullmatch(text)
    if found is None:
        return np.datetime64(hyphenated(text))
    hours, minutes = int(found[3]), int(found[4] or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"{text!r} has an offset of more than a day")
    offset = np.timedelta64(hours, "h") if not minutes else np.timedelta64(60 * hours + minutes, "m")
    local = np.datetime64(hyphenated(found[1]))
    zoned: np.datetime64 = local - offset if found[2] == "+" else local + offset
    return zoned


def hyphenated(text: str) -> str:
    """A written date with hyphens between year, month and day: NumPy takes 20260302 for the year 20,260,302.

    `today` is the day in UTC, as all stored times are; NumPy takes the local one. A `ValueError` for `now`, which is a
    moment and no written date, and for a year of more than four digits without a sign.
    """
    word = text.strip().lower()
    if word == "today":
        return dt.datetime.now(dt.UTC).date().isoformat()
    if word == "now":
        raise ValueError(f"{text!r} is a moment, and no date that is written")
    digits = len(text) - len(text.lstrip("0123456789"))
    if digits == len(text) == 8:
        return f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if digits > 4:
        raise ValueError(f"{text!r} begins with {digits} digits; a year of more than four has a sign")
    return text


TIME_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
"""Those of times, from the longest on."""


def fineness(unit: str) -> int:
    """How fine a unit of times is, from years on."""
    return TIME_UNITS.index(unit)


def time_of(name: str, value: Any) -> np.datetime64 | np.timedelta64 | None:
    """`value`, which is no tick, as a datetime or timedelta in a unit of its own; None if it is none."""
    if hasattr(value, "start_time") and hasattr(value, "freqstr"):
        return None  # pandas.Period: NumPy takes the last day of it.
    for method in ("to_datetime64", "to_timedelta64"):
        value = getattr(value, method)() if hasattr(value, method) else value  # NumPy drops pandas' nanoseconds.
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    kind: Any = np.datetime64 if name.startswith("datetime64") else np.timedelta64
    try:
        if isinstance(value, str) and kind is np.datetime64:
            return moment(value)
        return _as_time(kind(value))
    except (ValueError, TypeError, OverflowError):
        return None


def to_text(name: str, value: Value) -> str:
    """The text of a value of type `name`, as the core writes it."""
    if name in _BOUNDS:
        return str(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return "NaT" if np.isnat(value) else str(int(value.astype(np.int64)))
    if isinstance(value, bytes):
        return (value.ljust(length_of(name), b"\0") if is_fixed_bytes(name) else value).hex()
    if isinstance(value, tuple):
        return f"[{','.join(to_text(base_of(name), one) for one in _flat(value))}]"
    if name == "bool":
        return "true" if value else "false"
    if is_complex(name):
        part = "float32" if name == "complex64" else "float64"
        real, imaginary = (to_text(part, part_of) for part_of in (complex(value).real, complex(value).imag))
        return f"{real}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if is_float(name):
        made = np.dtype(name).type(value)
        return repr(float(made)) if name == "float64" else str(made)
    return str(value)


def from_text(name: str, text: str) -> Value:
    """The value of type `name` written in `text`; the mirror of `to_text`."""
    if name in _BOUNDS:
        return int(text)
    if name == "string":
        return text
    if name == "bytes":
        return bytes.fromhex(text)
    if is_fixed_bytes(name):
        return bytes.fromhex(text).rstrip(b"\0")
    if is_list(name) or shape_of(name):
        flat = [from_text(base_of(name), one) for one in text.strip("[]").split(",") if one]
        return _nested(flat, shape_of(name) or (len(flat),))
    if name == "bool":
        return text == "true"
    if is_complex(name):
        whole = complex(text)
        made = _complex(name, whole)
        return whole if made is None else made
    if is_time(name):
        return _tick(name, "NaT" if text == "NaT" else int(text))
    return rounded(name, float(text)) if is_float(name) else int(text)


def ticks_of(value: Value) -> int:
    """A coordinate of an integer, datetime or timedelta dimension as an integer."""
    if type(value) is int:
        return value
    if isinstance(value, np.datetime64 | np.timedelta64):
        return int(value.astype(np.int64))
    found: Any = value
    return int(found)


def show(value: Value, name: str = "") -> str:
    """A value (of type `name`) for people: numbers plain, times as ISO text, strings quoted."""
    if name in ("float16", "float32"):
        return to_text(name, value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    return repr(value)
