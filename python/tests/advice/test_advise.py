"""Advice: the schema that is printed can be made and takes the data, and what is told of an array is so."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import Stores

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import InputError, UnsupportedError


def schema_of(code: str) -> gs.Schema:
    """What the printed Python makes."""
    names: dict[str, Any] = {}
    exec(code, names)
    made = names["schema"]
    assert isinstance(made, gs.Schema)
    return made


def ships(rows: int, seed: int = 3) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "time": np.datetime64("2024-01-01T00:00:00", "s") + np.arange(rows),
            "lat": random.normal(54, 2, rows).round(5),
            "lon": random.normal(8, 3, rows).round(5),
            "mmsi": random.integers(200_000_000, 700_000_000, rows),
            "sog": random.gamma(2, 4, rows).round(1),
            "name": random.choice(["Ada", "Björn", "Cato"], rows),
        }
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "frame"])
def test_tables(tmp_path: Path, kind: str) -> None:
    frame = ships(4_000)
    source: Any = tmp_path / f"ships.{kind}"
    if kind == "csv":
        frame.to_csv(source, index=False)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(frame), source, row_group_size=500)
    elif kind == "arrow":
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_file(source, table.schema) as out:
            out.write_table(table)
    else:
        source = frame
    found = gs.advise(source, sample=2_000)
    assert found.rows_total == 4_000 and found.rows <= 2_100
    assert [dim.name for dim in found.schema.dims] == ["time", "lat", "lon"] and found.schema.sparse
    assert schema_of(found.code) == found.schema
    orders = [t for t in found.trials if t.what == "order"]
    assert len(orders) == 3 and sum(t.chosen for t in orders) == 1
    chosen = next(t for t in orders if t.chosen)
    assert all(chosen.fetched * 0.95 <= t.fetched or t is chosen for t in orders)
    for attr in found.schema.attrs:
        tried = [t for t in found.trials if t.what == f"filters of {attr.name}"]
        best = next(t for t in tried if t.chosen)
        assert best.candidate == str(attr.filters) and best.bytes * 0.95 <= min(t.bytes for t in tried)
    assert "dimensions" in str(found)


def test_the_schema_takes_the_data(stores: Stores) -> None:
    frame = ships(1_000)
    found = gs.advise(frame, dims=["mmsi", "time"])
    assert [dim.name for dim in found.schema.dims] == ["mmsi", "time"]
    a = gs.create(stores("a"), schema_of(found.code))
    a.write_cells(pa.Table.from_pandas(frame, preserve_index=False))
    assert len(a.read()) == 1_000


def test_a_grid_becomes_a_dense_array(stores: Stores) -> None:
    y, x = np.meshgrid(np.arange(30), np.arange(40), indexing="ij")
    table = pa.table({"y": y.ravel(), "x": x.ravel(), "v": (y * x).ravel().astype(np.float32)})
    found = gs.advise(table)
    assert not found.schema.sparse and [(d.name, d.domain) for d in found.schema.dims] == [
        ("y", (0, 29)),
        ("x", (0, 39)),
    ]
    a = gs.create(stores("a"), schema_of(found.code))
    a.write((y * x).astype(np.float32))
    holes = gs.advise(table.filter(pa.array(np.random.default_rng(1).random(1200) < 0.1)))
    assert holes.schema.sparse
    twice = gs.advise(pa.concat_tables([table, table.slice(0, 5)]))
    assert twice.schema.duplicates and any("5 rows" in r for r in twice.reasons)


@pytest.mark.parametrize("shape", [(7,), (300, 200), (20, 30, 40), (1, 5000)])
def test_ndarrays(tmp_path: Path, stores: Stores, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 50, shape).astype(np.int32)
    np.save(tmp_path / "v.npy", values)
    for source in (values, tmp_path / "v.npy"):
        found = gs.advise(source, sample=5_000)
        made = schema_of(found.code)
        assert made == found.schema and made.shape == shape
    a = gs.create(stores("a"), made)
    a.write(values)
    assert (a[...] == values).all()


def test_queries_decide() -> None:
    values = np.random.default_rng(0).random((1000, 1000))
    rows = gs.advise(values, sample=10**6, queries=[{"d0": (i, i), "d1": (0, 999)} for i in range(0, 1000, 200)])
    columns = gs.advise(values, sample=10**6, queries=[{"d0": (0, 999), "d1": (i, i)} for i in range(0, 1000, 200)])
    tiles = [
        {t.candidate.split("(")[1]: t.fetched for t in found.trials if t.what == "tile"} for found in (rows, columns)
    ]
    assert tiles[0]["whole rows)"] < tiles[0]["whole columns)"] and tiles[1]["whole columns)"] < tiles[1]["whole rows)"]


def test_arrays_that_exist(stores: Stores) -> None:
    a = gs.create(
        stores("a"),
        gs.Schema(
            [gs.Dim("x", (0, 9999)), gs.Dim("y", (0, 9999))], [gs.Attr("v", "float64")], sparse=True, capacity=100
        ),
    )
    random = np.random.default_rng(2)
    for _ in range(12):
        at = random.choice(10**8, 300, replace=False)
        a.write_cells({"x": at // 10_000, "y": at % 10_000}, {"v": random.random(300)})
    found = gs.advise(a)
    health = found.health
    assert health is not None and health.fragments == 12 and health.tiles == 36 and health.fullness == 1.0
    assert health.merged_fragments == 1 and health.touched > 5 and health.fits and health.overlap is not None
    assert found.rows_total == 3600 and schema_of(found.code) == found.schema
    a.consolidate("all")
    assert gs.advise(stores("a"), queries=[{"x": (5, 50), "y": (0, 9999)}]).health.fragments == 1
    b = gs.array(stores("b"), np.arange(100_000).reshape(250, 400))
    dense = gs.advise(b)
    assert dense.health is not None and dense.health.fullness is None and not dense.schema.sparse
    assert schema_of(dense.code).shape == (250, 400)
    tiny = gs.advise(b, context=gs.Context("2MiB", threads=1))
    assert tiny.rows > 0


def test_what_cannot_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dimension"):
        gs.advise(pa.table({"a": ["x", "y"]}))
    with pytest.raises(InputError, match="no file"):
        gs.advise(tmp_path / "none.csv")
    with pytest.raises(InputError, match="no rows"):
        gs.advise(pa.table({"a": pa.array([], pa.int64())}))
    with pytest.raises(InputError, match="'q'"):
        gs.advise(ships(10), dims=["q"])
    with pytest.raises(InputError):
        gs.advise(7)


def test_command_line(tmp_path: Path, stores: Stores, capsys: pytest.CaptureFixture[str]) -> None:
    ships(500).to_csv(tmp_path / "s.csv", index=False)
    assert run(["advise", str(tmp_path / "s.csv"), "--dims", "lat,lon", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert schema_of(found["code"]) == gs.Schema.from_json(json.dumps(found["schema"]))
    gs.array(stores("b"), np.arange(1000), path="/b")
    assert run(["advise", stores("b"), "--path", "/b"]) == 0
    out = capsys.readouterr().out
    assert "gs.Schema(" in out and "memory" in out
    assert run(["advise", str(tmp_path / "none.csv")]) == 4


def test_an_array_keeps_categories_rounding_and_filters(stores: Stores) -> None:
    gs.register_filter("advice.same", encode=lambda b, w: b, decode=lambda b, w: b, overwrite=True)
    random = np.random.default_rng(5)
    attrs = [
        gs.Attr("level", "string", categories=["mid", "low", "high"], ordered=True, codes="uint16", fill="low"),
        gs.Attr("none", "string", nullable=True, categories=[]),
        gs.Attr("day", "datetime64[D]", categories=["2020-01-01", "2020-01-02"], nullable=True),
        gs.Attr("rounded", "float32", fill=float("nan"), filters=["bitround:7", "shuffle", "lz4"]),
        gs.Attr("mine", "int32", filters=["advice.same"]),
        gs.Attr("rgb", "float32", shape=(3,), fill=(1.0, float("nan"), 0.0)),
    ]
    values = {
        "level": random.choice(["low", "mid", "high"], 400).astype(object),
        "none": np.ma.MaskedArray(np.full(400, "", object), True),
        "day": np.ma.MaskedArray(np.full(400, "2020-01-02", "datetime64[D]"), np.arange(400) % 2),
        "rounded": random.random(400).astype(np.float32),
        "mine": random.integers(-(2**31), 2**31, 400).astype(np.int32),
        "rgb": random.random((400, 3)).astype(np.float32),
    }
    for sparse in (True, False):
        a = gs.create(stores(str(sparse)), gs.Schema([gs.Dim("x", (0, 399), 50)], attrs, sparse=sparse))
        if sparse:
            a.write_cells({"x": np.arange(400)}, values)
        else:
            a.write(values)
        found = gs.advise(a)
        assert schema_of(found.code) == found.schema
        for asked in a.schema.attrs:
            got = found.schema.attr(asked.name)
            assert (got.categories, got.ordered, got.codes) == (asked.categories, asked.ordered, asked.codes)
            assert repr(got.fill) == repr(asked.fill) and got.lossy == asked.lossy
            tried = [t for t in found.trials if t.what == f"filters of {asked.name}"]
            assert tried[0].candidate == asked.filters and len({t.candidate for t in tried}) == len(tried)
            assert all(t.candidate.startswith("bitround:7,") == asked.lossy for t in tried)
        assert found.schema.attr("mine").filters == "advice.same"


def genes(rows: int) -> pd.DataFrame:
    random = np.random.default_rng(6)
    names = np.array([f"gene-{n:04d}-é" for n in range(500)])
    return pd.DataFrame(
        {"gene": random.choice(names, rows), "cell": random.permutation(rows), "v": random.integers(0, 90, rows)}
    )


@pytest.mark.parametrize("source", ["frame", "dictionary", "csv", "array", "place"])
def test_dimensions_of_texts(tmp_path: Path, stores: Stores, source: str) -> None:
    frame = genes(5_000)
    data: Any = frame
    if source == "dictionary":
        data = pa.table(frame.astype({"gene": "category"}))
    elif source == "csv":
        data = tmp_path / "genes.csv"
        frame.to_csv(data, index=False)
    elif source in ("array", "place"):
        dims = [gs.Dim("gene", dtype="string", max_bytes=40), gs.Dim("cell", (0, 9_999), 100)]
        a = gs.create(stores("a"), gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True))
        a.write_cells(frame)
        data = a if source == "array" else stores("a")
    dims_asked = None if source in ("array", "place") else ["gene", "cell"]
    query = [{"gene": ("gene-0100", "gene-0110"), "cell": (0, 4_000)}, {"gene": "gene-0007-é"}, {"cell": (5, 9)}]
    for queries in (None, query):
        found = gs.advise(data, dims=dims_asked, queries=queries)
        gene = found.schema.dims[0]
        assert gene.is_text and gene.max_bytes == (40 if dims_asked is None else 32)
        assert schema_of(found.code) == found.schema
        orders = [t.candidate for t in found.trials if t.what == "order"]
        assert "column order, one space tile" in orders and not any("Hilbert" in order for order in orders)
        made = gs.create(stores(f"advice-{source}-{queries is None}"), found.schema)
        made.write_cells(frame)
        assert made.read(box={"gene": gs.prefix("gene-0007")})["v"].sum() == frame.v[frame.gene == "gene-0007-é"].sum()


def test_what_is_asked_for_decides_about_the_order_of_texts() -> None:
    names = [f"gene{n:03}" for n in range(200)]
    places = [f"place{n:03}" for n in range(200)]
    table = pa.table({"gene": np.repeat(names, 200), "place": np.tile(places, 200), "v": np.arange(40_000)})
    for dim, order in (("gene", "row"), ("place", "col")):
        queries = [{dim: name} for name in (names if dim == "gene" else places)[::20]]
        found = gs.advise(table, dims=["gene", "place"], queries=queries)
        assert found.schema.cell_order == order, dim


def test_texts_alone_and_by_name() -> None:
    frame = genes(3_000).rename(columns={"gene": "chrom", "cell": "pos"})
    assert [dim.name for dim in gs.advise(frame).schema.dims] == ["chrom", "pos"]
    alone = gs.advise(frame, dims=["chrom"])
    assert alone.schema.dims[0].is_text and alone.schema.duplicates and schema_of(alone.code) == alone.schema
    assert [t.candidate for t in alone.trials if t.what == "order"] == ["row order in space tiles"]
    told = gs.advise(frame, dims=["chrom", "pos"], sample=300)
    assert "the longest chrom of the sample has 12 bytes; give max_bytes what the rest needs" in told.reasons
    with pytest.raises(UnsupportedError, match="'mixed' has numbers and other texts"):
        gs.advise(pa.table({"mixed": ["1", "2", "3", "a"], "v": [1, 2, 3, 4]}), dims=["mixed"])
    with pytest.raises(InputError, match="'gene' cannot be a dimension: it has nulls"):
        gs.advise(pa.table({"gene": ["a", None], "v": [1, 2]}), dims=["gene"])
    with pytest.raises(InputError, match="of texts too, with dims="):
        gs.advise(pa.table({"gene": ["a", "b"], "note": ["c", "d"]}))


def mixed(rows: int) -> pa.Table:
    random = np.random.default_rng(8)
    return pa.table(
        {
            "x": random.permutation(10 * rows)[:rows],
            "kind": pa.array(random.choice(["a", "b", "c"], rows)).dictionary_encode(),
            "grade": pa.DictionaryArray.from_arrays(random.integers(0, 2, rows), pa.array([20, 10]), ordered=True),
            "rgb": pa.FixedSizeListArray.from_arrays(random.random(3 * rows).astype(np.float32), 3),
            "seen": pa.array([list(range(i % 4)) for i in range(rows)], pa.list_(pa.int32())),
        }
    )


@pytest.mark.parametrize("kind", ["table", "arrow", "parquet", "chunks"])
@pytest.mark.parametrize("dims", [None, ["x"]])
def test_categories_vectors_and_lists(tmp_path: Path, stores: Stores, kind: str, dims: list[str] | None) -> None:
    table = mixed(300)
    source: Any = table
    if kind == "arrow":
        source = tmp_path / "t.arrow"
        with pa.ipc.new_file(source, table.schema) as out:
            out.write_table(table)
    elif kind == "parquet":
        # Parquet keeps dictionaries of texts only.
        table, source = table.drop_columns(["grade"]), tmp_path / "t.parquet"
        pq.write_table(table, source, row_group_size=100)
    elif kind == "chunks":
        other = pa.array(["d", None] * 150).dictionary_encode()
        source = pa.concat_tables([table, mixed(300).set_column(1, "kind", other)])
    found = gs.advise(source, dims=dims)
    assert [dim.name for dim in found.schema.dims] == ["x"] and schema_of(found.code) == found.schema
    expected = {"a", "b", "c", "d"} if kind == "chunks" else {"a", "b", "c"}
    assert set(found.schema.attr("kind").categories or ()) == expected
    assert found.schema.attr("kind").nullable == (kind == "chunks")
    if kind != "parquet":
        assert found.schema.attr("grade").categories == (20, 10) and found.schema.attr("grade").ordered
    assert found.schema.attr("rgb").dtype == "float32[3]" and found.schema.attr("seen").dtype == "list[int32]"
    a = gs.create(stores("a"), found.schema)
    a.write_cells(source if isinstance(source, pa.Table) else table)
    assert len(a.read()) == (600 if kind == "chunks" else 300)
    part = gs.advise(source, dims=dims, sample=80)
    assert any("categories of kind" in reason for reason in part.reasons)


def test_a_grid_of_categories() -> None:
    places = np.delete(np.arange(100), [3, 50])
    codes = pa.DictionaryArray.from_arrays(places % 2, pa.array([7, 9]))
    found = gs.advise(pa.table({"x": places, "v": codes}))
    assert not found.schema.sparse and found.schema.attr("v").categories == (7, 9)


def bad_files(folder: Path) -> dict[str, Path]:
    texts = {"empty.csv": "", "ragged.csv": "a,b\n1,2\n3\n", "not.parquet": "no", "not.arrow": "no", "not.npy": "no"}
    texts["twice.csv"] = "a,b,a\n1,2,3\n"
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "folder.csv").mkdir()
    np.save(folder / "objects.npy", np.array([{}, None], object), allow_pickle=True)
    return {path.name: path for path in folder.iterdir()}


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, path in bad_files(tmp_path).items():
        with pytest.raises(InputError, match=name):
            gs.advise(path)
        assert run(["advise", str(path)]) == 2
        assert name in capsys.readouterr().err
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    for table in (twice, twice.to_pandas()):
        with pytest.raises(InputError, match="the table"):
            gs.advise(table)


def test_columns_that_are_no_dimensions() -> None:
    table = mixed(20).append_column("hole", pa.array([None, *range(19)]))
    for name in ("rgb", "seen", "hole"):
        with pytest.raises(InputError, match=f"'{name}' cannot be a dimension"):
            gs.advise(table, dims=["x", name])
    with pytest.raises(InputError, match="once"):
        gs.advise(table, dims=["x", "x"])
    with pytest.raises(InputError, match="left for an attribute"):
        gs.advise(pa.table({"time": np.arange(3).astype("datetime64[s]"), "x": [1, 5, 2]}), dims=["time", "x"])
    assert [dim.name for dim in gs.advise(table, dims=["x", "grade"]).schema.dims] == ["x", "grade"]


def test_what_was_looked_at() -> None:
    assert "looked at all 50 cells of the table" in str(gs.advise(ships(50)))
    assert "looked at 40 of about 50 cells of the table" in str(gs.advise(ships(50), sample=40))
    with pytest.raises(InputError, match="sample="):
        gs.advise(ships(5), sample=0)


def test_lengths_of_time_are_dimensions() -> None:
    lags = np.array([5, 1, 700], "timedelta64[s]")
    found = gs.advise(pa.table({"lag": lags, "v": [1.5, 2.5, 3.5]}), dims=["lag"])
    assert found.schema.dims[0].domain == (np.timedelta64(1, "s"), np.timedelta64(700, "s"))
    assert schema_of(found.code) == found.schema


def test_data_frames_are_taken_as_loads_take_them(stores: Stores) -> None:
    rng = np.random.default_rng(3)
    values = rng.random(500) + 1j * rng.random(500)
    frame = pd.DataFrame({"t": np.arange(500), "z": values, "v": list(rng.random((500, 2)))}).set_index("t")
    advice = gs.advise(frame, dims=["t"])
    assert [(attr.name, attr.dtype) for attr in advice.schema.attrs] == [("z", "complex128"), ("v", "list[float64]")]
    loaded = gs.io.from_pandas(stores(), frame, schema=advice.schema)
    assert loaded.read()["z"].tolist() == values.tolist()
    # An index without a name is none of the columns.
    unnamed = frame.reset_index().set_index(np.arange(500) * 2)
    assert [attr.name for attr in gs.advise(unnamed, dims=["t"]).schema.attrs] == ["z", "v"]


def test_the_values_of_a_series_are_no_dimension(tmp_path: Path) -> None:
    times = pd.date_range("2026-03-01", periods=400, freq="h")
    numbers = np.arange(400) * 37 % 101
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"time": times, "value": numbers}, ["time"]),
        ({"when": times, "reading": numbers}, ["when"]),
        ({"time": times.repeat(2)[:400], "value": numbers}, ["time"]),
        ({"time": times, "value": numbers / 7}, ["time"]),
        ({"value": numbers, "time": times, "other": numbers + 1}, ["time"]),
        (
            {"station": np.repeat(np.arange(4), 100), "time": np.tile(times[:100], 4), "value": numbers},
            ["time", "station"],
        ),
    ]
    for columns, dims in cases:
        path = tmp_path / "series.csv"
        pd.DataFrame(columns).to_csv(path, index=False)
        made = schema_of(gs.advise(path).code)
        assert [dim.name for dim in made.dims] == dims, columns
        assert set(made.attr(name).name for name in columns if name not in dims)
