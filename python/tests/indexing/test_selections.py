"""What users of h5py count on, as far as it is promised here too, with NumPy as the judge: selections of every form,
scalars, nothing selected, values of other layouts and byte orders, reading into arrays, fill, growth.
"""

import operator
from typing import Any

import numpy as np
import pytest
from places import Stores

import gridstone as gs

LINE = np.arange(10, dtype="float32") * 1.5 - 4
PLANE = np.arange(42, dtype="int16").reshape(6, 7)
CUBE = np.arange(120, dtype="uint64").reshape(4, 5, 6) + 2**63


def short(value: Any) -> str:
    """What a case is called."""
    return " ".join(str(value).split())[:24]


@pytest.fixture
def stored(stores: Stores) -> dict[int, gs.Array]:
    """The same arrays by their number of dimensions, in tiles that divide nothing."""
    found = {}
    for values in (LINE, PLANE, CUBE):
        found[values.ndim] = gs.array(stores(f"selections-{values.ndim}"), values, tile=4, overwrite=True)
    return found


BASIC: list[tuple[np.ndarray, Any]] = [
    (LINE, ...),
    (LINE, ()),
    (LINE, (..., 3)),
    (LINE, 3),
    (LINE, -1),
    (LINE, np.int8(4)),
    (LINE, np.uint64(4)),
    (LINE, np.array(4)),
    (LINE, slice(0, 4)),
    (LINE, slice(4, 4)),
    (LINE, slice(7, 3)),
    (LINE, slice(-8, -2)),
    (LINE, slice(8, 100)),
    (LINE, slice(100, 200)),
    (LINE, slice(-100, 2)),
    (LINE, slice(None, None, 3)),
    (LINE, slice(1, 8, 20)),
    (LINE, slice(None, None, -1)),
    (LINE, slice(8, 1, -3)),
    (LINE, slice(np.int16(2), np.uint8(5))),
    (PLANE, 2),
    (PLANE, (2, 3)),
    (PLANE, (slice(None), 3)),
    (PLANE, (2, ...)),
    (PLANE, (..., 2)),
    (PLANE, (2, ..., 3)),
    (PLANE, (slice(1, 5), slice(6, 2))),
    (PLANE, (slice(5, 4), 1)),
    (PLANE, (slice(1, 6, 2), slice(None, None, -2))),
    (CUBE, (1, slice(None), 2)),
    (CUBE, (..., slice(1, 3), 5)),
    (CUBE, (slice(1, 3), ..., slice(None, None, 5))),
    (CUBE, (slice(0, 0), ..., 5)),
]


@pytest.mark.parametrize(("values", "key"), BASIC, ids=short)
def test_basic_selections(stores: Stores, stored: dict[int, gs.Array], values: np.ndarray, key: Any) -> None:
    """Also of assignments, which write what NumPy writes."""
    found, expected = stored[values.ndim][key], values[key]
    assert type(found) is type(expected) and found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(stored[values.ndim]["value"][key], expected)
    copy = gs.array(stores("selections-written"), values, tile=4, overwrite=True)
    changed = values.copy()
    for piece in (values.dtype.type(7), np.flip(expected)):
        copy[key] = changed[key] = piece
        np.testing.assert_array_equal(copy[...], changed)


ORTHOGONAL: list[tuple[np.ndarray, Any]] = [
    (LINE, [1, 2, 5]),
    (LINE, np.array([1, 2, 5], "uint8")),
    (LINE, [5]),
    (LINE, []),
    (LINE, [-1, -10]),
    (LINE, [7, 2, 2, 9]),
    (LINE, LINE > 2),
    (LINE, np.zeros(10, bool)),
    (LINE, [True] * 10),
    (LINE, range(1, 9, 3)),
    (LINE, ([3, 4], ...)),
    (PLANE, ([1, 4],)),
    (PLANE, (slice(None), [6, 0])),
    (PLANE, ([1, 4], [2, 3, 5])),
    (PLANE, (2, [2, 3, 5])),
    (PLANE, ([], slice(2, 4))),
    (PLANE, (..., [1])),
    (PLANE, (np.array([True, False] * 3), slice(None, None, 3))),
    (CUBE, ([0, 3], slice(1, 2), [5, 5, 1])),
    (CUBE, (slice(3, 0, -1), 2, [0, 1, 2, 3, 4, 5])),
    (CUBE, (1, ..., np.array([False, True] * 3))),
]


@pytest.mark.parametrize(("values", "key"), ORTHOGONAL, ids=short)
def test_lists_along_axes(stores: Stores, stored: dict[int, gs.Array], values: np.ndarray, key: Any) -> None:
    """Lists select along their own axes, as in h5py; in any order, and repeated, which h5py does not take."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part is ... for part in parts):
        at = next(i for i, part in enumerate(parts) if part is ...)
        parts = (*parts[:at], *[slice(None)] * (values.ndim - len(parts) + 1), *parts[at + 1 :])
    expected = values
    for axis in reversed(range(len(parts))):
        part = parts[axis]
        if isinstance(part, list | range) and not (len(part) and isinstance(part[0], bool)):
            part = np.array(part, int)
        expected = expected[(slice(None),) * axis + (part,)]
    found = stored[values.ndim].oindex[key]
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    copy = gs.array(stores("selections-written"), values, tile=4, overwrite=True)
    copy.oindex[key] = expected.dtype.type(1)
    assert (copy.oindex[key] == 1).all()
    untouched = np.ones(values.shape, bool)
    untouched[np.isin(values, expected)] = False  # Every value of the arrays is there once.
    np.testing.assert_array_equal(copy[...], np.where(untouched, values, values.dtype.type(1)))


@pytest.mark.parametrize(
    ("way", "key", "kind"),
    [
        ("basic", 6, IndexError),
        ("basic", -7, IndexError),
        ("basic", (0, 7), IndexError),
        ("basic", (0, 0, 0), IndexError),
        ("basic", (..., ...), IndexError),
        ("basic", slice(None, None, 0), ValueError),
        ("basic", slice("a", None), TypeError),
        ("basic", 1.0, IndexError),
        ("basic", "no", ValueError),
        ("basic", {}, IndexError),
        ("oindex", [6], IndexError),
        ("oindex", [0, -7], IndexError),
        ("oindex", np.zeros(5, bool), IndexError),
        ("oindex", np.zeros((6, 7), bool), IndexError),
        ("oindex", [1.5], IndexError),
        ("oindex", (0, [[1]]), IndexError),
        ("vindex", np.zeros((7, 6), bool), IndexError),
        ("vindex", ([0], [7]), IndexError),
    ],
    ids=short,
)
def test_what_selects_nothing_that_is_there(store_uri: str, way: str, key: Any, kind: type[Exception]) -> None:
    """The kinds of NumPy's errors; an assignment that fails writes nothing."""
    array = gs.array(store_uri, PLANE)
    target: Any = array if way == "basic" else getattr(array, way)
    with pytest.raises(kind):
        target[key]
    with pytest.raises(kind):
        target[key] = 1
    assert array.version == 2 and np.array_equal(array[...], PLANE)


# What is assigned.

GIVEN: dict[str, tuple[str, Any, Any]] = {
    "every other one": ("int32", np.arange(20, dtype="int32")[::2], np.arange(0, 20, 2)),
    "backwards": ("int32", np.arange(10, dtype="int32")[::-1], np.arange(10)[::-1]),
    "a column": ("int64", np.arange(30).reshape(10, 3)[:, 1], np.arange(1, 30, 3)),
    "bools with gaps": ("bool", (np.arange(20) % 3 == 0)[::2], (np.arange(20) % 3 == 0)[::2]),
    "big-endian": ("float64", np.arange(10, dtype=">f8") / 3, np.arange(10) / 3),
    "big-endian into narrower": ("int16", np.arange(10, dtype=">i8") - 5, np.arange(10) - 5),
    "a field of records": ("int8", np.zeros(10, [("a", "i1"), ("b", "f8")])["a"], np.zeros(10)),
    "Python's integers": (
        "uint64",
        [2**64 - 1 - i for i in range(10)],
        np.uint64(2**64 - 1) - np.arange(10, dtype="u8"),
    ),
    "one value for all": ("float32", 2.5, np.full(10, 2.5)),
    "an array without axes": ("float32", np.array(2.5), np.full(10, 2.5)),
    "an axis of length one": ("uint8", [3], np.full(10, 3)),
    "axes of length one in front": ("uint8", np.arange(10)[None, None], np.arange(10)),
    "whole floats into integers": ("int32", np.arange(10.0), np.arange(10)),
    "integers into floats": ("float32", np.arange(10), np.arange(10)),
    "wider floats, rounded": ("float32", np.arange(10) / 3, (np.arange(10) / 3).astype("f4")),
    "a read-only array": ("int64", np.broadcast_to(np.int64(4), 10), np.full(10, 4)),
    "another array here": ("int64", gs.array("mem://selections-source", np.arange(10), overwrite=True), np.arange(10)),
    "a memoryview": ("uint8", memoryview(bytes(range(10))), np.arange(10)),
    "days into seconds": ("datetime64[s]", np.arange(10).astype("M8[D]"), np.arange(10).astype("M8[D]")),
    "texts of NumPy": ("string", np.array(list("abcdefghij")), np.array(list("abcdefghij"), object)),
}


@pytest.mark.parametrize("case", GIVEN)
def test_what_is_assigned(stores: Stores, case: str) -> None:
    dtype, given, expected = GIVEN[case]
    array = gs.create(
        stores("selections-given"), gs.Schema([gs.Dim("x", (0, 9), 4)], [gs.Attr("v", dtype)]), overwrite=True
    )
    array[...] = given
    assert array.dtype == (object if dtype == "string" else np.dtype(dtype))
    np.testing.assert_array_equal(array[...], expected)
    if np.shape(given) == (10,):
        array.write(given)
        array.vindex[np.arange(10)] = given
        np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("int32", [0.5] * 10),
        ("uint8", [256] + [0] * 9),
        ("uint64", [-1] * 10),
        ("int64", [2**63] * 10),
        ("int32", [float("nan")] * 10),
        ("float32", np.full(10, 1e300)),
        ("int32", np.full(10, 1j)),
        ("bool", np.arange(10)),
        ("string", np.arange(10)),
        ("bytes[2]", [b"abc"] * 10),
        ("datetime64[s]", np.full(10, np.datetime64("2026-01-01T00:00:00.5"))),
        ("float64", ["1"] * 10),
        ("float64", [None] * 10),
        ("float64", np.zeros(11)),
        ("float64", np.zeros((10, 10))),
        ("float64", [[1.0], [1.0, 2.0]]),
    ],
    ids=short,
)
def test_what_would_be_changed_is_refused(store_uri: str, dtype: str, given: Any) -> None:
    """HDF5 clips and rounds; here what does not fit is an error, and nothing is written."""
    array = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", dtype)]))
    for assign in (array.__setitem__, array.oindex.__setitem__):
        with pytest.raises(gs.errors.InputError, match="'v'"):
            assign(slice(None), given)
    assert array.version == 1 and array.fragments.num_rows == 0


# Reading into arrays.


@pytest.mark.parametrize("order", ["row", "col"])
def test_reading_into_parts_of_arrays(stored: dict[int, gs.Array], order: str) -> None:
    around = np.full((12, 12), -1, "int16")
    part = around[2:8, 3:10]
    assert stored[2].read(order=order, out=part)["value"] is not None
    np.testing.assert_array_equal(part, PLANE)
    assert (around == -1).sum() == 144 - 42, "nothing beside it is touched"
    strided = np.full((6, 14), -1, "int16")[:, ::2]
    stored[2].read(order=order, out=strided)
    np.testing.assert_array_equal(strided, PLANE)
    backwards = np.zeros((2, 3), "int16")[::-1, ::-1]
    stored[2].read({"d0": (1, 2), "d1": (4, 6)}, order=order, out=backwards)
    np.testing.assert_array_equal(backwards, PLANE[1:3, 4:7])


@pytest.mark.parametrize(
    "out",
    [np.zeros((7, 6), "int16"), np.zeros((6, 7), "int32"), np.zeros(42, "int16")],
    ids=["turned", "int32", "flat"],
)
def test_arrays_that_do_not_fit_are_named(stored: dict[int, gs.Array], out: np.ndarray) -> None:
    with pytest.raises(gs.errors.InputError, match="value"):
        stored[2].read(out=out)


# Fill, growth, and the array as a sequence.

FILLS: list[tuple[str, Any, Any]] = [
    ("int8", None, 0),
    ("int8", -128, -128),
    ("uint64", 2**64 - 1, 2**64 - 1),
    ("float32", None, 0.0),
    ("float64", np.nan, np.nan),
    ("bool", True, True),
    ("string", None, ""),
    ("string", "n/a", "n/a"),
    ("bytes", b"\0", b"\0"),
    ("bytes[3]", b"ab", b"ab"),
    ("complex64", 1 - 2j, np.complex64(1 - 2j)),
    ("datetime64[D]", None, np.datetime64("NaT", "D")),
    ("datetime64[D]", "2026-03-01", np.datetime64("2026-03-01", "D")),
]


@pytest.mark.parametrize(("dtype", "fill", "shown"), FILLS, ids=short)
def test_fill_is_what_was_never_written(store_uri: str, dtype: str, fill: Any, shown: Any) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), 4)], [gs.Attr("v", dtype, fill=fill), gs.Attr("n", "int8")])
    array = gs.create(store_uri, schema)
    expected = np.empty(10, array["v"].dtype)
    expected[:] = [shown] * 10
    np.testing.assert_array_equal(array["v"][...], expected)
    array["n"][2:9] = 1  # Other attributes of the same cells write nothing here.
    np.testing.assert_array_equal(array["v"].oindex[[9, 2, 5]], expected[:3])
    other = np.zeros(1, expected.dtype)[0] if dtype not in ("string", "bytes") else ("x" if dtype == "string" else b"x")
    array["v"][5] = other
    expected[5] = other
    array.resize(12)
    np.testing.assert_array_equal(array["v"][...], np.append(expected, expected[:2]))
    array.delete({"x": (5, 5)})
    array.consolidate("all")
    np.testing.assert_array_equal(array["v"][...], expected[[0] * 12])


def test_growth_keeps_what_is_there(store_uri: str) -> None:
    array = gs.array(store_uri, PLANE, tile=(4, 4))
    with pytest.raises(gs.errors.SchemaError):
        array.resize((5, 7))
    array.resize((6, 9))
    array.resize((8, None))
    expected = np.zeros((8, 9), "int16")
    expected[:6, :7] = PLANE
    np.testing.assert_array_equal(array[...], expected)
    array[7, 8] = expected[7, 8] = 5
    np.testing.assert_array_equal(array[::-1, ::2], expected[::-1, ::2])
    assert np.array_equal(array.at(version=2)[...], PLANE)


def test_an_array_is_a_sequence(stored: dict[int, gs.Array]) -> None:
    plane, line = stored[2], stored[1]
    assert len(plane) == 6 and [row.tolist() for row in plane] == PLANE.tolist()
    assert list(line) == list(LINE) and all(type(value) is np.float32 for value in line)
    np.testing.assert_array_equal(np.asarray(plane, "float64"), PLANE.astype("float64"))
    np.testing.assert_array_equal(np.concatenate([plane, PLANE]), np.concatenate([PLANE, PLANE]))
    np.testing.assert_array_equal(np.add(plane, 1), PLANE + 1)
    assert int(line[4]) == 2 and float(np.asarray(line[3])) == 0.5 and operator.index(plane[2, 3]) == 17
    with pytest.raises(ValueError, match="copy"):
        np.asarray(plane, copy=False)


def test_oindex_takes_single_positions_of_the_largest_domains(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 2**64 - 1), 100, "uint64"), gs.Dim("y", (0, 3))], [gs.Attr("v", "int8")])
    a = gs.create(store_uri, schema)
    a.oindex[-(2**64), 1] = 7
    a.oindex[2**64 - 1, 1] = 8
    assert a.oindex[0, 1] == a[-(2**64), 1] == 7 and a.oindex[-1, [1, 2]].tolist() == [8, 0]
    for outside in (2**64, -(2**64) - 1):
        with pytest.raises(gs.errors.BoundsError, match="out of bounds"):
            a.oindex[outside, 1]
