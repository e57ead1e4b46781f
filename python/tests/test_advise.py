"""Advice: the schema that is printed can be made and takes the data, and what is told of an array is so."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import InputError


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


def test_the_schema_takes_the_data(tmp_path: Path) -> None:
    frame = ships(1_000)
    found = gs.advise(frame, dims=["mmsi", "time"])
    assert [dim.name for dim in found.schema.dims] == ["mmsi", "time"]
    a = gs.create(tmp_path / "a.gs", schema_of(found.code))
    a.write_cells(pa.Table.from_pandas(frame, preserve_index=False))
    assert len(a.read()) == 1_000


def test_a_grid_becomes_a_dense_array(tmp_path: Path) -> None:
    y, x = np.meshgrid(np.arange(30), np.arange(40), indexing="ij")
    table = pa.table({"y": y.ravel(), "x": x.ravel(), "v": (y * x).ravel().astype(np.float32)})
    found = gs.advise(table)
    assert not found.schema.sparse and [(d.name, d.domain) for d in found.schema.dims] == [
        ("y", (0, 29)),
        ("x", (0, 39)),
    ]
    a = gs.create(tmp_path / "a.gs", schema_of(found.code))
    a.write((y * x).astype(np.float32))
    holes = gs.advise(table.filter(pa.array(np.random.default_rng(1).random(1200) < 0.1)))
    assert holes.schema.sparse
    twice = gs.advise(pa.concat_tables([table, table.slice(0, 5)]))
    assert twice.schema.duplicates and any("5 rows" in r for r in twice.reasons)


@pytest.mark.parametrize("shape", [(7,), (300, 200), (20, 30, 40), (1, 5000)])
def test_ndarrays(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 50, shape).astype(np.int32)
    np.save(tmp_path / "v.npy", values)
    for source in (values, tmp_path / "v.npy"):
        found = gs.advise(source, sample=5_000)
        made = schema_of(found.code)
        assert made == found.schema and made.shape == shape
    a = gs.create(tmp_path / "a.gs", made)
    a.write(values)
    assert (a[...] == values).all()


def test_queries_decide(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((1000, 1000))
    rows = gs.advise(values, sample=10**6, queries=[{"d0": (i, i), "d1": (0, 999)} for i in range(0, 1000, 200)])
    columns = gs.advise(values, sample=10**6, queries=[{"d0": (0, 999), "d1": (i, i)} for i in range(0, 1000, 200)])
    tiles = [
        {t.candidate.split("(")[1]: t.fetched for t in found.trials if t.what == "tile"} for found in (rows, columns)
    ]
    assert tiles[0]["whole rows)"] < tiles[0]["whole columns)"] and tiles[1]["whole columns)"] < tiles[1]["whole rows)"]


def test_arrays_that_exist(tmp_path: Path) -> None:
    a = gs.create(
        tmp_path / "a.gs",
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
    assert gs.advise(tmp_path / "a.gs", queries=[{"x": (5, 50), "y": (0, 9999)}]).health.fragments == 1
    b = gs.array(tmp_path / "b.gs", np.arange(100_000).reshape(250, 400))
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


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ships(500).to_csv(tmp_path / "s.csv", index=False)
    assert run(["advise", str(tmp_path / "s.csv"), "--dims", "lat,lon", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert schema_of(found["code"]) == gs.Schema.from_json(json.dumps(found["schema"]))
    gs.array(tmp_path / "b.gs", np.arange(1000), path="/b")
    assert run(["advise", str(tmp_path / "b.gs"), "--path", "/b"]) == 0
    out = capsys.readouterr().out
    assert "gs.Schema(" in out and "memory" in out
    assert run(["advise", str(tmp_path / "none.csv")]) == 1
