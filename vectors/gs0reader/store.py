"""A store at a version: nodes, and the cells of arrays. ``docs/format/store.md``, ``log.md``, ``keys.md``."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import fragment, log, mask, seal, sorted_copy
from .bytes import Absent, Unsupported, need
from .checksums import xxh3
from .filters import Users
from .schema import Box, Cell, Datatype, Schema, fields, text_of

LISTED_MAX = 240
UNFINISHED = b"gridstone: a copy of a store to this place was not finished\n"
Row = list[Cell | bool]  # False: never written


@dataclass
class Node:
    """An array or, without schemas, a group."""

    id: str
    path: str
    metadata: dict[str, str] = field(default_factory=dict)
    schemas: list[Schema] = field(default_factory=list)
    fragments: list[log.Description] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "array" if self.schemas else "group"


@dataclass
class Retained:
    """What of the past is kept: tags, the root of the lowest version, condemned files."""

    tags: dict[str, int] = field(default_factory=dict)
    floor: tuple[int, str, int] | None = None
    data: set[str] = field(default_factory=set)
    manifest: set[str] = field(default_factory=set)

    def json(self) -> dict[str, Any] | None:
        """As ``expect.json`` holds it; None if there is nothing to tell."""
        if self == Retained():
            return None
        condemned = {"data": sorted(self.data), "manifest": sorted(self.manifest)}
        return {"tags": self.tags, "floor": self.floor and self.floor[0], "condemned": condemned}


@dataclass
class Version:
    """A store as one version has it; nodes by id."""

    version: int
    time_us: int
    record: int | None
    store: str
    nodes: dict[str, Node]
    retained: Retained = field(default_factory=Retained)


class Store:
    """A store in a folder; with a key a sealed one. ``users`` decode user-defined filters."""

    def __init__(self, folder: Path | str, key: bytes | None = None, users: Users | None = None) -> None:
        self.folder, self.key, self.users = Path(folder), key, users or {}
        self._decoded: dict[log.Description, fragment.Fragment] = {}

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        need(path.is_file(), f"{name} is missing")
        data = path.read_bytes()
        if self.key is not None:
            return seal.unsealed(self.key, name, data)
        if seal.is_sealed(data):
            raise Unsupported(f"{name} is sealed; give the key")
        return data

    def record(self, version: int) -> log.Record:
        return log.read_record(self._read(f"_log/{version:020}"), version)

    def floor(self) -> tuple[int, str, int] | None:
        """The root of the lowest version still kept; None if nothing was cut off."""
        if not (self.folder / "_log/floor").is_file():
            return None
        data = self._read("_log/floor")
        if data == UNFINISHED:
            raise Absent("a copy of a store to this place was not finished")
        line = log.open_line(data, "the floor")
        value = fields(line.value, {"gs": int, "root": dict}, {"version": None}, "the floor")
        root = log.root_reference(value["root"])
        need(root and line.body == len(data) and log.whole(value["version"]) == root[0] > 0, "an impossible floor")
        return root

    def newest(self) -> int:
        """The newest version: records are contiguous from the floor. Absent if there is no store."""
        floor = self.floor()
        version = floor[0] if floor else 1
        need((self.folder / f"_log/{version:020}").is_file(), "this is no store")
        while (self.folder / f"_log/{version + 1:020}").is_file():
            version += 1
        return version

    def at(self, version: int) -> Version:
        """The store as ``version`` has it."""
        last, floor = self.record(version), self.floor()
        need(floor is None or floor[0] <= version, "that version has been cut off")
        root = max((r for r in (last.root, floor) if r), default=None)
        state = self._root(root) if root else Version(0, 0, None, "", {})
        while state.version < version:
            step = state.version + 1
            self._follow(state, last if step == version else self.record(step))
        need(state.record == last.xxh3, "the floor rests on another record")
        return state

    def _root(self, reference: tuple[int, str, int]) -> Version:
        version, name, checksum = reference
        data = self._read(f"_manifest/{name}")
        line = log.open_line(data, "a manifest root")
        need(line.xxh3 == checksum and line.body == len(data), "a manifest root is not the one named")
        needed = {"gs": int, "record": str, "store": str, "nodes": list}
        optional = {"version": None, "time_us": None, "retained": None}
        top = fields(line.value, needed, optional, "a manifest root")
        need(log.whole(top["version"]) == version, "a manifest root of another version")
        record, store = log.hex16(top["record"]), log.hex32(top["store"])
        state = Version(version, log.whole(top["time_us"]), record, store, {})
        for value in top["nodes"]:
            n = fields(value, {"id": str, "path": str, "metadata": dict}, {"array": None}, "a node")
            node = Node(log.hex32(n["id"]), n["path"], dict(n["metadata"]))
            if n["array"] is not None:
                array = fields(n["array"], {"schemas": list, "pages": list}, {}, "an array")
                node.schemas = [Schema.of_json(s) for s in array["schemas"]]
                need(node.schemas, "an array without a schema")
                for before, after in itertools.pairwise(node.schemas):
                    after.check_follows(before)
                for page in array["pages"]:
                    node.fragments += self._page(page)
            _insert(state, node)
        if top["retained"] is not None:
            state.retained = _retained(top["retained"])
        self._check_packs(state)
        return state

    def _page(self, info: Any) -> list[log.Description]:
        needed = {"id": str, "xxh3": str, "count": int, "bounds": list, "first": list, "last": list, "full": bool}
        page = fields(info, needed, {}, "a page")
        return log.read_page(self._read(f"_manifest/{log.hex32(page['id'])}"), page)

    def _check_packs(self, state: Version) -> None:
        """Fragments of one data file lie one after the other, with zeros between."""
        every = [d for node in state.nodes.values() for d in node.fragments if isinstance(d.file, str)]
        every.sort(key=lambda d: (d.file, d.offset))
        for file, group in itertools.groupby(every, key=lambda d: d.file):
            data, end = self._read(f"_data/{file}.frag"), 0
            for d in group:
                need(d.offset % log.ALIGNMENT == 0 and d.offset >= end, "fragments of a pack overlap")
                need(not data[end : d.offset].strip(b"\0"), "padding in a pack that is not zero")
                end = d.offset + d.length

    def _follow(self, state: Version, record: log.Record) -> None:
        need(record.version == state.version + 1 and record.parent == state.record, "a record of another log")
        need(state.version == 0 or record.time_us > state.time_us, "time runs backwards")
        for operation in record.operations:
            _apply(state, operation)
        if record.version == 1:
            state.store = record.commit_id
        need(any(n.path == "/" for n in state.nodes.values()), "a store without a root node")
        state.version, state.time_us, state.record = record.version, record.time_us, record.xxh3

    def cells(self, node: Node, within: Box) -> list[tuple[tuple[int, ...], Row]]:
        """The cells of a box: of a dense array in row-major order, of a sparse one in global order."""
        schema = node.schemas[-1]
        found: dict[tuple[int, ...], list[Row]] = {}
        for d in sorted(node.fragments, key=lambda d: d.order):
            pairs = zip(d.bounds, within, strict=True)
            if d.kind == "mask" or not all(a <= hi and lo <= b for (a, b), (lo, hi) in pairs):
                continue
            if d.kind == "deletion":
                for place in [p for p in found if all(a <= k <= b for k, (a, b) in zip(p, d.bounds, strict=True))]:
                    del found[place]
                continue
            _lay(schema, found, self._fragment(node, d), within, self._masked(node, d))
        if schema.sparse:
            places = sorted(found, key=schema.global_key)
            return [(place, row) for place in places for row in found[place]]
        unwritten: list[Row] = [[False] * len(schema.attrs)]
        every = itertools.product(*(range(lo, hi + 1) for lo, hi in within))
        return [(place, found.get(place, unwritten)[0]) for place in every]

    def _masked(self, node: Node, d: log.Description) -> set[int]:
        """The rows of a fragment that masks delete."""
        found: set[int] = set()
        for m in node.fragments:
            if m.over == d.id:
                sparse = d.kind == "sparse" and node.schemas[-1].sparse
                need(sparse and m.bounds == d.bounds, "a mask over another kind")
                found |= mask.rows(self._stored(m), d.id, self._fragment(node, d).tiles, m.cells)
        return found

    def _stored(self, d: log.Description) -> bytes:
        name = f"_data/{d.file}.frag" if isinstance(d.file, str) else f"_log/{d.file:020}"
        data = self._read(name)[d.offset : d.offset + d.length]
        need(len(data) == d.length, "bytes that are not there")
        return data

    def _fragment(self, node: Node, d: log.Description) -> fragment.Fragment:
        if d not in self._decoded:
            need(d.schema < len(node.schemas), "a fragment of an unknown schema")
            data = self._stored(d)
            decoded = fragment.read(data, bytes.fromhex(d.id), node.schemas[d.schema], self.users)
            self._decoded[d] = decoded
        decoded = self._decoded[d]
        described = (d.kind, list(d.bounds), d.cells, d.attrs)
        need(described == (decoded.kind, decoded.bounds, len(decoded.places), tuple(decoded.attrs)), "another fragment")
        return decoded

    def sorted_copy(self, node: Node, pack: str) -> sorted_copy.SortedCopy | None:
        """The sorted copy of a pack's fragments of an array, checked against these; None if there is none."""
        name = f"_data/{sorted_copy.id_of(pack, node.id)}.frag"
        if not (self.folder / name).is_file():
            return None
        copy = sorted_copy.read(self._read(name), pack, node.id, node.schemas, self.users)
        there = {(d.id, d.order): d for d in node.fragments if d.file == pack}
        for number, member in enumerate(copy.members):
            if member in there:  # One that a later merge replaced is in the copy, and nowhere else.
                held = self._fragment(node, there[member])
                values = (list(row) for row in zip(*(held.attrs[n] for n in sorted(held.attrs)), strict=True))
                cells = list(zip(held.places, values, strict=True))
                need(copy.of_member(number) == cells, "a sorted copy has other cells than its fragments")
        return copy

    def columns(self, node: Node, within: Box) -> tuple[int, dict[str, Any]]:
        """The number of cells of a box, and its columns as ``expect.json`` holds them."""
        schema, rows = node.schemas[-1], self.cells(node, within)
        columns: dict[str, Any] = {}
        if schema.sparse:
            first = 0
            for axes in schema.coordinates:
                dim, last = axes[0], first + len(axes)
                if dim.word is None:
                    raw: list[Cell] = [dim.datatype.bytes_of_key(place[first]) for place, _ in rows]
                    columns[dim.name] = column(dim.datatype, raw)
                else:
                    texts: list[Cell] = [text_of(axes, place[first:last]) for place, _ in rows]
                    columns[dim.name] = column(Datatype("string"), texts)
                first = last
        for i, attr in enumerate(schema.attrs):
            cells = [attr.unwritten if row[i] is False else row[i] for _, row in rows]
            columns[attr.name] = column(attr.shown, [attr.value(cell) for cell in cells])  # type: ignore[arg-type]
        return len(rows), columns


def _lay(
    schema: Schema,
    found: dict[tuple[int, ...], list[Row]],
    newer: fragment.Fragment,
    within: Box,
    masked: set[int],
) -> None:
    """Lays a fragment, without the rows that are masked, over older ones."""
    for i, place in enumerate(newer.places):
        if i in masked or not all(lo <= key <= hi for key, (lo, hi) in zip(place, within, strict=True)):
            continue
        if newer.kind == "tombstones":
            found.pop(place, None)
            continue
        rows = found.setdefault(place, [])
        blank: Row = [False] * len(schema.attrs)
        if schema.duplicates or not rows:
            rows.append(blank)
        # A cell of a sparse array is written whole, whatever attributes there were then.
        rows[-1] = blank if schema.sparse else rows[-1].copy()
        for column_of, attr in enumerate(schema.attrs):
            if attr.number in newer.attrs:
                rows[-1][column_of] = newer.attrs[attr.number][i]


def _insert(state: Version, node: Node) -> None:
    need(node.path.startswith("/") and node.id not in state.nodes, "a node twice, or without a path")
    need(all(n.path != node.path for n in state.nodes.values()), "two nodes at one path")
    if node.path != "/":
        parent = node.path.rpartition("/")[0] or "/"
        need(any(n.path == parent and n.kind == "group" for n in state.nodes.values()), "a node without its group")
    state.nodes[node.id] = node


def _move(state: Version, node: Node, path: str) -> None:
    """The node at another path, and with it what lies below it."""
    need(node.path != "/" and not f"{path}/".startswith(f"{node.path}/"), "a move of the root, or into itself")
    need(path.startswith("/") and all(n.path != path for n in state.nodes.values()), "a move to where something lies")
    parent = path.rpartition("/")[0] or "/"
    need(any(n.path == parent and n.kind == "group" for n in state.nodes.values()), "a move to where no group is")
    below, old = node.path + "/", node.path
    for place, held in list(state.nodes.items()):
        if held.path == old or held.path.startswith(below):
            state.nodes[place] = replace(held, path=path + held.path[len(old) :])


def _retained(value: Any) -> Retained:
    r = fields(value, {"tags": dict, "data": list, "manifest": list}, {"floor": None}, "what is retained")
    tags = {name: log.whole(version) for name, version in r["tags"].items()}
    data, manifest = ({log.hex32(i) for i in r[which]} for which in ("data", "manifest"))
    return Retained(tags, log.root_reference(r["floor"]), data, manifest)


def _retain(state: Version, operation: dict[str, Any]) -> None:
    """Tags, and what is condemned."""
    kept = Retained(**{**vars(state.retained), "tags": dict(state.retained.tags)})
    floor = kept.floor[0] if kept.floor else 1
    if operation["op"] == "tag":
        need(operation["version"] >= floor, "a tag below the floor")
        kept.tags[operation["name"]] = operation["version"]
    elif operation["op"] == "untag":
        need(kept.tags.pop(operation["name"], None), "a tag taken away that is not there")
    else:
        if operation["floor"]:
            need(operation["floor"][0] >= floor, "a floor that goes down")
            need(all(v >= operation["floor"][0] for v in kept.tags.values()), "a floor above a tag")
            kept.floor = operation["floor"]
        forget = set(operation["forget"])
        kept.data = (kept.data - forget) | set(operation["data"])
        kept.manifest = (kept.manifest - forget) | set(operation["manifest"])
    state.retained = kept


_TARGETS = {
    "remove": "id",
    "move": "id",
    "alter_array": "id",
    "add_fragments": "array",
    "replace_fragments": "array",
    "set_metadata": "node",
}


def _apply(state: Version, operation: dict[str, Any]) -> None:
    name = operation["op"]
    if name in ("create_group", "create_array"):
        schemas = [Schema.of_json(operation["schema"])] if name == "create_array" else []
        _insert(state, Node(log.hex32(operation["id"]), operation["path"], schemas=schemas))
        return
    if name in ("tag", "untag", "condemn"):
        _retain(state, operation)
        return
    used = {d.file for d in operation.get("fragments", [])}
    need(not used & state.retained.data, "a fragment in a condemned file")
    target = log.hex32(operation[_TARGETS[name]])
    need(target in state.nodes, "an operation on a node that is not there")
    node = state.nodes[target]
    if name == "remove":
        below = node.path.rstrip("/") + "/"
        state.nodes = {i: n for i, n in state.nodes.items() if i != target and not n.path.startswith(below)}
    elif name == "move":
        _move(state, node, operation["path"])
    elif name == "alter_array":
        need(node.kind == "array" and operation["number"] == len(node.schemas), "a schema that is not the next")
        schema = Schema.of_json(operation["schema"])
        schema.check_follows(node.schemas[-1])
        state.nodes[target] = replace(node, schemas=[*node.schemas, schema])
    elif name == "add_fragments":
        need(node.kind == "array", "fragments of a group")
        known = {d.id for d in node.fragments}
        for d in operation["fragments"]:
            need(d.id not in known, "a fragment twice")
            need(d.over is None or d.over in known, "a mask over a fragment that is not there")
            need(d.schema < len(node.schemas), "a fragment of an unknown schema")
            need(all(node.schemas[d.schema].attr(n) for n in d.attrs), "an unknown attribute")
        state.nodes[target] = replace(node, fragments=node.fragments + operation["fragments"])
    elif name == "replace_fragments":
        need(node.kind == "array", "fragments of a group")
        gone = dict(operation["removed"])
        kept = [d for d in node.fragments if d.id not in gone]
        there = {d.id: d.order for d in node.fragments if d.id in gone}
        need(there == gone, "fragments to be replaced that are not there, or have another order")
        need(not {d.id for d in kept} & {d.id for d in operation["fragments"]}, "a fragment twice")
        state.nodes[target] = replace(node, fragments=sorted(kept + operation["fragments"], key=lambda d: d.order))
    elif name == "set_metadata":
        metadata = dict(node.metadata)
        for key, text in operation["changes"]:
            if text is None:
                metadata.pop(key, None)
            else:
                metadata[key] = text
        state.nodes[target] = replace(node, metadata=metadata)
    else:
        raise Unsupported(name)


def value(datatype: Datatype, cell: Cell) -> Any:
    """A cell as JSON holds it: floats as the hexadecimal digits of their bits, bytes, vectors and so on as those of
    their bytes."""
    if cell is None:
        return None
    if datatype.name == "string":
        return cell.decode()
    if datatype.name == "bytes" or datatype.fixed_bytes or not datatype.order:
        return cell.hex()
    if datatype.name == "bool":
        return cell == b"\1"
    return cell[::-1].hex() if datatype.element.kind == "f" else datatype.number(cell)


def column(datatype: Datatype, cells: list[Cell]) -> Any:
    """A column as ``expect.json`` holds it: listed, or counted with the checksum of its canonical bytes."""
    if len(cells) <= LISTED_MAX:
        return [value(datatype, cell) for cell in cells]
    out = bytearray()
    for cell in cells:
        if cell is None:
            out.append(0)
        else:
            out += b"\1" + (len(cell).to_bytes(4, "little") if datatype.varies else b"") + cell
    return {"count": len(cells), "xxh3": f"{xxh3(bytes(out)):016x}"}
