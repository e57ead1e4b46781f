"""Handles as NumPy and Python take them: as plain arrays, as masked arrays, row by row."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..column import decode
from ..column.datatype import AnyArray
from ..errors import InputError, UnsupportedError

_BLOCK_BYTES = 8 << 20
"""Bytes that a pass over the rows of an array reads at once."""

_MASKED_ARRAY: Any = np.ma.MaskedArray.__new__


def plain(title: str, values: AnyArray, dtype: Any, copy: bool | None, *, masked: bool) -> AnyArray:
    """What was read as an array without a mask, which nulls would be lost from.

    Args:
        title: the attribute, as it is indexed.
        values: what was read.
        dtype, copy: as NumPy asks.
        masked: whether the mask is asked for as well, so that no null is lost.

    Raises:
        UnsupportedError: there are nulls.
    """
    if copy is False:
        raise InputError("a stored array cannot become a NumPy array without a copy; leave copy out")
    if np.ma.is_masked(values) and not masked:
        raise UnsupportedError(
            f"numpy.asarray has no nulls, {title} has: take {title}[...] or {title}.to_numpy(), a masked array, of "
            f"which .filled(value) makes a plain one"
        )
    found = np.ma.getdata(values)
    return found if dtype is None else found.astype(dtype, copy=False)


def is_for_masked_array(handle: object) -> bool:
    """Whether the caller's caller makes a masked array of `handle`: it takes `_mask` as well, as numpy.ma has it."""
    frame = sys._getframe(2)
    return frame.f_code is _MASKED_ARRAY.__code__ and frame.f_locals.get("data") is handle


def rows(read: Callable[[slice], Any], count: int, row_bytes: int, tile_rows: int) -> Iterator[Any]:
    """What `read` gives of each position along the first axis, an array or a dict of them, read some at a time."""
    step = max(1, _BLOCK_BYTES // max(1, row_bytes))
    step -= step % tile_rows if step > tile_rows else 0
    for start in range(0, count, step):
        span = slice(start, min(start + step, count))
        block = read(span)
        for row in range(span.stop - span.start):
            if isinstance(block, dict):
                yield {name: decode.one(values[row, ...]) for name, values in block.items()}
            else:
                yield decode.one(block[row, ...])
