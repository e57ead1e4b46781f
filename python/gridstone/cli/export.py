"""Cells of a scan as a table, CSV, JSON lines or an Arrow stream."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from ..base.progress import Progress
from ..io.csv.write import csv_into, csv_options
from .outcome import json_text
from .output import emit_cells, note, plain
from .values import json_of

if TYPE_CHECKING:
    from ..result.stream import Stream


def write(stream: "Stream", form: str, out: Path | None, limit: int | None, *, all_columns: bool = False) -> None:
    """Writes the stream's cells, at most `limit` of them."""
    if form == "table":
        table(stream, limit, "cells", all_columns=all_columns)
        return
    batches = limited(stream._with_nat("keep") if form == "csv" else stream, limit)
    with _opened(out) as file:
        if form == "json":
            for batch in batches:
                file.writelines(f"{json_text(plain(row))}\n".encode() for row in json_rows(batch))
        elif form == "csv":
            csv_into(file, stream.schema, batches, csv_options(",", ""), None)
        else:
            with pa.ipc.new_stream(file, stream.schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)


def limited(stream: "Stream", limit: int | None) -> Iterator[Any]:
    """The batches of a stream, at most so many rows."""
    left = limit
    for batch in stream:
        if left is not None and batch.num_rows >= left:
            yield batch.slice(0, left)
            return
        yield batch
        left = None if left is None else left - batch.num_rows


@contextlib.contextmanager
def _opened(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with out.open("wb") as file:
        yield file


def csv_to_standard_output(stream: "Stream", delimiter: str, null: str, progress: Progress) -> int:
    """Writes the stream's cells as CSV to standard output; the number of rows."""
    options = csv_options(delimiter, null)
    with _opened(None) as file:
        return csv_into(file, stream.schema, stream._with_nat("keep"), options, progress)


def json_rows(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a batch, with the values that JSON has."""
    names = batch.schema.names
    for row in zip(*(json_of(column) for column in batch.columns), strict=True):
        yield dict(zip(names, row, strict=True))


def table(rows: Any, limit: int | None, what: str, *, all_columns: bool, hint: str | None = None) -> None:
    """Prints the rows of a stream as a table, at most `limit` of them; says beside it what is not in it.

    Args:
        rows: a stream, or an answer.
        limit: the most rows.
        what: what the rows are.
        all_columns: leave out no column and cut no text.
        hint: how columns that are left out are shown.
    """
    batches = list(limited(rows, None if limit is None else limit + 1))
    found = pa.Table.from_batches(batches, rows.schema)
    shown = found if limit is None else found.slice(0, limit)
    emit_cells(shown, all_columns=all_columns, **({} if hint is None else {"hint": hint}))
    if found.num_rows > shown.num_rows:
        note(f"the first {shown.num_rows:,} {what}; --limit shows more")
    elif not found.num_rows:
        note(f"no {what}")
