"""Rows as lines of a column each, and as a table of Markdown."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ..base.printable import printable

FORMS = ("line", "markdown")


def write(form: str, rows: Any, out: Path | None, limit: int | None) -> None:
    """Writes the rows of a stream in a form, at most `limit` of them."""
    found = itertools.islice((row for batch in rows for row in batch.to_pylist()), limit)
    names = [printable(name) for name in rows.schema.names]
    values = ([_text(value) for value in row.values()] for row in found)
    lines = _lines(names, values) if form == "line" else _markdown(names, values)
    if out is None:
        for line in lines:
            click.echo(line)
    else:
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _text(value: Any) -> str:
    """A value; one that is null is empty."""
    return "" if value is None else printable(str(value))


def _lines(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A line for each column, with a blank one between rows."""
    width = max(map(len, names), default=0)
    for place, row in enumerate(rows):
        if place:
            yield ""
        yield from (f"{name:>{width}} = {value}" for name, value in zip(names, row, strict=True))


def _markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A row of the table in each line; bars in values are escaped."""
    yield _row(names)
    yield "|" + " --- |" * len(names)
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
