"""The workloads: what is done, checked and timed in one process.

A process works at one (workload, system). With `check` set it compares every result with NumPy and times nothing; what
it stored stays as the store that later processes read, or copy before they change it.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dense
import disk
import sparse
from inputs import Array, Columns, Inputs, Size, Span
from meter import Meter


class WrongResultError(Exception):
    """A system gave something other than NumPy."""


@dataclass(frozen=True)
class Task:
    """One process's part: where inputs and stores lie, and whether it checks or times."""

    folder: Path
    size: Size
    system: Any
    check: bool

    @property
    def inputs(self) -> Inputs:
        """The input files."""
        return Inputs(self.folder / "inputs", self.size)

    @property
    def scratch(self) -> Path:
        """A folder that goes when the process ends."""
        return self.folder / "scratch"

    def store(self, state: str) -> Path:
        """The checked store that others read: "dense", "dense-updated" or "sparse"."""
        return self.folder / "stores" / f"{self.system.name} {state}".replace(" ", "_").replace("/", "_")

    def target(self, state: str) -> Path:
        """Where this process writes: the checked store itself, or scratch."""
        return self.store(state) if self.check else self.scratch / "target"


@dataclass(frozen=True)
class Workload:
    """One row of the plan."""

    key: str
    title: Callable[[Size], str]
    systems: Sequence[Any]
    run: Callable[[Task], dict[str, Any]]

    @property
    def group(self) -> str:
        """Workloads of one group share their stores."""
        return self.key.partition("-")[0]

    @property
    def leaves_store(self) -> bool:
        """Whether its check leaves a store that others of the group read."""
        return self.run in (_load_dense, _update_dense, _load_sparse)


def run(workload: Workload, task: Task) -> dict[str, Any]:
    """Runs one workload on one system and gives the figures of `Meter.sample`."""
    shutil.rmtree(task.scratch, ignore_errors=True)
    task.scratch.mkdir(parents=True)
    (task.folder / "stores").mkdir(exist_ok=True)
    try:
        return workload.run(task)
    finally:
        shutil.rmtree(task.scratch, ignore_errors=True)


def _expect(right: bool, what: str) -> None:
    if not right:
        raise WrongResultError(what)


# Dense.


def _load_dense(task: Task) -> dict[str, Any]:
    values, target = task.inputs.dense(), task.target("dense")
    task.system.load(task.scratch / "warm", np.ascontiguousarray(values[:64, :64]), (32, 32))
    meter = Meter()
    with meter.clock():
        task.system.load(target, values, task.size.tile)
    sample = meter.sample(disk.size_bytes(target))
    if task.check:
        _expect(np.array_equal(_all_dense(task, target), values), "what was loaded reads back differently")
    return sample


def _all_dense(task: Task, folder: Path) -> Array:
    handle = task.system.open(folder)
    everything = slice(0, task.size.side)
    found: Array = handle.read((everything, everything))
    handle.close()
    return found


def _read_dense(kind: str, state: str) -> Callable[[Task], dict[str, Any]]:
    def measured(task: Task) -> dict[str, Any]:
        store, boxes = task.store(state), task.inputs.dense_boxes(kind)
        expected = _expected_dense(task, state) if task.check else None
        _read_one_dense(task, store, boxes[0])
        meter = Meter()
        for box in boxes[1:]:
            handle = task.system.open(store)
            with meter.clock():
                found = handle.read(box)
            handle.close()
            if expected is not None:
                _expect(np.array_equal(found, expected[box]), f"the {kind} {box} reads differently")
            del found, handle
        return meter.sample(disk.size_bytes(store))

    return measured


def _read_one_dense(task: Task, store: Path, box: tuple[slice, slice]) -> None:
    handle = task.system.open(store)
    handle.read(box)
    handle.close()


def _expected_dense(task: Task, state: str) -> Array:
    values = task.inputs.dense()
    if state == "dense-updated":
        rows, cols, changed = task.inputs.updates()
        values[rows, cols] = changed
    return values


def _update_dense(task: Task) -> dict[str, Any]:
    rows, cols, changed = task.inputs.updates()
    target, warm = task.target("dense-updated"), task.scratch / "warm"
    disk.copy(task.store("dense"), target)
    task.system.load(warm, np.zeros((64, 64), np.int32), (32, 32))
    handle = task.system.open(warm, writable=True)
    handle.update(np.array([1, 40]), np.array([2, 50]), np.array([3, 4], np.int32))
    handle.close()
    handle = task.system.open(target, writable=True)
    meter = Meter()
    with meter.clock():
        handle.update(rows, cols, changed)
    handle.close()
    sample = meter.sample(disk.size_bytes(target))
    if task.check:
        same = np.array_equal(_all_dense(task, target), _expected_dense(task, "dense-updated"))
        _expect(same, "the updated array reads differently")
    return sample


# Sparse.


def _load_sparse(task: Task) -> dict[str, Any]:
    points, target = task.inputs.points(), task.target("sparse")
    task.system.load(task.scratch / "warm", {name: column[:1000] for name, column in points.items()})
    meter = Meter()
    with meter.clock():
        task.system.load(target, points)
    sample = meter.sample(disk.size_bytes(target))
    if task.check:
        _expect_points(_read_one_sparse(task, target, None), points, "what was loaded")
    return sample


def _read_one_sparse(task: Task, folder: Path, box: tuple[Span, Span] | None) -> Columns:
    handle = task.system.open(folder, task.system.prepare())
    found: Columns = handle.read(box)
    handle.close()
    return found


def _expect_points(found: Columns, expected: Columns, what: str) -> None:
    """The same cells, in any order."""
    _expect(set(found) == set(expected), f"{what}: the columns are {sorted(found)}")
    found_sorted, expected_sorted = _sorted(found), _sorted(expected)
    for name, column in expected_sorted.items():
        same = found_sorted[name].dtype == column.dtype and np.array_equal(found_sorted[name], column)
        _expect(same, f"{what}: column {name!r} reads differently")


def _sorted(points: Columns) -> Columns:
    order = np.lexsort([np.asarray(points[name]) for name in sorted(points)])
    return {name: np.asarray(column)[order] for name, column in points.items()}


def _inside(points: Columns, box: tuple[Span, Span]) -> Columns:
    (x0, x1), (y0, y1) = box
    kept = (points["x"] >= x0) & (points["x"] <= x1) & (points["y"] >= y0) & (points["y"] <= y1)
    return {name: column[kept] for name, column in points.items()}


def _read_sparse(kind: str, *, open_inside: bool = False) -> Callable[[Task], dict[str, Any]]:
    """`open_inside`: opening and closing are timed too."""

    def measured(task: Task) -> dict[str, Any]:
        store, boxes = task.store("sparse"), task.inputs.point_boxes(kind)
        points = task.inputs.points() if task.check else None
        _read_one_sparse(task, store, boxes[0])
        meter = Meter()
        for box in boxes[1:]:
            prepared = task.system.prepare()
            if open_inside:
                with meter.clock():
                    found = task.system.look_up(store, prepared, box)
            else:
                handle = task.system.open(store, prepared)
                with meter.clock():
                    found = handle.read(box)
                handle.close()
                del handle
            if points is not None:
                _expect_points(found, _inside(points, box), f"the box {box}")
            del found, prepared
        return meter.sample(disk.size_bytes(store))

    return measured


def _commit_sparse(task: Task) -> dict[str, Any]:
    target, commits = task.scratch / "target", task.inputs.commits()
    disk.copy(task.store("sparse"), target)
    handle = task.system.open(target, task.system.prepare(), writable=True)
    handle.commit(commits[0])
    meter = Meter()
    for points in commits[1:]:
        with meter.clock():
            handle.commit(points)
    handle.close()
    sample = meter.sample(disk.size_bytes(target))
    if task.check:
        parts = [task.inputs.points(), *commits]
        expected = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        _expect_points(_read_one_sparse(task, target, None), expected, "all points after the commits")
    return sample


def _dense_plan(prefix: str, what: str, systems: Sequence[Any]) -> list[Workload]:
    def title(text: str) -> Callable[[Size], str]:
        return lambda size: f"dense, {what}: " + text.format(n=size.side, box=size.box, updates=size.updates)

    plan = [
        ("load", "load {n:,} x {n:,} int32", _load_dense),
        ("box", "read a random {box:,} x {box:,} box", _read_dense("box", "dense")),
        ("row", "read one row", _read_dense("row", "dense")),
        ("column", "read one column", _read_dense("column", "dense")),
        ("update", "{updates:,} random cell updates, durable", _update_dense),
        ("box-updated", "read the box after the updates", _read_dense("box", "dense-updated")),
    ]
    return [Workload(f"{prefix}-{key}", title(text), systems, run) for key, text, run in plan]


def _box_title(name: str) -> Callable[[Size], str]:
    return lambda size: f"sparse: read a box of {size.targets()[name]:,} cells"


def _sparse_plan() -> list[Workload]:
    every = (sparse.GRIDSTONE, sparse.DUCKDB, sparse.PYARROW)
    writers = (sparse.GRIDSTONE, sparse.PYARROW, sparse.RAW)
    boxes = [Workload(f"sparse-box-{name}", _box_title(name), every, _read_sparse(name)) for name in Size(1).targets()]
    return [
        Workload("sparse-load", lambda size: f"sparse: load {size.points:,} cells", (*every, sparse.RAW), _load_sparse),
        *boxes,
        Workload("sparse-open", lambda _: "sparse: open + one cell", every, _read_sparse("cell", open_inside=True)),
        Workload("sparse-commit", lambda size: f"sparse: commit {size.commit:,} cells", writers, _commit_sparse),
    ]


PLAN: tuple[Workload, ...] = (
    *_dense_plan("plain", "uncompressed", dense.PLAIN),
    *_dense_plan("packed", "compressed", dense.PACKED),
    *_sparse_plan(),
)
"""In the order of the checks: a workload finds the stores that those before it left."""
