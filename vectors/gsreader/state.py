"""The state of a store at a version, and what records do to it: ``docs/format/log.md``.

Roots of every form become this state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .bytes import Damaged, Unsupported, need
from .log import Description, Field, Kept, Record, hex32
from .schema import Box, Schema, grown


@dataclass
class Node:
    """An array or, without schemas, a group."""

    id: str
    path: str
    metadata: dict[str, str] = field(default_factory=dict)
    schemas: list[Schema] = field(default_factory=list)
    """All are used with the domain of the version."""
    fragments: list[Description] = field(default_factory=list)
    kept: dict[str, Kept] = field(default_factory=dict)
    """Entries of kept files, by their ids."""
    fields: dict[Field, dict[str, str]] = field(default_factory=dict)
    """The metadata of attributes and dimensions that have some."""
    owner: str | None = None
    """The array that a hidden array belongs to, below whose path its own is. No other has a path there."""

    @property
    def kind(self) -> str:
        return "array" if self.schemas else "group"

    @property
    def domain(self) -> Box:
        """The domain of an array in this version."""
        return self.schemas[-1].domain

    def has_field(self, which: Field) -> bool:
        """Whether the last schema has the attribute or dimension. One with unknown features has all that were."""
        if not self.schemas:
            return False
        last, (sort, number) = self.schemas[-1], which
        if sort == "dim":
            return number < len(last.coordinates)
        return bool(last.unknown) or last.attr(number) is not None

    def fields_json(self) -> list[dict[str, Any]]:
        """The metadata of attributes and dimensions as ``expect.json`` holds it."""
        return [{sort: number, "metadata": held} for (sort, number), held in sorted(self.fields.items())]

    def owned(self) -> dict[str, Kept]:
        """The entries whose owner is there."""
        there = {"fragment": {d.id for d in self.fragments}, "data": {d.file for d in self.fragments if not d.base}}
        return {e: k for e, k in self.kept.items() if k.owner is None or k.owner[1] in there[k.owner[0]]}


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


KEYS_KEPT = 100_000
"""How many of the last commit keys are known."""


@dataclass
class CommitKeys:
    """The commit keys so far: how many, and of those in rows or records since the number, version and content."""

    next: int = 0
    held: dict[bytes, tuple[int, int, str]] = field(default_factory=dict)

    def find(self, key: bytes) -> tuple[int, str] | None:
        """The version and the content of a known key."""
        number, version, content = self.held.get(key, (-1, 0, ""))
        return (version, content) if number >= max(0, self.next - KEYS_KEPT) else None

    def json(self) -> dict[str, list[Any]] | None:
        """As ``expect.json`` holds it; None if there is nothing to tell."""
        return {key.hex(): list(found) for key in self.held if (found := self.find(key))} or None

    def add(self, key: bytes, version: int, content: str) -> None:
        """Counts a key; a known one is never given again."""
        need(self.find(key) is None, "a commit key that is known already")
        self.held[key] = (self.next, version, content)
        self.next += 1


@dataclass
class Version:
    """A store as one version has it; nodes by id."""

    version: int
    time_us: int
    record: int | None
    store: str
    nodes: dict[str, Node]
    retained: Retained = field(default_factory=Retained)
    keys: CommitKeys = field(default_factory=CommitKeys)
    bases: dict[int, Any] = field(default_factory=dict)


def insert(state: Version, node: Node) -> None:
    need(node.path.startswith("/") and node.id not in state.nodes, "a node twice, or without a path")
    need(all(n.path != node.path for n in state.nodes.values()), "two nodes at one path")
    if node.path != "/":
        parent = node.path.rpartition("/")[0] or "/"
        need(any(n.path == parent and n.kind == "group" for n in state.nodes.values()), "a node without its group")
    state.nodes[node.id] = node


def hidden_name(name: str) -> str:
    """The name of a hidden array, checked."""
    need(name.startswith("@") and len(name.encode()) <= 255, "a hidden array with a name that none may have")
    need(not set(name) & {"/", "\0"}, "a hidden array with a name that none may have")
    return name


def _hide(state: Version, operation: dict[str, Any]) -> None:
    """A new hidden array."""
    node, owner = hex32(operation["id"]), state.nodes.get(hex32(operation["owner"]))
    need(node not in state.nodes, "a node twice")
    need(owner and owner.kind == "array" and owner.owner is None, "an array hidden in what owns none")
    path = f"{owner.path.rstrip('/')}/{hidden_name(operation['name'])}" if owner else ""
    need(all(n.path != path for n in state.nodes.values()), "two hidden arrays of one name")
    schemas = [Schema.of_json(operation["schema"])]
    state.nodes[node] = Node(node, path, schemas=schemas, owner=hex32(operation["owner"]))


def _is_labels(state: Version, node: Node) -> bool:
    """Whether the last schema of the array that a hidden one belongs to has labels in it."""
    owner = state.nodes[node.owner] if node.owner else None
    return owner is not None and any(dim.labels == node.id for dim in owner.schemas[-1].dims)


def check_labels(nodes: dict[str, Node]) -> None:
    """Checks the arrays in which last schemas have labels: they are there, hidden, of one dimension, along the axis."""
    for node in nodes.values():
        for dim in node.schemas[-1].dims if node.schemas else ():
            if not isinstance(dim.labels, str):
                continue
            held = nodes.get(dim.labels)
            if held is None or held.owner != node.id:
                raise Damaged("labels in an array that is not hidden in theirs")
            last = held.schemas[-1]
            if last.unknown:
                continue
            along = [(d.datatype, d.word) for d in last.dims] == [(dim.datatype, dim.word)]
            need(not last.sparse and not last.scalar and along, "labels in an array that does not lie along the axis")
            need(len(last.attrs) == 1, "labels in an array of several attributes")


def _move(state: Version, node: Node, path: str) -> None:
    """The node at another path, and with it what lies below it, and what is hidden there."""
    need(node.owner is None, "a hidden array that moves")
    need(node.path != "/" and not f"{path}/".startswith(f"{node.path}/"), "a move of the root, or into itself")
    need(path.startswith("/") and all(n.path != path for n in state.nodes.values()), "a move to where something lies")
    parent = path.rpartition("/")[0] or "/"
    need(any(n.path == parent and n.kind == "group" for n in state.nodes.values()), "a move to where no group is")
    below, old = node.path + "/", node.path
    for place, held in list(state.nodes.items()):
        if held.path == old or held.path.startswith(below):
            state.nodes[place] = replace(held, path=path + held.path[len(old) :])


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


def _keep(node: Node, operation: dict[str, Any]) -> Node:
    """An array with one more entry of kept files, or without it."""
    need(node.kind == "array", "files kept beside a group")
    entry, comes = hex32(operation["entry"]), operation["op"] == "keep"
    need((entry in node.kept) != comes, "kept files that are there already, or are not there")
    held = {e: k for e, k in node.kept.items() if e != entry}
    if comes:
        held[entry] = operation["kept"]
    changed = replace(node, kept=held)
    need(entry in changed.owned() or not comes, "files kept beside what is not there")
    return changed


def _grow(node: Node, axis: int, ends: tuple[int, int]) -> Node:
    """An array whose domain reaches over these ends along an axis."""
    need(node.kind == "array", "a group that grows")
    domain = node.domain
    need(0 <= axis < len(domain), "an axis that grows and is not there")
    need(node.schemas[-1].dims[axis].word is None, "a dimension of texts that grows")
    need(ends[0] <= ends[1], "a domain that is empty, or outside of the type")
    domain[axis] = ends
    node.schemas[-1].check_domain(domain)
    return replace(node, schemas=grown(node.schemas, domain))


def _tell(node: Node, which: Field | None, changes: list[Any]) -> Node:
    """A node with other metadata, of its own or of an attribute or dimension."""
    need(which is None or node.has_field(which), "metadata of an attribute or dimension that is not there")
    metadata = dict(node.metadata if which is None else node.fields.get(which, {}))
    for key, text in changes:
        if text is None:
            metadata.pop(key, None)
        else:
            metadata[key] = text
    if which is None:
        return replace(node, metadata=metadata)
    others = {other: held for other, held in node.fields.items() if other != which}
    return replace(node, fields=others | ({which: metadata} if metadata else {}))


def _set_base(state: Version, operation: dict[str, Any]) -> None:
    """What a base is from now on, or that it is none."""
    state.bases = {n: b for n, b in state.bases.items() if n != operation["number"]}
    if operation["base"] is not None:
        state.bases[operation["number"]] = operation["base"]


_TARGETS = {
    "remove": "id",
    "move": "id",
    "alter_array": "id",
    "grow": "array",
    "add_fragments": "array",
    "replace_fragments": "array",
    "set_metadata": "node",
    "keep": "array",
    "release": "array",
}


def _apply(state: Version, operation: dict[str, Any]) -> None:
    name = operation["op"]
    if "owner" in operation:
        _hide(state, operation)
        return
    if name in ("create_group", "create_array"):
        schemas = [Schema.of_json(operation["schema"])] if name == "create_array" else []
        insert(state, Node(hex32(operation["id"]), operation["path"], schemas=schemas))
        return
    if name in ("tag", "untag", "condemn"):
        _retain(state, operation)
        return
    if name == "set_base":
        _set_base(state, operation)
        return
    used = {d.file for d in operation.get("fragments", []) if not d.base}
    used |= {file for file, _ in operation["kept"].files} if name == "keep" else set()
    need(not used & state.retained.data, "a fragment in a condemned file")
    target = hex32(operation[_TARGETS[name]])
    need(target in state.nodes, "an operation on a node that is not there")
    node = state.nodes[target]
    if name == "remove":
        need(not _is_labels(state, node), "an array removed in which the last schema of its owner has labels")
        below = node.path.rstrip("/") + "/"
        state.nodes = {i: n for i, n in state.nodes.items() if i != target and not n.path.startswith(below)}
    elif name == "move":
        _move(state, node, operation["path"])
    elif name == "alter_array":
        need(node.kind == "array" and operation["number"] == len(node.schemas), "a schema that is not the next")
        schema = Schema.of_json(operation["schema"])
        schema.check_follows(node.schemas[-1])
        altered = replace(node, schemas=grown([*node.schemas, schema], schema.domain))
        altered.fields = {which: held for which, held in node.fields.items() if altered.has_field(which)}
        state.nodes[target] = altered
    elif name == "grow":
        state.nodes[target] = _grow(node, operation["dimension"], (operation["low"], operation["high"]))
    elif name == "add_fragments":
        need(node.kind == "array", "fragments of a group")
        known = {d.id for d in node.fragments}
        for d in operation["fragments"]:
            need(d.id not in known, "a fragment twice")
            need(d.over is None or d.over in known, "a mask over a fragment that is not there")
            need(d.schema < len(node.schemas), "a fragment of an unknown schema")
            need(len(d.bounds) == len(node.domain), "a fragment with other axes than the array's")
            inside = all(a <= lo and hi <= b for (lo, hi), (a, b) in zip(d.bounds, node.domain, strict=True))
            need(inside or d.kind == "deletion", "a box outside the domain")
            if node.schemas[d.schema].unknown:
                continue
            need(all(node.schemas[d.schema].attr(n) for n in d.attrs), "an unknown attribute")
        state.nodes[target] = replace(node, fragments=node.fragments + operation["fragments"])
    elif name == "replace_fragments":
        need(node.kind == "array", "fragments of a group")
        gone = dict(operation["removed"])
        kept = [d for d in node.fragments if d.id not in gone]
        there = {d.id: d.order for d in node.fragments if d.id in gone}
        need(there == gone, "fragments to be replaced that are not there, or have another order")
        described = {d.id for d in operation["fragments"]}
        need(not {d.id for d in kept} & described, "a fragment twice")
        need(not gone.keys() & described, "a fragment with the id of one that it replaces")
        state.nodes[target] = replace(node, fragments=sorted(kept + operation["fragments"], key=lambda d: d.order))
        state.nodes[target].kept = state.nodes[target].owned()
    elif name in ("keep", "release"):
        state.nodes[target] = _keep(node, operation)
    elif name == "set_metadata":
        state.nodes[target] = _tell(node, operation["field"], operation["changes"])
    else:
        raise Unsupported(name)


def follow(state: Version, record: Record) -> None:
    """The state after one more record."""
    need(record.version == state.version + 1 and record.parent == state.record, "a record of another log")
    need(state.version == 0 or record.time_us > state.time_us, "time runs backwards")
    for operation in record.operations:
        _apply(state, operation)
    check_labels(state.nodes)
    for key, content in record.keys:
        state.keys.add(key, record.version, content)
    if record.version == 1:
        state.store = record.commit_id
    need(any(n.path == "/" for n in state.nodes.values()), "a store without a root node")
    state.version, state.time_us, state.record = record.version, record.time_us, record.xxh3
