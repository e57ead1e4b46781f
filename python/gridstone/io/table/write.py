"""Writes cells of an array as tables: an Arrow stream, Parquet and Feather files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...arrays.array import Array
from ...base.arguments import checked, known
from ...base.printable import brief
from ...base.progress import Progress
from ...errors import InputError
from ...query.box import BoxLike, box_of
from ...query.condition import Where
from ...result.damage import Damaged
from ...stores import store
from ..batches import pour
from ..files import written
from ..handles import opened, stored
from .feed import SCHEMA_KEY

_BATCH_BYTES = 64 << 20


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
    nat: str = "error",
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
        nat: what becomes of NaT in nullable attributes, which Arrow cannot tell from null: "error", or "null" to make
            it null. NaT of attributes that are not nullable comes back as NaT either way.

    Its metadata holds the schema of the array, which `from_arrow` and its kin take where no `dims` are given.
    """
    known("nat", nat, ("error", "null"))
    source = opened(array)
    inside = box_of(source.schema, box)
    stream = source.scan(inside, attrs, where, order, batch_bytes, progress=progress, damaged=damaged)._with_nat(nat)
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
    nat: str = "error",
) -> int:
    """Writes the cells of a box as a Parquet file, in bounded memory, a row group per 64 MiB.

    Args:
        array, box, attrs, where, order, damaged, nat: as in `to_arrow`.
        target: the file; it appears, or is replaced, once all is written.
        compression: "zstd", "snappy", "gzip", "brotli", "lz4" or "none".
        progress: True for a bar, or a callable `f(rows, 0)`.

    Returns the number of rows.
    """
    ways = ("zstd", "snappy", "gzip", "brotli", "lz4", "none")
    if compression not in ways:
        raise InputError(f"compression is one of {', '.join(map(repr, ways))}, not {brief(compression)}")

    def writer(part: Path, schema: Any) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(part, schema, compression=compression)

    return _into_file(array, target, box, attrs, (where, order, damaged, nat), progress, writer)


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
    nat: str = "error",
) -> int:
    """Writes the cells of a box as an Arrow IPC file (Feather, version 2), in bounded memory.

    Args:
        array, box, attrs, where, order, damaged, nat: as in `to_arrow`.
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

    return _into_file(array, target, box, attrs, (where, order, damaged, nat), progress, writer)


def _into_file(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike,
    attrs: Sequence[str] | None,
    how: tuple[Where | None, str, Damaged, str],
    progress: Progress,
    writer: Callable[[Path, Any], Any],
) -> int:
    source = opened(array)
    batch_bytes = min(_BATCH_BYTES, source.context.memory_budget // 4)
    where, order, damaged, nat = how
    reader = to_arrow(source, box, attrs, where=where, order=order, batch_bytes=batch_bytes, damaged=damaged, nat=nat)
    rows = 0

    def write(part: Path) -> None:
        nonlocal rows
        with writer(part, reader.schema) as out:
            rows = pour(reader, out.write_batch, progress)

    written(target, write)
    return rows
