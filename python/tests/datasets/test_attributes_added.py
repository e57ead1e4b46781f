"""Promise: attributes of a Dataset that are added or replaced come back with their types, and so do those before."""

import numpy as np
import pytest
import xarray as xr
from xarray_stores import opened

import gridstone as gs


def check(uri, expected):
    with opened(uri) as found:
        assert set(found.attrs) == set(expected)
        for name, value in expected.items():
            assert type(found.attrs[name]) is type(value), name
            if isinstance(value, np.ndarray):
                assert value.dtype == found.attrs[name].dtype
            assert np.array_equal(found.attrs[name], value), name


@pytest.mark.parametrize("given", [2, 2.5, np.float32(7), np.arange(3, dtype="i2"), "text", (1, 2)])
def test_types_of_attributes_before_and_after(tmp_path, given):
    uri = tmp_path / "d.gs"
    first = {"a": np.float32(1), "list": np.arange(2, dtype="u1"), "pair": (3, 4), "xarray": "own"}
    gs.to_gridstone(xr.Dataset(attrs=first), uri)
    check(uri, first)
    gs.to_gridstone(xr.Dataset(attrs={"b": np.int8(2)}), uri, mode="a")
    check(uri, first | {"b": np.int8(2)})
    gs.to_gridstone(xr.Dataset(attrs={"a": given}), uri, mode="a")
    check(uri, first | {"b": np.int8(2), "a": given})
    gs.to_gridstone(xr.Dataset(attrs={"pair": 1, "list": 2, "b": 3, "a": 4}), uri, mode="a")
    check(uri, {"pair": 1, "list": 2, "b": 3, "a": 4, "xarray": "own"})
    gs.to_gridstone(xr.Dataset(attrs={"c": given}), uri, mode="w")
    check(uri, {"c": given})


def test_no_note_stays_that_says_nothing(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(xr.Dataset(attrs={"a": np.float32(1)}), uri)
    gs.to_gridstone(xr.Dataset(attrs={"a": 1}), uri, mode="a")
    assert dict(gs.group(uri).meta) == {"a": 1}
