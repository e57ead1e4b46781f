"""Hidden arrays, and metadata of attributes and dimensions: what the reader accepts, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from gsreader import Damaged, Store, Unsupported
from gsreader.keys import SIGN
from test_day_two import (
    HIDDEN,
    IN_ARRAY,
    OTHER,
    after,
    alter,
    array_rows,
    create,
    dense,
    fragment,
    hide,
    line,
    refused,
    remove,
    renamed,
    tell,
)
from test_growth import dim, grow
from test_rows import ARRAY, REFUSED, TOP, Rows, child, flat, head, number, of_node, text_of, world

__all__ = ["world"]


def test_hidden_arrays_die_and_move_with_their_owner(world):
    group = {"op": "create_group", "id": OTHER, "path": "/g"}
    both = (create(line()), hide())
    assert [n.path for n in after(world, *both).nodes.values()] == ["/", "/a", "/a/@x"]
    assert after(world, *both).nodes[HIDDEN].owner == ARRAY
    moved = after(world, *both, group, {"op": "move", "id": ARRAY, "path": "/g/b"})
    assert (moved.nodes[HIDDEN].path, moved.nodes[HIDDEN].owner) == ("/g/b/@x", ARRAY)
    again = after(
        world, *both, group, {"op": "move", "id": ARRAY, "path": "/g/b"}, {"op": "move", "id": OTHER, "path": "/h"}
    )
    assert again.nodes[HIDDEN].path == "/h/b/@x"
    assert list(after(world, *both, remove(ARRAY)).nodes) == [TOP]
    assert list(after(world, *both, remove(HIDDEN)).nodes) == [TOP, ARRAY]
    refused(world, *both, {"op": "move", "id": HIDDEN, "path": "/b"})
    at_top = after(world, remove(TOP), create(line(), path="/"), hide())
    assert at_top.nodes[HIDDEN].path == "/@x"


def test_hidden_arrays_have_a_name_in_an_array_of_paths(world):
    owner = create(line())
    long = "@" + "x" * 254
    for name in ("@", "@x y", "@\u00fc", long):
        assert after(world, owner, hide(name=name)).nodes[HIDDEN].path == f"/a/{name}"
    for name in ("", "x", "x@", "@a/b", "@\0", long + "x", "@" + "\u00fc" * 128):
        refused(world, owner, hide(name=name))
    refused(world, owner, hide(), hide(node=OTHER))
    refused(world, owner, hide(), hide(node=HIDDEN, name="@y"))
    refused(world, owner, hide(), hide(node=OTHER, owner=HIDDEN))
    refused(world, owner, hide(owner=TOP))
    refused(world, owner, hide(owner=OTHER))
    refused(world, hide(), owner)
    refused(world, owner, hide(), create(line(), node=OTHER, path="/a/@y"))
    refused(world, owner, {**hide(), "path": "/a/@x"}, error=Unsupported)
    refused(world, owner, {"op": "create_array", "id": HIDDEN, "owner": ARRAY, "schema": line()})
    refused(world, {**owner, "name": "@x"}, error=Unsupported)
    refused(world, owner, {**hide(), "ext": 1})
    assert HIDDEN in after(world, owner, {**hide(), "ext": {"a": 1}}).nodes


def test_hidden_arrays_are_used_as_any(world):
    both = (create(line()), hide())
    state = after(
        world,
        *both,
        {**grow(f"{SIGN:016x}", f"{SIGN + 50:016x}"), "array": HIDDEN},
        {**fragment(5, 7), "array": HIDDEN},
        alter(renamed(line(), "x"), node=HIDDEN),
        {**tell([["k", "1"]]), "node": HIDDEN},
    )
    held = state.nodes[HIDDEN]
    assert (held.domain, len(held.fragments), held.metadata) == ([(SIGN, SIGN + 50)], 1, {"k": "1"})
    assert state.nodes[ARRAY].fragments == []


def hidden_rows(schema: dict[str, Any] | None = None, **changed: Any) -> Rows:
    told = {**head("array", ARRAY, "@x", 1), "hidden": True, **changed}
    return {
        of_node(HIDDEN, 0): text_of({name: value for name, value in told.items() if value is not None}),
        of_node(HIDDEN, 2, number(0)): text_of(line() if schema is None else schema),
        child(ARRAY, "@x"): bytes.fromhex(HIDDEN) + b"\2",
    }


def test_rows_of_hidden_arrays(world):
    held = array_rows(line(labels=IN_ARRAY)) | hidden_rows()
    state = world.state_of(flat(held))
    assert [(n.path, n.kind, n.owner) for n in state.nodes.values()] == [
        ("/", "group", None),
        ("/a", "array", None),
        ("/a/@x", "array", ARRAY),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {of_node(HIDDEN, 0): None},
        {child(ARRAY, "@x"): None},
        {child(ARRAY, "@x"): bytes.fromhex(HIDDEN) + b"\1"},
        {child(ARRAY, "@x"): bytes.fromhex(HIDDEN) + b"\3"},
        {child(ARRAY, "@x"): bytes.fromhex(HIDDEN) + b"\2\0"},
        {child(TOP, "a"): bytes.fromhex(ARRAY) + b"\2"},
        {child(ARRAY, "@x"): None, child(ARRAY, "@y"): bytes.fromhex(HIDDEN) + b"\2"},
        {child(ARRAY, "@x"): None, child(TOP, "@x"): bytes.fromhex(HIDDEN) + b"\2"},
        hidden_rows(hidden=None),
        hidden_rows(hidden=False),
        hidden_rows(hidden=1),
        hidden_rows(parent=TOP),
        hidden_rows(name="@y"),
        hidden_rows(kind="group", schemas=None),
        hidden_rows({**line(), "sparse": True}),
        hidden_rows(dense(dim("int32", "0", "9"))),
        {of_node(ARRAY, 0): text_of({**head("array", TOP, "a", 1), "hidden": True})},
        {of_node(TOP, 0): text_of({**head("group", None, ""), "hidden": True})},
        {of_node(ARRAY, 2, number(0)): text_of(line(labels={"array": OTHER}))},
        {of_node(ARRAY, 2, number(0)): text_of(line(labels={"array": ARRAY}))},
    ],
)
def test_rows_of_hidden_arrays_that_do_not_fit_are_refused(world, wrong):
    held = array_rows(line(labels=IN_ARRAY)) | hidden_rows()
    assert len(world.state_of(flat(held)).nodes) == 3
    told = {key: value for key, value in (held | wrong).items() if value is not None}
    with pytest.raises(REFUSED):
        world.state_of(flat(told))


@pytest.mark.parametrize("name", ["x", "@a/b", "@\0", "@" + "x" * 255])
def test_rows_of_hidden_arrays_with_another_name_are_refused(world, name):
    held = array_rows(line()) | hidden_rows(name=name)
    held[child(ARRAY, name)] = held.pop(child(ARRAY, "@x"))
    with pytest.raises(Damaged):
        world.state_of(flat(held))


def test_a_hidden_array_in_a_hidden_one_is_refused(world):
    below = {
        of_node(OTHER, 0): text_of({**head("array", HIDDEN, "@y", 1), "hidden": True}),
        of_node(OTHER, 2, number(0)): text_of(line()),
        child(HIDDEN, "@y"): bytes.fromhex(OTHER) + b"\2",
    }
    with pytest.raises(Damaged, match="hidden in a hidden one"):
        world.state_of(flat(array_rows(line()) | hidden_rows() | below))


# Metadata of attributes and dimensions.

TWO = line() | {"attrs": [{"name": "v", "dtype": "int8"}, {"name": "w", "dtype": "int8"}]}
DROPPED = line() | {"attrs": [{"name": "v", "dtype": "int8", "id": 0}], "next_id": 2}
ADDED = DROPPED | {"attrs": [*DROPPED["attrs"], {"name": "w", "dtype": "int8", "id": 2}], "next_id": 3}
BACK = DROPPED | {"attrs": [*DROPPED["attrs"], {"name": "w", "dtype": "int8", "id": 1}], "next_id": 3}


def test_attributes_and_dimensions_have_metadata(world):
    base = create(TWO)
    state = after(
        world,
        base,
        tell([["k", "0"]]),
        tell([["k", "1"], ["unit", '"K"']], attr=1),
        tell([["k", "2"]], dim=0),
        tell([["k", None], ["more", "null"]], attr=1),
        tell([["k", "3"]], attr=0, dim=None),
        tell([["k", None]], attr=0),
    )
    node = state.nodes[ARRAY]
    assert node.metadata == {"k": "0"}
    assert node.fields == {("attr", 1): {"unit": '"K"', "more": "null"}, ("dim", 0): {"k": "2"}}
    assert node.fields_json() == [
        {"attr": 1, "metadata": {"unit": '"K"', "more": "null"}},
        {"dim": 0, "metadata": {"k": "2"}},
    ]


def test_metadata_of_what_is_not_there_is_refused(world):
    for which in ({"attr": 2}, {"dim": 1}, {"attr": -1}, {"dim": -1}, {"attr": 1 << 32}, {"attr": "x"}, {"attr": True}):
        refused(world, create(TWO), tell([["k", "1"]], **which))
    refused(world, create(TWO), tell([["k", "1"]], attr=0, dim=0))
    refused(world, create(TWO), {**tell([["k", "1"]], attr=0), "node": TOP})
    refused(world, create(TWO), tell([["k", "1"]], colour=0), error=Unsupported)
    for changes in ([["k"]], [["k", 1]], [[1, "1"]], ["k"], {"k": "1"}):
        refused(world, create(TWO), tell(changes, attr=0))


def test_metadata_of_a_dropped_attribute_is_gone(world):
    told = (create(TWO), tell([["k", "0"]], attr=0), tell([["k", "1"]], attr=1), tell([["k", "2"]], dim=0))
    kept = {("attr", 0): {"k": "0"}, ("dim", 0): {"k": "2"}}
    assert after(world, *told, alter(DROPPED)).nodes[ARRAY].fields == kept
    assert after(world, *told, alter(DROPPED), alter(ADDED, 2)).nodes[ARRAY].fields == kept
    refused(world, *told, alter(DROPPED), tell([["k", "3"]], attr=1))
    refused(world, *told, alter(DROPPED), alter(BACK, 2))
    named = TWO | {"dims": renamed(TWO, "other")["dims"], "attrs": [{"name": n, "dtype": "int8"} for n in ("w", "v")]}
    assert after(world, *told, alter(named)).nodes[ARRAY].fields == {**kept, ("attr", 1): {"k": "1"}}


def test_a_dimension_of_texts_is_one_place(world):
    texts = {"name": "t", "dtype": "string", "domain": None, "max_bytes": 20}
    both = create({"sparse": True, "attrs": TWO["attrs"], "dims": [texts, {**dim("int8", "0", "9"), "name": "x"}]})
    assert after(world, both, tell([["k", "1"]], dim=1)).nodes[ARRAY].fields == {("dim", 1): {"k": "1"}}
    refused(world, both, tell([["k", "1"]], dim=2))
    refused(world, both, {**grow("0" * 16, "f" * 16), "dimension": 1})
    assert after(world, both, {**grow(f"{SIGN:016x}", f"{SIGN + 99:016x}"), "dimension": 3}).nodes[ARRAY]


def field_row(letter: str, place: int, key: str, value: bytes = b"1", node: str = ARRAY) -> Rows:
    return {of_node(node, 5, letter.encode() + place.to_bytes(4, "big") + key.encode()): value}


def test_rows_of_metadata_of_attributes_and_dimensions(world):
    held = array_rows(TWO, DROPPED, ADDED)
    told = field_row("a", 0, "k") | field_row("a", 2, "\u00e4", b'"K"') | field_row("a", 2, "") | field_row("d", 0, "k")
    node = world.state_of(flat(held | told)).nodes[ARRAY]
    assert node.fields == {("attr", 0): {"k": "1"}, ("attr", 2): {"": "1", "\u00e4": '"K"'}, ("dim", 0): {"k": "1"}}
    assert node.metadata == {}
    for wrong in (
        field_row("a", 1, "k"),
        field_row("a", 3, "k"),
        field_row("d", 1, "k"),
        field_row("d", 0, "k", b"\xff"),
        field_row("b", 0, "k"),
        field_row("a", 0, "k", node=TOP),
        {of_node(ARRAY, 5, b"a\0\0\0"): b"1"},
        {of_node(ARRAY, 5): b"1"},
        {of_node(ARRAY, 5, b"a\0\0\0\0\xff"): b"1"},
    ):
        with pytest.raises(REFUSED):
            world.state_of(flat(held | told | wrong))


def test_records_follow_what_rows_say(world):
    held = array_rows(TWO) | hidden_rows() | field_row("a", 1, "k") | field_row("d", 0, "k")
    world.root(flat(held))
    second = Store(world.folder).record(2)
    world.first = second.xxh3
    root = {"id": second.root[1], "version": 1, "xxh3": f"{second.root[2]:016x}"}
    world.record(3, [alter(DROPPED), remove(HIDDEN), tell([["k", None]], dim=0)], root)
    after_it = Store(world.folder).at(3).nodes
    assert list(after_it) == [TOP, ARRAY] and after_it[ARRAY].fields == {}
