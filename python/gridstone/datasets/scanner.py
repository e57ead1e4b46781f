"""The scanner and the fragment of a data set, with the whole interface that pyarrow's have.

pyarrow's own scanner over a stream reads ahead, and to the end when it is dropped. This one reads batch by batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from ..base.printable import brief
from ..errors import InputError, MissingColumnError
from ..query.condition import Expression
from . import arrow_filter
from .predicate import Untranslatable, condition_of
from .source import Cells

_OPTIONS: Final = {
    *("batch_readahead", "fragment_readahead", "fragment_scan_options", "use_threads", "cache_metadata"),
    *("memory_pool", "schema", "batch_size"),
}


class TaggedRecordBatch(NamedTuple):
    """A batch and the fragment that it is of."""

    record_batch: Any
    fragment: Any


class CellScanner:
    """Reads chosen columns of the cells for which a filter is true, anew with each method."""

    def __init__(
        self,
        cells: Cells,
        columns: Any,
        mask: Any,
        batch_size: int | None,
        options: Mapping[str, Any],
        *,
        also: Expression | None = None,
    ) -> None:
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise TypeError(f"unexpected keyword argument {unknown[0]!r}; there are {sorted(_OPTIONS)}")
        if mask is not None and not isinstance(mask, ds.Expression):
            raise TypeError(f"filter= takes an expression of pyarrow, found {brief(mask)}")
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size= is a number of rows, at least 1, found {brief(batch_size)}")
        self._cells, self._mask, self._batch_size, self._also = cells, mask, batch_size, also
        self._computed = dict(columns) if isinstance(columns, Mapping) else None
        self._columns = None if columns is None or self._computed is not None else _names(cells, columns)
        self._reads = self._needed()
        if mask is not None or self._computed is not None:
            # A mistake in an expression is raised now.
            self._schema = self._finished(pa.Table.from_batches([], self._read_schema)).schema
        else:
            self._schema = self._read_schema

    def _needed(self) -> list[str] | None:
        """The columns that are read; None: all."""
        expressions = [] if self._mask is None else [self._mask]
        expressions += [] if self._computed is None else list(self._computed.values())
        wanted = set(self._columns or ())
        for one in expressions:
            found = arrow_filter.columns_of(one)
            if found is None:
                return None
            for name in found - set(self._cells.schema.names):
                raise _no_column(self._cells, name)
            wanted |= found
        extra = [name for name in self._cells.schema.names if name in wanted and name not in (self._columns or ())]
        return None if self._columns is None and self._computed is None else [*(self._columns or ()), *extra]

    @property
    def _read_schema(self) -> Any:
        schema = self._cells.schema
        return schema if self._reads is None else pa.schema([schema.field(name) for name in self._reads])

    @property
    def dataset_schema(self) -> Any:
        """The columns that there are."""
        return self._cells.schema

    @property
    def projected_schema(self) -> Any:
        """The columns that are read."""
        return self._schema

    def _where(self) -> Expression | None:
        """The condition that the array is scanned with: it selects what the filter does, or more."""
        if self._mask is None:
            return self._also
        try:
            node = arrow_filter.node_of(self._mask)
            made = condition_of(node, self._cells.source.schema, nan_is_greatest=False, exact=False)
        except Untranslatable:
            return self._also
        return made if self._also is None else self._also & made

    def _finished(self, read: Any) -> Any:
        """What the filter and the computed columns make of cells that were read."""
        columns = self._computed if self._computed is not None else self._columns
        return ds.InMemoryDataset(read).to_table(columns=columns, filter=self._mask, use_threads=False)

    def to_batches(self) -> Iterator[Any]:
        """The batches, one after the other."""
        for batch in self._cells.batches(self._reads, self._where()):
            if self._mask is None and self._computed is None:
                parts = [batch]
            else:
                parts = self._finished(batch).to_batches() if batch.num_columns else _bare(self._finished(batch))
            for part in parts:
                step = self._batch_size or max(1, part.num_rows)
                for start in range(0, part.num_rows, step):
                    yield part if step >= part.num_rows else part.slice(start, step)

    def to_reader(self) -> Any:
        """The batches as a stream of Arrow."""
        return pa.RecordBatchReader.from_batches(self._schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def scan_batches(self) -> Iterator[TaggedRecordBatch]:
        """The batches, each with its fragment."""
        fragment = CellFragment(self._cells, None)
        return (TaggedRecordBatch(batch, fragment) for batch in self.to_batches())

    def to_table(self) -> Any:
        """All that is read, as a table."""
        return pa.Table.from_batches(list(self.to_batches()), self._schema)

    def head(self, num_rows: int) -> Any:
        """So many rows; reading stops there."""
        found: list[Any] = []
        left = num_rows
        for batch in self.to_batches() if num_rows > 0 else ():
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if left <= 0:
                break
        return pa.Table.from_batches(found, self._schema)

    def take(self, indices: Any) -> Any:
        """The rows with these numbers."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """The number of rows; without a filter none of them is read where the array knows it."""
        if self._mask is None and self._also is None:
            return self._cells.count()
        narrow = CellScanner(self._cells, [], self._mask, None, {}, also=self._also)
        return sum(batch.num_rows for batch in narrow._counted())

    def _counted(self) -> Iterator[Any]:
        if self._mask is None:
            yield from self._cells.batches([], self._also)
            return
        for batch in self._cells.batches(self._reads, self._where()):
            yield ds.InMemoryDataset(batch).to_table(filter=self._mask, use_threads=False)


def _bare(table: Any) -> list[Any]:
    """The batches of a table without columns, which keep their rows."""
    return [pa.RecordBatch.from_struct_array(pa.array([{}] * table.num_rows, pa.struct([])))]


def _names(cells: Cells, columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns= takes a list of names, or a mapping of names to expressions, found {brief(columns)}")
    for name in columns:
        if name not in cells.schema.names:
            raise _no_column(cells, name)
    return list(columns)


def _no_column(cells: Cells, name: str) -> Exception:
    there = ", ".join(map(repr, cells.schema.names))
    return MissingColumnError(f"{cells.title} has no column {brief(name)}; there are {there}")


class CellFragment:
    """All cells of an array, as the one fragment of its data set."""

    def __init__(self, cells: Cells, mask: Any) -> None:
        self._cells, self._mask = cells, mask

    @property
    def physical_schema(self) -> Any:
        """The columns that there are."""
        return self._cells.schema

    @property
    def partition_expression(self) -> Any:
        """What is true of every cell: nothing that is known before."""
        return ds.scalar(True)

    def scanner(
        self, schema: Any = None, columns: Any = None, filter: Any = None, batch_size: int | None = None, **options: Any
    ) -> CellScanner:
        """What reads the fragment; arguments as for `ArrayDataset.scanner`."""
        mask = filter if self._mask is None else self._mask if filter is None else self._mask & filter
        return CellScanner(self._cells, columns, mask, batch_size, options)

    def to_batches(self, schema: Any = None, columns: Any = None, filter: Any = None, **options: Any) -> Iterator[Any]:
        """Its batches."""
        return self.scanner(schema, columns, filter, **options).to_batches()

    def to_table(self, schema: Any = None, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """Its cells as a table."""
        return self.scanner(schema, columns, filter, **options).to_table()

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """So many of its cells."""
        return self.scanner(None, columns, filter, **options).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        """Its cells with these numbers."""
        return self.scanner(None, columns, filter, **options).take(indices)

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """The number of its cells."""
        return self.scanner(None, None, filter, **options).count_rows()
