"""Parses blocks of CSV rows into Arrow tables, and finds the rows and columns that are wrong."""

import csv as python_csv
import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from ...column import arrow_types
from ...column.datatype import AnyArray
from ...errors import InputError
from .. import integers, zones
from . import conversion
from .dialect import Dialect, header_names
from .rows import Block

Types = Mapping[str, Any]
"""Arrow types by column; a column without one is inferred."""
Span = tuple[int, int, list[str]]
"""First line, last line and values of a row."""
Wrong = list[tuple[str, AnyArray]]
"""The rows whose text makes no value, by column."""

_NAT = int(np.iinfo(np.int64).min)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TRUE = ("1", "True", "TRUE", "true")
_FALSE = ("0", "False", "FALSE", "false")
_POOL = pa.system_memory_pool()
"""Gives back what the columns of a block took. Arrow's default pool keeps some of it for each thread: a sixth of a
budget of 64 MiB, for no time gained.
"""


class Fault(NamedTuple):
    """A row that cannot be loaded."""

    first: int
    """The line that it starts at."""
    last: int
    """The line that it ends at."""
    column: str
    """ "" where the row as a whole is wrong."""
    reason: str
    text: str
    """The row as it stands in the file."""

    def error(self, block: Block) -> InputError:
        """The error for it."""
        column = f", column {self.column!r}" if self.column else ""
        return InputError(f"{block.file}, line {self.first}{column}: {self.reason}")


def header(dialect: Dialect, block: Block) -> tuple[Block, tuple[str, ...]]:
    """Takes a file's first block apart: the rows after the header, and the column names."""
    rows: Any = dialect.rows(block.data)
    found: list[str] = next((row for row in rows if row), [])
    names = header_names(dialect, f"{block.file}, line {block.line + rows.line_num - 1}", found)
    if not dialect.header:
        return Block(block.file, block.line, block.data, names), names
    end = sum(map(len, _lines(block)[: rows.line_num]))
    return Block(block.file, block.line + rows.line_num, block.data[end:], names), names


def table(dialect: Dialect, block: Block, types: Types, wanted: Sequence[str]) -> Any:
    """The wanted columns of a block; an `InputError` names file, line and column of what cannot be read."""
    made = _quick(dialect, block, types, wanted)
    found: Iterator[Fault] = iter(())
    if made is None:
        made, found = _exact(dialect, block, types, wanted)
    else:
        made, wrong = _inferred(dialect, block, types, made)
        if wrong:
            found = _of_texts(dialect, block, types, _spans_or_error(dialect, block), wrong)
    for fault in found:
        raise fault.error(block)
    for name in wanted:
        if pa.types.is_binary(made.schema.field(name).type) and name not in types:
            for fault in _undecoded(dialect, block, types, wanted):
                raise fault.error(block)
            raise InputError(f"{block.file}: not UTF-8")
    return made


def _quick(dialect: Dialect, block: Block, types: Types, wanted: Sequence[str]) -> Any:
    """The columns as Arrow makes them, and exactly those in which it may be wrong; None if any text makes no value."""
    typed = {name: types[name] for name in wanted if name in types}
    looked_at = conversion.by_text(dialect, block.data, typed)
    plain = {name: pa.string() if name in looked_at else conversion.plain(kind) for name, kind in typed.items()}
    try:
        made = _read(dialect, block.data, block.names, plain, wanted)
    except pa.ArrowInvalid:
        return None
    for name, kind in typed.items():
        column = made.column(name)
        if name not in looked_at:
            if not conversion.is_doubtful(column, block.data):
                continue
            column = _texts(dialect, block, name)
        values, bad = conversion.converted(dialect, arrow_types.joined(column), kind)
        if bad.any():
            return None
        made = _replaced(made, name, values)
    return made


def _exact(dialect: Dialect, block: Block, types: Types, wanted: Sequence[str]) -> tuple[Any, Iterator[Fault]]:
    """The columns of a block made of text, and the faults of its rows; without columns if rows cannot be told apart."""
    spans = _spans_or_error(dialect, block)
    found = [*_of_other_width(block, spans), *_undecoded(dialect, block, types, wanted)]
    if found:
        return None, iter(found)
    typed = {name: types[name] for name in wanted if name in types}
    by_text = {name: pa.string() if conversion.is_exact(kind) else kind for name, kind in typed.items()}
    try:
        made = _read(dialect, block.data, block.names, by_text, wanted)
    except pa.ArrowInvalid as error:
        return None, _unconverted(dialect, block, by_text, spans, error)
    wrong: Wrong = []
    for name, kind in typed.items():
        if conversion.is_exact(kind):
            values, bad = conversion.converted(dialect, arrow_types.joined(made.column(name)), kind)
            made = _replaced(made, name, values)
            wrong.append((name, np.flatnonzero(bad)))
    made, others = _inferred(dialect, block, types, made)
    wrong += others
    return made, _of_texts(dialect, block, types, spans, wrong)


def _replaced(made: Any, name: str, values: Any) -> Any:
    return made.set_column(made.schema.get_field_index(name), name, values)


def _texts(dialect: Dialect, block: Block, name: str) -> Any:
    return _read(dialect, block.data, block.names, {name: pa.string()}, [name]).column(0)


def _inferred(dialect: Dialect, block: Block, types: Types, made: Any) -> tuple[Any, Wrong]:
    """The table, no column of inferred type with numbers or times that are not those of the text; and its faults."""
    names, wrong = [name for name in made.column_names if name not in types], Wrong()
    if not names:
        return made, wrong
    hints = integers.Hints.of(block.data, dialect.delimiter, dialect.quote, dialect.escape)
    nat = b"NaT" in block.data
    plain = [name for name in names if not pa.types.is_string(made.schema.field(name).type)]

    @cache
    def written() -> Any:
        """The columns as text, which few blocks need: all of them in one pass."""
        return _read(dialect, block.data, block.names, dict.fromkeys(plain, pa.string()), plain)

    def texts(name: str) -> Any:
        return arrow_types.joined(written().column(name))

    for name in names:
        column = arrow_types.joined(made.column(name))
        found, bad = conversion.inferred(dialect, column, hints, nat, partial(texts, name))
        made = made if found is column else _replaced(made, name, found)
        if bad is not None and bad.any():
            wrong.append((name, np.flatnonzero(bad)))
    return made, wrong


def blanked(block: Block, found: Sequence[Fault]) -> Block:
    """The block with these rows made empty lines, so that the other rows keep their lines."""
    lines = _lines(block)
    for fault in found:
        for place in range(fault.first - block.line, fault.last - block.line + 1):
            # Never half of a line break, which would become one with its other half beside it.
            lines[place] = b"\r\n" if lines[place].endswith((b"\r", b"\n")) else b""
    return Block(block.file, block.line, b"".join(lines), block.names)


def _lines(block: Block) -> list[bytes]:
    """The lines of a block with their ends, as Python's reader of CSV counts them."""
    return block.data.splitlines(keepends=True)


def _text(lines: list[bytes], block: Block, first: int, last: int) -> bytes:
    return b"".join(lines[first - block.line : last - block.line + 1]).rstrip(b"\r\n")


def _read(dialect: Dialect, data: bytes, names: Sequence[str], types: Types, wanted: Sequence[str]) -> Any:
    return pa_csv.read_csv(
        pa.BufferReader(_owned(data)),
        pa_csv.ReadOptions(column_names=list(names), block_size=max(len(data) + 1, 1 << 16), use_threads=True),
        pa_csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=False if dialect.quote is None else dialect.quote,
            escape_char=False if dialect.escape is None else dialect.escape,
            newlines_in_values=dialect.quote is not None or dialect.escape is not None,
        ),
        pa_csv.ConvertOptions(
            column_types={name: types[name] for name in wanted if name in types},
            include_columns=list(wanted),
            null_values=list(dialect.null_words),
            true_values=[*_TRUE, *dialect.true_words],
            false_values=[*_FALSE, *dialect.false_words],
            decimal_point=dialect.decimal,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
        memory_pool=_POOL,
    )


def _owned(data: bytes) -> Any:
    """A copy in Arrow's memory. One of Arrow's threads would release a buffer over Python's memory. It needs the
    interpreter for that, and ends the process if the interpreter is ending.
    """
    made = pa.allocate_buffer(len(data), _POOL)
    np.frombuffer(made, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return made


def in_utc(dialect: Dialect, made: Any, days: Container[str]) -> tuple[Any, list[tuple[str, Any]]]:
    """A table whose times without an offset, read as times of the dialect's zone, are in UTC; and by column which rows
    have a time that the zone has not, or has twice. Columns of `days` stay as they are: a day is the same in any zone.
    """
    doubtful = []
    for place, field in enumerate(made.schema):
        is_naive = pa.types.is_timestamp(field.type) and field.type.tz is None
        if field.name in days or dialect.timezone is None or not is_naive:
            continue
        utc, differ = _in_utc(arrow_types.joined(made.column(place)), dialect.timezone)
        if differ.any():
            doubtful.append((field.name, differ))
        made = made.set_column(place, field.name, utc)
    return made, doubtful


def _in_utc(times: Any, zone: str) -> tuple[Any, AnyArray]:
    """Local times of a zone in UTC, without the zone, and which of them its clocks skip or repeat."""
    per, present = _PER_SECOND[times.type.unit], np.asarray(times.is_valid())
    ticks = np.asarray(times.cast(pa.int64()).fill_null(0))
    rows = np.flatnonzero(present & (ticks != _NAT))
    found = zones.offsets(ticks[rows] // per, zone)
    made, differ = ticks.copy(), np.zeros(len(ticks), np.bool_)
    made[rows] -= found.seconds * per
    differ[rows] = found.doubtful
    return pa.array(made, mask=~present).cast(times.type), differ


def fault_at(dialect: Dialect, block: Block, rows: Mapping[int, tuple[str, str]]) -> list[Fault]:
    """The faults of these rows of a block, given by their place in it as (column, reason)."""
    lines, found = _lines(block), []
    for index, (first, last, _) in enumerate(_spans(dialect, block)):
        if index in rows:
            found.append(_fault(block, lines, (first, last), *rows[index]))
    if len(found) < len(rows):
        column, reason = next(iter(rows.values()))
        raise InputError(f"{block.file}, from line {block.line}, column {column!r}: {reason}")
    return found


def _fault(block: Block, lines: list[bytes], span: tuple[int, int], column: str, reason: str) -> Fault:
    return Fault(*span, column, reason, _text(lines, block, *span).decode(errors="replace"))


def _spans(dialect: Dialect, block: Block) -> list[Span]:
    """The rows that are not empty."""
    rows: Any = dialect.rows(block.data)
    before, found = 0, []
    with _long_values:
        for values in rows:
            if values:
                found.append((block.line + before, block.line + rows.line_num - 1, values))
            before = rows.line_num
    return found


class _LongValues:
    """Lets Python's reader of CSV take values of any length, one thread at a time: the limit is the process's."""

    def __init__(self) -> None:
        self._lock, self._limit = threading.Lock(), 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._limit = python_csv.field_size_limit(1 << 30)

    def __exit__(self, *raised: object) -> None:
        python_csv.field_size_limit(self._limit)
        self._lock.release()


_long_values = _LongValues()


def faults(dialect: Dialect, block: Block, types: Types, wanted: Sequence[str]) -> Iterator[Fault]:
    """The rows of a block that cannot be read: those with another number of values, those that are not UTF-8, and, if
    there are none, those with a value that is not of its column's type, column by column.
    """
    return _exact(dialect, block, types, wanted)[1]


def _spans_or_error(dialect: Dialect, block: Block) -> list[Span]:
    try:
        return _spans(dialect, block)
    except python_csv.Error as problem:
        raise InputError(f"{block.file}, from line {block.line}: {problem}") from problem


def _of_other_width(block: Block, spans: Sequence[Span]) -> Iterator[Fault]:
    width, lines = len(block.names), _lines(block)
    for first, last, values in spans:
        if len(values) != width:
            reason = f"{len(values)} values where the header has {width} columns"
            yield _fault(block, lines, (first, last), "", reason)


def _of_texts(dialect: Dialect, block: Block, types: Types, spans: Sequence[Span], wrong: Wrong) -> Iterator[Fault]:
    """The faults of the rows whose text makes no value, by column."""
    lines = _lines(block)
    for name, rows in wrong:
        for row in rows:
            first, last, values = spans[row]
            kind = types.get(name, pa.timestamp("s"))
            reason = conversion.reason(dialect, values[block.names.index(name)], kind)
            yield _fault(block, lines, (first, last), name, reason)


def _unconverted(
    dialect: Dialect, block: Block, types: Types, spans: Sequence[Span], error: Exception
) -> Iterator[Fault]:
    """The rows whose value is not of a type that Arrow alone converts, found by halving."""
    lines = _lines(block)
    raw = [_text(lines, block, first, last) for first, last, _ in spans]
    wrong = [(name, np.array(list(_halved(dialect, block, name, kind, raw)), int)) for name, kind in types.items()]
    if not any(len(rows) for _, rows in wrong):
        raise InputError(f"{block.file}, from line {block.line}: {error}") from error
    yield from _of_texts(dialect, block, types, spans, wrong)


def _halved(dialect: Dialect, block: Block, name: str, wanted: Any, raw: list[bytes]) -> Iterator[int]:
    """The rows whose value in this column pyarrow cannot convert."""
    pending = [(0, len(raw))]
    while pending:
        low, high = pending.pop()
        if low == high:
            continue
        try:
            _read(dialect, b"\n".join(raw[low:high]) + b"\n", block.names, {name: wanted}, [name])
        except pa.ArrowInvalid:
            if high - low == 1:
                yield low
                continue
            middle = (low + high) // 2
            pending += [(middle, high), (low, middle)]


def _undecoded(dialect: Dialect, block: Block, types: Types, wanted: Sequence[str]) -> Iterator[Fault]:
    """The rows that are not UTF-8 in a column of text."""
    try:
        block.data.decode()
        return
    except UnicodeDecodeError:
        pass
    textual = {name for name in wanted if not (name in types and pa.types.is_binary(types[name]))}
    lines = _lines(block)
    for first, last, values in _spans(dialect, block):
        try:
            _text(lines, block, first, last).decode()
        except UnicodeDecodeError:
            for name, value in zip(block.names, values, strict=False):
                if name in textual and "�" in value:
                    reason = "not UTF-8; pass encoding='latin1' or such"
                    yield _fault(block, lines, (first, last), name, reason)
                    break
