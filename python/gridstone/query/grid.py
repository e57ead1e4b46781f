"""A grid of positions of a dense array: any of them along each dimension."""

from dataclasses import dataclass, field

import numpy as np

from ..column import datatype
from ..column.datatype import AnyArray
from .box import Box


@dataclass(frozen=True, slots=True)
class Grid(Box):
    """The cells at every combination of positions; `bounds` is the box around them."""

    lists: "tuple[AnyArray | range, ...]" = field(default=(), compare=False)
    """The positions along each dimension (int64); a range where they follow each other."""
    dropped: tuple[bool, ...] = ()
    """The dimensions along which one position was chosen alone, which the result does not have."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions per dimension of the array."""
        return tuple([len(found) for found in self.lists])

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions per dimension of the result."""
        return tuple([len(found) for found, drop in zip(self.lists, self.dropped, strict=True) if not drop])

    def coordinates(self, axis: int) -> AnyArray:
        """The coordinates along one dimension of the array, in the dimension's dtype."""
        dim = self.dims[axis]
        target = datatype.numpy_of(dim.dtype)
        base = positions_along(self, axis).view(np.uint64) + np.uint64(datatype.ticks_of(dim.reach[0]) & (2**64 - 1))
        return base.view(np.int64).view(target) if target.kind in "mM" else base.astype(target)


def positions_along(box: Box, axis: int) -> AnyArray:
    """The positions in the domain along one dimension of a box."""
    if isinstance(box, Grid):
        found = box.lists[axis]
        return np.arange(found.start, found.stop) if isinstance(found, range) else found
    first = int(box.bounds[axis][0]) - datatype.ticks_of(box.dims[axis].reach[0])
    return np.arange(first, first + box.shape[axis])


def dropped_of(box: Box) -> tuple[bool, ...]:
    """By dimension, whether a result over the box lacks it."""
    return box.dropped if isinstance(box, Grid) else (False,) * len(box.dims)
