"""Coordinates of all cells of a dense array, which follow from its domain: nothing is read for them."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..column import arrow, datatype
from ..column.columns import Column
from ..query.box import Box, box_of
from ..schema.array_schema import Schema

CELLS_MAX = 2**62
"""Domains of more cells are not numbered in 64 bits."""
_ROWS = 1 << 18


def batches(schema: Schema, names: Sequence[str]) -> Iterator[dict[str, "pa.Array"]]:
    """The coordinates along these dimensions, of every cell in row order, some cells at a time."""
    box = box_of(schema, None)
    axes = {dim.name: axis for axis, dim in enumerate(schema.dims)}
    count = int(np.prod(np.array(box.shape, object), initial=1))
    for first in range(0, count, _ROWS):
        cells = np.arange(first, min(first + _ROWS, count), dtype=np.uint64)
        yield {name: _along(box, axes[name], cells) for name in names}


def _along(box: Box, axis: int, cells: "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]") -> "pa.Array":
    """The coordinates of cells, which are numbered in row order, along one dimension."""
    stride = int(np.prod(np.array(box.shape[axis + 1 :], object), initial=1))
    places = cells // np.uint64(stride) % np.uint64(box.shape[axis])
    ticks = places + np.uint64(int(box.bounds[axis][0]) & (2**64 - 1))
    dtype = box.dims[axis].dtype
    target = datatype.numpy_of(dtype)
    values = ticks.view(np.int64).view(target) if target.kind in "mM" else ticks.astype(target)
    return arrow.array_of(Column(dtype, values))
