"""Statistics of a tile, computed anew to be compared with the stored ones: ``docs/format/fragment.md``."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from .datatypes import FLOATS
from .keys import SIGN
from .schema import Cell, Datatype

BOUND_BYTES_MAX = 64
HAS_MIN, HAS_MAX, EXACT_MIN, EXACT_MAX, INTEGER, FLOAT = 1, 2, 4, 8, 16, 32
NAN_BITS = 0x7FF8000000000000


@dataclass(frozen=True)
class Statistics:
    """One entry: bounds are value bytes, the sum is the 16 bytes as a number."""

    flags: int
    nulls: int
    nans: int
    low: bytes | None
    high: bytes | None
    total: int


def tree_sum(values: list[float]) -> float:
    """The float sum in its fixed order."""
    if len(values) <= 128:
        total = 0.0
        for value in values:
            total += value
        return total
    half = 1 << (len(values) - 1).bit_length() - 1
    return tree_sum(values[:half]) + tree_sum(values[half:])


def upper(value: bytes) -> bytes | None:
    """A bound of at most 64 bytes that is not below ``value``."""
    if len(value) <= BOUND_BYTES_MAX:
        return value
    cut = value[:BOUND_BYTES_MAX].rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None


def _of_bytes(values: list[bytes], nulls: int) -> Statistics:
    if not values:
        return Statistics(0, nulls, 0, None, None, 0)
    low, high = min(values), max(values)
    flags = HAS_MIN | (EXACT_MIN if len(low) <= BOUND_BYTES_MAX else 0)
    bound = upper(high)
    if bound is not None:
        flags |= HAS_MAX | (EXACT_MAX if len(high) <= BOUND_BYTES_MAX else 0)
    return Statistics(flags, nulls, 0, low[:BOUND_BYTES_MAX], bound, 0)


def of(datatype: Datatype, cells: list[Cell]) -> Statistics:
    """The statistics of a tile's cells."""
    raw = [cell for cell in cells if cell is not None]
    nulls = len(cells) - len(raw)
    if not datatype.order:
        return Statistics(0, nulls, 0, None, None, 0)
    if datatype.order == "bytes":
        return _of_bytes(raw, nulls)
    numbers = [datatype.number(cell) for cell in raw]
    if datatype.element.kind == "f":
        kept = [value + 0.0 for value in numbers if not math.isnan(value)]
        total = tree_sum(kept)
        bits = NAN_BITS if math.isnan(total) else int(struct.unpack("<Q", struct.pack("<d", total))[0])
        flags, width = FLOAT, FLOATS[datatype.width]
        ends = [struct.pack(width, end(kept)) for end in (min, max)] if kept else [None, None]
        summed = bits
    else:
        kept = [value for value in numbers if not (datatype.time and value == -SIGN)]
        has_sum = not datatype.name.startswith("datetime")
        flags = INTEGER if has_sum else 0
        signed = datatype.element.kind == "i"
        ends = (
            [int(e(kept)).to_bytes(datatype.width, "little", signed=signed) for e in (min, max)]
            if kept
            else [None, None]
        )
        summed = int(sum(kept)) % (1 << 128) if has_sum else 0
    if kept:
        flags |= HAS_MIN | HAS_MAX | EXACT_MIN | EXACT_MAX
    return Statistics(flags, nulls, len(numbers) - len(kept), ends[0], ends[1], summed)
