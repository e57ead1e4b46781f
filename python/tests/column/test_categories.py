"""Enumerated attributes: values, categoricals and dictionaries in and out; evolved, deleted by, refused."""

import pickle
from pathlib import Path
from random import Random
from typing import Any

import drawing
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model import plain
from places import Stores

import gridstone as gs
from gridstone import cli, io
from gridstone.column import arrow_types
from gridstone.column import datatype as dtypes
from gridstone.column.columns import Column
from gridstone.errors import ConflictError, CorruptionError, InputError, SchemaError

STATUS = ["ok", "bad", ""]


def dense(uri: str, dtype: str = "string", known: Any = STATUS, **options: Any) -> gs.Array:
    dims = [gs.Dim("y", (0, 6), 3), gs.Dim("x", (-2, 6), 4)]
    return gs.create(uri, gs.Schema(dims, [gs.Attr("v", dtype, categories=known, **options)]))


def sparse(uri: str, *attrs: gs.Attr, **options: Any) -> gs.Array:
    return gs.create(uri, gs.Schema([gs.Dim("x", (0, 99), 10)], attrs, sparse=True, **options))


def words(count: int, known: list[str], r: Random | None = None) -> Any:
    made = np.empty(count, object)
    made[:] = (r or Random(1)).choices(known, k=count)
    return made


def test_the_schema_tells() -> None:
    attr = gs.Attr("v", "string", categories=STATUS, ordered=True, fill="bad", nullable=True)
    assert (attr.categories, attr.ordered, attr.codes, attr.fill) == (("ok", "bad", ""), True, "uint8", "bad")
    assert gs.Attr("v", "string").categories is None and gs.Attr("v", "string").codes is None
    schema = gs.Schema([gs.Dim("x", (0, 9))], [attr])
    for back in (gs.Schema.from_json(schema.to_json()), pickle.loads(pickle.dumps(schema)), eval_of(repr(attr))):
        assert back in (schema, attr)
    assert gs.Schema.from_arrow(schema.to_arrow(), dims=schema.dims, sparse=False).attrs == (
        gs.Attr("v", "string", categories=STATUS, ordered=True, nullable=True),
    )
    assert "categories=['ok', 'bad', '']" in repr(schema) and "'ok' &lt; &#x27;bad" not in repr(schema)
    assert "&#x27;ok&#x27; &lt; &#x27;bad&#x27;" in schema._repr_html_()
    assert gs.Attr("v", "string", categories=STATUS) != gs.Attr("v", "string", categories=STATUS[::-1])
    many = gs.Attr("v", "int32", categories=range(200))
    assert many.codes == "uint16" and many.fill == 0


def eval_of(text: str) -> Any:
    return eval(text, {"Attr": gs.Attr})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"categories": ["a", "a"]}, "named twice"),
        ({"categories": "ab"}, "a list of values"),
        ({"categories": [1]}, "no value of type string"),
        ({"categories": []}, "without a category"),
        ({"categories": ["a"], "fill": "b"}, "none of the categories a"),
        ({"categories": ["a"], "codes": "int8"}, "uint8, uint16 or uint32"),
        ({"categories": map(str, range(300)), "codes": "uint8"}, "wider codes"),
        ({"ordered": True}, "with categories="),
        ({"categories": ["a"], "filters": "bitround:3"}, "floats"),
    ],
)
def test_what_is_no_list_of_categories_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "string", **options)])


@pytest.mark.parametrize(
    ("dtype", "known", "words"),
    [
        ("float64", [1.0, np.nan], "NaN"),
        ("float64", [0.0, -0.0], "twice"),
        ("datetime64[s]", [np.datetime64("NaT", "s")], "NaT"),
        ("complex64", [1j], "not complex64"),
        ("uint8[3]", [(1, 2, 3)], "uint8"),
    ],
)
def test_values_that_equal_nothing_are_no_categories(stores: Stores, dtype: str, known: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        dense(stores(), dtype, known)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float16", [1.0, -2.5, 0.0, 6e-8]),
        ("float32", [1.0, -2.5, 0.0, 1e-40]),
        ("float64", [1.0, -2.5, 0.0, 1e300]),
        ("int8", [1, -1, 0, 127]),
        ("uint64", [1, 2, 0, 2**64 - 1]),
        ("datetime64[s]", [0, 1, -1, 5]),
        ("bytes", [b"a", b"bc", b"", b"\0d"]),
    ],
)
def test_dictionaries_in_chunks(stores: Stores, dtype: str, values: list[Any]) -> None:
    """Each chunk with a dictionary of its own: Arrow merges those of halves as if they were whole numbers."""
    given = np.array(values, dtypes.numpy_of(dtype))
    plain_column = pa.array(given, arrow_types.type_of(dtype))
    parts = (plain_column[:3], plain_column[1:], plain_column[:0])
    column = pa.chunked_array([part.dictionary_encode() for part in parts])
    expected = [*given[:3].tolist(), *given[1:].tolist()]
    for attr in (gs.Attr("v", dtype), gs.Attr("v", dtype, categories=values)):
        a = sparse(stores(), attr)
        a.write_cells({"x": range(6)}, {"v": column})
        assert a.read()["v"].tolist() == expected
        table = pa.table({"x": range(6), "v": column})
        assert io.from_arrow(stores(), table, schema=a.schema).read()["v"].tolist() == expected
    assert gs.advise(table, dims=["x"]).schema.attr("v").dtype == dtype


def test_every_way_in(stores: Stores) -> None:
    values = ["bad", None, "", "ok", "bad"]
    masked = np.ma.MaskedArray(np.array([v or "" for v in values], object), [v is None for v in values])
    shuffled = pd.Categorical(values, categories=["unused", "", "bad", "ok"])
    chunks = [pa.array(values[:2]).dictionary_encode(), pa.array(values[2:]).dictionary_encode()]
    views = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2, 0]), pa.array(["bad", "", "ok"], pa.string_view()))
    nulls = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 0]), pa.array(["bad", None, "", "ok"]))
    ways: list[Any] = [
        values,
        masked,
        shuffled,
        pd.Series(shuffled),
        pd.array(values, dtype="string"),
        pa.array(values),
    ]
    ways += [pa.chunked_array(chunks), pa.array(values).dictionary_encode(), views, nulls]
    for way in ways:
        a = sparse(stores(), gs.Attr("v", "string", categories=STATUS, nullable=True))
        a.write_cells({"x": range(5)}, {"v": way})
        found = a.read()["v"]
        assert plain("string", found) == values, way
        assert a.read().to_arrow()["v"].to_pylist() == values
    for frame in (
        pd.DataFrame({"x": range(5), "v": shuffled}),
        pa.table({"x": range(5), "v": chunks[0].take([0, 1] * 2 + [0])}),
    ):
        a = sparse(stores(), gs.Attr("v", "string", categories=STATUS, nullable=True))
        a.write_cells(frame)
        assert len(a.read()) == 5


def test_every_way_out(stores: Stores) -> None:
    a = dense(stores(), nullable=True, ordered=True)
    values = np.ma.MaskedArray(words(63, STATUS).reshape(7, 9), np.arange(63).reshape(7, 9) % 4 == 1)
    a[...] = values
    assert a.dtype == object and a["v"].dtype == object
    np.testing.assert_array_equal(np.ma.getmaskarray(a[...]), np.ma.getmaskarray(values))
    assert plain("string", a[...]) == plain("string", values)
    assert a[0, 0] == values[0, 0] and a[0, 1] is np.ma.masked and a[2:4, ::-2].shape == (2, 5)
    table = a.read().to_arrow()
    assert table.schema == a.schema.to_arrow()
    assert pa.types.is_dictionary(table["v"].type) and table["v"].type.ordered
    frame = a.read().to_pandas()
    assert list(frame["v"].cat.categories) == STATUS and frame["v"].cat.ordered and frame["v"].isna().sum() == 16
    assert a.read().to_polars()["v"].null_count() == 16
    np.testing.assert_array_equal(a.read(order="global").to_dense(), values)
    assert plain("string", a.vindex[[1, 5], [2, 3]]) == plain("string", values[[1, 5], [2, 3]])
    assert plain("string", a.oindex[[1, 5], :]) == plain("string", values[[1, 5], :])
    assert plain("string", np.asanyarray(a.points({"y": [1, 5], "x": [0, 1]})["v"])) == plain(
        "string", values[[1, 5], [2, 3]]
    )
    stream = a.scan(batch_bytes=1)
    assert pa.Table.from_batches(list(stream), stream.schema).equals(table) or len(a.scan().to_arrow()) == 63
    out = np.ma.MaskedArray(np.empty((7, 9), object), True)
    a.read(out=out)
    assert plain("string", out) == plain("string", values)
    assert "3 categories" in repr(a) and "string [" in repr(a.read())


@given(seed=st.integers(0, 2**32), nullable=st.booleans())
def test_categories_of_any_type_come_back(stores: Stores, seed: int, nullable: bool) -> None:
    r = Random(seed)
    attr = drawing._enumerated(r, "v", r.choice([t for t in ALL if drawing.may_be_category(t)]), nullable)
    a = gs.create(stores(), gs.Schema([gs.Dim("x", (0, 29), 7)], [attr]))
    values = drawing.values(r, attr, 30)
    from model import unplain

    a[...] = unplain(attr.dtype, values)
    assert plain(attr.dtype, a[...]) == values
    assert a[...].dtype == dtypes.numpy_of(attr.dtype)
    known = drawing.values_of(attr)
    assert a.schema.attr("v").categories is not None and a.verify()["damage"] == []
    assert set(values) - {None} <= set(known)
    gs.delete(a.uri)


ALL = ["string", "bytes", "bool", "int8", "uint64", "float16", "float32", "float64", "datetime64[ns]", "timedelta64[h]"]


def test_a_value_that_is_no_category_is_told_with_its_row_and_the_way_out(stores: Stores) -> None:
    a = sparse(stores(), gs.Attr("v", "string", categories=STATUS))
    strange = ["ok", "bad", "lost"]
    for way in (strange, pd.Categorical(strange), pa.array(strange).dictionary_encode(), pa.array(strange)):
        with pytest.raises(
            InputError, match=r"attribute 'v', row 2: 'lost' is none of its categories 'ok', 'bad', ''"
        ) as told:
            a.write_cells({"x": [1, 2, 3]}, {"v": way})
        assert "a.alter(categories={'v': ['lost']})" in str(told.value)
    with pytest.raises(InputError, match="not nullable"):
        a.write_cells({"x": [1, 2, 3]}, {"v": ["ok", None, "ok"]})
    with pytest.raises(InputError):
        a.write_cells({"x": [1, 2, 3]}, {"v": [0, 1, 2]})
    assert a.version == 1
    # What only a dictionary has, and no row, does not matter.
    a.write_cells({"x": [1]}, {"v": pd.Categorical(["ok"], categories=["ok", "lost"])})
    b = sparse(stores(), gs.Attr("v", "int16", categories=[10, 20]))
    with pytest.raises(InputError, match="row 1: 15 is none of its categories 10, 20"):
        b.write_cells({"x": [1, 2]}, {"v": [10, 15]})


def test_an_unwritten_cell_reads_as_the_fill_or_null(stores: Stores) -> None:
    assert dense(stores())[0, 0] == "ok"
    assert dense(stores(), fill="bad")[0, 0] == "bad"
    assert dense(stores(), fill="bad", nullable=True)[0, 0] is np.ma.masked
    none = dense(stores(), known=[], nullable=True)
    assert none[...].mask.all() and none.read().to_pandas()["v"].isna().all()
    none.alter(categories={"v": "first"})
    none[0, 0] = "first"
    assert none[0, 0] == "first" and none[0, 1] is np.ma.masked


def test_categories_are_added_and_never_change_their_codes(stores: Stores) -> None:
    uri = stores("a")
    a = sparse(str(uri), gs.Attr("v", "string", categories=["ok", "bad"]))
    a.write_cells({"x": [1, 2]}, {"v": ["ok", "bad"]})
    old = gs.open(uri)
    receipt = a.write_cells({"x": [3]}, {"v": ["bad"]}, commit=False)
    a.alter(categories={"v": ["lost", "found"]}, message="more")
    a.write_cells({"x": [4, 5]}, {"v": ["found", "ok"]})
    gs.commit(uri, [receipt])
    a.refresh()
    wanted = ["ok", "bad", "bad", "found", "ok"]
    assert a.read()["v"].tolist() == wanted
    assert old.read()["v"].tolist() == ["ok", "bad"] and old.schema.attr("v").categories == ("ok", "bad")
    assert gs.open(uri, version=2).schema.attr("v").categories == ("ok", "bad")
    a.consolidate("all")
    assert a.read()["v"].tolist() == wanted and len(a.fragments) == 1
    assert a.read(where="v == 'found'")["x"].tolist() == [4]
    assert a.alter(categories={"v": []}) == a.version
    a.alter(rename={"v": "w"}, categories={"v": "last"})
    assert a.schema.attr("w").categories == ("ok", "bad", "lost", "found", "last")
    for wrong, match in (
        ({"w": "ok"}, "named twice"),
        ({"w": 3}, "no value of type string"),
        ({"z": "a"}, "no attribute"),
        ({"w": map(str, range(300))}, "wider codes"),
    ):
        with pytest.raises(SchemaError, match=match):
            a.alter(categories=wrong)
    b = dense(stores(), "int8", None)
    with pytest.raises(SchemaError, match="no categories"):
        b.alter(categories={"v": [1]})


def test_two_who_add_categories_conflict(stores: Stores) -> None:
    uri = stores("a")
    a = sparse(str(uri), gs.Attr("v", "string", categories=["ok"]))
    b = gs.open(uri, mode="r+")
    a.alter(categories={"v": "mine"})
    with pytest.raises(ConflictError, match="schema"):
        b.alter(categories={"v": "theirs"})
    b.refresh()
    b.alter(categories={"v": "theirs"})
    assert gs.open(uri).schema.attr("v").categories == ("ok", "mine", "theirs")
    # Cells that were written without a look at the newer schema stand: their codes mean what they meant.
    a.write_cells({"x": [1]}, {"v": ["mine"]})
    assert gs.open(uri).read()["v"].tolist() == ["mine"]


def test_in_a_transaction(stores: Stores) -> None:
    uri = stores("a")
    sparse(str(uri), gs.Attr("v", "string", categories=["ok"]))
    with gs.transaction(uri) as tx:
        a = tx["/"]
        a.alter(categories={"v": "new"})
        a.write_cells({"x": [1, 2]}, {"v": ["new", "ok"]})
        assert a.read(where="v == 'new'")["x"].tolist() == [1]
    assert gs.open(uri).read()["v"].tolist() == ["new", "ok"]


@pytest.mark.parametrize("ordered", [False, True])
def test_conditions(stores: Stores, ordered: bool) -> None:
    known = ["low", "mid", "high"]
    a = sparse(stores(), gs.Attr("v", "string", categories=known, ordered=ordered, nullable=True), capacity=7)
    values = [None if i % 5 == 4 else known[i * i % 3] for i in range(100)]
    a.write_cells({"x": range(100)}, {"v": values})

    def taken(where: Any) -> list[int]:
        return a.read(where=where)["x"].tolist()

    def wanted(test: Any) -> list[int]:
        return [i for i, v in enumerate(values) if test(v)]

    assert taken("v == 'mid'") == wanted(lambda v: v == "mid")
    assert taken("v != 'mid'") == wanted(lambda v: v not in (None, "mid"))
    assert taken(gs.col("v").isin(["mid", "none such"])) == wanted(lambda v: v == "mid")
    assert taken("v is null") == wanted(lambda v: v is None)
    assert taken("v == 'none such'") == [] and len(taken("v != 'none such'")) == 80
    rank = known.index if ordered else str
    assert taken("v > 'low'") == wanted(lambda v: v is not None and rank(v) > rank("low"))
    assert taken("v between 'low' and 'mid'") == wanted(
        lambda v: v is not None and rank("low") <= rank(v) <= rank("mid")
    )
    if ordered:
        with pytest.raises(InputError, match="low < mid < high"):
            a.read(where="v > 'none such'")
    a.delete(where="v == 'mid'")
    assert a.read()["v"].tolist() == [v for v in values if v != "mid"]
    a.consolidate("all")
    assert taken("v == 'mid'") == [] and taken("v is null") == wanted(lambda v: v is None)


def test_statistics_of_codes_leave_tiles_out(stores: Stores) -> None:
    attrs = [gs.Attr("v", "string", categories=["a", "b", "c"]), gs.Attr("noise", "float64", filters="none")]
    schema = gs.Schema([gs.Dim("x", (0, 89_999), 1_000)], attrs, sparse=True, capacity=1_000)
    a = gs.create(stores(), schema)
    noise = np.random.default_rng(1).normal(size=90_000)
    a.write_cells({"x": range(90_000)}, {"v": np.repeat(["a", "b", "c"], 30_000), "noise": noise})
    found = a.read(where="v == 'b'")
    np.testing.assert_array_equal(found["noise"], noise[30_000:60_000])
    assert found.stats["blocks_decoded"] * 2 < a.read().stats["blocks_decoded"]
    assert a.read(where="v == 'none such'").stats["blocks_decoded"] == 0


def test_dense_deletes_by_category(stores: Stores) -> None:
    a = dense(stores(), fill="bad")
    a[...] = words(63, STATUS).reshape(7, 9)
    before = a[...]
    a.delete(where="v == ''")
    np.testing.assert_array_equal(a[...], np.where(before == "", "bad", before))


def test_tables_and_files_come_back_equal(tmp_path: Path, stores: Stores) -> None:
    frame = pd.DataFrame(
        {
            "x": np.arange(50),
            "v": pd.Categorical(words(50, ["b", "a"]), categories=["b", "unused", "a"], ordered=True),
            "n": pd.Categorical(np.arange(50) % 3 * 10),
        }
    )
    frame.loc[7, "v"] = None
    a = gs.io.from_pandas(stores("p"), frame, dims=["x"])
    v, n = a.schema.attr("v"), a.schema.attr("n")
    assert (v.categories, v.ordered, v.nullable) == (("b", "unused", "a"), True, True)
    assert (n.categories, n.dtype, n.nullable) == ((0, 10, 20), "int64", False)
    found = a.read().to_pandas()
    pd.testing.assert_frame_equal(found, frame, check_dtype=False)
    assert found["v"].dtype.categories.tolist() == ["b", "unused", "a"] and found["v"].dtype.ordered
    gs.io.to_parquet(a, tmp_path / "a.parquet")
    gs.io.to_feather(a, tmp_path / "a.arrow")
    for back in (
        gs.io.from_parquet(stores("q"), tmp_path / "a.parquet"),
        gs.io.from_feather(stores("f"), tmp_path / "a.arrow"),
        gs.io.from_arrow(stores("r"), gs.io.to_arrow(a)),
        gs.io.from_parquet(stores("q2"), tmp_path / "a.parquet", dims=["x"]),
    ):
        assert back.schema.attrs == a.schema.attrs
        pd.testing.assert_frame_equal(back.read().to_pandas(), found)
    pa.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "plain.parquet")
    other = gs.io.from_parquet(stores("o"), tmp_path / "plain.parquet", dims=["x"])
    assert set(other.schema.attr("v").categories or ()) >= {"a", "b"}
    gs.io.to_csv(a, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[8] == "7,,10"
    loaded = gs.io.from_csv(stores("c"), tmp_path / "a.csv", schema=a.schema)
    assert loaded.schema == a.schema
    pd.testing.assert_frame_equal(loaded.read().to_pandas(), found)


def test_a_file_with_a_value_that_is_no_category_names_its_row(tmp_path: Path, stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "string", categories=["a"])], sparse=True)
    table = pa.table({"x": [1, 2, 3], "v": pa.array(["a", "a", "b"]).dictionary_encode()})
    with pytest.raises(InputError, match=r"row 2, column 'v'.*'b' is none of its categories"):
        gs.io.from_arrow(stores("a"), table, schema=schema)
    (tmp_path / "a.csv").write_text("x,v\n1,a\n2,b\n")
    with pytest.raises(InputError, match=r"a\.csv, line 3.*'b' is none of its categories"):
        gs.io.from_csv(stores("b"), tmp_path / "a.csv", schema=schema)
    assert not gs.exists(stores("b"))
    rejected: list[gs.io.Rejected] = []
    kept = gs.io.from_csv(stores("c"), tmp_path / "a.csv", schema=schema, on_error="collect", rejected=rejected)
    assert kept.read()["v"].tolist() == ["a"] and [(one.line, one.column) for one in rejected] == [(3, "v")]


def test_dictionaries_of_too_many_values_are_plain(stores: Stores) -> None:
    values = [str(i) for i in range(70_000)]
    table = pa.table({"x": range(70_000), "v": pa.array(values).dictionary_encode()})
    a = gs.io.from_arrow(stores("a"), table, dims=["x"])
    assert a.schema.attr("v").categories is None and a.read({"x": (69_999, 69_999)})["v"].tolist() == ["69999"]


def test_chunks_with_other_dictionaries_are_one_list(stores: Stores) -> None:
    parts = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a", None]).dictionary_encode()]
    a = gs.io.from_arrow(stores("a"), pa.table({"x": range(5), "v": pa.chunked_array(parts)}), dims=["x"])
    assert a.schema.attr("v").categories == ("a", "b", "c") and plain("string", a.read()["v"])[-1] is None
    ordered = [pa.DictionaryArray.from_arrays(p.indices, p.dictionary, ordered=True) for p in parts]
    with pytest.raises(InputError, match="one order here"):
        gs.io.from_arrow(stores("b"), pa.table({"x": range(5), "v": pa.chunked_array(ordered)}), dims=["x"])


def test_the_core_refuses_codes_of_no_category_and_reading_one_is_damage(stores: Stores) -> None:
    a = sparse(stores(), gs.Attr("v", "string", categories=["a", "b"], nullable=True))
    places = {"x": Column("int64", np.arange(3))}
    for codes, valid, refused in (
        ([0, 1, 2], None, True),
        ([0, 255, 1], [True, True, False], True),
        ([0, 255, 1], [True, False, True], False),
    ):
        column = Column("uint8", np.array(codes, np.uint8), None, None if valid is None else np.array(valid))
        options: dict[str, Any] = {"sorted": False, "dedup": "error", "message": None, "progress": None}
        if refused:
            with pytest.raises(InputError, match=r"'v'|\"v\".*the code of no category, there are 2"):
                a._stage_cells(places, {"v": column}, **options)
        else:
            a._stage_cells(places, {"v": column}, **options)
    assert plain("string", a.read()["v"]) == ["a", None, "b"]
    known = a.schema.attr("v").enumeration
    assert known is not None
    with pytest.raises(CorruptionError, match="the code 2, the attribute has 2 categories"):
        known.decoded(np.array([0, 2], np.uint8), None)
    assert known.decoded(np.array([0, 2], np.uint8), np.array([True, False])).tolist() == ["a", "a"]


def test_the_command_line(tmp_path: Path, stores: Stores, capfd: pytest.CaptureFixture[str]) -> None:
    def call(*arguments: str) -> str:
        assert cli.run(arguments) == 0, capfd.readouterr().err
        return capfd.readouterr().out

    attr = gs.Attr("v", "string", categories=["a", "b"], ordered=True)
    rounded = gs.Attr("t", "float32", filters="bitround:7")
    uri = stores("a")
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], [attr, rounded], sparse=True))
    call("alter", uri, "--category", "v=c", "--category", "v=d")
    assert gs.open(uri).schema.attr("v").categories == ("a", "b", "c", "d")
    shown = call("info", uri)
    assert "'a' < 'b' < 'c' < 'd'" in shown and "bitround:7,auto (lossy)" in shown
    (tmp_path / "s.json").write_text(gs.open(uri).schema.to_json())
    (tmp_path / "a.csv").write_text("x,v,t\n1,d,1.5\n2,a,2\n")
    call("load", stores("b"), str(tmp_path / "a.csv"), "--schema", str(tmp_path / "s.json"))
    assert gs.open(stores("b")).read()["v"].tolist() == ["d", "a"]
    assert call("read", stores("b"), "--where", "v > 'c'").count("d") >= 1
