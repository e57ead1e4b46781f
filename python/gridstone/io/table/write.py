"""Cells of an array as tables: an Arrow stream, CSV, Parquet and Feather files."""

import bz2
import gzip
import lzma
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from ...arrays.array import Array
from ...base.arguments import checked, stored
from ...base.printable import brief
from ...base.progress import Progress, reporting
from ...errors import InputError, UnsupportedError
from ...query.box import BoxLike, box_of
from ...query.condition import Where
from ...result.damage import Damaged
from ...stores import store
from .. import text_values
from ..files import compression_of, delimiter_of, path_of, written
from .feed import SCHEMA_KEY

_BATCH_BYTES = 64 << 20


def opened(array: Array | store.Uri) -> Array:
    """The array itself, or the one of a store."""
    return array if isinstance(array, Array) else store.open_array(array)


@checked(array=stored)
def to_arrow(
    array: Array | store.Uri,
    box: BoxLike = None,
    attrs: Sequence[str] | None = None,
    *,
    where: Where | None = None,
    order: str = "row",
    batch_bytes: int | str = "64MiB",
    progress: Progress = None,
    damaged: Damaged = "error",
) -> "pa.RecordBatchReader":
    """The cells of a box as a stream of record batches, in bounded memory, one row per cell.

    Args:
        array: an array, or the store of one.
        box: in coordinates, as in `Array.read`; None: everything.
        attrs: None: all.
        where: a condition, as in `Array.read`: the cells that it is true for.
        order: of the rows: "row", "col", "global" or "any".
        batch_bytes: the size of a batch, about.
        progress: True for a bar, or a callable `f(done, total)`: cells given; the total is 0 until the end.
        damaged: "error", or "skip" to leave out what is damaged, with a warning; as in `Array.read`.

    Its metadata holds the schema of the array, which `from_arrow` and its kin take where no `dims` are given.
    """
    source = opened(array)
    inside = box_of(source.schema, box)
    stream = source.scan(inside, attrs, where, order, batch_bytes, progress=progress, damaged=damaged)
    schema = _described(source, stream.schema)
    # No generator, which an exception would end: the stream itself says afterwards that cells are lost.
    batches = map(lambda batch: batch.replace_schema_metadata(schema.metadata), stream)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _described(array: Array, found: Any) -> Any:
    return found.with_metadata({SCHEMA_KEY: array.schema.to_json().encode()})


def to_parquet(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike = None,
    attrs: Sequence[str] | None = None,
    *,
    where: Where | None = None,
    order: str = "row",
    compression: str = "zstd",
    progress: Progress = None,
    damaged: Damaged = "error",
) -> int:
    """Writes the cells of a box as a Parquet file, in bounded memory, a row group per 64 MiB.

    Args:
        array, box, attrs, where, order, damaged: as in `to_arrow`.
        target: the file; it appears, or is replaced, once all is written.
        compression: "zstd", "snappy", "gzip", "brotli", "lz4" or "none".
        progress: True for a bar, or a callable `f(rows, 0)`.

    Returns the number of rows.
    """
    known = ("zstd", "snappy", "gzip", "brotli", "lz4", "none")
    if compression not in known:
        raise InputError(f"compression is one of {', '.join(map(repr, known))}, not {brief(compression)}")

    def writer(part: Path, schema: Any) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(part, schema, compression=compression)

    return _into_file(array, target, box, attrs, (where, order, damaged), progress, writer)


def to_feather(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike = None,
    attrs: Sequence[str] | None = None,
    *,
    where: Where | None = None,
    order: str = "row",
    compression: str = "zstd",
    progress: Progress = None,
    damaged: Damaged = "error",
) -> int:
    """Writes the cells of a box as an Arrow IPC file (Feather, version 2), in bounded memory.

    Args:
        array, box, attrs, where, order, damaged: as in `to_arrow`.
        target: the file; it appears, or is replaced, once all is written.
        compression: "zstd", "lz4" or "none".
        progress: True for a bar, or a callable `f(rows, 0)`.

    Returns the number of rows.
    """
    if compression not in ("zstd", "lz4", "none"):
        raise InputError(f"compression is 'zstd', 'lz4' or 'none', not {brief(compression)}")
    options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)

    def writer(part: Path, schema: Any) -> Any:
        return pa.ipc.new_file(str(part), schema, options=options)

    return _into_file(array, target, box, attrs, (where, order, damaged), progress, writer)


def _into_file(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike,
    attrs: Sequence[str] | None,
    how: tuple[Where | None, str, Damaged],
    progress: Progress,
    writer: Callable[[Path, Any], Any],
) -> int:
    source = opened(array)
    batch_bytes = min(_BATCH_BYTES, source.context.memory_budget // 4)
    where, order, damaged = how
    reader = to_arrow(source, box, attrs, where=where, order=order, batch_bytes=batch_bytes, damaged=damaged)
    rows = 0

    def write(part: Path) -> None:
        nonlocal rows
        with writer(part, reader.schema) as out:
            rows = _pour(reader, out.write_batch, progress)

    written(target, write)
    return rows


def _pour(batches: Iterable[Any], write: Callable[[Any], None], progress: Progress) -> int:
    """Hands on every batch; the number of rows."""
    rows = 0
    with reporting(progress, "writing", "rows") as report:
        for batch in batches:
            write(batch)
            rows += batch.num_rows
            if report is not None:
                report(rows, 0)
    return rows


def to_csv(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike = None,
    attrs: Sequence[str] | None = None,
    *,
    where: Where | None = None,
    order: str = "row",
    delimiter: str | None = None,
    null: str = "",
    progress: Progress = None,
    damaged: Damaged = "error",
) -> int:
    """Writes the cells of a box as CSV (compressed if the target ends in `.gz .bz2 .xz .zst .lz4`), in bounded
    memory.

    Args:
        array, box, attrs, where, order, damaged: as in `to_arrow`.
        target: the file; it appears, or is replaced, once all is written.
        delimiter: what separates values; None: a comma, or a tab where the target ends in `.tsv` or `.tab`.
        null: the text of nulls and NaT, which stands without quotes; `from_csv` takes it as null with `nulls=[null]`.
        progress: True for a bar, or a callable `f(rows, 0)`.

    Returns:
        The number of rows. Timedeltas are ticks of their unit; bytes are their own text; vectors and lists are JSON,
        complex numbers JSON of two numbers.

    Raises:
        InputError: bytes that are no text, days beyond Arrow's (5.8 million years from 1970).
    """
    final = path_of(target)
    options = csv_options(delimiter_of([final]) if delimiter is None else delimiter, null)
    source = opened(array)
    inside = box_of(source.schema, box)
    stream = source.scan(inside, attrs, where, order, "16MiB", damaged=damaged)
    rows = 0

    def write(part: Path) -> None:
        nonlocal rows
        with _created(part, final) as file:
            rows = csv_into(file, stream.schema, stream, options, progress)

    written(target, write)
    return rows


def csv_options(delimiter: Any, null: Any) -> Any:
    """How CSV is written; an `InputError` for what could not be read again."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n"':
        raise InputError(f"delimiter is one ASCII character, not {brief(delimiter)}")
    if not isinstance(null, str) or any(mark in null for mark in (delimiter, '"', "\r", "\n")):
        raise InputError(f"null is text without quotes, line breaks and the delimiter {delimiter!r}, not {brief(null)}")
    options = pa_csv.WriteOptions(delimiter=delimiter)
    if null:
        try:
            options.null_string = null
        except AttributeError:
            raise UnsupportedError(
                f"pyarrow {pa.__version__} writes nulls as nothing; null= needs a newer one"
            ) from None
    return options


def csv_into(file: IO[Any], schema: Any, batches: Iterable[Any], options: Any, progress: Progress) -> int:
    """Writes batches of cells as CSV; the number of rows."""
    fields = text_values.written_schema(schema)
    with pa_csv.CSVWriter(file, fields, write_options=options) as out:

        def write_batch(batch: Any) -> None:
            try:
                out.write_batch(text_values.written(batch, fields))
            except pa.ArrowInvalid as error:
                raise no_text(error) from error

        return _pour(batches, write_batch, progress)


def no_text(error: Exception) -> InputError:
    """What is said of what Arrow cannot write as text: bytes, days that it has no number for."""
    return InputError(
        f"these cells cannot be written as text: {error}; leave such bytes or dates out, or write another format"
    )


def _created(part: Path, target: Path) -> IO[Any]:
    kind = compression_of(target)
    if kind == "gzip":
        return gzip.open(part, "wb", 6)  # type: ignore[return-value]
    if kind == "bz2":
        return bz2.open(part, "wb")
    if kind == "xz":
        return lzma.open(part, "wb")
    return part.open("wb") if kind is None else pa.CompressedOutputStream(str(part), kind)
