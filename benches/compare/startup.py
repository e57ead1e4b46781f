"""What a fresh process pays before it is at full speed: its imports, its first reads."""

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import disk
from inputs import WARMUP_READS
from meter import Meter
from task import Procedure, Sample, Task, expect

IMPORTS = 9
"""Processes of each kind that a sample of imports starts."""

_NEAR = 1.1
"""Full speed: a tenth slower than the usual read, or better."""

_PEAK = "; print(*(l for l in open('/proc/self/status') if l.startswith('VmHWM')))"

# Reads.


def warmup(*, cold: bool) -> Procedure:
    """Imports (NumPy is imported already), opens once, and times each of 20 reads of boxes that are alike. Cold:
    without the page cache before each. One process gives all figures, as parts: "import", "first" (with opening),
    "second", "fifth", "twentieth", and "full": opening and all reads up to the first at full speed.
    """

    def measured(task: Task) -> Sample:
        store, boxes = task.store("dense"), task.inputs.alike()
        meter = Meter()
        with meter.clock():
            task.system.prepare(task.threads)
        expected = task.inputs.dense() if task.check else None
        handle: Any = None
        for box in boxes:
            if cold:
                disk.forget(store)
            with meter.clock():
                handle = handle or task.system.open(store)
                found = handle.read(box)
            if expected is not None:
                expect(np.array_equal(found, expected[box]), f"the box {box} reads differently")
        handle.close()
        return {"parts": _parts(meter, disk.size_bytes(store))}

    return measured


def _parts(meter: Meter, disk_bytes: int) -> dict[str, Sample]:
    which = {"import": 0, "first": 1, "second": 2, "fifth": 5, "twentieth": WARMUP_READS}
    parts = {name: meter.sample(disk_bytes, number) for name, number in which.items()}
    reads = meter.seconds[1:]
    number = full_speed(reads)
    until = {"seconds": sum(reads[:number]), "cpu_seconds": sum(meter.cpu_seconds[1 : number + 1])}
    parts["full"] = {**parts["first"], **until, "read": number, "reads": reads}
    return parts


def full_speed(reads: list[float]) -> int:
    """Which read, counted from 1, is the first that takes at most a tenth more than the median of the last ten."""
    enough = _NEAR * statistics.median(reads[-10:])
    return next(number for number, seconds in enumerate(reads, 1) if seconds <= enough)


# Imports.


def imports(task: Task) -> Sample:
    """`python -c "import …"` less `python -c pass`: medians, in fresh processes in turn; the growth of memory too."""
    statement = f"import {task.system.module}"
    started(statement)  # what Python compiles once, it has compiled
    ran, idle = [], []
    for _ in range(1 if task.check else IMPORTS):
        idle.append(started("pass"))
        ran.append(started(statement))
    seconds, cpu = (statistics.median(r[i] for r in ran) - statistics.median(r[i] for r in idle) for i in (0, 1))
    growth = _peak_bytes(statement) - _peak_bytes("pass")
    return {"seconds": seconds, "cpu_seconds": cpu, "rss_growth_bytes": max(0, growth), "disk_bytes": 0}


def started(statement: str) -> tuple[float, float]:
    """Seconds from the start of a process to its end, and its CPU seconds."""
    start = time.perf_counter()
    number = os.posix_spawn(sys.executable, [sys.executable, "-c", statement], os.environ)
    _, status, usage = os.wait4(number, 0)
    seconds = time.perf_counter() - start
    expect(os.waitstatus_to_exitcode(status) == 0, f"python -c {statement!r} ends with {status}")
    return seconds, usage.ru_utime + usage.ru_stime


def _peak_bytes(statement: str) -> int:
    """The peak of the memory of a process of its own; 0 where the system does not tell."""
    if not Path("/proc/self/status").exists():
        return 0
    with os.popen(f'"{sys.executable}" -c "{statement}{_PEAK}"') as told:
        return int(told.read().split()[1]) * 1024
