"""`ArrayDataset`: the cells of an array as a data set of pyarrow.

DuckDB takes its own stream from it, with the filters that are exact there. Every other library gets a scanner that
reads what a filter needs and has pyarrow filter each batch once more, so that pyarrow's meaning of a filter holds.
"""

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs

from ..base.printable import brief
from ..errors import UnsupportedError
from ..query.condition import Expression
from . import duckdb_filter
from .predicate import Untranslatable, condition_of
from .scanner import CellFragment, CellScanner
from .source import Cells, Source

_READ_ELSEWHERE: Final = (
    "pyarrow cannot read a stored array in its own threads (joins with another data set on the left, unions, "
    "write_dataset): take to_table(), or scanner().to_reader(), and give it that"
)


_OFFERED_MAX = 64


class _NoFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """The file system of a data set that has no files: what pyarrow would open itself says what to do instead."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NoFiles)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def get_type_name(self) -> str:
        return "gridstone"

    def normalize_path(self, path: str) -> str:
        return path

    def _refused(self, *arguments: Any, **options: Any) -> Any:
        raise UnsupportedError(_READ_ELSEWHERE)

    get_file_info = get_file_info_selector = _refused
    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refused
    move = copy_file = open_input_stream = open_input_file = open_output_stream = open_append_stream = _refused


_NoFiles.__abstractmethods__ = frozenset()


class ArrayDataset(ds.FileSystemDataset):  # type: ignore[misc]
    """The cells of an array at one version, a row each; made by `Array.to_pyarrow_dataset`.

    A scanner is made anew for every reading, so that a data set can be read as often as one likes, by several threads.
    """

    def __init__(self, source: Source, times: str, title: str, mask: Any = None) -> None:
        self.offered: dict[str, Expression] = {}
        """The conditions that were taken over from DuckDB last, by their text in its plans."""
        self.rows_added = 0
        """What is added to the number of rows for DuckDB's planner, which shows it: the mark of the array in plans."""
        self._cells, self._mask, self._times = Cells(source, times, title), mask, times
        # pyarrow's own part has one file, which cannot be opened: without it that part would be a null pointer.
        files, form = fs.PyFileSystem(_NoFiles()), ds.IpcFileFormat()
        super().__init__([form.make_fragment(title, filesystem=files)], self._cells.schema, form, files)

    def __repr__(self) -> str:
        return f"<gridstone.ArrayDataset of {self._cells.title}: {', '.join(self._cells.schema.names)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return dataset_of, (self._cells.source, self._times, self._cells.title, self._mask)

    @property
    def schema(self) -> "pa.Schema":
        """The columns: dimensions, then attributes."""
        return self._cells.schema

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the scan that began last, so far."""
        last = self._cells.last
        return {} if last is None else dict(last.stats)

    @property
    def pushed(self) -> Expression | None:
        """The condition that the scan which began last was given; None: none, or no scan began."""
        last = self._cells.last
        return None if last is None else last.where

    # As pyarrow has it.

    def scanner(self, columns: Any = None, filter: Any = None, batch_size: int | None = None, **options: Any) -> Any:
        """What reads these columns of the cells for which `filter` is true.

        Args:
            columns: a list of names, or a mapping of names to expressions; None: all.
            filter: an expression of pyarrow; None: all cells.
            batch_size: rows of a batch at most.
            options: pyarrow's others, which tune reading from files, have no effect.

        Raises:
            MissingNameError: a column that there is not.
        """
        return CellScanner(self._cells, columns, self._both(filter), batch_size, options)

    def get_fragments(self, filter: Any = None) -> Iterator[Any]:
        """The array as the one fragment that it is here."""
        yield CellFragment(self._cells, self._mask)

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> "pa.Table":
        """The cells as a table; arguments as for `scanner`."""
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Iterator[Any]:
        """The cells batch by batch, in bounded memory; arguments as for `scanner`."""
        return self.scanner(columns, filter, **options).to_batches()  # type: ignore[no-any-return]

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> "pa.Table":
        """So many cells; reading stops there."""
        return self.scanner(columns, filter, **options).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> "pa.Table":
        """The cells with these numbers, counted in the order that the scan gives."""
        return self.scanner(columns, filter, **options).take(indices)

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """The number of cells for which `filter` is true."""
        return int(self.scanner(None, filter, **options).count_rows())

    def filter(self, expression: Any) -> "ArrayDataset":
        """The data set of the cells for which `expression` is true too."""
        cells = self._cells
        return dataset_of(cells.source, self._times, cells.title, self._both(expression))

    def _both(self, mask: Any) -> Any:
        if mask is not None and not isinstance(mask, ds.Expression):
            raise TypeError(f"filter= takes an expression of pyarrow, found {brief(mask)}")
        return mask if self._mask is None else self._mask if mask is None else self._mask & mask

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        """All cells in memory, sorted as `pyarrow.Table.sort_by` does it."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: Any, keys: Any, *arguments: Any, **options: Any) -> Any:
        """All cells in memory, joined as `pyarrow.Table.join` does it."""
        return ds.InMemoryDataset(self.to_table().join(_table_of(right_dataset), keys, *arguments, **options))

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> Any:
        """All cells in memory, joined as `pyarrow.Table.join_asof` does it."""
        return ds.InMemoryDataset(self.to_table().join_asof(_table_of(right_dataset), *arguments, **options))

    def replace_schema(self, schema: Any) -> Any:
        """The data set itself where the columns are these; an `UnsupportedError` if not."""
        if schema.equals(self.schema):
            return self
        raise UnsupportedError("the columns of a stored array are those of its schema; cast them with columns={…}")

    @property
    def partition_expression(self) -> Any:
        """What is true of every cell: nothing that is known before."""
        return ds.scalar(True)

    @property
    def files(self) -> list[str]:
        """None: an array is no file."""
        return []


def _table_of(right: Any) -> Any:
    return right.to_table() if isinstance(right, ds.Dataset) else right


class _ForDuckDB:
    """What DuckDB asks of a source of its own. It stands before DuckDB's class among the bases."""

    _cells: Cells
    _mask: Any
    offered: dict[str, Expression]
    rows_added: int
    schema_is_stable = True
    pull_under_gil = False
    one_shot = False

    @property
    def obj(self) -> Any:
        """What the source stands for: itself."""
        return self

    def rows(self) -> int | None:
        """The number of rows for the planner, which is an upper bound where cells may be deleted."""
        return self._cells.rows() + self.rows_added

    def __arrow_c_schema__(self) -> object:
        return self._cells.schema.__arrow_c_schema__()

    def accepts(self, predicate: Any) -> bool:
        """Whether a scan gives just the rows for which DuckDB would find the predicate true."""
        try:
            self.offered[str(predicate.fragment())] = self._condition(predicate)
            if len(self.offered) > _OFFERED_MAX:
                self.offered.pop(next(iter(self.offered)))
        except (Untranslatable, ValueError, AttributeError, RecursionError):
            return False
        return True

    def _condition(self, predicate: Any) -> Expression:
        node = duckdb_filter.node_of(predicate)
        return condition_of(node, self._cells.source.schema, nan_is_greatest=True, exact=True)

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """The stream with these columns, of the rows for which every filter is true."""
        where: Expression | None = None
        for one in filters:
            made = self._condition(one)
            where = made if where is None else where & made
        names = self._cells.schema.names
        chosen = None if columns is None else [names[place] for place in columns]
        if self._mask is None:
            return self._cells.reader(chosen, where).__arrow_c_stream__(), chosen is not None
        reader = CellScanner(self._cells, chosen, self._mask, None, {}, also=where).to_reader()
        return reader.__arrow_c_stream__(), chosen is not None


_kinds: dict[str, type[ArrayDataset]] = {}


def _kind() -> type[ArrayDataset]:
    """The class of data sets: with DuckDB's own protocol, where its private module has it as known."""
    if "class" not in _kinds:
        _kinds["class"] = _class_for(_duckdb_source())
    return _kinds["class"]


def _class_for(source: type | None) -> type[ArrayDataset]:
    if source is None:
        return ArrayDataset
    made = type("ArrayDataset", (_ForDuckDB, ArrayDataset, source), {"__doc__": ArrayDataset.__doc__})
    made.__module__, made.__qualname__ = __name__, "ArrayDataset"
    return made


def _duckdb_source() -> type | None:
    """DuckDB's class of sources; None where there is none, or it asks for something else than is known."""
    try:
        found = importlib.import_module("duckdb._sources").ArrowScanSource
    except (ImportError, AttributeError):
        return None
    known = all(callable(getattr(found, name, None)) for name in ("rows", "accepts", "stream"))
    return found if known and isinstance(found, type) else None


def again(data: ArrayDataset) -> ArrayDataset:
    """The same data set, with counters and errors of its own."""
    return dataset_of(*data._cells.parts, data._mask)


def dataset_of(source: Source, times: str, title: str, mask: Any = None) -> ArrayDataset:
    """The data set of an array."""
    return _kind()(source, times, title, mask)
