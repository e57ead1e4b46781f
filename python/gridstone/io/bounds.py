"""Finds the rows of a table that cannot be coordinates of a dimension."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..column import datatype
from ..column.columns import Field
from ..column.datatype import AnyArray
from ..schema.dimension import Dim
from .load import column_of
from .target import Target, length_advice

_WIDEN = "pass grow=True (--grow), or give a new array a wider domain"


def outside(dim: Dim, data: Any, target: Target | None = None, *, grows: bool = False) -> Iterator[tuple[int, str]]:
    """The rows outside the domain, or of a text that is too long or holds NUL, each with what is wrong.

    `target`: the array that the rows are for, if it is there; `grows`: only infinite coordinates are outside.
    """
    column = column_of(Field(dim.name, dim.dtype, False, "dimension"), data)
    values = column.values
    if column.offsets is None and grows:
        for row in np.flatnonzero(~np.isfinite(values)) if datatype.is_float(dim.dtype) else ():
            yield int(row), f"{values[row]} is no place that a domain reaches to; correct it, or drop the row"
        return
    if column.offsets is None:
        domain = "" if dim.is_empty else f" ({datatype.show(dim.reach[0])}, {datatype.show(dim.reach[1])})"
        for row in np.flatnonzero(_beyond(dim, values)):
            yield int(row), f"{values[row]} is outside the domain{domain}; {_WIDEN}"
        return
    yield from _texts(dim, values, column.offsets, target)


def _beyond(dim: Dim, values: AnyArray) -> AnyArray:
    """Which coordinates lie beyond an end of the domain that is not open."""
    low, high = (None if end is None else np.array([end], datatype.numpy_of(dim.dtype)) for end in _closed_ends(dim))
    below = np.zeros(values.shape, np.bool_) if low is None else values < low
    above = np.zeros(values.shape, np.bool_) if high is None else values > high
    return np.asarray(below | above)


def _closed_ends(dim: Dim) -> tuple[Any, Any]:
    if dim.is_empty:
        return dim.domain if True in dim.open else (0, 0)
    return tuple(None if is_open else end for end, is_open in zip(dim.reach, dim.open, strict=True))  # type: ignore[return-value]


def _texts(dim: Dim, values: AnyArray, offsets: AnyArray, target: Target | None) -> Iterator[tuple[int, str]]:
    lengths = np.diff(offsets)
    nul = np.searchsorted(offsets, np.flatnonzero(values == 0), side="right") - 1
    longest = dim.max_bytes or 0
    for row in np.union1d(np.flatnonzero(lengths > longest), nul):
        text = bytes(values[offsets[row] : offsets[row + 1]])[:60].decode(errors="replace")
        if lengths[row] > longest:
            yield (
                int(row),
                f"{text!r} is {lengths[row]} bytes of UTF-8 long, the dimension takes {longest}; "
                f"{length_advice(target, dim.name, int(lengths[row]))}",
            )
        else:
            yield int(row), f"{text!r} holds a NUL character, which no coordinate may"
