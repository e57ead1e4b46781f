"""Which positions along a dimension of a dense array are read together: those whose blocks lie side by side.

A block is what the engine reads and decodes at least: 16,384 cells, whole rows of a space tile where they fit.
Positions of one block read one by one would have it decoded as often; positions whose blocks lie far apart read
together would have all blocks in between decoded for nothing.
"""

import numpy as np

from ..column.datatype import AnyArray
from ..schema.array_schema import Schema

_BLOCK_CELLS = 16_384
_NEAR = 8
"""Positions no further apart are read together, whatever blocks they are in."""
PIECE_CELLS = 1 << 22
"""Cells of one box that is read for some of the cells in it, about."""


def stretches(schema: Schema, axis: int, offsets: AnyArray, across: int) -> list[slice]:
    """Cuts ascending positions along `axis` (uint64, from 0 on) into runs that are read as one box each.

    A run has no gap of whole blocks, and is cut, between blocks, where its box, `across` cells at each position,
    becomes large.
    """
    blocks = _blocks(schema, axis, offsets)
    apart = (np.diff(blocks) > np.uint64(1)) & (np.diff(offsets) > np.uint64(_NEAR))
    longest = np.uint64(max(PIECE_CELLS // max(across, 1), 1))
    found, first = [], 0
    # Only where a block ends may a run end.
    for at in (np.flatnonzero(np.diff(blocks)) + 1).tolist():
        if apart[at - 1] or offsets[at] - offsets[first] >= longest:
            found.append(slice(first, at))
            first = at
    found.append(slice(first, offsets.size))
    return found


def _blocks(schema: Schema, axis: int, offsets: AnyArray) -> AnyArray:
    """For each position the number of its block along the dimension, as if all dimensions began at 0."""
    tiles = [dim.positions_per_tile for dim in schema.dims]
    inner_first = list(range(schema.ndim)) if schema.cell_order == "col" else list(reversed(range(schema.ndim)))
    left, extent = _BLOCK_CELLS, 1
    for i in inner_first:
        extent = min(tiles[i], max(left, 1))
        if i == axis:
            break
        left //= extent
    per_tile = -(-tiles[axis] // extent)
    tile = np.uint64(tiles[axis])
    made: AnyArray = offsets // tile * np.uint64(per_tile) + offsets % tile // np.uint64(extent)
    return made
