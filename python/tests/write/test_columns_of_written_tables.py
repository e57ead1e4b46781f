"""Tables given to `write_cells` with a column too many or too few."""

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gridstone as gs

FORMS: list[Any] = [pa.table, lambda d: pa.record_batch(d), pd.DataFrame, pl.DataFrame, dict]


def made(uri: str, *, sparse: bool = True) -> gs.Array:
    attrs = [
        gs.Attr("v", "int64"),
        gs.Attr("w", "float64", nullable=True),
        gs.Attr("k", "string", nullable=True, categories=["a"]),
        gs.Attr("f", "int8", fill=7),
    ]
    return gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], attrs, sparse=sparse))


@pytest.mark.parametrize("form", FORMS)
def test_a_column_that_the_array_lacks_is_named(store_uri: str, form: Any) -> None:
    a = made(store_uri)
    for cells in ({"x": [1], "v": [1], "new": [1]}, {"x": [1], "v": [1], "w": [0.5], "k": ["a"], "f": [1], "new": [1]}):
        with pytest.raises(
            gs.errors.InputError, match=r"column 'new'.* there are 'v', 'w', 'k', 'f'; evolve=True adds it"
        ):
            a.write_cells(form(cells))
    assert a.version == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_column_that_the_table_lacks_is_null_or_fill(store_uri: str, form: Any) -> None:
    a = made(store_uri)
    a.write_cells(form({"x": [1, 2], "v": [1, 2]}))
    with a.writer(order="any") as w:
        w.append(form({"v": [3], "x": [3], "f": [1]}))
    found = a.read(order="row").to_arrow().to_pydict()
    assert found == {"x": [1, 2, 3], "v": [1, 2, 3], "w": [None] * 3, "k": [None] * 3, "f": [7, 7, 1]}
    with pytest.raises(gs.errors.InputError, match="no values for attribute 'v'"):
        a.write_cells(form({"x": [4], "w": [1.0]}))


def test_a_dense_array_takes_some_of_the_columns(store_uri: str) -> None:
    a = made(store_uri, sparse=False)
    a.write_cells({"x": [1]}, {"w": [0.5]})
    a.write_cells(pa.table({"x": [1], "v": [3]}))
    assert a["w"][1] == 0.5 and a["v"][1] == 3
