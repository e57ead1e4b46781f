"""Writes cells of an array as CSV files."""

import bz2
import gzip
import lzma
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from ...arrays.array import Array
from ...base.printable import brief
from ...base.progress import Progress
from ...errors import InputError, UnsupportedError
from ...query.box import BoxLike, box_of
from ...query.condition import Where
from ...result.damage import Damaged
from ...stores import store
from .. import text_values
from ..batches import pour
from ..files import compression_of, delimiter_of, path_of, written
from ..handles import opened


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
        null: the text of nulls, which stands without quotes; `from_csv` takes it as null with `nulls=[null]`. NaT is
            written so too where the attribute is not nullable, and else as `NaT`, which `from_csv` takes as NaT.
        progress: True for a bar, or a callable `f(rows, 0)`.

    Returns:
        The number of rows. Timedeltas are ticks of their unit; bytes are their own text; vectors and lists are JSON,
        complex numbers JSON of two numbers.

    Raises:
        InputError: bytes that are no text, days beyond Arrow's (5.8 million years from 1970).
    """
    final = path_of(target)
    if compression_of(final) == "zip":
        raise InputError(f"{str(final)!r}: zip archives are read, not written; name it .csv.gz or .csv.zst")
    options = csv_options(delimiter_of([final]) if delimiter is None else delimiter, null)
    source = opened(array)
    inside = box_of(source.schema, box)
    stream = source.scan(inside, attrs, where, order, "16MiB", damaged=damaged)._with_nat("keep")
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
            nat = text_values.nat_of(batch)
            try:
                if not nat:
                    out.write_batch(text_values.written(batch, fields))
                    return
                made = text_values.written(text_values.without_nat(batch, nat), fields)
                pa_csv.write_csv(text_values.with_nat(made, nat), file, _headless(options))
            except pa.ArrowInvalid as error:
                raise no_text(error) from error

        return pour(batches, write_batch, progress)


def _headless(options: Any) -> Any:
    """The same options, for rows behind others."""
    made = pa_csv.WriteOptions(include_header=False, delimiter=options.delimiter)
    if getattr(options, "null_string", ""):
        made.null_string = options.null_string
    return made


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
