"""Promise: a graph that stores an array commits once, however often it is computed and wherever a worker died."""

import pickle

import dask.array as da
import numpy as np
import pytest

import gridstone as gs


@pytest.fixture
def uri(tmp_path):
    uri = str(tmp_path / "a.gs")
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 7), 4)], [gs.Attr("v", "float64")]))
    return uri


def test_a_graph_that_is_computed_again_tells_its_version(uri):
    later = gs.dask.store(da.ones(8, chunks=4), uri, compute=False)
    first = later.compute(scheduler="sync")
    gs.open(uri, mode="r+")[0] = 7.0
    assert later.compute(scheduler="threads") == first
    assert pickle.loads(pickle.dumps(later)).compute(scheduler="sync") == first
    assert gs.open(uri).version == first + 1
    assert gs.open(uri)["v"][...].tolist() == [7.0] + [1.0] * 7


def test_graphs_of_their_own_commit_each(uri):
    versions = [
        gs.dask.store(da.full(8, v, chunks=4), uri, compute=False).compute(scheduler="sync") for v in (1.0, 2.0)
    ]
    assert versions[1] == versions[0] + 1
    assert np.all(gs.open(uri)["v"][...] == 2)


def test_a_key_of_the_caller_is_for_one_content(uri):
    later = gs.dask.store(da.ones(8, chunks=4), uri, compute=False, commit_key="job")
    later.compute(scheduler="sync")
    with pytest.raises(gs.ConflictError, match="job"):
        later.compute(scheduler="sync")


def test_a_removed_array_is_no_commit_that_was_done(uri):
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 7), 4)], [gs.Attr("v", "float64")]), overwrite=True)
    later = gs.dask.store(da.ones(8, chunks=4), uri, compute=False)
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 7), 4)], [gs.Attr("v", "float64")]), overwrite=True)
    with pytest.raises((gs.ConflictError, gs.NotFoundError)):
        later.compute(scheduler="sync")
    assert not np.any(gs.open(uri)["v"][...] == 1)
