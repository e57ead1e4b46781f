"""Single cells by coordinates and by lists of positions; positions follow NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from places import Stores

import gridstone as gs


def _dense(data: st.DataObject, shape: tuple[int, ...], uri: str) -> tuple[gs.Array, np.ndarray]:
    """An array whose coordinates are not its positions, and what it holds."""
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    low = data.draw(st.integers(-20, 20))
    dims = [gs.Dim(f"d{i}", (low, low + n - 1), data.draw(st.integers(1, n))) for i, n in enumerate(shape)]
    orders = [data.draw(st.sampled_from(["row", "col"])) for _ in range(2)]
    schema = gs.Schema(dims, [gs.Attr("v", "int32")], tile_order=orders[0], cell_order=orders[1])
    array = gs.create(uri, schema, overwrite=True)
    array[...] = values
    for _ in range(data.draw(st.integers(0, 3))):
        key = data.draw(hnp.basic_indices(shape))
        value = data.draw(st.integers(-1_000, -1))
        array[key] = value
        values[key] = value
    return array, values


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=12))
def test_vindex_reads_what_numpy_reads(stores: Stores, data: st.DataObject, shape: tuple[int, ...]) -> None:
    array, values = _dense(data, shape, stores("vindex"))
    key = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(min_dims=0, max_dims=3, max_side=9)))
    kinds = [data.draw(st.sampled_from(["array", "list", "narrow"])) for _ in key]
    given_key = tuple(
        {"array": k, "list": k.tolist(), "narrow": k.astype(np.int8)}[kind] for kind, k in zip(kinds, key, strict=True)
    )
    found, expected = array.vindex[given_key], values[key]
    assert type(found) is type(expected) and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(array["v"].vindex[given_key], expected)
    mask = data.draw(hnp.arrays(np.bool_, shape))
    np.testing.assert_array_equal(array.vindex[mask], values[mask])
    np.testing.assert_array_equal(array.vindex[np.nonzero(mask)], values[mask])


def _axis(size: int) -> st.SearchStrategy[Any]:
    positions = st.integers(-size, size - 1)
    several = st.lists(positions, max_size=2 * size)
    return st.one_of(
        positions,
        several,
        several.map(lambda found: np.array(found, np.intp)),
        st.slices(size),
        hnp.arrays(np.bool_, size),
    )


def _orthogonal(values: np.ndarray, key: tuple[Any, ...]) -> np.ndarray:
    """NumPy has no orthogonal indexing of mixed keys: one axis after the other."""
    for axis in reversed(range(len(key))):
        part = key[axis]
        part = np.array(part, np.intp) if isinstance(part, list) else part
        values = values[(slice(None),) * axis + (part,)]
    return values


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=25))
def test_oindex_reads_what_numpy_reads(stores: Stores, data: st.DataObject, shape: tuple[int, ...]) -> None:
    array, values = _dense(data, shape, stores("oindex"))
    key = tuple(data.draw(_axis(size)) for size in shape)
    key = key[: data.draw(st.integers(1, len(key)))]
    found = array.oindex[key]
    expected = _orthogonal(values, key)
    assert type(found) is type(expected) and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(array["v"].oindex[key], expected)


@given(st.data())
def test_points_of_a_sparse_array(stores: Stores, data: st.DataObject) -> None:
    """The cells that exist, in the order asked, duplicates in order of writing."""
    duplicates = data.draw(st.booleans())
    dims = [gs.Dim("x", (-3, 9), data.draw(st.sampled_from([None, 4]))), gs.Dim("t", (0.0, 4.0), dtype="float32")]
    attrs = [gs.Attr("v", "int64"), gs.Attr("s", "string", nullable=True)]
    schema = gs.Schema(dims, attrs, sparse=True, duplicates=duplicates, capacity=data.draw(st.integers(1, 9)))
    array = gs.create(stores("sparse-points"), schema, overwrite=True)
    cell = st.tuples(st.integers(-3, 9), st.integers(0, 4))
    there: dict[tuple[int, int], list[int]] = {}
    for number in range(data.draw(st.integers(0, 4))):
        cells = data.draw(st.lists(cell, max_size=20, unique=True))
        if data.draw(st.integers(0, 3)) == 0:
            array.delete(coords={"x": [x for x, _ in cells], "t": [float(t) for _, t in cells]})
            for place in cells:
                there.pop(place, None)
            continue
        values = [100 * number + i for i in range(len(cells))]
        coords = {"x": np.array([x for x, _ in cells], int), "t": np.array([t for _, t in cells], "f4")}
        texts = [None if value % 3 == 0 else str(value) for value in values]
        array.write_cells(coords, {"v": np.array(values, int), "s": np.array(texts, object)})
        for place, value in zip(cells, values, strict=True):
            there[place] = [*there.get(place, []), value] if duplicates else [value]
    asked = data.draw(st.lists(cell, max_size=30))
    found = array.points({"x": np.array([x for x, _ in asked], int), "t": np.array([t for _, t in asked], "f4")})
    expected = [(x, t, value) for x, t in asked for value in there.get((x, t), [])]
    assert list(zip(found["x"].tolist(), found["t"].tolist(), found["v"].tolist(), strict=True)) == expected
    assert found["s"].tolist() == [None if value % 3 == 0 else str(value) for _, _, value in expected]
    assert found["t"].dtype == np.float32 and len(found) == len(expected)


@pytest.fixture
def mixed(store_uri: str) -> gs.Array:
    """A dense array of several attributes, half of it written."""
    dims = [gs.Dim("y", (-5, 4), 4), gs.Dim("t", ("2026-03-01", "2026-03-20"), 7, "datetime64[D]")]
    attrs = [gs.Attr("v", "float64", fill=-1.0), gs.Attr("s", "string"), gs.Attr("n", "int16", nullable=True)]
    array = gs.create(store_uri, gs.Schema(dims, attrs))
    texts = np.array([f"é{i}" for i in range(100)], object).reshape(5, 20)
    array.write({"v": np.arange(100.0).reshape(5, 20), "s": texts, "n": np.arange(100).reshape(5, 20)}, {"y": (-5, -1)})
    return array


def test_points_of_a_dense_array(mixed: gs.Array) -> None:
    found = mixed.points({"y": [4, -5, -1], "t": ["2026-03-01", "2026-03-03", "2026-03-20"]})
    assert found["v"].tolist() == [-1.0, 2.0, 99.0]
    assert found["s"].tolist() == ["", "é2", "é99"]
    assert found["n"].tolist() == [None, 2, 99]
    assert found["y"].tolist() == [4, -5, -1] and found["t"].dtype == "M8[D]"
    assert found.shape is None and found.stats == mixed.stats and found.stats["cells_returned"] == 3
    table = found.to_arrow()
    assert table.column_names == ["y", "t", "v", "s", "n"] and table.num_rows == 3
    assert mixed.points(([-5], ["2026-03-02"]), "s")["s"].tolist() == ["é1"]
    assert mixed["v"].points({"y": [-4], "t": ["2026-03-01"]}).tolist() == [20.0]
    dense = found.to_dense()["v"]
    assert dense.shape == (10, 20) and dense[0, 2] == 2.0 and dense[9, 0] == -1.0
    none = mixed.points({"y": np.empty(0, int), "t": np.empty(0, "M8[D]")})
    assert len(none) == 0 and none["s"].tolist() == [] and none.to_arrow().num_rows == 0
    reported: list[tuple[int, int]] = []
    mixed.points({"y": [-5, -4], "t": ["2026-03-01"] * 2}, progress=lambda done, total: reported.append((done, total)))
    assert reported[-1] == (6, 6)


def test_lists_of_several_attributes(mixed: gs.Array) -> None:
    found = mixed.vindex[[[0, -1]], [[2], [3]]]
    assert found["v"].tolist() == [[2.0, -1.0], [3.0, -1.0]]
    assert found["s"].tolist() == [["é2", ""], ["é3", ""]]
    assert found["n"].tolist() == [[2, None], [3, None]]
    assert mixed["s"].vindex[1, 1] == "é21" and mixed["n"].vindex[9, 0] is np.ma.masked
    found = mixed.oindex[[4, 5, 4], 1:3]
    assert found["v"].tolist() == [[81.0, 82.0], [-1.0, -1.0], [81.0, 82.0]]
    assert found["s"].tolist() == [["é81", "é82"], ["", ""], ["é81", "é82"]]
    assert found["n"].tolist() == [[81, 82], [None, None], [81, 82]]
    assert mixed["v"].oindex[0, [1, 3]].tolist() == [1.0, 3.0] and mixed["v"].oindex[0, 5] == 5.0


def test_lists_of_several_attributes_are_assigned(mixed: gs.Array) -> None:
    mixed.vindex[[0, 0, 9], [1, 1, 0]] = {"v": [5.0, 6.0, 7.0], "n": [None, 8, None]}
    assert mixed["v"].vindex[[0, 9], [1, 0]].tolist() == [6.0, 7.0], "the last of a cell named twice stays"
    assert mixed["n"].vindex[[0, 9], [1, 0]].tolist() == [8, None] and mixed["s"][0, 1] == "é1"
    mixed["s"].oindex[[9, 8], ::19] = [["a", "b"], ["c", "d"]]
    assert mixed["s"][8:, ::19].tolist() == [["c", "d"], ["a", "b"]]
    before = len(mixed.fragments)
    mixed["v"].oindex[[3, 4, 5], 2] = 1.5
    assert mixed.fragments["kind"][before].as_py() == "dense", "lists that make a box are written as one"
    assert mixed["v"][2:7, 2].tolist() == [42.0, 1.5, 1.5, 1.5, -1.0]
    version = mixed.version
    mixed["v"].oindex[[], :] = np.empty((0, 20))
    mixed["v"].vindex[np.zeros((10, 20), bool)] = 3.0
    assert mixed.version == version, "nothing to write makes no version"


@pytest.mark.parametrize(
    ("way", "key", "value", "kind", "word"),
    [
        ("oindex", ([0, 2], [0, 5]), np.zeros((2, 3)), gs.errors.InputError, r"\(2, 3\).*\(2, 2\)"),
        ("oindex", ([], 0), np.zeros(3), gs.errors.InputError, r"\(3,\).*\(0,\)"),
        ("vindex", ([0, 1], [0, 1]), np.zeros(3), gs.errors.InputError, r"\(3,\).*\(2,\)"),
        ("vindex", ([0, 1], [0, 1]), ["a", "b"], gs.errors.InputError, "float64"),
        ("vindex", ([0, 99], [0, 1]), 0, IndexError, "99"),
        ("oindex", (0, 0, 0), 0, IndexError, "too many"),
        ("vindex", ([0, 1], [0, 1]), {"w": 1}, gs.errors.InputError, "'w'"),
    ],
)
def test_wrong_assignments_say_why(
    stores: Stores, way: str, key: Any, value: Any, kind: type[Exception], word: str
) -> None:
    array = gs.array(stores("wrong-assignments"), np.zeros((20, 30)), overwrite=True)
    with pytest.raises(kind, match=word):
        getattr(array, way)[key] = value
    assert array.version == gs.open(stores("wrong-assignments")).version and not array[...].any()


def test_vindex_of_a_sparse_array(store_uri: str) -> None:
    dims = [gs.Dim("x", (-(2**63), 2**63 - 1)), gs.Dim("y", (0, 9))]
    array = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", int)], sparse=True))
    array.write_cells({"x": [-(2**63), 0, 2**63 - 1], "y": [1, 2, 3]}, [1, 2, 3])
    found = array.vindex[[-1, 0, 5], [3, 1, 1]]
    assert found["v"].tolist() == [3, 1] and found["x"].tolist() == [2**63 - 1, -(2**63)]
    assert array["v"].vindex[2**63, 2].tolist() == [2]
    assert array.oindex[[2**63, 3], [2, 2]]["v"].tolist() == [2]
    for way in (array.oindex, array.vindex):
        with pytest.raises(gs.errors.UnsupportedError, match="write_cells"):
            way[[1], [2]] = 1


@pytest.mark.parametrize(
    ("way", "key", "kind", "word"),
    [
        ("vindex", ([0, 20], 0), IndexError, "position 20 is out of bounds for dimension 'd0'"),
        ("vindex", ([0, -21], 0), IndexError, "-21"),
        ("vindex", ([0, 1], [0, 1, 2]), IndexError, "broadcast"),
        ("vindex", ([0.5], [0]), IndexError, "integers"),
        ("vindex", ([0],), IndexError, "one list of positions per dimension"),
        ("vindex", (slice(None), [0]), gs.errors.UnsupportedError, "oindex"),
        ("vindex", np.zeros((20, 3), bool), IndexError, r"\(20, 3\)"),
        ("oindex", ([[0]], 0), IndexError, "flat"),
        ("oindex", (np.zeros(3, bool), 0), IndexError, "20 positions"),
        ("oindex", ([30], 0), IndexError, "30"),
        ("oindex", (None, 0), gs.errors.UnsupportedError, "newaxis"),
        ("oindex", ("a", 0), IndexError, "'a'"),
        ("oindex", (0, 0, 0), IndexError, "too many"),
        ("points", {"d0": [0]}, gs.errors.InputError, "d1"),
        ("points", {"d0": [0], "d1": [0, 1]}, gs.errors.InputError, "lengths"),
    ],
)
def test_wrong_lists_say_why(stores: Stores, way: str, key: Any, kind: type[Exception], word: str) -> None:
    array = gs.array(stores("wrong-lists"), np.zeros((20, 30)), overwrite=True)
    with pytest.raises(kind, match=word):
        array.points(key) if way == "points" else getattr(array, way)[key]


def test_positions_on_both_sides_of_two_to_the_63(store_uri: str) -> None:
    """Which NumPy would make floats of."""
    dim = gs.Dim("x", (0, 2**64 - 1), 10, "uint64")
    array = gs.create(store_uri, gs.Schema([dim], [gs.Attr("v", int)]))
    places = [2**63 - 1, 2**63, 2**64 - 1, 5]
    array.vindex[places] = [1, 2, 3, 4]
    assert array.points({"x": np.array(places, "uint64")})["v"].tolist() == [1, 2, 3, 4]
    assert array.oindex[[2**63, -1, 2**63 - 1, 5, -(2**64) + 5]].tolist() == [2, 3, 1, 4, 4]
    assert array.vindex[[[2**63, -1], [5, 5]]].tolist() == [[2, 3], [4, 4]]
    for wrong in ([2**64, 5], [-(2**64) - 1, 2**63], [2**63, 0.5]):
        with pytest.raises(IndexError):
            array.vindex[wrong]


def test_a_list_touches_few_blocks(store_uri: str) -> None:
    values = np.arange(1_000 * 400, dtype=np.int32).reshape(1_000, 400)
    array = gs.array(store_uri, values, tile=(500, 400), filters="none")
    assert array.vindex[[3, 3, 3], [1, 2, 3]].tolist() == values[3, 1:4].tolist()
    assert array.stats["bytes_fetched"] == 4_096 and array.stats["blocks_decoded"] == 1
    array.oindex[[10, 11, 999], 5:]
    assert array.stats["blocks_decoded"] == 2, "no block between those that hold some"


def test_a_million_points(store_uri: str) -> None:
    dice = np.random.default_rng(3)
    values = dice.integers(0, 1_000, (1_500, 1_200), np.int32)
    dense = gs.array(store_uri, values, tile=(256, 256))
    ys, xs = dice.integers(0, 1_500, 1_000_000), dice.integers(0, 1_200, 1_000_000)
    assert np.array_equal(dense.vindex[ys, xs], values[ys, xs])

    schema = gs.Schema([gs.Dim("y", (0, 1_499)), gs.Dim("x", (0, 1_199))], [gs.Attr("v", "int32")], sparse=True)
    sparse = gs.create(store_uri, schema, overwrite=True)
    there = dice.random(values.shape) < 0.3
    sparse.write_cells(dict(zip("yx", np.nonzero(there), strict=True)), {"v": values[there]})
    found = sparse.points({"y": ys, "x": xs})
    hit = there[ys, xs]
    rows = [
        np.sort(part[0].astype(np.int64) * 1_200 + part[1]) for part in ((ys[hit], xs[hit]), (found["y"], found["x"]))
    ]
    assert np.array_equal(*rows) and np.array_equal(found["v"], values[found["y"], found["x"]])
