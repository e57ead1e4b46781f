"""The address of an array, as graphs hold it: opened where a task runs, and kept open for the tasks that follow."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..arrays import pickling
from ..arrays.array import Array
from ..arrays.view import AttrView
from ..base.printable import brief
from ..context.settings import Context
from ..errors import InputError, UnsupportedError

_OPEN_MAX = 8
"""Handles that a process keeps for the tasks to come."""


@dataclass(frozen=True, slots=True)
class Place:
    """An array at one version: where it lies, without a handle and without data. It pickles as its context does."""

    uri: str
    path: str
    version: int
    id: str
    context: Context

    def reader(self) -> Array:
        """The array at this version, read-only, whatever was committed since."""
        return _reader(self)

    def writer(self) -> Array:
        """The same array, for writing, wherever it lies now."""
        return _writer(self)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return pickling.token_of(self.uri, self.path, self.version, self.id, self.context)


def place_of(array: Array, what: str) -> Place:
    """The address of the array at the version that it shows.

    Raises:
        UnsupportedError: it is in a transaction, which other processes cannot see.
    """
    native = array.native
    if native.in_transaction:
        raise UnsupportedError(f"{what} takes an array outside of a transaction; open it with gridstone.open")
    return Place(array.uri, array.path, array.version, native.id, array.context)


def array_and_attr(given: Any, what: str, attr: str | None) -> tuple[Array, str]:
    """The array, and the attribute that is meant: the one of a view, the one that is named, or the only one.

    Raises:
        InputError: it is no array, there is no such attribute, or there are several to choose from.
    """
    array, name = given, attr
    if isinstance(given, AttrView):
        array, own = given.array, given.name
        if attr is not None and attr != own:
            raise InputError(f"{what}: attr={attr!r} and the view a[{own!r}] name two attributes; give one of them")
        name = own
    if not isinstance(array, Array):
        raise InputError(
            f"{what} takes an array that gridstone.open gives, or one attribute of it, found {brief(given)}"
        )
    names = array.schema_names
    if name is None and len(names) > 1:
        raise InputError(
            f"the array has the attributes {names}, a dask array holds one: say which, {what}(a, attr={names[0]!r}); "
            f"dask.array.stack joins several"
        )
    return array, array[names[0] if name is None else name].name


@lru_cache(_OPEN_MAX)
def _reader(place: Place) -> Array:
    native = pickling.same_native(place.context, place.uri, place.path, place.version, place.id)
    return Array(native, place.context, pinned=True)


@lru_cache(_OPEN_MAX)
def _writer(place: Place) -> Array:
    native, lags = pickling.reopened(place.context, place.uri, place.path, place.version, "r+", place.id)
    if lags:
        native = pickling.newest_of(native, place.context, True)
    return Array(native, place.context)
