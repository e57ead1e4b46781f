"""Promise: whatever is committed between the look at a group and a commit of ours, the group stays one Dataset."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr
from xarray_stores import days, opened

import gridstone as gs
from gridstone.xarray import work


def interrupted(monkeypatch, between):
    """Has another commit come when the first try of a call has done all but its own commit."""
    fill, calls = work._fill, []

    def filled(*given):
        fill(*given)
        calls.append(given)
        if len(calls) == 1:
            between()

    monkeypatch.setattr(work, "_fill", filled)
    return calls


def test_a_variable_is_added_while_a_day_is_appended(tmp_path, monkeypatch):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 3), uri)
    calls = interrupted(monkeypatch, lambda: gs.to_gridstone(days(3, 4), uri, append_dim="t"))
    with pytest.raises(gs.InputError, match="existing dimension 't'"):
        gs.to_gridstone(xr.Dataset({"w": ("t", np.zeros(3))}), uri, mode="a")
    assert len(calls) == 2
    with opened(uri) as found:
        xr.testing.assert_identical(found, days(0, 4))


def test_a_day_is_appended_while_a_variable_is_added(tmp_path, monkeypatch):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 3), uri)
    calls = interrupted(monkeypatch, lambda: gs.to_gridstone(xr.Dataset({"w": ("t", np.zeros(3))}), uri, mode="a"))
    with pytest.raises(gs.InputError, match="'w'; a Dataset has one length"):
        gs.to_gridstone(days(3, 4), uri, append_dim="t")
    assert len(calls) == 2
    with opened(uri) as found:
        xr.testing.assert_identical(found.drop_vars("w"), days(0, 3))


@pytest.mark.parametrize("mode", ["a", "w"])
@pytest.mark.parametrize("size", [2, 3])
def test_two_variables_of_one_dimension_are_added_at_once(tmp_path, monkeypatch, mode, size):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(xr.Dataset({"first": 1}), uri)
    one, other = xr.Dataset({"a": ("x", np.arange(3))}), xr.Dataset({"b": ("x", np.arange(size))})
    interrupted(monkeypatch, lambda: gs.to_gridstone(other, uri, mode="a"))
    if mode == "a" and size == 2:
        with pytest.raises(gs.InputError, match="existing dimension 'x'"):
            gs.to_gridstone(one, uri, mode=mode)
        expected = other.assign(first=1)
    else:
        gs.to_gridstone(one, uri, mode=mode)
        expected = one.merge(other).assign(first=1) if mode == "a" else one
    with opened(uri) as found:
        assert set(found.variables) == set(expected.variables)
        xr.testing.assert_equal(found, expected)


@pytest.mark.parametrize("lazy", [False, True])
def test_many_add_variables_and_days_at_once(tmp_path, lazy):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 3), uri)
    added = [xr.Dataset({f"w{number}": ("x", np.full(5, number))}) for number in range(6)]
    calls = [(one.chunk() if lazy else one, {"mode": "a"}) for one in added]
    calls[3:3] = [(days(at, at + 1)[["v", "day"]], {"append_dim": "t"}) for at in (3, 4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda call: gs.to_gridstone(call[0], uri, **call[1]), calls))
    with opened(uri) as found:
        assert sorted(found.day.values.tolist()) == list(range(5))
        for number, one in enumerate(added):
            xr.testing.assert_equal(found[f"w{number}"].drop_vars("x"), one[f"w{number}"])
