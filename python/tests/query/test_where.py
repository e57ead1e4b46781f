"""Reads with a condition: the cells that it selects, how little is read for them, what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone.errors import BudgetError, ConflictError, InputError


@pytest.fixture
def ships(stores: Stores) -> gs.Array:
    """60,000 cells in two fragments, the speed growing with x."""
    schema = gs.Schema(
        [gs.Dim("x", (0, 99_999)), gs.Dim("y", (0, 9))],
        [gs.Attr("sog", "int32"), gs.Attr("name", "string", nullable=True), gs.Attr("noise", "int64", filters="none")],
        sparse=True,
        capacity=1_000,
    )
    array = gs.create(stores("ships"), schema)
    for start in (0, 30_000):
        x = np.arange(start, start + 30_000)
        name = np.ma.MaskedArray(np.array([f"ship {v % 7}" for v in x], object), x % 5 == 0)
        array.write_cells({"x": x, "y": x % 10}, {"sog": x // 100, "name": name, "noise": x * 1_234_567_891})
    return array


def test_a_sparse_read_gives_the_cells_selected(ships: gs.Array) -> None:
    every = ships.read(order="global").to_pandas()
    for where, query in [
        ("sog > 590", "sog > 590"),
        ("sog between 100 and 101 and name == 'ship 3'", "100 <= sog <= 101 and name == 'ship 3'"),
        (gs.col("name").is_null() & (gs.col("x") < 40), "name.isna() and x < 40"),
        ("x >= 59990", "x >= 59990"),
        ("sog == 3 or y == 4 and x > 59000", "sog == 3 or y == 4 and x > 59000"),
        ("true", "x >= 0"),
    ]:
        expected = every.query(query, engine="python").reset_index(drop=True)
        assert len(expected) > 0
        found = ships.read(where=where)
        assert found.to_pandas().equals(expected), where
        assert ships.scan(where=where, order="row", batch_bytes=100_000).to_pandas().equals(expected), where
        assert sum(batch.num_rows for batch in ships.scan(where=where, batch_bytes="1KiB")) == len(expected)
    few = ships.read({"x": (0, 500)}, "noise", "sog < 2", "col")
    assert list(few) == ["x", "y", "noise"] and few["x"].tolist() == sorted(range(200), key=lambda x: (x % 10, x))


def test_what_statistics_rule_out_is_not_read(ships: gs.Array) -> None:
    reader = gs.open(ships.uri)
    every = reader.read(attrs="noise").stats
    found = reader.read(attrs="noise", where="sog > 590").stats
    assert found["cells_returned"] == 900
    # One of the two fragments is not opened.
    assert found["fragments_pruned"] == 1 and found["tiles_pruned"] == 29 and found["tiles_read"] == 1
    assert found["bytes_fetched"] < every["bytes_fetched"] / 30
    none = reader.read(attrs="noise", where="sog between 100 and 500 and name == 'ship 33'").stats
    # Statistics do not tell; the names do, and nothing else is fetched.
    assert none["cells_returned"] == 0 and none["blocks_rejected"] > 30
    assert none["bytes_fetched"] < every["bytes_fetched"] / 4
    nothing = reader.read(where="sog > 3 and false").stats
    assert nothing["bytes_fetched"] == nothing["fragments_considered"] == 0


def test_a_newer_cell_that_is_not_selected_hides_an_older_one(stores: Stores) -> None:
    for duplicates in (False, True):
        for cache in (0, "256MiB"):
            context = gs.Context(cache=cache)
            schema = gs.Schema(
                [gs.Dim("x", (0, 99_999))], [gs.Attr("v", "float64")], sparse=True, capacity=100, duplicates=duplicates
            )
            array = gs.create(stores(f"{duplicates}{cache}"), schema, context=context)
            x = np.arange(30_000)
            array.write_cells({"x": x}, {"v": x * 1.0})
            # The statistics of these tiles rule the condition out.
            array.write_cells({"x": x[10_000:20_000]}, {"v": np.zeros(10_000)})
            found = array.read(where="v >= 15000")
            kept = np.arange(15_000 if duplicates else 20_000, 30_000)
            assert found["x"].tolist() == kept.tolist() and found["v"].tolist() == kept.tolist()
            # Small fragments are held decoded where there is a cache.
            assert (array.read(where="v >= 20000").stats["tiles_pruned"] > 0) == (cache == 0)
            assert array.read(where="v < 0")["x"].size == 0


def test_a_dense_read_gives_cells(stores: Stores) -> None:
    y, x = np.mgrid[0:40, 0:60]
    grid = (y * 60 + x).astype(np.int32)
    array = gs.array(stores("a"), grid, tile=(7, 9))
    for order in ("row", "col"):
        found = array.read({"d0": (3, 33), "d1": (5, 50)}, where="value > 1500 and value != 1600", order=order)
        keep = (grid > 1500) & (grid != 1600) & (y >= 3) & (y <= 33) & (x >= 5) & (x <= 50)
        places = np.argwhere(keep) if order == "row" else np.argwhere(keep.T)[:, ::-1]
        assert found.shape is None and list(found) == ["d0", "d1", "value"]
        assert np.array_equal(np.stack([found["d0"], found["d1"]], 1), places)
        assert np.array_equal(found["value"], grid[keep] if order == "row" else grid.T[keep.T])
        box = found.to_dense(fill=-1)
        assert np.array_equal(box, np.where(keep, grid, -1)[3:34, 5:51])
    assert np.array_equal(array[...], grid) and np.array_equal(array["value"][2:5], grid[2:5])
    tiles = array.read(where="value < 9").stats
    assert tiles["tiles_pruned"] == 41 and tiles["cells_returned"] == 9
    table = array.scan(where="value >= 2390", order="row").to_arrow()
    assert table.column("value").to_pylist() == list(range(2390, 2400))


def test_unwritten_cells_are_what_they_read_as(stores: Stores) -> None:
    schema = gs.Schema(
        [gs.Dim("y", (0, 99), tile=10), gs.Dim("x", (0, 99), tile=10)],
        [gs.Attr("v", "int16", fill=5), gs.Attr("w", "float64", nullable=True)],
    )
    array = gs.create(stores("a"), schema)
    assert len(array.read(where="v == 5")) == 10_000 and len(array.read(where="w is null and v > 5")) == 0
    array.write({"v": np.full((20, 20), 7, np.int16)}, {"y": (5, 24), "x": (5, 24)})
    array.write_cells({"y": [0, 6], "x": [0, 6]}, {"w": [1.5, 2.5]})
    assert len(array.read(where="v == 5")) == 9_600 and len(array.read(where="v == 7")) == 400
    found = array.read(where="w is not null")
    assert found["v"].tolist() == [5, 7] and found["w"].tolist() == [1.5, 2.5]
    array.delete({"y": (0, 9)})
    assert len(array.read(where="v == 7")) == 300 and len(array.read(where="w is not null")) == 0


def test_a_wide_domain_costs_what_was_written(stores: Stores) -> None:
    wide = (-(2**62), 2**62)
    schema = gs.Schema([gs.Dim("y", wide, tile=50), gs.Dim("x", wide, tile=50)], [gs.Attr("v", "int64")])
    array = gs.create(stores("a"), schema)
    for corner in (-(2**62), 2**62 - 9, 0):
        array.write(np.full((10, 10), 3), {"y": (corner, corner + 9), "x": (corner, corner + 9)})
    assert len(array.read(where="v > 2")) == 300
    assert sum(batch.num_rows for batch in array.scan(where="v > 2")) == 300
    with pytest.raises(BudgetError, match="never written"):
        array.read(where="v < 2")


def test_boxes_of_unwritten_cells_pass_no_budget(stores: Stores) -> None:
    """What boxes, or a condition on coordinates, surely select of cells that were never written is counted."""
    dims = [gs.Dim(name, (0, 2**40), tile=1_000) for name in "yx"]
    schema = gs.Schema(dims, [gs.Attr("v", "int64")])
    array = gs.create(stores("a"), schema, context=gs.Context("64MiB"))
    array.write(np.full((10, 10), 3), {"y": (0, 9), "x": (0, 9)})
    low, high = {"y": (0, 1_499), "x": (0, 1_499)}, {"y": (10**9, 10**9 + 1_499), "x": (0, 1_499)}
    apart = {"y": (5_000, 6_499), "x": (7_000, 8_499)}
    for damaged in ("error", "skip"):
        with pytest.raises(BudgetError, match="never written"):
            array.read([low, high], damaged=damaged)  # type: ignore[arg-type]
        with pytest.raises(BudgetError, match="never written"):
            array.read([low, apart, high], where="v < 5", damaged=damaged)  # type: ignore[arg-type]
    sides = "(y < 1200 or y between 100000 and 101199) and (x < 1200 or x between 5000 and 6199)"
    with pytest.raises(BudgetError, match="never written"):
        array.read(where=sides)
    many = [{"y": (n * 10**6, n * 10**6 + 499), "x": (n * 3 * 10**6, n * 3 * 10**6 + 499)} for n in range(500)]
    with pytest.raises(BudgetError, match="never written"):
        array.read(many)
    assert len(array.read(many, where="v > 2")) == 100
    # The same box over and over is no more than one, and what leaves out the fill costs what was written.
    assert len(array.read([{"y": (0, 99 + n % 3), "x": (0, 99)} for n in range(5_000)])) == 102 * 100
    assert len(array.read([low, high], where="v > 0")) == 100
    batches = array.scan([{"y": (0, 99), "x": (0, 99)}, apart], where="y < 5100")
    assert sum(batch.num_rows for batch in batches) == 160_000


def test_what_is_refused(ships: gs.Array, stores: Stores) -> None:
    grid = gs.array(stores("g"), np.zeros((4, 4)))
    with pytest.raises(InputError, match="without out="):
        grid.read(where="value > 1", out=np.zeros((4, 4)))
    for array in (ships, grid):
        with pytest.raises(InputError, match="did you mean"):
            array.read(where="soog > 1" if array.sparse else "valeu > 1")
        with pytest.raises(InputError, match="did you mean"):
            array.scan(where="soog > 1" if array.sparse else "valeu > 1")
    with pytest.raises(InputError, match="did you mean"):
        ships.read({"x": slice(5, 5)}, where="soog > 1")
    with pytest.raises(InputError, match="expected a value"):
        ships.read(where="sog >")
    wrong: Any = 3
    with pytest.raises(InputError, match="not int"):
        ships.scan(where=wrong)
    assert len(ships.read({"x": slice(5, 5)}, where="sog > 1")) == 0
    assert ships.scan({"x": slice(5, 5)}, where="sog > 1").to_arrow().num_rows == 0


def test_transactions_see_what_they_staged_and_note_what_they_read(ships: gs.Array) -> None:
    uri = ships.uri
    with gs.transaction(uri) as tx:
        tx["/"].write_cells(
            {"x": [70_000, 5], "y": [0, 5]}, {"sog": [9_999, 9_999], "name": ["a", "b"], "noise": [0, 0]}
        )
        assert tx["/"].read(where="sog > 9000")["x"].tolist() == [5, 70_000]
        assert len(gs.open(uri).read(where="sog > 9000")) == 0
    assert len(gs.open(uri).read(where="sog > 9000")) == 2
    for within, clashes in [(80_000, True), (10, False)]:
        tx = gs.transaction(uri, isolation="serializable")
        with pytest.raises(ConflictError) if clashes else np.errstate(), tx:
            assert len(tx["/"].read(attrs="sog", where="x > 75000 and sog > 0")) == 0
            other = gs.open(uri, mode="r+")
            other.write_cells({"x": [within], "y": [3]}, {"sog": [0], "name": ["c"], "noise": [0]})
            tx["/"].write_cells({"x": [90_000], "y": [1]}, {"sog": [0], "name": ["d"], "noise": [0]})
            tx["/"].delete(coords={"x": [90_000], "y": [1]})


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(-3, 3)), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(-3, 3),
    st.sampled_from(["<", ">=", "==", "!="]),
)
def test_to_dense_shows_the_newest_selected_value(
    stores: Stores, cells: list[tuple[int, int]], parts: int, limit: int, sign: str
) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 50), tile=8)], [gs.Attr("v", "int8")], sparse=True, capacity=3)
    array = gs.create(stores("to-dense"), schema, overwrite=True)
    now = np.full(51, 99, np.int64)
    for part in np.array_split(np.array(cells), parts):
        if len(part):
            array.write_cells({"x": part[:, 0]}, {"v": part[:, 1].astype(np.int8)}, dedup="last")
            for x, v in part:
                now[x] = v
    keep = {"<": now < limit, ">=": now >= limit, "==": now == limit, "!=": now != limit}[sign] & (now != 99)
    found = array.read(where=f"v {sign} {limit}").to_dense(fill=77)
    assert found.tolist() == np.where(keep, now, 77).tolist()
