"""Several processes on one store: nothing is lost, nothing fails, and a process killed while it writes loses at most
what it was never told of.
"""

import multiprocessing
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Stores

import gridstone as gs

PROCESSES, WRITES = 8, 100
KILLS = 20
WATCHDOG_S = 120

SPARSE = gs.Schema(
    [gs.Dim("writer", (0, PROCESSES - 1), 1), gs.Dim("i", (0, WRITES - 1), 10)], [gs.Attr("v", "int64")], sparse=True
)
DENSE = gs.Schema([gs.Dim("writer", (0, PROCESSES - 1), 3), gs.Dim("i", (0, WRITES - 1), 7)], [gs.Attr("v", "int64")])


def value(writer: int, i: int) -> int:
    """What a writer writes at its i-th place."""
    return 1_000 * writer + i + 1


def commit_many(uri: str, writer: int, sparse: bool) -> list[int]:
    """One process's commits, one cell each; the versions that they made."""
    a = gs.open(uri, mode="r+", context=gs.Context("64MiB", 1, durability="close"))
    versions = []
    for i in range(WRITES):
        if sparse:
            versions.append(a.write_cells({"writer": [writer], "i": [i]}, [value(writer, i)], message=f"{writer} {i}"))
        else:
            versions.append(a.write([[value(writer, i)]], {"writer": (writer, writer), "i": (i, i)}))
    return versions


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_no_commit_of_eight_processes_is_lost(tmp_path: Path, sparse: bool) -> None:
    uri = str(tmp_path / "shared.gs")
    gs.create(uri, SPARSE if sparse else DENSE, context=gs.Context(durability="close")).close()
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        asked = pool.starmap_async(commit_many, [(uri, writer, sparse) for writer in range(PROCESSES)])
        versions = asked.get(WATCHDOG_S)
    a = gs.open(uri)
    assert sorted(v for made in versions for v in made) == list(range(2, PROCESSES * WRITES + 2))
    assert all(made == sorted(made) for made in versions), "a writer sees its own versions grow"
    expected = np.array([[value(w, i) for i in range(WRITES)] for w in range(PROCESSES)])
    found = a.read()["v"].reshape(expected.shape)
    assert np.array_equal(found, expected)
    assert [v.version for v in a.history()] == list(range(1, PROCESSES * WRITES + 2))
    assert a.verify()["damage"] == []


WRITE_FOR_EVER = """
import sys
import numpy as np
import gridstone as gs
a = gs.open(sys.argv[1], mode="r+", context=gs.Context("64MiB", 1, durability="close"))
cells = np.arange(400)
for _ in range(100_000):
    stamp = a.version + 1
    # Every third write is too large for the commit's record, so that its fragment is a file of its own.
    noise = np.random.default_rng(stamp).integers(0, 2**62, 400).tobytes() * (1 if stamp % 3 else 50)
    a.write_cells({"x": cells}, {"stamp": np.full(400, stamp), "noise": [noise[: len(noise) // 400]] * 400})
    print(a.version, flush=True)
"""
KILLED = gs.Schema(
    [gs.Dim("x", (0, 399), 50)], [gs.Attr("stamp", "int64"), gs.Attr("noise", bytes, filters="none")], sparse=True
)


def run_and_kill(uri: str, chance: random.Random) -> int:
    """Starts a writer, kills it at a random moment after its first commit; the last version that it told of."""
    writer = subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, uri], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    first = writer.stdout.readline()
    assert first.strip(), "the writer failed before its first commit"
    time.sleep(chance.random() * 0.05)
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read()
    assert writer.wait(WATCHDOG_S) == -signal.SIGKILL
    # The last line may be cut short by the kill; whole lines end with a line break.
    whole = (first + rest).rpartition("\n")[0].split()
    return int(whole[-1])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_writer_leaves_its_last_commit_or_the_next(between_processes: None, stores: Stores) -> None:
    uri, chance = stores("killed"), random.Random(7)
    gs.create(uri, KILLED).close()
    for _ in range(5 if stores.kind == "bucket" else KILLS):
        told = run_and_kill(uri, chance)
        a = gs.open(uri, mode="r+")
        assert a.version in (told, told + 1)
        found = a.read(attrs="stamp")
        assert found["x"].tolist() == list(range(400))
        assert set(found["stamp"].tolist()) == {a.version}, "a commit shows whole or not at all"
    assert a.verify()["damage"] == []
    assert a.write_cells({"x": [0]}, {"stamp": [-1], "noise": [b""]}) == a.version
    assert a.read({"x": (0, 0)})["stamp"].tolist() == [-1]


def read_elsewhere(a: gs.Array) -> tuple[int, int, int]:
    """What an unpickled array shows in another process."""
    return a.version, int(a.read()["v"].sum()), os.getpid()


def test_arrays_are_sent_to_spawned_workers(between_processes: None, store_uri: str) -> None:
    a = gs.create(store_uri, DENSE)
    a[...] = 1
    old = a.at(version=2)
    a[0, :] = 5
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        newest, past = pool.map_async(read_elsewhere, [a, old], chunksize=1).get(WATCHDOG_S)
    assert newest[:2] == (3, PROCESSES * WRITES + 4 * WRITES)
    assert past[:2] == (2, PROCESSES * WRITES)
    assert os.getpid() not in (newest[2], past[2])


def write_elsewhere(a: gs.Array, writer: int) -> int:
    """Writes a row through an unpickled array."""
    return a.write(np.full((1, WRITES), writer), {"writer": (writer, writer)})


def test_spawned_workers_write_through_arrays_sent_to_them(between_processes: None, store_uri: str) -> None:
    a = gs.create(store_uri, DENSE)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        versions = pool.starmap_async(write_elsewhere, [(a, w) for w in range(PROCESSES)], 1).get(WATCHDOG_S)
    assert sorted(versions) == list(range(2, PROCESSES + 2))
    assert a.version == 1, "a handle moves when it is told to, or by its own commits"
    assert a.refresh() == PROCESSES + 1
    assert np.array_equal(a[...], np.repeat(np.arange(PROCESSES), WRITES).reshape(PROCESSES, WRITES))


SAMPLES, SIDE, WORKERS = 48, 40, 3
EPOCHS = {"fork": 6, "spawn": 1, "forkserver": 1}


class Samples:
    """A data set as PyTorch's loaders take it: `len`, and a sample for a number, from arrays that are open already."""

    def __init__(self, images: gs.Array, labels: gs.Array) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[int, np.ndarray, int]:
        return i, self.images[i], int(self.labels.points({"i": [i]})["label"][0])


def serve(samples: Samples, asked: Any, made: Any) -> None:
    """A worker of a loader: batches of samples until it is told to end."""
    while (batch := asked.get()) is not None:
        try:
            made.put([samples[i] for i in batch])
        except BaseException as error:
            made.put(repr(error))


def load(samples: Samples, method: str, order: list[int]) -> list[tuple[int, np.ndarray, int]]:
    """An epoch: workers are started, share the batches, and end, as a loader's do each time it is gone through."""
    context = multiprocessing.get_context(method)
    asked, made = context.Queue(), context.Queue()
    workers = [context.Process(target=serve, args=(samples, asked, made), daemon=True) for _ in range(WORKERS)]
    batches = [order[start : start + 5] for start in range(0, len(order), 5)]
    try:
        for worker in workers:
            worker.start()
        for batch in [*batches, *[None] * WORKERS]:
            asked.put(batch)
        found = []
        for _ in batches:
            batch = made.get(timeout=WATCHDOG_S)
            assert isinstance(batch, list), batch
            found += batch
        for worker in workers:
            worker.join(WATCHDOG_S)
            assert worker.exitcode == 0
        return found
    except queue.Empty:
        pytest.fail(f"the workers hang ({method})")
    finally:
        for worker in workers:
            worker.kill()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", [m for m in EPOCHS if m in multiprocessing.get_all_start_methods()])
def test_a_pool_of_loaders_reads_while_the_parent_reads_and_writes(
    between_processes: None, store_uri: str, method: str
) -> None:
    """Workers inherit (or are sent) arrays that are open, warm, and in use by the parent's threads at that moment; each
    epoch starts new ones. They show the version that the arrays had, whatever the parent commits meanwhile.
    """
    uri, context = store_uri, gs.Context("64MiB", 2, durability="close")
    pictures = np.random.default_rng(3).integers(0, 256, (SAMPLES, SIDE, SIDE), dtype="uint8")
    gs.array(uri, pictures, tile=(7, SIDE, SIDE), path="/images", context=context)
    gs.create(uri, gs.Schema([gs.Dim("i", (0, SAMPLES - 1))], [gs.Attr("label", int)], sparse=True), path="/labels")
    samples = Samples(*(gs.open(uri, path=path, context=context) for path in ("/images", "/labels")))
    writing = gs.open(uri, path="/labels", mode="r+", context=context)
    writing.write_cells(np.arange(SAMPLES), np.arange(SAMPLES) % 10)
    samples.labels.refresh()
    stop, wrong = threading.Event(), []

    def read_on() -> None:
        while not stop.is_set():
            if not np.array_equal(samples.images[...], pictures) or len(samples.labels.read()) != SAMPLES:
                wrong.append("a read of the parent")

    def write_on() -> None:
        while not stop.is_set():
            writing.write_cells(np.arange(SAMPLES), np.full(SAMPLES, -1))
            time.sleep(0.005)

    threads = [threading.Thread(target=work) for work in (read_on, read_on, write_on)]
    for thread in threads:
        thread.start()
    try:
        for epoch in range(EPOCHS[method]):
            order = random.Random(epoch).sample(range(SAMPLES), SAMPLES)
            found = load(samples, method, order)
            assert sorted(i for i, _, _ in found) == list(range(SAMPLES))
            for i, picture, label in found:
                assert label == i % 10
                np.testing.assert_array_equal(picture, pictures[i])
    finally:
        stop.set()
        for thread in threads:
            thread.join(WATCHDOG_S)
    assert wrong == []
    assert samples.labels.refresh() == writing.version > 4
