"""Cuts boxes of dense arrays into pieces that follow each other in global order, as writers take them."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from ..column.datatype import AnyArray
from ..schema.array_schema import Schema
from .box import Box


def listed(values: AnyArray, ndim: int, order: str) -> AnyArray:
    """The cells of a box in this order along one axis; those of vectors behind it stay."""
    inner = values.shape[ndim:]
    if order == "col":
        values = values.transpose(*reversed(range(ndim)), *range(ndim, values.ndim))
    return values.reshape(-1, *inner)


def runs(schema: Schema, box: Box, cells_max: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of positions in `box` that follow each other in global order: its tiles, cut where they are large."""
    spans = []
    for dim, (low, high) in zip(schema.dims, box.bounds, strict=True):
        count = int(high) - int(low) + 1
        starts = dim._tile_starts(int(low), count).tolist()
        spans.append(list(itertools.pairwise([*starts, count])))
    if schema.tile_order == "row":
        tiles: Any = itertools.product(*spans)
    else:
        tiles = (tile[::-1] for tile in itertools.product(*spans[::-1]))
    for tile in tiles:
        yield from _cut(tuple(slice(*span) for span in tile), schema.cell_order == "row", cells_max)


def _cut(tile: tuple[slice, ...], row_major: bool, cells_max: int) -> Iterator[tuple[slice, ...]]:
    """A box of positions in parts of at most so many cells, which follow each other in its cell order."""
    sizes = [part.stop - part.start for part in tile]
    axes = [axis for axis in (range(len(tile)) if row_major else reversed(range(len(tile)))) if sizes[axis] > 1]
    count = math.prod(sizes)
    if count <= cells_max or not axes:
        yield tile
        return
    axis = axes[0]
    step = max(1, cells_max // (count // sizes[axis]))
    for start in range(tile[axis].start, tile[axis].stop, step):
        part = slice(start, min(start + step, tile[axis].stop))
        yield from _cut((*tile[:axis], part, *tile[axis + 1 :]), row_major, cells_max)
