"""Sources of typed columns: tables in memory, streams that can be read once, datasets, Parquet and Arrow files."""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...context.settings import Context
from ...errors import InputError
from .. import content
from ..columns import Part
from ..files import Scratch, shown
from .common_type import unified
from .feed import Known, Piece

_PIECE_BYTES = 8 << 20
_PIECE_ROWS = 1 << 16

_TRACEBACK = re.compile(r"[.\s]*(?:Detail: Python exception:\s*)?Traceback \(most recent call last\):.*", re.DOTALL)

Stream = Callable[[], Iterator[Piece]]


def message_of(error: BaseException) -> str:
    """What an error of Arrow or DuckDB says, without the traceback that they append to errors of Python."""
    return _TRACEBACK.sub("", str(error))


class Whole:
    """A table in memory."""

    def __init__(self, table: Any, title: str) -> None:
        self.title, self.schema = title, table.schema
        self.total = table.num_rows
        self._table = table

    def streams(self, names: Sequence[str], again: bool) -> list[Stream]:
        """One of all of it."""
        return [lambda: self._pieces(names, again)]

    def _pieces(self, names: Sequence[str], again: bool) -> Iterator[Piece]:
        """Slices of the table."""
        table = self._table.select(list(names))
        step = _rows_of_piece(table.nbytes, table.num_rows)
        for first in range(0, table.num_rows, step):
            part = table.slice(first, step)
            yield Piece(part, self.title, first, first + part.num_rows)

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """Nothing: looking is as quick."""
        return {}

    def count(self) -> int | None:
        """The table's rows."""
        return int(self._table.num_rows)

    def close(self) -> None:
        """Lets go of the table."""
        self._table = self._table.slice(0, 0)


def _rows_of_piece(size_bytes: int, rows: int) -> int:
    return max(1_024, min(_PIECE_ROWS * 16, _PIECE_BYTES * max(rows, 1) // max(size_bytes, 1)))


def _cut(batch: Any) -> Iterator[Any]:
    """A batch in slices of the size of a piece."""
    step = _rows_of_piece(batch.nbytes, batch.num_rows)
    for first in range(0, batch.num_rows, step):
        yield batch.slice(first, step)


class Once:
    """A stream that can be read once. For a second pass its batches are kept: in memory up to a quarter of the budget,
    behind that in a file.
    """

    def __init__(self, reader: Any, title: str, context: Context) -> None:
        self.title, self.schema, self.total = title, reader.schema, 0
        self._reader: Any = reader
        self._room = context.memory_budget // 4
        self._scratch = Scratch()
        self._kept: list[Any] = []
        self._spilled: Path | None = None

    def streams(self, names: Sequence[str], again: bool) -> list[Stream]:
        """One of all of it."""
        return [lambda: self._pieces(names, again)]

    def _pieces(self, names: Sequence[str], again: bool) -> Iterator[Piece]:
        """The stream the first time, what was kept of it later."""
        first, wanted = 0, list(names)
        fresh = self._reader is not None
        for batch in self._first_pass(again) if fresh else self._later():
            table = pa.Table.from_batches([batch]).select(wanted)
            for part in _cut(table):
                yield Piece(part, self.title, first, first + part.num_rows)
                first += part.num_rows
        self.total = first

    def _first_pass(self, again: bool) -> Iterator[Any]:
        reader, self._reader = self._reader, None
        held, out = 0, None
        try:
            for batch in reader:
                if again and out is None and held + batch.nbytes > self._room:
                    self._spilled = self._scratch.file("kept.arrow")
                    out = pa.ipc.new_file(str(self._spilled), self.schema)
                if out is not None:
                    out.write_batch(batch)
                elif again:
                    self._kept.append(batch)
                    held += batch.nbytes
                yield batch
        except pa.ArrowException as error:
            raise InputError(f"{self.title} broke off: {message_of(error)}") from error
        finally:
            if out is not None:
                out.close()

    def _later(self) -> Iterator[Any]:
        yield from self._kept
        if self._spilled is not None:
            with pa.memory_map(str(self._spilled)) as file:
                found = pa.ipc.open_file(file)
                for place in range(found.num_record_batches):
                    yield found.get_batch(place)

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """Nothing."""
        return {}

    def count(self) -> int | None:
        """Unknown."""
        return None

    def close(self) -> None:
        """Removes what was kept."""
        self._kept = []
        self._scratch.close()


class Dataset:
    """A `pyarrow.dataset.Dataset`, with the columns of all its files: pyarrow's own schema is that of the first one."""

    def __init__(self, dataset: Any, title: str) -> None:
        self.title, self.parts, found = title, list[Part](), dict[str, tuple[Any, str]]()
        # Columns that folders tell are in no fragment.
        derived = set(dataset.schema.names)
        for place, fragment in enumerate(dataset.get_fragments()):
            name = str(getattr(fragment, "path", "")) or f"{title}, part {place}"
            schema = fragment.physical_schema
            self.parts.append(Part(name, schema.names))
            derived -= set(schema.names)
            for field in schema:
                found.setdefault(field.name, (field, name))
        more = [field for name, (field, _) in found.items() if name not in dataset.schema.names]
        self.parts = [part._replace(names=[*part.names, *derived]) for part in self.parts]
        self._dataset = dataset.replace_schema(pa.schema([*dataset.schema, *more], dataset.schema.metadata))
        self.schema, self.conflicts = self._dataset.schema, dict[str, InputError]()
        self.total = dataset.count_rows()

    def streams(self, names: Sequence[str], again: bool) -> list[Stream]:
        """One of all of it."""
        return [lambda: self._pieces(names, again)]

    def _pieces(self, names: Sequence[str], again: bool) -> Iterator[Piece]:
        """Its batches."""
        first = 0
        batches = self._dataset.to_batches(
            columns=list(names), batch_size=_PIECE_ROWS, batch_readahead=2, fragment_readahead=1
        )
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise InputError(
                    f"{self.title}, behind row {first}: {error}; the files have columns of several types: give the "
                    f"dataset a schema that holds all of them, or load the files with from_parquet or from_feather"
                ) from error
            if batch is None:
                return
            yield Piece(pa.Table.from_batches([batch]), self.title, first, first + batch.num_rows)
            first += batch.num_rows

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """Nothing."""
        return {}

    def count(self) -> int | None:
        """Its rows."""
        return int(self.total)

    def close(self) -> None:
        """Nothing is held."""


def _own(part: Part, names: Sequence[str]) -> list[str]:
    """The columns to read of a file; one at least, since a table without columns has no rows."""
    return [name for name in names if name in part.names] or list(part.names[:1])


def _before(files: Sequence[Path]) -> list[int]:
    """The stored bytes before each of the files."""
    return list(itertools.accumulate((file.stat().st_size for file in files[:-1]), initial=0))


class ParquetFiles:
    """Parquet files, in their order. `statistics`: trust the bounds in their footers."""

    def __init__(self, files: Sequence[Path], statistics: bool) -> None:
        self._files, self._statistics, self._scratch = files, statistics, Scratch()
        self.title, self.total = shown(files), sum(file.stat().st_size for file in files)
        try:
            self._footers = [self._opened(file).metadata for file in files]
            self.schema, self.parts, self.conflicts = unified(files, [self._opened(f).schema_arrow for f in files])
        except BaseException:
            self.close()
            raise

    def _opened(self, file: Path) -> Any:
        import pyarrow.parquet as pq

        plain = self._scratch.plain(file)
        content.check(file, plain, "Parquet", b"PAR1")
        with _damage(file, "Parquet"):
            return pq.ParquetFile(plain, memory_map=True)

    def streams(self, names: Sequence[str], again: bool) -> list[Stream]:
        """One of each file."""
        files = zip(self._files, self._footers, _before(self._files), self.parts, strict=True)
        return [partial(self._pieces, *file[:3], _own(file[3], names)) for file in files]

    def _pieces(self, file: Path, footer: Any, before: int, names: Sequence[str]) -> Iterator[Piece]:
        size, first = file.stat().st_size, 0
        stored = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
        step = min(_PIECE_ROWS, _rows_of_piece(stored, footer.num_rows))
        batches = self._opened(file).iter_batches(step, columns=list(names))
        while True:
            with _damage(file, "Parquet"):
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate(full=True)
            done = before + size * (first + batch.num_rows) // max(footer.num_rows, 1)
            yield Piece(pa.Table.from_batches([batch]), str(file), first, done)
            first += batch.num_rows

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """Bounds and nulls of the columns for which every row group of every file holds them."""
        if not self._statistics:
            return {}
        found = {}
        for name in names:
            parts: list[Known | None] = []
            for footer, own in zip(self._footers, self.parts, strict=True):
                parts += _statistics(footer, name) if name in own.names else [Known(footer.num_rows, None, None)]
            if any(part is None for part in parts):
                continue
            given = [part for part in parts if part is not None]
            ends = [end for part in given for end in (part.low, part.high) if end is not None]
            kind = self.schema.field(name).type
            kind = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
            with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                scalars = sorted((end.cast(kind) for end in ends), key=_sorting)
                low, high = (scalars[0], scalars[-1]) if scalars else (None, None)
                found[name] = Known(sum(part.nulls for part in given), low, high)
        return found

    def count(self) -> int | None:
        """The rows of all files."""
        return sum(int(footer.num_rows) for footer in self._footers)

    def close(self) -> None:
        """Removes decompressed copies."""
        self._scratch.close()


def _sorting(scalar: Any) -> Any:
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


@contextlib.contextmanager
def _damage(file: Path, form: str) -> Iterator[None]:
    """Turns what Arrow raises about a file's bytes into an `InputError`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowSerializationError) as error:
        raise InputError(f"{file} is no {form} file, or is damaged: {error}") from error
    except OSError as error:
        raise InputError(f"{file} is no {form} file, or is damaged: {error}") from error


def _statistics(footer: Any, name: str) -> Iterator[Known | None]:
    """Nulls and bounds of a column in each row group; None where the file does not hold all of them."""
    leaf = [i for i in range(footer.num_columns) if footer.schema.column(i).path == name]
    for group in range(footer.num_row_groups):
        stats = footer.row_group(group).column(leaf[0]).statistics if leaf else None
        if stats is None or not stats.has_null_count:
            yield None
            continue
        rows = footer.row_group(group).num_rows
        if stats.null_count == rows:
            yield Known(rows, None, None)
            continue
        ends = [_end(footer.schema.column(leaf[0]), stats, which) for which in ("min", "max")]
        yield None if any(end is None for end in ends) else Known(stats.null_count, *ends)


def _end(column: Any, stats: Any, which: str) -> Any:
    """A bound of a row group as an Arrow scalar of the type that the file stores; None if it is none to rely on."""
    if not stats.has_min_max:
        return None
    kind, raw = column.physical_type, getattr(stats, f"{which}_raw")
    logical = json.loads(column.logical_type.to_json()) if column.logical_type is not None else {}
    if kind in ("FLOAT", "DOUBLE"):
        return pa.scalar(raw, pa.float32() if kind == "FLOAT" else pa.float64()) if raw == raw else None
    if kind not in ("INT32", "INT64"):
        # Bounds of text may be cut; other types make no dimension.
        return None
    if logical.get("Type") == "Timestamp":
        unit = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}.get(logical["timeUnit"])
        return None if unit is None else pa.scalar(raw, pa.timestamp(unit))
    if logical.get("Type") == "Date":
        return pa.scalar(raw, pa.date32())
    if logical.get("Type") == "Int":
        bits = 32 if kind == "INT32" else 64
        signed = logical["isSigned"]
        return pa.scalar(raw if signed else raw % 2**bits, pa.int64() if signed else pa.uint64())
    return pa.scalar(raw, pa.int64()) if logical.get("Type", "None") == "None" else None


class ArrowFiles:
    """Arrow IPC files and streams (Feather, version 2), in their order."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files, self._scratch = files, Scratch()
        self.title, self.total = shown(files), sum(file.stat().st_size for file in files)
        try:
            self.schema, self.parts, self.conflicts = unified(files, [self._schema_of(file) for file in files])
        except BaseException:
            self.close()
            raise

    def _schema_of(self, file: Path) -> Any:
        with self._opened(file) as (schema, _):
            return schema

    @contextlib.contextmanager
    def _opened(self, file: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
        plain = self._scratch.plain(file)
        content.check(file, plain, "Arrow", b"ARROW1")
        with plain.open("rb") as raw:
            magic = raw.read(6)
        if magic[:4] == b"FEA1":
            raise InputError(f"{file} is Feather version 1, which Arrow gave up; write it again as version 2")
        if not magic:
            raise InputError(f"{file} is empty; an Arrow file holds at least a schema")
        with contextlib.ExitStack() as stack:
            with _damage(file, "Arrow"):
                memory = stack.enter_context(pa.memory_map(str(plain)))
                if magic == b"ARROW1":
                    found = pa.ipc.open_file(memory)
                    batches = (found.get_batch(i) for i in range(found.num_record_batches))
                else:
                    found = pa.ipc.open_stream(memory)
                    batches = iter(found)
            yield found.schema, batches

    def streams(self, names: Sequence[str], again: bool) -> list[Stream]:
        """One of each file."""
        return [
            partial(self._pieces, file, before, _own(part, names))
            for file, before, part in zip(self._files, _before(self._files), self.parts, strict=True)
        ]

    def _pieces(self, file: Path, before: int, names: Sequence[str]) -> Iterator[Piece]:
        first = 0
        with self._opened(file) as (_, batches):
            while True:
                with _damage(file, "Arrow"):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    batch.validate(full=True)
                for part in _cut(pa.Table.from_batches([batch]).select(list(names))):
                    yield Piece(part, str(file), first, before)
                    first += part.num_rows

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """Nothing: these files have no statistics."""
        return {}

    def count(self) -> int | None:
        """Unknown."""
        return None

    def close(self) -> None:
        """Removes decompressed copies."""
        self._scratch.close()
