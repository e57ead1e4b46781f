"""Domains that grow: tiles counted from an origin, the frame of the curve, ``grow`` in records, ``domain`` in heads."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest

from gsreader import Damaged, Store, Unsupported
from gsreader.keys import KEY_MAX, SIGN, Frame, along_curve, key_to_float
from gsreader.schema import Schema, grown, history
from test_rows import ARRAY, GROUP, TOP, World, flat, head, large, number, of_node, schema, text_of, world

__all__ = ["world"]


def dim(dtype: str, low: str, high: str, tile: str | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "x", "dtype": dtype, "domain": [low, high], "tile": tile, **more}


def made(*dims: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A schema of these dimensions."""
    named = [{**d, "name": f"d{place}"} for place, d in enumerate(dims)]
    return {"sparse": True, "dims": named, "attrs": [{"name": "v", "dtype": "int8"}], **more}


def parsed(*dims: dict[str, Any], **more: Any) -> Schema:
    return Schema.of_json(made(*dims, **more))


def curve(*dims: dict[str, Any], **more: Any) -> Schema:
    return parsed(*dims, cell_order="hilbert", **more)


def sides(*ends: tuple[int, int], bits: int, by: str = "key") -> dict[str, Any]:
    return {"by": by, "bits": bits, "sides": [[str(low), str(high)] for low, high in ends]}


def key_of(value: float) -> int:
    return parsed(dim("float64", "0", "1")).dims[0].datatype.key(struct.pack("<d", value))


def refused(message: str | None, *dims: dict[str, Any], **more: Any) -> None:
    with pytest.raises(Damaged, match=message):
        parsed(*dims, **more)


def test_tiles_are_counted_from_the_origin():
    [x] = parsed(dim("uint8", "0", "255", "7", origin="5")).dims
    assert [x.tile(key) for key in (0, 4, 5, 11, 12, 255)] == [-1, -1, 0, 0, 1, 35]
    assert [x.tile_range(tile) for tile in (-1, 0, 35)] == [(0, 4), (5, 11), (250, 255)]
    assert [x.offset(key) for key in (0, 4, 5, 11)] == [2, 6, 0, 6]
    [y] = parsed(dim("int8", "-9", "9", "5")).dims
    assert (y.origin, y.tile(y.low), y.tile_range(0)) == (y.low, 0, (y.low, y.low + 4))
    [z] = parsed(dim("int8", "-9", "9", "5", origin="100")).dims
    assert (z.tile(z.low), z.tile(z.high)) == (-22, -19), "an origin may lie outside of the domain"


def test_tiles_of_floats_are_counted_from_the_origin():
    [x] = parsed(dim("float64", "-1e308", "1e308", "1.5", origin="0.5")).dims
    assert [x.tile(key_of(v)) for v in (0.4, 0.5, 1.9, 2.0, -1.0, -1.1)] == [-1, 0, 0, 1, -1, -2]
    assert [x.tile(key_of(v)) for v in (-1e308, 1e308)] == [-(2**53), 2**53]
    [y] = parsed(dim("float64", "-1e308", "1e308", "1e-300", origin="1e308")).dims
    assert y.tile(y.low) == -(2**53), "a quotient that is infinite"
    [z] = parsed(dim("float64", "0", "1")).dims
    assert z.tile(z.high) == 0


def test_an_origin_is_a_coordinate_of_the_type():
    for dtype, origin in (("uint8", "256"), ("uint8", "-1"), ("float64", "inf"), ("float64", "NaN"), ("int8", "x")):
        refused(None, dim(dtype, "0", "9", "2", origin=origin))
    refused(None, dim("datetime64[s]", "0", "9", "2", origin="NaT"))
    refused("no text", dim("int8", "0", "9", "2", origin=5))
    text = {"name": "x", "dtype": "string"}
    assert parsed({**text, "origin": None}).dims[0].origin == 0
    refused("texts with an origin", {**text, "origin": ""})


def test_the_default_frame_follows_from_the_domain():
    tiled, plain = dim("int16", "-50", "149", "50"), dim("uint8", "3", "99")
    assert curve(tiled, plain).frame == Frame(False, 7, ((0, 127), (3, 130)))
    assert curve(dim("uint64", "9", str(KEY_MAX))).frame == Frame(False, 64, ((9, 9 + KEY_MAX),))
    assert curve(dim("uint8", "3", "3")).frame == Frame(False, 0, ((3, 3),))
    assert parsed(tiled).frame is None
    refused("without a curve", plain, frame=sides((0, 255), bits=8))


def test_places_are_clamped_to_the_frame_and_scaled_to_its_bits():
    frame = Frame(False, 2, ((10, 17),))
    assert [frame.place(0, u) for u in (0, 9, 10, 11, 12, 16, 17, 18, KEY_MAX)] == [0, 0, 0, 0, 1, 3, 3, 3, 3]
    assert [Frame(False, 3, ((0, 4),)).place(0, u) for u in range(6)] == [0, 1, 3, 4, 6, 6]
    assert Frame(False, 0, ((0, 9),)).place(0, 7) == 0
    whole = Frame(False, 64, ((0, KEY_MAX), (9, 9 + KEY_MAX)))
    assert whole.place(0, KEY_MAX) == KEY_MAX
    assert [whole.place(1, u) for u in (0, 10, SIGN)] == [0, 1, SIGN - 9], "places of GS0 were not stretched"


def test_cells_of_one_place_come_in_row_order():
    grid = curve(dim("uint8", "0", "255"), dim("uint8", "0", "255"), frame=sides((0, 3), (0, 3), bits=2))
    cells = [(200, 0), (3, 0), (3, 1), (9, 0), (3, 200), (9, 9), (3, 9), (200, 200)]
    ordered = sorted(cells, key=grid.global_key)
    assert ordered == [(3, 9), (3, 200), (9, 9), (200, 200), (3, 1), (3, 0), (9, 0), (200, 0)]
    assert grid.global_key((200, 9))[3:] == [200, 9]
    backwards = curve(dim("uint8", "0", "255"), dim("uint8", "0", "255"), tile_order="col")
    assert backwards.global_key((3, 9))[3:] == [3, 9], "row order whatever the order of tiles"


def test_the_curve_of_the_page():
    page = ["00", "10", "11", "01", "02", "03", "13", "12", "22", "23", "33", "32", "31", "21", "20", "30"]
    assert sorted(page, key=lambda at: along_curve([int(c) for c in at], 2)) == page


def test_places_by_value_follow_the_page_step_by_step():
    low, high, bits = -180.0, 180.0, 20
    geo = curve(dim("float64", "-180", "180"), frame=sides((key_of(low), key_of(high)), bits=bits, by="value"))
    frame = geo.frame
    assert frame is not None and frame.by_value
    for value in (-180.0, -1e-300, 0.0, 0.1, 33.3, 179.9999, 180.0, -1e300, 1e300):
        half, half_low, half_high = value / 2, low / 2, high / 2
        part = half - half_low
        whole = half_high - half_low
        place = math.floor(part / whole * 2.0**bits)
        assert geo.along_curve(frame, (key_of(value),)) == min(max(place, 0), 2**bits - 1), value
    assert frame.place_of_value(0, key_of(0.0)) == 2 ** (bits - 1)
    largest = 1.7976931348623157e308
    wide = Frame(True, 64, ((key_of(-largest), key_of(largest)),))
    assert [wide.place_of_value(0, key_of(v)) for v in (-largest, 0.0, largest)] == [0, SIGN, KEY_MAX]


def test_places_by_value_that_are_no_numbers():
    one = Frame(True, 4, ((key_of(1.0), key_of(1.0)),))
    assert [one.place_of_value(0, key_of(v)) for v in (0.0, 1.0, 2.0)] == [0, 0, 15]
    assert math.isnan(key_to_float(KEY_MAX)) and math.isnan(key_to_float(0))
    assert Frame(True, 4, ((0, KEY_MAX),)).place_of_value(0, key_of(1.0)) == 0
    tiny = Frame(True, 4, ((key_of(0.0), key_of(1e-308)),))
    assert tiny.place_of_value(0, key_of(1e308)) == 15, "a quotient that is infinite"


def test_a_frame_by_value_concerns_floats_alone():
    ends = ((0, 9), (key_of(0.0), key_of(1.0)))
    mixed = curve(dim("uint8", "0", "9", "10"), dim("float64", "0", "1", "0.5"), frame=sides(*ends, bits=3, by="value"))
    assert mixed.frame is not None
    expected = along_curve([5 * 8 // 10, 2], 3)
    assert mixed.along_curve(mixed.frame, (5, key_of(0.25))) == expected


def test_frames_that_do_not_fit_are_refused():
    tiled, plain = dim("uint8", "0", "99", "10"), dim("uint8", "0", "99")
    good = sides((0, 9), (0, 99), bits=4)
    assert curve(tiled, plain, frame=good).frame == Frame(False, 4, ((0, 9), (0, 99)))
    wrong = [
        sides((0, 9), bits=4),
        sides((0, 8), (0, 99), bits=4),
        sides((1, 9), (0, 99), bits=4),
        sides((0, 9), (9, 0), bits=4),
        sides((0, 9), (1, KEY_MAX + 2), bits=4),
        sides((0, 9), (0, 99), bits=65),
        sides((0, 9), (0, 99), bits=-1),
        {**good, "bits": True},
        {**good, "sides": [[0, 9], [0, 99]]},
        {**good, "sides": [["0", "9"], ["-1", "99"]]},
        {**good, "sides": [["0", "9"], ["0"]]},
        {"by": "key", "bits": 4},
    ]
    for frame in wrong:
        refused(None, tiled, plain, cell_order="hilbert", frame=frame)
    for frame in ({**good, "by": "rank"}, {**good, "colour": 1}):
        with pytest.raises(Unsupported):
            curve(tiled, plain, frame=frame)


def test_a_schema_may_reach_further_and_moves_no_tile():
    old, lower = made(dim("int8", "0", "9", "5")), made(dim("int8", "-10", "9", "5"))
    low, high = history([old, lower])[0].domain[0]
    assert (low - SIGN, high - SIGN) == (-10, 9), "every schema is used with the domain of the version"
    history([old, made(dim("int8", "-3", "9", "5", origin="0"))])
    history([made(dim("int8", "0", "9")), made(dim("int8", "-3", "9"))])
    narrow = [Schema.of_json(old), Schema.of_json(made(dim("int8", "-5", "4", "5")))]
    narrow[1].check_follows(narrow[0])
    assert grown(narrow, narrow[1].domain)[0].domain == [(SIGN - 5, SIGN + 9)]
    for value in (dim("int8", "-3", "9", "5"), dim("int8", "0", "9", "5", origin="1")):
        with pytest.raises(Damaged, match="tiles moved"):
            history([old, made(value)])
    with pytest.raises(Damaged, match="tiles moved"):
        history([made(dim("float64", "0", "9", "0.5")), made(dim("float64", "-1", "9", "0.5"))])


def test_the_frame_of_a_curve_stays():
    def on_curve(*dims: dict[str, Any], **more: Any) -> dict[str, Any]:
        return made(*dims, cell_order="hilbert", **more)

    old = on_curve(dim("uint8", "3", "99"))
    history([old, on_curve(dim("uint8", "3", "130"))])
    history([old, on_curve(dim("uint8", "0", "200"), frame=sides((3, 130), bits=7))])
    for new in (
        on_curve(dim("uint8", "2", "99")),
        on_curve(dim("uint8", "3", "131")),
        on_curve(dim("uint8", "3", "99"), frame=sides((3, 131), bits=7)),
        on_curve(dim("uint8", "3", "99"), frame=sides((3, 130), bits=7, by="value")),
    ):
        with pytest.raises(Damaged, match="frame"):
            history([old, new])


def keys(*values: int) -> list[str]:
    """The keys of signed integers."""
    return [f"{SIGN + value:016x}" for value in values]


def grow(low: str, high: str, **more: Any) -> dict[str, Any]:
    return {"op": "grow", "array": ARRAY, "dimension": 0, "low": low, "high": high, **more}


def created(value: dict[str, Any]) -> list[dict[str, Any]]:
    group = {"op": "create_group", "id": TOP, "path": "/"}
    return [group, {"op": "create_array", "id": ARRAY, "path": "/a", "schema": value}]


def after(world: World, value: dict[str, Any], *ops: dict[str, Any]) -> list[tuple[int, int]]:
    """The domain of an array after operations, as signed integers."""
    world.first = world.record(1, created(value))
    world.record(2, list(ops))
    assert Store(world.folder).at(1).nodes[ARRAY].domain == Schema.of_json(value).domain
    node = Store(world.folder).at(2).nodes[ARRAY]
    assert all(used.domain == node.domain for used in node.schemas)
    return [(low - SIGN, high - SIGN) for low, high in node.domain]


def test_records_grow_domains(world):
    x = made(dim("int8", "0", "9", "4"), dim("int8", "0", "0"))
    assert after(world, x, grow(*keys(-3, 4))) == [(-3, 9), (0, 0)]
    assert after(world, x, grow(*keys(2, 4))) == [(0, 9), (0, 0)]
    assert after(world, x, grow(*keys(20, 20)), grow(*keys(-1, 7), dimension=1)) == [(0, 20), (-1, 7)]
    assert after(world, x, grow(*keys(-128, 127))) == [(-128, 127), (0, 0)]
    [first, _] = Store(world.folder).at(2).nodes[ARRAY].schemas[0].dims
    assert (first.tile(first.low), first.tile_range(-32)) == (-32, (SIGN - 128, SIGN - 125))
    alter = {"op": "alter_array", "id": ARRAY, "number": 1, "schema": x}
    assert after(world, x, grow(*keys(0, 99)), alter) == [(0, 99), (0, 0)], "others' schemas keep what has grown"


def test_what_cannot_grow_is_refused(world):
    x, real = made(dim("int8", "0", "9")), made(dim("float32", "0", "9"))
    for wrong in (
        grow(*keys(0, 128)),
        grow(*keys(-129, 0)),
        grow(*keys(9, 0)),
        grow(*keys(0, 9), dimension=1),
        grow(*keys(0, 9), dimension=-1),
        grow(*keys(0, 9), array=TOP),
        grow(*keys(0, 9), array=GROUP),
        grow("0", "9"),
    ):
        with pytest.raises(Damaged):
            after(world, x, wrong)
    for key in (key_of(0.1), key_of(math.inf), KEY_MAX, SIGN - 1):
        with pytest.raises(Damaged, match="outside of the type"):
            after(world, real, grow(*sorted([f"{key:016x}", f"{key_of(1.0):016x}"])))
    with pytest.raises(Damaged, match="outside of the type"):
        after(world, made(dim("datetime64[s]", "0", "9")), grow(f"{0:016x}", *keys(0)))
    with pytest.raises(Unsupported):
        after(world, x, grow(*keys(0, 9), colour=1))


def test_heads_have_the_domain(world):
    held, _ = large(world)
    domain = [keys(-5, 12)]
    told = held | {of_node(ARRAY, 0): text_of({**head("array", GROUP, "a", 2), "domain": domain})}
    node = world.state_of(flat(told)).nodes[ARRAY]
    assert node.domain == [(SIGN - 5, SIGN + 12)] == node.schemas[0].domain
    assert node.schemas[0].dims[0].origin == SIGN
    assert world.state_of(flat(held)).nodes[ARRAY].domain == [(SIGN, SIGN + 9)]
    further = json.loads(told[of_node(ARRAY, 2, number(0))])
    further["dims"][0]["domain"] = ["0", "10"]
    assert world.state_of(flat(told | {of_node(ARRAY, 2, number(0)): text_of(further)})).nodes[ARRAY].domain
    with pytest.raises(Damaged, match="does not contain"):
        world.state_of(flat(held | {of_node(ARRAY, 2, number(0)): text_of(further)}))


@pytest.mark.parametrize(
    "domain", [[keys(0, 8)], [keys(1, 9)], [], [keys(0, 9)] * 2, [keys(9, 0)], [["0", "9"]], "0..9"]
)
def test_heads_with_another_domain_are_refused(world, domain):
    held, _ = large(world)
    with pytest.raises(Damaged):
        world.state_of(flat(held | {of_node(ARRAY, 0): text_of({**head("array", GROUP, "a", 2), "domain": domain})}))


def test_the_ends_of_a_head_are_of_the_type(world):
    held, _ = large(world)
    small = {of_node(ARRAY, 2, number(n)): text_of(schema("v", "w") | made(dim("int8", "0", "9"))) for n in (0, 1)}
    told = {of_node(ARRAY, 0): text_of({**head("array", GROUP, "a", 2), "domain": [keys(0, 128)]})}
    with pytest.raises(Damaged, match="outside of the type"):
        world.state_of(flat(held | small | told))
    with pytest.raises(Damaged, match="group with a domain"):
        group = {**head("group", TOP, "g"), "domain": [keys(0, 9)]}
        world.state_of(flat(held | {of_node(GROUP, 0): text_of(group)}))
