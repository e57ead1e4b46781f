"""Cuts a sparse array into partitions: boxes that cover the domain, each a range of the global order.

1. The tiles of data say how many cells lie where, by the low ends of their MBRs.
2. The domain is cut along the slowest dimension, at edges of space tiles, where enough cells have come together.
3. A slab of one tile with too many cells is cut along the next dimension, and in the end within its space tile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..column import datatype
from ..column.datatype import AnyArray
from ..schema.dimension import Dim
from .cells import Part, Parts


@dataclass(frozen=True, slots=True)
class Tiles:
    """Where the cells of an array are, tile of data by tile of data."""

    low: tuple[AnyArray, ...]
    """Per dimension, the low end of each MBR: ticks, floats or texts."""
    high: tuple[AnyArray, ...]
    cells: AnyArray


def tiles_of(a: Array) -> Tiles:
    """Those of the array, as its index has them."""
    table = a.tiles()
    ends = [tuple(_values(dim, table.column(f"{dim.name}_{end}")) for dim in a._schema.dims) for end in ("lo", "hi")]
    return Tiles(ends[0], ends[1], table.column("cells").to_numpy())


def _values(dim: Dim, column: Any) -> AnyArray:
    """Coordinates as they are cut: Python's numbers and texts, in an array of objects or floats."""
    if dim.is_text:
        return np.array(column.to_pylist(), object)
    if datatype.is_float(dim.dtype):
        return np.asarray(column.to_numpy(), np.float64)
    kind = datatype.numpy_of(dim.dtype)
    values: AnyArray = np.asarray(column.to_numpy(), kind)
    # Ticks of uint64 and int64 together fit no type of NumPy.
    return (values.view(np.int64) if kind.kind in "mM" else values).astype(object)


def boxes_of(a: Array, tiles: Tiles, cells_max: int) -> list[Parts]:
    """Boxes in global order, each of about `cells_max` cells; one of them if there is no cell."""
    dims = a._schema.dims
    order = list(range(len(dims)))
    if a._schema.tile_order == "col":
        order.reverse()
    rows = np.arange(len(tiles.cells))
    return list(_cut(dims, tiles, rows, tuple(_whole(dim) for dim in dims), (order, cells_max)))


def slabs_of(a: Array, tiles: Tiles, axis: int, cells_max: int) -> tuple[list[Parts], list[Any]]:
    """Boxes along one dimension, cut at edges of its tiles, and the coordinates where they begin, but for the first."""
    dims = a._schema.dims
    parts = tuple(_whole(dim) for dim in dims)
    # Without tiles, where tiles of data begin.
    edges = tiles.low[axis] if dims[axis].tile is None else _edges(dims[axis], tiles.low[axis])
    cuts = [edge for edge, _ in _gathered(edges, tiles.cells, cells_max)]
    return list(_at_cuts(dims[axis], parts, axis, cuts)), cuts


def _cut(
    dims: Sequence[Dim], tiles: Tiles, rows: AnyArray, parts: Parts, how: tuple[list[int], int]
) -> Iterator[Parts]:
    """A box, cut along the first of some dimensions that has edges in it, and further where that is not enough."""
    order, cells_max = how
    if int(tiles.cells[rows].sum()) <= cells_max:
        yield parts
        return
    for place, axis in enumerate(order):
        edges = _edges(dims[axis], tiles.low[axis][rows])
        if len(set(edges)) < 2:
            continue
        groups = _gathered(edges, tiles.cells[rows], cells_max)
        boxes = list(_at_cuts(dims[axis], parts, axis, [edge for edge, _ in groups]))
        bounds = [0, *(count for _, count in groups), len(rows)]
        ranks = np.argsort(edges, kind="stable")
        for box, start, end in zip(boxes, bounds, bounds[1:], strict=False):
            inside = rows[ranks[start:end]]
            # What lies between two edges alone is cut along the dimensions that follow.
            left = order[place:] if len(set(edges[ranks[start:end]])) > 1 else order[place + 1 :]
            yield from _cut(dims, tiles, inside, box, (left, cells_max))
        return
    yield from _within(dims, tiles, rows, parts, cells_max)


def _within(dims: Sequence[Dim], tiles: Tiles, rows: AnyArray, parts: Parts, cells_max: int) -> Iterator[Parts]:
    """A box within one space tile, cut at coordinates where tiles of data begin."""
    for axis, dim in enumerate(dims):
        lows = tiles.low[axis][rows]
        if len(set(lows)) > 1:
            yield from _at_cuts(dim, parts, axis, [edge for edge, _ in _gathered(lows, tiles.cells[rows], cells_max)])
            return
    yield parts


def _edges(dim: Dim, lows: AnyArray) -> AnyArray:
    """The edge of the space tile that each coordinate lies in; all alike where there are no tiles."""
    if dim.is_text or dim.tile is None or dim.reach is None:
        return np.zeros(len(lows), object)
    if datatype.is_float(dim.dtype):
        start, extent = float(dim.reach[0]), float(dim.tile)  # type: ignore[arg-type]
        return start + np.floor((lows - start) / extent) * extent
    assert dim._origin is not None
    origin, ticks = dim._origin, datatype.ticks_of(dim.tile)
    return np.array([origin + (low - origin) // ticks * ticks for low in lows], object)


def _gathered(edges: AnyArray, cells: AnyArray, cells_max: int) -> list[tuple[Any, int]]:
    """The edges to cut at, ascending, and how many rows lie before each: groups of at most so many cells, if edges
    allow it."""
    ranks = np.argsort(edges, kind="stable")
    found: list[tuple[Any, int]] = []
    total, start = 0, 0
    while start < len(ranks):
        end = start
        here = edges[ranks[start]]
        while end < len(ranks) and edges[ranks[end]] == here:
            end += 1
        count = int(cells[ranks[start:end]].sum())
        if total and total + count > cells_max:
            found.append((here, start))
            total = 0
        total += count
        start = end
    return found


def _at_cuts(dim: Dim, parts: Parts, axis: int, cuts: Sequence[Any]) -> Iterator[Parts]:
    """The box, cut along one dimension: each part begins at a cut and ends before the next one."""
    low, high, *more = parts[axis]
    for place in range(len(cuts) + 1):
        first = low if place == 0 else _from(dim, cuts[place - 1])
        part: Part
        if place == len(cuts):
            part = (first, high, *more)  # type: ignore[assignment]
        elif dim.is_text:
            part = (first, cuts[place], True)  # type: ignore[assignment]
        else:
            part = (first, _before(dim, cuts[place]))  # type: ignore[assignment]
        yield (*parts[:axis], part, *parts[axis + 1 :])


def _from(dim: Dim, edge: Any) -> Any:
    """The first coordinate from an edge on."""
    if not datatype.is_float(dim.dtype):
        return edge
    kind = datatype.numpy_of(dim.dtype).type
    near = kind(edge)
    return float(near if float(near) >= edge else np.nextafter(near, kind(np.inf)))


def _before(dim: Dim, edge: Any) -> int | float:
    """The last coordinate before an edge."""
    if not datatype.is_float(dim.dtype):
        return int(edge) - 1
    kind = datatype.numpy_of(dim.dtype).type
    return float(np.nextafter(kind(_from(dim, edge)), kind(-np.inf)))


def _whole(dim: Dim) -> Part:
    """All coordinates of a dimension."""
    if dim.is_text:
        return (None, None, False)
    low, high = dim.reach
    if datatype.is_float(dim.dtype):
        return float(low), float(high)
    return datatype.ticks_of(low), datatype.ticks_of(high)
