"""Streams that a query reads, and answers that become arrays: rows once, errors as they are, answers without rows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gridstone as gs
from gridstone.queries import statement

SCHEMA = gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "float64")], sparse=True)


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> gs.Array:
    monkeypatch.chdir(tmp_path)
    a = gs.create("a.gs", SCHEMA)
    a.write_cells({"x": [1, 2, 3]}, {"v": [1.0, 2.0, 3.0]})
    return a


def _scan(a: gs.Array) -> Any:
    return a.scan()


def _answers(a: gs.Array) -> Any:
    return gs.sql("from a", stream=True, a=a)


STREAMS = pytest.mark.parametrize("stream", [_scan, _answers])


@STREAMS
@pytest.mark.parametrize(
    "query",
    [
        "select (select count(*) from q) a, (select count(*) from q) b",
        "select count(*) from q, q as r",
        "from q union all from q",
        "create table t as from q; select count(*) from t, q",
    ],
)
def test_a_stream_that_a_query_names_twice_is_an_error(
    cells: gs.Array, query: str, stream: Callable[[gs.Array], Any]
) -> None:
    with pytest.raises(gs.InputError, match=r"table 'q' is a stream.* collect it first"):
        gs.sql(query, q=stream(cells))
    collected = stream(cells).to_arrow()
    assert len(gs.sql(query, q=collected)) > 0


@STREAMS
@pytest.mark.parametrize("first", ["select count(*) from q", "from q limit 1"])
def test_a_stream_that_an_earlier_query_read_is_an_error(
    cells: gs.Array, first: str, stream: Callable[[gs.Array], Any]
) -> None:
    rows = stream(cells)
    gs.sql(first, q=rows)
    with pytest.raises(gs.InputError, match=r"table 'q' is a stream.* collect it first"):
        gs.sql("select count(*) from q", q=rows)


@STREAMS
def test_a_stream_that_was_read_otherwise_is_an_error(cells: gs.Array, stream: Callable[[gs.Array], Any]) -> None:
    rows = stream(cells)
    assert rows.to_arrow().num_rows == 3
    with pytest.raises(gs.InputError, match=r"table 'q' is a stream.* collect it first"):
        gs.sql("select count(*) from q", q=rows)


@STREAMS
def test_a_stream_is_read_by_the_query_that_names_it_once(cells: gs.Array, stream: Callable[[gs.Array], Any]) -> None:
    rows = stream(cells)
    assert gs.sql("describe q", q=rows)["column_name"].tolist() == ["x", "v"], "this reads no row"
    assert gs.sql("from q", q=rows, explain=True) is not None
    assert gs.sql("with c as (from q) select count(*) n from c, c as d", q=rows)["n"].tolist() == [9]


def test_a_stream_without_rows_is_a_table_without_rows(cells: gs.Array) -> None:
    for where in ("x > 50", "v < 0"):
        assert gs.sql("select count(*) n from q", q=cells.scan(where=where))["n"].tolist() == [0]


# Errors.


def test_an_error_of_a_query_is_no_traceback_where_it_writes_an_array(cells: gs.Array) -> None:
    query = "select i, error(case when i = 200000 then 'boo' end) as v from range(250000) t(i)"
    with pytest.raises(gs.InputError, match="boo") as found:
        gs.sql(query, to="out.gs", dims=["i"])
    assert "Traceback" not in str(found.value) and ".py" not in str(found.value)
    with pytest.raises(gs.InputError) as streamed:
        gs.sql(query, stream=True).to_arrow()
    assert str(found.value) == str(streamed.value)
    assert not gs.exists("out.gs")


def _broken() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"a": [1]})
    raise ValueError("boo")


class _Foreign:
    """A stream of another library."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), _broken())
        return reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "work",
    [lambda: gs.sql("from q", q=_Foreign()), lambda: gs.io.from_arrow("out.gs", _Foreign(), ["a"])],
    ids=["sql", "from_arrow"],
)
def test_an_error_of_a_foreign_stream_is_no_traceback(cells: gs.Array, work: Callable[[], Any]) -> None:
    with pytest.raises(gs.InputError, match="boo") as found:
        work()
    assert "Traceback" not in str(found.value) and ".py" not in str(found.value)


def test_damage_comes_up_as_it_is_through_a_stream(cells: gs.Array) -> None:
    rows = 200_000
    schema = gs.Schema([gs.Dim("x", (0, rows - 1), 10_000)], [gs.Attr("v", "float64")])
    gs.create("b.gs", schema).write(np.random.default_rng(1).random(rows))
    (file,) = [path for path in Path("b.gs").rglob("*") if path.is_file() and path.stat().st_size > 500_000]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))
    for work in (
        lambda: gs.sql("select sum(v) from q", q=gs.open("b.gs").scan()),
        lambda: gs.sql("from q", q=gs.sql("from 'b.gs'", stream=True)),
        lambda: gs.sql("from 'b.gs'", to="out.gs", dims=["x"]),
    ):
        with pytest.raises(gs.CorruptionError, match="checksum"):
            work()


# Answers without rows.

NONE = "select x, v, v::varchar as s, [v] as l, true as b from 'a.gs' where x > 50"
SOME = NONE.replace("> 50", "< 50")


@pytest.mark.parametrize("to", ["out.gs", "out.gs:/in"])
def test_an_answer_without_rows_becomes_an_array_without_cells(cells: gs.Array, to: str) -> None:
    made = gs.sql(NONE, to=to, dims=["x", "s"])
    assert len(made.read()) == 0 and made.dims == ("x", "s")
    assert made.schema.dim("x") == gs.Dim("x", (None, None), dtype="int64"), "as aggregate(to=) makes it"
    assert {attr.name: attr.dtype for attr in made.schema.attrs} == {"v": "float64", "l": "list[float64]", "b": "bool"}
    assert gs.sql(NONE, to=to).version == made.version, "nothing is appended to it"
    assert gs.sql(SOME, to=to).read()["v"].tolist() == [1.0, 2.0, 3.0]
    assert gs.sql(NONE, to=to).read()["v"].tolist() == [1.0, 2.0, 3.0]


def test_dims_are_taken_at_their_word_without_rows_too(cells: gs.Array) -> None:
    chosen = gs.Dim("s", dtype="string", max_bytes=8)
    made = gs.sql(NONE, to="out.gs", dims={"x": (0, None), "s": chosen})
    assert made.schema.dim("x") == gs.Dim("x", (0, None), dtype="int64") and made.schema.dim("s") == chosen
    for dims, kind, message in (
        (["nope"], gs.InputError, "no column 'nope'"),
        (None, gs.InputError, "dims="),
        (["b"], gs.SchemaError, "bool"),
        ({"s": (0, 1)}, gs.InputError, "text, which has no domain"),
    ):
        with pytest.raises(kind, match=message):
            gs.sql(NONE, to="other.gs", dims=dims)
    assert not gs.exists("other.gs")


# Statements.


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (r"select E'it\'s';", True),
        (r"select e'a\\';", True),
        (r"select E'it''s \';' , 1;", True),
        (r"select E'it\';", False),
        (r"select 'a\';", True),
        (r"select name'a\';", True),
        ("select /* a /* b */ c; */ 1;", True),
        ("select 1 /* a /* b */;", False),
        ("select 1; /*/ */", True),
    ],
)
def test_a_statement_ends_where_duckdb_has_it_end(text: str, whole: bool) -> None:
    assert statement.ends(text) is whole


def test_texts_with_escapes_are_read_as_what_they_stand_for() -> None:
    assert statement.quoted(r"""select E'it\'s \\', 'a\', "E'q", E'b''c'""") == ["it's \\", "a\\", "E'q", "b'c"]
