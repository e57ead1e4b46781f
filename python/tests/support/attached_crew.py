"""What processes do to one store with attached files, and what a reader may find there.

The array `/main` has the files one after the other along `t`. Each writer owns `ZONE` columns; column 0 belongs to no
writer, so it shows the files' cells for ever. A writer's n-th commit follows from its number and n alone: `Zone`
repeats the script, so that a reader knows every cell of the zone from the stamp that it finds at the zone's head.

    columns   0        1 .. 3      4 .. 6
    rows      files    writer 1    writer 2
    0, 1               the stamp of the zone's newest commit, in each cell
    2 .. BASE          boxes and cells that the script writes and deletes
    behind             one cell in a row, or what the file holds
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np

import gridstone as gs
from gridstone import errors

Array = np.ndarray[Any, Any]
Found = TypeVar("Found")

WRITERS, ZONE = 2, 3
COLUMNS = 1 + WRITERS * ZONE
ROWS = 6
"""The steps of a file."""
FIRST = 4
"""Files that are attached before the processes start."""
BASE = FIRST * ROWS
HEAD = slice(0, 2)
WATCHDOG_S = 100.0


def of_file(number: int) -> Array:
    """The cells of a file: its number, and the place in it; all are below zero."""
    return -1 - (number * ROWS * COLUMNS + np.arange(ROWS * COLUMNS, dtype=np.int64).reshape(ROWS, COLUMNS))


def columns_of(writer: int) -> slice:
    """The columns that a writer, counted from 1, owns."""
    return slice(1 + (writer - 1) * ZONE, 1 + writer * ZONE)


@dataclass(frozen=True)
class Step:
    """A commit of a writer: cells of the base that are written or deleted, beside the stamp at the head."""

    stamp: int
    kind: str
    rows: slice
    columns: slice
    cells: tuple[tuple[int, int], ...]
    """Places in the zone."""


def step_of(seed: int, writer: int, number: int) -> Step:
    """The n-th commit of a writer, counted from 1."""
    r = Random(f"{seed} {writer} {number}")
    low, left = r.randrange(HEAD.stop, BASE), r.randrange(ZONE)
    rows = slice(low, r.randint(low + 1, BASE))
    columns = slice(left, r.randint(left + 1, ZONE))
    cells = {(r.randrange(HEAD.stop, BASE), r.randrange(ZONE)) for _ in range(r.randint(1, 5))}
    kind = r.choice(["box", "box", "cells", "delete box", "delete cells", "head"])
    return Step(writer * 1_000_000 + number, kind, rows, columns, tuple(sorted(cells)))


class Zone:
    """The base rows of a writer's columns after each of its commits."""

    def __init__(self, seed: int, writer: int) -> None:
        self.seed, self.writer = seed, writer
        base = np.concatenate([of_file(number) for number in range(FIRST)])[:, columns_of(writer)]
        self._states = [base]

    def after(self, number: int) -> Array:
        """The cells after so many commits."""
        while len(self._states) <= number:
            state = self._states[-1].copy()
            step = step_of(self.seed, self.writer, len(self._states))
            state[HEAD] = step.stamp
            value = 0 if step.kind.startswith("delete") else step.stamp
            if step.kind.endswith("box"):
                state[step.rows, step.columns] = value
            elif step.kind.endswith("cells"):
                for place in step.cells:
                    state[place] = value
            self._states.append(state)
        return self._states[number]


class Expected:
    """What a reader may find in `/main` at any version."""

    def __init__(self, seed: int) -> None:
        self._zones = [Zone(seed, writer) for writer in range(1, WRITERS + 1)]

    def check(self, found: Array) -> tuple[list[int], list[int]]:
        """The files in their order, and the number of commits of each writer; an AssertionError names what is wrong."""
        assert found.shape[1] == COLUMNS and found.shape[0] % ROWS == 0, f"the shape {found.shape} is of no version"
        files = [int(-1 - found[row, 0]) // (ROWS * COLUMNS) for row in range(0, len(found), ROWS)]
        assert files[:FIRST] == list(range(FIRST)) and len(set(files)) == len(files), f"the files {files}"
        lying = np.concatenate([of_file(number) for number in files])
        assert np.array_equal(found[:, 0], lying[:, 0]), "column 0 is not what the files hold"
        return files, [self._zone(found, lying, zone) for zone in self._zones]

    def _zone(self, found: Array, lying: Array, zone: Zone) -> int:
        mine = found[:, columns_of(zone.writer)]
        heads = set(mine[HEAD].ravel().tolist())
        number = max(heads) - zone.writer * 1_000_000 if max(heads) > 0 else 0
        wanted = zone.after(number)
        wrong = np.argwhere(mine[:BASE] != wanted)
        assert not len(wrong), (
            f"writer {zone.writer} after {number} commits: {len(wrong)} cells differ, the first at {wrong[0].tolist()} "
            f"is {mine[tuple(wrong[0])]}, not {wanted[tuple(wrong[0])]}; the head has {sorted(heads)}"
        )
        behind, held = mine[BASE:], lying[BASE:, columns_of(zone.writer)]
        stamped = behind != held
        stamps = behind[stamped] - zone.writer * 1_000_000
        assert ((stamps > 0) & (stamps <= number)).all(), f"behind the base: {behind[stamped].tolist()}, after {number}"
        return number


@dataclass(frozen=True)
class Job:
    """What all processes know."""

    folder: str
    seed: int
    commits: int
    """The number of each writer's."""
    begun: int
    """The version at which the first files were attached."""
    processes: int

    @property
    def uri(self) -> str:
        """The store."""
        return str(Path(self.folder) / "store.gs")

    def file(self, number: int) -> str:
        """The path of a file."""
        return str(Path(self.folder) / f"file_{number}.h5")

    def opened(self, mode: str = "r+") -> gs.Array:
        """The array, with a context of its own."""
        context = gs.Context("64MiB", 1, durability="close")
        found = gs.open(self.uri, path="/main", mode=mode, context=context)
        assert isinstance(found, gs.Array)
        return found

    def meet(self, name: str) -> None:
        """Waits until all processes are there, so that they work at once."""
        (Path(self.folder) / f"{name}.there").touch()
        end = time.monotonic() + WATCHDOG_S
        while len(list(Path(self.folder).glob("*.there"))) < self.processes:
            assert time.monotonic() < end, "a process did not start"
            time.sleep(0.01)

    def is_over(self) -> bool:
        """Whether the writers and those who attach have ended."""
        return (Path(self.folder) / "over").exists()


def again(work: Callable[[], Found], told: dict[str, int]) -> Found:
    """Repeats what another commit has made impossible, as the documentation says; counts how often that was."""
    end = time.monotonic() + WATCHDOG_S
    while True:
        try:
            return work()
        except (errors.ConflictError, errors.SnapshotExpiredError) as error:
            told[type(error).__name__] = told.get(type(error).__name__, 0) + 1
            if time.monotonic() > end:
                raise


def write(job: Job, writer: int) -> dict[str, int]:
    """Commits the script of a writer, and looks at its own zone now and then."""
    a, told, r = job.opened(), {}, Random(f"{job.seed} {writer}")
    zone = Zone(job.seed, writer)
    job.meet(f"write {writer}")
    for number in range(1, job.commits + 1):
        step = step_of(job.seed, writer, number)
        again(lambda step=step: _commit(job, a, writer, step), told)
        if r.random() < 0.2:
            a.refresh()
            low, stop = columns_of(writer).start, columns_of(writer).stop
            assert np.array_equal(a[:BASE, low:stop], zone.after(number)), f"writer {writer} after {number}: its own"
    return told


def _commit(job: Job, a: gs.Array, writer: int, step: Step) -> None:
    """One commit: the head, and a box or cells, together; now and then a cell behind the base."""
    columns = columns_of(writer)
    with gs.transaction(job.uri, context=a.context) as tx:
        array = tx["/main"]
        array[HEAD, columns] = step.stamp
        box = slice(columns.start + step.columns.start, columns.start + step.columns.stop)
        coords = np.array([(row, columns.start + column) for row, column in step.cells]).T
        if step.kind == "box":
            array[step.rows, box] = step.stamp
        elif step.kind == "delete box":
            array.delete({array.dims[0]: (step.rows.start, step.rows.stop - 1),
                          array.dims[1]: (box.start, box.stop - 1)})  # fmt: skip
        elif step.kind == "cells":
            array.write_cells(tuple(coords), np.full(len(step.cells), step.stamp))
        elif step.kind == "delete cells":
            array.delete(coords=tuple(coords))
        if step.stamp % 3 == 0 and array.shape[0] > BASE:
            array[Random(step.stamp).randrange(BASE, array.shape[0]), columns.start] = step.stamp


def attach(job: Job, numbers: list[int]) -> dict[str, int]:
    """Attaches files behind the array, and each of them to a path of its own too."""
    a, told = job.opened(), {}
    job.meet(f"attach {numbers[0]}")
    for number in numbers:

        def append(number: int = number) -> int:
            a.refresh()
            return a.attach(job.file(number))

        again(append, told)
        alone = again(
            lambda number=number: gs.attach(
                job.uri, job.file(number), "/e", path=f"/alone/{number}", context=a.context
            ),
            told,
        )
        assert isinstance(alone, gs.Array) and np.array_equal(np.asarray(alone), of_file(number)), (
            f"file {number} alone"
        )
    return told


def keep(job: Job) -> dict[str, int]:
    """Consolidates in every way, and vacuums, until the others have ended."""
    a, told, r = job.opened(), {}, Random(f"{job.seed} keep")
    kinds = ["box", "vacuum", "all", "updates", "box", "vacuum", "tiered", "manifest"]
    job.meet("keep")
    while not job.is_over() or any(kind not in told for kind in kinds):
        kind = r.choice([kind for kind in kinds if kind not in told] or kinds)
        told[kind] = told.get(kind, 0) + 1

        def work(kind: str = kind) -> None:
            a.refresh()
            if kind == "vacuum":
                a.vacuum(versions=r.choice([1, 2, 8]))
            elif kind == "box":
                low = r.randrange(a.shape[0])
                a.consolidate(
                    box={a.dims[0]: (low, r.randint(low, a.shape[0] - 1)), a.dims[1]: (0, r.randrange(COLUMNS))}
                )
            else:
                a.consolidate(kind)

        again(work, told)
    return told


def read(job: Job, number: int) -> dict[str, int]:
    """Reads everything at the newest version, and at older ones, until the others have ended."""
    a, expected, r = job.opened("r"), Expected(job.seed), Random(f"{job.seed} read {number}")
    told, seen = {"reads": 0, "older": 0, "expired": 0}, [0] * WRITERS
    job.meet(f"read {number}")
    while True:
        last = job.is_over()
        if r.random() < 0.3:
            a = job.opened("r")
        a.refresh()
        _, commits = expected.check(np.asarray(a))
        assert all(now >= before for now, before in zip(commits, seen, strict=True)), f"{commits} after {seen}"
        seen, told["reads"] = commits, told["reads"] + 1
        try:
            expected.check(np.asarray(a.at(version=max(job.begun, a.version - r.randint(0, 5)))))
            told["older"] += 1
        except errors.SnapshotExpiredError:
            told["expired"] += 1
        if last:
            return told
