"""Processes in which h5py works for this one (`worker.py`): what ends such a process is an error of what was asked.

They are kept while they are used and a while after, and end with this process. A process that is forked starts its own.
"""

import atexit
import contextlib
import json
import multiprocessing.spawn
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..errors import StorageError
from . import worker

_BEGIN = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
)
"""The modules that this process finds are found there too. The folder of the script is not among them."""
_IDLE_S = 30.0
ANSWER_S_MAX = 120.0
"""How long a child may take to begin an answer, or to go on with it: HDF5 never comes back from some damaged heaps."""
_PIECE_BYTES = 1 << 20
_CHILDREN_MAX = max(1, min(8, os.cpu_count() or 1))


def _environment() -> dict[str, str]:
    """That of this process, without caches of memory per thread: glibc does not fill what comes from these."""
    tunables = [os.environ.get("GLIBC_TUNABLES"), "glibc.malloc.tcache_count=0"]
    return {**os.environ, "GLIBC_TUNABLES": ":".join(one for one in tunables if one)}


class WorkerRefusal(Exception):
    """What h5py said about what was asked."""


class WorkerDeath(Exception):
    """The process ended before it answered, or was ended; `faulted`: by a fault in a library."""

    def __init__(self, message: str, faulted: bool) -> None:
        super().__init__(message)
        self.faulted = faulted


class Silence(Exception):
    """The process gave no answer for long."""


class Answers:
    """What a process writes, as it comes."""

    def __init__(self, pipe: Any) -> None:
        self._number: int = pipe.fileno()
        self.seconds_max = ANSWER_S_MAX
        # Where pipes cannot be waited for, an answer is waited for without an end.
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(self._number, select.POLLIN)

    def read(self, count: int) -> bytes:
        """The next bytes; fewer at the end."""
        pieces: list[bytes] = []
        left = count
        while left:
            if self._poll is not None and not self._poll.poll(self.seconds_max * 1000):
                raise Silence
            piece = os.read(self._number, min(left, _PIECE_BYTES))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)


class Child:
    """A process that answers one question at a time."""

    def __init__(self) -> None:
        told: Any = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._told = told
        command = [os.fsdecode(multiprocessing.spawn.get_executable() or sys.executable or "python"), "-c", _BEGIN]
        try:
            self.process = subprocess.Popen(
                [*command, json.dumps([os.path.abspath(one) for one in sys.path]), str(Path(worker.__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                env=_environment(),
                # Ctrl-C of a terminal is for this process.
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            told.close()
            raise StorageError(f"the process for h5py cannot be started: {command[0]}: {error}") from error
        self._answers = Answers(self.process.stdout)

    def ask(
        self, header: Mapping[str, Any], body: bytes = b"", more_s: float = 0.0
    ) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The answers, one after the other; the last one has the key "done". It may take `more_s` longer than usual.

        Raises:
            WorkerRefusal: h5py cannot do it.
            WorkerDeath: the process ended.
        """
        assert self.process.stdin is not None
        self._answers.seconds_max = ANSWER_S_MAX + more_s
        try:
            worker.send(cast(BinaryIO, self.process.stdin), dict(header), body)
        except OSError as error:
            raise self._death() from error
        while True:
            try:
                found = worker.receive(self._answers)
            except Silence as error:
                told = f"the process of h5py gave no answer for {self._answers.seconds_max:g} s; the file may be bad"
                raise WorkerDeath(told, True) from error
            if found is None:
                raise self._death()
            if "error" in found[0]:
                raise WorkerRefusal(found[0]["error"])
            yield found
            if "done" in found[0]:
                return

    def _death(self) -> WorkerDeath:
        """How the process ended, with the last line that it wrote."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        code = self.process.poll()
        faults = [getattr(signal, name, None) for name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")]
        faulted = code is not None and code < 0 and -code in faults
        how = f"with status {code}"
        if code is not None and code < 0:
            names = [one.name for one in signal.Signals if one == -code]
            how = f"by {names[0] if names else f'signal {-code}'}"
        self._told.seek(max(0, self._told.seek(0, os.SEEK_END) - 500))
        lines = self._told.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return WorkerDeath(f"the process of h5py ended {how}" + (f": {last}" if last else ""), faulted)

    def kill(self) -> None:
        """Ends it, whatever it does."""
        self.process.kill()
        self._close()
        self.process.wait()

    def forget(self) -> None:
        """Closes what a forked process has of its parent's child."""
        self._close()
        self.process.returncode = 0

    def _close(self) -> None:
        pipes: list[Any] = [self.process.stdin, self.process.stdout, self._told]
        for pipe in pipes:
            with contextlib.suppress(OSError):
                pipe.close()


class Children:
    """The children of this process, each used by one thread at a time."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_CHILDREN_MAX)
        self._idle: list[tuple[float, Child]] = []
        self._timer: threading.Timer | None = None

    @contextlib.contextmanager
    def decoding(self) -> Iterator[Child]:
        """A child for a chunk; threads wait while there are many."""
        with self._room, self.one() as child:
            yield child

    @contextlib.contextmanager
    def one(self) -> Iterator[Child]:
        """A child for what may take long. It is kept for the next one unless anything but a refusal ends the block."""
        child = self._taken()
        try:
            yield child
        except WorkerRefusal:
            self._keep(child)
            raise
        except BaseException:
            child.kill()
            raise
        self._keep(child)

    def _taken(self) -> Child:
        while True:
            with self._lock:
                child = self._idle.pop()[1] if self._idle else None
            if child is None:
                return Child()
            if child.process.poll() is None:
                return child
            child.kill()

    def _keep(self, child: Child) -> None:
        with self._lock:
            self._idle.append((time.monotonic(), child))
            if self._timer is None:
                self._start_timer()

    def _start_timer(self) -> None:
        self._timer = threading.Timer(_IDLE_S, self._end_idle)
        self._timer.daemon = True
        # No thread is started while the interpreter ends; what is idle then ends with it.
        with contextlib.suppress(RuntimeError):
            self._timer.start()

    def _end_idle(self) -> None:
        """Ends children that were not used for a while."""
        before = time.monotonic() - _IDLE_S
        with self._lock:
            ended = [child for since, child in self._idle if since <= before]
            self._idle = [entry for entry in self._idle if entry[0] > before]
            self._timer = None
            if self._idle:
                self._start_timer()
        for child in ended:
            child.kill()

    def end(self) -> None:
        """Ends all that are idle."""
        with self._lock:
            ended, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for _, child in ended:
            child.kill()

    def after_fork(self) -> None:
        """Begins anew in a forked process, with no child."""
        for _, child in self._idle:
            child.forget()
        self._begin()


CHILDREN = Children()
atexit.register(CHILDREN.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CHILDREN.after_fork)
