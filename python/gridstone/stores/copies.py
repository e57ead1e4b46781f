"""Copies arrays, groups and whole stores to another place, and moves them within their store."""

import json
import os
from collections.abc import Mapping
from typing import Any

from .. import _native
from ..arrays.array import Array
from ..base.arguments import checked, mapping, place
from ..base.progress import Progress, reporting
from ..context.settings import Context, default
from ..errors import InputError, UnsupportedError
from ..maintain.retention import Duration, microseconds
from . import store
from .group import Group

# How old objects of a copy are that nothing names and that go: those of copies that were cut short.
_SAFETY_US = 86_400_000_000


def _source(what: str, value: Any) -> None:
    """A store, or an array or group that is open."""
    if not isinstance(value, Array | Group):
        place(what, value)


@checked(source=_source, target=place, types=mapping, max_bytes=mapping)
def copy(
    source: "str | os.PathLike[str] | Array | Group",
    target: str | os.PathLike[str],
    *,
    path: str = "/",
    target_path: str = "/",
    version: int | str | None = None,
    history: bool = False,
    overwrite: bool = False,
    keep: Duration | None = None,
    types: Mapping[str, Any] | None = None,
    max_bytes: Mapping[str, int] | None = None,
    context: Context | None = None,
    target_context: Context | None = None,
    progress: Progress = None,
) -> "Array | Group":
    """Copies an array, a group with all below it, or a whole store to another place, of any kind and under any key.

    One version is copied, in one commit of the target: cells, deletes, schemas and metadata. Fragments are copied as
    they are stored, without being decoded. Writers to the source go on meanwhile. A copy that is cut short leaves
    nothing that can be seen.

    Args:
        source: the store that is read; or an array or group, which is copied at the version that it shows.
        target: the store that is written to; it is created if there is none.
        path: what is copied; "/": all that the store holds.
        target_path: where it is put.
        version: copy this version of the source, by its number or its tag; None: the newest.
        history: copy all versions that the source keeps, up to that one, with their times, messages and tags, so that
            each opens under the number that it has. For whole stores, to where there is none, or onto an earlier copy
            of the same store, which gets what it lacks: new versions, and the files that they need. What the copy has
            of versions that the source has forgotten stays. A copy that was committed to is not touched.
        overwrite: replace what lies at `target_path` (its history stays).
        keep: with `history`, an age such as "30d": versions of the copy that were its newest at some moment of this
            time stay, and tagged ones; older ones are forgotten, and what only they needed is deleted. Ages count
            from when a version arrived in the copy. None: nothing is forgotten.
        types: wider types by name of dimension or attribute of one array: `{"sog": "float64"}`. Its cells are read and
            written anew, each value checked: integers and floats become wider ones, times finer ones, any of them text.
        max_bytes: the bytes of the longest text by name of dimension of one array, `{"gene": 64}`; likewise.
        context: reaches and opens the source; None: the process's default.
        target_context: reaches and seals the target; None: as `context`.
        progress: True for a bar, or a callable `f(done, total)`: bytes; with `history` objects.

    Returns:
        The copy, opened for reading and writing. `stats` of it says what was copied: "versions_copied",
        "objects_copied" (of a history), "fragments_copied", "bytes_copied".

    Raises:
        NotFoundError: no store, no such version, nothing at the path.
        ExistsError: something lies at `target_path`, or, with `history`, there is another store.
        ConflictError: with `history`, the copy there has commits of its own, or the source lost some that it has.
        InputError: a place within itself, or a part of a store with its history; `path` or `version` beside an array or
            a group, which have their own; a type that does not hold a value.
        SnapshotExpiredError: a vacuum of the source forgot the version while it was copied, or versions that an
            earlier copy lacks.
        CorruptionError: what is copied is damaged.

    Example:
        >>> gs.copy("sea.gs", "backup.gs", history=True, keep="30d").stats["versions_copied"]
        4
    """
    if not isinstance(source, str | os.PathLike):
        context = context or source._context
        source, path, version = _place_of(source, path, version)
    used = context or default()
    aimed = target_context or used
    if keep is not None and not history:
        raise InputError("keep= says how long a copy with its history keeps versions; give history=True with it")
    age = None if keep is None else microseconds(keep, "keep")
    if types or max_bytes:
        from .recast import recast

        if history:
            raise InputError("types= and max_bytes= write one version anew; leave history= out")
        one = store.open_array(source, path=path, version=version, context=used)
        return recast(
            one,
            target,
            target_path,
            types or {},
            max_bytes or {},
            overwrite=overwrite,
            context=aimed,
            progress=progress,
        )
    if history and _is_one_place(os.fspath(source), os.fspath(target)):
        raise InputError(f"{os.fspath(source)!r} cannot be copied onto itself; give another target")
    with reporting(progress, "copying", "objects" if history else "bytes") as report:
        done = _native.copy(
            used.native,
            os.fspath(source),
            path,
            version,
            aimed.native,
            os.fspath(target),
            target_path,
            history,
            overwrite,
            report,
        )
    if age is not None:
        _native.forget_copied(aimed.native, os.fspath(target), age, None, _SAFETY_US, None)
    made = store.open(target, path=target_path, mode="r+", context=aimed)
    made._noted_stats(_counted(json.loads(done), history))
    return made


def _is_one_place(source: str, target: str) -> bool:
    """Whether two names are of one folder: links and `..` may lead there by another way."""
    places = [name.removeprefix("file://") for name in (source, target)]
    try:
        return os.path.samefile(*places)
    except OSError:
        return False


def _counted(done: dict[str, int], history: bool) -> dict[str, int]:
    """What a copy counted, as `stats` tells it."""
    names = ("versions", "objects", "bytes") if history else ("fragments", "bytes")
    return {f"{name}_copied": done[name] for name in names}


def _place_of(source: "Array | Group", path: str, version: int | str | None) -> tuple[str, str, int]:
    """The store, path and version of what is open."""
    if path != "/" or version is not None:
        raise InputError("an array or group has its own path and version; leave path= and version= out, or give a uri")
    if isinstance(source, Array) and source.native.in_transaction:
        raise UnsupportedError("an array of a transaction cannot be copied before that commits; open it outside of it")
    # A group follows its store: place and version are to be of one moment.
    pinned = source if isinstance(source, Array) else source._pinned()
    return pinned.uri, pinned.path, pinned.version


@checked()
def move(
    uri: str | os.PathLike[str],
    path: str,
    target_path: str,
    *,
    message: str | None = None,
    context: Context | None = None,
) -> int:
    """Moves an array, or a group with all below it, to another path of its store, in one commit.

    It stays what it is: open arrays, receipts and transactions go on meaning it, and older versions have it at the
    path where it was. Groups above `target_path` that are missing are created. Nothing is written anew.

    Args:
        uri: the store.
        path: where it is; not "/".
        target_path: where it is put; nothing lies there.
        message: kept with the version.
        context: budget, threads and durability; None: the process's default.

    Returns:
        The version committed.

    Raises:
        NotFoundError: nothing at `path`.
        ExistsError: something at `target_path`, or an array above it.
        InputError: the root, or a group into itself.
        ConflictError: another commit moved or removed it meanwhile.

    Example:
        >>> version = gs.move("store.gs", "/ships", "/south/ships")
        >>> [entry.path for entry in gs.group("store.gs").walk()]
        ['/north', '/north/buoys', '/south', '/south/ships']
    """
    return _native.move_node((context or default()).native, os.fspath(uri), path, target_path, message)


@checked()
def upgrade(uri: str | os.PathLike[str], *, context: Context | None = None) -> int:
    """Makes a store of an older format one of the format that this release writes.

    Stores of older formats are read as they are; writing to one raises UnsupportedError until it is upgraded. An
    upgrade is one commit without changes. No cell is written anew, and older versions stay readable. Releases
    that know the older format only cannot open the store afterwards. A store that has the format stays as it is.

    Args:
        uri: the store.
        context: budget, threads and durability; None: the process's default.

    Returns:
        The newest version.

    Raises:
        NotFoundError: there is no store.
        UnsupportedError: a newer release wrote it.

    Example:
        >>> gs.upgrade("old.gs")
        71
    """
    return _native.upgrade((context or default()).native, os.fspath(uri))
