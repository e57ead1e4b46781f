"""Chooses the shape of space tiles."""

import math
from collections.abc import Sequence

_TILE_BYTES = 2 << 20
_TILE_CELLS = (1 << 18, 1 << 20)


def auto_tile(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The shape of a space tile for an array of `shape`: about 2 MiB, as nearly cubic as halving sides makes it."""
    cells_max = min(max(_TILE_BYTES // itemsize, _TILE_CELLS[0]), _TILE_CELLS[1])
    parts, extents = [1] * len(shape), list(shape)
    while math.prod(extents) > cells_max:
        longest = max(range(len(shape)), key=lambda i: extents[i])
        parts[longest] *= 2
        extents[longest] = -(-shape[longest] // parts[longest])
    return tuple(extents)
