"""Checksummed lines and records: ``docs/format/log.md``."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from typing import Any

from . import value_bounds
from .bytes import Damaged, Unsupported, need
from .checksums import xxh3
from .schema import Box, fields

HEX16, HEX32 = re.compile("[0-9a-f]{16}"), re.compile("[0-9a-f]{32}")
KINDS = ("dense", "sparse", "tombstones", "deletion", "mask")
DELETES = ("tombstones", "deletion")
ALIGNMENT = 64
START = b'{"gs":'
FORMS = {b"0": 0, b"1": 1}
LINE_BYTES_MAX, ROOT_OF_GS0_BYTES_MAX = 1 << 28, 1 << 30
FEATURES: frozenset[str] = frozenset()
"""The features that this reader knows."""


@dataclass(frozen=True)
class Line:
    """A checksummed line that has been checked: its form, its object without features and ``ext``, its checksum, and
    where its body starts."""

    gs: int
    value: dict[str, Any]
    xxh3: int
    body: int


@dataclass(frozen=True)
class Description:
    """What a record or a page says of a fragment. ``file`` is a data file's id, a version, or None of a deletion."""

    id: str
    kind: str
    order: tuple[int, int]
    schema: int
    bounds: tuple[tuple[int, int], ...]
    cells: int
    attrs: tuple[int, ...]
    file: str | int | None
    offset: int
    length: int
    over: str | None = None
    base: int = 0
    """The base that a data file lies on; 0 is the own store."""
    stats: bytes = b""
    moved: tuple[int, ...] = ()
    """By how many whole tiles a dense fragment lies off the box in its root; empty: by none."""

    def check(self) -> Description:
        """Refuses what does not fit together."""
        deletion = self.kind == "deletion"
        need(deletion == (self.file is None), "a deletion, and nothing else, lies nowhere")
        need(not deletion or (self.cells, self.offset, self.length) == (0, 0, 0), "a deletion with cells or bytes")
        need((self.kind == "mask") == (self.over is not None), "a mask, and nothing else, lies over a fragment")
        need(self.kind in ("dense", "sparse") or not self.attrs, "what deletes has no attributes")
        need(not self.moved or (self.kind == "dense" and len(self.moved) == len(self.bounds)), "moved, and not dense")
        need(self.base == 0 or isinstance(self.file, str), "what is in no data file lies on a base")
        return self


def whole(value: Any) -> int:
    """An integer, or its decimal digits in a string where JSON would not hold it."""
    if isinstance(value, str):
        need(re.fullmatch("-?[0-9]+", value), f"{value!r} is no integer")
        return int(value)
    need(isinstance(value, int) and not isinstance(value, bool), f"{value!r} is no integer")
    return int(value)


def hex16(value: Any) -> int:
    need(isinstance(value, str) and HEX16.fullmatch(value), f"{value!r} is no 16 hexadecimal digits")
    return int(value, 16)


def hex32(value: Any) -> str:
    need(isinstance(value, str) and HEX32.fullmatch(value), f"{value!r} is no id")
    return str(value)


def box(value: Any) -> Box:
    need(
        isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value), "a box is no list of pairs"
    )
    pairs = [(hex16(lo), hex16(hi)) for lo, hi in value]
    need(1 <= len(pairs) <= 32 and all(lo <= hi for lo, hi in pairs), "an impossible box")
    return pairs


def open_line(data: bytes, what: str, *, root: bool = False) -> Line:
    """Checks a checksummed line of either form."""
    found = re.match(START + b"([0-9]+)", data)
    digits = found[1] if found else b""
    need(digits, f"{what} does not start with the format version")
    end = data.find(b"\n")
    checksum = data[end + 1 : end + 17]
    if digits not in FORMS:
        rest = data[len(START + digits) : max(end, 0)]
        damaged = any(checksum == f"{xxh3(START + form + rest):016x}".encode() for form in FORMS)
        need(not damaged, f"{what}: the number of its format version is damaged")
        raise Unsupported(f"{what} is of format version {digits.decode()}")
    most = ROOT_OF_GS0_BYTES_MAX if root and digits == b"0" else LINE_BYTES_MAX
    need(0 <= end <= most, f"{what}: its line does not end, or is too long")
    need(data[end + 17 : end + 18] == b"\n", f"{what}: its checksum is cut")
    line = data[:end]
    need(checksum == f"{xxh3(line):016x}".encode(), f"{what}: its line does not match its checksum")
    value = json_of(line, what)
    need(value["gs"] == FORMS[digits], f"{what} has two format versions")
    if digits == b"1":
        value = without_ext(value)
        _check_features(value, what)
    return Line(FORMS[digits], value, int(checksum, 16), end + 18)


def json_of(data: bytes, what: str) -> Any:
    """The value of a JSON text."""
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{what} is no JSON") from error


def without_ext(value: Any) -> Any:
    """A JSON value without the field ``ext`` of any of its objects, whose content belongs to newer releases."""
    if isinstance(value, list):
        return [without_ext(item) for item in value]
    if isinstance(value, dict):
        need(isinstance(value.get("ext", {}), dict), "an ext that is no object")
        return {name: without_ext(item) for name, item in value.items() if name != "ext"}
    return value


def _check_features(value: dict[str, Any], what: str) -> None:
    """Takes the lists of features out of a line of GS1. A reader must know all of ``read``."""
    for which in ("read", "write"):
        names = value.pop(which, [])
        need(isinstance(names, list) and all(isinstance(n, str) for n in names), f"{what}: {which} is no list of names")
        unknown = [name for name in names if name not in FEATURES]
        if which == "read" and unknown:
            raise Unsupported(f"{what} needs unknown features: {', '.join(unknown)}")


def root_reference(value: Any) -> tuple[int, str, int] | None:
    """(version, id, xxh3) of a manifest root."""
    if value is None:
        return None
    r = fields(value, {"id": str, "xxh3": str}, {"version": None}, "a reference to a root")
    return whole(r["version"]), hex32(r["id"]), hex16(r["xxh3"])


@dataclass(frozen=True)
class Record:
    """A log record; operations are JSON objects, fragments in them replaced by descriptions."""

    version: int
    commit_id: str
    parent: int | None
    time_us: int
    root: tuple[int, str, int] | None
    operations: list[dict[str, Any]]
    xxh3: int
    keys: list[tuple[bytes, str]] = field(default_factory=list)


OPERATIONS: dict[str, dict[str, type]] = {
    "create_group": {"id": str, "path": str},
    "create_array": {"id": str, "path": str, "schema": dict},
    "grow": {"array": str, "dimension": int, "low": str, "high": str},
    "alter_array": {"id": str, "number": int, "schema": dict},
    "remove": {"id": str},
    "move": {"id": str, "path": str},
    "add_fragments": {"array": str, "fragments": list},
    "replace_fragments": {"array": str, "removed": list, "fragments": list},
    "set_metadata": {"node": str, "changes": list},
    "tag": {"name": str},
    "untag": {"name": str},
    "condemn": {"data": list, "manifest": list, "forget": list},
    "keep": {"array": str, "entry": str, "kept": dict},
    "release": {"array": str, "entry": str},
    "set_base": {"number": int},
}
HIDDEN_ARRAY: dict[str, type] = {"id": str, "owner": str, "name": str, "schema": dict}
"""The other form of ``create_array``."""
OPERATIONS_OF_GS1 = ("grow", "keep", "release", "set_base")
LEFT_OVER = 1 << 31
PARTS_FROM, PARTS_TO = 16, 32
"""The bits of the parts of a description that a reader need not know."""
FURTHER = {"tag": {"version": None}, "condemn": {"floor": None}, "set_base": {"base": None}}
FURTHER_OF_GS1 = {"set_metadata": {"attr": None, "dim": None}}


def read_record(data: bytes, version: int) -> Record:
    """Checks a record and every body in it."""
    what = f"record {version}"
    line = open_line(data, what)
    needed = {"gs": int, "commit_id": str, "ops": list}
    optional = dict.fromkeys(("version", "parent", "read_version", "time_us", "root", "message", "durable"))
    top = fields(line.value, needed, optional | ({"keys": None} if line.gs else {}), what)
    need(line.body % ALIGNMENT == 0, f"{what}: its body is not aligned")
    need(top["durable"] in (None, False, True), f"{what}: whether it is durable is no truth value")
    bodies = _Bodies(data, line.body, version, line.gs)
    operations = []
    for value in top["ops"]:
        name = value.get("op") if isinstance(value, dict) else None
        if name not in OPERATIONS or (line.gs == 0 and name in OPERATIONS_OF_GS1):
            raise Unsupported(f"{what}: operation {name!r}")
        needed, further = OPERATIONS[name], FURTHER.get(name, {})
        if line.gs:
            needed = HIDDEN_ARRAY if name == "create_array" and "owner" in value else needed
            further = further | FURTHER_OF_GS1.get(name, {})
        operation = fields(value, {"op": str, **needed}, further, f"{what}: {name}")
        if not line.gs and is_beyond_gs0(operation.get("schema", {})):
            raise Unsupported(f"{what}: a schema of GS1 in a record of GS0")
        if name == "add_fragments":
            operation["fragments"] = [bodies.description(f) for f in operation["fragments"]]
        if name == "replace_fragments":
            operation["fragments"] = [bodies.description(f, merged=True) for f in operation["fragments"]]
            operation["removed"] = [removed(f) for f in operation["removed"]]
            need(operation["removed"], f"{what}: a merge of nothing")
            known = {order for _, order in operation["removed"]}
            over = {(version, index | LEFT_OVER) for version, index in known}
            fits = (d.order in known or (d.kind == "tombstones" and d.order in over) for d in operation["fragments"])
            need(all(fits), f"{what}: a merged fragment has another order")
        if name == "grow":
            operation["low"], operation["high"] = hex16(operation["low"]), hex16(operation["high"])
            operation["dimension"] = whole(operation["dimension"])
        if name == "set_metadata":
            operation["field"] = field_of(operation.pop("attr", None), operation.pop("dim", None))
            need(all(_is_change(c) for c in operation["changes"]), f"{what}: a change of metadata is a key and a text")
        if name == "keep":
            operation["kept"] = kept(operation["kept"])
        if name == "set_base":
            need(0 < operation["number"] < 1 << 32, f"{what}: it sets the base 0, or none")
            operation["base"] = None if operation["base"] is None else base(operation["base"])
        if name == "tag":
            operation["version"] = whole(operation["version"])
            need(0 < operation["version"] < version, f"{what}: it tags a version that is not there")
        if name == "condemn":
            for which in ("data", "manifest", "forget"):
                operation[which] = [hex32(i) for i in operation[which]]
            operation["floor"] = root_reference(operation["floor"])
            need(operation["floor"] is None or operation["floor"][0] < version, f"{what}: its floor is not there")
        operations.append(operation)
    need(bodies.end == len(data), f"{what}: bytes after its bodies")
    parent = None if top["parent"] is None else hex16(top["parent"])
    need(whole(top["version"]) == version and (parent is None) == (version == 1), f"{what} says it is another version")
    need(0 <= whole(top["read_version"]) < version, f"{what} read a later version")
    root = root_reference(top["root"])
    need(root is None or 0 < root[0] < version, f"{what} names a root of a later version")
    need(top["message"] is None or isinstance(top["message"], str), f"{what}: its message is no text")
    time_us = whole(top["time_us"])
    keys = _keys(top.get("keys"), what)
    return Record(version, hex32(top["commit_id"]), parent, time_us, root, operations, line.xxh3, keys)


Field = tuple[str, int]
"""What metadata may belong to beside nodes: ``attr`` and a permanent number, or ``dim`` and a place."""


def field_of(attr: Any, dim: Any) -> Field | None:
    """The attribute or dimension that metadata belongs to; None: it belongs to the node."""
    need(attr is None or dim is None, "metadata of an attribute and of a dimension at once")
    if attr is None and dim is None:
        return None
    found = ("attr", whole(attr)) if dim is None else ("dim", whole(dim))
    need(0 <= found[1] < 1 << 32, "metadata of what has no number")
    return found


def _is_change(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2
    return pair and isinstance(value[0], str) and isinstance(value[1], str | None)


def is_beyond_gs0(schema: dict[str, Any]) -> bool:
    """Whether a schema says what none of GS0 says: features, labels, that there is no dimension, ends that are open."""
    dims = [d for d in schema.get("dims") or [] if isinstance(d, dict)]
    domains = [d["domain"] for d in dims if isinstance(d.get("domain"), list)]
    loose = any(not domain or None in domain for domain in domains)
    return loose or bool({"read", "write", "scalar"} & set(schema)) or any("labels" in d for d in dims)


def _keys(value: Any, what: str) -> list[tuple[bytes, str]]:
    """The commit keys of a record, each with the hash of its content."""
    keys = []
    for item in [] if value is None else value:
        found = fields(item, {"key": str, "content": str}, {}, f"{what}: a commit key")
        need(re.fullmatch("([0-9a-f]{2}){1,128}", found["key"]), f"{what}: a commit key is pairs of hexadecimal digits")
        keys.append((bytes.fromhex(found["key"]), hex32(found["content"])))
    need(len({key for key, _ in keys}) == len(keys), f"{what}: a commit key twice")
    return keys


@dataclass(frozen=True)
class Kept:
    """An entry of kept files: its owner (``fragment`` or ``data`` and an id; None: the array), its kind, its files."""

    owner: tuple[str, str] | None
    kind: str
    files: tuple[tuple[str, int], ...]


def kept(value: Any) -> Kept:
    """An entry of kept files."""
    k = fields(value, {"kind": str, "files": list}, {"owner": None}, "kept files")
    need(1 <= len(k["kind"].encode()) <= 255, "kept files without a kind")
    owner = None
    if k["owner"] is not None:
        need(isinstance(k["owner"], dict) and len(k["owner"]) == 1, "an owner that is none, or several")
        ((which, name),) = k["owner"].items()
        if which not in ("fragment", "data"):
            raise Unsupported(f"kept files of {which!r}")
        owner = (which, hex32(name))
    files = [fields(f, {"id": str}, {"len": None}, "a kept file") for f in k["files"]]
    return Kept(owner, k["kind"], tuple((hex32(f["id"]), whole(f["len"])) for f in files))


def base(value: Any) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The kind of a base, and its places with their states."""
    b = fields(value, {"kind": str, "places": list}, {}, "a base")
    places = [fields(p, {"place": str, "state": str}, {}, "a place of a base") for p in b["places"]]
    return b["kind"], tuple((p["place"], p["state"]) for p in places)


def check_parts(bits: list[int]) -> None:
    """Refuses parts of a description that a reader must know, and this one does not."""
    need(all(0 <= bit < PARTS_TO for bit in bits) and len(set(bits)) == len(bits), "a part twice, or of no bit")
    unknown = [bit for bit in bits if bit < PARTS_FROM]
    if unknown:
        raise Unsupported(f"a fragment with the parts {unknown}")


def order_of(value: Any) -> tuple[int, int]:
    """An order: version and place."""
    need(isinstance(value, list) and len(value) == 2, "an order is a version and a place")
    return whole(value[0]), whole(value[1])


def removed(value: Any) -> tuple[str, tuple[int, int]]:
    """The id and the order of a fragment that was taken out."""
    f = fields(value, {"id": str, "order": list, "bounds": list}, {}, "a fragment taken out")
    box(f["bounds"])
    return hex32(f["id"]), order_of(f["order"])


class _Bodies:
    """The fragments of a record: their orders and places."""

    def __init__(self, data: bytes, body: int, version: int, gs: int) -> None:
        self.data, self.body, self.end, self.version, self.index, self.gs = data, body, body, version, 0, gs

    def description(self, value: Any, *, merged: bool = False) -> Description:
        needed: dict[str, type] = {"id": str, "kind": str, "schema": int, "bounds": list, "attrs": list}
        if merged:
            needed["order"] = list
        optional = {"cells": None, "at": None, "order": None, "over": None}
        if self.gs:
            optional |= {"parts": None, "stats": None, "moved": None}
        f = fields(value, needed, optional, "a fragment's description")
        parts = f.get("parts") or []
        need(all(isinstance(p, list) and len(p) == 2 for p in parts), "a part is a bit and its bytes")
        need(all(re.fullmatch("([0-9a-f]{2})*", p[1]) for p in parts), "a part is pairs of hexadecimal digits")
        check_parts([whole(p[0]) for p in parts])
        if f["kind"] not in KINDS:
            raise Unsupported(f"a fragment of kind {f['kind']!r}")
        attrs = tuple(whole(a) for a in f["attrs"])
        need(all(a < b for a, b in itertools.pairwise(attrs)), "attributes out of order")
        place: tuple[str | int | None, int, int]
        base = 0
        if f["at"] == "nowhere":
            place = (None, 0, 0)
        else:
            need(isinstance(f["at"], dict), "a place is an object")
            if "body" in f["at"]:
                place = self._body(f["at"]["body"])
            else:
                *place, base = self._data(f["at"])
        if f["order"] is not None:
            order = order_of(f["order"])
            need(merged or (f["kind"] in DELETES and order[0] < self.version), "an order that is not its own")
        else:
            order = (self.version, self.index)
            self.index += 1
        cells = whole(f["cells"])
        over = None if f["over"] is None else hex32(f["over"])
        bounds, stats = tuple(box(f["bounds"])), value_bounds.of_hex(f.get("stats"))
        placed = (*place, over, base, stats, tuple(whole(by) for by in f.get("moved") or ()))
        return Description(hex32(f["id"]), f["kind"], order, f["schema"], bounds, cells, attrs, *placed).check()

    def _data(self, at: Any) -> tuple[str, int, int, int]:
        outer = fields(at, {"data": dict}, {}, "a place")
        optional = {"offset": None, "len": None, "base": 0} if self.gs else {"offset": None, "len": None}
        d = fields(outer["data"], {"id": str}, optional, "a place")
        base = whole(d.get("base", 0))
        need(0 <= base < 1 << 32, "a base that is no number of one")
        return hex32(d["id"]), whole(d["offset"]), whole(d["len"]), base

    def _body(self, at: Any) -> tuple[int, int, int]:
        b = fields(at, {"xxh3": str}, {"offset": None, "len": None}, "a place")
        start, length = self.body + whole(b["offset"]), whole(b["len"])
        padding = self.data[self.end : start]
        need(start == -(-self.end // ALIGNMENT) * ALIGNMENT and length > 0, "a body is not where the last one ends")
        need(not padding.strip(b"\0"), "padding between bodies that is not zero")
        self.end = start + length
        body = self.data[start : self.end]
        need(len(body) == length and xxh3(body) == hex16(b["xxh3"]), "a body fails its checksum")
        return self.version, start, length
