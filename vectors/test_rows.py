"""Stores of GS1 that are made here byte by byte: what the reader accepts, and what it refuses."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import zstandard

from gsreader import Damaged, Store, Unsupported, log, rows, seal
from gsreader.checksums import xxh3
from gsreader.state import Version

TOP, GROUP, ARRAY, STORE = ("%032x" % (0xA0 + number) for number in range(4))
PLAIN, ZSTD = 0, 1
INLINE, PAGE, VALUE = 0, 1, 2
PAGE_MAGIC, VALUE_MAGIC = b"GSROWS\0\0", b"GSVALUE\0"
SPAN = ["8000000000000000", "8000000000000009"]
REFUSED = (Damaged, Unsupported)


def text_of(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def line(value: dict[str, Any], body: bytes = b"", *, padded: bool = False) -> bytes:
    """A checksummed line and its body."""
    text = text_of(value)
    text = text.ljust(-(-(len(text) + 18) // 64) * 64 - 18) if padded else text
    return text + f"\n{xxh3(text):016x}\n".encode() + body


def checksum(data: bytes) -> int:
    """That of a checksummed line."""
    return xxh3(data[: data.index(b"\n")])


def frame(magic: bytes, content: bytes, coding: int = PLAIN, *, version: int = 1, length: int | None = None) -> bytes:
    """A page of rows or a value."""
    coded = zstandard.ZstdCompressor().compress(content) if coding == ZSTD else content
    stated = len(content) if length is None else length
    data = magic + struct.pack("<IIQ", version, coding, stated) + coded
    return data + struct.pack("<Q", xxh3(data))


def row(key: bytes, value: bytes, flags: int = INLINE) -> bytes:
    return struct.pack("<III", len(key), len(value), flags) + key + value


def of_node(node: str, sort: int, rest: bytes = b"") -> bytes:
    return b"I" + bytes.fromhex(node) + bytes([sort]) + rest


def child(group: str, name: str) -> bytes:
    return b"N" + bytes.fromhex(group) + name.encode()


def number(place: int) -> bytes:
    return (2**32 - 1 - place).to_bytes(4, "big")


class World:
    """A store of two versions. The record of the second one names a root at the first."""

    def __init__(self, folder: Path, gs: int = 1, key: bytes | None = None) -> None:
        self.folder, self.gs, self.key, self.objects = folder, gs, key, 0
        self.first = self.record(1, [{"op": "create_group", "id": TOP, "path": "/"}])

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if self.key is None else sealed(self.key, name, data))

    def object(self, data: bytes) -> str:
        """The id of a new object of the manifest."""
        self.objects += 1
        name = f"{self.objects:032x}"
        self.write(f"_manifest/{name}", data)
        return name

    def record(self, version: int, ops: list[Any], root: Any = None, **more: Any) -> int:
        """The checksum of a new record."""
        value: dict[str, Any] = {"gs": self.gs, "commit_id": STORE, "version": version, "time_us": version}
        value |= {"parent": None if version == 1 else f"{self.first:016x}", "read_version": version - 1, "root": root}
        data = line({**value, **more, "ops": ops}, padded=True)
        self.write(f"_log/{version:020}", data)
        return checksum(data)

    def reference(self, magic: bytes, content: bytes, coding: int = PLAIN, **wrong: Any) -> bytes:
        """What a row says of a new page or value. ``wrong`` has what else it shall say."""
        said = {"xxh3": xxh3(content), "length": len(content), **wrong}
        name = self.object(frame(magic, content, coding))
        return bytes.fromhex(name) + struct.pack("<QQ", said["xxh3"], said["length"])

    def root(self, content: bytes, coding: int = PLAIN, **more: Any) -> str:
        """The id of a new root with this top page."""
        value = {"gs": 1, **self.facts(), "node": TOP, "rows": f"{xxh3(content):016x}", **more}
        return self.named(line(value, frame(PAGE_MAGIC, content, coding)))

    def facts(self) -> dict[str, Any]:
        """What roots of both forms say."""
        return {"version": 1, "time_us": 1, "record": f"{self.first:016x}", "store": STORE}

    def named(self, data: bytes) -> str:
        """The id of a new root, which the second record names."""
        name = self.object(data)
        self.gs = 1
        self.record(2, [], {"id": name, "version": 1, "xxh3": f"{checksum(data):016x}"})
        return name

    def state(self) -> Version:
        return Store(self.folder, self.key).at(2)

    def state_of(self, content: bytes, coding: int = PLAIN, **more: Any) -> Version:
        """The state as a root with this top page has it."""
        self.root(content, coding, **more)
        return self.state()


def sealed(key: bytes, name: str, data: bytes) -> bytes:
    """An object of one segment, sealed."""
    fixed = struct.pack("<IBBH", 0, 1, 14, 0) + seal.key_id(key) + bytes(range(32))
    gcm = seal.Gcm(seal.hkdf(key, fixed[24:], b"gridstone seal v0" + fixed[:24] + name.encode()))
    nonce = bytes(11) + b"\1"
    segment = gcm.crypt(nonce, data)
    return b"GRIDSEAL" + fixed + struct.pack("<Q", xxh3(fixed)) + segment + gcm.tag(nonce, segment)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def head(kind: str, parent: str | None, name: str, schemas: int = 0) -> dict[str, Any]:
    counted = {"schemas": schemas} if schemas else {}
    return {"parent": parent, "name": name, "kind": kind, **counted}


def schema(*names: str) -> dict[str, Any]:
    dims = [{"name": "x", "dtype": "int64", "domain": ["0", "9"]}]
    return {"sparse": True, "dims": dims, "attrs": [{"name": name, "dtype": "int8"} for name in names]}


def fragments(world: World, *ids: int) -> tuple[str, dict[str, Any]]:
    """The id of a new page of fragments, which are deletions, and what a root says of it."""
    low, high = (int(end, 16) for end in SPAN)
    described = b""
    for place, one in enumerate(ids):
        described += one.to_bytes(16, "big") + struct.pack("<BBHIIIQQ", 3, 2, 0, 0, 0, place, 1, 0)
        described += bytes(32) + struct.pack("<QQ", low, high)
    data = b"GSPAGE\0\0" + struct.pack("<IIIII", 0, 1, 1, 0, len(ids)) + described
    name = world.object(data + struct.pack("<Q", xxh3(data)))
    info = {"id": name, "xxh3": f"{xxh3(data):016x}", "count": len(ids), "bounds": [SPAN]}
    return name, {**info, "first": [1, 0], "last": [1, len(ids) - 1], "full": False}


Rows = dict[bytes, bytes]


def small(**changed: Any) -> Rows:
    """The rows of a store with one group and metadata."""
    return {of_node(TOP, 0): text_of({**head("group", None, ""), **changed}), of_node(TOP, 4, b"k"): b'"some text"'}


def large(world: World) -> tuple[Rows, dict[str, Any]]:
    """Rows of every tag, and the root of GS0 that holds the same."""
    name, page = fragments(world, 0xF1, 0xF2)
    metadata = {"k": '"text"', "\u00e4": "[" + "1," * 200 + "2]"}
    held = small() | {
        of_node(TOP, 4, b"k"): b"1",
        of_node(GROUP, 0): text_of(head("group", TOP, "g")),
        of_node(ARRAY, 0): text_of(head("array", GROUP, "a", 2)),
        of_node(ARRAY, 1, bytes.fromhex(name)): text_of(page),
        of_node(ARRAY, 2, number(0)): text_of(schema("v")),
        of_node(ARRAY, 2, number(1)): text_of(schema("v", "w")),
        **{of_node(ARRAY, 4, key.encode()): value.encode() for key, value in metadata.items()},
        child(TOP, "g"): bytes.fromhex(GROUP) + b"\0",
        child(GROUP, "a"): bytes.fromhex(ARRAY) + b"\1",
        b"C" + b"d" + bytes(15) + b"\1": b"",
        b"C" + b"m" + bytes(15) + b"\2": b"",
    }
    array = {"schemas": [schema("v"), schema("v", "w")], "pages": [page]}
    nodes = [{"id": TOP, "path": "/", "metadata": {"k": "1"}}, {"id": GROUP, "path": "/g", "metadata": {}}]
    nodes.append({"id": ARRAY, "path": "/g/a", "metadata": metadata, "array": array})
    retained = {"tags": {}, "floor": None, "data": [f"{1:032x}"], "manifest": [f"{2:032x}"]}
    return held, {"gs": 0, **world.facts(), "nodes": nodes, "retained": retained}


def flat(held: Rows) -> bytes:
    return b"".join(row(key, value) for key, value in sorted(held.items()))


def paged(world: World, held: Rows, coding: int, *, depth: int, most: int) -> bytes:
    """Pages of at most ``most`` rows, ``depth`` deep, and values of their own.

    The first row of each page is in the page itself, the others are below it.
    """
    items = sorted(held.items())
    if depth == 0:
        out = b""
        for key, value in items:
            apart = len(value) > 100
            put = world.reference(VALUE_MAGIC, value, coding) if apart else value
            out += row(key, put, VALUE if apart else INLINE)
        return out
    first, rest = items[:1], items[1:]
    out = flat(dict(first))
    for start in range(0, len(rest), most):
        part = dict(rest[start : start + most])
        below = paged(world, part, coding, depth=depth - 1, most=max(most // 2, 1))
        # The key is below the first row of some pages, and that of others.
        key = min(part) if start else max(dict(first)) + b"\0"
        out += row(key, world.reference(PAGE_MAGIC, below, coding), PAGE)
    return out


@pytest.mark.parametrize("coding", [PLAIN, ZSTD])
@pytest.mark.parametrize(("depth", "most"), [(0, 1), (1, 4), (2, 6), (3, 12)])
@pytest.mark.parametrize("key", [None, bytes(range(32))], ids=["plain", "sealed"])
def test_rows_become_the_state_of_a_root_of_gs0(tmp_path, coding, depth, most, key):
    world = World(tmp_path, key=key)
    held, older = large(world)
    world.root(paged(world, held, coding, depth=depth, most=most), coding)
    state = world.state()
    assert [node.path for node in state.nodes.values()] == ["/", "/g", "/g/a"]
    assert [d.id for d in state.nodes[ARRAY].fragments] == [f"{0xF1:032x}", f"{0xF2:032x}"]
    world.named(line(older))
    twin = world.state()
    assert (state.nodes, state.retained, state.store, state.time_us) == (
        twin.nodes,
        twin.retained,
        twin.store,
        twin.time_us,
    )


def test_tags_and_the_floor_are_read(world):
    floor = {"id": "0" * 32, "version": 1, "xxh3": "0" * 16}
    world.record(2, [])
    tagged = {b"Told": text_of({"version": 1}), b"Tnewer": text_of({"version": 2})}
    data = flat(small() | tagged)
    start = {"gs": 1, **world.facts(), "version": 3, "node": TOP, "rows": f"{xxh3(data):016x}", "floor": floor}
    root = line(start, frame(PAGE_MAGIC, data))
    reference = (3, world.object(root), checksum(root))
    retained = Store(world.folder)._root(reference).retained
    assert (retained.tags, retained.floor) == ({"old": 1, "newer": 2}, (1, "0" * 32, 0))
    for version in (0, 3):
        data = flat(small() | {b"Told": text_of({"version": version})})
        root = line({**start, "rows": f"{xxh3(data):016x}"}, frame(PAGE_MAGIC, data))
        with pytest.raises(Damaged, match="tag"):
            Store(world.folder)._root((3, world.object(root), checksum(root)))


def test_a_store_of_gs0_is_upgraded(tmp_path):
    world = World(tmp_path, gs=0)
    state = world.state_of(flat(small()))
    assert (state.version, list(state.nodes)) == (2, [TOP])
    assert state.nodes[TOP].metadata == {"k": '"some text"'}
    assert Store(tmp_path).at(1).nodes[TOP].metadata == {}


@pytest.mark.parametrize(("depth", "is_read"), [(32, True), (33, False)])
def test_pages_lie_32_deep(world, depth, is_read):
    content = flat(small())
    for _ in range(depth):
        content = row(b"", world.reference(PAGE_MAGIC, content), PAGE)
    world.root(content)
    if is_read:
        assert world.state().nodes[TOP].metadata == {"k": '"some text"'}
    else:
        with pytest.raises(Damaged, match="32 deep"):
            world.state()


def three_objects(world: World, coding: int) -> list[Path]:
    """A value, the page that names it, and the root."""
    (top, node), (key, text) = sorted(small().items())
    page = row(key, world.reference(VALUE_MAGIC, text, coding), VALUE)
    world.root(row(top, node) + row(key, world.reference(PAGE_MAGIC, page, coding), PAGE), coding)
    paths = sorted((world.folder / "_manifest").iterdir())
    assert len(paths) == 3
    return paths


@pytest.mark.parametrize("coding", [PLAIN, ZSTD])
@pytest.mark.parametrize("place", range(3), ids=["value", "page", "root"])
def test_every_flipped_bit_is_refused(world, coding, place):
    path = three_objects(world, coding)[place]
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        bad = bytearray(data)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with pytest.raises(REFUSED):
            world.state()
    path.write_bytes(data)
    assert world.state().nodes[TOP].metadata == {"k": '"some text"'}


@pytest.mark.parametrize("coding", [PLAIN, ZSTD])
@pytest.mark.parametrize("place", range(3), ids=["value", "page", "root"])
def test_every_truncation_is_refused(world, coding, place):
    path = three_objects(world, coding)[place]
    data = path.read_bytes()
    for other in [*(data[:length] for length in range(len(data))), data + b"\0"]:
        path.write_bytes(other)
        with pytest.raises(REFUSED):
            world.state()
    path.unlink()
    with pytest.raises(Damaged, match="missing"):
        world.state()


@pytest.mark.parametrize(
    ("kind", "magic", "bytes_max"), [(rows.PAGES, PAGE_MAGIC, 64 << 20), (rows.VALUES, VALUE_MAGIC, 256 << 20)]
)
def test_frames_are_of_a_known_version_coding_and_length(kind, magic, bytes_max):
    assert rows.content(frame(magic, b"abc", ZSTD), kind) == rows.content(frame(magic, b"abc"), kind, 3) == b"abc"
    assert rows.content(frame(magic, b"", ZSTD), kind) == rows.content(frame(magic, b""), kind) == b""
    with pytest.raises(Unsupported, match="version 2"):
        rows.content(frame(magic, b"abc", version=2), kind)
    with pytest.raises(Unsupported, match="coding 2"):
        rows.content(frame(magic, b"abc", 2), kind)
    for coding in (PLAIN, ZSTD):
        for length in (0, 2, 4, bytes_max, bytes_max + 1, 2**64 - 1):
            with pytest.raises(Damaged):
                rows.content(frame(magic, b"abc", coding, length=length), kind)
        with pytest.raises(Damaged, match="length"):
            rows.content(frame(magic, b"abc", coding), kind, 4)
    with pytest.raises(Damaged, match="magic"):
        rows.content(frame(b"GSPAGE\0\0", b"abc"), kind)
    twice = zstandard.ZstdCompressor().compress(b"abc") * 2
    data = magic + struct.pack("<IIQ", 1, ZSTD, 3) + twice
    with pytest.raises(Damaged, match="zstd"):
        rows.content(data + struct.pack("<Q", xxh3(data)), kind)


def test_references_are_checked_against_what_they_name(world):
    key, text = of_node(TOP, 4, b"k"), b'"some text"'
    (top, node), _ = sorted(small().items())
    for wrong in ({"xxh3": 1}, {"length": 10}, {"length": 2**64 - 1}):
        with pytest.raises(Damaged):
            world.state_of(row(top, node) + row(key, world.reference(VALUE_MAGIC, text, **wrong), VALUE))
        with pytest.raises(Damaged):
            world.state_of(row(top, node) + row(key, world.reference(PAGE_MAGIC, row(key, text), **wrong), PAGE))
    for magic, content, flags in ((PAGE_MAGIC, text, VALUE), (VALUE_MAGIC, row(key, text), PAGE)):
        with pytest.raises(Damaged, match="magic"):
            world.state_of(row(top, node) + row(key, world.reference(magic, content), flags))
    for cut in (31, 33):
        reference = world.reference(VALUE_MAGIC, text).ljust(33, b"\0")[:cut]
        with pytest.raises(Damaged):
            world.state_of(row(top, node) + row(key, reference, VALUE))


def test_rows_are_in_strict_order_and_in_the_page_of_their_key(world):
    (top, node), (key, text) = sorted(small().items())
    for out_of_order in (row(key, text) + row(top, node), row(top, node) + row(key, text) * 2):
        with pytest.raises(Damaged, match="order"):
            world.state_of(out_of_order)
    later = row(of_node(TOP, 4, b"l"), b"1")
    below = world.reference(PAGE_MAGIC, row(key, text))
    for reference_key, behind in ((key + b"\0", b""), (key[:-1] + b"j", row(key, b"1"))):
        with pytest.raises(Damaged, match="another page"):
            world.state_of(row(top, node) + row(reference_key, below, PAGE) + behind)
    state = world.state_of(row(top, node) + row(key[:-1] + b"j", below, PAGE) + later)
    assert state.nodes[TOP].metadata == {"k": '"some text"', "l": "1"}
    # A page deeper down keeps to the end of what the page above it has.
    deeper = world.reference(PAGE_MAGIC, row(key, world.reference(PAGE_MAGIC, later), PAGE))
    with pytest.raises(Damaged, match="another page"):
        world.state_of(row(top, node) + row(key, deeper, PAGE) + row(of_node(TOP, 4, b"l"), b"1"))


def test_the_top_page_is_the_one_that_the_line_names(world):
    with pytest.raises(Damaged, match="other rows"):
        world.state_of(flat(small()), rows=f"{1:016x}")
    content = flat(small())
    for cut in (1, len(content) - 1):
        with pytest.raises(Damaged, match="early"):
            world.state_of(content[:cut])
    with pytest.raises(Unsupported, match="flags 3"):
        world.state_of(content + row(b"Z", b"", 3))


def test_rows_of_newer_releases_are_ignored(world):
    (top, node), (key, text) = sorted(small().items())
    gone = bytes(32)
    newer = [row(b"A", b"?"), row(top, node), row(key, text), row(of_node(TOP, 6), b"?")]
    newer += [row(of_node(TOP, 7, b"?"), gone, VALUE), row(b"Q" + bytes(40), gone, VALUE)]
    page = row(b"Z", b"?") + row(b"\xff\xff", b"?")
    newer.append(row(b"Z", world.reference(PAGE_MAGIC, page), PAGE))
    state = world.state_of(b"".join(newer))
    assert {n.path: n.metadata for n in state.nodes.values()} == {"/": {"k": '"some text"'}}


def without(held: Rows, *keys: bytes) -> Rows:
    return {key: value for key, value in held.items() if key not in keys}


def changes(world: World, held: Rows) -> list[tuple[str, Rows]]:
    """What is refused, and rows of which some do not fit the others."""
    [page] = [key for key in held if key[:18] == of_node(ARRAY, 1)]
    other = json.loads(held[page]) | {"id": fragments(world, 0xF1)[0]}
    twice, twin = fragments(world, 0xF2)
    group, array, a = of_node(GROUP, 0), of_node(ARRAY, 0), child(GROUP, "a")
    second, named = "ee" * 16, bytes.fromhex(ARRAY)
    shared = {of_node(second, 0): text_of(head("array", TOP, "b", 1)), child(TOP, "b"): bytes.fromhex(second) + b"\1"}
    shared |= {of_node(second, 2, number(0)): text_of(schema("v")), of_node(second, 1, page[18:]): held[page]}

    def renamed(name: str) -> Rows:
        return without(held, a) | {child(GROUP, name): held[a], array: text_of(head("array", GROUP, name, 2))}

    return [
        ("without the node at /", without(held, of_node(TOP, 0))),
        ("the node at / lies in another", held | {of_node(TOP, 0): text_of(head("group", GROUP, ""))}),
        ("the node at / lies in another", held | {of_node(TOP, 0): text_of(head("group", None, "n"))}),
        ("two nodes at /", held | {of_node(second, 0): text_of(head("group", None, ""))}),
        ("a child with another head", without(held, array)),
        ("a head that its parent does not name", without(held, a)),
        ("a child with another head", without(held, a) | {child(GROUP, "b"): held[a]}),
        ("a child with another head", held | {child(GROUP, "b"): held[a]}),
        ("a child with another head", held | {a: named + b"\0"}),
        ("a child with another head", held | {array: text_of(head("array", TOP, "a", 2))}),
        ("the row of a child", held | {a: named}),
        ("the row of a child", held | {a: named + b"\1\1"}),
        ("an array with a child", held | {child(ARRAY, "b"): bytes.fromhex(GROUP) + b"\0"}),
        ("a name that no node may have", renamed("a/b")),
        ("a name that no node may have", renamed("..")),
        ("a name that is empty", held | {child(GROUP, ""): held[a]}),
        ("or too long", held | {b"T" + b"n" * 256: text_of({"version": 1})}),
        ("other schemas than its head", without(held, of_node(ARRAY, 2, number(1)))),
        ("other schemas than its head", without(held, of_node(ARRAY, 2, number(0)))),
        ("other schemas than its head", held | {of_node(ARRAY, 2, number(2)): text_of(schema("v", "w"))}),
        ("an option of a schema", held | {of_node(ARRAY, 2, number(1)): text_of(schema("v") | {"sparse": False})}),
        ("an array without a schema", held | {array: text_of(head("array", GROUP, "a"))}),
        ("a group with one", held | {group: text_of(head("group", TOP, "g", 1))}),
        ("a group with fragments", held | {of_node(GROUP, 1, page[18:]): held[page]}),
        ("a page under another id", held | {page: text_of(other)}),
        ("a page is named twice", held | shared),
        ("a fragment is described twice", held | {of_node(ARRAY, 1, bytes.fromhex(twice)): text_of(twin)}),
        ("a condemned object has a value", held | {b"Cd" + bytes(16): b"1"}),
        ("the key of a row ends early", held | {b"Cd" + bytes(15): b""}),
        ("the key of a row has 1 bytes too many", held | {b"Cd" + bytes(17): b""}),
        ("the key of a row ends early", held | {b"": b""}),
        ("the key of a row ends early", held | {b"I" + bytes(16): b""}),
        ("a head is no JSON", held | {group: b"{"}),
        ("a head is no object", held | {group: b"[]"}),
        ("metadata is not UTF-8", held | {of_node(TOP, 4, b"k"): b"\xff"}),
        ("no integer", held | {b"Tt": b"{}"}),
    ]


def test_rows_that_do_not_fit_are_refused(world):
    held, _ = large(world)
    for message, changed in changes(world, held):
        with pytest.raises(Damaged, match=message):
            world.state_of(flat(changed))


def test_unknown_kinds_and_fields_are_unsupported(world):
    held, _ = large(world)
    for newer in (
        {of_node(GROUP, 0): text_of(head("mirror", TOP, "g"))},
        {child(TOP, "m"): bytes(16) + b"\3"},
        {of_node(GROUP, 0): text_of({**head("group", TOP, "g"), "colour": 1})},
        {b"Tt": text_of({"version": 1, "colour": 1})},
    ):
        with pytest.raises(Unsupported):
            world.state_of(flat(held | newer))


def test_nodes_exist_only_below_nodes_that_do(world):
    held, _ = large(world)
    for gone in ([of_node(GROUP, 0), child(TOP, "g")], [of_node(ARRAY, 0), child(GROUP, "a")]):
        state = world.state_of(flat(without(held, *gone)))
        assert ARRAY not in state.nodes and TOP in state.nodes


def test_ext_is_ignored_everywhere(world):
    held, _ = large(world)
    plain = world.state_of(flat(held))
    ext = {"ext": {"colour": [1, {"ext": 7}]}}

    def extended(value: Any) -> Any:
        if isinstance(value, list):
            return [extended(item) for item in value]
        return {k: extended(v) for k, v in value.items()} | ext if isinstance(value, dict) else value

    objects = {of_node(TOP, 0), of_node(GROUP, 0), of_node(ARRAY, 0)}
    more = {
        key: text_of(extended(json.loads(value)))
        if key in objects or (key[:17] == of_node(ARRAY, 0)[:17] and key[17] < 4)
        else value
        for key, value in held.items()
    }
    assert sum(more[key] != held[key] for key in held) >= 6
    state = world.state_of(flat(more), **ext)
    assert (state.nodes, state.retained) == (plain.nodes, plain.retained)
    world.first = world.record(
        1, [extended({"op": "create_array", "id": TOP, "path": "/", "schema": schema("v")})], **ext
    )
    assert Store(world.folder).at(1).nodes[TOP].schemas[0].json == schema("v")
    for wrong in (7, None, []):
        with pytest.raises(Damaged, match="ext"):
            world.state_of(flat(held | {of_node(GROUP, 0): text_of({**head("group", TOP, "g"), "ext": wrong})}))
        world.record(1, [], ext=wrong)
        with pytest.raises(Damaged, match="ext"):
            Store(world.folder).at(1)


def test_gs0_has_neither_features_nor_ext(tmp_path):
    for more in ({"ext": {}}, {"read": []}, {"write": []}):
        world = World(tmp_path, gs=0)
        world.record(1, [], **more)
        with pytest.raises(Unsupported, match="unknown fields"):
            Store(tmp_path).at(1)
    create = {"op": "create_group", "id": TOP, "path": "/", "ext": {}}
    World(tmp_path, gs=0).record(1, [create])
    with pytest.raises(Unsupported, match="ext"):
        Store(tmp_path).at(1)


def test_features_to_read_are_required_and_features_to_write_are_not(world):
    content = flat(small())
    assert world.state_of(content, read=[], write=["tides"]).version == 2
    with pytest.raises(Unsupported, match="moons, tides"):
        world.state_of(content, read=["moons", "tides"])
    create = [{"op": "create_group", "id": TOP, "path": "/"}]
    world.record(1, create, write=["tides"], read=[])
    assert Store(world.folder).at(1).version == 1
    for wrong in ("tides", [1], None, {}):
        for which in ("read", "write"):
            with pytest.raises(Damaged, match=which):
                world.state_of(content, **{which: wrong})
    world.record(1, create, read=["tides"], unknown=1)
    with pytest.raises(Unsupported, match="tides"):
        Store(world.folder).at(1)
    reference = {"id": "0" * 32, "version": 1, "xxh3": "0" * 16}
    world.write("_log/floor", line({"gs": 1, "version": 1, "root": reference, "write": ["tides"]}))
    assert Store(world.folder).floor() == (1, "0" * 32, 0)
    world.write("_log/floor", line({"gs": 1, "version": 1, "root": reference, "read": ["tides"]}))
    with pytest.raises(Unsupported, match="tides"):
        Store(world.folder).floor()


def test_other_versions_of_lines_are_unsupported_unless_only_the_number_is_damaged():
    for text in ('{"gs":2}', '{"gs":10,"a":1}', '{"gs":' + "9" * 5000 + "}", '{"gs":00}'):
        data = text.encode()
        for rest in (f"\n{xxh3(data):016x}\n".encode(), b"", b"\n", b"\n\xff\xff\n"):
            with pytest.raises(Unsupported, match=r"version [0-9]+$"):
                log.open_line(data + rest, "a line")
    for form in (0, 1):
        whole = line({"gs": form, "a": 1})
        assert log.open_line(whole, "a line").gs == form
        with pytest.raises(Damaged, match="number"):
            log.open_line(whole.replace(b'"gs":%d' % form, b'"gs":7'), "a line")
        with pytest.raises(Damaged, match="checksum"):
            log.open_line(whole.replace(b'"gs":%d' % form, b'"gs":%d' % (1 - form)), "a line")
    for text in (b'{ "gs":1}', b'{"gs": 1}', b'{"gs":1,"gs":0}', b'{"gs":1', b"[]", b""):
        with pytest.raises(Damaged):
            log.open_line(text + f"\n{xxh3(text):016x}\n".encode(), "a line")


def test_lines_and_objects_that_are_too_long_are_refused(world, monkeypatch):
    world.write("_log/floor", b"0" * 65_537)
    with pytest.raises(Damaged, match="too long"):
        Store(world.folder).floor()
    monkeypatch.setattr(log, "LINE_BYTES_MAX", 40)
    monkeypatch.setattr(log, "ROOT_OF_GS0_BYTES_MAX", 60)
    for form, root, length in ((0, False, 40), (1, False, 40), (1, True, 40), (0, True, 60)):
        text = f'{{"gs":{form}}}'.encode()
        assert log.open_line(line_of(text.ljust(length)), "a line", root=root).body == length + 18
        with pytest.raises(Damaged, match="too long"):
            log.open_line(line_of(text.ljust(length + 1)), "a line", root=root)


def line_of(text: bytes) -> bytes:
    return text + f"\n{xxh3(text):016x}\n".encode()
