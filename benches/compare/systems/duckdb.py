"""DuckDB: its own database file, and Parquet files that it writes and queries."""

from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from disk import sync, sync_tree
from inputs import CELLS_TILE, TABLE_TILE, Columns, Layout, Spans
from systems.base import (
    CellsHandle,
    CellsSystem,
    CsvSystem,
    System,
    TableHandle,
    TableSystem,
    threads_started,
)

_BATCH, _MANY = 122_880, 100_000
"""Rows per batch of Arrow, and from how many rows on two threads take the columns. The candidates were fetchnumpy (of a
statement, of a relation) and Arrow (tables, streams, C streams; columns joined one by one or at once). The quickest
were fetchnumpy of a statement at 1,000 rows, and a relation's Arrow table from 10,000 on.
"""

_ROW_GROUP = 20_480
"""Rows per row group of Parquet: a sixth of DuckDB's default, which makes small boxes quicker."""


class _DuckDb(System):
    family, module = "duckdb", "duckdb"
    durability = (
        "checkpoint and close, then fsync of file and directory, after loads; commits fsync DuckDB's write-ahead log "
        "whether asked or not"
    )
    settings = (
        "threads: the threads; results by fetchnumpy, quickest for few rows, or by to_arrow_table and to_numpy of each "
        f"column, from {_MANY:,} rows on by two threads (Arrow), quickest for more; sorted: ORDER BY tile of x, of y, "
        "then x, y (zone maps then prune); preserve_insertion_order off, but for sorted loads"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import duckdb

        duckdb.connect().close()
        self.pool = threads_started(2)

    def connect(self, path: Path | None = None, **config: Any) -> Any:
        """A connection with its own instance, so nothing read earlier is cached."""
        import duckdb

        settings = {"threads": self.threads, **config}
        return duckdb.connect(":memory:" if path is None else str(path), config=settings)


def _sorted_by(tile: int) -> str:
    return f"ORDER BY x // {tile}, y // {tile}, x, y"


def select(engine: Any, source: str, box: Spans | None, pool: Executor | None) -> Columns:
    """All columns of the rows in a box."""
    return _fetched(engine, f"SELECT * FROM {source} {_within(box)}", pool)


def _within(box: Spans | None) -> str:
    if box is None:
        return ""
    (x0, x1), (y0, y1) = box
    return f"WHERE x BETWEEN {x0} AND {x1} AND y BETWEEN {y0} AND {y1}"


def _selected(engine: Any, box: Spans, name: str, above: int, pool: Executor | None) -> Columns:
    return _fetched(engine, f"SELECT x, y, {name} FROM cells {_within(box)} AND {name} > {above}", pool)


def _fetched(engine: Any, query: str, pool: Executor | None) -> Columns:
    """By way of Arrow, its columns taken by these threads; without threads by `fetchnumpy`."""
    if pool is not None:
        return _taken(engine.sql(query).to_arrow_table(_BATCH), pool)
    found: Columns = engine.execute(query).fetchnumpy()
    return found


def _taken(table: Any, pool: Executor) -> Columns:
    """The columns, each joined from its batches."""
    take = map if table.num_rows < _MANY else pool.map
    return dict(zip(table.column_names, take(lambda name: table[name].to_numpy(), table.column_names), strict=True))


class Cells(_DuckDb, CellsSystem):
    """One table in a database file; `variant`: "sorted" (staged in memory, then sorted) or "unsorted", and "Arrow"."""

    def load(self, folder: Path, batches: list[Columns]) -> None:
        folder.mkdir()
        in_order = self.variant.startswith("sorted")
        engine = self.connect(folder / "a.db", preserve_insertion_order=in_order)
        declared = ", ".join(f"{name} BIGINT" for name in batches[0])
        staged = "CREATE TEMP TABLE staged" if in_order else "CREATE TABLE cells"
        engine.execute(f"{staged} ({declared})")
        for batch in batches:
            engine.register("batch", batch)
            engine.execute(f"INSERT INTO {staged.rpartition(' ')[2]} SELECT * FROM batch")
            engine.unregister("batch")
        if in_order:
            engine.execute(f"CREATE TABLE cells AS SELECT * FROM staged {_sorted_by(CELLS_TILE)}")
        engine.execute("CHECKPOINT")
        engine.close()
        self.finish(folder)

    def pile(self, folder: Path, batches: list[Columns]) -> None:
        """The rows as they come, all of them in the write-ahead log still."""
        folder.mkdir()
        engine = self.connect(folder / "a.db", wal_autocheckpoint="1TB")
        engine.execute("PRAGMA disable_checkpoint_on_shutdown")
        engine.execute(f"CREATE TABLE cells ({', '.join(f'{name} BIGINT' for name in batches[0])})")
        for batch in batches:
            engine.register("batch", batch)
            engine.execute("INSERT INTO cells SELECT * FROM batch")
            engine.unregister("batch")
        engine.close()
        self.finish(folder)

    def merge(self, folder: Path) -> None:
        """By way of another table, since a table cannot be sorted in place; a checkpoint alone orders nothing."""
        engine = self.connect(folder / "a.db", preserve_insertion_order=True)
        engine.execute(f"CREATE TABLE sorted AS SELECT * FROM cells {_sorted_by(CELLS_TILE)}")
        engine.execute("DROP TABLE cells")
        engine.execute("ALTER TABLE sorted RENAME TO cells")
        engine.execute("CHECKPOINT")
        engine.close()
        self.finish(folder)

    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> "_Cells":
        mode = "READ_WRITE" if writable else "READ_ONLY"
        engine = self.connect(folder / "a.db", access_mode=mode, preserve_insertion_order=False)
        return _Cells(engine, self.pool if self.variant.endswith("Arrow") else None)


class _Cells(CellsHandle):
    def __init__(self, engine: Any, pool: Executor | None) -> None:
        self.engine, self.pool = engine, pool
        engine.execute("SELECT * FROM cells LIMIT 0").fetchall()

    def read(self, box: Spans | None) -> Columns:
        return select(self.engine, "cells", box, self.pool)

    def select(self, box: Spans, name: str, above: int) -> Columns:
        return _selected(self.engine, box, name, above, self.pool)

    def commit(self, cells: Columns) -> None:
        self.engine.register("batch", cells)
        self.engine.execute("INSERT INTO cells SELECT * FROM batch")
        self.engine.unregister("batch")

    def close(self) -> None:
        self.engine.close()


class Parquet(_DuckDb, CellsSystem):
    """One sorted Parquet file, and one more for each commit."""

    family = "parquet"
    durability = "fsync of the new file and of its directory; a reader may see a file before it is whole"
    settings = (
        f"sorted by tile, then x, y; zstd; row groups of {_ROW_GROUP:,}; parquet_metadata_cache on, results by "
        "to_arrow_table, its columns taken as DuckDB's; preserve_insertion_order off for reads; the engine is made "
        "before the clock starts"
    )

    def load(self, folder: Path, batches: list[Columns]) -> None:
        folder.mkdir()
        engine = self.connect()
        for i, batch in enumerate(batches):
            engine.register("batch", batch)
            verb = "INSERT INTO staged" if i else "CREATE TABLE staged AS"
            engine.execute(f"{verb} SELECT * FROM batch")
            engine.unregister("batch")
        _copy(engine, f"SELECT * FROM staged {_sorted_by(CELLS_TILE)}", folder / "load.parquet")
        engine.close()
        self.finish(folder)

    def merge(self, folder: Path) -> None:
        """A new sorted file of all rows, then the others go; whoever reads meanwhile sees them twice."""
        old = list(folder.iterdir())
        engine = self.connect()
        _copy(engine, f"SELECT * FROM {_files(folder)} {_sorted_by(CELLS_TILE)}", folder / "merged.parquet")
        engine.close()
        for path in old:
            path.unlink()
        self.finish(folder)

    def renew(self) -> Any:
        engine = self.connect(preserve_insertion_order=False)
        engine.execute("SET parquet_metadata_cache = true")
        return engine

    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> "_Files":
        return _Files(folder, prepared, durable, self.pool)

    def look_up(self, folder: Path, prepared: Any, box: Spans) -> Columns:
        """One statement over the files; making a view first would cost a second one."""
        return select(prepared, _files(folder), box, self.pool)


def _files(folder: Path) -> str:
    return f"read_parquet('{folder}/*.parquet')"


def _copy(engine: Any, query: str, path: Path) -> None:
    engine.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP})")


class _Files(CellsHandle):
    """A view of the files, their footers read."""

    def __init__(self, folder: Path, engine: Any, durable: bool, pool: Executor) -> None:
        self.folder, self.engine, self.durable, self.pool = folder, engine, durable, pool
        engine.execute(f"CREATE OR REPLACE VIEW cells AS SELECT * FROM {_files(folder)}")
        engine.execute("SELECT * FROM cells LIMIT 0").fetchall()

    def read(self, box: Spans | None) -> Columns:
        return select(self.engine, "cells", box, self.pool)

    def select(self, box: Spans, name: str, above: int) -> Columns:
        return _selected(self.engine, box, name, above, self.pool)

    def commit(self, cells: Columns) -> None:
        path = self.folder / f"part{sum(1 for _ in self.folder.iterdir())}.parquet"
        self.engine.register("batch", cells)
        _copy(self.engine, f"SELECT * FROM batch {_sorted_by(CELLS_TILE)}", path)
        self.engine.unregister("batch")
        if self.durable:
            sync(path)
            sync(self.folder)

    def close(self) -> None:
        self.engine.close()


class Table(_DuckDb, TableSystem):
    """One table in a database file; `variant`: "unsorted", as the cells come, or "sorted" by tiles."""

    def load(self, folder: Path, cells: Columns, layout: Layout) -> None:
        folder.mkdir()
        in_order = self.variant == "sorted"
        engine = self.connect(folder / "a.db", preserve_insertion_order=in_order)
        engine.register("given", cells)
        engine.execute(f"CREATE TABLE cells AS SELECT * FROM given {_sorted_by(layout.tile) if in_order else ''}")
        engine.unregister("given")
        engine.execute("CHECKPOINT")
        engine.close()
        self.finish(folder)

    def open(self, folder: Path, prepared: Any) -> "_Table":
        engine = self.connect(folder / "a.db", access_mode="READ_ONLY", preserve_insertion_order=False)
        return _Table(engine, self.pool)


class _Table(TableHandle):
    def __init__(self, engine: Any, pool: Executor) -> None:
        self.engine, self.pool = engine, pool
        engine.execute("SELECT * FROM cells LIMIT 0").fetchall()

    def ask(self, question: Any) -> Columns:
        many = len(question.by) > 1 or None in question.by.values()
        return _fetched(self.engine, question.sql, self.pool if many else None)

    def select(self, name: str, above: float) -> Columns:
        return _fetched(self.engine, f"SELECT x, y, {name} FROM cells WHERE {name} > {above}", self.pool)

    def close(self) -> None:
        self.engine.close()


_CSV_TYPES = "{'x': 'INTEGER', 'y': 'INTEGER', 'a': 'INTEGER', 'b': 'DOUBLE'}"


class Csv(_DuckDb, CsvSystem):
    """read_csv with the types given; `variant`: "unsorted", "sorted" or "sorted Parquet"."""

    def load(self, folder: Path, csv: Path) -> None:
        folder.mkdir()
        source = f"SELECT * FROM read_csv('{csv}', header = true, columns = {_CSV_TYPES})"
        if self.variant == "sorted Parquet":
            engine = self.connect()
            _copy(engine, f"{source} {_sorted_by(TABLE_TILE)}", folder / "a.parquet")
        else:
            keep = self.variant == "sorted"
            engine = self.connect(folder / "a.db", preserve_insertion_order=keep)
            engine.execute(f"CREATE TABLE cells AS {source} {_sorted_by(TABLE_TILE) if keep else ''}")
            engine.execute("CHECKPOINT")
        engine.close()
        sync_tree(folder)

    def everything(self, folder: Path) -> Columns:
        stored = self.variant != "sorted Parquet"
        engine = self.connect(folder / "a.db") if stored else self.connect()
        found = select(engine, "cells" if stored else _files(folder), None, self.pool)
        engine.close()
        return {name: np.asarray(column) for name, column in found.items()}
