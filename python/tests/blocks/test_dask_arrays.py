"""Promise: an array is a dask array whose chunks are whole tiles, whose graph has no data, and whose version stays."""

import pickle
import uuid
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from hypothesis import given
from hypothesis import strategies as st

import gridstone as gs
from gridstone.dask import place

DTYPES = ["bool", "int8", "uint64", "float16", "float64", "complex64", "datetime64[s]", "timedelta64[us]", "S3"]


def values_of(dtype: str, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape))
    return np.arange(count).astype("int64").reshape(shape).astype(dtype)


@pytest.fixture
def pixels(tmp_path: Path) -> gs.Array:
    return gs.array(tmp_path / "pixels.gs", np.arange(70 * 50.0).reshape(70, 50), tile=(16, 20))


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_dtypes_are_read_as_they_are_stored(store_uri: str, dtype: str) -> None:
    values = values_of(dtype, (9, 7))
    a = gs.array(store_uri, values, tile=(4, 3))
    for x in (gs.dask.array(a, chunks=a.chunks), gs.dask.array(a), da.from_array(a, chunks=a.chunks)):
        found = x.compute(scheduler="sync")
        assert x.dtype == found.dtype == values.dtype and (found == values).all()


def test_texts_are_objects_in_chunks_of_whole_tiles(store_uri: str) -> None:
    values = np.array([["a", "", "λ"], ["long " * 9, "b", "c"]] * 4, object)
    a = gs.array(store_uri, values, tile=(2, 2))
    x = gs.dask.array(a, chunks="600 B")
    assert x.dtype == object and x.chunks[0] != (8,) and all(size % 2 == 0 for size in x.chunks[0])
    assert (x.compute() == values).all()


def test_nullable_chunks_are_masked_and_stay_so(store_uri: str) -> None:
    values = np.ma.masked_array(np.arange(12.0).reshape(4, 3), np.arange(12).reshape(4, 3) % 3 == 0)
    a = gs.array(store_uri, values, tile=2)
    for x in (gs.dask.array(a, chunks=a.chunks), da.from_array(a, chunks=a.chunks)):
        found = x.compute()
        assert isinstance(x._meta, np.ma.MaskedArray) and (np.ma.getmaskarray(found) == values.mask).all()
        assert x.sum().compute() == values.sum() and (x.mean(axis=1).compute() == values.mean(axis=1)).all()


def test_vectors_have_their_axes_behind_in_one_chunk(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("y", (0, 5), 2), gs.Dim("x", (0, 3), 2)], [gs.Attr("rgb", "uint8", shape=3)])
    a = gs.create(store_uri, schema)
    a[...] = values = np.arange(72, dtype="uint8").reshape(6, 4, 3)
    x = gs.dask.array(a, chunks={"y": 2, "x": "auto"})
    assert x.shape == (6, 4, 3) and x.chunks == ((2, 2, 2), (4,), (3,))
    assert (x.compute() == values).all() and (x[1, [0, 2], 1:].compute() == values[1, [0, 2], 1:]).all()
    assert (gs.dask.array(a).compute() == values).all() and (gs.dask.array(a, chunks=2).compute() == values).all()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
def test_arrays_without_axes_or_without_cells(store_uri: str, shape: tuple[int, ...]) -> None:
    a = gs.array(store_uri, np.ones(shape))
    x = gs.dask.array(a)
    assert x.shape == shape and x.compute().shape == shape and x.sum().compute() == np.ones(shape).sum()


def test_one_attribute_is_chosen_or_asked_for(store_uri: str) -> None:
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9), 5)], [gs.Attr("u", "int8"), gs.Attr("v", "float32")]))
    a.write({"u": np.arange(10), "v": np.arange(10) / 2})
    assert gs.dask.array(a, attr="u").sum().compute() == 45 and gs.dask.array(a["v"]).sum().compute() == 22.5
    assert gs.dask.array(a["v"], attr="v").dtype == "float32"
    with pytest.raises(gs.InputError, match=r"attributes \['u', 'v'\].*attr='u'"):
        gs.dask.array(a)
    with pytest.raises(gs.InputError, match="name two attributes"):
        gs.dask.array(a["v"], attr="u")
    with pytest.raises(gs.SchemaError, match="w"):
        gs.dask.array(a, attr="w")


def test_what_is_no_dense_array_is_refused_with_what_reads_it(store_uri: str) -> None:
    with pytest.raises(gs.InputError, match=r"takes an array that gridstone\.open gives"):
        gs.dask.array(np.arange(3))
    sparse = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int8")], sparse=True))
    with pytest.raises(gs.UnsupportedError, match=r"gridstone\.dask\.frame"):
        gs.dask.array(sparse)


def test_an_array_of_a_transaction_is_refused(pixels: gs.Array) -> None:
    with gs.transaction(pixels.uri) as tx, pytest.raises(gs.UnsupportedError, match="outside of a transaction"):
        gs.dask.array(tx["/"])


def test_chunks_are_whole_tiles_from_the_origin_on(tmp_path: Path) -> None:
    """The low end of a domain that has grown cuts a tile, and the chunks begin where tiles do."""
    a = gs.create(tmp_path / "a.gs", gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "float64")]))
    a.resize(x=(-13, 99))
    a[...] = values = np.arange(113.0)
    x = gs.dask.array(a, chunks="160 B")
    assert x.chunks[0] == (13, 20, 20, 20, 20, 20) and (x.compute() == values).all()
    assert gs.dask.array(a, chunks=7).chunks[0][:2] == (7, 7), "what is given is taken"


@pytest.mark.parametrize("chunks", ["many", (3,), {"z": 3}, {5: 3}, (3, (1, 2)), object()])
def test_chunks_that_do_not_fit_are_told(pixels: gs.Array, chunks: Any) -> None:
    with pytest.raises(gs.InputError, match="chunks="):
        gs.dask.array(pixels, chunks=chunks)


@given(st.data())
def test_slices_reductions_and_chunks_are_those_of_numpy(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    tile = tuple(data.draw(st.integers(1, 10)) for _ in shape)
    values = np.arange(np.prod(shape)).reshape(shape)
    a = gs.array(f"mem://{uuid.uuid4()}", values, tile=tile)
    chunks = tuple(data.draw(st.integers(1, 9)) for _ in shape)
    x = gs.dask.array(a, chunks=data.draw(st.sampled_from([chunks, "auto", a.chunks])))
    # Dask itself takes starts before the first position for the first one where a step is negative.
    bounds = [st.one_of(st.none(), st.integers(-n, n)) for n in shape]
    steps = st.sampled_from([None, 1, 2, -1, -3])
    key = tuple(
        data.draw(st.one_of(st.integers(0, n - 1), st.builds(slice, bound, bound, steps)))
        for n, bound in zip(shape, bounds, strict=True)
    )
    with dask.config.set(scheduler="sync"):
        assert np.array_equal(x[key].compute(), values[key])
        axis = data.draw(st.integers(0, len(shape) - 1))
        assert np.array_equal(x.sum(axis=axis).compute(), values.sum(axis=axis))
        assert np.array_equal(x.max().compute(), values.max()) and np.isclose(x.std().compute(), values.std())
        picked = data.draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=5))
        assert np.array_equal(x[picked].compute(), values[picked])


def test_the_graph_stays_at_its_version(pixels: gs.Array) -> None:
    before = pixels[...]
    x, y = gs.dask.array(pixels), gs.dask.array(gs.open(pixels.uri, version=pixels.version))
    pixels[...] = 0.0
    assert (x.compute() == before).all() and (y.compute() == before).all()
    assert (pickle.loads(pickle.dumps(x)).compute() == before).all()
    assert not gs.dask.array(pixels).any().compute()


def test_names_and_tokens_say_array_version_and_attribute(pixels: gs.Array, tmp_path: Path) -> None:
    again = gs.open(pixels.uri)
    assert tokenize(pixels) == tokenize(again) and tokenize(pixels["value"]) == tokenize(again["value"])
    assert tokenize(pixels) != tokenize(pixels["value"])
    assert gs.dask.array(pixels).name == gs.dask.array(again).name == gs.dask.array(pixels["value"]).name
    assert da.from_array(pixels).name == da.from_array(again).name
    first, name = tokenize(pixels), gs.dask.array(pixels).name
    pixels[0, 0] = -1.0
    assert tokenize(pixels) != first and gs.dask.array(pixels).name != name
    assert tokenize(pixels.at(version=again.version)) == first, "a pinned handle is of the same version"
    # The same address and version, and another array.
    gs.delete(pixels.uri)
    other = gs.array(pixels.uri, np.zeros((70, 50)), tile=(16, 20))
    assert other.version == again.version and tokenize(other) != first
    # Threads and memory do not change values; the service of a bucket does.
    assert tokenize(gs.open(pixels.uri, context=gs.Context(threads=1, memory_budget="1MiB"))) == tokenize(other)
    there = gs.Context(storage_options={"endpoint_url": "http://elsewhere", "secret": "s", "key": "k"})
    assert tokenize(gs.open(pixels.uri, context=there)) != tokenize(other)


def test_tokens_of_staged_arrays_are_of_nothing_else(pixels: gs.Array) -> None:
    with gs.transaction(pixels.uri) as tx:
        a = tx["/"]
        assert tokenize(a) != tokenize(a) and tokenize(a["value"]) != tokenize(pixels["value"])


def test_graphs_carry_no_data_no_handle_and_no_secret(tmp_path: Path) -> None:
    secret = "xyzzy" * 4
    context = gs.Context(storage_options={"secret": secret, "key": "id"})
    a = gs.array(tmp_path / "a.gs", np.arange(1 << 17), tile=1 << 10, context=context)
    small = gs.dask.array(a, chunks=1 << 16)
    large = gs.dask.array(a, chunks=1 << 10)
    for x in (small, large):
        text = pickle.dumps(x.__dask_graph__())
        assert secret.encode() not in text and len(text) < 4_000
        assert not any(isinstance(value, gs.Array) for value in dict(x.__dask_graph__()).values())
    a.close()
    assert large.sum().compute() == (1 << 17) * ((1 << 17) - 1) // 2, "the graph opens the array for itself"


def test_ten_thousand_chunks_are_one_layer(tmp_path: Path) -> None:
    a = gs.create(tmp_path / "a.gs", gs.Schema([gs.Dim("x", (0, 99_999), 10)], [gs.Attr("v", "float32")]))
    x = gs.dask.array(a, chunks=10)
    graph = x.__dask_graph__()
    assert x.npartitions == 10_000 and len(graph.layers) == 2
    assert len(pickle.dumps(graph)) < 60_000, "the sizes of chunks, and no task"
    for tasks in (graph.to_dict(), dask.optimize(x)[0].__dask_graph__().to_dict()):
        assert len(tasks) == 10_001 and {(x.name, number) for number in range(10_000)} < set(tasks)
        assert len(pickle.dumps(tasks)) < 1_000_000, "the address lies there once, and 70 bytes for each chunk"
    assert x[::5000].compute().shape == (20,)


def test_one_open_serves_many_tasks(pixels: gs.Array) -> None:
    x = gs.dask.array(pixels, chunks=7)
    place._reader.cache_clear()
    x.sum().compute(scheduler="sync")
    found = place._reader.cache_info()
    assert found.misses == 1 and found.hits >= x.npartitions - 1


def test_stores_and_arrays_that_are_gone_are_told(pixels: gs.Array) -> None:
    x = pickle.loads(pickle.dumps(gs.dask.array(pixels)))
    gs.delete(pixels.uri)
    place._reader.cache_clear()
    with pytest.raises(gs.NotFoundError):
        x.compute()
