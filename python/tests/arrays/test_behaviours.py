"""What users of TileDB-Py count on, as far as it is promised here too, in tables of cases: the edges of domains, writes
over each other, versions, texts and nulls, times, nothing at all, duplicates, metadata, groups, changed schemas.
"""

import datetime as dt
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gridstone as gs

ORDERS = ["row", "col", "global", "any"]


def merged(array: gs.Array) -> None:
    """What nobody who reads may notice: everything merged, older versions forgotten."""
    array.consolidate("all")
    array.vacuum(versions=1, safety_age=0)
    array.refresh()


# The edges of domains.

EDGES: dict[str, tuple[str, Any, Any, Any, list[Any]]] = {
    "int64 whole": ("int64", -(2**63), 2**63 - 1, 1000, [-(2**63), -1, 0, 1, 2**63 - 1]),
    "int64 whole, large tiles": ("int64", -(2**63), 2**63 - 1, 2**40, [-(2**63), 0, 2**63 - 1]),
    "uint64 whole": ("uint64", 0, 2**64 - 1, 2**40, [0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
    "uint64 high end": ("uint64", 2**64 - 3, 2**64 - 1, 2, [2**64 - 3, 2**64 - 2, 2**64 - 1]),
    "int8 whole": ("int8", -128, 127, 7, [-128, -1, 0, 127]),
    "uint8 whole": ("uint8", 0, 255, 256, [0, 255]),
    "int16, one value": ("int16", 5, 5, 1, [5]),
    "uint32, last value": ("uint32", 2**32 - 1, 2**32 - 1, None, [2**32 - 1]),
    "int32 negative": ("int32", -100, -90, 4, [-100, -97, -96, -90]),
    "datetime, one value": ("datetime64[ms]", 1_600_000_000_000, 1_600_000_000_000, None, [1_600_000_000_000]),
    "datetime64[ns] whole": ("datetime64[ns]", -(2**63) + 1, 2**63 - 1, 10**18, [-(2**63) + 1, 0, 2**63 - 1]),
    "timedelta64[h]": ("timedelta64[h]", -24, 24, 5, [-24, 0, 24]),
}


def coordinates(dtype: str, values: list[Any]) -> np.ndarray:
    if dtype[0] in "dt":
        return np.array(values, np.int64).view(dtype)
    return np.array(values, dtype)


@pytest.mark.parametrize("case", EDGES)
@pytest.mark.parametrize("order", ["row", "hilbert"])
def test_sparse_cells_at_the_edges_of_domains(store_uri: str, case: str, order: str) -> None:
    dtype, low, high, tile, places = EDGES[case]
    ends = tuple(coordinates(dtype, [low, high]))
    schema = gs.Schema([gs.Dim("x", ends, tile, dtype)], [gs.Attr("v", int)], sparse=True, cell_order=order)
    a = gs.create(store_uri, schema)
    xs = coordinates(dtype, places)
    a.write_cells({"x": xs[::-1]}, np.arange(len(xs))[::-1])
    a.write_cells({"x": xs[-1:]}, [77])  # The highest cell again: the newest wins.
    expected = [*range(len(xs) - 1), 77]
    for _ in range(2):
        found = a.read()
        assert found["x"].dtype == xs.dtype and found["x"].tolist() == xs.tolist()
        assert found["v"].tolist() == expected
        assert a.nonempty_domain == ((xs[0], xs[-1]),)
        for i in range(len(xs)):
            assert a.read({"x": (xs[i], xs[i])})["v"].tolist() == [expected[i]]
            assert a.read({"x": (xs[0], xs[i])})["v"].tolist() == expected[: i + 1]
            assert a.read({"x": (xs[i], xs[-1])})["v"].tolist() == expected[i:]
        assert a.points({"x": xs})["v"].tolist() == expected
        assert a.read(where=gs.col("x") == xs[0])["v"].tolist() == expected[:1]
        merged(a)
    a.delete({"x": (xs[0], xs[0])})
    assert a.read()["v"].tolist() == expected[1:]


@pytest.mark.parametrize("case", EDGES)
def test_dense_cells_at_the_edges_of_domains(store_uri: str, case: str) -> None:
    dtype, low, high, tile, places = EDGES[case]
    tile = min(tile, 1000) if tile is not None and low != high else None
    a = gs.create(
        store_uri, gs.Schema([gs.Dim("x", tuple(coordinates(dtype, [low, high])), tile, dtype)], [gs.Attr("v", int)])
    )
    for number, place in enumerate(places, 1):
        x = coordinates(dtype, [place])[0]
        a.write([number], {"x": (x, x)})
    for _ in range(2):
        for number, place in enumerate(places, 1):
            x = coordinates(dtype, [place])[0]
            found = a.read({"x": (x, x)})
            assert found["v"].tolist() == [number] and found["x"].tolist() == coordinates(dtype, [place]).tolist()
        assert a[-1] == (len(places) if places[-1] == high else 0)
        assert a[0] == (1 if places[0] == low else 0)
        merged(a)


# Dense writes over each other: tiles of 4 x 3 in 10 x 10, the last ones of each row and column cut.

OVER: dict[str, list[tuple[Any, int]]] = {
    "a tile exactly": [(np.s_[4:8, 3:6], 1)],
    "one over the edges of a tile": [(np.s_[3:9, 2:7], 1)],
    "where four tiles meet": [(np.s_[3:5, 2:4], 1), (np.s_[4:5, 3:4], 2)],
    "the cut tile at the end": [(np.s_[8:10, 9:10], 1), (np.s_[9, 9], 2)],
    "rows, then a column across": [(np.s_[2], 1), (np.s_[7], 2), (np.s_[:, 5], 3)],
    "all, then a hole, then all but a frame": [(np.s_[...], 1), (np.s_[4:6, 4:6], 2), (np.s_[1:-1, 1:-1], 3)],
    "many cells of one tile": [(np.s_[i % 4, i % 3], i) for i in range(1, 9)],
    "strides over boxes": [(np.s_[::2, ::3], 1), (np.s_[1:9, 1:9], 2), (np.s_[::-3, 1::4], 3)],
}


def in_order(values: np.ndarray, order: str) -> np.ndarray:
    """What a read in this order gives of a 10 x 10 array in tiles of 4 x 3."""
    if order in ("row", "col"):
        return values
    return np.concatenate([values[i : i + 4, j : j + 3].ravel() for i in range(0, 10, 4) for j in range(0, 10, 3)])


@pytest.mark.parametrize("case", OVER)
def test_dense_writes_over_each_other(store_uri: str, case: str) -> None:
    a = gs.create(store_uri, gs.Schema([gs.Dim("y", (0, 9), 4), gs.Dim("x", (0, 9), 3)], [gs.Attr("v", "int32")]))
    values, states = np.zeros((10, 10), np.int32), {}
    states[a.version] = values.copy()
    for key, number in OVER[case]:
        shape = values[key].shape
        piece = number * 100 + np.arange(np.prod(shape, dtype=int)).reshape(shape)
        a[key] = np.asfortranarray(piece) if number % 2 else piece
        values[key] = piece
        states[a.version] = values.copy()
    for version, state in states.items():
        np.testing.assert_array_equal(a.at(version=version)[...], state)
    for _ in range(2):
        for order in ORDERS:
            found = a.read(order=order)["v"]
            np.testing.assert_array_equal(found, in_order(values, order))
            assert order != "col" or found.flags.f_contiguous
        out = np.empty((10, 10), np.int32, order="F")
        assert np.array_equal(a.read(order="col", out=out)["v"], values) and np.array_equal(out, values)
        a.consolidate("all")
    np.testing.assert_array_equal(gs.open(store_uri)[...], values)
    np.testing.assert_array_equal(gs.open(store_uri, version=1)[...], states[1])


# Versions.


def test_what_each_version_shows(store_uri: str) -> None:
    """Cells, deletions, metadata, schema and size, each as of then: by number, time, tag, and in another handle."""
    schema = gs.Schema([gs.Dim("x", (0, 9), 5)], [gs.Attr("v", int), gs.Attr("s", str)], sparse=True)
    a = gs.create(store_uri, schema)
    steps: list[tuple[Callable[[], Any], list[int], dict[str, Any], list[str], int]] = [
        (lambda: a.write_cells([1, 2], {"v": [1, 2], "s": ["a", "b"]}), [1, 2], {}, ["v", "s"], 10),
        (lambda: a.meta.update(unit="m"), [1, 2], {"unit": "m"}, ["v", "s"], 10),
        (lambda: a.write_cells([2], {"v": [20], "s": ["c"]}), [1, 20], {"unit": "m"}, ["v", "s"], 10),
        (lambda: a.delete(coords=[1]), [20], {"unit": "m"}, ["v", "s"], 10),
        (lambda: a.alter(rename={"v": "w"}, drop="s"), [20], {"unit": "m"}, ["w"], 10),
        (lambda: a.resize(x=(0, 99)), [20], {"unit": "m"}, ["w"], 100),
        (lambda: a.write_cells([50], {"w": [5]}), [20, 5], {"unit": "m"}, ["w"], 100),
        (lambda: a.meta.update(unit="ft", more=1), [20, 5], {"unit": "ft", "more": 1}, ["w"], 100),
    ]
    seen = []
    for step, *expected in steps:
        step()
        seen.append((a.version, a.timestamp, expected))
    assert [version for version, _, _ in seen] == list(range(2, 2 + len(steps)))
    a.consolidate("all")
    gs.tag(store_uri, "fourth", version=4)
    for version, timestamp, (cells, meta, names, size) in seen:
        between = timestamp + (dt.timedelta(microseconds=1) if version == seen[-1][0] else dt.timedelta(0))
        for found in (
            a.at(version=version),
            gs.open(store_uri, version=version),
            gs.open(store_uri, timestamp=between),
            pickle.loads(pickle.dumps(a.at(version=version))),
        ):
            assert found.schema_names == names and found.shape == (size,) and dict(found.meta) == meta
            assert found.read()[names[0]].tolist() == cells
    assert gs.open(store_uri, version="fourth").read()["v"].tolist() == [1, 20]
    with pytest.raises(gs.errors.NotFoundError):
        gs.open(store_uri, timestamp=seen[0][1] - dt.timedelta(days=1))


def test_the_newest_write_wins_and_not_the_latest_clock(store_uri: str) -> None:
    """Many commits within one tick of the clock are ordered by the log."""
    a = gs.array(store_uri, np.zeros(3, int))
    other = gs.open(store_uri, mode="r+")
    for number in range(1, 30):
        (a if number % 2 else other)[1] = number
        assert gs.open(store_uri)[1] == number
    times = [version.timestamp for version in gs.open(store_uri).history()]
    assert times == sorted(set(times))


# Texts, bytes and lists, empty ones among them.

TEXTS: dict[str, tuple[str, list[Any]]] = {
    "all empty": ("string", [""] * 7),
    "empty at both ends": ("string", ["", "a", "", "é" * 9, ""]),
    "all null": ("string", [None] * 5),
    "null and empty": ("string", [None, "", None, "", "x"]),
    "zero bytes": ("bytes", [b"\0", b"", b"a\0", b"\0\0"]),
    "not UTF-8": ("bytes", [b"\xff", b"\xed\xa0\x80", b""]),
    "long and short": ("string", ["x" * 70_000, "", "y", "z" * 20_000]),
    "beyond the plane": ("string", ["𝔘", "a\N{COMBINING ACUTE ACCENT}", "\N{ZERO WIDTH JOINER}", "\n\t\r"]),
    "lists": ("list[int32]", [[], [1], [], [2, 3, 4], []]),
    "lists and null": ("list[float64]", [None, [], [0.5], None]),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_values_of_any_length(store_uri: str, case: str, sparse: bool) -> None:
    dtype, values = TEXTS[case]
    given = np.empty(len(values), object)
    given[:] = values
    nullable = None in values
    schema = gs.Schema(
        [gs.Dim("x", (0, 19), 4)], [gs.Attr("v", dtype, nullable=nullable), gs.Attr("n", int)], sparse=sparse
    )
    a = gs.create(store_uri, schema)
    # In two fragments, the second over half of the first.
    a.write_cells(np.arange(len(values)), {"v": given, "n": np.arange(len(values))})
    a.write_cells(np.arange(len(values))[::2], {"v": given[::2], "n": np.arange(len(values))[::2]})
    for _ in range(2):
        for how in (a.read({"x": (0, len(values) - 1)}), a.points({"x": np.arange(len(values))})):
            found = [v if v is None or isinstance(v, str | bytes) else v.tolist() for v in masked_to_none(how["v"])]
            assert found == values
        assert a.scan({"x": (0, len(values) - 1)}, batch_bytes=1, order="row").to_arrow()["v"].to_pylist() == values
        a.consolidate("all")
    if nullable:
        assert a.read(where="v is null")["n"].tolist() == [i for i, v in enumerate(values) if v is None] + (
            [] if sparse else [0] * (20 - len(values))
        )


def masked_to_none(values: Any) -> list[Any]:
    mask = np.ma.getmaskarray(values)
    return [None if null else v for v, null in zip(np.ma.getdata(values), mask, strict=True)]


# Times.

TIMES: list[tuple[str, Any]] = [
    ("D", "2026-03-01"),
    ("D", dt.date(2026, 3, 1)),
    ("h", "2026-03-01T05"),
    ("s", dt.datetime(2026, 3, 1, 5, 6, 7)),
    ("ms", np.datetime64("2026-03-01T05:06:07.250")),
    ("us", pd.Timestamp("2026-03-01T05:06:07.250001")),
    ("ns", pd.Timestamp("2026-03-01T05:06:07.250001002")),
    ("ns", np.datetime64("2026-03-01")),
    ("s", "1890-01-01T00:00:00"),
]


@pytest.mark.parametrize(("unit", "moment"), TIMES, ids=lambda value: str(value))
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_times_are_found_in_every_form(store_uri: str, unit: str, moment: Any, sparse: bool) -> None:
    exact = (moment.to_datetime64() if isinstance(moment, pd.Timestamp) else np.datetime64(moment)).astype(
        f"M8[{unit}]"
    )
    low, high = exact - 10, exact + 10
    schema = gs.Schema([gs.Dim("t", (low, high), 4, f"datetime64[{unit}]")], [gs.Attr("v", int)], sparse=sparse)
    a = gs.create(store_uri, schema)
    a.write_cells([low, moment, high], [1, 2, 3])
    assert a.read({"t": (moment, moment)})["v"].tolist() == [2]
    assert a.points({"t": np.array([exact])})["v"].tolist() == [2]
    assert a.read(where=gs.col("t") == moment)["v"].tolist() == [2]
    assert a.read({"t": slice(moment, None)})["v"].tolist()[:1] == [2]
    is_period = isinstance(moment, str) or type(moment) is dt.date
    assert (2 in a.read({"t": slice(None, moment)})["v"].tolist()) == is_period
    assert a.nonempty_domain == ((low, high),)
    assert a.read({"t": (moment, moment)}).to_pandas()["v"].tolist() == [2]
    assert a.read({"t": (low - 1, high + 1)})["v"].tolist() == a.read()["v"].tolist()
    with pytest.raises(gs.errors.BoundsError, match="not inside the domain"):
        a.read({"t": (low - 1, high)}, clip="error")


# Nothing.

NOTHING: dict[str, Callable[[gs.Array], Any]] = {
    "a box without cells": lambda a: a.read({"x": (90, 99)}),
    "an empty slice": lambda a: a.read({"x": slice(5, 5)}),
    "an empty slice of positions": lambda a: a[7:3],
    "a condition that nothing meets": lambda a: a.read(where="v > 1000"),
    "a condition in a box without cells": lambda a: a.read({"x": (90, 99)}, where="v > 0"),
    "points where nothing is": lambda a: a.points({"x": [80, 81], "y": [0.5, 0.5]}),
    "no points": lambda a: a.points({"x": np.empty(0, int), "y": np.empty(0)}),
    "after all was deleted": lambda a: (a.delete((...,)), a.read())[1],
    "before the first write": lambda a: a.at(version=1).read(),
}


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_keeps_its_types(store_uri: str, case: str) -> None:
    dims = [gs.Dim("x", (0, 99), 10), gs.Dim("y", (0.0, 1.0), dtype="float32")]
    attrs = [gs.Attr("v", "int16"), gs.Attr("s", str, nullable=True), gs.Attr("t", "datetime64[s]")]
    a = gs.create(store_uri, gs.Schema(dims, [*attrs, gs.Attr("l", "list[uint8]")], sparse=True))
    a.write_cells(([1, 2], [0.5, 0.25]), {"v": [1, 2], "s": ["a", None], "t": np.zeros(2, "M8[s]"), "l": [[1], []]})
    found = NOTHING[case](a)
    kinds = {name: column.dtype for name, column in found.to_numpy().items()}
    assert kinds == {"x": "int64", "y": "float32", "v": "int16", "s": object, "t": "M8[s]", "l": object}
    assert len(found) == 0 and all(len(column) == 0 for column in found.to_numpy().values())
    assert found.to_arrow().schema == a.read().to_arrow().schema and found.to_arrow().num_rows == 0
    assert list(found.to_pandas().columns) == ["x", "y", "v", "s", "t", "l"]


# Several cells at one place, subsets of attributes, several boxes.


def test_duplicates_are_kept_in_the_order_of_writing(store_uri: str) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0, 9), 3)], [gs.Attr("v", int), gs.Attr("s", str)], sparse=True, duplicates=True, capacity=2
    )
    a = gs.create(store_uri, schema)
    for number in range(4):
        a.write_cells([5, 1, 5], {"v": [number, 10 + number, 20 + number], "s": ["x"] * 3})
    fives = [v for number in range(4) for v in (number, 20 + number)]
    for _ in range(2):
        found = a.read()
        assert found["x"].tolist() == [1] * 4 + [5] * 8
        assert found["v"].tolist() == [10, 11, 12, 13, *fives]
        assert a.points({"x": [5, 5]})["v"].tolist() == fives * 2
        assert a.read({"x": (5, 5)}, where="v >= 20")["v"].tolist() == [20, 21, 22, 23]
        merged(a)
    a.delete(where="v == 21")
    a.delete(coords=[1])
    assert a.read()["v"].tolist() == [v for v in fives if v != 21]
    assert a.read().to_dense()["v"].tolist() == [0] * 5 + [23] + [0] * 4


def test_attributes_come_alone_in_any_order_and_number(store_uri: str) -> None:
    names = ["a", "b", "c", "d"]
    schema = gs.Schema([gs.Dim("x", (0, 4))], [gs.Attr(name, int) for name in names], sparse=True)
    a = gs.create(store_uri, schema)
    a.write_cells(np.arange(5), {name: np.arange(5) * i for i, name in enumerate(names)})
    for wanted in (["d", "a"], ["c"], "b", ["b", "d", "a", "c"]):
        found = a.read(attrs=wanted)
        listed = [wanted] if isinstance(wanted, str) else wanted
        assert found.keys() == ["x", *listed] and found.to_arrow().column_names == ["x", *listed]
        assert all(found[name].tolist() == [i * names.index(name) for i in range(5)] for name in listed)
    assert a.read(attrs="a", where="d == 9")["a"].tolist() == [0], "a condition may be on what is not asked for"
    assert a.read(attrs=[]).keys() == ["x"], "coordinates come with every read, and without attributes too"
    for wrong in (["a", "a"], ["e"], "x"):
        with pytest.raises(gs.errors.InputError):
            a.read(attrs=wrong)


RANGES = [[(0, 4)], [(3, 3), (7, 9)], [(0, 99)], [(5, 20), (10, 30)], [(98, 99), (0, 1), (50, 50)]]


@pytest.mark.parametrize("ranges", RANGES, ids=str)
def test_several_ranges_are_a_condition(store_uri: str, ranges: list[tuple[int, int]]) -> None:
    """There is one box in a read; several ranges are a condition on dimensions, each cell once."""
    schema = gs.Schema([gs.Dim("x", (0, 99), 10), gs.Dim("y", (0, 1))], [gs.Attr("v", int)], sparse=True, capacity=5)
    a = gs.create(store_uri, schema)
    x, y = np.divmod(np.arange(200), 2)
    a.write_cells((x, y), np.arange(200))
    found = a.read(where=" or ".join(f"x >= {lo} and x <= {hi}" for lo, hi in ranges))
    inside = np.any([(x >= lo) & (x <= hi) for lo, hi in ranges], axis=0)
    assert found["v"].tolist() == np.arange(200)[inside].tolist()
    picked = [lo for lo, _ in ranges]
    assert a.read(where=gs.col("x").isin(picked))["v"].tolist() == np.arange(200)[np.isin(x, picked)].tolist()


# Dimensions of several types together.


def test_dimensions_of_different_types(store_uri: str) -> None:
    dims = [
        gs.Dim("id", (0, 2**64 - 1), 10**6, "uint64"),
        gs.Dim("t", ("2026-01-01", "2026-12-31"), np.timedelta64(30, "D"), "datetime64[D]"),
        gs.Dim("z", (-1.5, 1.5), 0.5, "float64"),
        gs.Dim("k", (-5, 5), 2, "int8"),
    ]
    a = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", int)], sparse=True, tile_order="col", capacity=3))
    rng = np.random.default_rng(5)
    count = 200
    coords = {
        "id": rng.choice(np.array([0, 5, 10**6, 2**63, 2**64 - 1], "uint64"), count),
        "t": np.datetime64("2026-01-01") + rng.integers(0, 365, count),
        "z": rng.uniform(-1.5, 1.5, count),
        "k": rng.integers(-5, 6, count).astype("int8"),
    }
    a.write_cells(coords, np.arange(count))
    frame = pd.DataFrame({**coords, "v": np.arange(count)})
    some = a.read({"id": (6, 2**64 - 1), "t": ("2026-03-01", "2026-09-30"), "z": (-0.5, 1.0), "k": (-4, 4)})
    expected = frame[
        (frame.id > 5) & frame.t.between("2026-03-01", "2026-09-30") & frame.z.between(-0.5, 1.0) & (frame.k.abs() < 5)
    ].sort_values(["id", "t", "z", "k"])
    assert len(expected) > 10
    assert some["v"].tolist() == expected["v"].tolist() and some["id"].tolist() == expected["id"].tolist()
    with pytest.raises(gs.errors.BoundsError, match='"k"'):
        a.write_cells({**coords, "k": np.full(count, 6, "int8")}, np.arange(count))


# Metadata.

META: dict[str, tuple[Any, Any]] = {
    "an integer of 64 bits": (2**63 - 1, 2**63 - 1),
    "a larger one": (2**64 - 1, 2**64 - 1),
    "the least": (-(2**63), -(2**63)),
    "a float": (1e-300, 1e-300),
    "minus zero": (-0.0, -0.0),
    "infinity": (float("inf"), float("inf")),
    "a NumPy number": (np.uint8(7), 7),
    "a NumPy bool": (np.bool_(True), True),
    "text": ("naïve 𝔘 \n", "naïve 𝔘 \n"),
    "empty text": ("", ""),
    "bytes": (b"\x00\xff", b"\x00\xff"),
    "no bytes": (b"", b""),
    "a tuple": ((1, 2.5, "x"), [1, 2.5, "x"]),
    "nothing in it": ([], []),
    "an array": (np.arange(4, dtype="int16"), [0, 1, 2, 3]),
    "an array of two axes": (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
    "a dict in a list": ([{"a": [1, {"b": None}]}], [{"a": [1, {"b": None}]}]),
    "a moment": (dt.datetime(2026, 3, 1, 5, 6, tzinfo=dt.UTC), dt.datetime(2026, 3, 1, 5, 6, tzinfo=dt.UTC)),
    "long": ("x" * 200_000, "x" * 200_000),
}


@pytest.mark.parametrize("case", META)
def test_metadata_of_every_kind(store_uri: str, case: str) -> None:
    given, expected = META[case]
    a = gs.array(store_uri, np.zeros(3))
    a.meta["k"] = given
    for found in (a.meta["k"], gs.open(store_uri).meta["k"], a.at(version=a.version).meta["k"]):
        assert type(found) is type(expected) and repr(found) == repr(expected)
    a.meta["k"] = "another"
    assert a.at(version=a.version - 1).meta["k"] == expected
    merged(a)
    assert dict(a.meta) == {"k": "another"}, "merging and forgetting keep metadata"
    del a.meta["k"]
    assert "k" not in gs.open(store_uri).meta and a.meta.get("k", 5) == 5


# Groups.


def test_walking_a_tree(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 3))], [gs.Attr("v", int)])
    root = gs.group(store_uri, mode="a")
    for path in ("a", "b/c", "b/d/e", "ü/f g"):
        gs.create(store_uri, schema, path=f"/{path}")[...] = len(path)
    root.group("empty").meta["why"] = "not yet"

    def walk(group: gs.Group) -> list[tuple[str, str]]:
        found = []
        for entry in group.children():
            found.append((entry.path, entry.kind))
            found += walk(group[entry.name]) if entry.kind == "group" else []
        return found

    groups, arrays = ["/b", "/b/d", "/empty", "/ü"], ["/a", "/b/c", "/b/d/e", "/ü/f g"]
    assert sorted(walk(gs.open(store_uri))) == sorted([(p, "group") for p in groups] + [(p, "array") for p in arrays])
    assert gs.open(store_uri, path="/b")["d"]["e"][...].tolist() == [5] * 4
    assert gs.ls(store_uri, path="/b") == [("c", "/b/c", "array"), ("d", "/b/d", "group")]
    with gs.transaction(store_uri) as tx:
        tx.remove("/b/c")
    assert gs.ls(store_uri, path="/b") == [("d", "/b/d", "group")]
    assert gs.open(store_uri, path="/empty").meta["why"] == "not yet"
    for path, word in (("/b/c", "/b/c"), ("/nowhere", "/nowhere"), ("/a/under", "/a/under")):
        with pytest.raises(gs.errors.NotFoundError, match=word):
            gs.open(store_uri, path=path)


# Changed schemas.


@pytest.mark.parametrize(("old", "new"), [("int32", "string"), ("string", "float64"), ("float64", "float32[2]")])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_an_attribute_that_comes_back_with_another_type(store_uri: str, old: str, new: str, sparse: bool) -> None:
    """Dropped and added again under its old name, it holds nothing of what it was; older versions still do."""
    values = {"int32": [1, 2], "string": ["a", "b"], "float64": [0.5, 1.5], "float32[2]": [[1, 2], [3, 4]]}
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 3), 2)], [gs.Attr("k", int), gs.Attr("v", old)], sparse=sparse))
    a.write_cells([0, 2], {"k": [7, 8], "v": values[old]})
    before = a.version
    a.alter(drop="v")
    a.alter(add=gs.Attr("v", new, nullable=True))
    a.write_cells([2, 3], {"k": [9, 10], "v": np.array(values[new], object if new == "string" else None)})
    for _ in range(2):
        found = a.points({"x": [0, 2, 3]})
        assert found["k"].tolist() == [7, 9, 10]
        assert np.ma.getmaskarray(found["v"]).reshape(3, -1).all(1).tolist() == [True, False, False]
        assert np.ma.getdata(found["v"])[1:].tolist() == values[new]
        assert a.at(version=before).points({"x": [0, 2]})["v"].tolist() == values[old]
        a.consolidate("all")
