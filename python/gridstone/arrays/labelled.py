"""The part of an array that knows dimensions by their labels."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _native
from ..base.arguments import checked, known, mapping
from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import GridstoneError, UnsupportedError
from ..indexing import chosen
from ..labels import along, index, lookup, spans
from ..labels.index import Index
from ..labels.lookup import Found
from ..query.axis import Axis
from ..query.grid import Grid
from ..result.cells import Result, from_cells, of_nothing
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from ..schema.fields import column_of
from ..schema.labels import Steps
from .dim import DimView
from .read import Readable
from .source import ArraySource

_BOXES_MAX = 4096


class Labelled(Readable):
    """The part of an array that knows dimensions by their labels."""

    _indexes: dict[int, tuple[int, Index]]

    @abstractmethod
    def _writable(self) -> "_native.Array": ...

    @abstractmethod
    def _check_dense(self, what: str) -> None: ...

    @abstractmethod
    def _read_positions(
        self, chosen: Sequence["_native._Chosen"], mask: "_native._Mask | None", names: Sequence[str]
    ) -> "_native.Cells": ...

    @checked()
    def dim(self, name: str) -> DimView:
        """One dimension: its name, type, domain, tile, labels and metadata: `a.dim("lat").meta["units"]`.

        Raises:
            SchemaError: there is none of this name; lists those that there are.
        """
        return DimView(self, name)

    @checked(labels=mapping)
    def sel(self, labels: Mapping[str, Any] | None = None, /, method: str | None = None, **more: Any) -> Result:
        """Reads what labels choose, or coordinates where a dimension has no labels, by the rules of xarray:
        `a.sel(time="2026-03", lat=slice(60, 30))`.

        A single label drops its dimension, a list keeps it. A slice is closed at both ends, which may come in either
        order; what it gives is in the order of the array. A written date or time is a period, if it is longer than what
        the labels tell apart: "2026-03" is all of a month among days.

        Args:
            labels: by the name of a dimension: a label, a list of them, or a slice.
            method: "nearest": single labels and those in lists are the nearest ones, the greater one of two.
            more: the same, by name.

        Raises:
            BoundsError: there is no such label; names the nearest. It is a `KeyError` too.
            InputError: a label stands at several positions, which a slice takes; a label of another type.
            SchemaError: there is no such dimension.
        """
        return self._selected({**(labels or {}), **more}, method, None)

    @checked()
    def to_xarray(self) -> Any:
        """The whole of a dense array: a DataArray of one attribute, a Dataset of several. See `Result.to_xarray`."""
        self._check_dense("to_xarray()")
        return self.read().to_xarray()

    def _selected(self, asked: Mapping[str, Any], method: str | None, attrs: str | None) -> Result:
        if method is not None:
            known("method", method, ("nearest",))

        def look(schema: Schema) -> Result:
            for name in asked:
                schema.dim(name)
            if schema.sparse:
                return self._boxes_of(schema, asked, method, attrs)
            try:
                found = [
                    lookup.positions_of(self._index(dim, axis), asked[dim.name], method) if dim.name in asked else None
                    for axis, dim in enumerate(schema.dims)
                ]
            except GridstoneError:
                self._note_ends()  # Labels that others add may be those that were asked for.
                raise
            if not all(part is None or part.is_exact for part in found):
                self._note_ends()
            return self._read_found(schema, found, self._names(attrs, schema))

        return self._retry_if_schema_moved(look)

    def _index(self, dim: Dim, axis: int) -> Index:
        """An index of the labels of a dense dimension; that of a list is kept while the handle shows its version."""
        native = self.native
        if not isinstance(dim._stored_labels, str) or native.in_transaction:
            return self._read_index(dim, axis)
        known, version = self._indexes.get(axis), native.version
        if known is None or known[0] != version or known[1].dim is not dim:
            known = self._indexes[axis] = (version, self._read_index(dim, axis))
        return known[1]

    def _read_index(self, dim: Dim, axis: int) -> Index:
        if isinstance(dim._stored_labels, Steps):
            return index.of_steps(dim, dim._stored_labels, along.offset_of(dim))
        found = along.read(self.native, dim, axis)
        return index.of_coordinates(dim) if found is None else index.of_list(dim, found)

    def _read_found(self, schema: Schema, found: Sequence[Found | None], names: list[str]) -> Result:
        """The cells at every combination of positions."""
        lists = [
            range(dim.size) if part is None else _run_of(part.positions)
            for dim, part in zip(schema.dims, found, strict=True)
        ]
        grid = _grid(schema, lists, tuple([part is not None and part.drop for part in found]))
        budget = self._context.memory_budget
        if 0 in grid.shape:
            made = of_nothing(schema, grid, names, "row", budget)
        elif all(isinstance(positions, range) for positions in lists):
            made = from_cells(schema, grid, names, "row", self.native.read(grid.bounds, names, "row", None), budget)
        else:
            cells = self._read_positions([_chosen(positions) for positions in lists], None, names)
            columns = {name: column_of(schema.attr(name), cells.attrs[name]) for name in names}
            made = Result(schema, grid, names, "row", columns, cells.stats, budget)
        made._columns = {name: column.shaped(grid.kept, "row") for name, column in made._columns.items()}
        made._source = ArraySource(self.native, schema)
        self._stats = made.stats
        return made

    def _boxes_of(self, schema: Schema, asked: Mapping[str, Any], method: str | None, attrs: str | None) -> Result:
        """The cells of a sparse array with these coordinates."""
        if method is not None:
            raise UnsupportedError("method= needs the positions of a dense array; a sparse one has coordinates")
        boxes: list[dict[str, Any]] = [{}]
        for name, part in asked.items():
            found = spans.spans_of(schema.dim(name), part)
            if found.is_cut:
                self._note_ends()
            boxes = [{**box, name: span} for box in boxes for span in found.spans]
            if len(boxes) > _BOXES_MAX:
                raise UnsupportedError(
                    f"these lists choose {len(boxes):,} boxes of a sparse array, at most {_BOXES_MAX:,} are read at "
                    f"once; use points(), or a condition: where="
                )
        return self.read(boxes[0] if len(boxes) == 1 else boxes, attrs)


def _run_of(positions: AnyArray) -> AnyArray | range:
    """Positions, as a range where they follow each other."""
    first, count = int(positions[0]) if positions.size else 0, positions.size
    return range(first, first + count) if np.array_equal(positions, np.arange(first, first + count)) else positions


def _chosen(positions: AnyArray | range) -> "_native._Chosen":
    """The positions as the core takes them."""
    if isinstance(positions, range):
        return chosen.strided(Axis(positions.start, len(positions), 1, False))
    return chosen.listed(positions.view(np.uint64))


def _grid(schema: Schema, lists: Sequence[AnyArray | range], drops: tuple[bool, ...]) -> Grid:
    bounds = []
    for dim, positions in zip(schema.dims, lists, strict=True):
        low = datatype.ticks_of(dim.reach[0])
        first, last = _ends_of(positions)
        bounds.append((low + first, low + last))
    return Grid(schema.dims, tuple(bounds), lists=tuple(lists), dropped=drops)


def _ends_of(positions: AnyArray | range) -> tuple[int, int]:
    """The lowest and the highest position, (0, -1) if there is none."""
    if len(positions) == 0:
        return 0, -1
    if isinstance(positions, range):
        return positions.start, positions.stop - 1
    return int(positions.min()), int(positions.max())
