"""Cells of a scan as a table, CSV, JSON lines or an Arrow stream."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import pyarrow as pa

from ..base.progress import Progress
from ..io.csv.write import csv_into, csv_options
from .outcome import json_text
from .output import emit_table, note, plain

if TYPE_CHECKING:
    from ..result.stream import Stream


def write(stream: "Stream", form: str, out: Path | None, limit: int | None) -> None:
    """Writes the stream's cells, at most `limit` of them."""
    batches = limited(stream._with_nat("keep") if form == "csv" else stream, limit)
    if form == "table":
        _table(stream, batches, limit)
        return
    with _opened(out) as file:
        if form == "json":
            for batch in batches:
                for row in batch.to_pylist():
                    file.write((json_text(plain(row)) + "\n").encode())
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


def _table(stream: "Stream", batches: Iterator[Any], limit: int | None) -> None:
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    emit_table(None, stream.schema.names, [tuple(map(_shown, row)) for row in rows])
    if limit is not None and len(rows) == limit:
        note(f"the first {limit:,} cells; --limit shows more")
    elif not rows:
        click.echo("no cells", err=True)


def _shown(value: Any) -> Any:
    """Coordinates and identifiers as they are, without a thousands separator or rounding."""
    return None if value is None else str(value)
