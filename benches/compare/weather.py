"""Synthetic weather: the dataset of the rows of xarray, made once as a .npy file, and a NetCDF file of its first month.

Temperatures of the air at two metres, one map a day: zones and seasons, a fixed relief, waves that travel, and noise
that no coder can foretell; hundredths of a kelvin. 365 x 721 x 1,440 float32 (1.5 GB) at scale 1.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Chunk = tuple[int, int, int]

VARIABLE = "t2m"
DIMS = ("time", "latitude", "longitude")
DAYS = 365
FIRST_DAY = "2025-01-01"
MONTH = 31
"""Days of the NetCDF file."""

_SEED = 20261128
_WAVES, _RELIEF = 8, 24


@dataclass(frozen=True)
class Weather:
    """The dataset in a folder; `scale` 1 is the size of the targets."""

    folder: Path
    scale: float

    @property
    def shape(self) -> Chunk:
        """Days, latitudes, longitudes; all days of a year at each scale but trials."""
        side = math.sqrt(self.scale)
        return DAYS if self.scale >= 0.001 else 48, max(9, round(721 * side)), max(16, round(1_440 * side))

    def chunk(self, layout: str) -> Chunk:
        """The chunk of a layout. "even": 46 x 91 x 180 at scale 1, as zarr and Gridstone choose for maps and series
        alike; "days": one map.
        """
        days, rows, cols = self.shape
        return (1, rows, cols) if layout == "days" else (_eighth(days), _eighth(rows), _eighth(cols))

    @property
    def appended(self) -> int:
        """Days that are appended one by one: 100 at scale 1, fewer by the square root of the scale."""
        return max(3, round(100 * math.sqrt(min(1.0, self.scale))))

    @property
    def npy(self) -> Path:
        """The file of the values."""
        return self.folder / "weather.npy"

    @property
    def month(self) -> Path:
        """The NetCDF file: gzip-4 + shuffle, one map in a chunk, as archives hand them out."""
        return self.folder / "month.nc"

    @property
    def small(self) -> Path:
        """A NetCDF file of a few cells, to warm up with."""
        return self.folder / "small.nc"

    def values(self) -> Array:
        """All values, mapped."""
        found: Array = np.load(self.npy, mmap_mode="r")
        return found

    def dataset(self, values: Array, first: int = 0) -> Any:
        """A dataset of xarray of these values, from a day on."""
        import xarray as xr

        days, rows, cols = values.shape
        coords = {
            "time": np.datetime64(FIRST_DAY, "ns") + np.arange(first, first + days) * np.timedelta64(1, "D"),
            "latitude": ("latitude", np.linspace(90, -90, rows), {"units": "degrees_north"}),
            "longitude": ("longitude", np.arange(cols) * (360 / cols), {"units": "degrees_east"}),
        }
        about = {"units": "K", "long_name": "temperature of the air at two metres"}
        return xr.Dataset({VARIABLE: (DIMS, values, about)}, coords, {"title": "synthetic weather"})

    def make(self, kind: str) -> None:
        """Writes the files of a kind: "weather", or "month"."""
        if kind == "weather":
            self._make_values()
        else:
            values = self.month_values()
            self._make_file(self.small, values[:2, :9, :16])
            self._make_file(self.month, values)

    def _make_values(self) -> None:
        made = np.lib.format.open_memmap(self.npy, "w+", np.float32, self.shape)
        maps = _Maps(*self.shape[1:])
        for day in range(len(made)):
            made[day] = maps.of(day)
        made.flush()

    def month_values(self) -> Array:
        """What the NetCDF file holds."""
        maps = _Maps(*self.shape[1:])
        return np.stack([maps.of(day) for day in range(MONTH)])

    def _make_file(self, path: Path, values: Array) -> None:
        packed = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (1, *values.shape[1:])}
        self.dataset(values).to_netcdf(path, engine="h5netcdf", encoding={VARIABLE: packed})

    def days_asked(self, count: int) -> list[int]:
        """Days whose maps are asked for."""
        return np.random.default_rng([_SEED, 1]).integers(0, self.shape[0], count).tolist()

    def points_asked(self, count: int) -> list[tuple[int, int]]:
        """Rows and columns of the points whose series are asked for."""
        found = np.random.default_rng([_SEED, 2]).integers(0, self.shape[1:], (count, 2))
        return [(int(row), int(col)) for row, col in found]

    @property
    def quarter(self) -> tuple[slice, slice]:
        """The quarter of the globe in the north-west: rows and columns."""
        _, rows, cols = self.shape
        return slice(0, rows // 2), slice(0, cols // 2)


def _eighth(count: int) -> int:
    return max(8, math.ceil(count / 8))


class _Maps:
    """What makes the map of each day: sums of products of a function of latitude and one of longitude."""

    def __init__(self, rows: int, cols: int) -> None:
        rng = np.random.default_rng(_SEED)
        self.along = np.linspace(np.pi / 2, -np.pi / 2, rows, dtype=np.float32)
        self.across = np.linspace(0, 2 * np.pi, cols, endpoint=False, dtype=np.float32)
        self.zones = 300 - 45 * np.sin(self.along) ** 2
        numbers, phases = rng.integers(2, 40, _RELIEF), rng.random((2, _RELIEF)) * 2 * np.pi
        relief_along = np.cos(np.outer(self.along, numbers) * 1.3 + phases[0]) * 12 / numbers
        self.relief = (relief_along @ np.cos(np.outer(numbers, self.across) + phases[1][:, None])).astype(np.float32)
        self.numbers = rng.integers(3, 16, _WAVES)
        self.speeds, self.phases = rng.normal(0.25, 0.1, _WAVES), rng.random(_WAVES) * 2 * np.pi
        centres = rng.uniform(0.4, 1.1, _WAVES) * rng.choice([-1, 1], _WAVES)
        self.belts = 20 / self.numbers * np.exp(-(((self.along[:, None] - centres) / 0.35) ** 2))

    def of(self, day: int) -> Array:
        """The map of a day."""
        rng = np.random.default_rng([_SEED, 3, day])
        season = 14 * math.cos(2 * np.pi * (day - 200) / 365) * np.sin(self.along)
        moved = np.cos(np.outer(self.numbers, self.across) - (self.speeds * day * 4 - self.phases)[:, None])
        found = (self.zones + season)[:, None] + self.relief + (self.belts @ moved).astype(np.float32)
        found = found.astype(np.float32) + rng.standard_normal(found.shape, np.float32) * np.float32(0.15)
        return np.round(found, 2)
