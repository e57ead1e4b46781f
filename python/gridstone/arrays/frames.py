"""Arrays as the data sets and lazy frames of other libraries."""

from typing import TYPE_CHECKING, Any

from ..base.arguments import checked, known
from ..base.extras import needed
from .noting import Noting

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

    @property
    def _title(self) -> str:
        """What messages call the array."""
        found: Any = self
        return f"{found.uri}" if found.path == "/" else f"{found.uri}:{found.path}"

    def _at_one_version(self) -> "Source":
        found: Any = self
        # The array of a transaction is at its version for as long as that goes on.
        return found if found.native.in_transaction else found._pinned()  # type: ignore[no-any-return]
