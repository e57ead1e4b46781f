"""Dialects of CSV: how the text of a file is parsed."""

import csv as python_csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...base.printable import brief
from ...errors import InputError
from .. import date_formats


@dataclass(frozen=True, slots=True)
class Dialect:
    """The marks and words of a CSV file. One character each, None: there is no such mark.

    `nulls` are words that mean null besides the empty field. `names` are the columns' names, in place of the header's
    or where there is no `header`. `times` are strptime formats tried before ISO 8601; times without an offset are in
    `timezone` (None: UTC, as they stand).
    """

    delimiter: str = ","
    nulls: tuple[str, ...] = ()
    quote: str | None = '"'
    escape: str | None = None
    decimal: str = "."
    comment: str | None = None
    header: bool = True
    names: tuple[str, ...] | None = None
    skip_lines: int = 0
    true_words: tuple[str, ...] = ()
    false_words: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    timezone: str | None = None

    def __post_init__(self) -> None:
        marks = {name: getattr(self, name) for name in ("delimiter", "quote", "escape", "comment", "decimal")}
        for name, mark in marks.items():
            if mark is None and name not in ("delimiter", "decimal"):
                continue
            if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in "\r\n":
                raise InputError(f"{name} is one ASCII character, not {brief(mark)}")
        given = [mark for mark in marks.values() if mark is not None]
        if len(set(given)) < len(given):
            raise InputError(f"delimiter, quote, escape, comment and decimal must differ, found {marks}")
        if self.skip_lines < 0:
            raise InputError(f"skip_lines is a number of lines, not {self.skip_lines}")
        if self.names is not None:
            _check_names("names=", self.names)
        if self.timezone is not None:
            _check_zone(self.timezone)
        for form in self.times:
            date_formats.check(form)

    @property
    def null_words(self) -> tuple[str, ...]:
        """All texts that mean null."""
        return ("", *self.nulls)

    def rows(self, data: bytes) -> Iterator[list[str]]:
        """The rows of some text by Python's slow reader, which knows its line (`line_num`)."""
        text: Any = io.StringIO(data.decode(errors="replace"), newline="")
        found: Any = python_csv.reader(
            text,
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape,
            quoting=python_csv.QUOTE_NONE if self.quote is None else python_csv.QUOTE_MINIMAL,
        )
        return found  # type: ignore[no-any-return]


def _check_names(what: str, names: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what}: two columns are named {name!r}; rename one of them")
        seen.add(name)


def _check_zone(name: str) -> None:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(f"no time zone {name!r} is known; use a name such as 'Europe/Berlin' or 'UTC'") from None


def header_names(dialect: Dialect, place: str, found: list[str]) -> tuple[str, ...]:
    """The names of the columns of a file whose first row is `found`."""
    if dialect.names is not None:
        if len(dialect.names) != len(found):
            raise InputError(f"{place}: {len(found)} columns, but names= has {len(dialect.names)}")
        return dialect.names
    if not dialect.header:
        return tuple(f"column_{i + 1}" for i in range(len(found)))
    names = tuple(name.strip() or f"column_{i + 1}" for i, name in enumerate(found))
    _check_names(place, names)
    return names
