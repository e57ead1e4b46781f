"""Promise: with `logging` at INFO or DEBUG a program sees what happens to its stores; else nothing is printed."""

import gc
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.base import log

QUICK = gs.Context("64MiB", 2, durability="close")
LINE = gs.Schema([gs.Dim("x", (0, 9_999), 1_000)], [gs.Attr("v", "int64")], sparse=True, duplicates=True)


class Kept(logging.Handler):
    """Keeps what it gets."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.getMessage()
        self.records.append(record)

    def of(self, event: str) -> list[Any]:
        return [record for record in self.records if record.event == event]


@pytest.fixture
def kept() -> Iterator[Kept]:
    yield from listening(logging.DEBUG)


def listening(level: int) -> Iterator[Kept]:
    logger, handler = logging.getLogger("gridstone"), Kept(level)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def write(array: gs.Array, seed: int, count: int = 20) -> int:
    random = np.random.default_rng(seed)
    return array.write_cells({"x": random.integers(0, 10_000, count)}, {"v": random.integers(0, 99, count)})


def test_a_commit_is_told_with_its_fields(tmp_path: Path, kept: Kept) -> None:
    a = gs.create(tmp_path / "a.gs", LINE, path="/deep/a", context=QUICK)
    version = a.write_cells({"x": np.arange(5)}, {"v": np.arange(5)}, message="five")
    created, written = kept.of("committed")
    assert created.version == 1 and "create_array" in created.operations
    assert (written.name, written.levelname) == ("gridstone.commit", "INFO")
    assert (written.version, written.path, written.operations) == (version, "/deep/a", "add_fragments")
    assert (written.fragments, written.removed, written.cells, written.tries) == (1, 0, 5, 1)
    assert written.bytes > 0 and 0 <= written.seconds < 60 and written.uri.endswith("a.gs")
    assert written.commit_message == "five"
    text = written.getMessage()
    assert text.startswith("committed: ") and "version=2 path=/deep/a" in text and "cells=5" in text
    assert abs(written.created - created.created) < 60 and written.created >= created.created


def test_merges_vacuums_copies_and_repairs_are_told(tmp_path: Path, kept: Kept) -> None:
    a = gs.create(tmp_path / "a.gs", LINE, context=QUICK)
    for seed in range(10):
        write(a, seed)
    a.consolidate("all")
    [merged] = kept.of("merged")
    assert (merged.name, merged.path, merged.removed, merged.fragments) == ("gridstone.merge", "/", 10, 1)
    assert merged.cells == 200 and merged.bytes > 0 and merged.version == a.version
    a.vacuum(versions=1, dry_run=True)
    assert not kept.of("vacuumed")
    report = a.vacuum(versions=1, safety_age=0)
    [vacuumed] = kept.of("vacuumed")
    assert (vacuumed.versions, vacuumed.objects, vacuumed.bytes) == (report.versions, report.objects, report.bytes)
    assert (vacuumed.oldest, vacuumed.version) == (report.oldest, report.committed)
    gs.copy(a.uri, tmp_path / "b.gs", history=True, context=QUICK)
    [copied] = kept.of("copied a history")
    assert copied.version == a.version and copied.source == merged.uri and copied.objects > 0
    gs.repair(a.uri, dry_run=False)
    [repaired] = kept.of("repaired")
    assert (repaired.name, repaired.actions) == ("gridstone.repair", 0)


def elsewhere(uri: str, does: str) -> None:
    """Commits in another process."""
    script = f"import gridstone as gs; gs.open({uri!r}, mode='r+').{does}"
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ)


def test_lost_slots_and_conflicts_are_told(tmp_path: Path, kept: Kept) -> None:
    uri = str(tmp_path / "a.gs")
    gs.create(uri, LINE, context=QUICK).write_cells({"x": [1]}, {"v": [1]})
    with gs.transaction(uri, context=QUICK) as first:
        first["/"].write_cells({"x": [2]}, {"v": [2]})
        elsewhere(uri, 'write_cells({"x": [3]}, {"v": [3]})')
    [lost] = kept.of("slot lost")
    assert (lost.levelname, lost.version, lost.tries) == ("DEBUG", 3, 1)
    done = kept.of("committed")[-1]
    assert (done.version, done.tries) == (4, 2)
    with pytest.raises(gs.ConflictError), gs.transaction(uri, isolation="serializable", context=QUICK) as second:
        second["/"].write_cells({"x": [len(second["/"].read())]}, {"v": [1]})
        elsewhere(uri, 'write_cells({"x": [4]}, {"v": [4]})')
    [conflict] = kept.of("conflict")
    assert conflict.levelname == "INFO" and conflict.read_version == 4 and "version 5" in conflict.reason


def test_what_the_background_does_is_told_by_the_next_call(tmp_path: Path, kept: Kept) -> None:
    a = gs.create(tmp_path / "a.gs", LINE, context=QUICK)
    for seed in range(10):
        write(a, seed)
    going = a.consolidate("all", background=True)
    report = going.wait(60)
    [merged] = kept.of("merged")
    assert merged.removed == 10 and len(report.merges) == 1


def test_levels_are_those_of_logging_and_may_change(tmp_path: Path) -> None:
    logger = logging.getLogger("gridstone")
    for handler in listening(logging.INFO):
        a = gs.create(tmp_path / "a.gs", LINE, context=QUICK)
        assert len(handler.of("committed")) == 1
        logging.getLogger("gridstone.commit").setLevel(logging.ERROR)
        write(a, 1)
        assert len(handler.of("committed")) == 1, "a child may say less"
        logging.getLogger("gridstone.commit").setLevel(logging.NOTSET)
        write(a, 2)
        assert len(handler.of("committed")) == 2
        logging.disable(logging.CRITICAL)
        write(a, 3)
        logging.disable(logging.NOTSET)
        assert len(handler.of("committed")) == 2
    write(a, 4)
    assert len(handler.of("committed")) == 2 and not logger.isEnabledFor(logging.INFO)


def test_a_handler_that_raises_breaks_no_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("the log is full")

    raised: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, raised.append
    logger, handler = logging.getLogger("gridstone"), Broken()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        a = gs.create(tmp_path / "a.gs", LINE, context=QUICK)
        assert write(a, 1) == 2 and len(a.read()) == 20
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        sys.unraisablehook = hook
    assert len(raised) == 2 and all("the log is full" in str(found.exc_value) for found in raised)
    del raised
    gc.collect()


def test_a_handler_may_write_to_a_store(tmp_path: Path) -> None:
    """A log that is an array: its own commits are events too, and nothing goes round for ever."""
    log = gs.create(tmp_path / "log.gs", LINE, context=QUICK)

    class ToStore(logging.Handler):
        def emit(self, record: Any) -> None:
            if not record.uri.endswith("log.gs"):
                log.write_cells({"x": [record.version]}, {"v": [record.cells]})

    handler = ToStore()
    logger = logging.getLogger("gridstone.commit")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        a = gs.create(tmp_path / "a.gs", LINE, context=QUICK)
        for seed in range(5):
            write(a, seed, 7)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert log.read()["v"].tolist() == [0, 7, 7, 7, 7, 7]


def test_threads_tell_every_commit_once(tmp_path: Path, kept: Kept) -> None:
    uri = str(tmp_path / "a.gs")
    gs.create(uri, LINE, context=QUICK)

    def work(seed: int) -> None:
        array = gs.open(uri, mode="r+", context=QUICK)
        for step in range(10):
            write(array, 100 * seed + step)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    a = gs.open(uri, context=QUICK)
    told = sorted(record.version for record in kept.of("committed"))
    assert told == list(range(1, a.version + 1)), "threads that share a record tell it once"
    assert sum(record.cells for record in kept.of("committed")) == 800


SILENT = """
import sys, logging
import gridstone as gs
from gridstone.base import log
{setup}
a = gs.array({uri!r}, [1, 2, 3])
a[0] = 5
gs.copy({uri!r}, {uri!r} + ".copy", history=True)
"""


@pytest.mark.parametrize(
    ("setup", "lines"),
    [("", 0), ("logging.basicConfig()", 0), ("logging.basicConfig(level=logging.INFO)", 4)],
)
def test_nothing_is_printed_unless_the_program_asks(tmp_path: Path, setup: str, lines: int) -> None:
    script = SILENT.format(setup=setup, uri=str(tmp_path / "a.gs"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    told = [line for line in done.stderr.splitlines() if "gridstone" in line]
    assert done.stdout == "" and len(told) == lines, done.stderr
    if lines:
        assert told[0].startswith("INFO:gridstone.commit:committed: ")


def test_a_forked_child_tells_its_own_commits(tmp_path: Path, kept: Kept) -> None:
    uri = str(tmp_path / "a.gs")
    a = gs.create(uri, LINE, context=QUICK)
    write(a, 1)
    before = len(kept.records)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            gs.open(uri, mode="r+", context=QUICK).write_cells({"x": [3]}, {"v": [3]})
            code = 0 if [record.version for record in kept.records[before:]] == [3] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(kept.records) == before


def test_an_interrupt_that_comes_while_loggers_are_asked_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    a = gs.array("mem://interrupted-log", np.arange(10))

    def interrupted(level: int) -> bool:
        raise KeyboardInterrupt

    for logger in log._LOGGERS.values():
        monkeypatch.setattr(logger, "isEnabledFor", interrupted)
    version = a.version
    with pytest.raises(KeyboardInterrupt):
        a[0] = 7
    monkeypatch.undo()
    assert a.version == version and a[0] == 0


def test_an_interrupt_that_comes_while_events_are_told_comes_up_behind_them() -> None:
    class Interrupted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise KeyboardInterrupt

    a = gs.array("mem://interrupted-events", np.arange(10))
    logger, handler = logging.getLogger("gridstone"), Interrupted()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with pytest.raises(KeyboardInterrupt):
            a[0] = 7
            for _ in range(1_000):
                pass
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert gs.open("mem://interrupted-events")[0] == 7
