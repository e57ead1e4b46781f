"""Positions and coordinates of dense arrays follow NumPy."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from places import Stores

import gridstone as gs


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=12))
def test_reads_what_numpy_reads(stores: Stores, data: st.DataObject, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    tile = tuple(data.draw(st.integers(1, n)) for n in shape)
    array = gs.array(stores("indexing"), values, tile=tile, overwrite=True)
    key = data.draw(hnp.basic_indices(shape, allow_ellipsis=True))
    found, expected = array[key], values[key]
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(array["value"][key], expected)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=9))
def test_writes_what_numpy_writes(stores: Stores, data: st.DataObject, shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, np.int64)
    array = gs.array(
        stores("assigning"), values, tile=tuple(data.draw(st.integers(1, n)) for n in shape), overwrite=True
    )
    for number in range(1, 4):
        key = data.draw(hnp.basic_indices(shape, allow_ellipsis=True))
        selected = values[key].shape
        dropped = data.draw(st.integers(0, len(selected)))
        ones = [data.draw(st.booleans()) for _ in selected]
        some = tuple(1 if one else n for one, n in zip(ones, selected, strict=True))[dropped:]
        piece = number * 1_000 + np.arange(np.prod(some)).reshape(some)
        values[key] = piece
        array[key] = piece
    np.testing.assert_array_equal(array[...], values)


@pytest.fixture
def wide(stores: Stores) -> tuple[gs.Array, np.ndarray]:
    """2,048 x 2,048 cells in tiles of 1,024 x 1,024: blocks of 16 rows."""
    values = np.random.default_rng(7).integers(0, 100, (2_048, 2_048), np.int16)
    context = gs.Context(cache=0)
    return gs.array(
        stores("wide"), values, tile=(1_024, 1_024), filters="zstd:1", overwrite=True, context=context
    ), values


def reads_of(array: gs.Array, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The counters of every read from now on."""
    counted: list[dict[str, int]] = []

    def counting(self: gs.Array, *args: object, read: Any, **options: object) -> object:
        found = read(self, *args, **options)
        counted.append(dict(self._stats))
        return found

    for name in ("read", "_read_box", "_read_positions"):
        monkeypatch.setattr(type(array), name, functools.partialmethod(counting, read=getattr(type(array), name)))
    return counted


# What share of the blocks, at most.
@pytest.mark.parametrize(
    ("key", "share"),
    [
        (np.s_[:, ::8], 1),
        (np.s_[::8, :], 1),
        (np.s_[:, ::-300], 1),
        (np.s_[::500, :], 0.05),
        (np.s_[::-500, ::900], 0.05),
        (np.s_[5:2_000:32, 3], 0.5),
        (np.s_[:, ::1_500], 1),
        (np.s_[::700, 1::3], 0.03),
    ],
)
def test_wide_strides_decode_each_block_once(
    wide: tuple[gs.Array, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    key: tuple[object, ...],
    share: float,
) -> None:
    array, values = wide
    counted = reads_of(array, monkeypatch)
    found = array[key]
    np.testing.assert_array_equal(found, values[key])
    decoded = sum(stats["bytes_decoded"] for stats in counted)
    assert len(counted) == 1 and decoded <= share * values.nbytes, (len(counted), decoded)
    assert found.base is None or found.base.nbytes <= 4 * found.nbytes, "what nobody asked for is let go of"


@pytest.mark.parametrize("order", ["row", "col"])
def test_strides_of_any_kind(stores: Stores, order: str) -> None:
    values = np.ma.MaskedArray(np.arange(40 * 30 * 5).reshape(40, 30, 5), np.arange(6_000).reshape(40, 30, 5) % 7 == 0)
    dims = [gs.Dim("y", (-3, 36), 9), gs.Dim("x", (100, 129), 7), gs.Dim("z", (0, 4))]
    schema = gs.Schema(dims, [gs.Attr("v", "int64", nullable=True), gs.Attr("s", "string")], cell_order=order)
    array = gs.create(stores("strides"), schema, overwrite=True)
    texts = values.data.astype(str).astype(object)
    array[...] = {"v": values, "s": texts}
    keys = [
        np.s_[::7],
        np.s_[::-11, ::2, ::3],
        np.s_[::-2],
        np.s_[:, :, 2:3],
        np.s_[3, ::-9],
        np.s_[38:2:-5, -1],
        np.s_[..., ::4],
        np.s_[1:30:2, 4::3],
    ]
    for key in keys:
        found = array[key]
        assert isinstance(found["v"], np.ma.MaskedArray)
        np.testing.assert_array_equal(np.ma.getmaskarray(found["v"]), np.ma.getmaskarray(values[key]))
        np.testing.assert_array_equal(found["v"].filled(-1), values[key].filled(-1))
        np.testing.assert_array_equal(found["s"], texts[key])


@pytest.mark.parametrize(
    "ask",
    [
        lambda a: a[::900, ::300],
        lambda a: a.oindex[np.arange(0, 2_048, 100), :],
        lambda a: a.oindex[[1, 500, 1_900], np.arange(1_000)],
        lambda a: a[[1, 500, 1_900, 1_000], :1_000],
        lambda a: a[np.isin(np.arange(2_048), [1, 500, 1_900])[:, None] & np.ones(2_048, bool)],
    ],
)
def test_a_selection_is_read_in_one_call(
    stores: Stores, ask: Callable[[Any], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(3).integers(0, 100, (2_048, 2_048), np.int8)
    array = gs.array(stores("once"), values, tile=(64, 2_048), overwrite=True)
    counted = reads_of(array, monkeypatch)
    found = ask(array)
    assert len(counted) == 1, "what is read is of one version, whatever is committed meanwhile"
    np.testing.assert_array_equal(found, ask(Orthogonal(values)))


class Orthogonal:
    """A NumPy array with `oindex`."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.oindex = values, self

    def __getitem__(self, key: Any) -> np.ndarray:
        lists = isinstance(key, tuple) and all(isinstance(part, list | np.ndarray) for part in key)
        return self.values[np.ix_(*key)] if lists else self.values[key]


@pytest.mark.parametrize(
    ("key", "kind", "word"),
    [
        (20, gs.errors.BoundsError, "20 positions"),
        (-21, gs.errors.BoundsError, "-21"),
        ((1, 2, 3), gs.errors.BoundsError, "2 dimensions"),
        ((..., 1, ...), gs.errors.BoundsError, "ellipsis"),
        (1.5, gs.errors.BoundsError, "1.5"),
        (True, gs.errors.UnsupportedError, "new axis"),
        (None, gs.errors.UnsupportedError, "newaxis"),
        ((None, 1, 2), gs.errors.UnsupportedError, "newaxis"),
        (np.s_[::0], ValueError, "zero"),
    ],
)
def test_wrong_keys_say_why(stores: Stores, key: object, kind: type[Exception], word: str) -> None:
    array = gs.array(stores("keys"), np.zeros((20, 30)), overwrite=True)
    with pytest.raises(kind, match=word):
        array[key]


def test_unknown_attribute_lists_those_there_are(stores: Stores) -> None:
    array = gs.array(stores("keys"), np.zeros((20, 30)), overwrite=True)
    with pytest.raises(gs.errors.SchemaError, match="'value'"):
        array["v"]


@pytest.fixture
def shifted(store_uri: str) -> gs.Array:
    """A dense array whose coordinates are not its positions."""
    dims = [gs.Dim("y", (-5, 4), 4), gs.Dim("t", ("2026-03-01", "2026-03-20"), 7, "datetime64[D]")]
    array = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", "float64")]))
    array.write(np.arange(200.0).reshape(10, 20))
    return array


def test_loc_is_half_open(shifted: gs.Array) -> None:
    values = np.arange(200.0).reshape(10, 20)
    np.testing.assert_array_equal(shifted.loc[-5:-2], values[:3])
    np.testing.assert_array_equal(shifted.loc[0], values[5])
    np.testing.assert_array_equal(shifted.loc[:, "2026-03-03":"2026-03-05"], values[:, 2:5])
    np.testing.assert_array_equal(shifted["v"].loc[-1:4:2, np.datetime64("2026-03-02")], values[4:9:2, 1])
    np.testing.assert_array_equal(shifted.loc[1:1], values[6:6])
    shifted.loc[0:2, "2026-03-01"] = -1
    values[5:7, 0] = -1
    np.testing.assert_array_equal(shifted[...], values)


def test_boxes(shifted: gs.Array) -> None:
    values = np.arange(200.0).reshape(10, 20)
    for box in [{"y": (-2, 1)}, {"y": slice(-2, 2)}, (slice(-2, 2),), np.s_[-2:2, :], {"y": (-2, 1), "t": slice(None)}]:
        found = shifted.read(box)
        assert found.shape == (4, 20)
        np.testing.assert_array_equal(found["v"], values[3:7])
    np.testing.assert_array_equal(found["y"], [-2, -1, 0, 1])
    assert found["t"].dtype == "M8[D]"


@pytest.mark.parametrize(
    ("box", "kind", "word"),
    [
        ({"z": (0, 1)}, gs.errors.InputError, "'y', 't'"),
        ({"y": 5}, gs.errors.BoundsError, r"\(-5, 4\)"),
        ({"y": (1, 0)}, gs.errors.InputError, "lower end"),
        ({"y": (0, 1, 2)}, gs.errors.InputError, "pair"),
        ({"y": "a"}, gs.errors.InputError, "no coordinate"),
        ({"y": slice(0, 4, 2)}, gs.errors.InputError, "step"),
        ({"t": "2026-02-01"}, gs.errors.BoundsError, "2026-02-01"),
        ({"t": "2026-02"}, gs.errors.BoundsError, "2026-02-01"),
        ({"t": ("2026-03-02", "2026-03-01")}, gs.errors.InputError, "lower end"),
    ],
)
def test_wrong_boxes_say_why(shifted: gs.Array, box: object, kind: type[Exception], word: str) -> None:
    with pytest.raises(kind, match=word):
        shifted.read(box)


def test_positions_of_sparse_arrays(store_uri: str) -> None:
    array = gs.create(
        store_uri, gs.Schema([gs.Dim("x", (10, 19)), gs.Dim("y", (0, 9))], [gs.Attr("v", int)], sparse=True)
    )
    array.write_cells({"x": [10, 12, 19], "y": [1, 2, 3]}, [1, 2, 3])
    assert array[0:3]["v"].tolist() == [1, 2]
    assert array["v"][-1].tolist() == [3]
    assert array["v"].loc[12:20].tolist() == [2, 3]
    assert array[::2]["v"].tolist() == [1, 2] and array["v"][::-9].tolist() == [1, 3]
    with pytest.raises(gs.errors.UnsupportedError, match="dense"):
        array[0] = 1


def test_the_whole_int64_range(store_uri: str) -> None:
    dim = gs.Dim("x", (-(2**63), 2**63 - 1), 10)
    array = gs.create(store_uri, gs.Schema([dim], [gs.Attr("v", int)], sparse=True))
    array.write_cells({"x": np.array([-(2**63), 0, 2**63 - 1])}, [1, 2, 3])
    assert array.shape == (2**64,)
    assert array[-1]["v"].tolist() == [3]
    assert array.loc[0:]["v"].tolist() == [2, 3]
    assert array.read({"x": (-(2**63), 0)})["x"].tolist() == [-(2**63), 0]
