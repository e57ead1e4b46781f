"""Real lists of texts, real tables of texts, and a real table beside another reader: in and back, equal."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from places import Stores
from test_real_tables import DATA, path_of, pytestmark, rows_of

import gridstone as gs
from gridstone import io

__all__ = ["pytestmark"]

TABLES_OF_TEXTS = (
    sorted(str(file.relative_to(DATA)) for file in DATA.rglob("10x_data/**/*.tsv*")) if DATA.is_dir() else []
)


def lines_of(file: Path) -> list[list[str]]:
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return [line.split("\t") for line in data.decode().splitlines()]


def test_a_list_of_cities(store_uri: str) -> None:
    cities = path_of("zarr/cities.csv").read_text("utf-8").splitlines()
    array = gs.array(store_uri, np.array(cities, object))
    assert array.shape == (len(cities),) and array[...].tolist() == cities
    assert array[40_000:47_000:999].tolist() == cities[40_000:47_000:999]
    assert array.read(where="value = 'Tokyo'")["d0"].tolist() == [i for i, city in enumerate(cities) if city == "Tokyo"]


def test_a_list_has_no_coordinates(store_uri: str) -> None:
    with pytest.raises(gs.errors.SchemaError, match=r"gridstone\.array"):
        io.from_csv(store_uri, path_of("zarr/cities.csv"), ["column_1"], header=False)
    assert not gs.exists(store_uri)


@pytest.mark.parametrize("name", TABLES_OF_TEXTS)
def test_names_of_genes_and_cells(stores: Stores, name: str) -> None:
    file = path_of(name)
    lines = lines_of(file)
    width = len(lines[0])
    for column in range(width):
        values = [line[column] for line in lines]
        assert gs.array(stores(str(column)), np.array(values, object))[...].tolist() == values
    if width > 1:
        table = io.from_csv(stores("t"), file, ["column_1"], header=False, delimiter="\t", duplicates=True)
        found = table.read().to_arrow()
        rows = sorted(tuple(map(str, row)) for row in zip(*(c.to_pylist() for c in found.columns), strict=True))
        assert rows == sorted(map(tuple, lines))


def test_aerosols_beside_another_reader(store_uri: str) -> None:
    file = path_of("nasa/MOD04_L2.A2001066.0000.points.csv.gz")
    array = io.from_csv(store_uri, file, ["row", "col"])
    found, expected = array.read().to_arrow(), pyarrow.csv.read_csv(file)
    assert set(found.column_names) == set(expected.column_names)
    expected = expected.select(found.column_names)
    assert rows_of(found) == rows_of(expected.cast(found.schema))
