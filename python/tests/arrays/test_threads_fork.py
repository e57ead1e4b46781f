"""One array shared by threads, arrays used on both sides of a fork, and how many threads a process has."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from places import Stores, data_files

import gridstone as gs
from gridstone.context import settings as context

THREADS = 8
ROUNDS = 25
WATCHDOG_S = 60
SIDE = 256

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc/self/task")


def dense(uri: str) -> gs.Array:
    """A dense array with a row per thread, row r filled with 0."""
    schema = gs.Schema([gs.Dim("row", (0, THREADS - 1), 3), gs.Dim("x", (0, SIDE - 1), 50)], [gs.Attr("v", "int64")])
    return gs.create(uri, schema, context=gs.Context("64MiB", 2, durability="close"))


def test_threads_share_an_array(stores: Stores) -> None:
    """Each thread writes its own row and always sees what it wrote last; rows of others are whole."""
    a, rounds = dense(stores("threads")), 3 if stores.kind == "bucket" else ROUNDS
    start = threading.Barrier(THREADS)

    def work(row: int) -> None:
        start.wait(WATCHDOG_S)
        for turn in range(1, rounds + 1):
            a[row, :] = turn
            seen = a[...]
            assert set(seen[row]) == {turn}, "a thread sees its own writes"
            assert (seen.min(axis=1) == seen.max(axis=1)).all(), "no read sees part of a write"
            assert a.read({"row": (row, row)}, order="col")["v"].max() == turn

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, row) for row in range(THREADS)]:
            done.result(WATCHDOG_S)
    # Writes of several threads may share a version, those of one never do.
    assert rounds + 1 <= a.version <= THREADS * rounds + 1
    assert (a[...] == rounds).all()
    assert a.verify()["damage"] == []


def test_threads_read_and_write_cells(stores: Stores) -> None:
    """Sparse writes, deletes, scans and metadata from many threads at once."""
    schema = gs.Schema(
        [gs.Dim("t", (0, THREADS - 1), 1), gs.Dim("i", (0, 10**9), 1000)], [gs.Attr("s", str)], sparse=True
    )
    a = gs.create(stores("cells"), schema, context=gs.Context("16MiB", 2, durability="close"))

    rounds = 3 if stores.kind == "bucket" else ROUNDS

    def work(t: int) -> None:
        for turn in range(rounds):
            places = np.arange(turn * 10, turn * 10 + 10)
            a.write_cells({"t": np.full(10, t), "i": places}, [f"{t}.{i}" for i in places])
            a.delete(coords={"t": [t], "i": [turn * 10]})
            mine = a.scan({"t": (t, t)}, order="row", batch_bytes=100).to_arrow()
            assert mine.column("s").to_pylist() == [f"{t}.{i}" for i in range(turn * 10 + 10) if i % 10]
            a.meta[f"turn {t}"] = turn
            assert a.meta[f"turn {t}"] == turn

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, t) for t in range(THREADS)]:
            done.result(WATCHDOG_S)
    assert len(a.read()) == THREADS * rounds * 9
    assert dict(a.meta) == {f"turn {t}": rounds - 1 for t in range(THREADS)}


class Appending:
    """A writer, and a thread that appends a portion to it, which takes a while."""

    CELLS = 1 << 18

    def __init__(self, uri: str) -> None:
        schema = gs.Schema([gs.Dim("x", (0, self.CELLS - 1), 1 << 16)], [gs.Attr("v", "float64", filters="zstd:19")])
        self.array = gs.create(uri, schema, context=gs.Context("64MiB", 1))
        self.values = np.random.default_rng(1).standard_normal(self.CELLS).round(2)
        self.writer = self.array.writer()
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self.append)
        self.thread.start()
        time.sleep(0.05)

    def append(self) -> None:
        try:
            self.writer.append(self.values)
        except gs.errors.InputError as error:
            self.error = error

    def beside(self, work: Callable[[], None]) -> int:
        """How often this thread comes to its turn while another one does `work`, and then the append ends."""
        other = threading.Thread(target=work)
        other.start()
        turns = 0
        end = time.monotonic() + WATCHDOG_S
        while (other.is_alive() or self.thread.is_alive()) and time.monotonic() < end:
            turns += 1
            time.sleep(0.001)
        assert not (other.is_alive() or self.thread.is_alive()), "the threads wait for each other"
        return turns


def test_a_writer_is_aborted_while_another_thread_appends(store_uri: str) -> None:
    """The thread that aborts goes on at once, and keeps no other from running; nothing is left of what was written."""
    appending, early = Appending(store_uri), []

    def abort() -> None:
        appending.writer.abort()
        early.append(appending.thread.is_alive())

    assert appending.beside(abort) > 20
    assert early == [True], "the abort waited for the end of the append"
    assert "aborted" in str(appending.error)
    with pytest.raises(gs.errors.InputError, match="finished"):
        appending.writer.append(appending.values)
    assert appending.array.refresh() == 1
    assert not data_files(store_uri)


def test_a_writer_is_not_closed_while_another_thread_appends(store_uri: str) -> None:
    """To close or to append then is an error that leaves the writer as it is: it is closed after the append."""
    appending, refused = Appending(store_uri), []

    def close() -> None:
        for work in (appending.writer.close, lambda: appending.writer.append(appending.values)):
            with pytest.raises(gs.errors.InputError, match="another thread"):
                work()
            refused.append(appending.thread.is_alive())

    assert appending.beside(close) > 20
    assert refused == [True, True], "what is refused is refused at once"
    assert appending.error is None
    assert appending.array.version == 1
    appending.writer.close()
    np.testing.assert_array_equal(appending.array[...], appending.values)


def in_child(work: Callable[[], None]) -> None:
    """Runs `work` in a forked child; fails if it raises, or hangs."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(WATCHDOG_S)
            work()
            status = 0
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    end = time.monotonic() + 2 * WATCHDOG_S
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the forked child hangs")


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_array_survives_fork(between_processes: None, store_uri: str) -> None:
    """After use (pool and caches are warm) a child reads, writes and scans; the parent goes on and sees it."""
    a = dense(store_uri)
    a[...] = np.arange(THREADS * SIDE).reshape(THREADS, SIDE)
    before = a[...]

    def child() -> None:
        assert np.array_equal(a[...], before)
        a[1, :] = -1
        assert set(a[1]) == {-1}
        fresh = gs.open(a.uri, mode="r+")
        fresh[2, 0] = -2
        assert sum(batch.num_rows for batch in fresh.scan(batch_bytes=1000)) == THREADS * SIDE
        in_child(lambda: None if int(fresh[2, 0]) == -2 else pytest.fail("a grandchild reads something else"))

    in_child(child)
    assert np.array_equal(a[...], before), "a handle stays at its version"
    a[3, :] = -3
    assert (a.version, int(a[1, 0]), int(a[2, 0]), int(a[3, 0])) == (5, -1, -2, -3)


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_other_threads_work(between_processes: None, store_uri: str) -> None:
    """A fork in the midst of other threads' reads and writes leaves no lock held in the child."""
    a = dense(store_uri)
    a[...] = 7
    stop = threading.Event()

    def busy(row: int) -> None:
        while not stop.is_set():
            a[row, :] = 7
            a.read(order="global")

    def child() -> None:
        assert (a[...] == 7).all()
        gs.open(a.uri, mode="r+").meta["child"] = True
        assert gs.create(f"mem://child-{os.getpid()}", a.schema).version == 1

    threads = [threading.Thread(target=busy, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join(WATCHDOG_S)
    a.refresh()
    assert a.meta["child"] is True
    assert (a[...] == 7).all()


LARGE_ATTRS, LARGE_CELLS = 400, 16_384


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_context_that_another_thread_is_making_is_made_anew(store_uri: str) -> None:
    gs.array(store_uri, np.arange(10))
    used = gs.Context(threads=1)
    with used._lock.here():
        in_child(lambda: gs.open(store_uri, context=used)[3])
    with context._Default.lock.here():
        in_child(lambda: gs.open(store_uri)[3])


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_other_threads_drop_large_results(tmp_path: Path) -> None:
    """Memory of dropped results is handed out under a lock, which a fork's child never finds held. A buffer per
    attribute and many to choose from make it likely that it is held when the fork comes.
    """
    attrs = [gs.Attr(f"v{i}", "int64", fill=i) for i in range(LARGE_ATTRS)]
    a = gs.create(str(tmp_path / "large.gs"), gs.Schema([gs.Dim("x", (0, LARGE_CELLS - 1))], attrs),
                  context=gs.Context("2GiB", 2))  # fmt: skip
    kept = [a.read() for _ in range(4)]
    del kept
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            assert a.read()["v1"].nbytes == 128 << 10

    def child() -> None:
        for i in range(3):
            assert int(a.read(attrs=f"v{i}")[f"v{i}"].min()) == i

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3 * ROUNDS):
            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join(WATCHDOG_S)


COUNT_THREADS = """
import os, sys, threading
import numpy as np
import gridstone as gs

def tasks():
    # Threads of the engine's pool, by their names: other libraries come and go.
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                found += name.read().startswith("gridstone-")
        except FileNotFoundError:
            pass
    return found

seen, all_seen = [], []

def work():
    before = len(os.listdir("/proc/self/task"))
    a = gs.array("mem://counted", np.arange(4_000_000).reshape(2000, 2000), tile=100)
    def report(finished, total):
        seen.append(tasks())
        all_seen.append(len(os.listdir("/proc/self/task")) - before)
    for _ in range(20):
        assert int(a.read(progress=report)["value"][-1, -1]) == 3_999_999
        seen.append(tasks())

if sys.argv[1] == "main":
    work()
else:
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
print(max(seen), max(all_seen), gs.Context().threads)
"""


@needs_proc
@pytest.mark.parametrize("caller", ["main", "other"])
@pytest.mark.parametrize("threads", [1, 3])
def test_gridstone_threads_bounds_the_threads(threads: int, caller: str) -> None:
    """GRIDSTONE_THREADS=1: no thread is started to read, whoever calls; 3: at most the pool."""
    env = {**os.environ, "GRIDSTONE_THREADS": str(threads)}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env[name] = "1"
    done = subprocess.run(
        [sys.executable, "-c", COUNT_THREADS, caller],
        env=env,
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    more, more_of_any_name, told = map(int, done.stdout.split())
    assert told == threads
    assert more == more_of_any_name == 0 if threads == 1 else 0 < more <= threads
