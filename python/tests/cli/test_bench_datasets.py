"""The rows of the comparison benchmark about datasets of xarray: what is checked, and what they write."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("dask", reason="dask is not installed")


@pytest.fixture
def engine(modules: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names the backend to xarray, which finds it by itself where Gridstone is installed."""
    from xarray.backends import plugins

    from gridstone.xarray.backend import GridstoneBackend

    known = plugins.list_engines()
    monkeypatch.setattr(plugins, "list_engines", lambda: {**known, "gridstone": GridstoneBackend()})
    yield


def missing(system: Any) -> bool:
    return any(importlib.util.find_spec(module) is None for module in (system.module, *system.also))


def prepared(folder: Path, system: Any) -> Any:
    """A task of a dataset of a few cells, with an empty place to write to."""
    from inputs import Size
    from task import Task

    shutil.rmtree(folder / "scratch", ignore_errors=True)
    (folder / "scratch").mkdir()
    system.bare = True
    system.prepare(1)
    return Task(folder, Size(0.0001), system, check=True)


def test_every_system_gives_what_was_written(engine: None, tmp_path: Path) -> None:
    """Each workload is checked beside NumPy; of systems and cases that share their code, one. No process is started."""
    from inputs import Inputs, Size
    from plan import PLAN, STORES

    Inputs(tmp_path / "inputs", Size(0.0001)).make(["weather", "month"])
    ran, built, groups = set(), set(), set()
    alike = ("X4-processes", "X4-all", "X3-close-append", "X3-close-series")
    for case in (case for case in PLAN if case.row.startswith("X") and case.key not in alike):
        for system in case.systems:
            twin = system.variant.endswith(", days") or system.variant.startswith("zstd") or system.family == "zarrs"
            twin = twin or (case.row in ("X4", "X5") and system.role == "peer")
            if twin or missing(system) or (case.group and (case.group, system.name) in groups):
                continue
            groups.add((case.group, system.name))
            task = prepared(tmp_path, system)
            store = task.store(case.store or "none")
            if case.store and (case.store, system.kept_as) not in built:
                store.parent.mkdir(parents=True, exist_ok=True)
                STORES[case.store](task, store)
                built.add((case.store, system.kept_as))
            found = case.run(task)
            assert not any((found.get("parts") or {"": found}).values()), (case.key, system.name)
            ran.add((case.key, system.family))
    assert {key for key, family in ran if family == "gridstone"} >= {"X1", "X2-map", "X2-series", "X3-append", "X4"}


def test_other_values_are_found_out(engine: None, tmp_path: Path) -> None:
    """A store in which one value of each question differs fails the checks of reads, appends and means."""
    import datasets
    from inputs import Inputs, Size
    from systems.gridstone import Dataset
    from task import WrongResultError

    weather = Inputs(tmp_path / "inputs", Size(0.0001))
    weather.make(["weather"])
    task = prepared(tmp_path, Dataset("auto, even"))
    values = np.array(weather.weather.values())
    store = task.store("weather")
    store.parent.mkdir(parents=True)
    task.system.load(weather.weather.dataset(values + np.float32(1)), store, (46, 4, 4))
    for run in (datasets.read("map"), datasets.read("series"), datasets.mean()):
        with pytest.raises(WrongResultError):
            run(prepared(tmp_path, task.system))
    datasets.load(prepared(tmp_path, task.system))
    values[0, 0, 0] += 1
    np.save(weather.weather.npy, values)
    assert not datasets.load(prepared(tmp_path, task.system))
    with pytest.raises(WrongResultError, match="the map of day"):
        datasets.read("map")(prepared(tmp_path, task.system))


def test_weather_is_the_same_each_time_and_looks_like_it(modules: None, tmp_path: Path) -> None:
    from weather import DAYS, Weather

    first, again = Weather(tmp_path / "a", 0.001), Weather(tmp_path / "b", 0.001)
    for one in (first, again):
        one.folder.mkdir()
        one.make("weather")
    values = first.values()
    assert values.shape == (DAYS, 23, 46) and values.dtype == np.float32
    assert np.array_equal(values, again.values())
    assert values.min() > 200 and values.max() < 340
    assert np.array_equal(np.round(values, 2), values), "hundredths of a kelvin"
    poles, equator = values[:, [0, -1]].mean(), values[:, 11].mean()
    assert poles < equator - 20
    north = values[:, 4].mean(axis=1)
    assert north[170:230].mean() > north[[*range(30), *range(330, 365)]].mean() + 5, "summer is warmer"
    assert np.abs(np.diff(values, axis=0)).mean() < 10 < values.std(), "one day is like the next"


def test_full_size_is_that_of_the_targets(modules: None) -> None:
    from inputs import Size
    from plan import PLAN
    from weather import Weather

    full = Weather(Path(), 1.0)
    assert full.shape == (365, 721, 1_440) and full.appended == 100
    assert full.chunk("even") == (46, 91, 180) and full.chunk("days") == (1, 721, 1_440)
    assert Weather(Path(), 4.0).appended == 100 and Weather(Path(), 0.0001).appended == 3
    titles = {case.key: case.title(Size(1.0)) for case in PLAN if case.row.startswith("X")}
    assert titles["X3-append"] == "append a day, mean of 100, durability full"
    assert "365 x 721 x 1,440" in titles["X1"] and "31 maps" in titles["X5"]
