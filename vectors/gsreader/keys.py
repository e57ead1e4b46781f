"""The values of the keys of floats, and the Hilbert curve in its frame: ``docs/format/keys.md``."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

SIGN = 1 << 63
KEY_MAX = 2 * SIGN - 1


def key_to_float(key: int) -> float:
    bits = key & ~SIGN if key & SIGN else key ^ KEY_MAX
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


@dataclass(frozen=True)
class Frame:
    """The frame of a curve: its bits, and the ends of each side, offsets in a tile or keys; one may end beyond all."""

    by_value: bool
    bits: int
    sides: tuple[tuple[int, int], ...]

    @staticmethod
    def default(largest: list[int], starts: list[int]) -> Frame:
        """That of dimensions with these largest offsets, whose sides start here."""
        bits = max(largest).bit_length()
        return Frame(False, bits, tuple((low, low + (1 << bits) - 1) for low in starts))

    def place(self, axis: int, u: int) -> int:
        """The place of an offset in a tile, or of a key."""
        low, high = self.sides[axis]
        return (min(max(u, low), high) - low << self.bits) // (high - low + 1)

    def place_of_value(self, axis: int, key: int) -> int:
        """The place of a float by its value."""
        ends = self.sides[axis]
        low, value, high = (key_to_float(k) for k in (ends[0], key, min(ends[1], KEY_MAX)))
        part, whole = value / 2 - low / 2, high / 2 - low / 2
        most = (1 << self.bits) - 1
        if whole == 0:  # Python raises where a float64 becomes infinite, or no number.
            return most if part > 0 else 0
        scaled = part / whole * 2.0**self.bits
        if math.isnan(scaled):
            return 0
        return min(max(math.floor(scaled), 0), most) if math.isfinite(scaled) else most if scaled > 0 else 0


def along_curve(x: list[int], bits: int) -> int:
    """The index along the Hilbert curve of places of so many bits."""
    x = x.copy()
    for q in range(bits - 1, 0, -1):
        low = (1 << q) - 1
        for d in range(len(x)):
            if x[d] >> q & 1:
                x[0] ^= low
            else:
                exchanged = (x[0] ^ x[d]) & low
                x[0], x[d] = x[0] ^ exchanged, x[d] ^ exchanged
    for d in range(1, len(x)):
        x[d] ^= x[d - 1]
    turned = 0
    for q in range(1, bits):
        turned ^= ((1 << q) - 1) * (x[-1] >> q & 1)
    index = 0
    for q in range(bits - 1, -1, -1):
        for place in x:
            index = index << 1 | (place ^ turned) >> q & 1
    return index
