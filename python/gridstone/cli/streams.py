"""The standard streams of the process: those that are closed, pipes whose reader is gone, and full disks."""

import contextlib
import errno
import io
import os
import sys
from typing import Any

from ..errors import StorageError
from .outcome import PipeClosedError

_STANDARD = 3
"""Standard input, output and error are the descriptors below this."""


class _Output(io.FileIO):
    """Standard output that is no terminal. Its errors name it; what comes after an error is dropped."""

    def __init__(self, descriptor: int, *, closed: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._reason, self._failed = "it is closed" if closed else None, False

    def write(self, data: Any, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        try:
            if self._reason is None:
                return super().write(data)
        except OSError as error:
            self._failed = True
            if error.errno == errno.EPIPE:
                raise PipeClosedError from error
            self._reason = str(error.strerror)
        self._failed = True
        raise StorageError(
            f"standard output cannot be written: {self._reason}; what the command did stays done, and what it prints "
            "is lost"
        )


def complete() -> None:
    """Gives the process the standard streams that it began without, so that no file of a store takes their place, and
    a standard output whose errors name it."""
    for descriptor in range(_STANDARD):
        with contextlib.suppress(OSError):
            os.fstat(descriptor)
            continue
        os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Output(1, closed=True)), encoding="utf-8")
    elif not sys.stdout.isatty():
        raw = _Output(sys.stdout.fileno(), closed=False)
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors)


def end() -> None:
    """Drops what standard error cannot take, of which Python would complain when it ends."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
