"""Promise: blocks of a dask array become one version of an array, or nothing; alignment and order do not matter."""

import os
import pickle
import resource
import threading
import weakref
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.dask.blocks import receipts_of, write_blocks
from gridstone.dask.store import _divisor

A = np.arange(70 * 50.0).reshape(70, 50)


class TornError(Exception):
    """What a block of a graph raises."""


def torn(x: Any, at: float = 3000.0) -> Any:
    """The array, of which the block that holds this value fails."""

    def block(values: Any) -> Any:
        if (values == at).any():
            raise TornError
        return values

    return x.map_blocks(block, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype))


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "complex128", "datetime64[s]", "timedelta64[us]", "S3"]
)
def test_dtypes_come_back(store_uri: str, dtype: str) -> None:
    values = np.arange(63).reshape(9, 7).astype("int64").astype(dtype)
    assert gs.dask.store(da.from_array(values, chunks=(4, 3)), store_uri) >= 1
    a = gs.open(store_uri)
    assert a.dtype == values.dtype and (a[...] == values).all()


def test_texts_bytes_masks_and_fields_come_back(stores: Stores) -> None:
    texts = np.array([["a", "", "λ"], ["b", "c", "d"]], object)
    gs.dask.store(da.from_array(texts, chunks=1), stores("t"))
    assert (gs.open(stores("t"))[...] == texts).all()
    gs.dask.store(da.from_array(texts.astype("U3"), chunks=1), stores("u"))
    assert (gs.open(stores("u"))[...] == texts).all()
    masked = np.ma.masked_array(np.arange(12).reshape(4, 3), np.arange(12).reshape(4, 3) % 5 == 0)
    gs.dask.store(da.from_array(masked, chunks=(3, 2), asarray=False), stores("m"))
    found = gs.open(stores("m"))[...]
    assert (np.ma.getmaskarray(found) == masked.mask).all() and (found == masked).all()
    fields = np.zeros(5, [("a", "i4"), ("b", "f8")])
    fields["a"], fields["b"] = np.arange(5), np.arange(5) / 2
    gs.dask.store(da.from_array(fields, chunks=2), stores("f"))
    a = gs.open(stores("f"))
    assert a.dtype == fields.dtype and all((a[name][...] == fields[name]).all() for name in "ab")


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_arrays_without_axes_or_without_cells(store_uri: str, shape: tuple[int, ...]) -> None:
    gs.dask.store(da.ones(shape), store_uri)
    a = gs.open(store_uri)
    assert a.shape == shape and np.array_equal(a[...], np.ones(shape))


@given(st.data())
def test_any_chunks_onto_any_tiles(data: st.DataObject) -> None:
    """Blocks need no alignment to tiles, in a part of an array too, and cells outside of it stay."""
    ndim = data.draw(st.integers(1, 3))
    shape = tuple(data.draw(st.integers(1, 9)) for _ in range(ndim))
    offset = tuple(data.draw(st.integers(0, 4)) for _ in range(ndim))
    lows = tuple(data.draw(st.integers(-20, 20)) for _ in range(ndim))
    sizes = [n + o + data.draw(st.integers(0, 3)) for n, o in zip(shape, offset, strict=True)]
    pairs = zip(lows, sizes, strict=True)
    dims = [gs.Dim(f"d{i}", (lo, lo + n - 1), data.draw(st.integers(1, 8))) for i, (lo, n) in enumerate(pairs)]
    orders = st.sampled_from(["row", "col"])
    schema = gs.Schema(dims, [gs.Attr("v", "int32"), gs.Attr("w", "int8", fill=7)], tile_order=data.draw(orders))
    a = gs.create("mem://any-chunks", schema, overwrite=True)
    model = np.zeros(sizes, "int32")
    values = np.arange(1, np.prod(shape) + 1, dtype="int32").reshape(shape)
    box = {f"d{i}": slice(lo + o, lo + o + n) for i, (lo, o, n) in enumerate(zip(lows, offset, shape, strict=True))}
    where = tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=True))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    scheduler = data.draw(st.sampled_from(["sync", "threads"]))
    with dask.config.set(scheduler=scheduler):
        version = gs.dask.store({"v": da.from_array(values, chunks=chunks)}, a.uri, box=box)
    model[where] = values
    assert a.refresh() == version and (a["v"][...] == model).all() and (a["w"][...] == 7).all()


def test_a_new_array_is_one_version_with_its_message(tmp_path: Path) -> None:
    uri = tmp_path / "new.gs"
    gs.group(uri, mode="a")
    before = gs.open(uri).version
    version = gs.dask.store(da.from_array(A, chunks=17), uri, "/deep/a", message="first")
    a = gs.open(uri, path="/deep/a")
    assert version == a.version == before + 1 and [h.message for h in a.history()] == ["first"]
    assert a.schema_names == ["value"] and a.dims == ("d0", "d1") and (a[...] == A).all()


def test_tiles_divide_the_chunks() -> None:
    assert _divisor(1000, 334) == 250 and _divisor(1001, 501) == 501 and _divisor(997, 499) == 499
    x = da.zeros((4000, 3000), chunks=(2000, 1000))
    gs.dask.store(x, "mem://tiles")
    tile = gs.open("mem://tiles").chunks
    assert all(chunk % side == 0 for chunk, side in zip(x.chunksize, tile, strict=True)) and np.prod(tile) <= 1 << 20


def test_an_array_that_is_there_gets_one_version_more(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", A * 0, tile=16)
    version = gs.dask.store(da.from_array(A, chunks=13), a.uri, schema=a.schema, message="all of it")
    assert version == a.version + 1 and a.refresh() == version and (a[...] == A).all()
    assert a.history()[-1].message == "all of it" and (a.at(version=version - 1)[...] == 0).all()


def test_several_arrays_with_other_chunks_are_one_write(store_uri: str) -> None:
    x, y = da.from_array(A, chunks=(13, 50)), da.from_array(A.astype("int16"), chunks=(70, 11))
    gs.dask.store({"x": x, "y": y}, store_uri)
    a = gs.open(store_uri)
    assert a.dtype == np.dtype([("x", "f8"), ("y", "i2")]) and (a["x"][...] == A).all() and (a["y"][...] == A).all()


def test_vectors_of_several_shapes(store_uri: str) -> None:
    attrs = [gs.Attr("rgb", "uint8", shape=3), gs.Attr("m", "float32", shape=(2, 2)), gs.Attr("v", "int8")]
    schema = gs.Schema([gs.Dim("x", (0, 9), 4)], attrs)
    rgb, m = np.arange(30, dtype="u1").reshape(10, 3), np.arange(40, dtype="f4").reshape(10, 2, 2)
    parts = {"rgb": da.from_array(rgb, chunks=(3, 2)), "m": da.from_array(m, chunks=(5, 1, 2)), "v": da.zeros(10, "i1")}
    gs.dask.store(parts, store_uri, schema=schema)
    a = gs.open(store_uri)
    assert (a["rgb"][...] == rgb).all() and (a["m"][...] == m).all() and not a["v"][...].any()


def test_open_ends_grow_to_the_box(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("t", (0, None), 10), gs.Dim("x", (0, 49), 20)], [gs.Attr("v", "float64")])
    a = gs.create(store_uri, schema)
    x = da.from_array(A, chunks=(9, 50))
    with pytest.raises(gs.InputError, match=r"shape \(70, 50\), the array has \(0, 50\); box="):
        gs.dask.store(x, store_uri)
    gs.dask.store(x, store_uri, box={"t": (0, 69)})
    gs.dask.store(x + 1, store_uri, box={"t": (70, 139)})
    a.refresh()
    assert a.shape == (140, 50) and (a[:70] == A).all() and (a[70:] == A + 1).all()


@pytest.mark.parametrize("key", [None, "a key"])
@pytest.mark.parametrize("path", ["/", "/deep/down"])
def test_a_failed_graph_leaves_no_store(tmp_path: Path, path: str, key: str | None) -> None:
    uri = tmp_path / "a.gs"
    with dask.config.set(scheduler="threads"), pytest.raises(TornError):
        gs.dask.store(torn(da.from_array(A, chunks=30)), uri, path, commit_key=key)
    assert not gs.exists(uri) and not uri.exists()


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_failed_graph_leaves_no_array_and_no_group(tmp_path: Path, scheduler: str) -> None:
    uri = tmp_path / "a.gs"
    gs.array(uri, A, path="/kept/a")
    before, looked = gs.open(uri).version, gs.group(uri).walk()
    for path in ("/deep/down/b", "/kept/b"):
        with dask.config.set(scheduler=scheduler), pytest.raises(TornError):
            gs.dask.store(torn(da.from_array(A, chunks=30)), uri, path)
    assert gs.group(uri).walk() == looked
    assert gs.open(uri).version == before, "no version was made"
    assert (gs.open(uri, path="/kept/a")[...] == A).all()


def test_a_failed_graph_leaves_an_array_as_it_was_and_files_to_a_vacuum(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", A, tile=16)
    before, files = a.version, files_of(tmp_path)
    with dask.config.set(scheduler="sync"), pytest.raises(TornError):
        gs.dask.store(torn(da.from_array(A, chunks=10) + 1, at=3001.0), a.uri)
    assert a.refresh() == before and (a[...] == A).all() and len(a.fragments) == 1
    assert files_of(tmp_path) > files, "blocks before it were written"
    assert gs.verify(a.uri).ok


def test_other_commits_meanwhile_stay(tmp_path: Path) -> None:
    """A store that the call has made is not deleted with what others put into it."""
    uri = str(tmp_path / "a.gs")

    def block(values: Any) -> Any:
        gs.group(uri, path="/theirs", mode="a") if not gs.exists(uri, "/theirs") else None
        raise TornError

    x = da.from_array(A, chunks=70).map_blocks(block, dtype=float, meta=np.empty((0, 0)))
    with dask.config.set(scheduler="sync"), pytest.raises(TornError):
        gs.dask.store(x, uri, "/mine", commit_key="k")
    assert [entry.path for entry in gs.ls(uri)] == ["/theirs"]


def test_delayed_writes_when_it_is_computed(store_uri: str) -> None:
    x = da.from_array(A, chunks=20)
    todo = gs.dask.store(x, store_uri, compute=False)
    assert gs.ls(store_uri) == [], "the store is there, the array is not"
    version = todo.compute()
    a = gs.open(store_uri)
    assert a.version == version == 2 and (a[...] == A).all()
    assert todo.compute() == version and gs.open(store_uri).version == version, "a task that is tried again"
    again = gs.dask.store(x + 1, store_uri, compute=False, message="later")
    both = dask.compute(again, gs.dask.store(x * 2, store_uri + "2", compute=False))
    assert a.refresh() == both[0] and (a[...] == A + 1).all() and a.history()[-1].message == "later"
    assert (gs.open(store_uri + "2")[...] == A * 2).all()


def test_a_known_key_is_refused_before_anything_is_computed(store_uri: str) -> None:
    gs.dask.store(da.from_array(A, chunks=20), store_uri, commit_key="run 1")
    with pytest.raises(gs.ConflictError, match="run 1"):
        gs.dask.store(torn(da.from_array(A, chunks=20)), store_uri, commit_key="run 1")
    gs.dask.store(da.from_array(A + 1, chunks=20), store_uri, commit_key="run 2")
    assert (gs.open(store_uri)[...] == A + 1).all()


@pytest.mark.parametrize(
    ("x", "options", "match"),
    [
        (A.tolist(), {}, "takes a dask array"),
        ({}, {}, "empty dict"),
        ({"v": 3}, {}, "takes a dask array"),
        (da.ones((70, 49)), {}, r"shape \(70, 49\), the array has \(70, 50\); box= writes to a part"),
        (da.ones((3, 3)), {"box": (slice(0, 3), slice(0, 4))}, r"shape \(3, 3\), the box"),
        ({"w": da.ones((70, 50))}, {}, "no attribute.*'w'"),
        (da.ones((70, 50))[da.ones((70, 50)).sum(axis=1) > 3], {}, "compute_chunk_sizes"),
        ({"value": da.ones((70, 50)), "x": da.ones(3)}, {}, "no attribute.*'x'"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_computed(
    tmp_path: Path, x: Any, options: dict[str, Any], match: str
) -> None:
    a = gs.array(tmp_path / "a.gs", A)
    with pytest.raises((gs.InputError, gs.SchemaError), match=match):
        gs.dask.store(x, a.uri, **options)
    assert a.refresh() == gs.open(a.uri).version and len(a.fragments) == 1


def test_places_that_do_not_fit_are_told(tmp_path: Path) -> None:
    x, uri = da.ones((3, 3)), tmp_path / "a.gs"
    with pytest.raises(gs.InputError, match="box= is of an array that is there"):
        gs.dask.store(x, uri, box=(slice(0, 3),))
    assert not uri.exists()
    gs.array(uri, np.ones((3, 3)), path="/g/a")
    with pytest.raises(gs.NotFoundError, match="holds a group"):
        gs.dask.store(x, uri, "/g")
    other = gs.Schema([gs.Dim("y", (0, 2)), gs.Dim("x", (0, 2))], [gs.Attr("value", "float32")])
    with pytest.raises(gs.ExistsError, match="another schema"):
        gs.dask.store(x, uri, "/g/a", other)
    sparse = gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int8")], sparse=True), path="/s")
    with pytest.raises(gs.UnsupportedError, match="dense"):
        gs.dask.store(x, uri, sparse.path)
    two = gs.Schema([gs.Dim("y", (0, 2)), gs.Dim("x", (0, 2))], [gs.Attr("a", "float32"), gs.Attr("b", "int8")])
    with pytest.raises(gs.InputError, match=r"\['a', 'b'\]; say which"):
        gs.dask.store(x, uri, "/two", two)
    assert not gs.exists(uri, "/two")


def test_values_that_do_not_fit_fail_as_writes_do(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", np.zeros((4, 4), "int8"))
    with pytest.raises((gs.InputError, OverflowError, TypeError), match="value"):
        gs.dask.store(da.full((4, 4), 300), a.uri)
    assert a.refresh() == gs.open(a.uri).version and not a[...].any()


def test_dasks_own_store_works_with_a_commit_for_each_block(tmp_path: Path) -> None:
    """Writes are safe without a lock, but each is a version: `gridstone.dask.store` makes one."""
    a = gs.array(tmp_path / "a.gs", np.zeros((80, 60)), tile=16)
    x, before = da.from_array(A, chunks=(35, 25)), a.version
    da.store(x, a, lock=False, regions=(slice(7, 77), slice(10, 60)))
    assert (a[7:77, 10:] == A).all() and a[:7].sum() == 0 and a.refresh() == before + 4
    da.store(
        [x, x + 1], [a["value"], gs.array(tmp_path / "b.gs", A)], lock=False, regions=[(slice(70), slice(50)), None]
    )
    assert (a[:70, :50] == A).all() and (gs.open(tmp_path / "b.gs")[...] == A + 1).all()


def test_blocks_of_a_transaction_are_committed_with_it(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", A * 0, tile=16)
    x = da.from_array(A, chunks=(33, 20))
    with gs.transaction(a.uri, "both") as tx:
        b = tx.create("/", a.schema, overwrite=True)
        assert receipts_of(dask.compute(write_blocks(b, {"value": x}))) == []
        b.meta["made"] = "here"
    assert (gs.open(a.uri)[...] == A).all() and gs.open(a.uri).history()[-1].message == "both"
    with gs.transaction(a.uri) as tx, pytest.raises(gs.UnsupportedError, match="threads of this process"):
        pickle.dumps(write_blocks(tx["/"], {"value": x}).__dask_graph__())


def test_receipts_of_several_arrays_are_one_commit(tmp_path: Path) -> None:
    """What a Dataset needs: blocks of many variables, computed together and committed together."""
    uri, x = tmp_path / "a.gs", da.from_array(A, chunks=(33, 20))
    a, b = (gs.create(uri, gs.array(f"mem://like-{name}", A).schema, path=f"/{name}") for name in "ab")
    graph = [write_blocks(a, {"value": x}), write_blocks(b, {"value": x[:10, :10] + 1}, offset=(5, 7))]
    version = gs.commit(uri, receipts_of(dask.compute(*graph)))
    assert a.refresh() == b.refresh() == version and (a[...] == A).all()
    assert (b[5:15, 7:17] == A[:10, :10] + 1).all() and b[...].sum() == (A[:10, :10] + 1).sum()


def test_blocks_are_written_again_whenever_they_are_computed(tmp_path: Path) -> None:
    """A receipt can be committed once: equal graphs are not taken for one another."""
    a = gs.array(tmp_path / "a.gs", A)
    x = da.from_array(A, chunks=35)
    first, second = (receipts_of(dask.compute(write_blocks(a, {"value": x}))) for _ in range(2))
    assert not {r.id for r in first} & {r.id for r in second}
    gs.commit(a.uri, first)
    gs.commit(a.uri, second)


def test_graphs_of_many_blocks_are_small_and_hold_no_handle(tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 99_999), 10)], [gs.Attr("v", "float32")])
    a = gs.create(tmp_path / "a.gs", schema)
    blocks = write_blocks(a, {"v": da.zeros(100_000, chunks=10, dtype="float32")})
    assert blocks.npartitions == 10_000 and len(blocks.__dask_graph__().layers) == 2
    assert len(pickle.dumps(blocks.__dask_graph__())) < 400_000, "sizes of chunks, and no task"
    tasks = blocks.__dask_graph__().to_dict()
    assert len(tasks) == 20_000, "one makes a block, one writes it"
    assert sum(key[0] == blocks.name for key in tasks) == 10_000
    assert len(pickle.dumps(tasks)) < 2_500_000, "the address lies there once"
    fused = dask.optimize(blocks)[0].__dask_graph__().to_dict()
    assert len(fused) == 10_000 and len(pickle.dumps(fused)) < 1_500_000
    later = gs.dask.store(da.zeros(100_000, chunks=10, dtype="float32"), a.uri, compute=False)
    ends = {key: task for key, task in dict(later.__dask_graph__()).items() if not isinstance(key, tuple)}
    assert len(dict(later.__dask_graph__())) - len(ends) == 20_000 and len(ends) == 3, "one commit"


def test_blocks_stay_at_their_coordinates_when_the_domain_grows_meanwhile(tmp_path: Path) -> None:
    a = gs.array(tmp_path / "a.gs", np.zeros(20), tile=6)
    todo = gs.dask.store(da.arange(1, 11, chunks=3), a.uri, box={"d0": (5, 14)}, compute=False)
    a.resize(d0=(-9, 30))
    todo.compute()
    a.refresh()
    assert a.loc[5:15].tolist() == list(range(1, 11)) and a.sum() == 55


@pytest.mark.parametrize("name", [name for name in gs.errors.__all__ if name.endswith("Error")])
def test_errors_of_workers_arrive_as_they_were_raised(name: str) -> None:
    """Dask has its own way to pickle errors, which calls `__new__` of their classes."""
    found = pickle.loads(pickle.dumps(getattr(gs.errors, name)("what happened")))
    assert type(found) is getattr(gs.errors, name) and str(found) == "what happened"


class Meter:
    """How many bytes of blocks are there at once."""

    def __init__(self) -> None:
        self.lock, self.live, self.most = threading.Lock(), 0, 0

    def block(self, side: int) -> Any:
        made = np.full((side, side), 1.5)
        with self.lock:
            self.live += made.nbytes
            self.most = max(self.most, self.live)
        weakref.finalize(made, self._gone, made.nbytes)
        return made

    def _gone(self, nbytes: int) -> None:
        with self.lock:
            self.live -= nbytes


def test_memory_is_that_of_some_blocks(tmp_path: Path) -> None:
    """Blocks are let go of when they are written, however many there are. GRIDSTONE_TEST_DEEP stores 20 GiB."""
    deep = "GRIDSTONE_TEST_DEEP" in os.environ
    count, side = (1_280, 1_448) if deep else (60, 256)
    meter, before = Meter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x = da.map_blocks(
        lambda block_id: meter.block(side), chunks=((side,) * count, (side,)), dtype=float, meta=np.empty((0, 0))
    )
    with dask.config.set(scheduler="threads", num_workers=4):
        gs.dask.store(x, tmp_path / "a.gs")
    assert meter.most <= 8 * side * side * 8, "two blocks a thread"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown <= 512 << 20, "and what the core takes for them"
    a = gs.open(tmp_path / "a.gs")
    assert a.shape == (count * side, side) and a.sum() == 1.5 * a.size
