"""CSV files as a feed of tables.

Files are read side by side, a thread each. Other threads parse and check the blocks, ahead of what is written. Errors
name line and column.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...column import arrow, codes, datatype, decode
from ...column.columns import Field
from ...column.datatype import AnyArray
from ...context.settings import Context, size_bytes
from ...errors import InputError
from ...schema.array_schema import Schema
from ...schema.attribute import Attr
from ...schema.fields import attr_field, dim_fields, without_values
from .. import bounds, columns, infer, text_values
from ..columns import Part
from ..files import shown
from ..load import ColumnFeed, Meter, Options, Request, column_of, named_dims
from ..readahead import side_by_side
from ..rejects import Rejected, Rejects
from ..target import type_advice
from . import parser
from .dialect import Dialect
from .rows import Block, Reader

_BUDGET_PER_ROOM = 32
"""Which part of the budget holds text that is read and not parsed yet."""

_Wanted = Callable[[Block], list[str]]
_Parsed = tuple[Block, Any]


def _block_bytes(context: Context) -> int:
    """A few blocks, as text and as columns, are a small part of the budget; of a small one a smaller part."""
    share = 128 if context.memory_budget >= 512 << 20 else 512
    return min(8 << 20, max(128 << 10, context.memory_budget // share))


class CsvFeed(ColumnFeed):
    """The rows of CSV files."""

    def __init__(
        self,
        files: Sequence[Path],
        dialect: Dialect,
        encoding: str,
        block_bytes: int | str | None,
        context: Context,
        rejects: Rejects,
    ) -> None:
        self.meter, self.context = Meter(), context
        self._files, self._dialect, self._encoding = files, dialect, encoding
        wanted = _block_bytes(context) if block_bytes is None else size_bytes(block_bytes, "block_bytes")
        self._block_bytes = max(1, wanted)
        self._rejects = rejects
        self._kept: list[Any] | None = []
        self._zoned: dict[str, Any] = {}
        self._new_zoned: dict[str, Any] = {}
        self._headers: list[Part] | None = None
        self._dtypes: dict[str, str] = {}

    def total(self) -> int:
        """Bytes of the files."""
        return sum(file.stat().st_size for file in self._files)

    def close(self) -> dict[str, int]:
        """Hands over the rows that were rejected."""
        self._rejects.close()
        return {"rows_rejected": self._rejects.count} if self._rejects.tolerant else {}

    def parts(self) -> list[Part]:
        """The columns of each file that says which it has."""
        if self._headers is None:
            self._headers = []
            for file in self._files:

                def header(block: Block) -> tuple[Block, tuple[str, ...]]:
                    rest, names = self._header(block)
                    line = f", line {rest.line - 1}" if self._dialect.header else ""
                    self._headers.append(Part(f"{block.file}{line}", names))  # type: ignore[union-attr]
                    return rest, names

                self._reader([file], 1 << 16).first(header)
        return self._headers

    def inferred(self, dims: Sequence[str] | None, sparse: bool, options: Options) -> Schema:
        """The first pass: types and domains of all columns."""
        dims, parts = named_dims(dims), self.parts()
        wanted = [*dims, *(options.attrs or [name for name in columns.named(parts) if name not in dims])]
        columns.check_dims(parts, dims)
        columns.check_present(parts, wanted, union=self.request.union)
        self.meter.passes = 2
        chosen = self.request.chosen
        types = {name: text_values.read_type(kind) for name, one in chosen.items() if (kind := one.kind) is not None}
        found, rows = self._inferred_columns(wanted, dims, types, keep=True)
        if rows == 0:
            raise InputError(f"{shown(self._files)} has no rows to infer types and domains from; give a schema")
        self._zoned = {name: column.read_type for name, column in found.items() if column.zoned}
        made = infer.schema_of(
            list(found.values()), dims, rows,
            sparse=sparse, duplicates=options.duplicates, capacity=options.capacity, chosen=chosen,
        )  # fmt: skip
        self._settle(found)
        if chosen:
            # What is kept was not checked against what was chosen.
            self._kept = None
        return made

    def _inferred_columns(
        self, wanted: Sequence[str], dims: Sequence[str], types: dict[str, Any], *, keep: bool
    ) -> tuple[dict[str, infer.Column], int]:
        """What these columns are in all files, and the number of rows, after a pass."""
        lacking = {name for name in wanted if any(name not in part.names for part in self.parts())}
        of_file: dict[tuple[Path, str], infer.Column] = {}
        rows, kept_bytes = 0, 0

        def own(block: Block) -> list[str]:
            # Arrow takes no names for all of them.
            return [name for name in wanted if name in block.names] or list(block.names[:1])

        for block, read in self._tables(own, types):
            table = self._checked(block, read, dims, dims, None)
            for name in {*wanted} & {*table.column_names}:
                column = of_file.setdefault((block.file, name), infer.Column(name))
                column.see(table.column(name).combine_chunks(), name in dims)
            rows, kept_bytes = rows + table.num_rows, kept_bytes + table.nbytes
            if keep:
                self._keep(table, kept_bytes)
        made = {name: infer.Column(name, nulls=name in lacking) for name in wanted}
        for (_, name), column in of_file.items():
            made[name].join(column)
        return made, rows

    def new_attrs(self, names: Sequence[str]) -> list[Attr]:
        """Attributes of these columns, of the types that a pass over the files infers."""
        found, _ = self._inferred_columns(names, [], {}, keep=False)
        self._new_zoned = {name: column.read_type for name, column in found.items() if column.zoned}
        return [Attr(name, column.dtype, nullable=True) for name, column in found.items()]

    def _keep(self, table: Any, kept_bytes: int) -> None:
        """Keeps what the first pass parsed while it is small, so that small files are parsed once."""
        if kept_bytes > self.context.memory_budget // 4:
            self._kept = None
        if self._kept is not None:
            self._kept.append(table)

    def _settle(self, found: dict[str, infer.Column]) -> None:
        """Brings the kept tables to the final types; those that must be read again as text are dropped."""
        if self._kept is None:
            return
        wanted = pa.schema([(name, column.read_type) for name, column in found.items()])
        for table in self._kept:
            for own in table.schema:
                field, kind = wanted.field(own.name), own.type
                textual = pa.types.is_string(field.type) and not pa.types.is_null(kind)
                if (textual and not pa.types.is_string(kind)) or pa.types.is_decimal(kind):
                    self._kept = None
                    return
        try:
            self._kept = [_completed(table, wanted).cast(wanted) for table in self._kept]
        except pa.ArrowInvalid:
            # Whole numbers that floats cannot hold: what the text says decides, so that it is read again.
            self._kept = None

    def check(self, schema: Schema) -> None:
        """A pass that only looks for what is wrong."""
        for _ in self.typed(schema):
            pass

    def tables(self, schema: Schema) -> Iterator[Any]:
        """What the first pass kept, or else the files again."""
        return iter(self._kept) if self._kept else self.typed(schema, self.request.attrs)

    def typed(self, schema: Schema, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Tables of the schema's columns (of the attributes named; None: all), every cell checked against it."""
        dims = [dim.name for dim in schema.dims]
        attrs = self._taken(schema, names)
        asked = [name for name in attrs if names is None or name in names]
        strict = [a.name for a in schema.attrs if a.name in attrs and not _holds_null(a.dtype, a.nullable)]
        types = {dim.name: text_values.read_type(dim.dtype) for dim in schema.dims}
        types |= {attr.name: text_values.read_type(attr.dtype) for attr in schema.attrs}
        types |= {name: kind for name, kind in (self._zoned | self._new_zoned).items() if name in types}
        self._dtypes = {**{dim.name: dim.dtype for dim in schema.dims}, **{a.name: a.dtype for a in schema.attrs}}
        for block, found in self._tables(lambda block: [n for n in [*dims, *asked] if n in block.names], types):
            own = [name for name in strict if name in found.column_names]
            table = self._checked(block, found, dims + own, dims, schema)
            for name in attrs:
                if name not in table.column_names:
                    table = table.append_column(name, without_values(schema.attr(name), table.num_rows))
            yield table

    def _taken(self, schema: Schema, names: Sequence[str] | None) -> list[str]:
        """The attributes that get values; all that are named of a table that only is read."""
        parts, request = self.parts(), self.request
        columns.check_dims(parts, [dim.name for dim in schema.dims])
        wanted = [attr.name for attr in schema.attrs if names is None or attr.name in names]
        if request.target is None or names is not None:
            columns.check_present(parts, names if names is not None else wanted, union=True)
        known = columns.named(parts)
        columns.check_present(parts, [name for name in wanted if name in known], union=request.union)
        return columns.taken(parts, schema, names, partly=not schema.sparse or request.reads)

    def _tables(self, wanted: _Wanted, types: dict[str, Any]) -> Iterator[_Parsed]:
        """Each block with its columns, parsed by a few threads ahead of the caller."""
        self._rejects.begin()
        reader = self._reader(self._files, self._block_bytes)
        types = self._with_zones(types)

        def parsed(block: Block) -> _Parsed:
            return self._parsed(block, types, wanted(block))

        workers = min(4, self.context.threads)
        # Two blocks per thread, and of a large budget what lets a packed file be unpacked beside the one before it.
        room = max(2 * workers * self._block_bytes, self.context.memory_budget // _BUDGET_PER_ROOM)
        lanes = min(workers, len(self._files)) if workers > 1 else 0
        ahead = side_by_side(reader.streams(self._header), lanes, room, lambda read: len(read[0].data))
        with ThreadPoolExecutor(workers, "gridstone-csv") as pool, closing(ahead) as blocks:
            yield from self._in_turn(pool, workers, parsed, blocks, reader.total)
        self.meter.tell(reader.total, reader.total)
        self.meter.passed += 1

    def _in_turn(
        self,
        pool: ThreadPoolExecutor,
        workers: int,
        parsed: Callable[[Block], _Parsed],
        blocks: Iterator[tuple[Block, int]],
        total: int,
    ) -> Iterator[_Parsed]:
        """What is made of each block, in their order. Errors of reading are reported after those of earlier blocks."""
        pending: deque[Future[_Parsed]] = deque()
        problem: Exception | None = None
        try:
            while True:
                try:
                    block, done = next(blocks, (None, 0))
                except Exception as error:
                    problem = error
                    break
                if block is None:
                    break
                pending.append(pool.submit(parsed, block))
                self.meter.tell(done, total)
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
        if problem is not None:
            raise problem

    def _reader(self, files: Sequence[Path], block_bytes: int) -> Reader:
        return Reader(files, self._dialect, self._encoding, block_bytes)

    def _header(self, block: Block) -> tuple[Block, tuple[str, ...]]:
        return parser.header(self._dialect, block)

    def _parsed(self, block: Block, types: parser.Types, names: Sequence[str]) -> _Parsed:
        """The block and its table, without the rows that cannot be read if these may be left out. A row of another
        length hides what else is wrong.
        """
        try:
            return block, parser.table(self._dialect, block, types, names)
        except InputError as error:
            if not self._rejects.tolerant:
                raise self._advised(block, types, names) or error from error
        while found := list(parser.faults(self._dialect, block, types, names)):
            block = self._reject(block, found)
        return block, parser.table(self._dialect, block, types, names)

    def _advised(self, block: Block, types: parser.Types, names: Sequence[str]) -> InputError | None:
        """The error of a value that is not of its column's type in the array that is there; None of others."""
        target = self.request.target
        fault = next(parser.faults(self._dialect, block, types, names), None) if target is not None else None
        if fault is None or not fault.column or fault.column not in types:
            return None
        row = next(iter(self._dialect.rows(fault.text.encode())), [])
        text = row[block.names.index(fault.column)] if len(row) == len(block.names) else ""
        advice = type_advice(target, fault.column, self._dtypes.get(fault.column, ""), text)
        return fault._replace(reason=f"{fault.reason.partition(';')[0]}{advice}").error(block) if advice else None

    def _reject(self, block: Block, found: Sequence[parser.Fault]) -> Block:
        once = {fault.first: fault for fault in reversed(found)}
        self._rejects.add([Rejected(str(block.file), f.first, f.column, f.reason, f.text) for f in once.values()])
        return parser.blanked(block, found)

    def _with_zones(self, types: dict[str, Any]) -> dict[str, Any]:
        """Times with a zone need a type with one: the first block of each file that has the column decides."""
        times = [name for name, kind in types.items() if pa.types.is_timestamp(kind)]
        if not times or self._zoned:
            return types
        pending = set(times)
        for file in self._files:
            block = self._reader([file], 1 << 16).first(self._header) if pending else None
            if block is not None:
                self._note_zones(block, types, sorted(pending & {*block.names}))
                pending -= {*block.names}
        return types | self._zoned

    def _note_zones(self, block: Block, types: dict[str, Any], present: list[str]) -> None:
        """Takes note which of these columns of times have a zone."""
        if not present:
            return
        if self._rejects.tolerant:
            block = parser.blanked(block, list(parser.faults(self._dialect, block, {}, present)))
        for field in parser.table(self._dialect, block, {}, present).schema:
            if pa.types.is_timestamp(field.type) and field.type.tz is not None:
                self._zoned[field.name] = pa.timestamp(types[field.name].unit, "UTC")

    def _checked(
        self, block: Block, table: Any, filled: Sequence[str], dims: Sequence[str], schema: Schema | None
    ) -> Any:
        """The table, times in UTC, without the rows that are rejected; an `InputError` if none may be."""
        fields = [] if schema is None else _fields(schema)
        days = {field.name for field in fields if field.dtype == "datetime64[D]"}
        table, doubtful = parser.in_utc(self._dialect, table, days)
        sieve = _Sieve(table, self._rejects.tolerant)
        sieve.sift([*self._unclear(doubtful), *self._empty(table, filled, dims)])
        if schema is not None:
            for field in _judged(schema, table):
                sieve.sift(
                    (row, field.name, why) for row, why in text_values.unread(field, sieve.table.column(field.name))
                )
                sieve.settle(field)
            sieve.sift(_outside(sieve.table, schema, self.request))
            sieve.sift(_strangers(sieve.table, schema))
        if sieve.bad:
            found = parser.fault_at(self._dialect, block, sieve.bad)
            if not self._rejects.tolerant:
                raise found[0].error(block)
            self._reject(block, found)
        return sieve.table

    def _empty(self, table: Any, names: Sequence[str], dims: Sequence[str]) -> Iterator[tuple[int, str, str]]:
        """The rows without a value in these columns, or with NaN in a dimension."""
        # An empty field is a text like any other, unless other words mean null too.
        texts = dims if set(self._dialect.nulls) <= {""} else ()
        for name in names:
            column = table.column(name)
            if name in texts and pa.types.is_string(column.type):
                continue
            for row in np.flatnonzero(_missing(column, coordinate=name in dims)):
                yield (
                    int(row),
                    name,
                    "the value is empty, not a number or NaT; "
                    "fill it, drop the row, or make the attribute nullable (a dimension never is)",
                )

    def _unclear(self, doubtful: Sequence[tuple[str, Any]]) -> Iterator[tuple[int, str, str]]:
        """The rows with times that the clocks of the zone skip or repeat."""
        reason = f"the time is ambiguous or missing in {self._dialect.timezone}, where clocks change; "
        for name, differ in doubtful:
            for row in np.flatnonzero(np.asarray(differ)):
                yield int(row), name, reason + "write it with its offset"


class _Sieve:
    """A table, and the rows of it that were found bad, by their place in it and with column and reason: all of them, or
    the first one where one is too many, behind which nothing is looked at any more.
    """

    def __init__(self, table: Any, tolerant: bool) -> None:
        self.table, self.bad = table, dict[int, tuple[str, str]]()
        self._tolerant, self._places = tolerant, np.arange(table.num_rows)

    def sift(self, found: Iterable[tuple[int, str, str]]) -> None:
        """Takes rows of the table as it is now out of it."""
        if self.bad and not self._tolerant:
            return
        bad: dict[int, tuple[str, str]] = {}
        for row, name, reason in found:
            bad.setdefault(row, (name, reason))
        if not bad:
            return
        if not self._tolerant:
            bad = {min(bad): bad[min(bad)]}
        self.bad |= {int(self._places[row]): why for row, why in bad.items()}
        kept = np.ones(self.table.num_rows, np.bool_)
        kept[list(bad)] = False
        self.table, self._places = self.table.filter(pa.array(kept)), self._places[kept]

    def settle(self, field: Field) -> None:
        """Makes a column that was judged what it is read as, so that it is read once."""
        if self.bad and not self._tolerant:
            return
        place = self.table.schema.get_field_index(field.name)
        made = arrow.array_of(text_values.read(field, self.table.column(place)), keep_nat=True)
        self.table = self.table.set_column(place, field.name, made)


def _missing(column: Any, *, coordinate: bool) -> AnyArray:
    """Which values of a column are null; of coordinates NaN and NaT are as good as null."""
    floating = coordinate and pa.types.is_floating(column.type)
    found: AnyArray = np.asarray(column.is_null(nan_is_null=floating))
    if coordinate and (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
        found = found | np.isnat(np.asarray(column.to_numpy()))
    return found


def _fields(schema: Schema) -> list[Field]:
    return [*dim_fields(schema), *(attr_field(schema, attr.name) for attr in schema.attrs)]


def _judged(schema: Schema, table: Any) -> Iterator[Field]:
    """The fields of the table's columns whose text has to be looked at."""
    for field in _fields(schema):
        if field.name in table.column_names and text_values.judged(field.dtype):
            yield field


def _outside(table: Any, schema: Schema, request: Request) -> Iterator[tuple[int, str, str]]:
    """The rows outside the domain."""
    for dim in schema.dims:
        found = bounds.outside(dim, table.column(dim.name), request.target, grows=request.grows)
        yield from ((row, dim.name, reason) for row, reason in found)


def _strangers(table: Any, schema: Schema) -> Iterator[tuple[int, str, str]]:
    """The rows whose value is none of an attribute's categories."""
    for attr in schema.attrs:
        known = attr.enumeration
        if known is None or attr.name not in table.column_names:
            continue
        plain = Field(attr.name, attr.dtype, attr.nullable, "attribute")
        column = column_of(plain, table.column(attr.name))
        bad, values = codes.found_in(known, column) < 0, decode.cells_of(column)
        for row in np.flatnonzero(bad if column.validity is None else bad & column.validity):
            shown = datatype.show(values[row], attr.dtype) if datatype.is_var(attr.dtype) else str(values[row])
            reason = f"{shown} is none of its categories {known.shown()}; correct it, or add it to the schema"
            yield int(row), attr.name, reason


def _completed(table: Any, wanted: Any) -> Any:
    """The table with nulls in the columns that its file lacks, in the order wanted."""
    for field in wanted:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(wanted.names)


def _holds_null(dtype: str, nullable: bool) -> bool:
    return nullable or datatype.is_time(dtype) or datatype.is_var(dtype)
