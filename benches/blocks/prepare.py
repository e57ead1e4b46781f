"""Writes the inputs of the program `blocks` (benches/core/src/bin/blocks.rs): raw columns, and what they make.

    python benches/blocks/prepare.py REAL_FILES OUT

REAL_FILES is the folder that GRIDSTONE_TEST_DATA names; an input whose file is not there is left out. OUT gets a file
of little-endian values per column, and `inputs.json`: for each input its schema, as the engine reads it, and the files
of its columns. Needs numpy, pyarrow, h5py and Pillow.
"""

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from PIL import Image

from netcdf import variable

Array = npt.NDArray[Any]
Columns = dict[str, Array]

SEED = 20261121
DEGREE = 1_000_000
"""Positions are integers: millionths of a degree."""
CELL = DEGREE // 10
"""Space tiles of positions: a tenth of a degree."""


@dataclass
class Input:
    """An array: its columns, and per dimension the extent of a space tile (None: one tile)."""

    about: str
    attrs: Columns
    tiles: dict[str, int | None]
    coords: Columns = field(default_factory=dict)
    domains: dict[str, tuple[int, int]] = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """What the engine reads."""
        sparse = bool(self.coords)
        shape = next(iter(self.attrs.values())).shape
        dims = []
        for place, (name, tile) in enumerate(self.tiles.items()):
            if sparse:
                values = self.coords[name]
                low, high = self.domains.get(name, (int(values.min()), int(values.max())))
                dtype = values.dtype.name
            else:
                low, high, dtype = 0, shape[place] - 1, "int64"
            extent = None if tile is None else str(min(tile, high - low + 1))
            dims.append({"name": name, "dtype": dtype, "domain": [str(low), str(high)], "tile": extent})
        attrs = [{"name": name, "dtype": values.dtype.name} for name, values in self.attrs.items()]
        return {"sparse": sparse, "duplicates": sparse, "dims": dims, "attrs": attrs}


def dense(about: str, tiles: tuple[int | None, ...], **attrs: Array) -> Input:
    """A dense input; dimensions are called d0, d1 and so on."""
    return Input(about, attrs, {f"d{place}": tile for place, tile in enumerate(tiles)})


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def table(path: Path) -> pa.Table:
    data = unpacked(path) if path.suffix == ".gz" else path.read_bytes()
    return pa_csv.read_csv(pa.BufferReader(data))


def degrees(column: Array) -> Array:
    return np.rint(column * DEGREE).astype(np.int64)


def seconds(column: pa.ChunkedArray) -> Array:
    return pc.cast(pc.cast(column, pa.timestamp("s")), pa.int64()).to_numpy()


GLOBE = {"x": (-180 * DEGREE, 180 * DEGREE), "y": (-90 * DEGREE, 90 * DEGREE)}


def positions(about: str, x: Array, y: Array, **attrs: Array) -> Input:
    """Cells on the globe."""
    return Input(about, attrs, {"x": CELL, "y": CELL}, {"x": degrees(x), "y": degrees(y)}, dict(GLOBE))


def ais(files: Path) -> Input:
    t = table(files / "ais" / "AIS_2022_01_03_sample.csv.gz")
    return positions(
        "ship positions, one hour of US coasts",
        t["LON"].to_numpy(),
        t["LAT"].to_numpy(),
        mmsi=t["MMSI"].to_numpy().astype(np.int32),
        time=seconds(t["BaseDateTime"]),
        sog=t["SOG"].to_numpy().astype(np.float64),
        cog=t["COG"].to_numpy().astype(np.float64),
        heading=t["Heading"].to_numpy().astype(np.int16),
    )


def ais_day(files: Path) -> Input:
    """The hour ten times over: later, and a few metres away, rounded as the receivers round."""
    hour, times = ais(files), 10
    random = np.random.default_rng(SEED)
    rows = hour.attrs["time"].size * times
    attrs = {name: np.tile(values, times) for name, values in hour.attrs.items()}
    attrs["time"] = attrs["time"] + np.repeat(np.arange(times), rows // times) * 3600 + random.integers(-30, 31, rows)
    coords = {}
    for name, values in hour.coords.items():
        jitter = np.rint(random.normal(0, 10, rows)).astype(np.int64) * 10
        coords[name] = np.clip(np.tile(values, times) + jitter, *GLOBE[name])
    return Input("the same ten times, with jitter", attrs, dict(hour.tiles), coords, dict(GLOBE))


def trajectories(files: Path) -> Input:
    t = table(files / "ais" / "VirginiaBeach_2020_06_04_to_06_filtered.csv.gz")
    mmsi, time = t["MMSI"].to_numpy().astype(np.int32), seconds(t["BaseDateTime"])
    return positions("125 ships' tracks at one harbour", t["LON"].to_numpy(), t["LAT"].to_numpy(), mmsi=mmsi, time=time)


def earthquakes(files: Path) -> Input:
    t = table(files / "points" / "earthquakes-23k.csv")
    x, y = t["Longitude"].to_numpy(), t["Latitude"].to_numpy()
    found = positions("earthquakes of 50 years", x, y, magnitude=t["Magnitude"].to_numpy().astype(np.float64))
    found.tiles = dict.fromkeys("xy", 10 * DEGREE)
    return found


def autzen(files: Path) -> Input:
    """Points of a laser scan: LAS 1.2, point format 3, 34 bytes each."""
    data = (files / "points" / "autzen_trim.las").read_bytes()
    start = int.from_bytes(data[96:100], "little")
    length = int.from_bytes(data[105:107], "little")
    count = int.from_bytes(data[107:111], "little")
    if data[:4] != b"LASF" or data[104] != 3:
        raise ValueError("no LAS file of point format 3")
    fields = [("x", "<i4"), ("y", "<i4"), ("z", "<i4"), ("intensity", "<u2"), ("returns", "u1"), ("class", "u1")]
    fields += [("angle", "i1"), ("user", "u1"), ("source", "<u2"), ("gps_time", "<f8")]
    fields += [("red", "<u2"), ("green", "<u2"), ("blue", "<u2")]
    names, formats = zip(*fields, strict=True)
    offsets = np.cumsum([0] + [np.dtype(f).itemsize for f in formats[:-1]]).tolist()
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": length})
    points = np.frombuffer(data, dtype, count, start)
    coords = {name: points[name].copy() for name in "xyz"}
    kept = ("intensity", "returns", "class", "angle", "source", "gps_time", "red", "green", "blue")
    attrs = {name: points[name].copy() for name in kept}
    return Input("a laser scan, centimetres", attrs, {"x": 10_000, "y": 10_000, "z": None}, coords)


def stiffness(files: Path) -> Input:
    """A symmetric matrix in MatrixMarket's coordinates, of which one triangle is stored."""
    lines = (files / "matrixmarket" / "lagraph" / "bcsstk13.mtx").read_text().splitlines()
    rows = np.loadtxt([line for line in lines if not line.startswith("%")][1:])
    i, j, v = rows[:, 0].astype(np.int32) - 1, rows[:, 1].astype(np.int32) - 1, rows[:, 2]
    below = i != j
    x, y = np.concatenate([i, j[below]]), np.concatenate([j, i[below]])
    coords = {"row": x, "column": y}
    return Input("a stiffness matrix", {"v": np.concatenate([v, v[below]])}, {"row": 256, "column": 256}, coords)


def etopo(files: Path) -> Input:
    rose = variable(unpacked(files / "netcdf" / "ferret_etopo5.cdf.gz"), "ROSE")
    return dense("relief of the Earth, metres", (1_000, 1_000), rose=rose)


def floats(file: Path, name: str) -> Any:
    """A dataset of an HDF5 file."""
    with h5py.File(file) as f:
        return f[name][()].astype(np.float32)


def levitus(files: Path) -> Input:
    temp = variable(unpacked(files / "netcdf" / "ferret_levitus_climatology.cdf.gz"), "TEMP")
    return dense("ocean temperature, land filled", (None, None, None), temp=temp)


def pop(files: Path) -> Input:
    data = unpacked(files / "netcdf" / "ncarg_pop.nc.gz")
    return dense("ocean model, land filled", (None, None), urot=variable(data, "urot"), t=variable(data, "t"))


def gpm(files: Path) -> Input:
    z = floats(files / "nasa" / "GPM_2A-CS_Ku_20141206.HDF5", "NS/PRE/zFactorMeasured")
    return dense("rain radar reflectivity, mostly fill", (None, None, None), z=z)


def iris(files: Path) -> Input:
    air = floats(files / "netcdf" / "iris_E1_north_america.nc", "air_temperature")
    return dense("air temperature, 240 years", (None, None, None), air=air)


def ostia(files: Path) -> Input:
    temperature = floats(files / "netcdf" / "iris_ostia_monthly.nc", "surface_temperature")
    return dense("sea surface temperature by month, land filled", (None, None, None), temperature=temperature)


def hybrid(files: Path) -> Input:
    theta = floats(files / "netcdf" / "iris_hybrid_height.nc", "air_potential_temperature")
    return dense("air over terrain, 15 levels", (None, None, None), theta=theta)


def winds(files: Path) -> Input:
    with h5py.File(files / "netcdf" / "ncarg_nc4uvt.nc") as f:
        fields = {name.lower(): f[name][0].astype(np.float32) for name in "UVT"}
    return dense("winds and temperature, 14 levels", (None, None, None), **fields)


def triangles(files: Path) -> Input:
    corners = variable(unpacked(files / "netcdf" / "ncarg_triangular_grid_ICON.nc.gz"), "clon_vertices")
    return dense("longitudes of the corners of triangles", (None, None), corner=corners)


def cutouts(files: Path) -> Input:
    """Transients: before, after, difference."""
    return dense(
        "stamps of the sky, three each", (16, None, None, None), flux=np.load(files / "cutouts" / "cutouts_shared.npy")
    )


def light_curves(files: Path) -> Input:
    """The measurements of each star, in their order."""
    t = pq.read_table(files / "astronomy" / "ztf_000250_zg_c01_q1_dr5.parquet")
    lengths = pc.list_value_length(t["hmjd"]).to_numpy()
    star = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
    epoch = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
    attrs = {name: pc.list_flatten(t[name]).to_numpy() for name in ("hmjd", "mag", "magerr", "catflags")}
    return Input("light curves of stars", attrs, {"star": 256, "epoch": None}, {"star": star, "epoch": epoch})


def genes(files: Path) -> Input:
    """Counts by cell and gene, compressed by rows."""
    with h5py.File(files / "singlecell" / "anndata_archives" / "v0.5.0" / "adata.h5ad") as f:
        found = f["raw/X"] if "raw/X" in f else f["raw.X"]
        data, column, starts = (found[name][()] for name in ("data", "indices", "indptr"))
    cell = np.repeat(np.arange(starts.size - 1, dtype=np.int32), np.diff(starts))
    coords = {"cell": cell, "gene": column.astype(np.int32)}
    return Input("expression of genes in cells", {"count": data}, {"cell": 256, "gene": None}, coords)


def taxi(files: Path) -> Input:
    """Where trips began, in metres of the web's map."""
    t = pq.read_table(files / "points" / "nyc_taxi_wide.parq")
    coords = {axis: np.rint(t[f"pickup_{axis}"].to_numpy()).astype(np.int32) for axis in "xy"}
    attrs = {name: t[name].to_numpy() for name in ("trip_distance", "fare_amount", "tip_amount", "passenger_count")}
    attrs["time"] = pc.cast(pc.cast(t["tpep_pickup_datetime"], pa.timestamp("s", "UTC")), pa.int64()).to_numpy()
    return Input("taxi trips of a city", attrs, {"x": 1_000, "y": 1_000}, coords)


def strain(files: Path) -> Input:
    with h5py.File(files / "ligo" / "H-H1_LOSC_4_V2-1126259446-32.hdf5") as f:
        values = f["strain/Strain"][()].astype(np.float64)
    return dense("gravitational wave strain", (None,), strain=values)


def shade(files: Path) -> Input:
    with Image.open(files / "dense-images" / "rasterio_shade.tif") as image:
        return dense("shaded relief, 1 MP", (None, None), grey=np.asarray(image))


def land_cover(files: Path) -> Input:
    with Image.open(files / "dense-images" / "lcmap_2019.tif") as image:
        return dense("land cover classes, 4 MP", (1_024, 1_024), kind=np.asarray(image))


def colours(files: Path) -> Input:
    with Image.open(files / "dense-images" / "rasterio_RGB.byte.tif") as image:
        return dense("satellite image, bands last", (None, None, None), rgb=np.asarray(image))


def paper(_: Path) -> Input:
    """The values of the paper, which delta coding packs to nearly nothing."""
    rows, columns = 2_500, 4_000
    values = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    return dense("synthetic, i * columns + j", (2_500, 1_000), v=values)


INPUTS: dict[str, Callable[[Path], Input]] = {
    "etopo5": etopo,
    "levitus": levitus,
    "pop": pop,
    "gpm": gpm,
    "iris-air": iris,
    "ostia": ostia,
    "hybrid": hybrid,
    "winds": winds,
    "triangles": triangles,
    "cutouts": cutouts,
    "ligo": strain,
    "shade": shade,
    "lcmap": land_cover,
    "rgb": colours,
    "paper": paper,
    "ais": ais,
    "ais-x10": ais_day,
    "harbour": trajectories,
    "quakes": earthquakes,
    "autzen": autzen,
    "bcsstk13": stiffness,
    "light-curves": light_curves,
    "genes": genes,
    "taxi": taxi,
}


def write(name: str, found: Input, out: Path) -> dict[str, Any]:
    """Writes an input's columns; gives its entry in inputs.json."""
    files = {}
    for column, values in {**found.coords, **found.attrs}.items():
        files[column] = f"{name}.{column}.bin"
        contiguous = np.ascontiguousarray(values)
        contiguous.astype(contiguous.dtype.newbyteorder("<")).tofile(out / files[column])
    cells = next(iter(found.attrs.values())).size
    return {"name": name, "about": found.about, "cells": cells, "schema": found.schema(), "files": files}


def main(files: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    entries = []
    for name, make in INPUTS.items():
        try:
            entry = write(name, make(files), out)
        except FileNotFoundError as missing:
            print(f"{name}: left out, {missing.filename} is not there", file=sys.stderr)
            continue
        entries.append(entry)
        print(f"{name}: {entry['cells']:,} cells, {entry['about']}", file=sys.stderr)
    (out / "inputs.json").write_text(json.dumps({"inputs": entries}, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: prepare.py REAL_FILES OUT")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
