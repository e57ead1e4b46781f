"""Cells along a Hilbert curve, for the model: from the format's page on keys, in Python's integers."""

import struct
from collections.abc import Sequence
from typing import Any

import gridstone as gs
from gridstone.column import datatype as dtypes


def _key(dim: gs.Dim, value: Any) -> int:
    """The ordered key of a coordinate; of integers and times any number whose differences are the keys'."""
    if not dtypes.is_float(dim.dtype):
        return int(value)
    bits = struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0]
    return (1 << 64) - 1 - bits if bits >> 63 else bits | 1 << 63


def _extent(dim: gs.Dim) -> int | None:
    """The extent of a tile where it is whole."""
    return None if dim.tile is None or dtypes.is_float(dim.dtype) else dtypes.ticks_of(dim.tile)


def _ends(dim: gs.Dim) -> tuple[int, int]:
    low, high = dim.domain if dtypes.is_float(dim.dtype) else map(dtypes.ticks_of, dim.domain)
    return _key(dim, low), _key(dim, high)


def bits_of(dims: Sequence[gs.Dim]) -> int:
    """The bits of the largest offset."""
    largest = 0
    for dim in dims:
        low, high = _ends(dim)
        extent = _extent(dim)
        largest = max(largest, high - low if extent is None else extent - 1)
    return largest.bit_length()


def index(dims: Sequence[gs.Dim], place: Sequence[Any]) -> int:
    """The place of a cell along the curve of its tile; `dims` are those that the array was made with."""
    x, count = [], bits_of(dims)
    for dim, value in zip(dims, place, strict=True):
        offset, extent = _key(dim, value) - _ends(dim)[0], _extent(dim)
        # What lies beyond the frame has the place of its nearest end.
        x.append(min(max(offset, 0), 2**count - 1) if extent is None else offset % extent)
    for bit in reversed(range(1, count)):
        below = 2**bit - 1
        for d in range(len(x)):
            if x[d] & 2**bit:
                x[0] ^= below
            else:
                swap = (x[0] ^ x[d]) & below
                x[0] ^= swap
                x[d] ^= swap
    for d in range(1, len(x)):
        x[d] ^= x[d - 1]
    turn = 0
    for bit in range(1, count):
        turn ^= 2**bit - 1 if x[-1] & 2**bit else 0
    found = 0
    for bit in reversed(range(count)):
        for part in x:
            found = 2 * found + ((part ^ turn) >> bit & 1)
    return found
