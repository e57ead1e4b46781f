"""Real files, loaded and read back: ships, cities, earthquakes, flights, taxis, a point cloud, images, a relief.

The files are in $GRIDSTONE_TEST_DATA, or in ../shared/data beside the repository.
"""

import gzip
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from places import Stores

import gridstone as gs
from gridstone import errors

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA") or ROOT.parent / "shared" / "data")
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data in {DATA}; set GRIDSTONE_TEST_DATA to a folder that has it"
)
SMALL, LARGE = gs.Context("2MiB", 2, durability="close"), gs.Context("1GiB", 2, durability="close")

SHIPS = ["LON", "LAT"]
TIMED = ["LON", "LAT", "BaseDateTime"]
FILES = {
    "ais-2022": ("ais/AIS_2022_01_03_sample.csv.gz", SHIPS),
    "ais-2022-timed": ("ais/AIS_2022_01_03_sample.csv.gz", TIMED),
    "ny-harbor": ("ais/NYHarbor_2020_06_30_first_hour.csv", SHIPS),
    "ny-harbor-timed": ("ais/NYHarbor_2020_06_30_first_hour.csv", TIMED),
    "virginia-beach": ("ais/VirginiaBeach_2020_06_04_to_06_filtered.csv.gz", ["MMSI", "BaseDateTime"]),
    "virginia-beach-timed": ("ais/VirginiaBeach_2020_06_04_to_06_filtered.csv.gz", TIMED),
    "zipcodes": ("points/us_zipcodes.csv.gz", ["longitude", "latitude"]),
    "earthquakes": ("points/earthquakes-23k.csv", ["Longitude", "Latitude"]),
}


def path_of(name: str) -> Path:
    """A file of the data; the test is skipped where it is missing."""
    file = DATA / name
    if not file.is_file():
        pytest.skip(f"no file {file}")
    return file


def rows_of(table: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    """The rows of a table as a sorted list: a multiset. Nulls sort first, NaN equals NaN."""
    columns = [[repr(v) for v in _plain(table.column(name)).to_pylist()] for name in names]
    return sorted(zip(*columns, strict=True))


def _plain(column: Any) -> Any:
    """Times as ticks of microseconds, integers as int64, strings as strings, whatever the reader made of them."""
    kind = column.type
    if pa.types.is_temporal(kind):
        kind = pa.timestamp("us")
        return column.cast(kind).cast(pa.int64())
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_large_string(kind):
        return column.cast(pa.string())
    return column.cast(pa.float64()) if pa.types.is_floating(kind) else column


def as_pyarrow_reads(file: Path) -> pa.Table:
    """The CSV by another reader, empty text as null, postcodes as text; whole, so that a column's type is one."""
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    texts = {"zip_code": pa.string()}
    options = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True, column_types=texts)
    return pa_csv.read_csv(pa.BufferReader(data), pa_csv.ReadOptions(block_size=1 << 28), convert_options=options)


@pytest.mark.parametrize("memory", ["2MiB", "1GiB"])
@pytest.mark.parametrize("name", FILES)
def test_csv_reads_back_as_it_was(stores: Stores, name: str, memory: str) -> None:
    file, dims = path_of(FILES[name][0]), FILES[name][1]
    a = gs.io.from_csv(stores("a"), file, dims, context=SMALL if memory == "2MiB" else LARGE, block_bytes="256KiB")
    expected = as_pyarrow_reads(file)
    names = [*dims, *(c for c in expected.column_names if c not in dims)]
    assert (a.dims, a.schema_names) == (tuple(dims), names[len(dims) :])
    wanted = rows_of(expected, names)
    assert rows_of(a.read(order="any").to_arrow(), names) == wanted
    assert rows_of(a.scan(batch_bytes="128KiB", order="global").to_arrow(), names) == wanted
    assert a.version == 2, "one commit"
    nulls = {c for c in names if expected.column(c).null_count}
    assert {attr.name for attr in a.schema.attrs if attr.nullable} == nulls
    assert a.fragments.num_rows <= 8, "what memory did not hold was merged"
    assert a.verify()["damage"] == []


def test_ships_in_a_box_are_those_that_pandas_finds(stores: Stores) -> None:
    file = path_of(FILES["ais-2022"][0])
    a = gs.io.from_csv(stores("a"), file, SHIPS, context=SMALL)
    frame = pd.read_csv(file)
    for low, high in [
        ((-95.0, 28.0), (-88.0, 31.0)),
        ((-74.3, 40.4), (-73.8, 40.9)),
        ((-180.0, -90.0), (-150.0, 20.0)),
    ]:
        low = (max(low[0], a.domain[0][0]), max(low[1], a.domain[1][0]))
        inside = frame[frame.LON.between(low[0], high[0]) & frame.LAT.between(low[1], high[1])]
        found = a.read({"LON": (low[0], high[0]), "LAT": (low[1], high[1])}, ["MMSI", "SOG"], order="row").to_pandas()
        assert found.LON.is_monotonic_increasing
        key = ["LON", "LAT", "MMSI", "SOG"]
        wanted = inside[key].sort_values(key).reset_index(drop=True)
        pd.testing.assert_frame_equal(found.sort_values(key).reset_index(drop=True), wanted, check_dtype=False)


def test_both_ais_years_go_into_one_array(stores: Stores) -> None:
    """Appending: a second load into an array that exists adds its rows; `attrs` leaves out columns that it lacks."""
    a = gs.io.from_csv(stores("a"), path_of(FILES["ais-2022"][0]), SHIPS, attrs=["MMSI", "BaseDateTime"], context=SMALL)
    before = len(a.read())
    harbor = path_of(FILES["ny-harbor"][0])
    again = gs.io.from_csv(a.uri, harbor, attrs=a.schema_names, context=LARGE)
    assert len(again.read()) == before + as_pyarrow_reads(harbor).num_rows
    assert len(a.at(version=2).read()) == before


def sparse_of(table: pa.Table, dims: list[gs.Dim], uri: str, context: gs.Context) -> gs.Array:
    """A sparse array for a table's rows."""
    schema = gs.Schema.from_arrow(table.schema, dims, duplicates=True, capacity=1_000)
    return gs.create(uri, schema, context=context)


@pytest.mark.parametrize("form", ["arrow", "pandas"])
def test_flights(stores: Stores, form: str) -> None:
    table = pa.ipc.open_file(path_of("points/flights-200k.arrow")).read_all()
    delay, time = table.column("delay").to_numpy(), table.column("time").to_numpy()
    dims = [
        gs.Dim("delay", (int(delay.min()), int(delay.max())), 50, "int16"),
        gs.Dim("time", (float(time.min()), float(time.max())), 1.0, "float32"),
    ]
    a = sparse_of(table, dims, stores("flights"), SMALL)
    a.write_cells(table if form == "arrow" else table.to_pandas())
    names = table.column_names
    assert rows_of(a.read().to_arrow(), names) == rows_of(table, names)
    late = table.filter(pa.compute.greater_equal(table.column("delay"), 120))
    assert rows_of(a.read({"delay": (120, None)}).to_arrow(), names) == rows_of(late, names)
    low, high = a.nonempty_domain[1]
    assert len(a.read({"time": (low, high)})) == table.num_rows, "bounds that were read are bounds to read with"


@pytest.mark.parametrize("form", ["arrow", "pandas"])
def test_taxis(stores: Stores, form: str) -> None:
    table = pq.read_table(path_of("points/nyc_taxi_wide.parq"))
    where = ["pickup_x", "pickup_y"]
    dims = []
    for name in where:
        values = table.column(name).to_numpy()
        dims.append(gs.Dim(name, (float(values.min()), float(values.max())), 500.0, "float32"))
    a = sparse_of(table, dims, stores("taxis"), LARGE)
    # The file's own pandas metadata would make one of its columns the index.
    a.write_cells(table if form == "arrow" else table.to_pandas(ignore_metadata=True))
    names = [n for n in table.column_names if not pa.types.is_timestamp(table.column(n).type)]
    assert rows_of(a.read().to_arrow(), names) == rows_of(table, names)
    pickups = "tpep_pickup_datetime"
    ticks = table.column(pickups).cast(pa.int64()).to_pylist()
    assert sorted(a.read().to_arrow().column(pickups).cast(pa.int64()).to_pylist()) == sorted(ticks)


_LAS_FIELDS = (
    "x:<i4 y:<i4 z:<i4 intensity:<u2 returns:u1 classification:u1 angle:i1 user:u1 source:<u2 gps_time:<f8 "
    "red:<u2 green:<u2 blue:<u2"
)
LAS_POINT = np.dtype([tuple(field.split(":")) for field in _LAS_FIELDS.split()])


def las_points(file: Path) -> tuple[Any, Any, Any]:
    """The points of a LAS 1.2 file of format 3, and the scale and offset of its coordinates."""
    data = file.read_bytes()
    assert (data[:4], data[24:26]) == (b"LASF", b"\x01\x02")
    start, _, kind, width, count = struct.unpack_from("<IIBHI", data, 96)
    assert (kind, width) == (3, LAS_POINT.itemsize)
    numbers = struct.unpack_from("<6d", data, 131)
    return np.frombuffer(data, LAS_POINT, count, start), np.array(numbers[:3]), np.array(numbers[3:])


@pytest.mark.parametrize("order", ["row", "col", "global"])
def test_a_point_cloud(stores: Stores, order: str) -> None:
    points, scale, offset = las_points(path_of("points/autzen_trim.las"))
    places = {axis: points[axis] * scale[i] + offset[i] for i, axis in enumerate("xyz")}
    dims = [gs.Dim(axis, (float(v.min()), float(v.max())), 25.0, "float64") for axis, v in places.items()]
    names = ["intensity", "classification", "gps_time", "red", "green", "blue"]
    schema = gs.Schema(dims, [gs.Attr(n, LAS_POINT[n]) for n in names], sparse=True, duplicates=True, capacity=5_000)
    a = gs.create(stores("cloud"), schema, context=SMALL)
    half = len(points) // 2
    for part in (slice(None, half), slice(half, None)):
        a.write_cells({n: v[part] for n, v in places.items()}, {n: points[n][part] for n in names})
    found = a.read(order=order).to_numpy()
    columns = {**places, **{n: points[n] for n in names}}
    by_all = np.lexsort(list(columns.values()))
    found_by_all = np.lexsort(list(found.values()))
    for name, values in columns.items():
        assert np.array_equal(found[name][found_by_all], values[by_all]), name
    low, high = [float(np.quantile(places["z"], q)) for q in (0.4, 0.6)]
    inside = (places["z"] >= low) & (places["z"] <= high)
    assert int(a.read({"z": (low, high)}, "intensity")["intensity"].astype(np.int64).sum()) == int(
        points["intensity"][inside].astype(np.int64).sum()
    )


@pytest.mark.parametrize("name", ["lcmap_2019.tif", "rasterio_RGB.byte.tif", "rasterio_shade.tif"])
def test_images(stores: Stores, name: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow reads the images")
    with image.open(path_of(f"dense-images/{name}")) as opened:
        pixels = np.asarray(opened)
    uri = stores("image")
    assert np.array_equal(gs.array(uri, pixels, context=SMALL)[...], pixels)
    tiled = gs.array(uri, pixels, tile=100, overwrite=True, context=SMALL)
    boxes = [np.s_[10:333, 7:8], np.s_[::17, ::-3], np.s_[-50:, 100:], np.s_[5]]
    for box in boxes:
        assert np.array_equal(tiled[box], pixels[box])
    tiled[100:200, 300:310] = 0
    changed = pixels.copy()
    changed[100:200, 300:310] = 0
    assert np.array_equal(tiled[...], changed)


def test_a_relief(stores: Stores) -> None:
    netcdf = pytest.importorskip("scipy.io", reason="scipy reads NetCDF-3")
    with netcdf.netcdf_file(path_of("netcdf/ferret_etopo60.cdf"), mmap=False) as file:
        relief = np.array(file.variables["ROSE"].data)
    assert relief.dtype == np.dtype(">f4")
    a = gs.array(stores("relief"), relief, tile=(50, 70), context=SMALL)
    assert a.dtype == np.dtype("float32")
    assert np.array_equal(a[...], relief.astype("<f4"), equal_nan=True)
    assert np.array_equal(a.loc[30:61, 100:300], relief[30:61, 100:300], equal_nan=True)


# Files that are not what they should be.


def spoiled(file: Path, target: Path, row: int, column: int, text: str) -> int:
    """A copy with one value replaced; the line that it is on."""
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    lines = data.decode().splitlines()
    values = lines[row].split(",")
    values[column] = text
    lines[row] = ",".join(values)
    target.write_text("\n".join(lines) + "\n")
    return row + 1


@pytest.mark.parametrize(("column", "name"), [(2, "LAT"), (4, "SOG"), (0, "MMSI"), (1, "BaseDateTime")])
def test_a_bad_value_in_a_late_row_is_named(tmp_path: Path, stores: Stores, column: int, name: str) -> None:
    file, uri = tmp_path / "bad.csv", stores("a")
    good = path_of(FILES["ais-2022"][0])
    schema = gs.io.from_csv(f"{uri}.good", good, SHIPS, context=LARGE).schema
    line = spoiled(good, file, 87_654, column, "not a value")
    with pytest.raises(errors.InputError) as raised:
        gs.io.from_csv(uri, file, schema=schema, context=SMALL, block_bytes="512KiB")
    for part in (str(file), f"line {line}", repr(name)):
        assert part in str(raised.value)
    assert not Path(uri).exists()


def test_a_truncated_file_leaves_nothing_behind(tmp_path: Path) -> None:
    file, uri = tmp_path / "cut.csv.gz", str(tmp_path / "a.gs")
    whole = path_of(FILES["ais-2022"][0]).read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(errors.InputError, match=r"cut\.csv\.gz.*decompress"):
        gs.io.from_csv(uri, file, SHIPS, context=SMALL)
    assert not Path(uri).exists()
    a = gs.io.from_csv(uri, path_of(FILES["ais-2022"][0]), SHIPS, context=SMALL)
    before, kept = a.version, sorted(p for p in Path(uri).rglob("*.frag"))
    with pytest.raises(errors.InputError, match=r"cut\.csv\.gz.*decompress"):
        gs.io.from_csv(uri, file, context=SMALL)
    assert a.refresh() == before
    assert sorted(p for p in Path(uri).rglob("*.frag")) == kept, "fragments of a failed load are removed"
