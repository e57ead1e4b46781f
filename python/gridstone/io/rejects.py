"""Rows that a load leaves out instead of failing."""

import csv as python_csv
import logging
import threading
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from ..base.printable import brief
from ..errors import InputError, StorageError
from .files import check_target, written

log = logging.getLogger("gridstone")

_WAYS = ("fail", "skip", "collect")
_TEXT_MAX = 1_000


class Rejected(NamedTuple):
    """A row that was left out: its file, the line that it starts at (from 1), the column at fault, the reason, and its
    text. The column is "" where the row as a whole is at fault; the text is cut after 1,000 characters.
    """

    file: str
    line: int
    column: str
    reason: str
    text: str


class Rejects:
    """What becomes of rows that cannot be loaded.

    Args:
        on_error: "fail": the first one is an error; "skip": they are left out and counted; "collect": they are also
            put into `target`.
        target: a list, or a path of a CSV file that is written at the end. Whether it can be is found out at once.
    """

    def __init__(self, on_error: str, target: list[Rejected] | str | PathLike[str] | None) -> None:
        if on_error not in _WAYS:
            raise InputError(f"on_error is one of {', '.join(map(repr, _WAYS))}, not {brief(on_error)}")
        if (on_error == "collect") != (target is not None):
            raise InputError(
                'on_error="collect" goes together with rejected=: a list, or the path of a CSV file for the rows'
            )
        if target is not None and not isinstance(target, list | str | PathLike):
            raise InputError(f"rejected= is a list or a path, not {type(target).__name__}")
        if isinstance(target, str | PathLike):
            check_target(target)
        self.tolerant = on_error != "fail"
        self._target = target
        self._rows: dict[tuple[str, int], Rejected] = {}
        self._counted = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Forgets what an earlier pass over the same files found."""
        self._rows, self._counted = {}, 0

    def add(self, found: Sequence[Rejected]) -> None:
        """Takes note of rows, on any thread."""
        with self._lock:
            self._counted += len(found)
            if self._target is not None:
                self._rows |= {(row.file, row.line): row._replace(text=row.text[:_TEXT_MAX]) for row in found}

    @property
    def count(self) -> int:
        """How many rows were left out."""
        return self._counted

    def close(self) -> None:
        """Hands the rows over, and says how many there are.

        Raises:
            StorageError: the file cannot be written any more; what was loaded is committed.
        """
        rows = sorted(self._rows.values(), key=lambda row: (row.file, row.line))
        if isinstance(self._target, list):
            self._target.extend(rows)
        elif self._target is not None:
            try:
                written(self._target, lambda part: _write(part, rows))
            except OSError as error:
                raise StorageError(
                    f"everything else is loaded and committed, but the {len(rows):,} rows left out could not be "
                    f"written to {fspath(self._target)!r}: {error}"
                ) from error
        if self._counted:
            where = f"; they are in {fspath(self._target)}" if isinstance(self._target, str | PathLike) else ""
            log.warning("%s rows could not be loaded and were left out%s", f"{self._counted:,}", where)


def _write(part: Path, rows: Sequence[Rejected]) -> None:
    with part.open("w", newline="", encoding="utf8") as file:
        out = python_csv.writer(file)
        out.writerow(Rejected._fields)
        out.writerows(rows)
