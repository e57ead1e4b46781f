"""What a data set asks of an array, and the record of the scans that others start through it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..context.settings import Context
from ..errors import InputError
from ..query.condition import Expression
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.fields import asked_of_core
from . import coordinates

if TYPE_CHECKING:
    import pyarrow as pa

    from ..result.stream import Stream

BATCH_BYTES_MAX = 16 << 20
"""Bytes of a batch: small enough that a result which is dropped half read stops soon."""
_BUDGET_PARTS = 16
_BARE_ROWS = 1 << 20
TIMES = ("auto", "us", "keep")
"""Units of times of day: seconds and milliseconds as microseconds; nanoseconds too; each as it is."""


class Source(Protocol):
    """An array at one version."""

    @property
    def schema(self) -> Schema: ...
    @property
    def context(self) -> Context: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def size(self) -> int: ...
    def _cells_held(self) -> int: ...
    def scan(
        self,
        box: Any = None,
        attrs: Sequence[str] | None = None,
        where: Expression | None = None,
        order: str = "any",
        batch_bytes: int | str = "64MiB",
    ) -> "Stream": ...
    def aggregate(self, aggregates: Any, *, where: Expression | None = None) -> Result: ...


@dataclass
class Scanned:
    """One scan: what was asked of the array, and what that cost so far."""

    columns: list[str] | None
    where: Expression | None
    stats: dict[str, int] = field(default_factory=dict)


class Cells:
    """The cells of an array as batches of any of its columns."""

    def __init__(self, source: Source, times: str, title: str) -> None:
        import pyarrow as pa

        self.source, self.title = source, title
        self.parts = (source, times, title)
        own = source.schema.to_arrow()
        fields = [one.with_type(_delivered_as(one.type, times)) for one in own]
        # The metadata of fields say what this package makes of them, which other libraries would carry along.
        self.schema = pa.schema([pa.field(one.name, one.type, one.nullable) for one in fields])
        self._cast = {new.name: new.type for new, old in zip(fields, own, strict=True) if new.type != old.type}
        self._lock = threading.Lock()
        self._watchers: list[Callable[[Scanned], None]] = []
        self.last: Scanned | None = None
        self.error: BaseException | None = None
        """What ended a scan, which others wrap in errors of their own."""

    def watch(self, watcher: Callable[[Scanned], None]) -> None:
        """Has `watcher` told of every scan that begins."""
        with self._lock:
            self._watchers.append(watcher)

    def rows(self) -> int:
        """The number of cells of a dense array; of a sparse one so many at most."""
        return self.source._cells_held() if self.source.sparse else self.source.size

    def count(self) -> int:
        """The number of cells."""
        return int(self.source.aggregate({"n": "count(*)"})["n"][0]) if self.source.sparse else self.source.size

    def batches(self, columns: Sequence[str] | None, where: Expression | None) -> "Iterator[pa.RecordBatch]":
        """Batches with these columns in this order; None: all. The scan begins with the first one."""
        names = self.schema.names if columns is None else list(columns)
        scanned = Scanned(None if columns is None else names, where)
        with self._lock:
            self.last = scanned
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher(scanned)
        try:
            if where is None and self._is_known(names):
                yield from self._known(names)
            else:
                yield from self._read(names, scanned)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    def _is_known(self, names: Sequence[str]) -> bool:
        """Whether these columns follow from the domain, or from the number of cells."""
        if not names:
            return True
        dims, dense = {dim.name for dim in self.source.schema.dims}, not self.source.sparse
        return dense and dims.issuperset(names) and self.source.size < coordinates.CELLS_MAX

    def _known(self, names: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Batches for which no cell is read."""
        import pyarrow as pa

        if not names:
            yield from _bare(self.count())
            return
        schema = self._schema_of(names)
        for found in coordinates.batches(self.source.schema, names):
            yield pa.RecordBatch.from_arrays([self._delivered(*one) for one in found.items()], schema=schema)

    def _read(self, names: Sequence[str], scanned: Scanned) -> "Iterator[pa.RecordBatch]":
        """Batches of a scan."""
        import pyarrow as pa

        schema = self._schema_of(names)
        attrs = [attr.name for attr in self.source.schema.attrs if attr.name in set(names)]
        if not attrs and not self.source.sparse:
            attrs = asked_of_core(self.source.schema, attrs)
        size = min(BATCH_BYTES_MAX, max(1 << 16, self.source.context.memory_budget // _BUDGET_PARTS))
        stream = self.source.scan(attrs=attrs, where=scanned.where, batch_bytes=size)
        try:
            for batch in stream:
                scanned.stats = stream.stats
                if not names:
                    yield batch.select([])
                    continue
                arrays = [self._delivered(name, batch.column(name)) for name in names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            scanned.stats = stream.stats
        finally:
            stream.close()

    def _schema_of(self, names: Sequence[str]) -> "pa.Schema":
        import pyarrow as pa

        return pa.schema([self.schema.field(name) for name in names])

    def reader(self, columns: Sequence[str] | None, where: Expression | None) -> "pa.RecordBatchReader":
        """The same as an Arrow stream."""
        import pyarrow as pa

        names = self.schema.names if columns is None else list(columns)
        return pa.RecordBatchReader.from_batches(self._schema_of(names), self.batches(names, where))

    def _delivered(self, name: str, array: "pa.Array") -> "pa.Array":
        import pyarrow as pa

        if pa.types.is_duration(array.type) and array.null_count:
            array = _cleared(array)
        if name not in self._cast:
            return array
        try:
            return array.cast(self._cast[name])
        except pa.ArrowInvalid as error:
            raise InputError(
                f"column {name!r} of {self.title} holds a time that is no int64 of whole microseconds: {error}; "
                f'to_pyarrow_dataset(times="keep") gives times in their own unit'
            ) from error


def _bare(count: int) -> "Iterator[pa.RecordBatch]":
    """Batches without columns, of so many rows together."""
    import pyarrow as pa

    whole = pa.RecordBatch.from_arrays([pa.nulls(min(count, _BARE_ROWS))], ["none"]).select([])
    for first in range(0, count, _BARE_ROWS):
        yield whole.slice(0, min(_BARE_ROWS, count - first))


def _cleared(array: "pa.Array") -> "pa.Array":
    """The same lengths of time with 0 beneath nulls: DuckDB converts what lies there, and the least int64 overflows."""
    import pyarrow as pa

    validity = array.is_valid()
    known = array.fill_null(pa.scalar(0, pa.int64()).cast(array.type))
    bits = pa.concat_arrays([validity]).buffers()[1]
    return pa.Array.from_buffers(array.type, len(array), [bits, pa.concat_arrays([known]).buffers()[1]])


def _delivered_as(kind: "pa.DataType", times: str) -> "pa.DataType":
    """The type of a column. DuckDB hands over conditions on microseconds, whatever they are compared with."""
    import pyarrow as pa

    units = {"auto": ("s", "ms"), "us": ("s", "ms", "ns"), "keep": ()}[times]
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) and kind.unit in units else kind
