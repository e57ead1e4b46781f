"""Schemas: ``docs/format/schema.md`` and ``keys.md``."""

from __future__ import annotations

import itertools
import math
import re
import struct
from dataclasses import dataclass, replace
from typing import Any

from .bytes import Damaged, Unsupported, need
from .datatypes import Datatype
from .filters import parse, parse_attribute
from .keys import KEY_MAX, Frame, along_curve, key_to_float

Cell = bytes | None
Box = list[tuple[int, int]]
EMPTY = (KEY_MAX, 0)
"""The ends of an empty domain: the union with another domain is the other one."""


@dataclass(frozen=True)
class Shared:
    """Labels in an ordinary array, by its id; none where it is gone."""

    array: str


@dataclass(frozen=True)
class Steps:
    """Labels at equal steps: their type, and the bytes of the first one and of the step."""

    datatype: Datatype
    start: bytes
    step: bytes


@dataclass(frozen=True)
class Dimension:
    """An axis, which is a dimension or one word of a text dimension.

    Ends of the domain and origin are keys. The extent is an int, a float or None. A word has a number, and the bytes of
    the longest text. Ends of the domain may be open; if one is, the other one may be fixed. Labels are at steps, or the
    id of the array that has them.
    """

    name: str
    datatype: Datatype
    low: int
    high: int
    extent: int | float | None
    origin: int
    word: int | None = None
    max_bytes: int | None = None
    open: tuple[bool, bool] = (False, False)
    fixed: int | None = None
    labels: Steps | Shared | str | None = None

    def reached(self, ends: tuple[int, int]) -> tuple[int, int]:
        """A domain that was given or written, made to reach to the end that is fixed."""
        if self.fixed is None or ends == EMPTY:
            return ends
        return min(ends[0], self.fixed), max(ends[1], self.fixed)

    def tile(self, key: int) -> int:
        """The number of the space tile of a key in the domain, which may be below 0."""
        if self.extent is None:
            return 0
        if isinstance(self.extent, int):
            return (key - self.origin) // self.extent
        position = (key_to_float(key) - key_to_float(self.origin)) / self.extent
        return math.floor(min(max(position, -(2.0**53)), 2.0**53))

    def offset(self, key: int) -> int:
        """How far a key lies from the low end of its tile; without integer tiles the key."""
        return (key - self.origin) % self.extent if isinstance(self.extent, int) else key

    @property
    def side(self) -> tuple[int, int]:
        """The largest offset that the domain allows, and where the side of a default frame begins."""
        return (self.extent - 1, 0) if isinstance(self.extent, int) else (self.high - self.low, self.low)

    def tile_range(self, tile: int) -> tuple[int, int]:
        """The keys of a space tile of an integer dimension, as far as they are in the domain."""
        if not isinstance(self.extent, int):
            return self.low, self.high
        first = self.origin + tile * self.extent
        return max(first, self.low), min(first + self.extent - 1, self.high)

    def has_tiles_of(self, other: Dimension) -> bool:
        """Whether the tiles of two dimensions of one extent begin at the same coordinates."""
        if isinstance(self.extent, int):
            return (self.origin - other.origin) % self.extent == 0
        return self.extent is None or self.origin == other.origin

    def is_coordinate(self, key: int) -> bool:
        """Whether a key is one of a coordinate of this type that a domain may end with."""
        try:
            raw = self.datatype.bytes_of_key(key)
            return math.isfinite(self.datatype.number(raw)) and self.datatype.key(raw) == key
        except (Damaged, OverflowError):
            return False


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
    frame: Frame | None
    """That of the order ``hilbert``."""
    json: dict[str, Any]
    coord_filters: str = "auto"
    scalar: bool = False
    """Whether the array has no dimension to its users, and one axis here."""
    unknown: tuple[str, ...] = ()
    """The features of ``read`` that this reader does not know: such a schema has its dimensions alone."""

    @staticmethod
    def of_json(value: Any) -> Schema:
        unknown = unknown_features(value)
        if unknown:
            dims = _dimensions_alone(value)
            return Schema(dims, (), True, False, 0, "row", "row", 0, None, value, unknown=unknown)
        defaults = {"sparse": False, "capacity": 10000, "tile_order": "row", "cell_order": "row", "duplicates": False}
        defaults |= {"coord_filters": "auto", "scalar": False}
        optional = {**defaults, "next_id": None, "frame": None, "read": [], "write": []}
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
        _check_dense(top["sparse"], dims)
        need(isinstance(top["scalar"], bool), "whether an array has no dimension is no truth value")
        need(not top["scalar"] or (not top["sparse"] and dims == SCALAR), "an array of no dimension with another axis")
        names = [d.name for d in dims if not d.word] + [a.name for a in attrs]
        need(len(set(names)) == len(names), "a name is used twice")
        numbered = [isinstance(a, dict) and "id" in a for a in top["attrs"]]
        need(all(numbered) or not any(numbered), "some attributes have a number and some have none")
        need(all(numbered) == (top["next_id"] is not None), "attributes with numbers, and no next one")
        next_number = top["next_id"] if all(numbered) else len(attrs)
        numbers = [*(a.number for a in attrs), next_number]
        need(all(isinstance(n, int) and n >= 0 for n in numbers), "a number that is none")
        need(all(a < b for a, b in itertools.pairwise(numbers)), "attributes out of order")
        frame = frame_of(top["frame"], dims, top["cell_order"])
        options = (top["sparse"], top["duplicates"], top["capacity"], top["tile_order"], top["cell_order"])
        return Schema(dims, attrs, *options, next_number, frame, value, top["coord_filters"], top["scalar"])

    @property
    def domain(self) -> Box:
        """The domain that the schema is used with."""
        return [(dim.low, dim.high) for dim in self.dims]

    def over(self, domain: Box) -> Schema:
        """The schema used with another domain. Tiles and places along a curve stay."""
        ends = zip(self.dims, domain, strict=True)
        return replace(self, dims=tuple(replace(dim, low=low, high=high) for dim, (low, high) in ends))

    def check_domain(self, domain: Box) -> None:
        """Checks that a domain has the array's axes, and ends of their types."""
        need(len(domain) == len(self.dims), "a domain of other axes than the array's")
        for dim, (low, high) in zip(self.dims, domain, strict=True):
            inside = low <= high and dim.is_coordinate(low) and dim.is_coordinate(high)
            need(inside or (low, high) == EMPTY, "a domain that is empty, or outside of the type")
        need(not self.scalar or domain == [(0, 0)], "an array of no dimension that grows")

    def attr(self, number: int) -> Attribute | None:
        """The attribute of this number."""
        return next((a for a in self.attrs if a.number == number), None)

    def check_follows(self, before: Schema) -> None:
        """Checks what stays as it was from one schema of an array to the next."""
        need(len(self.dims) == len(before.dims), "the number of dimensions changed")
        if self.unknown or before.unknown:
            return
        same = ("sparse", "duplicates", "capacity", "tile_order", "cell_order", "coord_filters", "scalar")
        need(all(getattr(self, n) == getattr(before, n) for n in same), "an option of a schema changed")
        need(len(self.dims) == len(before.dims), "the number of dimensions changed")
        for new, old in zip(self.dims, before.dims, strict=True):
            kept = [(d.datatype, d.extent, d.word, d.max_bytes) for d in (new, old)]
            need(kept[0] == kept[1], "a dimension changed")
            need(all(n or not o for n, o in zip(new.open, old.open, strict=True)), "an open end of a domain was closed")
            need(new.open != old.open or new.fixed == old.fixed, "a closed end of a domain moved")
            need(new.has_tiles_of(old), "tiles moved")
        need(self.frame == before.frame, "the frame of a Hilbert curve changed")
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
        if self.frame is not None:
            return [*tiles, self.along_curve(self.frame, place), *place]
        return tiles + [place[d] for d in self.slow_to_fast(self.cell_order)]

    def along_curve(self, frame: Frame, place: tuple[int, ...]) -> int:
        """The index along the Hilbert curve of a cell's keys."""
        x = []
        for axis, (dim, key) in enumerate(zip(self.dims, place, strict=True)):
            by_value = frame.by_value and dim.datatype.element.kind == "f"
            x.append(frame.place_of_value(axis, key) if by_value else frame.place(axis, dim.offset(key)))
        return along_curve(x, frame.bits)

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


def unknown_features(value: Any) -> tuple[str, ...]:
    """The features that a reader of this schema must know; this one knows none."""
    for which in ("read", "write"):
        names = value.get(which, []) if isinstance(value, dict) else []
        need(
            isinstance(names, list) and all(isinstance(n, str) for n in names), f"a schema: {which} is no list of names"
        )
    return tuple(value.get("read", ())) if isinstance(value, dict) else ()


def _dimensions_alone(value: dict[str, Any]) -> tuple[Dimension, ...]:
    """The axes of a schema of which nothing else is known."""
    known = ("name", "dtype", "domain", "tile", "max_bytes", "origin")
    need(isinstance(value.get("dims"), list) and value["dims"], "a schema without dimensions")
    every = [{n: v for n, v in d.items() if n in known} for d in value["dims"] if isinstance(d, dict)]
    need(len(every) == len(value["dims"]), "a dimension is no object")
    try:
        return tuple(axis for d in every for axis in dimension(d))
    except (ValueError, OverflowError, struct.error) as error:
        raise Damaged("a schema holds an impossible value") from error


def _check_dense(sparse: bool, dims: tuple[Dimension, ...]) -> None:
    """Refuses what only a dense array, or only a sparse one, has."""
    for dim in dims:
        need(not sparse or dim.labels is None, "labels in a sparse array")
        need(sparse or not any(dim.open) or dim.extent is not None, "a dense array with an open end, and without tiles")


def history(values: list[Any], domain: Box | None = None) -> list[Schema]:
    """All schemas that an array has had, from number 0 on, each checked against the one before.

    They are used with ``domain``; None: with that of the last one.
    """
    schemas = [Schema.of_json(value) for value in values]
    for before, after in itertools.pairwise(schemas):
        after.check_follows(before)
    if not schemas:
        return []
    domain = schemas[-1].domain if domain is None else domain
    schemas[-1].check_domain(domain)
    used = grown(schemas, domain)
    reached = [dim.reached(ends) for dim, ends in zip(schemas[-1].dims, domain, strict=True)]
    need(used[-1].domain == reached, "a domain that does not contain that of a schema")
    return used


def grown(schemas: list[Schema], domain: Box) -> list[Schema]:
    """All schemas of an array, used with the union of their domains and this one, and of the fixed ends of the last."""
    ends = list(zip(domain, *(schema.domain for schema in schemas), strict=True))
    union = [(min(low for low, _ in pairs), max(high for _, high in pairs)) for pairs in ends]
    reached = [dim.reached(ends) for dim, ends in zip(schemas[-1].dims, union, strict=True)]
    return [schema.over(reached) for schema in schemas]


def dimension(value: Any) -> tuple[Dimension, ...]:
    """The axes of a dimension."""
    optional = {"domain": None, "tile": None, "max_bytes": None, "origin": None, "labels": None}
    d = fields(value, {"name": str, "dtype": str}, optional, "a dimension")
    datatype = Datatype(d["dtype"])
    if datatype.name == "string":
        longest = 32 if d["max_bytes"] is None else d["max_bytes"]
        need(isinstance(longest, int) and 1 <= longest <= 256, "texts that are too long")
        need(d["domain"] is None and d["tile"] is None, "texts with a domain or a tile")
        need(d["origin"] is None and d["labels"] is None, "texts with an origin, or labels")
        word = Datatype("uint64")
        words = range(-(-longest // 8))
        return tuple(Dimension(d["name"], word, 0, KEY_MAX, None, 0, number, longest) for number in words)
    need(isinstance(d["domain"], list) and d["max_bytes"] is None, "a dimension without a domain")
    _check_number(datatype)
    given = _ends(datatype, d["domain"])
    is_open = (given[0] is None, given[1] is None) if given else (False, False)
    extent = None if d["tile"] is None else float(d["tile"]) if datatype.element.kind == "f" else int(d["tile"])
    need(extent is None or (extent > 0 and math.isfinite(extent)), "tiles without a length")
    least, greatest = datatype.ends
    need(not isinstance(extent, int) or extent <= greatest - least + 1, "tiles that are longer than the type")
    origin = given[0] if given and given[0] is not None else datatype.key(datatype.bytes_of_text("0"))
    if d["origin"] is not None:
        need(isinstance(d["origin"], str), "an origin that is no text")
        raw = datatype.bytes_of_text(d["origin"])
        need(math.isfinite(datatype.number(raw)), "an origin that is no coordinate")
        origin = datatype.key(raw)
    ends = [end for end in given if end is not None]
    low, high = ends if len(ends) == 2 else EMPTY
    fixed = ends[0] if len(ends) == 1 else None
    labels = labels_of(d["labels"])
    return (Dimension(d["name"], datatype, low, high, extent, origin, open=is_open, fixed=fixed, labels=labels),)


def _check_number(datatype: Datatype) -> None:
    """Refuses a type that no dimension has, texts aside."""
    if datatype.order != "number" or datatype.name in ("bool", "float16"):
        raise Unsupported(f"a dimension of {datatype.name}")


def _ends(datatype: Datatype, texts: list[Any]) -> list[int | None]:
    """The ends of a domain as keys, None where one is open; none of an empty domain."""
    if not texts:
        return []
    need(len(texts) == 2 and all(t is None or isinstance(t, str) for t in texts), "a domain has two ends, as text")
    low, high = (None if text is None else finite(datatype, text) for text in texts)
    need(low is None or high is None or low <= high, "a domain is empty")
    return [low, high]


def finite(datatype: Datatype, text: str) -> int:
    """The key of a finite number, or of a time."""
    raw = datatype.bytes_of_text(text)
    need(math.isfinite(datatype.number(raw)), f"{text} is not finite")
    return datatype.key(raw)


def labels_of(value: Any) -> Steps | Shared | str | None:
    """What the positions along a dimension stand for: values at steps, or those in an array, whose id it is."""
    if value is None:
        return None
    found = fields(value, {}, dict.fromkeys(("start", "step", "dtype", "array", "shared")), "labels")
    given = {name for name, text in found.items() if text is not None}
    need(all(isinstance(found[name], str) for name in given), "labels that are no text")
    if given == {"array"}:
        need(re.fullmatch("[0-9a-f]{32}", found["array"]), "labels in an array without an id")
        return str(found["array"])
    if given == {"shared"}:
        need(re.fullmatch("[0-9a-f]{32}", found["shared"]), "labels in a shared array without an id")
        return Shared(found["shared"])
    need(given == {"start", "step", "dtype"}, "labels are a start, a step and a dtype, or in an array")
    datatype = Datatype(found["dtype"])
    _check_number(datatype)
    keys = [finite(datatype, found[name]) for name in ("start", "step")]
    need(keys[1] != finite(datatype, "0"), "labels that are all the same")
    return Steps(datatype, *(datatype.bytes_of_key(key) for key in keys))


SCALAR = dimension({"name": "@", "dtype": "uint8", "domain": ["0", "0"], "tile": None})
"""The axis of an array of no dimension."""


def frame_of(value: Any, dims: tuple[Dimension, ...], cell_order: str) -> Frame | None:
    """The frame of a curve; None of another order."""
    if cell_order != "hilbert":
        need(value is None, "a frame without a curve")
        return None
    if value is None:
        bounded = all(isinstance(d.extent, int) or (not any(d.open) and d.low <= d.high) for d in dims)
        need(bounded, "a domain that is open or empty along a curve without a frame")
        return Frame.default([dim.side[0] for dim in dims], [dim.side[1] for dim in dims])
    f = fields(value, {"by": str, "bits": int, "sides": list}, {}, "a frame")
    if f["by"] not in ("key", "value"):
        raise Unsupported(f"a frame by {f['by']!r}")
    need(not isinstance(f["bits"], bool) and 0 <= f["bits"] <= 64, "a frame of too many bits")
    need(len(f["sides"]) == len(dims), "a frame of other dimensions than the array's")
    return Frame(f["by"] == "value", f["bits"], tuple(_side(s, dim) for s, dim in zip(f["sides"], dims, strict=True)))


def _side(value: Any, dim: Dimension) -> tuple[int, int]:
    """A side of a frame."""
    need(isinstance(value, list) and len(value) == 2, "a side of a frame has two ends")
    need(all(isinstance(e, str) and re.fullmatch("[0-9]+", e) for e in value), "an end of a side is no whole number")
    low, high = int(value[0]), int(value[1])
    need(low <= high and low <= KEY_MAX and high - low <= KEY_MAX, "a side of a frame is empty, or too long")
    tiled = isinstance(dim.extent, int)
    need(not tiled or (low == 0 and high >= dim.side[0]), "a side of a frame that is shorter than a tile")
    return low, high


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
