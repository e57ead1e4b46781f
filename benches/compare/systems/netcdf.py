"""NetCDF-4 through xarray: by the library of Unidata, or by h5netcdf; and a file as it lies."""

from pathlib import Path
from typing import Any

import numpy as np

from systems.base import DatasetSystem, PlotSystem
from weather import FIRST_DAY, VARIABLE

_DAYS = {"units": f"days since {FIRST_DAY}", "dtype": "int64"}


class Dataset(DatasetSystem):
    """A dataset in one file, by netCDF4."""

    family, module = "netCDF4", "netCDF4"
    also = ("xarray", "dask")
    engine = "netcdf4"
    durability = "fsync of the file and its directory after it is closed; in place and not crash-safe"
    settings = (
        "xarray's to_netcdf and open_dataset, engine netcdf4, time unlimited; days are appended by netCDF4 itself, "
        "since xarray appends to no NetCDF file; one thread, as HDF5 has"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import netCDF4  # noqa: F401 -- their imports are in no clock
        import xarray  # noqa: F401

    def coded(self) -> dict[str, Any]:
        """The encoding of the codec."""
        return {"compression": "zstd", "complevel": 3, "shuffle": self.coder.startswith("shuffle")}

    def write(self, dataset: Any, folder: Path, chunk: tuple[int, ...]) -> None:
        folder.mkdir()
        # xarray limits a chunk to the first days of a file, but for an unlimited dimension
        encoding = {VARIABLE: {"chunksizes": chunk, **self.coded()}, "time": _DAYS}
        path = folder / "a.nc"
        dataset.to_netcdf(path, engine=self.engine, encoding=encoding, unlimited_dims=["time"])

    def append(self, dataset: Any, folder: Path, prepared: Any) -> None:
        import netCDF4

        with netCDF4.Dataset(folder / "a.nc", "a") as file:
            at = len(file["time"])
            days = dataset["time"].values
            file["time"][at:] = ((days - np.datetime64(FIRST_DAY)) // np.timedelta64(1, "D")).astype(np.int64)
            file[VARIABLE][at:] = dataset[VARIABLE].values

    def open(self, folder: Path, prepared: Any, chunks: Any = None) -> Any:
        import xarray as xr

        return xr.open_dataset(folder / "a.nc", engine=self.engine, chunks=chunks)


class H5netcdf(Dataset):
    """The same by h5netcdf; zstd comes from hdf5plugin."""

    family, module = "h5netcdf", "h5netcdf"
    also = ("xarray", "dask", "hdf5plugin")
    engine = "h5netcdf"
    settings = "xarray's to_netcdf and open_dataset, engine h5netcdf, time unlimited; one thread, as HDF5 has"

    def prepare(self, threads: int) -> None:
        DatasetSystem.prepare(self, threads)
        import h5netcdf  # noqa: F401 -- their imports are in no clock
        import hdf5plugin  # noqa: F401
        import xarray  # noqa: F401

    def coded(self) -> dict[str, Any]:
        import hdf5plugin

        return {**hdf5plugin.Zstd(clevel=3), "shuffle": self.coder.startswith("shuffle")}


class Files(PlotSystem):
    """A NetCDF file as it lies; `variant`: the engine."""

    also = ("xarray", "matplotlib")
    durability = "nothing is stored"
    settings = "xarray's open_dataset of the file, and its plot.imshow"

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.family = self.module = variant

    def open(self, source: Path, folder: Path, prepared: Any) -> Any:
        import xarray as xr

        return xr.open_dataset(source, engine=self.family.lower())
