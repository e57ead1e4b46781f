"""Ctrl-C and exceptions of progress callables stop long work, and leave the store as it was.

The work is made long enough to be interrupted early: what is asserted is that it stopped before its end, never how
fast. How long it took to stop is printed (`pytest -s`).
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone.base.interrupt import interruptible

WATCHDOG_S = 5.0
START_S = 60.0
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent to a process, which Windows lacks")

HEAD = """
import sys, time
import numpy as np
import gridstone as gs
from gridstone.base.interrupt import interruptible
uri = sys.argv[1]
context = gs.Context("64MiB", int(sys.argv[2]), durability="close")

def begin(work):
    told = []
    def report(done, total):
        if not told:
            print("working", flush=True)
        told.append((done, total))
    start = time.monotonic()
    try:
        work(report)
    except KeyboardInterrupt:
        done, total = told[-1] if told else (0, 1)
        print(f"interrupted at={time.monotonic()} done={done} total={total}", flush=True)
    else:
        print(f"finished {told[-3:]}", flush=True)

"""

READ = """
a = gs.open(uri, context=context)
out = np.zeros(a.shape, "int64")
def work(report):
    # One is over too soon to be interrupted for certain.
    for i in range(1000):
        a.read(order="col", progress=lambda done, total: report(i * total + done, 1000 * total))
begin(work)
assert a.read({"x": (0, 9), "y": (0, 0)})["v"].tolist() == [[i * 4000 // 1000] for i in range(10)]
"""

SCAN = """
a = gs.open(uri, context=context)
def work(report):
    rows = 0
    for _ in range(1000):
        for batch in a.scan(order="row", batch_bytes="64KiB"):
            rows += batch.num_rows
            report(rows, 1000 * 16_000_000)
begin(work)
assert sum(b.num_rows for b in a.scan({"x": (0, 9)})) == 40_000
"""

WRITE = """
a = gs.open(uri, mode="r+", context=context)
rng = np.random.default_rng(1)
x, y = rng.integers(0, 4000, 8_000_000), rng.integers(0, 4000, 8_000_000)
v = rng.integers(0, 2**62, 8_000_000)
began = a.version
def work(report):
    print("working", flush=True)
    a.write_cells((x, y), v, dedup="last", progress=report)
begin(work)
assert a.version == began
a.write_cells(([0], [0]), [a.version])
assert int(a[0, 0]) == began
"""

CSV = """
import os
loaded = uri + ".loaded"
def work(report):
    gs.io.from_csv(loaded, uri + ".csv", ["x"], context=context, progress=report, block_bytes="64KiB")
begin(work)
assert not gs.exists(loaded) and not os.path.exists(loaded), os.listdir(loaded)
"""


SILENT = """
options = {"endpoint_url": uri, "key": "k", "secret": "s", "region": "us-east-1"}
context = gs.Context(threads=THREADS, storage_options=options)
def work(report):
    report(0, 1)
    CALL
begin(work)
"""

CALLS = {
    "open": 'gs.open("s3://box/a.gs", context=context)',
    "exists": 'gs.exists("s3://box/a.gs", context=context)',
    "create": 'gs.create("s3://box/a.gs", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int8")]), context=context)',
    "transaction": 'gs.transaction("s3://box/a.gs", context=context).__enter__()',
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dense array of 16 million cells, and a CSV file of 1.5 million rows beside it."""
    uri = str(tmp_path_factory.mktemp("interrupt") / "big.gs")
    schema = gs.Schema([gs.Dim("x", (0, 3999), 500), gs.Dim("y", (0, 3999), 500)], [gs.Attr("v", "int64")])
    a = gs.create(uri, schema, context=gs.Context(durability="close"))
    a[...] = np.arange(16_000_000).reshape(4000, 4000) // 1000
    block = "".join(f"{i},{i * 0.5},name {i}\n" for i in range(150_000))
    Path(f"{uri}.csv").write_text("x,v,s\n" + block * 10)
    return uri


def interrupted(body: str, uri: str, threads: int = 1) -> tuple[dict[str, float], float]:
    """Runs a script, interrupts it once it works; what it says of it, and the seconds from the signal to the answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + body, uri, str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        if first.strip() != "working":
            pytest.fail(f"the work did not begin: {first!r}\n{process.communicate(timeout=START_S)[1]}")
        time.sleep(0.1)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=START_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    last = out.strip().splitlines()[-1]
    assert last.startswith("interrupted"), f"not interrupted: {last}"
    told = dict(part.split("=") for part in last.split()[1:])
    answer = {name: float(number) for name, number in told.items()}
    seconds = answer.pop("at") - sent
    print(f"\nstopped after {seconds * 1000:.0f} ms, {answer}")
    return answer, seconds


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("body", [READ, SCAN, WRITE, CSV], ids=["read", "scan", "write_cells", "from_csv"])
def test_ctrl_c_stops_long_work(store: str, body: str, threads: int) -> None:
    before = gs.open(store).version
    answer, seconds = interrupted(body, store, threads)
    assert answer["done"] < answer["total"], "the work stopped before its end"
    assert seconds < WATCHDOG_S, "the work went on after Ctrl-C"
    a = gs.open(store, mode="r+")
    after = a.version
    assert after == before + (1 if body == WRITE else 0), "the interrupted work committed something"
    if body == WRITE:
        a[0, 0] = 0
    assert int(a[1, 0]) == 4
    assert a.verify()["damage"] == []


@pytest.fixture(scope="module")
def specks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A million cells in blocks of sixteen."""
    uri = str(tmp_path_factory.mktemp("specks") / "specks.gs")
    schema = gs.Schema([gs.Dim("x", (0, 10**6), 1000)], [gs.Attr("v", "int64")], sparse=True, capacity=16)
    gs.create(uri, schema).write_cells({"x": np.arange(10**6)}, np.arange(10**6))
    return uri


SINGLE: dict[str, Callable[[gs.Array, Any], Any]] = {
    "read": lambda a, report: a.read(progress=report),
    "read in row order": lambda a, report: a.read(order="row", progress=report),
    "read by a condition": lambda a, report: a.read(where="v >= 0", progress=report),
    "points": lambda a, report: a.points({"x": np.arange(10**6)}, progress=report),
    "dense read": lambda a, report: a.read(order="col", progress=report),
    "dense read by a condition": lambda a, report: a.read(where="v >= 0", progress=report),
    "dense read into": lambda a, report: a.read(out={"v": np.empty(a.shape, "int64")}, progress=report),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", SINGLE)
def test_ctrl_c_is_seen_within_a_single_read(store: str, specks: str, name: str, threads: int) -> None:
    """The thread that looks for it works itself, and waits for others."""
    uri, tries = store if name.startswith("dense") else specks, 20
    for _ in range(tries):
        a = gs.open(uri, context=gs.Context("64MiB", threads))
        told: list[tuple[int, int]] = []
        begun = threading.Event()

        def report(done: int, total: int, told: list[tuple[int, int]] = told, begun: threading.Event = begun) -> None:
            told.append((done, total))
            begun.set()

        def send(begun: threading.Event = begun) -> None:
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=send)
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            SINGLE[name](a, report)
            # The signal is late: it comes here.
            begun.set()
            sender.join()
            time.sleep(START_S)
        sender.join()
        if told and told[-1][0] < told[-1][1]:
            return
    pytest.fail(f"of {tries} reads none was stopped before its end")


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_waiting_for_a_network(silent: str, call: str, threads: int) -> None:
    _, seconds = interrupted(SILENT.replace("CALL", CALLS[call]).replace("THREADS", str(threads)), silent)
    assert seconds < WATCHDOG_S, "the request's own time-out ended it"


def files(uri: str) -> set[str]:
    """Every file of a store but its leases and hints."""
    found = (Path(folder) / name for folder, _, names in os.walk(uri) for name in names)
    return {str(file) for file in found if "_lease" not in str(file) and file.name != "latest"}


def cells(uri: str) -> tuple[gs.Array, np.ndarray]:
    """A sparse array of a million cells in two fragments."""
    schema = gs.Schema([gs.Dim("x", (0, 2_000_000), 10_000)], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create(uri, schema, context=gs.Context("16MiB", 2, durability="close"))
    x = np.arange(1_000_000)
    a.write_cells({"x": x[:-1]}, x[:-1])
    a.write_cells({"x": x[-1:]}, x[-1:])
    return a, x


def filled(a: gs.Array, report: Any) -> None:
    """Reads everything in portions."""
    for _ in a.read_into({"v": np.empty(300_000, "int64")}, progress=report):
        pass


def appended(a: gs.Array, report: Any) -> None:
    """Writes some cells in pieces."""
    with a.writer(order="any", progress=report) as writer:
        for first in range(1_200_000, 1_240_000, 10_000):
            x = np.arange(first, first + 10_000)
            writer.append({"x": x}, x)


WORKS: dict[str, Callable[[gs.Array, Any, Path], Any]] = {
    "read": lambda a, report, _: a.read(progress=report),
    "read a column order": lambda a, report, _: a.read(order="col", progress=report),
    "write_cells": lambda a, report, _: a.write_cells({"x": np.arange(10**6)}, np.arange(10**6), progress=report),
    "from_csv": lambda a, report, csv: gs.io.from_csv(
        a.uri, csv, context=a.context, progress=report, block_bytes="64KiB"
    ),
    "scan": lambda a, report, _: list(a.scan(batch_bytes="256KiB", progress=report)),
    "scan a condition": lambda a, report, _: a.scan(where="v > 7", batch_bytes="1MiB", progress=report).to_arrow(),
    "read_into": lambda a, report, _: filled(a, report),
    "writer": lambda a, report, _: appended(a, report),
    "delete where": lambda a, report, _: a.delete(where="v >= 900000", progress=report),
    "delete where, a receipt": lambda a, report, _: a.delete(where="v >= 900000", commit=False, progress=report),
    "delete where, of a box": lambda a, report, _: a.delete(slice(0, 600_000), "v >= 500000", progress=report),
    "delete where, duplicates": lambda a, report, _: repeated(a).delete(where="v >= 400000", progress=report),
    "delete where, dense": lambda a, report, _: dense_beside(a).delete(where="v == 2", progress=report),
    "delete coords": lambda a, report, _: a.delete(coords={"x": np.arange(900_000, 10**6)}, progress=report),
    "consolidate": lambda a, report, _: a.consolidate("all", progress=report),
    "dense consolidate": lambda a, report, _: dense_beside(a).consolidate("all", progress=report),
    "dense write": lambda a, report, _: dense_beside(a).write(np.ones((2000, 1000), "int64"), progress=report),
    "dense read": lambda a, report, _: dense_beside(a).read(order="global", progress=report),
}


def beside(a: gs.Array, name: str) -> str:
    """A place beside an array's store."""
    return f"{a.uri.rpartition('/')[0]}/{name}.gs"


def with_room_beside(stores: Stores) -> gs.Array:
    """The array of `cells`; what `repeated` and `dense_beside` put beside it goes with it."""
    for name in ("repeated", "dense"):
        stores(name)
    return cells(stores("cells"))[0]


def repeated(a: gs.Array) -> gs.Array:
    """A sparse array of half a million cells in a store of its own, where places may have several."""
    uri = beside(a, "repeated")
    if gs.exists(uri):
        return gs.open(uri, mode="r+", context=a.context)
    schema = gs.Schema([gs.Dim("x", (0, 10**6), 10_000)], [gs.Attr("v", "int64")], sparse=True, duplicates=True)
    made = gs.create(uri, schema, context=gs.Context("16MiB", 1, durability="close"))
    for first in (0, 200_000):
        made.write_cells({"x": np.arange(first, first + 250_000)}, np.arange(first, first + 250_000))
    return made


def dense_beside(a: gs.Array) -> gs.Array:
    """A dense array of two million cells in a store of its own."""
    uri = beside(a, "dense")
    if gs.exists(uri):
        return gs.open(uri, mode="r+", context=a.context)
    schema = gs.Schema([gs.Dim("y", (0, 1999), 100), gs.Dim("x", (0, 999), 100)], [gs.Attr("v", "int64")])
    made = gs.create(uri, schema, context=gs.Context("16MiB", 1, durability="close"))
    made[:1500] = 1
    made[1000:] = 2
    return made


@pytest.mark.parametrize("name", WORKS)
def test_progress_grows_to_its_end(tmp_path: Path, stores: Stores, name: str) -> None:
    a, csv = with_room_beside(stores), csv_file(tmp_path)
    told: list[tuple[int, int]] = []
    WORKS[name](a, lambda done, total: told.append((done, total)), csv)
    done = [d for d, _ in told]
    assert done == sorted(done), "progress goes forward"
    assert told[-1][0] == told[-1][1] > 0, "the last report is the end"
    assert all(d <= total or total == 0 for d, total in told), "0 while the total is not known"


class Stop(Exception):
    """Raised by a progress callable."""


@pytest.mark.parametrize("name", WORKS)
def test_an_exception_of_progress_stops_the_work(tmp_path: Path, stores: Stores, name: str) -> None:
    a, csv = with_room_beside(stores), csv_file(tmp_path)
    arrays = [a, dense_beside(a), repeated(a)]
    before, kept = [array.version for array in arrays], set().union(*(files(array.uri) for array in arrays))
    told: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        told.append((done, total))
        raise Stop(f"at {done}")

    with pytest.raises(Stop, match="at "):
        WORKS[name](a, report, csv)
    assert len(told) == 1, "nothing is told after the exception"
    assert [array.refresh() for array in arrays] == before
    assert set().union(*(files(array.uri) for array in arrays)) == kept, "no half-written fragment stays"
    WORKS[name](a, None, csv)
    assert a.read({"x": (10, 12)})["v"].tolist()[:3] == [10, 11, 12]


def csv_file(folder: Path) -> Path:
    """Rows for the array of `cells`, beyond those that it has."""
    file = folder / "more.csv"
    file.write_text("x,v\n" + "".join(f"{i},{i}\n" for i in range(1_200_000, 1_300_000)))
    return file


def test_ctrl_c_in_a_progress_callable(store_uri: str) -> None:
    """A KeyboardInterrupt raised by the callable itself, as a bar's drawing may be hit by one."""
    a, _ = cells(store_uri)

    def report(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        a.read(progress=report)
    assert len(a.read()) == 1_000_000


def test_ctrl_c_does_not_wait_for_a_call_that_cannot_be_stopped() -> None:
    """`interruptible` raises while the work goes on; errors and values come through."""
    ended = threading.Event()
    start = threading.Event()

    def work() -> int:
        start.set()
        assert ended.wait(60)
        return 7

    def interrupt() -> None:
        start.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(1 << 30, work)
    ended.set()
    assert interruptible(1 << 30, work) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(1 << 30, lambda: 1 // 0)
