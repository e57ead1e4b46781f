"""The arrays that are there to be named: those of stores in a folder, those of a store, and their columns."""

import contextlib
import os
from collections.abc import Iterator

from ..arrays.array import Array
from ..context.settings import Context
from ..errors import GridstoneError, NotFoundError
from ..stores import store
from .places import Arrays


def arrays_in(folder: str, context: Context) -> list[str]:
    """The arrays of the stores in a folder, by the names that SQL knows them by."""
    names = (name for name in sorted(_folders(folder)) if store.exists(name, context=context))
    return [array for name in names for array in _arrays_or_none(name, context)]


def arrays_of_store(uri: str, context: Context) -> list[str]:
    """The arrays of the newest version of a store, by the names that SQL knows them by.

    Raises:
        NotFoundError: there is no store.
    """
    root = store.open(uri, context=context)
    if isinstance(root, Array):
        return [uri]
    return [f"{uri}:{entry.path}" for entry in root.walk() if entry.kind == "array"]


def _arrays_or_none(uri: str, context: Context) -> list[str]:
    """Those of a store that can be opened: one that is damaged or sealed hides no other."""
    with contextlib.suppress(GridstoneError, OSError):
        return arrays_of_store(uri, context)
    return []


def _folders(folder: str) -> Iterator[str]:
    """The folders in a folder, each with the path to it."""
    with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
        yield from (os.path.join(folder, entry.name) for entry in entries if entry.is_dir())


def places_at(prefix: str, context: Context) -> list[str]:
    """What a name may go on with that begins so: arrays of stores, and folders with a slash behind them."""
    uri, inside, _ = prefix.rpartition(":/")
    if inside:
        return _arrays_or_none(uri, context)
    folder = os.path.dirname(prefix)
    found = []
    for name in sorted(_folders(folder)):
        is_store = False
        with contextlib.suppress(GridstoneError, OSError):
            is_store = store.exists(name, context=context)
        found += _arrays_or_none(name, context) if is_store else [name + "/"]
    return found


def columns_of(name: str, context: Context) -> list[str]:
    """The columns of an array: dimensions, then attributes.

    Raises:
        NotFoundError: there is none of that name.
    """
    array = Arrays(context).opened(name)
    if array is None:
        raise NotFoundError(f"there is no array {name!r}; names are relative to {os.getcwd()!r}")
    return [*array.dims, *array.schema_names]
