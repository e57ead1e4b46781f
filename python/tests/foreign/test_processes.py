"""Several processes attach files to one store, write over them, delete, merge, vacuum and read, all at once.

Nothing is lost, nothing is torn, no cell is fill in the place of a value, and the files are as they were.
GRIDSTONE_TEST_DEEP makes many more commits; GRIDSTONE_TEST_SEED draws other scripts.
"""

import hashlib
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import attached_crew as crew
import numpy as np
import pytest

import gridstone as gs

h5py = pytest.importorskip("h5py")

DEEP = "GRIDSTONE_TEST_DEEP" in os.environ
COMMITS, MORE = (400, 60) if DEEP else (30, 6)
SEED = int(os.environ.get("GRIDSTONE_TEST_SEED", "5"))


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.h5"))}


def _begun(folder: Path, files: int) -> crew.Job:
    """The files, and a store with the first of them."""
    job = crew.Job(str(folder), SEED, COMMITS, 0, crew.WRITERS + 5)
    for number in range(files):
        with h5py.File(job.file(number), "w") as file:
            layout: dict[str, Any] = [{}, {"chunks": (2, 3)}, {"chunks": (6, 4), "compression": "gzip"}][number % 3]
            file.create_dataset("e", data=crew.of_file(number), **layout)
    first = [job.file(number) for number in range(crew.FIRST)]
    made = gs.attach(job.uri, first, "/e", path="/main", concat="d0", context=gs.Context(durability="close"))
    return replace(job, begun=made.version)


def _end(pool: Any, job: crew.Job, work: list[tuple[Callable[..., Any], tuple[Any, ...]]], until: int) -> list[Any]:
    """What processes found; those behind `until` go on until the ones before have ended."""
    asked = [pool.apply_async(function, (job, *arguments)) for function, arguments in work]
    try:
        ended = [one.get(crew.WATCHDOG_S if not DEEP else 3_000) for one in asked[:until]]
    finally:
        (Path(job.folder) / "over").touch()
    return ended + [one.get(crew.WATCHDOG_S) for one in asked[until:]]


def test_processes_over_attached_files(tmp_path: Path) -> None:
    files = crew.FIRST + MORE
    job = _begun(tmp_path, files)
    before = _hashes(tmp_path)
    later = list(range(crew.FIRST, files))
    work: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        *((crew.write, (writer,)) for writer in range(1, crew.WRITERS + 1)),
        (crew.attach, (later[::2],)),
        (crew.attach, (later[1::2],)),
        (crew.keep, ()),
        (crew.read, (0,)),
        (crew.read, (1,)),
    ]
    with multiprocessing.get_context("spawn").Pool(len(work)) as pool:
        told = _end(pool, job, work, crew.WRITERS + 2)
    a = job.opened()
    expected = crew.Expected(SEED)
    attached, commits = expected.check(np.asarray(a))
    assert commits == [COMMITS] * crew.WRITERS, f"a commit is lost: {told}"
    assert sorted(attached) == list(range(files)), f"a file is lost, or there twice: {told}"
    for number in later:
        alone = gs.open(job.uri, path=f"/alone/{number}")
        assert isinstance(alone, gs.Array) and np.array_equal(np.asarray(alone), crew.of_file(number))
    assert all(reader["reads"] > 1 for reader in told[-2:]), told
    assert not a.verify().damage
    assert _hashes(tmp_path) == before
    a.consolidate("all")
    assert a.sources.num_rows == 0
    a.vacuum(versions=1)
    expected.check(np.asarray(a))
    for number in range(files):
        os.remove(job.file(number))
    assert expected.check(np.asarray(job.opened("r"))) == (attached, commits), "all came home"


def test_what_the_crew_checks_can_fail(tmp_path: Path) -> None:
    """A lost, torn or filled cell is found in what the processes would see."""
    expected, zone = crew.Expected(SEED), crew.Zone(SEED, 1)
    sound = np.concatenate([crew.of_file(number) for number in (0, 1, 2, 3, 5, 4)])
    sound[: crew.BASE, crew.columns_of(1)] = zone.after(7)
    sound[crew.BASE + 1, 1] = 1_000_003
    assert expected.check(sound) == ([0, 1, 2, 3, 5, 4], [7, 0])
    head = sound[0, 1]
    for place, value in {
        (0, 1): head - 1,
        (1, 3): 0,
        (crew.BASE, 0): 0,
        (crew.BASE, 1): 0,
        (crew.BASE, 2): head + 1,
        (9, 5): 0,
        (9, 6): head,
        (0, 0): sound[crew.ROWS, 0],
    }.items():
        wrong = sound.copy()
        wrong[place] = value
        with pytest.raises(AssertionError):
            expected.check(wrong)
