"""Columns in the names of folders: `year=2024/month=7/part.parquet`, as Hive, Spark and pyarrow write them.

A value is what stands behind the first equals sign, percent-decoded. Values are integers of 32 bits if those of all
files are, else texts; null is `__HIVE_DEFAULT_PARTITION__`. pyarrow's datasets have the same rules.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ...errors import InputError
from ..columns import Part
from .feed import Files, Known, Piece

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?[0-9]{1,10}")


def with_folders(files: Sequence[Path], source: Files) -> Files:
    """The source of these files, with the columns that the folders of all of them tell and they do not hold."""
    folders = [_folders_of(file) for file in files]
    names = [name for name in folders[0] if all(name in one for one in folders) and name not in source.schema.names]
    for name in folders[0]:
        own = [part for part in source.parts if name in part.names]
        if own and len(own) < len(files) and all(name in one for one in folders):
            other = next(part for part in source.parts if name not in part.names)
            raise InputError(
                f"{own[0].title} has a column {name!r}, and of {other.title} only the folder tells it; load them apart"
            )
    if not names:
        return source
    columns = {name: _column([one[name] for one in folders]) for name in names}
    return Partitioned(source, columns)


def _folders_of(file: Path) -> dict[str, str | None]:
    pairs = [part.partition("=") for part in file.parent.parts]
    return {unquote(name): None if text == _NULL else unquote(text) for name, sign, text in pairs if sign and name}


def _column(texts: Sequence[str | None]) -> Any:
    """One value for each file."""
    given = [text for text in texts if text is not None]
    if given and all(_INTEGER.fullmatch(text) and -(2**31) <= int(text) < 2**31 for text in given):
        return pa.array([None if text is None else int(text) for text in texts], pa.int32())
    return pa.array(texts, pa.string())


class Partitioned:
    """The tables of several files, one stream for each, with more columns, whose value is one for each file."""

    def __init__(self, source: Files, columns: Mapping[str, Any]) -> None:
        self._source, self._columns = source, columns
        self.title, self.total = source.title, source.total
        self.schema = source.schema
        self.conflicts: Mapping[str, InputError] = source.conflicts
        self.parts: Sequence[Part] = [part._replace(names=[*part.names, *columns]) for part in source.parts]
        for name, values in columns.items():
            self.schema = self.schema.append(pa.field(name, values.type))

    def streams(self, names: Sequence[str], again: bool) -> list[Callable[[], Iterator[Piece]]]:
        """One of each file."""
        # A table without columns does not know how many rows it has.
        own = [name for name in names if name not in self._columns] or self._source.schema.names[:1]
        streams = enumerate(self._source.streams(own, again))
        return [partial(self._pieces, stream, place, list(names)) for place, stream in streams]

    def _pieces(self, stream: Callable[[], Iterator[Piece]], place: int, names: list[str]) -> Iterator[Piece]:
        for piece in stream():
            table = piece.table
            for name in self._columns.keys() & set(names):
                table = table.append_column(name, pa.repeat(self._columns[name][place], table.num_rows))
            yield piece._replace(table=table.select([name for name in names if name in table.column_names]))

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """Bounds and nulls that the files hold of their columns, and all of the folders'."""
        found = dict(self._source.known([name for name in names if name not in self._columns]))
        for name in self._columns.keys() & set(names):
            values = self._columns[name]
            ends = sorted(values.drop_null(), key=lambda end: end.as_py())
            found[name] = Known(values.null_count, ends[0] if ends else None, ends[-1] if ends else None)
        return found

    def count(self) -> int | None:
        """The rows of all files."""
        return self._source.count()

    def close(self) -> None:
        """Closes the files."""
        self._source.close()
