"""How loads and reads gain from a second thread and from a second process.

Processes are started, import and prepare outside the clock, wait for each other, and share the work in equal parts; the
time is from the first start to the last end.
"""

import multiprocessing
import time
from dataclasses import replace
from typing import Any

import numpy as np

import disk
from inputs import Box
from meter import Meter
from task import Sample, Task, expect

BOXES = 32


def load(task: Task) -> Sample:
    """Fills an array, each process its part of the rows; what they wrote is then fsynced, within the time."""
    target, values = task.scratch / "target", task.inputs.dense()
    task.system.load(task.scratch / "warm", np.zeros((64, 64), np.int32), (32, 32))
    if task.processes == 1:
        meter = Meter()
        with meter.clock():
            task.system.load(target, values, task.size.tile)
        task.system.keep(target)
        sample = meter.sample(disk.size_bytes(target))
    else:
        del values
        task.system.create(target, (task.size.side, task.size.side), task.size.tile)
        sample = _shared(task, _load_part)
        meter = Meter()
        with meter.clock():
            disk.sync_tree(target)
        sample["seconds"] += meter.seconds[0]
        sample["disk_bytes"] = disk.size_bytes(target)
    if task.check:
        handle = task.system.open(target)
        found = handle.read((slice(0, task.size.side), slice(0, task.size.side)))
        expect(np.array_equal(found, task.inputs.dense()), "what was loaded reads back differently")
    return sample


def _load_part(task: Task, part: int, barrier: Any) -> dict[str, Any]:
    rows = np.arange(0, task.size.side + 1, task.size.side // task.processes)
    box = (slice(int(rows[part]), int(rows[part + 1])), slice(0, task.size.side))
    values = np.ascontiguousarray(task.inputs.dense()[box])
    barrier.wait()
    return _timed(lambda: task.system.write(task.scratch / "target", box, values))


def read(task: Task) -> Sample:
    """Reads 32 boxes of the compressed array; each process reads its part of them."""
    store, boxes = task.store("dense"), task.inputs.boxes("box", BOXES)
    expected = task.inputs.dense() if task.check else None
    if expected is not None:
        for box in boxes:
            expect(np.array_equal(_read(task, box), expected[box]), f"the box {box} reads differently")
    if task.processes > 1:
        return {**_shared(task, _read_part), "disk_bytes": disk.size_bytes(store)}
    handles = _handles(task, boxes)
    meter = Meter()
    with meter.clock():
        for handle, box in zip(handles, boxes[1:], strict=True):
            handle.read(box)
    return meter.sample(disk.size_bytes(store))


def _read(task: Task, box: Box) -> Any:
    handle = task.system.open(task.store("dense"))
    found = handle.read(box)
    handle.close()
    return found


def _handles(task: Task, boxes: list[Box]) -> list[Any]:
    """One newly opened array for each box but the first, which is read to warm up."""
    _read(task, boxes[0])
    return [task.system.open(task.store("dense")) for _ in boxes[1:]]


def _read_part(task: Task, part: int, barrier: Any) -> dict[str, Any]:
    boxes = task.inputs.boxes("box", BOXES)
    mine = [boxes[0], *boxes[1 + part :: task.processes]]
    handles = _handles(task, mine)
    barrier.wait()
    return _timed(lambda: [handle.read(box) for handle, box in zip(handles, mine[1:], strict=True)])


def _timed(work: Any) -> dict[str, Any]:
    """The clock of `perf_counter` is the machine's, so that processes can be compared."""
    meter = Meter()
    start = time.perf_counter()
    with meter.clock():
        work()
    return {**meter.sample(0), "start": start, "end": time.perf_counter()}


def _shared(task: Task, work: Any) -> Sample:
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(task.processes), context.Queue()
    bare = replace(task, system=type(task.system)(task.system.variant))
    parts = [context.Process(target=_work, args=(bare, work, i, barrier, queue)) for i in range(task.processes)]
    for process in parts:
        process.start()
    answers = [queue.get(timeout=600) for _ in parts]
    for process in parts:
        process.join()
    for answer in answers:
        if "error" in answer:
            raise RuntimeError(answer["error"])
    return {
        "seconds": max(a["end"] for a in answers) - min(a["start"] for a in answers),
        "cpu_seconds": sum(a["cpu_seconds"] for a in answers),
        "rss_growth_bytes": sum(a["rss_growth_bytes"] for a in answers),
    }


def _work(task: Task, work: Any, part: int, barrier: Any, queue: Any) -> None:
    """What a process of its own does; the system is prepared anew, since nothing of it passes between processes."""
    try:
        if task.threads == 1:
            task.system.confine(part)
        task.system.prepare(task.threads)
        queue.put(work(task, part, barrier))
    except Exception as error:
        barrier.abort()
        queue.put({"error": f"{type(error).__name__}: {error}"})
