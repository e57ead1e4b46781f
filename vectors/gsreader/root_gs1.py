"""A root of GS1: ``docs/format/manifest.md``.

1. The line is followed by the top page of the rows.
2. The rows are gathered by what they are about: nodes, children, tags, condemned objects.
3. The nodes are found from the one at ``/`` down. Heads and rows of children must agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import rows
from .bytes import Cursor, Damaged, Read, Unsupported, need
from .checksums import xxh3
from .log import Field, Kept, Line, base, box, hex16, hex32, json_of, kept, root_reference, whole, without_ext
from .pages import Pages
from .schema import EMPTY, Box, fields, history
from .state import KEYS_KEPT, CommitKeys, Node, Retained, Version, check_labels, hidden_name

HEAD, PAGE, SCHEMA, KEPT, METADATA, FIELD = 0, 1, 2, 3, 4, 5
KINDS = ("group", "array")
CHILDREN = (*KINDS, "hidden")
FIELDS = {b"a": "attr", b"d": "dim"}
NUMBER_MAX = (1 << 32) - 1
NAME_BYTES_MAX = 255
COMMIT_KEY_BYTES_MAX, EPOCH = 128, 8_192


def state_of(line: Line, data: bytes, read: Read) -> Version:
    """The state that the root ``data`` with this line names."""
    needed = {"gs": int, "record": str, "store": str, "node": str, "rows": str}
    optional = {"version": None, "time_us": None, "floor": None}
    top = fields(line.value, needed, optional, "a root")
    page = rows.content(data[line.body :], rows.PAGES)
    need(xxh3(page) == hex16(top["rows"]), "a root has other rows than it names")
    gathered = _Gathered()
    for row in rows.every(read, rows.parsed(page)):
        if _is_known(row.key):
            gathered.put(row.key, rows.value_of(read, row))
    version, floor = whole(top["version"]), root_reference(top["floor"])
    lowest = floor[0] if floor else 1
    need(0 < lowest <= version, "a root with an impossible floor")
    need(all(lowest <= tag < version for tag in gathered.tags.values()), "a tag of a version that is not there")
    retained = Retained(gathered.tags, floor, gathered.condemned["d"], gathered.condemned["m"])
    nodes = _Nodes(gathered, read).below(hex32(top["node"]))
    bases = gathered.bases
    keys = gathered.keys
    need(all(0 < made <= version for _, made, _ in keys.held.values()), "a commit key of a version that is not there")
    numbers = {number for number, _, _ in keys.held.values()}
    need(numbers.issuperset(range(max(0, keys.next - KEYS_KEPT), keys.next)), "a known commit key has no row")
    return Version(
        version, whole(top["time_us"]), hex16(top["record"]), hex32(top["store"]), nodes, retained, keys, bases
    )


def _is_known(key: bytes) -> bool:
    """Whether a row is of those that this reader knows; others belong to a newer release."""
    if key[:1] != b"I":
        return key[:1] in (b"", b"B", b"C", b"K", b"N", b"T")
    return len(key) < 18 or key[17] in (HEAD, PAGE, SCHEMA, KEPT, METADATA, FIELD)


@dataclass(frozen=True)
class _Head:
    """What a node says of itself."""

    parent: str | None
    name: str
    kind: str
    schemas: int
    domain: Box | None
    hidden: bool


@dataclass
class _Gathered:
    """The rows of a root, by what they are about. Nodes are named by their ids."""

    condemned: dict[str, set[str]] = field(default_factory=lambda: {"d": set(), "m": set()})
    heads: dict[str, _Head] = field(default_factory=dict)
    pages: dict[str, list[Any]] = field(default_factory=dict)
    schemas: dict[str, dict[int, Any]] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    fields: dict[str, dict[Field, dict[str, str]]] = field(default_factory=dict)
    children: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    keys: CommitKeys = field(default_factory=CommitKeys)
    kept: dict[str, dict[str, Kept]] = field(default_factory=dict)
    bases: dict[int, Any] = field(default_factory=dict)

    def put(self, key: bytes, value: bytes) -> None:
        """Adds a row of a known tag."""
        r = Cursor(key, "the key of a row")
        tag = r.take(1)
        if tag == b"C":
            self._condemn(r, value)
        elif tag == b"B":
            number = int.from_bytes(r.take(4), "big")
            need(number > 0, "a row of the base 0")
            self.bases[number] = base(_object(value, "a base"))
            r.end()
        elif tag == b"K":
            self._commit_key(r, value)
        elif tag == b"I":
            self._of_node(r.take(16).hex(), r, value)
        elif tag == b"N":
            group, name = r.take(16).hex(), _name(_rest(r))
            child = Cursor(value, "the row of a child")
            node, kind = child.take(16).hex(), child.u8()
            child.end()
            if kind >= len(CHILDREN):
                raise Unsupported(f"a child of the kind {kind}")
            self.children.setdefault(group, {})[name] = (node, CHILDREN[kind])
        else:
            named = fields(_object(value, "a tag"), {}, {"version": None}, "a tag")
            self.tags[_name(_rest(r))] = whole(named["version"])

    def _condemn(self, r: Cursor, value: bytes) -> None:
        which = r.take(1).decode("latin-1")
        if which not in self.condemned:
            return  # A newer release wrote it.
        need(not value, "a condemned object has a value")
        self.condemned[which].add(r.take(16).hex())
        r.end()

    def _commit_key(self, r: Cursor, value: bytes) -> None:
        """The number of keys, which comes first, or a key. Epochs ascend, so the newest row of a key is the last."""
        if r.at == len(r.data):
            self.keys.next = whole(fields(_object(value, "a count"), {}, {"next": None}, "a count of keys")["next"])
            return
        epoch, hashed, key = int.from_bytes(r.take(8), "big"), int.from_bytes(r.take(8), "big"), _rest(r)
        need(1 <= len(key) <= COMMIT_KEY_BYTES_MAX and hashed == xxh3(key), "the row of a commit key has another key")
        row = Cursor(value, "the row of a commit key")
        version, content, number = row.u64(), row.take(16).hex(), row.u64()
        need(number < self.keys.next and number // EPOCH == epoch, "a commit key with the number of another epoch")
        self.keys.held[key] = (number, version, content)

    def _of_node(self, node: str, r: Cursor, value: bytes) -> None:
        """A row that belongs to a node."""
        sort = r.u8()
        if sort == METADATA:
            self.metadata.setdefault(node, {})[_text(_rest(r), "a key")] = _text(value, "metadata")
            return
        if sort == FIELD:
            letter, number = r.take(1), int.from_bytes(r.take(4), "big")
            if letter not in FIELDS:
                raise Unsupported(f"metadata of what has the letter {letter!r}")
            of_array = self.fields.setdefault(node, {})
            of_array.setdefault((FIELDS[letter], number), {})[_text(_rest(r), "a key")] = _text(value, "metadata")
            return
        if sort == HEAD:
            self.heads[node] = _head(value)
        elif sort == PAGE:
            page = _object(value, "a page")
            need(r.take(16).hex() == page.get("id"), "a page under another id")
            self.pages.setdefault(node, []).append(page)
        elif sort == KEPT:
            self.kept.setdefault(node, {})[r.take(16).hex()] = kept(_object(value, "kept files"))
        else:
            number = NUMBER_MAX - int.from_bytes(r.take(4), "big")
            self.schemas.setdefault(node, {})[number] = _object(value, "a schema")
        r.end()


def _object(value: bytes, what: str) -> dict[str, Any]:
    found = without_ext(json_of(value, what))
    need(isinstance(found, dict), f"{what} is no object")
    return dict(found)


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(f"{what} is not UTF-8") from error


def _rest(r: Cursor) -> bytes:
    return r.take(len(r.data) - r.at)


def _name(data: bytes) -> str:
    need(1 <= len(data) <= NAME_BYTES_MAX, "a name that is empty or too long")
    return _text(data, "a name")


def _head(value: bytes) -> _Head:
    optional = dict.fromkeys(("parent", "schemas", "domain", "hidden"))
    h = fields(_object(value, "a head"), {"name": str, "kind": str}, optional, "a head")
    if h["kind"] not in KINDS:
        raise Unsupported(f"a node of the kind {h['kind']!r}")
    schemas = 0 if h["schemas"] is None else whole(h["schemas"])
    need((schemas > 0) == (h["kind"] == "array"), "an array without a schema, or a group with one")
    domain = None if h["domain"] is None else _domain(h["domain"])
    need(domain is None or h["kind"] == "array", "a group with a domain")
    hidden = h["hidden"] is not None
    need(not hidden or (h["hidden"] is True and h["kind"] == "array"), "a head that is hidden, and not of an array")
    return _Head(None if h["parent"] is None else hex32(h["parent"]), h["name"], h["kind"], schemas, domain, hidden)


def _domain(value: Any) -> Box:
    """The domain of an array, along some dimensions empty."""
    need(isinstance(value, list) and 1 <= len(value) <= 32, "a domain is no list of pairs")
    return [EMPTY if ends is None else box([ends])[0] for ends in value]


class _Nodes:
    """The nodes that exist: those whose heads do, and all nodes above them."""

    def __init__(self, gathered: _Gathered, read: Read) -> None:
        self.gathered, self.pages = gathered, Pages(read)

    def below(self, top: str) -> dict[str, Node]:
        """The nodes by id, parents before children."""
        heads, children = self.gathered.heads, self.gathered.children
        need(top in heads, "a root without the node at /")
        need((heads[top].parent, heads[top].name) == (None, ""), "the node at / lies in another one")
        found = {top: self._node(top, "/")}
        waiting = [top]
        for group in waiting:
            for name, (child, kind) in children.get(group, {}).items():
                head = heads.get(child)
                hidden = kind == "hidden"
                need(heads[group].kind == ("array" if hidden else "group"), "an array with a child")
                need(not heads[group].hidden, "an array hidden in a hidden one")
                said = head and (head.parent, head.name, "hidden" if head.hidden else head.kind)
                need(said == (group, name, kind), "a child with another head")
                need(not hidden or hidden_name(name), "a name that no hidden array may have")
                need(name not in (".", "..") and not set(name) & {"/", "\0"}, "a name that no node may have")
                found[child] = self._node(child, f"{found[group].path.rstrip('/')}/{name}")
                found[child].owner = group if hidden else None
                waiting.append(child)
        for node, head in heads.items():
            need(node == top or head.parent is not None, "two nodes at /")
            need(node in found or head.parent not in found, "a head that its parent does not name")
        check_labels(found)
        return found

    def _node(self, node: str, path: str) -> Node:
        head, schemas = self.gathered.heads[node], self.gathered.schemas.get(node, {})
        counted = len(schemas) == head.schemas and all(number < head.schemas for number in schemas)
        need(counted, "an array with other schemas than its head counts")
        pages = self.gathered.pages.get(node, [])
        need(not pages or head.kind == "array", "a group with fragments")
        fragments = [one for page in pages for one in self.pages.descriptions(page)]
        metadata = self.gathered.metadata.get(node, {})
        used = history([schemas[n] for n in sorted(schemas)], head.domain)
        entries = self.gathered.kept.get(node, {})
        need(not entries or head.kind == "array", "a group with kept files")
        told = Node(node, path, metadata, used, fragments, entries, self.gathered.fields.get(node, {}))
        need(
            all(told.has_field(which) for which in told.fields),
            "metadata of an attribute or dimension that is not there",
        )
        return told
