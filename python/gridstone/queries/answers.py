"""What a query gives: Arrow columns of types that arrays have, as a `Result` or as a stream."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ..column import arrow, arrow_types, decode
from ..column.columns import Field
from ..column.datatype import AnyArray
from ..errors import InputError, UnsupportedError
from ..result.answer import answer_of
from ..result.cells import Result
from ..result.interop import Tabular
from . import spans

_Made = TypeVar("_Made")


class Rows(Protocol):
    """DuckDB's relation."""

    @property
    def types(self) -> Sequence[object]: ...


WIDE = "UHUGEINT"


def kinds_of(rows: Rows) -> list[str]:
    """The types of a relation's columns as DuckDB has them.

    Arrow has no UHUGEINT, and takes the upper half for negative. An INTERVAL comes in parts (see `spans`).
    """
    return [str(kind) for kind in rows.types]


def schema_of(given: Any, kinds: Sequence[str]) -> Any:
    """The schema of an answer: names made unique, decimals as numbers; `kinds`: see `kinds_of`.

    Raises:
        UnsupportedError: a column whose type has no place in a result.
    """
    fields: list[Any] = []
    taken: set[str] = set()
    for field, kind in zip(given, kinds, strict=True):
        name, count = field.name, 0
        while name in taken:
            count += 1
            name = f"{field.name}_{count}"
        taken.add(name)
        fields.append(pa.field(name, pa.duration("us") if kind == spans.INTERVAL else _type_of(name, field.type)))
    return pa.schema(fields)


def _type_of(name: str, kind: Any) -> Any:
    if pa.types.is_decimal(kind):
        return pa.int64() if kind.scale == 0 else pa.float64()
    if pa.types.is_null(kind):
        return pa.int32()
    if pa.types.is_dictionary(kind):
        return _type_of(name, kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    try:
        arrow_types.dtype_of(kind)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"column {name!r} of the answer is {kind}, which a result cannot hold; cast it in the query, "
            f"for example {name}::varchar"
        ) from error
    return kind


def column(name: str, given: Any, kind: Any, of: str) -> Any:
    """A column of the answer in its type; `of`: its type in DuckDB.

    Raises:
        InputError: a number or an interval that does not fit, or a time that is infinite.
    """
    if of == spans.INTERVAL:
        return spans.durations(name, given)
    _check_finite(name, given)
    if given.type == kind:
        return given
    if pa.types.is_dictionary(given.type):
        given = given.cast(given.type.value_type)
    try:
        if pa.types.is_decimal(given.type) and pa.types.is_floating(kind):
            return given.cast(kind, safe=False)
        if of == WIDE and _ends(given)[0] < 0:
            raise pa.ArrowInvalid("beyond 127 bits")
        return given.cast(kind)
    except pa.ArrowInvalid as error:
        raise _unfit(name, given, kind) from error


def _unfit(name: str, given: Any, kind: Any) -> InputError:
    """The error of whole numbers that do not fit."""
    if pa.types.is_int64(kind) and _is_unsigned(given):
        return InputError(
            f"column {name!r} of the answer holds a whole number that does not fit int64. Its type is chosen before "
            f"its values are known, in a stream and with to=; cast it in the query, for example {name}::ubigint"
        )
    return InputError(
        f"column {name!r} of the answer holds a whole number that does not fit 64 bits; cast it in the query, "
        f"for example {name}::double"
    )


def _check_finite(name: str, given: Any) -> None:
    """An `InputError` if a time is infinite, which Arrow takes for its last one."""
    kind = given.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        _check_finite(name, pc.list_flatten(given))
    if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
        return
    ends = _ends(given.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()))
    last = 2**31 - 1 if pa.types.is_date32(kind) else 2**63 - 1
    if last in (ends[1], -ends[0]):
        raise InputError(
            f"column {name!r} of the answer holds infinity, which times of a result cannot be; cast it in the query, "
            f"for example {name}::varchar, or leave it out with isfinite({name})"
        )


def _ends(given: Any) -> tuple[int, int]:
    """The least and the greatest of whole numbers; zeros if there are none."""
    found = pc.min_max(given).as_py()
    return int(found["min"] or 0), int(found["max"] or 0)


def result_of(table: Any, kinds: Sequence[str], stats: Mapping[str, int], budget: int) -> Result:
    """The answer as a whole; `kinds`: see `kinds_of`."""
    found = {}
    schema = schema_of(table.schema, kinds)
    for field, given, of in zip(schema, table.columns, kinds, strict=True):
        kind = field.type
        if pa.types.is_decimal(given.type) and given.type.scale == 0 and _is_unsigned(given):
            kind = pa.uint64()
        data = column(field.name, given, kind, of)
        made = Field(field.name, arrow_types.dtype_of(kind), data.null_count > 0, "column")
        found[field.name] = arrow.column_of(made, data)
    return answer_of(found, stats, budget)


def _is_unsigned(given: Any) -> bool:
    """Whether whole numbers fit 64 bits only without a sign."""
    least, greatest = _ends(given)
    return least >= 0 and 2**63 <= greatest < 2**64


class Source(Protocol):
    """The query that gives the rows."""

    def apart(self, work: Callable[[], _Made]) -> _Made: ...
    def error_of(self, error: BaseException) -> BaseException: ...
    def stats(self) -> dict[str, int]: ...
    def end(self) -> None: ...


class Answers(Tabular):
    """The rows of an answer as they come, in bounded memory: an iterator of `pyarrow.RecordBatch`es.

    It can be read once, as a stream of `Array.scan`. Dropped or closed half read, it ends the query at once.
    """

    def __init__(self, reader: Any, kinds: Sequence[str], source: Source) -> None:
        self._reader, self._kinds, self._source = reader, kinds, source
        self._schema = schema_of(reader.schema, kinds)
        self._lock = threading.Lock()

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of every batch."""
        return self._schema

    def _with_nat(self, how: str) -> "Answers":
        """The stream itself: NaT is null in DuckDB, so that there is nothing to choose."""
        return self

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the scans so far, of all arrays together."""
        return self._source.stats()

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        return self

    def __next__(self) -> "pa.RecordBatch":
        with self._lock:
            if self._reader is None:
                raise StopIteration
            try:
                batch = self._source.apart(self._next)
                if batch is None:
                    raise StopIteration
                parts = zip(self._schema, batch.columns, self._kinds, strict=True)
                arrays = [column(field.name, one, field.type, of) for field, one, of in parts]
            except StopIteration:
                self._end()
                raise
            except BaseException as error:
                self._end()
                raise self._source.error_of(error) from error
            return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _next(self) -> "pa.RecordBatch | None":
        """The next batch; None at the end."""
        return next(self._reader, None)

    def to_arrow(self) -> "pa.Table":
        """All rows that are left, as one table."""
        return pa.Table.from_batches(list(self), self._schema)

    def to_numpy(self) -> dict[str, AnyArray]:
        """All rows that are left, one array per column; types as `Result.to_numpy`."""
        made = {}
        for field, data in zip(self._schema, self.to_arrow().columns, strict=True):
            known = Field(field.name, arrow_types.dtype_of(field.type), data.null_count > 0, "column")
            made[field.name] = decode.numpy_of(arrow.column_of(known, data))
        return made

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self._schema, iter(self))
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        left = "at its end" if self._reader is None else "rows are left"
        return f"<gridstone answer of {', '.join(self._schema.names)}: {left}>"

    def _end(self) -> None:
        # A reader that is dropped half read drains its query first, unless that is interrupted.
        reader, self._reader = self._reader, None
        if reader is not None:
            self._source.end()

    def close(self) -> None:
        """Ends the query early."""
        with self._lock:
            self._end()

    def __enter__(self) -> "Answers":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_reader", None) is not None:
            self._end()
