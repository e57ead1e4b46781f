"""Opening arrays again by their place, as unpickling does."""

from typing import TYPE_CHECKING

from . import _native
from .context import Context
from .errors import NotFoundError

if TYPE_CHECKING:
    from .array import Array


def open_native(context: Context, uri: str, path: str, writable: bool, version: int | None) -> "_native.Array":
    """The core's array there; a `NotFoundError` if there is a group."""
    found = _native.open(context.native, uri, path, writable, version, None)
    if not isinstance(found, _native.Array):
        raise NotFoundError(f"{uri!r} holds a group at {path!r}, where there was an array; open it anew")
    return found


def reopen(uri: str, path: str, version: int, mode: str, pinned: bool, context: Context) -> "Array":
    """The array that was pickled: at its version, or at the newest if it can write."""
    from .array import Array

    writable = mode == "r+"
    found = open_native(context, uri, path, writable, None if writable else version)
    return Array(found, context, pinned=pinned, unpickled=True)
