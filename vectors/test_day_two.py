"""Labels, hidden arrays, metadata of attributes and dimensions, names, steps of time, arrays of no dimension, and
ends of domains: what the reader accepts, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from gsreader import Damaged, Store, Unsupported
from gsreader.datatypes import Datatype
from gsreader.keys import KEY_MAX, SIGN
from gsreader.schema import EMPTY, Schema, Steps, history
from gsreader.state import Version
from test_growth import dim, grow, made, parsed
from test_rows import ARRAY, REFUSED, TOP, Rows, World, child, flat, head, number, of_node, small, text_of, world

__all__ = ["world"]

HIDDEN, OTHER, FILE = f"{0xB1:032x}", f"{0xB2:032x}", f"{0xFE:032x}"
IN_ARRAY = {"array": HIDDEN}
SCALAR = {"scalar": True, "dims": [{"name": "@", "dtype": "uint8", "domain": ["0", "0"], "tile": None}]}


def dense(*dims: dict[str, Any], **more: Any) -> dict[str, Any]:
    return made(*dims, sparse=False, **more)


def line(domain: list[str | None] | None = None, **more: Any) -> dict[str, Any]:
    """A dense array of one dimension in tiles, and one attribute."""
    ends = ["0", "9"] if domain is None else domain
    return dense({"dtype": "int16", "domain": ends, "tile": "5", **more})


def renamed(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same schema with other names of its dimensions."""
    dims = [{**d, "name": name} for d, name in zip(schema["dims"], names, strict=True)]
    return {**schema, "dims": dims}


def scalar(**more: Any) -> dict[str, Any]:
    return {"attrs": [{"name": "v", "dtype": "int8"}], **SCALAR, **more}


def create(schema: dict[str, Any], node: str = ARRAY, path: str = "/a") -> dict[str, Any]:
    return {"op": "create_array", "id": node, "path": path, "schema": schema}


def hide(
    schema: dict[str, Any] | None = None, node: str = HIDDEN, name: str = "@x", owner: str = ARRAY
) -> dict[str, Any]:
    held = line() if schema is None else schema
    return {"op": "create_array", "id": node, "owner": owner, "name": name, "schema": held}


def alter(schema: dict[str, Any], place: int = 1, node: str = ARRAY) -> dict[str, Any]:
    return {"op": "alter_array", "id": node, "number": place, "schema": schema}


def tell(changes: list[Any], **which: Any) -> dict[str, Any]:
    return {"op": "set_metadata", "node": ARRAY, **which, "changes": changes}


def remove(node: str) -> dict[str, Any]:
    return {"op": "remove", "id": node}


def after(world: World, *operations: dict[str, Any]) -> Version:
    """The state after a second record."""
    world.record(2, list(operations))
    return Store(world.folder).at(2)


def refused(world: World, *operations: dict[str, Any], error: Any = Damaged) -> None:
    with pytest.raises(error):
        after(world, *operations)


# Steps of time.


@pytest.mark.parametrize("name", ["datetime64[6h]", "timedelta64[2as]", "datetime64[2147483647Y]"])
def test_times_are_counted_in_steps(name):
    found = Datatype(name)
    assert (found.time, found.primitive, found.width, found.order) == (True, True, 8, "number")
    assert found.bytes_of_text("NaT") == (1 << 63).to_bytes(8, "little")
    [x] = parsed(dim(name, "-3", "4", "2")).dims
    assert (x.low, x.high, x.tile(x.high)) == (SIGN - 3, SIGN + 4, 3)
    vector, listed = Datatype(f"{name}[2,3]"), Datatype(f"list[{name}]")
    assert (vector.width, listed.width) == (48, 8)


@pytest.mark.parametrize("count", ["0", "1", "06", "-2", "+2", " 2", "2 ", "2147483648", "99999999999", "1.5"])
def test_other_steps_of_time_are_unknown(count):
    for kind in ("datetime64", "timedelta64"):
        with pytest.raises(Unsupported):
            Datatype(f"{kind}[{count}h]")


def test_a_step_of_time_does_not_change():
    old, new = (made(dim(f"datetime64[{step}h]", "0", "9")) for step in ("6", "3"))
    with pytest.raises(Damaged, match="dimension changed"):
        history([old, new])


# Ends of domains.


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        ("int8", SIGN - 128, SIGN + 127),
        ("uint16", 0, 65_535),
        ("uint64", 0, KEY_MAX),
        ("int64", 0, KEY_MAX),
        ("datetime64[s]", 1, KEY_MAX),
        ("timedelta64[6h]", 1, KEY_MAX),
        ("float64", KEY_MAX - 0xFFEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF),
        ("float32", KEY_MAX - 0xC7EFFFFFE0000000, 0xC7EFFFFFE0000000),
    ],
)
def test_an_open_end_is_that_of_the_type(dtype, least, greatest):
    zero = SIGN if dtype[0] != "u" else 0
    for domain, low, high, origin in (
        ([None, None], least, greatest, zero),
        (["0", None], zero, greatest, zero),
        ([None, "0"], least, zero, zero),
    ):
        [x] = parsed({"dtype": dtype, "domain": domain, "tile": None}).dims
        assert (x.low, x.high, x.origin) == (low, high, origin)
        assert x.open == (domain[0] is None, domain[1] is None)
    [x] = parsed({"dtype": dtype, "domain": ["1", None], "tile": "1", "origin": "0"}).dims
    assert x.origin == zero
    [x] = parsed({"dtype": dtype, "domain": [None, "1"], "tile": "1", "origin": "1"}).dims
    assert x.origin > zero
    [x] = parsed({"dtype": dtype, "domain": [], "tile": "1"}).dims
    assert ((x.low, x.high), x.origin, x.open) == (EMPTY, zero, (False, False))


@pytest.mark.parametrize(
    "domain",
    [["0"], [None], ["0", "1", "2"], [0, 9], ["9", "0"], None, {}, "", ["inf", None], [None, "x"], ["0", "NaN"]],
)
def test_domains_that_are_none_are_refused(domain):
    for dtype in ("float64", "int8"):
        with pytest.raises(Damaged):
            parsed({"dtype": dtype, "domain": domain, "tile": "1"})


def test_a_dense_array_with_an_open_end_has_tiles():
    assert Schema.of_json(line(["0", None])).dims[0].tile(SIGN + 32_767) == 6_553
    with pytest.raises(Damaged, match="without tiles"):
        Schema.of_json(line(["0", None], tile=None))
    assert Schema.of_json(line([], tile=None)).domain == [EMPTY]


def test_a_tile_is_not_longer_than_the_type():
    for domain in ([], [None, None], ["0", None]):
        assert parsed({"dtype": "uint8", "domain": domain, "tile": "256"}).dims[0].extent == 256
        with pytest.raises(Damaged, match="longer than the type"):
            parsed({"dtype": "uint8", "domain": domain, "tile": "257"})


def test_a_curve_over_an_endless_domain_needs_tiles_or_a_frame():
    frame = {"by": "key", "bits": 4, "sides": [["0", "15"]]}
    for domain in ([], [None, None], ["0", None]):
        x = {"dtype": "uint8", "domain": domain, "tile": None}
        with pytest.raises(Damaged, match="without a frame"):
            parsed(x, cell_order="hilbert")
        assert parsed({**x, "tile": "16"}, cell_order="hilbert").frame.bits == 4
        assert parsed(x, cell_order="hilbert", frame=frame).frame.bits == 4


def test_an_open_end_stays_open(world):
    def domain_of(*domains: list[Any]) -> list[tuple[int, int]]:
        first, *later = (line(domain, origin="0") for domain in domains)
        altered = [alter(schema, place) for place, schema in enumerate(later, 1)]
        node = after(world, create(first), *altered).nodes[ARRAY]
        assert all(schema.domain == node.domain for schema in node.schemas)
        return [(low - SIGN, high - SIGN) for low, high in node.domain]

    assert domain_of(["0", "9"], ["0", None]) == [(0, 32_767)]
    assert domain_of(["0", None], [None, None]) == [(-32_768, 32_767)]
    assert domain_of([], [], ["3", "4"]) == [(3, 4)]
    assert domain_of(["3", "4"], []) == [(3, 4)]
    assert domain_of([], [None, "4"]) == [(-32_768, 4)]
    for before, later in ((["0", None], ["0", "9"]), ([None, None], ["0", None]), ([None, "9"], [])):
        with pytest.raises(Damaged, match="was closed"):
            domain_of(before, later)


def test_an_empty_domain_grows(world):
    low, high = f"{SIGN + 2:016x}", f"{SIGN + 7:016x}"
    empty = create(line([]))
    assert after(world, empty).nodes[ARRAY].domain == [EMPTY]
    assert after(world, empty, grow(low, high)).nodes[ARRAY].domain == [(SIGN + 2, SIGN + 7)]
    assert after(world, empty, alter(line(["3", "4"], origin="0"))).nodes[ARRAY].domain == [(SIGN + 3, SIGN + 4)]
    refused(world, empty, grow("f" * 16, "0" * 16))
    refused(world, empty, grow(high, low))
    twice = create(made(dim("int16", "0", "9"), {"dtype": "int16", "domain": [], "tile": None}))
    assert after(world, twice, grow(low, high)).nodes[ARRAY].domain == [(SIGN, SIGN + 9), EMPTY]


def fragment(low: int, high: int, **more: Any) -> dict[str, Any]:
    place = {"id": FILE, "bounds": [[f"{SIGN + low:016x}", f"{SIGN + high:016x}"]], "schema": 0}
    held = {"kind": "deletion", "cells": 0, "attrs": [], "at": "nowhere"}
    return {"op": "add_fragments", "array": ARRAY, "fragments": [{**place, **held, **more}]}


def test_only_deletions_reach_beyond_the_domain(world):
    at = {"data": {"id": FILE, "offset": 0, "len": 9}}
    cells = {"kind": "dense", "cells": 3, "attrs": [0], "at": at}
    for domain in (["0", "9"], []):
        base = create(line(domain))
        assert len(after(world, base, fragment(5, 900)).nodes[ARRAY].fragments) == 1
        grown = grow(f"{SIGN:016x}", f"{SIGN + 99:016x}")
        assert len(after(world, base, grown, fragment(10, 12, **cells)).nodes[ARRAY].fragments) == 1
        refused(world, base, fragment(10, 12, **cells))
        refused(world, base, fragment(10, 12, **cells), grown)
    other = {"bounds": [[f"{SIGN:016x}"] * 2] * 2}
    refused(world, create(line()), fragment(0, 0, **other))


def test_a_deletion_beyond_the_domain_deletes_what_is_older(world):
    state = after(world, create(line()), fragment(5, 900))
    rows = Store(world.folder).cells(state.nodes[ARRAY], [(SIGN, SIGN + 9)])
    assert [row for _, row in rows] == [[False]] * 10


def test_heads_have_null_for_an_empty_domain(world):
    held = array_rows(made(dim("int16", "0", "9"), {"dtype": "int16", "domain": [], "tile": None}))
    told = {**head("array", TOP, "a", 1), "domain": [[f"{SIGN:016x}", f"{SIGN + 9:016x}"], None]}
    state = world.state_of(flat(held | {of_node(ARRAY, 0): text_of(told)}))
    assert state.nodes[ARRAY].domain == [(SIGN, SIGN + 9), EMPTY]
    assert world.state_of(flat(held)).nodes[ARRAY].domain == [(SIGN, SIGN + 9), EMPTY]
    span = [f"{SIGN - 1:016x}", f"{SIGN + 99:016x}"]
    grown = world.state_of(flat(held | {of_node(ARRAY, 0): text_of({**told, "domain": [span, span]})}))
    assert grown.nodes[ARRAY].domain == [(SIGN - 1, SIGN + 99)] * 2
    for wrong in ([None, None], [None], [], {}, [span, "empty"], [span, []], [["f" * 16, "0" * 16]] * 2):
        with pytest.raises(Damaged):
            world.state_of(flat(held | {of_node(ARRAY, 0): text_of({**told, "domain": wrong})}))


# Arrays of no dimension.


def test_an_array_of_no_dimension_has_one_axis(world):
    found = Schema.of_json(scalar())
    assert (found.scalar, found.domain, found.dims[0].name) == (True, [(0, 0)], "@")
    assert not Schema.of_json({**scalar(), "scalar": False}).scalar
    state = after(world, create(scalar()))
    assert Store(world.folder).columns(state.nodes[ARRAY], [(0, 0)]) == (1, {"v": [0]})


@pytest.mark.parametrize(
    "wrong",
    [
        {"sparse": True},
        {"scalar": 1},
        {"scalar": "true"},
        {"dims": SCALAR["dims"] * 2},
        *(
            {"dims": [{**SCALAR["dims"][0], **more}]}
            for more in (
                {"name": "x"},
                {"dtype": "int8"},
                {"domain": ["0", "1"]},
                {"domain": []},
                {"domain": ["0", None]},
                {"tile": "1"},
                {"labels": IN_ARRAY},
            )
        ),
    ],
)
def test_arrays_of_no_dimension_with_something_else_are_refused(wrong):
    with pytest.raises(Damaged):
        Schema.of_json(scalar(**wrong))


def test_an_array_of_no_dimension_stays_one(world):
    plain = scalar(scalar=False)
    assert len(history([scalar(), scalar()])) == 2
    for pair in ((scalar(), plain), (plain, scalar())):
        with pytest.raises(Damaged, match="an option"):
            history(list(pair))
    refused(world, create(scalar()), grow(f"{0:016x}", f"{1:016x}"))
    assert after(world, create(plain), grow(f"{0:016x}", f"{1:016x}")).nodes[ARRAY].domain == [(0, 1)]


# Names of dimensions.


def test_dimensions_get_other_names(world):
    old = dense(dim("int16", "0", "9"), dim("int16", "0", "9"))
    for names in (("lat", "lon"), ("d1", "d0")):
        used = history([old, renamed(old, *names)])
        assert [x.name for x in used[-1].dims] == list(names)
        state = after(world, create(old), alter(renamed(old, *names)))
        assert [x.name for x in state.nodes[ARRAY].schemas[0].dims] == ["d0", "d1"]
    with pytest.raises(Damaged, match="used twice"):
        history([old, renamed(old, "v", "d1")])
    with pytest.raises(Damaged, match="number of dimensions"):
        history([old, dense(dim("int16", "0", "9"))])
    with pytest.raises(Damaged, match="dimension changed"):
        history([old, dense(dim("int16", "0", "9"), dim("int32", "0", "9"))])


# Labels.


@pytest.mark.parametrize(
    ("dtype", "start", "step"),
    [
        ("float64", "0.5", "-0.25"),
        ("float32", "-1e30", "1e-30"),
        ("int8", "100", "-3"),
        ("uint64", "0", "1"),
        ("datetime64[Y]", "1850", "10"),
        ("timedelta64[6h]", "0", "-1"),
    ],
)
def test_labels_in_steps(dtype, start, step):
    [x] = Schema.of_json(line(labels={"start": start, "step": step, "dtype": dtype})).dims
    kind = Datatype(dtype)
    assert x.labels == Steps(kind, kind.bytes_of_text(start), kind.bytes_of_text(step))
    later = history([line(labels={"start": start, "step": step, "dtype": dtype}), line(labels=None)])
    assert later[-1].dims[0].labels is None


STEPS = {"start": "0", "step": "1", "dtype": "int8"}


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({}, Damaged),
        ([], Damaged),
        ("0", Damaged),
        ({**STEPS, "start": None}, Damaged),
        ({"start": "0", "step": "1"}, Damaged),
        ({**STEPS, "start": 0}, Damaged),
        ({**STEPS, "step": "0"}, Damaged),
        ({**STEPS, "step": "128"}, Damaged),
        ({**STEPS, "step": "1.5"}, Damaged),
        ({**STEPS, "dtype": "float64", "step": "-0.0"}, Damaged),
        ({**STEPS, "dtype": "float64", "step": "inf"}, Damaged),
        ({**STEPS, "dtype": "float64", "start": "NaN"}, Damaged),
        ({**STEPS, "dtype": "uint8", "step": "-1"}, Damaged),
        ({**STEPS, "dtype": "datetime64[s]", "start": "NaT"}, Damaged),
        ({**STEPS, **IN_ARRAY}, Damaged),
        ({"array": HIDDEN[:-1]}, Damaged),
        ({"array": HIDDEN.upper()}, Damaged),
        ({"array": 7}, Damaged),
        ({**STEPS, "dtype": "string"}, Unsupported),
        ({**STEPS, "dtype": "bool"}, Unsupported),
        ({**STEPS, "dtype": "float16"}, Unsupported),
        ({**STEPS, "dtype": "complex64"}, Unsupported),
        ({**STEPS, "dtype": "datetime64[1h]"}, Unsupported),
        ({**STEPS, "unit": "m"}, Unsupported),
    ],
)
def test_labels_that_are_none_are_refused(labels, error):
    with pytest.raises(error):
        Schema.of_json(line(labels=labels))


def test_only_dense_arrays_have_labels():
    assert Schema.of_json(line(labels=IN_ARRAY)).dims[0].labels == HIDDEN
    with pytest.raises(Damaged, match="labels in a sparse array"):
        Schema.of_json({**line(labels=IN_ARRAY), "sparse": True})
    with pytest.raises(Damaged):
        Schema.of_json(
            {"sparse": True, "attrs": line()["attrs"], "dims": [{"name": "t", "dtype": "string", "labels": STEPS}]}
        )


def test_labels_lie_in_a_hidden_array(world):
    owner = create(line(labels=IN_ARRAY))
    two = renamed(line(), "at") | {"attrs": [{"name": "v", "dtype": "int8"}, {"name": "d0", "dtype": "string"}]}
    for held in (line(), two, line(["3", "900"])):
        state = after(world, owner, hide(held))
        assert state.nodes[HIDDEN].path == "/a/@x"
    assert (
        after(world, create(line()), hide(), alter(line(labels=IN_ARRAY))).nodes[ARRAY].schemas[1].dims[0].labels
        == HIDDEN
    )
    refused(world, owner)
    refused(world, create(line()), alter(line(labels=IN_ARRAY)))
    refused(world, owner, create(line(), node=HIDDEN, path="/b"))
    refused(world, owner, create(line(), node=OTHER, path="/b"), hide(owner=OTHER))
    named = [{"name": "v", "dtype": "int8"}, {"name": "d1", "dtype": "string"}]
    for held in (
        dense(dim("int16", "0", "9"), dim("int16", "0", "9")),
        dense(dim("int32", "0", "9")),
        {**line(), "sparse": True},
        line() | {"attrs": named},
        scalar(),
    ):
        refused(world, owner, hide(held))
    byte = create(dense(dim("uint8", "0", "0") | {"labels": IN_ARRAY}))
    refused(world, byte, hide(scalar()))


def test_an_array_with_labels_of_the_last_schema_stays(world):
    owner, hidden = create(line(labels=IN_ARRAY)), hide()
    refused(world, owner, hidden, remove(HIDDEN))
    assert HIDDEN not in after(world, owner, hidden, alter(line()), remove(HIDDEN)).nodes
    assert HIDDEN not in after(world, owner, hidden, remove(HIDDEN), alter(line())).nodes
    assert list(after(world, owner, hidden, remove(ARRAY)).nodes) == [TOP]
    more = [{"name": "v", "dtype": "int8"}, {"name": "w", "dtype": "int8"}]
    refused(world, owner, hidden, alter(line() | {"attrs": more}, node=HIDDEN))


# Hidden arrays.


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


def array_rows(schema: dict[str, Any], *later: dict[str, Any]) -> Rows:
    held = {
        of_node(ARRAY, 0): text_of(head("array", TOP, "a", 1 + len(later))),
        child(TOP, "a"): bytes.fromhex(ARRAY) + b"\1",
    }
    return small() | held | {of_node(ARRAY, 2, number(n)): text_of(s) for n, s in enumerate((schema, *later))}


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


# What a schema with unknown features, and GS0, have of it.


def test_a_schema_with_unknown_features_is_kept(world):
    unknown = {**line(labels={"in": "a way of its own"}), "read": ["wavelets"]}
    told = tell([["k", "1"]], attr=9)
    assert after(world, create(unknown), hide(), told).nodes[ARRAY].fields == {("attr", 9): {"k": "1"}}
    refused(world, create(unknown), tell([["k", "1"]], dim=1))
    for domain in ([], [None, "9"]):
        assert after(world, create({**line(domain), "read": ["wavelets"]})).nodes[ARRAY].domain
    refused(world, create({**line(["x", "9"]), "read": ["wavelets"]}))
    held = {**line(), "read": ["wavelets"]}
    assert after(world, create(line(labels=IN_ARRAY)), hide(held)).nodes[HIDDEN].schemas[-1].unknown


@pytest.mark.parametrize(
    "operations",
    [
        [create(line()), hide()],
        [create(line()), tell([["k", "1"]], attr=0)],
        [create(line()), tell([["k", "1"]], dim=0)],
        [create(line(labels=STEPS))],
        [create(line([]))],
        [create(line(["0", None]))],
        [create(scalar())],
        [create(line()), alter(line(labels=STEPS))],
    ],
)
def test_records_of_gs0_have_none_of_it(tmp_path, operations):
    world = World(tmp_path, gs=0)
    assert ARRAY in after(world, create(line()), tell([["k", "1"]])).nodes
    refused(world, *operations, error=Unsupported)
