"""What zarr's own property tests draw, done here, with NumPy as the judge: arrays of every type and chunk shape, basic
and orthogonal indices from zarr's strategies, points and masks as its tests draw them. Reads and assignments alike.
"""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from places import Stores

import gridstone as gs

strategies = pytest.importorskip(
    "zarr.testing.strategies", reason="zarr is not installed: pip install -c constraints.txt 'gridstone[test]'"
)

# zarr's strategies draw slices that run backwards and throw them away.
patient = settings(suppress_health_check=list(HealthCheck))

SHAPES = hnp.array_shapes(max_dims=4, min_side=1, max_side=6)


def is_text(text: str) -> bool:
    """Whether other programs could read it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def assert_same(found: Any, expected: Any) -> None:
    """The same type, shape and values, to the bit where NumPy has a type for them (NaN's payload, -0.0)."""
    assert np.shape(found) == np.shape(expected)
    if np.asarray(expected).dtype.kind == "U":
        assert np.asarray(found, object).tolist() == np.asarray(expected).tolist()
        return
    assert type(found) is type(expected) and found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def drawn(draw: Any, uri: str, shapes: Any = SHAPES) -> tuple[gs.Array, np.ndarray]:
    """An array of any type and tiles, some parts of it written again, and what it holds."""
    values, chunks = draw(strategies.np_array_and_chunks(arrays=strategies.numpy_arrays(shapes=shapes)))
    array = gs.array(uri, values, tile=chunks)
    for _ in range(draw(st.integers(0, 2))):
        key = draw(strategies.basic_indices(shape=values.shape))
        piece = replacement(draw, values, values[key].shape)
        array[key] = piece
        values[key] = piece
    return array, values


def replacement(draw: Any, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Values of the same type that broadcast to a shape."""
    ones = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    some = tuple(1 if one else size for one, size in zip(ones, shape, strict=True))
    some = some[draw(st.integers(0, len(some))) :] if draw(st.booleans()) else some
    return draw(strategies.numpy_arrays(shapes=st.just(some), dtype=values.dtype))


@pytest.mark.filterwarnings("ignore:.*Zarr V3 specification")
@patient
@given(st.data())
def test_zarr_arrays_become_stores(stores: Stores, data: st.DataObject) -> None:
    """Whatever array zarr makes is one here too, with its chunks as tiles and its attributes as metadata."""
    theirs = data.draw(strategies.simple_arrays())
    values, attrs = theirs[...], data.draw(strategies.attrs)
    uri = stores()
    is_filled = values.ndim > 0 and values.size > 0
    array = gs.array(uri, values, tile=theirs.chunks if is_filled else "auto")
    assert array.shape == theirs.shape and (array.chunks == theirs.chunks or not is_filled)
    assert_same(array[...], values)
    if is_text(json.dumps(attrs, ensure_ascii=False)):
        array.meta.update(attrs or {})
        assert dict(gs.open(uri).meta) == (attrs or {})
    else:
        with pytest.raises(gs.errors.InputError, match="surrogate"):
            array.meta.update(attrs)
        assert not any(key in array.meta for key in attrs) and len(array.meta) == 0
    assert_same(gs.open(uri)[...], values)
    gs.delete(uri)


@patient
@given(st.data())
def test_basic_indices(stores: Stores, data: st.DataObject) -> None:
    array, values = drawn(data.draw, stores())
    for _ in range(3):
        key = data.draw(strategies.basic_indices(shape=values.shape))
        found, expected = array[key], values[key]
        assert_same(found, expected)
        assert_same(array["value"][key], expected)
        piece = replacement(data.draw, values, np.shape(expected))
        array[key] = piece
        values[key] = piece
        assert_same(array[...], values)
    gs.delete(array.uri)


@patient
@given(st.data())
def test_orthogonal_indices(stores: Stores, data: st.DataObject) -> None:
    array, values = drawn(data.draw, stores())
    for _ in range(2):
        key, expected_key = data.draw(strategies.orthogonal_indices(shape=values.shape))
        expected = values[expected_key]
        assert_same(array.oindex[key], expected)
        assert_same(array["value"].oindex[key], expected)
        piece = replacement(data.draw, values, expected.shape)
        array.oindex[key] = piece
        assign_last(values, expected_key, piece)
        assert_same(array[...], values)
    gs.delete(array.uri)


@patient
@given(st.data())
def test_points(stores: Stores, data: st.DataObject) -> None:
    array, values = drawn(data.draw, stores())
    for _ in range(2):
        shapes = hnp.array_shapes(min_side=1, max_dims=None)
        key = data.draw(hnp.integer_array_indices(shape=values.shape, result_shape=shapes))
        expected = values[key]
        for found in (array.vindex[key], array["value"].vindex[key], array[key], array["value"][key]):
            assert_same(found, expected)
        piece = replacement(data.draw, values, expected.shape)
        target = array if data.draw(st.booleans()) else array["value"]
        if data.draw(st.booleans()):
            target[key] = piece
        else:
            target.vindex[key] = piece
        assign_last(values, key, piece)
        assert_same(array[...], values)
    gs.delete(array.uri)


@patient
@given(st.data())
def test_lists_in_plain_brackets(stores: Stores, data: st.DataObject) -> None:
    """One list or mask beside slices and integers, which zarr takes as well."""
    array, values = drawn(data.draw, stores())
    for _ in range(2):
        key = list(
            data.draw(strategies.basic_indices(shape=values.shape, allow_ellipsis=False).map(np.index_exp.__getitem__))
        )
        axis = data.draw(st.integers(0, values.ndim - 1))
        key += [slice(None)] * (axis + 1 - len(key))
        size = values.shape[axis]
        key[axis] = data.draw(st.lists(st.integers(-size, size - 1), max_size=8) | hnp.arrays(np.bool_, size))
        expected = values[tuple(key)]
        assert_same(array[tuple(key)], expected)
        piece = replacement(data.draw, values, expected.shape)
        array[tuple(key)] = piece
        places = np.arange(values.size).reshape(values.shape)[tuple(key)]
        assign_last(values.reshape(-1), (places,), piece)
        assert_same(array[...], values)
    gs.delete(array.uri)


@patient
@given(st.data())
def test_masks(stores: Stores, data: st.DataObject) -> None:
    array, values = drawn(data.draw, stores())
    mask = data.draw(hnp.arrays(np.bool_, values.shape))
    for found in (array.vindex[mask], array[mask], array["value"][mask]):
        assert_same(found, values[mask])
    piece = replacement(data.draw, values, values[mask].shape)
    if data.draw(st.booleans()):
        array[mask] = piece
    else:
        array.vindex[mask] = piece
    values[mask] = piece
    assert_same(array[...], values)
    axis = data.draw(st.integers(0, values.ndim - 1))
    along = data.draw(hnp.arrays(np.bool_, values.shape[axis]))
    key = (slice(None),) * axis + (along,)
    assert_same(array.oindex[key], values[key])
    assert_same(array[key], values[key])
    array.oindex[key] = piece = replacement(data.draw, values, values[key].shape)
    values[key] = piece
    assert_same(array[...], values)
    gs.delete(array.uri)


@patient
@given(st.data())
def test_new_axes_are_refused_and_nothing_is_written(stores: Stores, data: st.DataObject) -> None:
    array, values = drawn(data.draw, stores())
    drawn_key = data.draw(strategies.basic_indices(shape=values.shape))
    parts = drawn_key if isinstance(drawn_key, tuple) else (drawn_key,)
    at = data.draw(st.integers(0, len(parts)))
    key = (*parts[:at], None, *parts[at:])
    for wrong in (lambda: array[key], lambda: array.oindex[key], lambda: array.__setitem__(key, values[key])):
        with pytest.raises(gs.errors.UnsupportedError, match="newaxis"):
            wrong()
    assert_same(array[...], values)
    gs.delete(array.uri)


def assign_last(values: np.ndarray, key: tuple[np.ndarray, ...], piece: np.ndarray) -> None:
    """`values[key] = piece` cell by cell: NumPy promises no order where a cell is named twice."""
    places = np.broadcast_arrays(*key)
    spread = np.broadcast_to(piece.reshape(piece.shape[max(piece.ndim - places[0].ndim, 0) :]), places[0].shape)
    for place in np.ndindex(places[0].shape):
        values[tuple(int(along[place]) for along in places)] = spread[place]
