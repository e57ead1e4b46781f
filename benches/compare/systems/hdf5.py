"""HDF5 through h5py: one chunked dataset in one file, Zstandard comes from hdf5plugin; and files as they lie."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from disk import sync, sync_tree
from files import FIELD, SLAB, Spectrum
from inputs import Array, Box, Columns, Shape
from systems.base import DenseHandle, DenseSystem, FileHandle, FileSystem


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


class Files(FileSystem):
    """A file as it lies, and NumPy; of many files a virtual dataset."""

    family, module = "h5py", "h5py"
    durability = "nothing is stored, but for the virtual dataset: flush and fsync of its file"
    settings = (
        "the file as it lies; chunk cache 24 MiB; means and spectra by NumPy, chunk by chunk of 1,048,576 particles or "
        "of 4 steps; a reused buffer by read_direct; many files: a virtual dataset; one thread, as HDF5 has"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import h5py

        _ = h5py.version

    def take(self, source: Path, folder: Path, names: Sequence[str], prepared: Any) -> "_Files":
        return self.open(source, folder, prepared)

    def open(self, source: Path, folder: Path, prepared: Any) -> "_Files":
        return _Files(source)

    def join(self, sources: Sequence[Path], folder: Path, prepared: Any) -> None:
        import h5py

        parts = []
        for source in sources:
            with h5py.File(source) as file:
                parts.append(h5py.VirtualSource(file[FIELD]))
        steps = [part.shape[0] for part in parts]
        layout = h5py.VirtualLayout((sum(steps), *parts[0].shape[1:]), parts[0].dtype)
        for end, part in zip(np.cumsum(steps), parts, strict=True):
            layout[end - part.shape[0] : end] = part
        folder.mkdir()
        with h5py.File(folder / "all.h5", "w", libver="latest") as file:
            file.create_virtual_dataset(FIELD, layout)
        sync_tree(folder)

    def open_series(self, folder: Path, prepared: Any) -> "_Files":
        return _Files(folder / "all.h5")

    def script(self, source: Path, folder: Path, box: tuple[slice, ...]) -> str:
        at = ", ".join(f"slice({one.start}, {one.stop})" for one in box)
        return f"import h5py; found = h5py.File('{source}')['{FIELD}'][{at}].mean(dtype='f8')"


class _Files(FileHandle):
    def __init__(self, path: Path) -> None:
        import h5py

        self.file = h5py.File(path, "r", rdcc_nbytes=24 << 20, rdcc_nslots=1009)

    def read(self, box: tuple[slice, ...]) -> Array:
        found: Array = self.file[FIELD][box]
        return found

    def read_into(self, box: tuple[slice, ...], out: Array) -> None:
        self.file[FIELD].read_direct(out, box)

    def mean(self, box: tuple[slice, ...]) -> float:
        """Four steps after four: what was decoded is added up while the processor's cache still holds it."""
        dataset, total, cells = self.file[FIELD], 0.0, 0
        for start in range(box[0].start, box[0].stop, 4):
            part = dataset[(slice(start, min(start + 4, box[0].stop)), *box[1:])]
            total += float(part.sum(dtype=np.float64))
            cells += part.size
        return total / cells

    def spectrum(self) -> Columns:
        found, energy, ux = Spectrum(), self.file["energy"], self.file["ux"]
        for start in range(0, len(energy), SLAB):
            part = slice(start, start + SLAB)
            found.add(energy[part], ux[part])
        return found.columns()

    def close(self) -> None:
        self.file.close()
