"""More rows of a matrix into an array that is there, and how its cells lie."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone import cli, io
from gridstone.errors import BoundsError, ExistsError, InputError

sps = pytest.importorskip("scipy.sparse")

rng = np.random.default_rng(7)


def matrix(shape: tuple[int, int] = (20, 30), density: float = 0.2) -> Any:
    return sps.csr_array((rng.random(shape) < density) * rng.integers(1, 100, shape))


def empty(uri: str, rows: tuple[Any, Any] = (0, 99), **options: Any) -> gs.Array:
    dims = [gs.Dim("row", rows, **options), gs.Dim("col", (0, 29))]
    return gs.create(uri, gs.Schema(dims, [gs.Attr("value", "int64")], sparse=True))


def same(array: gs.Array, m: Any) -> bool:
    found = array.read().to_scipy()
    return found.shape == m.shape and (found != m).nnz == 0


# Rows behind rows.


def test_batches_of_rows_one_behind_the_other(store_uri: str) -> None:
    whole = matrix((100, 30))
    empty(store_uri)
    for first in range(0, 100, 25):
        array = io.from_scipy(store_uri, whole[first : first + 25], offset=first)
    assert same(array, whole)


def test_rows_that_would_be_written_over_are_refused(store_uri: str) -> None:
    first, second = matrix(), matrix()
    io.from_scipy(store_uri, first)
    with pytest.raises(InputError, match=r"has cells in row 0 to 19.*offset=.*overwrite=True"):
        io.from_scipy(store_uri, second)
    array = gs.open(store_uri)
    assert isinstance(array, gs.Array) and same(array, first)
    array = gs.open(store_uri, mode="r+")
    array.resize(row=(0, 39))
    assert same(io.from_scipy(store_uri, second, offset=20), sps.vstack([first, second]))
    # On purpose.
    both = first.toarray()
    both[second.toarray() != 0] = second.toarray()[second.toarray() != 0]
    again = io.from_scipy(store_uri, second, offset=0).read({"row": (0, 19)}).to_dense()
    np.testing.assert_array_equal(again, both)
    assert same(io.from_scipy(store_uri, second, overwrite=True), second)


@pytest.mark.parametrize("duplicates", [False, True])
def test_rows_that_hold_nothing_are_free(store_uri: str, duplicates: bool) -> None:
    m = matrix()
    io.from_scipy(store_uri, m, offset=(50, 0), duplicates=duplicates)
    low = io.from_scipy(store_uri, m, duplicates=duplicates)
    assert same(low, sps.vstack([m, sps.csr_array((30, 30)), m]))
    with pytest.raises(InputError, match="offset="):
        io.from_scipy(store_uri, m, duplicates=duplicates)
    with gs.open(store_uri, mode="r+") as array:
        assert isinstance(array, gs.Array)
        array.delete({"row": (0, 19)})
    assert same(io.from_scipy(store_uri, m), sps.vstack([m, sps.csr_array((30, 30)), m]))


def test_a_matrix_without_values_replaces_nothing(store_uri: str) -> None:
    m = matrix()
    io.from_scipy(store_uri, m)
    assert same(io.from_scipy(store_uri, sps.csr_array((20, 30), dtype=m.dtype)), m)


@pytest.mark.parametrize("kind", ["int16", "uint64", "float64", "datetime64[D]", "timedelta64[s]"])
def test_rows_of_every_kind_are_looked_at(store_uri: str, kind: str) -> None:
    ends = ("1969-12-01", "1970-12-31") if kind == "datetime64[D]" else (0, 99)
    empty(store_uri, ends, dtype=kind)
    io.from_scipy(store_uri, matrix(), offset=10)
    with pytest.raises(InputError, match="offset="):
        io.from_scipy(store_uri, matrix())
    io.from_scipy(store_uri, matrix((10, 30)))


def test_rows_of_dense_arrays_are_looked_at(store_uri: str) -> None:
    m = matrix()
    io.from_scipy(store_uri, m, sparse=False)
    with pytest.raises(InputError, match="offset="):
        io.from_scipy(store_uri, m)
    io.from_scipy(store_uri, m[:5], offset=(15, 0))
    expected = m.toarray()
    block = m[:5].toarray()
    expected[15:][block != 0] = block[block != 0]
    array = gs.open(store_uri)
    assert isinstance(array, gs.Array) and np.array_equal(array[...], expected)


def test_a_load_with_a_key_is_repeated(store_uri: str, stores: Stores) -> None:
    """Its own cells are not those of another."""
    m, more = matrix(), matrix()
    first = io.from_scipy(store_uri, m, commit_key="m")
    assert io.from_scipy(store_uri, m, commit_key="m").version == first.version
    with pytest.raises(InputError, match="offset="):
        io.from_scipy(store_uri, more, commit_key="more")
    empty(stores("made"))
    version = io.from_scipy(stores("made"), m, commit_key="m").version
    io.from_scipy(stores("made"), more, offset=30)
    assert io.from_scipy(stores("made"), m, commit_key="m").version >= version
    assert len(gs.open(stores("made")).history()) == 3


def test_offsets_go_anywhere(store_uri: str) -> None:
    """A block of a matrix, beside and below others; a new array begins at 0, or at what is below that."""
    blocks = {(0, 0): matrix((5, 6)), (0, 6): matrix((5, 4)), (5, 0): matrix((3, 6)), (5, 6): matrix((3, 4))}
    dims = [gs.Dim("row", (0, 7)), gs.Dim("col", (0, 9))]
    gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True))
    for offset, block in blocks.items():
        array = io.from_scipy(store_uri, block, offset=offset)
    found = list(blocks.values())
    assert same(array, sps.block_array([found[:2], found[2:]]))
    made = io.from_scipy("mem://offsets-1", matrix(), offset=np.array([5, -2]), overwrite=True)
    assert made.domain == ((0, 24), (-2, 27)) and made.nonempty_domain is not None
    assert made.read()["col"].min() < 0 and made.read()["row"].min() == 5


@pytest.mark.parametrize(
    ("offset", "words"),
    [("5", "number of the first row"), (1.5, "number"), (True, "number"), ((1, 2, 3), "3 numbers"), (2**63, "int64")],
)
def test_what_is_no_offset(store_uri: str, offset: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        io.from_scipy(store_uri, matrix(), offset=offset)
    assert not gs.exists(store_uri)


def test_beyond_the_domain_is_an_error(store_uri: str) -> None:
    m = matrix()
    io.from_scipy(store_uri, m)
    with pytest.raises((InputError, BoundsError), match="outside the domain"):
        io.from_scipy(store_uri, m, offset=10, grow=False)
    array = gs.open(store_uri)
    assert isinstance(array, gs.Array) and same(array, m)


def test_files_of_matrices_are_appended(store_uri: str, stores: Stores, tmp_path: Path, capfd: Any) -> None:
    m = matrix()
    mmio = pytest.importorskip("scipy.io")
    mmio.mmwrite(str(tmp_path / "m.mtx"), m)
    sps.save_npz(str(tmp_path / "m.npz"), m)
    for uri, load, file in ((store_uri, io.from_mtx, "m.mtx"), (stores("npz"), io.from_npz, "m.npz")):
        empty(uri)
        load(uri, tmp_path / file)
        with pytest.raises(InputError, match="offset="):
            load(uri, tmp_path / file)
        load(uri, tmp_path / file, offset=40)
        assert cli.run(["load", uri, str(tmp_path / file)]) == 2
        assert "--offset" in capfd.readouterr().err
        assert cli.run(["load", uri, str(tmp_path / file), "--offset", "60,0"]) == 0
        assert gs.open(uri).read()["row"].max() >= 60
    assert cli.run(["load", store_uri, str(tmp_path / "m.mtx"), "--offset", "x"]) == 2
    (tmp_path / "t.csv").write_text("row,col,value\n1,2,3\n")
    assert cli.run(["load", store_uri, str(tmp_path / "t.csv"), "--offset", "5"]) == 2
    np.savez(tmp_path / "plain.npz", v=np.zeros((2, 2)))
    with pytest.raises(InputError, match="box="):
        io.from_npz(stores("plain"), tmp_path / "plain.npz", offset=3)
    mmio.mmwrite(str(tmp_path / "dense.mtx"), np.ones((2, 2)))
    with pytest.raises(InputError, match="dense matrix"):
        io.from_mtx(stores("dense"), tmp_path / "dense.mtx", offset=3)


# How cells lie.


def test_the_layout_is_by_rows_unless_asked_otherwise(stores: Stores) -> None:
    m = matrix((300, 400), 0.3)
    made = {by: io.from_scipy(stores(f"l-{by}"), m, by=by, capacity=1000) for by in (None, "rows", "cols", "boxes")}
    assert [made[by].tile for by in (None, "rows", "cols")] == [(None, None)] * 3
    assert [made[by].schema.cell_order for by in made] == ["row", "row", "col", "row"]
    assert None not in made["boxes"].tile and made[None].schema == made["rows"].schema
    for array in made.values():
        assert same(array, m)
        assert (array[[7, 3]].to_scipy(format="csr") != m[[7, 3]]).nnz == 0
        assert (array[:, [7, 3]].to_scipy(format="csc") != m[:, [7, 3]]).nnz == 0
    assert made["rows"].tiles({"row": (5, 5)}).num_rows < made["boxes"].tiles({"row": (5, 5)}).num_rows
    assert made["cols"].tiles({"col": (5, 5)}).num_rows < made["boxes"].tiles({"col": (5, 5)}).num_rows


def test_tiles_are_those_that_were_asked_for(stores: Stores) -> None:
    m = matrix()
    for n, (tile, expected) in enumerate([(8, (8, 8)), ((4, None), (4, None)), (None, (None, None)), (99, (20, 30))]):
        array = io.from_scipy(stores(f"t{n}"), m, tile=tile)
        assert array.tile == expected and same(array, m)
        dense = io.from_scipy(stores(f"d{n}"), m, tile=tile, sparse=False)
        assert dense.tile == expected and np.array_equal(dense[...], m.toarray())
    assert io.from_scipy(stores("c"), m, tile=8, by="cols").schema.cell_order == "col"
    sparse = pytest.importorskip("sparse")
    cube = sparse.COO(np.array([[0, 1], [2, 0], [1, 1]]), [1, 2], shape=(4, 5, 6))
    assert io.from_scipy(stores("cube"), cube, tile=(2, 5, 3)).tile == (2, 5, 3)
    assert io.from_scipy(stores("cubes"), cube).tile == (None, None, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tile": "big"}, "tile"),
        ({"tile": 0}, "1 and more"),
        ({"tile": (1, 2, 3)}, "2 sides"),
        ({"tile": 1.5}, "2 sides"),
        ({"by": "row"}, "'rows', 'cols', 'boxes'"),
        ({"by": "rows", "sparse": False}, "dense"),
    ],
)
def test_what_is_no_layout(store_uri: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        io.from_scipy(store_uri, matrix(), **options)
    assert not gs.exists(store_uri)


def test_a_layout_is_for_new_arrays(store_uri: str) -> None:
    schema = empty(store_uri).schema
    for options in ({"by": "cols"}, {"tile": 5}):
        with pytest.raises(InputError, match="new arrays"):
            io.from_scipy(store_uri, matrix(), **options)
        with pytest.raises(InputError, match="new arrays"):
            io.from_scipy("mem://layout-none", matrix(), schema=schema, **options)
    other = gs.Schema([gs.Dim("r", (0, 9))], [gs.Attr("v", "int8")], sparse=True)
    with pytest.raises(ExistsError):
        io.from_scipy(store_uri, matrix(), schema=other)
