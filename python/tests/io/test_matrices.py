"""Sparse matrices and NumPy's files in and out, and what results make of them."""

import gzip
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from places import Stores

import gridstone as gs
from gridstone import io

sps = pytest.importorskip("scipy.sparse")

rng = np.random.default_rng(11)
FORMATS = ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"]
DTYPES = ["bool", "int8", "uint16", "int64", "uint64", "float32", "float64", "complex64", "complex128"]


def matrix(shape: tuple[int, int] = (50, 70), density: float = 0.1, dtype: str = "float64") -> Any:
    values = (rng.random(shape) < density) * rng.integers(1, 100, shape)
    return sps.coo_array(values.astype(dtype))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.filterwarnings("ignore:Constructing a DIA")
def test_every_format(store_uri: str, form: str, legacy: bool) -> None:
    given = matrix().asformat(form)
    given = getattr(sps, f"{form}_matrix")(given) if legacy else given
    array = io.from_scipy(store_uri, given)
    assert array.dims == ("row", "col") and array.domain == ((0, 49), (0, 69)) and not array.schema.duplicates
    found = array.read().to_scipy()
    assert found.format == "coo" and found.nnz == given.tocoo().nnz
    np.testing.assert_array_equal(found.toarray(), given.toarray())
    np.testing.assert_array_equal(array.read().to_dense(), given.toarray())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(store_uri: str, dtype: str) -> None:
    given = matrix(dtype=dtype).tocsr()
    array = io.from_scipy(store_uri, given, ["a", "b"], name="v", context=gs.Context("2MB"))
    found = array.read().to_scipy("v")
    assert found.dtype == given.dtype and array.dims == ("a", "b") and array.schema.attr("v").dtype == dtype
    np.testing.assert_array_equal(found.toarray(), given.toarray())


def test_explicit_zeros_and_repeats(store_uri: str, stores: Stores) -> None:
    given = sps.coo_array(([1.0, 2.0, 0.0, 4.0], ([0, 0, 1, 1], [1, 1, 0, 2])), shape=(3, 4))
    array = io.from_scipy(store_uri, given)
    assert sorted(array.read()["value"].tolist()) == [0.0, 3.0, 4.0] and given.nnz == 4
    np.testing.assert_array_equal(array.read().to_dense(), given.toarray())
    rows = sps.csr_array(([1.0, 2.0, 5.0], [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    np.testing.assert_array_equal(io.from_scipy(stores("r"), rows).read().to_dense(), rows.toarray())
    kept = io.from_scipy(stores("k"), given, duplicates=True).read()
    assert len(kept) == 4
    for repeats, value in (("last", 2.0), ("first", 1.0), ("sum", 3.0)):
        assert kept.to_scipy(repeats=repeats).toarray()[0, 1] == value
        assert kept.to_scipy(repeats=repeats).nnz == 3
    with pytest.raises(gs.errors.InputError, match=r"at position \(0, 1\)"):
        kept.to_scipy(repeats="error")
    with pytest.raises(gs.errors.InputError, match="'mean'"):
        kept.to_scipy(repeats="mean")


def test_appending_takes_the_names_that_are_there(store_uri: str) -> None:
    first, second = matrix((6, 6), 0.5).tocsr(), matrix((4, 5), 0.5).tocsc()
    io.from_scipy(store_uri, first, ["i", "j"], name="w")
    array = io.from_scipy(store_uri, second, offset=0)
    expected = first.toarray()
    block = second.toarray()
    expected[:4, :5][block != 0] = block[block != 0]
    np.testing.assert_array_equal(array.read().to_dense(), expected)
    with pytest.raises(gs.errors.InputError, match="outside the domain"):
        io.from_scipy(store_uri, sps.coo_array(([1.0], ([6], [0])), shape=(7, 7)), offset=0, grow=False)
    assert gs.open(store_uri).version == array.version


def test_big_ones(store_uri: str, stores: Stores) -> None:
    """Large sides, 64-bit indices, and more values than a piece and the budget hold."""
    size = 10**12
    rows, cols = rng.integers(0, size, 300_000), rng.integers(0, size, 300_000)
    given = sps.coo_array((np.arange(300_000.0), (rows, cols)), shape=(size, size))
    told: list[tuple[int, int]] = []
    array = io.from_scipy(
        store_uri, given, context=gs.Context("8MB", cache=0), progress=lambda d, t, told=told: told.append((d, t))
    )
    assert array.fragments.num_rows == 1 and len(array.history()) == 2 and told[-1] == (300_000, 300_000)
    found = array.read().to_scipy()
    assert found.shape == (size, size) and found.nnz == 300_000
    order = np.argsort(found.data)
    np.testing.assert_array_equal(found.coords[0][order], rows)
    np.testing.assert_array_equal(found.coords[1][order], cols)
    wide = sps.random_array((3, 1_000_000), density=0.1, rng=rng, format="csr")
    back = io.from_scipy(stores("w"), wide).read().to_scipy().tocsr()
    assert (back != wide).nnz == 0


def test_what_is_no_matrix(store_uri: str) -> None:
    for bad, word in ((np.eye(3), "ndarray"), (sps.coo_array((0, 5)), r"\(0, 5\)")):
        with pytest.raises(gs.errors.InputError, match=word):
            io.from_scipy(store_uri, bad)
    with pytest.raises(gs.errors.InputError, match="names 1 dimensions"):
        io.from_scipy(store_uri, matrix(), ["x"])
    broken = sps.csr_array(matrix((5, 5), 0.5))
    broken.indices[0] = 77
    with pytest.raises(gs.errors.InputError, match="outside the domain"):
        io.from_scipy(store_uri, broken, duplicates=True)
    assert not gs.exists(store_uri)
    assert len(io.from_scipy(store_uri, sps.coo_array((3, 4))).read()) == 0


def test_dense_from_a_matrix(store_uri: str) -> None:
    given = matrix()
    array = io.from_scipy(store_uri, given, sparse=False)
    assert not array.sparse
    np.testing.assert_array_equal(array[...], given.toarray())
    found = array.read({"row": (10, 20)}).to_scipy()
    assert found.format == "csr" and found.nnz == given.tocsr()[10:21].nnz
    np.testing.assert_array_equal(found.toarray(), given.toarray()[10:21])


def test_positions_count_from_the_box(store_uri: str) -> None:
    dims = [gs.Dim("t", ("2026-01-01", "2026-12-31"), None, "datetime64[D]"), gs.Dim("y", (-(2**63), 2**63 - 1))]
    attrs = [gs.Attr("v", "int32", fill=-1), gs.Attr("n", "float32", nullable=True), gs.Attr("s", "string")]
    array = gs.create(store_uri, gs.Schema(dims, attrs, sparse=True, duplicates=True))
    days = np.array(["2026-02-01", "2026-02-03", "2026-02-03"], "M8[D]")
    array.write_cells({"t": days, "y": [-5, 2**62, -5]}, {"v": [1, 2, 3], "n": [0.5, None, 1.5], "s": ["a", "b", "c"]})
    box = {"t": ("2026-02-01", "2026-02-04"), "y": (-10, 10)}
    found = array.read(box)
    expected = np.full((4, 21), -1)
    expected[0, 5], expected[2, 5] = 1, 3
    scipy = found.to_scipy("v")
    assert scipy.shape == (4, 21) and scipy.toarray()[2, 5] == 3 and scipy.toarray()[1, 1] == 0
    np.testing.assert_array_equal(found.to_dense()["v"], expected)
    np.testing.assert_array_equal(array.scan(box, ["v"]).to_dense(), expected)
    assert (array.scan(box, ["v"]).to_scipy() != scipy).nnz == 0
    assert (array.read(box, "n").to_scipy().toarray() == array.read(box, "n").to_scipy("n").toarray()).all()
    with pytest.raises(gs.errors.InputError, match="say which one"):
        found.to_scipy()
    with pytest.raises(gs.errors.InputError, match="no attribute 'q'"):
        found.to_scipy("q")
    with pytest.raises(gs.errors.InputError, match="'n' has nulls"):
        array.read({"y": (2**62, 2**62)}).to_scipy("n")
    with pytest.raises(gs.errors.UnsupportedError, match="'s' is string"):
        found.to_scipy("s")
    with pytest.raises(gs.errors.UnsupportedError, match="smaller box"):
        array.read(attrs="v").to_scipy()
    points = array.points({"t": days[:2], "y": [-5, 7]}, "v")
    assert points.to_scipy().nnz == 1 and points.to_scipy().shape == (3, 13)


def test_other_numbers_of_dimensions(store_uri: str, stores: Stores) -> None:
    array = gs.array(store_uri, np.arange(24).reshape(2, 3, 4))
    with pytest.raises(gs.errors.UnsupportedError, match="3 dimensions"):
        array.read().to_scipy()
    with pytest.raises(gs.errors.SchemaError, match="float"):
        schema = gs.Schema(
            [gs.Dim("x", (0.0, 1.0), None, "float64"), gs.Dim("y", (0, 1))], [gs.Attr("v", "int8")], sparse=True
        )
        gs.create(stores("f"), schema).read().to_scipy()


def test_pydata(store_uri: str, stores: Stores) -> None:
    sparse = pytest.importorskip("sparse")
    given = sparse.random((7, 8, 9), density=0.1, random_state=3)
    array = io.from_scipy(store_uri, given)
    assert array.dims == ("d0", "d1", "d2")
    found = array.read().to_sparse()
    assert isinstance(found, sparse.COO) and found.nnz == given.nnz
    np.testing.assert_array_equal(found.todense(), given.todense())
    filled = sparse.COO([[0, 1]], [5, 6], shape=(4,), fill_value=9)
    other = io.from_scipy(stores("f"), filled)
    assert other.schema.attrs[0].fill == 9
    np.testing.assert_array_equal(other.read().to_sparse().todense(), filled.todense())
    np.testing.assert_array_equal(other.scan().to_sparse().todense(), filled.todense())
    compressed = io.from_scipy(stores("g"), sparse.GCXS(given))
    np.testing.assert_array_equal(compressed.read().to_dense(), given.todense())
    dense = gs.array(stores("d"), np.arange(24).reshape(2, 3, 4))
    np.testing.assert_array_equal(dense.read().to_sparse().todense(), dense[...])
    repeated = io.from_scipy(stores("r"), sps.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(2, 2)), duplicates=True)
    assert repeated.read().to_sparse().todense()[0, 1] == 2 == repeated.read().to_dense()[0, 1]


@pytest.mark.parametrize(
    ("module", "call"),
    [("scipy", "to_scipy"), ("sparse", "to_sparse"), ("polars", "to_polars"), ("pandas", "to_pandas")],
)
def test_a_missing_library_is_named(store_uri: str, monkeypatch: pytest.MonkeyPatch, module: str, call: str) -> None:
    result = gs.array(store_uri, np.eye(3)).read()
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(gs.errors.UnsupportedError, match=rf"needs {module}.*gridstone\[{module}\]"):
        getattr(result, call)()


def test_dense_results_are_arrays(store_uri: str, stores: Stores) -> None:
    values = np.arange(12.0).reshape(3, 4)
    array = gs.array(store_uri, values)
    for order in ("row", "col", "global"):
        found = array.read({"d0": (1, 2)}, order=order)
        np.testing.assert_array_equal(np.asarray(found), values[1:])
        np.testing.assert_array_equal(np.from_dlpack(found), values[1:])
        assert np.asarray(found, "float32").dtype == np.float32
    np.testing.assert_array_equal(np.from_dlpack(array[1:]), values[1:])
    sparse = io.from_scipy(stores("s"), matrix())
    for call in (np.asarray, np.from_dlpack):
        with pytest.raises(gs.errors.UnsupportedError, match="to_dense"):
            call(sparse.read())
    with pytest.raises(gs.errors.UnsupportedError, match="nulls"):
        np.from_dlpack(gs.array(stores("n"), np.ma.MaskedArray([1, 2], [True, False])).read())


arrays = hnp.arrays(
    st.sampled_from(["i1", ">i4", "u8", "<f4", ">f8", "?", "M8[D]", "m8[ns]", "U3", "S2", [("a", "i2"), ("b", "f8")]]),
    hnp.array_shapes(max_dims=4, max_side=9),
)


@given(values=arrays, order=st.sampled_from("CF"), budget=st.sampled_from(["1MiB", "1GiB"]))
def test_any_npy_comes_back(tmp_path: Path, stores: Stores, values: Any, order: str, budget: str) -> None:
    uri = stores()
    np.save(tmp_path / "v.npy", np.asarray(values, order=order))
    try:
        array = io.from_npy(uri, tmp_path / "v.npy", context=gs.Context(budget))
        for name in values.dtype.names or (None,):
            expected = values if name is None else values[name]
            found = array[name or "value"][...]
            np.testing.assert_array_equal(found, expected)
            assert io.to_npy(array, tmp_path / "out.npy", attr=name) == values.shape
            again = np.load(tmp_path / "out.npy")
            np.testing.assert_array_equal(again, expected)
            if expected.dtype.kind == "U":  # As wide as it must be.
                expected = expected.astype(f"<U{max(map(len, [' ', *expected.ravel().tolist()]))}")
            assert again.dtype == expected.dtype.newbyteorder("=")
    finally:
        if gs.exists(uri):
            gs.delete(uri)


@pytest.mark.parametrize("tile_order", ["row", "col"])
@pytest.mark.parametrize("cell_order", ["row", "col"])
@pytest.mark.parametrize("tiles", [(7, 5, 2), (None, None, None), (23, 1, 3)])
def test_npy_into_any_layout(
    tmp_path: Path, store_uri: str, monkeypatch: pytest.MonkeyPatch, tile_order: str, cell_order: str, tiles: Any
) -> None:
    monkeypatch.setattr("gridstone.io.numpy.dense._PIECE_BYTES", 8 * 37)
    values = np.arange(23 * 11 * 4).reshape(23, 11, 4)
    np.save(tmp_path / "v.npy", values)
    dims = [gs.Dim(n, (-3, s - 4), t) for n, s, t in zip("xyz", values.shape, tiles, strict=True)]
    schema = gs.Schema(dims, [gs.Attr("v", "int64")], tile_order=tile_order, cell_order=cell_order)
    array = io.from_npy(store_uri, tmp_path / "v.npy", schema=schema)
    np.testing.assert_array_equal(array[...], values)
    assert array.fragments.num_rows == 1
    part = -values[2:19, 3:9, 1:3]
    np.save(tmp_path / "p.npy", part)
    io.from_npy(store_uri, tmp_path / "p.npy", box={"x": (-1, 15), "y": (0, 5), "z": (-2, -1)})
    values[2:19, 3:9, 1:3] *= -1
    array.refresh()
    np.testing.assert_array_equal(array[...], values)
    io.to_npy(gs.open(store_uri, context=gs.Context("1MiB")), tmp_path / "o.npy", {"x": (0, 5)})
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), values[3:9])


def test_several_npy_and_compressed_ones(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    parts = [rng.random((n, 5)) for n in (3, 1, 400)]
    for i, part in enumerate(parts):
        np.save(tmp_path / f"{i}.npy", part)
    (tmp_path / "1.npy.gz").write_bytes(gzip.compress((tmp_path / "1.npy").read_bytes()))
    told: list[tuple[int, int]] = []
    files = [tmp_path / name for name in ("0.npy", "1.npy.gz", "2.npy")]
    array = io.from_npy(store_uri, files, ["t", "c"], name="v", progress=lambda d, t: told.append((d, t)), message="hi")
    np.testing.assert_array_equal(array["v"][...], np.concatenate(parts))
    assert array.dims == ("t", "c") and told[-1] == (2020, 2020) and array.history()[-1].message == "hi"
    np.save(tmp_path / "1.npy", np.zeros((2, 4)))
    with pytest.raises(gs.errors.InputError, match=r"1\.npy.*\(2, 4\)"):
        io.from_npy(stores("b"), tmp_path / "?.npy")
    assert not gs.exists(stores("b"))


def test_records_are_cells(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    records = np.zeros(1000, [("x", ">i4"), ("y", "f8"), ("name", "U5"), ("t", "M8[h]")])
    records["x"], records["y"], records["name"] = rng.integers(-5, 5, 1000), rng.random(1000), rng.integers(0, 99, 1000)
    records["t"] = rng.integers(0, 10**6, 1000).astype("M8[h]")
    np.save(tmp_path / "r.npy", records)
    array = io.from_npy(store_uri, tmp_path / "r.npy", ["x", "t"], sparse=True)
    assert array.schema.dim("t").dtype == "datetime64[h]" and array.schema.duplicates
    found = array.read().to_numpy()
    expected = sorted(zip(*(records[n].tolist() for n in ("x", "t", "y", "name")), strict=True))
    assert sorted(zip(*(found[n].tolist() for n in ("x", "t", "y", "name")), strict=True)) == expected
    np.save(tmp_path / "r.npy", np.zeros(3))
    with pytest.raises(gs.errors.InputError, match="records"):
        io.from_npy(stores("b"), tmp_path / "r.npy", ["x"], sparse=True)


def test_npz(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    a, b = rng.random((30, 40)), rng.integers(0, 9, (30, 40), np.int8)
    for place, save in enumerate((np.savez, np.savez_compressed)):
        save(tmp_path / "v.npz", a=a, b=b, other=np.arange(3))
        with pytest.raises(gs.errors.InputError, match=r"one shape.*\(3,\)"):
            io.from_npz(store_uri, tmp_path / "v.npz")
        array = io.from_npz(stores(str(place)), tmp_path / "v.npz", attrs=["a", "b"])
        np.testing.assert_array_equal(array["a"][...], a)
        np.testing.assert_array_equal(array["b"][...], b)
        assert io.to_npz(array, tmp_path / "o.npz", {"d0": (5, 9)}, compressed=bool(place)) == ["a", "b"]
        with np.load(tmp_path / "o.npz") as back:
            np.testing.assert_array_equal(back["a"], a[5:10])
            np.testing.assert_array_equal(back["b"], b[5:10])


@pytest.mark.filterwarnings("ignore:Constructing a DIA")
@pytest.mark.parametrize("cell_order", ["row", "col"])
def test_vectors_in_numpy_files(tmp_path: Path, stores: Stores, cell_order: str) -> None:
    dims = [gs.Dim("x", (0, 4), 2), gs.Dim("y", (1, 3))]
    attrs = [gs.Attr("m", "int16", shape=(2, 2)), gs.Attr("c", "uint8", shape=(3,), nullable=True), gs.Attr("v", "f8")]
    a = gs.create(stores("a"), gs.Schema(dims, attrs, cell_order=cell_order))
    values = {"m": rng.integers(0, 99, (5, 3, 2, 2)), "c": rng.integers(0, 99, (5, 3, 3)), "v": rng.random((5, 3))}
    a.write(values)
    assert io.to_npy(a, tmp_path / "m.npy", attr="m") == (5, 3, 2, 2)
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), values["m"])
    one = io.from_npy(stores("1"), tmp_path / "m.npy", schema=gs.Schema(dims, attrs[:1], cell_order=cell_order))
    np.testing.assert_array_equal(one[...], values["m"])
    box = {"x": (1, 3), "y": (2, 3)}
    io.to_npz(a, tmp_path / "a.npz", box)
    gs.create(stores("2"), a.schema)
    back = io.from_npz(stores("2"), tmp_path / "a.npz", box=box)
    for name, expected in values.items():
        np.testing.assert_array_equal(back.read(box)[name], expected[1:4, 1:])
    with pytest.raises(
        gs.errors.InputError, match=r"shape \(3, 2, 2, 2\), the box .* \(3, 3\), and each value \(2, 2\)"
    ):
        io.from_npz(stores("2"), tmp_path / "a.npz", box={"x": (1, 3)})
    a.delete({"x": (0, 0)})
    io.to_npy(a, tmp_path / "c.npy", attr="c", fill=[7, 8, 9])
    assert np.load(tmp_path / "c.npy")[0].tolist() == [[7, 8, 9]] * 3
    cells = gs.create(stores("3"), gs.Schema(dims, [attrs[0], attrs[2]], sparse=True))
    cells.write_cells({"x": [1, 3], "y": [2, 2]}, {"m": values["m"][:2, 0], "v": [0.5, 1.5]})
    io.to_npz(cells, tmp_path / "s.npz")
    again = io.from_npz(stores("4"), tmp_path / "s.npz", schema=cells.schema, sparse=True)
    assert again.read().to_arrow().equals(cells.read().to_arrow())


def test_npz_of_cells_and_matrices(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    given = matrix().tocsr()
    array = io.from_scipy(store_uri, given)
    assert io.to_npz(array, tmp_path / "c.npz") == ["row", "col", "value"]
    back = io.from_npz(stores("b"), tmp_path / "c.npz", ["row", "col"], sparse=True)
    # Rows and columns without a value at either end are not told of by cells.
    rows, columns = (slice(low, high + 1) for low, high in back.domain)
    np.testing.assert_array_equal(back.read().to_dense(), given.toarray()[rows, columns])
    for form in ("csr", "csc", "coo", "dia", "bsr"):
        sps.save_npz(tmp_path / "m.npz", given.asformat(form))
        np.testing.assert_array_equal(io.from_npz(stores(form), tmp_path / "m.npz").read().to_dense(), given.toarray())
    with np.load(tmp_path / "c.npz") as columns:
        assert columns["row"].dtype == np.int64 and len(columns["value"]) == given.nnz
    assert io.to_npy(array, tmp_path / "d.npy", fill=-1) == (50, 70)
    assert (np.load(tmp_path / "d.npy") == -1).sum() == 3500 - given.nnz


def test_nulls_need_a_fill(tmp_path: Path, store_uri: str) -> None:
    array = gs.array(store_uri, np.ma.MaskedArray([[1, 2], [3, 4]], [[False, True], [False, False]]))
    with pytest.raises(gs.errors.InputError, match="nulls"):
        io.to_npy(array, tmp_path / "n.npy")
    assert list(tmp_path.iterdir()) == []
    io.to_npy(array, tmp_path / "n.npy", fill=9)
    assert np.load(tmp_path / "n.npy").tolist() == [[1, 9], [3, 4]]
    io.to_npy(array, tmp_path / "n.npy", {"d0": (1, 1)})
    assert np.load(tmp_path / "n.npy").tolist() == [[3, 4]]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=12), budget=st.sampled_from(["1MiB", "1GiB"]), enumerated=st.booleans()
)
def test_texts_as_npy(tmp_path: Path, texts: list[str], budget: str, enumerated: bool) -> None:
    """Texts come back from a file of fixed width, or end in NUL, which is told; of boxes, and of cells with texts."""
    uri, n, file = f"mem://{uuid.uuid4().hex}", len(texts), tmp_path / "t.npy"
    file.unlink(missing_ok=True)  # Of the example before.
    context, known = gs.Context(budget), list(dict.fromkeys(texts)) if enumerated else None
    attr = gs.Attr("t", "string", nullable=True, categories=known)
    dense = gs.create(uri, gs.Schema([gs.Dim("x", (0, n - 1), min(n, 5))], [attr]), context=context)
    dense[...] = texts
    schema = gs.Schema([gs.Dim("s", dtype="string"), gs.Dim("x", (0, n))], [attr], sparse=True)
    sparse = gs.create(uri + "s", schema, context=context)
    places = [text.replace("\0", "") for text in texts]
    sparse.write_cells({"s": places, "x": range(n)}, texts)
    if any(text.endswith("\0") for text in texts):
        for array, write in ((dense, io.to_npy), (dense, io.to_npz), (sparse, io.to_npz)):
            with pytest.raises(gs.errors.InputError, match="attribute 't' has a text that ends in NUL"):
                write(array, file)
        assert not file.exists()
    else:
        assert io.to_npy(dense, file) == (n,)
        found = np.load(file)
        assert found.tolist() == texts and found.dtype == f"<U{max(1, *map(len, texts))}"
        again = io.from_npy(uri + "a", file)
        assert again[...].tolist() == texts
        assert io.to_npz(sparse, tmp_path / "t.npz") == ["s", "x", "t"]
        columns = np.load(tmp_path / "t.npz")
        cells = sorted(zip(places, range(n), texts, strict=True))
        assert list(zip(*(columns[name].tolist() for name in ("s", "x", "t")), strict=True)) == cells
        gs.delete(uri + "a")
    for place in (uri, uri + "s"):
        gs.delete(place)


def test_texts_as_npy_in_parts(tmp_path: Path, stores: Stores) -> None:
    """Short texts beside a long one, in less memory than all of them take; nulls and empty cells are what fill says."""
    texts = np.array([str(i % 97) for i in range(20_000)], object)
    texts[777] = "x" * 2_000
    schema = gs.Schema([gs.Dim("x", (0, texts.size), 1_000)], [gs.Attr("t", "string", nullable=True)])
    a = gs.create(stores("d"), schema, context=gs.Context("16MiB"))
    a[: texts.size] = texts
    file, told = tmp_path / "t.npy", list[tuple[int, int]]()
    with pytest.raises(gs.errors.InputError, match="nulls"):
        io.to_npy(a, file)
    for fill, width in (("?", 2_000), ("y" * 2_001, 2_001)):
        io.to_npy(a, file, fill=fill, progress=lambda done, total: told.append((done, total)))
        found = np.load(file, mmap_mode="r")
        assert found.dtype == f"<U{width}" and (found[:-1] == texts.astype("U")).all() and found[-1] == fill
    assert len(told) > 20 and told[-1] == (texts.size + 1, texts.size + 1)
    with pytest.raises(gs.errors.InputError, match=r"fill of attribute 't'.*NUL"):
        io.to_npy(a, file, fill="a\0")
    cells = gs.create(stores("s"), gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("t", "string", fill="none")], sparse=True))
    cells.write_cells([3, 5], ["a", "bb"])
    io.to_npy(cells, file)
    assert np.load(file).tolist() == ["none"] * 3 + ["a", "none", "bb"] + ["none"] * 4
    io.to_npy(cells, file, {"x": slice(4, 4)})
    assert np.load(file).shape == (0,)
    for kind in ("bytes", "list[int8]"):
        with pytest.raises(gs.errors.UnsupportedError, match="Python objects"):
            io.to_npy(gs.create(stores(kind), gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", kind)])), file)


def test_damaged_npy(tmp_path: Path, store_uri: str) -> None:
    np.save(tmp_path / "v.npy", np.arange(100.0))
    data = (tmp_path / "v.npy").read_bytes()
    np.save(tmp_path / "o.npy", np.array([{}, 1], object))
    np.savez(tmp_path / "v.npz", np.arange(1000.0))
    packed = (tmp_path / "v.npz").read_bytes()
    bad = [b"", b"\x93NUMPY", data[:40], data[:-1], b"x,y\n1,2\n", b"\x93NUMPY\x09\x00" + data[8:],
           data.replace(b"(100,)", b"(999,)"), data.replace(b"(100,)", b"(-10,)"), data.replace(b"'<f8'", b"'<q8'"),
           data.replace(b"{'descr'", b"{'descr(")]  # fmt: skip
    for content in bad:
        (tmp_path / "v.npy").write_bytes(content)
        with pytest.raises(gs.errors.InputError, match=r"v\.npy"):
            io.from_npy(store_uri, tmp_path / "v.npy")
    with pytest.raises(gs.errors.InputError, match=r"o\.npy"):
        io.from_npy(store_uri, tmp_path / "o.npy")
    at = len(packed) // 2
    for content in (b"", packed[:-9], packed[100:], data, packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :]):
        (tmp_path / "v.npz").write_bytes(content)
        with pytest.raises(gs.errors.InputError, match=r"v\.npz"):
            io.from_npz(store_uri, tmp_path / "v.npz")
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
        archive.writestr("a.npy", b"no array")
    with pytest.raises(gs.errors.InputError, match=r"v\.npz, a\.npy"):
        io.from_npz(store_uri, tmp_path / "v.npz")
    np.save(tmp_path / "v.npy", np.zeros((0, 3)))
    with pytest.raises(gs.errors.InputError, match=r"\(0, 3\)"):
        io.from_npy(store_uri, tmp_path / "v.npy")
    assert not gs.exists(store_uri)


def test_shapes_that_do_not_fit(tmp_path: Path, store_uri: str) -> None:
    np.save(tmp_path / "v.npy", np.zeros((3, 4)))
    schema = gs.Schema([gs.Dim("x", (0, 2)), gs.Dim("y", (0, 4))], [gs.Attr("v", "float64")])
    with pytest.raises(gs.errors.InputError, match=r"\(3, 4\).*\(3, 5\)"):
        io.from_npy(store_uri, tmp_path / "v.npy", schema=schema)
    with pytest.raises(gs.errors.InputError, match="box="):
        io.from_npy(store_uri, tmp_path / "v.npy", box={"x": (0, 2)})
    with pytest.raises(gs.errors.InputError, match="dims="):
        io.from_npy(store_uri, tmp_path / "v.npy", ["x"])
    assert not gs.exists(store_uri)
    array = gs.create(store_uri, schema)
    with pytest.raises(gs.errors.InputError, match=r"\(3, 4\).*\(3, 5\)"):
        io.from_npy(store_uri, tmp_path / "v.npy")
    with pytest.raises(gs.errors.ExistsError):
        io.from_npy(store_uri, tmp_path / "v.npy", schema=gs.Schema(schema.dims, [gs.Attr("w", "int8")]))
    io.from_npy(store_uri, tmp_path / "v.npy", schema=None, overwrite=True)
    array = gs.open(store_uri)
    assert array.shape == (3, 4)


def test_mtx(tmp_path: Path, stores: Stores, store_uri: str) -> None:
    given = matrix()
    array = io.from_scipy(store_uri, given)
    assert io.to_mtx(array, tmp_path / "m.mtx") == given.nnz
    for name in ("m.mtx", "m.mtx.gz"):
        if name.endswith("gz"):
            (tmp_path / name).write_bytes(gzip.compress((tmp_path / "m.mtx").read_bytes()))
        back = io.from_mtx(stores(name), tmp_path / name)
        np.testing.assert_array_equal(back.read().to_dense(), given.toarray())
    (tmp_path / "d.mtx").write_text("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
    dense = io.from_mtx(stores("d"), tmp_path / "d.mtx")
    assert not dense.sparse and dense[...].tolist() == [[1, 3], [2, 4]]
    assert io.from_mtx(stores("s"), tmp_path / "d.mtx", sparse=True).sparse
    for text in ("", "nonsense", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n"):
        (tmp_path / "d.mtx").write_text(text)
        with pytest.raises(gs.errors.InputError, match=r"d\.mtx"):
            io.from_mtx(stores("e"), tmp_path / "d.mtx")
    with pytest.raises(gs.errors.UnsupportedError, match="compress"):
        io.to_mtx(array, tmp_path / "m.mtx.gz")


def test_npy_is_written_in_parts(tmp_path: Path, stores: Stores) -> None:
    """More values than an eighth of the budget holds, of dense arrays and sparse ones, with tiles of any size."""
    values = rng.random((211, 307))
    for place, tile in enumerate(((7, 11), (211, 307), (1, 307), (200, 1))):
        gs.array(stores(str(place)), values, tile=tile)
        small = gs.open(stores(str(place)), context=gs.Context("1MiB", cache=0))
        told: list[tuple[int, int]] = []
        io.to_npy(
            small,
            tmp_path / "o.npy",
            {"d0": (3, 209), "d1": (5, 300)},
            progress=lambda d, t, told=told: told.append((d, t)),
        )
        np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), values[3:210, 5:301])
        assert len(told) > 2 and told[-1] == (207 * 296, 207 * 296)
    given = matrix((300, 200))
    io.from_scipy(stores("s"), given)
    io.to_npy(gs.open(stores("s"), context=gs.Context("1MiB", cache=0)), tmp_path / "s.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), given.toarray())
    assert io.to_npy(small, tmp_path / "e.npy", {"d0": slice(5, 5)}) == (0, 307)
    assert np.load(tmp_path / "e.npy").shape == (0, 307)
    schema = gs.Schema([gs.Dim("x", (-(2**62), 2**62))], [gs.Attr("v", "int8")], sparse=True)
    with pytest.raises(gs.errors.StorageError, match="smaller box"):
        io.to_npy(gs.create(stores("h"), schema), tmp_path / "h.npy")
    with pytest.raises(gs.errors.SchemaError, match="the fill"):
        io.to_npy(small, tmp_path / "e.npy", fill="nine")
