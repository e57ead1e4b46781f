"""A scan in bounded memory: Arrow record batches, one after the other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from . import columns
from .dtypes import AnyArray
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from . import _native


class Stream:
    """An iterator of `pyarrow.RecordBatch`es with a column per dimension and attribute. It can be read once; it also
    exports itself to any library that takes an Arrow stream.
    """

    def __init__(self, schema: Schema, names: list[str], scan: "_native.Scan | None") -> None:
        from . import arrow

        self._array_schema, self._names, self._scan = schema, names, scan
        self._arrow_schema = arrow.schema_of(schema, names)
        self._stats: dict[str, int] = {}

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of every batch."""
        return self._arrow_schema

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the scan so far."""
        return dict(self._stats)

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        return self

    def __next__(self) -> "pa.RecordBatch":
        import pyarrow as pa

        from . import arrow

        found = self._next_columns()
        if found is None:
            raise StopIteration
        return pa.RecordBatch.from_arrays(
            [arrow.array_of(column) for column in found.values()], schema=self._arrow_schema
        )

    def _next_columns(self) -> "dict[str, columns.Column] | None":
        """The next batch by column; None at the end."""
        cells = None if self._scan is None else self._scan.next()
        if cells is None:
            self._scan = None
            return None
        self._stats = cells.stats
        schema, dims, attrs = self._array_schema, cells.dims, cells.attrs
        found = {dim.name: columns.from_native(dim.dtype, dims[dim.name]) for dim in schema.dims}
        found |= {name: columns.from_native(schema.attr(name).dtype, attrs[name]) for name in self._names}
        return found

    def to_numpy(self) -> dict[str, AnyArray]:
        """Everything that is left, one array per column, coordinates first; types as `Result.to_numpy`."""
        schema = self._array_schema
        parts: dict[str, list[AnyArray]] = {
            dim.name: [columns.empty(dim.dtype, (0,), False).numpy()] for dim in schema.dims
        }
        for name in self._names:
            attr = schema.attr(name)
            parts[name] = [columns.empty(attr.dtype, (0,), attr.nullable).numpy()]
        while (found := self._next_columns()) is not None:
            for name, column in found.items():
                parts[name].append(column.numpy())
        join = {True: np.ma.concatenate, False: np.concatenate}
        return {name: join[np.ma.isMaskedArray(runs[0])](runs) for name, runs in parts.items()}  # type: ignore[operator]

    def to_arrow(self) -> "pa.Table":
        """Everything that is left, as one table."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self), self._arrow_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """Everything that is left, as one data frame."""
        from . import arrow

        return arrow.pandas_of(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._arrow_schema, iter(self))
        return reader.__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Ends the scan early."""
        self._scan = None
