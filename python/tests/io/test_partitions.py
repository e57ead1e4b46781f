"""Folders that tell a column: `k=1/part.parquet`."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from places import Stores

import gridstone as gs
from gridstone import io


def put(root: Path, *names: str, **columns: Any) -> Path:
    """Two rows for each folder, in a Parquet and an Arrow file."""
    for row, name in enumerate(names):
        (root / name).mkdir(parents=True)
        table = pa.table({"x": [2 * row, 2 * row + 1], "v": [row, None], **columns})
        pq.write_table(table, root / name / "part.parquet", row_group_size=1)
        pa.feather.write_feather(table, str(root / name / "part.arrow"))
    return root


@pytest.mark.parametrize(
    ("names", "dtype"),
    [
        (["k=1"], "int32"),
        (["k=1", "k=-7", "k=2147483647"], "int32"),
        (["k=1", "k=2147483648"], "string"),
        (["k=a", "k=b%20c", "k=x=y"], "string"),
        (["k=1", "k=__HIVE_DEFAULT_PARTITION__"], "int32"),
        (["k=a", "k=__HIVE_DEFAULT_PARTITION__"], "string"),
        (["year=2024/k=1", "year=2025/k=2"], "int32"),
    ],
)
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_folders_are_columns_as_pyarrow_has_them(
    tmp_path: Path, store_uri: str, names: list[str], dtype: str, form: str
) -> None:
    root = put(tmp_path / "hive", *names)
    load = io.from_parquet if form == "parquet" else io.from_feather
    a = load(store_uri, str(root / "**" / f"*.{form}"), dims=["x"])
    k = a.schema.attr("k")
    assert (k.dtype, k.nullable) == (dtype, any("HIVE" in name for name in names))
    files = [str(file) for file in sorted(root.rglob("*.parquet"))]
    known = pads.dataset(files, partitioning="hive", partition_base_dir=str(root)).to_table().sort_by("x")
    found = a.read().to_arrow()
    assert sorted(found.column_names) == sorted(known.column_names)
    assert found.to_pylist() == known.select(found.column_names).to_pylist()


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(("names", "domain"), [(["k=7", "k=-3"], (-3, 7)), (["k=b", "k=aa"], ("", None))])
def test_folders_are_coordinates(
    tmp_path: Path, store_uri: str, names: list[str], domain: object, statistics: bool
) -> None:
    files = sorted(put(tmp_path, *names).glob("*/*.parquet"))
    a = io.from_parquet(store_uri, files, dims=["x", "k"], statistics=statistics)
    assert a.dims == ("x", "k") and (a.schema.dims[1].is_text or a.domain[1] == domain)
    values = [name.removeprefix("k=") for name in names for _ in range(2)]
    assert list(map(str, a.read()["k"].tolist())) == values


def test_folders_are_columns_only_if_they_are_wanted(tmp_path: Path, stores: Stores) -> None:
    files = str(put(tmp_path, "year=1/k=1", "year=1/k=2") / "*" / "*" / "part.parquet")
    a = io.from_parquet(stores("a"), files, dims=["x"], attrs=["v"])
    assert a.schema_names == ["v"]
    io.from_parquet(stores("a"), files, attrs=["v"])
    a.refresh()
    assert len(a.read()) == 8
    b = io.from_parquet(stores("b"), files, dims=["k"], attrs=["year"])
    assert b.read().to_numpy()["k"].tolist() == [1, 1, 2, 2] and b.read()["year"].tolist() == [1] * 4
    schema = gs.Schema([gs.Dim("k", (0, 1))], [gs.Attr("v", "int8", nullable=True)], sparse=True, duplicates=True)
    with pytest.raises(gs.errors.InputError, match=r"k=2/part.parquet, row 0, column 'k': 2 is outside"):
        io.from_parquet(stores("c"), files, schema=schema)


def test_columns_of_the_files_themselves_stay(tmp_path: Path, store_uri: str) -> None:
    files = str(put(tmp_path, "k=1", "k=2", k=[5, 6]) / "*" / "part.parquet")
    assert io.from_parquet(store_uri, files, dims=["x"]).read()["k"].tolist() == [5, 6, 5, 6]


def test_folders_of_some_files_are_none(tmp_path: Path, store_uri: str) -> None:
    files = str(put(tmp_path, "k=1", "j=2", "plain", "=3") / "*" / "part.parquet")
    a = io.from_parquet(store_uri, files, dims=["x"])
    assert a.schema_names == ["v"] and len(a.read()) == 8
