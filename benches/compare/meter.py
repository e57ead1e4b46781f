"""What one process measures of itself: seconds, CPU seconds of all threads, growth of the peak of its memory."""

import gc
import os
import resource
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PERF_VARIABLE = "GRIDSTONE_BENCH_PERF"
"""Two pipes: one commands `perf` to sample while the clock runs, the other carries its acknowledgement."""


class Meter:
    """Times operations one by one; memory is compared with what the process held when the meter was made."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        gc.collect()
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts anew
        self._before_bytes = _status_bytes("VmRSS")

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Times what happens in the block."""
        with _sampled():
            cpu, start = time.process_time(), time.perf_counter()
            yield
            self.seconds.append(time.perf_counter() - start)
            self.cpu_seconds.append(time.process_time() - cpu)

    def sample_of(self, seconds: list[float], cpu_seconds: list[float]) -> dict[str, Any]:
        """The figures of operations that were timed elsewhere."""
        self.seconds, self.cpu_seconds = seconds, cpu_seconds
        return self.sample(0)

    def sample(self, disk_bytes: int, which: int | None = None, *, mean: bool = False) -> dict[str, Any]:
        """The figures of this process: medians of its operations' times, or means, or those of one of them."""
        chosen = slice(None) if which is None else slice(which, which + 1)
        told: dict[str, Any] = {
            "seconds": (statistics.mean if mean else statistics.median)(self.seconds[chosen]),
            "cpu_seconds": statistics.mean(self.cpu_seconds[chosen]),
            "rss_growth_bytes": max(0, _status_bytes("VmHWM") - self._before_bytes),
            "disk_bytes": disk_bytes,
        }
        if which is None and len(self.seconds) > 1:
            told["operations"] = spread(self.seconds)
        return told


@contextmanager
def _sampled() -> Iterator[None]:
    """Has `perf` sample what happens in the block, if it waits for that."""
    pipes = os.environ.get(PERF_VARIABLE)
    if not pipes:
        yield
        return
    control, answer = pipes.split(",")
    _tell(control, answer, b"enable\n")
    yield
    _tell(control, answer, b"disable\n")


def _tell(control: str, answer: str, what: bytes) -> None:
    with open(control, "wb", buffering=0) as to, open(answer, "rb", buffering=0) as heard:
        to.write(what)
        heard.read(5)


def spread(seconds: list[float]) -> dict[str, float]:
    """How single operations of one process differ: the quickest, what nine of ten stay below, the slowest."""
    ninth = statistics.quantiles(seconds, n=10, method="inclusive")[-1]
    return {"count": len(seconds), "min": min(seconds), "p90": ninth, "max": max(seconds)}


def _status_bytes(field: str) -> int:
    """A field of /proc/self/status; where there is none, the peak that the system knows of."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
