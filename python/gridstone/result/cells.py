"""`Result`: the cells of one read as columns, or as boxes of a dense array."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import drawer, html
from ..base.arguments import among
from ..base.printable import brief, printable
from ..column import columns, datatype, decode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import BudgetError, InputError, MissingColumnError, UnsupportedError
from ..query.box import Box
from ..query.grid import Grid
from ..schema.array_schema import Schema
from ..schema.fields import column_of, empty_of
from . import interop, labelled, nat
from .damage import Skipped
from .selection import Selection, placed, shape_of

if TYPE_CHECKING:
    import pyarrow as pa

    from .. import _native


_TEXT_SHOWN = 40
"""Characters of a value that are shown of a result."""


class Result(interop.Tabular, interop.Drawn):
    """The cells of one read.

    A read of a sparse array, of points, or with a condition gives a list of cells: each column has length n. In a dense
    box each attribute has the box's shape (`order="global"`: one flat vector in global order). `result[name]` is one
    column as NumPy; in a dense box a dimension's name gives the coordinates along that dimension.

    Positions of a sparse array, as `a[rows]` and `a.oindex[rows, cols]` choose them, give a list of cells too, each
    once. `to_scipy`, `to_sparse` and `to_dense` know what was chosen: their sides are these positions, in the order
    asked for, repeated ones repeated.
    """

    __slots__ = (
        *("_box", "_budget", "_chosen", "_columns", "_count", "_damage", "_names", "_order", "_schema", "_shape"),
        *("_source", "_stats"),
    )

    def __init__(
        self,
        schema: Schema,
        box: Box,
        names: Sequence[str],
        order: str,
        found: Mapping[str, Column],
        stats: Mapping[str, int],
        budget: int,
        *,
        listed: bool = False,
        chosen: Selection | None = None,
    ) -> None:
        self._schema, self._box, self._names, self._order = schema, box, tuple(names), order
        self._columns, self._stats, self._budget = dict(found), dict(stats), budget
        self._shape = None if schema.sparse or listed else box.kept if isinstance(box, Grid) else box.shape
        self._source: labelled.Source | None = None
        self._damage: tuple[Skipped, ...] = ()
        self._chosen = chosen
        first = next(iter(self._columns.values()))
        self._count = len(first)

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of `to_arrow()`."""
        return labelled.arrow_schema(self)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the box that a dense array was read over; None for a list of cells."""
        return self._shape

    @property
    def stats(self) -> dict[str, int]:
        """Counters of this read: fragments, tiles and blocks considered and read, bytes fetched, cells returned."""
        return dict(self._stats)

    @property
    def damage(self) -> tuple[Skipped, ...]:
        """What `read(damaged="skip")` left out: fragment, tile, attribute, cells, box and reason of each part."""
        return self._damage

    @property
    def nbytes(self) -> int:
        """Bytes that the columns hold."""
        return sum(column.nbytes for column in self._columns.values())

    def __len__(self) -> int:
        return self._count

    def _column(self, name: str) -> Column:
        """A column as it was read."""
        return self._columns[name]

    def keys(self) -> list[str]:
        """The names of the columns that `to_numpy()` gives."""
        return list(self._columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> AnyArray:
        if among(name, self._columns):
            return decode.numpy_of(self._columns[name])
        for axis, dim in enumerate(self._schema.dims):
            if among(name, (dim.name,)) and self._shape is not None:
                return self._box.coordinates(axis)
        raise MissingColumnError(
            f"the result has no column {brief(name)}; there are {', '.join(map(repr, self._columns))}"
        )

    def to_numpy(self) -> dict[str, AnyArray]:
        """One array per column: coordinates (of a sparse array, or with a condition) and attributes.

        Datetimes keep their unit; strings and bytes are object arrays; columns with nulls are masked arrays.
        """
        return {name: decode.numpy_of(column) for name, column in self._columns.items()}

    def to_arrow(self) -> "pa.Table":
        """One row per cell: coordinates, then attributes; values are not copied (see `Schema.to_arrow` for types). The
        column of a dimension with labels has these.

        NaT is null in Arrow. A nullable attribute that holds NaT loses it, with a `NatWarning`.
        """
        import pyarrow as pa

        found = dict(self._columns)
        if self._shape is not None:
            found = {**self._coordinate_columns(), **found}
        for axis, dim in enumerate(self._schema.dims):
            labels = labelled.labels_along(self, axis)
            if labels is not None:
                spread = labels if self._shape is None else self._spread(axis, labels)
                found[dim.name] = labelled.label_column(dim.name, spread)
        return pa.Table.from_arrays(nat.arrays_of(self._schema, found, nat.WARN), schema=self.schema)

    @property
    def labels(self) -> dict[str, AnyArray]:
        """The labels of the dimensions that have some, of a dense array: along the box, or one per cell of a list."""
        found = {dim.name: labelled.labels_along(self, axis) for axis, dim in enumerate(self._schema.dims)}
        return {name: values for name, values in found.items() if values is not None}

    def to_xarray(self) -> Any:
        """A dense box as xarray has it: a DataArray of one attribute, a Dataset of several.

        Labels are coordinates; a dimension without labels has its own. `attrs` are the metadata: of a Dataset the
        array's, of its variables and coordinates those of attributes and dimensions; of a DataArray the array's and the
        attribute's together. Numbers that are null are NaN, times NaT. A result of a transaction is shown so while that
        goes on.

        Raises:
            UnsupportedError: xarray is missing, or this is a list of cells.
        """
        return labelled.to_xarray(self)

    def to_scipy(self, attr: str | None = None, *, format: str | None = None, repeats: str = "last") -> Any:
        """One attribute of two dimensions as a sparse array of SciPy: `a[rows].to_scipy(format="csr")`.

        The matrix of `a[rows]`, `a[rows, cols]` or `a.oindex[rows, cols]` has the shape (len(rows), len(cols)), where
        an integer counts as a list of one. Rows and columns come in the order asked for, repeated ones repeated. The
        positions of other results count from the low corner of the box. A dense box gives the values that are not zero,
        so that `.toarray()` is what `to_dense()` gives.

        Args:
            attr: the attribute; None: the only one.
            format: "csr", "csc" or "coo"; None: "csr" of a dense box, "coo" of cells (of a sparse array, or points).
            repeats: of several cells at one place, take the "last" one written (as `to_dense` does) or the "first",
                their "sum", or raise an "error".

        Raises:
            UnsupportedError: SciPy is missing, the box has not two dimensions, or the type is text or time.
            InputError: several attributes and none chosen, or a null.
            SchemaError: a dimension is float.
        """
        return interop.to_scipy(self, attr, repeats, format)

    def to_sparse(self, attr: str | None = None, *, repeats: str = "last") -> Any:
        """One attribute of a box as a `COO` array of pydata/sparse, of any number of dimensions. What is not stored
        is the attribute's fill. Shape, arguments and errors as in `to_scipy`.
        """
        return interop.to_sparse(self, attr, repeats)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """The one attribute of a dense box."""
        return np.array(self._only("numpy.asarray"), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """The one attribute of a dense box for libraries of tensors, without a copy: `torch.from_dlpack(result)`."""
        return self._only("DLPack").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, place = self._only("DLPack").__dlpack_device__()
        return int(kind), int(place)

    def _only(self, what: str) -> AnyArray:
        """The values of the one attribute of a dense box, none of them null."""
        if self._shape is None:
            raise UnsupportedError(
                f"{what} needs the shape of a dense box, and this is a list of cells; make arrays with to_numpy() or "
                f"to_dense(), a data frame with to_pandas()"
            )
        name = interop.only_attribute(self, what)
        values = self._dense_column(name)
        if np.ma.isMaskedArray(values):
            raise UnsupportedError(f"{what} has no nulls, attribute {name!r} has; take to_dense() and fill them")
        return values

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_dense(self, fill: Any = None) -> AnyArray | dict[str, AnyArray]:
        """The attributes as arrays over the box (that around all, of a list), or over the positions that brackets chose
        of a sparse array, as in `to_scipy`: one array, or a dict of several.

        Args:
            fill: the value of cells that are empty; None: the attribute's own fill, masked if it is nullable.
                Where several cells lie at one place, the one written last is shown.

        Raises:
            BudgetError: the box is larger than the context's memory budget.
            SchemaError: a dimension is float or string.
        """
        if not self._names:
            raise InputError("to_dense() shows attributes, and none was read; leave out attrs=[]")
        if self._shape is not None:
            made = {name: self._dense_column(name) for name in self._names}
        else:
            shape = self._sides
            width = sum(datatype.cell_bytes(self._schema.attr(name).dtype) for name in self._names)
            need = int(np.prod(np.array(shape, object))) * width
            if need > self._budget:
                raise BudgetError(
                    f"a dense array of shape {shape} takes {need:,} bytes, the memory budget is {self._budget:,}; "
                    f"read a smaller box or fewer attributes, or give the context more memory"
                )
            place, cells = self._places()
            made = {name: self._scatter(name, shape, place, cells, fill) for name in self._names}
        return next(iter(made.values())) if len(made) == 1 else made

    def _dense_column(self, name: str) -> AnyArray:
        values = decode.numpy_of(self._columns[name])
        if self._order not in ("global", "any"):
            return values
        made = np.ma.empty(values.shape, values.dtype) if np.ma.isMaskedArray(values) else np.empty_like(values)
        made[self._global_places()] = values
        return made.reshape(self._box.shape + values.shape[1:])

    def in_place(self) -> dict[str, AnyArray]:
        """As `to_numpy`, but of a dense box each attribute in its shape, whatever the order it was read in."""
        if self._shape is None:
            return self.to_numpy()
        return {name: self._dense_column(name) for name in self._names}

    def _positions(self) -> tuple[AnyArray, ...]:
        """The position in the box of each cell, an array per dimension."""
        return tuple([self._position_along(axis) for axis in range(self._schema.ndim)])

    def _position_along(self, axis: int) -> AnyArray:
        """The position in the box of each cell along one dimension."""
        low = np.int64(_wrapped(int(self._box.bounds[axis][0])))
        values = self._columns[self._schema.dims[axis].name].values
        ticks: AnyArray = values.view(np.int64) if values.dtype.kind in "mM" else values.astype(np.int64, copy=False)
        return ticks - low

    @property
    def _sides(self) -> tuple[int, ...]:
        """The shape of a matrix or array of the cells: of what was chosen, or of the box."""
        return shape_of(self._chosen, self._box.shape) if self._shape is None else self._shape

    def _places(self) -> "tuple[AnyArray, AnyArray | slice]":
        """Row-major positions of the cells in an array of these sides, and which cell lies at each."""
        places, cells = placed(self._chosen, self._positions())
        place = np.zeros(places[0].size, np.int64)
        for side, along in zip(self._sides, places, strict=True):
            place = place * side + along
        return place, cells

    def _scatter(
        self, name: str, shape: tuple[int, ...], place: AnyArray, cells: "AnyArray | slice", fill: Any
    ) -> AnyArray:
        attr, column = self._schema.attr(name), self._columns[name]
        empty = attr.fill if fill is None else datatype.scalar(attr.dtype, fill, f"attribute {name!r}: the fill")
        made = np.empty(math.prod(shape), datatype.cell_of(attr.dtype))
        made[...] = decode.one_cell(attr.dtype, empty)
        made[place] = decode.cells_of(column)[cells]
        if not attr.nullable:
            return decode.shown(made.reshape(shape), None)
        mask = np.full(made.size, fill is None)
        mask[place] = False if column.validity is None else ~column.validity[cells]
        return decode.shown(made.reshape(shape), mask.reshape(shape))

    @property
    def _memory(self) -> Any:
        return "F" if self._order == "col" else "C"

    def _coordinate_columns(self) -> dict[str, Column]:
        """The coordinates of every cell of a dense result, in the order of its cells."""
        dims = enumerate(self._schema.dims)
        return {dim.name: Column(dim.dtype, self._spread(axis, self._box.coordinates(axis))) for axis, dim in dims}

    def _spread(self, axis: int, values: AnyArray) -> AnyArray:
        """Values along one dimension of a dense result, for every cell in the order of its cells."""
        shape = self._box.shape
        along = [1] * len(shape)
        along[axis] = shape[axis]
        made = np.broadcast_to(np.ma.getdata(values).reshape(along), shape).ravel(order=self._memory)
        if np.ma.isMaskedArray(values):
            mask = np.broadcast_to(np.ma.getmaskarray(values).reshape(along), shape).ravel(order=self._memory)
            made = np.ma.MaskedArray(made, mask=mask)
        return made[self._global_places()] if self._order in ("global", "any") else made

    def _global_places(self) -> AnyArray:
        """The row-major position in the box of each cell in global order."""
        shape, schema = self._box.shape, self._schema
        tiles: list[AnyArray] = []
        cells: list[AnyArray] = []
        for axis, dim in enumerate(schema.dims):
            along = [1] * len(shape)
            along[axis] = shape[axis]
            starts = dim._tile_starts(int(self._box.bounds[axis][0]), shape[axis])
            tile = np.repeat(np.arange(len(starts)), np.diff(starts, append=shape[axis]))
            tiles.append(np.broadcast_to(tile.reshape(along), shape).ravel())
            cells.append(np.broadcast_to(np.arange(shape[axis]).reshape(along), shape).ravel())
        # lexsort takes its last key first: cells decide within tiles, slow dimensions before fast ones.
        cells = cells[::-1] if schema.cell_order == "row" else cells
        tiles = tiles[::-1] if schema.tile_order == "row" else tiles
        return np.lexsort((*cells, *tiles))

    def __repr__(self) -> str:
        what = f"box {self._shape}" if self._shape is not None else f"{self._count:,} cells"
        lines = [f"<gridstone.Result: {what}, {self.nbytes:,} bytes>"]
        for name, column in self._columns.items():
            kind = column.dtype if column.categories is None else column.categories.dtype
            lines.append(f"  {name}: {kind} [{preview(decode.numpy_of(column))}]")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(name, values.dtype, values.shape, preview(values)) for name, values in self.to_numpy().items()]
        columns_of = html.table(("column", "type", "shape", "values"), rows)
        return (
            f"<div><b>gridstone.Result</b> {len(self):,} cells{html.beside(columns_of, drawer.thumbnail(self))}</div>"
        )


def preview(values: AnyArray) -> str:
    """The first and last values on one line, without what acts on a terminal; of long texts the beginning."""
    flat = values.ravel()
    shown = [*flat[:3], ..., *flat[-3:]] if flat.size > 6 else list(flat)
    return " ".join("null" if v is np.ma.masked else "…" if v is ... else _short(str(v)) for v in shown)


def _short(text: str) -> str:
    shown = printable(text[: _TEXT_SHOWN + 1])
    return shown if len(shown) <= _TEXT_SHOWN else f"{shown[: _TEXT_SHOWN - 1]}…"


def _wrapped(value: int) -> int:
    """`value` as a signed 64-bit number with the same bits."""
    return (value + 2**63) % 2**64 - 2**63


def from_cells(
    schema: Schema, box: Box, names: Sequence[str], order: str, cells: "_native.Cells", budget: int
) -> Result:
    """The result of one native read."""
    found = {name: columns.from_native(schema.dim(name).dtype, column) for name, column in cells.dims.items()}
    given = cells.attrs
    for name in names:
        column = column_of(schema.attr(name), given[name])
        if cells.shape is not None and order in ("row", "col"):
            # The core's array of no dimension has an axis.
            column = column.shaped(tuple(cells.shape)[: schema.ndim], order)
        found[name] = column
    if not schema.sparse:
        found = {name: found[name] for name in names}
    return Result(schema, box, names, order, found, cells.stats, budget)


def of_nothing(schema: Schema, box: Box, names: Sequence[str], order: str, budget: int) -> Result:
    """The result of reading an empty box."""
    shape = (0,) if schema.sparse or order in ("global", "any") else box.shape
    found = {} if not schema.sparse else {dim.name: columns.empty(dim.dtype, (0,), False) for dim in schema.dims}
    for name in names:
        found[name] = empty_of(schema.attr(name), shape)
    return Result(schema, box, names, order, found, {}, budget)


def of_selected(
    schema: Schema,
    box: Box,
    names: Sequence[str],
    order: str,
    cells: "_native.Cells | None",
    budget: int,
    chosen: Selection | None = None,
) -> Result:
    """The cells of a box that a condition or a choice of positions selects, with their coordinates; none where nothing
    was read."""
    if cells is None:
        found = {dim.name: columns.empty(dim.dtype, (0,), False) for dim in schema.dims}
        for attr in map(schema.attr, names):
            found[attr.name] = empty_of(attr, (0,))
        return Result(schema, box, names, order, found, {}, budget, listed=True)
    found = {name: columns.from_native(schema.dim(name).dtype, column) for name, column in cells.dims.items()}
    given = cells.attrs
    found |= {name: column_of(schema.attr(name), given[name]) for name in names}
    return Result(schema, box, names, order, found, cells.stats, budget, listed=True, chosen=chosen)
