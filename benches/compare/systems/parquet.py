"""Parquet through pyarrow and through polars: a folder of a sorted load, and one file more for each commit."""

from pathlib import Path
from typing import Any

import numpy as np

from disk import sync
from inputs import CELLS_TILE, TABLE_TILE, Columns, Spans
from systems.base import CellsHandle, CellsSystem, CsvSystem, System

_ROW_GROUP = 20_480


class _Parquet(System):
    family = "parquet"
    durability = "fsync of the new file and of its directory; a reader may see a file before it is whole"
    settings = f"sorted by tile, then x, y; zstd; row groups of {_ROW_GROUP:,}"


class PyArrow(_Parquet, CellsSystem):
    """pyarrow: sorts with NumPy, writes one file, filters it as a dataset whose footers are read when opened."""

    module = "pyarrow"
    settings = _Parquet.settings + "; dataset.to_table(filter=…); set_cpu_count and set_io_thread_count: the threads"

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import pyarrow as pa
        import pyarrow.dataset
        import pyarrow.parquet

        pa.set_cpu_count(threads)
        pa.set_io_thread_count(threads)

    def load(self, folder: Path, batches: list[Columns]) -> None:
        folder.mkdir()
        _write_sorted(folder / "load.parquet", {n: np.concatenate([b[n] for b in batches]) for n in batches[0]})
        self.finish(folder)

    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> "_Dataset":
        return _Dataset(folder, durable)


class _Dataset(CellsHandle):
    def __init__(self, folder: Path, durable: bool) -> None:
        import pyarrow.dataset as ds

        self.folder, self.durable, self.dataset = folder, durable, ds.dataset(folder, format="parquet")
        for fragment in self.dataset.get_fragments():
            fragment.ensure_complete_metadata()

    def read(self, box: Spans | None) -> Columns:
        table = self.dataset.to_table(filter=None if box is None else self.within(box))
        return {name: table[name].to_numpy() for name in table.column_names}

    def select(self, box: Spans, name: str, above: int) -> Columns:
        import pyarrow.dataset as ds

        table = self.dataset.to_table(["x", "y", name], filter=self.within(box) & (ds.field(name) > above))
        return {name: table[name].to_numpy() for name in table.column_names}

    def within(self, box: Spans) -> Any:
        """The filter that a box is."""
        import pyarrow.dataset as ds

        (x0, x1), (y0, y1) = box
        x, y = ds.field("x"), ds.field("y")
        return (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)

    def commit(self, cells: Columns) -> None:
        path = self.folder / f"part{sum(1 for _ in self.folder.iterdir())}.parquet"
        _write_sorted(path, cells)
        if self.durable:
            sync(path)
            sync(self.folder)

    def close(self) -> None:
        """A dataset holds no files open."""


def _write_sorted(path: Path, cells: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    x, y = cells["x"], cells["y"]
    order = np.lexsort((y, x, y // CELLS_TILE, x // CELLS_TILE))
    table = pa.table({name: column[order] for name, column in cells.items()})
    pq.write_table(table, path, compression="zstd", row_group_size=_ROW_GROUP)


class Polars(_Parquet, CellsSystem):
    """polars: sorts and writes one file, scans and filters it."""

    module = "polars"
    settings = _Parquet.settings + "; scan_parquet(…).filter(…).collect(); POLARS_MAX_THREADS: the threads"

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import polars as pl

        pl.DataFrame({"x": [1]}).lazy().filter(pl.col("x") > 0).collect()

    def load(self, folder: Path, batches: list[Columns]) -> None:
        import polars as pl

        folder.mkdir()
        _write(pl.concat([pl.DataFrame(batch) for batch in batches]), folder / "load.parquet", CELLS_TILE)
        self.finish(folder)

    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> "_Scan":
        return _Scan(folder)


class _Scan(CellsHandle):
    def __init__(self, folder: Path) -> None:
        import polars as pl

        self.frame = pl.scan_parquet(folder / "*.parquet")

    def read(self, box: Spans | None) -> Columns:
        import polars as pl

        frame = self.frame
        if box is not None:
            (x0, x1), (y0, y1) = box
            frame = frame.filter(pl.col("x").is_between(x0, x1) & pl.col("y").is_between(y0, y1))
        return {column.name: column.to_numpy() for column in frame.collect().get_columns()}

    def select(self, box: Spans, name: str, above: int) -> Columns:
        import polars as pl

        (x0, x1), (y0, y1) = box
        inside = pl.col("x").is_between(x0, x1) & pl.col("y").is_between(y0, y1)
        frame = self.frame.filter(inside & (pl.col(name) > above)).select("x", "y", name)
        return {column.name: column.to_numpy() for column in frame.collect().get_columns()}

    def close(self) -> None:
        """A scan holds no files open."""


def _write(frame: Any, path: Path, tile: int) -> None:
    import polars as pl

    x, y = pl.col("x"), pl.col("y")
    frame.sort(x // tile, y // tile, x, y).write_parquet(path, compression="zstd", row_group_size=_ROW_GROUP)


class Csv(_Parquet, CsvSystem):
    """polars: read_csv with the types given, sorted, one Parquet file."""

    module = "polars"
    settings = Polars.settings

    def load(self, folder: Path, csv: Path) -> None:
        import polars as pl

        folder.mkdir()
        types = {"x": pl.Int32, "y": pl.Int32, "a": pl.Int32, "b": pl.Float64}
        _write(pl.read_csv(csv, schema=types), folder / "a.parquet", TABLE_TILE)
        self.finish(folder)

    def everything(self, folder: Path) -> Columns:
        import polars as pl

        return {column.name: column.to_numpy() for column in pl.read_parquet(folder / "a.parquet").get_columns()}
