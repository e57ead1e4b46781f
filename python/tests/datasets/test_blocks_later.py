"""Promise: a graph that is computed later writes to the arrays that it was made for, and commits once."""

import pickle

import numpy as np
import pytest
import xarray as xr
from xarray_stores import days, opened

import gridstone as gs
from gridstone.dask import once


def later_of(uri, region):
    """A graph that is still to be computed, and what the group holds after it."""
    if region:
        gs.to_gridstone(days(0, 4), uri)
        part = days(0, 4, -1.0)[["v"]].chunk({"t": 2}).drop_vars(["t", "x"])
        return gs.to_gridstone(part, uri, region={"t": slice(0, 4)}, compute=False), days(0, 4).assign(
            v=days(0, 4, -1.0).v
        )
    lazy = days(0, 4).chunk({"t": 2})
    return gs.to_gridstone(lazy, uri, compute=False), days(0, 4)


def remade(uri):
    """Another store at its place, with as many versions."""
    gs.delete(uri)
    gs.to_gridstone(days(0, 4, 9.0), uri)
    while gs.group(uri).version < 6:
        gs.open(uri, path="/day", mode="r+")[0] = 0


def replaced(uri):
    gs.to_gridstone(days(0, 4, 9.0), uri, mode="w")


def removed(uri):
    del gs.group(uri, mode="r+")["v"]


@pytest.mark.parametrize("region", [False, True])
@pytest.mark.parametrize("change", [remade, replaced, removed])
def test_what_lies_at_the_path_of_an_array_that_is_gone(tmp_path, region, change):
    uri = str(tmp_path / "d.gs")
    later, _ = later_of(uri, region)
    change(uri)
    version = gs.group(uri).version
    with pytest.raises(gs.NotFoundError):
        later.compute()
    assert gs.group(uri).version == version
    if change is not removed:
        assert np.array_equal(gs.open(uri, path="/v")[...], days(0, 4, 9.0).v.values)


@pytest.mark.parametrize("region", [False, True])
def test_an_array_that_was_moved_is_found(tmp_path, region):
    uri = str(tmp_path / "d.gs")
    later, expected = later_of(uri, region)
    gs.move(uri, "/v", target_path="/there/v")
    later.compute()
    assert np.array_equal(gs.open(uri, path="/there/v")[...], expected.v.values)


@pytest.mark.parametrize("region", [False, True])
def test_a_graph_that_is_computed_again_commits_once(tmp_path, region):
    uri = tmp_path / "d.gs"
    later, expected = later_of(uri, region)
    version = later.compute()
    assert pickle.loads(pickle.dumps(later)).compute(scheduler="sync") == version == gs.group(uri).version
    gs.to_gridstone(xr.Dataset({"w": 1}), uri, mode="a")
    assert later.compute() == version < gs.group(uri).version
    with opened(uri) as found:
        xr.testing.assert_identical(found.drop_vars("w"), expected)


@pytest.mark.parametrize("lazy_region", [False, True])
def test_a_commit_whose_answer_was_lost_is_tried_again(tmp_path, monkeypatch, lazy_region):
    uri = tmp_path / "d.gs"
    later, expected = later_of(uri, lazy_region)
    commit, calls = once.commit, []

    def lost(uri, receipts, *given, **options):
        version = commit(uri, receipts, *given, **options)
        if receipts:
            calls.append(version)
            return commit(uri, receipts, *given, **options)
        return version

    monkeypatch.setattr(once, "commit", lost)
    # The same receipts a second time, as of a task that ran again.
    assert later.compute() == calls[0] == gs.group(uri).version
    with opened(uri) as found:
        xr.testing.assert_identical(found, expected)


@pytest.mark.parametrize("key", ["_FillValue", "missing_value"])
def test_packed_values_are_missing_until_they_are_written(tmp_path, key):
    uri = tmp_path / "d.gs"
    given = xr.Dataset({"v": ("x", np.array([1.5, np.nan, 3.0]))}).chunk({"x": 1})
    later = gs.to_gridstone(given, uri, encoding={"v": {"dtype": "int16", "scale_factor": 0.5, key: -1}}, compute=False)
    with opened(uri) as found:
        assert np.isnan(found.v.values).all()
    later.compute()
    with opened(uri) as found:
        xr.testing.assert_equal(found, given)
