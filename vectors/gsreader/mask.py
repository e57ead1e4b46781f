"""Masks: ``docs/format/mask.md``."""

from __future__ import annotations

import itertools

from .bytes import Cursor, Unsupported, need
from .checksums import xxh3
from .filters import zstd_frame


def rows(data: bytes, over: str, sizes: list[int], masked: int) -> set[int]:
    """The rows of a fragment, counted through its tiles of these ``sizes``, that a mask deletes."""
    cells, starts = sum(sizes), list(itertools.accumulate(sizes, initial=0))
    need(len(data) > 8, "a mask of too few bytes")
    r = Cursor(data[:-8], "a mask")
    need(r.take(8) == b"GSMASK\0\0", "a mask does not start with GSMASK")
    if r.u32() != 0:
        raise Unsupported("a mask of a later version")
    need(int.from_bytes(data[-8:], "little") == xxh3(data[:-8]), "a mask fails its checksum")
    tiles = r.u32()
    need(r.take(16).hex() == over and r.u64() == masked, "a mask over another fragment, or of other rows")
    length = r.u64()
    need(length <= 24 * tiles + cells // 8, "a mask longer than its fragment")
    packed = r.take(len(r.data) - r.at)
    bitmaps = Cursor(zstd_frame(packed, length), "a mask's bitmaps")
    need(len(bitmaps.data) == length, "bitmaps of another length")
    found: set[int] = set()
    last = -1
    for _ in range(tiles):
        tile, count, _reserved = bitmaps.u64(), bitmaps.u32(), bitmaps.u32()
        need(tile > last, "tiles of a mask out of order")
        need(tile < len(sizes) and count == sizes[tile], "a mask of a tile that is not there, or another")
        words = int.from_bytes(bitmaps.take(-(-count // 64) * 8), "little")
        need(words >> count == 0, "a row beyond its tile")
        found |= {starts[tile] + row for row in range(count) if words >> row & 1}
        last = tile
    bitmaps.end()
    need(len(found) == masked > 0, "a mask whose bits are not as many as it says")
    return found
