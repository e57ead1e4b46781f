"""What newer releases write: parts of descriptions, kept files, bases, features of schemas, rows to be skipped."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from gsreader import Damaged, Store, Unsupported
from gsreader.checksums import xxh3
from gsreader.pages import read_page
from gsreader.schema import Schema
from test_rows import ARRAY, SPAN, TOP, World, child, flat, head, number, of_node, row, schema, small, text_of, world

__all__ = ["world"]

FILE, ENTRY = f"{0xFE:032x}", f"{0xEE:032x}"
LOW, HIGH = (int(end, 16) for end in SPAN)
SKIPPED = 1 << 31


def page(flags: int, parts: bytes, version: int = 1) -> tuple[bytes, dict[str, Any]]:
    """A page with one dense fragment in a data file, and what a root says of it."""
    body = (0xF1).to_bytes(16, "big") + struct.pack("<BBHIIIQQ", 0, 0, 0, 0, 0, 0, 1, 10)
    body += bytes.fromhex(FILE) + struct.pack("<QQQQ", 64, 700, LOW, HIGH)
    entry = struct.pack("<II", 8 + len(body) + len(parts), flags) + body + parts
    data = b"GSPAGE\0\0" + struct.pack("<IIIIII", version, 1, 1, 1, 0, 1) + (entry if version else body)
    info = {"id": "0" * 32, "xxh3": f"{xxh3(data):016x}", "count": 1, "bounds": [SPAN]}
    return data + struct.pack("<Q", xxh3(data)), {**info, "first": [1, 0], "last": [1, 0], "full": False}


def part(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


def test_entries_have_parts():
    plain = read_page(*page(0, b"", version=0))
    assert read_page(*page(0, b"")) == plain
    kept = part(b'{"a":1}') + part(b"") + part(b"any bytes")
    assert read_page(*page(1 << 17 | 1 << 20 | 1 << 31, kept)) == plain
    (far,) = read_page(*page(1 | 1 << 17, part(struct.pack("<I", 7)) + part(b"{}")))
    assert (far.base, far.file, far.offset) == (7, FILE, 64)
    (moved,) = read_page(*page(2, part(struct.pack("<q", -3))))
    assert moved.moved == (-3,)


@pytest.mark.parametrize("bit", range(2, 16))
def test_a_part_that_must_be_known_is_unsupported(bit):
    with pytest.raises(Unsupported):
        read_page(*page(1 << bit, part(b"")))


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (0, part(b"")),
        (1 << 20, b""),
        (1 << 20, b"\1\0\0\0"),
        (1, part(bytes(4))),
        (1, part(b"\1")),
        (1 << 17, part(b"1")),
        *((2, part(bytes(count))) for count in (0, 7, 16)),
    ],
)
def test_parts_that_are_none_are_refused(flags, parts):
    with pytest.raises(Damaged):
        read_page(*page(flags, parts))


def array_rows(**more: Any) -> dict[bytes, bytes]:
    held = {
        of_node(ARRAY, 0): text_of(head("array", TOP, "a", 1)),
        of_node(ARRAY, 2, number(0)): text_of({**schema("v"), **more}),
        child(TOP, "a"): bytes.fromhex(ARRAY) + b"\1",
    }
    return small() | held


KEPT = {"kind": "of later", "files": [{"id": FILE, "len": 9}], "ext": {"a": 1}}
BASE = {"kind": "of later", "places": [{"place": "s3://a", "state": "asleep", "ext": {}}], "ext": {}}


def test_rows_of_kept_files_and_bases(world):
    rows = {of_node(ARRAY, 3, bytes.fromhex(ENTRY)): text_of(KEPT), b"B\0\0\1\0": text_of(BASE)}
    state = world.state_of(flat(array_rows() | rows))
    assert state.nodes[ARRAY].kept[ENTRY].files == ((FILE, 9),)
    assert state.bases == {256: ("of later", (("s3://a", "asleep"),))}
    for key, value in [(b"B\0\0\0\0", BASE), (b"B\0\0\1", BASE), (b"B\0\0\0\1", {"kind": "a"})]:
        with pytest.raises(Damaged):
            world.state_of(flat(array_rows() | {key: text_of(value)}))
    with pytest.raises(Unsupported):
        world.state_of(flat(array_rows() | {of_node(ARRAY, 3, bytes.fromhex(ENTRY)): text_of({**KEPT, "more": 1})}))


def test_rows_that_may_be_skipped_are_absent(world):
    held = sorted(array_rows().items())
    skipped = row(of_node(ARRAY, 2, number(1)), b"a schema of its own form", SKIPPED | 4)
    content = b"".join(row(key, value) for key, value in held)
    without = world.state_of(content)
    place = len(flat(dict(held[: [key for key, _ in held].index(of_node(ARRAY, 2, number(0)))])))
    found = world.state_of(content[:place] + skipped + content[place:])
    assert found.nodes == without.nodes
    with pytest.raises(Unsupported):
        world.state_of(content[:place] + row(of_node(ARRAY, 2, number(1)), bytes(32), SKIPPED | 1) + content[place:])


def follow(world: World, *operations: dict[str, Any], **more: Any) -> Any:
    """The state after a second record."""
    value = {"op": "create_array", "id": ARRAY, "path": "/a", "schema": {**schema("v"), **more}}
    world.record(2, [value, *operations])
    return Store(world.folder).at(2)


def test_records_keep_and_release_files(world):
    keep = {"op": "keep", "array": ARRAY, "entry": ENTRY, "kept": KEPT}
    release = {"op": "release", "array": ARRAY, "entry": ENTRY}
    assert follow(world, keep).nodes[ARRAY].kept[ENTRY].kind == "of later"
    assert follow(world, keep, release).nodes[ARRAY].kept == {}
    lost = {**keep, "kept": {**KEPT, "owner": {"fragment": FILE}}}
    for wrong in ([release], [keep, keep], [lost], [{**keep, "kept": {**KEPT, "kind": ""}}]):
        with pytest.raises(Damaged):
            follow(world, *wrong)
    with pytest.raises(Unsupported):
        follow(world, {**keep, "kept": {**KEPT, "owner": {"row": FILE}}})


def test_what_is_kept_beside_a_fragment_goes_with_it(world):
    place = {"bounds": [SPAN], "id": FILE}
    added = {**place, "kind": "deletion", "schema": 0, "cells": 0, "attrs": [], "at": "nowhere"}
    add = {"op": "add_fragments", "array": ARRAY, "fragments": [added]}
    keep = {"op": "keep", "array": ARRAY, "entry": ENTRY, "kept": {**KEPT, "owner": {"fragment": FILE}}}
    gone = {"op": "replace_fragments", "array": ARRAY, "removed": [{**place, "order": [2, 0]}], "fragments": []}
    assert list(follow(world, add, keep).nodes[ARRAY].kept) == [ENTRY]
    assert follow(world, add, keep, gone).nodes[ARRAY].kept == {}


def test_records_set_bases_and_name_them(world):
    set_base = {"op": "set_base", "number": 1, "base": BASE}
    assert list(follow(world, set_base).bases) == [1]
    assert follow(world, set_base, {**set_base, "base": None}).bases == {}
    with pytest.raises(Damaged):
        follow(world, {**set_base, "number": 0})
    far = {"id": FILE, "kind": "sparse", "schema": 0, "bounds": [SPAN], "cells": 3, "attrs": [0]}
    far["at"] = {"data": {"id": FILE, "offset": 0, "len": 9, "base": 1}}
    far |= {"parts": [[20, "00ff"], [31, ""]], "ext": {"a": 1}}
    state = follow(world, {"op": "add_fragments", "array": ARRAY, "fragments": [far]})
    (found,) = state.nodes[ARRAY].fragments
    assert (found.base, found.file) == (1, FILE)
    with pytest.raises(Unsupported, match="base 1"):
        Store(world.folder).cells(state.nodes[ARRAY], [(LOW, HIGH)])
    for parts, error in [([[3, ""]], Unsupported), ([[20, "f"]], Damaged), ([[20, ""], [20, ""]], Damaged)]:
        with pytest.raises(error):
            follow(world, {"op": "add_fragments", "array": ARRAY, "fragments": [{**far, "parts": parts}]})


def test_features_of_a_schema_concern_its_array(world):
    unknown = {"read": ["wavelets"], "more": 7, "attrs": [{"dtype": "quaternion"}]}
    state = follow(world, **unknown)
    assert state.nodes[ARRAY].domain == [(LOW, HIGH)]
    with pytest.raises(Unsupported, match="wavelets"):
        Store(world.folder).cells(state.nodes[ARRAY], [(LOW, HIGH)])
    state = follow(world, write=["wavelets"], ext={"a": 1})
    assert Store(world.folder).cells(state.nodes[ARRAY], [(LOW, HIGH)]) == []
    with pytest.raises(Damaged):
        Schema.of_json({**schema("v"), "read": "wavelets"})


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "set_base", "number": 1, "base": None},
        {"op": "create_group", "id": ARRAY, "path": "/g", "ext": {}},
        {"op": "create_array", "id": ARRAY, "path": "/g", "schema": {**schema("v"), "write": ["a"]}},
    ],
)
def test_records_of_gs0_have_none_of_it(tmp_path, operation):
    world = World(tmp_path, gs=0)
    world.record(2, [operation])
    with pytest.raises(Unsupported):
        Store(tmp_path).at(2)


def test_any_operation_may_have_an_ext(world):
    place = {"bounds": [SPAN], "id": FILE}
    added = {**place, "kind": "deletion", "schema": 0, "cells": 0, "attrs": [], "at": "nowhere"}
    node, change = {"op": "set_metadata", "node": ARRAY}, {"changes": [["k", "1"]]}
    operations: list[dict[str, Any]] = [
        {"op": "grow", "array": ARRAY, "dimension": 0, "low": SPAN[0], "high": SPAN[1]},
        {"op": "alter_array", "id": ARRAY, "number": 1, "schema": schema("v")},
        {"op": "add_fragments", "array": ARRAY, "fragments": [added]},
        {"op": "replace_fragments", "array": ARRAY, "removed": [{**place, "order": [2, 0]}], "fragments": []},
        {**node, **change},
        {**node, "changes": []},
        {**node, "attr": 0, **change},
        {"op": "keep", "array": ARRAY, "entry": ENTRY, "kept": KEPT},
        {"op": "release", "array": ARRAY, "entry": ENTRY},
        {"op": "set_base", "number": 1, "base": BASE},
        {"op": "tag", "name": "t", "version": 1},
        {"op": "untag", "name": "t"},
        {"op": "condemn", "floor": None, "data": [], "manifest": [], "forget": []},
        {"op": "create_group", "id": f"{0xD0:032x}", "path": "/g"},
        {"op": "move", "id": ARRAY, "path": "/g/a"},
        {"op": "remove", "id": f"{0xD0:032x}"},
    ]
    plain, found = (follow(world, *({**o, **ext} for o in operations)) for ext in ({}, {"ext": {"a": [1]}}))
    assert (found.nodes, found.bases, found.retained) == (plain.nodes, plain.bases, plain.retained)
    assert follow(world, *({**o, "ext": {"a": [1]}} for o in operations[:9])).nodes[ARRAY].metadata == {"k": "1"}
    with pytest.raises(Damaged, match="ext that is no object"):
        follow(world, {**operations[0], "ext": 7})


def test_what_is_replaced_does_not_come_back_under_its_id(world):
    place = {"bounds": [SPAN], "id": FILE}
    added = {**place, "kind": "deletion", "schema": 0, "cells": 0, "attrs": [], "at": "nowhere"}
    add = {"op": "add_fragments", "array": ARRAY, "fragments": [added]}
    replaced = {"op": "replace_fragments", "array": ARRAY, "removed": [{**place, "order": [2, 0]}]}
    other = {**added, "id": f"{0xFD:032x}", "order": [2, 0]}
    assert len(follow(world, add, {**replaced, "fragments": [other]}).nodes[ARRAY].fragments) == 1
    with pytest.raises(Damaged, match="id of one that it replaces"):
        follow(world, add, {**replaced, "fragments": [{**added, "order": [2, 0]}]})
