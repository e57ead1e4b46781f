"""Opens arrays again by their place, as unpickling does."""

import contextlib
from typing import Any

from .. import _native
from ..context.settings import Context
from ..errors import ConflictError, NotFoundError

_TRIES = 10


def open_native(context: Context, uri: str, path: str, writable: bool, version: int | None) -> "_native.Array":
    """The core's array there; a `NotFoundError` if there is a group."""
    found = _native.open(context.native, uri, path, writable, version, None)
    if not isinstance(found, _native.Array):
        raise NotFoundError(f"{uri!r} holds a group at {path!r}, where there was an array; open it anew")
    return found


def same_native(context: Context, uri: str, path: str, version: int, array_id: str | None) -> "_native.Array":
    """The core's array at a version, read-only; a `NotFoundError` if another one lies there, as where the store was
    deleted and made again. Without an id it is any."""
    found = open_native(context, uri, path, False, version)
    if array_id not in (None, found.id):
        raise NotFoundError(
            f"{uri!r} holds another array at {path!r} of version {version} than the one that was meant: the store was "
            f"made again since; open it anew"
        )
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


def reopened(
    context: Context, uri: str, path: str, version: int, mode: str, array_id: str | None
) -> tuple["_native.Array", bool]:
    """The core's array that was pickled, at its version, and whether it is to write, which it cannot at an older one.
    A writer whose array was moved since is at the newest version, where the array lies now."""
    if mode == "r":
        return same_native(context, uri, path, version, array_id), False
    with contextlib.suppress(NotFoundError):
        found = open_native(context, uri, path, True, None)
        if array_id in (None, found.id):
            return (found, False) if found.version == version else (found.at(version, None), True)
    # Something else lies there now, or nothing: the version that was pickled tells what was meant.
    return newest_of(same_native(context, uri, path, version, array_id), context, True), False


def again(old: "_native.Array", context: Context) -> tuple["_native.Array", bool]:
    """Another array that writes, at the version that `old` shows, and whether it cannot write at that one."""
    with contextlib.suppress(NotFoundError):
        found = newest_of(old, context, True)
        if found.version == old.version:
            return found, False
    return old.still(), True


def check_current(shown: "_native.Array", newest: "_native.Array", judged: bool) -> None:
    """A `ConflictError` if a write through a handle that shows an older version would be another one at the newest:
    the schema changed, or the write is `judged` by the cells that the handle shows."""
    if newest.schema_json != shown.schema_json:
        what = "the schema changed since"
    elif judged and newest.version != shown.version:
        what = "a condition would select cells that this handle does not show"
    else:
        return
    raise ConflictError(
        f"this handle of {shown.uri!r} was copied or unpickled at version {shown.version}, the newest is "
        f"{newest.version}, and {what}: refresh() it, look again, and write then"
    )


def token_of(uri: str, path: str, version: int, array_id: str, context: Context) -> tuple[Any, ...]:
    """What tells an array at a version from all others, the same in every process: no secret, and no data.

    The options of the context that lead to other values are in it: the service that a bucket is asked for of, and the
    folders that attached files may be read from.
    """
    return ("gridstone.Array", uri, path, version, array_id, *context._token())
