"""The systems that store points: cells of a sparse array, or rows of a Parquet file sorted the same way."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from disk import sync, sync_tree
from inputs import DOMAIN, GRID, Columns, Span

Box = tuple[Span, Span]

_ROW_GROUP = 20_480
"""Rows per row group: a sixth of DuckDB's default, which makes small boxes quicker."""


class Handle(Protocol):
    """An open set of points."""

    def read(self, box: Box | None) -> Columns:
        """All columns of the points in a box, in any order; None: of all points."""

    def commit(self, points: Columns) -> None:
        """Adds points; durable when it returns."""

    def close(self) -> None:
        """Lets go of the files."""


class System(Protocol):
    """A way to store points."""

    name: str
    role: str
    module: str
    durability: str

    def load(self, folder: Path, points: Columns) -> None:
        """Writes all points into a folder that does not exist yet; durable when it returns."""

    def prepare(self) -> Any:
        """What opening needs that belongs to the process and holds no data of a store: threads, an engine."""

    def open(self, folder: Path, prepared: Any, *, writable: bool = False) -> Handle:
        """Opens them, the index or footer read, with no data cached from earlier."""

    def look_up(self, folder: Path, prepared: Any, box: Box) -> Columns:
        """Opens, reads one box and closes, in the way that is quickest for it."""


class _Opened:
    """A look-up that is nothing but its three steps."""

    def open(self, folder: Path, prepared: Any, *, writable: bool = False) -> Handle:
        raise NotImplementedError

    def look_up(self, folder: Path, prepared: Any, box: Box) -> Columns:
        handle = self.open(folder, prepared)
        found = handle.read(box)
        handle.close()
        return found


class Gridstone(_Opened):
    """This project: a sparse array that allows duplicates."""

    name, role, module = "gridstone", "gridstone", "gridstone"
    durability = 'durability="full": files and directories are fsynced, then one atomic commit'

    def load(self, folder: Path, points: Columns) -> None:
        import gridstone as gs

        dims = [gs.Dim(name, (0, n - 1), GRID) for name, n in zip("xy", DOMAIN, strict=True)]
        attrs = [gs.Attr(name, points[name].dtype) for name in ("time", "mmsi", "sog")]
        with gs.create(folder, gs.Schema(dims, attrs, sparse=True, duplicates=True)) as array:
            array.write_cells(*_split(points))

    def prepare(self) -> Any:
        import gridstone as gs

        context = gs.Context()
        _ = context.threads  # makes the native context, which is lazy
        return context

    def open(self, folder: Path, prepared: Any, *, writable: bool = False) -> "GridstoneHandle":
        import gridstone as gs

        return GridstoneHandle(gs.open(folder, mode="r+" if writable else "r", context=prepared))


class GridstoneHandle:
    """An open Gridstone array."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, box: Box | None) -> Columns:
        where = None if box is None else {"x": box[0], "y": box[1]}
        found: Columns = self.array.read(where, order="any").to_numpy()
        return found

    def commit(self, points: Columns) -> None:
        self.array.write_cells(*_split(points))

    def close(self) -> None:
        self.array.close()


def _split(points: Columns) -> tuple[Columns, Columns]:
    dims = {name: points[name] for name in "xy"}
    return dims, {name: column for name, column in points.items() if name not in dims}


class _Parquet(_Opened):
    """A folder of Parquet files: the sorted load, and one file more for each commit."""

    role = "peer"
    durability = "fsync of the new file and of its directory; a reader may see a file before it is whole"

    def prepare(self) -> Any:
        return None


class DuckDb(_Parquet):
    """DuckDB: sorts and writes one Parquet file, and queries it."""

    name, module = "Parquet by DuckDB", "duckdb"

    def __init__(self) -> None:
        self._engine: Any = None

    def load(self, folder: Path, points: Columns) -> None:
        import pyarrow as pa

        self._engine = self._engine or self.prepare()
        folder.mkdir()
        self._engine.register("points", pa.table(points))
        self._engine.execute(
            f"COPY (SELECT * FROM points ORDER BY x // {GRID}, y // {GRID}, x, y) TO '{folder}/load.parquet' "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP})"
        )
        self._engine.unregister("points")
        sync_tree(folder)

    def prepare(self) -> Any:
        import duckdb

        engine = duckdb.connect()
        engine.execute("SET parquet_metadata_cache = true")
        return engine

    def open(self, folder: Path, prepared: Any, *, writable: bool = False) -> "DuckDbHandle":
        return DuckDbHandle(folder, prepared)

    def look_up(self, folder: Path, prepared: Any, box: Box) -> Columns:
        """One statement over the files; making a view first would cost a second one."""
        return _select(prepared, _files(folder), box)


class DuckDbHandle:
    """A view of the files, their footers read."""

    def __init__(self, folder: Path, engine: Any) -> None:
        self.engine = engine
        engine.execute(f"CREATE OR REPLACE VIEW points AS SELECT * FROM {_files(folder)}")
        engine.execute("SELECT * FROM points LIMIT 0").fetchall()

    def read(self, box: Box | None) -> Columns:
        return _select(self.engine, "points", box)

    def commit(self, points: Columns) -> None:
        raise NotImplementedError("commits to Parquet are measured through pyarrow")

    def close(self) -> None:
        self.engine.close()


def _files(folder: Path) -> str:
    return f"read_parquet('{folder}/*.parquet')"


def _select(engine: Any, source: str, box: Box | None) -> Columns:
    where = ""
    if box is not None:
        (x0, x1), (y0, y1) = box
        where = f"WHERE x BETWEEN {x0} AND {x1} AND y BETWEEN {y0} AND {y1}"
    found: Columns = engine.execute(f"SELECT * FROM {source} {where}").fetchnumpy()
    return found


class PyArrow(_Parquet):
    """pyarrow: sorts with NumPy, writes one Parquet file, and filters it as a dataset."""

    name, module = "Parquet by pyarrow", "pyarrow"

    def load(self, folder: Path, points: Columns) -> None:
        folder.mkdir()
        _write_sorted(folder / "load.parquet", points)
        sync_tree(folder)

    def open(self, folder: Path, prepared: Any, *, writable: bool = False) -> "PyArrowHandle":
        return PyArrowHandle(folder)


class PyArrowHandle:
    """A dataset of the files, their footers read."""

    def __init__(self, folder: Path) -> None:
        import pyarrow.dataset as ds

        self.folder, self.dataset = folder, ds.dataset(folder, format="parquet")
        for fragment in self.dataset.get_fragments():
            fragment.ensure_complete_metadata()

    def read(self, box: Box | None) -> Columns:
        import pyarrow.dataset as ds

        where = None
        if box is not None:
            (x0, x1), (y0, y1) = box
            x, y = ds.field("x"), ds.field("y")
            where = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
        table = self.dataset.to_table(filter=where)
        return {name: table[name].to_numpy() for name in table.column_names}

    def commit(self, points: Columns) -> None:
        path = self.folder / f"part{sum(1 for _ in self.folder.iterdir())}.parquet"
        _write_sorted(path, points)
        sync(path)
        sync(self.folder)

    def close(self) -> None:
        pass


def _write_sorted(path: Path, points: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    x, y = points["x"], points["y"]
    order = np.lexsort((y, x, y // GRID, x // GRID))
    table = pa.table({name: column[order] for name, column in points.items()})
    pq.write_table(table, path, compression="zstd", row_group_size=_ROW_GROUP)


class Raw(_Opened):
    """The columns one after the other in flat files, unsorted: what the machine can write."""

    name, role, module = "raw columns", "limit", "numpy"
    durability = "fsync of the new file and of its directory"

    def load(self, folder: Path, points: Columns) -> None:
        folder.mkdir()
        _write_flat(folder / "load.raw", points)
        sync_tree(folder)

    def prepare(self) -> Any:
        return None

    def open(self, folder: Path, prepared: Any, *, writable: bool = False) -> "RawHandle":
        return RawHandle(folder)


class RawHandle:
    """The folder of flat files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, box: Box | None) -> Columns:
        """All points, to check them; a flat file has no boxes."""
        parts = [_read_flat(path) for path in sorted(self.folder.iterdir())]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def commit(self, points: Columns) -> None:
        path = self.folder / f"part{sum(1 for _ in self.folder.iterdir())}.raw"
        _write_flat(path, points)
        sync(path)
        sync(self.folder)

    def close(self) -> None:
        pass


_FLAT = {"x": "i8", "y": "i8", "time": "i8", "mmsi": "i4", "sog": "f4"}


def _write_flat(path: Path, points: Columns) -> None:
    with path.open("wb") as file:
        for name in _FLAT:
            points[name].tofile(file)


def _read_flat(path: Path) -> Columns:
    count = path.stat().st_size // sum(np.dtype(kind).itemsize for kind in _FLAT.values())
    with path.open("rb") as file:
        return {name: np.fromfile(file, kind, count) for name, kind in _FLAT.items()}


GRIDSTONE, DUCKDB, PYARROW, RAW = Gridstone(), DuckDb(), PyArrow(), Raw()
