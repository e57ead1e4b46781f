"""Where the cells of a matrix go: their offset in an array that is there, the layout of a new one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.arguments import is_listed, known
from ..base.printable import brief
from ..column import datatype
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from ..stores.transaction import transaction
from ..version.receipt import LoadKey

Offset = int | Sequence[int] | None
"""Coordinates of the first position of a matrix: of its rows, or one per dimension; None: 0, and nothing is there."""
Tile = str | int | Sequence[int | None] | None
"""Extents of space tiles: "auto", one for all sides, or one for each; None: the whole side."""

_PROBE_BYTES = "64KiB"


def offsets_of(offset: Offset, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An offset per dimension of a matrix of this shape."""
    if offset is None:
        return (0,) * len(shape)
    whole: Any = [offset] if isinstance(offset, int | np.integer) else offset
    listed = is_listed(whole)
    if not listed or not all(isinstance(at, int | np.integer) and not isinstance(at, bool) for at in whole):
        raise InputError(f"offset= is the number of the first row, or (row, col), not {brief(offset)}")
    if len(whole) not in (1, len(shape)):
        raise InputError(f"offset= has {len(whole)} numbers, the matrix {len(shape)} dimensions")
    made = tuple([int(at) for at in whole]) + (0,) * (len(shape) - len(whole))
    for at, side in zip(made, shape, strict=True):
        if not -(2**63) <= at <= 2**63 - side:
            raise InputError(f"offset={brief(offset)}: the coordinates from {at} on would not fit int64")
    return made


def check_rows_free(array: Array, rows: int, key: LoadKey | None) -> None:
    """An `InputError` if an array that is there has cells in its first rows, where a matrix without an offset goes."""
    dim = array._schema.dims[0]
    if dim.is_text:
        return  # No number is a coordinate there: the load says so.
    if key is not None:
        with transaction(array.uri, context=array.context, commit_key=key) as tx:
            base = tx.base_version
            tx.abort()
        if base < array.version:
            return  # The load was committed before: its own cells are there, and it writes nothing again.
    ends = _numbers(dim, dim.reach)
    low, high = max(0, ends[0]), min(rows - 1, ends[1])
    if low > high or not _holds_cells(array, dim, low, high):
        return
    raise InputError(
        f"the array {array.path!r} of {array.uri!r} has cells in {dim.name} 0 to {rows - 1}, where this matrix would "
        f"go: give offset=, the {dim.name} of its first row, such as the number of rows that are loaded; offset=0 "
        f"writes over cells that are there, overwrite=True replaces the array"
    )


def _numbers(dim: Dim, ends: Sequence[Any]) -> tuple[Any, Any]:
    """The ends of coordinates as the numbers of a matrix: of times, ticks."""
    low, high = ends if datatype.is_float(dim.dtype) else map(datatype.ticks_of, ends)
    return low, high


def _holds_cells(array: Array, dim: Dim, low: Any, high: Any) -> bool:
    """Whether anything was written to these rows."""
    if array.sparse:
        found = array.scan({dim.name: (low, high)}, [], batch_bytes=_PROBE_BYTES)
        held = any(batch.num_rows for batch in found)
        found.close()
        return held
    written = array.nonempty_domain
    if written is None:
        return False
    first, last = _numbers(dim, written[0])
    return bool(first <= high and low <= last)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the cells of a new array lie."""

    tile: Tile
    by: str | None
    sparse: bool

    @classmethod
    def of(cls, tile: Tile, by: str | None, sparse: bool) -> "Layout":
        """A layout; an `InputError` if there is none such."""
        if by is not None:
            known("by", by, ("rows", "cols", "boxes"))
            if not sparse:
                raise InputError("by= is for sparse arrays; the cells of a dense one lie as tile= says")
        if isinstance(tile, str):
            known("tile", tile, ("auto",))
        return cls(tile, by, sparse)

    def check_unused(self) -> None:
        """An `InputError` if a layout was asked for where a schema has one."""
        if self.by is not None or not isinstance(self.tile, str):
            raise InputError(
                "tile= and by= are for new arrays without schema=; an array that is there, or a schema, has its own"
            )

    def of_schema(self, schema: Schema) -> Schema:
        """The schema in this layout, in place of square tiles."""
        extents = self._extents(schema)
        if extents is None:
            return schema
        dims = [Dim(dim.name, dim.domain, extent, dim.dtype) for dim, extent in zip(schema.dims, extents, strict=True)]
        order = "col" if self.by == "cols" else "row"
        if not schema.sparse:
            return Schema(dims, schema.attrs)
        return Schema(
            dims,
            schema.attrs,
            sparse=True,
            capacity=schema.capacity,
            duplicates=schema.duplicates,
            tile_order=order,
            cell_order=order,
        )

    def _extents(self, schema: Schema) -> list[int | None] | None:
        """Those asked for, None where a tile takes the whole side; None: those of the schema."""
        sides = schema.shape
        if isinstance(self.tile, str):
            return None if self.by == "boxes" or not self.sparse else [None] * len(sides)
        one = self.tile is None or isinstance(self.tile, int | np.integer)
        given: Any = [self.tile] * len(sides) if one else self.tile
        if not is_listed(given) or len(given) != len(sides):
            raise InputError(
                f"tile= has an extent for each of {len(sides)} sides, or one for all, not {brief(self.tile)}"
            )
        if not all(n is None or (isinstance(n, int | np.integer) and n > 0) for n in given):
            raise InputError(f"tile= has extents of 1 and more, or None for a whole side, not {brief(self.tile)}")
        return [None if n is None else min(int(n), side) for n, side in zip(given, sides, strict=True)]
