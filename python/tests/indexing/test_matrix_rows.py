"""Rows and columns of a sparse matrix, chosen in brackets, with SciPy as the judge."""

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import Stores

import gridstone as gs
from gridstone import io

sps = pytest.importorskip("scipy.sparse")

FORMATS = ["csr", "csc", "coo"]
NUMBERS = itertools.count()
LOWS: list[tuple[str, Any]] = [
    ("int64", 0),
    ("int64", -(2**63)),
    ("int32", -7),
    ("int8", 100),
    ("uint64", 2**64 - 30),
    ("uint16", 3),
    ("datetime64[D]", np.datetime64("1969-12-25")),
]


def matrix(shape: tuple[int, int] = (50, 70), density: float = 0.1, seed: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    return sps.csr_array((rng.random(shape) < density) * rng.integers(1, 100, shape))


def stored(m: Any, rows: tuple[str, Any], cols: tuple[str, Any], **options: Any) -> gs.Array:
    """The matrix as an array whose dimensions begin at these coordinates."""
    dims = [
        gs.Dim(name, (low, low + (side - 1)), dtype=dtype)
        for name, side, (dtype, low) in zip(("r", "c"), m.shape, (rows, cols), strict=True)
    ]
    schema = gs.Schema(dims, [gs.Attr("v", "int64"), gs.Attr("w", "int8")], sparse=True, capacity=7, **options)
    array = gs.create(f"mem://matrix-rows-{next(NUMBERS)}", schema)
    found = m.tocoo()
    places = [
        (np.array([low]) + at).astype(dtype) if dtype != "uint64" else at.astype("uint64") + np.uint64(low)
        for at, (dtype, low) in zip(found.coords, (rows, cols), strict=True)
    ]
    array.write_cells(tuple(places), {"v": found.data, "w": np.zeros(m.nnz)})
    return array


def keys(size: int) -> st.SearchStrategy[Any]:
    """What may be asked for along an axis of so many positions."""
    position = st.integers(-size, size - 1)
    bound = st.none() | st.integers(-size - 2, size + 2)
    return st.one_of(
        position,
        st.builds(slice, bound, bound, st.none() | st.integers(-4, 4).filter(bool)),
        st.lists(position, max_size=8),
        st.lists(position, max_size=8).map(lambda found: np.array(found, np.int64)),
        st.lists(st.integers(0, size - 1), max_size=8).map(lambda found: np.array(found, np.uint8)),
        st.lists(st.booleans(), min_size=size, max_size=size).map(lambda found: np.array(found, bool)),
    )


def positions(key: Any, size: int) -> np.ndarray:
    return np.atleast_1d(np.arange(size)[key if isinstance(key, slice | int) else np.asarray(key, _kind(key))])


def _kind(key: Any) -> Any:
    return None if isinstance(key, np.ndarray) else np.int64


def agree(found: gs.Result, m: Any, rows: Any, cols: Any) -> None:
    """What was chosen is what SciPy chooses."""
    rows, cols = positions(rows, m.shape[0]), positions(cols, m.shape[1])
    expected = m[rows][:, cols]
    for form in FORMATS:
        made = found.to_scipy("v", format=form)
        assert (made.format, made.shape, made.nnz) == (form, (rows.size, cols.size), expected.nnz)
        np.testing.assert_array_equal(made.toarray(), expected.toarray())
        made.asformat("csr").check_format(full_check=True)
    assert found.to_scipy("v").format == "coo"
    np.testing.assert_array_equal(found.to_dense()["v"], expected.toarray())
    # The cells themselves, each once, in row order.
    once = np.ix_(np.unique(rows), np.unique(cols))
    there = np.argwhere(m.toarray()[once])
    low = [dim.domain[0] for dim in found._schema.dims]
    for axis, along in enumerate((np.unique(rows), np.unique(cols))):
        name = ("r", "c")[axis]
        asked = [low[axis] + int(at) for at in along[there[:, axis]]]
        assert found[name].tolist() == np.array(asked, found[name].dtype).tolist()


@given(data=st.data())
def test_rows_and_columns_are_those_that_scipy_gives(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    m = matrix(shape, data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])), data.draw(st.integers(0, 99)))
    ends = [data.draw(st.sampled_from(LOWS)) for _ in range(2)]
    array = stored(m, *ends, duplicates=data.draw(st.booleans()))
    rows, cols = data.draw(keys(shape[0])), data.draw(keys(shape[1]))
    agree(array.oindex[rows, cols], m, rows, cols)
    agree(array.oindex[rows], m, rows, slice(None))
    lists = [key for key in (rows, cols) if not isinstance(key, int | slice)]
    if len(lists) < 2:
        agree(array[rows, cols], m, rows, cols)
    agree(array[rows], m, rows, slice(None))
    agree(array[:, cols], m, slice(None), cols)


@given(data=st.data())
def test_arrays_of_three_dimensions_are_as_numpy_gives_them(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * 3))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 3, shape)
    dims = [gs.Dim(name, (5, 4 + side)) for name, side in zip("xyz", shape, strict=True)]
    attr = gs.Attr("v", "int64", nullable=data.draw(st.booleans()))
    array = gs.create(f"mem://matrix-rows-{next(NUMBERS)}", gs.Schema(dims, [attr], sparse=True))
    places = np.nonzero(values)
    array.write_cells(tuple(at + 5 for at in places), values[places])
    key = tuple(data.draw(keys(side)) for side in shape)
    chosen = np.ix_(*[positions(part, side) for part, side in zip(key, shape, strict=True)])
    found = array.oindex[key].to_dense()
    np.testing.assert_array_equal(np.ma.filled(found, 0), values[chosen])
    if attr.nullable:
        np.testing.assert_array_equal(np.ma.getmaskarray(found), values[chosen] == 0)
    sparse = pytest.importorskip("sparse")
    made = array.oindex[key].to_sparse()
    assert isinstance(made, sparse.COO) and made.shape == values[chosen].shape
    np.testing.assert_array_equal(made.todense(), values[chosen])


def test_a_batch_of_random_rows_for_training(stores: Stores) -> None:
    m = matrix((200, 300), 0.05)
    array = io.from_scipy(stores("m"), m)
    rows = np.random.default_rng(0).integers(0, 200, 64)
    batch = array[rows].to_scipy(format="csr")
    assert batch.shape == (64, 300) and batch.dtype == m.dtype and (batch != m[rows]).nnz == 0
    genes = [7, 3, 3, -1]
    part = array.oindex[rows, genes].to_scipy(format="csc")
    assert part.shape == (64, 4) and (part != m[rows][:, genes]).nnz == 0
    assert array[[]].to_scipy(format="csr").shape == (0, 300)
    assert array[5].to_scipy(format="csr").shape == (1, 300)
    assert array[::-1, 10:20].to_scipy(format="csr").shape == (200, 10)
    assert (array[::-1].to_scipy(format="csr") != m[::-1]).nnz == 0
    mask = np.arange(200) % 3 == 1
    assert (array[mask].to_scipy(format="csr") != m[mask]).nnz == 0
    assert (pickle.loads(pickle.dumps(array[rows])).to_scipy(format="csr") != batch).nnz == 0


def test_of_rows_and_columns_only_the_blocks_are_read_that_hold_them(stores: Stores) -> None:
    m = matrix((400, 200), 0.2)
    array = io.from_scipy(stores("m"), m)
    rows, cols = [*range(0, 60, 2), *range(340, 400, 2)], list(range(0, 200, 5))
    found = array.oindex[rows, cols]
    assert (found.to_scipy(format="csr") != m[rows][:, cols]).nnz == 0
    # A row has forty cells, a block 1,024; between the rows lie ten blocks that hold none of them.
    assert found.stats["cells_scanned"] <= 7 * 1_024 < m.nnz / 2
    mask = np.arange(400) % 2 == 1
    assert (array[mask].to_scipy(format="csr") != m[mask]).nnz == 0


def test_what_coordinates_are_stays(stores: Stores) -> None:
    """Tables name the cells by their coordinates, each once, whatever was repeated."""
    m = matrix((20, 30), 0.2)
    array = io.from_scipy(stores("m"), m)
    found = array[[4, 2, 4]]
    for table in (found.to_numpy(), found.to_arrow().to_pydict(), found.to_pandas().to_dict("list")):
        assert list(table["row"]) == sorted([2] * m[[2]].nnz + [4] * m[[4]].nnz)
    assert found.to_scipy().nnz == m[[4, 2, 4]].nnz > len(found)


def test_cells_at_one_place_are_repeated_as_one(stores: Stores) -> None:
    given_twice = sps.coo_array(([1.0, 2.0, 5.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 3))
    array = io.from_scipy(stores("k"), given_twice, duplicates=True)
    for repeats, value in (("last", 2.0), ("first", 1.0), ("sum", 3.0)):
        for form in FORMATS:
            made = array[[2, 0, 0]].to_scipy(format=form, repeats=repeats)
            assert made.toarray().tolist() == [[5, 0, 0], [0, value, 0], [0, value, 0]] and made.nnz == 3
    with pytest.raises(gs.errors.InputError, match="several cells"):
        array[[2, 0]].to_scipy(format="csr", repeats="error")


def test_boxes_and_dense_ones_have_formats_too(stores: Stores) -> None:
    m = matrix((20, 30), 0.2)
    loose, dense = io.from_scipy(stores("s"), m), io.from_scipy(stores("d"), m, sparse=False)
    for array in (loose, dense):
        for form in FORMATS:
            made = array.read({"row": (3, 9)}).to_scipy(format=form)
            assert made.format == form and (made != m[3:10]).nnz == 0
        with pytest.raises(gs.errors.InputError, match="format"):
            array.read().to_scipy(format="lil")
    assert loose.scan().to_scipy(format="csr").format == "csr"
    with pytest.raises(gs.errors.InputError, match="repeats"):
        loose[[1]].to_scipy(format="csr", repeats="mean")


def test_a_matrix_of_a_million_rows_and_more(stores: Stores) -> None:
    size = 10**12
    m = sps.coo_array((np.arange(4.0) + 1, ([0, 5, 10**11, size - 1], [3, 2, 1, size - 1])), shape=(size, size))
    array = io.from_scipy(stores("m"), m)
    made = array.oindex[[-1, 10**11, 7, -1], [-1, 1]].to_scipy(format="csr")
    assert made.toarray().tolist() == [[4, 0], [0, 3], [0, 0], [4, 0]]
    assert array[:: 10**11].to_scipy().shape == (10, size)
    assert array[:, 1:4].to_scipy().shape == (size, 3)
    assert array[:6, :4].to_scipy(format="csr").toarray().sum() == 3


def test_a_float_dimension_has_no_rows(stores: Stores) -> None:
    schema = gs.Schema(
        [gs.Dim("x", (0.0, 9.0), dtype="float64"), gs.Dim("y", (0, 9))], [gs.Attr("v", "int64")], sparse=True
    )
    array = gs.create(stores("f"), schema)
    array.write_cells(([0.5, 2.5], [3, 4]), np.array([1, 2]))
    found = array[:, [4, 3]]
    assert found["y"].tolist() == [3, 4]
    with pytest.raises(gs.errors.SchemaError):
        found.to_scipy(format="csr")
