"""Chooses the shape of space tiles."""

import math
from collections.abc import Sequence

_TILE_BYTES = 2 << 20
_TILE_CELLS = (1 << 18, 1 << 20)


def auto_tile(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The shape of a space tile for an array of `shape`: about 2 MiB, as nearly cubic as halving sides makes it."""
    cells_max = _cells_max(itemsize)
    parts, extents = [1] * len(shape), list(shape)
    while math.prod(extents) > cells_max:
        longest = max(range(len(shape)), key=lambda i: extents[i])
        parts[longest] *= 2
        extents[longest] = -(-shape[longest] // parts[longest])
    return tuple(extents)


def open_tile(known: Sequence[int], count: int, itemsize: int) -> int:
    """The extent of a space tile along each of `count` dimensions with an open end, beside extents that are known."""
    room = max(1, _cells_max(itemsize) // max(1, math.prod(known)))
    return max(1, int(room ** (1 / count)))


def _cells_max(itemsize: int) -> int:
    return min(max(_TILE_BYTES // itemsize, _TILE_CELLS[0]), _TILE_CELLS[1])
