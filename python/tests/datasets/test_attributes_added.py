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


@pytest.mark.parametrize("lazy", [False, True])
def test_appends_add_and_replace_attributes_of_the_dataset(tmp_path, lazy):
    uri = tmp_path / "d.gs"
    given = xr.Dataset({"v": ("x", [1.0])}, attrs={"history": "made", "n": np.float32(1), "a": 1})
    gs.to_gridstone(given, uri)
    more = given.assign_attrs(history="grown", n=np.int8(2), new=[1])
    del more.attrs["a"]
    gs.to_gridstone(more.chunk() if lazy else more, uri, append_dim="x")
    check(uri, {"history": "grown", "n": np.int8(2), "a": 1, "new": [1]})


def test_an_append_to_a_group_of_groups_has_attributes(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(xr.Dataset({"v": 1}), uri, group="/below")
    gs.to_gridstone(xr.Dataset({"v": ("x", [1.0])}, attrs={"title": "top"}), uri, append_dim="x")
    check(uri, {"title": "top"})


@pytest.mark.parametrize(
    ("first", "then"), [(1, 1.0), (1, True), ([1], [1.0]), ([True], [1]), ({"a": 1}, {"a": True}), (0.0, -0.0)]
)
def test_values_that_are_equal_and_of_other_types_are_replaced(tmp_path, first, then):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(xr.Dataset(attrs={"a": first}), uri)
    gs.to_gridstone(xr.Dataset(attrs={"a": then}), uri, mode="a")
    with opened(uri) as found:
        assert repr(found.attrs["a"]) == repr(then)


def test_attributes_that_stay_are_not_written_again(tmp_path):
    uri = tmp_path / "d.gs"
    given = xr.Dataset(
        attrs={"nan": np.nan, "list": [np.float32(1.5), (1, 2)], "a": np.arange(3, dtype="i2"), "d": {"z": 1, "a": 2}}
    )
    gs.to_gridstone(given, uri)
    version = gs.group(uri).version
    assert gs.to_gridstone(given, uri, mode="a") == version
