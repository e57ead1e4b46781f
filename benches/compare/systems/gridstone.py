"""This project. Every opening has a context of its own, so nothing read earlier is cached; its threads have started."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inputs import CELLS_DOMAIN, CELLS_TILE, TABLE_MAX, TABLE_TILE, Array, Box, Columns, Layout, Shape, Spans
from systems.base import (
    CellsHandle,
    CellsSystem,
    CsvSystem,
    CubeHandle,
    CubeSystem,
    DatasetSystem,
    DenseHandle,
    DenseSystem,
    System,
    TableHandle,
    TableSystem,
)
from weather import VARIABLE

_WARM = "mem://bench-warm"


class _Gridstone(System):
    family, role, module = "gridstone", "gridstone", "gridstone"
    durability = (
        '"full": the fragment and its folder are fsynced, then one atomic commit, fsynced; "close": only the record is'
    )
    settings = (
        "Context(threads=…), all else default; a new context for each opening, its threads started by a read of "
        "another array, in memory"
    )

    reads: Mapping[str, Any] = {}
    """What else a context is given, so that it may read what it must."""

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import gridstone as gs

        if not self.bare:
            gs.array(_WARM, np.zeros((1024, 1024), np.int32), tile=(256, 256)).close()
        self.writing = self.context(durable=True)

    @property
    def filters(self) -> str | list[str]:
        """What the variant begins with: the filters."""
        first = self.variant.partition(",")[0]
        return first.split(" + ") if " + " in first else first

    @property
    def flags(self) -> list[str]:
        """What else it says: "one write" (the batches go in together), "hilbert" (the order of the cells), "all",
        "tiered" (merges), "budget N MiB".
        """
        return self.variant.split(", ")[1:]

    @property
    def kept_as(self) -> str:
        stays = [part for part in self.variant.split(", ") if part not in ("all", "tiered") and "budget" not in part]
        return f"{self.family}, {', '.join(stays)}"

    def merged(self, folder: Path, strategy: str) -> None:
        """Merges by a strategy, unless the variant names another."""
        import gridstone as gs

        named = [flag for flag in self.flags if flag in ("all", "tiered")]
        with gs.open(folder, mode="r+", context=self.writing) as array:
            array.consolidate(named[0] if named else strategy)

    def renew(self) -> Any:
        """A durable context, with running threads and no data of any store."""
        return self.context(durable=True)

    def context(self, *, durable: bool) -> Any:
        """A context with running threads and no data of any store."""
        import gridstone as gs

        budgets = [flag.removeprefix("budget ") for flag in self.flags if flag.startswith("budget ")]
        settings = {"memory_budget": budgets[0].replace(" ", "")} if budgets else {}
        settings |= self.reads
        made = gs.Context(threads=self.threads, durability="full" if durable else "close", **settings)
        if not self.bare:
            with gs.open(_WARM, context=made) as array:
                _ = array[...]
        return made

    def opened(self, folder: Path, prepared: Any, *, writable: bool, durable: bool) -> Any:
        """An open array."""
        import gridstone as gs

        context = prepared if durable and prepared is not None else self.context(durable=durable)
        return gs.open(folder, mode="r+" if writable else "r", context=context)


class Dense(_Gridstone, DenseSystem):
    """A dense array, `variant` beginning with the filters of its attribute."""

    def create(self, folder: Path, shape: Shape, tile: Shape) -> None:
        import gridstone as gs

        dims = [gs.Dim(name, (0, n - 1), t) for name, n, t in zip("ij", shape, tile, strict=True)]
        gs.create(
            folder, gs.Schema(dims, [gs.Attr("value", "int32", filters=self.filters)]), context=self.writing
        ).close()

    def merge(self, folder: Path) -> None:
        self.merged(folder, "tiered")

    def write(self, folder: Path, box: Box, values: Array) -> None:
        import gridstone as gs

        with gs.open(folder, mode="r+", context=self.writing) as array:
            array[box] = values

    def load(self, folder: Path, values: Array, tile: Shape) -> None:
        import gridstone as gs

        gs.array(folder, values, tile=tile, filters=self.filters, context=self.writing).close()

    def open(self, folder: Path, prepared: Any = None, *, writable: bool = False, durable: bool = True) -> "_Dense":
        return _Dense(self.opened(folder, prepared, writable=writable, durable=durable))


class _Dense(DenseHandle):
    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, box: Box) -> Array:
        found: Array = self.array[box]
        return found

    def read_into(self, box: Box, out: Array) -> None:
        self.array.read(box, out=out)

    def points(self, rows: Array, cols: Array) -> Array:
        found: Array = self.array.vindex[rows, cols]
        return found

    def update(self, rows: Array, cols: Array, values: Array) -> None:
        self.array.write_cells((rows, cols), values)

    def close(self) -> None:
        self.array.close()


class Cells(_Gridstone, CellsSystem):
    """A sparse array that allows duplicates; `variant`: filters, and flags."""

    def load(self, folder: Path, batches: list[Columns]) -> None:
        import gridstone as gs

        filters = self.filters
        hilbert = "hilbert" in self.flags
        tile = None if hilbert else CELLS_TILE  # space tiles would break the curve
        dims = [gs.Dim(name, (0, n), tile) for name, n in zip("xy", CELLS_DOMAIN, strict=True)]
        attrs = [gs.Attr(name, "int64", filters=filters) for name in batches[0] if name not in ("x", "y")]
        order = "hilbert" if hilbert else "row"
        schema = gs.Schema(dims, attrs, sparse=True, duplicates=True, cell_order=order, coord_filters=filters)
        if "one write" in self.flags:
            batches = [{name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}]
        with gs.create(folder, schema, context=self.writing) as array:
            for batch in batches:
                array.write_cells(*_split(batch))

    def merge(self, folder: Path) -> None:
        self.merged(folder, "all")

    def open(self, folder: Path, prepared: Any, *, writable: bool = False, durable: bool = True) -> "_Cells":
        return _Cells(self.opened(folder, prepared, writable=writable, durable=durable))


class _Cells(CellsHandle):
    def __init__(self, array: Any) -> None:
        self.array = array

    def read(self, box: Spans | None) -> Columns:
        where = None if box is None else {"x": box[0], "y": box[1]}
        found: Columns = self.array.read(where, order="any").to_numpy()
        return found

    def select(self, box: Spans, name: str, above: int) -> Columns:
        where = f"{name} > {above}"
        found: Columns = self.array.read({"x": box[0], "y": box[1]}, name, where, order="any").to_numpy()
        return found

    def commit(self, cells: Columns) -> None:
        self.array.write_cells(*_split(cells))

    def close(self) -> None:
        self.array.close()


def _split(cells: Columns) -> tuple[Columns, Columns]:
    dims = {name: cells[name] for name in "xy"}
    return dims, {name: column for name, column in cells.items() if name not in dims}


class Table(_Gridstone, TableSystem):
    """A sparse array that allows duplicates; `variant`: filters, and "SQL", asked through `gridstone.sql`."""

    @property
    def kept_as(self) -> str:
        return f"{self.family}, {self.variant.partition(',')[0]}"

    def load(self, folder: Path, cells: Columns, layout: Layout) -> None:
        import gridstone as gs

        dims = [gs.Dim(name, (0, n), layout.tile, layout.dtype) for name, n in zip("xy", layout.domain, strict=True)]
        names = [name for name in cells if name not in ("x", "y")]
        attrs = [gs.Attr(name, cells[name].dtype.name, filters=self.filters) for name in names]
        schema = gs.Schema(dims, attrs, sparse=True, duplicates=True, coord_filters=self.filters)
        with gs.create(folder, schema, context=self.writing) as array:
            array.write_cells(*_split(cells))

    def open(self, folder: Path, prepared: Any) -> "_Table":
        return _Table(self.opened(folder, prepared, writable=False, durable=True), "SQL" in self.flags)


class _Table(TableHandle):
    def __init__(self, array: Any, in_sql: bool) -> None:
        self.array, self.in_sql = array, in_sql

    def ask(self, question: Any) -> Columns:
        import gridstone as gs

        if self.in_sql:
            found: Columns = gs.sql(question.sql, tables={"cells": self.array}, context=self.array.context).to_numpy()
            return found
        asked = {n: "count(*)" if call == "count" else f"{call}({of})" for n, (call, of) in question.aggregates.items()}
        by = [name if width is None else {name: width} for name, width in question.by.items()]
        box = None if question.box is None else dict(zip("xy", question.box, strict=True))
        found = self.array.aggregate(asked, by, box, order="any").to_numpy()
        return found

    def select(self, name: str, above: float) -> Columns:
        found: Columns = self.array.read(attrs=name, where=f"{name} > {above}", order="any").to_numpy()
        return found

    def close(self) -> None:
        self.array.close()


class Cube(_Gridstone, CubeSystem):
    """A dense array; `variant`: filters."""

    def load(self, folder: Path, cube: Array, tile: tuple[int, int, int]) -> None:
        import gridstone as gs

        gs.array(folder, cube, tile=tile, filters=self.filters, context=self.writing).close()

    def open(self, folder: Path, prepared: Any) -> "_Cube":
        return _Cube(self.opened(folder, prepared, writable=False, durable=True))


class _Cube(CubeHandle):
    def __init__(self, array: Any) -> None:
        self.array = array

    def mean(self, axes: tuple[int, ...]) -> Array:
        found: Array = self.array.mean(axis=axes)
        return found

    def close(self) -> None:
        self.array.close()


class Dataset(_Gridstone, DatasetSystem):
    """A dataset of xarray; `variant`: filters, the layout of the tiles, and "reduce": means by the engine."""

    also = ("xarray", "dask")
    settings = _Gridstone.settings + "; to_gridstone, and open_dataset with engine gridstone; reduce: gs.xarray.reduce"

    def prepare(self, threads: int) -> None:
        super().prepare(threads)
        import xarray  # noqa: F401 -- its import is in no clock

        import gridstone as gs

        _ = gs.to_gridstone

    @property
    def reduces(self) -> bool:
        """Whether means are the engine's."""
        return "reduce" in self.flags

    @property
    def kept_as(self) -> str:
        return f"{self.family}, {self.coder}, {self.layout}"

    def write(self, dataset: Any, folder: Path, chunk: tuple[int, ...]) -> None:
        import gridstone as gs

        coded = {VARIABLE: {"chunks": chunk, "filters": self.filters}}
        gs.to_gridstone(dataset, folder, encoding=coded, context=self.writing)

    def append(self, dataset: Any, folder: Path, prepared: Any) -> None:
        import gridstone as gs

        gs.to_gridstone(dataset, folder, append_dim="time", context=prepared)

    def finish(self, folder: Path) -> None:
        """Each commit is durable as its context is."""

    def open(self, folder: Path, prepared: Any, chunks: Any = None) -> Any:
        import xarray as xr

        return xr.open_dataset(folder, engine="gridstone", chunks=chunks, context=prepared)

    def mean(self, variable: Any, dim: str) -> Any:
        import gridstone as gs

        return gs.xarray.reduce(variable, "mean", dim=dim)


class Csv(_Gridstone, CsvSystem):
    """gridstone.io.from_csv with the types given, as for the others; sorted into tiles."""

    def load(self, folder: Path, csv: Path) -> None:
        import gridstone as gs

        dims = [gs.Dim(name, (0, TABLE_MAX), TABLE_TILE, dtype="int32") for name in "xy"]
        attrs = [gs.Attr("a", "int32"), gs.Attr("b", "float64")]
        schema = gs.Schema(dims, attrs, sparse=True, duplicates=True)
        gs.io.from_csv(folder, csv, schema=schema, context=self.writing).close()

    def everything(self, folder: Path) -> Columns:
        import gridstone as gs

        with gs.open(folder) as array:
            found: Columns = array.read(order="any").to_numpy()
        return found
