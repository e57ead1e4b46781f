"""Typed columns as a feed: bounds come from statistics or from a pass, and all cells are checked."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...column import arrow, arrow_types
from ...column.columns import Field
from ...context.settings import Context
from ...errors import GridstoneError, InputError
from ...schema.array_schema import Schema
from ...schema.fields import field_of
from .. import bounds, infer
from ..load import Meter, Options, column_of, named_dims
from ..readahead import side_by_side

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


class TableFeed:
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
        self._source, self._nan_is_null = source, nan_is_null
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

    def inferred(self, dims: Sequence[str] | None, sparse: bool, options: Options) -> Schema:
        """The schema that the table itself tells, or what types and bounds make."""
        stored = (self._source.schema.metadata or {}).get(SCHEMA_KEY)
        if dims is None and stored is not None:
            return _restricted(self._stored_schema(stored), options.attrs, self._source.schema.names)
        dims = named_dims(dims)
        others = [name for name in [*self._source.schema.names, *self._refused] if name not in dims]
        names = [*dims, *(others if options.attrs is None else options.attrs)]
        self._check_names(names)
        columns = {name: infer.Column.of_field(self._source.schema.field(name)) for name in names}
        rows = self._measure(columns, dims)
        if rows == 0:
            raise InputError(f"{self._source.title} has no rows to infer domains from; give a schema")
        return infer.schema_of(
            list(columns.values()), dims, rows, sparse=sparse, duplicates=options.duplicates, capacity=options.capacity
        )

    def _stored_schema(self, stored: bytes) -> Schema:
        try:
            return Schema.from_json(stored.decode())
        except (GridstoneError, UnicodeDecodeError) as error:
            raise InputError(
                f"{self._source.title} has metadata {SCHEMA_KEY.decode()!r} that is no schema for it: {error}; "
                f"say which columns are dimensions with dims="
            ) from error

    def _measure(self, columns: Mapping[str, infer.Column], dims: Sequence[str]) -> int:
        """Finds bounds and nulls, and the number of rows; reads only the columns that nothing is known of."""
        texts = {name for name in dims if columns[name].is_text}
        asked = [name for name, column in columns.items() if column.entries is None and name not in texts]
        known = self._source.known(asked)
        for name, statistics in known.items():
            columns[name].measure(*statistics)
        rows, unknown = self._source.count(), [name for name in columns if name not in known]
        if rows is not None and not unknown:
            return rows
        self.meter.passes, seen = 2, 0
        for piece in self._pieces(unknown, again=True):
            for name in unknown:
                _measure_piece(columns[name], piece, name in dims)
            seen += piece.table.num_rows
        return seen

    def check(self, schema: Schema) -> None:
        """A pass that only looks for what is wrong."""
        for _ in self._typed(schema, again=True):
            pass

    def tables(self, schema: Schema) -> Iterator[Any]:
        """All rows, as the schema's types."""
        return self._typed(schema, again=False)

    def _typed(self, schema: Schema, *, again: bool) -> Iterator[Any]:
        fields = [Field(dim.name, dim.dtype, False, "dimension") for dim in schema.dims]
        fields += [field_of(attr) for attr in schema.attrs]
        names = [field.name for field in fields]
        self._check_names(names)
        for piece in self._pieces(names, again=again):
            if piece.table.num_rows == 0:
                continue
            made = {field.name: self._column(field, piece) for field in fields}
            _check_domain(schema, piece, made)
            yield pa.table(made)

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

    def _column(self, field: Field, piece: Piece) -> Any:
        """One column in the field's type; an `InputError` names the first row that does not fit."""
        data = _one(piece.table.column(field.name), dictionary=field.categories is not None)
        if self._nan_is_null and not field.nullable and field.kind == "attribute":
            data = arrow.with_nan_for_null(data, field.dtype)
        if field.kind == "dimension":
            _check_filled(piece, field.name, data)
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
            raise _unfit(field, piece, data, row, error) from error


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


def _check_domain(schema: Schema, piece: Piece, made: Mapping[str, Any]) -> None:
    for dim in schema.dims:
        for row, reason in bounds.outside(dim, made[dim.name]):
            raise InputError(f"{piece.title}, row {piece.first + row}, column {dim.name!r}: {reason}")


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


def _unfit(field: Field, piece: Piece, data: Any, row: int, error: Exception) -> InputError:
    place = f"{piece.title}, row {piece.first + row}, column {field.name!r}"
    if not data[row].is_valid:
        return InputError(f"{place}: the value is null, but the {field.kind} is not nullable; drop the row or fill it")
    if field.categories is not None:
        return InputError(f"{place}: {error}")
    return InputError(
        f"{place}: {data[row]} ({data.type}) is no {field.dtype}; cast the column first, or give another schema"
    )
