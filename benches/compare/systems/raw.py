"""What the machine can do: flat files in row order, without tiles, checksums and versions; and memory alone."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from inputs import Array, Box, Columns, Shape
from systems.base import CellsSystem, DenseHandle, DenseSystem


class Dense(DenseSystem):
    """A flat file, mapped to read and to change, read whole by readinto."""

    family, role, module = "raw file", "limit", "numpy"
    durability = "fsync of the file (and of its directory after a load); in place, not crash-safe"
    settings = "numpy.memmap; whole, into a reused buffer: readinto"

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        folder.mkdir()
        values.tofile(folder / f"{values.shape[0]}x{values.shape[1]}.raw")
        self.finish(folder)

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        return _Dense(next(folder.iterdir()), "r+" if writable else "r")


class _Dense(DenseHandle):
    def __init__(self, path: Path, mode: Any) -> None:
        self.path = path
        rows, cols = map(int, path.stem.split("x"))
        self.values: Any = np.memmap(path, np.int32, mode, shape=(rows, cols))

    def read(self, box: Box) -> Array:
        return np.array(self.values[box])

    def read_into(self, box: Box, out: Array) -> None:
        if out.shape != self.values.shape:
            out[...] = self.values[box]
            return
        with self.path.open("rb", buffering=0) as file:
            view, done = memoryview(out).cast("B"), 0
            while done < len(view):  # one call reads at most 2 GiB
                done += file.readinto(view[done:])

    def points(self, rows: Array, cols: Array) -> Array:
        return np.asarray(self.values[rows, cols])

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.values[rows, cols] = values
        self.values.flush()
        handle = os.open(self.path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)

    def close(self) -> None:
        self.values = None


class Memory(DenseSystem):
    """An array in memory: what copying alone takes."""

    family, role, module = "memcpy", "limit", "numpy"
    durability = "nothing is stored"
    settings = "numpy.copyto"

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        folder.mkdir()
        np.save(folder / "a.npy", values)

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Memory":
        return _Memory(np.load(folder / "a.npy"))


class _Memory(DenseHandle):
    def __init__(self, values: Array) -> None:
        self.values = values

    def read(self, box: Box) -> Array:
        return self.values[box].copy()

    def read_into(self, box: Box, out: Array) -> None:
        np.copyto(out, self.values[box])


class Cells(CellsSystem):
    """The columns one after the other in flat files, unsorted: what the machine can write."""

    family, role, module = "raw columns", "limit", "numpy"
    durability = "fsync of every file and of the directory"
    settings = "one file per column and batch, unsorted"

    def load(self, folder: Path, batches: list[Columns]) -> None:
        folder.mkdir()
        for i, batch in enumerate(batches):
            for name, column in batch.items():
                column.tofile(folder / f"{i}.{name}")
        self.finish(folder)

    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> Any:
        return _Cells(folder)


class _Cells:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, box: None) -> Columns:
        """All cells, to check them; a flat file has no boxes."""
        paths = sorted(self.folder.iterdir(), key=lambda path: int(path.stem))
        names = {path.suffix[1:] for path in paths}
        return {n: np.concatenate([np.fromfile(p, np.int64) for p in paths if p.suffix[1:] == n]) for n in names}

    def close(self) -> None:
        """Nothing is open."""
