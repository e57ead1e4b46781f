"""The disclosure: what the figures were measured on and with, so that others can judge and repeat them."""

import datetime as dt
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from inputs import REPEATS_INSIDE, Size
from workloads import Workload

_PACKAGES = ("gridstone", "numpy", "h5py", "zarr", "numcodecs", "pyarrow", "duckdb")


def disclosure(folder: Path, size: Size, repeats: int) -> dict[str, Any]:
    """All but what is known only at the end."""
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "scale": size.scale,
        "repeats": repeats,
        "versions": {"python": platform.python_version(), **dict(_versions())},
        "cpu": f"{_field('/proc/cpuinfo', 'model name')}, {len(os.sched_getaffinity(0))} usable of {os.cpu_count()}",
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "filesystem": _filesystem(folder),
        "load_average_at_start": os.getloadavg()[0],
        "threads": "each system's default: Gridstone and DuckDB one per CPU, in a new context or connection for each "
        "store that is opened (so threads started on first use are timed), Zarr its own pools, HDF5 one",
        "cache": "warm: the system's page cache holds the files; each timed read has a newly opened store",
        "process": "fresh for each (system, workload) and repeat, after one small operation of the same kind; reads "
        f"and commits: median of {REPEATS_INSIDE} in a process, loads and updates: one",
        "clock": "reads end with NumPy arrays, writes when durable; opening, input and checks are outside, but for "
        "'open + one cell'",
    }


def durability(workloads: Sequence[Workload]) -> dict[str, str]:
    """What durable means, by system."""
    return {system.name: system.durability for workload in workloads for system in workload.systems}


def _versions() -> Iterable[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield name, "not installed"


def _field(path: str, name: str) -> str:
    with suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return "unknown"


def _filesystem(folder: Path) -> str:
    """The type of the file system that holds `folder`."""
    found = ("", "unknown")
    with suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            _, place, kind, *_ = line.split()
            if folder.resolve().is_relative_to(place) and len(place) >= len(found[0]):
                found = place, kind
    return found[1]
