"""Bit rounding: what is kept, that conditions see it, that nothing but writes rounds, where it is refused."""

from random import Random
from typing import Any

import drawing
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model import nearest, plain, stored, unplain
from places import Stores

import gridstone as gs
from gridstone.errors import SchemaError

FLOATS = {"float16": 10, "float32": 23, "float64": 52}


def line(uri: str, dtype: str, filters: Any, count: int = 1_000, **options: Any) -> gs.Array:
    attr = gs.Attr("v", dtype, filters=filters, **options)
    return gs.create(uri, gs.Schema([gs.Dim("x", (0, count - 1), min(count, 100))], [attr]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("filters", ["bitround:3", "bitround:3,none", ["bitround:3", "shuffle", "zstd"]])
def test_values_are_the_nearest_with_so_many_bits(stores: Stores, dtype: str, filters: Any) -> None:
    values = np.random.default_rng(3).integers(0, 2**16, 4_000).astype("uint16").view("float16").astype(dtype)
    values[:5] = [np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).max]
    a = line(stores(), dtype, filters, 4_000)
    a[...] = values
    found = a[...]
    wanted = np.array([nearest(dtype, float(v), 3) for v in values], dtype)
    np.testing.assert_array_equal(found, wanted)
    assert found[3].tobytes() == values[3].tobytes() and np.isfinite(found[4])
    assert (found != values).any()
    a[...] = found  # what is rounded stays
    np.testing.assert_array_equal(a[...], found)
    assert a.verify()["damage"] == []


@given(seed=st.integers(0, 2**32))
def test_any_type_made_of_floats(stores: Stores, seed: int) -> None:
    r = Random(seed)
    dtype = r.choice(["float16", "float64", "complex64", "complex128", "float32[2,3]", "complex64[2]", "list[float64]"])
    attr = gs.Attr("v", dtype, filters=[f"bitround:{r.randint(1, 9)}", r.choice(["auto", "lz4"])], nullable=True)
    a = gs.create(stores(), gs.Schema([gs.Dim("x", (0, 39), 7)], [attr], sparse=r.random() < 0.5))
    values = drawing.values(r, attr, 40)
    data = unplain(dtype, values)
    if a.sparse:
        a.write_cells({"x": range(40)}, {"v": data})
    else:
        a[...] = data
    assert plain(dtype, a.read()["v"]) == [stored(attr, value) for value in values]
    gs.delete(a.uri)


def test_bits_are_kept_where_they_must_be(stores: Stores) -> None:
    special = np.array([0x7F800001, 0xFFC12345, 0x7FC00000, 0x80000000, 0x7F800000, 0xFF800000], np.uint32)
    a = line(stores(), "float32", "bitround:2", special.size)
    a[...] = special.view(np.float32)
    np.testing.assert_array_equal(a[...].view(np.uint32), special)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ways", ["write", "cells", "stream", "unsorted", "transaction"])
def test_conditions_and_statistics_see_what_reads_see(stores: Stores, sparse: bool, ways: str) -> None:
    """A condition that is pruned by statistics takes what the values that are read say, whatever the way in."""
    attr = gs.Attr("v", "float32", filters=["bitround:4", "auto"])
    a = gs.create(
        stores(), gs.Schema([gs.Dim("x", (0, 999), 50)], [attr], sparse=sparse, **({"capacity": 40} if sparse else {}))
    )
    values = np.repeat(np.linspace(1, 3, 20).astype("float32"), 50)
    places = {"x": np.arange(1_000)}
    if ways == "write" and not sparse:
        a[...] = values
    elif ways == "stream":
        with a.writer() as w:
            for part in range(0, 1_000, 77):
                cut = slice(part, part + 77)
                w.append(*([{"x": places["x"][cut]}] if sparse else []), {"v": values[cut]})
    elif ways == "unsorted":
        with a.writer(order="any") as w:
            w.append({"x": places["x"][::-1]}, {"v": values[::-1]})
    elif ways == "transaction":
        with gs.transaction(a.uri) as tx:
            tx["/"].write_cells(places, {"v": values})
            assert (tx["/"].read()["v"] == [nearest("float32", float(v), 4) for v in values]).all()
        a.refresh()
    else:
        a.write_cells(places, {"v": values})
    found = a.read()["v"]
    np.testing.assert_array_equal(found, [nearest("float32", float(v), 4) for v in values])
    for limit in np.unique(found):
        for sign, holds in (("==", found == limit), (">", found > limit), ("<=", found <= limit)):
            assert a.read(where=f"v {sign} {limit!r}".replace("np.float32(", "").replace(")", ""))["x"].tolist() == (
                np.flatnonzero(holds).tolist()
            )
    a.delete(where="v > 2")
    left = a.read(where="v > 2")
    assert len(left) == 0


@pytest.mark.parametrize("sparse", [False, True])
def test_merging_rounds_nothing(stores: Stores, sparse: bool) -> None:
    """What was written before rounding was asked for, and a fill, stay as they are."""
    a = gs.create(stores(), gs.Schema([gs.Dim("x", (0, 99), 10)], [gs.Attr("v", "float64")], sparse=sparse))
    exact = np.random.default_rng(1).normal(size=100)
    a.write_cells({"x": np.arange(0, 100, 2)}, {"v": exact[::2]})
    a.alter(filters={"v": "bitround:5"}, add=gs.Attr("w", "float32", fill=0.1, filters="bitround:2,lz4"))
    assert a.schema.attr("v").filters == "bitround:5,auto" and a.schema.attr("v").lossy
    a.write_cells({"x": np.arange(50, 100)}, {"v": exact[50:], "w": np.float32(exact[50:])})
    before = a.read().to_pandas()
    rounded = [nearest("float64", float(v), 5) for v in exact]
    by_place = dict(zip(before["x"], before["v"], strict=True))
    assert [by_place[x] for x in range(0, 50, 2)] == exact[:50:2].tolist()
    assert [by_place[x] for x in range(50, 100)] == rounded[50:]
    assert before["w"][0] == np.float32(0.1)
    for _ in range(2):
        a.consolidate("all")
        assert a.read().to_pandas().equals(before)


def test_it_packs_better_than_what_it_was_made_of(stores: Stores) -> None:
    values = np.random.default_rng(5).normal(280, 5, 100_000).astype("float32")
    sizes = []
    for filters in ("auto", "bitround:7"):
        a = line(stores(), "float32", filters, 100_000)
        a[...] = values
        sizes.append(sum(a.fragments["bytes"].to_pylist()))
    assert sizes[1] < 0.6 * sizes[0], sizes


@pytest.mark.parametrize(
    ("dtype", "filters", "words"),
    [
        ("int32", "bitround:3", "floats"),
        ("string", "bitround:3", "floats"),
        ("datetime64[s]", "bitround:3", "floats"),
        ("float16", "bitround:10", "1 to 9"),
        ("float32", "bitround:23", "1 to 22"),
        ("complex64", "bitround:23", "1 to 22"),
        ("float64", "bitround:52", "bitround needs"),
        ("float64", "bitround:0", "bitround needs"),
        ("float64", "bitround", "bitround needs"),
        ("float64", ["shuffle", "bitround:3"], "in front of"),
        ("float64", ["bitround:3", "bitround:2"], "in front of"),
        ("float64", ["bitround:3", "delta"], "delta does not accept"),
    ],
)
def test_where_it_has_no_place_it_is_refused(stores: Stores, dtype: str, filters: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        line(stores(), dtype, filters)


def test_coordinates_are_never_rounded() -> None:
    with pytest.raises(SchemaError, match="is for attributes"):
        gs.Schema(
            [gs.Dim("x", (0.0, 1.0), dtype="float32")], [gs.Attr("v", int)], sparse=True, coord_filters="bitround:3"
        )


def test_what_is_shown_says_that_it_loses() -> None:
    attr = gs.Attr("v", "float32", filters="bitround:7")
    assert attr.filters == "bitround:7,auto" and attr.lossy and not gs.Attr("v", "float32").lossy
    schema = gs.Schema([gs.Dim("x", (0, 9))], [attr])
    assert gs.Schema.from_json(schema.to_json()) == schema and "bitround:7,auto (lossy)" in schema._repr_html_()
    assert "filters='bitround:7,auto'" in repr(schema)
    assert pa.types.is_float32(schema.to_arrow().field("v").type)
