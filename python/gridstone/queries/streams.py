"""Streams as tables of DuckDB. They can be read once: a second reading is an error, not a table without rows."""

import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import pyarrow as pa

from ..errors import InputError
from ..result.stream import Stream
from .answers import Answers

_LOCK = threading.Lock()
_TAKEN: "WeakSet[Stream | Answers]" = WeakSet()
"""The streams that a query has read from."""


class Once:
    """A stream of this package under the name that a query has for it.

    DuckDB asks for it more often than it reads it: the stream is taken with the first batch.
    """

    def __init__(self, name: str, stream: Stream | Answers) -> None:
        self._name, self._stream = name, stream
        self.error: Exception | None = None
        """What ended the stream, which DuckDB knows as text alone."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self._stream.schema, self._rows())
        return reader.__arrow_c_stream__(requested_schema)

    def _rows(self) -> "Iterator[pa.RecordBatch]":
        try:
            self._take()
            yield from self._stream
        except Exception as error:
            self.error = error
            raise

    def _take(self) -> None:
        """An `InputError` unless the stream was not taken yet."""
        with _LOCK:
            if self._stream in _TAKEN or _is_read(self._stream):
                raise InputError(
                    f"table {self._name!r} is a stream, which can be read once, and it was read already: by this query "
                    f"or before it; collect it first, and give the query its to_arrow()"
                )
            _TAKEN.add(self._stream)


def _is_read(stream: Any) -> bool:
    """Whether a stream is at its end. One that never had rows has no counters either."""
    if isinstance(stream, Answers):
        return stream._reader is None
    return stream._scan is None and bool(stream.stats)
