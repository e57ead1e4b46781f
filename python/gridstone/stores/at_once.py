"""Creates an array with what it holds, labels, values and metadata, in one commit."""

import contextlib
import os
from collections.abc import Callable, Iterator

from .. import _native
from ..arrays.array import Array
from ..context.settings import Context
from ..errors import CommitUnknownError, GridstoneError, NotFoundError
from ..schema.array_schema import Schema
from .transaction import Transaction, transaction


@contextlib.contextmanager
def made_for(uri: str, context: Context) -> Iterator[bool]:
    """Makes the store if there is none, with nothing but its root, and gives whether it did. If the block fails, a
    store that was made goes, unless others have put something into it.

    Between that look and the removal lies a moment in which the commit of another process would be lost: no call
    removes a store only if it is at a version.
    """
    fresh = not _native.exists(context.native, uri)
    first = _native.create_group(context.native, uri, "/").version if fresh else None
    try:
        yield fresh
    except BaseException as error:
        # The first error is the one that is raised. What may have been committed stays.
        is_known = fresh and not isinstance(error, CommitUnknownError)
        with contextlib.suppress(GridstoneError):
            if is_known and _native.create_group(context.native, uri, "/").version == first:
                _native.delete_store(context.native, uri)
        raise


def at_once(
    uri: str, path: str, context: Context, fill: Callable[[Transaction, bool], object], message: str | None = None
) -> None:
    """Does what `fill` does in one commit, given whether it may replace the root of a new store. A store that was
    made for it goes if that fails.
    """
    # A transaction needs a store. What others put into one that was just made is not overwritten: serializable sees it
    # come.
    with (
        made_for(uri, context) as fresh,
        transaction(uri, message, "serializable" if fresh else "snapshot", context) as made,
    ):
        fill(made, fresh and not path.strip("/") and not made.ls("/"))


def create_at_once(
    uri: str,
    schema: Schema,
    path: str,
    overwrite: bool,
    context: Context,
    fill: Callable[[Array], object],
    message: str | None = None,
) -> Array:
    """The array that `fill` has written to within its commit. A store that was made for it goes if that fails.

    Raises:
        ExistsError: there is something, and `overwrite` is False.
    """

    def create(tx: Transaction, replaces: bool) -> None:
        fill(tx.create(path, schema, overwrite=overwrite or replaces))

    at_once(uri, path, context, create, message)
    return opened(uri, path, context)


def opened(uri: str | os.PathLike[str], path: str, context: Context) -> Array:
    """The array for reading and writing."""
    found = _native.open(context.native, os.fspath(uri), path if path.startswith("/") else f"/{path}", True, None, None)
    if isinstance(found, _native.Group):
        raise NotFoundError(f"{os.fspath(uri)!r} holds a group at {path!r}: another commit replaced the array")
    return Array(found, context)
