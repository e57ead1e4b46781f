"""Datatypes, their values as text, and the ordered keys of coordinates: ``docs/format/schema.md`` and ``keys.md``."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass

from .bytes import Unsupported, need
from .filters import BYTE, Element
from .keys import KEY_MAX, SIGN, key_to_float

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
LARGEST = {4: (2 - 2.0**-23) * 2.0**127, 8: (2 - 2.0**-52) * 2.0**1023}
"""The greatest finite float of a width."""
TIME = re.compile(r"(datetime64|timedelta64)\[([1-9][0-9]{0,9})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
STEP_MAX = (1 << 31) - 1
"""The most units that a step of time has."""
SHAPED = re.compile(r"(.+)\[([1-9][0-9]*(?:,[1-9][0-9]*){0,3})\]")
LIST = re.compile(r"list\[(.+)\]")
CELL_BYTES_MAX = 1 << 16


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
        found = TIME.fullmatch(self.name)
        return found is not None and (found[2] is None or 2 <= int(found[2]) <= STEP_MAX)

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
            return bits ^ KEY_MAX if bits & SIGN else bits | SIGN
        need(not self.time or value != -SIGN, "NaT is no coordinate")
        return value + SIGN if self.element.kind == "i" else value

    @property
    def ends(self) -> tuple[int, int]:
        """The keys of the least and the greatest coordinate of the type."""
        if self.element.kind == "f":
            greatest = self.key(struct.pack(FLOATS[self.width], LARGEST[self.width]))
            return KEY_MAX - greatest, greatest
        if self.element.kind == "u":
            return 0, (1 << 8 * self.width) - 1
        half = 1 << 8 * self.width - 1
        return SIGN - half + self.time, SIGN + half - 1

    def bytes_of_key(self, key: int) -> bytes:
        """The coordinate of an ordered key."""
        if self.element.kind == "f":
            return struct.pack(FLOATS[self.width], key_to_float(key))
        value = key - SIGN if self.element.kind == "i" else key
        return value.to_bytes(self.width, "little", signed=self.element.kind == "i")
