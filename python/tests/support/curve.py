"""Cells along a Hilbert curve, for the model: from the format's page on keys, in Python's integers."""

import math
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


def _sides(dims: Sequence[gs.Dim]) -> list[tuple[int, int]]:
    """The least and the greatest offset in a tile, or key, of the frame that a new array gets."""
    extents = [_extent(dim) for dim in dims]
    return [_ends(dim) if extent is None else (0, extent - 1) for dim, extent in zip(dims, extents, strict=True)]


def bits_of(dims: Sequence[gs.Dim]) -> int:
    """The bits of a place in the frame that a new array gets."""
    asked = []
    for dim, (low, high) in zip(dims, _sides(dims), strict=True):
        if dtypes.is_float(dim.dtype):
            asked.append(min(32, 64 // len(dims)))
        else:
            asked.append(min((high - low).bit_length(), 128 // len(dims)))
    return max(asked)


def _place_of_value(value: float, low: float, high: float, bits: int) -> int:
    part, whole = value / 2 - low / 2, high / 2 - low / 2
    if whole == 0:
        return 2**bits - 1 if part > 0 else 0
    scaled = part / whole * 2.0**bits
    if math.isinf(scaled):
        return 2**bits - 1 if scaled > 0 else 0
    return min(max(math.floor(scaled), 0), 2**bits - 1)


def index(dims: Sequence[gs.Dim], place: Sequence[Any]) -> int:
    """The place of a cell along the curve of its tile; `dims` are those that the array was made with."""
    x, count = [], bits_of(dims)
    for dim, value, (low, high) in zip(dims, place, _sides(dims), strict=True):
        if dtypes.is_float(dim.dtype):
            x.append(_place_of_value(float(value), *map(float, dim.domain), count))
            continue
        extent = _extent(dim)
        # What lies beyond the frame has the place of its nearest end.
        u = min(max(_key(dim, value), low), high) if extent is None else (_key(dim, value) - _ends(dim)[0]) % extent
        x.append(((u - low) << count) // (high - low + 1))
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
