"""Schemas: types, defaults, refusals, conversions."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs
from gridstone.column import datatype as dtypes

TYPES = [
    "bool",
    *dtypes.INTEGERS,
    *dtypes.FLOATS,
    "datetime64[s]",
    "datetime64[D]",
    "timedelta64[ms]",
    "string",
    "bytes",
]


def ais() -> gs.Schema:
    return gs.Schema(
        [
            gs.Dim("lon", (-180.0, 180.0), 0.5, "float64"),
            gs.Dim("t", ("2026-01-01", "2026-12-31"), np.timedelta64(1, "D"), "datetime64[s]"),
        ],
        [gs.Attr("sog", "float32", nullable=True, fill=-1.5, filters=["shuffle", "zstd:1"]), gs.Attr("name", str)],
        sparse=True,
        capacity=1000,
        duplicates=True,
    )


def test_bounds_are_values_of_the_type() -> None:
    dim = ais().dim("t")
    assert dim.domain == (np.datetime64("2026-01-01", "s"), np.datetime64("2026-12-31T23:59:59", "s"))
    assert dim.tile == np.timedelta64(86_400, "s")
    assert gs.Dim("x", (0, 9)).dtype == "int64"
    assert gs.Dim("x", (np.uint8(0), 9.0), 5, np.uint8).domain == (0, 9)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_survives_json_and_pickle(dtype: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), 5)], [gs.Attr("v", dtype, nullable=True)])
    assert gs.Schema.from_json(schema.to_json()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert hash(pickle.loads(pickle.dumps(schema))) == hash(schema)
    assert schema.attr("v").dtype == dtype


@pytest.mark.parametrize(
    ("given", "name"),
    [(int, "int64"), (float, "float64"), (bool, "bool"), (str, "string"), (bytes, "bytes"), (np.int16, "int16"),
     (np.dtype(">f4"), "float32"), ("U8", "string"), (np.dtype("M8[ns]"), "datetime64[ns]")],
)  # fmt: skip
def test_types_by_many_names(given: object, name: str) -> None:
    assert gs.Attr("v", given).dtype == name


def test_arrow_keeps_what_arrow_lacks() -> None:
    schema = ais()
    back = gs.Schema.from_arrow(schema.to_arrow(), schema.dims, capacity=1000, duplicates=True)
    assert [(a.name, a.dtype, a.nullable) for a in back.attrs] == [("sog", "float32", True), ("name", "string", False)]
    days = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("d", "datetime64[D]")])
    assert gs.Schema.from_arrow(days.to_arrow(), days.dims, sparse=False) == days
    plain = pa.schema([pa.field("x", pa.int32()), pa.field("v", pa.float32(), nullable=False), ("s", pa.string())])
    made = gs.Schema.from_arrow(plain, [gs.Dim("x", (0, 9), dtype="int32")])
    assert made.sparse and not made.attr("v").nullable and made.attr("s").nullable


def test_prints_readably() -> None:
    text, html = repr(ais()), ais()._repr_html_()
    assert "sparse" in text and "Dim('lon', domain=(-180.0, 180.0), tile=0.5" in text
    assert "<table>" in html and "sog" in html
    assert "&lt;b&gt;" in gs.Schema([gs.Dim("<b>", (0, 1))], [gs.Attr("v", int)])._repr_html_()


def test_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        ais().capacity = 1  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del ais().dim("t").name


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: gs.Dim("x", (5, 4)), "empty"),
        (lambda: gs.Schema([gs.Dim("x", (0, 9), 257, dtype="uint8")], [gs.Attr("v", "int64")]), "longer"),
        (lambda: gs.Dim("x", (0, 9), 0), "positive"),
        (lambda: gs.Dim("x", (0, 300), dtype="uint8"), "uint8"),
        (lambda: gs.Dim("x", (0, 9.5)), "9.5"),
        (lambda: gs.Dim("x", 9), "pair"),
        (lambda: gs.Dim("x", (0.0, 9.0), dtype="float64"), "sparse=True"),
    ],
)
def test_bad_dimensions_are_refused(make, word: str) -> None:
    with pytest.raises(gs.errors.SchemaError, match=word):
        gs.Schema([make()], [gs.Attr("v", int)])


def test_a_tile_may_be_longer_than_the_domain() -> None:
    a = gs.create("mem://schema-long-tile", gs.Schema([gs.Dim("x", (0, 9), 11)], [gs.Attr("v", "int64")]))
    a[...] = np.arange(10)
    assert a.schema.dims[0].tile == 11 and a.read()["v"].tolist() == list(range(10))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: gs.Attr("v", "int128"), "int128"),
        (lambda: gs.Attr("v", int, fill="a"), "fill"),
        (lambda: gs.Attr("v", "uint8", fill=-1), "-1"),
        (lambda: gs.Attr("v", int, filters="shufle"), "shufle"),
        (lambda: gs.Attr("x", int), "twice"),
    ],
)
def test_bad_attributes_are_refused(make, word: str) -> None:
    with pytest.raises(gs.errors.SchemaError, match=word):
        gs.Schema([gs.Dim("x", (0, 9))], [make()])


def test_what_this_version_lacks_says_so() -> None:
    with pytest.raises(gs.errors.UnsupportedError, match="not supported"):
        gs.Dim("x", None, dtype="bytes")


def test_a_curve_is_for_sparse_cells() -> None:
    dims, attrs = [gs.Dim("x", (0, 9)), gs.Dim("y", (0, 9))], [gs.Attr("v", int)]
    assert gs.Schema(dims, attrs, sparse=True, cell_order="hilbert").cell_order == "hilbert"
    for wrong in ({"cell_order": "hilbert"}, {"sparse": True, "tile_order": "hilbert"}):
        with pytest.raises(gs.errors.SchemaError, match="sparse"):
            gs.Schema(dims, attrs, **wrong)


def test_one_side_of_a_vector_is_a_number() -> None:
    for side in (3, np.int8(3)):
        assert gs.Attr("v", "uint8", shape=side) == gs.Attr("v", "uint8", shape=(3,))
    for wrong in (0, -1, (0,), ("3",)):
        with pytest.raises(gs.errors.SchemaError, match="shape of a vector"):
            gs.Attr("v", "uint8", shape=wrong)
    for large in (2**70, (2**70,), (65_536, 65_536), 65_537):
        with pytest.raises(gs.errors.SchemaError, match="65536 bytes"):
            gs.Attr("v", "uint8", shape=large)
    for other in (True, 2.5):
        with pytest.raises(TypeError, match="shape="):
            gs.Attr("v", "uint8", shape=other)  # type: ignore[arg-type]


def test_names_are_no_dimensions_of_an_arrow_schema() -> None:
    fields = pa.schema([("x", pa.int64()), ("v", pa.float64())])
    for names in (["x"], "x", ("x", "y")):
        with pytest.raises(gs.errors.InputError, match=r"the name 'x'.*gridstone\.Dim\('x', domain="):
            gs.Schema.from_arrow(fields, dims=names)  # type: ignore[arg-type]
    made = gs.Schema.from_arrow(fields, dims=(dim for dim in [gs.Dim("x", (0, 9))]))  # type: ignore[arg-type]
    assert [attr.name for attr in made.attrs] == ["v"]


def test_unknown_keys_in_json_are_refused() -> None:
    found = json.loads(ais().to_json())
    found["attrs"][0]["nulable"] = True
    with pytest.raises(gs.errors.SchemaError, match="nulable"):
        gs.Schema.from_json(json.dumps(found))


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**63), st.integers(1, 2**40))
def test_domains_of_any_size(low: int, span: int, tile: int) -> None:
    high = min(low + span, 2**63 - 1)
    dim = gs.Dim("x", (low, high), min(tile, high - low + 1))
    assert gs.Schema([dim], [gs.Attr("v", int)], sparse=True).dims[0] == dim
    assert dim.size == high - low + 1


@given(st.floats(-1e300, 1e300), st.floats(1e-3, 1e300))
def test_float_domains_are_exact(low: float, span: float) -> None:
    dim = gs.Dim("x", (low, low + span), dtype="float64")
    assert gs.Schema([dim], [gs.Attr("v", int)], sparse=True).dims[0].domain == (low, low + span)


def test_float32_is_exact_and_prints_short(store_uri: str) -> None:
    dim = gs.Dim("x", (0.1, 0.7), 0.1, "float32")
    assert dim.domain == (float(np.float32(0.1)), float(np.float32(0.7)))
    assert "domain=(0.1, 0.7)" in repr(dim)
    array = gs.create(store_uri, gs.Schema([dim], [gs.Attr("v", "float32", fill=0.1)], sparse=True))
    assert array.schema.dims[0] == dim and array.schema.attr("v") == gs.Attr("v", "float32", fill=0.1)
    array.write_cells([0.1, 0.3, 0.7], [1, 2, 3])
    low, high = array.nonempty_domain[0]
    assert len(array.read({"x": (low, high)})) == 3 == len(array.read({"x": (0.1, 0.7)}))
    # float32(0.7) lies below 0.7, as a condition has it too.
    assert array.read({"x": slice(0.1, 0.7)})["v"].tolist() == [1, 2, 3]
    assert array.read({"x": slice(0.1, np.float32(0.7))})["v"].tolist() == [1, 2]
    with pytest.raises(gs.errors.SchemaError, match="1e\\+300"):
        gs.Dim("x", (0, 1e300), dtype="float32")
