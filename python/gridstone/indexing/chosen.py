"""Chosen positions of a dense array as the core takes them, and what it reads there as arrays.

There is one choice per dimension: a range with a step, a list, or a part of points or of a mask. The core answers in
row order: points first, then the other dimensions.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column import columns
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..query.box import Axis
from ..schema.array_schema import Schema

if TYPE_CHECKING:
    from .. import _native
    from ..arrays.array import Array

Arrays = dict[str, AnyArray]


def strided(axis: Axis) -> "_native._Chosen":
    """The positions of a slice or an integer."""
    return (axis.start, axis.count, axis.step) if axis.count > 1 else (axis.start if axis.count else 0, axis.count, 1)


def listed(positions: AnyArray) -> "_native._Chosen":
    """Positions (uint64) along a dimension, in the order of the result."""
    return "listed", _buffer(positions)


def paired(positions: AnyArray) -> "_native._Chosen":
    """Positions (uint64) of points along a dimension."""
    return "paired", _buffer(positions)


def mask_over(first: int, mask: AnyArray) -> "_native._Mask":
    """A mask over the dimensions from number `first` on."""
    return first, mask.shape, _buffer(mask)


def _buffer(values: AnyArray) -> Any:
    """The values in row order, as a contiguous buffer."""
    return np.ascontiguousarray(values).ravel()


def read(
    array: "Array",
    schema: Schema,
    names: Sequence[str],
    chosen: Sequence["_native._Chosen"],
    mask: "_native._Mask | None",
    shape: tuple[int, ...],
) -> Arrays:
    """The attributes at chosen positions, as arrays of the shape that the choices make."""
    cells = array._read_positions(chosen, mask, names)
    return {name: columns.of_attr(schema.attr(name), cells.attrs[name]).shaped(shape, "row").numpy() for name in names}


def write(
    array: "Array",
    chosen: Sequence["_native._Chosen"],
    mask: "_native._Mask | None",
    made: Mapping[str, Column],
) -> None:
    """Writes flat columns, whose cells come as they are read, to chosen positions."""
    array._write_positions(chosen, mask, made)
