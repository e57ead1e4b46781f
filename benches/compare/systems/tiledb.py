"""TileDB, through TileDB-Py. Dense arrays take no single cells any more, so those lie in a sparse array beside them."""

from pathlib import Path
from typing import Any

import numpy as np

from disk import sync_tree
from inputs import CELLS_DOMAIN, CELLS_TILE, TABLE_MAX, TABLE_TILE, Array, Box, Columns, Shape, Spans
from systems.base import CellsHandle, CellsSystem, CsvSystem, DenseHandle, DenseSystem, System

_ZSTD = 3


class _TileDb(System):
    family, module = "tiledb", "tiledb"
    durability = (
        "TileDB fsyncs the files it writes, never their directories: those are fsynced after loads and updates, and "
        'after commits with "full"'
    )
    settings = (
        "sm.compute_concurrency_level and sm.io_concurrency_level: the threads; one Ctx per process (it caches no "
        "data); dense: slices, a reused buffer by Query.set_data_buffer, points by one read of the box around them (it "
        "has no list of points); sparse: duplicates allowed, capacity 10,000, zstd-3, order U, "
        "consolidated and vacuumed before reads, except where fragments are what is measured"
    )

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import tiledb

        levels = {f"sm.{kind}_concurrency_level": str(threads) for kind in ("compute", "io")}
        self.context: Any = tiledb.Ctx({**levels, "sm.consolidation.total_buffer_size": str(1 << 30)})

    def dim(self, name: str, high: int, tile: int | None, dtype: Any = np.int64, filters: Any = ()) -> Any:
        """A dimension from 0."""
        import tiledb

        return tiledb.Dim(name=name, domain=(0, high), tile=tile, dtype=dtype, filters=list(filters), ctx=self.context)

    def make(self, folder: Path, dims: list[Any], attrs: list[Any], **layout: Any) -> None:
        """Creates an array."""
        import tiledb

        domain = tiledb.Domain(*dims, ctx=self.context)
        schema = tiledb.ArraySchema(domain, attrs=attrs, ctx=self.context, **layout)
        tiledb.Array.create(str(folder), schema, ctx=self.context)

    def opened(self, folder: Path, mode: str = "r") -> Any:
        """An open array."""
        import tiledb

        return tiledb.open(str(folder), mode, ctx=self.context)


class Dense(_TileDb, DenseSystem):
    """A dense array and, beside it, a sparse one for single cells."""

    def create(self, folder: Path, shape: Shape, tile: Shape) -> None:
        import tiledb

        made = {
            "none": [],
            "zstd:3": [tiledb.ZstdFilter(_ZSTD)],
            "shuffle + zstd:3": [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(_ZSTD)],
            "gzip:6": [tiledb.GzipFilter(6)],
        }[self.variant]
        folder.mkdir()
        dims = [self.dim(name, n - 1, t) for name, n, t in zip("ij", shape, tile, strict=True)]
        value = tiledb.Attr(name="value", dtype=np.int32, filters=made, ctx=self.context)
        self.make(folder / "dense", dims, [value])

    def write(self, folder: Path, box: Box, values: Array) -> None:
        with self.opened(folder / "dense", "w") as array:
            array[box] = values

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        if writable and not (folder / "cells").exists():
            self._make_cells(folder)
        return _Dense(self, folder, writable, durable)

    def _make_cells(self, folder: Path) -> None:
        import tiledb

        with self.opened(folder / "dense") as array:
            found = [array.schema.domain.dim(i) for i in range(2)]
            dims = [self.dim(d.name, int(d.domain[1]), int(d.tile)) for d in found]
        value = tiledb.Attr(name="value", dtype=np.int32, ctx=self.context)
        self.make(folder / "cells", dims, [value], sparse=True)

    def merge(self, folder: Path) -> None:
        import tiledb

        tiledb.consolidate(str(folder / "cells"), ctx=self.context)
        tiledb.vacuum(str(folder / "cells"), ctx=self.context)
        sync_tree(folder / "cells")


class _Dense(DenseHandle):
    def __init__(self, system: Dense, folder: Path, writable: bool, durable: bool) -> None:
        self.system, self.folder, self.durable = system, folder, durable
        cells = folder / "cells"
        self.array: Any = None if writable else system.opened(folder / "dense")
        self.cells: Any = system.opened(cells, "w" if writable else "r") if cells.exists() else None

    def read(self, box: Box) -> Array:
        found: Array = self.array.query(attrs=["value"])[box]["value"]
        return found if self.cells is None else self._overlaid(box, found)

    def _overlaid(self, box: Box, found: Array) -> Array:
        """The newest single cells win over the dense array."""
        rows, cols = box
        cells = self.cells.query(dims=["i", "j"], order="U")[rows, cols]
        found[cells["i"] - rows.start, cells["j"] - cols.start] = cells["value"]
        return found

    def read_into(self, box: Box, out: Array) -> None:
        import tiledb
        import tiledb.libtiledb as native

        query = tiledb.Query(self.array, ctx=self.system.context)
        subarray = tiledb.Subarray(self.array, ctx=self.system.context)
        for axis, part in enumerate(box):
            subarray.add_dim_range(axis, (part.start, part.stop - 1))
        query.layout = native.LayoutType.ROW_MAJOR
        query.set_subarray(subarray)
        query.set_data_buffer("value", out.reshape(-1), out.size)
        query._submit()

    def points(self, rows: Array, cols: Array) -> Array:
        r0, c0 = int(rows.min()), int(cols.min())
        return self.read((slice(r0, int(rows.max()) + 1), slice(c0, int(cols.max()) + 1)))[rows - r0, cols - c0]

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.cells[rows, cols] = {"value": values}
        if self.durable:
            sync_tree(self.folder / "cells")

    def close(self) -> None:
        for array in (self.array, self.cells):
            if array is not None:
                array.close()


class Cells(_TileDb, CellsSystem):
    """A sparse array that allows duplicates; `variant`: "row" order within space tiles, or "hilbert"; with "gathered",
    the metadata of many fragments is consolidated, but not their cells.
    """

    def load(self, folder: Path, batches: list[Columns]) -> None:
        import tiledb

        hilbert, packed = self.variant == "hilbert", [tiledb.ZstdFilter(_ZSTD)]
        dims = [self.dim(n, high, None if hilbert else CELLS_TILE, filters=packed)
                for n, high in zip("xy", CELLS_DOMAIN, strict=True)]  # fmt: skip
        names = [name for name in batches[0] if name not in ("x", "y")]
        attrs = [tiledb.Attr(name=n, dtype=np.int64, filters=packed, ctx=self.context) for n in names]
        order = "hilbert" if hilbert else "row-major"
        self.make(folder, dims, attrs, sparse=True, allows_duplicates=True, cell_order=order, capacity=10_000)
        handle = _Cells(self, folder, writable=True, durable=False)
        for batch in batches:
            handle.commit(batch)
        handle.close()
        self.finish(folder)

    def settle(self, folder: Path) -> None:
        import tiledb

        tiledb.consolidate(str(folder), ctx=self.context)
        tiledb.vacuum(str(folder), ctx=self.context)

    def merge(self, folder: Path) -> None:
        self.settle(folder)
        sync_tree(folder)

    def gather(self, folder: Path) -> None:
        import tiledb

        if self.variant.endswith("gathered"):
            for mode in ("fragment_meta", "commits"):
                modes = {f"sm.{step}.mode": mode for step in ("consolidation", "vacuum")}
                tiledb.consolidate(str(folder), ctx=self.context, config=tiledb.Config(modes))
                tiledb.vacuum(str(folder), ctx=self.context, config=tiledb.Config(modes))

    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> "_Cells":
        return _Cells(self, folder, writable=writable, durable=durable)


class _Cells(CellsHandle):
    def __init__(self, system: Cells, folder: Path, *, writable: bool, durable: bool) -> None:
        self.folder, self.durable = folder, durable
        self.array = system.opened(folder, "w" if writable else "r")

    def read(self, box: Spans | None) -> Columns:
        query = self.array.query(dims=["x", "y"], order="U")
        if box is None:
            return dict(query[:])
        (x0, x1), (y0, y1) = box
        return dict(query[x0 : x1 + 1, y0 : y1 + 1])

    def select(self, box: Spans, name: str, above: int) -> Columns:
        query = self.array.query(attrs=[name], dims=["x", "y"], cond=f"{name} > {above}", order="U")
        (x0, x1), (y0, y1) = box
        return dict(query[x0 : x1 + 1, y0 : y1 + 1])

    def commit(self, cells: Columns) -> None:
        values = {name: column for name, column in cells.items() if name not in ("x", "y")}
        self.array[cells["x"], cells["y"]] = values
        if self.durable:
            sync_tree(self.folder)

    def close(self) -> None:
        self.array.close()


class Csv(_TileDb, CsvSystem):
    """Read by pyarrow.csv, which is quicker than the pandas of tiledb.from_csv, then one sorted write."""

    def load(self, folder: Path, csv: Path) -> None:
        import pyarrow as pa
        import pyarrow.csv
        import tiledb

        types = {"x": pa.int32(), "y": pa.int32(), "a": pa.int32(), "b": pa.float64()}
        pa.set_cpu_count(self.threads)
        table = pyarrow.csv.read_csv(csv, convert_options=pyarrow.csv.ConvertOptions(column_types=types))
        packed = [tiledb.ZstdFilter(_ZSTD)]
        dims = [self.dim(name, TABLE_MAX, TABLE_TILE, np.int32, packed) for name in "xy"]
        kinds = {"a": np.int32, "b": np.float64}
        attrs = [tiledb.Attr(name=n, dtype=kind, filters=packed, ctx=self.context) for n, kind in kinds.items()]
        self.make(folder, dims, attrs, sparse=True, allows_duplicates=True, capacity=10_000)
        columns = {name: table[name].to_numpy() for name in types}
        with self.opened(folder, "w") as array:
            array[columns["x"], columns["y"]] = {name: columns[name] for name in kinds}
        self.finish(folder)

    def everything(self, folder: Path) -> Columns:
        with self.opened(folder) as array:
            return dict(array.query(dims=["x", "y"], order="U")[:])
