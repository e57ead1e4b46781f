"""The disclosure: what the figures were measured on and with, so that others can judge and repeat them."""

import datetime as dt
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import disk
from inputs import MANY, REPEATS_INSIDE, Size
from plan import Case
from systems.base import System

_PACKAGES = (
    "gridstone", "numpy", "tiledb", "h5py", "hdf5plugin", "zarr", "numcodecs", "zarrs", "tensorstore", "duckdb",
    "pyarrow", "polars", "zstandard", "xarray", "dask", "distributed", "icechunk", "netCDF4", "h5netcdf",
)  # fmt: skip

_ROOT = Path(__file__).parents[2]


def disclosure(folder: Path, size: Size, repeats: int) -> dict[str, Any]:
    """All but what is known only at the end."""
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "scale": size.scale,
        "repeats": repeats,
        "code": code(_ROOT),
        "versions": {"python": platform.python_version(), **dict(_versions()), **_inner_versions()},
        "cpu": f"{_field('/proc/cpuinfo', 'model name')}, {len(os.sched_getaffinity(0))} usable of {os.cpu_count()}",
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "filesystem": _filesystem(folder),
        "load_average_at_start": os.getloadavg()[0],
        "threads": "two in every system that has threads, but for P1; HDF5 has one; limits say how many",
        "cache": "warm: the system's page cache holds the files, each timed read has a newly opened store; "
        f"cold: {disk.how_it_forgets()}, before each read",
        "process": "fresh for each (system, case) and repeat, after one small operation of the same kind (but for "
        f"warmup); reads and commits: median of {REPEATS_INSIDE} in a process (the rows called mean: mean of {MANY}), "
        "scans: of 3, loads and updates: one",
        "clock": "reads end with NumPy arrays, writes when durable unless the row says otherwise; opening, input and "
        "checks are outside, but for cold reads, O1 and warmup",
        "checks": "every result was compared with NumPy before anything was timed",
    }


def about(cases: Sequence[Case], families: frozenset[str]) -> dict[str, dict[str, str]]:
    """Settings and durability, by system, of these families (none: all) and of the limits."""
    wanted = (s for case in cases for s in case.systems if not families or s.family in families or not s.ranked)
    systems: dict[str, System] = {}
    for system in wanted:
        systems.setdefault(f"{system.family} ({system.module})", system)
    return {
        name: {"settings": system.settings, "durability": system.durability} for name, system in sorted(systems.items())
    }


def code(root: Path) -> str:
    """The commit that is checked out at `root`, and whether tracked files differ from it. It tells of the source: that
    the package was built from it is for who runs this to see to.
    """
    # A repository that happens to hold the folder says nothing of it.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root.resolve().parent)}

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"commit {commit}{' with changes' if changed else ''}"


def _versions() -> Iterable[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield name, "not installed"


def _inner_versions() -> dict[str, str]:
    """The versions of the libraries inside the packages."""
    found = {}
    with suppress(ImportError):
        import h5py

        found["HDF5"] = h5py.version.hdf5_version
    with suppress(ImportError):
        import tiledb

        found["TileDB core"] = ".".join(map(str, tiledb.libtiledb.version()))
    return found


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
