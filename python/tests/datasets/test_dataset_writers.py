"""Promise: appends, regions and Dask's blocks, of several processes too, lose nothing, and a failure leaves nothing."""

import asyncio
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from xarray_stores import DAYS, append_day, days, failing, opened, share_meeting, together, write_region

import gridstone as gs

CONTEXT = multiprocessing.get_context("forkserver")
# What the processes import, once for all of them.
CONTEXT.set_forkserver_preload(["xarray_stores"])


@pytest.fixture(scope="module")
def workers():
    with ProcessPoolExecutor(8, CONTEXT, share_meeting, (CONTEXT.Barrier(8),)) as pool:
        yield pool


def all_at_once(pool, call, *lists):
    """The results of calls, as many at a time as there are processes: each begins when all of them do."""
    return list(pool.map(together, [call] * len(lists[0]), *lists, timeout=120))


def test_eight_processes_append_days_at_once(tmp_path, workers):
    uri = str(tmp_path / "d.gs")
    gs.to_gridstone(days(0, 1), uri)
    before = gs.group(uri).version
    versions = all_at_once(workers, append_day, [uri] * 16, range(1, 17))
    with opened(uri) as found:
        assert sorted(found.day.values.tolist()) == list(range(17))
        expected = days(0, 17)
        xr.testing.assert_identical(found.sortby("t").drop_vars("place"), expected.drop_vars("place"))
        # The labels of the array are the coordinates, in the order in which the days were committed.
        assert np.array_equal(gs.open(uri, path="/v").dim("t").labels, found.t.values)
    assert sorted(versions) == list(range(before + 1, before + 17))


def test_eight_processes_write_regions_that_overlap_at_once(tmp_path, workers):
    uri = str(tmp_path / "d.gs")
    start = xr.Dataset({"v": (("y", "x"), np.zeros((64, 32)))})
    gs.to_gridstone(start, uri, encoding={"v": {"chunks": (16, 8)}})
    versions = all_at_once(workers, write_region, [uri] * 8, range(8))
    order = np.argsort(versions)
    expected = np.zeros((64, 32))
    for number in order:
        expected[5:55, 3 * number : 3 * number + 6] = number + 1
    with opened(uri) as found:
        assert np.array_equal(found.v.values, expected)
    assert len(set(versions)) == 8


def test_an_append_is_one_commit_and_keeps_what_was_there(tmp_path):
    uri = tmp_path / "d.gs"
    first = gs.to_gridstone(days(0, 3), uri, message="first")
    with opened(uri) as before:
        version = gs.to_gridstone(days(3, 7), uri, append_dim="t", message="more")
        assert version == gs.group(uri).version and gs.group(uri).history()[-1].message == "more"
        xr.testing.assert_identical(before, days(0, 3))
    with opened(uri) as found:
        xr.testing.assert_identical(found, days(0, 7))
    with opened(uri, version=first) as found:
        xr.testing.assert_identical(found, days(0, 3))


@pytest.mark.parametrize("chunks", [{"t": 1}, {"t": 2, "x": 3}, {"t": -1}])
def test_dasks_blocks_are_one_commit(tmp_path, chunks):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 5).chunk(chunks), uri)
    before = gs.group(uri).version
    gs.to_gridstone(days(5, 9).chunk(chunks), uri, append_dim="t")
    assert gs.group(uri).version == before + 1
    with opened(uri) as found:
        xr.testing.assert_identical(found, days(0, 9))
        assert np.array_equal(gs.open(uri, path="/v").dim("t").labels, DAYS[:9])


@pytest.mark.parametrize("scheduler", ["threads", "sync", "processes"])
def test_schedulers(tmp_path, workers, scheduler):
    uri = tmp_path / "d.gs"
    with dask.config.set(scheduler=scheduler, pool=workers if scheduler == "processes" else None):
        gs.to_gridstone(days(0, 4).chunk({"t": 3, "x": 2}), uri)
        part = days(1, 3, 7.0)[["v"]].chunk({"t": 1}).drop_vars(["t", "x"])
        gs.to_gridstone(part, uri, region={"t": slice(1, 3)})
    expected = days(0, 4)
    expected.v[1:3] = days(1, 3, 7.0).v
    with opened(uri) as found:
        xr.testing.assert_identical(found, expected)


def test_what_is_not_computed_is_written_later(tmp_path, workers):
    uri = tmp_path / "d.gs"
    lazy = days(0, 4).chunk({"t": 2})
    later = gs.to_gridstone(lazy, uri, compute=False)
    with opened(uri) as found:
        assert np.isnan(found.v.values).all() and found.x.equals(lazy.x)
    assert len(pickle.dumps(later)) < 100_000
    version = later.compute(scheduler="processes", pool=workers)
    assert version == gs.group(uri).version
    with opened(uri) as found:
        xr.testing.assert_identical(found, days(0, 4))


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_graph_that_fails_leaves_nothing(tmp_path, workers, scheduler):
    uri = tmp_path / "d.gs"
    broken = days(0, 5).chunk({"t": 1})
    broken["v"] = broken.v.copy(data=da.map_blocks(failing, broken.v.data))
    with dask.config.set(scheduler=scheduler, pool=workers if scheduler == "processes" else None):
        with pytest.raises(RuntimeError, match="a block that fails"):
            gs.to_gridstone(broken, uri)
        assert not gs.exists(uri)
        gs.to_gridstone(days(0, 2), uri)
        version = gs.group(uri).version
        for options in ({"append_dim": "t"}, {"mode": "w"}):
            with pytest.raises(RuntimeError, match="a block that fails"):
                gs.to_gridstone(broken, uri, **options)
    assert gs.group(uri).version == version
    with opened(uri) as found:
        xr.testing.assert_identical(found, days(0, 2))


def test_regions_by_coordinates(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 9), uri)
    part = days(3, 5, -1.0).isel(x=slice(1, 4))[["v"]]
    gs.to_gridstone(part, uri, region="auto")
    expected = days(0, 9)
    expected.v[3:5, 1:4] *= -1
    with opened(uri) as found:
        xr.testing.assert_identical(found, expected)
    gs.to_gridstone(part.drop_vars("x"), uri, region={"t": "auto", "x": slice(1, 4)}, mode="a")
    for wrong, words in (
        (days(3, 5)[["v"]].assign_coords(x=np.arange(5) + 0.25), "is not there"),
        (days(3, 6)[["v"]].isel(t=[0, 2]), "do not follow each other"),
        (days(3, 5)[["v"]].drop_vars("t"), "needs coordinates"),
    ):
        with pytest.raises(gs.InputError, match=words):
            gs.to_gridstone(wrong, uri, region="auto")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"region": {"t": slice(8, 10)}}, "positions along it"),
        ({"region": {"t": slice(0, 1)}}, "positions along it"),
        ({"region": {"q": slice(0, 2)}}, "does not have"),
        ({"region": {"t": slice(0, 2, 2)}}, "without a step"),
        ({"region": 5}, "dict of slices"),
        ({"region": {"t": slice(0, 2)}, "append_dim": "t"}, "give one of them"),
        ({"region": {"t": slice(0, 2)}, "mode": "w"}, 'mode="a"'),
        ({"region": {"t": slice(0, 2)}, "encoding": {"v": {"dtype": "f4"}}}, "leave out encoding"),
        ({"append_dim": "q"}, "no variable of the Dataset"),
        ({"append_dim": "x"}, "along it"),
        ({"mode": "x"}, "mode"),
        ({}, "holds"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path, options, words):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 9), uri)
    version = gs.group(uri).version
    with pytest.raises((gs.InputError, gs.errors.ExistsError), match=words):
        gs.to_gridstone(days(3, 5)[["v"]].drop_vars(["t", "x"]), uri, **options)
    assert gs.group(uri).version == version


def test_appends_that_would_leave_other_variables_shorter_are_refused(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 2), uri)
    with pytest.raises(gs.InputError, match="append them together"):
        gs.to_gridstone(days(2, 3)[["v"]], uri, append_dim="t")


def test_a_variable_that_is_new_in_an_append_is_unwritten_before(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 2), uri)
    more = days(2, 3)
    more["w"] = more.v * 2
    gs.to_gridstone(more, uri, append_dim="t")
    with opened(uri) as found:
        assert np.isnan(found.w.values[:2]).all() and np.array_equal(found.w.values[2], more.v.values[0] * 2)


def test_a_variable_that_is_new_in_an_append_has_the_labels_of_the_group(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 3), uri)
    gs.to_gridstone(days(3, 5).assign(w=days(3, 5).v * 2.0), uri, append_dim="t")
    assert np.array_equal(gs.open(uri, path="/w").dim("t").labels, DAYS[:5])
    assert "in another array" in repr(gs.open(uri, path="/w").schema)


def test_appends_have_the_encoding_that_is_there(tmp_path):
    uri = tmp_path / "d.gs"
    asked = {
        "v": {"dtype": "i4", "scale_factor": 0.5, "_FillValue": -1},
        "t": {"units": "hours since 2000-01-01", "dtype": "i8"},
    }
    gs.to_gridstone(days(0, 2), uri, encoding=asked)
    gs.to_gridstone(days(2, 4), uri, append_dim="t")
    gs.to_gridstone(days(1, 2, 3.0)[["v"]], uri, region="auto")
    assert gs.open(uri, path="/t")[...].tolist() == [0, 24, 48, 72]
    expected = days(0, 4)
    expected.v[1] *= 3
    with opened(uri) as found:
        xr.testing.assert_identical(found, expected)


def test_longer_texts_behind_those_of_a_fixed_width(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(xr.Dataset({"s": ("t", ["ab", "c"])}), uri)
    gs.to_gridstone(xr.Dataset({"s": ("t", ["longer"])}), uri, append_dim="t")
    with opened(uri) as found:
        assert found.s.dtype == np.dtype("U6") and found.s.values.tolist() == ["ab", "c", "longer"]
    gs.to_gridstone(xr.Dataset({"s": ("t", np.array(["longest one"], object))}), uri, append_dim="t")
    with opened(uri) as found:
        assert found.s.values.tolist() == ["ab", "c", "longer", "longest one"]


def test_replaced_coordinates_are_the_labels_of_what_stays(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 3), uri)
    moved = xr.Dataset(coords={"t": DAYS[10:13]})
    gs.to_gridstone(moved, uri, mode="a")
    assert np.array_equal(gs.open(uri, path="/v").dim("t").labels, DAYS[10:13])
    with opened(uri) as found:
        xr.testing.assert_identical(found, days(0, 3).assign_coords(moved.coords))


def test_labels_lie_once_and_attributes_come_with_the_cells(tmp_path):
    uri = tmp_path / "d.gs"
    whole = days(0, 7).assign(w=days(0, 7).v * 2).assign_attrs(title="a week")
    assert gs.to_gridstone(whole.isel(t=slice(0, 3)), uri) == 2, "one commit, after that of the store's root"
    root = gs.group(uri, mode="r+")
    assert root.meta["title"] == "a week"
    assert all("in another array" in repr(root[name].schema) for name in "vw")
    gs.to_gridstone(whole.isel(t=slice(3, 7)), uri, append_dim="t")
    assert np.array_equal(root["w"].dim("t").labels, DAYS[:7]) and root.version == 3
    assert root["v"].sel(t=DAYS[5])["v"].tolist() == whole.v.sel(t=DAYS[5]).values.tolist()
    with opened(uri) as found:
        xr.testing.assert_identical(found, whole)
    del root["t"]
    assert root["v"].dim("t").labels is None and root["v"].shape == whole.v.shape


def test_encoded_coordinates_are_labels_as_they_were(tmp_path):
    uri = tmp_path / "d.gs"
    encoding = {"t": {"units": "hours since 2000-01-01", "dtype": "int32"}}
    gs.to_gridstone(days(0, 3), uri, encoding=encoding)
    assert gs.open(uri, path="/t").dtype == "int32"
    assert np.array_equal(gs.open(uri, path="/v").dim("t").labels, DAYS[:3])
    gs.to_gridstone(days(3, 5), uri, append_dim="t")
    assert np.array_equal(gs.open(uri, path="/v").dim("t").labels, DAYS[:5])
    with opened(uri) as found:
        xr.testing.assert_identical(found, days(0, 5))


def test_a_group_that_is_replaced_keeps_its_past(tmp_path):
    uri = tmp_path / "d.gs"
    first = gs.to_gridstone(days(0, 3), uri, group="/a/b")
    gs.to_gridstone(xr.Dataset({"w": 1}), uri, group="a/b", mode="w")
    with opened(uri, group="a/b") as found:
        xr.testing.assert_identical(found, xr.Dataset({"w": 1}))
    gs.tag(uri, "then", version=first)
    for options in (
        {"version": first},
        {"version": "then"},
        {"timestamp": gs.group(uri).history()[first - 1].timestamp},
    ):
        with opened(uri, group="a/b", **options) as found:
            xr.testing.assert_identical(found, days(0, 3))


def test_threads_and_tasks_share_a_lazy_variable(tmp_path):
    uri = tmp_path / "d.gs"
    expected = days(0, 40)
    gs.to_gridstone(expected, uri)
    with opened(uri, cache=False) as found, ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda day: found.v[day].values, list(range(40)) * 3))
        assert np.array_equal(np.stack(read[:40]), expected.v.values)

        async def load():
            return await asyncio.gather(*[found.isel(t=[day, 0]).load_async() for day in range(8)])

        for day, part in enumerate(asyncio.run(load())):
            assert np.array_equal(part.v.values, expected.v.values[[day, 0]])


def test_tasks_of_datasets_before_and_after_a_commit_differ(tmp_path):
    uri = tmp_path / "d.gs"
    gs.to_gridstone(days(0, 3), uri)
    before = opened(uri, chunks={})
    gs.to_gridstone(days(0, 3, 2.0)[["v"]], uri, region="auto")
    after = opened(uri, chunks={})
    assert np.array_equal((after.v - before.v).compute().values, days(0, 3).v.values)


def test_many_files_as_one(tmp_path):
    for number in range(3):
        gs.to_gridstone(days(2 * number, 2 * number + 2), tmp_path / f"d{number}.gs")
    with xr.open_mfdataset(
        sorted(tmp_path.glob("*.gs")), engine="gridstone", data_vars="minimal", compat="no_conflicts"
    ) as found:
        xr.testing.assert_identical(found.compute(), days(0, 6))
