"""Rows, pages of rows, values: ``docs/format/manifest.md``.

```text
frame    magic (8)  u32 version  u32 coding  u64 bytes of the content  content, coded  u64 xxh3 of all before
content  of a value: the value; of a page: its rows
row      u32 bytes of the key  u32 bytes of the value  u32 flags  key  value
```

The rows of a page that another one refers to lie between the key of the reference and the next key there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from .bytes import Cursor, Read, Unsupported, need
from .checksums import xxh3
from .filters import zstd_frame

VERSION = 1
PLAIN, ZSTD = 0, 1
INLINE, PAGE, VALUE = 0, 1, 2
SKIPPED = 1 << 31
"""The flag of rows that a reader takes as absent, unless they refer to a page."""
DEPTH_MAX = 32


class Kind(NamedTuple):
    """A kind of frame, and the most bytes that its content has."""

    name: str
    magic: bytes
    bytes_max: int


PAGES = Kind("a page of rows", b"GSROWS\0\0", 64 << 20)
VALUES = Kind("a value", b"GSVALUE\0", 256 << 20)


class Reference(NamedTuple):
    """What a row says of an object: its id, the checksum and the number of bytes of its content."""

    id: str
    xxh3: int
    length: int


class Row(NamedTuple):
    """A row as its page holds it: the value of most is in the page, that of others is a reference."""

    key: bytes
    flags: int
    value: bytes

    def reference(self) -> Reference:
        """The reference that the value is."""
        r = Cursor(self.value, "a reference")
        found = Reference(r.take(16).hex(), r.u64(), r.u64())
        r.end()
        return found


def content(data: bytes, kind: Kind, length: int | None = None) -> bytes:
    """The content of a frame. Its length is ``length``, if given, which is compared before anything is decoded."""
    r = Cursor(data[:-8], kind.name)
    need(r.take(8) == kind.magic, f"{kind.name} does not start with its magic")
    need(int.from_bytes(data[-8:], "little") == xxh3(data[:-8]), f"{kind.name} fails its checksum")
    version, coding, stated = r.u32(), r.u32(), r.u64()
    if version != VERSION:
        raise Unsupported(f"{kind.name} is of version {version}")
    if coding not in (PLAIN, ZSTD):
        raise Unsupported(f"{kind.name} has the coding {coding}")
    need(stated <= kind.bytes_max and length in (None, stated), f"{kind.name} has a wrong length")
    coded = r.take(len(r.data) - r.at)
    decoded = zstd_frame(coded, stated) if coding == ZSTD else coded
    need(len(decoded) == stated, f"{kind.name} has another length than it says")
    return decoded


def parsed(page: bytes) -> list[Row]:
    """The rows of a page's content, in ascending order of their keys."""
    r, rows = Cursor(page, PAGES.name), []
    while r.at < len(page):
        key_bytes, value_bytes, flags = r.u32(), r.u32(), r.u32()
        if flags not in (INLINE, PAGE, VALUE) and flags & (SKIPPED | PAGE) != SKIPPED:
            raise Unsupported(f"a row has the flags {flags}")
        rows.append(Row(r.take(key_bytes), flags, r.take(value_bytes)))
    need(all(a.key < b.key for a, b in itertools.pairwise(rows)), "rows out of order")
    return rows


def every(read: Read, rows: list[Row], high: bytes | None = None, depth: int = 0) -> Iterator[Row]:
    """The rows of a page and of all pages below it, without references to pages. ``high`` is above all keys."""
    for place, row in enumerate(rows):
        if row.flags & SKIPPED:
            continue
        if row.flags != PAGE:
            yield row
            continue
        need(depth < DEPTH_MAX, f"pages of rows lie more than {DEPTH_MAX} deep")
        below = parsed(_object(read, row.reference(), PAGES))
        end = rows[place + 1].key if place + 1 < len(rows) else high
        inside = all(row.key <= held.key and (end is None or held.key < end) for held in below)
        need(inside, "a page has a row that another page should have")
        yield from every(read, below, end, depth + 1)


def value_of(read: Read, row: Row) -> bytes:
    """The value of a row, which may be an object of its own."""
    return row.value if row.flags == INLINE else _object(read, row.reference(), VALUES)


def _object(read: Read, reference: Reference, kind: Kind) -> bytes:
    found = content(read(f"_manifest/{reference.id}"), kind, reference.length)
    need(xxh3(found) == reference.xxh3, f"{kind.name} is not the one that is referred to")
    return found
