"""The fragment file: ``docs/format/fragment.md`` and ``blocks.md``. Everything in it is decoded and checked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from . import filters, statistics
from .bytes import Cursor, Damaged, Unsupported, need, words32, words64
from .checksums import crc32c, xxh3
from .schema import Box, Cell, Datatype, Schema

FRAME, LARGE, CHUNK = 64, 65536, 4096
KINDS, ORDERS = ("dense", "sparse", "tombstones"), ("row", "col", "hilbert")
CELLS, BOUNDS, ENDS, STARTS, BLOCK_BOUNDS, FIRSTS, PAGES, BLOCKS, STATISTICS, TEXTS, CHUNKS = range(1, 12)
OFFSETS = filters.Element("u", 4)


class Field(NamedTuple):
    """A column that the fragment stores."""

    is_attr: bool
    nullable: bool
    number: int
    datatype: Datatype


class Section(NamedTuple):
    """A row of the section table."""

    id: int
    stripe: int
    offset: int
    length: int
    xxh3: int


@dataclass
class Fragment:
    """A decoded fragment: places as keys, and a list of cells per attribute number, in stored order."""

    kind: str
    bounds: Box
    places: list[tuple[int, ...]]
    attrs: dict[int, list[Cell]]
    tiles: list[int] = field(default_factory=list)
    """The cells of each data tile."""
    stripes: int = 0
    pipelines: tuple[str, ...] = ()
    sections: frozenset[int] = frozenset()
    """The ids of its index sections."""


@dataclass
class _Reading:
    data: bytes
    schema: Schema
    users: filters.Users
    moved: tuple[int, ...] = ()
    kind: str = ""
    bounds: Box = field(default_factory=list)
    block_cells: int = 0
    cells: int = 0
    tiles: int = 0
    fields: list[Field] = field(default_factory=list)
    pipelines: list[str] = field(default_factory=list)
    stripes: list[tuple[int, int, int]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    used: list[tuple[int, int]] = field(default_factory=list)

    def slice(self, offset: int, length: int) -> bytes:
        need(offset >= FRAME and offset + length <= len(self.data) - FRAME, "something lies outside the fragment")
        self.used.append((offset, offset + length))
        return self.data[offset : offset + length]


def read(
    data: bytes, fragment_id: bytes, schema: Schema, users: filters.Users, moved: tuple[int, ...] = ()
) -> Fragment:
    """Decodes and checks a whole fragment, whose box lies by ``moved`` whole tiles off that of its root."""
    need(len(data) >= 2 * FRAME, "a fragment of too few bytes")
    reading = _Reading(data, schema, users, moved)
    _header(data[:FRAME], fragment_id)
    _root(reading, _footer(reading))
    fragment = Fragment(reading.kind, reading.bounds, [], {f.number: [] for f in reading.fields if f.is_attr})
    fragment.stripes, fragment.pipelines = len(reading.stripes), tuple(reading.pipelines)
    fragment.sections = frozenset(section.id for section in reading.sections)
    tiles = iter(_dense_tiles(reading)) if reading.kind == "dense" else None
    for number in range(len(reading.stripes)):
        _stripe(reading, number, tiles, fragment)
    need(tiles is None or next(tiles, None) is None, "a dense fragment with too few tiles")
    need(len(fragment.places) == reading.cells, "the cells do not add up")
    if reading.kind != "dense":
        keys = [schema.global_key(place) for place in fragment.places]
        need(all(a <= b for a, b in itertools.pairwise(keys)), "cells out of global order")
        need(_mbr(fragment.places) == reading.bounds, "the box is not the MBR")
        allowed = schema.duplicates and reading.kind == "sparse"
        need(allowed or len(set(fragment.places)) == len(keys), "a place is there twice")
    _check_gaps(reading)
    return fragment


def _header(header: bytes, fragment_id: bytes) -> None:
    need(header[:8] == b"GRIDFRAG", "a fragment does not start with GRIDFRAG")
    need(xxh3(header[:56]) == int.from_bytes(header[56:], "little"), "a fragment's header fails its checksum")
    if header[8:12] != bytes(4) or header[16:24] != bytes(8):
        raise Unsupported("a fragment of a later version, or with features that this reader does not know")
    need(header[32:48] == fragment_id, "another fragment lies at this place")


def _footer(reading: _Reading) -> bytes:
    footer = reading.data[-FRAME:]
    need(footer[40:48] == b"GRIDFEND", "a fragment does not end with GRIDFEND")
    need(xxh3(footer[:56]) == int.from_bytes(footer[56:], "little"), "a fragment's footer fails its checksum")
    if footer[32:36] != bytes(4):
        raise Unsupported("a fragment of a later version")
    offset, length, checksum, total = words64(footer[:32], 4, "a footer")
    need(total == len(reading.data) and offset + length == total - FRAME, "a footer does not fit its fragment")
    root = reading.slice(offset, length)
    need(xxh3(root) == checksum, "a fragment's root fails its checksum")
    return root


def _moved(reading: _Reading, box: Box) -> Box:
    """The box by so many whole tiles off."""
    if not reading.moved:
        return box
    found = []
    for (lo, hi), by, dim in zip(box, reading.moved, reading.schema.dims, strict=True):
        need(by == 0 or isinstance(dim.extent, int), "moved by tiles along a dimension without any")
        off = by * dim.extent if isinstance(dim.extent, int) else 0
        found.append((lo + off, hi + off))
    return found


def _root(reading: _Reading, root: bytes) -> None:
    r = Cursor(root, "a fragment's root")
    kind, dims, orders = r.u8(), r.u8(), (r.u8(), r.u8())
    need(kind < 3 and dims == len(reading.schema.dims) and max(orders) < 3, "a root does not fit its array")
    need(
        (ORDERS[orders[0]], ORDERS[orders[1]]) == (reading.schema.tile_order, reading.schema.cell_order), "other orders"
    )
    reading.kind = KINDS[kind]
    reading.block_cells, reading.cells, reading.tiles = r.u32(), r.u64(), r.u64()
    need(reading.block_cells > 0, "blocks of no cells")
    reading.bounds = _moved(reading, [(r.u64(), r.u64()) for _ in range(dims)])
    inside = zip(reading.bounds, reading.schema.dims, strict=True)
    need(all(d.low <= lo <= hi <= d.high for (lo, hi), d in inside), "a box outside the domain")
    for _ in range(r.count(10)):
        role, nullable, number = r.u8(), r.u8(), r.u32()
        need(role < 2 and nullable < 2, "a field of an unknown role")
        reading.fields.append(Field(role == 1, nullable == 1, number, Datatype(r.text())))
    _check_fields(reading)
    reading.pipelines = [r.text() for _ in range(r.count(4))]
    for pipeline in reading.pipelines:
        filters.parse(pipeline)
    reading.stripes = [(r.u64(), r.u64(), r.u64()) for _ in range(r.count(24))]
    need(sum(s[0] for s in reading.stripes) == reading.tiles, "the stripes do not add up to the tiles")
    for _ in range(r.count(40)):
        number, version, stripe, _reserved = r.u32(), r.u32(), r.u32(), r.u32()
        section = Section(number, stripe, r.u64(), r.u64(), r.u64())
        need(stripe < len(reading.stripes), "a section of no stripe")
        if CELLS <= number <= CHUNKS and version != 0:
            raise Unsupported(f"version {version} of section {number}")
        reading.sections.append(section)
    r.end()


def _check_fields(reading: _Reading) -> None:
    dims = [f for f in reading.fields if not f.is_attr]
    attrs = [f for f in reading.fields if f.is_attr]
    need(reading.fields == dims + attrs, "attributes before dimensions")
    described = [Field(False, False, n, d.datatype) for n, d in enumerate(reading.schema.dims)]
    need(dims == ([] if reading.kind == "dense" else described), "other dimensions than the array's")
    need(all(a.number < b.number for a, b in itertools.pairwise(attrs)), "attributes out of order")
    for f in attrs:
        attr = reading.schema.attr(f.number)
        need(attr, "an unknown attribute")
        need((attr.datatype, attr.nullable) == (f.datatype, f.nullable), "an attribute of another type")
    need(bool(attrs) == (reading.kind != "tombstones"), "tombstones with values, or cells without")


def _dense_tiles(reading: _Reading) -> list[Box]:
    """The clipped tiles of a dense fragment in tile order."""
    schema, tiles = reading.schema, []
    need(not schema.sparse, "a dense fragment of a sparse array")
    spans = [range(d.tile(lo), d.tile(hi) + 1) for d, (lo, hi) in zip(schema.dims, reading.bounds, strict=True)]
    order = schema.slow_to_fast(schema.tile_order)
    for numbers in itertools.product(*(spans[d] for d in order)):
        clipped: Box = [(0, 0)] * len(order)
        for d, number in zip(order, numbers, strict=True):
            (first, last), (lo, hi) = schema.dims[d].tile_range(number), reading.bounds[d]
            clipped[d] = (max(first, lo), min(last, hi))
        tiles.append(clipped)
    return tiles


def _dense_blocks(reading: _Reading, tile: Box) -> list[int]:
    """Cells per block of a dense tile, in order."""
    order = reading.schema.slow_to_fast(reading.schema.cell_order)
    sides, product = [1] * len(tile), 1
    for d in reversed(order):
        extent = tile[d][1] - tile[d][0] + 1
        sides[d] = max(1, min(extent, reading.block_cells // product))
        product *= sides[d]
        if sides[d] < extent:
            break
    parts = []
    for d in order:
        extent = tile[d][1] - tile[d][0] + 1
        parts.append([min(sides[d], extent - at) for at in range(0, extent, sides[d])])
    counts = []
    for shape in itertools.product(*parts):
        cells = 1
        for side in shape:
            cells *= side
        counts.append(cells)
    return counts


def _dense_places(reading: _Reading, tile: Box) -> list[tuple[int, ...]]:
    order = reading.schema.slow_to_fast(reading.schema.cell_order)
    ranges = [range(tile[d][0], tile[d][1] + 1) for d in order]
    back = [order.index(d) for d in range(len(order))]
    return [tuple(place[b] for b in back) for place in itertools.product(*ranges)]


def _mbr(places: list[tuple[int, ...]]) -> Box:
    return [(min(column), max(column)) for column in zip(*places, strict=True)]


def _stripe(reading: _Reading, number: int, tiles: Iterator[Box] | None, fragment: Fragment) -> None:
    """Reads one stripe: its index, then every block of every page."""
    tile_count, block_count, text_count = reading.stripes[number]
    found: dict[int, bytes] = {}
    for section in (s for s in reading.sections if s.stripe == number):
        need(section.id not in found, "a section twice in a stripe")
        found[section.id] = reading.slice(section.offset, section.length)
        need(section.offset % FRAME == 0, "a section that is not aligned")
        need(xxh3(found[section.id]) == section.xxh3, f"section {section.id} fails its checksum")
    starts = words32(found.get(STARTS, b""), tile_count + 1, "block starts")
    need(starts[0] == 0 and starts[-1] == block_count and starts == sorted(starts), "block starts out of order")
    pages = Cursor(found.get(PAGES, b""), "the pages")
    blocks = Cursor(found.get(BLOCKS, b""), "the blocks")
    raw_chunks = found.get(CHUNKS, b"")
    chunks = words32(raw_chunks, len(raw_chunks) // 4, "chunk checksums")
    shapes = _Shapes(reading, found, tile_count, block_count)
    columns: list[list[list[Cell]]] = []
    layout: list[list[int]] = []
    places: list[list[tuple[int, ...]]] = []
    for tile in range(tile_count):
        if reading.kind == "dense":
            box = next(tiles, None) if tiles else None
            if box is None:
                raise Damaged("a dense fragment with too many tiles")
            layout.append(_dense_blocks(reading, box))
            places.append(_dense_places(reading, box))
        else:
            cells = shapes.cells[tile]
            layout.append([min(reading.block_cells, cells - at) for at in range(0, cells, reading.block_cells)])
        need(len(layout[tile]) == starts[tile + 1] - starts[tile] > 0, "a tile with a wrong number of blocks")
    for f in reading.fields:
        columns.append([_page(reading, f, layout[tile], pages, blocks, chunks) for tile in range(tile_count)])
    pages.end()
    blocks.end()
    if reading.kind != "dense":
        dims = len(reading.schema.dims)
        for tile in range(tile_count):
            coordinates = [(f.datatype, columns[d][tile]) for d, f in enumerate(reading.fields[:dims])]
            keys = [[datatype.key(c or b"") for c in cells] for datatype, cells in coordinates]
            places.append(list(zip(*keys, strict=True)))
        shapes.check(places, layout, starts)
    _check_statistics(reading, found, text_count, columns)
    for tile in range(tile_count):
        fragment.places.extend(places[tile])
        fragment.tiles.append(len(places[tile]))
        for f, column in zip(reading.fields, columns, strict=True):
            if f.is_attr:
                fragment.attrs[f.number].extend(column[tile])


class _Shapes:
    """Sections 1, 2, 3, 5 and 6."""

    def __init__(self, reading: _Reading, found: dict[int, bytes], tiles: int, blocks: int) -> None:
        self.dims = len(reading.schema.dims)
        if reading.kind == "dense":
            tiles = blocks = 0
        self.cells = words64(found.get(CELLS, b""), tiles, "tile cells")
        self.bounds = words64(found.get(BOUNDS, b""), 2 * tiles * self.dims, "tile bounds")
        self.ends = words64(found.get(ENDS, b""), 2 * tiles * self.dims, "tile ends")
        self.block_bounds = words64(found.get(BLOCK_BOUNDS, b""), 2 * blocks * self.dims, "block bounds")
        self.firsts = words64(found.get(FIRSTS, b""), blocks * self.dims, "block firsts")

    def check(self, places: list[list[tuple[int, ...]]], layout: list[list[int]], starts: list[int]) -> None:
        """The sections must be what the coordinates say."""
        n = self.dims
        for tile, cells in enumerate(places):
            bounds = self.bounds[2 * n * tile : 2 * n * (tile + 1)]
            need(bounds == [end for pair in _mbr(cells) for end in pair], "a tile's MBR is wrong")
            ends = self.ends[2 * n * tile : 2 * n * (tile + 1)]
            need(ends == [*cells[0], *cells[-1]], "a tile's bounding coordinates are wrong")
            at = 0
            for block, count in enumerate(layout[tile], starts[tile]):
                run = cells[at : at + count]
                box = self.block_bounds[2 * n * block : 2 * n * (block + 1)]
                need(box == [end for pair in _mbr(run) for end in pair], "a block's MBR is wrong")
                need(self.firsts[n * block : n * (block + 1)] == [*run[0]], "a block's first cell is wrong")
                at += count


def _page(
    reading: _Reading, f: Field, layout: list[int], pages: Cursor, blocks: Cursor, chunks: list[int]
) -> list[Cell]:
    """All cells of one field of one tile."""
    offset, length, pipeline, first = pages.u64(), pages.u64(), pages.u32(), pages.u32()
    need(pipeline < len(reading.pipelines), "a page of an unknown pipeline")
    name, page = reading.pipelines[pipeline], reading.slice(offset, length)
    large = name == "none" and length >= LARGE
    need(offset % (CHUNK if large else FRAME) == 0, "a page that is not aligned")
    if large:
        sums = [crc32c(page[at : at + CHUNK]) for at in range(0, length, CHUNK)]
        need(sums == chunks[first : first + len(sums)], "a chunk of a page fails its checksum")
    cells: list[Cell] = []
    at = 0
    for count in layout:
        stored, checksum = blocks.u32(), blocks.u32()
        block = page[at : at + stored]
        at += stored
        need(len(block) == stored, "a block past the end of its page")
        need(checksum == (0 if large else crc32c(block)), "a block fails its checksum")
        cells += decode_block(block, f.datatype, f.nullable, count, name, reading.users)
    need(at == length, "a page that is not its blocks")
    return cells


def decode_block(
    data: bytes, datatype: Datatype, nullable: bool, count: int, pipeline: str, users: filters.Users
) -> list[Cell]:
    """The cells of a block."""
    width, valid, offsets = datatype.width, None, None
    if nullable or datatype.varies:
        r = Cursor(data, "a block")
        validity_len, offsets_len = r.u32(), r.u32()
        validity, packed = r.take(validity_len), r.take(offsets_len)
        data = r.take(len(data) - r.at)
        if validity:
            bits = int.from_bytes(validity, "little")
            need(nullable and len(validity) == (count + 7) // 8 and bits >> count == 0, "an impossible validity")
            valid = [bits >> i & 1 == 1 for i in range(count)]
        need(datatype.varies or offsets_len == 0, "offsets of values of fixed width")
        if datatype.varies:
            how = "none" if pipeline == "none" else "delta,for"
            offsets = words32(filters.decode(how, packed, OFFSETS, 4 * count + 4), count + 1, "offsets")
            need(offsets[0] == 0 and offsets == sorted(offsets), "offsets that decrease")
            need(not any(offset % width for offset in offsets), "a list that ends within an item")
    length = offsets[-1] if offsets else count * width
    values = filters.decode(pipeline, data, datatype.element, length, users)
    bools = "bool" in (datatype.name, datatype.items and datatype.items.name)
    cells: list[Cell] = []
    for i in range(count):
        raw = values[offsets[i] : offsets[i + 1]] if offsets else values[i * width : (i + 1) * width]
        null = valid is not None and not valid[i]
        need(not null or not raw.strip(b"\0"), "a null with a value")
        need(not bools or max(raw, default=0) <= 1, "a boolean that is neither 0 nor 1")
        if datatype.name == "string":
            _check_text(raw)
        cells.append(None if null else raw)
    return cells


def _check_text(raw: bytes) -> None:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged("a string is not UTF-8") from error


def _check_statistics(
    reading: _Reading, found: dict[int, bytes], text_count: int, columns: list[list[list[Cell]]]
) -> None:
    """Stored statistics must be those of the cells."""
    r, texts = Cursor(found.get(STATISTICS, b""), "the statistics"), Cursor(found.get(TEXTS, b""), "the texts")
    seen = 0
    for f, tiles in zip(reading.fields, columns, strict=True):
        for cells in tiles if f.is_attr else []:
            flags, first, nulls, nans = r.u32(), r.u32(), r.u64(), r.u64()
            words = [r.take(8), r.take(8)]
            total = r.u64() | r.u64() << 64
            r.u64()
            need(first == seen, "statistics point at a wrong text")
            ends: list[bytes | None] = []
            for word, has in zip(words, (statistics.HAS_MIN, statistics.HAS_MAX), strict=True):
                if f.datatype.order == "bytes" and flags & has:
                    ends.append(texts.sized())
                    seen += 1
                else:
                    ends.append(word[: f.datatype.width] if flags & has else None)
            stored = statistics.Statistics(flags, nulls, nans, ends[0], ends[1], total)
            need(stored == statistics.of(f.datatype, cells), "statistics are not those of the cells")
    r.end()
    texts.end()
    need(seen == text_count, "a wrong number of texts")


def _check_gaps(reading: _Reading) -> None:
    """What is not used is padding: shorter than its alignment, and zero."""
    end = FRAME
    for start, stop in sorted(reading.used):
        need(start >= end and start - end < CHUNK, "parts of a fragment overlap, or leave a hole")
        need(not reading.data[end:start].strip(b"\0"), "padding that is not zero")
        end = stop
    need(end == len(reading.data) - FRAME, "a hole before the footer")
