"""Variables of Dask: blocks that are written as they are computed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.extras import needed
from ..context.settings import Context
from ..stores.transaction import Transaction, commit
from ..version.receipt import Receipt
from .asked import Asked, touched
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
        made = prepared(self._form, value)
        name = self._array.schema_names[0]
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


def receipts_of(asked: Asked, later: Sequence[Block]) -> list[Any]:
    """A task for each block that writes it without a commit and gives the receipt."""
    task = needed("dask", "dask", "blocks").delayed(_written, pure=False)
    made = []
    for one in later:
        if 0 in one.planned.shape:
            continue
        place = (os.fspath(asked.uri), one.path, asked.context, one.planned.form)
        parts = one.planned.variable.data.to_delayed().ravel()
        for part, key in zip(parts, _keys(one.planned.variable.data), strict=True):
            starts = tuple(low + cut.start for low, cut in zip(one.starts, key, strict=True))
            made.append(task(place, starts, part))
    return made


def _written(place: tuple[str, str, Context, Form], starts: tuple[int, ...], values: Any) -> Receipt:
    """Writes a block in whatever process this is."""
    from ..stores.store import open_array

    uri, path, context, form = place
    array = open_array(uri, mode="r+", path=path, context=context)
    key = tuple(slice(0, size) for size in np.shape(values))
    found = _Target(array, form, starts).write(key, values, commit=False)
    assert isinstance(found, Receipt)
    return found


def delayed(asked: Asked, later: Sequence[Block], version: int) -> Any:
    """What writes all blocks when it is computed, on any scheduler, and commits them in one version."""
    dask = needed("dask", "dask", "compute=False")
    if not later:
        return dask.delayed(version)
    task = dask.delayed(committed, pure=False)
    return task(os.fspath(asked.uri), receipts_of(asked, later), asked.message, asked.context)


def committed(uri: str, receipts: Sequence[Receipt], message: str | None, context: Context) -> int:
    """The version that has what was written."""
    version = commit(uri, list(receipts), message, context)
    touched(uri)
    return version
