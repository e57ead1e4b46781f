"""Arrays as the data sets and lazy frames of other libraries."""

import uuid
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.arguments import checked, known
from ..base.extras import needed
from ..base.progress import Progress
from ..query.box import BoxLike
from ..query.condition import Where
from .noting import Noting
from .pickling import token_of

if TYPE_CHECKING:
    import polars as pl

    from ..datasets.dataset import ArrayDataset
    from ..datasets.source import Source


class Tabled(Noting):
    """The part of an array that other libraries read as a table."""

    @checked()
    def to_pyarrow_dataset(self, *, times: str = "auto") -> "ArrayDataset":
        """The cells as a `pyarrow.dataset.Dataset`, for DuckDB, DataFusion, polars and pyarrow.

            ships = gs.open("ais.gs").to_pyarrow_dataset()
            duckdb.sql("select mmsi, max(sog) from ships where lon > 8 group by mmsi")

        A row is a cell: its coordinates, then its attributes. Chosen columns and filters reach the array, which reads
        no others and leaves out tiles that a filter rules out. The data set shows the version that this handle shows
        now.

        Args:
            times: "auto": datetimes in seconds and milliseconds are given in microseconds, since DuckDB hands over
                conditions on them, whatever they are compared with. "us": those in nanoseconds too, on which it hands
                over none. "keep": each in its own unit.

        Raises:
            InputError: while reading, a time that 64 bits of whole microseconds do not give.
        """
        from ..datasets import source
        from ..datasets.dataset import dataset_of

        known("times", times, source.TIMES)
        return dataset_of(self._at_one_version(), times, self._title)

    @checked()
    def to_lazy(self) -> "pl.LazyFrame":
        """The cells as a lazy frame of polars, which reads chosen columns and what its filters need.

            gs.open("ais.gs").to_lazy().filter(pl.col("sog") > 3).select("mmsi").collect()

        Columns are those of `to_pyarrow_dataset`; times keep their unit, but that seconds are milliseconds.

        Raises:
            UnsupportedError: polars is missing (`pip install 'gridstone[polars]'`), or has no type for a column.
        """
        needed("polars", "polars", "to_lazy()")
        from ..datasets.lazy import lazy_of
        from ..datasets.source import Cells

        return lazy_of(Cells(self._at_one_version(), "keep", self._title))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All cells as a stream of Arrow batches, in bounded memory: coordinates, then attributes.

        pyarrow.table(a) · polars.DataFrame(a) · duckdb.sql("from a") · pandas.DataFrame.from_arrow(a)
        """
        found: Any = self._at_one_version()
        return found.scan().__arrow_c_stream__(requested_schema)

    @checked()
    def count(self, box: BoxLike = None, where: Where | None = None, *, progress: Progress = None) -> int:
        """The number of cells: of a sparse array those that are there, of a dense one all positions.

            a.count() · a.count({"x": (0, 99)}) · a.count(where="sog > 20")

        Where the index of the array knows the answer of a whole tile, the tile is not read. `len(a)` is another number:
        `a.shape[0]`.

        Args:
            box: as for `read`.
            where: as for `read`; an unwritten dense cell is judged as what it reads as.
            progress: True for a bar, or a callable `f(done, total)`.

        Raises:
            InputError: a condition that does not fit the schema.
            BoundsError: the box is not inside the domain.
        """
        found = self.aggregate({"cells": "count(*)"}, None, box, where, progress=progress)
        return int(found["cells"][0])

    def __dask_tokenize__(self) -> Any:
        """What Dask names graphs by: the array at its version, whatever its values."""
        found: Any = self
        if found.native.in_transaction:
            return uuid.uuid4().hex  # What is staged has no name.
        return token_of(found.uri, found.path, found.version, found.native.id, found.context)

    @abstractmethod
    def aggregate(
        self,
        aggregates: Mapping[str, str],
        by: Any = ...,
        box: BoxLike = ...,
        where: Where | None = ...,
        *,
        progress: Progress = ...,
    ) -> Any: ...

    @property
    def _title(self) -> str:
        """What messages call the array."""
        found: Any = self
        return f"{found.uri}" if found.path == "/" else f"{found.uri}:{found.path}"

    def _at_one_version(self) -> "Source":
        found: Any = self
        # The array of a transaction is at its version for as long as that goes on.
        return found if found.native.in_transaction else found._pinned()  # type: ignore[no-any-return]
