"""Sorted copies of packs, on which nothing rests: ``docs/format/sorted-copy.md``."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from . import filters, fragment
from .bytes import Cursor, need
from .checksums import xxh3
from .schema import Attribute, Box, Datatype, Schema

MEMBER = (1 << 32) - 1
MEMBERS_MAX = 4096
APART = int("6772696473746f6e6520736f72746564", 16)
CODES = Datatype("uint16")


@dataclass
class SortedCopy:
    """The cells of a copy, and its members: ids and orders."""

    cells: fragment.Fragment
    members: list[tuple[str, tuple[int, int]]]

    def of_member(self, number: int) -> list[tuple[tuple[int, ...], list[bytes | None]]]:
        """The cells that are from a member, as they lie in it: their places, and values by ascending attribute."""
        attrs = self.cells.attrs
        values = zip(*(attrs[n] for n in sorted(attrs) if n != MEMBER), strict=True)
        rows = zip(self.cells.places, attrs[MEMBER], values, strict=True)
        return [(place, list(row)) for place, code, row in rows if int.from_bytes(code or b"", "little") == number]


def id_of(pack: str, array: str) -> str:
    """The id of the copy of a pack's fragments of an array."""
    return f"{int(pack, 16) ^ int(array, 16) ^ APART:032x}"


def read(data: bytes, pack: str, array: str, schemas: list[Schema], users: filters.Users) -> SortedCopy:
    """Decodes and checks a copy by itself."""
    need(data[:8] == b"GS0SORT\n", "a sorted copy does not start with GS0SORT")
    length = int.from_bytes(data[8:12], "little")
    start = -(-(length + 20) // 64) * 64
    need(start <= len(data), "a sorted copy ends early")
    checksum = int.from_bytes(data[12 + length : 20 + length], "little")
    need(xxh3(data[: 12 + length]) == checksum, "a sorted copy's head fails its checksum")
    need(not data[20 + length : start].strip(b"\0"), "padding in a sorted copy that is not zero")
    r = Cursor(data[12 : 12 + length], "a sorted copy's head")
    need((r.take(16).hex(), r.take(16).hex()) == (pack, array), "the sorted copy of another pack or array")
    number, count, size = r.u32(), r.u64(), r.u64()
    need(number < len(schemas) and size == len(data) - start, "a sorted copy that does not fit its file")
    attrs = [r.u32() for _ in range(r.count(4))]
    need(all(a < b for a, b in itertools.pairwise(attrs)), "attributes out of order")
    bounds: Box = [(r.u64(), r.u64()) for _ in range(r.count(16))]
    members = [(r.take(16).hex(), (r.u64(), r.u32())) for _ in range(r.count(28))]
    r.end()
    need(1 <= len(members) <= MEMBERS_MAX, "too few members, or too many")
    cells = fragment.read(data[start:], bytes.fromhex(id_of(pack, array)), _with_members(schemas[number]), users)
    described = ("sparse", bounds, count, [*attrs, MEMBER], 1)
    found = (cells.kind, cells.bounds, len(cells.places), list(cells.attrs), cells.stripes)
    need(described == found, "a sorted copy of other cells")
    copy = SortedCopy(cells, members)
    _check_orders(copy)
    return copy


def _with_members(schema: Schema) -> Schema:
    """The schema of a copy: one attribute more, and several cells at one place."""
    member = Attribute(MEMBER, "member", CODES, False, b"\0\0", CODES, None, False)
    return replace(schema, attrs=(*schema.attrs, member), duplicates=True)


def _check_orders(copy: SortedCopy) -> None:
    """Cells of one place stand from the oldest order to the newest."""
    numbers = [int.from_bytes(code or b"", "little") for code in copy.cells.attrs[MEMBER]]
    need(max(numbers, default=0) < len(copy.members), "a cell of no member")
    for (place, number), (later, other) in itertools.pairwise(zip(copy.cells.places, numbers, strict=True)):
        inside = place != later or copy.members[number][1] <= copy.members[other][1]
        need(inside, "a newer cell in front of an older one")
