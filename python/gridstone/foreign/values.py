"""The types of foreign values, and the records that hold them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import UnsupportedError
from .copied import Varied, varied_of

_PADDINGS = {"zero_terminated": "terminated", "zero_padded": "zeros", "space_padded": "spaces"}


@dataclass(frozen=True)
class Stored:
    """How a value lies in a record, and the type of attribute that it makes."""

    dtype: str
    kind: str
    width: int
    count: int = 1
    big_endian: bool = False
    offset: int = 0
    shape: tuple[int, ...] = ()
    steps: tuple[Mapping[str, Any], ...] = ()
    categories: tuple[str, ...] | None = None
    name: str = ""
    """The name of the member; empty for a whole cell."""

    @property
    def value(self) -> dict[str, Any]:
        """The value in the core's terms."""
        made = {"kind": self.kind, "width": self.width, "count": self.count}
        return made | ({"big_endian": True} if self.big_endian else {})

    def as_stored(self) -> "Stored":
        """The numbers of an enumeration; other values as they are."""
        if self.categories is None:
            return self
        dtype = f"{'int' if self.kind == 'int' else 'uint'}{8 * self.width}"
        return replace(self, dtype=dtype, steps=(), categories=None)

    @property
    def is_number(self) -> bool:
        """Whether it is one integer or float, which conventions may decode."""
        is_one = self.kind in ("int", "u_int", "float") and self.count == 1
        return is_one and not self.steps and not self.shape and not self.is_moment

    @property
    def raw_type(self) -> str | None:
        """The NumPy type of the number as the file has it; None of what is no number."""
        letter = {"int": "i", "u_int": "u", "float": "f"}.get(self.kind)
        if letter is None or self.count != 1 or self.shape or self.categories is not None:
            return None
        return f"{'>' if self.big_endian else '<'}{letter}{self.width}"

    @property
    def is_moment(self) -> bool:
        """Whether it is a moment or a duration."""
        return self.dtype.startswith(("datetime64", "timedelta64"))


@dataclass(frozen=True)
class Record:
    """What a cell of a dataset holds."""

    size: int
    members: tuple[Stored, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Members that have no form at all, with the reason."""
    varied: tuple[Varied, ...] = ()
    """Members of varying length, which have no form in place."""


def record_of(datatype: Mapping[str, Any], size: int) -> Record:
    """The record of a cell: of a compound a member each, those inside of members too."""
    members, refused, varied = [], {}, []
    for name, offset, one in _flat(datatype, "", 0):
        if (found := varied_of(one, name)) is not None:
            varied.append(found)
            continue
        try:
            members.append(_stored(one, name, offset))
        except UnsupportedError as error:
            refused[name] = str(error)
    return Record(size, tuple(members), refused, tuple(varied))


def _flat(datatype: Mapping[str, Any], name: str, offset: int) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    if datatype["class"] != "compound":
        yield name, offset, datatype
        return
    for member in datatype["members"]:
        inner = f"{name}.{member['name']}" if name else member["name"]
        yield from _flat(member["datatype"], inner, offset + member["offset"])


def _stored(datatype: Mapping[str, Any], name: str, offset: int) -> Stored:
    kind = datatype["class"]
    big = bool(datatype.get("big_endian"))
    match kind:
        case "integer" if datatype.get("bits") is None and datatype["width"] in (1, 2, 4, 8):
            signed, width = datatype["signed"], datatype["width"]
            dtype = f"{'int' if signed else 'uint'}{8 * width}"
            return Stored(dtype, "int" if signed else "u_int", width, 1, big and width > 1, offset, name=name)
        case "float" if datatype.get("layout") is None and datatype["width"] in (2, 4, 8):
            return Stored(f"float{8 * datatype['width']}", "float", datatype["width"], 1, big, offset, name=name)
        case "complex" if datatype["width"] in (8, 16):
            width = datatype["width"] // 2
            return Stored(f"complex{8 * datatype['width']}", "float", width, 2, big, offset, name=name)
        case "bit_field" if datatype.get("bits") is None and datatype["width"] in (1, 2, 4, 8):
            width = datatype["width"]
            return Stored(f"uint{8 * width}", "u_int", width, 1, big and width > 1, offset, name=name)
        case "boolean":
            return Stored("bool", "u_int", 1, 1, False, offset, steps=({"step": "truth"},), name=name)
        case "enumeration":
            return _enumeration(datatype, name, offset)
        case "fixed_text":
            return _text(datatype, name, offset)
        case "code_points":
            steps = ({"step": "code_points"},)
            return Stored("string", "u_int", 4, datatype["length"], big, offset, steps=steps, name=name)
        case "moment":
            count = datatype["count"] if datatype["count"] > 1 else ""
            dtype = f"{'timedelta64' if datatype['is_duration'] else 'datetime64'}[{count}{datatype['unit']}]"
            return Stored(dtype, "int", 8, 1, big, offset, name=name)
        case "opaque":
            return Stored(f"bytes[{datatype['size']}]", "bytes", datatype["size"], 1, False, offset, name=name)
        case "array":
            return _array(datatype, name, offset)
    raise UnsupportedError(_reason(datatype))


def _enumeration(datatype: Mapping[str, Any], name: str, offset: int) -> Stored:
    base = _stored(datatype["base"], name, offset)
    values = [member["value"] for member in datatype["members"]]
    names = tuple(member["name"] for member in datatype["members"])
    if any(not -(2**63) <= value < 2**63 for value in values) or len(set(names)) < len(names) or not names:
        raise UnsupportedError("its enumeration has values beyond 64 bits, or a name twice, or none")
    steps = ({"step": "codes", "values": values},)
    return Stored("string", base.kind, base.width, 1, base.big_endian, offset, steps=steps, categories=names, name=name)


def _text(datatype: Mapping[str, Any], name: str, offset: int) -> Stored:
    length = datatype["length"]
    is_exact = datatype["padding"] == "zero_padded" or (length == 1 and datatype["padding"] == "zero_terminated")
    if not datatype["utf8"] and is_exact:
        return Stored(f"bytes[{length}]", "bytes", length, 1, False, offset, name=name)
    steps = ({"step": "text", "padding": _PADDINGS[datatype["padding"]]},)
    dtype = "string" if datatype["utf8"] else "bytes"
    return Stored(dtype, "bytes", length, 1, False, offset, steps=steps, name=name)


def _array(datatype: Mapping[str, Any], name: str, offset: int) -> Stored:
    base, shape = _stored(datatype["base"], name, offset), tuple(datatype["dimensions"])
    if (
        base.steps
        or base.shape
        or base.count > 1
        or base.kind == "bytes"
        or base.is_moment
        or len(shape) > 4
        or 0 in shape
    ):
        raise UnsupportedError(f"it holds arrays of {datatype['base']['class']} in each cell")
    count = math.prod(shape)
    return Stored(base.dtype, base.kind, base.width, count, base.big_endian, offset, shape=shape, name=name)


def _reason(datatype: Mapping[str, Any]) -> str:
    match datatype["class"]:
        case "variable_text":
            return "its texts vary in length: they lie in a heap of the file"
        case "variable_length":
            return "its lists vary in length: they lie in a heap of the file"
        case "reference":
            return "it holds references, which mean something in their file only"
        case "integer" | "bit_field":
            return f"it holds integers of {datatype['width']} bytes of which some bits are used"
        case "float":
            return f"it holds floats of {datatype['width']} bytes that are not those of IEEE 754"
        case other:
            return f"it holds values of the class {other}"
