"""The workloads of datasets of xarray: written, opened, appended to, averaged through Dask, and drawn."""

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import disk
from inputs import REPEATS_INSIDE, Array
from meter import Meter
from systems.base import DatasetSystem
from task import Builder, Procedure, Sample, Task, expect
from weather import MONTH, VARIABLE, Weather

WORKERS = 2

Ask = Callable[[Any, Weather], Any]


def _weather(task: Task) -> Weather:
    return task.inputs.weather


def _warm(task: Task) -> Path:
    """A store of a few cells, written by the system itself: what it does for the first time is in no clock."""
    folder, weather = task.scratch / "warm", _weather(task)
    small = weather.dataset(weather.values()[:4, :8, :8].copy())
    task.system.load(small, folder, (2, 8, 8))
    return folder


# Stores.


def build(task: Task, folder: Path) -> None:
    """The whole dataset."""
    weather = _weather(task)
    task.system.load(weather.dataset(np.array(weather.values())), folder, weather.chunk(task.system.layout))


BUILDERS: dict[str, Builder] = {"weather": build}


# Writing.


def load(task: Task) -> Sample:
    """Writes the whole dataset, which lies in memory; durable within the clock."""
    _warm(task)
    weather, target = _weather(task), task.scratch / "target"
    dataset = weather.dataset(np.array(weather.values()))
    meter = Meter()
    with meter.clock():
        task.system.load(dataset, target, weather.chunk(task.system.layout))
    if task.check:
        _expect_all(task, target, weather.values())
        return {}
    return meter.sample(disk.size_bytes(target))


def append(*, durable: bool) -> Procedure:
    """Writes the first day, appends others one by one, each from an opening of its own, then
    reads the series of points of them. Parts: "append", the mean of one, and "series".
    """

    def measured(task: Task) -> Sample:
        weather, target = _weather(task), task.scratch / "target"
        count = weather.appended
        values = np.array(weather.values()[: count + 1])
        _warm_append(task, weather)
        task.system.load(weather.dataset(values[:1]), target, weather.chunk(task.system.layout))
        meter = Meter()
        for day in range(1, count + 1):
            dataset, prepared = weather.dataset(values[day : day + 1], day), task.system.renew()
            with meter.clock():
                task.system.append(dataset, target, prepared)
                if durable:
                    task.system.finish(target)
        size = disk.size_bytes(target)
        if task.check:
            _expect_all(task, target, values)
            return {"parts": {"append": {}, "series": {}}}
        series = _opened(task, target, [_series(*point) for point in weather.points_asked(REPEATS_INSIDE + 1)])
        return {"parts": {"append": meter.sample(size, mean=True), "series": series.sample(size)}}

    return measured


def _warm_append(task: Task, weather: Weather) -> None:
    more = weather.dataset(weather.values()[4:5, :8, :8].copy(), 4)
    task.system.append(more, _warm(task), task.system.renew())


def _expect_all(task: Task, folder: Path, values: Array) -> None:
    """That a dataset holds these values and the coordinates that belong to them."""
    dataset = task.system.open(folder, task.system.renew())
    expected = _weather(task).dataset(values)
    expect(dict(dataset.sizes) == dict(expected.sizes), f"the dataset has the sizes {dict(dataset.sizes)}")
    for name in expected.coords:
        expect(np.array_equal(dataset[name].values, expected[name].values), f"the coordinate {name!r} differs")
    for first in range(0, len(values), 64):
        found = dataset[VARIABLE].isel(time=slice(first, first + 64)).values
        expect(np.array_equal(found, values[first : first + 64]), f"the days from {first} on read differently")
    dataset.close()


# Reading.


def read(kind: str) -> Procedure:
    """Opens the dataset and reads the "map" of a day, or the "series" of a point; opening is in the clock."""

    def measured(task: Task) -> Sample:
        weather, store = _weather(task), task.store("weather")
        count = 2 if task.check else REPEATS_INSIDE + 1
        if kind == "map":
            asked = [_map(day) for day in weather.days_asked(count)]
        else:
            asked = [_series(*point) for point in weather.points_asked(count)]
        meter = _opened(task, store, asked)
        return {} if task.check else meter.sample(disk.size_bytes(store))

    return measured


def _opened(task: Task, store: Path, asked: list["_Question"]) -> Meter:
    """Each question from a new opening; the first one warms up."""
    meter = Meter()
    for i, question in enumerate(asked):
        prepared = task.system.renew()
        if i == 0 or task.check:
            dataset, found = _answered(task, store, prepared, question)
        else:
            with meter.clock():
                dataset, found = _answered(task, store, prepared, question)
        if task.check:
            expect(np.array_equal(found, question.of(_weather(task).values())), f"{question.words} reads differently")
        dataset.close()
        del dataset, found, prepared
    return meter


def _answered(task: Task, store: Path, prepared: Any, question: "_Question") -> tuple[Any, Array]:
    dataset = task.system.open(store, prepared)
    return dataset, dataset[VARIABLE].isel(question.where).values


class _Question:
    """A selection by positions, and what NumPy finds there."""

    def __init__(self, words: str, **where: Any) -> None:
        self.words, self.where = words, where

    def of(self, values: Array) -> Array:
        """The answer by NumPy."""
        return values[tuple(self.where.get(dim, slice(None)) for dim in ("time", "latitude", "longitude"))]


def _map(day: int) -> _Question:
    return _Question(f"the map of day {day}", time=day)


def _series(row: int, col: int) -> _Question:
    return _Question(f"the series of the point {row}, {col}", latitude=row, longitude=col)


# Means.


def mean(*, part: str = "quarter", processes: bool = False) -> Procedure:
    """The mean over time, of a "quarter" of the globe or of "all" of it, by two workers of Dask: threads, or processes
    of one thread that run already. Opening is not in the clock.
    """

    def measured(task: Task) -> Sample:
        weather = _weather(task)
        warm, store = _warm(task), task.store("weather")
        rows, cols = weather.quarter if part == "quarter" else (slice(None), slice(None))
        meter = Meter()
        with _workers(task, processes=processes) as asked:
            asked(meter, task.system.open(warm, task.system.renew(), _chunks(task.system)), {})
            meter.seconds.clear()
            meter.cpu_seconds.clear()
            dataset = task.system.open(store, task.system.renew(), _chunks(task.system))
            found = asked(meter, dataset, {"latitude": rows, "longitude": cols})
            dataset.close()
        if task.check:
            wanted = weather.values()[:, rows, cols].mean(axis=0, dtype=np.float64)
            expect(np.allclose(found, wanted, rtol=2e-6, atol=0), "the mean over time differs")
            return {}
        return meter.sample(disk.size_bytes(store))

    return measured


def _chunks(system: DatasetSystem) -> Any:
    return None if system.reduces else {}


@contextmanager
def _workers(task: Task, *, processes: bool) -> Iterator[Callable[[Meter, Any, dict[str, slice]], Array]]:
    """What asks for a mean over time; with processes the CPU seconds are those of the workers too."""
    if not processes:
        yield lambda meter, dataset, where: _mean(meter, task.system, dataset, where)
        return
    import dask
    from distributed import Client, LocalCluster

    settings = {"temporary-directory": str(task.scratch), "distributed.worker.memory.terminate": False}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for module in task.system.also:
            client.run(importlib.import_module, module)

        def asked(meter: Meter, dataset: Any, where: dict[str, slice]) -> Array:
            before = sum(client.run(time.process_time).values())
            found = _mean(meter, task.system, dataset, where, client)
            meter.cpu_seconds[-1] += sum(client.run(time.process_time).values()) - before
            return found

        yield asked


def _mean(meter: Meter, system: DatasetSystem, dataset: Any, where: dict[str, slice], client: Any = None) -> Array:
    how = {"scheduler": client} if client else {"scheduler": "threads", "num_workers": WORKERS}
    with meter.clock():
        variable = dataset[VARIABLE].isel(where)
        found = system.mean(variable, "time") if system.reduces else variable.mean("time").compute(**how)
        values: Array = found.values
    return values


# The first plot.


def plot(task: Task) -> Sample:
    """Opens a NetCDF file where it lies, and draws the map of a day; both are timed, imports are not."""
    weather, system = _weather(task), task.system
    _drawn(system.open(weather.small, task.scratch / "warm", system.renew()), 0, task.scratch / "warm.png").close()
    meter, prepared, day = Meter(), system.renew(), weather.days_asked(1)[0] % MONTH
    with meter.clock():
        dataset = system.open(weather.month, task.scratch / "store", prepared)
    with meter.clock():
        _drawn(dataset, day, task.scratch / "map.png")
    if task.check:
        _expect_plot(task, dataset, day)
        return {}
    told = {"seconds": sum(meter.seconds), "cpu_seconds": sum(meter.cpu_seconds), "each": meter.seconds}
    return {**meter.sample(weather.month.stat().st_size, 0), **told}


def _drawn(dataset: Any, day: int, target: Path) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4))
    dataset[VARIABLE].isel(time=day).plot.imshow(ax=figure.subplots())
    figure.savefig(target)
    return dataset


def _expect_plot(task: Task, dataset: Any, day: int) -> None:
    """That the picture is that of the values, drawn from memory."""
    weather = _weather(task)
    dataset.close()
    expected = weather.dataset(weather.month_values())
    _drawn(expected, day, task.scratch / "expected.png")
    same = (task.scratch / "expected.png").read_bytes() == (task.scratch / "map.png").read_bytes()
    expect(same, "the picture differs from that of the values")
