"""Schemas, datatypes, values and ordered keys: ``docs/format/schema.md`` and ``keys.md``."""

from __future__ import annotations

import itertools
import math
import re
import struct
from dataclasses import dataclass
from typing import Any

from .bytes import Damaged, Unsupported, need
from .filters import BYTE, Element, parse, parse_attribute

SIGN = 1 << 63
FIXED = {
    "bool": Element("u", 1),
    **{f"int{8 * width}": Element("i", width) for width in (1, 2, 4, 8)},
    **{f"uint{8 * width}": Element("u", width) for width in (1, 2, 4, 8)},
    "float16": Element("f", 2),
    "float32": Element("f", 4),
    "float64": Element("f", 8),
}
COMPLEX = {"complex64": "float32", "complex128": "float64"}
FLOATS = {2: "<e", 4: "<f", 8: "<d"}
TIME = re.compile(r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
SHAPED = re.compile(r"(.+)\[([1-9][0-9]*(?:,[1-9][0-9]*){0,3})\]")
LIST = re.compile(r"list\[(.+)\]")
CELL_BYTES_MAX = 1 << 16
Cell = bytes | None
Box = list[tuple[int, int]]


@dataclass(frozen=True)
class Datatype:
    """A datatype by name."""

    name: str

    def __post_init__(self) -> None:
        single = self.name in FIXED or self.name in COMPLEX or self.time
        if not single and self.name not in ("string", "bytes"):
            base = LIST.fullmatch(self.name) or SHAPED.fullmatch(self.name)
            if base is None or (not Datatype(base[1]).primitive and not self.fixed_bytes):
                raise Unsupported(f"unknown datatype {self.name!r}")
            need(self.width <= CELL_BYTES_MAX, "cells that are too wide")

    @property
    def time(self) -> bool:
        return TIME.fullmatch(self.name) is not None

    @property
    def primitive(self) -> bool:
        return self.name in FIXED or self.name in COMPLEX or self.time

    @property
    def fixed_bytes(self) -> bool:
        return re.fullmatch(r"bytes\[[1-9][0-9]*\]", self.name) is not None

    @property
    def listed(self) -> bool:
        return LIST.fullmatch(self.name) is not None

    @property
    def items(self) -> Datatype | None:
        """What a vector or list is made of."""
        found = None if self.primitive or self.fixed_bytes else LIST.fullmatch(self.name) or SHAPED.fullmatch(self.name)
        return None if found is None else Datatype(found[1])

    @property
    def count(self) -> int:
        """Values in a vector, bytes in bytes of a length; else 1."""
        found = None if self.primitive or self.listed else SHAPED.fullmatch(self.name)
        return 1 if found is None else math.prod(int(side) for side in found[2].split(","))

    @property
    def varies(self) -> bool:
        return self.name in ("string", "bytes") or self.listed

    @property
    def order(self) -> str:
        """How values are compared: as a "number", as "bytes", or not at all: ""."""
        if self.name in ("string", "bytes") or self.fixed_bytes:
            return "bytes"
        return "" if self.name in COMPLEX or self.items is not None else "number"

    @property
    def element(self) -> Element:
        if self.items is not None:
            return self.items.element
        if self.name in COMPLEX:
            return FIXED[COMPLEX[self.name]]
        if self.varies or self.fixed_bytes:
            return BYTE
        return Element("i", 8) if self.time else FIXED[self.name]

    @property
    def width(self) -> int:
        """Bytes of a cell; of one that varies, bytes of which it is a multiple."""
        if self.items is not None:
            return self.items.width * self.count
        return self.element.width * self.count * (2 if self.name in COMPLEX else 1)

    def number(self, raw: bytes) -> int | float:
        """The value of a number, boolean or time."""
        if self.element.kind == "f":
            return float(struct.unpack(FLOATS[self.width], raw)[0])
        return int.from_bytes(raw, "little", signed=self.element.kind == "i")

    def bytes_of_text(self, text: str) -> bytes:
        """The bytes of a value written as text."""
        if self.name == "string":
            return text.encode()
        if self.name == "bytes" or self.fixed_bytes:
            raw = bytes.fromhex(text)
            need(self.varies or len(raw) == self.width, "bytes of a wrong length")
            return raw
        if self.items is not None:
            need(text[:1] == "[" and text[-1:] == "]", "values without brackets")
            parts = [self.items.bytes_of_text(part) for part in text[1:-1].split(",")] if len(text) > 2 else []
            need(self.listed or len(parts) == self.count, "a vector of a wrong length")
            return b"".join(parts)
        if self.name in COMPLEX:
            value = complex(text)
            need(text[-1] == "j" and len(text) > 2, "a complex number without both parts")
            return struct.pack("<ff" if self.width == 8 else "<dd", value.real, value.imag)
        if self.name == "bool":
            return {"false": b"\0", "true": b"\1"}[text]
        if self.element.kind == "f":
            return struct.pack(FLOATS[self.width], float(text))
        value = -SIGN if self.time and text == "NaT" else int(text)
        return value.to_bytes(self.width, "little", signed=self.element.kind == "i")

    def key(self, raw: bytes) -> int:
        """The ordered key of a coordinate."""
        value = self.number(raw)
        if isinstance(value, float):
            need(not math.isnan(value), "NaN is no coordinate")
            bits = int(struct.unpack("<Q", struct.pack("<d", value + 0.0))[0])
            return bits ^ (2 * SIGN - 1) if bits & SIGN else bits | SIGN
        need(not self.time or value != -SIGN, "NaT is no coordinate")
        return value + SIGN if self.element.kind == "i" else value

    def bytes_of_key(self, key: int) -> bytes:
        """The coordinate of an ordered key."""
        if self.element.kind == "f":
            return struct.pack(FLOATS[self.width], key_to_float(key))
        value = key - SIGN if self.element.kind == "i" else key
        return value.to_bytes(self.width, "little", signed=self.element.kind == "i")


def key_to_float(key: int) -> float:
    bits = key & ~SIGN if key & SIGN else key ^ (2 * SIGN - 1)
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


@dataclass(frozen=True)
class Dimension:
    """An axis, which is a dimension or one word of a text dimension: domain as keys, extent as an int, a float or None;
    the word's number and the bytes of the longest text."""

    name: str
    datatype: Datatype
    low: int
    high: int
    extent: int | float | None
    word: int | None = None
    max_bytes: int | None = None

    def tile(self, key: int) -> int:
        """The number of the space tile of a key in the domain."""
        if self.extent is None:
            return 0
        if isinstance(self.extent, int):
            return (key - self.low) // self.extent
        position = (key_to_float(key) - key_to_float(self.low)) / self.extent
        return 1 << 53 if position >= 2.0**53 else math.floor(position)

    def offset(self, key: int) -> int:
        """How far a key lies from the low end of its tile; without integer tiles of the domain."""
        return (key - self.low) % self.extent if isinstance(self.extent, int) else key - self.low

    @property
    def offset_bits(self) -> int:
        """The bits of the largest offset."""
        return (self.extent - 1 if isinstance(self.extent, int) else self.high - self.low).bit_length()

    def tile_range(self, tile: int) -> tuple[int, int]:
        """The keys of a space tile of an integer dimension."""
        if not isinstance(self.extent, int):
            return self.low, self.high
        first = self.low + tile * self.extent
        return first, min(first + self.extent - 1, self.high)


@dataclass(frozen=True)
class Attribute:
    """An attribute."""

    number: int
    name: str
    datatype: Datatype
    """That of what is stored: of codes where there are categories."""
    nullable: bool
    fill: bytes
    shown: Datatype
    """That of the values."""
    categories: tuple[bytes, ...] | None
    ordered: bool

    @property
    def unwritten(self) -> Cell:
        return None if self.nullable else self.fill

    def value(self, cell: Cell) -> Cell:
        """The value of what is stored in a cell."""
        if self.categories is None or cell is None:
            return cell
        code = int.from_bytes(cell, "little")
        need(code < len(self.categories), "a code of no category")
        return self.categories[code]


def fields(value: Any, needed: dict[str, type], optional: dict[str, Any], what: str) -> dict[str, Any]:
    """A JSON object's fields, defaults filled in; unknown, missing and ill-typed ones are refused."""
    need(isinstance(value, dict), f"{what} is no object")
    unknown = set(value) - set(needed) - set(optional)
    if unknown:
        raise Unsupported(f"{what} has unknown fields {sorted(unknown)}")
    for name, kind in needed.items():
        need(name in value and isinstance(value[name], kind), f"{what}: {name} is missing or of a wrong type")
    return {**optional, **value}


@dataclass(frozen=True)
class Schema:
    """The schema of an array."""

    dims: tuple[Dimension, ...]
    attrs: tuple[Attribute, ...]
    sparse: bool
    duplicates: bool
    capacity: int
    tile_order: str
    cell_order: str
    next_number: int
    json: dict[str, Any]

    @staticmethod
    def of_json(value: Any) -> Schema:
        defaults = {"sparse": False, "capacity": 10000, "tile_order": "row", "cell_order": "row", "duplicates": False}
        optional = {**defaults, "coord_filters": "auto", "next_id": None}
        top = fields(value, {"dims": list, "attrs": list}, optional, "a schema")
        if top["coord_filters"] != "auto":
            parse(top["coord_filters"])
        for order, known in ((top["tile_order"], ("row", "col")), (top["cell_order"], ("row", "col", "hilbert"))):
            if order not in known:
                raise Unsupported(f"order {order!r}")
        try:
            dims = tuple(axis for d in top["dims"] for axis in dimension(d))
            attrs = tuple(attribute(a, place) for place, a in enumerate(top["attrs"]))
        except (ValueError, KeyError, OverflowError, struct.error) as error:
            raise Damaged("a schema holds an impossible value") from error
        need(1 <= len(top["dims"]) <= 8 and 1 <= len(attrs) <= 4096, "a schema with too few or too many columns")
        need(len(dims) <= 32, "a schema with too many axes")
        texts = any(d.word is not None for d in dims)
        need(not texts or (top["sparse"] and top["cell_order"] != "hilbert"), "texts in an array that cannot have them")
        names = [d.name for d in dims if not d.word] + [a.name for a in attrs]
        need(len(set(names)) == len(names), "a name is used twice")
        numbered = [isinstance(a, dict) and "id" in a for a in top["attrs"]]
        need(all(numbered) or not any(numbered), "some attributes have a number and some have none")
        need(all(numbered) == (top["next_id"] is not None), "attributes with numbers, and no next one")
        next_number = top["next_id"] if all(numbered) else len(attrs)
        numbers = [*(a.number for a in attrs), next_number]
        need(all(isinstance(n, int) and n >= 0 for n in numbers), "a number that is none")
        need(all(a < b for a, b in itertools.pairwise(numbers)), "attributes out of order")
        orders = (top["tile_order"], top["cell_order"])
        return Schema(dims, attrs, top["sparse"], top["duplicates"], top["capacity"], *orders, next_number, value)

    def attr(self, number: int) -> Attribute | None:
        """The attribute of this number."""
        return next((a for a in self.attrs if a.number == number), None)

    def check_follows(self, before: Schema) -> None:
        """Checks what stays as it was from one schema of an array to the next."""
        same = ("sparse", "duplicates", "capacity", "tile_order", "cell_order")
        need(all(getattr(self, n) == getattr(before, n) for n in same), "an option of a schema changed")
        need(len(self.dims) == len(before.dims), "the number of dimensions changed")
        for new, old in zip(self.dims, before.dims, strict=True):
            kept = [(d.name, d.datatype, d.extent, d.word, d.max_bytes) for d in (new, old)]
            alike = kept[0] == kept[1]
            need(alike and new.low <= old.low and new.high >= old.high, "a dimension changed, or shrank")
            whole = isinstance(old.extent, int) and (old.low - new.low) % old.extent == 0
            need(new.low == old.low or old.extent is None or whole, "tiles moved")
            curve = self.cell_order != "hilbert" or isinstance(old.extent, int) or new.low == old.low
            need(curve, "the origin of a Hilbert curve moved")
        bits = (max(dim.offset_bits for dim in schema.dims) for schema in (self, before))
        need(self.cell_order != "hilbert" or len(set(bits)) == 1, "the size of a Hilbert curve changed")
        need(self.next_number >= before.next_number, "a number is used again")
        for attr in self.attrs:
            known = before.attr(attr.number)
            if known is None:
                need(attr.number >= before.next_number, "the number of a dropped attribute is used again")
                continue
            need(attr.datatype == known.datatype and attr.nullable >= known.nullable, "an attribute changed its type")
            alike = (attr.shown, attr.ordered) == (known.shown, known.ordered)
            need(alike and (attr.categories is None) == (known.categories is None), "an attribute changed its type")
            begins = (attr.categories or ())[: len(known.categories or ())] == (known.categories or ())
            need(begins, "a code means something else")

    def slow_to_fast(self, order: str) -> list[int]:
        """The numbers of the axes from the slowest to the fastest; the words of a text from its first on."""
        starts = [i for i, dim in enumerate(self.dims) if not dim.word]
        groups = [list(range(a, b)) for a, b in itertools.pairwise([*starts, len(self.dims)])]
        return [axis for group in (groups[::-1] if order == "col" else groups) for axis in group]

    def global_key(self, place: tuple[int, ...]) -> list[int]:
        """What cells are sorted by."""
        tiles = [self.dims[d].tile(place[d]) for d in self.slow_to_fast(self.tile_order)]
        if self.cell_order == "hilbert":
            return [*tiles, self.along_curve([dim.offset(key) for dim, key in zip(self.dims, place, strict=True)])]
        return tiles + [place[d] for d in self.slow_to_fast(self.cell_order)]

    def along_curve(self, x: list[int]) -> int:
        """The index along the Hilbert curve of a cell's offsets."""
        bits = max(dim.offset_bits for dim in self.dims)
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
            for offset in x:
                index = index << 1 | (offset ^ turned) >> q & 1
        return index

    @property
    def coordinates(self) -> list[tuple[Dimension, ...]]:
        """The axes of each dimension."""
        starts = [i for i, dim in enumerate(self.dims) if not dim.word]
        return [self.dims[a:b] for a, b in itertools.pairwise([*starts, len(self.dims)])]

    def box(self, texts: list[list[str] | None]) -> Box:
        """The box whose ends are written as text; None: all of a text dimension."""
        box: Box = []
        for axes, ends in zip(self.coordinates, texts, strict=True):
            if ends is None:
                box += [(axis.low, axis.high) for axis in axes]
                continue
            need(axes[0].word is None, "a box with ends along texts")
            low, high = (axes[0].datatype.key(axes[0].datatype.bytes_of_text(end)) for end in ends)
            box.append((low, high))
        return box


def history(values: list[Any]) -> list[Schema]:
    """All schemas that an array has had, from number 0 on, each checked against the one before."""
    schemas = [Schema.of_json(value) for value in values]
    for before, after in itertools.pairwise(schemas):
        after.check_follows(before)
    return schemas


def dimension(value: Any) -> tuple[Dimension, ...]:
    """The axes of a dimension."""
    optional = {"domain": None, "tile": None, "max_bytes": None}
    d = fields(value, {"name": str, "dtype": str}, optional, "a dimension")
    datatype = Datatype(d["dtype"])
    if datatype.name == "string":
        longest = 32 if d["max_bytes"] is None else d["max_bytes"]
        need(isinstance(longest, int) and 1 <= longest <= 256, "texts that are too long")
        need(d["domain"] is None and d["tile"] is None, "texts with a domain or a tile")
        word = Datatype("uint64")
        words = range(-(-longest // 8))
        return tuple(Dimension(d["name"], word, 0, 2 * SIGN - 1, None, number, longest) for number in words)
    need(isinstance(d["domain"], list) and d["max_bytes"] is None, "a dimension without a domain")
    if datatype.order != "number" or datatype.name in ("bool", "float16"):
        raise Unsupported(f"a dimension of {datatype.name}")
    low, high = (datatype.key(datatype.bytes_of_text(end)) for end in d["domain"])
    need(low <= high, "a domain is empty")
    convert = float if datatype.element.kind == "f" else int
    return (Dimension(d["name"], datatype, low, high, None if d["tile"] is None else convert(d["tile"])),)


def text_of(axes: tuple[Dimension, ...], words: tuple[int, ...]) -> bytes:
    """The text of its words, checked."""
    padded = b"".join(word.to_bytes(8, "big") for word in words)
    text = padded.rstrip(b"\0")
    need(b"\0" not in text and len(text) <= (axes[0].max_bytes or 0), "words that are no text of the dimension")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise Damaged("words that are no text") from error
    return text


def attribute(value: Any, place: int) -> Attribute:
    optional = {"nullable": False, "fill": None, "filters": "auto", "id": place}
    optional |= {"categories": None, "ordered": None, "codes": None}
    a = fields(value, {"name": str, "dtype": str}, optional, "an attribute")
    if a["categories"] is not None:
        return enumerated(a)
    need(a["ordered"] is None and a["codes"] is None, "codes without categories")
    datatype = Datatype(a["dtype"])
    parse_attribute(a["filters"], datatype.element)
    if a["fill"] is not None:
        fill = datatype.bytes_of_text(a["fill"])
    elif datatype.time:
        fill = datatype.bytes_of_text("NaT")
    elif datatype.items is not None and datatype.items.time:
        fill = b"" if datatype.listed else datatype.items.bytes_of_text("NaT") * datatype.count
    else:
        fill = b"" if datatype.varies else bytes(datatype.width)
    return Attribute(a["id"], a["name"], datatype, a["nullable"], fill, datatype, None, False)


def enumerated(a: dict[str, Any]) -> Attribute:
    """An attribute with categories."""
    shown, count = Datatype(a["dtype"]), len(a["categories"])
    plain = shown.order == "number" or shown.name in ("string", "bytes")
    need(plain, "categories of a type that cannot be")
    categories = tuple(shown.bytes_of_text(text) for text in a["categories"])
    same = [c if shown.order == "bytes" else shown.key(c) for c in categories]
    need(len(set(same)) == count, "a category is there twice")
    room = 128, 32_768
    codes = Datatype(a["codes"] or ("uint8" if count <= room[0] else "uint16" if count <= room[1] else "uint32"))
    need(codes.name in ("uint8", "uint16", "uint32") and count <= 1 << 8 * codes.width, "codes of a wrong type")
    need(count > 0 or a["nullable"], "an attribute without a value")
    parse_attribute(a["filters"], codes.element)
    code = 0 if a["fill"] is None else categories.index(shown.bytes_of_text(a["fill"]))
    fill, ordered = code.to_bytes(codes.width, "little"), bool(a["ordered"])
    return Attribute(a["id"], a["name"], codes, a["nullable"], fill, shown, categories, ordered)
