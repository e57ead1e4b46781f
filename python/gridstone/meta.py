"""Metadata of an array or a group: a mutable mapping of text to JSON values, each change one commit."""

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError

if TYPE_CHECKING:
    from . import _native


class Metadata(MutableMapping[str, Any]):
    """`a.meta`, `g.meta`. Values: None, bool, int, float (NaN, infinities), str, bytes, lists, dicts with text keys,
    `datetime`, `numpy.datetime64` and `timedelta64`. NumPy's numbers become Python's, its arrays lists.

    Setting a key commits; `update({...})` and `clear()` change many keys in one commit.
    """

    def __init__(
        self,
        reader: "Callable[[], _native.Array | _native.Group]",
        writer: "Callable[[], _native.Array | _native.Group]",
    ) -> None:
        self._reader, self._writer = reader, writer

    def __getitem__(self, key: str) -> Any:
        text = self._stored(key)
        if text is None:
            raise KeyError(key)
        return decode(json.loads(text))

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise InputError(f"a metadata key is text that is not empty, not {key!r}")
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._writer().meta_set({key: None})

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
        items: Iterable[tuple[Any, Any]] = other.items() if isinstance(other, Mapping) else other
        changes: dict[str, str | None] = {}
        for key, value in [*items, *more.items()]:
            if not isinstance(key, str) or not key:
                raise InputError(f"a metadata key is text that is not empty, not {key!r}")
            _check_text(key, key)
            changes[key] = json.dumps(encode(value, key), allow_nan=False)
        if changes:
            self._writer().meta_set(changes)

    def clear(self) -> None:
        """Removes every key, in one commit."""
        keys = self._reader().meta_keys()
        if keys:
            self._writer().meta_set(dict.fromkeys(keys))

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
                yield key, decode(json.loads(found))

    def __repr__(self) -> str:
        return f"Metadata({dict(self.items())!r})"


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


def encode(value: Any, key: str) -> Any:
    """`value` in terms of JSON; what JSON lacks is an object with one key that starts with "$"."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        tag = "$datetime64" if isinstance(value, np.datetime64) else "$timedelta64"
        ticks = None if np.isnat(value) else int(value.astype(np.int64))
        return {tag: [ticks, np.datetime_data(value.dtype)[0]]}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = list(value)
    if isinstance(value, str):
        _check_text(value, key)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else {"$int": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, dt.datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, list | tuple):
        return [encode(item, key) for item in value]
    if isinstance(value, Mapping):
        return _encode_mapping(value, key)
    raise InputError(
        f"metadata {key!r}: {value!r} ({type(value).__name__}) has no JSON form; "
        f"use numbers, text, bytes, datetimes, lists and dicts"
    )


def _encode_mapping(value: Mapping[Any, Any], key: str) -> Any:
    strangers = [name for name in value if not isinstance(name, str)]
    if strangers:
        raise InputError(f"metadata {key!r}: the keys of a dict are text, found {strangers[0]!r}")
    for name in value:
        _check_text(name, key)
    made = {name: encode(item, key) for name, item in value.items()}
    return {"$dict": made} if any(name.startswith("$") for name in made) else made


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
