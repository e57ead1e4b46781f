"""Creates, opens, lists and deletes stores and what they hold."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _native
from ..arrays.array import Array
from ..arrays.view import AttrView
from ..base.arguments import checked, is_listed, several
from ..base.printable import brief
from ..base.progress import Progress
from ..column import datatype, encode, masked
from ..column.datatype import AnyArray
from ..column.stored import Stored
from ..context.settings import Context, default
from ..errors import InputError, NotFoundError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..schema.filters import Filters
from ..schema.labels import Labels
from ..schema.tile_shape import auto_tile, open_tile
from ..version import history
from .at_once import create_at_once
from .given import given_of, named
from .group import Group
from .modes import check_mode
from .nodes import Entry, entries
from .transaction import transaction

Uri = str | os.PathLike[str]

_ENTRIES_NAMED = 20


def _text(uri: Uri) -> str:
    return os.fspath(uri)


@checked()
def create(
    uri: Uri, schema: Schema, *, path: str = "/", overwrite: bool = False, context: Context | None = None
) -> Array:
    """Creates an array, and its store if there is none, and opens it for reading and writing.

    Args:
        uri: a path, `file://`, `mem://` (in this process's memory), or `s3://bucket/key`, `gs://bucket/key`,
            `az://container/key`.
        schema: what the array is.
        path: its place in the store; "/": the store holds this array alone.
        overwrite: replace an array that is there.
        context: budget, threads and durability; None: the process's default.

    Raises:
        ExistsError: there is something, and `overwrite` is False.

    Example:
        >>> schema = gs.Schema([gs.Dim("y", (0, 99)), gs.Dim("x", (0, 199))], [gs.Attr("t", "float32", nullable=True)])
        >>> a = gs.create("new.gs", schema)
        >>> a[10:20, :3] = 7
        >>> float(a[12, 1]), int(a[:, 0].count())
        (7.0, 10)
    """
    if not isinstance(schema, Schema):
        raise InputError(f"create() takes a gridstone.Schema, found {type(schema).__name__}")
    used = context or default()
    if any(dim._labels is not None for dim in schema.dims):
        return create_at_once(_text(uri), schema, path, overwrite, used, lambda made: None)
    return Array(_native.create_array(used.native, _text(uri), path, schema.to_json(), overwrite), used)


@checked()
def open(
    uri: Uri,
    mode: str = "r",
    *,
    path: str = "/",
    version: int | str | None = None,
    timestamp: Any = None,
    context: Context | None = None,
) -> Array | Group:
    """Opens an array or group: `gs.open("m.gs", "r+")`.

    Args:
        uri: a path, `file://`, `mem://`, `s3://`, `gs://` or `az://`.
        mode: "r", or "r+" to write. Arrays are made by `gridstone.create` and `gridstone.array`, groups by
            `gridstone.group`.
        path: the place in the store.
        version: read this version of the store, by its number or its tag (mode "r").
        timestamp: read the last version not after this time: a datetime (naive: UTC), `numpy.datetime64`, ISO text or
            microseconds since 1970 (mode "r").
        context: budget, threads and durability; None: the process's default.

    Raises:
        NotFoundError: no store, nothing at the path, or no such version.

    Example:
        >>> a = gs.open("sea.gs")
        >>> a.shape, a.version
        ((5, 10, 20), 4)
        >>> gs.open("sea.gs", version=a.version - 1).version
        3
    """
    check_mode("open", mode, ("r", "r+"))
    if version is not None and timestamp is not None:
        raise InputError("open() takes version= or timestamp=, not both")
    pinned = version is not None or timestamp is not None
    if mode == "r+" and pinned:
        raise InputError('a version is the past and cannot be written; open it with mode="r"')
    used = context or default()
    at = history.microseconds_of(timestamp)
    found = _native.open(used.native, _text(uri), path, mode == "r+", version, at)
    if isinstance(found, _native.Group):
        return Group(found, used, mode, pinned=pinned)
    return Array(found, used, pinned=pinned)


def open_array(uri: Uri, **options: Any) -> Array:
    """`open`, where only an array will do."""
    found = open(uri, **options)
    if isinstance(found, Group):
        # Place and arrays are to be of one moment.
        raise NotFoundError(f"{_text(uri)!r} holds a group at {found.native.path!r}, not an array; {_arrays_of(found)}")
    return found


def _arrays_of(group: Group) -> str:
    """What arrays there are instead."""
    looked = group.native.walk()
    names = [path for path, kind in looked[:_ENTRIES_NAMED] if kind == "array"]
    if len(looked) > _ENTRIES_NAMED:
        return f"some of its arrays: {names}; Group.walk() and `gridstone ls -r` list all"
    return f"its arrays: {names}" if names else "there is no array in it"


@checked(dims=several)
def array(
    uri: Uri,
    ndarray: Any,
    *,
    dims: Sequence[str] | None = None,
    coords: Any = None,
    name: str | None = None,
    tile: str | int | Sequence[int] | None = "auto",
    filters: Filters = "auto",
    path: str = "/",
    overwrite: bool = False,
    context: Context | None = None,
    progress: Progress = None,
) -> Array:
    """Creates a dense array that holds `ndarray`, with dimensions that count from 0. With labels or metadata all of it
    is one commit.

    Args:
        uri: the store.
        ndarray: any shape. One of shape () makes an array of no dimension; a side of length 0 is one that appends make
            longer. A masked array makes a nullable attribute, a structured one an attribute for each field. So does a
            handle of a stored array for each of its attributes; its nulls stay. A DataArray or Dataset of xarray keeps
            names, coordinates as labels, and `attrs` as metadata; a frame or series of pandas the names and labels of
            its index and columns.
        dims: the names of the dimensions; None: those that `ndarray` has, or d0, d1, …
        coords: labels by the name of a dimension (or one list of them for each): one label per position, or
            `(start, step)`.
        name: of the attribute; a structured array's are named as its fields. None: that of `ndarray`, or "value".
        tile: the shape of a space tile; "auto": 2 MiB, but at least 262,144 and at most 1,048,576 cells, made by
            halving the longest side of the array; one number: the same on every side; None: one tile.
        filters: of the attribute.
        path: the place in the store.
        overwrite: replace an array that is there.
        context: None: the process's default.
        progress: True for a bar, or a callable `f(done, total)`.

    Raises:
        InputError: a type that cannot be stored.

    Example:
        >>> a = gs.array("pixels.gs", np.arange(12).reshape(3, 4), dims=("y", "x"), coords={"x": [10, 20, 30, 40]})
        >>> a[1:, ::3].tolist(), int(a.sel(y=2, x=30)["value"])
        ([[4, 7], [8, 11]], 10)
    """
    given = given_of(ndarray)
    attrs, values, shape = _attributes_of(given.values, name or given.name or "value", filters)
    names, labels = named(given, shape, dims, coords)
    schema = _counted(shape, tile, attrs, names, labels)
    used = context or default()
    if not (labels or given.meta or given.fields):
        made = create(uri, schema, path=path, overwrite=overwrite, context=used)
        if 0 not in shape:
            made.write(values, progress=progress)
        return made

    def fill(made: Array) -> None:
        if 0 not in shape:
            made.write(values, progress=progress)
        made.meta.update(given.meta)
        for field, meta in given.fields.items():
            (made.dim(field) if field in names else made[field]).meta.update(meta)

    return create_at_once(_text(uri), schema, path, overwrite, used, fill)


def _attributes_of(given: Any, name: str, filters: Filters) -> tuple[list[Attr], Any, tuple[int, ...]]:
    """The attributes that values make, of which a single one is called `name`; the values as they are written; and the
    shape of their cells."""
    if isinstance(given, Mapping):
        made = {field: _attributes_of(values, field, filters) for field, values in given.items()}
        shape = next(iter(made.values()))[2]
        return (
            [attr for attrs, *_ in made.values() for attr in attrs],
            {n: part[1][n] for n, part in made.items()},
            shape,
        )
    if isinstance(given, Array | AttrView) and not given.sparse:
        fields = _fields_of(given, name)
        if not any(datatype.shape_of(attr.dtype) for attr in fields.values()):
            kept = [Attr(n, attr.dtype, nullable=attr.nullable, filters=filters) for n, attr in fields.items()]
            return kept, given, given.shape
    if isinstance(given, Stored):
        given = encode.of_handle(given)
    elif isinstance(given, list | tuple):
        given = masked.of_list(given)
    values: AnyArray = np.asanyarray(given)
    parts = {field: values[field] for field in values.dtype.names} if values.dtype.names else {name: values}
    kinds = {
        field: _kind_of(values.dtype[field] if values.dtype.names else values.dtype, part)
        for field, part in parts.items()
    }
    nullable = isinstance(values, np.ma.MaskedArray)
    attrs = [Attr(field, kind, nullable=nullable, filters=filters) for field, kind in kinds.items()]
    return attrs, parts, values.shape


def _fields_of(handle: Array | AttrView, name: str) -> dict[str, Attr]:
    """The attributes of a handle by the names of those that they make; a single one is called `name`."""
    if isinstance(handle, AttrView):
        return {name: handle.array._schema.attr(handle.name)}
    attrs = handle._schema.attrs
    return {name: attrs[0]} if len(attrs) == 1 else {attr.name: attr for attr in attrs}


def _counted(
    shape: tuple[int, ...],
    tile: str | int | Sequence[int] | None,
    attrs: Sequence[Attr],
    names: Sequence[str],
    labels: Mapping[str, Labels],
) -> Schema:
    """The schema of a dense array with dimensions that count from 0."""
    extents = _extents(shape, tile, max(datatype.cell_bytes(attr.dtype) for attr in attrs))
    sides = zip(names, shape, extents, strict=True)
    return Schema([Dim(name, (0, n - 1), t, labels=labels.get(name)) for name, n, t in sides], list(attrs))


def _kind_of(dtype: np.dtype[Any], values: AnyArray) -> str:
    """The datatype for an array; for objects that of the first: str, bytes, or what makes a list."""
    if dtype.kind != "O":
        return datatype.parse(dtype)
    first = next((value for value in np.ma.getdata(values).flat if value is not None), "")
    if isinstance(first, list | tuple | np.ndarray):
        return datatype.list_of(datatype.parse(np.asarray(first).dtype))
    return "bytes" if isinstance(first, bytes) else "string"


def _extents(shape: tuple[int, ...], tile: str | int | Sequence[int] | None, width: int) -> Sequence[int | None]:
    if isinstance(tile, str) and tile == "auto":
        known = [n for n in shape if n]
        if len(known) == len(shape):
            return auto_tile(shape, width)
        extents_of_0 = open_tile(known, shape.count(0), width)
        return [n or extents_of_0 for n in shape]
    if tile is None:
        return [None] * len(shape)
    extents: Any = [tile] * len(shape) if isinstance(tile, int | np.integer) else tile
    if (
        not is_listed(extents)
        or len(extents) != len(shape)
        or not all(isinstance(t, int | np.integer) for t in extents)
    ):
        raise InputError(
            f'tile is "auto", a number, None, or one extent for each of {len(shape)} sides, not {brief(tile)}'
        )
    return [min(int(t), n or int(t)) for t, n in zip(extents, shape, strict=True)]


@checked()
def exists(uri: Uri, path: str = "/", *, context: Context | None = None) -> bool:
    """Whether there is a store, and an array or group at `path` in it: `gs.exists("m.gs", "/ships")`."""
    used = context or default()
    if not path.strip("/") or not _native.exists(used.native, _text(uri)):
        return _native.exists(used.native, _text(uri))
    try:
        _native.open(used.native, _text(uri), path, False, None, None)
    except NotFoundError:
        return False
    return True


@checked()
def delete(uri: Uri, *, path: str | None = None, message: str | None = None, context: Context | None = None) -> None:
    """Deletes a store and everything in it, for good; or what lies at `path` in it, with everything below, from its
    newest version on: earlier versions keep it until a vacuum forgets them.

    Args:
        uri: a store that exists.
        path: an array or a group, not the root; None: the whole store.
        message: kept with the version that is without what lay at `path`.
        context: None: the process's default.

    Raises:
        NotFoundError: there is no store, or nothing at `path`.
        ConflictError: another commit moved or removed it meanwhile.

    Example:
        >>> gs.delete("store.gs", path="/ships")
        >>> list(gs.group("store.gs"))
        ['north']
        >>> gs.delete("store.gs")
        >>> gs.exists("store.gs")
        False
    """
    if path is not None:
        removed(uri, path, message, context)
        return
    if message is not None:
        raise InputError("a store that is deleted keeps no message; give path= to delete an array or a group")
    _native.delete_store((context or default()).native, _text(uri))


def removed(uri: Uri, path: str, message: str | None, context: Context | None) -> int:
    """The version that is without what lay at `path`."""
    if not path.strip("/"):
        raise InputError("the root of a store cannot be removed; delete the store as a whole: gs.delete(uri)")
    with transaction(uri, message, context=context) as removal:
        removal.remove(path)
    version = removal.version
    assert version is not None
    return version


@checked()
def ls(uri: Uri, *, path: str = "/", context: Context | None = None) -> list[Entry]:
    """What a store holds in the group at `path`: (name, path, kind). An array at the path is listed itself.

    Example:
        >>> [(entry.path, entry.kind) for entry in gs.ls("store.gs")]
        [('/north', 'group'), ('/ships', 'array')]
        >>> gs.ls("store.gs", path="/north")
        [Entry(name='buoys', path='/north/buoys', kind='array')]
    """
    found = open(uri, path=path, context=context)
    if isinstance(found, Array):
        return [Entry(found.path.rpartition("/")[2] or "/", found.path, "array")]
    return entries(found.native)


@checked()
def group(uri: Uri, mode: str = "r", *, path: str = "/", context: Context | None = None) -> Group:
    """Opens the group at `path`, or creates it: `gs.group("seas.gs", path="/north", mode="a")`.

    Args:
        uri: the store.
        mode: "r" to read; "r+" to write; "a" to write, and to create the group, those above it and the store if they
            are missing.
        path: its place in the store; "/" is the root.
        context: budget, threads and durability; None: the process's default.

    Raises:
        NotFoundError: no store, or nothing at the path (modes "r" and "r+").
        InputError: there is an array at the path.

    Example:
        >>> root = gs.group("new.gs", mode="a")
        >>> a = root.group("north").create("air", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("t", "float32")]))
        >>> a.path, list(root), root["north/air"].shape
        ('/north/air', ['north'], (10,))
    """
    check_mode("group", mode, ("r", "r+", "a"))
    used = context or default()
    try:
        found = open(uri, path=path, mode="r" if mode == "r" else "r+", context=used)
    except NotFoundError as error:
        if mode == "a":
            return Group(_native.create_group(used.native, _text(uri), path), used, "r+")
        hint = 'gridstone.group(..., mode="a") creates the group, and its store if there is none'
        raise NotFoundError(f"{error}; {hint}") from None
    if isinstance(found, Array):
        raise InputError(f"{_text(uri)!r} holds an array at {path!r}, not a group")
    return found
