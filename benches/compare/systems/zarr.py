"""Zarr v3 through zarr-python: a file per chunk. Also with the codec pipeline of zarrs, which is written in Rust."""

from pathlib import Path
from typing import Any

import numpy as np

from disk import sync_tree
from inputs import Array, Box, Shape
from systems.base import CubeHandle, CubeSystem, DatasetSystem, DenseHandle, DenseSystem, System
from weather import DAYS, FIRST_DAY, VARIABLE


def compressors(coder: str) -> Any:
    """The codec of that name."""
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    return {
        "none": None,
        "zstd:3": ZstdCodec(level=3),
        "shuffle + zstd:3": BloscCodec(cname="zstd", clevel=3, shuffle="shuffle", typesize=4),
        "gzip:6": GzipCodec(level=6),
    }[coder]


class Dense(DenseSystem):
    """An array of zarr-python."""

    family, module = "zarr", "zarr"
    durability = "fsync of every file and directory after the write; chunks are replaced one by one, not atomic"
    settings = (
        "chunks as the tiles, no shards; threading.max_workers: the threads; points by get_ and "
        "set_coordinate_selection; a reused buffer by out="
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import zarr

        zarr.config.set({"threading.max_workers": threads})

    def create(self, folder: Path, shape: Shape, tile: Shape) -> None:
        import zarr

        zarr.create_array(folder, shape=shape, dtype="int32", chunks=tile, compressors=self._compressors())

    def _compressors(self) -> Any:
        return compressors(self.variant)

    def write(self, folder: Path, box: Box, values: Array) -> None:
        import zarr

        array: Any = zarr.open_array(folder, mode="r+")
        array[box] = values

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        return _Dense(folder, "r+" if writable else "r", durable)


class _Dense(DenseHandle):
    """Zarr itself caches no chunks."""

    def __init__(self, folder: Path, mode: Any, durable: bool) -> None:
        import zarr

        self.folder, self.durable = folder, durable
        self.array: Any = zarr.open_array(folder, mode=mode)

    def read(self, box: Box) -> Array:
        return np.asarray(self.array[box])

    def read_into(self, box: Box, out: Array) -> None:
        from zarr.core.buffer.cpu import NDBuffer

        self.array.get_basic_selection(box, out=NDBuffer(out))

    def points(self, rows: Array, cols: Array) -> Array:
        return np.asarray(self.array.get_coordinate_selection((rows, cols)))

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.array.set_coordinate_selection((rows, cols), values)
        if self.durable:
            sync_tree(self.folder)


class Zarrs(Dense):
    """The same, with codecs, chunks and threads in Rust."""

    family, module = "zarrs", "zarrs"
    settings = Dense.settings + "; codec_pipeline.path: zarrs.ZarrsCodecPipeline (RAYON_NUM_THREADS: the threads)"

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import zarr
        import zarrs  # noqa: F401 -- registers the pipeline

        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


class Cube(CubeSystem):
    """A cube of zarr-python, whose means NumPy takes slab by slab: a row of chunks at a time."""

    family, module = "zarr", "zarr"
    durability = Dense.durability
    settings = (
        "chunks as the tiles, zstd:3; NumPy adds in float64, slabs of a row of chunks along the first axis that stays"
    )

    def prepare(self, threads: int) -> None:
        System.prepare(self, threads)
        import zarr

        zarr.config.set({"threading.max_workers": threads})

    def load(self, folder: Path, cube: Array, tile: tuple[int, int, int]) -> None:
        import zarr
        from zarr.codecs import ZstdCodec

        array: Any = zarr.create_array(
            folder, shape=cube.shape, dtype="float32", chunks=tile, compressors=ZstdCodec(level=3)
        )
        array[...] = cube
        self.finish(folder)

    def open(self, folder: Path, prepared: Any) -> "_Cube":
        return _Cube(folder)


class _Cube(CubeHandle):
    def __init__(self, folder: Path) -> None:
        import zarr

        self.array: Any = zarr.open_array(folder, mode="r")

    def mean(self, axes: tuple[int, ...]) -> Array:
        stays = next(axis for axis in range(3) if axis not in axes)
        step, count = self.array.chunks[stays], self.array.shape[stays]
        parts = []
        for low in range(0, count, step):
            slab = self.array[(slice(None),) * stays + (slice(low, low + step),)]
            parts.append(slab.mean(axis=axes, dtype=np.float64))
        return np.concatenate(parts)


class ZarrsCube(Cube):
    """The same, with codecs, chunks and threads in Rust."""

    family, module = "zarrs", "zarrs"
    settings = Cube.settings + "; codec_pipeline.path: zarrs.ZarrsCodecPipeline (RAYON_NUM_THREADS: the threads)"

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import zarr
        import zarrs  # noqa: F401 -- registers the pipeline

        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


class DaskCube(Cube):
    """The same cube through xarray and Dask: chunks as the tiles, threads of Dask."""

    family, module = "xarray", "dask"
    settings = "xarray over dask.array.from_zarr, chunks as the tiles, the threaded scheduler"

    def open(self, folder: Path, prepared: Any) -> "_DaskCube":
        return _DaskCube(folder, self.threads)


class _DaskCube(CubeHandle):
    def __init__(self, folder: Path, threads: int) -> None:
        import dask.array
        import xarray as xr

        self.threads = threads
        self.array = xr.DataArray(dask.array.from_zarr(str(folder)), dims=("day", "y", "x"))

    def mean(self, axes: tuple[int, ...]) -> Array:
        found = self.array.mean([("day", "y", "x")[axis] for axis in axes], dtype=np.float64)
        return np.asarray(found.compute(scheduler="threads", num_workers=self.threads))


class Dataset(DatasetSystem):
    """A dataset of xarray in zarr-python."""

    family, module = "zarr", "zarr"
    also = ("xarray", "dask")
    durability = Dense.durability
    settings = (
        "xarray's to_zarr and open_zarr; threading.max_workers: the threads; the days of a year are one chunk of the "
        "coordinate, so that appends do not make a file each"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import xarray  # noqa: F401 -- its import is in no clock
        import zarr

        zarr.config.set({"threading.max_workers": threads})

    def encoding(self, chunk: tuple[int, ...]) -> dict[str, Any]:
        """The encoding of the variables."""
        time = {"chunks": (DAYS,), "units": f"days since {FIRST_DAY}", "dtype": "int64"}
        return {VARIABLE: {"chunks": chunk, "compressors": [compressors(self.coder)]}, "time": time}

    def write(self, dataset: Any, folder: Path, chunk: tuple[int, ...]) -> None:
        dataset.to_zarr(folder, mode="w-", encoding=self.encoding(chunk), consolidated=False)

    def append(self, dataset: Any, folder: Path, prepared: Any) -> None:
        dataset.to_zarr(folder, append_dim="time", consolidated=False)

    def open(self, folder: Path, prepared: Any, chunks: Any = None) -> Any:
        import xarray as xr

        return xr.open_zarr(folder, chunks=chunks, consolidated=False)


class ZarrsDataset(Dataset):
    """The same, with codecs, chunks and threads in Rust."""

    family, module = "zarrs", "zarrs"
    settings = Dataset.settings + "; codec_pipeline.path: zarrs.ZarrsCodecPipeline (RAYON_NUM_THREADS: the threads)"

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import zarr
        import zarrs  # noqa: F401 -- registers the pipeline

        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
