"""Parses blocks of CSV rows into Arrow tables, and finds the rows and columns that are wrong."""

import csv as python_csv
import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ...errors import InputError
from .. import integers
from .dialect import Dialect, header_names
from .rows import Block

Types = Mapping[str, Any]
"""Arrow types by column; a column without one is inferred."""

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
    try:
        made = _read(dialect, block.data, block.names, types, wanted)
    except pa.ArrowInvalid as error:
        fault = next(faults(dialect, block, types, wanted), None)
        if fault is None:
            raise InputError(f"{block.file}, from line {block.line}: {error}") from error
        raise fault.error(block) from error
    for name in wanted:
        if pa.types.is_binary(made.schema.field(name).type) and name not in types:
            fault = next(_undecoded(dialect, block, types, wanted), None)
            raise InputError(f"{block.file}: not UTF-8") if fault is None else fault.error(block)
    return _with_integers(dialect, block, types, made)


def _with_integers(dialect: Dialect, block: Block, types: Types, made: Any) -> Any:
    """The table, no column of inferred type with whole numbers that lost digits."""
    for place, field in enumerate(made.schema):
        if field.name in types:
            continue

        def texts(name: str = field.name) -> Any:
            return _read(dialect, block.data, block.names, {name: pa.string()}, [name]).column(0)

        found = integers.exact(made.column(place), texts)
        made = made if found.type == field.type else made.set_column(place, field.name, found)
    return made


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
    times = [*dialect.times, pa_csv.ISO8601] if dialect.times else None
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
            null_values=list(dialect.nulls),
            true_values=[*_TRUE, *dialect.true_words],
            false_values=[*_FALSE, *dialect.false_words],
            decimal_point=dialect.decimal,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            timestamp_parsers=times,
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
        early, late = (
            pc.assume_timezone(made.column(place), dialect.timezone, ambiguous=which, nonexistent=which)
            for which in ("earliest", "latest")
        )
        differ = pc.not_equal(early, late).fill_null(False)
        if pc.any(differ).as_py():
            doubtful.append((field.name, differ))
        # Times in UTC, without the zone.
        utc = early.cast(pa.timestamp(field.type.unit, "UTC")).cast(pa.timestamp(field.type.unit))
        made = made.set_column(place, field.name, utc)
    return made, doubtful


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


def _spans(dialect: Dialect, block: Block) -> list[tuple[int, int, list[str]]]:
    """First line, last line and values of each row that is not empty."""
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
    """The rows of a block that pyarrow cannot read: those with another number of values, then, if there are none, those
    with a value that is not of its column's type, column by column.
    """
    width, lines = len(block.names), _lines(block)
    try:
        spans = _spans(dialect, block)
    except python_csv.Error as problem:
        raise InputError(f"{block.file}, from line {block.line}: {problem}") from problem
    odd = [(first, last, len(values)) for first, last, values in spans if len(values) != width]
    for first, last, count in odd:
        reason = f"{count} values where the header has {width} columns"
        yield _fault(block, lines, (first, last), "", reason)
    if odd:
        return
    yield from _undecoded(dialect, block, types, wanted)
    raw = [_text(lines, block, first, last) for first, last, _ in spans]
    for name in wanted:
        if name not in types:
            continue
        for row in _unconverted(dialect, block, name, types[name], raw):
            first, last, values = spans[row]
            text = values[block.names.index(name)]
            reason = f"{text!r} is no {types[name]}; correct the file or give another schema"
            yield _fault(block, lines, (first, last), name, reason)


def _unconverted(dialect: Dialect, block: Block, name: str, wanted: Any, raw: list[bytes]) -> Iterator[int]:
    """The rows whose value in this column pyarrow cannot convert, found by halving."""
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
