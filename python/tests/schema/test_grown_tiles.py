"""Dense arrays that grew by no whole tile: their tiles count from where the first domain began, and what Python cuts or
puts in order along tiles must too."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import cli, io

ORDERS = ["row", "col"]


def grown(uri: str, tile_order: str = "row", cell_order: str = "row", attrs: int = 1) -> gs.Array:
    """10 × 9 cells that began as 6 × 5 in tiles of 5 × 2: the low ends lie 3 and 1 before a border."""
    dims = [gs.Dim("x", (0, 5), tile=5), gs.Dim("y", (0, 4), tile=2)]
    made = [gs.Attr(name, "int64") for name in "vw"[:attrs]]
    a = gs.create(uri, gs.Schema(dims, made, tile_order=tile_order, cell_order=cell_order))
    a.resize(x=(-3, 6), y=(-1, 7))
    return a


def numbered(a: gs.Array) -> Any:
    """A value of its own for each cell."""
    return np.arange(a.size).reshape(a.shape)


@pytest.mark.parametrize("order", ["global", "any"])
@pytest.mark.parametrize(("tile_order", "cell_order"), list(itertools.product(ORDERS, ORDERS)))
def test_every_form_of_a_read_in_global_order_puts_cells_of_a_grown_array_in_their_places(
    store_uri, order, tile_order, cell_order
):
    a = grown(store_uri, tile_order, cell_order)
    wanted = numbered(a)
    a.write(wanted)
    for box, part in ((None, wanted), ({"x": (-2, 4), "y": (0, 7)}, wanted[1:8, 1:9])):
        found = a.read(box, order=order)
        assert (found.to_dense() == part).all()
        assert (found.in_place()["v"] == part).all()
        assert (np.asarray(found) == part).all() and (np.from_dlpack(found) == part).all()
        assert (found.to_scipy().toarray() == part).all() and (found.to_sparse().todense() == part).all()
        frame = found.to_pandas()
        assert (wanted[frame["x"] + 3, frame["y"] + 1] == frame["v"]).all() and len(frame) == part.size
        table = found.to_arrow().to_pydict()
        assert table == {name: frame[name].tolist() for name in ("x", "y", "v")}
        streamed = a.scan(box, order="global").to_pandas()
        assert streamed.equals(frame), "the core gives the coordinates of a stream"


def test_a_result_in_global_order_keeps_its_places_when_it_is_copied_and_pickled(store_uri):
    a = grown(store_uri)
    a.write(numbered(a))
    found = a.read(order="global")
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (other.to_dense() == numbered(a)).all()
    dim = pickle.loads(pickle.dumps(a.schema.dims[0]))
    assert dim == a.schema.dims[0] and dim._tile_starts(-3, 10).tolist() == [0, 3, 8]


def test_where_tiles_begin_takes_no_part_in_comparisons_and_does_not_reach_a_new_array(store_uri, stores: Stores):
    a = grown(store_uri)
    plain = gs.Schema([gs.Dim("x", (-3, 6), tile=5), gs.Dim("y", (-1, 7), tile=2)], [gs.Attr("v", "int64")])
    assert a.schema == plain and hash(a.schema) == hash(plain) and repr(a.schema) == repr(plain)
    assert a.schema.to_json() == plain.to_json() and gs.Schema.from_json(a.schema.to_json()) == plain
    b = gs.create(stores("fresh"), a.schema)
    b.write(numbered(b))
    assert (b.read(order="global").to_dense() == numbered(b)).all()
    c = gs.create(stores("parts"), gs.Schema(a.schema.dims, a.schema.attrs))
    c.write(numbered(c))
    assert (c.read(order="global").to_dense() == numbered(c)).all()


@pytest.mark.parametrize(("tile_order", "cell_order"), list(itertools.product(ORDERS, ORDERS)))
def test_numpy_files_are_loaded_into_a_grown_array_cell_by_cell(store_uri, tmp_path, tile_order, cell_order):
    a = grown(store_uri, tile_order, cell_order)
    wanted = numbered(a)
    np.save(tmp_path / "a.npy", wanted)
    io.from_npy(store_uri, tmp_path / "a.npy")
    a.refresh()
    assert (a[...] == wanted).all()
    box = {"x": (-2, 4), "y": (0, 7)}
    np.savez(tmp_path / "a.npz", v=-wanted[1:8, 1:9])
    io.from_npz(store_uri, tmp_path / "a.npz", box=box)
    a.refresh()
    wanted[1:8, 1:9] *= -1
    assert (a[...] == wanted).all()
    io.from_npy(store_uri, [tmp_path / "a.npy"], box=None)
    assert (gs.open(store_uri)[...] == numbered(a)).all()


def test_loads_from_the_command_line_and_large_pieces_reach_the_cells_of_a_grown_array(
    store_uri, tmp_path, monkeypatch
):
    from gridstone.io.numpy import dense

    monkeypatch.setattr(dense, "_PIECE_BYTES", 40)  # Tiles are cut into several pieces.
    a = grown(store_uri, attrs=2)
    values = {"v": numbered(a), "w": -numbered(a)}
    np.savez(tmp_path / "a.npz", **values)
    assert cli.run(["load", store_uri, str(tmp_path / "a.npz")]) == 0
    found = gs.open(store_uri).read().to_numpy()
    assert all((found[name] == wanted).all() for name, wanted in values.items())


def test_tiles_of_times_and_of_arrays_opened_in_the_past_and_in_transactions(stores: Stores):
    days = [gs.Dim("t", ("2024-01-01", "2024-01-10"), tile=7, dtype="datetime64[D]"), gs.Dim("y", (0, 3), tile=3)]
    uri = stores("days")
    a = gs.create(uri, gs.Schema(days, [gs.Attr("v", "int64")]))
    a.write(numbered(a))
    before = a.version
    a.resize(t=("2023-12-30", "2024-02-01"), y=(-2, 5))
    a.write(numbered(a))
    assert (a.read(order="global").to_dense() == numbered(a)).all()
    old = gs.open(uri, version=before)
    assert (old.read(order="global").to_dense() == numbered(old)).all()
    with gs.transaction(uri) as t:
        b = t["/"]
        b.resize(y=(-3, 5))
        b.write(numbered(b))
        assert (b.read(order="any").to_dense() == numbered(b)).all()
    a.refresh()
    assert a.shape[1] == 9 and (a.read(order="any").to_dense() == numbered(a)).all()


LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}


@st.composite
def growths(draw: st.DrawFn) -> tuple[list[gs.Dim], list[list[tuple[int, int]]], tuple[str, str]]:
    """Dimensions, domains that each becomes in turn, and orders of tiles and cells."""
    dims, domains = [], []
    for name in "xyz"[: draw(st.integers(1, 3))]:
        dtype = draw(st.sampled_from(sorted(LIMITS)))
        least, greatest = LIMITS[dtype]
        size = draw(st.integers(1, 5))
        low = draw(st.sampled_from([least, least + 4, 0 if least else 7, greatest - size - 3, greatest - size + 1]))
        ends = (low, low + size - 1)
        tile = draw(st.one_of(st.none(), st.integers(1, size)))
        dims.append(gs.Dim(name, ends, tile, dtype))
        steps = []
        for _ in range(draw(st.integers(1, 2))):
            down, up = draw(st.integers(0, 4)), draw(st.integers(0, 4))
            ends = (max(least, ends[0] - down), min(greatest, ends[1] + up))
            steps.append(ends)
        domains.append(steps)
    return dims, domains, (draw(st.sampled_from(ORDERS)), draw(st.sampled_from(ORDERS)))


@settings(max_examples=80, deadline=None)
@given(what=growths(), data=st.data())
def test_growth_at_both_ends_and_edges_of_types_moves_no_cell_read_or_loaded_in_global_order(what, data):
    dims, domains, (tiles, cells) = what
    uri = f"mem://grown/{next(_NUMBERS)}.gs"
    a = gs.create(uri, gs.Schema(dims, [gs.Attr("v", "int64")], tile_order=tiles, cell_order=cells))
    try:
        for dim, steps in zip(dims, domains, strict=True):
            for ends in steps:
                a.resize({dim.name: ends})
        io.numpy.dense.from_array(uri, numbered(a), None, None, a.context, None)
        a.refresh()
        assert (a[...] == numbered(a)).all()
        assert (a.read(order="global").to_dense() == numbered(a)).all()
        lows = [data.draw(st.integers(0, n - 1)) for n in a.shape]
        highs = [data.draw(st.integers(low, n - 1)) for low, n in zip(lows, a.shape, strict=True)]
        part = numbered(a)[tuple(slice(low, high + 1) for low, high in zip(lows, highs, strict=True))]
        first = [end[0] for end in a.domain]
        box = {d.name: (f + lo, f + hi) for d, f, lo, hi in zip(dims, first, lows, highs, strict=True)}
        assert (a.read(box, order="any").to_dense() == part).all()
    finally:
        gs.delete(uri, context=a.context)


_NUMBERS = itertools.count()
