"""CSV files: loading them in bounded memory into one commit, and writing them."""

import gzip
import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from .. import arrow, cells, dtypes, selection, store
from ..array import Array
from ..columns import Field
from ..context import Context, default, size_bytes
from ..errors import ExistsError, InputError, NotFoundError
from ..progress import Callback, Progress, reporting
from ..schema import Schema
from ..selection import BoxLike
from . import infer, parse, sources, text
from .parse import Dialect
from .sources import Block, Source

if TYPE_CHECKING:
    from .. import _native

log = logging.getLogger("gridstone")


def from_csv(
    uri: store.Uri,
    source: Source,
    dims: Sequence[str] | None = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    *,
    path: str = "/",
    overwrite: bool = False,
    duplicates: bool = True,
    attrs: Sequence[str] | None = None,
    capacity: int = 10_000,
    dedup: str = "error",
    delimiter: str = ",",
    nulls: Sequence[str] = ("",),
    encoding: str = "utf8",
    block_bytes: int | str = "8MiB",
    message: str | None = None,
) -> Array:
    """Loads CSV files into a new array, or appends them to one that is there, in bounded memory and one commit.

    Without a schema or an array at `uri`, a first pass over the files infers types and domains: integers, floats, ISO
    dates and times, true/false, else text; an attribute with empty values is nullable. Columns are matched by name.

    Args:
        uri: the store.
        source: a path, a pattern or a list of them; `.gz .bz2 .xz .zst .lz4` are decompressed.
        dims: the columns that are the dimensions; needed unless a schema is given.
        schema: the schema of the new array; columns that it does not name are left out.
        sparse: make a sparse array; else a dense one, whose dimensions are integers or times.
        context: None: the process's default. Batches of an eighth of its memory budget become fragments.
        progress: True for a bar, or a callable `f(done_bytes, total_bytes)`.
        path, overwrite: the array's place in the store; replace what is there.
        duplicates: whether cells of an inferred sparse array may share a place, as real positions do.
        attrs: the columns to load as attributes; None: all others.
        capacity: cells per data tile of an inferred sparse array.
        dedup: where the schema forbids that, among the cells of one batch: "error", or keep the "first" or "last".
        delimiter: what separates values.
        nulls: unquoted texts that mean null.
        encoding: of the files; a byte order mark is skipped.
        block_bytes: how much text is parsed at once.
        message: kept with the version.

    Returns the array, open for reading and writing.

    Raises:
        InputError: names the file, line and column of what is wrong. Nothing is half-loaded: a store that this call
            created is removed again, any other is as it was.
        ExistsError: the array exists, and a schema was given without `overwrite`.
    """
    load = _Load(sources.expand(source), Dialect(delimiter, tuple(nulls)), encoding, block_bytes, context or default())
    new_store = not store.exists(uri)
    existing = None if new_store or overwrite else _existing(uri, path, schema, load.context)
    with reporting(progress, "loading") as load.report:
        if existing is not None:
            schema = existing.schema
        elif schema is None:
            schema = load.inferred(dims, attrs, sparse=sparse, duplicates=duplicates, capacity=capacity)
        elif not new_store:
            load.check(schema)
        try:
            made = _new_array(uri, schema, path, overwrite, load.context) if existing is None else existing
            load.fill(made, dedup, message)
        except BaseException:
            if new_store and store.exists(uri):
                store.delete(uri, context=load.context)
            raise
        return made


def _new_array(uri: store.Uri, schema: Schema, path: str, overwrite: bool, context: Context) -> Array:
    if schema.duplicates:
        log.info("%s allows duplicates: several cells may have the same coordinates", os.fspath(uri))
    return store.create(uri, schema, path=path, overwrite=overwrite, context=context)


def read_csv(
    source: Source,
    schema: Schema,
    *,
    attrs: Sequence[str] | None = None,
    delimiter: str = ",",
    nulls: Sequence[str] = ("",),
    encoding: str = "utf8",
) -> "pa.Table":
    """The columns of a schema's dimensions and attributes (`attrs`; None: all) as one table in memory, checked as
    `from_csv` checks them.
    """
    load = _Load(sources.expand(source), Dialect(delimiter, tuple(nulls)), encoding, "8MiB", default())
    tables = list(load.typed(schema, attrs))
    return pa.concat_tables(tables) if tables else arrow.schema_of(schema, list(attrs or [])).empty_table()


def _existing(uri: store.Uri, path: str, schema: Schema | None, context: Context) -> Array | None:
    """The array to append to, if there is one."""
    try:
        found = store.open_array(uri, path=path, mode="r+", context=context)
    except NotFoundError:
        return None
    if schema is not None and schema != found.schema:
        raise ExistsError(
            f"{os.fspath(uri)!r} holds an array with another schema; leave schema= out to append to it, "
            f"or pass overwrite=True to replace it"
        )
    return found


class _Load:
    """One load: files in, fragments out."""

    def __init__(
        self, files: Sequence[Path], dialect: Dialect, encoding: str, block_bytes: int | str, context: Context
    ) -> None:
        self.files, self.dialect, self.encoding = files, dialect, encoding
        self.block_bytes = max(1, size_bytes(block_bytes, "block_bytes"))
        self.context = context
        self.report: Callback | None = None
        self.passes, self.passed = 1, 0
        self.kept: list[Any] | None = []
        self.zoned: dict[str, Any] = {}

    def inferred(self, dims: Sequence[str] | None, attrs: Sequence[str] | None, **options: Any) -> Schema:
        """The first pass: types and domains of all columns."""
        if not dims or isinstance(dims, str):
            raise InputError("dims= is a list of the columns that are the dimensions, such as dims=['lat', 'lon']")
        self.passes, rows, kept_bytes = 2, 0, 0
        columns: dict[str, infer.Column] = {}
        for block, table in self._tables(lambda block: _wanted(block, dims, attrs), {}):
            self._check_filled(block, table, dims, dims)
            columns = columns or {name: infer.Column(name) for name in table.column_names}
            for name, column in columns.items():
                column.see(table.column(name).combine_chunks(), name in dims)
            rows, kept_bytes = rows + table.num_rows, kept_bytes + table.nbytes
            self._keep(table, kept_bytes)
        if rows == 0:
            raise InputError(f"{_files(self.files)} has no rows to infer types and domains from; give a schema")
        self.zoned = {name: column.read_type for name, column in columns.items() if column.zoned}
        made = infer.schema_of(list(columns.values()), dims, rows, **options)
        self._settle(columns)
        return made

    def _keep(self, table: Any, kept_bytes: int) -> None:
        """Keeps what the first pass parsed while it is small, so that small files are parsed once."""
        if kept_bytes > self.context.memory_budget // 4:
            self.kept = None
        if self.kept is not None:
            self.kept.append(table)

    def _settle(self, columns: dict[str, infer.Column]) -> None:
        """Brings the kept tables to the final types; those that must be read again as text are dropped."""
        if self.kept is None:
            return
        wanted = pa.schema([(name, column.read_type) for name, column in columns.items()])
        for table in self.kept:
            for found, field in zip(table.schema, wanted, strict=True):
                textual = pa.types.is_string(field.type) and not pa.types.is_null(found.type)
                if textual and not pa.types.is_string(found.type):
                    self.kept = None
                    return
        self.kept = [table.cast(wanted) for table in self.kept]

    def check(self, schema: Schema) -> None:
        """A pass that only looks for what is wrong, before anything is created or replaced."""
        self.passes = 2
        for _ in self.typed(schema):
            pass

    def fill(self, array: Array, dedup: str, message: str | None) -> None:
        """Loads everything into the array, in one commit."""
        schema, limit = array.schema, max(1 << 16, self.context.memory_budget // 8)
        tables = iter(self.kept) if self.kept else self.typed(schema)
        staged: list[_native.Staged] = []
        batch: list[Any] = []
        held = 0
        for table in tables:
            batch.append(table)
            held += table.nbytes
            if held >= limit:
                staged += self._stage(array, batch, dedup)
                batch, held = [], 0
        staged += self._stage(array, batch, dedup)
        if staged:
            array._commit(staged, message)
        if self.report is not None:
            total = sum(file.stat().st_size for file in self.files) * max(self.passes, self.passed)
            self.report(total, total)

    def _stage(self, array: Array, batch: list[Any], dedup: str) -> "list[_native.Staged]":
        if not batch or sum(table.num_rows for table in batch) == 0:
            return []
        table, schema = pa.concat_tables(batch), array.schema
        batch.clear()
        dims = [text.read(field, table.column(field.name)) for field in cells.dim_fields(schema)]
        names = [name for name in table.column_names if name not in array.dims]
        values = {name: text.read(cells.attr_field(schema, name), table.column(name)).native() for name in names}
        return [array._writable().stage_cells([dim.native() for dim in dims], values, False, dedup, None)]

    def typed(self, schema: Schema, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Tables of the schema's columns (of the attributes named; None: all), every cell checked against it."""
        dims = [dim.name for dim in schema.dims]
        attrs = [attr.name for attr in schema.attrs] if names is None else list(names)
        strict = [a.name for a in schema.attrs if a.name in attrs and not _holds_null(a.dtype, a.nullable)]
        types = {dim.name: text.read_type(dim.dtype) for dim in schema.dims}
        types |= {attr.name: text.read_type(attr.dtype) for attr in schema.attrs}
        types |= self.zoned
        for block, table in self._tables(lambda block: _wanted(block, dims, attrs), types):
            self._check_filled(block, table, dims + strict, dims)
            self._check_domain(block, table, schema)
            yield table

    def _tables(self, wanted: Any, types: dict[str, Any]) -> Iterator[tuple[Block, Any]]:
        """Each block with its columns, parsed by a few threads ahead of the caller."""
        reader = sources.Reader(self.files, self.encoding, self.block_bytes)
        blocks = reader.blocks(lambda block: parse.header(self.dialect, block))
        types = self._with_zones(types)

        def parsed(block: Block) -> tuple[Block, Any]:
            return block, parse.table(self.dialect, block, types, wanted(block))

        workers = min(4, self.context.threads)
        with ThreadPoolExecutor(workers, "gridstone-csv") as pool:
            ahead: list[Future[tuple[Block, Any]]] = []
            try:
                for block in blocks:
                    ahead.append(pool.submit(parsed, block))
                    self._tell(reader)
                    if len(ahead) > workers:
                        yield ahead.pop(0).result()
                while ahead:
                    yield ahead.pop(0).result()
            finally:
                pool.shutdown(cancel_futures=True)
        self._check_headers(wanted)
        self._tell(reader)
        self.passed += 1

    def _check_headers(self, wanted: Any) -> None:
        """Files without rows have no blocks; their columns are checked here."""

        def checked(block: Block) -> tuple[Block, tuple[str, ...]]:
            rest, names = parse.header(self.dialect, block)
            wanted(rest)
            return rest, names

        for file in self.files:
            reader = sources.Reader([file], self.encoding, 1 << 16)
            next(reader.blocks(checked), None)

    def _with_zones(self, types: dict[str, Any]) -> dict[str, Any]:
        """Times with a zone need a type with one: told by the first block of each pass that has a schema."""
        times = [name for name, kind in types.items() if pa.types.is_timestamp(kind)]
        if not times or self.zoned:
            return types
        reader = sources.Reader(self.files, self.encoding, 1 << 16)
        block = next(reader.blocks(lambda block: parse.header(self.dialect, block)), None)
        if block is None:
            return types
        present = [name for name in times if name in block.names]
        found = parse.table(self.dialect, block, {}, present).schema if present else pa.schema([])
        for field in found:
            if pa.types.is_timestamp(field.type) and field.type.tz is not None:
                self.zoned[field.name] = pa.timestamp(types[field.name].unit, "UTC")
        return types | self.zoned

    def _tell(self, reader: sources.Reader) -> None:
        if self.report is not None:
            self.report(reader.done + reader.total * self.passed, reader.total * self.passes)

    def _check_filled(self, block: Block, table: Any, names: Sequence[str], dims: Sequence[str]) -> None:
        """No empty value in these columns, and no NaN in the dimensions."""
        for name in names:
            column = table.column(name)
            no_nan = name in dims and pa.types.is_floating(column.type)
            if column.null_count == 0 and not no_nan:
                continue
            row = pc.index(column.is_null(nan_is_null=no_nan), True).as_py()
            if row >= 0:
                raise InputError(
                    f"{self._place(block, row)}, column {name!r}: the value is empty or not a number; "
                    f"fill it, drop the row, or make the attribute nullable (a dimension never is)"
                )

    def _check_domain(self, block: Block, table: Any, schema: Schema) -> None:
        for dim in schema.dims:
            column = text.read(Field(dim.name, dim.dtype, False, "dimension"), table.column(dim.name)).values
            low, high = (np.array([bound], dtypes.numpy_of(dim.dtype)) for bound in dim.domain)
            outside = (column < low) | (column > high)
            if outside.any():
                row = int(np.flatnonzero(outside)[0])
                raise InputError(
                    f"{self._place(block, row)}, column {dim.name!r}: {column[row]} is outside the domain "
                    f"({dtypes.show(dim.domain[0])}, {dtypes.show(dim.domain[1])})"
                )

    def _place(self, block: Block, row: int) -> str:
        return f"{block.file}, line {parse.line_of(self.dialect, block, row)}"


def _files(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _wanted(block: Block, dims: Sequence[str], attrs: Sequence[str] | None) -> list[str]:
    """The columns to read of this file, in one order for all files."""
    names = [*dims, *(attrs if attrs is not None else [name for name in block.names if name not in dims])]
    parse.check_columns(block, names)
    return names


def _holds_null(dtype: str, nullable: bool) -> bool:
    return nullable or dtypes.is_time(dtype) or dtypes.is_var(dtype)


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
        The number of rows. Nulls and NaT are empty; timedeltas are ticks of their unit, vectors and
        lists JSON, complex numbers JSON of two numbers.
    """
    source = array if isinstance(array, Array) else store.open_array(array)
    final = Path(os.fspath(target))
    part = final.with_name(final.name + ".part")
    stream = source.scan(selection.box_of(source.schema, box), attrs, order, "16MiB")
    fields = text.written_schema(stream.schema)
    written = 0
    options = pa_csv.WriteOptions(delimiter=delimiter)
    try:
        with (
            reporting(progress, "writing", "rows") as report,
            _created(part, final.suffix == ".gz") as file,
            pa_csv.CSVWriter(file, fields, write_options=options) as out,
        ):
            for batch in stream:
                out.write_batch(text.written(batch, fields))
                written += batch.num_rows
                if report is not None:
                    report(written, 0)
        part.replace(final)
    finally:
        part.unlink(missing_ok=True)
    return written


def _created(file: Path, compressed: bool) -> IO[Any]:
    return gzip.open(file, "wb", 6) if compressed else file.open("wb")  # type: ignore[return-value]
