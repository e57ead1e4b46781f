"""Arrays as data sets: DuckDB, pyarrow, DataFusion and polars find in them what they find in a table of the cells."""

import pickle
import uuid
from random import Random
from typing import Any

import asked
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs
from gridstone.datasets import dataset as datasets

SEEDS = st.integers(0, 2**32).map(Random)
pytestmark = pytest.mark.filterwarnings("ignore::gridstone.NatWarning")
NAMES = [attr.name for attr in asked.ATTRS]


def _plain_dataset(a: gs.Array) -> ds.Dataset:
    """The data set as it is where DuckDB's private module is missing."""
    return datasets.ArrayDataset(a._at_one_version(), "keep", a._title)


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def _found(source: Any, where: str) -> list[str]:
    with duckdb.connect() as con:
        con.register("cells", source)
        keys = [name for name in ("x", "y") if name in source.schema.names]
        try:
            return sorted(map(repr, con.sql(f"select {', '.join(keys)} from cells where {where}").fetchall()))
        except duckdb.Error as error:
            return [type(error).__name__]


@given(r=SEEDS, sparse=st.booleans())
def test_duckdb_finds_what_it_finds_in_a_table(r: Random, sparse: bool) -> None:
    a = asked.array_of(r, sparse)
    table = asked.table_of(a)
    names = [*NAMES, *a.dims]
    for _ in range(4):
        where = asked.predicate(r, names).sql
        wanted = _found(table, where)
        if wanted and wanted[0].endswith("Exception"):
            continue
        assert _found(a.to_pyarrow_dataset(), where) == wanted, where
        assert _found(_plain_dataset(a), where) == wanted, where


@given(r=SEEDS, sparse=st.booleans())
def test_pyarrow_finds_what_it_finds_in_a_table(r: Random, sparse: bool) -> None:
    a = asked.array_of(r, sparse)
    table, data = asked.table_of(a), a.to_pyarrow_dataset()
    memory = ds.InMemoryDataset(table)
    assert data.count_rows() == table.num_rows
    assert _rows(data.to_table()) == _rows(table)
    for _ in range(4):
        mask = asked.predicate(r, [*NAMES, *a.dims]).arrow
        try:
            wanted = memory.to_table(filter=mask)
        except pa.ArrowException:
            continue
        columns = r.sample(data.schema.names, r.randint(0, 4))
        assert _rows(data.to_table(filter=mask)) == _rows(wanted), mask
        assert _rows(data.to_table(columns, mask)) == _rows(wanted.select(columns)), mask
        assert data.to_table(columns, mask).num_rows == wanted.num_rows
        assert data.count_rows(mask) == wanted.num_rows, mask
        assert _rows(data.filter(mask).to_table(["x"])) == _rows(wanted.select(["x"]))
        assert sum(f.count_rows(filter=mask) for f in data.get_fragments(mask)) == wanted.num_rows


@given(r=SEEDS, sparse=st.booleans())
def test_polars_finds_what_it_finds_in_a_frame(r: Random, sparse: bool) -> None:
    a = asked.array_of(r, sparse)
    # Fixed bytes are plain ones in polars, and categories differ between frames.
    frame: Any = pl.from_arrow(asked.table_of(a, keep=True))
    lazy, keys = a.to_lazy(), list(a.dims)
    assert lazy.collect_schema() == frame.schema
    assert lazy.select(pl.len()).collect().item() == frame.height
    for _ in range(4):
        mask = asked.predicate(r, [*NAMES, *a.dims]).polars
        try:
            # Evaluated as a column first: `frame.filter` of polars 2.1 loses rows of some predicates.
            wanted = frame.filter(frame.select(mask).to_series()).select(keys).sort(keys)
        except Exception as error:
            with pytest.raises(type(error)):
                lazy.filter(mask).collect()
            continue
        assert lazy.filter(mask).select(keys).collect().sort(keys).equals(wanted), mask


@given(r=SEEDS, sparse=st.booleans())
def test_values_come_as_they_are(r: Random, sparse: bool) -> None:
    a = asked.array_of(r, sparse)
    table = asked.table_of(a)
    con = duckdb.connect()
    for name in table.column_names:
        query = f"select x, {asked.quoted(name)} as v from cells"
        con.register("cells", table)
        wanted = sorted(map(repr, con.sql(query).fetchall()))
        con.register("cells", a.to_pyarrow_dataset())
        assert sorted(map(repr, con.sql(query).fetchall())) == wanted, name
    assert con.sql("select count(*) from cells").fetchall() == [(table.num_rows,)]


def _measured(count: int = 20_000) -> gs.Array:
    schema = gs.Schema(
        [gs.Dim("x", (0, count - 1), 1_000)],
        [
            gs.Attr("v", "float64"),
            gs.Attr("n", "int64"),
            gs.Attr("s", "string"),
            gs.Attr("t", "datetime64[s]"),
            gs.Attr("ns", "datetime64[ns]"),
            gs.Attr("b", "bool"),
        ],
        sparse=True,
        capacity=1_000,
    )
    a = gs.create(f"mem://{uuid.uuid4()}", schema, context=asked.QUICK)
    n = np.arange(count)
    a.write_cells(
        {"x": n},
        {
            "v": n / 10,
            "n": n,
            "s": [f"s{i:06}" for i in n],
            "t": n.astype("M8[s]"),
            "ns": (n * 1_000).astype("M8[ns]"),
            "b": n % 2 == 0,
        },
    )
    return a


@pytest.fixture(scope="module")
def measured() -> gs.Array:
    return _measured()


@pytest.mark.parametrize(
    "where",
    [
        "x < 50",
        "x between 19990 and 20500",
        "v > 1998.5",
        "v >= 1998.5",
        "v between 3 and 4",
        "n in (5, 7, 19000)",
        "s = 's000007'",
        "s >= 's019990'",
        "t < timestamp '1970-01-01 00:00:20'",
        "(x < 5 and v > 0.1) or (x > 19990 and v < 1999.5)",
        "n + 1 < 5",
    ],
)
def test_duckdb_hands_conditions_over(measured: gs.Array, where: str) -> None:
    data = measured.to_pyarrow_dataset()
    with duckdb.connect() as con:
        con.register("data", data)
        found = con.sql(f"select x from data where {where}").fetchall()
    assert data.pushed is not None
    assert data.stats["cells_returned"] == len(found) > 0
    assert data.stats["cells_scanned"] <= 4_000, "tiles that the condition rules out are not read"


def test_what_does_not_reach_the_array_is_right_anyway(measured: gs.Array) -> None:
    data = measured.to_pyarrow_dataset()
    table = asked.table_of(measured)
    for where in ("s like 's00000%'", "b", "ns < timestamp_ns '1970-01-01 00:00:00.000005'", "x < 5 or s like '%9'"):
        assert _found(data, where) == _found(table, where)


def test_microseconds_reach_the_array(measured: gs.Array) -> None:
    data = measured.to_pyarrow_dataset(times="us")
    assert data.schema.field("ns").type == pa.timestamp("us")
    assert len(_found(data, "ns < timestamp '1970-01-01 00:00:00.000005'")) == 5
    assert data.stats["cells_returned"] == 5


def test_a_time_that_is_no_whole_microsecond_is_named() -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("ns", "datetime64[ns]")], sparse=True)
    a = gs.create(f"mem://{uuid.uuid4()}", schema, context=asked.QUICK)
    a.write_cells({"x": [1]}, {"ns": np.array([1_001], "M8[ns]")})
    with pytest.raises(gs.InputError, match="column 'ns' of mem://"):
        a.to_pyarrow_dataset(times="us").to_table()
    with pytest.raises(gs.InputError, match="times"):
        a.to_pyarrow_dataset(times="ps")


def test_columns_that_are_not_asked_for_are_not_read(measured: gs.Array, tmp_path: Any) -> None:
    stored = measured.filter(to=tmp_path / "stored.gs")
    data = stored.to_pyarrow_dataset()
    data.to_table(["n"])
    few = data.stats["bytes_fetched"]
    assert few > 0
    data.to_table()
    assert few * 2 < data.stats["bytes_fetched"]
    assert data.to_table(["n"]).column_names == ["n"]
    assert data.to_table(["s", "x"]).column_names == ["s", "x"]


def test_pyarrow_filters_reach_the_array(measured: gs.Array) -> None:
    data, x = measured.to_pyarrow_dataset(), ds.field("x")
    assert data.to_table(filter=(x < 10) & pc.starts_with(ds.field("s"), "s")).num_rows == 10
    assert data.stats["cells_returned"] == 10
    assert data.to_table(filter=x.isin(list(range(0, 100_000, 1_999)))).num_rows == 11
    assert data.stats["cells_returned"] == 11
    many = x == -1
    for place in range(3_000):
        many = many | (x == place)
    assert data.count_rows(many) == 3_000


def test_a_scanner_has_the_whole_interface(measured: gs.Array) -> None:
    data = measured.to_pyarrow_dataset()
    theirs = ds.InMemoryDataset(asked.table_of(measured))
    scanner = data.scanner(columns={"twice": ds.field("n") * 2}, filter=ds.field("x") < 10, batch_size=4)
    assert {name for name in dir(theirs.scanner()) if name[0] != "_"} - set(dir(scanner)) <= {
        "from_batches",
        "from_dataset",
        "from_fragment",
    }
    assert scanner.projected_schema == pa.schema([("twice", pa.int64())])
    assert scanner.dataset_schema == data.schema
    assert scanner.to_table().column("twice").to_pylist() == list(range(0, 20, 2))
    assert [batch.num_rows for batch in scanner.to_batches()] == [4, 4, 2]
    assert scanner.to_reader().read_all().num_rows == scanner.count_rows() == 10
    assert scanner.head(3).num_rows == 3 and scanner.head(0).num_rows == 0
    assert scanner.take([1, 2]).column("twice").to_pylist() == [2, 4]
    assert sum(tagged.record_batch.num_rows for tagged in scanner.scan_batches()) == 10
    assert pa.RecordBatchReader.from_stream(scanner).read_all().num_rows == 10
    (fragment,) = data.get_fragments()
    assert {name for name in dir(next(theirs.get_fragments())) if name[0] != "_"} <= set(dir(fragment))
    assert fragment.physical_schema == data.schema
    assert fragment.to_table(columns=["n"], filter=ds.field("n") == 3).to_pydict() == {"n": [3]}
    assert fragment.head(2).num_rows == 2 and fragment.take([0]).num_rows == 1
    assert fragment.count_rows() == 20_000 and next(fragment.to_batches()).num_rows > 0


def test_a_data_set_has_the_whole_interface(measured: gs.Array) -> None:
    data = measured.to_pyarrow_dataset()
    assert isinstance(data, ds.Dataset)
    assert data.head(3).num_rows == 3
    assert data.take([5, 1]).num_rows == 2
    assert next(data.to_batches(["x"])).num_columns == 1
    top = data.filter(ds.field("x") < 9).sort_by([("n", "descending")]).head(1)
    assert top.column("n").to_pylist() == [8]
    other = pa.table({"n": [1, 2], "k": ["a", "b"]})
    assert data.join(other, "n", join_type="inner").count_rows() == 2
    assert data.filter(ds.field("x") < 3).join(ds.dataset(other), "n", join_type="inner").count_rows() == 2
    assert repr(data).startswith("<gridstone.ArrayDataset of mem://")


def test_mistakes_are_told(measured: gs.Array) -> None:
    data = measured.to_pyarrow_dataset()
    with pytest.raises(gs.InputError, match=r"has no column 'sgo'; there are 'x', 'v'"):
        data.to_table(["sgo"])
    with pytest.raises(KeyError, match="sgo"):
        data.to_table(filter=ds.field("sgo") > 3)
    with pytest.raises(TypeError, match="filter="):
        data.to_table(filter="x > 3")
    with pytest.raises(TypeError, match="columns="):
        data.to_table(columns="x")
    with pytest.raises(TypeError, match="'colums'"):
        data.scanner(colums=["x"])
    with pytest.raises(gs.InputError, match="batch_size"):
        data.scanner(batch_size=0)
    with pytest.raises(gs.UnsupportedError, match="columns of a stored array"):
        data.replace_schema(data.schema.remove(0))
    with pytest.raises(pa.ArrowException):
        data.to_table(filter=ds.field("x") == "text")


def test_pyarrow_does_not_read_it_behind_our_back(measured: gs.Array) -> None:
    data = measured.to_pyarrow_dataset()
    with pytest.raises(gs.UnsupportedError, match="to_table"):
        ds.Scanner.from_dataset(data).to_table()
    with pytest.raises(gs.UnsupportedError, match="to_table"):
        ds.dataset([data, data]).to_table()


def test_it_shows_one_version_and_pickles(tmp_path: Any) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create(tmp_path / "a.gs", schema)
    a.write_cells({"x": [1]}, {"v": [1]})
    data, lazy = a.to_pyarrow_dataset(), a.to_lazy()
    a.write_cells({"x": [2]}, {"v": [2]})
    a.alter(rename={"v": "w"})
    assert data.to_table().to_pydict() == {"x": [1], "v": [1]}
    assert lazy.collect().to_dict(as_series=False) == {"x": [1], "v": [1]}
    again = pickle.loads(pickle.dumps(data.filter(ds.field("x") == 1)))
    assert again.to_table().to_pydict() == {"x": [1], "v": [1]}


def test_a_transaction_shows_what_is_staged(tmp_path: Any) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")], sparse=True)
    gs.create(tmp_path / "a.gs", schema).write_cells({"x": [1]}, {"v": [1]})
    with gs.transaction(tmp_path / "a.gs") as tx:
        tx["/"].write_cells({"x": [2]}, {"v": [2]})
        assert tx["/"].to_pyarrow_dataset().count_rows() == 2
        assert tx["/"].to_lazy().collect().height == 2


def test_rows_that_are_counted_for_the_planner_are_no_answer(tmp_path: Any) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 99))], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create(tmp_path / "a.gs", schema)
    for _ in range(3):
        a.write_cells({"x": list(range(50))}, {"v": list(range(50))})
    a.delete(where="x < 10")
    data = a.to_pyarrow_dataset()
    with duckdb.connect() as con:
        con.register("data", data)
        assert con.sql("select count(*), count(v) from data").fetchall() == [(40, 40)]
        assert con.sql("select count(*) from data, data d").fetchall() == [(1600,)]
    assert data.rows() >= 40


def test_datafusion_reads_it(measured: gs.Array) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    data = measured.to_pyarrow_dataset()
    context.register_dataset("data", data)
    assert context.sql("select count(*) as n from data").to_pydict() == {"n": [20_000]}
    assert context.sql("select sum(n) as s from data where x between 3 and 5 or v > 1999.7").to_pydict() == {
        "s": [12 + 19_998 + 19_999]
    }
    assert data.stats["cells_returned"] == 5


def test_polars_reads_it(measured: gs.Array) -> None:
    data = measured.to_pyarrow_dataset()
    found = pl.scan_pyarrow_dataset(data).filter(pl.col("x") < 5).select("n").collect()
    assert found["n"].to_list() == [0, 1, 2, 3, 4]
    assert data.stats["cells_returned"] == 5


@pytest.mark.parametrize("sparse", [True, False])
def test_an_array_without_cells(sparse: bool) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), 5)], asked.ATTRS, sparse=sparse)
    data = gs.create(f"mem://{uuid.uuid4()}", schema, context=asked.QUICK).to_pyarrow_dataset()
    rows = 0 if sparse else 10
    assert data.count_rows() == data.to_table().num_rows == data.rows() == rows
    assert len(_found(data, "true")) == rows
    assert data.to_table([]).num_rows == rows


def test_a_filter_is_never_taken_over_that_would_be_evaluated_differently() -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "float64"), gs.Attr("w", "timedelta64[s]")], sparse=True)
    a = gs.create(f"mem://{uuid.uuid4()}", schema, context=asked.QUICK)
    a.write_cells({"x": [0, 1, 2, 3]}, {"v": np.array([np.nan, 1.0, np.inf, -0.0]), "w": np.array([1, 2, 3, 4], "m8[s]")})
    data, v = a.to_pyarrow_dataset(), ds.field("v")
    assert _found(data, "v > 1") == ["(0,)", "(2,)"], "NaN is above every number in DuckDB"
    assert _found(data, "v = 'nan'::double") == ["(0,)"]
    assert _found(data, "v < 'nan'::double") == ["(1,)", "(2,)", "(3,)"]
    assert _found(data, "v = 0") == ["(3,)"]
    assert data.to_table(filter=v > 1)["x"].to_pylist() == [2], "but not in pyarrow"
    assert data.to_table(filter=v.isin([float("nan")]))["x"].to_pylist() == [0]
    assert data.to_table(filter=~v.isin([0.0]))["x"].to_pylist() == ds.InMemoryDataset(asked.table_of(a)).to_table(
        filter=~v.isin([0.0])
    )["x"].to_pylist()
    assert _found(data, "w > interval 2 seconds") == ["(2,)", "(3,)"]
