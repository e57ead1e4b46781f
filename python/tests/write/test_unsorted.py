"""Promise: cells go in in any order, more of them than the budget holds, as if at once; loads from files do so."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from places import Stores, data_files

import gridstone as gs
from gridstone import io
from gridstone.stores import store

SMALL = gs.Context(memory_budget="4MiB", threads=2)


def _table(rows: int, side: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    x, y = rng.integers(0, side, (2, rows))
    names = pa.array(rng.choice(["Ærø", "", "b" * 40], rows), mask=rng.random(rows) < 0.1)
    return pa.table({"x": x, "y": y, "v": np.arange(rows), "name": names})


def _schema(side: int, duplicates: bool) -> gs.Schema:
    dims = [gs.Dim(name, (0, side - 1), 64) for name in "xy"]
    attrs = [gs.Attr("v", "int64"), gs.Attr("name", "string", nullable=True)]
    return gs.Schema(dims, attrs, sparse=True, duplicates=duplicates)


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in ("x", "y", "v", "name")), strict=True))


@pytest.mark.parametrize("dedup", ["keep", "first", "last"])
def test_portions_in_any_order_read_as_one_write(store_uri: str, dedup: str) -> None:
    table, duplicates = _table(150_000, 500), dedup == "keep"
    a = gs.create(store_uri, _schema(500, duplicates), context=SMALL)
    before = a.version
    with a.writer(order="any", dedup="error" if duplicates else dedup) as w:
        for first in range(0, table.num_rows, 40_000):
            w.append(table.slice(first, 40_000))
        w.append(table.slice(0, 0))
    assert a.version == before + 1
    expected = sorted(_rows(table), key=lambda row: row[:2])
    if not duplicates:
        kept: dict[object, tuple[object, ...]] = {}
        for row in _rows(table):
            kept[row[:2]] = kept.get(row[:2], row) if dedup == "first" else row
        expected = [kept[place] for place in sorted(kept)]
        assert len(expected) < table.num_rows
    assert _rows(a.read(order="row").to_arrow()) == expected


@pytest.mark.parametrize("duplicates", [True, False])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("dedup", ["error", "first", "last"])
def test_one_write_of_more_than_the_budget_holds(store_uri: str, dedup: str, in_order: bool, duplicates: bool) -> None:
    """Cells in any order are sorted in runs, those in order are written as they come."""
    table = _table(150_000, 500)
    if dedup == "error" and not duplicates:
        numbers = np.random.default_rng(5).permutation(250_000)[:150_000]
        table = table.set_column(0, "x", pa.array(numbers // 500)).set_column(1, "y", pa.array(numbers % 500))
    if in_order:
        whole = gs.create("mem://order", _schema(500, True), overwrite=True)
        whole.write_cells(table)
        table = whole.read(order="global").to_arrow()
    small = gs.Context(memory_budget="4MiB", threads=2)
    a = gs.create(store_uri, _schema(500, duplicates), context=small)
    before, told = a.version, []
    a.write_cells(table, dedup=dedup, sorted=in_order, progress=lambda done, total: told.append((done, total)))
    assert a.version == before + 1, "it is one commit"
    assert told[-1] == (150_000, 150_000) and told == sorted(told)
    whole = gs.create("mem://whole", _schema(500, duplicates), overwrite=True)
    whole.write_cells(table, dedup=dedup)
    assert _rows(a.read(order="row").to_arrow()) == _rows(whole.read(order="row").to_arrow())
    # What is sorted at once would take 6 MiB.
    assert small.peak_bytes <= small.memory_budget
    with gs.transaction(store_uri, context=small) as tx:
        some = table.slice(0, 100_000)
        tx["/"].write_cells(some, dedup=dedup, sorted=in_order)
        taken = len(some) if dedup == "error" else len(set(zip(*(some[n].to_pylist() for n in "xy"), strict=True)))
        assert len(tx["/"].read()) == len(a.read()) + (taken if duplicates else 0)


KINDS: dict[str, list[gs.Dim]] = {
    "texts and floats": [gs.Dim("t", dtype="string"), gs.Dim("f", (-1.0, 1.0), dtype="float64")],
    "long texts": [gs.Dim("t", dtype="string", max_bytes=40), gs.Dim("f", (-1.0, 1.0), 0.5, dtype="float64")],
    "hilbert": [gs.Dim("t", (0, 10**9), dtype="int64"), gs.Dim("f", (-1.0, 1.0), dtype="float64")],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dedup", ["error", "first", "last"])
def test_cells_in_order_of_any_kind_are_as_those_written_at_once(store_uri: str, kind: str, dedup: str) -> None:
    """Values of every length, some null, across portions of a few thousand cells; some places are there twice."""
    rng = np.random.default_rng(9)
    numbers = rng.integers(0, 20_000, 40_000)
    texts = [f"{'long ' * 6 if kind == 'long texts' else ''}{n:05}" for n in numbers]
    table = pa.table({
        "t": pa.array(numbers if kind == "hilbert" else texts),
        "f": pa.array(numbers % 7 / 8 - 0.5),
        "n": pa.array(np.arange(40_000)),
        "s": pa.array([None if n % 5 == 0 else "x" * (n % 11) for n in range(40_000)]),
        "b": pa.array([None if n % 3 == 0 else n % 2 == 0 for n in range(40_000)]),
    })  # fmt: skip
    attrs = [gs.Attr("n", "int64"), gs.Attr("s", "string", nullable=True), gs.Attr("b", "bool", nullable=True)]
    order = "hilbert" if kind == "hilbert" else "row"

    def created(uri: str, duplicates: bool, context: gs.Context | None = None) -> gs.Array:
        schema = gs.Schema(KINDS[kind], attrs, sparse=True, duplicates=duplicates, capacity=1_000, cell_order=order)
        return gs.create(uri, schema, context=context, overwrite=True)

    at_once = created("mem://at-once", True)
    at_once.write_cells(table)
    in_order = at_once.read(order="global").to_arrow()
    small = gs.Context(memory_budget="1MiB", threads=2)
    a, b = created(store_uri, dedup == "error", small), created("mem://kind", dedup == "error")
    a.write_cells(in_order, dedup=dedup, sorted=True)
    b.write_cells(in_order, dedup=dedup)
    assert a.read(order="global").to_arrow().equals(b.read(order="global").to_arrow())
    assert (len(a.read()) == 40_000) == (dedup == "error")


def test_what_is_wrong_with_a_write_in_runs_is_told_by_row(store_uri: str) -> None:
    a = gs.create(store_uri, _schema(5_000, False), context=SMALL)
    table = _table(150_000, 5_000)
    with pytest.raises(gs.errors.InputError, match=r"the same cell \(x=\d+, y=\d+\)"):
        a.write_cells(table)
    x = table["x"].to_numpy().copy()
    x[123_456] = 5_000
    with pytest.raises(gs.errors.BoundsError, match=r"row 123456: coordinate 5000 of dimension \"x\" is outside"):
        a.write_cells(table.set_column(0, "x", pa.array(x)), dedup="last")
    assert a.version == 1 and data_files(store_uri) == []


def test_what_is_wrong_is_told_and_leaves_nothing(store_uri: str) -> None:
    a = gs.create(store_uri, _schema(5_000, False), context=SMALL)
    table = _table(150_000, 5_000)
    with pytest.raises(gs.errors.InputError, match=r"the same cell \(x=\d+, y=\d+\)"), a.writer(order="any") as w:
        w.append(table)
    with pytest.raises(RuntimeError, match="stop"), a.writer(order="any", dedup="last") as w:
        w.append(table)
        raise RuntimeError("stop")
    assert a.version == 1 and data_files(store_uri) == []
    with pytest.raises(gs.errors.InputError, match="dedup"):
        a.writer(dedup="last")
    with pytest.raises(gs.errors.InputError, match="leave box=None"):
        a.writer({"x": (0, 1)}, "any")


def test_a_dense_array_takes_cells_in_any_order(store_uri: str) -> None:
    a = gs.create(store_uri, gs.Schema([gs.Dim("i", (0, 999), 100)], [gs.Attr("v", "int32", fill=-1)]), context=SMALL)
    rng = np.random.default_rng(3)
    expected = np.full(1_000, -1, np.int32)
    with a.writer(order="any", dedup="last") as w:
        for number in range(5):
            places = rng.integers(0, 1_000, 300)
            w.append({"i": places}, {"v": np.full(300, number, np.int32)})
            expected[places] = number
    np.testing.assert_array_equal(a[...], expected)


def test_a_file_four_times_the_budget_loads_within_it_as_without(tmp_path: Path, stores: Stores) -> None:
    table = _table(600_000, 5_000)
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").stat().st_size > 4 * SMALL.memory_budget
    schema = _schema(5_000, True)
    small = io.from_csv(stores("small"), tmp_path / "t.csv", schema=schema, context=SMALL)
    large = io.from_csv(stores("large"), tmp_path / "t.csv", schema=schema)
    assert small.fragments.num_rows == 1 and small.version == large.version == 2
    assert small.read().to_arrow().equals(large.read().to_arrow())
    assert SMALL.peak_bytes <= SMALL.memory_budget
    with pytest.raises(gs.errors.InputError, match="the same cell"):
        io.from_csv(stores("none"), tmp_path / "t.csv", schema=_schema(5_000, False), context=SMALL)
    assert not gs.exists(stores("none"))
    kept = io.from_csv(stores("kept"), tmp_path / "t.csv", schema=_schema(5_000, False), dedup="first")
    assert len(kept.read()) == len({row[:2] for row in _rows(table)})


def test_a_load_that_fails_leaves_what_others_committed(stores: Stores) -> None:
    uri, other = stores("s"), gs.Schema([gs.Dim("i", (0, 9))], [gs.Attr("v", "int8")])

    def pieces():  # while the load goes on another array comes into the new store
        yield pa.record_batch({"x": [1, 2], "y": [3, 4], "v": [5, 6], "name": ["a", None]})
        gs.create(uri, other, path="/theirs")[0:2] = 7
        yield pa.record_batch({"x": [1], "y": [999_999], "v": [0], "name": ["outside"]})

    schema = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("v", pa.int64()), ("name", pa.string())])
    with pytest.raises(gs.errors.InputError, match="outside the domain"):
        io.from_arrow(uri, pa.RecordBatchReader.from_batches(schema, pieces()), schema=_schema(500, True), path="/mine")
    assert gs.open(uri, path="/theirs")[...].sum() == 14 and len(gs.open(uri, path="/mine").read()) == 0


@pytest.mark.parametrize("looks", range(1, 4))
def test_a_store_that_others_create_first_is_theirs(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """At whichever look for the store it was not there yet: the load fails, or goes beside theirs."""
    uri, exists, left = stores("s"), store.exists, [looks]

    def looked(place: Any, *, context: gs.Context | None = None) -> bool:
        found = exists(place, context=context)
        left[0] -= 1
        if left[0] == 0:
            gs.create(uri, _schema(500, True), path="/")
        return found

    monkeypatch.setattr(store, "exists", looked)
    with contextlib.suppress(gs.errors.ExistsError):
        io.from_arrow(uri, _table(5, 500), schema=_schema(500, True))
    monkeypatch.undo()
    assert left[0] <= 0 and gs.exists(uri)
    assert gs.open(uri).schema == _schema(500, True) and gs.open(uri).history()[0].version == 1


@pytest.mark.parametrize("raised", [gs.errors.StorageError, KeyboardInterrupt])
def test_a_creation_that_fails_removes_nothing(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    uri, create = stores("s"), store.create

    def overtaken(*_: Any, **__: Any) -> None:
        create(uri, _schema(500, True))
        raise raised("what became of it is not known")

    monkeypatch.setattr(store, "create", overtaken)
    with pytest.raises(raised):
        io.from_arrow(uri, _table(5, 500), schema=_schema(500, True))
    assert gs.open(uri).version == 1


def test_a_store_that_others_put_in_the_place_of_a_load_is_theirs(stores: Stores) -> None:
    uri = stores("s")

    def pieces():
        yield pa.record_batch({"x": [1, 2], "y": [3, 4], "v": [5, 6], "name": ["a", None]})
        gs.delete(uri)
        gs.create(uri, _schema(500, True))
        yield pa.record_batch({"x": [1], "y": [999_999], "v": [0], "name": ["outside"]})

    schema = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("v", pa.int64()), ("name", pa.string())])
    with pytest.raises(gs.errors.GridstoneError):
        io.from_arrow(uri, pa.RecordBatchReader.from_batches(schema, pieces()), schema=_schema(500, True))
    assert gs.open(uri).version == 1


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_load_that_fails_into_a_store_that_is_there_leaves_it_as_it_was(store_uri: str, overwrite: bool) -> None:
    """Also where the mistake, a repeated cell, is found at the very end, and parts were written already."""
    old = gs.create(store_uri, _schema(500, False), path="/old")
    old.write_cells(_table(5, 500), dedup="last")
    table = _table(150_000, 500)
    with pytest.raises(gs.errors.InputError, match="the same cell"):
        io.from_arrow(store_uri, table, schema=_schema(500, False), path="/old" if overwrite else "/new",
                      overwrite=overwrite, context=SMALL)  # fmt: skip
    root = gs.open(store_uri)
    assert list(root) == ["old"] and root.version == 2 and len(root["old"].read()) == 5
    made = io.from_arrow(store_uri, table, schema=_schema(500, False), path="/old", overwrite=True, dedup="last",
                         message="anew", context=SMALL)  # fmt: skip
    assert (
        made.version == 3 and made.history()[-1].message == "anew" and made.stats["cells_written"] == len(made.read())
    )


def test_whole_numbers_beyond_floats_among_floats(tmp_path: Path, stores: Stores) -> None:
    (tmp_path / "a.csv").write_text("x,v\n1,9007199254740993\n")
    (tmp_path / "b.csv").write_text("x,v\n2,1.5\n")
    found = io.from_csv(stores("n"), [tmp_path / "a.csv", tmp_path / "b.csv"], dims=["x"]).read().to_numpy()
    assert found["v"].tolist() == ["9007199254740993", "1.5"]
