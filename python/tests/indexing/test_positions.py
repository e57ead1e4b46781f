"""Cells of sparse arrays at steps and lists of positions, against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs
from gridstone.errors import BoundsError, UnsupportedError

SHAPE = (60, 45)


def made(uri: str, shape: tuple[int, int], low: tuple[int, int], seed: int) -> tuple[gs.Array, np.ndarray[Any, Any]]:
    """A sparse array, and the same as a box of which -1 says that there is no cell."""
    dims = [gs.Dim(n, (lo, lo + size - 1)) for n, lo, size in zip("xy", low, shape, strict=True)]
    attrs = [gs.Attr("v", "int64"), gs.Attr("s", "string", nullable=True), gs.Attr("c", "uint8[3]")]
    array = gs.create(uri, gs.Schema(dims, attrs, sparse=True, capacity=50), overwrite=True)
    rng = np.random.default_rng(seed)
    box = np.where(rng.random(shape) < 0.4, np.arange(shape[0] * shape[1]).reshape(shape), -1)
    x, y = np.nonzero(box >= 0)
    v = box[x, y]
    texts = np.array([None if n % 7 == 0 else "ä" * int(n % 4) + str(n) for n in v], object)
    colours = np.stack([v % 256, v // 256 % 256, v % 3], axis=1).astype(np.uint8)
    array.write_cells({"x": x + low[0], "y": y + low[1]}, {"v": v, "s": texts, "c": colours})
    return array, box


def check(found: gs.Result, box: np.ndarray[Any, Any], low: tuple[int, int], where: np.ndarray[Any, Any]) -> None:
    """That it has the cells of the positions that are true in `where`, in row order."""
    x, y = np.nonzero(where & (box >= 0))
    v = box[x, y]
    assert found["v"].tolist() == v.tolist()
    assert (found["x"] - low[0]).tolist() == x.tolist() and (found["y"] - low[1]).tolist() == y.tolist()
    expected = [None if n % 7 == 0 else "ä" * int(n % 4) + str(n) for n in v]
    assert found.to_arrow()["s"].to_pylist() == expected and len(found) == len(v)
    assert found["c"].tolist() == [[n % 256, n // 256 % 256, n % 3] for n in v.tolist()]


def slices(size: int) -> st.SearchStrategy[slice]:
    ends = st.one_of(st.none(), st.integers(-size - 3, size + 3))
    return st.builds(slice, ends, ends, st.one_of(st.none(), st.integers(-7, 7).filter(bool)))


@given(data=st.data())
def test_steps_are_those_of_numpy(store_uri: str, data: st.DataObject) -> None:
    low = data.draw(st.sampled_from([(0, 0), (-30, 2**40), (10, -(2**63))]))
    array, box = made(store_uri, SHAPE, low, 1)
    parts = [data.draw(st.one_of(slices(size), st.integers(-size, size - 1))) for size in SHAPE]
    key: Any = tuple(parts) if data.draw(st.booleans()) else parts[0]
    where = np.zeros(SHAPE, bool)
    where[key] = True
    check(array[key], box, low, where)
    assert array["v"][key].tolist() == box[where & (box >= 0)].tolist()


@given(data=st.data())
def test_lists_are_those_of_numpy(store_uri: str, data: st.DataObject) -> None:
    array, box = made(store_uri, SHAPE, (-5, 7), 2)
    chosen, key = [], []
    for size in SHAPE:
        integers = st.integers(-size, size - 1)
        flags = st.lists(st.booleans(), min_size=size, max_size=size).map(np.array)
        part = data.draw(st.one_of(slices(size), integers, st.lists(integers, max_size=9), flags))
        key.append(part)
        at = np.zeros(size, bool)
        at[part] = True
        chosen.append(at)
    where = chosen[0][:, None] & chosen[1][None, :]
    check(array.oindex[tuple(key)], box, (-5, 7), where)
    assert array["v"].oindex[tuple(key)].tolist() == box[where & (box >= 0)].tolist()
    if sum(isinstance(part, list | np.ndarray) for part in key) < 2:
        check(array[tuple(key)], box, (-5, 7), where)
    else:
        with pytest.raises(UnsupportedError, match="point by point"):
            array[tuple(key)]
    mask = np.zeros(SHAPE, bool)
    mask[where] = True
    check(array[mask], box, (-5, 7), where)
    assert array["v"][mask].tolist() == box[where & (box >= 0)].tolist()


def test_many_positions_are_read_as_one_box_and_left_out(store_uri: str) -> None:
    shape, low = (5_000, 40), (100, 0)
    array, box = made(store_uri, shape, low, 3)
    where = np.zeros(shape, bool)
    where[4_990:3:-2, ::3] = True
    check(array[4_990:3:-2, ::3], box, low, where)
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(0, 5_000, 2_500), rng.random(40) < 0.5
    where = np.isin(np.arange(5_000), rows)[:, None] & columns[None, :]
    check(array.oindex[rows, columns], box, low, where)


def test_domains_of_all_integers_and_times(store_uri: str) -> None:
    dims = [gs.Dim("x", (-(2**63), 2**63 - 1)), gs.Dim("t", ("2026-01-01", "2026-12-31"), dtype="datetime64[D]")]
    array = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", int)], sparse=True))
    t = np.datetime64("2026-01-01", "D") + np.arange(6)
    array.write_cells({"x": [-(2**63), -(2**63) + 1, -1, 0, 5, 2**63 - 1], "t": t}, np.arange(6))
    assert array[::2]["v"].tolist() == [0, 3], "even positions: 0 and 2**63"
    assert array[1::2]["v"].tolist() == [1, 2, 4, 5]
    assert array[:, ::-5]["v"].tolist() == [4]
    assert array[:, 1::2]["v"].tolist() == [1, 3, 5]
    assert array.oindex[[2**63 + 5, 0], :]["v"].tolist() == [0, 4]


def test_what_has_no_positions(store_uri: str) -> None:
    dims = [gs.Dim("name", dtype="string"), gs.Dim("i", (0, 9))]
    array = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", int)], sparse=True))
    array.write_cells({"name": ["a", "b", "c", "d"], "i": [0, 1, 2, 3]}, [1, 2, 3, 4])
    assert array[:, ::2]["v"].tolist() == [1, 3]
    assert array.oindex[:, [3, 1, 3]]["v"].tolist() == [2, 4]
    for key in ([0], 0, slice(1, 2)):
        with pytest.raises(BoundsError, match="no positions"):
            array.oindex[key, :]
    with pytest.raises(UnsupportedError, match="write_cells"):
        array.oindex[:, [1]] = 1
    with pytest.raises(IndexError, match="12"):
        array.oindex[:, [12]]
