"""Boxes at positions, in the dimensions' own coordinates."""

from collections.abc import Sequence
from typing import Any

from ..arrays.array import Array
from ..column import datatype


def box_of(array: Array, starts: Sequence[int], shape: Sequence[int]) -> dict[str, Any]:
    """The box of this shape that begins at these positions."""
    made = {}
    for dim, start, size in zip(array.schema.dims, starts, shape, strict=True):
        low = datatype.ticks_of(dim.reach[0]) + start
        ends = (datatype.from_text(dim.dtype, str(low)), datatype.from_text(dim.dtype, str(low + size - 1)))
        made[dim.name] = ends
    return made
