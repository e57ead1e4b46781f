"""Blocks of CSV rows as Arrow tables, and where in the file a bad value is."""

import csv as python_csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from ..errors import InputError
from .sources import Block

Types = Mapping[str, Any]
"""Arrow types by column; a column without one is inferred."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the text is read."""

    delimiter: str
    nulls: tuple[str, ...]

    def rows(self, block: Block) -> Any:
        """The rows of a block by Python's slow reader, which knows its line."""
        text = io.StringIO(block.data.decode(errors="replace"), newline="")
        return python_csv.reader(text, delimiter=self.delimiter)


def header(dialect: Dialect, block: Block) -> tuple[Block, tuple[str, ...]]:
    """Takes a file's first block apart: the rows after the header, and the column names."""
    rows = dialect.rows(block)
    found: list[str] = next(rows, [])
    names = tuple(name.strip() or f"column_{i + 1}" for i, name in enumerate(found))
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{block.file}, line 1: two columns are named {name!r}; rename one of them")
        seen.add(name)
    end = 0
    for _ in range(rows.line_num):
        end = block.data.find(b"\n", end) + 1 or len(block.data)
    return Block(block.file, block.line + rows.line_num, block.data[end:], names), names


def check_columns(block: Block, wanted: Sequence[str]) -> None:
    """An `InputError` that lists the columns wanted and not there."""
    missing = [name for name in wanted if name not in block.names]
    if missing:
        raise InputError(
            f"{block.file} has no column {', '.join(map(repr, missing))}; its columns are {', '.join(block.names)}"
        )


def table(dialect: Dialect, block: Block, types: Types, wanted: Sequence[str]) -> Any:
    """The wanted columns of a block; an `InputError` names file, line and column of what cannot be read."""
    try:
        made = _read(dialect, block.data, block.names, types, wanted)
    except pa.ArrowInvalid as error:
        raise _located(dialect, block, types, wanted, error) from error
    for name in wanted:
        if pa.types.is_binary(made.schema.field(name).type) and name not in types:
            raise _encoding_error(dialect, block, name)
    return made


def _read(dialect: Dialect, data: bytes, names: Sequence[str], types: Types, wanted: Sequence[str]) -> Any:
    return pa_csv.read_csv(
        pa.BufferReader(_owned(data)),
        pa_csv.ReadOptions(column_names=list(names), block_size=max(len(data) + 1, 1 << 16), use_threads=True),
        pa_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        pa_csv.ConvertOptions(
            column_types={name: types[name] for name in wanted if name in types},
            include_columns=list(wanted),
            null_values=list(dialect.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _owned(data: bytes) -> Any:
    """A copy in Arrow's memory. A buffer over Python's is let go of by one of Arrow's threads, which needs the
    interpreter for it, and takes the process down if that is ending just then.
    """
    made = pa.allocate_buffer(len(data))
    np.frombuffer(made, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return made


def line_of(dialect: Dialect, block: Block, row: int) -> int:
    """The line that a row of a block starts at."""
    before, index = 0, 0
    rows = dialect.rows(block)
    for cells in rows:
        if cells:
            if index == row:
                return block.line + before
            index += 1
        before = rows.line_num
    return block.line


def _located(dialect: Dialect, block: Block, types: Types, wanted: Sequence[str], error: Exception) -> InputError:
    """The error with the line of the first row that pyarrow cannot read."""
    width, before = len(block.names), 0
    rows = dialect.rows(block)
    try:
        for cells in rows:
            if cells and len(cells) != width:
                place = f"{block.file}, line {block.line + before}"
                return InputError(f"{place}: {len(cells)} values where the header has {width} columns")
            before = rows.line_num
    except python_csv.Error as problem:
        return InputError(f"{block.file}, line {block.line + rows.line_num - 1}: {problem}")
    for name in wanted:
        if name not in types:
            continue
        found = _first_bad(dialect, block, name, types[name])
        if found is not None:
            row, text = found
            line = line_of(dialect, block, row)
            return InputError(
                f"{block.file}, line {line}, column {name!r}: {text!r} is no {types[name]}; "
                f"correct the file or give another schema"
            )
    return InputError(f"{block.file}, from line {block.line}: {error}")


def _first_bad(dialect: Dialect, block: Block, name: str, wanted: Any) -> tuple[int, str] | None:
    """The first row whose value in this column pyarrow cannot convert, found by halving."""
    place = block.names.index(name)
    values = [cells[place] for cells in dialect.rows(block) if cells]

    def good(low: int, high: int) -> bool:
        text = io.StringIO()
        python_csv.writer(text, quoting=python_csv.QUOTE_ALL, delimiter=dialect.delimiter).writerows(
            [value, "1"] for value in values[low:high]
        )
        # A quoted empty value is not null, an empty one is.
        plain = re.sub(f'(?m)^""{re.escape(dialect.delimiter)}', dialect.delimiter, text.getvalue())
        try:
            _read(dialect, plain.encode(), (name, "-"), {name: wanted}, [name])
        except pa.ArrowInvalid:
            return False
        return True

    low, high = 0, len(values)
    if good(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(low, middle) else (low, middle)
    return low, values[low]


def _encoding_error(dialect: Dialect, block: Block, name: str) -> InputError:
    for index, cells in enumerate(dialect.rows(block)):
        if cells and "�" in cells[block.names.index(name)]:
            line = line_of(dialect, block, index)
            return InputError(f"{block.file}, line {line}, column {name!r}: not UTF-8; pass encoding='latin1' or such")
    return InputError(f"{block.file}, from line {block.line}, column {name!r}: not UTF-8; pass encoding=")
