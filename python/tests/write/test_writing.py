"""What may be written, and how what may not is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.column import encode
from gridstone.column.columns import Field


def sparse(uri: str, *attrs: gs.Attr, **options: object) -> gs.Array:
    dims = [gs.Dim("x", (0, 99), 10), gs.Dim("y", (0, 99), 10)]
    return gs.create(uri, gs.Schema(dims, attrs or [gs.Attr("v", "int32")], sparse=True, **options))


@pytest.mark.parametrize(
    "coords",
    [
        {"x": [1, 2], "y": [3, 4]},
        {"y": np.array([3, 4], ">i2"), "x": np.array([1, 9, 2])[::2]},
        np.array([[1, 3], [2, 4]]),
        ([1, 2], [3, 4]),
        {"x": pa.array([1, 2]), "y": pa.chunked_array([[3], [4]])},
        {"x": pd.Series([1, 2]), "y": [3.0, 4.0]},
    ],
)
def test_coordinates_in_many_forms(store_uri: str, coords: object) -> None:
    array = sparse(store_uri)
    array.write_cells(coords, [10, 20])
    found = array.read().to_numpy()
    assert [found[n].tolist() for n in ("x", "y", "v")] == [[1, 2], [3, 4], [10, 20]]


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, lambda d: pa.table(d).to_batches()[0], dict])
def test_tables(store_uri: str, make) -> None:
    array = sparse(store_uri, gs.Attr("v", "float32"), gs.Attr("s", str))
    array.write_cells(make({"s": ["a", "b"], "y": [3, 4], "x": [1, 2], "v": [0.5, np.nan]}))
    found = array.read().to_numpy()
    assert found["s"].tolist() == ["a", "b"]
    np.testing.assert_array_equal(found["v"], [0.5, np.nan])


def test_pandas_nulls(store_uri: str) -> None:
    kinds = {"i": "int16", "f": "float64", "s": "string", "b": "bool", "t": "datetime64[ns]"}
    array = sparse(store_uri, *(gs.Attr(n, k, nullable=True) for n, k in kinds.items()), gs.Attr("g", "float64"))
    frame = pd.DataFrame(
        {
            "x": [1, 2],
            "y": [1, 2],
            "i": [7.0, np.nan],
            "f": [0.5, np.nan],
            "s": ["a", None],
            "b": pd.array([True, None], "boolean"),
            "t": pd.to_datetime(["2026-01-01", None]),
            "g": [0.5, np.nan],
        }
    )
    array.write_cells(frame)
    found = array.read().to_numpy()
    assert all(found[name].mask.tolist() == [False, True] for name in kinds)
    assert not np.ma.isMaskedArray(found["g"]) and np.isnan(found["g"][1])


def test_several_writes_make_versions(store_uri: str) -> None:
    array = sparse(store_uri)
    first = array.write_cells([[1, 1]] @ np.eye(2, dtype=int), [1], message="one")
    second = array.write_cells({"x": [1], "y": [1]}, [2], message="two")
    assert (array.version, second) == (second, first + 1)
    assert array.read()["v"].tolist() == [2]
    past = array.at(version=first)
    assert past.read()["v"].tolist() == [1] and past.mode == "r"
    assert array.at(timestamp=past.timestamp).version == first
    assert [v.message for v in array.history()][-2:] == ["one", "two"]
    assert array.history()[-1].timestamp == array.timestamp
    assert gs.open(store_uri, version=first).read()["v"].tolist() == [1]
    with pytest.raises(gs.errors.AccessError, match=r"r\+"):
        past.write_cells({"x": [1], "y": [1]}, [2])
    with pytest.raises(gs.errors.BoundsError):
        past.refresh()


def test_cells_into_a_dense_array(store_uri: str) -> None:
    values = np.zeros((50, 40), np.int32)
    array = gs.array(store_uri, values, tile=(10, 10))
    rng = np.random.default_rng(0)
    flat = rng.permutation(2000)[:300]
    places = np.unravel_index(flat, values.shape)
    values[places] = np.arange(300)
    array.write_cells(places, np.arange(300))
    np.testing.assert_array_equal(array[...], values)
    array.delete(coords=(places[0][:10], places[1][:10]))
    values[places[0][:10], places[1][:10]] = 0
    np.testing.assert_array_equal(array[...], values)


def test_subset_of_attributes(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 4))], [gs.Attr("a", int), gs.Attr("b", float)])
    array = gs.create(store_uri, schema)
    array["a"][1:3] = 7
    array["b"] = np.arange(5.0)
    array.write({"a": np.arange(2)}, {"x": (3, 4)})
    assert array["a"][...].tolist() == [0, 7, 7, 0, 1]
    assert array["b"][...].tolist() == [0, 1, 2, 3, 4]
    array.write_cells([0], {"b": [9.0]})
    assert array[0] == {"a": 0, "b": 9.0}
    with pytest.raises(gs.errors.InputError, match="2 attributes"):
        array[0] = 1


def test_fortran_order(store_uri: str) -> None:
    values = np.asfortranarray(np.arange(600).reshape(20, 30))
    array = gs.array(store_uri, values, tile=(7, 9))
    np.testing.assert_array_equal(array[...], values)
    array[3:9, 4] = values[3:9, 5]
    np.testing.assert_array_equal(array[3:9, 4], values[3:9, 5])
    array[2:10, 5:7] = np.asfortranarray(values[0:8, 0:2])
    np.testing.assert_array_equal(array[2:10, 5:7], values[0:8, 0:2])


def test_writer_dense(store_uri: str, stores: Stores) -> None:
    values = np.arange(600).reshape(20, 30)
    array = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 19), 7), gs.Dim("y", (0, 29), 9)], [gs.Attr("v", int)]))
    flat = gs.array(stores("writer"), values, tile=(7, 9), overwrite=True).read(order="global")["value"]
    with array.writer(message="streamed") as writer:
        for start in range(0, 600, 77):
            writer.append(flat[start : start + 77])
    np.testing.assert_array_equal(array[...], values)
    version = array.version
    with pytest.raises(ZeroDivisionError), array.writer() as writer:
        writer.append(flat)
        raise ZeroDivisionError
    assert array.version == version and gs.open(store_uri).version == version
    with pytest.raises(gs.errors.InputError, match="finished"):
        writer.append(flat)


@pytest.mark.parametrize("order", ["global", "any"])
def test_a_writer_of_some_attributes_leaves_the_others(store_uri: str, order: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), 4)], [gs.Attr(name, int) for name in "abc"])
    array = gs.create(store_uri, schema)
    array.write({name: np.arange(10) for name in "abc"})

    def append(writer: Any, places: range, values: object) -> None:
        if order == "any":
            writer.append({"x": places}, values)
        else:
            writer.append(values)

    with array.writer(order=order, attrs="b") as writer:
        append(writer, range(0, 6), np.arange(6) + 10)
        append(writer, range(6, 10), {"b": np.arange(4) + 16})
    with array.writer(order=order, attrs=["c", "a"]) as writer:
        append(writer, range(0, 10), {"a": np.arange(10) + 20, "c": np.arange(10) + 30})
    for name, first in zip("abc", (20, 10, 30), strict=True):
        assert array[name][...].tolist() == list(range(first, first + 10)), name
    version = array.version
    for values in ({"a": np.zeros(10, int), "b": np.zeros(10, int)}, {"c": np.zeros(10, int)}):
        with (
            pytest.raises(gs.errors.InputError, match=r"\['b'\] in each piece"),
            array.writer(order=order, attrs=["b"]) as writer,
        ):
            append(writer, range(10), values)
    with pytest.raises(gs.errors.InputError, match=r"\['a', 'b', 'c'\] in each"), array.writer(order=order) as writer:
        append(writer, range(10), {"b": np.zeros(10, int)})
    with pytest.raises(gs.errors.InputError, match="no attribute 'z'"):
        array.writer(order=order, attrs="z")
    assert array.version == version


def test_a_writer_of_cells_takes_all_attributes(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("a", int), gs.Attr("b", int)], sparse=True)
    array = gs.create(store_uri, schema)
    for order in ("global", "any"):
        with pytest.raises(gs.errors.InputError, match="of a sparse array every one"):
            array.writer(order=order, attrs="a")


def test_writer_sparse(store_uri: str) -> None:
    array = sparse(store_uri)
    with array.writer() as writer:
        writer.append({"x": [0, 1], "y": [0, 0]}, [1, 2])
        writer.append(pa.table({"x": [50], "y": [50], "v": [3]}))
    assert array.read()["v"].tolist() == [1, 2, 3]
    with pytest.raises(gs.errors.InputError), array.writer() as writer:
        writer.append({"x": [50], "y": [50]}, [1])
        writer.append({"x": [0], "y": [0]}, [1])
    assert len(array.read()) == 3


@pytest.mark.parametrize(
    ("attempt", "kind", "word"),
    [
        (lambda a: a.write_cells({"x": [1]}, [1]), gs.errors.InputError, "'y'"),
        (lambda a: a.write_cells({"x": [1], "y": [1], "z": [1]}, [1]), gs.errors.InputError, "'z'"),
        (lambda a: a.write_cells({"x": [1], "y": [1]}, {"w": [1]}), gs.errors.InputError, "'w'.*'v'"),
        (lambda a: a.write_cells({"x": [1], "y": [1]}, {}), gs.errors.InputError, "'v'"),
        (lambda a: a.write_cells({"x": [1, 2], "y": [1]}, [1]), gs.errors.InputError, "lengths"),
        (lambda a: a.write_cells({"x": [1], "y": [1]}, [[1]]), gs.errors.InputError, "flat"),
        (lambda a: a.write_cells({"x": [1, 2], "y": [1, 2]}, [1, 2**40]), gs.errors.InputError, "'v' is int32.*row 1"),
        (lambda a: a.write_cells({"x": [1], "y": [1]}, [1.5]), gs.errors.InputError, "1.5"),
        (lambda a: a.write_cells({"x": [1], "y": [1]}, ["a"]), gs.errors.InputError, "'v' is int32"),
        (lambda a: a.write_cells({"x": [1], "y": [1]}, [None]), gs.errors.InputError, "not nullable"),
        (lambda a: a.write_cells({"x": [1], "y": [100]}, [1]), gs.errors.BoundsError, "100"),
        (lambda a: a.write_cells({"x": [1, 1], "y": [1, 1]}, [1, 2]), gs.errors.InputError, "1"),
        (lambda a: a.write_cells({"x": [1], "y": [1]}, [1], dedup="any"), gs.errors.InputError, "dedup"),
        (lambda a: a.write_cells(pa.table({"x": [1], "v": [1]})), gs.errors.InputError, "'y'"),
        (lambda a: a.write_cells([1, 2]), gs.errors.InputError, "table"),
        (lambda a: a.write(np.zeros(3)), gs.errors.UnsupportedError, "dense"),
        (lambda a: a.delete(coords=np.zeros((2, 3), int)), gs.errors.InputError, r"\(n, 2\)"),
    ],
)
def test_refusals_say_why_and_write_nothing(store_uri: str, attempt, kind: type[Exception], word: str) -> None:
    array = sparse(store_uri)
    with pytest.raises(kind, match=word):
        attempt(array)
    assert array.version == gs.open(store_uri).version == 1
    assert len(array.read()) == 0


def test_shapes_are_named(store_uri: str) -> None:
    array = gs.array(store_uri, np.zeros((4, 5)))
    with pytest.raises(gs.errors.InputError, match=r"\(4,\).*\(5,\)"):
        array[0] = np.zeros(4)
    with pytest.raises(gs.errors.InputError, match=r"\(5, 4\).*\(4, 5\)"):
        array.write(np.zeros((5, 4)))
    array[1] = np.zeros((1, 1, 5)) + 2
    array[2:2] = 5
    with pytest.raises(gs.errors.InputError, match=r"\(3,\).*\(0, 5\)"):
        array[2:2] = np.zeros(3)
    assert array[1].tolist() == [2] * 5


def test_dedup_and_duplicates(store_uri: str, stores: Stores) -> None:
    array = sparse(store_uri)
    array.write_cells({"x": [1, 1], "y": [1, 1]}, [1, 2], dedup="last")
    assert array.read()["v"].tolist() == [2]
    array.write_cells({"x": [1, 1], "y": [1, 1]}, [3, 4], dedup="first")
    assert array.read()["v"].tolist() == [3]
    both = gs.create(stores("2"), gs.Schema(array.schema.dims, array.schema.attrs, sparse=True, duplicates=True))
    both.write_cells({"x": [1, 1], "y": [1, 1]}, [5, 6])
    assert both.read()["v"].tolist() == [5, 6]


@given(
    st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"]),
    st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)), min_size=1, max_size=5),
)
def test_casts_keep_values(dtype: str, values: list[float]) -> None:
    source = np.array(values)
    if source.dtype.kind == "O":
        return
    field = Field("v", dtype, False, "attribute")
    if all(fits(v, dtype) for v in source.tolist()):
        made = encode.from_values(field, source).values
        np.testing.assert_array_equal(made, np.array([np.dtype(dtype).type(v) for v in source.tolist()], dtype))
        assert made.dtype == dtype
    else:
        with pytest.raises(gs.errors.InputError, match=dtype):
            encode.from_values(field, source)


def fits(value: float, dtype: str) -> bool:
    """Whether a value survives: integers exactly, floats up to rounding."""
    if np.dtype(dtype).kind != "f":
        limits = np.iinfo(dtype)
        return np.isfinite(value) and int(value) == value and limits.min <= int(value) <= limits.max
    with np.errstate(over="ignore"):
        made = np.dtype(dtype).type(value)
    return int(made) == value if isinstance(value, int) else bool(np.isfinite(made) or not np.isfinite(value))


def test_meta(store_uri: str) -> None:
    array = gs.array(store_uri, np.zeros(3))
    values = {
        "none": None, "yes": True, "int": 2**70, "small": -5, "nan": float("nan"), "inf": float("-inf"),
        "text": "häfen", "bytes": b"\x00\xff", "list": [1, [2.5, "x"]], "dict": {"$bytes": 1, "a": {"b": b"c"}},
        "time": np.datetime64("2026-01-01T00:00", "us"), "nat": np.timedelta64("NaT", "s"), "np": np.float32(0.5),
    }  # fmt: skip
    before = array.version
    array.meta.update(values, array=np.arange(3))
    assert array.version == before + 1
    found = dict(gs.open(store_uri).meta)
    assert found.pop("array") == [0, 1, 2] and np.isnan(found.pop("nan")) and np.isnat(found.pop("nat"))
    assert found == {k: v for k, v in values.items() if k not in ("nan", "nat")}
    del array.meta["none"]
    assert "none" not in array.meta and array.meta.get("none") is None
    with pytest.raises(KeyError):
        del array.meta["none"]
    with pytest.raises(gs.errors.InputError, match="JSON"):
        array.meta["x"] = object()
    for key, value in [("\ud800", 1), ("x", "\udcff"), ("x", [{"\udcff": 1}])]:
        with pytest.raises(gs.errors.InputError, match="surrogate"):
            array.meta[key] = value
    assert "\ud800" not in array.meta and array.meta.get("\ud800") is None and "x" not in array.meta
    with pytest.raises(gs.errors.AccessError):
        gs.open(store_uri).meta["x"] = 1
    array.meta.clear()
    assert len(array.meta) == 0


def test_frames_hold_large_unsigned_integers_as_objects(stores):
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "uint64", nullable=True)], sparse=True)
    array = gs.create(stores("a"), schema)
    values = [5, None, 2**64 - 1]
    array.write_cells(pd.DataFrame({"x": [1, 2, 3], "v": pd.Series(values, dtype=object)}))
    found = array.read().to_numpy()["v"]
    assert [None if m else int(v) for v, m in zip(found.data, np.ma.getmaskarray(found), strict=True)] == values
