"""`evolve=True` of `write_cells` and of writers in any order: new columns become attributes in the same commit."""

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from places import Stores

import gridstone as gs
from gridstone import io
from gridstone.errors import ConflictError, InputError

FORMS: list[Any] = [pa.table, lambda d: pa.record_batch(d), pd.DataFrame, pl.DataFrame, dict]
DAY = {"x": [2, 1], "v": [20, 10], "w": [0.5, None], "name": ["b", "a"]}


def made(uri: str, *, sparse: bool = True) -> gs.Array:
    a = gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=sparse))
    a.write_cells({"x": [5]}, {"v": [50]})
    return a


def rows(a: gs.Array) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = a.read(order="row").to_arrow().to_pydict()
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_new_column_becomes_a_nullable_attribute_in_the_same_commit(store_uri: str, form: Any) -> None:
    a = made(store_uri)
    with pytest.raises(InputError, match=r"column 'w'.*there are 'v'; evolve=True adds it"):
        a.write_cells(form(DAY))
    assert a.version == 2
    assert a.write_cells(form(DAY), evolve=True, message="day 2") == a.version == 3
    assert a.stats["cells_written"] == 2
    assert rows(a) == {"x": [1, 2, 5], "v": [10, 20, 50], "w": [None, 0.5, None], "name": ["a", "b", None]}
    assert [(attr.name, attr.dtype, attr.nullable) for attr in a.schema.attrs[1:]] == [
        ("w", "float64", True), ("name", "string", True),
    ]  # fmt: skip
    assert a.history()[-1].message == "day 2"
    assert a.at(version=2).schema_names == ["v"]
    # The next day has the columns, and needs nothing.
    assert a.write_cells(form({"x": [7], "v": [1], "w": [1.5], "name": ["z"]}), evolve=True) == 4


def test_attributes_are_those_that_a_load_makes(stores: Stores) -> None:
    day = pa.table(
        {
            "x": [1, 2],
            "v": [1, 2],
            "kind": pa.array(["ferry", "tug"]).dictionary_encode(),
            "t": pa.array([1, None], pa.timestamp("ms")),
            "nothing": pa.nulls(2),
            "track": [[1.5], []],
            "flag": [True, None],
        }
    )
    written, loaded = made(stores("a")), made(stores("b"))
    written.write_cells(day, evolve=True)
    loaded = io.from_arrow(stores("b"), day, evolve=True)
    assert written.schema == loaded.schema and written.schema.attr("kind").categories == ("ferry", "tug")
    assert rows(written) == rows(loaded)


def test_values_of_any_kind_make_an_attribute(store_uri: str) -> None:
    a = made(store_uri)
    new = {
        "i": np.array([1, 2], np.int16), "m": np.ma.MaskedArray([1.5, 2.5], [True, False]), "b": [True, False],
        "t": np.array(["2026-01-01", "NaT"], "datetime64[D]"), "s": pd.Series(["é", None]), "p": pl.Series([1, None]),
        "k": pd.Categorical(["y", "x"], ["x", "y"]), "z": np.array([1j, 2]),
    }  # fmt: skip
    a.write_cells({"x": [1, 2]}, {"v": [1, 2], **new}, evolve=True)
    kinds = {attr.name: attr.dtype for attr in a.schema.attrs}
    assert kinds == {
        "v": "int64", "i": "int16", "m": "float64", "b": "bool", "t": "datetime64[D]", "s": "string", "p": "int64",
        "k": "string", "z": "complex128",
    }  # fmt: skip
    found = a.read({"x": (1, 2)}).in_place()
    assert found["m"].tolist() == [None, 2.5] and found["s"].tolist() == ["é", None]
    assert found["p"].tolist() == [1, None] and found["k"].tolist() == ["y", "x"]
    assert a.schema.attr("k").categories == ("x", "y")


def test_an_array_that_is_dense_takes_a_new_column(store_uri: str) -> None:
    a = made(store_uri, sparse=False)
    a.write_cells({"x": [1, 2], "w": [1.5, 2.5]}, evolve=True)
    assert a["w"][:4].tolist() == [None, 1.5, 2.5, None] and a["v"][5] == 50


def test_a_stream_is_read_once(store_uri: str) -> None:
    a = made(store_uri)
    table = pa.table({"x": [1], "v": [1], "w": [9]})
    a.write_cells(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), evolve=True)
    assert rows(a)["w"] == [9, None]


@pytest.mark.parametrize(
    ("column", "told"),
    [([1, "a"], "column 'w'.*one type"), ([object()], "column 'w'"), (np.zeros((1, 2)), "'w'"), ([1, 2], "lengths")],
)
def test_what_makes_no_attribute_leaves_the_array_as_it_was(store_uri: str, column: Any, told: str) -> None:
    a = made(store_uri)
    with pytest.raises(InputError, match=told):
        a.write_cells({"x": [1], "v": [1], "w": column}, evolve=True)
    with pytest.raises(gs.errors.BoundsError):
        a.write_cells({"x": [99], "v": [1], "w": [1]}, evolve=True)
    assert a.refresh() == 2 and a.schema_names == ["v"]
    a.write_cells({"x": [99], "v": [1], "w": [1]}, evolve=True, grow=True)
    assert a.version == 3 and a.domain == ((0, 99),)


def test_a_receipt_adds_no_attribute(store_uri: str) -> None:
    a = made(store_uri)
    with pytest.raises(InputError, match=r"receipt.*alter\(add="):
        a.write_cells(DAY, evolve=True, commit=False)
    made_later = a.write_cells({"x": [1], "v": [7]}, evolve=True, commit=False)
    gs.commit(store_uri, [made_later])
    assert a.refresh() == 3 and rows(a)["v"] == [7, 50]


def test_in_a_transaction_it_is_part_of_it(store_uri: str) -> None:
    a = made(store_uri)
    with gs.transaction(store_uri) as tx:
        staged = tx["/"]
        staged.write_cells(DAY, evolve=True)
        assert rows(staged)["w"] == [None, 0.5, None]
        with pytest.raises(gs.errors.BoundsError):
            staged.write_cells({"x": [99], "v": [1], "late": [1]}, evolve=True)
        assert staged.schema_names == ["v", "w", "name"]
        with staged.writer(order="any", evolve=True) as w:
            w.append({"x": [8], "v": [80], "w": [8.5], "name": ["h"], "more": [1]})
        assert a.refresh() == 2
    assert a.refresh() == 3 and a.schema_names == ["v", "w", "name", "more"]
    assert rows(a)["more"] == [None, None, None, 1]
    with pytest.raises(RuntimeError), gs.transaction(store_uri) as tx:
        tx["/"].write_cells({"x": [1], "v": [1], "gone": [1]}, evolve=True)
        raise RuntimeError
    assert a.refresh() == 3 and "gone" not in a.schema_names


def test_a_writer_takes_new_columns_of_its_first_piece(store_uri: str) -> None:
    a = made(store_uri)
    with a.writer(order="any", evolve=True, grow=True, message="days") as w:
        w.append(pa.table({"x": [3], "v": [3], "w": ["c"]}))
        w.append(pd.DataFrame({"x": [20], "v": [2], "w": ["b"]}))
        with pytest.raises(InputError, match=r"column 'z'.*first piece"):
            w.append({"x": [4], "v": [4], "z": [1]})
    assert w.outcome == a.version == 3 and a.history()[-1].message == "days"
    assert rows(a) == {"x": [3, 5, 20], "v": [3, 50, 2], "w": ["c", None, "b"]}
    with a.writer(order="any", evolve=True) as w:
        w.append({"x": [1], "v": [1], "w": ["a"], "q": [1]})
        w.abort()
    with a.writer(order="any", evolve=True):
        pass
    with pytest.raises(RuntimeError), a.writer(order="any", evolve=True) as w:
        w.append({"x": [1], "v": [1], "w": ["a"], "q": [1]})
        raise RuntimeError
    assert a.refresh() == 3 and "q" not in a.schema_names
    with pytest.raises(InputError, match="attrs="):
        a.writer(order="any", evolve=True, attrs=["v"])
    with pytest.raises(InputError, match=r'order="any"'):
        a.writer(evolve=True)


def test_with_a_key_a_repeated_call_commits_once(store_uri: str) -> None:
    a = made(store_uri)
    versions = [a.write_cells(DAY, evolve=True, commit_key="day 2") for _ in range(2)]
    other = gs.open(store_uri, mode="r+")
    versions.append(other.write_cells(DAY, evolve=True, commit_key="day 2"))
    assert versions == [3, 3, 3] and len(rows(a)["x"]) == 3
    with pytest.raises(ConflictError):
        a.write_cells({**DAY, "v": [0, 0]}, evolve=True, commit_key="day 2")
    for _ in range(2):
        with a.writer(order="any", evolve=True, commit_key="day 3") as w:
            w.append({"x": [9], "v": [9], "w": [9.5], "name": ["i"], "more": [3]})
        assert w.outcome == 4
    assert a.refresh() == 4


def test_a_handle_that_lags_finds_the_column_that_another_process_added(store_uri: str) -> None:
    a = made(store_uri)
    gs.open(store_uri, mode="r+").write_cells(DAY, evolve=True)
    assert a.write_cells({"x": [9], "v": [9], "w": [9.5], "name": ["i"]}, evolve=True) == 4
    assert rows(a)["w"] == [None, 0.5, None, 9.5]


def test_others_that_add_the_same_column_at_once_conflict_with_nothing(store_uri: str) -> None:
    made(store_uri)
    numbers: Iterator[int] = itertools.count()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            mine = gs.open(store_uri, mode="r+")
            for day in range(4):
                mine.write_cells({"x": [100 + next(numbers)], "v": [day], f"w{day}": [day]}, evolve=True, grow=True)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    a = gs.open(store_uri)
    assert not failed and len(a.read()) == 17
    assert sorted(a.schema_names) == ["v", "w0", "w1", "w2", "w3"]
    assert a.read(where="w2 = 2").to_arrow().num_rows == 4
