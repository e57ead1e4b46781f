"""Every real table, matrix and array of a kind that `gridstone.io` loads goes in and comes back equal, in other formats
too.

The files are in $GRIDSTONE_TEST_DATA, or in ../shared/data beside the repository.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import Stores

import gridstone as gs
from gridstone import io

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA") or ROOT.parent / "shared" / "data")
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data in {DATA}; set GRIDSTONE_TEST_DATA to a folder that has it"
)
BUDGETS = [gs.Context("2MiB", 2, durability="close"), gs.Context("1GiB", 2, durability="close")]

TABLES: dict[str, list[str]] = {
    "ais/AIS_2022_01_03_sample.csv.gz": ["LON", "LAT"],
    "ais/NYHarbor_2020_06_30_first_hour.csv": ["BaseDateTime", "MMSI"],
    "ais/VirginiaBeach_2020_06_04_to_06_filtered.csv.gz": ["LON", "LAT", "BaseDateTime"],
    "points/us_zipcodes.csv.gz": ["longitude", "latitude"],
    "points/earthquakes-23k.csv": ["Longitude", "Latitude"],
    "points/flights-200k.arrow": ["delay", "distance"],
    "points/nyc_taxi_wide.parq": ["pickup_x", "pickup_y"],
    "nasa/MOD04_L2.A2001066.0000.points.csv.gz": ["row", "col"],
    "astronomy/ztf_000250_zg_c01_q1_dr5.parquet": ["objra", "objdec"],
}
ZTF_FLAT = ["objectid", "filterid", "fieldid", "rcid", "nepochs"]


def path_of(name: str) -> Path:
    """A file of the data; the test is skipped where it is missing."""
    file = DATA / name
    if not file.is_file():
        pytest.skip(f"no file {file}")
    return file


def loaded(name: str, uri: str, context: gs.Context) -> gs.Array:
    file, dims = path_of(name), TABLES[name]
    if name.endswith((".csv", ".csv.gz")):
        return io.from_csv(uri, file, dims, context=context)
    if name.endswith(".arrow"):
        return io.from_feather(uri, file, dims, context=context)
    attrs = ZTF_FLAT if "ztf" in name else None
    return io.from_parquet(uri, file, dims, context=context, attrs=attrs)


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    """The rows as a sorted list of their texts."""
    columns = []
    for column in table.columns:
        plain = column.cast(pa.timestamp("us")).cast(pa.int64()) if pa.types.is_temporal(column.type) else column
        columns.append(list(map(repr, plain.to_pylist())))
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("name", [n for n in TABLES if not n.endswith((".csv", ".gz"))])
@pytest.mark.parametrize("budget", [0, 1])
def test_tables_are_what_pyarrow_reads(store_uri: str, name: str, budget: int) -> None:
    file, dims = path_of(name), TABLES[name]
    expected = pa.ipc.open_file(file).read_all() if name.endswith(".arrow") else pq.read_table(file)
    array = loaded(name, store_uri, BUDGETS[budget])
    names = [*dims, *array.schema_names]
    assert rows_of(array.read().to_arrow()) == rows_of(expected.select(names))
    for place, dim in enumerate(dims):
        ends = pa.compute.min_max(expected[dim]).as_py()
        assert array.domain[place] == (ends["min"], ends["max"])
    nullable = {attr.name for attr in array.schema.attrs if attr.nullable}
    assert nullable == {n for n in array.schema_names if expected[n].null_count}


@pytest.mark.parametrize("name", TABLES)
def test_tables_through_every_format(tmp_path: Path, stores: Stores, store_uri: str, name: str) -> None:
    """What comes out of one format goes into the next, and is the same in the end."""
    first = loaded(name, store_uri, BUDGETS[1])
    io.to_parquet(first, tmp_path / "t.parquet", order="global")
    second = io.from_parquet(stores("2"), tmp_path / "t.parquet", context=BUDGETS[0])
    io.to_feather(second, tmp_path / "t.arrow", order="any")
    third = io.from_feather(stores("3"), tmp_path / "t.arrow", context=BUDGETS[0])
    io.to_csv(third, tmp_path / "t.csv.zst", order="col")
    fourth = io.from_csv(stores("4"), tmp_path / "t.csv.zst", schema=third.schema, context=BUDGETS[0])
    assert first.schema == second.schema == third.schema == fourth.schema
    expected = rows_of(first.read().to_arrow())
    for array in (second, third, fourth):
        assert rows_of(array.read().to_arrow()) == expected
    assert array.verify()["damage"] == []


@pytest.mark.parametrize(
    "name", ["points/flights-200k.arrow", "points/earthquakes-23k.csv", "ais/NYHarbor_2020_06_30_first_hour.csv"]
)
def test_tables_through_data_frames(store_uri: str, stores: Stores, name: str) -> None:
    first = loaded(name, store_uri, BUDGETS[1])
    expected = rows_of(first.read().to_arrow())
    frames: list[tuple[Callable[..., gs.Array], Any]] = [(io.from_pandas, first.read().to_pandas())]
    polars = pytest.importorskip("polars")
    frames += [(io.from_polars, first.read().to_polars()), (io.from_polars, first.scan().to_polars().lazy())]
    frames += [(io.from_arrow, first.scan(batch_bytes="100KB")), (io.from_arrow, polars.DataFrame(first.read()))]
    for place, (load, frame) in enumerate(frames):
        array = load(stores(str(place)), frame, TABLES[name], schema=first.schema)
        assert rows_of(array.read().to_arrow()) == expected


def test_lists_of_light_curves(store_uri: str) -> None:
    file = path_of("astronomy/ztf_000250_zg_c01_q1_dr5.parquet")
    expected, by = pq.read_table(file), [("objra", "ascending"), ("objdec", "ascending"), ("objectid", "ascending")]
    array = io.from_parquet(store_uri, file, ["objra", "objdec"])
    assert array.schema.attr("hmjd").dtype == "list[float32]"
    found, expected = array.read().to_arrow().sort_by(by), expected.sort_by(by)
    for name in expected.column_names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name


@pytest.mark.parametrize("at", [0.2, 0.5, 0.9])
@pytest.mark.parametrize(
    "name", ["points/nyc_taxi_wide.parq", "points/flights-200k.arrow", "cutouts/cutouts_shared.npy"]
)
def test_truncated_files(tmp_path: Path, store_uri: str, name: str, at: float) -> None:
    data = path_of(name).read_bytes()
    file = tmp_path / Path(name).name
    file.write_bytes(data[: int(len(data) * at)])
    with pytest.raises(gs.errors.InputError, match=file.name):
        if name.endswith(".npy"):
            io.from_npy(store_uri, file)
        else:
            (io.from_feather if name.endswith(".arrow") else io.from_parquet)(store_uri, file, TABLES[name])
    assert not gs.exists(store_uri)


@pytest.mark.parametrize("name", ["cutouts/cutouts_shared.npy", "cutouts/cutouts_shared_candid.npy"])
@pytest.mark.parametrize("budget", [0, 1])
def test_npy(tmp_path: Path, stores: Stores, store_uri: str, name: str, budget: int) -> None:
    values = np.load(path_of(name))
    array = io.from_npy(store_uri, path_of(name), context=BUDGETS[budget])
    np.testing.assert_array_equal(array[...], values)
    assert array.fragments.num_rows == 1 and array.verify()["damage"] == []
    io.to_npy(array, tmp_path / "o.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), values)
    assert io.to_npz(array, tmp_path / "o.npz") == ["value"]
    back = io.from_npz(stores("b"), tmp_path / "o.npz", context=BUDGETS[0])
    assert back.schema == array.schema
    np.testing.assert_array_equal(back[...], values)


MATRICES = sorted(str(f.relative_to(DATA)) for f in DATA.rglob("*.mtx*")) if DATA.is_dir() else []


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(tmp_path: Path, stores: Stores, store_uri: str, name: str) -> None:
    mmread, sparse = pytest.importorskip("scipy.io").mmread, pytest.importorskip("scipy.sparse")
    try:
        expected = mmread(path_of(name))
    except (ValueError, OverflowError, IndexError):
        with pytest.raises(gs.errors.InputError, match=Path(name).name):
            io.from_mtx(store_uri, path_of(name))
        assert not gs.exists(store_uri)
        return
    array = io.from_mtx(store_uri, path_of(name), context=BUDGETS[0])
    found = array.read().to_scipy()
    assert array.sparse != isinstance(expected, np.ndarray) and found.shape == expected.shape
    assert found.dtype == expected.dtype

    def cells(matrix: Any) -> Any:
        """Sorted triplets, repeated places added up."""
        made = sparse.coo_array(matrix)
        made.sum_duplicates()
        return np.stack([*(along.astype(float) for along in made.coords), made.data.astype(float)])

    np.testing.assert_array_equal(cells(found), cells(expected))
    io.to_mtx(array, tmp_path / "o.mtx")
    np.testing.assert_array_equal(cells(mmread(tmp_path / "o.mtx")), cells(expected))
    if not array.sparse:
        return
    io.to_npz(array, tmp_path / "o.npz")
    columns = io.from_npz(stores("c"), tmp_path / "o.npz", schema=array.schema, sparse=True)
    assert rows_of(columns.read().to_arrow()) == rows_of(array.read().to_arrow())
    for form in ("csr", "csc"):
        again = io.from_scipy(stores(form), expected.asformat(form), context=BUDGETS[0])
        assert rows_of(again.read().to_arrow()) == rows_of(array.read().to_arrow())
