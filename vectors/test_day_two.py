"""Steps of time, ends of domains, arrays of no dimension, names and labels: what the reader accepts, and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from gsreader import Damaged, Store, Unsupported
from gsreader.datatypes import Datatype
from gsreader.keys import SIGN
from gsreader.schema import EMPTY, Schema, Shared, Steps, history
from gsreader.state import Version
from test_growth import dim, grow, made, parsed
from test_rows import ARRAY, TOP, Rows, World, child, flat, head, number, of_node, small, text_of, world

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


def array_rows(schema: dict[str, Any], *later: dict[str, Any]) -> Rows:
    held = {
        of_node(ARRAY, 0): text_of(head("array", TOP, "a", 1 + len(later))),
        child(TOP, "a"): bytes.fromhex(ARRAY) + b"\1",
    }
    return small() | held | {of_node(ARRAY, 2, number(n)): text_of(s) for n, s in enumerate((schema, *later))}


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
    "dtype", ["int8", "uint16", "uint64", "int64", "datetime64[s]", "timedelta64[6h]", "float64", "float32"]
)
def test_a_domain_with_an_open_end_begins_empty(dtype):
    zero = SIGN if dtype[0] != "u" else 0
    kind = Datatype(dtype)
    two = kind.key(kind.bytes_of_text("2"))
    for domain, fixed, origin in (([None, None], None, zero), (["2", None], two, two), ([None, "2"], two, zero)):
        [x] = parsed({"dtype": dtype, "domain": domain, "tile": None}).dims
        assert ((x.low, x.high), x.fixed, x.origin) == (EMPTY, fixed, origin)
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


def test_a_tile_may_be_longer_than_the_domain_and_not_than_the_type():
    for domain in ([], [None, None], ["0", None], ["3", "9"], ["7", "7"]):
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

    nothing = [(EMPTY[0] - SIGN, EMPTY[1] - SIGN)]
    assert domain_of(["0", "9"], ["0", None]) == [(0, 9)]
    assert domain_of(["3", "9"], [None, "4"]) == [(3, 9)]
    assert domain_of(["5", "9"], ["2", None]) == [(2, 9)]
    assert domain_of(["0", None], [None, None]) == nothing
    assert domain_of([], [], ["3", "4"]) == [(3, 4)]
    assert domain_of(["3", "4"], []) == [(3, 4)]
    assert domain_of([], [None, "4"]) == nothing
    for before, later in ((["0", None], ["0", "9"]), ([None, None], ["0", None]), ([None, "9"], [])):
        with pytest.raises(Damaged, match="was closed"):
            domain_of(before, later)
    for before, later in ((["0", None], ["5", None]), ([None, "9"], [None, "8"])):
        with pytest.raises(Damaged, match="closed end of a domain moved"):
            domain_of(before, later)


@pytest.mark.parametrize(
    ("ends", "reached"),
    [
        (["3", None], (3, 7)),
        ([None, "9"], (5, 9)),
        ([None, None], (5, 7)),
        ([None, "6"], (5, 7)),
        (["6", None], (5, 7)),
    ],
)
def test_what_is_written_makes_a_domain_reach_to_its_closed_end(world, ends, reached):
    written = grow(f"{SIGN + 5:016x}", f"{SIGN + 7:016x}")
    node = after(world, create(line(ends)), written).nodes[ARRAY]
    assert node.domain == node.schemas[0].domain == [(SIGN + reached[0], SIGN + reached[1])]
    node = after(world, create(line(ends)), written, alter(line(ends))).nodes[ARRAY]
    assert node.domain == [(SIGN + reached[0], SIGN + reached[1])]
    # A closed end of an earlier schema counts no more where both ends are open.
    opened = alter(line([None, None], origin=ends[0] or "0"))
    assert after(world, create(line(ends)), opened, written).nodes[ARRAY].domain == [(SIGN + 5, SIGN + 7)]
    for told, domain in (
        (None, EMPTY),
        ([5, 7], (SIGN + reached[0], SIGN + reached[1])),
        ([2, 12], (SIGN + 2, SIGN + 12)),
    ):
        span = None if told is None else [f"{SIGN + end:016x}" for end in told]
        held = {of_node(ARRAY, 0): text_of({**head("array", TOP, "a", 1), "domain": [span]})}
        assert world.state_of(flat(array_rows(line(ends)) | held)).nodes[ARRAY].domain == [domain]


def test_nothing_can_be_read_of_an_empty_domain(world):
    for ends in ([], ["3", None], [None, None]):
        node = after(world, create(line(ends)), fragment(5, 900)).nodes[ARRAY]
        assert Store(world.folder).columns(node, node.domain) == (0, {"v": []})


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
    for domain in (["0", "9"], [], ["0", None], [None, None]):
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
        ({"shared": HIDDEN[:-1]}, Damaged),
        ({"shared": 7}, Damaged),
        ({"shared": HIDDEN, **IN_ARRAY}, Damaged),
        ({"shared": HIDDEN, **STEPS}, Damaged),
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
    assert Schema.of_json(line(labels={"shared": HIDDEN})).dims[0].labels == Shared(HIDDEN)
    with pytest.raises(Damaged, match="labels in a sparse array"):
        Schema.of_json({**line(labels=IN_ARRAY), "sparse": True})
    with pytest.raises(Damaged):
        Schema.of_json(
            {"sparse": True, "attrs": line()["attrs"], "dims": [{"name": "t", "dtype": "string", "labels": STEPS}]}
        )


def test_labels_lie_in_a_hidden_array(world):
    owner = create(line(labels=IN_ARRAY))
    for held in (line(), renamed(line(), "at"), line(["3", "900"])):
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
    two = [[{"name": "v", "dtype": "int8"}, {"name": name, "dtype": "string"}] for name in ("d0", "d1")]
    for held in (
        dense(dim("int16", "0", "9"), dim("int16", "0", "9")),
        dense(dim("int32", "0", "9")),
        {**line(), "sparse": True},
        renamed(line(), "at") | {"attrs": two[0]},
        line() | {"attrs": two[1]},
        scalar(),
    ):
        refused(world, owner, hide(held))
    byte = create(dense(dim("uint8", "0", "0") | {"labels": IN_ARRAY}))
    refused(world, byte, hide(scalar()))


def test_labels_that_arrays_share_depend_on_nothing(world):
    """The array that has them may be of any form, move, be removed, or never have been there."""
    shares = {"labels": {"shared": OTHER}}
    owners = [create(line(**shares)), create(line(**shares), node=FILE, path="/c")]
    there = create(line(), node=OTHER, path="/b")
    sparse = {**line(), "sparse": True}
    for operations in (
        [there, *owners],
        [*owners, there],
        owners,
        [there, *owners, remove(OTHER)],
        [there, *owners, {"op": "move", "id": OTHER, "path": "/d"}],
        [there, *owners, alter(line() | {"attrs": [{"name": n, "dtype": "int8"} for n in "vw"]}, node=OTHER)],
        *([create(held, node=OTHER, path="/b"), *owners] for held in (sparse, scalar(), dense(dim("int32", "0", "9")))),
        [create(line()), create(line(**shares), node=FILE, path="/c"), there, alter(line(**shares))],
    ):
        nodes = after(world, *operations).nodes
        assert [nodes[node].schemas[-1].dims[0].labels for node in (ARRAY, FILE)] == [Shared(OTHER)] * 2
    assert FILE not in after(world, there, *owners, remove(FILE)).nodes
    for wrong in (OTHER[1:], OTHER.upper(), 5, [OTHER]):
        refused(world, create(line(labels={"shared": wrong})))
    refused(world, create(line(labels={"shared": OTHER, "array": HIDDEN})), hide())


def test_an_array_with_labels_of_the_last_schema_stays(world):
    owner, hidden = create(line(labels=IN_ARRAY)), hide()
    refused(world, owner, hidden, remove(HIDDEN))
    assert HIDDEN not in after(world, owner, hidden, alter(line()), remove(HIDDEN)).nodes
    refused(world, owner, hidden, remove(HIDDEN), alter(line()))
    assert list(after(world, owner, hidden, remove(ARRAY)).nodes) == [TOP]
    more = [{"name": "v", "dtype": "int8"}, {"name": "w", "dtype": "int8"}]
    refused(world, owner, hidden, alter(line() | {"attrs": more}, node=HIDDEN))


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
