"""Chosen positions of an array as the core takes them, and what it reads there of a dense one as arrays.

There is one choice per dimension: a range with a step, a list, or a part of points or of a mask. The core answers in
row order: points first, then the other dimensions. A sparse array gives the cells that exist, each once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _native
from ..column import decode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import BudgetError
from ..query.axis import Axis
from ..schema.array_schema import Schema
from ..schema.fields import column_of
from .handle import Handle

Arrays = dict[str, AnyArray]


def strided(axis: Axis) -> "_native._Chosen":
    """The positions of a slice or an integer.

    Raises:
        BudgetError: they are too many for any memory.
    """
    if axis.count <= 1:
        return axis.start if axis.count else 0, axis.count, 1
    if axis.count >= 2**63:
        raise BudgetError(f"{axis.count} positions were chosen along a dimension; choose fewer at once")
    if abs(axis.step) >= 2**63:
        return listed(np.array([axis.start + n * axis.step for n in range(axis.count)], np.uint64))
    return axis.start, axis.count, axis.step


def ascending(axis: Axis, size: int) -> "_native._Chosen":
    """The positions of a slice or an integer along a dimension of `size` positions, from the lowest on."""
    if axis.count == size:
        return None
    low, high = axis.covering if axis.count else (0, -1)
    step = abs(axis.step) if axis.count > 1 else 1
    if step >= 2**63:
        return listed(np.array(range(low, high + 1, step), np.uint64))
    return low, axis.count, step


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
    array: Handle,
    schema: Schema,
    names: Sequence[str],
    chosen: Sequence["_native._Chosen"],
    mask: "_native._Mask | None",
    shape: tuple[int, ...],
) -> Arrays:
    """The attributes at chosen positions, as arrays of the shape that the choices make."""
    cells = array._read_positions(chosen, mask, names)
    made = {name: column_of(schema.attr(name), cells.attrs[name]) for name in names}
    return {name: decode.numpy_of(column.shaped(shape, "row")) for name, column in made.items()}


def write(
    array: Handle,
    chosen: Sequence["_native._Chosen"],
    mask: "_native._Mask | None",
    made: Mapping[str, Column],
) -> None:
    """Writes flat columns, whose cells come as they are read, to chosen positions."""
    array._write_positions(chosen, mask, made)
