"""Opening arrays again by their place, as unpickling does."""

import contextlib
from typing import TYPE_CHECKING

from .. import _native
from ..context.settings import Context
from ..errors import NotFoundError

if TYPE_CHECKING:
    from .array import Array

_TRIES = 10


def open_native(context: Context, uri: str, path: str, writable: bool, version: int | None) -> "_native.Array":
    """The core's array there; a `NotFoundError` if there is a group."""
    found = _native.open(context.native, uri, path, writable, version, None)
    if not isinstance(found, _native.Array):
        raise NotFoundError(f"{uri!r} holds a group at {path!r}, where there was an array; open it anew")
    return found


def newest_of(old: "_native.Array", context: Context, writable: bool) -> "_native.Array":
    """The array at the newest version, wherever it lies there; a `NotFoundError` if it was removed or replaced."""
    for _ in range(_TRIES):
        path = old.at(None, None).path
        with contextlib.suppress(NotFoundError):  # It may move between the two.
            found = open_native(context, old.uri, path, writable, None)
            if found.id == old.id:
                return found
    raise NotFoundError(f"the array that lay at {old.path!r} of {old.uri!r} is moved again and again; open it anew")


def reopen(
    uri: str, path: str, version: int, mode: str, pinned: bool, context: Context, array_id: str | None = None
) -> "Array":
    """The array that was pickled: at its version, or at the newest if it can write."""
    from .array import Array

    if mode == "r":
        return Array(open_native(context, uri, path, False, version), context, pinned=pinned, unpickled=True)
    with contextlib.suppress(NotFoundError):
        found = open_native(context, uri, path, True, None)
        if array_id in (None, found.id):
            return Array(found, context, pinned=pinned, unpickled=True)
    # Something else lies there now, or nothing: the version that was pickled tells what was meant.
    old = open_native(context, uri, path, False, version)
    return Array(newest_of(old, context, True), context, pinned=pinned, unpickled=True)
