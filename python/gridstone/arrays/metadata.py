"""Metadata of an array, a group, an attribute or a dimension: a mutable mapping of text to JSON values, each change one
commit.
"""

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.printable import brief
from ..errors import CorruptionError, GridstoneError, InputError, UnsupportedError

if TYPE_CHECKING:
    from .. import _native

_LEVELS_MAX = 128
"""Lists and dicts within each other, as they are stored."""


class Metadata(MutableMapping[str, Any]):
    """`a.meta`, `g.meta`, `a["v"].meta`, `a.dim("x").meta`.

    Values: None, bool, int, float (NaN, infinities), str, bytes, lists, dicts with text keys, `datetime`,
    `numpy.datetime64` and `timedelta64`. NumPy's numbers become Python's, its arrays lists.

    As they are stored, lists and dicts lie in each other 128 deep at most.

    Setting a key commits; `update({...})` and `clear()` change many keys in one commit.
    """

    def __init__(
        self,
        reader: "Callable[[], _native.Array | _native.Group | _native.Field]",
        writer: "Callable[[], _native.Array | _native.Group | _native.Field]",
    ) -> None:
        self._reader, self._writer = reader, writer

    def __getitem__(self, key: str) -> Any:
        text = self._stored(key)
        if text is None:
            raise KeyError(key)
        return _read(text, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise InputError(f"a metadata key is text that is not empty, not {brief(key)}")
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        writer = self._writer()
        if key not in self:
            raise KeyError(key)
        writer.meta_set({key: None})

    def __iter__(self) -> Iterator[str]:
        return iter(self._reader().meta_keys())

    def __len__(self) -> int:
        return len(self._reader().meta_keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._stored(key) is not None

    def _stored(self, key: str) -> str | None:
        """The JSON text at a key; None: there is none, as at what cannot be a key."""
        return self._reader().meta_get(key) if _is_text(key) else None

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Sets every key given, in one commit."""
        writer = self._writer()
        items: Iterable[tuple[Any, Any]] = other.items() if isinstance(other, Mapping) else other
        changes: dict[str, str | None] = {}
        for key, value in [*items, *more.items()]:
            if not isinstance(key, str) or not key:
                raise InputError(f"a metadata key is text that is not empty, not {brief(key)}")
            _check_text(key, key)
            changes[key] = json.dumps(encode(value, key), allow_nan=False)
        if changes:
            writer.meta_set(changes)

    def clear(self) -> None:
        """Removes every key, in one commit."""
        writer = self._writer()
        keys = self._reader().meta_keys()
        if keys:
            writer.meta_set(dict.fromkeys(keys))

    def items(self) -> ItemsView[str, Any]:
        """Pairs of key and value; each pass is over those of one moment."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """The values; each pass is over those of one moment."""
        return _Values(self)

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        shown = self._reader()
        for key in shown.meta_keys():
            found = shown.meta_get(key)
            if found is not None:
                yield key, _read(found, key)

    def text_of(self, key: str) -> str:
        """The value at a key for people; also if it cannot be read."""
        text = self._stored(key)
        return "None" if text is None else _told(text, key)

    def __repr__(self) -> str:
        shown = self._reader()
        texts = [(key, shown.meta_get(key)) for key in shown.meta_keys()]
        return f"Metadata({{{', '.join(f'{key!r}: {_told(text, key)}' for key, text in texts if text is not None)}}})"


class _Items(ItemsView[str, Any]):
    """Keys and values of metadata."""

    _mapping: Metadata

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._pairs()


class _Values(ValuesView[Any]):
    """Values of metadata."""

    _mapping: Metadata

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping._pairs())


def _told(text: str, key: str) -> str:
    """The value of a JSON text for people; also if it cannot be read."""
    try:
        return repr(_read(text, key))
    except GridstoneError as error:
        return f"<{type(error).__name__}>"


def encode(value: Any, key: str, level: int = 0) -> Any:
    """`value`, which lies `level` lists and dicts deep, in terms of JSON; what JSON lacks is an object with one key
    that starts with "$"."""
    if level > _LEVELS_MAX:
        raise InputError(
            f"metadata {key!r}: lists and dicts lie in each other more than {_LEVELS_MAX} deep, or one in itself; "
            f"store less deeply nested values"
        )
    if isinstance(value, np.datetime64 | np.timedelta64):
        tag = "$datetime64" if isinstance(value, np.datetime64) else "$timedelta64"
        return {tag: _ticks(value, key)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"metadata {key!r}: {brief(value)} is masked in part, which JSON has no form for; fill it")
    if isinstance(value, np.ndarray):
        value = list(value) if value.ndim else value[()]
        if isinstance(value, np.generic | np.ndarray):
            return encode(value, key, level)
    if isinstance(value, str):
        _check_text(value, key)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else {"$int": _digits(value, key)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, dt.datetime):
        if value != value:
            return {"$datetime64": [None, "us"]}
        return {"$datetime": value.isoformat()}
    if isinstance(value, list | tuple):
        return [encode(item, key, level + 1) for item in value]
    if isinstance(value, Mapping):
        return _encode_mapping(value, key, level)
    raise InputError(
        f"metadata {key!r}: {brief(value)} ({type(value).__name__}) has no JSON form; "
        f"use numbers, text, bytes, datetimes, lists and dicts"
    )


def _ticks(value: np.datetime64 | np.timedelta64, key: str) -> list[Any]:
    """The number of a time and its unit; units of several, such as 25 seconds, are counted out."""
    unit, several = np.datetime_data(value.dtype)
    if np.isnat(value):
        return [None, unit]
    ticks = int(value.astype(np.int64)) * several
    if not -(2**63) < ticks < 2**63:
        raise InputError(
            f"metadata {key!r}: {brief(value)} has more than 64 bits in units of {unit}; use a coarser unit"
        )
    return [ticks, unit]


def _digits(value: int, key: str) -> str:
    try:
        return str(value)
    except ValueError:
        raise InputError(
            f"metadata {key!r}: an integer of {value.bit_length():,} bits has more decimal digits than Python writes "
            f"or reads; store it as bytes or as text of hexadecimal digits"
        ) from None


def _encode_mapping(value: Mapping[Any, Any], key: str, level: int) -> Any:
    strangers = [name for name in value if not isinstance(name, str)]
    if strangers:
        raise InputError(f"metadata {key!r}: the keys of a dict are text, found {brief(strangers[0])}")
    for name in value:
        _check_text(name, key)
    tagged = any(name.startswith("$") for name in value)
    made = {name: encode(item, key, level + 1 + tagged) for name, item in value.items()}
    return {"$dict": made} if tagged else made


def _is_text(text: object) -> bool:
    """Whether it is text that UTF-8 can hold: Python's may have halves of surrogate pairs, which no reader takes."""
    try:
        return isinstance(text, str) and text.encode() is not None
    except UnicodeEncodeError:
        return False


def _check_text(text: str, key: str) -> None:
    if not _is_text(text):
        raise InputError(
            f"metadata {key!r}: {text!r} has half a surrogate pair, which UTF-8 cannot hold; store it as bytes: "
            f"text.encode('utf-8', 'surrogatepass')"
        )


def _read(text: str, key: str) -> Any:
    """The value in a stored text. What another program has written may be no JSON, or hold what Python does not."""
    mend = f"set it anew, or delete it with del meta[{key!r}]"
    try:
        found = json.loads(text, parse_float=_finite, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise CorruptionError(f"metadata {key!r} is no JSON text ({error}); {mend}") from None
    except (ValueError, RecursionError) as error:
        raise UnsupportedError(f"metadata {key!r} holds what Python cannot: {_why(error)}; {mend}") from None
    try:
        value = decode(found)
    except RecursionError as error:
        raise UnsupportedError(f"metadata {key!r} holds what Python cannot: {_why(error)}; {mend}") from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise CorruptionError(f"metadata {key!r} is no value as Gridstone writes it ({error}); {mend}") from None
    if "\\u" in text and not _is_text(json.dumps(found, ensure_ascii=False)):
        raise UnsupportedError(f"metadata {key!r} has half a surrogate pair, which no text has; {mend}")
    return value


def _why(error: Exception) -> str:
    return "lists and dicts lie too deep in each other" if isinstance(error, RecursionError) else str(error)


def _finite(digits: str) -> float:
    """A number that is written with a point or an exponent."""
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:40]} is beyond what a float holds")
    return value


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is no number of JSON", name, 0)


def decode(found: Any) -> Any:
    """The value that `encode` made `found` of."""
    if isinstance(found, list):
        return [decode(item) for item in found]
    if not isinstance(found, dict):
        return found
    if len(found) == 1:
        tag, content = next(iter(found.items()))
        if tag in _TAGS:
            return _TAGS[tag](content)
    return {name: decode(item) for name, item in found.items()}


_TAGS: dict[str, Callable[[Any], Any]] = {
    "$int": int,
    "$float": float,
    "$bytes": base64.b64decode,
    "$datetime": dt.datetime.fromisoformat,
    "$datetime64": lambda c: np.datetime64("NaT" if c[0] is None else c[0], c[1]),
    "$timedelta64": lambda c: np.timedelta64("NaT" if c[0] is None else c[0], c[1]),
    "$dict": lambda c: {name: decode(item) for name, item in c.items()},
}
