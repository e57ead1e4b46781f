"""Filters as schemas name them, and user-defined ones: a pair of functions under a name."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from .. import _native
from ..base.arguments import checked, utf8
from ..base.printable import brief
from ..errors import InputError, SchemaError

Filters = str | Sequence[str]

Transform = Callable[[bytes, int], "bytes | bytearray | memoryview"]
"""Bytes and the width of the values in them (1, 2, 4 or 8) to bytes."""


@checked()
def register_filter(id: str, *, encode: Transform, decode: Transform, overwrite: bool = False) -> None:
    """Makes a filter known to this process, by a name with a dot in it: `filters=["shuffle", "acme.xor"]`.

    The name is stored with what is written. A process that reads it must register the filter first. Without it an
    array opens, and only what needs the filter is refused.

    Args:
        id: letters, digits, `_` and `-` in parts separated by dots, two parts at least.
        encode: makes of bytes what is to be stored, at most twice as many and 4,096 more. It is given a block of values
            and the width of each in bytes; behind another filter, bytes (width 1).
        decode: its mirror: `decode(encode(data, width), width)` is `data`.
        overwrite: replace what had that name before.

    Several threads call both, each holding the GIL. A process that is forked knows the filters of its parent; one that
    is spawned must register them itself. An exception that they raise becomes an `InputError` of a write, a
    `CorruptionError` of a read.

    Raises:
        InputError: no name for a filter, or not functions.
        ExistsError: the name is taken.
    """
    for what, given in (("encode", encode), ("decode", decode)):
        if not callable(given):
            raise InputError(f"{what}= of a filter is a function of bytes and a width, not {brief(given)}")
    _native.register_filter(_id(id), encode, decode, overwrite)


def _id(id: Any) -> str:
    if not isinstance(id, str):
        raise InputError(f"a filter's id is a text such as 'acme.xor', not {brief(id)}")
    return utf8("id", id)


def registered_filters() -> list[str]:
    """The user-defined filters that this process knows, in alphabetical order."""
    return _native.registered_filters()


def filters_text(filters: Any) -> str:
    """`"auto"`, a name with an optional level, or a list of names, as the core's comma-separated text."""
    if isinstance(filters, str):
        return filters.replace(" ", "")
    if isinstance(filters, Sequence) and all(isinstance(f, str) for f in filters):
        return ",".join(f.strip() for f in filters) or "none"
    raise SchemaError(f'filters are "auto", a name such as "zstd:3" or a list of names, not {brief(filters)}')


def rounding_first(filters: Any) -> str:
    """The filters of an attribute as text; rounding by itself goes in front of "auto"."""
    text = filters_text(filters)
    return f"{text},auto" if text.startswith("bitround") and "," not in text else text


_KNOWN: set[str] = set()
_ANY = {"name": "v", "dtype": "uint8", "nullable": False, "fill": None}


def check_filters(what: str, text: str) -> None:
    """A `SchemaError` that lists all names of filters if one is unknown. Whether they take the type of values is known
    once there is a schema."""
    for one in text.split(","):
        name = one.partition(":")[0]
        if name in _KNOWN or name in ("auto", "bitround") or "." in name:
            continue
        dim = {"name": "x", "dtype": "int64", "domain": ["0", "1"], "tile": "2"}
        dims_and_attrs = {"dims": [dim], "attrs": [{**_ANY, "filters": name}]}
        try:
            _native.check_schema(json.dumps(dims_and_attrs))
        except SchemaError as error:
            if "is not known" in str(error):
                raise SchemaError(f"{what}: {str(error).partition(': ')[2]}") from None
        _KNOWN.add(name)
