"""A DuckDB connection over arrays: tables by name, errors of this package, what was read of each array."""

import contextlib
import functools
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..arrays.array import Array
from ..base.extras import needed
from ..base.printable import brief
from ..context.settings import Context
from ..datasets.dataset import ArrayDataset, again
from ..datasets.source import Scanned
from ..errors import BudgetError, GridstoneError, InputError, NotFoundError, StorageError
from ..io.table.sources import message_of
from ..result.cells import Result
from ..result.stream import Stream
from .answers import Answers
from .places import Arrays
from .statement import in_quotes, names, quoted
from .streams import Once
from .waiting import beside

_Made = TypeVar("_Made")

FILES = (".parquet", ".csv", ".csv.gz", ".tsv", ".json", ".jsonl", ".ndjson", ".txt")
"""What names of files end with that DuckDB reads itself."""
_MEMORY_MIN = 64 << 20
"""DuckDB does not begin with less."""


def duckdb_module(what: str) -> Any:
    """DuckDB; an `UnsupportedError` names the extra where it is missing."""
    return needed("duckdb", "sql", what)


class Engine:
    """One connection, in memory: for the statements of one call, or one that lasts, with `renew` between questions."""

    def __init__(self, context: Context, tables: Mapping[Any, Any], *, lasting: bool = False) -> None:
        self.duckdb = duckdb_module("gs.sql()")
        self._spill = os.path.join(tempfile.gettempdir(), f"gridstone-sql-{uuid.uuid4().hex}")
        config: dict[str, Any] = {
            "memory_limit": f"{max(context.memory_budget, _MEMORY_MIN)}B",
            "temp_directory": self._spill,
            "threads": context.native.threads,
        }
        self.con = self.duckdb.connect(":memory:", config=config)
        # A table is an array, a file, or what the caller names: never a variable of this package's own functions.
        self.con.execute("set python_enable_replacements = false")
        self.context, self._arrays, self._lasting = context, Arrays(context), lasting
        self._names: dict[str, str] = {}
        self.found: list[str] = []
        """The arrays that statements named, not those of `tables`."""
        self.datasets: dict[str, ArrayDataset] = {}
        self._renamed: dict[str, dict[str, str]] = {}
        """By array the columns that DuckDB calls otherwise, since they differ from another one in case alone."""
        self.scans: list[tuple[str, Scanned]] = []
        self._streams: list[Once] = []
        try:
            for name, data in tables.items():
                self._add(name, data)
        except BaseException:
            self.close()
            raise

    def _add(self, name: Any, data: Any) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"tables= has texts for names, found {brief(name)}")
        other = self._names.setdefault(name.casefold(), name)
        if other != name:
            raise InputError(
                f"the tables {other!r} and {name!r} differ in case alone, which DuckDB does not tell apart; give one "
                f"of them another name: gs.sql(query, tables={{'other': gs.open({name!r})}})"
            )
        if isinstance(data, Array):
            data = data.to_pyarrow_dataset()
        elif isinstance(data, Result):
            data = data.to_arrow()
        elif isinstance(data, Mapping):
            data = _table_of(name, data)
        elif isinstance(data, Stream | Answers):
            data = Once(name, data)
            self._streams.append(data)
        if isinstance(data, ArrayDataset):
            # Counters and errors of this query alone; a number of rows that no other array has.
            data = self.datasets[name] = again(data)
            known = {one._cells.rows() + one.rows_added for one in self.datasets.values() if one is not data}
            while data._cells.rows() + data.rows_added in known:
                data.rows_added += 1
            data._cells.watch(functools.partial(self._noted, name))
        try:
            self.apart(lambda: self.con.register(name, data))
        except (self.duckdb.Error, TypeError) as error:
            raise InputError(
                f"table {name!r} is {brief(data)} of type {type(data).__name__}, which DuckDB does not read; give an "
                f"array, a result, a data frame, or Arrow's table, stream or data set"
            ) from error
        if isinstance(data, ArrayDataset):
            self._renamed[name] = self._renamed_of(name, data.schema.names)

    def _renamed_of(self, name: str, columns: Sequence[str]) -> dict[str, str]:
        """The columns that DuckDB calls otherwise, with their names there."""
        if len({column.casefold() for column in columns}) == len(columns):
            return {}
        found = self.con.execute(f"describe from {in_quotes(name)}").fetchall()
        return {column: row[0] for column, row in zip(columns, found, strict=True) if column != row[0]}

    def _noted(self, name: str, scanned: Scanned) -> None:
        self.scans.append((name, scanned))

    def statements(self, query: str) -> list[Any]:
        """The statements of a query, of which there is at least one."""
        try:
            found = self.apart(lambda: list(self.con.extract_statements(query)))
        except self.duckdb.Error as error:
            raise self.error_of(error) from error
        if not found:
            raise InputError("the query is empty; give one such as \"select count(*) from 'ais.gs'\"")
        return found

    def find_arrays(self, query: str) -> None:
        """Has the connection know the arrays that a statement names."""
        for name in self._named(query):
            if name.casefold() not in self._names and not is_file(name):
                self.find(name)
        written = names(query)
        for name, renamed in self._renamed.items():
            for column in sorted(written & set(renamed)):
                raise InputError(
                    f"column {column!r} of {name!r} is called {renamed[column]!r} in SQL: DuckDB does not tell it from "
                    f"another one that differs in case alone"
                )

    def find(self, name: str) -> bool:
        """Has the connection know an array; whether there is one by that name."""
        found = self._arrays.opened(name)
        if found is not None:
            self._add(name, found)
            self.found.append(name)
        return found is not None

    def renew(self) -> None:
        """Forgets the arrays that statements named: the next one finds them at the versions that are then the newest.

        While there are views that a statement made, the arrays below them may be any of these: they are found again.
        """
        for name in self.found:
            with contextlib.suppress(self.duckdb.Error):
                self.con.unregister(name)
            self.datasets.pop(name, None)
            self._renamed.pop(name, None)
            self._names.pop(name.casefold(), None)
        before, self.found = self.found, []
        self._arrays = Arrays(self.context)
        self.scans.clear()
        if before and self.con.execute("select count(*) from duckdb_views() where not internal").fetchall()[0][0]:
            for name in before:
                with contextlib.suppress(GridstoneError, OSError):
                    self.find(name)

    def _named(self, query: str) -> list[str]:
        """The tables that a statement may mean."""
        try:
            return self.apart(lambda: sorted(self.con.get_table_names(query)))
        except self.duckdb.Error:
            # DuckDB cannot tell those of some statements (PIVOT, CREATE, joins with USING): every text in quotes may be
            # one, if there is an array by that name.
            return sorted(name for name in set(quoted(query)) if name and self._is_array(name))

    def _is_array(self, name: str) -> bool:
        with contextlib.suppress(GridstoneError, OSError, ValueError):
            return self._arrays.opened(name) is not None
        return False

    def run(self, statement: str, params: Any) -> Any:
        """The relation of a statement, which is not computed yet; None if it gives no rows."""
        try:
            return self.apart(lambda: self.con.sql(statement, params=params))
        except self.duckdb.CatalogException as error:
            self._look_for_missing(statement, str(error))
            raise self.error_of(error) from error
        except BaseException as error:
            raise self.error_of(error) from error

    def _look_for_missing(self, statement: str, message: str) -> None:
        """Says what is wrong with the name of an array that a statement names and DuckDB does not know.

        Raises:
            NotFoundError: there is no such array, path or version.
        """
        for name in quoted(statement):
            if f"Table with name {name} does not exist" in message and not is_file(name):
                self._arrays.opened(name)

    def apart(self, work: Callable[[], _Made]) -> _Made:
        """What DuckDB gives; Ctrl-C ends it at once."""
        return beside(work, self.con.interrupt)

    def stats(self) -> dict[str, int]:
        """Counters of all scans together."""
        total: dict[str, int] = {}
        for _, scanned in list(self.scans):
            for name, count in scanned.stats.items():
                total[name] = total.get(name, 0) + count
        return total

    def end(self) -> None:
        """Ends whatever still runs, and a connection that does not last."""
        if not self._lasting:
            self.close()
            return
        with contextlib.suppress(Exception):
            self.con.interrupt()

    def close(self) -> None:
        """Ends whatever still runs, and the connection."""
        with contextlib.suppress(Exception):
            self.con.interrupt()
        with contextlib.suppress(Exception):
            self.con.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def error_of(self, error: BaseException) -> BaseException:
        """The error of this package that an error of DuckDB is."""
        for dataset in self.datasets.values():
            if dataset._cells.error is not None:
                return dataset._cells.error
        for stream in self._streams:
            if stream.error is not None:
                return stream.error
        if isinstance(error, GridstoneError | KeyboardInterrupt | MemoryError):
            return error
        text = message_of(error)
        if "KeyboardInterrupt" in str(error) or isinstance(error, self.duckdb.InterruptException):
            return KeyboardInterrupt()
        if isinstance(error, self.duckdb.OutOfMemoryException):
            return BudgetError(f"the query needs more memory than the context's budget: {text}")
        if isinstance(error, self.duckdb.IOException):
            missing = "No files found" in text or "No such file" in text
            return NotFoundError(text) if missing else StorageError(text)
        if isinstance(error, self.duckdb.Error):
            return InputError(text)
        if isinstance(error, OSError):
            return KeyboardInterrupt() if "INTERRUPT" in text.upper() else InputError(text)
        return error


def is_file(name: str) -> bool:
    """Whether a name means a file that DuckDB reads itself; a folder by such a name may be a store."""
    return name.lower().endswith(FILES) and not os.path.isdir(name)


def _table_of(name: str, columns: Mapping[Any, Any]) -> Any:
    """A mapping of columns as an Arrow table."""
    arrow = needed("pyarrow", "sql", "gs.sql()")
    try:
        if columns:
            return arrow.table(dict(columns))
    except (arrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"table {name!r}: its columns are no table: {error}") from error
    raise InputError(f"table {name!r} is a mapping without columns; give it one at least")


def all_tables(tables: Mapping[str, Any] | None, frames: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of `tables=` and of keywords."""
    if tables is not None and not isinstance(tables, Mapping):
        raise InputError(
            f"tables= takes a dict of tables by name, tables={{'name': …}}, found {brief(tables)} of type "
            f"{type(tables).__name__}"
        )
    both = sorted(set(tables or {}) & set(frames))
    if both:
        raise InputError(f"table {both[0]!r} is given twice: in tables= and as a keyword")
    return {**(tables or {}), **frames}
