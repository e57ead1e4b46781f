"""Promise: stores of plain Gridstone, and attached files without a copy, open as Datasets."""

import gzip
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from xarray_stores import opened

import gridstone as gs

DATA = Path(os.environ.get("GRIDSTONE_TEST_DATA", "/nowhere")) / "netcdf"
FILES = sorted([*DATA.glob("*.nc"), *DATA.glob("*.cdf"), *DATA.glob("*.gz"), *DATA.glob("netcdf4-python/*.nc")])
# Times in floats with parts of a microsecond, which attached times are read in.
FINER = ("iris_hybrid_height.nc", "20171025_2056.Cloud_Top_Height.nc")
# No time type holds the times of this one, of xarray neither.
UNDECODED = ("CRM032_test1.nc",)
LARGE = ("ferret_etopo5.cdf.gz",)


@pytest.fixture
def file(request, tmp_path):
    """A file of the corpus, unpacked."""
    given = request.param
    if given.suffix != ".gz":
        return given
    if given.name in LARGE and "GRIDSTONE_TEST_DEEP" not in os.environ:
        pytest.skip("large: only with GRIDSTONE_TEST_DEEP")
    with gzip.open(given) as packed, open(tmp_path / given.stem, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    return tmp_path / given.stem


def options_of(file):
    return {"decode_times": False} if file.name in UNDECODED else {}


every_file = pytest.mark.parametrize("file", FILES, indirect=True, ids=lambda path: path.name)


@every_file
def test_files_through_to_gridstone_and_back(tmp_path, file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xr.SerializationWarning)
        with xr.open_dataset(file, **options_of(file)) as expected:
            gs.to_gridstone(expected, tmp_path / "d.gs")
            with opened(tmp_path / "d.gs", **options_of(file)) as found:
                xr.testing.assert_identical(expected, found)
                for name, variable in expected.variables.items():
                    assert found.variables[name].dtype == variable.dtype, name
                    assert found.variables[name].encoding.get("calendar") == variable.encoding.get("calendar")


@every_file
def test_attached_files(tmp_path, file):
    gs.attach(tmp_path / "d.gs", file, decode=file.name not in UNDECODED)
    used = gs.Context(sources=[file.parent])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xr.SerializationWarning)
        with (
            xr.open_dataset(file, **options_of(file)) as expected,
            opened(tmp_path / "d.gs", context=used, **options_of(file)) as found,
        ):
            if file.name in FINER:
                moments = {name: one for name, one in expected.variables.items() if one.dtype.kind == "M"}
                expected = expected.assign({name: _to_microseconds(expected[name]) for name in moments})
            xr.testing.assert_identical(expected, found)
            for name, variable in expected.variables.items():
                packed = variable.encoding
                assert {key: packed.get(key) for key in ("units", "calendar", "scale_factor")} == {
                    key: found.variables[name].encoding.get(key) for key in ("units", "calendar", "scale_factor")
                }


def _to_microseconds(variable):
    return variable.copy(data=variable.dt.round("us").values.astype("M8[us]"))


@pytest.mark.parametrize("file", [f for f in FILES if f.name in FINER], indirect=True, ids=lambda path: path.name)
def test_files_that_are_attached_undecoded_are_decoded_by_xarray(tmp_path, file):
    gs.attach(tmp_path / "d.gs", file, decode=False)
    with (
        xr.open_dataset(file) as expected,
        opened(tmp_path / "d.gs", context=gs.Context(sources=[file.parent])) as found,
    ):
        xr.testing.assert_identical(expected, found)


def test_an_array_with_labels(tmp_path):
    made = gs.array(
        tmp_path / "a.gs", np.arange(6.0).reshape(2, 3), dims=["t", "x"], coords={"t": ["a", "b"]}, name="v"
    )
    made.meta["title"] = "one"
    made["v"].meta["units"] = "K"
    made.dim("t").meta["axis"] = "T"
    with opened(tmp_path / "a.gs") as found:
        expected = xr.Dataset(
            {"v": (("t", "x"), np.arange(6.0).reshape(2, 3), {"units": "K", "title": "one"})},
            {"t": ("t", ["a", "b"], {"axis": "T"})},
        )
        xr.testing.assert_identical(expected, found)


def test_attributes_are_variables(tmp_path):
    schema = gs.Schema(
        [gs.Dim("day", ("2001-01-01", "2001-01-03"), dtype="datetime64[D]"), gs.Dim("x", (10, 11))],
        [gs.Attr("u", "float32"), gs.Attr("n", "int64", nullable=True), gs.Attr("rgb", "uint8", shape=3)],
    )
    made = gs.create(tmp_path / "a.gs", schema)
    counts = np.ma.MaskedArray(np.arange(6).reshape(3, 2), mask=[[0, 0], [1, 0], [0, 0]])
    colours = np.arange(18, dtype=np.uint8).reshape(3, 2, 3)
    made.write({"u": np.ones((3, 2), np.float32), "n": counts, "rgb": colours})
    made.meta["title"] = "three"
    with opened(tmp_path / "a.gs") as found:
        assert found.attrs == {"title": "three"} and found.u.dtype == np.float32
        assert found.day.values.tolist() == np.array(["2001-01-01", "2001-01-02", "2001-01-03"], "M8[s]").tolist()
        assert found.x.values.tolist() == [10, 11]
        assert np.array_equal(found.n.values, [[0, 1], [np.nan, 3], [4, 5]], equal_nan=True)
        assert found.rgb.dims == ("day", "x", "rgb_0") and np.array_equal(found.rgb.isel(x=1).values, colours[:, 1])
        points = found.rgb.isel(day=xr.DataArray([0, 2], dims="p"), x=xr.DataArray([1, 0], dims="p"))
        assert np.array_equal(points.values, colours[[0, 2], [1, 0]])
    with opened(tmp_path / "a.gs", drop_variables=["rgb", "n"]) as found:
        assert list(found.data_vars) == ["u"]


def test_arrays_of_a_group_that_do_not_fit_together(tmp_path):
    for name, size in (("a", 3), ("b", 4)):
        gs.array(tmp_path / f"{name}.gs", np.arange(size), dims=["x"])
        gs.copy(tmp_path / f"{name}.gs", tmp_path / "g.gs", target_path=f"/{name}")
    with pytest.raises(gs.InputError, match="has 3 positions in 'a' and 4 in 'b'"):
        opened(tmp_path / "g.gs")
    with opened(tmp_path / "g.gs", group="/b") as found:
        assert found.b.values.tolist() == [0, 1, 2, 3]
    with opened(tmp_path / "g.gs", drop_variables="a") as found:
        assert found.sizes == {"x": 4}


def test_sparse_arrays(tmp_path):
    sparse = pytest.importorskip("sparse")
    schema = gs.Schema([gs.Dim("y", (0, 4)), gs.Dim("x", (5, 9))], [gs.Attr("v", "float64")], sparse=True)
    gs.create(tmp_path / "a.gs", schema).write_cells({"y": [0, 3], "x": [5, 8]}, {"v": [1.5, 2.5]})
    with pytest.raises(gs.UnsupportedError, match=r"gridstone\.dask\.frame"):
        opened(tmp_path / "a.gs")
    with opened(tmp_path / "a.gs", sparse=True) as found:
        assert isinstance(found.v.data, sparse.COO) and found.x.values.tolist() == [5, 6, 7, 8, 9]
        assert found.v.data.todense()[0, 0] == 1.5 and found.v.data.todense().sum() == 4.0


def test_stores_are_guessed_cheaply(tmp_path, monkeypatch):
    gs.to_gridstone(xr.Dataset({"v": 1}), tmp_path / "d.gs")
    (tmp_path / "e.gs").mkdir()
    from gridstone.xarray.backend import GridstoneBackend

    backend = GridstoneBackend()
    assert backend.guess_can_open(tmp_path / "d.gs") and backend.guess_can_open("s3://bucket/a.gs")
    for other in (tmp_path / "e.gs", tmp_path / "none", "s3://bucket/a.zarr", b"bytes", 5, "\0", "https://a/b.nc"):
        assert not backend.guess_can_open(other)
    with xr.open_dataset(tmp_path / "d.gs") as found:
        assert found.v == 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"group": "/nothing"}, gs.NotFoundError, "group="),
        ({"version": 99}, gs.NotFoundError, "99"),
        ({"version": 1, "timestamp": 5}, gs.InputError, "not both"),
        ({"group": 5}, gs.InputError, "group="),
        ({"sparse": "yes"}, TypeError, "sparse"),
    ],
)
def test_what_cannot_be_opened_is_told(tmp_path, options, error, words):
    gs.to_gridstone(xr.Dataset({"v": 1}), tmp_path / "d.gs")
    with pytest.raises(error, match=words):
        opened(tmp_path / "d.gs", **options)
    with pytest.raises(gs.NotFoundError):
        opened(tmp_path / "none.gs")


@pytest.mark.parametrize("seed", range(4))
def test_indexing_is_that_of_numpy(tmp_path, seed):
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 9, 3))
    values = random.random(shape)
    expected = xr.Dataset({"v": (("a", "b", "c"), values)})
    gs.to_gridstone(expected, tmp_path / "d.gs", encoding={"v": {"chunks": (2, 3, 2)}})

    def one(size):
        match random.integers(5):
            case 0:
                return int(random.integers(-size, size))
            case 1:
                return random.integers(-size, size, random.integers(0, 5))
            case 2:
                return slice(None, None, int(random.choice([-3, -1, 2])))
            case 3:
                return xr.DataArray(random.integers(-size, size, (2, 3)), dims=("p", "q"))
            case _:
                low, high = sorted(random.integers(-size - 2, size + 2, 2))
                return slice(int(low), int(high))

    with opened(tmp_path / "d.gs", cache=False) as found:
        for _ in range(60):
            chosen = {dim: one(size) for dim, size in zip("abc", shape, strict=True) if random.random() < 0.8}
            then = {"a": slice(None, None, -1)} if random.random() < 0.3 else {}
            first, second = expected.v.isel(chosen), found.v.isel(chosen)
            then = {dim: cut for dim, cut in then.items() if dim in first.dims}
            xr.testing.assert_identical(first.isel(then), second.isel(then))


def two_attributes(group, name, size=2):
    schema = gs.Schema([gs.Dim("x", (0, size - 1))], [gs.Attr("u", "int64"), gs.Attr("w", "int64")])
    group.create(name, schema).write({"u": np.arange(size), "w": np.arange(size) + 10})


def test_no_variable_takes_the_place_of_another(tmp_path):
    group = gs.group(tmp_path / "d.gs", mode="a")
    two_attributes(group, "a")
    two_attributes(group, "b")
    group.create("u", gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("u", "int64")])).write({"u": [7, 8]})
    with opened(tmp_path / "d.gs") as found:
        assert {name: found[name].values.tolist() for name in found.variables} == {
            "a_u": [0, 1], "w": [10, 11], "b_u": [0, 1], "b_w": [10, 11], "u": [7, 8]
        }  # fmt: skip
    group.create("b_u", gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "int64")]))
    with pytest.raises(gs.InputError, match="'b_u', and there is one"):
        opened(tmp_path / "d.gs")
    with opened(tmp_path / "d.gs", drop_variables="b") as found:
        assert found["b_u"].values.tolist() == [0, 0]


@pytest.mark.parametrize("name", ["a", "z"])
def test_arrays_that_begin_at_different_coordinates(tmp_path, name):
    """Coordinates of one are not shown for another."""
    group = gs.group(tmp_path / "d.gs", mode="a")
    for called, low in ((name, 0), ("m", 5)):
        group.create(called, gs.Schema([gs.Dim("x", (low, low + 1))], [gs.Attr("v", "int64")]))
    with pytest.raises(gs.InputError, match=f"'/{name}' others"):
        opened(tmp_path / "d.gs")
    with opened(tmp_path / "d.gs", drop_variables=name) as found:
        assert found.x.values.tolist() == [5, 6]


@pytest.mark.parametrize("name", ["a", "z"])
def test_coordinates_beside_a_sparse_array(tmp_path, name):
    pytest.importorskip("sparse")
    group = gs.group(tmp_path / "d.gs", mode="a")
    x = gs.Schema([gs.Dim("x_dim", (0, 4))], [gs.Attr("x", "float64")])
    group.create("x", x).write({"x": np.arange(5) * 1.5})
    sparse = gs.Schema([gs.Dim("x", (5, 9))], [gs.Attr("v", "int64")], sparse=True)
    group.create(name, sparse).write_cells({"x": [6]}, {"v": [1]})
    with opened(tmp_path / "d.gs", sparse=True) as found:
        assert found.x.values.tolist() == [0, 1.5, 3, 4.5, 6]
        assert found[name].data.todense().tolist() == [0, 1, 0, 0, 0]
