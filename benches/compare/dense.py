"""The dense workloads: what is done, checked and timed in one process, and the stores that they read."""

from pathlib import Path

import numpy as np

import disk
from inputs import COMMIT, MANY, REPEATS_INSIDE, Array, Box
from meter import Meter
from task import Builder, Procedure, Sample, Task, expect

# Stores.


def with_updates(count: int) -> Builder:
    """The dense array and `count` (times the scale) small updates, of 1,000 (times the scale) cells each."""

    def build(task: Task, folder: Path) -> None:
        task.system.load(folder, task.inputs.dense(), task.size.tile)
        task.system.keep(folder)
        if count == 0:
            return
        handle = task.system.open(folder, writable=True, durable=False)
        for i in range(task.size.times(count)):
            handle.update(*task.inputs.places(task.size.some(COMMIT), i))
        handle.close()
        disk.sync_tree(folder)

    return build


def updated(task: Task, count: int) -> Array:
    """The values after `count` (times the scale) small updates."""
    values = task.inputs.dense()
    for i in range(task.size.times(count) if count else 0):
        rows, cols, changed = task.inputs.places(task.size.some(COMMIT), i)
        values[rows, cols] = changed
    return values


# Loads.


def load(values_kind: str) -> Procedure:
    """Creates and fills an array of `Inputs.dense(values_kind)`; durable within the clock."""

    def measured(task: Task) -> Sample:
        values, target = task.inputs.dense(values_kind), task.scratch / "target"
        _warm(task)
        meter = Meter()
        with meter.clock():
            task.system.load(target, values, task.size.tile)
        sample = meter.sample(disk.size_bytes(target))
        if task.check:
            found = _read(task, target, (slice(0, values.shape[0]), slice(0, values.shape[1])))
            expect(np.array_equal(found, values), "what was loaded reads back differently")
        return sample

    return measured


def _warm(task: Task, *, writes: bool = False) -> None:
    """One operation of each kind on a small array, so that nothing is done for the first time within the clock."""
    folder = task.scratch / "warm"
    task.system.load(folder, np.zeros((64, 64), np.int32), (32, 32))
    if writes:
        handle = task.system.open(folder, writable=True)
        handle.update(np.array([1, 40]), np.array([2, 50]), np.array([3, 4], np.int32))
        handle.close()


def _read(task: Task, folder: Path, box: Box) -> Array:
    handle = task.system.open(folder)
    found: Array = handle.read(box)
    handle.close()
    return found


# Reads.


def read(kind: str, state: str = "dense", *, updates: int = 0) -> Procedure:
    """Reads boxes of `Inputs.boxes(kind)`, each from a newly opened array; opening is not timed."""

    def measured(task: Task) -> Sample:
        store, boxes = task.store(state), task.inputs.boxes(kind)
        expected = updated(task, updates) if task.check else None
        _read(task, store, boxes[0])
        meter = Meter()
        for box in boxes[1:]:
            handle = task.system.open(store)
            with meter.clock():
                found = handle.read(box)
            handle.close()
            if expected is not None:
                expect(np.array_equal(found, expected[box]), f"the {kind} {box} reads differently")
            del found, handle
        return meter.sample(disk.size_bytes(store))

    return measured


def read_cold(kind: str) -> Procedure:
    """Drops the page cache before every read; opening is timed, because it reads the device too."""

    def measured(task: Task) -> Sample:
        store, boxes = task.store("dense"), task.inputs.boxes(kind)
        expected = task.inputs.dense() if task.check else None
        _read(task, store, boxes[0])
        meter = Meter()
        for box in boxes[1:]:
            prepared = task.system.renew()
            disk.forget(store)
            with meter.clock():
                handle = task.system.open(store, prepared)
                found = handle.read(box)
            handle.close()
            if expected is not None:
                expect(np.array_equal(found, expected[box]), f"the {kind} {box} reads differently")
            del found, handle, prepared
        return meter.sample(disk.size_bytes(store))

    return measured


def points(count: int) -> Procedure:
    """Reads `count` (times the scale) single cells at random places, each time others."""

    def measured(task: Task) -> Sample:
        store, expected = task.store("dense"), task.inputs.dense() if task.check else None
        meter = Meter()
        for i in range(REPEATS_INSIDE + 1):
            rows, cols, _ = task.inputs.places(task.size.some(count), 10_000 + i)
            handle = task.system.open(store)
            if i == 0:
                found = handle.points(rows, cols)
            else:
                with meter.clock():
                    found = handle.points(rows, cols)
            handle.close()
            if expected is not None:
                expect(np.array_equal(found, expected[rows, cols]), "the single cells read differently")
            del found, handle
        return meter.sample(disk.size_bytes(store))

    return measured


def scan(task: Task) -> Sample:
    """Reads everything into a buffer whose pages are there already."""
    store, (everything, *_) = task.store("dense"), task.inputs.boxes("all")
    buffer = np.ones((task.size.side, task.size.side), np.int32)
    expected = task.inputs.dense() if task.check else None
    meter = Meter()
    for i in range(1 if task.check else 4):
        handle = task.system.open(store)
        if i == 0:
            handle.read_into(everything, buffer)
        else:
            with meter.clock():
                handle.read_into(everything, buffer)
        handle.close()
        del handle
    if expected is not None:
        expect(np.array_equal(buffer, expected), "the scan reads differently")
        return {}
    return meter.sample(disk.size_bytes(store))


def open_one(task: Task) -> Sample:
    """Opens an array, reads one cell and closes it."""
    store, expected = task.store("dense"), task.inputs.dense() if task.check else None
    rows, cols, _ = task.inputs.places(REPEATS_INSIDE + 1, 20_000)
    boxes = [(slice(int(r), int(r) + 1), slice(int(c), int(c) + 1)) for r, c in zip(rows, cols, strict=True)]
    _read(task, store, boxes[0])
    meter = Meter()
    for one in boxes[1:]:
        prepared = task.system.renew()
        with meter.clock():
            handle = task.system.open(store, prepared)
            found = handle.read(one)
            handle.close()
        if expected is not None:
            expect(np.array_equal(found, expected[one]), f"the cell {one} reads differently")
    return meter.sample(disk.size_bytes(store))


# Updates.


def update(count: int) -> Procedure:
    """Changes `count` (times the scale) single cells in one call; durable within the clock."""

    def measured(task: Task) -> Sample:
        rows, cols, changed = task.inputs.places(task.size.some(count))
        target = task.scratch / "target"
        disk.copy(task.store("dense"), target)
        _warm(task, writes=True)
        handle = task.system.open(target, writable=True)
        meter = Meter()
        with meter.clock():
            handle.update(rows, cols, changed)
        handle.close()
        sample = meter.sample(disk.size_bytes(target))
        if task.check:
            expected = task.inputs.dense()
            expected[rows, cols] = changed
            expect_all(task, target, expected, "the updated array reads differently")
        return sample

    return measured


def commit(*, durable: bool, many: bool = False) -> Procedure:
    """Changes 1,000 (times the scale) single cells, and again; one commit each, the array staying open. `many`: the
    mean of many.
    """

    def measured(task: Task) -> Sample:
        target = task.scratch / "target"
        disk.copy(task.store("dense"), target)
        times = MANY if many else REPEATS_INSIDE
        places = [task.inputs.places(task.size.some(COMMIT), i) for i in range(times + 1)]
        _warm(task, writes=True)
        handle = task.system.open(target, writable=True, durable=durable)
        handle.update(*places[0])
        meter = Meter()
        for rows, cols, changed in places[1:]:
            with meter.clock():
                handle.update(rows, cols, changed)
        handle.close()
        sample = meter.sample(disk.size_bytes(target), mean=many)
        if task.check:
            expected = task.inputs.dense()
            for rows, cols, changed in places:
                expected[rows, cols] = changed
            expect_all(task, target, expected, "the array after the commits reads differently")
        return sample

    return measured


def expect_all(task: Task, folder: Path, expected: Array, what: str) -> None:
    """Raises a `WrongResultError` unless the array holds these values."""
    found = _read(task, folder, (slice(0, expected.shape[0]), slice(0, expected.shape[1])))
    expect(np.array_equal(found, expected), what)
