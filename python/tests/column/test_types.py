"""Halves, complex numbers, bytes of a length, vectors and lists: every way in and out, and what is refused."""

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
from model import cells_shape, plain, plain_arrow, unplain
from places import Stores

import gridstone as gs
from gridstone.column import arrow_types
from gridstone.column import datatype as dtypes

TYPES = [
    "float16",
    "complex64",
    "complex128",
    "bytes[3]",
    "bytes[16]",
    "uint8[3]",
    "float16[5]",
    "float32[2,3]",
    "int64[1]",
    "bool[2,2]",
    "complex64[2]",
    "timedelta64[ms][2]",
    "datetime64[us][3]",
    "list[int32]",
    "list[bool]",
    "list[float16]",
    "list[complex64]",
    "list[datetime64[s]]",
]
BOTH = pytest.mark.parametrize("nullable", [False, True], ids=["plain", "nullable"])


def some(dtype: str, count: int, nullable: bool, seed: int = 1) -> list[Any]:
    """Plain values, a third of them null where they may be."""
    r = Random(seed)
    found = r.choices(drawing.pool(dtype, nullable), k=count)
    return [None if nullable and r.random() < 0.3 else value for value in found]


def dense(uri: str, dtype: str, nullable: bool = False, **options: Any) -> gs.Array:
    dims = [gs.Dim("y", (0, 6), 3), gs.Dim("x", (-2, 6), 4)]
    return gs.create(uri, gs.Schema(dims, [gs.Attr("v", dtype, nullable=nullable, **options)]))


@pytest.mark.parametrize("dtype", TYPES)
@BOTH
def test_boxes_and_single_cells_come_back(store_uri: str, dtype: str, nullable: bool) -> None:
    a = dense(store_uri, dtype, nullable)
    values = some(dtype, 63, nullable)
    array = unplain(dtype, values).reshape(cells_shape(dtype, (7, 9)))
    a.write(array)
    inner = dtypes.shape_of(dtype)
    for order in ("row", "col", "global"):
        found = a.read({"y": (1, 5), "x": (-1, 4)}, order=order)
        wanted = [values[y * 9 + x] for y in range(1, 6) for x in range(1, 7)]
        assert plain(dtype, found.to_dense()) == wanted, order
        assert found.to_dense().shape == (5, 6, *inner)
    assert plain(dtype, a[::2, ::-3]) == [values[y * 9 + x] for y in range(0, 7, 2) for x in range(8, -1, -3)]
    assert plain(dtype, a.vindex[[0, 6], [8, 2]]) == [values[8], values[56]]
    assert plain(dtype, a.oindex[[5, 5, 0], [1, 7]]) == [values[y * 9 + x] for y in (5, 5, 0) for x in (1, 7)]
    assert plain(dtype, a.points({"y": [3, 3], "x": [6, -2]})["v"]) == [values[35], values[27]]
    assert plain(dtype, a.scan(order="global").to_numpy()["v"]) == plain(dtype, a.read(order="global")["v"])
    version = a.version
    a.write_cells({"y": [0, 6], "x": [0, 6]}, unplain(dtype, values[:2]))
    a["v"][1, 2:4] = unplain(dtype, values[4:6])
    a.delete({"y": (5, 5)})
    changed = list(values)
    changed[2], changed[62], changed[11:13] = values[0], values[1], values[4:6]
    unwritten = None if nullable else plain(dtype, a[5, :1])[0]
    changed[45:54] = [unwritten] * 9
    assert plain(dtype, a[...]) == changed
    a.consolidate("all")
    assert plain(dtype, a[...]) == changed and not a.verify()["damage"]
    assert plain(dtype, a.at(version=version)[...]) == values


@pytest.mark.parametrize("dtype", TYPES)
@BOTH
def test_sparse_cells_come_back(store_uri: str, dtype: str, nullable: bool) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (-100, 100), 30)], [gs.Attr("v", dtype, nullable=nullable)], sparse=True, capacity=7
    )
    a = gs.create(store_uri, schema)
    values = some(dtype, 40, nullable)
    places = Random(3).sample(range(-100, 101), 40)
    a.write_cells(places, unplain(dtype, values))
    again = some(dtype, 10, nullable, 2)
    a.write_cells(places[:10], unplain(dtype, again))
    expected = dict(zip(places, again + values[10:], strict=True))
    inside = sorted(p for p in places if -50 <= p <= 70)
    found = a.read({"x": (-50, 70)})
    assert found["x"].tolist() == inside
    assert plain(dtype, found["v"]) == [expected[p] for p in inside]
    assert found["v"].shape == (len(inside), *dtypes.shape_of(dtype))
    box = found.to_dense()
    assert box.shape == (121, *dtypes.shape_of(dtype))
    assert plain(dtype, box[[p + 50 for p in inside]]) == [expected[p] for p in inside]
    a.delete(coords=places[5:15])
    a.consolidate("all")
    left = sorted(set(places) - set(places[5:15]))
    assert plain(dtype, a.read()["v"]) == [expected[p] for p in left]
    with a.writer() as w:
        w.append([98 if 98 not in left else 99], unplain(dtype, values[:1]))
    assert len(a.read()) in (len(left), len(left) + 1)


@pytest.mark.parametrize("dtype", TYPES)
@BOTH
def test_tables_and_frames_come_back(store_uri: str, stores: Stores, dtype: str, nullable: bool) -> None:
    a = dense(store_uri, dtype, nullable)
    values = some(dtype, 63, nullable)
    a.write(unplain(dtype, values).reshape(cells_shape(dtype, (7, 9))))
    table = a.read().to_arrow()
    table.validate(full=True)
    assert table.schema.field("v").type == arrow_types.type_of(dtype)
    if "[ms]" not in dtype and "[us]" not in dtype and "[s]" not in dtype:
        assert plain_arrow(dtype, table.column("v").combine_chunks()) == values
    back = gs.Schema.from_arrow(table.schema, a.schema.dims).attr("v")
    assert (back.dtype, back.nullable) == (dtype, nullable)
    for given_ in (table, pa.concat_tables([table.slice(10), table.slice(0, 10)]), a.read().to_pandas()):
        b = dense(stores(), dtype, nullable)
        b.write_cells(given_)
        if isinstance(given_, pd.DataFrame) and nullable:
            wanted = [None if v is not None and "nan" in str(v) and "[" not in dtype else v for v in values]
        else:
            wanted = values
        assert plain(dtype, b[...]) == wanted


def test_the_schema_survives(store_uri: str) -> None:
    fills = [
        ("float16", 0.1),
        ("complex64", 1.5 - 2j),
        ("complex128", complex(np.nan, -np.inf)),
        ("bytes[4]", b"ab"),
        ("uint8[3]", (1, 2, 3)),
        ("float32[2,2]", [[0.1, np.nan], [3, 4]]),
        ("timedelta64[s][2]", (5, np.timedelta64(7, "s"))),
        ("list[float64]", [0.5, 1]),
        ("list[int8]", []),
    ]
    attrs = [gs.Attr(f"a{i}", dtype, fill=fill) for i, (dtype, fill) in enumerate(fills)]
    schema = gs.Schema([gs.Dim("x", (0, 3))], attrs)
    assert gs.Schema.from_json(schema.to_json()) == schema == pickle.loads(pickle.dumps(schema))
    assert [repr(a) for a in pickle.loads(pickle.dumps(schema)).attrs] == [repr(a) for a in attrs]
    a = gs.create(store_uri, schema)
    assert a.schema == schema and eval(repr(attrs[4]), {"Attr": gs.Attr}) == attrs[4]
    found = a[...]
    assert found["a0"].tolist() == [float(np.float16(0.1))] * 4 and found["a0"].dtype == np.float16
    assert (found["a1"] == 1.5 - 2j).all() and (found["a3"] == b"ab").all()
    assert found["a4"].tolist() == [[1, 2, 3]] * 4
    assert np.array_equal(found["a5"][0], np.float32([[0.1, np.nan], [3, 4]]), equal_nan=True)
    assert found["a6"].tolist() == np.array([[5, 7]] * 4, "m8[s]").tolist()
    assert [v.tolist() for v in found["a7"]] == [[0.5, 1.0]] * 4 and found["a8"][0].size == 0
    times = [("a6", "m8[s]", (2,)), ("a7", "O"), ("a8", "O")]
    assert a.dtype == np.dtype(
        [("a0", "f2"), ("a1", "c8"), ("a2", "c16"), ("a3", "S4"), ("a4", "u1", (3,)), ("a5", "f4", (2, 2)), *times]
    )
    assert a.nbytes == 4 * (2 + 8 + 16 + 4 + 3 + 16 + 16 + 8 + 8)
    assert "uint8[3]" in a._repr_html_() and "complex64" in repr(a) and "1 2 3" in repr(a.read()).replace(",", "")


@given(st.sampled_from(TYPES), st.integers(0, 2**32), st.booleans())
def test_any_fill_survives(dtype: str, seed: int, nullable: bool) -> None:
    value = drawing._as_fill(dtype, Random(seed).choice(drawing.pool(dtype, True)))
    attr = gs.Attr("v", dtype, fill=value, nullable=nullable)
    schema = gs.Schema([gs.Dim("x", (0, 1))], [attr])
    assert schema.attrs[0] == attr == pickle.loads(pickle.dumps(attr))
    assert gs.Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize(
    ("given_", "name"),
    [
        ("S10", "bytes[10]"),
        (np.dtype("V7"), "bytes[7]"),
        ("S", "bytes"),
        (complex, "complex128"),
        ("f2", "float16"),
        (np.dtype(("u1", (3,))), "uint8[3]"),
        (np.dtype(("M8[s]", (2, 3))), "datetime64[s][2,3]"),
        ("list[float]", "list[float64]"),
        ("int[2]", "int64[2]"),
        ("i4", "int32"),
    ],
)
def test_names_of_types(given_: Any, name: str) -> None:
    assert gs.Attr("v", given_).dtype == name


def test_shape_and_var_make_vectors_and_lists() -> None:
    assert gs.Attr("v", "uint8", shape=(3,)).dtype == "uint8[3]"
    assert gs.Attr("v", "M8[ns]", shape=[2, 3]).shape == (2, 3)
    assert gs.Attr("v", "int32", var=True).dtype == "list[int32]" and gs.Attr("v", "int32", var=True).var
    assert gs.Attr("v", "string", var=True).dtype == "string" and gs.Attr("v", "int32").shape == ()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.Attr("v", "uint8", shape=(0,)), "positive integers"),
        (lambda: gs.Attr("v", "uint8", shape=(3.0,)), "positive integers"),
        (lambda: gs.Attr("v", "string", shape=(3,)), "not of string"),
        (lambda: gs.Attr("v", "uint8[3]", shape=(3,)), "not of uint8"),
        (lambda: gs.Attr("v", "uint8", shape=(3,), var=True), "not of uint8"),
        (lambda: gs.Attr("v", "S4", var=True), "not of bytes"),
        (lambda: gs.Attr("v", "list[string]"), "not of string"),
        (lambda: gs.Attr("v", np.longdouble), "cannot be stored"),
        (lambda: gs.Attr("v", [("a", "i4")]), "cannot be stored"),
        (lambda: gs.Attr("v", "uint8[3]", fill=7), "no value of type"),
        (lambda: gs.Attr("v", "uint8[3]", fill=(1, 2)), "no value of type"),
        (lambda: gs.Attr("v", "uint8[3]", fill=(1, 2, 256)), "no value of type"),
        (lambda: gs.Attr("v", "list[int8]", fill=[[1]]), "no value of type"),
        (lambda: gs.Attr("v", "complex64", fill="1j"), "no value of type"),
        (lambda: gs.Attr("v", "complex64", fill=1e300j), "no value of type"),
        (lambda: gs.Attr("v", "bytes[2]", fill=b"abc"), "no value of type"),
        (lambda: gs.Attr("v", "float16", fill=1e6), "no value of type"),
        (lambda: gs.Dim("x", (0, 1), dtype="float16"), "cannot be a dimension"),
        (lambda: gs.Dim("x", (0, 1), dtype="complex64"), "cannot be a dimension"),
        (lambda: gs.Dim("x", (0, 1), dtype="uint8[3]"), "cannot be a dimension"),
        (lambda: gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "uint8", shape=(65537,))]), "65536 bytes"),
        (lambda: gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "uint8", shape=(1, 1, 1, 1, 1))]), "1 to 4 axes"),
        (lambda: gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "complex64", filters="delta")]), "does not accept"),
        (lambda: gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "bytes[3]", filters="pco")]), "does not accept"),
    ],
)
def test_what_is_no_type_is_refused(make: Any, words: str) -> None:
    with pytest.raises(gs.errors.SchemaError, match=words):
        make()


@pytest.mark.parametrize(
    ("dtype", "data", "words"),
    [
        ("uint8[3]", np.zeros((63, 2), "u1"), r"ends in \(3,\)"),
        ("uint8[3]", np.zeros(63, "u1"), r"ends in \(3,\)|flat list"),
        ("uint8[3]", [[1, 2, 3]] * 62 + [[1, 2]], "row 62"),
        ("uint8[3]", [[1, 2, 3]] * 62 + ["abc"], "row 62"),
        ("uint8[3]", [[1, 2, 3]] * 62 + [None], "row 62 is null"),
        ("uint8[3]", np.full((63, 3), 300), "300"),
        ("uint8[3]", np.ma.MaskedArray(np.zeros((63, 3), "u1"), mask=[[0, 1, 0]] * 63), "as a whole"),
        ("list[int8]", [[1]] * 62 + [[1, 300]], "row 62.*300"),
        ("list[int8]", [[1]] * 62 + [["a"]], "row 62"),
        ("list[int8]", [[1]] * 62 + [None], "row 62 is null"),
        ("list[int8]", [[1]] * 62 + [[None]], "row 62"),
        ("list[int8]", [[1]] * 62 + [7.5], "row 62"),
        ("list[int8]", [[[1]]] * 63, "flat list"),
        ("bytes[3]", [b"abc"] * 62 + [b"abcd"], "4 bytes in row 62"),
        ("bytes[3]", np.array([b"abc"] * 62 + [b"abcd"]), "4 bytes in row 62"),
        ("bytes[3]", [b"abc"] * 62 + ["x"], "row 62"),
        ("bytes[3]", np.array(["abc"] * 63), "bytes first"),
        ("complex64", np.full(63, 1e300 + 0j), "cannot hold"),
        ("complex64", np.full(63, 2**60 + 1), "cannot hold"),
        ("complex128", ["a"] * 63, "complex128"),
        ("float16", np.full(63, 1e6), "cannot hold"),
        ("float16", np.full(63, 2049), "cannot hold"),
        ("float16", np.full(63, 1j), "float16"),
    ],
)
def test_values_that_do_not_fit_are_refused(store_uri: str, dtype: str, data: Any, words: str) -> None:
    a = dense(store_uri, dtype)
    y, x = np.divmod(np.arange(63), 9)
    with pytest.raises(gs.errors.InputError, match=words):
        a.write_cells({"y": y, "x": x - 2}, data)
    assert a.version == 1


@pytest.mark.parametrize(
    ("dtype", "column", "words"),
    [
        ("uint8[3]", pa.array([[1, 2, 3], [1, 2]]), "2 values in row 1"),
        ("uint8[3]", pa.array([[1, 2, None], [1, 2, 3]], pa.list_(pa.int64(), 3)), "item 2 is null"),
        ("uint8[3]", pa.array([1, 2]), "cast it"),
        ("uint8[3]", pa.array([[1, 2]] * 2, pa.list_(pa.int8(), 2)), "cast it"),
        ("uint8[3]", pa.array([[1, 2, 3], None]), "row 1 is null"),
        ("list[int32]", pa.array([[1, None], [1]]), "item 1 is null"),
        ("list[int32]", pa.array(["a", "b"]), "cast it"),
        ("complex64", pa.array([[1.0, None], [1, 2]], pa.list_(pa.float32(), 2)), "item 1 is null"),
        ("complex64", pa.array([[1.0], [1]]), "cast it"),
        ("bytes[3]", pa.array([b"abc", b"abcd"]), "4 bytes in row 1"),
        ("bytes[3]", pa.array([1, 2]), "cast it"),
    ],
)
def test_arrow_columns_that_do_not_fit_are_refused(store_uri: str, dtype: str, column: Any, words: str) -> None:
    a = dense(store_uri, dtype)
    with pytest.raises(gs.errors.InputError, match=words):
        a.write_cells(pa.table({"y": [0, 1], "x": [0, 1], "v": column}))


def test_arrow_columns_of_other_forms_are_taken(stores: Stores) -> None:
    forms: list[tuple[str, Any, list[Any]]] = [
        ("uint8[3]", pa.array([[9, 9, 9], [1, 2, 3], None, [4, 5, 6]]).slice(1), [(1, 2, 3), None, (4, 5, 6)]),
        ("uint8[3]", pa.array([[9] * 3, [1, 2, 3], None, [4, 5, 6]], pa.list_(pa.int16(), 3)).slice(1), None or []),
        ("int16[2,2]", pa.array([[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]]), [(1, 2, 3, 4), None, (5, 6, 7, 8)]),
        ("list[int32]", pa.array([[0], [1, 2], None, []], pa.list_(pa.int8())).slice(1), [(1, 2), None, ()]),
        ("list[int32]", pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)), [(1, 2), None, (3, 4)]),
        ("complex64", pa.array([1.5, None, 2]), ["(1.5+0j)", None, "(2+0j)"]),
        ("complex64", pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float64(), 2)), ["(1+2j)", None, "(3+4j)"]),
        ("bytes[3]", pa.array([b"a", None, b"abc"]), [b"a", None, b"abc"]),
        ("bytes[3]", pa.array([b"abc", None, b"a\x00b"], pa.binary(3)), [b"abc", None, b"a\x00b"]),
        ("float16", pa.array([0.5, None, 2.0], pa.float16()), ["0.5", None, "2.0"]),
        ("uint8[3]", pa.nulls(3), [None] * 3),
        ("list[int32]", pa.nulls(3), [None] * 3),
    ]
    for dtype, column, wanted in forms:
        a = dense(stores(), dtype, nullable=True)
        a.write_cells(pa.table({"y": [0, 0, 0], "x": [0, 1, 2], "v": column}))
        assert plain(dtype, a[0, 2:5]) == (wanted or [(1, 2, 3), None, (4, 5, 6)]), (dtype, column.type)


def test_arrays_become_stores(stores: Stores) -> None:
    for array in (
        np.float16([[0.1, 2], [3, np.inf]]),
        np.array([1 + 2j, np.nan * 1j]),
        np.array([b"ab", b"", b"abcd"]),
        np.array([3, 4], "c8").byteswap().view(">c8"),
    ):
        a = gs.array(stores(), array)
        assert np.array_equal(np.asarray(a), array, equal_nan=array.dtype.kind in "fc")
        assert a.dtype == array.dtype.newbyteorder("=")
    made = np.zeros((4, 3), [("rgb", "u1", (3,)), ("t", "M8[s]"), ("z", "c8"), ("id", "S5")])
    made["rgb"], made["id"], made["z"] = np.arange(36).reshape(4, 3, 3), b"xyz", 1j
    a = gs.array(stores(), made)
    assert a.dtype == made.dtype and a.schema_names == ["rgb", "t", "z", "id"]
    assert all(np.array_equal(a[name][...], made[name], equal_nan=name == "t") for name in made.dtype.names)
    masked = np.ma.MaskedArray(np.zeros(3, [("a", "f2"), ("b", "i4", (2,))]), mask=[(0, 1), (1, 0), (0, 0)])
    a = gs.array(stores(), masked)
    assert a["a"][...].mask.tolist() == [False, True, False]
    assert a["b"][...].mask.tolist() == [[True] * 2, [False] * 2, [False] * 2]
    lists = np.empty(3, object)
    lists[:] = [np.arange(i, dtype="i2") for i in range(3)]
    a = gs.array(stores(), lists)
    assert a.schema.attrs[0].dtype == "list[int16]" and [v.tolist() for v in a[...]] == [[], [0], [0, 1]]


def test_zero_bytes_are_kept_where_numpy_does_not_show_them(store_uri: str) -> None:
    a = dense(store_uri, "bytes[4]")
    a.write(np.full((7, 9), np.void(b"a\x00b\x00"), "V4"))
    assert a[0, 0] == b"a\x00b" and a[...].view("V4")[3, 3] == np.void(b"a\x00b\x00")
    assert a.read().to_arrow().column("v")[0].as_py() == b"a\x00b\x00"


@pytest.mark.parametrize("filters", ["none", "lz4"])
@pytest.mark.parametrize("dtype", ["uint8[3]", "float32[3]", "complex128", "bytes[7]", "float64[700]"])
def test_parts_of_large_tiles(stores: Stores, dtype: str, filters: str) -> None:
    """Raw pages have checksums per 4 KiB, which end within cells of odd widths; wide cells make small blocks."""
    count = 400 if dtype == "float64[700]" else 40_000
    rng, width = np.random.default_rng(5), dtypes.cell_bytes(dtype)
    raw = rng.integers(0, 256, count * width, np.uint8)
    values = raw.view(dtypes.cell_of(dtype)) if "[" in dtype else raw.view(dtype)
    values = dtypes.unpacked(values)
    a = gs.create(stores("a"), gs.Schema([gs.Dim("x", (0, count - 1))], [gs.Attr("v", dtype, filters=filters)]))
    a.write(values)
    a = gs.open(stores("a"))

    def same(found: Any, wanted: Any) -> bool:
        return np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes()

    for low, high in [(0, count), (1365, 1366), (1, 7), (count - 3, count), (count // 3, count // 2)]:
        low, high = min(low, count - 2), min(high, count)
        assert same(a[low:high], values[low:high]), (low, high)
    places = rng.integers(0, count, 300)
    assert same(a.points(places)["v"], values[places]) and same(a.vindex[places], values[places])
    out = np.empty_like(values)
    a.read(out=out)
    assert same(out, values) and not a.verify()["damage"]


def test_out_takes_vectors_in_any_order(store_uri: str, stores: Stores) -> None:
    a = dense(store_uri, "int16[2,2]")
    values = np.arange(7 * 9 * 4, dtype="i2").reshape(7, 9, 2, 2)
    a.write(values)
    for order in ("row", "col"):
        for made in (np.empty((7, 9, 2, 2), "i2"), np.empty((9, 7, 2, 2), "i2").transpose(1, 0, 2, 3)):
            found = a.read(order=order, out=made)
            assert np.array_equal(made, values) and np.array_equal(found["v"], values)
    flat = np.empty((63, 2, 2), "i2")
    assert np.array_equal(a.read(order="global", out=flat).to_dense(), values)
    for bad in (np.empty((7, 9), "i2"), np.empty((7, 9, 4), "i2"), np.empty((7, 9, 2, 2), "i4")):
        with pytest.raises(gs.errors.InputError, match=r"int16 of shape \(7, 9, 2, 2\)"):
            a.read(out=bad)
    flags = dense(stores("flags"), "bool[3]")
    flags.write(truths := np.arange(7 * 9 * 3).reshape(7, 9, 3) % 5 < 2)
    for order in ("row", "col"):
        flags.read(order=order, out=(made := np.zeros((7, 9, 3), bool)))
        assert np.array_equal(made, truths)
    lists = dense(stores(), "list[int8]")
    target = np.empty((7, 9), object)
    lists.write([[[1, 2]] * 9] * 7)
    lists.read(out=target)
    assert target[3, 3].tolist() == [1, 2]


def test_conditions_on_them(store_uri: str) -> None:
    attrs = [
        gs.Attr("h", "float16"),
        gs.Attr("s", "S4"),
        gs.Attr("z", complex, nullable=True),
        gs.Attr("l", "list[int8]"),
    ]
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], attrs, sparse=True))
    z = np.ma.MaskedArray(np.full(10, 1j), mask=np.arange(10) % 2 == 0)
    h = np.float16(np.arange(10) / 10)
    a.write_cells(np.arange(10), {"h": h, "s": [b"a", b"ab"] * 5, "z": z, "l": [[1]] * 10})
    a.delete(where="h < 0.3 and s == b'ab'")
    assert a.read()["x"].tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    a.delete(where=gs.col("z").is_null())
    assert a.read()["x"].tolist() == [3, 5, 7, 9]
    for where in ("z == 1", "l == 1", "l < z", "z"):
        with pytest.raises(gs.errors.InputError, match="null"):
            a.delete(where=where)
    assert len(a.read()) == 4


def test_the_command_line_shows_them(tmp_path: Path, stores: Stores, capsys: pytest.CaptureFixture[str]) -> None:
    from gridstone.cli import run

    uri = stores("a")
    asked = [
        "rgb:uint8[3]",
        "z:complex64:fill=1.0+2.0j",
        "h:float16",
        "s:S4",
        "l:list[int32]",
        "m:float32[2,2]:nullable",
    ]
    assert run(["create", uri, "--dim", "x:int32:0:2", *(part for a in asked for part in ("--attr", a))]) == 0
    a = gs.open(uri, mode="r+")
    assert a.schema.attr("z").fill == 1 + 2j and a.schema.attr("m").nullable
    a.write_cells([1], {"rgb": [[1, 2, 3]], "h": [0.5], "s": [b"ab"], "l": [[7, 8]], "m": [np.eye(2)]})
    capsys.readouterr()
    assert run(["read", uri, "--format", "csv", "--out", str(tmp_path / "a.csv")]) == 0
    table = pd.read_csv(tmp_path / "a.csv")
    assert table["rgb"].tolist() == ["[0, 0, 0]", "[1, 2, 3]", "[0, 0, 0]"] and table["l"][1] == "[7, 8]"
    assert (
        table["s"].tolist()[1] == "ab"
        and table["z"].tolist() == ["[1.0, 2.0]"] * 3
        and table["h"].tolist() == [0, 0.5, 0]
    )
    assert table["m"].isna().tolist() == [True, False, True] and table["m"][1] == "[[1.0, 0.0], [0.0, 1.0]]"
    assert run(["read", uri, "--json"]) == 0 and '"l": [7, 8]' in capsys.readouterr().out
    assert run(["read", uri]) == 0 and run(["info", uri]) == 0 and "uint8[3]" in capsys.readouterr().out


def test_colours_are_drawn_and_what_is_no_number_is_not(tmp_path: Path, stores: Stores) -> None:
    from gridstone import plot

    dims = [gs.Dim("y", (0, 6)), gs.Dim("x", (0, 8))]
    attrs = [gs.Attr("rgb", "uint8[3]"), gs.Attr("h", "float16"), gs.Attr("z", complex), gs.Attr("v", "float32[2]")]
    a = gs.create(stores(), gs.Schema(dims, attrs))
    for name in ("rgb", "h"):
        plot.plot(a, tmp_path / f"{name}.png", attr=name)
        assert (tmp_path / f"{name}.png").stat().st_size > 1_000
    for name in ("z", "v"):
        with pytest.raises(gs.errors.UnsupportedError, match="an image shows numbers"):
            plot.plot(a, tmp_path / "no.png", attr=name)


@pytest.mark.parametrize("dtype", ["bool", "int8", "string", "datetime64[s]", "timedelta64[h]", *TYPES])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_an_empty_list_is_of_every_type(store_uri: str, dtype: str, sparse: bool) -> None:
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", dtype)], sparse=sparse))
    a.write_cells([], [])
    a.write_cells({"x": []}, {"v": ()})
    if not sparse:
        a[4:4] = []
        a.oindex[[]] = []
        a.vindex[np.zeros(10, bool)] = []
    assert len(a.fragments) == 0 and len(a.points([])) == 0


def test_an_empty_list_is_a_list_of_coordinates(store_uri: str) -> None:
    dim = gs.Dim("t", ("2026-01-01", "2026-12-31"), dtype="datetime64[D]")
    a = gs.create(store_uri, gs.Schema([dim], [gs.Attr("v", "int8")], sparse=True))
    a.write_cells([], [])
    assert len(a.points({"t": []})) == 0 and a.delete(coords=[]) == a.version


@pytest.mark.parametrize("dtype", [dtype for dtype in TYPES if "timedelta" not in dtype and "datetime" not in dtype])
@BOTH
def test_files_of_text_come_back(tmp_path: Path, stores: Stores, dtype: str, nullable: bool) -> None:
    from gridstone.io import from_csv, to_csv

    def schema() -> gs.Schema:
        return gs.Schema([gs.Dim("x", (0, 39))], [gs.Attr("v", dtype, nullable=nullable)], sparse=True)

    values = some(dtype, 40, nullable)
    if dtypes.is_fixed_bytes(dtype):  # Text is UTF-8; an empty value is null where there may be one.
        values = [None if v is None or (nullable and v == b"") else v.replace(b"\xff\xfe\xfd", b"x") for v in values]
        values = [v if v is None else v.replace(b"\0", b"0") for v in values]
    if nullable and dtype in ("float16", "complex64", "complex128"):  # NaN in a file means null where there may be one.
        values = [None if v is not None and "nan" in v else v for v in values]
    a = gs.create(stores(), schema())
    a.write_cells(np.arange(40), unplain(dtype, values))
    assert to_csv(a, tmp_path / "a.csv") == 40
    uri = stores()
    gs.create(uri, schema())
    from_csv(uri, tmp_path / "a.csv")
    found = gs.open(uri).read()
    assert found["x"].tolist() == list(range(40)) and plain(dtype, found["v"]) == values


def test_text_that_is_no_value_is_refused(tmp_path: Path, stores: Stores) -> None:
    from gridstone.io import from_csv, to_csv

    for dtype, text in [
        ("uint8[3]", "1"),
        ("uint8[3]", '"[1, 2"'),
        ("uint8[3]", '"[1, 2]"'),
        ("list[int8]", "x"),
        ("list[int8]", '"[300]"'),
        ("complex64", "x"),
        ("complex64", "[1]"),
        ("bytes[2]", "abc"),
    ]:
        uri = stores()
        gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", dtype)], sparse=True))
        (tmp_path / "a.csv").write_text(f"x,v\n1,{text}\n")
        with pytest.raises(gs.errors.InputError, match="'v'"):
            from_csv(uri, tmp_path / "a.csv")
    a = gs.create(stores(), gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "timedelta64[s][2]")]))
    with pytest.raises(gs.errors.UnsupportedError, match="no form in CSV"):
        to_csv(a, tmp_path / "b.csv")
