"""Reads into buffers of the caller, whatever their sizes: the portions are the whole read."""

import _thread
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.errors import BudgetError, InputError


def sparse(uri: Any, rows: int = 3_000) -> gs.Array:
    random = np.random.default_rng(7)
    attrs = [
        gs.Attr("v", "float64"),
        gs.Attr("s", "string", nullable=True),
        gs.Attr("l", "int16", var=True),
        gs.Attr("p", "uint8", shape=(2,)),
    ]
    a = gs.create(
        uri, gs.Schema([gs.Dim("x", (0, 10**6), 1000), gs.Dim("t", (0, 99))], attrs, sparse=True, capacity=200)
    )
    lists = np.empty(rows, object)
    lists[:] = [np.arange(i % 4, dtype=np.int16) for i in range(rows)]
    texts = np.array([("é" * (i % 5)) + str(i) for i in range(rows)], object)
    values = {
        "v": random.random(rows),
        "s": np.ma.MaskedArray(texts, np.arange(rows) % 7 == 0),
        "l": lists,
        "p": random.integers(0, 255, (rows, 2), dtype=np.uint8),
    }
    places = random.choice(10**6, rows, replace=False)
    for part in (slice(0, rows // 2), slice(rows // 2, rows)):
        a.write_cells({"x": places[part], "t": places[part] % 100}, {name: v[part] for name, v in values.items()})
    return a


def buffers(cells: int, bytes_: int) -> dict[str, Any]:
    return {
        "x": np.zeros(cells, np.int64),
        "v": np.zeros(cells),
        "s": {
            "values": np.zeros(bytes_, np.uint8),
            "offsets": np.zeros(cells + 1, np.int64),
            "validity": np.zeros(cells, bool),
        },
        "l": {"values": np.zeros(bytes_ // 2, np.int16), "offsets": np.zeros(cells + 1, np.int64)},
        "p": np.zeros((cells, 2), np.uint8),
    }


def taken(held: dict[str, Any], count: int) -> list[Any]:
    """The rows of a portion, as Python values."""
    s, n = held["s"], held["l"]
    rows = []
    for i in range(count):
        text = bytes(s["values"][s["offsets"][i] : s["offsets"][i + 1]]).decode()
        numbers = n["values"][n["offsets"][i] // 2 : n["offsets"][i + 1] // 2]
        rows.append(
            (
                int(held["x"][i]),
                float(held["v"][i]),
                text if s["validity"][i] else None,
                numbers.tolist(),
                held["p"][i].tolist(),
            )
        )
    return rows


@pytest.fixture
def array(stores: Stores) -> gs.Array:
    return sparse(stores("a"))


@given(
    st.integers(1, 700),
    st.integers(40, 9000),
    st.sampled_from(["row", "col", "global", "any"]),
    st.sampled_from([None, "v > 0.5", "s = '12'"]),
)
def test_portions_are_the_whole_read(array: gs.Array, cells: int, bytes_: int, order: str, where: str | None) -> None:
    box = {"x": (50_000, 900_000)}
    whole = array.read(box, where=where, order=order)
    columns = whole.to_numpy()
    expected = [
        (int(x), float(v), None if s is np.ma.masked else s, list(n), p.tolist())
        for x, v, s, n, p in zip(*(columns[c] for c in "xvslp"), strict=True)
    ]
    held = buffers(cells, bytes_)
    filling = array.read_into(held, box, where, order)
    found: list[Any] = []
    for count in filling:
        assert 0 < count <= cells
        found += taken(held, count)
    assert filling.complete and filling.submit() == 0
    assert (sorted(found, key=str) == sorted(expected, key=str)) if order == "any" else found == expected


def test_the_snapshot_stays_and_completeness_is_known_at_once(stores: Stores) -> None:
    a = sparse(stores("a"), 100)
    x = np.zeros(50, np.int64)
    lists = np.empty(1, object)
    lists[0] = np.array([1], np.int16)
    filling = a.read_into({"x": x})
    assert filling.submit() == 50 and not filling.complete
    a.write_cells(
        {"x": [10**6], "t": [0]},
        {"v": [1.0], "s": np.array(["z"], object), "l": lists, "p": np.zeros((1, 2), np.uint8)},
    )
    assert filling.submit() == 50 and filling.complete and 10**6 not in x
    assert filling.stats["cells_returned"] >= 100
    assert sum(a.read_into({"x": x})) == 101


def test_an_interrupt_ends_the_read_and_passes_no_cell_over(stores: Stores) -> None:
    """The buffers were filled when Ctrl-C was seen: which cells the caller has, nobody knows."""

    def stop(data: bytes, width: int) -> bytes:
        _thread.interrupt_main()
        time.sleep(0.3)
        return data

    gs.register_filter("test.stop", encode=lambda data, width: data, decode=stop, overwrite=True)
    a = gs.create(stores("a"), gs.Schema([gs.Dim("x", (0, 999), 1000)], [gs.Attr("v", "int64", filters="test.stop")]))
    a[...] = np.arange(1000)
    filling = a.read_into({"x": np.zeros(100, np.int64), "v": np.zeros(100, np.int64)})
    with pytest.raises(KeyboardInterrupt):
        filling.submit()
    assert not filling.complete
    for _ in range(2):
        with pytest.raises(InputError, match="begin another one"):
            filling.submit()


def test_a_cell_that_does_not_fit_says_how_large_it_is(stores: Stores) -> None:
    a = gs.create(stores("a"), gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("s", "string")], sparse=True))
    a.write_cells({"x": [1, 2, 3]}, {"s": np.array(["ab", "c" * 500, "d"], object)})
    held = {"s": {"values": np.zeros(100, np.uint8), "offsets": np.zeros(9, np.int64)}}
    filling = a.read_into(held)
    assert filling.submit() == 1
    with pytest.raises(BudgetError, match="500 bytes"):
        filling.submit()
    larger = {"s": {"values": np.zeros(600, np.uint8), "offsets": np.zeros(9, np.int64)}}
    with pytest.raises(InputError):
        filling.submit({"x": np.zeros(3, np.int64)})
    assert filling.submit(larger) == 2 and filling.complete
    assert larger["s"]["offsets"][:3].tolist() == [0, 500, 501]
    with pytest.raises(BudgetError):
        a.read_into({"s": {"values": np.zeros(9, np.uint8), "offsets": np.zeros(1, np.int64)}}).submit()


def test_dense_boxes_with_coordinates_and_nulls(stores: Stores) -> None:
    values = np.ma.MaskedArray(np.arange(600, dtype=np.int32).reshape(20, 30), np.arange(600).reshape(20, 30) % 11 == 0)
    a = gs.array(stores("a"), values, tile=7)
    held: dict[str, Any] = {
        "d1": np.zeros(37, np.int64),
        "value": {"values": np.zeros(37, np.int32), "validity": np.zeros(37, np.uint8)},
    }
    found, columns = [], []
    for count in a.read_into(held, {"d0": (3, 17)}):
        part = np.ma.MaskedArray(held["value"]["values"][:count].copy(), held["value"]["validity"][:count] == 0)
        found += part.tolist()
        columns += held["d1"][:count].tolist()
    assert found == values[3:18].ravel().tolist() and columns == list(range(30)) * 15
    assert list(a.read_into(held, (slice(5, 5), slice(0, 3)))) == []


@pytest.mark.parametrize(
    "given_",
    [
        {},
        {"x": np.zeros(3, np.int32)},
        {"x": np.zeros((3, 1), np.int64)},
        {"x": np.zeros(6, np.int64)[::2]},
        {"x": [1, 2]},
        {"none": np.zeros(3)},
        {"s": np.zeros(3, np.uint8)},
        {"s": {"values": np.zeros(3, np.uint8), "offsets": np.zeros(3, np.int64)}},
        {"s": {"values": np.zeros(3, np.uint8), "offsets": np.zeros(3, np.int32), "validity": np.zeros(3, bool)}},
        {"v": {"values": np.zeros(3), "offsets": np.zeros(3, np.int64)}},
        {"v": {"value": np.zeros(3)}},
        {"l": {"values": np.zeros(3, np.int32), "offsets": np.zeros(3, np.int64)}},
        {"p": np.zeros(4, np.uint8)},
    ],
)
def test_buffers_that_do_not_fit_are_refused(array: gs.Array, given_: Any) -> None:
    with pytest.raises(InputError):
        array.read_into(given_)


def test_overlapping_buffers_and_bad_orders_are_refused(array: gs.Array) -> None:
    words = np.zeros(30, np.int64)
    with pytest.raises(InputError, match="overlap"):
        array.read_into({"x": words[:20], "t": words[10:]})
    with pytest.raises(InputError, match="order"):
        array.read_into({"x": words}, order="zigzag")
    frozen = np.zeros(3, np.int64)
    frozen.flags.writeable = False
    with pytest.raises(InputError):
        array.read_into({"x": frozen})


def test_texts_among_the_dimensions(store_uri: str) -> None:
    dims = [gs.Dim("g", dtype="string", max_bytes=12), gs.Dim("x", (0, 99))]
    a = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", "int32")], sparse=True))
    genes = ["0", "brca1", "kras", "kras2", "tp53"]
    a.write_cells({"g": genes, "x": range(5)}, {"v": range(5)})
    for box, where, found in [
        (None, None, genes),
        ({"g": ("b", "l")}, None, genes[1:4]),
        ({"g": gs.prefix("kras")}, "v > 2", genes[3:4]),
        ([{"x": (0, 1)}, {"g": ("tp53", "tp53")}], None, ["0", "brca1", "tp53"]),
        ([], None, []),
    ]:
        held = {"values": np.zeros(12, np.uint8), "offsets": np.zeros(3, np.int64)}
        filling = a.read_into({"g": held}, box, where)
        texts = []
        for count in filling:
            ends = held["offsets"]
            texts += [bytes(held["values"][ends[i] : ends[i + 1]]).decode() for i in range(count)]
        assert texts == found and filling.complete


@pytest.mark.parametrize("values", [["ok", "bad", "?"], [10, 20, 30]], ids=["texts", "numbers"])
def test_codes_of_categories(store_uri: str, values: list[Any]) -> None:
    kind = "string" if isinstance(values[0], str) else "int32"
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 6))], [gs.Attr("c", kind, categories=values)]))
    a[...] = [values[i % 3] for i in range(7)]
    codes = np.full(10, 9, a.schema.attr("c").codes)
    assert a.read_into({"c": codes}).submit() == 7
    assert codes.tolist() == [0, 1, 2, 0, 1, 2, 0, 9, 9, 9]
    with pytest.raises(InputError, match="codes are uint8"):
        a.read_into({"c": np.zeros(10, np.int32)})
