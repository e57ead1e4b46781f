"""What xarray knows of a variable and a store has no place for: notes in metadata, under the one key `xarray`.

Attributes lie in metadata as plain values, for any reader. Their NumPy types are noted beside them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays.metadata import encode
from ..errors import InputError

KEY = "xarray"
"""The key of metadata: of an attribute what is noted of a variable, of a group what is noted of a Dataset."""

Types = dict[str, Any]
"""The NumPy types of attributes by name: `["float32"]` of a number, `["float32", [2, 3]]` of an array."""


def plain(attrs: Mapping[Any, Any], what: str) -> tuple[dict[str, Any], Types]:
    """Attributes as values of metadata, and their types where these say more.

    Raises:
        InputError: an attribute without a name of text, or of a kind that metadata does not hold.
    """
    made: dict[str, Any] = {}
    types: Types = {}
    for name, value in attrs.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"{what}: the name of an attribute is text that is not empty, not {name!r}")
        made[name], kind = _plain(value)
        encode(made[name], name)
        if kind is not None:
            types[name] = kind
    return made, types


def _plain(value: Any) -> tuple[Any, list[Any] | None]:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "V":
            raise InputError(f"an attribute has no structured type, {value.dtype}: give its fields one by one")
        kind = [value.dtype.str, list(value.shape)]
        if value.dtype.kind == "c":
            parts = np.stack((value.real, value.imag), -1)
            return parts.tolist(), kind
        # Times are lists of times; `tolist` would make numbers of them.
        return (list(value) if value.ndim else value[()]) if value.dtype.kind in "mM" else value.tolist(), kind
    if isinstance(value, complex | np.complexfloating):
        dtype = value.dtype.str if isinstance(value, np.generic) else "complex"
        return [float(value.real), float(value.imag)], [dtype]
    if isinstance(value, np.str_ | np.bytes_):
        return value.item(), None
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        return value.item(), [value.dtype.str]
    if isinstance(value, tuple):
        return list(value), ["tuple"]
    return value, None


def typed(values: Mapping[str, Any], types: Any) -> dict[str, Any]:
    """Attributes with the types that were noted. A value that was changed since to one that does not fit its type stays
    as it is."""
    known = types if isinstance(types, Mapping) else {}
    return {name: _typed(value, known[name]) if name in known else value for name, value in values.items()}


def _typed(value: Any, kind: Any) -> Any:
    try:
        if kind == ["tuple"]:
            return tuple(value)
        if kind == ["complex"]:
            return complex(*value)
        dtype = np.dtype(kind[0])
        if len(kind) == 2:
            return _array(value, dtype, tuple(kind[1]))
        return dtype.type(complex(*value)) if dtype.kind == "c" else dtype.type(value)
    except (TypeError, ValueError, OverflowError, IndexError):
        return value


def _array(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    if dtype.kind == "c":
        parts = np.asarray(value, np.float64).reshape((*shape, 2))
        # A sum would make NaN of an infinity times 0.
        made = np.empty(parts.shape[:-1], dtype)
        made.real, made.imag = parts[..., 0], parts[..., 1]
        return made
    made = np.empty(shape, dtype)
    made[...] = np.asarray(value, dtype).reshape(shape)
    return made


def storable(encoding: Mapping[Any, Any]) -> dict[str, Any]:
    """The parts of an encoding that metadata holds; others (objects of another format's library) mean nothing here."""
    return {name: value for name, value in encoding.items() if isinstance(name, str) and name and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufcSU"
    if isinstance(value, list | tuple):
        return all(_is_plain(one) for one in value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and name and _is_plain(one) for name, one in value.items())
    return value is None or isinstance(value, bool | int | float | complex | str | bytes | np.number | np.bool_)
