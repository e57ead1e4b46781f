"""The workloads of questions: what is asked of tables, positions and cubes, checked and timed in one process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import disk
from inputs import REPEATS_INSIDE, Array, Columns, Layout, Spans
from meter import Meter
from task import Builder, Procedure, Sample, Task, expect

MEDIAN = 0.5
"""The median of the attribute that a row filters by, within a thousandth."""


@dataclass(frozen=True)
class Question:
    """Aggregates by groups. Systems put it into their own words."""

    aggregates: Mapping[str, tuple[str, str]]
    """Columns of the answer: a function, count, sum, mean or max, and what of."""
    by: Mapping[str, int | None] = field(default_factory=dict)
    """What cells are grouped by; widths of bins, which begin at multiples of them."""
    box: Spans | None = None

    @property
    def sql(self) -> str:
        """The question in SQL, of a table `cells`."""
        keys = [name if width is None else f"{name} // {width} * {width} AS {name}" for name, width in self.by.items()]
        words = {"mean": "avg"}
        asked = [
            "count(*) AS " + name if call == "count" else f"{words.get(call, call)}({of}) AS {name}"
            for name, (call, of) in self.aggregates.items()
        ]
        text = f"SELECT {', '.join([*keys, *asked])} FROM cells"
        if self.box is not None:
            (x0, x1), (y0, y1) = self.box
            text += f" WHERE x BETWEEN {x0} AND {x1} AND y BETWEEN {y0} AND {y1}"
        return text + (f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else "")

    def expected(self, cells: Columns) -> Columns:
        """The answer by NumPy, ascending by the keys."""
        kept = np.ones(len(cells["x"]), bool)
        for name, (low, high) in zip("xy", self.box or (), strict=False):
            kept &= (cells[name] >= low) & (cells[name] <= high)
        rows = {name: column[kept] for name, column in cells.items()}
        keys = {name: rows[name] if width is None else rows[name] // width * width for name, width in self.by.items()}
        group, found = _numbered(keys, int(kept.sum()))
        count = np.bincount(group, minlength=len(next(iter(found.values()))) if found else 1)
        for name, (call, of) in self.aggregates.items():
            if call == "count":
                found[name] = count
            elif call == "max":
                found[name] = np.array([rows[of].max()])
            else:
                total = np.bincount(group, weights=rows[of].astype(np.float64), minlength=len(count))
                found[name] = total if call == "sum" else total / count
        return found


def _numbered(keys: Columns, count: int) -> tuple[Array, Columns]:
    """The number of the group of each row, and the keys of the groups, ascending."""
    if not keys:
        return np.zeros(count, np.int64), {}
    stacked = np.zeros(count, np.int64)
    for column in keys.values():
        low, high = int(column.min()), int(column.max())
        stacked = stacked * (high - low + 1) + (column.astype(np.int64) - low)
    _, first, group = np.unique(stacked, return_index=True, return_inverse=True)
    return group, {name: column[first] for name, column in keys.items()}


# Stores.


def build_rows(task: Task, folder: Path) -> None:
    """The table of two coordinates and two attributes."""
    task.system.load(folder, task.inputs.rows(), Layout.rows())


def build_tracks(task: Task, folder: Path) -> None:
    """The positions of ships over a day."""
    task.system.load(folder, task.inputs.tracks(), Layout.tracks())


def build_cube(task: Task, folder: Path) -> None:
    """The cube of days and places."""
    cube = task.inputs.cube()
    task.system.load(folder, cube, task.size.cube_tile)


BUILDERS: dict[str, Builder] = {"rows": build_rows, "tracks": build_tracks, "cube": build_cube}


# Questions.


def ask(state: str, question: Question) -> Procedure:
    """Asks, each time from a new opening, which is not timed."""
    return _asked(state, lambda task: question)


def ask_half(state: str, question: Question) -> Procedure:
    """Asks of the box that holds the half of the cells with the lower x."""

    def halved(task: Task) -> Question:
        x = task.inputs.tracks()["x"]
        (high, _), whole = (int(np.median(x)), 0), Layout.tracks().domain
        return Question(question.aggregates, question.by, ((0, high), (0, whole[1])))

    return _asked(state, halved)


def _asked(state: str, question_of: Any) -> Procedure:
    def measured(task: Task) -> Sample:
        store, question = task.store(state), question_of(task)
        expected = question.expected(getattr(task.inputs, state)()) if task.check else None
        meter = Meter()
        for i in range(1 if task.check else REPEATS_INSIDE + 1):
            handle = task.system.open(store, task.system.renew())
            if i == 0:
                found = handle.ask(question)  # the first one warms up
            else:
                with meter.clock():
                    found = handle.ask(question)
            handle.close()
            if expected is not None:
                expect_groups(found, expected, list(question.by))
                return {}
            del found, handle
        return meter.sample(disk.size_bytes(store))

    return measured


def select(task: Task) -> Sample:
    """Reads coordinates and one attribute of the cells at which that lies above the median, into arrays."""
    store = task.store("rows")
    meter = Meter()
    for i in range(1 if task.check else REPEATS_INSIDE + 1):
        handle = task.system.open(store, task.system.renew())
        if i == 0:
            found = handle.select("b", MEDIAN)
        else:
            with meter.clock():
                found = handle.select("b", MEDIAN)
        handle.close()
        if task.check:
            rows = task.inputs.rows()
            kept = rows["b"] > MEDIAN
            expect_groups(found, {name: rows[name][kept] for name in ("x", "y", "b")}, ["x", "y", "b"])
            return {}
        del found, handle
    return meter.sample(disk.size_bytes(store))


def mean(axes: tuple[int, ...]) -> Procedure:
    """The mean of a cube along axes, each time from a new opening, which is not timed."""

    def measured(task: Task) -> Sample:
        store = task.store("cube")
        meter = Meter()
        for i in range(1 if task.check else 4):
            handle = task.system.open(store, task.system.renew())
            if i == 0:
                found = handle.mean(axes)
            else:
                with meter.clock():
                    found = handle.mean(axes)
            handle.close()
            if task.check:
                wanted = task.inputs.cube().mean(axis=axes, dtype=np.float64)
                expect(found.shape == wanted.shape, f"the mean along {axes} has the shape {found.shape}")
                expect(np.allclose(found, wanted, rtol=1e-5, atol=1e-5), f"the mean along {axes} differs")
                return {}
            del found, handle
        return meter.sample(disk.size_bytes(store))

    return measured


def expect_groups(found: Columns, expected: Columns, keys: list[str]) -> None:
    """Raises a `WrongResultError` unless these are the same rows, in any order: floats within a part in 10^9."""
    expect(set(found) == set(expected), f"the columns are {sorted(found)}")
    plain = {name: np.ma.getdata(found[name]) for name in expected}
    counts = {len(column) for column in plain.values()}
    expect(counts == {len(column) for column in expected.values()}, f"there are {counts} rows")
    for columns in (plain, expected):
        order = np.lexsort([columns[name] for name in keys]) if keys else slice(None)
        columns.update({name: column[order] for name, column in columns.items()})
    for name, column in expected.items():
        same = np.allclose(plain[name], column, rtol=1e-9, atol=1e-9)
        expect(same if column.dtype.kind == "f" else np.array_equal(plain[name], column), f"column {name!r} differs")
