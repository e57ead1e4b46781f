"""Variables of Dask: blocks that are written as they are computed."""

import contextlib
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.extras import needed
from ..context.settings import Context
from ..dask.once import commit_once, version_of
from ..dask.place import Place, place_of
from ..errors import ConflictError, NotFoundError
from ..stores.transaction import Transaction
from ..version.receipt import Receipt
from .asked import Asked
from .boxes import box_of
from .form import Form, prepared
from .plan import Planned

_BATCH_BYTES = 256 << 20
"""What is fetched at once of blocks that other processes compute."""


@dataclass(frozen=True)
class Block:
    """A variable of Dask, and the place in its array that it is written to."""

    path: str
    planned: Planned
    starts: tuple[int, ...]


class _Target:
    """Where blocks go, as `dask.array.store` writes to it: an array, from some positions on."""

    def __init__(self, array: Array, form: Form, starts: Sequence[int]) -> None:
        self._array, self._form, self._starts = array, form, tuple(starts)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.write(key, value)

    def write(self, key: Any, value: Any, **options: Any) -> Any:
        """Writes a block at a key of slices."""
        name = self._array.schema_names[0]
        made = prepared(self._form, value, name)
        if not self._array.ndim:
            return self._array.write({name: made}, **options)
        starts = [low + cut.start for low, cut in zip(self._starts, key, strict=True)]
        return self._array.write({name: made}, box_of(self._array, starts, np.shape(made)), **options)


def store_in(tx: Transaction, later: Sequence[Block]) -> None:
    """Computes the blocks and writes each to the transaction, so that one block per thread is in memory."""
    dask: Any = needed("dask", "dask", "a variable of Dask")
    store: Any = needed("dask.array", "dask", "a variable of Dask").store
    sources = [one.planned.variable.data for one in later]
    targets = [_Target(tx[one.path], one.planned.form, one.starts) for one in later]
    kept = [place for place, one in enumerate(later) if 0 not in one.planned.shape]
    if _is_local():
        store([sources[at] for at in kept], [targets[at] for at in kept], lock=False, compute=True)
        return
    for at in kept:
        for batch in _batches(sources[at]):
            for key, values in zip(batch, dask.compute(*[sources[at][key] for key in batch]), strict=True):
                targets[at][key] = values


def _is_local() -> bool:
    """Whether graphs are computed in this process, whose transaction no other one has."""
    base, threaded, local = (import_module(f"dask.{part}") for part in ("base", "threaded", "local"))
    return base.get_scheduler() in (None, threaded.get, local.get_sync)


def _keys(source: Any) -> list[tuple[slice, ...]]:
    """The place of each block."""
    cut: Any = import_module("dask.array.core")
    return list(cut.slices_from_chunks(source.chunks))


def _batches(source: Any) -> Any:
    """The places of blocks, some at a time."""
    batch: list[tuple[slice, ...]] = []
    size = 0
    for key in _keys(source):
        batch.append(key)
        size += source.dtype.itemsize * int(np.prod([cut.stop - cut.start for cut in key], dtype=np.int64))
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def receipts_of(arrays: Mapping[str, Array], later: Sequence[Block]) -> list[Any]:
    """A task for each block that writes it without a commit and gives the receipt. `arrays` are those that the blocks
    go to, by path."""
    task = needed("dask", "dask", "blocks").delayed(_written, pure=False)
    made = []
    for one in later:
        if 0 in one.planned.shape:
            continue
        place = place_of(arrays[one.path], "a block")
        parts = one.planned.variable.data.to_delayed().ravel()
        for part, key in zip(parts, _keys(one.planned.variable.data), strict=True):
            starts = tuple(low + cut.start for low, cut in zip(one.starts, key, strict=True))
            made.append(task(place, one.planned.form, starts, part))
    return made


def _written(place: Place, form: Form, starts: tuple[int, ...], values: Any) -> Receipt:
    """Writes a block in whatever process this is.

    Raises:
        NotFoundError: the array of the graph is gone, and perhaps another one lies at its place.
    """
    array = place.writer()
    if array.native.id != place.id:
        raise _gone(place)
    key = tuple(slice(0, size) for size in np.shape(values))
    found = _Target(array, form, starts).write(key, values, commit=False)
    assert isinstance(found, Receipt)
    return found


def _gone(place: Place) -> NotFoundError:
    return NotFoundError(
        f"{place.path!r} of {place.uri!r} is not the array of version {place.version} that this graph writes to: it "
        f"was removed or replaced; call to_gridstone again"
    )


@dataclass(frozen=True)
class Seen:
    """Coordinates that a region was found by."""

    place: Place | None
    """None in a transaction, which sees by itself that they change."""
    cut: tuple[slice, ...]
    values: Any
    """As they lie in the array."""

    def check(self) -> None:
        """A `ConflictError` unless they lie there still."""
        from ..stores.store import open_array

        assert self.place is not None
        with contextlib.suppress(NotFoundError, IndexError):
            array = open_array(self.place.uri, path=self.place.path, context=self.place.context)
            if array.native.id == self.place.id and is_same(array[array.schema_names[0]][self.cut], self.values):
                return
        raise ConflictError(
            f"the coordinates in {self.place.path!r} were changed by another commit after version "
            f"{self.place.version}, where the region was found by them; nothing was committed, call to_gridstone again"
        )


def is_same(one: Any, other: Any) -> bool:
    """Whether two blocks hold the same values, missing ones included."""
    from xarray import Variable

    hidden = (np.ma.getmaskarray(one), np.ma.getmaskarray(other))
    dims = tuple(f"d{axis}" for axis in range(np.ndim(other)))
    held: list[Any] = [Variable(dims, np.ma.getdata(values)) for values in (one, other)]
    return np.array_equal(*hidden) and bool(held[0].equals(held[1]))


def delayed(asked: Asked, later: Sequence[Block], version: int) -> Any:
    """What writes all blocks when it is computed, on any scheduler, and commits them in one version."""
    if not later:
        return needed("dask", "dask", "compute=False").delayed(version)
    from ..stores.store import open_array

    # The arrays of that version: another one that is made at the place later is none of the graph's.
    paths = {one.path for one in later}
    arrays = {path: open_array(asked.uri, path=path, version=version, context=asked.context) for path in paths}
    return ending(asked, receipts_of(arrays, later), ())


def ending(asked: Asked, receipts: Sequence[Any], seen: Sequence[Seen]) -> Any:
    """The task that commits receipts."""
    dask = needed("dask", "dask", "a variable of Dask")
    task = dask.delayed(committed, pure=False)
    return task(os.fspath(asked.uri), list(receipts), asked.message, asked.context, uuid.uuid4().hex, list(seen))


def committed(
    uri: str, receipts: Sequence[Receipt], message: str | None, context: Context, key: str, seen: Sequence[Seen]
) -> int:
    """The version that has what was written. A graph commits once: where it is computed again, or a worker died after
    the commit with the results of its blocks, it gives that version."""
    try:
        # A commit of receipts reads nothing, so that coordinates that change between these two lines go unseen.
        for one in seen:
            one.check()
    except ConflictError:
        known = version_of(uri, context, key)
        if known is None:
            raise
        return known
    return commit_once(uri, receipts, message, context, key)
