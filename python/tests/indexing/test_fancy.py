"""Lists of positions and masks in plain brackets mean what they mean to NumPy, which is the judge: reads and
assignments of every combination, of one attribute and of several, nullable, of texts and of vectors.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from places import Stores

import gridstone as gs
from gridstone.errors import AccessError, BoundsError, InputError, UnsupportedError

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, max_side=6)


@st.composite
def parts(draw: st.DrawFn, size: int, shape: tuple[int, ...]) -> Any:
    """What stands for one dimension; lists broadcast to a shape."""
    integers = st.integers(-size, size - 1)
    form = draw(st.sampled_from(["integer", "array without axes", "slice", "all", "list", "list", "array", "mask"]))
    if form == "integer":
        return draw(integers)
    if form == "array without axes":
        return np.array(draw(integers))
    if form == "slice":
        return draw(st.slices(size))
    if form == "all":
        return slice(None)
    if form == "mask":
        count = draw(st.sampled_from([0, 1, *shape[-1:]]))
        mask = np.zeros(size, bool)
        mask[draw(st.permutations(range(size)))[:count]] = True
        return mask.tolist() if draw(st.booleans()) else mask
    if form == "list":
        return draw(st.lists(integers, min_size=shape[-1], max_size=shape[-1]) | integers.map(lambda one: [one]))
    ones = tuple(1 if draw(st.booleans()) else n for n in shape)[draw(st.integers(0, len(shape) - 1)) :]
    kind = draw(st.sampled_from(["int64", "int8", ">i4"]))
    found = draw(hnp.arrays("int64", ones, elements=integers)).astype(kind)
    return found.tolist() if draw(st.booleans()) and found.size else found


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Keys of integers, slices, lists and masks, with an ellipsis perhaps."""
    lists = draw(st.sampled_from([(3,), (2,), (1,), (0,), (2, 3), (3, 1)]))
    found: list[Any] = []
    starts = [0]
    axis = 0
    while axis < len(shape) and (not found or draw(st.integers(0, 9)) > 0):
        if draw(st.integers(0, 5)) == 0:
            across = draw(st.integers(1, len(shape) - axis))
            found.append(draw(hnp.arrays(np.bool_, shape[axis : axis + across])))
            axis += across
        else:
            found.append(draw(parts(shape[axis], lists)))
            axis += 1
        starts.append(axis)
    if draw(st.booleans()):
        # With an ellipsis, which may stand for nothing, only what stands behind it may be other than first dimensions.
        at = draw(st.integers(0, len(found))) if axis == len(shape) else len(found)
        found.insert(at, ...)
    return found[0] if len(found) == 1 and draw(st.booleans()) else tuple(found)


def selected(values: np.ndarray, key: Any) -> np.ndarray | None:
    """What NumPy gives; None where it gives an error."""
    try:
        return values[key]
    except IndexError:
        return None


def assign_last(values: np.ndarray, key: Any, piece: Any) -> None:
    """`values[key] = piece` cell by cell: NumPy promises no order where several lists name a cell twice."""
    places = np.arange(values.size).reshape(values.shape)[key]
    flat = values.reshape(-1)
    for place, value in zip(np.ravel(places), np.broadcast_to(piece, np.shape(places)).ravel(), strict=True):
        flat[place] = value


@given(st.data(), SHAPES)
def test_reads_and_writes_what_numpy_does(stores: Stores, data: st.DataObject, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    tile = tuple(data.draw(st.integers(1, n)) for n in shape)
    array = gs.array(stores("fancy"), values, tile=tile, overwrite=True)
    for number in range(1, 4):
        key = data.draw(keys(shape), label="key")
        expected = selected(values, key)
        target = data.draw(st.sampled_from([array, array["value"]]))
        if expected is None:
            event("NumPy refuses")
            with pytest.raises(IndexError):
                target[key]
            with pytest.raises(IndexError):
                target[key] = 1
            continue
        found = target[key]
        assert type(found) is type(expected) and found.dtype == expected.dtype and found.shape == np.shape(expected)
        np.testing.assert_array_equal(found, expected)
        dropped = data.draw(st.integers(0, np.ndim(expected)))
        some = tuple(1 if data.draw(st.booleans()) else n for n in np.shape(expected))[dropped:]
        piece = number * 1_000 + np.arange(np.prod(some), dtype=np.int32).reshape(some)
        before = array.version
        target[key] = piece
        assign_last(values, key, piece)
        assert array.version == before + (1 if np.size(expected) else 0), "one commit"
        np.testing.assert_array_equal(array[...], values)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=5))
def test_attributes_of_every_kind(memory_uri: str, data: st.DataObject, shape: tuple[int, ...]) -> None:
    attrs = [
        gs.Attr("n", "float64", nullable=True),
        gs.Attr("s", "string", nullable=True),
        gs.Attr("c", "uint8[3]"),
        gs.Attr("t", "datetime64[s]"),
    ]
    dims = [gs.Dim(f"d{i}", (-7, n - 8), data.draw(st.integers(1, n))) for i, n in enumerate(shape)]
    array = gs.create(memory_uri, gs.Schema(dims, attrs), overwrite=True)
    numbers = np.arange(np.prod(shape)).reshape(shape)
    # What is null, and the packed values of vectors, which an index takes for cells.
    model = {name: np.zeros(shape, kind) for name, kind in zip("nsct", ("O", "O", "V3", "M8[s]"), strict=True)}

    def values(numbers: np.ndarray) -> dict[str, Any]:
        colours = np.stack([numbers % 251, numbers // 251, numbers % 3], axis=-1).astype(np.uint8)
        null, texts = numbers % 5 == 0, np.array([f"é{n}" * (n % 3) for n in numbers.ravel()], object)
        made = {
            "n": np.ma.MaskedArray(numbers / 4, null),
            "s": np.ma.MaskedArray(texts.reshape(numbers.shape), numbers % 7 == 0),
        }
        return {**made, "c": colours, "t": numbers.astype("M8[s]")}

    def put(key: Any, given: dict[str, Any]) -> None:
        packed = np.ascontiguousarray(given["c"]).view("V3")[..., 0]
        for name, found in {**given, "c": packed}.items():
            plain = found.astype(object).filled(None) if isinstance(found, np.ma.MaskedArray) else found
            assign_last(model[name], key, plain)

    array[...] = values(numbers)
    put(..., values(numbers))
    key = data.draw(keys(shape).filter(lambda key: selected(numbers, key) is not None), label="key")
    piece = values(1_000 + np.arange(np.size(numbers[key])).reshape(np.shape(numbers[key])))
    if np.ndim(numbers[key]):
        array[key] = piece
        put(key, piece)
        for name in ("n", "s", "c"):
            array[name][key] = piece[name]
    found = array[key]
    for name, expected in model.items():
        for got in (found[name], array[name][key]):
            if np.ndim(expected[key]) == 0:
                continue
            if name in "ns":
                assert isinstance(got, np.ma.MaskedArray)
                got = got.astype(object).filled(None)
            assert got.shape == (*expected[key].shape, *(3,) * (name == "c"))
            got = np.ascontiguousarray(got).view("V3")[..., 0] if name == "c" and got.size else got
            assert not got.size or got.tolist() == expected[key].tolist()


def test_large_assignments_of_one_attribute_leave_the_others(stores: Stores) -> None:
    dims = [gs.Dim("y", (0, 7), 3), gs.Dim("x", (0, 9), 4)]
    attrs = [gs.Attr("a", "int64"), gs.Attr("s", "string", nullable=True), gs.Attr("l", "list[int16]")]
    array = gs.create(stores("some"), gs.Schema(dims, attrs), overwrite=True)
    array["a"][...] = np.arange(80).reshape(8, 10)
    mask = np.arange(80).reshape(8, 10) % 3 == 0
    texts = np.array([None if i % 4 == 0 else "x" * i for i in range(27)], object)
    lists = np.empty(27, object)
    lists[:] = [np.arange(i, dtype="int16") for i in range(27)]
    array["s"][mask] = texts
    array["l"][mask] = lists
    assert array["s"][mask].tolist() == texts.tolist()
    assert [found.tolist() for found in array["l"][mask]] == [given.tolist() for given in lists]
    assert array["s"][~mask].mask.all() and all(len(found) == 0 for found in array["l"][~mask])
    array["a"][[3, 1, 3]] = np.arange(30).reshape(3, 10)
    expected = np.arange(80).reshape(8, 10)
    expected[1], expected[3] = np.arange(10, 20), np.arange(20, 30)
    np.testing.assert_array_equal(array["a"][...], expected)
    assert array.version == 5, "four commits"


def test_lists_beside_slices_and_integers(stores: Stores) -> None:
    """Some that are easily got wrong."""
    values = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    array = gs.array(stores("mixed"), values, tile=(1, 2, 3, 4), overwrite=True)
    rows = np.array([[0], [1]])
    mask = values[0] % 3 == 0
    for key in (
        np.s_[[0, 1]],
        np.s_[:, [2, 0, 2]],
        np.s_[:, [0, 1], :, [1, 3]],
        np.s_[:, :, [0, 1], [1, 3]],
        np.s_[0, :, [1, 3]],
        np.s_[:, 0, [1, 3]],
        np.s_[..., 0, [1, 3]],
        np.s_[rows, ..., [1, 2, 4]],
        np.s_[rows, [0, 2], ...],
        np.s_[[0, 1], ..., :2, [3, 1], 0],
        np.s_[[1], [2], ..., [3], [4]],
        np.s_[:, mask],
        np.s_[1, mask],
        np.s_[[0], mask],
        np.s_[values % 2 == 0],
        np.s_[values[..., 0] % 2 == 0],
        np.s_[values[..., 0] % 2 == 0, ::2],
        np.s_[values[:, 0, 0, 0] == 0],
        np.s_[np.zeros((2, 3), bool)],
        np.s_[[], ..., 0],
        np.ix_([0, 1], [2, 0], [3], [4, 4]),
    ):
        found, expected = array[key], values[key]
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
        changed = values.copy()
        array[key] = changed[key] = -1
        np.testing.assert_array_equal(array[...], changed)
        array[...] = values


@pytest.mark.parametrize(
    ("key", "kind", "words"),
    [
        ([0, 20], BoundsError, r"position 20 .* 'd0' \(axis 0\) with 20 positions"),
        (([0], [-31]), BoundsError, r"position -31 .* 'd1' \(axis 1\)"),
        (([0], 30), BoundsError, r"position 30 .* 'd1' \(axis 1\)"),
        (([0], [0], [0]), BoundsError, "2 dimensions, 3 were given"),
        ((..., [0], ...), BoundsError, "ellipsis"),
        (np.zeros(30, bool), BoundsError, r"shape \(30,\) .*'d0'.* \(20,\)"),
        (np.zeros((30, 20), bool), BoundsError, r"\(30, 20\) .*'d0', 'd1'.* \(20, 30\)"),
        (np.zeros((20, 30, 1), bool), BoundsError, "3 were given"),
        (np.s_[:, np.zeros(20, bool)], BoundsError, r"'d1' \(from axis 1 on\)"),
        (([1, 2], [1, 2, 3]), BoundsError, r"\(2,\) \(3,\)"),
        ([1.5], BoundsError, "integers"),
        (np.array([1.0]), BoundsError, "integers"),
        (["a"], BoundsError, "integers"),
        ([[1], [1, 2]], BoundsError, "no list of positions"),
        ([0, slice(3)], BoundsError, "integers"),
        ([None], BoundsError, "integers"),
        (None, UnsupportedError, "newaxis"),
        (([0], None), UnsupportedError, "newaxis"),
        (True, UnsupportedError, "new axis"),
        (([0], np.True_), UnsupportedError, "new axis"),
        (([0], "a"), BoundsError, "'a'"),
    ],
)
def test_wrong_lists_say_why(stores: Stores, key: Any, kind: type[Exception], words: str) -> None:
    array = gs.array(stores("wrong"), np.zeros((20, 30)), overwrite=True)
    for wrong in (lambda: array[key], lambda: array["value"][key], lambda: array.__setitem__(key, 1)):
        with pytest.raises(kind, match=words):
            wrong()
    assert array.version == 2


def test_values_that_do_not_fit_write_nothing(stores: Stores) -> None:
    array = gs.array(stores("unfit"), np.zeros((6, 7), "int16"), overwrite=True)
    for key, value in (
        ([1, 4], np.zeros((3, 7))),
        (np.ones((6, 7), bool), np.zeros(41)),
        ([1, 4], 0.5),
        (([1, 4], [2, 3]), "text"),
        (np.zeros((6, 7), bool), [1, 2]),
    ):
        with pytest.raises(InputError, match="'value'"):
            array[key] = value
    assert array.version == 2


def test_a_mask_reads_the_blocks_that_it_needs(stores: Stores) -> None:
    values = np.arange(2_000 * 2_000, dtype=np.int32).reshape(2_000, 2_000)
    context = gs.Context(cache=0)
    array = gs.array(stores("few"), values, tile=(100, 100), filters="none", overwrite=True, context=context)
    mask = np.zeros(values.shape, bool)
    mask[::500, ::700] = True
    np.testing.assert_array_equal(array[mask], values[mask])
    assert array.stats["bytes_decoded"] <= 12 * 40_000, "12 tiles of 400"
    # One whose true cells are in the corner of a large box reads the corner.
    mask[...] = False
    mask[1_900:, 1_900:] = values[1_900:, 1_900:] % 3 > 0
    np.testing.assert_array_equal(array[mask], values[mask])
    assert array.stats["bytes_decoded"] <= 40_000


def test_a_mask_of_an_array_that_is_larger_than_memory(stores: Stores) -> None:
    """The array's values would take 40 GB; what is read and what is held is a little more than what is chosen."""
    dims = [gs.Dim("y", (0, 99_999), 1_000), gs.Dim("x", (0, 999), 1_000), gs.Dim("z", (0, 99))]
    schema = gs.Schema(dims, [gs.Attr("v", "float32", fill=2)])
    array = gs.create(stores("large"), schema, context=gs.Context("64MiB"), overwrite=True)
    mask = np.zeros((100_000, 1_000), bool)
    mask[3, 5] = mask[99_999, 999] = mask[50_000, 500] = True
    array[mask] = np.arange(300).reshape(3, 100)
    np.testing.assert_array_equal(array[mask], np.arange(300).reshape(3, 100))
    assert array[mask, 7].tolist() == [7, 107, 207]
    mask[:, 3] = True
    assert array[mask, ::50].shape == (100_003, 2) and array[3, 3, 0] == 2


def test_positions_of_the_largest_domains(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 2**64 - 1), 100, "uint64"), gs.Dim("y", (0, 3))], [gs.Attr("v", "int8")])
    array = gs.create(stores("huge"), schema, overwrite=True)
    array[[2**64 - 1, 0], [1, 2]] = [7, 8]
    assert array[[2**64 - 1, 0, -1], [1, 2, 2]].tolist() == [7, 8, 0]
    assert array[[-1, 0]].tolist() == [[0, 7, 0, 0], [0, 0, 8, 0]]
    with pytest.raises(BoundsError, match="out of bounds"):
        array[[2**64], 0]


def test_lists_in_transactions_and_of_other_libraries(stores: Stores) -> None:
    values = np.arange(50 * 60).reshape(50, 60)
    array = gs.array(stores("staged"), values, tile=(10, 10), overwrite=True)
    mask, rows = values % 3 == 0, np.arange(2_000) % 50
    with gs.transaction(array.uri) as tx:
        staged = tx["/"]
        staged[mask] = values[mask] = -1
        staged[[3, 4], [1, 2]] = values[[3, 4], [1, 2]] = [7, 8]
        np.testing.assert_array_equal(staged[rows, rows[::-1]], values[rows, rows[::-1]])
        np.testing.assert_array_equal(staged[mask], values[mask])
    array.refresh()
    for key in (
        range(3),
        pa.array([1, 2]),
        array[:, 0] < 0,
        [(1, 2), (3, 4)],
        (np.int8(3), (4, 5)),
        memoryview(b"\1\2"),
    ):
        np.testing.assert_array_equal(array[key], values[key if isinstance(key, tuple) else np.asarray(key)])
    array[[1, 5]] = array[[5, 1]]
    np.testing.assert_array_equal(array[[5, 1]], values[[1, 5]])
    for closed in (gs.open(array.uri), gs.open(array.uri, version=1)):
        with pytest.raises(AccessError):
            closed[[1, 5]] = 0


def test_lists_of_sparse_arrays(stores: Stores) -> None:
    schema = gs.Schema([gs.Dim("x", (10, 19)), gs.Dim("y", (0, 9))], [gs.Attr("v", int)], sparse=True)
    array = gs.create(stores("sparse"), schema, overwrite=True)
    array.write_cells({"x": [10, 12, 12, 19], "y": [1, 2, 5, 3]}, [1, 2, 3, 4])
    assert array[[9, 0, 9]]["v"].tolist() == [1, 4], "a set of cells, in row order"
    assert array[[0, -8], 1:3]["v"].tolist() == [1, 2] and array["v"][:, [5, 3]].tolist() == [3, 4]
    assert array[2, [2, 5]]["y"].tolist() == [2, 5]
    assert array[np.arange(10) == 2]["v"].tolist() == [2, 3] and array[:, np.arange(10) > 2]["v"].tolist() == [3, 4]
    mask = np.zeros((10, 10), bool)
    mask[2, 5] = mask[9, 3] = mask[5, 5] = True
    assert array[mask]["v"].tolist() == [3, 4] and array["v"][mask].tolist() == [3, 4]
    for key in (([0, 2], [1, 2]), ([0], [1]), (mask[:, 0], mask[0])):
        with pytest.raises(UnsupportedError, match=r"vindex.*oindex"):
            array[key]
    with pytest.raises(BoundsError, match="flat"):
        array[[[0, 2]]]
    with pytest.raises(BoundsError, match=r"\(3, 3\)"):
        array[np.ones((3, 3), bool)]
    with pytest.raises(BoundsError, match="12"):
        array[[12]]
    with pytest.raises(UnsupportedError, match="dense"):
        array[[0]] = 1
