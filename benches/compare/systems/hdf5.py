"""HDF5 through h5py: one chunked dataset in one file. Zstandard comes from hdf5plugin."""

from pathlib import Path
from typing import Any

import numpy as np

from disk import sync
from inputs import Array, Box, Shape
from systems.base import DenseHandle, DenseSystem


class Dense(DenseSystem):
    """A chunked dataset."""

    family, module = "h5py", "h5py"
    durability = (
        "flush and fsync of the file (and of its directory after a load); in place and not crash-safe; "
        '"close": flushed, not fsynced'
    )
    settings = (
        "chunks as the tiles; libver latest; chunk cache: HDF5's default where uncompressed (it then reads parts of a "
        "chunk in place), 24 MiB where compressed (a chunk fits, and is decoded once per call); points by "
        "select_elements of the low-level API; a reused buffer by read_direct; one thread, as HDF5 has"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import h5py

        _ = h5py.version
        if "zstd" in self.variant:
            import hdf5plugin  # registers its filters

            _ = hdf5plugin.FILTERS

    def create(self, folder: Path, shape: Shape, tile: Shape) -> None:
        self._make(folder, tile, shape=shape, dtype=np.int32)

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        self._make(folder, tile, data=values)
        self.finish(folder)

    def _make(self, folder: Path, tile: Shape, **what: Any) -> None:
        import h5py

        folder.mkdir()
        with h5py.File(folder / "a.h5", "w", libver="latest") as file:
            file.create_dataset("value", chunks=tile, **self._options(), **what)

    def _options(self) -> dict[str, Any]:
        if self.variant == "none":
            return {}
        if self.variant == "gzip:6":
            return {"compression": "gzip", "compression_opts": 6}
        import hdf5plugin

        return {"compression": hdf5plugin.Zstd(clevel=3), "shuffle": self.variant.startswith("shuffle")}

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        cache = {} if self.variant == "none" else {"rdcc_nbytes": 24 << 20, "rdcc_nslots": 1009}
        return _Dense(folder / "a.h5", "r+" if writable else "r", durable, cache)


class _Dense(DenseHandle):
    def __init__(self, path: Path, mode: str, durable: bool, cache: dict[str, Any]) -> None:
        import h5py

        self.path, self.durable = path, durable
        self.file = h5py.File(path, mode, **cache)
        self.dataset = self.file["value"]

    def read(self, box: Box) -> Array:
        found: Array = self.dataset[box]
        return found

    def read_into(self, box: Box, out: Array) -> None:
        self.dataset.read_direct(out, box)

    def points(self, rows: Array, cols: Array) -> Array:
        space, memory = self._selected(rows, cols)
        found = np.empty(len(rows), np.int32)
        self.dataset.id.read(memory, space, found)
        return found

    def _selected(self, rows: Array, cols: Array) -> tuple[Any, Any]:
        import h5py

        space = self.dataset.id.get_space()
        space.select_elements(np.stack([rows, cols], axis=1))
        return space, h5py.h5s.create_simple((len(rows),))

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        """One call for all cells: HDF5 then visits each chunk once."""
        space, memory = self._selected(rows, cols)
        self.dataset.id.write(memory, space, values)
        self.file.flush()
        if self.durable:
            sync(self.path)

    def close(self) -> None:
        self.file.close()
