"""Typed columns as a feed: bounds come from statistics or from a pass, and all cells are checked."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...column import arrow, arrow_types
from ...column.columns import Field
from ...context.settings import Context
from ...errors import GridstoneError, InputError
from ...schema.array_schema import Schema
from ...schema.attribute import Attr
from ...schema.fields import field_of, without_values
from .. import bounds, columns, infer
from ..columns import Part
from ..load import ColumnFeed, Meter, Options, column_of, named_dims
from ..readahead import side_by_side
from ..target import type_advice
from .common_type import cast

SCHEMA_KEY = b"gridstone.schema"
"""Where the metadata of a table that this package wrote keeps the schema of its array."""

_LANES_MAX = 4
_BUDGET_PER_LANE = 128 << 20
_BUDGET_PER_ROOM = 16
"""Which part of the budget holds pieces that were read and not written yet."""


class Piece(NamedTuple):
    """Some rows of a source."""

    table: Any
    title: str
    """What they are from, for messages."""
    first: int
    """Their first row's number there, from 0."""
    done: int
    """How much of the source's `total` has been read with them."""


class Known(NamedTuple):
    """What a source knows of a column without reading it."""

    nulls: int
    low: Any
    """The lowest value, an Arrow scalar of the column's type; None if there is no value."""
    high: Any


class Tables(Protocol):
    """Where columns come from."""

    title: str
    total: int
    """What a pass over all of it counts as progress: bytes or rows."""

    @property
    def schema(self) -> Any:
        """The Arrow schema of all of it."""

    def streams(self, names: Sequence[str], again: bool) -> Sequence[Callable[[], Iterator[Piece]]]:
        """These columns in pieces of a few MiB; `again`: another pass will follow. Several streams, whose pieces follow
        each other, may be read side by side.
        """

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """What is known of some of these columns without a pass."""

    def count(self) -> int | None:
        """The number of rows, if it is known without a pass."""

    def close(self) -> None:
        """Lets go of files."""


@runtime_checkable
class Files(Tables, Protocol):
    """Columns of several files, not all of which need to have all of them."""

    parts: Sequence[Part]
    """The columns of each file."""
    conflicts: Mapping[str, InputError]
    """Columns whose types in the files have none in common."""


class TableFeed(ColumnFeed):
    """The rows of a source of typed columns. `nan_is_null`: nulls of float columns came from NaN, which they become
    again where the schema has no null. `readahead`: pieces may be read on other threads. `refused`: columns that there
    are besides, and what is wrong with them, which is an error if they are wanted.
    """

    def __init__(
        self,
        source: Tables,
        context: Context,
        *,
        nan_is_null: bool = False,
        readahead: bool = False,
        refused: Mapping[str, GridstoneError] | None = None,
    ) -> None:
        self.meter, self.context, self._refused = Meter(), context, refused or {}
        self._source, self.nan_is_null = source, nan_is_null
        # A piece has some MiB: a small budget has none to spare.
        lanes = min(_LANES_MAX, context.threads, context.memory_budget // _BUDGET_PER_LANE)
        self._lanes = lanes if readahead and context.threads > 1 else 0

    def total(self) -> int:
        """What the source counts."""
        return self._source.total

    def close(self) -> dict[str, int]:
        """Closes the source."""
        self._source.close()
        return {}

    def parts(self) -> list[Part]:
        """The columns of each file, or of the whole; those that cannot be taken too."""
        if isinstance(self._source, Files):
            return [part._replace(names=[*part.names, *self._refused]) for part in self._source.parts]
        return [Part(self._source.title, [*self._source.schema.names, *self._refused])]

    def inferred(self, dims: Sequence[str] | None, sparse: bool, options: Options) -> Schema:
        """The schema that the table itself tells, or what types and bounds make."""
        stored = (self._source.schema.metadata or {}).get(SCHEMA_KEY)
        if dims is None and stored is not None:
            return self._of_metadata(self._stored_schema(stored), options.attrs)
        dims, parts = named_dims(dims), self.parts()
        others = [name for name in columns.named(parts) if name not in dims]
        names = [*dims, *(others if options.attrs is None else options.attrs)]
        self._check_names(names)
        columns.check_dims(parts, dims)
        columns.check_present(parts, names, union=self.request.union)
        found = {name: self._inferred_column(name) for name in names}
        rows = self._measure(found, dims)
        if rows == 0:
            raise InputError(f"{self._source.title} has no rows to infer domains from; give a schema")
        return infer.schema_of(
            list(found.values()), dims, rows,
            sparse=sparse, duplicates=options.duplicates, capacity=options.capacity, chosen=self.request.chosen,
        )  # fmt: skip

    def _inferred_column(self, name: str) -> infer.Column:
        if isinstance(self._source, Files) and name in self._source.conflicts:
            raise self._source.conflicts[name]
        made = infer.Column.of_field(self._source.schema.field(name))
        if any(name not in part.names for part in self.parts()):
            made.nulls, made.nat = True, False
        return made

    def new_attrs(self, names: Sequence[str]) -> list[Attr]:
        """Attributes of these columns; only the categories of dictionaries need a pass."""
        self._check_names(names)
        found = {name: self._inferred_column(name) for name in names}
        coded = [name for name, column in found.items() if column.entries is not None]
        if coded:
            for piece in self._pieces(coded, again=True):
                for name in set(coded) & {*piece.table.column_names}:
                    _measure_piece(found[name], piece, False)
        return [Attr(name, column.dtype, nullable=True, **column.enumeration) for name, column in found.items()]

    def _of_metadata(self, schema: Schema, attrs: Sequence[str] | None) -> Schema:
        """The schema that the table tells, with the columns that it has besides."""
        parts = self.parts()
        made = _restricted(schema, attrs, columns.named(parts))
        more = columns.new_names(parts, schema, attrs, evolve=True)
        if more:
            options = {**schema._json(), "attrs": [attr._json() for attr in [*made.attrs, *self.new_attrs(more)]]}
            made = Schema.from_json(json.dumps(options))
        return made

    def _stored_schema(self, stored: bytes) -> Schema:
        try:
            return Schema.from_json(stored.decode())
        except (GridstoneError, UnicodeDecodeError) as error:
            raise InputError(
                f"{self._source.title} has metadata {SCHEMA_KEY.decode()!r} that is no schema for it: {error}; "
                f"say which columns are dimensions with dims="
            ) from error

    def _measure(self, found: Mapping[str, infer.Column], dims: Sequence[str]) -> int:
        """Finds bounds and nulls, and the number of rows; reads only the columns that nothing is known of."""
        texts = {name for name in dims if found[name].is_text}
        asked = [name for name, column in found.items() if column.entries is None and name not in texts]
        known = self._source.known(asked)
        for name, statistics in known.items():
            found[name].measure(*statistics)
        rows, unknown = self._source.count(), [name for name in found if name not in known]
        if rows is not None and not unknown:
            return rows
        self.meter.passes, seen = 2, 0
        for piece in self._pieces(unknown, again=True):
            for name in unknown:
                if name in piece.table.column_names:
                    _measure_piece(found[name], piece, name in dims)
            seen += piece.table.num_rows
        return seen

    def check(self, schema: Schema) -> None:
        """A pass that only looks for what is wrong."""
        for _ in self._typed(schema, again=True):
            pass

    def tables(self, schema: Schema) -> Iterator[Any]:
        """All rows, as the schema's types. Nulls may make another pass necessary."""
        return self._typed(schema, again=self.request.again)

    def _typed(self, schema: Schema, *, again: bool) -> Iterator[Any]:
        names = self._taken(schema)
        fields = [Field(dim.name, dim.dtype, False, "dimension") for dim in schema.dims]
        fields += [field_of(schema.attr(name)) for name in names]
        known, attrs = columns.named(self.parts()), self.request.attrs
        left = set() if attrs is None else {name for name in names if name not in attrs}
        asked = [field.name for field in fields if field.name in known and field.name not in left]
        self._check_names(asked)
        for piece in self._pieces(asked, again=again):
            if piece.table.num_rows == 0:
                continue
            made = {field.name: self._column(field, piece, schema) for field in fields}
            self._check_domain(schema, piece, made)
            yield pa.table(made)

    def _taken(self, schema: Schema) -> list[str]:
        """The attributes that get values of this source."""
        parts, request = self.parts(), self.request
        columns.check_dims(parts, [dim.name for dim in schema.dims])
        fresh = request.target is None
        wanted = [attr.name for attr in schema.attrs if request.attrs is None or attr.name in request.attrs]
        if fresh or request.attrs is not None:
            columns.check_present(parts, request.attrs if request.attrs is not None else wanted, union=True)
        known = [name for name in wanted if name in columns.named(parts)]
        columns.check_present(parts, known, union=request.union)
        return columns.taken(parts, schema, request.attrs, partly=not schema.sparse)

    def _pieces(self, names: Sequence[str], *, again: bool) -> Iterator[Piece]:
        streams, room = self._source.streams(names, again), self.context.memory_budget // _BUDGET_PER_ROOM
        lanes = min(self._lanes, len(streams))
        with closing(side_by_side(streams, lanes, room, lambda piece: int(piece.table.nbytes))) as pieces:
            for piece in pieces:
                self.meter.tell(piece.done, self._source.total)
                yield piece
        self.meter.passed += 1

    def _check_names(self, names: Sequence[str]) -> None:
        found = self._source.schema.names
        if len(set(found)) < len(found):
            raise InputError(f"{self._source.title} has columns of the same name: {found}")
        for name in names:
            if name in self._refused:
                raise self._refused[name]
        missing = [name for name in names if name not in found]
        if missing:
            raise InputError(
                f"{self._source.title} has no column {', '.join(map(repr, missing))}; "
                f"its columns are {', '.join(found)}"
            )

    def _column(self, field: Field, piece: Piece, schema: Schema) -> Any:
        """One column in the field's type; an `InputError` names the first row that does not fit."""
        if field.name not in piece.table.column_names:
            return without_values(schema.attr(field.name), piece.table.num_rows)
        data = _one(piece.table.column(field.name), dictionary=field.categories is not None)
        if self.nan_is_null and not field.nullable and field.kind == "attribute":
            data = arrow.with_nan_for_null(data, field.dtype)
        if field.kind == "dimension":
            _check_filled(piece, field.name, data)
        elif field.dtype == "string" and isinstance(self._source, Files):
            data = cast(data, self._source.schema.field(field.name).type)
        if (
            field.categories is None
            and data.type == arrow_types.type_of(field.dtype)
            and (data.null_count == 0 or field.nullable)
        ):
            return data
        try:
            return arrow.array_of(column_of(field, data), keep_nat=True)
        except (InputError, pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            row = _first_bad(field, data)
            raise self._unfit(field, piece, data, row, error) from error

    def _check_domain(self, schema: Schema, piece: Piece, made: Mapping[str, Any]) -> None:
        for dim in schema.dims:
            for row, reason in bounds.outside(dim, made[dim.name], self.request.target, grows=self.request.grows):
                raise InputError(f"{piece.title}, row {piece.first + row}, column {dim.name!r}: {reason}")

    def _unfit(self, field: Field, piece: Piece, data: Any, row: int, error: Exception) -> InputError:
        place = f"{piece.title}, row {piece.first + row}, column {field.name!r}"
        if not data[row].is_valid:
            return InputError(
                f"{place}: the value is null, but the {field.kind} is not nullable; drop the row or fill it"
            )
        if field.categories is not None:
            return InputError(f"{place}: {error}")
        advice = type_advice(self.request.target, field.name, field.dtype, _plain(data[row]))
        way = "cast the column first, or give another schema" if not advice else "cast the column first"
        return InputError(f"{place}: {data[row]} ({data.type}) is no {field.dtype}; {way}{advice}")


def _restricted(schema: Schema, attrs: Sequence[str] | None, columns: Sequence[str]) -> Schema:
    """The schema with these attributes only; None: those that there are columns of."""
    names = [attr.name for attr in schema.attrs if attr.name in columns] if attrs is None else list(attrs)
    if names == [attr.name for attr in schema.attrs]:
        return schema
    options = json.loads(schema.to_json())
    by_name = {attr["name"]: attr for attr in options["attrs"]}
    return Schema.from_json(json.dumps({**options, "attrs": [by_name[schema.attr(name).name] for name in names]}))


def _one(column: Any, *, dictionary: bool = False) -> Any:
    """A column in one chunk, as a dictionary only if that is wanted."""
    data = arrow_types.joined(column)
    if dictionary:
        return data
    return arrow_types.decoded(data) if pa.types.is_dictionary(data.type) else data


def _measure_piece(column: infer.Column, piece: Piece, bounded: bool) -> None:
    if column.entries is not None:
        column.collect(piece.table.column(column.name))
    data = _one(piece.table.column(column.name))
    if not bounded or len(data) == 0:
        column.measure(data.null_count, None, None)
        return
    _check_filled(piece, column.name, data)
    if pa.types.is_timestamp(data.type) and data.type.tz is not None:
        data = data.cast(pa.timestamp(data.type.unit))
    # Arrow has no least timedelta.
    ticks = data.cast(pa.int64()) if pa.types.is_duration(data.type) else data
    if column.is_text:
        column.see_texts(data)
        return
    try:
        ends = pc.min_max(ticks)
    except pa.ArrowNotImplementedError:
        return  # a type that cannot be a dimension, which is reported when the schema is made
    column.measure(0, ends["min"].cast(data.type), ends["max"].cast(data.type))


def _check_filled(piece: Piece, name: str, data: Any) -> None:
    """No null and no NaN among coordinates."""
    floating = pa.types.is_floating(data.type)
    if data.null_count == 0 and not floating:
        return
    row = pc.index(data.is_null(nan_is_null=floating), True).as_py()
    if row >= 0:
        raise InputError(
            f"{piece.title}, row {piece.first + row}, column {name!r}: a coordinate is null or not a number; "
            f"fill it, or drop the row"
        )


def _first_bad(field: Field, data: Any) -> int:
    """The first row that does not make a value of the field, found by halving."""

    def good(low: int, high: int) -> bool:
        try:
            column_of(field, data.slice(low, high - low))
        except (InputError, pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return False
        return True

    low, high = 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(low, middle) else (low, middle)
    return low


def _plain(value: Any) -> Any:
    """A number or text as Python has it; None of others."""
    kinds = pa.types
    numeric = kinds.is_integer(value.type) or kinds.is_floating(value.type)
    textual = kinds.is_string(value.type) or kinds.is_large_string(value.type)
    if kinds.is_timestamp(value.type):
        return str(np.datetime64(value.value, value.type.unit))
    return value.as_py() if numeric or textual else None
