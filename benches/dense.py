"""The systems that store a dense array. Each imports its library on first use, so that a process holds one only."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from disk import sync, sync_tree
from inputs import Array

Box = tuple[slice, slice]
Shape = tuple[int, int]


class Handle(Protocol):
    """An open array."""

    def read(self, box: Box) -> Array:
        """The cells of a box."""

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        """Changes single cells; durable when it returns."""

    def close(self) -> None:
        """Lets go of the files."""


class System(Protocol):
    """A way to store a dense array."""

    name: str
    role: str
    module: str
    durability: str

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        """Writes the whole array into a folder that does not exist yet; durable when it returns."""

    def open(self, folder: Path, *, writable: bool = False) -> Handle:
        """Opens it with no data cached from earlier."""


class Gridstone:
    """This project."""

    role, module = "gridstone", "gridstone"
    durability = 'durability="full": files and directories are fsynced, then one atomic commit'

    def __init__(self, filters: str) -> None:
        self.name, self.filters = f"gridstone, {filters}", filters

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        import gridstone as gs

        gs.array(folder, values, tile=tile, filters=self.filters).close()

    def open(self, folder: Path, *, writable: bool = False) -> "GridstoneHandle":
        import gridstone as gs

        context = gs.Context()
        return GridstoneHandle(gs.open(folder, mode="r+" if writable else "r", context=context))


class GridstoneHandle:
    """An open Gridstone array, in a context of its own."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, box: Box) -> Array:
        found: Array = self.array[box]
        return found

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.array.write_cells((rows, cols), values)

    def close(self) -> None:
        self.array.close()


class Hdf5:
    """One chunked dataset in one file, through h5py."""

    role, module = "peer", "h5py"
    durability = "flush, then fsync of the file (and of its directory after a load); in place, not crash-safe"

    def __init__(self, codec: str, options: dict[str, Any]) -> None:
        self.name, self.options = f"h5py, {codec}", options

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        import h5py

        folder.mkdir()
        with h5py.File(folder / "a.h5", "w") as file:
            file.create_dataset("value", data=values, chunks=tile, **self.options)
        sync_tree(folder)

    def open(self, folder: Path, *, writable: bool = False) -> "Hdf5Handle":
        return Hdf5Handle(folder / "a.h5", "r+" if writable else "r")


class Hdf5Handle:
    """An open file and its dataset."""

    def __init__(self, path: Path, mode: str) -> None:
        import h5py

        self.path, self.file = path, h5py.File(path, mode)
        self.dataset = self.file["value"]

    def read(self, box: Box) -> Array:
        found: Array = self.dataset[box]
        return found

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        """One call for all cells: HDF5 then visits each chunk once."""
        import h5py

        space = self.dataset.id.get_space()
        space.select_elements(np.stack([rows, cols], axis=1))
        self.dataset.id.write(h5py.h5s.create_simple(values.shape), space, values)
        self.file.flush()
        sync(self.path)

    def close(self) -> None:
        self.file.close()


class Zarr:
    """A Zarr v3 array: a file per chunk."""

    role, module = "peer", "zarr"
    durability = "fsync of every file and directory after the write; chunks are replaced one by one, not atomic"

    def __init__(self, codec: str) -> None:
        self.name, self.codec = f"zarr, {codec}", codec

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        import zarr

        zarr.create_array(folder, data=values, chunks=tile, compressors=self._compressors())
        sync_tree(folder)

    def _compressors(self) -> Any:
        from zarr.codecs import BloscCodec, ZstdCodec

        made = {"zstd": ZstdCodec(), "shuffle + zstd": BloscCodec(cname="zstd", shuffle="shuffle", typesize=4)}
        return made.get(self.codec)

    def open(self, folder: Path, *, writable: bool = False) -> "ZarrHandle":
        return ZarrHandle(folder, "r+" if writable else "r")


class ZarrHandle:
    """An open Zarr array; Zarr itself caches no chunks."""

    def __init__(self, folder: Path, mode: Any) -> None:
        import zarr

        self.folder, self.array = folder, zarr.open_array(folder, mode=mode)

    def read(self, box: Box) -> Array:
        return np.asarray(self.array[box])

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.array.set_coordinate_selection((rows, cols), values)
        sync_tree(self.folder)

    def close(self) -> None:
        pass


class Raw:
    """A flat file in row order, mapped to read: what the machine can do without tiles, checksums and versions."""

    name, role, module = "raw file", "limit", "numpy"
    durability = "fsync of the file (and of its directory after a load); in place, not crash-safe"

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        folder.mkdir()
        values.tofile(folder / "a.raw")
        sync_tree(folder)

    def open(self, folder: Path, *, writable: bool = False) -> "RawHandle":
        return RawHandle(folder / "a.raw", "r+" if writable else "r")


class RawHandle:
    """The mapped file; the array is a square."""

    def __init__(self, path: Path, mode: Any) -> None:
        self.path = path
        side = round((path.stat().st_size // 4) ** 0.5)
        self.values: Any = np.memmap(path, np.int32, mode, shape=(side, side))

    def read(self, box: Box) -> Array:
        return np.array(self.values[box])

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.values[rows, cols] = values
        self.values.flush()
        sync(self.path)

    def close(self) -> None:
        self.values = None


PLAIN: tuple[System, ...] = (Gridstone("none"), Hdf5("none", {}), Zarr("none"), Raw())
PACKED: tuple[System, ...] = (
    Gridstone("auto"),
    Hdf5("gzip-1 + shuffle", {"compression": "gzip", "compression_opts": 1, "shuffle": True}),
    Zarr("zstd"),
    Zarr("shuffle + zstd"),
)
