"""What users of h5py, pandas, polars and DuckDB type first."""

import warnings
from itertools import count
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from places import Stores

import gridstone as gs
from gridstone.column import datatype

NUMBERS = count()


def sparse(uri: str, n: int = 5) -> gs.Array:
    attrs = [
        gs.Attr("v", "float32", nullable=True),
        gs.Attr("s", "string"),
        gs.Attr("t", "datetime64[ms]"),
        gs.Attr("k", "string", categories=["a", "b"]),
    ]
    a = gs.create(uri, gs.Schema([gs.Dim("x", (0, n - 1))], attrs, sparse=True, capacity=1_000))
    values = {
        "v": [None, *np.arange(1.0, n)],
        "s": [f"s{x}" for x in range(n)],
        "t": np.arange(n).astype("datetime64[ms]"),
        "k": ["ab"[x % 2] for x in range(n)],
    }
    a.write_cells({"x": np.arange(n)}, values)
    return a


def dense(uri: str) -> gs.Array:
    return gs.array(uri, np.arange(12).reshape(3, 4), dims=["y", "x"], coords={"y": [10, 20, 30]}, name="v")


TABLES = {
    "pa.table": pa.table,
    "pl.DataFrame": lambda a: pl.DataFrame(a).to_arrow(),
    # polars makes a series of whatever is no object of pyarrow.
    "pl.from_arrow": lambda a: pl.from_arrow(a).struct.unnest().to_arrow(),
    "pd.DataFrame.from_arrow": lambda a: pa.Table.from_pandas(pd.DataFrame.from_arrow(a), preserve_index=False),
    "duckdb": lambda a: duckdb.sql("from a").to_arrow_table(),
}


@pytest.mark.parametrize("call", TABLES)
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("part", ["array", "view", "result", "stream"])
def test_libraries_take_handles_as_tables(call: str, kind: str, part: str) -> None:
    a = (sparse if kind == "sparse" else dense)(f"mem://usual-{next(NUMBERS)}")
    given: Any = {"array": a, "view": a["v"], "result": a.read(), "stream": a.scan()}[part]
    found, names = TABLES[call](given), [*a.dims, *(["v"] if part == "view" else a.schema_names)]
    assert found.column_names == names
    want = a.read(attrs="v" if part == "view" else None).to_arrow()
    if kind == "dense" and part != "result":
        # Labels are those of results; cells of streams have their coordinates.
        want = want.set_column(0, "y", pa.array(np.repeat(range(3), 4)))
    assert [list(map(str, row.values())) for row in found.to_pylist()] == [
        list(map(str, row.values())) for row in want.to_pylist()
    ]


def test_a_stream_of_an_array_is_of_one_version_and_in_batches() -> None:
    a = gs.array(f"mem://usual-{next(NUMBERS)}", np.zeros(3_000_000), context=gs.Context("32MiB", 2))
    reader = pa.RecordBatchReader.from_stream(a)
    a[...] = 1
    batches = [batch.column("value").to_numpy() for batch in reader]
    assert sum(map(len, batches)) == 3_000_000 and not any(batch.any() for batch in batches)
    with gs.transaction(a.uri) as tx:
        tx["/"][0] = 5
        assert pa.table(tx["/"])["value"][0].as_py() == 5, "an array of a transaction shows what was staged"


def test_pandas_takes_a_dense_box_as_a_matrix_and_is_told_of_cells() -> None:
    a, cells = dense(f"mem://usual-{next(NUMBERS)}"), sparse(f"mem://usual-{next(NUMBERS)}")
    assert (pd.DataFrame(a.read()).to_numpy() == a[...]).all()
    with pytest.raises(gs.UnsupportedError, match="to_pandas"):
        pd.DataFrame(cells.read())
    assert list(pd.DataFrame(cells.read().to_pandas())) == ["x", "v", "s", "t", "k"]


@pytest.mark.parametrize(
    ("mode", "hint"),
    [
        ("w", r"create\(uri, schema\).*overwrite=True"),
        ("w-", "refuse to overwrite"),
        ("x", "refuse to overwrite"),
        ("a", r"r\+.*exists\(uri, path\)"),
        ("rb", "no binary files"),
        ("r+b", "no binary files"),
        ("wb", "overwrite=True"),
        ("rw", r'mode="r\+"'),
        ("no", "'no'$"),
        (5, "5$"),
        (None, "None$"),
    ],
)
def test_modes_of_other_libraries(mode: Any, hint: str) -> None:
    with pytest.raises(gs.InputError, match=rf"mode= of open\(\) is 'r' or 'r\+', not .*{hint}"):
        gs.open("nothing.gs", mode)
    if mode != "a":
        with pytest.raises(gs.InputError, match=rf"mode= of group\(\) is 'r' or 'r\+' or 'a', not .*{hint}"):
            gs.group("nothing.gs", mode)


def test_a_mode_by_its_place_and_whether_something_is_there(stores: Stores) -> None:
    uri = stores("a")
    assert not gs.exists(uri) and not gs.exists(uri, "/ships")
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int8")]), path="/fleet/ships")
    found = gs.open(uri, "r+", path="/fleet/ships")
    assert found.mode == "r+" and gs.group(uri, "a").mode == "r+" and gs.open(uri, "r").mode == "r"
    for path, is_there in (("/", True), ("/fleet", True), ("/fleet/ships", True), ("/fleet/tugs", False)):
        assert gs.exists(uri, path) is is_there and gs.exists(uri, path=path) is is_there
    gs.delete(uri, path="/fleet/ships")
    assert gs.exists(uri, "/fleet") and not gs.exists(uri, "/fleet/ships")


@pytest.mark.parametrize("filters", ["zstdd", ["delta", "snappy"], "gzipp:6", "", "auto,zip"])
def test_a_wrong_filter_is_known_at_once(filters: Any) -> None:
    with pytest.raises(gs.SchemaError, match=r"attribute 'v'.*is not known; known are none.*delta.*gzip.*zstd"):
        gs.Attr("v", "int32", filters=filters)
    assert gs.Attr("v", "int32", filters=["delta", "zstd:3"]).filters == "delta,zstd:3"
    assert gs.Attr("v", "float32", filters=["bitround:7", "acme.own"]).filters == "bitround:7,acme.own"


ZONED = {
    "2026-03-01T00:00:00Z": "2026-03-01T00:00:00",
    "2026-03-01T00:00:00z": "2026-03-01T00:00:00",
    "2026-03-01 12:00Z": "2026-03-01T12:00",
    "2026-03-01T00:00:00+02:00": "2026-02-28T22:00:00",
    "2026-03-01T06-05": "2026-03-01T11",
    "2026-03-01T00:00:00.5+0530": "2026-02-28T18:30:00.5",
    "2024-02-29T23:30:00-00:45": "2024-03-01T00:15:00",
    "2026-12-31T23:00:00 -02": "2027-01-01T01:00:00",
}


@pytest.mark.parametrize("text", ZONED)
def test_times_with_an_offset_are_times_of_utc(text: str) -> None:
    want = np.datetime64(ZONED[text])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert datatype.moment(text) == want
        dim = gs.Dim("t", ("2020-01-01T00:00:00Z", "2030-01-01T00:00:00+01:00"), dtype="datetime64[ms]")
        attrs = [gs.Attr("u", "datetime64[ms]", fill=text), gs.Attr("n", "int8")]
        a = gs.create(f"mem://usual-{next(NUMBERS)}", gs.Schema([dim], attrs, sparse=True))
        a.write_cells({"t": ["2021-01-01", text]}, {"u": [text, "2021-01-01"], "n": [1, 2]})
        assert a.schema.attr("u").fill == want == a.read(order="row")["t"][1]
        for found in (
            a.read({"t": (text, text)}),
            a.read(where=gs.col("t") == want),
            a.points({"t": [text]}),
            a.sel(t=text),
            a.read(where="u == timestamp '2021-01-01'"),
        ):
            assert found["n"].tolist() == [2]
        assert a.update({"u": gs.lit(text)}, where="n == 2").cells == 1
        assert (a.read()["u"] == want).all()
        assert a.at(timestamp="2999-01-01T00:00:00+02:00").version == a.version
    with pytest.raises(gs.InputError, match="is no"):
        a.read({"t": ("2026-03-01T00:00:00+99:00", "2027")})


@pytest.mark.parametrize("order", ["any", "global", "row", "col"])
def test_a_limit_reads_little(order: str) -> None:
    n = 200_000
    a = sparse(f"mem://usual-{next(NUMBERS)}", n)
    d = gs.array(f"mem://usual-{next(NUMBERS)}", np.arange(1_000_000).reshape(1_000, 1_000), tile=100)
    whole = {"a": len(a.tiles()), "d": 100}
    assert a.read(limit=10, order=order)["x"].tolist() == list(range(10))
    assert a.stats["blocks_decoded"] < whole["a"] / 10 and a.stats["cells_scanned"] < n / 10
    first = d.read(limit=10, order=order)
    want = list(range(10)) if order != "col" else list(range(0, 10_000, 1_000))
    assert first["value"].tolist() == want and first.shape is None and len(first["d0"]) == 10
    assert d.stats["blocks_decoded"] <= 12
    assert len(a.head()) == 10 and a.head(3, "v").keys() == ["x", "v"] and a.stats["cells_scanned"] < n / 10
    assert d.head(4).to_arrow().to_pylist()[3] == {"d0": 0, "d1": 3, "value": 3}


def test_a_limit_is_of_what_was_asked() -> None:
    a = sparse(f"mem://usual-{next(NUMBERS)}", 5_000)
    for limit in (0, 1, 7, 999, 4_999, 5_000, 10**9):
        got = a.read({"x": (10, 4_000)}, "s", "x % 2 == 0", limit=limit)
        want = [f"s{x}" for x in range(10, 4_001, 2)][:limit]
        streamed = a.scan({"x": (10, 4_000)}, "s", "x % 2 == 0", "row", limit=limit).to_numpy()
        assert got["s"].tolist() == want == streamed["s"].tolist()
    assert a.read(limit=3).to_dense()["s"].tolist()[:3] == ["s0", "s1", "s2"]
    assert list(a.scan(limit=0)) == [] and a.read(where="v > 1", limit=2).to_arrow().num_rows == 2
    assert sum(batch.num_rows for batch in a.scan(limit=4_321, batch_bytes="1KiB")) == 4_321
    assert a.read([{"x": (5, 6)}, {"x": (6, 9)}], limit=3)["x"].tolist() == [5, 6, 7]
    for wrong in (-1, 1.5, True, "3"):
        with pytest.raises(gs.InputError, match="limit= is a whole number"):
            a.read(limit=wrong)  # type: ignore[arg-type]
        with pytest.raises(gs.InputError, match="n= is a whole number"):
            a.head(wrong)  # type: ignore[arg-type]
    with pytest.raises(gs.InputError, match="out="):
        a.read(out=np.zeros(3), limit=3)


def test_a_count_is_of_cells(stores: Stores) -> None:
    a = sparse(stores("a"), 3_000)
    assert (a.count(), len(a), a.stats["tiles_read"]) == (3_000, 3_000, 0), "from the index"
    a.delete({"x": (100, 199)})
    a.write_cells({"x": [100]}, {"v": [1.0], "s": [""], "t": ["2020"], "k": ["a"]})
    assert (a.count(), a.count({"x": (0, 150)}), a.count(where="k == 'a'"), len(a)) == (2_901, 101, 1_451, 3_000)
    assert a.count([]) == 0 == a.count(where="v < -1") and isinstance(a.count(), int)
    d = dense(stores("d"))
    assert (d.count(), d.count({"x": (0, 1)}), d.count(where="v > 5"), len(d)) == (12, 6, 6, 3)
    with pytest.raises(gs.InputError, match="nothing"):
        d.count(where="nothing > 1")


LIMITS = {
    "attributes": (lambda: gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr(f"a{n}", "int8") for n in range(5_000)]), "4096"),
    "dimensions": (lambda: gs.Schema([gs.Dim(f"x{n}", (0, 1)) for n in range(9)], [gs.Attr("a", "int8")]), "1 to 8"),
    "names": (lambda: gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("n" * 300, "int8")]), "1 to 255 bytes"),
    "vectors": (lambda: gs.Attr("v", "float64", shape=70_000), "65536 bytes"),
    "conditions": (lambda: gs.Expression.parse("(" * 300 + "v > 1" + ")" * 300), "more than 200"),
}


@pytest.mark.parametrize("what", LIMITS)
def test_an_error_of_a_limit_names_the_limit(what: str) -> None:
    call, limit = LIMITS[what]
    with pytest.raises((gs.SchemaError, gs.InputError), match=limit):
        call()


def test_limits_of_what_is_written_are_named() -> None:
    texts = gs.Dim("x", None, dtype="string", max_bytes=8)
    attrs = [gs.Attr("v", "int8"), gs.Attr("c", "string", categories=["a"], codes="uint8")]
    a = gs.create(f"mem://usual-{next(NUMBERS)}", gs.Schema([texts], attrs, sparse=True))
    for call, said in (
        (lambda: a.write_cells({"x": ["a" * 9]}, {"v": [1], "c": ["a"]}), "9 bytes.* has 8; raise its max_bytes"),
        (lambda: a.alter(categories={"c": [str(n) for n in range(300)]}), "301 categories .* 256 of uint8"),
        (lambda: a.write_cells({"x": ["a"]}, {"v": [1], "c": ["a"]}, commit_key="k" * 129), "1 to 128 bytes"),
        (lambda: a.meta.update({"k" * 70_000: 1}), "at most 65536"),
    ):
        with pytest.raises((gs.SchemaError, gs.InputError), match=said):
            call()
