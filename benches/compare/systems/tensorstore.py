"""TensorStore with its zarr3 driver: a file per chunk."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from disk import sync_tree
from inputs import Array, Box, Shape
from systems.base import DenseHandle, DenseSystem

_CODECS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "zstd:3": [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
    "shuffle + zstd:3": [
        {
            "name": "blosc",
            "configuration": {"cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
        }
    ],
    "gzip:6": [{"name": "gzip", "configuration": {"level": 6}}],
}


class Dense(DenseSystem):
    """A zarr3 array."""

    family, module = "tensorstore", "tensorstore"
    durability = (
        "TensorStore fsyncs the files it writes (its default); directories are fsynced after it; chunks are "
        "replaced one by one, not atomic"
    )
    settings = (
        "zarr3 driver, chunks as the tiles, no shards; data_copy_concurrency and file_io_concurrency: the threads; no "
        "cache_pool (its default); points by vindex; a reused buffer by tensorstore.array(buffer).write(array); where "
        "a row has one thread, the process keeps to one core: copying and file I/O have threads each, even at limit 1"
    )

    def confine(self, part: int) -> None:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[part % len(cores)]})

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import tensorstore as ts

        _ = ts.Context

    def _opened(self, folder: Path, **options: Any) -> Any:
        import tensorstore as ts

        limits = {f"{kind}_concurrency": {"limit": self.threads} for kind in ("data_copy", "file_io")}
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}/"}, **options.pop("spec", {})}
        return ts.open(spec, context=ts.Context(limits), **options).result()

    def create(self, folder: Path, shape: Shape, tile: Shape) -> None:
        metadata = {
            "shape": list(shape),
            "data_type": "int32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(tile)}},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, *_CODECS[self.variant]],
            "fill_value": 0,
        }
        self._opened(folder, spec={"metadata": metadata}, create=True)

    def write(self, folder: Path, box: Box, values: Array) -> None:
        self._opened(folder, open=True)[box].write(values).result()

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        return _Dense(folder, self._opened(folder, open=True, write=writable, read=True), durable)


class _Dense(DenseHandle):
    def __init__(self, folder: Path, array: Any, durable: bool) -> None:
        self.folder, self.array, self.durable = folder, array, durable

    def read(self, box: Box) -> Array:
        found: Array = self.array[box].read().result()
        return found

    def read_into(self, box: Box, out: Array) -> None:
        import tensorstore as ts

        ts.array(out).write(self.array[box].translate_to[0, 0]).result()

    def points(self, rows: Array, cols: Array) -> Array:
        return np.asarray(self.array.vindex[rows, cols].read().result())

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.array.vindex[rows, cols].write(values).result()
        if self.durable:
            sync_tree(self.folder)
