"""Promise: a region writes what it is given and nothing beside it; what it cannot write it refuses."""

import numpy as np
import pytest
import xarray as xr
from xarray_stores import days, opened

import gridstone as gs
from gridstone.xarray import region as region_module

WHERE = {"t": slice(1, 3)}


def stored(uri):
    """Days, with a scalar, coordinates of every kind and a variable beside them."""
    made = days(0, 4).assign(level=7, area=("x", np.arange(5.0)))
    made = made.assign_coords(run=3, night=("t", np.arange(4.0)), name=("x", list("vwxyz")))
    gs.to_gridstone(made, uri)
    return made


def part_of(made, *names):
    return made[list(names)].isel(t=slice(1, 3)).reset_coords(drop=True).drop_vars("x")


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("name", "other"),
    [("level", 8), ("run", 4), ("name", ("x", list("vwxyq"))), ("x", np.arange(5) + 1.0)],
)
def test_what_a_region_leaves_out_must_be_as_it_is_there(tmp_path, name, other, lazy):
    uri = tmp_path / "d.gs"
    made = stored(uri)
    version = gs.group(uri).version
    wrong = part_of(made, "v")
    wrong = wrong.assign({name: other}) if name == "level" else wrong.assign_coords({name: other})
    with pytest.raises(gs.InputError, match=f"{name}.*others? than"):
        gs.to_gridstone(wrong.chunk() if lazy else wrong, uri, region=WHERE)
    assert gs.group(uri).version == version
    same = part_of(made, "v") * 0
    same = same.assign(level=made.level) if name == "level" else same.assign_coords({name: made[name]})
    gs.to_gridstone(same.chunk() if lazy else same, uri, region=WHERE)
    with opened(uri) as found:
        expected = made.copy(deep=True)
        expected.v[1:3] = 0
        xr.testing.assert_identical(found, expected)


def test_coordinates_that_the_group_lacks_are_refused(tmp_path):
    uri = tmp_path / "d.gs"
    made = stored(uri)
    for coordinate in ({"height": 2.0}, {"mast": ("x", np.arange(5))}, {"hour": ("t", [1, 2])}):
        with pytest.raises(gs.NotFoundError, match=next(iter(coordinate))):
            gs.to_gridstone(part_of(made, "v").assign_coords(coordinate), uri, region=WHERE)


def test_other_coordinates_along_a_region_are_written(tmp_path):
    uri = tmp_path / "d.gs"
    made = stored(uri)
    part = part_of(made, "v").assign_coords(night=("t", [-1.0, -2.0]))
    gs.to_gridstone(part, uri, region=WHERE)
    with opened(uri) as found:
        assert found.night.values.tolist() == [0, -1, -2, 3] and "night" in found.coords


def reverse(uri, made):
    """Another commit that turns the days around, values and coordinates."""
    gs.to_gridstone(made.isel(t=slice(None, None, -1)), uri, mode="a")


def turned_coordinates(uri, made):
    """A commit that changes cells of the coordinate in its place: its array stays."""
    gs.open(uri, path="/t", mode="r+")["t"][...] = made.t.values[::-1]


@pytest.mark.parametrize("between", [reverse, turned_coordinates])
@pytest.mark.parametrize("region", ["auto", {"t": "auto"}, WHERE])
def test_coordinates_that_change_before_the_commit(tmp_path, monkeypatch, between, region):
    uri = tmp_path / "d.gs"
    made = days(0, 4)
    gs.to_gridstone(made, uri)
    found, calls = region_module._found_parts, []

    def interrupted(*given):
        parts = found(*given)
        calls.append(given)
        if len(calls) == 1:
            between(uri, made)
        return parts

    monkeypatch.setattr(region_module, "_found_parts", interrupted)
    day = days(1, 2, -1.0)[["v"]]
    if region == WHERE:
        with pytest.raises(gs.InputError, match="others than"):
            gs.to_gridstone(made[["v"]].isel(t=slice(1, 3)), uri, region=region)
        return
    gs.to_gridstone(day, uri, region=region)
    assert len(calls) == 2
    with opened(uri) as then:
        assert np.array_equal(then.v.sel(t=day.t[0]).values, day.v[0].values)


@pytest.mark.parametrize("between", [reverse, turned_coordinates])
@pytest.mark.parametrize("compute", [True, False])
def test_coordinates_that_change_while_blocks_are_computed(tmp_path, between, compute):
    uri = tmp_path / "d.gs"
    made = days(0, 4)
    gs.to_gridstone(made, uri)

    def slow(block):
        if block.size:
            between(uri, made)
        return block

    day = days(1, 2, -1.0)[["v"]].chunk()
    day["v"] = day.v.copy(data=day.v.data.map_blocks(slow, dtype=float, meta=np.empty((0, 0))))
    with pytest.raises((gs.errors.ConflictError, gs.NotFoundError), match=r"changed by another commit|was removed"):
        gs.to_gridstone(day, uri, region="auto", compute=compute).compute()
    before = made.v.values
    with opened(uri) as then:
        assert sorted(then.v.values.ravel().tolist()) == sorted(before.ravel().tolist())


def test_a_day_that_is_appended_meanwhile_is_in_no_regions_way(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 4), uri)
    later = gs.to_gridstone(days(1, 2, -1.0)[["v"]].chunk(), uri, region="auto", compute=False)
    gs.to_gridstone(days(4, 6), uri, append_dim="t")
    later.compute()
    expected = days(0, 6)
    expected.v[1] *= -1
    with opened(uri) as found:
        xr.testing.assert_identical(found, expected)
