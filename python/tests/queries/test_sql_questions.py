"""`gridstone.sql` and `gridstone.connect`: names, parameters, frames, streams, plans, errors."""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import asked
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs

pytestmark = pytest.mark.filterwarnings("ignore::gridstone.NatWarning")
SCHEMA = gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "float64"), gs.Attr("s", "string")], sparse=True)
OLD_SIZE, NEW_SIZE = 3, 5


def _filled(uri: Any, rows: int = OLD_SIZE, path: str = "/", schema: gs.Schema = SCHEMA) -> gs.Array:
    a = gs.create(uri, schema, path=path)
    a.write_cells({"x": list(range(rows))}, {"v": np.arange(rows) / 2, "s": [f"t{i}" for i in range(rows)]})
    return a


def _one(query: str, *arguments: Any, **options: Any) -> Any:
    """The one value of an answer of one row and column."""
    ((value,),) = zip(*gs.sql(query, *arguments, **options).to_arrow().to_pydict().values(), strict=True)
    return value


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_answer_is_a_result(here: Path) -> None:
    _filled("ais.gs")
    found = gs.sql("select s, sum(v) as total, count(*) as n from 'ais.gs' group by s order by s")
    assert isinstance(found, gs.Result)
    assert found.keys() == ["s", "total", "n"] and len(found) == 3
    assert found["total"].tolist() == [0.0, 0.5, 1.0] and found["n"].dtype == np.int64
    assert found.to_pandas()["s"].tolist() == ["t0", "t1", "t2"]
    assert found.to_polars().height == 3
    assert found.stats["cells_returned"] == 3


@pytest.mark.parametrize("path", ["/", "/ships", "/a/b", "/a@b", "/it's", "/select", '/"q"', "/naïve 𝔘"])
@pytest.mark.parametrize(
    "name", ["ais.gs", "it's.gs", "select.gs", "a b.gs", "ü𝔘.gs", "a@b.gs", 'q"q.gs', "noend", "a:b.gs"]
)
def test_names(here: Path, name: str, path: str) -> None:
    a = _filled(name, path=path)
    gs.tag(name, "then", a.version)
    a.write_cells({"x": [50, 51]}, {"v": [1.0, 2.0], "s": ["a", "b"]})
    place = name if path == "/" else f"{name}:{path}"
    for text, rows in (
        (place, NEW_SIZE),
        (f"{place}@then", OLD_SIZE),
        (f"{place}@{a.version}", NEW_SIZE),
        (f"{here}/{place}@then", OLD_SIZE),
    ):
        quoted = text.replace("'", "''")
        assert _one(f"select count(*) from '{quoted}'") == rows, text
        assert _one(f"from {asked.quoted(text)} select count(*)") == rows, text
    view = path.strip("/") or name.removesuffix(".gs")
    assert gs.connect(name).sql(f"select count(*) from {asked.quoted(view)}").fetchall() == [(NEW_SIZE,)]
    assert gs.connect(name, version="then").sql(f"from {asked.quoted(view)}").shape == (OLD_SIZE, 3)


@pytest.mark.parametrize("column", ["select", "a b", 'q"q', "it's", "Ünï", "x.y", "1", "%", "a;b"])
def test_names_of_columns(here: Path, column: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr(column, "int64")], sparse=True)
    gs.create("a.gs", schema).write_cells({"x": [1, 2]}, {column: [5, 6]})
    name = asked.quoted(column)
    found = gs.sql(f"select {name}, {name} + 1 as n from 'a.gs' where {name} > 5")
    assert found.keys() == [column, "n"] and found[column].tolist() == [6]
    assert found.stats["cells_returned"] == 1


def test_columns_that_differ_in_case_alone_are_not_mixed_up(here: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr(name, "int64") for name in ("X", "v", "V")], sparse=True)
    gs.create("a.gs", schema).write_cells({"x": [1]}, {"X": [2], "v": [3], "V": [4]})
    assert gs.sql("select x, X_1, v, V_1 from 'a.gs' where V_1 = 4").to_pandas().iloc[0].tolist() == [1, 2, 3, 4]
    assert _one("select count(*) from 'a.gs' -- V") == 1
    for query in ("select V from 'a.gs'", "select \"V\" from 'a.gs'", "select 1 from 'a.gs' where V = 4"):
        with pytest.raises(gs.InputError, match=r"column 'V' of 'a\.gs' is called 'V_1' in SQL"):
            gs.sql(query)


def test_all_arrays_of_a_store_are_of_one_version(here: Path) -> None:
    a = _filled("s.gs", path="/a")
    _filled("s.gs", path="/b")
    a.write_cells({"x": [50]}, {"v": [1.0], "s": ["a"]})
    query = "select (select count(*) from 's.gs:/a'), (select count(*) from 's.gs:/b')"
    assert list(gs.sql(query).to_pandas().iloc[0]) == [4, 3]
    assert _one("select count(*) from 's.gs:/a' join 's.gs:/b' using (x)") == 3
    assert _one("select count(*) from 's.gs:/a@2' natural join 's.gs:/a'") == 3


def test_parameters_are_bound(here: Path) -> None:
    _filled("a.gs")
    assert _one("select count(*) from 'a.gs' where s = ?", ["t1"]) == 1
    assert _one("select count(*) from 'a.gs' where s = $1 or x = $2", ["' or true --", 2]) == 1
    assert _one("select count(*) from 'a.gs' where s = $name", {"name": "t1"}) == 1
    assert _one("select count(*) from 'a.gs' where v > ?", [np.float64(0.25)]) == 2
    assert _one("select count(*) from 'a.gs' where x = ?", (np.int64(2),)) == 1
    assert _one("select ? is null", [None])
    found = gs.sql("select x from 'a.gs' where x >= ?", [2])
    assert found.stats["cells_returned"] == 1, "a bound value reaches the array"
    for wrong in (5, "t1", b"t"):
        with pytest.raises(gs.InputError, match="params="):
            gs.sql("select ?", wrong)
    with pytest.raises(gs.InputError, match="parameter"):
        gs.sql("select ?", [])


def test_parameters_of_numpy_and_pandas_keep_their_value(here: Path) -> None:
    moments = np.array(["1970-01-01T00:00:00.000000002", "2024-05-01T12:00"], "datetime64[ns]")
    spans = np.array([1, 3_600_000_000], "timedelta64[us]")
    rows = {"t": moments, "s": moments.astype("datetime64[s]"), "d": spans}
    for column, value, wanted in (
        ("t", moments[0], 1), ("t", pd.Timestamp(2), 1), ("t", moments[0] + np.timedelta64(1, "ns"), 0),
        ("t", moments[1], 1), ("s", moments[1], 1), ("s", np.datetime64("2024-05-01T12", "h"), 1),
        ("s", np.datetime64("NaT"), 0), ("d", spans[1], 1), ("d", spans[1].astype("timedelta64[ns]"), 1),
        ("d", np.timedelta64("NaT"), 0),
    ):  # fmt: skip
        assert _one(f"select count(*) from t where {column} = ?", [value], t=rows) == wanted, (column, value)
    for value in (np.timedelta64(1, "ns"), pd.Timedelta(1)):
        with pytest.raises(gs.InputError, match="microseconds"):
            gs.sql("select ?", [value])


def test_frames_of_every_kind(here: Path) -> None:
    a = _filled("a.gs")
    table = pa.table({"x": [1, 2], "k": ["p", "q"]})
    pq.write_table(table, "k.parquet")
    (here / "k.csv").write_text("x,k\n1,p\n2,q\n")
    query = "select count(*) from 'a.gs' join other using (x)"
    kinds: dict[str, Any] = {
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "lazy": a.to_lazy().filter(pl.col("x") < 2),
        "array": a.filter("x < 2", to="few.gs"),
        "result": a.read(where="x < 2"),
        "stream": a.scan(where="x < 2"),
        "mapping": {"x": [1, 2]},
        "data set": a.filter("x < 2", to="some.gs").to_pyarrow_dataset(),
    }
    for kind, data in kinds.items():
        assert _one(query, other=data) == 2, kind
    assert _one("select count(*) from 'a.gs' join \"or der\" using (x)", tables={"or der": table}) == 2
    for file in ("k.parquet", "k.csv"):
        assert _one(f"select count(*) from 'a.gs' join '{file}' using (x)") == 2
    with pytest.raises(gs.InputError, match="table 'other' is"):
        gs.sql(query, other=3)
    with pytest.raises(gs.InputError, match="given twice"):
        gs.sql(query, tables={"other": table}, other=table)
    with pytest.raises(gs.InputError, match="tables="):
        gs.sql(query, tables=[table])
    with pytest.raises(gs.InputError, match="in case alone"):
        gs.sql("select 1", Other=table, other=table)


def test_variables_of_the_caller_are_no_tables(here: Path) -> None:
    frame = pd.DataFrame({"a": [1]})
    assert len(frame) == 1
    with pytest.raises(gs.InputError, match="frame"):
        gs.sql("select * from frame")


def test_statements_of_other_kinds(here: Path) -> None:
    _filled("a.gs")
    assert _one("create table t as select * from 'a.gs' where x < 2; select count(*) from t") == 2
    assert gs.sql("describe 'a.gs'")["column_name"].tolist() == ["x", "v", "s"]
    assert len(gs.sql("summarize 'a.gs'")) == 3
    assert gs.sql("pivot (select s, v from 'a.gs') on s using sum(v)").keys() == ["t0", "t1", "t2"]
    assert _one("with c as (from 'a.gs') select count(*) from c") == 3
    gs.sql("copy (from 'a.gs') to 'out.parquet'")
    assert pq.read_table("out.parquet").num_rows == 3


def test_types_of_answers(here: Path) -> None:
    found = gs.sql(
        "select 1 as x, 2 as x, sum(i) as big, 1.25 as d, null as n, true as b, 'a'::enum('a', 'b') as e, "
        "'x'::blob as h, [1, 2] as l, date '2024-05-01' as day, timestamp_ns '2024-05-01 00:00:00.000000001' as ns, "
        "uuid() is not null as u, 18446744073709551615::hugeint as top, timestamptz '2024-05-01 00:00:00+00' as z "
        "from range(3) t(i)"
    )
    values = {name: found[name].tolist()[0] for name in found if name not in ("h", "l", "day", "ns", "z")}
    assert values == {
        "x": 1, "x_1": 2, "big": 3, "d": 1.25, "n": None, "b": True, "e": "a", "u": True, "top": 2**64 - 1
    }  # fmt: skip
    assert found["ns"][0] == np.datetime64("2024-05-01T00:00:00.000000001")
    assert found["day"][0] == np.datetime64("2024-05-01") and found["z"][0] == np.datetime64("2024-05-01")
    for query, message in (
        ("select sum(9223372036854775807) as s from range(9)", "column 's' of the answer holds a whole number"),
        ("select interval 1 month as span", "column 'span' of the answer holds an interval of months"),
        ("select [interval 1 day] as spans", "column 'spans' of the answer"),
        ("select to_days(2147483647) + to_days(0) as span", "more than 292,000 years"),
        ("select to_microseconds(-9223372036854775808) as span", "more than 292,000 years"),
        ("select {'a': 1} as st", "column 'st' of the answer"),
    ):
        with pytest.raises((gs.InputError, gs.UnsupportedError), match=message):
            gs.sql(query)
        with pytest.raises((gs.InputError, gs.UnsupportedError), match=message):
            gs.sql(query, stream=True).to_arrow()


SPANS = st.tuples(st.integers(-(10**8), 10**8), st.integers(-(2**62), 2**62)).map(
    lambda parts: None if parts[0] % 5 == 0 else parts
)


@given(spans=st.lists(SPANS, min_size=1, max_size=9))
def test_intervals_are_durations(spans: list[tuple[int, int] | None]) -> None:
    """Days of 24 hours and microseconds, exactly: also where Arrow's nanoseconds would wrap."""
    rows = ", ".join(
        "(null::interval)" if one is None else f"(to_days({one[0]}) + to_microseconds({one[1]}))" for one in spans
    )
    query = f'select 1 as x, i as "a ""b", 2 as x from (values {rows}) t(i)'
    found = gs.sql(query).to_arrow()
    wanted = [None if one is None else one[0] * 86_400 * 10**6 + one[1] for one in spans]
    assert found.column_names == ["x", 'a "b', "x_1"] and found.column(1).type == pa.duration("us")
    assert found.column(1).cast(pa.int64()).to_pylist() == wanted
    assert gs.sql(query, stream=True).to_arrow().column(1) == found.column(1)


def test_spans_of_arrays_and_differences(tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("s", "timedelta64[s]", nullable=True)], sparse=True)
    a = gs.create(str(tmp_path / "a"), schema)
    values = np.ma.MaskedArray(np.array([5, -7, 2**40], "m8[s]"), [False, True, False])
    a.write_cells({"x": [1, 2, 3]}, {"s": values})
    found = gs.sql("select s, s + interval 1 hour as t from a order by x", a=a)
    assert found["s"].dtype == "m8[us]" and found["s"].tolist() == values.astype("m8[us]").tolist()
    assert found["t"][0] == np.timedelta64(3605, "s")
    made = gs.sql("select x, s from a where s is not null", a=a, to=str(tmp_path / "b"), dims=["x"])
    assert made.read()["s"].tolist() == values.compressed().astype("m8[us]").tolist()
    empty = gs.sql("select s from a where x > 5", a=a)
    assert len(empty) == 0 and empty.to_arrow().schema.field("s").type == pa.duration("us")


@given(r=st.integers(0, 2**32).map(Random), sparse=st.booleans())
def test_answers_equal_those_over_a_table(r: Random, sparse: bool) -> None:
    a = asked.array_of(r, sparse)
    table = asked.table_of(a)
    where = asked.predicate(r, [*a.dims, *a.schema_names]).sql
    key, value = r.choice(["i", "s", "e", "b", "day", "x"]), r.choice(["f", "g", "u", "t", 'a "b'])
    query = (
        f"select {key}, count(*) n, min({asked.quoted(value)}) lo, max({asked.quoted(value)}) hi, count(f) c "
        f"from cells where {where} group by 1 order by all"
    )
    with duckdb.connect() as con:
        try:
            wanted = con.register("cells", table).sql(query).fetchall()
        except duckdb.Error:
            return
    found = gs.sql(query, cells=a).to_arrow()
    with duckdb.connect() as con:
        assert repr(con.register("found", found).sql("from found").fetchall()) == repr(wanted), query


# Streams.


def _wide(uri: str, rows: int = 3_000_000) -> gs.Array:
    schema = gs.Schema([gs.Dim("x", (0, rows - 1), 100_000)], [gs.Attr("v", "int64")])
    a = gs.create(uri, schema, context=asked.QUICK)
    a.write(np.arange(rows))
    return a


@pytest.fixture(scope="module")
def wide() -> gs.Array:
    return _wide(f"mem://{uuid.uuid4()}")


def test_a_stream_gives_batches(wide: gs.Array) -> None:
    rows = gs.sql("select x, v * 2 as w from wide where x < 300000", stream=True, wide=wide)
    assert rows.schema == pa.schema([("x", pa.int64()), ("w", pa.int64())])
    first = next(rows)
    assert isinstance(first, pa.RecordBatch) and "rows are left" in repr(rows)
    left = rows.to_arrow()
    assert first.num_rows + left.num_rows == 300_000 and "at its end" in repr(rows)
    assert rows.stats["cells_returned"] >= 300_000
    assert list(rows) == []
    assert gs.sql("select v from wide where x < 3", stream=True, wide=wide).to_numpy()["v"].tolist() == [0, 1, 2]
    assert gs.sql("from wide limit 5", stream=True, wide=wide).to_polars().height == 5
    assert len(gs.sql("from wide limit 5", stream=True, wide=wide).to_pandas()) == 5
    again = pa.RecordBatchReader.from_stream(gs.sql("from wide limit 5", stream=True, wide=wide))
    assert again.read_all().num_rows == 5


@pytest.mark.parametrize("how", ["del", "close", "with"])
def test_a_half_read_stream_is_dropped_at_once(wide: gs.Array, how: str) -> None:
    query = "select x, v from wide where v % 7 <> 3"
    rows: Any = gs.sql(query, stream=True, wide=wide)
    assert next(rows).num_rows > 0
    counted = rows._source.stats
    begun = time.monotonic()
    if how == "del":
        del rows
    elif how == "close":
        rows.close()
        assert list(rows) == []
    else:
        with rows:
            next(rows)
    assert time.monotonic() - begun < 1
    assert counted()["cells_returned"] < 3_000_000, "the array was not read to its end"


def test_it_answers_within_the_budget(tmp_path: Path) -> None:
    small = gs.Context("96MiB", durability="close")
    uri = str(tmp_path / "wide.gs")
    _wide(uri, 2_000_000)
    wide: Any = gs.open(uri, context=small)
    total = sum(
        batch.num_rows for batch in gs.sql("select x, v, v + 1, v + 2 from wide", stream=True, wide=wide, context=small)
    )
    assert total == 2_000_000
    assert small.peak_bytes <= 96 << 20
    found = gs.sql("select count(*) n from (select distinct v % 1000000 as k from wide)", wide=wide, context=small)
    assert found["n"].tolist() == [1_000_000], "groups that pass the budget are spilled"


def _interrupted(after: float, work: Callable[[], Any]) -> float:
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    timer.join()
    return time.monotonic() - begun


def test_an_interrupt_comes_up(wide: gs.Array) -> None:
    endless = "select sum(a.v * b.v) from wide a, wide b where a.x % 3 <> b.x % 5"
    assert _interrupted(0.5, lambda: gs.sql(endless, wide=wide)) < 20
    slow = "select a.v from wide a, wide b where a.x + b.x = -1"
    assert _interrupted(0.5, lambda: gs.sql(slow, stream=True, wide=wide).to_arrow()) < 20
    assert _one("select count(*) from wide", wide=wide) == 3_000_000, "what comes after is not touched"


@pytest.mark.parametrize("call", ["rows", "accepts", "stream", "__arrow_c_schema__"])
def test_an_interrupt_comes_up_while_duckdb_asks_of_an_array(
    wide: gs.Array, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    kind = type(wide.to_pyarrow_dataset())
    asked = getattr(kind, call)

    def slow(*given: Any) -> Any:
        time.sleep(0.4)
        return asked(*given)

    monkeypatch.setattr(kind, call, slow)
    endless = "select sum(a.v * b.v) from wide a, wide b where a.x % 3 <> b.x % 5 and a.x >= 1"
    for after in (0.2, 0.6, 1.0):
        assert _interrupted(after, lambda: gs.sql(endless, wide=wide)) < 20


# Writing.


def test_an_answer_becomes_an_array(here: Path) -> None:
    a = _filled("a.gs", 50)
    query = "select x // 10 as ten, avg(v) as mean, sum(x) as total, any_value(s) as s from 'a.gs' group by 1"
    made = gs.sql(query, to="out.gs:/tens", dims=["ten"])
    assert isinstance(made, gs.Array) and made.path == "/tens" and made.dims == ("ten",)
    assert made.read()["total"].tolist() == [45, 145, 245, 345, 445]
    kinds = [operation["op"] for version in made.history() for operation in version.operations]
    assert kinds.count("add_fragments") == 1
    again = gs.sql("select x, v, s from 'a.gs' where x < 5", to=here / "few.gs", dims=["x"])
    assert len(again.read()) == 5
    gs.sql("select x, v, s from 'a.gs' where x between 5 and 9", to="few.gs")
    assert len(gs.open("few.gs").read()) == 10, "what is there is appended to"
    with pytest.raises(gs.InputError, match="error here"):
        gs.sql("select x, v, s, case when x = 7 then error('error here') end e from 'a.gs'", to="bad.gs", dims=["x"])
    assert not gs.exists("bad.gs")
    with pytest.raises(gs.InputError, match="dims="):
        gs.sql("select 1", dims=["x"])
    with pytest.raises(gs.InputError, match="explain="):
        gs.sql("select 1", explain=True, stream=True)
    assert a.version == 2


# Plans.


def test_a_plan_tells_what_reaches_the_arrays(here: Path) -> None:
    _filled("a.gs", 50)
    _filled("b.gs", 50)
    query = "select a.v from 'a.gs' a join 'b.gs' b using (x) where a.x between 3 and 5 and b.s like '%1'"
    plan = gs.sql(query, explain=True)
    assert isinstance(plan, gs.Plan)
    by_name = {scan.table: scan for scan in plan.scans}
    assert "x >= 3" in str(by_name["a.gs"].where) and not by_name["a.gs"].stats
    assert "PYTHON_ARROW_SCAN" in str(plan) and "a.gs" in str(plan)
    done = gs.sql(query, explain="analyze")
    by_name = {scan.table: scan for scan in done.scans}
    assert set(by_name["a.gs"].columns or ()) == {"x", "v"}
    assert by_name["a.gs"].stats["cells_returned"] == 3
    assert "cells_returned" in str(done) and '"cells_returned": 3' in done.to_json()
    assert "No array is read" in str(gs.sql("select 1", explain=True))
    assert gs.sql("select x from 'a.gs' where x < ?", [3], explain="analyze").scans[0].stats["cells_returned"] == 3
    with pytest.raises(gs.InputError, match="explain="):
        gs.sql(query, explain="yes")  # type: ignore[call-overload]


# Mistakes.


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("", gs.InputError, "empty"),
        ("selec 1", gs.InputError, "syntax error"),
        ("select sgo from 'a.gs'", gs.InputError, r'"sgo" not found'),
        ("select x + s from 'a.gs'", gs.InputError, "(?i)error"),
        ("from 'no.gs'", gs.NotFoundError, "there is no array 'no.gs'"),
        ("from 'a.gs@9'", gs.NotFoundError, "'a.gs@9': there is no version 9"),
        ("from 'a.gs@tag'", gs.NotFoundError, "tag"),
        ("from 'a.gs' join 'no.gs' using (x)", gs.NotFoundError, "there is no array 'no.gs'"),
        ("from 'a.gs' join 'a.gs@9' using (x)", gs.NotFoundError, "'a.gs@9': there is no version 9"),
        ("from 'a.gs' join 'a.gs:/b' using (x)", gs.NotFoundError, "'a.gs:/b'"),
        ("from 'a.gs' join 'no.parquet' using (x)", gs.NotFoundError, "no.parquet"),
        ("from 'a.gs' join \"it's no.gs\" using (x)", gs.NotFoundError, "it's no.gs"),
        ("from 'a.gs:/b'", gs.NotFoundError, "b"),
        ("from 'g.gs'", gs.NotFoundError, "group"),
        ("from nope", gs.InputError, "nope"),
        ("from 'no.parquet'", gs.NotFoundError, "no.parquet"),
        ("select error('oh')", gs.InputError, "oh"),
        ("select 'x'::int", gs.InputError, "Could not convert"),
    ],
)
def test_mistakes_name_what_is_wrong(here: Path, query: str, kind: type[Exception], message: str) -> None:
    _filled("a.gs")
    _filled("g.gs", path="/in")
    with pytest.raises(kind, match=message):
        gs.sql(query)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "table 'mine' is None"),
        ([1], r"table 'mine' is \[1\] of type list"),
        ({}, "table 'mine' is a mapping without columns"),
        ({"a": [1, 2], "b": [1]}, "table 'mine': its columns are no table"),
    ],
)
def test_tables_that_are_none_are_named(data: Any, message: str) -> None:
    with pytest.raises(gs.InputError, match=message):
        gs.sql("from mine", mine=data)


def test_a_store_may_be_called_as_a_file_is(here: Path) -> None:
    _filled("a.parquet")
    _filled("b.csv", path="/in")
    assert _one("select count(*) from 'a.parquet'") == OLD_SIZE
    assert _one("select count(*) from 'a.parquet' join 'b.csv:/in' using (x)") == OLD_SIZE
    pq.write_table(pa.table({"x": [1]}), here / "c.parquet")
    assert _one("select count(*) from 'c.parquet' join 'a.parquet' using (x)") == 1


def test_damage_comes_up_as_it_is(here: Path) -> None:
    rows = 200_000
    schema = gs.Schema([gs.Dim("x", (0, rows - 1), 10_000)], [gs.Attr("v", "float64")])
    gs.create("a.gs", schema).write(np.random.default_rng(1).random(rows))
    (file,) = [path for path in here.rglob("*") if path.is_file() and path.stat().st_size > 500_000]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))
    with pytest.raises(gs.CorruptionError):
        gs.sql("select sum(v) from 'a.gs'")
    with pytest.raises(gs.CorruptionError):
        gs.sql("select v from 'a.gs'", stream=True).to_arrow()


def test_a_data_set_can_be_asked_again(here: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("ns", "datetime64[ns]")], sparse=True)
    a = gs.create("a.gs", schema)
    a.write_cells({"x": [1]}, {"ns": np.array([1_001], "M8[ns]")})
    data = a.to_pyarrow_dataset(times="us")
    for _ in range(3):
        with pytest.raises(gs.InputError, match=r"column 'ns' of .*a\.gs"):
            gs.sql("select ns from data", data=data)
        with pytest.raises(gs.InputError, match="another"):
            gs.sql("select error('another') from data where x = 1", data=data)
        assert _one("select x from data", data=data) == 1
        assert len(gs.sql("select x from data where x < 5", data=data, explain="analyze").scans) == 1
    assert not data._cells._watchers


def test_a_missing_duckdb_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    for call in (lambda: gs.sql("select 1"), lambda: gs.connect("a.gs")):
        with pytest.raises(gs.UnsupportedError, match=r"gridstone\[sql\]"):
            call()


# Connections.


def test_a_connection_shows_one_version(here: Path) -> None:
    a = _filled("s.gs", path="/north/ships")
    _filled("s.gs", path="/buoys")
    con = gs.connect("s.gs")
    a.write_cells({"x": [50]}, {"v": [1.0], "s": ["a"]})
    assert con.sql('select count(*) from "north/ships"').fetchall() == [(3,)]
    assert con.sql('select count(*) from "north/ships" join buoys using (x)').fetchall() == [(3,)]
    con.execute("create table own as from buoys")
    assert con.sql("select count(*) from own").fetchall() == [(3,)]
    assert gs.connect("s.gs", version=2).sql("show tables").fetchall() == [("north/ships",)]
    with pytest.raises(gs.NotFoundError):
        gs.connect("nope.gs")
    with pytest.raises(gs.NotFoundError):
        gs.connect("s.gs", version="nope")
    _filled("s.gs", path="/Buoys")
    with pytest.raises(gs.InputError, match="in case alone"):
        gs.connect("s.gs")


@pytest.fixture(autouse=True)
def _no_files_left() -> Iterator[None]:
    import tempfile

    before = set(Path(tempfile.gettempdir()).glob("gridstone-sql-*"))
    yield
    assert set(Path(tempfile.gettempdir()).glob("gridstone-sql-*")) <= before, "spilled files are gone"
