"""The names of arrays in SQL: `'ais.gs'`, `'store.gs:/ships'`, `'ais.gs@3'`, `'store.gs:/ships@tag'`."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..arrays.array import Array
from ..base.naming import splits
from ..context.settings import Context
from ..errors import NotFoundError
from ..stores import store
from ..stores.group import Group

_STORE_LIKE = re.compile(r"\.gs(?:[@:/]|$)|^(?:s3|gs|az|mem|file)://")


class Place(NamedTuple):
    """An array's place."""

    uri: str
    path: str = "/"
    version: int | str | None = None


def readings(name: str) -> Iterator[Place]:
    """What a name can mean, the likeliest first: as it stands, with a path, with a version, with both."""
    yield Place(name)
    yield from (Place(*found) for found in splits(name))
    rest, at, version = name.rpartition("@")
    if at and rest and version:
        known = int(version) if version.isdigit() else version
        yield Place(rest, version=known)
        yield from (Place(*found, known) for found in splits(rest))


class Arrays:
    """Opens arrays by name, those of one store and version at one moment."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._versions: dict[tuple[str, int | str | None], int] = {}

    def opened(self, name: str) -> Array | None:
        """The array that a name means; None if no store is meant by it.

        Raises:
            NotFoundError: the store holds no such array or version; or the name is one of a store, and there is none.
        """
        error: NotFoundError | None = None
        for place in readings(name):
            if not store.exists(place.uri, context=self._context):
                continue
            try:
                return self._array(place)
            except NotFoundError as found:
                error = error or found
        if error is not None:
            said = str(error)
            raise error if name in said else NotFoundError(f"{name!r}: {said}") from error
        if _STORE_LIKE.search(name):
            raise NotFoundError(
                f"there is no array {name!r}: no store by that name, nor by what stands before '@' or ':/' in it; "
                f"names are relative to {os.getcwd()!r}"
            )
        return None

    def _array(self, place: Place) -> Array:
        key = (place.uri, place.version)
        if key not in self._versions:
            root = store.open(place.uri, version=place.version, context=self._context)
            self._versions[key] = root.version
        return store.open_array(place.uri, path=place.path, version=self._versions[key], context=self._context)


def arrays_of(uri: str, version: int | str | None, context: Context) -> dict[str, Array]:
    """The arrays of one version of a store by path; one at the root by the store's file name without `.gs`."""
    root = store.open(uri, version=version, context=context)
    at = root.version
    if isinstance(root, Array):
        name = re.split(r"[/\\]", uri.rstrip("/\\"))[-1].removesuffix(".gs")
        return {name or "array": store.open_array(uri, version=at, context=context)}
    assert isinstance(root, Group)
    pinned = store.open(uri, version=at, context=context)
    assert isinstance(pinned, Group)
    paths = [entry.path for entry in pinned.walk() if entry.kind == "array"]
    return {path.strip("/"): store.open_array(uri, path=path, version=at, context=context) for path in paths}
