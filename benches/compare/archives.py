"""The workloads of foreign files: what is asked of them where they lie, of what was loaded, and of h5py."""

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import disk
import questions
from files import COLUMNS, FIELD, RUN_SHAPE, Box, Files, Spectrum
from inputs import REPEATS_INSIDE, Columns
from meter import Meter
from startup import started
from systems.base import FileHandle
from task import Builder, Procedure, Sample, Task, expect

BOXES = 100
"""Random boxes that are read one after the other."""
AGGREGATIONS = 100
"""Questions asked one after the other."""

Ask = Callable[[FileHandle, Files], float | Columns]


def _files(task: Task) -> Files:
    return task.inputs.files


def _size_bytes(task: Task, store: Path, *sources: Path) -> int:
    """The bytes of the store, and of the files that it reads."""
    inside = disk.size_bytes(store) if store.exists() else 0
    return inside + (sum(path.stat().st_size for path in sources) if task.system.in_place else 0)


# Stores.


def build_stack(task: Task, folder: Path) -> None:
    """The stack, attached, loaded, or left where it is."""
    task.system.take(_files(task).stack, folder, [FIELD], task.system.renew()).close()


def build_particles(task: Task, folder: Path) -> None:
    """The particles, as the stack."""
    task.system.take(_files(task).particles, folder, COLUMNS, task.system.renew()).close()


def build_series(task: Task, folder: Path) -> None:
    """The series, as one array."""
    task.system.join(_files(task).runs, folder, task.system.renew())


BUILDERS: dict[str, Builder] = {"stack": build_stack, "particles": build_particles, "series": build_series}


# The first answer.


def first_mean(task: Task) -> Sample:
    """Takes the stack as it lies, and asks for the mean of 200 whole chunks; both are timed."""
    return _first(task, _files(task).stack, [FIELD], lambda handle, files: handle.mean(files.first))


def first_spectrum(task: Task) -> Sample:
    """Takes the eight datasets as they lie, and asks for the spectrum; both are timed."""
    return _first(task, _files(task).particles, COLUMNS, lambda handle, files: handle.spectrum())


def _first(task: Task, source: Path, names: tuple[str, ...] | list[str], ask: Ask) -> Sample:
    folder, prepared = task.scratch / "store", task.system.renew()
    warm = task.system.take(_files(task).small, task.scratch / "warm", names, task.system.renew())
    if len(names) == 1:
        warm.mean(tuple(slice(0, 4) for _ in range(3)))
    else:
        warm.spectrum()
    warm.close()
    meter = Meter()
    with meter.clock():
        handle = task.system.take(source, folder, names, prepared)
    with meter.clock():
        found = ask(handle, _files(task))
    handle.close()
    if task.check:
        _expect(found, _files(task))
        return {}
    return _in_all(meter, _size_bytes(task, folder, source))


def _in_all(meter: Meter, disk_bytes: int) -> Sample:
    """The time of all that was clocked, and beside it that of each."""
    told = {"seconds": sum(meter.seconds), "cpu_seconds": sum(meter.cpu_seconds), "each": meter.seconds}
    return {**meter.sample(disk_bytes, 0), **told}


def _expect(found: float | Columns, files: Files) -> None:
    if isinstance(found, dict):
        expected = Spectrum()
        for _, columns in files.slabs():
            expected.add(columns["energy"], columns["ux"])
        questions.expect_groups(found, expected.columns(), ["energy"])
    else:
        _expect_mean(found, files, files.first)


def _expect_mean(found: float, files: Files, box: Box) -> None:
    wanted = files.mean(box)
    expect(math.isclose(found, wanted, rel_tol=1e-6), f"the mean of {box} is {found}, not {wanted}")


def process(task: Task) -> Sample:
    """The same in a process of its own, from its start to its end: with imports, after which it is asked once."""
    files = _files(task)
    seconds, cpu = [], []
    for i in range(1 if task.check else REPEATS_INSIDE + 1):
        statement = task.system.script(files.stack, task.scratch / str(i), files.first)
        if task.check:
            with os.popen(f'"{sys.executable}" -c "{statement}; print(found)"') as told:
                _expect_mean(float(told.read()), files, files.first)
            return {}
        took = started(statement)
        if i:  # the first one warms up
            seconds.append(took[0])
            cpu.append(took[1])
    sample = Meter().sample_of(seconds, cpu)
    return {**sample, "disk_bytes": _size_bytes(task, task.scratch, files.stack)}


# Reads.


def scan(task: Task) -> Sample:
    """Everything into a buffer that was used before, 16 steps after 16 steps."""
    files, store = _files(task), task.store("stack")
    buffer = np.zeros((16, *files.shape[1:]), np.float32)
    parts = [slice(at, min(at + 16, files.shape[0])) for at in range(0, files.shape[0], 16)]
    meter = Meter()
    for _ in range(1 if task.check else 3):
        handle = task.system.open(files.stack, store, task.system.renew())
        handle.read((slice(0, 1), *files.everything[1:]))  # warms up
        if task.check:
            for part in parts:
                box, out = (part, *files.everything[1:]), buffer[: part.stop - part.start]
                handle.read_into(box, out)
                expect(np.array_equal(out, files.read(box)), f"the steps {part} read differently")
            handle.close()
            return {}
        with meter.clock():
            for part in parts:
                handle.read_into((part, *files.everything[1:]), buffer[: part.stop - part.start])
        handle.close()
    return meter.sample(_size_bytes(task, store, files.stack))


def scan_mean(task: Task) -> Sample:
    """The mean of everything."""
    files, store = _files(task), task.store("stack")
    meter = Meter()
    for _ in range(1 if task.check else 3):
        handle = task.system.open(files.stack, store, task.system.renew())
        handle.read((slice(0, 1), *files.everything[1:]))
        with meter.clock():
            found = handle.mean(files.everything)
        handle.close()
        if task.check:
            _expect_mean(found, files, files.everything)
            return {}
    return meter.sample(_size_bytes(task, store, files.stack))


def read(kind: str) -> Procedure:
    """A box of 20 steps at a random place, each time from a new opening, which is not timed."""

    def measured(task: Task) -> Sample:
        files, store = _files(task), task.store("stack")
        meter = Meter()
        for i, box in enumerate(files.boxes(kind, 2 if task.check else REPEATS_INSIDE + 1)):
            handle = task.system.open(files.stack, store, task.system.renew())
            if i == 0 or task.check:
                found = handle.read(box)  # the first one warms up
            else:
                with meter.clock():
                    found = handle.read(box)
            handle.close()
            if task.check:
                expect(np.array_equal(found, files.read(box)), f"the box {box} reads differently")
            del found
        return {} if task.check else meter.sample(_size_bytes(task, store, files.stack))

    return measured


def many_boxes(task: Task) -> Sample:
    """A hundred random boxes, one after the other, of one opening; the mean of one."""
    files, store = _files(task), task.store("stack")
    handle = task.system.open(files.stack, store, task.system.renew())
    meter = Meter()
    for box in files.boxes("random", BOXES if not task.check else 3):
        with meter.clock():
            found = handle.read(box)
        if task.check:
            expect(np.array_equal(found, files.read(box)), f"the box {box} reads differently")
    handle.close()
    return {} if task.check else meter.sample(_size_bytes(task, store, files.stack), mean=True)


# Questions.


def spectrum(task: Task) -> Sample:
    """The spectrum of the particles, each time from a new opening, which is not timed."""
    files, store = _files(task), task.store("particles")
    meter = Meter()
    for i in range(1 if task.check else 4):
        handle = task.system.open(files.particles, store, task.system.renew())
        if i == 0:
            found = handle.spectrum()  # the first one warms up
        else:
            with meter.clock():
                found = handle.spectrum()
        handle.close()
        if task.check:
            _expect(found, files)
            return {}
    return meter.sample(_size_bytes(task, store, files.particles))


def aggregations(task: Task) -> Sample:
    """Takes the stack as it lies, then asks a hundred times for the mean of 25 steps; all is timed."""
    files, folder, prepared = _files(task), task.scratch / "store", task.system.renew()
    meter = Meter()
    with meter.clock():
        handle = task.system.take(files.stack, folder, [FIELD], prepared)
    for box in files.boxes("steps", AGGREGATIONS if not task.check else 2):
        with meter.clock():
            found = handle.mean(box)
        if task.check:
            _expect_mean(found, files, box)
    handle.close()
    return {} if task.check else _in_all(meter, _size_bytes(task, folder, files.stack))


# Many files.


def join(task: Task) -> Sample:
    """Attaches the files of the series as one array."""
    files, folder, prepared = _files(task), task.scratch / "store", task.system.renew()
    meter = Meter()
    with meter.clock():
        task.system.join(files.runs, folder, prepared)
    if task.check:
        handle = task.system.open_series(folder, task.system.renew())
        for number in {0, len(files.runs) // 2, len(files.runs) - 1}:
            steps = slice(number * RUN_SHAPE[0], (number + 1) * RUN_SHAPE[0])
            found = handle.read((steps, *(slice(0, n) for n in RUN_SHAPE[1:])))
            expect(np.array_equal(found, files.run(number)), f"the file {number} reads differently")
        handle.close()
        return {}
    return meter.sample(_size_bytes(task, folder, *files.runs))


def look_up(task: Task) -> Sample:
    """Opens the series, reads one cell and closes it."""
    files, store = _files(task), task.store("series")
    rng = np.random.default_rng(1)
    meter = Meter()
    for i in range(REPEATS_INSIDE + 1):
        number, place = int(rng.integers(0, len(files.runs))), [int(rng.integers(0, n)) for n in RUN_SHAPE]
        box = tuple(slice(at, at + 1) for at in (number * RUN_SHAPE[0] + place[0], *place[1:]))
        prepared = task.system.renew()
        if i == 0 or task.check:
            found = _one(task, store, prepared, box)  # the first one warms up
        else:
            with meter.clock():
                found = _one(task, store, prepared, box)
        if task.check:
            expect(found == int(files.run(number)[tuple(place)]), f"the cell at {box} reads differently")
    return {} if task.check else meter.sample(_size_bytes(task, store, *files.runs))


def _one(task: Task, store: Path, prepared: object, box: Box) -> int:
    handle = task.system.open_series(store, prepared)
    found = int(handle.read(box).item())
    handle.close()
    return found
