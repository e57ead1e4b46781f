"""Dimensions with an open end: they begin without a coordinate, and every write makes them reach to what it writes."""

import pickle
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridstone as gs


@pytest.fixture
def uri() -> str:
    return f"mem://{uuid.uuid4()}"


def series(uri: str, domain: tuple[object, object] = (0, None), **options: object) -> gs.Array:
    dims = [gs.Dim("t", domain, **options), gs.Dim("x", (0, 2))]  # type: ignore[arg-type]
    return gs.create(uri, gs.Schema(dims, [gs.Attr("v", "float64", fill=-1.0)]))


def test_a_new_array_with_an_open_end_is_empty_and_says_so(uri: str) -> None:
    a = series(uri)
    assert (a.shape, len(a), a.size, a.domain) == ((0, 3), 0, 0, ((0, -1), (0, 2)))
    assert "t: empty" in repr(a) and "Dim('t', domain=(0, None)" in repr(a.schema)
    assert a.schema.dim("t").domain == (0, None) and a.schema.dim("t").open == (False, True)
    assert a[...].shape == a["v"][...].shape == np.asarray(a).shape == a[2:5].shape == a[::-1].shape == (0, 3)
    assert list(a) == list(a["v"]) == []
    assert a.read().to_pandas().empty and a.read(where="v > 0").to_pandas().empty
    assert a.nonempty_domain is None and a.tile[0] is not None
    for look in (lambda: a[0], lambda: a[-1], lambda: a.loc[0], lambda: a.read({"t": 0})):
        with pytest.raises(gs.BoundsError):
            look()
    assert a.read({"t": (0, 0)}).shape == (0, 3) and len(a.points({"t": [0], "x": [0]})) == 0
    with pytest.raises(gs.BoundsError, match="no coordinate yet"):
        a.read({"t": (0, 0)}, clip="error")
    version = a.version
    assert version == a.delete(where="v > 0") and a.delete((...,)) == version + 1, "others may have written meanwhile"
    assert a.shape == (0, 3) and a.nonempty_domain is None
    with pytest.raises(gs.InputError, match="append the data"):
        a.write(np.zeros((2, 3)))


def test_boxes_cells_frames_and_streams_make_it_reach_to_what_they_write(uri: str) -> None:
    a = series(uri)
    a.write(np.ones((2, 3)), {"t": (1, 2)})
    assert a.domain[0] == (0, 2)
    a.write_cells({"t": [4], "x": [1]}, {"v": [5.0]})
    a.append(np.full((1, 3), 6.0))
    with a.writer({"t": (6, 7)}) as writer:
        writer.append(np.full(6, 7.0))
    with a.writer(order="any") as cells:
        cells.append({"t": [9, 8], "x": [0, 0], "v": [9.0, 8.0]})
    with a.writer(axis="t", every=2) as frames:
        frames.append(np.full(3, 10.0))
    expected = np.full((11, 3), -1.0)
    expected[1:3], expected[4, 1], expected[5], expected[6:8], expected[8, 0], expected[9, 0] = 1, 5, 6, 7, 8, 9
    expected[10] = 10
    assert a.shape == (11, 3) and np.array_equal(a[...], expected)
    assert np.array_equal(a[-1], expected[-1]) and [len(a.at(version=v)) for v in (1, 2, 3, 4)] == [0, 3, 5, 6]
    a.consolidate("all")
    a.delete((...,))
    assert gs.open(uri).shape == (11, 3), "it never shrinks"


def test_positions_never_make_it_grow(uri: str) -> None:
    a = series(uri)
    with pytest.raises(gs.InputError, match=r"\(0, 3\)"):
        a[0:2] = np.ones((2, 3))
    a.append(np.zeros((2, 3)))
    a[0:5] = 4.0
    assert a.shape == (2, 3) and (a[...] == 4).all()
    with pytest.raises(gs.BoundsError):
        a[2] = 1.0


@pytest.mark.parametrize(
    ("domain", "first", "after"),
    [((5, None), (5, 6), (5, 9)), ((None, 5), (4, 5), (4, 9)), ((None, None), (0, 1), (0, 9))],
)
def test_the_first_block_lies_at_the_end_that_is_closed(
    uri: str, domain: tuple[int | None, int | None], first: tuple[int, int], after: tuple[int, int]
) -> None:
    a = series(uri, domain)
    a.append(np.ones((2, 3)))
    assert a.domain[0] == first
    a.write(np.ones((1, 3)), {"t": (9, 9)}, grow=True)
    assert a.domain[0] == after


def test_a_closed_end_grows_only_if_it_is_told_to(uri: str) -> None:
    a = series(uri)
    for write in (
        lambda grow: a.write(np.zeros((1, 3)), {"t": (-4, -4)}, grow=grow),
        lambda grow: a.write_cells({"t": [-6], "x": [0]}, {"v": [1.0]}, grow=grow),
        lambda grow: a.write(np.zeros((1, 4)), {"t": (0, 0), "x": (0, 3)}, grow=grow),
    ):
        version = a.version
        with pytest.raises(gs.BoundsError, match="grow=True"):
            write(False)
        assert a.version == version
        assert write(True) == version + 1
    assert a.domain == ((-6, 0), (0, 3))


def test_times_that_go_on(uri: str) -> None:
    a = series(uri, ("2026-01-01", None), dtype="datetime64[D]")
    a.append(np.zeros((2, 3)))
    a.write(np.ones((1, 3)), {"t": ("2026-01-05", "2026-01-05")})
    assert a.domain[0] == (np.datetime64("2026-01-01"), np.datetime64("2026-01-05"))
    assert (a.loc["2026-01-05"] == 1).all() and a.read({"t": ("2026-01", None)}).shape == (5, 3)


def test_a_sparse_array_takes_places_anywhere(uri: str) -> None:
    dims = [gs.Dim("x", (None, None), dtype="float64"), gs.Dim("n", (0, None), dtype="uint8")]
    a = gs.create(uri, gs.Schema(dims, [gs.Attr("v", "int32")], sparse=True))
    assert a.read().to_pandas().empty and len(a.read({"x": slice(None)})) == 0
    a.write_cells({"x": [-1e300, 0.5], "n": [3, 255]}, {"v": [1, 2]})
    assert a.domain == ((-1e300, 0.5), (0, 255)) and a.schema.dim("x").domain == (-1e300, 0.5)
    frame = pd.DataFrame({"x": [1e-320], "n": [7], "v": [3]})
    a.append(frame)
    assert sorted(a.read().to_pandas().v) == [1, 2, 3]
    for infinite in (np.inf, np.nan):
        with pytest.raises(gs.GridstoneError):
            a.write_cells({"x": [infinite], "n": [0]}, {"v": [1]})


def test_files_are_loaded_into_an_open_array(uri: str, tmp_path: Path) -> None:
    dims = [gs.Dim("t", ("2026-01-01", None), dtype="datetime64[D]"), gs.Dim("x", (0, None))]
    gs.create(uri, gs.Schema(dims, [gs.Attr("v", "int32")], sparse=True))
    (tmp_path / "day.csv").write_text("t,x,v\n2026-01-01,5,1\n2026-01-03,9,2\n")
    a = gs.io.from_csv(uri, tmp_path / "day.csv", grow=False)
    assert a.domain == ((np.datetime64("2026-01-01"), np.datetime64("2026-01-03")), (0, 9))
    (tmp_path / "early.csv").write_text("t,x,v\n2025-12-31,5,1\n")
    with pytest.raises(gs.GridstoneError, match="2025-12-31"):
        gs.io.from_csv(uri, tmp_path / "early.csv", grow=False)


def test_the_schema_stays_open_through_copies_pickles_and_json(uri: str) -> None:
    a = series(uri)
    a.append(np.ones((4, 3)))
    schema = a.schema
    assert gs.Schema.from_json(schema.to_json()) == schema and gs.Schema.from_json(schema.to_json()).shape == (0, 3)
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema and again.shape == (4, 3) and again.dim("t").reach == (0, 3)
    assert pickle.loads(pickle.dumps(schema.dim("t"))).reach == (0, 3)
    fresh = gs.create(f"{uri}-2", schema)
    assert fresh.shape == (0, 3) and fresh.schema == schema
    gs.copy(uri, f"{uri}-3")
    copied = gs.open(f"{uri}-3", mode="r+")
    copied.append(np.zeros((1, 3)))
    assert copied.shape == (5, 3)


def test_the_first_block_of_an_open_dimension_may_bring_labels(uri: str) -> None:
    for number, labels in enumerate([None, np.array([], "datetime64[D]")]):
        dims = [gs.Dim("t", (0, None), labels=labels), gs.Dim("x", (0, 1))]
        a = gs.create(f"{uri}-{number}", gs.Schema(dims, [gs.Attr("v", "int8")]))
        days = np.array(["2026-01-01", "2026-01-03"], "datetime64[D]")
        a.append(np.array([[1, 2], [3, 4]]), labels=days)
        assert a.dim("t").labels.tolist() == days.tolist() and a.sel(t="2026-01-03")["v"].tolist() == [3, 4]
        with pytest.raises(gs.InputError, match="labels="):
            a.append(np.array([[5, 6]]))
        a.append(np.array([[5, 6]]), labels=np.array(["2026-02-01"], "datetime64[D]"))
        assert a.sel(t="2026-02")["v"].tolist() == [[5, 6]] and len(a.at(version=a.version - 1).dim("t").labels) == 2
        a.write(np.zeros((1, 2)), {"t": (4, 4)})
        assert np.isnat(a.dim("t").labels[3:]).tolist() == [True, True]


def test_labels_at_steps_go_on_along_an_open_dimension(uri: str) -> None:
    a = gs.create(uri, gs.Schema([gs.Dim("t", (0, None), labels=(100, 10))], [gs.Attr("v", "int8")]))
    a.append([1, 2])
    assert a.dim("t").labels.tolist() == [100, 110] and a.sel(t=110)["v"] == 2
    a.append([3], labels=[120])
    a.append([4], labels=[999])
    assert a.dim("t").labels.tolist() == [100, 110, 120, 999]


def test_a_transaction_grows_as_its_writes_say(uri: str) -> None:
    a = series(uri)
    with gs.transaction(uri) as tx:
        inside = tx["/"]
        inside.append(np.ones((2, 3)))
        inside.write(np.zeros((1, 3)), {"t": (5, 5)})
        assert inside.shape == (6, 3) and a.shape == (0, 3)
    a.refresh()
    assert a.shape == (6, 3)


def test_a_read_of_an_empty_array_in_a_transaction_conflicts_with_the_first_cells(uri: str) -> None:
    a = series(uri)
    with pytest.raises(gs.ConflictError), gs.transaction(uri, isolation="serializable") as tx:
        inside = tx["/"]
        assert inside.shape == (0, 3)
        a.append(np.ones((1, 3)))
        inside.write(np.zeros((1, 3)), {"t": (5, 5)})


def test_a_dense_open_dimension_gets_a_tile_beside_the_others() -> None:
    def tiles(*dims: gs.Dim, dtype: str = "float32") -> list[object]:
        return [dim.tile for dim in gs.Schema(dims, [gs.Attr("v", dtype)]).dims]

    cube = (gs.Dim("t", (0, None)), gs.Dim("lat", (0, 179)), gs.Dim("lon", (0, 359)))
    assert tiles(*cube) == [8, None, None]
    assert tiles(gs.Dim("t", (0, None)), gs.Dim("u", (None, None))) == [724, 724]
    assert tiles(gs.Dim("t", (0, None), tile=7)) == [7]
    with pytest.raises(gs.SchemaError, match="sparse=True"):
        tiles(gs.Dim("t", (0, None), dtype="float64"))


def test_a_tile_may_be_longer_than_the_domain(uri: str) -> None:
    a = gs.create(uri, gs.Schema([gs.Dim("x", (0, 2), tile=100)], [gs.Attr("v", "int16")]))
    a.write(np.arange(3))
    a.append(np.arange(3, 150))
    assert a.tile == (100,) and np.array_equal(a[...], np.arange(150))


def test_ends_that_contradict_are_refused() -> None:
    with pytest.raises(gs.SchemaError, match="a pair"):
        gs.Dim("t", (None, None, None))  # type: ignore[arg-type]
    with pytest.raises(gs.SchemaError, match="empty"):
        gs.Schema([gs.Dim("t", (5, 4))], [gs.Attr("v", "int8")])
    with pytest.raises(gs.SchemaError, match="open or empty a tile"):
        gs.Schema(
            [gs.Dim("x", (None, None), dtype="float64")], [gs.Attr("v", "int8")], sparse=True, cell_order="hilbert"
        )


@settings(max_examples=25, deadline=None)
@given(
    ends=st.sampled_from([(0, None), (None, 0), (None, None)]),
    tile=st.integers(1, 9),
    boxes=st.lists(st.tuples(st.integers(-30, 30), st.integers(1, 8)), min_size=1, max_size=6),
)
def test_any_boxes_agree_with_a_dictionary(
    ends: tuple[int | None, int | None], tile: int, boxes: list[tuple[int, int]]
) -> None:
    a = gs.create(f"mem://{uuid.uuid4()}", gs.Schema([gs.Dim("t", ends, tile=tile)], [gs.Attr("v", "int64", fill=-9)]))
    told: dict[int, int] = {}
    for number, (low, count) in enumerate(boxes):
        a.write(np.full(count, number), {"t": (low, low + count - 1)}, grow=True)
        told.update(dict.fromkeys(range(low, low + count), number))
        reach = [*told, *(end for end in ends if end is not None)]
        assert a.domain == ((min(reach), max(reach)),)
        assert list(a[...]) == [told.get(t, -9) for t in range(min(reach), max(reach) + 1)]
    a.consolidate("all")
    assert list(a[...]) == [told.get(t, -9) for t in range(min(reach), max(reach) + 1)]
