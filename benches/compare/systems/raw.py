"""What the machine can do: flat files in row order, without tiles, checksums and versions; and memory alone."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from disk import sync
from inputs import Array, Box, Columns, Shape
from systems.base import CellsSystem, DenseHandle, DenseSystem, threads_started

_PIECE_BYTES = 8 << 20
"""Written at once: of 1 to 16 MiB the quickest; neither a second thread nor O_DIRECT gained over it."""

_WRITE = 2
"""SYNC_FILE_RANGE_WRITE: begin to write these pages to the device, and do not wait."""


def write_whole(path: Path, values: Array) -> None:
    """A new file, allocated first, written in pieces of the array itself that go to the device at once; then fsync."""
    whole, begin = memoryview(np.ascontiguousarray(values)).cast("B"), _beginner()
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        if len(whole) and hasattr(os, "posix_fallocate"):
            with suppress(OSError):  # not every file system can
                os.posix_fallocate(handle, 0, len(whole))
        at = 0
        while at < len(whole):
            wrote = os.pwrite(handle, whole[at : at + _PIECE_BYTES], at)
            begin(handle, at, wrote, _WRITE)
            at += wrote
        os.fsync(handle)
    finally:
        os.close(handle)


def _beginner() -> Any:
    """sync_file_range; where the system has none, nothing."""
    found = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if found is None:
        return lambda *_: 0
    found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return found


def _fill(handle: int, out: Array, at: int) -> None:
    """Reads from a place in a file until a contiguous array is full."""
    view, done = memoryview(out).cast("B"), 0
    while done < len(view):  # one call reads at most 2 GiB
        read = os.preadv(handle, [view[done:]], at + done)
        if read == 0:
            raise EOFError(f"the file ends {len(view) - done} bytes early")
        done += read


def _halves(rows: int) -> list[slice]:
    """Two parts of the rows, one for each thread."""
    return [slice(0, rows // 2), slice(rows // 2, rows)]


class _Threads(DenseSystem):
    """Two Python threads if the variant says so, else the calling one alone; both calls below release the GIL."""

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        self.pool = threads_started(2) if self.variant == "two threads" else None

    @property
    def kept_as(self) -> str:
        return self.family


class Dense(_Threads):
    """A flat file. Rows one after the other are read in place; `variant` "two threads": each reads half of all."""

    family, role, module = "raw file", "limit", "numpy"
    durability = "fsync of the file (and of its directory after a load); in place, not crash-safe"
    settings = (
        f"written by pwrite of {_PIECE_BYTES >> 20} MiB pieces of the array into an allocated file, each followed by "
        "sync_file_range; whole rows: preadv into the result, by one thread or by two Python threads, half each; "
        "mapped: numpy.memmap, for boxes and single cells, orientation and no limit"
    )

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        folder.mkdir()
        write_whole(folder / f"{values.shape[0]}x{values.shape[1]}.raw", values)
        sync(folder)
        sync(folder.parent)

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        return _Dense(next(folder.iterdir()), writable, self.pool)


class _Dense(DenseHandle):
    def __init__(self, path: Path, writable: bool, pool: ThreadPoolExecutor | None) -> None:
        self.path, self.pool, self.writable = path, pool, writable
        rows, cols = map(int, path.stem.split("x"))
        self.shape, self.file = (rows, cols), os.open(path, os.O_RDONLY)

    @property
    def mapped(self) -> Any:
        """The file as an array."""
        return np.memmap(self.path, np.int32, "r+" if self.writable else "r", shape=self.shape)

    def read(self, box: Box) -> Array:
        rows, cols = box
        found = np.empty((rows.stop - rows.start, cols.stop - cols.start), np.int32)
        self.read_into(box, found)
        return found

    def read_into(self, box: Box, out: Array) -> None:
        """In place where the cells lie one after the other: whole rows, or a part of one."""
        rows, cols = box
        if len(out) > 1 and out.shape[1] < self.shape[1]:
            np.copyto(out, self.mapped[box])
        elif self.pool is None or len(out) == 1:
            _fill(self.file, out, self._at(rows.start, cols.start))
        else:
            parts = _halves(len(out))
            list(self.pool.map(lambda part: _fill(self.file, out[part], self._at(rows.start + part.start, 0)), parts))

    def _at(self, row: int, col: int) -> int:
        return (row * self.shape[1] + col) * 4

    def close(self) -> None:
        os.close(self.file)


class Mapped(Dense):
    """The same file mapped, for what does not lie in a row: tells what a simple program takes, and is no limit."""

    role = "orientation"

    def __init__(self, variant: str = "mapped") -> None:
        super().__init__(variant)

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Mapped":
        return _Mapped(next(folder.iterdir()), writable, self.pool)


class _Mapped(_Dense):
    def __init__(self, path: Path, writable: bool, pool: ThreadPoolExecutor | None) -> None:
        super().__init__(path, writable, pool)
        self.values = self.mapped

    def read(self, box: Box) -> Array:
        return np.array(self.values[box])

    def points(self, rows: Array, cols: Array) -> Array:
        return np.asarray(self.values[rows, cols])

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.values[rows, cols] = values
        self.values.flush()
        os.fsync(self.file)

    def close(self) -> None:
        self.values = None
        super().close()


class Memory(_Threads):
    """An array in memory: what copying alone takes; `variant` "two threads": each copies half."""

    family, role, module = "memcpy", "limit", "numpy"
    durability = "nothing is stored"
    settings = "numpy.copyto, by one thread or by two Python threads, half each"

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        folder.mkdir()
        np.save(folder / "a.npy", values)

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Memory":
        return _Memory(np.load(folder / "a.npy"), self.pool)


class _Memory(DenseHandle):
    def __init__(self, values: Array, pool: ThreadPoolExecutor | None) -> None:
        self.values, self.pool = values, pool

    def read(self, box: Box) -> Array:
        return self.values[box].copy()

    def read_into(self, box: Box, out: Array) -> None:
        source = self.values[box]
        if self.pool is None:
            np.copyto(out, source)
        else:
            list(self.pool.map(lambda part: np.copyto(out[part], source[part]), _halves(len(out))))


class Cells(CellsSystem):
    """The columns one after the other in flat files, unsorted: what the machine can write."""

    family, role, module = "raw columns", "limit", "numpy"
    durability = "fsync of every file and of the directory"
    settings = "one file per column and batch, unsorted, written as the raw file"

    def load(self, folder: Path, batches: list[Columns]) -> None:
        folder.mkdir()
        for i, batch in enumerate(batches):
            for name, column in batch.items():
                write_whole(folder / f"{i}.{name}", column)
        sync(folder)
        sync(folder.parent)

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
