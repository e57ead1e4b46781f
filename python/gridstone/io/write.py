"""Cells of an array in files of tables: CSV."""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from .. import selection, store
from ..array import Array
from ..progress import Progress, reporting
from ..selection import BoxLike
from .sources import written


def to_csv(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike = None,
    attrs: Sequence[str] | None = None,
    *,
    order: str = "row",
    delimiter: str = ",",
    progress: Progress = None,
) -> int:
    """Writes the cells of a box as CSV (gzipped if the target ends in `.gz`), in bounded memory.

    Args:
        array: an array, or the store of one.
        target: the file; it appears, or is replaced, once all is written.
        box: in coordinates, as in `Array.read`; None: everything.
        attrs: None: all.
        order: of the rows: "row", "col", "global" or "any".
        delimiter: what separates values.
        progress: True for a bar, or a callable `f(rows, 0)`.

    Returns:
        The number of rows. Nulls and NaT are empty; timedeltas are ticks of their unit.
    """
    source = array if isinstance(array, Array) else store.open_array(array)
    stream = source.scan(selection.box_of(source.schema, box), attrs, order, "16MiB")
    fields = [(f.name, pa.int64() if pa.types.is_duration(f.type) else f.type) for f in stream.schema]
    rows = 0

    def write(part: Path) -> None:
        nonlocal rows
        with (
            reporting(progress, "writing", "rows") as report,
            _created(part, Path(os.fspath(target)).suffix == ".gz") as file,
            pa_csv.CSVWriter(file, pa.schema(fields), write_options=pa_csv.WriteOptions(delimiter=delimiter)) as out,
        ):
            for batch in stream:
                out.write_batch(batch.cast(pa.schema(fields)))
                rows += batch.num_rows
                if report is not None:
                    report(rows, 0)

    written(target, write)
    return rows


def _created(file: Path, compressed: bool) -> IO[Any]:
    return gzip.open(file, "wb", 6) if compressed else file.open("wb")  # type: ignore[return-value]
