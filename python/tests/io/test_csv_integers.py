"""Whole numbers in CSV keep all their digits, whatever type of integers holds them, or none."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone import io

BLOCKS = [1, 12, 1 << 20]
"""Each row a block of its own; some rows; all of them."""


def put(folder: Path, text: str, name: str = "a.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def load(uri: str, files: Any, **options: Any) -> tuple[gs.Array, dict[str, list[Any]]]:
    array = io.from_csv(uri, files, dims=["x"], **options)
    return array, {name: values.tolist() for name, values in array.read().to_numpy().items()}


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["9223372036854775807", "-9223372036854775808"], "int64"),
        (["9223372036854775809", "9007199254740993"], "uint64"),
        (["9007199254740993", "", "18446744073709551615"], "uint64"),
        (['"18446744073709551615"', "0"], "uint64"),
        (["-1", "9223372036854775808"], "string"),
        (["5", "18446744073709551616", ""], "string"),
        (["-9223372036854775809", "1"], "string"),
        (["007", "9" * 80], "string"),
        (["1", "9" * 400], "string"),
        (["9223372036854775809", "b"], "string"),
        (["9223372036854775809", "0.5"], "float64"),
        (["18446744073709551616", "-1", "0.5"], "float64"),
        (["1e300", "18446744073709551617"], "float64"),
        (["1e300", "7"], "float64"),
    ],
)
def test_whole_numbers_as_attributes(
    tmp_path: Path, store_uri: str, block_bytes: int, values: list[str], dtype: str
) -> None:
    rows = "".join(f"{row},{value}\n" for row, value in enumerate(values))
    array, found = load(store_uri, put(tmp_path, "x,v\n" + rows), block_bytes=block_bytes)
    assert (array.schema.attrs[0].dtype, array.schema.attrs[0].nullable) == (dtype, "" in values)
    read = {"string": str, "float64": float}.get(dtype, int)
    assert found["v"] == [read(value.strip('"')) if value else None for value in values]


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_whole_numbers_as_coordinates_stay_apart(tmp_path: Path, store_uri: str, block_bytes: int) -> None:
    ids = [7, 2**64 - 1, 2**64 - 2, 2**63]
    text = "x,v\n" + "".join(f"{at},{row}\n" for row, at in enumerate(ids))
    array, found = load(store_uri, put(tmp_path, text), duplicates=False, block_bytes=block_bytes)
    assert array.schema.dims[0].dtype == "uint64" and array.domain == ((7, 2**64 - 1),)
    assert found == {"x": sorted(ids), "v": [0, 3, 2, 1]}
    assert array.read({"x": (2**64 - 2, 2**64 - 2)})["v"].tolist() == [2]


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("ids", [["18446744073709551616", "-1"], ["-1", "18446744073709551615", "3"]])
@pytest.mark.parametrize("sparse", [True, False])
def test_coordinates_that_no_integers_hold_are_refused(
    tmp_path: Path, store_uri: str, block_bytes: int, ids: list[str], sparse: bool
) -> None:
    file = put(tmp_path, "x,v\n" + "".join(f"{at},1\n" for at in ids))
    with pytest.raises(gs.errors.InputError, match=r"column 'x' has whole numbers from -1 to 1844674407370955161\d,"):
        load(store_uri, file, sparse=sparse, block_bytes=block_bytes)
    assert not gs.exists(store_uri)
    if sparse:
        schema = gs.Schema([gs.Dim("x", dtype="string", max_bytes=24)], [gs.Attr("v", "int8")], sparse=True)
        assert io.from_csv(store_uri, file, schema=schema).read()["x"].tolist() == sorted(ids)


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_coordinates_among_decimals_are_floats(tmp_path: Path, stores: Stores, block_bytes: int) -> None:
    for name, large in (("a", 2**64 - 2), ("b", 2**64), ("c", 10**30 + 1)):
        file = put(tmp_path, f"x,v\n{large},1\n-3.5,2\n")
        array, found = load(stores(name), file, block_bytes=block_bytes)
        assert array.domain == ((-3.5, float(large)),) and found["v"] == [2, 1]


def test_the_order_of_files_does_not_matter(tmp_path: Path, stores: Stores) -> None:
    texts = {"small": "x,v\n1,5\n", "large": "x,v\n2,9223372036854775809\n", "none": "x,v\n3,\n"}
    for at, names in enumerate(itertools.permutations(texts)):
        files = [put(tmp_path, texts[name], f"{name}.csv") for name in names]
        array, found = load(stores(str(at)), files)
        assert array.schema.attrs[0].dtype == "uint64" and found["v"] == [5, 9223372036854775809, None]
    texts["negative"] = "x,v\n4,-1\n"
    for at, names in enumerate(itertools.permutations(texts)):
        files = [put(tmp_path, texts[name], f"{name}.csv") for name in names]
        array, found = load(stores(f"n{at}"), files)
        assert array.schema.attrs[0].dtype == "string" and found["v"] == ["5", "9223372036854775809", None, "-1"]


def test_rows_left_out_do_not_count(tmp_path: Path, store_uri: str) -> None:
    rejected: list[io.Rejected] = []
    file = put(tmp_path, "x,v\n1,9223372036854775809\n,2\n3,4,5\n4,1\n")
    array, found = load(store_uri, file, on_error="collect", rejected=rejected, block_bytes=8)
    assert array.schema.attrs[0].dtype == "uint64" and [row.line for row in rejected] == [3, 4]
    assert found == {"x": [1, 4], "v": [9223372036854775809, 1]}


def test_words_for_null_among_large_numbers(tmp_path: Path, store_uri: str) -> None:
    file = put(tmp_path, "x,v\n1,NA\n2, 18446744073709551615 \n")
    array, found = load(store_uri, file, nulls=["NA"])
    assert array.schema.attrs[0].dtype == "uint64" and found["v"] == [None, 2**64 - 1]


def test_what_was_written_comes_back(tmp_path: Path, stores: Stores) -> None:
    values = np.array([0, 2**63, 2**64 - 1], np.uint64)
    schema = gs.Schema([gs.Dim("x", (0, 2**64 - 10), dtype="uint64")], [gs.Attr("v", "uint64")], sparse=True)
    a = gs.create(stores("a"), schema)
    a.write_cells({"x": np.array([0, 2**63 + 1, 2**64 - 11], np.uint64)}, values)
    io.to_csv(a, tmp_path / "a.csv")
    array, found = load(stores("b"), tmp_path / "a.csv")
    assert [array.schema.dims[0].dtype, array.schema.attrs[0].dtype] == ["uint64", "uint64"]
    assert found == {name: column.tolist() for name, column in a.read().to_numpy().items()}
    table = io.read_csv(tmp_path / "a.csv", schema)
    assert table.column("v").to_pylist() == values.tolist()


def test_advice_tells_the_types_that_a_load_makes(tmp_path: Path) -> None:
    text = "x,u,s,f\n1,9223372036854775809,-1,0.5\n2,1,9223372036854775809,9223372036854775809\n"
    for file in (put(tmp_path, text), put(tmp_path, text.replace(",", "\t"), "a.tsv")):
        found = [(attr.name, attr.dtype) for attr in gs.advise(file, dims=["x"]).schema.attrs]
        assert found == [("u", "uint64"), ("s", "string"), ("f", "float64")]
