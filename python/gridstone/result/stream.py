"""`Stream`: a scan in bounded memory as Arrow record batches."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..base.progress import Progress, Reporter
from ..column import columns, decode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import InputError
from ..query.box import Box
from ..schema.array_schema import Schema
from ..schema.fields import column_of, empty_of
from . import nat
from .cells import Result
from .damage import Skipped
from .interop import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

    from .. import _native


class Batch(Protocol):
    """Some rows of a stream: the core's columns by name."""

    @property
    def count(self) -> int: ...
    @property
    def dims(self) -> "Mapping[str, _native._OutColumn]": ...
    @property
    def attrs(self) -> "Mapping[str, _native._OutColumn]": ...
    @property
    def stats(self) -> dict[str, int]: ...


class Source(Protocol):
    """What gives the batches of a stream."""

    def next(self) -> Batch | None:
        """The next batch, None at the end."""


class Stream(Tabular):
    """An iterator of `pyarrow.RecordBatch`es with a column per dimension and attribute. It can be read once; it also
    exports itself, batch by batch, to any library that takes an Arrow stream.
    """

    def __init__(
        self,
        schema: Schema,
        names: list[str],
        scan: Source | None,
        box: Box,
        budget: int,
        damage: tuple[Skipped, ...] = (),
        progress: Progress = None,
        limit: int | None = None,
    ) -> None:

        self._box, self._budget, self._damage = box, budget, damage
        self._reporter = Reporter(progress, "reading")

        self._array_schema, self._names, self._scan = schema, names, scan
        self._arrow_schema = schema._arrow_of(names)
        self._stats: dict[str, int] = {}
        self._lost = False
        self._left_over = limit
        """How many cells may still be given; None: all."""
        self._nat = nat.WARN

    def _with_nat(self, how: str) -> "Stream":
        """The stream itself; `how` says what becomes of NaT in nullable attributes (`nat`)."""
        self._nat = how
        return self

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of every batch."""
        return self._arrow_schema

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the scan so far."""
        return dict(self._stats)

    @property
    def damage(self) -> tuple[Skipped, ...]:
        """What `scan(damaged="skip")` leaves out; see `Result.damage`."""
        return self._damage

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        return self

    def __next__(self) -> "pa.RecordBatch":
        import pyarrow as pa

        found = self._next_columns()
        if found is None:
            raise StopIteration
        arrays = nat.arrays_of(self._array_schema, found, self._nat)
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow_schema)

    def _next_columns(self) -> "dict[str, columns.Column] | None":
        """The next batch by column; None at the end."""
        if self._lost:
            raise InputError("an exception of progress= ended this stream, and cells went with it; read again")
        try:
            # A scan that an error has ended says so again.
            cells = None if self._scan is None or self._left_over == 0 else self._scan.next()
        except InputError:
            # Another thread reads: the work goes on.
            raise
        except BaseException:
            self._reporter.give_up()
            raise
        try:
            if cells is None:
                self._reporter.end()
                self._scan = None
                return None
            self._reporter.more(cells.count)
        except BaseException:
            # A batch is lost with it, or all that were gathered: nothing may follow as if they had been given.
            self._lost = True
            raise
        self._stats = cells.stats
        schema, dims, attrs = self._array_schema, cells.dims, cells.attrs
        found = {dim.name: columns.from_native(dim.dtype, dims[dim.name]) for dim in schema.dims}
        found |= {name: column_of(schema.attr(name), attrs[name]) for name in self._names}
        if self._left_over is not None:
            found = {name: columns.first(column, self._left_over) for name, column in found.items()}
            self._left_over -= min(self._left_over, cells.count)
        return found

    def to_numpy(self) -> dict[str, AnyArray]:
        """Everything that is left, one array per column, coordinates first; types as `Result.to_numpy`."""
        return {name: decode.numpy_of(column) for name, column in self._left().items()}

    def _left(self) -> dict[str, Column]:
        """Everything that is left, by column."""
        schema = self._array_schema
        parts = {dim.name: [columns.empty(dim.dtype, (0,), False)] for dim in schema.dims}
        for name in self._names:
            parts[name] = [empty_of(schema.attr(name), (0,))]
        while (found := self._next_columns()) is not None:
            for name, column in found.items():
                parts[name].append(column)
        return {name: columns.joined(runs) for name, runs in parts.items()}

    def _result(self) -> Result:
        """Everything that is left, as the cells of one read."""
        found = self._left()
        made = Result(self._array_schema, self._box, self._names, "any", found, self._stats, self._budget, listed=True)
        made._damage = self._damage
        return made

    def to_dense(self, fill: Any = None) -> AnyArray | dict[str, AnyArray]:
        """Everything that is left as arrays over the box; see `Result.to_dense`."""
        return self._result().to_dense(fill)

    def to_scipy(self, attr: str | None = None, *, format: str | None = None, repeats: str = "last") -> Any:
        """Everything that is left as a sparse array of SciPy; see `Result.to_scipy`."""
        return self._result().to_scipy(attr, format=format, repeats=repeats)

    def to_sparse(self, attr: str | None = None, *, repeats: str = "last") -> Any:
        """Everything that is left as a `COO` array of pydata/sparse; see `Result.to_sparse`."""
        return self._result().to_sparse(attr, repeats=repeats)

    def to_arrow(self) -> "pa.Table":
        """Everything that is left, as one table."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self), self._arrow_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._arrow_schema, iter(self))
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        names = ", ".join(self._arrow_schema.names)
        left = "at its end" if self._scan is None else "an exception ended it" if self._lost else "cells are left"
        return f"<gridstone.Stream of {names}: {left}>"

    def close(self) -> None:
        """Ends the scan early."""
        self._reporter.give_up()
        self._scan = None
