"""The load that brings an attribute's first null makes it nullable, in the same commit."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from places import Stores

import gridstone as gs
from gridstone import io

FIRST = pa.table({"x": [1, 2], "v": [10, 20], "f": [0.5, 1.5], "b": [True, False], "s": ["p", "q"]})
NEXT = pa.table({"x": [3, 4], "v": [None, 40], "f": [2.5, None], "b": [None, True], "s": ["r", "s"]})


def cells(array: gs.Array) -> dict[str, list[Any]]:
    array.refresh()
    found: dict[str, list[Any]] = array.read(order="row").to_arrow().to_pydict()
    return found


def sources(tmp_path: Path) -> dict[str, tuple[Any, Any]]:
    pyarrow.csv.write_csv(NEXT, tmp_path / "n.csv")
    pa.parquet.write_table(NEXT, tmp_path / "n.parquet")
    return {
        "table": (io.from_arrow, NEXT),
        "stream": (io.from_arrow, NEXT.to_reader()),
        "csv": (io.from_csv, tmp_path / "n.csv"),
        "parquet": (io.from_parquet, tmp_path / "n.parquet"),
        "polars": (io.from_polars, pl.from_arrow(NEXT)),
        "lazy": (io.from_polars, pl.from_arrow(NEXT).lazy()),
    }


@pytest.mark.parametrize("kind", ["table", "stream", "csv", "parquet", "polars", "lazy"])
def test_the_first_null(tmp_path: Path, stores: Stores, kind: str) -> None:
    a = io.from_arrow(stores("a"), FIRST, ["x"], domain={"x": (0, 9)})
    assert not any(attr.nullable for attr in a.schema.attrs)
    load, source = sources(tmp_path)[kind]
    b = load(stores("a"), source)
    assert b.version == a.version + 1
    assert {attr.name: attr.nullable for attr in b.schema.attrs} == {"v": True, "f": True, "b": True, "s": False}
    assert cells(b) == {
        "x": [1, 2, 3, 4],
        "v": [10, 20, None, 40],
        "f": [0.5, 1.5, 2.5, None],
        "b": [True, False, None, True],
        "s": ["p", "q", "r", "s"],
    }
    assert not gs.open(stores("a"), version=a.version).schema.attr("v").nullable


def test_nan_of_pandas_stays_in_floats(store_uri: str) -> None:
    io.from_arrow(store_uri, FIRST, ["x"], domain={"x": (0, 9)})
    frame = pd.DataFrame({"x": [3], "v": pd.array([None], "Int64"), "f": [np.nan], "b": [True], "s": ["r"]})
    a = io.from_pandas(store_uri, frame)
    assert a.schema.attr("v").nullable and not a.schema.attr("f").nullable
    assert np.isnan(cells(a)["f"][2]) and cells(a)["v"][2] is None


def test_rows_of_later_pieces_and_of_small_budgets(tmp_path: Path, store_uri: str) -> None:
    rows = 60_000
    small = gs.Context("64MiB", threads=2)
    whole = pa.table({"x": np.arange(rows), "v": np.arange(rows), "w": np.arange(rows) * 0.5})
    io.from_arrow(store_uri, whole, ["x"], duplicates=False, context=small, domain={"x": (0, 10 * rows)})
    mask = np.zeros(rows, bool)
    mask[-1] = True
    text = pa.table(
        {"x": np.arange(rows) + rows, "v": pa.array(np.arange(rows), mask=mask), "w": np.arange(rows) * 0.5}
    )
    text.to_pandas().astype({"v": "Int64"}).to_csv(tmp_path / "n.csv", index=False)
    seen: list[tuple[int, int]] = []
    a = io.from_csv(
        store_uri, tmp_path / "n.csv", block_bytes=1 << 16, context=small, progress=lambda *told: seen.append(told)
    )
    assert a.schema.attr("v").nullable and not a.schema.attr("w").nullable and len(a.read()) == 2 * rows
    assert a.read({"x": (2 * rows - 1, 2 * rows - 1)}).to_arrow().column("v").to_pylist() == [None]
    assert seen[-1][0] == seen[-1][1] and all(done <= total for done, total in seen)


def test_rejected_rows_do_not_count(tmp_path: Path, store_uri: str) -> None:
    io.from_arrow(store_uri, FIRST.select(["x", "v", "f"]), ["x"], domain={"x": (0, 9)})
    (tmp_path / "n.csv").write_text("x,v,f\n3,,1\n4,oops,2\n99,,\n5,7,\n")
    rejected: list[io.Rejected] = []
    a = io.from_csv(store_uri, tmp_path / "n.csv", on_error="collect", rejected=rejected, grow=False)
    assert [row.line for row in rejected] == [3, 4]
    assert cells(a)["v"] == [10, 20, None, 7] and cells(a)["f"] == [0.5, 1.5, 1.0, None]


def test_a_dense_array_says_what_to_do(tmp_path: Path, store_uri: str) -> None:
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 3))], [gs.Attr("v", "int64")]))
    with pytest.raises(gs.errors.InputError, match="row 1, column 'v': the value is null"):
        io.from_arrow(store_uri, pa.table({"x": [0, 1], "v": [1, None]}))
    a.refresh()
    assert a.version == 1 and not a.schema.attrs[0].nullable


def test_an_added_attribute_of_a_sparse_array_stays_as_it_is(store_uri: str) -> None:
    a = io.from_arrow(store_uri, FIRST.select(["x", "v"]), ["x"], domain={"x": (0, 9)})
    a.alter(add=gs.Attr("n", "int64"))
    with pytest.raises(gs.errors.InputError, match="row 1, column 'n': the value is null"):
        io.from_arrow(store_uri, pa.table({"x": [3, 4], "v": [1, 2], "n": [1, None]}))
    assert gs.open(store_uri).version == a.version


def test_a_load_with_a_key_is_done_once(store_uri: str) -> None:
    io.from_arrow(store_uri, FIRST.select(["x", "v"]), ["x"], domain={"x": (0, 9)})
    more = pa.table({"x": [3, 4], "v": [None, 4], "w": ["a", None]})
    versions = [io.from_arrow(store_uri, more, evolve=True, commit_key="day 2").version for _ in range(2)]
    gs.open(store_uri, mode="r+").delete({"x": (1, 1)})
    again = io.from_arrow(store_uri, more, evolve=True, commit_key="day 2")
    assert versions[0] == versions[1] and cells(again)["x"] == [2, 3, 4] and again.schema_names == ["v", "w"]
    with pytest.raises(gs.errors.ConflictError, match="day 2"):
        io.from_arrow(store_uri, pa.table({"x": [3], "v": [None], "w": ["b"]}), evolve=True, commit_key="day 2")


def test_another_change_of_the_schema_meanwhile_is_no_failure(stores: Stores, monkeypatch: Any) -> None:
    io.from_arrow(stores("a"), FIRST.select(["x", "v"]), ["x"], domain={"x": (0, 9)})
    fill, others = io.load._fill, iter(range(2))

    def beside(array: gs.Array, *rest: Any) -> None:
        fill(array, *rest)
        name = next(others, None)
        if name is not None and array.native.in_transaction:
            gs.open(stores("a"), mode="r+").alter(add=gs.Attr(f"other{name}", "int8", nullable=True))

    monkeypatch.setattr(io.load, "_fill", beside)
    a = io.from_arrow(stores("a"), pa.table({"x": [3], "v": [None], "w": [1]}), evolve=True)
    assert a.schema.attr("v").nullable and {"w", "other0"} <= {*a.schema_names} and cells(a)["x"] == [1, 2, 3]


def test_loads_side_by_side_add_columns(stores: Stores) -> None:
    io.from_arrow(stores("a"), FIRST.select(["x", "v"]), ["x"], domain={"x": (0, 9)})
    failed: list[BaseException] = []

    def load(at: int) -> None:
        try:
            io.from_arrow(stores("a"), pa.table({"x": [at], "v": [None], f"w{at % 3}": [at]}), evolve=True)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=load, args=[at]) for at in range(3, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    a = gs.open(stores("a"))
    assert not failed and sorted(a.schema_names) == ["v", "w0", "w1", "w2"]
    found = cells(a)
    assert found["x"] == [1, 2, *range(3, 9)]
    for at in range(3, 9):
        assert found[f"w{at % 3}"][at - 1] == at
