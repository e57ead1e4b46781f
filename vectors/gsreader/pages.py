"""Pages of fragments: ``docs/format/manifest.md``."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from . import value_bounds
from .bytes import Cursor, Read, Unsupported, need
from .checksums import xxh3
from .log import KINDS, Description, box, check_parts, hex16, hex32, json_of, whole
from .schema import fields

BASE, MOVED, STATS, EXT = 0, 1, 16, 17
"""The parts of an entry that this reader knows."""
ENTRY_BYTES_MAX = 1 << 16
PAGE = {"id": str, "xxh3": str, "count": int, "bounds": list, "first": list, "last": list, "full": bool}


class Pages:
    """The pages that one root names. A page named twice is damage, and so is a fragment described twice."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self.named: set[str] = set()
        self.described: set[str] = set()

    def descriptions(self, info: Any) -> list[Description]:
        """The fragments of a page that the root describes as ``info``."""
        page = fields(info, PAGE, {}, "a page")
        name = hex32(page["id"])
        need(name not in self.named, "a page is named twice")
        self.named.add(name)
        found = read_page(self.read(f"_manifest/{name}"), page)
        for one in found:
            need(one.id not in self.described, "a fragment is described twice")
            self.described.add(one.id)
        return found


def read_page(data: bytes, info: dict[str, Any]) -> list[Description]:
    """The descriptions of a manifest page, checked against what the root says of it."""
    r = Cursor(data[:-8], "a manifest page")
    need(r.take(8) == b"GSPAGE\0\0", "a manifest page does not start with GSPAGE")
    checksum = int.from_bytes(data[-8:], "little")
    need(checksum == hex16(info["xxh3"]) == xxh3(data[:-8]), "a manifest page fails its checksum")
    version = r.u32()
    if version > 1:
        raise Unsupported("a manifest page of a later version")
    dims = r.u32()
    sets = [tuple(r.u32() for _ in range(r.count(4))) for _ in range(r.count(4))]
    count = r.count(80 + 16 * dims + 8 * version)
    found = [_entry(r, dims, sets) if version else _described(r, dims, sets) for _ in range(count)]
    r.end()
    need(found and whole(info["count"]) == len(found) <= 4096, "a page with a wrong number of fragments")
    need(all(a.order <= b.order for a, b in itertools.pairwise(found)), "a page out of order")
    ends = [tuple(whole(n) for n in info[end]) for end in ("first", "last")]
    need(ends == [found[0].order, found[-1].order], "a page of other versions")
    union = [(min(d.bounds[i][0] for d in found), max(d.bounds[i][1] for d in found)) for i in range(dims)]
    need(union == box(info["bounds"]), "a page with another box")
    return found


def _entry(r: Cursor, dims: int, sets: list[tuple[int, ...]]) -> Description:
    """A description with its length, its flags and a part for each of them."""
    length = r.u32()
    need(8 <= length <= ENTRY_BYTES_MAX, "an entry that is too short or too long")
    entry = Cursor(r.take(length - 4), "the entry of a fragment")
    flags = entry.u32()
    described = _described(entry, dims, sets)
    parts = {bit: entry.sized() for bit in range(32) if flags >> bit & 1}
    entry.end()
    base = 0
    if BASE in parts:
        need(len(parts[BASE]) == 4, "a base that is no number")
        base = int.from_bytes(parts.pop(BASE), "little")
        need(base > 0, "a base that is the own store")
    need(MOVED not in parts or len(parts[MOVED]) == 8 * dims, "moved by what are no numbers")
    moved = parts.pop(MOVED, b"")
    ways = tuple(int.from_bytes(moved[at : at + 8], "little", signed=True) for at in range(0, len(moved), 8))
    stats = value_bounds.of_bytes(parts.pop(STATS, b""))
    check_parts(list(parts))
    if EXT in parts:
        need(isinstance(json_of(parts[EXT], "the ext of a fragment"), dict), "an ext that is no object")
    return replace(described, base=base, stats=stats, moved=ways).check()


def _described(r: Cursor, dims: int, sets: list[tuple[int, ...]]) -> Description:
    fragment, kind, place, _reserved = r.take(16).hex(), r.u8(), r.u8(), r.take(2)
    schema, attrs, index, version, cells = r.u32(), r.u32(), r.u32(), r.u64(), r.u64()
    raw, offset, length = r.take(16), r.u64(), r.u64()
    bounds = tuple((r.u64(), r.u64()) for _ in range(dims))
    if kind > 4 or place > 2:
        raise Unsupported(f"fragment {fragment} is of the kind {kind}, or lies in the file {place}")
    need(attrs < len(sets), "an impossible description")
    need(all(lo <= hi for lo, hi in bounds), "an impossible box")
    file = (raw.hex(), int.from_bytes(raw[:8], "little"), None)[place]
    over = r.take(16).hex() if KINDS[kind] == "mask" else None
    order, known = (version, index), sets[attrs]
    return Description(fragment, KINDS[kind], order, schema, bounds, cells, known, file, offset, length, over).check()
