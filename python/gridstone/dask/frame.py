"""Sparse arrays as frames of Dask: partitions are boxes, columns and filters reach the array."""

from collections.abc import Sequence
from typing import Any

from ..arrays.array import Array
from ..base.arguments import checked, several, text
from ..base.extras import needed
from ..base.printable import brief
from ..column import datatype
from ..context.settings import size_bytes
from ..errors import InputError, MissingColumnError, UnsupportedError
from ..query.condition import Where, condition_of
from ..schema.array_schema import Schema
from . import partition
from .cells import Cells, Parts, empty_of
from .place import place_of

_VAR_BYTES = 64
"""What a value of variable length takes in a frame, about."""


@checked(columns=several, index=text)
def frame(
    a: Array,
    columns: Sequence[str] | str | None = None,
    where: Where | None = None,
    index: str | None = None,
    *,
    blocksize: int | str = "64MiB",
) -> Any:
    """The cells of a sparse array as a `dask.dataframe.DataFrame`, at the version which the handle shows now.

        ships = gs.dask.frame(gs.open("ais.gs"), where="sog > 20")
        ships[ships.lon > 8].groupby("mmsi").sog.max().compute()

    A row is a cell: its coordinates, then its attributes. Columns that are not used are not read. Filters of the frame
    become conditions of the array where they mean the same, and then rule out tiles; others stay with pandas.

    Args:
        a: a sparse array.
        columns: dimensions and attributes, in this order; None: all.
        where: a condition on dimensions and attributes, as for `Array.read`.
        index: a dimension to be the index. Partitions are cut at edges of its space tiles and sorted by it, and Dask
            knows their divisions. None: each partition counts its rows from 0, and is in global order.
        blocksize: bytes of a partition in memory, about. They are boxes of whole space tiles where these are smaller.

    Raises:
        InputError: an unknown column, an index that is no dimension, or a condition that does not fit.
        UnsupportedError: the array is dense (`gridstone.dask.array` reads it) or in a transaction, or dask is missing.
    """
    needed("dask.dataframe", "dask", "gridstone.dask.frame")
    if not isinstance(a, Array):
        raise InputError(f"gridstone.dask.frame takes an array that gridstone.open gives, found {brief(a)}")
    if not a.sparse:
        raise UnsupportedError(
            "gridstone.dask.frame takes sparse arrays; gridstone.dask.array(a) has the cells of a dense one"
        )
    place = place_of(a, "gridstone.dask.frame")
    pinned = place.reader()
    schema = pinned._schema
    names = _columns(schema, columns, index)
    condition = None if where is None else condition_of(where)
    if condition is not None:
        condition.check(schema.to_json())
    rows = max(1, size_bytes(blocksize, "blocksize") // _row_bytes(schema, names))
    boxes, divisions = _partitions(pinned, index, rows)
    like = empty_of(pinned, names, index)
    return _collection(Cells(place, index), boxes, divisions, like, None if condition is None else condition.to_json())


def _columns(schema: Schema, columns: Sequence[str] | str | None, index: str | None) -> list[str]:
    """The columns of the frame; the index is none of them."""
    dims = [dim.name for dim in schema.dims]
    there = [*dims, *(attr.name for attr in schema.attrs)]
    if index is not None and index not in dims:
        raise InputError(f"index= is a dimension, one of {', '.join(map(repr, dims))}, not {brief(index)}")
    given = there if columns is None else [columns] if isinstance(columns, str) else list(columns)
    for name in given:
        if name not in there:
            known = ", ".join(map(repr, there))
            raise MissingColumnError(f"the array has no column {brief(name)}; there are {known}")
    if len(set(given)) < len(given):
        raise InputError(f"columns= names a column twice: {brief(given)}")
    return [name for name in given if name != index]


def _row_bytes(schema: Schema, names: Sequence[str]) -> int:
    kinds = [dim.dtype for dim in schema.dims if dim.name in names]
    kinds += [attr.dtype for attr in schema.attrs if attr.name in names]
    return sum(_VAR_BYTES if datatype.is_var(kind) else datatype.cell_bytes(kind) for kind in kinds) + 8


def _partitions(a: Array, index: str | None, rows: int) -> tuple[list[Parts], tuple[Any, ...]]:
    """The boxes, and the coordinates of the index where they begin; None where that is not known."""
    tiles = partition.tiles_of(a)
    if index is None:
        boxes = partition.boxes_of(a, tiles, rows)
        return boxes, (None,) * (len(boxes) + 1)
    axis = a.dims.index(index)
    boxes, cuts = partition.slabs_of(a, tiles, axis, rows)
    if not len(tiles.cells):
        return boxes, (None,) * (len(boxes) + 1)
    ends = (min(tiles.low[axis]), *cuts, max(tiles.high[axis]))
    kind = a._schema.dims[axis].dtype
    return boxes, tuple(_label(kind, end) for end in ends)


def _label(kind: str, coordinate: Any) -> Any:
    """A coordinate as pandas has it in an index."""
    if datatype.is_time(kind):
        import pandas as pd

        value: Any = datatype.from_text(kind, str(coordinate))
        return pd.Timestamp(value) if kind.startswith("datetime64") else pd.Timedelta(value)
    return float(coordinate) if datatype.is_float(kind) else coordinate if kind == "string" else int(coordinate)


def _collection(cells: Cells, boxes: list[Parts], divisions: tuple[Any, ...], like: Any, where: str | None) -> Any:
    """The frame, of an expression that takes columns and filters; where Dask has another kind of expressions, of one
    that takes columns."""
    try:
        from .expression import collection
    except (ImportError, AttributeError, TypeError):
        return _from_map(cells, boxes, divisions, like, where)
    return collection(cells, boxes, divisions, like, where)


def _from_map(cells: Cells, boxes: list[Parts], divisions: tuple[Any, ...], like: Any, where: str | None) -> Any:
    """The frame by what is public in Dask."""
    dd = needed("dask.dataframe", "dask", "gridstone.dask.frame")
    known = None if divisions[0] is None else divisions
    return dd.from_map(_Read(cells, where, like), boxes, meta=like, divisions=known, enforce_metadata=False)


class _Read:
    """Reads a box, with the columns that Dask asks for."""

    def __init__(self, cells: Cells, where: str | None, like: Any) -> None:
        self._cells, self._where, self._like = cells, where, like

    def __call__(self, parts: Parts, columns: Sequence[str] | None = None) -> Any:
        names = list(self._like.columns) if columns is None else list(columns)
        return self._cells.read(parts, names, self._where, self._like)
