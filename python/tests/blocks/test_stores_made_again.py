"""Promise: a graph or a pickled handle never reads another store that was made at the place of its own."""

import pickle
import shutil

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import gridstone as gs
from gridstone.dask import place


def _made(uri, value):
    a = gs.create(uri, gs.Schema([gs.Dim("x", (0, 7), 4)], [gs.Attr("v", "float64")]))
    a[:] = float(value)
    return a


@pytest.fixture(params=["memory", "folder"])
def uri(request, tmp_path):
    return f"mem://{tmp_path.name}" if request.param == "memory" else str(tmp_path / "a.gs")


def _made_again(uri, value):
    gs.delete(uri)
    return _made(uri, value)


def test_a_graph_of_a_store_that_was_made_again(uri):
    old = gs.dask.array(_made(uri, 1), chunks=4)
    assert _made_again(uri, 2).version == 2
    with pytest.raises(gs.NotFoundError, match="another array"):
        old.compute(scheduler="sync")
    assert np.all(gs.dask.array(gs.open(uri), chunks=4).compute(scheduler="sync") == 2)


def test_a_graph_of_a_frame(tmp_path):
    uri = str(tmp_path / "a.gs")

    def made(value):
        schema = gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "float64")], sparse=True)
        a = gs.create(uri, schema)
        a.write_cells({"x": np.arange(5)}, {"v": np.full(5, float(value))})
        return gs.open(uri)

    frame = gs.dask.frame(made(1))
    shutil.rmtree(uri)
    made(2)
    place._reader.cache_clear()  # As another process has it.
    with pytest.raises(gs.NotFoundError, match="another array"):
        frame.compute(scheduler="sync")


def test_pickled_handles(uri):
    a = _made(uri, 1)
    pickled = [
        pickle.dumps(a),
        pickle.dumps(gs.open(uri)),
        pickle.dumps(gs.open(uri, version=a.version)),
        pickle.dumps(a["v"]),
    ]
    _made_again(uri, 2)
    for one in pickled:
        with pytest.raises(gs.NotFoundError):
            pickle.loads(one)


def test_pickled_handles_of_an_array_that_stays_or_moves(uri):
    gs.group(uri, mode="a")
    a = gs.create(uri, gs.Schema([gs.Dim("x", (0, 7), 4)], [gs.Attr("v", "float64")]), path="/a")
    a[:] = 1.0
    reader = gs.open(uri, path="/a")
    graph = gs.dask.array(reader, chunks=4)
    kept = pickle.dumps(reader)
    a[:] = 3.0
    gs.group(uri, mode="r+").move("/a", "/b")
    assert pickle.loads(kept)["v"][...].tolist() == [1.0] * 8
    assert graph.compute(scheduler="sync").tolist() == [1.0] * 8


def test_blocks_for_a_store_that_was_made_again(uri):
    a = _made(uri, 1)
    later = gs.dask.store(da.full(8, 5.0, chunks=4), uri, compute=False)
    del a
    _made_again(uri, 2)
    with pytest.raises(gs.NotFoundError):
        dask.compute(later, scheduler="sync")
    assert gs.open(uri)["v"][...].tolist() == [2.0] * 8


def test_a_pickled_dataset(uri):
    def written(value):
        gs.to_gridstone(xr.Dataset({"t": ("x", np.full(8, float(value)))}), uri)
        return xr.open_dataset(uri, engine="gridstone")

    pickled = pickle.dumps(written(1))
    gs.delete(uri)
    written(2)
    with pytest.raises(gs.NotFoundError, match="another array"):
        pickle.loads(pickled).t.load()
