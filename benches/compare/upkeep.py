"""Merging what many writes left: how long it takes and in how much memory, what reads cost before and after it, and
opening very many fragments.
"""

from pathlib import Path

import numpy as np

import cells
import dense
import disk
from inputs import CELLS_DOMAIN, Columns, joined
from meter import Meter
from task import Builder, Procedure, Sample, Task

SPECK = 10
"""Cells of the smallest commits."""

# Stores.


def merged(unmerged: Builder) -> Builder:
    """What another builder makes, merged."""

    def build(task: Task, folder: Path) -> None:
        unmerged(task, folder)
        task.system.merge(folder)

    return build


def piled(task: Task, folder: Path) -> None:
    """All batches, each in a commit of its own."""
    task.system.pile(folder, task.inputs.batches())


def specks(count: int) -> Builder:
    """Nothing but `count` (times the scale) commits of a few cells, each around one place."""

    def build(task: Task, folder: Path) -> None:
        first, *others = (speck(i) for i in range(task.size.times(count)))
        task.system.load(folder, [first])
        handle = task.system.open(folder, task.system.renew(), writable=True, durable=False)
        for one in others:
            handle.commit(one)
        handle.close()

    return build


def speck(number: int) -> Columns:
    """One of the smallest commits."""
    rng = np.random.default_rng(number)
    place = rng.integers(0, CELLS_DOMAIN)
    spread = np.clip(place + rng.integers(-500, 501, (SPECK, 2)), 0, CELLS_DOMAIN)
    x, y = np.ascontiguousarray(spread[:, 0]), np.ascontiguousarray(spread[:, 1])
    return {"x": x, "y": y, "value": rng.integers(0, 1_000, SPECK)}


# Workloads.


def merge_dense(updates: int) -> Procedure:
    """Merges a dense array's `updates` (times the scale) small updates; durable within the clock."""

    def measured(task: Task) -> Sample:
        target = task.scratch / "target"
        disk.copy(task.store(f"dense+{updates}"), target)
        meter = Meter()
        with meter.clock():
            task.system.merge(target)
        sample = meter.sample(disk.size_bytes(target))
        if task.check:
            dense.expect_all(task, target, dense.updated(task, updates), "the merged array reads differently")
        return sample

    return measured


def merge_cells(state: str, commits: int = 0) -> Procedure:
    """Merges all that was committed to a set of cells, into the order of its tiles; durable within the clock."""

    def measured(task: Task) -> Sample:
        target = task.scratch / "target"
        disk.copy(task.store(state), target)
        meter = Meter()
        with meter.clock():
            task.system.merge(target)
        sample = meter.sample(disk.size_bytes(target))
        if task.check:
            cells.expect_same(cells.read_all(task, target), cells.stored(task, commits), "what was merged")
        return sample

    return measured


def look_up(count: int) -> Procedure:
    """Opens a store of `count` (times the scale) of the smallest commits, reads one cell and closes it."""

    def measured(task: Task) -> Sample:
        store, number = task.store("specks"), task.size.times(count)
        asked = [speck(i * number // 6) for i in range(6)]
        expected = joined([speck(i) for i in range(number)]) if task.check else None
        meter = Meter()
        for i, one in enumerate(asked):
            box = ((int(one["x"][0]),) * 2, (int(one["y"][0]),) * 2)
            prepared = task.system.renew()
            if i == 0:
                found = task.system.look_up(store, prepared, box)
            else:
                with meter.clock():
                    found = task.system.look_up(store, prepared, box)
            if expected is not None:
                cells.expect_same(found, cells.inside(expected, box), f"the cell {box}")
            del found, prepared
        return meter.sample(disk.size_bytes(store))

    return measured
