"""What a store takes."""

import os
from typing import Any

from .. import _native
from ..arrays.array import Array
from ..base.arguments import checked
from ..context.settings import Context, default
from ..maintain import retention
from ..maintain.usage import Usage, attached_paths, usage_of
from . import store


@checked()
def du(
    uri: str | os.PathLike[str],
    *,
    keep: retention.Duration | None = None,
    versions: int | None = None,
    safety_age: retention.Duration = "1d",
    context: Context | None = None,
) -> Usage:
    """What a store takes, in bytes by array and by what they are for, and what a vacuum would free.

    Objects are listed, and the log and the manifest are read; data is not. Nothing is deleted.

    Args:
        uri: the store.
        keep: the age of the vacuum that `reclaimable` tells of, as in `Array.vacuum`; "1h" if nothing is said.
        versions: the number of versions that it keeps, instead of an age.
        safety_age: its safety age.
        context: None: the process's default.

    Returns:
        A `Usage`: bytes per array, and of the newest version, older versions, orphans, manifest, log, and all.

    Raises:
        NotFoundError: there is no store.
        CorruptionError: the log or the manifest cannot be read.

    Example:
        >>> used = gs.du("sea.gs")
        >>> [array.path for array in used.arrays], used.live.bytes < used.total.bytes
        (['/'], True)
    """
    used, place = context or default(), os.fspath(uri)
    taken, freed = _native.store_usage(used.native, place, *retention.asked(keep, versions, safety_age))
    return usage_of(place, taken, freed, {path: _attached(place, path, used) for path in attached_paths(taken)})


def _attached(uri: str, path: str, context: Context) -> tuple[int, int]:
    """How many files outside of the store an array reads, and their bytes, as they were when they were attached."""
    found: Any = store.open(uri, path=path, context=context)
    if not isinstance(found, Array):
        return 0, 0
    sizes = found.sources.column("size").to_pylist()
    return len(sizes), sum(size or 0 for size in sizes)
