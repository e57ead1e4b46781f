"""Promise: labels and coordinates are there, in whatever order variables come, and where a part is opened by itself."""

import numpy as np
import pytest
import xarray as xr
from xarray_stores import opened

import gridstone as gs

TIMES = np.array(["2000-01-01", "2000-01-02", "2000-01-04"], "M8[ns]")


def _dataset():
    return xr.Dataset(
        {"t": (("time", "lat"), np.arange(6.0).reshape(3, 2)), "s": ("time", [1, 2, 3])},
        {"time": ("time", TIMES, {"long_name": "day"}), "lat": [50.5, 51.5]},
    )


def test_one_array_of_a_dataset_has_its_coordinates(tmp_path):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(_dataset(), uri)
    with opened(uri, group="/t") as found:
        assert set(found.variables) == {"t", "time", "lat"}
        assert np.array_equal(found.time.values, TIMES)
        assert found.lat.values.tolist() == [50.5, 51.5]
        assert found.t.sel(time="2000-01-04").values.tolist() == [4.0, 5.0]
    with opened(uri, group="/t", drop_variables="time") as found:
        assert set(found.variables) == {"t", "lat"}


def test_the_coordinate_itself(tmp_path):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(_dataset(), uri)
    with opened(uri, group="/time") as found:
        assert list(found.variables) == ["time"]
        assert np.array_equal(found.time.values, TIMES)


def test_a_group_is_shown_as_it_was(tmp_path):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(_dataset(), uri)
    with opened(uri) as found:
        xr.testing.assert_identical(found, _dataset())
    without = _dataset().drop_vars(["time", "lat"])
    gs.to_gridstone(without, uri, mode="w")
    with opened(uri) as found:
        xr.testing.assert_identical(found, without)


def test_a_copy_of_one_array(tmp_path):
    uri, other = str(tmp_path / "d.gs"), str(tmp_path / "o.gs")
    gs.to_gridstone(_dataset(), uri)
    gs.copy(uri, other, path="/t")
    with opened(other) as found:
        assert np.array_equal(found.time.values, TIMES)


def _labels(uri, path, dim):
    return gs.open(uri, path=path).dim(dim).labels


def test_a_coordinate_that_comes_after_its_variables(tmp_path):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(_dataset().drop_vars(["time", "lat"]), uri)
    assert _labels(uri, "/t", "time") is None
    gs.to_gridstone(_dataset()[["time", "lat"]], uri, mode="a")
    for path in ("/t", "/s"):
        assert np.array_equal(_labels(uri, path, "time"), TIMES)
    assert gs.open(uri, path="/t").sel(time="2000-01-04")["t"].tolist() == [4.0, 5.0]
    with opened(uri) as found:
        xr.testing.assert_equal(found, _dataset())


def test_a_coordinate_that_is_deleted_and_comes_again(tmp_path):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(_dataset(), uri)
    group = gs.group(uri, mode="r+")
    del group["time"]
    later = TIMES + np.timedelta64(365, "D")
    gs.to_gridstone(xr.Dataset(coords={"time": later}), uri, mode="a")
    for path in ("/t", "/s"):
        assert np.array_equal(_labels(uri, path, "time"), later)
    # They lie in the coordinate's array: an append makes both longer.
    more = _dataset().assign_coords(time=TIMES + np.timedelta64(800, "D"))
    gs.to_gridstone(more, uri, append_dim="time")
    for path in ("/t", "/s"):
        assert np.array_equal(_labels(uri, path, "time"), np.concatenate([later, more.time.values]))


def test_a_coordinate_for_arrays_that_have_coordinates_of_their_own(tmp_path):
    uri = str(tmp_path / "d.gs")
    start = np.datetime64("2000-01-01")
    days = gs.Dim("time", (start, start + np.timedelta64(2, "D")), 3, dtype="datetime64[D]")
    gs.create(uri, gs.Schema([days], [gs.Attr("v", "float64")]), path="/v")[:] = 1.0
    gs.to_gridstone(xr.Dataset(coords={"time": np.arange(3.0)}), uri, mode="a")
    with opened(uri) as found:
        assert found.time.values.tolist() == [0.0, 1.0, 2.0]
        assert found.v.values.tolist() == [1.0] * 3


def test_a_coordinate_for_arrays_that_begin_elsewhere(tmp_path):
    uri = str(tmp_path / "d.gs")
    gs.create(uri, gs.Schema([gs.Dim("time", (5, 7), 3)], [gs.Attr("v", "float64")]), path="/v")[:] = 1.0
    gs.to_gridstone(xr.Dataset(coords={"time": TIMES}), uri, mode="a")
    assert np.array_equal(_labels(uri, "/v", "time"), TIMES)


def test_a_variable_beside_a_coordinate_that_begins_elsewhere(tmp_path):
    uri = str(tmp_path / "d.gs")
    coordinate = gs.Schema([gs.Dim("time_dim", (5, 7), 3)], [gs.Attr("time", "int64")])
    gs.create(uri, coordinate, path="/time")[:] = [10, 20, 30]
    gs.to_gridstone(xr.Dataset({"v": ("time", [1.0, 2.0, 3.0])}), uri, mode="a")
    assert _labels(uri, "/v", "time").tolist() == [10, 20, 30]


def _tree():
    root = xr.Dataset({"r": ("time", [1, 2, 3])}, {"time": TIMES})
    child = xr.Dataset({"c": (("time", "z"), np.arange(6.0).reshape(3, 2))})
    return xr.DataTree.from_dict(
        {"/": root, "/a": child, "/a/b": child, "/own": child.isel(z=0).assign_coords(time=TIMES)}
    )


@pytest.mark.parametrize("group", ["/", "/below"])
def test_groups_of_a_tree_have_the_labels_of_those_above(tmp_path, group):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(_tree(), uri, group=group)
    for path in ("a/c", "a/b/c", "own/c"):
        assert np.array_equal(_labels(uri, f"{group.rstrip('/')}/{path}", "time"), TIMES)
    with opened(uri, group=f"{group.rstrip('/')}/a/b") as found:
        assert list(found.variables) == ["c"]
    with opened(uri, group=f"{group.rstrip('/')}/a/b/c") as found:
        assert np.array_equal(found.time.values, TIMES)
    for options in ({}, {"decode_times": False}, {"drop_variables": "time"}):
        with xr.open_datatree(uri, engine="gridstone", group=group, **options) as found:
            assert "time" not in found["a"].to_dataset(inherit=False).variables
            if not options:
                assert found.identical(_tree())


def test_a_group_that_is_written_alone_takes_no_labels_of_others(tmp_path):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(_dataset(), uri)
    alone = xr.Dataset({"other": ("time", [7, 8, 9])})
    gs.to_gridstone(alone, uri, group="/north")
    with opened(uri, group="/north") as found:
        xr.testing.assert_identical(found, alone)
