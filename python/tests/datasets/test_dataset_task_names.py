"""Promise: graphs of two versions of a store, or of two stores at one place, never take each other's values."""

import os
import uuid

import numpy as np
import pytest
import xarray as xr

import gridstone as gs


def _dataset(value):
    return xr.Dataset(
        {
            "t": (("y", "x"), np.full((4, 6), float(value))),
            "n": (("y", "x"), np.full((4, 6), value, np.int32)),
            "s": ("y", np.array([f"text {value}"] * 4, object)),
            "when": ("y", np.full(4, np.datetime64("2000-01-01", "ns") + np.timedelta64(value, "D"))),
        }
    )


def _opened(uri, **options):
    return xr.open_dataset(uri, engine="gridstone", chunks={}, **options)


@pytest.fixture(params=["memory", "folder"])
def uri(request, tmp_path):
    return f"mem://{uuid.uuid4()}" if request.param == "memory" else str(tmp_path / "d.gs")


@pytest.mark.parametrize("options", [{}, {"decode_times": False}, {"mask_and_scale": False}])
def test_openings_before_and_after_a_dataset_replaces_another(uri, options):
    encoding = {"n": {"_FillValue": -1}, "when": {"units": "days since 2000-01-01"}}
    gs.to_gridstone(_dataset(1), uri, encoding=encoding)
    one = _opened(uri, **options)
    gs.to_gridstone(_dataset(5), uri, mode="w", encoding=encoding)
    two = _opened(uri, **options)
    assert np.all((two.t - one.t).compute().values == 4)
    assert np.all((two.n - one.n).compute().values == 4)
    assert np.all((two.s != one.s).compute().values)
    days = (two.when - one.when).compute().values
    assert np.all(days == (4 if days.dtype.kind in "if" else np.timedelta64(4, "D")))


def test_openings_before_and_after_a_plain_write(uri):
    gs.to_gridstone(_dataset(1), uri)
    if "://" not in uri:
        os.utime(uri, (1_000_000_000, 1_000_000_000))
    one = _opened(uri)
    a = gs.open(uri, path="/t", mode="r+")
    a[...] = 9.0
    if "://" not in uri:
        os.utime(uri, (1_000_000_000, 1_000_000_000))
    two = _opened(uri)
    assert np.all((two.t - one.t).compute().values == 8)
    chosen = (two.t.isel(x=2) - one.t.isel(x=2)).compute()
    assert chosen.values.tolist() == [8.0] * 4


def test_two_openings_of_one_version_share_their_tasks(uri):
    gs.to_gridstone(_dataset(1), uri)
    one, two = _opened(uri, version=gs.group(uri).version), _opened(uri, version=gs.group(uri).version)
    assert one.t.data.name == two.t.data.name != one.n.data.name
    assert np.all((one.t - two.t).compute().values == 0)


def test_trees_before_and_after_a_commit(uri):
    gs.to_gridstone(xr.DataTree.from_dict({"/": _dataset(1), "/below": _dataset(2)}), uri)
    one = xr.open_datatree(uri, engine="gridstone", chunks={})
    a = gs.open(uri, path="/below/t", mode="r+")
    a[...] = 7.0
    two = xr.open_datatree(uri, engine="gridstone", chunks={})
    assert np.all((two["below"].ds.t - one["below"].ds.t).compute().values == 5)
    assert np.all((two.ds.t - one.ds.t).compute().values == 0)


def test_coordinates_without_indexes_differ_too(uri):
    gs.to_gridstone(_dataset(1).assign_coords(x=np.arange(6.0)), uri)
    one = _opened(uri, create_default_indexes=False)
    gs.open(uri, path="/x", mode="r+")[...] = np.arange(6.0) + 3
    two = _opened(uri, create_default_indexes=False)
    assert np.all((two.x.variable.data - one.x.variable.data) == 3)
