"""The workloads of sparse arrays and tables: what is done, checked and timed in one process, and what they read."""

from pathlib import Path

import numpy as np

import disk
from inputs import COMMIT, MANY, REPEATS_INSIDE, Columns, Spans, joined
from meter import Meter
from task import Builder, Procedure, Sample, Task, expect

# Stores.


def build_loaded(commits: int) -> Builder:
    """All batches, in the system's best state for reading, then `commits` (times the scale) small commits."""

    def build(task: Task, folder: Path) -> None:
        task.system.load(folder, task.inputs.batches())
        task.system.settle(folder)
        _commit_all(task, folder, task.inputs.commits(task.size.times(commits) if commits else 0))

    return build


def build_commits(count: int) -> Builder:
    """Nothing but `count` (times the scale) small commits."""

    def build(task: Task, folder: Path) -> None:
        first, *others = task.inputs.commits(task.size.times(count))
        task.system.load(folder, [first])
        _commit_all(task, folder, others)

    return build


def _commit_all(task: Task, folder: Path, commits: list[Columns]) -> None:
    if not commits:
        return
    handle = task.system.open(folder, task.system.renew(), writable=True, durable=False)
    for cells in commits:
        handle.commit(cells)
    handle.close()
    task.system.gather(folder)
    disk.sync_tree(folder)


# Loads.


def load(task: Task) -> Sample:
    """Writes 12 unsorted batches; durable within the clock."""
    batches, target = task.inputs.batches(), task.scratch / "target"
    task.system.load(task.scratch / "warm", [{name: column[:1000] for name, column in batches[0].items()}])
    meter = Meter()
    with meter.clock():
        task.system.load(target, batches)
    sample = meter.sample(disk.size_bytes(target))
    if task.check:
        expect_same(_read(task, target, None), joined(batches), "what was loaded")
    return sample


def load_csv(task: Task) -> Sample:
    """Loads a CSV file that the page cache holds; durable within the clock."""
    csv, target, warm = task.inputs.csv, task.scratch / "target", task.scratch / "warm.csv"
    with csv.open() as lines:
        warm.write_text("".join(next(lines) for _ in range(1000)))
    with csv.open("rb") as file:
        while file.read(1 << 24):
            pass
    task.system.load(task.scratch / "warm", warm)
    meter = Meter()
    with meter.clock():
        task.system.load(target, csv)
    sample = meter.sample(disk.size_bytes(target))
    if task.check:
        expect_same(task.system.everything(target), task.inputs.table(), "what was loaded")
    return sample


# Reads.


def read(kind: str, state: str = "cells", *, commits: int = 0) -> Procedure:
    """Reads all columns of boxes of `Inputs.cell_boxes(kind)`, each from a new opening, which is not timed."""

    def measured(task: Task) -> Sample:
        store, boxes = task.store(state), task.inputs.cell_boxes(kind)
        expected = stored(task, commits) if task.check else None
        _read(task, store, boxes[0])
        meter = Meter()
        for box in boxes[1:]:
            handle = task.system.open(store, task.system.renew())
            with meter.clock():
                found = handle.read(box)
            handle.close()
            if expected is not None:
                expect_same(found, inside(expected, box), f"the box {box}")
            del found, handle
        return meter.sample(disk.size_bytes(store))

    return measured


def select(kind: str, name: str, above: int) -> Procedure:
    """Reads x, y and one attribute of the cells in a box at which that is greater, each time from a new opening."""

    def measured(task: Task) -> Sample:
        store, boxes = task.store("cells"), task.inputs.cell_boxes(kind)
        expected = stored(task, 0) if task.check else None
        handle = task.system.open(store, task.system.renew())
        handle.select(boxes[0], name, above)
        handle.close()
        meter = Meter()
        for box in boxes[1:]:
            handle = task.system.open(store, task.system.renew())
            with meter.clock():
                found = handle.select(box, name, above)
            handle.close()
            if expected is not None:
                wanted = inside(expected, box)
                kept = wanted[name] > above
                same = {column: wanted[column][kept] for column in ("x", "y", name)}
                expect_same(found, same, f"the box {box} where {name} > {above}")
            del found, handle
        return meter.sample(disk.size_bytes(store))

    return measured


def stored(task: Task, commits: int) -> Columns:
    """The cells of all batches and of `commits` (times the scale) small commits."""
    return joined([*task.inputs.batches(), *task.inputs.commits(task.size.times(commits) if commits else 0)])


def look_up(count: int) -> Procedure:
    """Opens a store of `count` (times the scale) small commits, reads one cell and closes it."""

    def measured(task: Task) -> Sample:
        store, boxes = task.store(f"commits{count}"), task.inputs.cell_boxes("cell")
        expected = joined(task.inputs.commits(task.size.times(count))) if task.check else None
        task.system.look_up(store, task.system.renew(), boxes[0])
        meter = Meter()
        for box in boxes[1:]:
            prepared = task.system.renew()
            with meter.clock():
                found = task.system.look_up(store, prepared, box)
            if expected is not None:
                expect_same(found, inside(expected, box), f"the cell {box}")
            del found, prepared
        return meter.sample(disk.size_bytes(store))

    return measured


# Commits.


def commit(*, durable: bool, many: bool = False) -> Procedure:
    """Adds 1,000 cells, and again; one commit each, the store staying open. `many`: the mean of many."""

    def measured(task: Task) -> Sample:
        target = task.scratch / "target"
        disk.copy(task.store("cells"), target)
        commits = task.inputs.commits(1 + (MANY if many else REPEATS_INSIDE))
        handle = task.system.open(target, task.system.renew(), writable=True, durable=durable)
        handle.commit(commits[0])
        meter = Meter()
        for cells in commits[1:]:
            with meter.clock():
                handle.commit(cells)
        handle.close()
        sample = meter.sample(disk.size_bytes(target), mean=many)
        if task.check:
            expected = joined([*task.inputs.batches(), *commits])
            expect_same(_read(task, target, None), expected, f"all cells after the commits of {COMMIT}")
        return sample

    return measured


# Checks.


def read_all(task: Task, folder: Path) -> Columns:
    """All cells of a store."""
    return _read(task, folder, None)


def _read(task: Task, folder: Path, box: Spans | None) -> Columns:
    handle = task.system.open(folder, task.system.renew())
    found: Columns = handle.read(box)
    handle.close()
    return found


def expect_same(found: Columns, expected: Columns, what: str) -> None:
    """Raises a `WrongResultError` unless these are the same cells, in any order."""
    expect(set(found) == set(expected), f"{what}: the columns are {sorted(found)}")
    found_sorted, expected_sorted = _sorted(found), _sorted(expected)
    for name, column in expected_sorted.items():
        same = found_sorted[name].dtype == column.dtype and np.array_equal(found_sorted[name], column)
        expect(same, f"{what}: column {name!r} reads differently")


def _sorted(cells: Columns) -> Columns:
    order = np.lexsort([np.asarray(cells[name]) for name in sorted(cells)])
    return {name: np.asarray(column)[order] for name, column in cells.items()}


def inside(cells: Columns, box: Spans) -> Columns:
    """Those of the cells that lie in a box."""
    (x0, x1), (y0, y1) = box
    kept = (cells["x"] >= x0) & (cells["x"] <= x1) & (cells["y"] >= y0) & (cells["y"] <= y1)
    return {name: column[kept] for name, column in cells.items()}
