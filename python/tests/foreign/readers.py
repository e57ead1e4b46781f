"""Two ways to read a file that may be malformed, each in a process of its own: this package, and the format's library.

As a script: `readers.py attached FOLDER` or `readers.py peer FOLDER` reads paths from its input, a line each. It
answers each with u64 length and a pickle of the fields of an `Outcome`.
"""

import pickle
import queue
import resource
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CELLS_MAX = 1 << 20
"""Larger datasets are attached, and not read."""
ADDRESS_SPACE_BYTES = 6 << 30
COPY_S_MAX = 8.0
"""What h5py may take for some values of varying length: it never comes back from some heaps."""


@dataclass
class Outcome:
    """What became of a file."""

    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    """The values by path of the dataset, and member of a compound (empty: none)."""
    errors: dict[str, str] = field(default_factory=dict)
    """By path, the class of the error and its text; "/" for the file."""
    foreign_errors: list[str] = field(default_factory=list)
    """Exceptions that this package does not have."""
    memory_bytes: int = 0
    """The most that the process had."""


class Reader:
    """A process that reads files, one after the other. One that died is started anew."""

    def __init__(self, kind: str, folder: Path, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._command = [sys.executable, str(Path(__file__)), kind, str(folder)]
        self._begin()

    def _begin(self) -> None:
        self.process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answers: queue.Queue[Outcome | None] = queue.Queue()
        threading.Thread(target=self._listen, args=(self.process, self._answers), daemon=True).start()

    @staticmethod
    def _listen(process: "subprocess.Popen[bytes]", answers: "queue.Queue[Outcome | None]") -> None:
        assert process.stdout is not None
        while head := process.stdout.read(8):
            answers.put(Outcome(**pickle.loads(process.stdout.read(struct.unpack("<Q", head)[0]))))
        answers.put(None)

    def read(self, path: Path) -> Outcome | str:
        """What is in a file; or how the process ended over it."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\n".encode())
        self.process.stdin.flush()
        try:
            found = self._answers.get(timeout=self._seconds_max)
        except queue.Empty:
            self.end()
            self._begin()
            return f"no answer after {self._seconds_max} s"
        if found is None:
            how = f"ended with {self.process.wait()}"
            self._begin()
            return how
        return found

    def end(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()


def attached(path: str, folder: Path, number: int) -> Outcome:
    """The file as this package attaches and reads it."""
    import gridstone as gs

    found = Outcome()
    uri = folder / f"{number}.gs"
    try:
        made = gs.attach(uri, path, decode=False)
    except gs.errors.GridstoneError as error:
        found.errors["/"] = f"{type(error).__name__}: {error}"
        return found
    assert isinstance(made, gs.Group)
    for group in [made, *(made[one.path.strip("/")] for one in made.walk() if one.kind == "group")]:
        for name, why in group.meta.get("not attached", {}).items():
            found.errors[f"{group.path.rstrip('/')}/{name}"] = f"refused: {why}"
    for entry in made.walk():
        array = made[entry.path.strip("/")] if entry.kind == "array" else None
        if not isinstance(array, gs.Array) or array.size > CELLS_MAX:
            continue
        try:
            read = array.read()
        except gs.errors.GridstoneError as error:
            found.errors[array.path] = f"{type(error).__name__}: {error}"
            continue
        for attr in array.schema.attrs:
            member = attr.name if array[attr.name].meta.get("encoding", {}).get("member") else ""
            found.values[array.path, member or _member(attr.name, array)] = np.ma.getdata(read[attr.name])
    gs.delete(uri)
    return found


def _member(name: str, array: Any) -> str:
    """Members that were copied are named after it; a whole cell has the name of its dataset."""
    return "" if name == array.path.rsplit("/", 1)[-1] else name


def by_peer(path: str) -> Outcome:
    """The file as NumPy, netCDF4 or h5py reads it."""
    found = Outcome()
    with open(path, "rb") as file:
        head = file.read(6)
    try:
        if head == b"\x93NUMPY":
            found.values["/array", ""] = np.load(path, allow_pickle=False)
        elif head[:3] == b"CDF":
            _read_classic(path, found)
        else:
            return by_h5py(path)
    except Exception as error:
        found.errors["/"] = repr(error)
    return found


def _read_classic(path: str, found: Outcome) -> None:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        file.set_auto_scale(False)
        for name, variable in file.variables.items():
            if variable.size <= CELLS_MAX:
                found.values[f"/{name}", ""] = variable[...]


def by_h5py(path: str) -> Outcome:
    """The file as h5py reads it."""
    import contextlib

    import h5py

    with contextlib.suppress(ImportError):
        import hdf5plugin  # noqa: F401

    found = Outcome()
    try:
        with h5py.File(path, "r") as file:
            for dataset in _datasets(file, found):
                _read(dataset, found)
    except Exception as error:
        found.errors["/"] = repr(error)
    return found


def _datasets(group: Any, found: Outcome, depth: int = 0) -> Iterator[Any]:
    import h5py

    for name in group:
        try:
            item = group[name]
        except Exception as error:
            found.errors[f"{group.name.rstrip('/')}/{name}"] = repr(error)
            continue
        if isinstance(item, h5py.Dataset):
            yield item
        elif isinstance(item, h5py.Group) and depth < 8:
            yield from _datasets(item, found, depth + 1)


def _read(dataset: Any, found: Outcome) -> None:
    try:
        if dataset.size is None or dataset.size > CELLS_MAX:
            return
        read = dataset[()]
    except Exception as error:
        found.errors[dataset.name] = repr(error)
        return
    for member, values in _members(read, ""):
        found.values[dataset.name, member] = np.asarray(values)


def _members(values: Any, at: str) -> Iterator[tuple[str, Any]]:
    names = getattr(getattr(values, "dtype", None), "names", None)
    if not names:
        yield at, values
        return
    for name in names:
        yield from _members(values[name], f"{at}.{name}" if at else name)


def main(kind: str, folder: Path) -> None:
    """Answers until the input ends."""
    sink = sys.stdout.buffer
    if kind == "attached":
        from gridstone.foreign import child

        child.ANSWER_S_MAX = COPY_S_MAX
        with open("/proc/self/statm", encoding="ascii") as file:
            own = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (own + ADDRESS_SPACE_BYTES, resource.RLIM_INFINITY))
    for number, line in enumerate(sys.stdin):
        path = line.rstrip("\n")
        if kind == "attached":
            try:
                found = attached(path, folder, number)
            except BaseException as error:
                found = Outcome(foreign_errors=[f"{type(error).__name__}: {error}"])
        else:
            found = by_peer(path)
        found.memory_bytes = peak_bytes()
        packed = pickle.dumps(vars(found))
        sink.write(struct.pack("<Q", len(packed)) + packed)
        sink.flush()


def peak_bytes() -> int:
    """The most memory that this program had. What `getrusage` says begins with that of the process that started it."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
