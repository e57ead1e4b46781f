"""Rows as lines of a column each, and as a table of Markdown."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ..base.printable import printable
from .values import texts_of

FORMS = ("line", "markdown")


def write(form: str, rows: Any, out: Path | None, limit: int | None) -> None:
    """Writes the rows of a stream in a form, at most `limit` of them."""
    found = itertools.islice((row for batch in rows for row in _rows(batch)), limit)
    names = [printable(name) for name in rows.schema.names]
    lines = _lines(names, found) if form == "line" else _markdown(names, found)
    if out is None:
        for line in lines:
            click.echo(line)
    else:
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _rows(batch: Any) -> Iterator[tuple[str, ...]]:
    """The texts of the values of a batch; that of one that is null is empty."""
    columns = []
    for column in batch.columns:
        there = column.is_valid().to_pylist()
        texts = texts_of(column, is_whole=False)
        columns.append([text if is_there else "" for text, is_there in zip(texts, there, strict=True)])
    return zip(*columns, strict=True)


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
