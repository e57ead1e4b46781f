"""Promise: what `to_gridstone` has written comes back identical: values, types, dimensions, coordinates, attributes."""

import pickle
import warnings

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from xarray_stores import opened, there_and_back

import gridstone as gs

NOLEAP = cftime.DatetimeNoLeap

NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=6).filter(
    lambda name: "/" not in name and name not in (".", "..")
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=5)
# A text of fixed width cannot end in zeros, which NumPy takes away.
FIXED = TEXTS.map(lambda text: text.replace("\0", ""))
NUMBERS = st.one_of(
    npst.integer_dtypes(endianness="="), npst.unsigned_integer_dtypes(endianness="="),
    npst.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
    npst.complex_number_dtypes(endianness="=", sizes=(64, 128)), npst.boolean_dtypes(),
    st.sampled_from([np.dtype(f"{kind}8[{unit}]") for kind in "mM" for unit in ("s", "ms", "us", "ns")]),
)  # fmt: skip


@st.composite
def values(draw, shape):
    """Values of any type that a variable may have."""
    match draw(st.integers(0, 4)):
        case 0:
            return draw(npst.arrays(np.dtype("U4"), shape, elements=FIXED.map(lambda text: text[:4])))
        case 1:
            return draw(
                npst.arrays(np.dtype("S3"), shape, elements=st.binary(max_size=3).map(lambda one: one.rstrip(b"\0")))
            )
        case 2:
            missing = draw(st.sampled_from([None, np.nan]))
            held = draw(st.sampled_from([TEXTS, st.binary(max_size=4)]))
            return draw(npst.arrays(object, shape, elements=st.one_of(held, st.just(missing))))
        case _:
            return draw(npst.arrays(draw(NUMBERS), shape))


ATTRIBUTES = st.dictionaries(
    NAMES.filter(lambda name: name not in ("units", "calendar", "dtype", "coordinates")),
    st.one_of(
        st.integers(-(2**63), 2**64 - 1), st.floats(), TEXTS, st.booleans(), st.lists(st.integers(0, 9), max_size=3),
        npst.arrays(
            st.sampled_from([np.dtype(d) for d in ("f4", "f8", "i2", "u8", "c8")]),
            npst.array_shapes(max_dims=2, min_side=0),
        ),
        st.sampled_from([np.float32(0.1), np.int8(-3), np.float64("nan"), np.uint16(7)]),
    ),
    max_size=3,
)  # fmt: skip


@st.composite
def datasets(draw):
    sizes = dict(zip(("x", "y", "z_dim"), draw(st.tuples(*[st.integers(0, 4)] * 3)), strict=True))
    names = draw(st.lists(NAMES.filter(lambda n: n not in sizes), min_size=1, max_size=4, unique=True))
    made = {}
    for name in names:
        dims = draw(st.lists(st.sampled_from(sorted(sizes)), unique=True, max_size=3))
        made[name] = (dims, draw(values(tuple(sizes[dim] for dim in dims))), draw(ATTRIBUTES))
    coords = {}
    for dim in draw(st.lists(st.sampled_from(sorted(sizes)), unique=True)):
        coords[dim] = (dim, draw(values((sizes[dim],))), draw(ATTRIBUTES))
    dataset = xr.Dataset(made, coords, draw(ATTRIBUTES))
    return dataset.set_coords(draw(st.lists(st.sampled_from(names), unique=True)))


def assert_same_types(one, other):
    for name in one.variables:
        assert one.variables[name].dtype == other.variables[name].dtype, name
        for key, value in one.variables[name].attrs.items():
            assert type(other.variables[name].attrs[key]) is type(value), (name, key)
            assert getattr(other.variables[name].attrs[key], "dtype", None) == getattr(value, "dtype", None)
    assert set(one.coords) == set(other.coords)


@given(datasets())
def test_any_dataset_comes_back_identical(tmp_path_factory, dataset):
    with there_and_back(dataset, tmp_path_factory.mktemp("t") / "d.gs") as found:
        xr.testing.assert_identical(dataset, found)
        assert_same_types(dataset, found)
        # What was opened is what it was read from, and can be written again.
        gs.to_gridstone(found, tmp_path_factory.mktemp("t") / "e.gs")


@pytest.mark.parametrize(
    "dataset",
    [
        xr.Dataset(),
        xr.Dataset(attrs={"title": "nothing", "xarray": {"a": [1]}}),
        xr.Dataset({"z": ("z_dim", [1, 2])}),
        xr.Dataset({"z": (("z", "z_dim"), [[1, 2]]), "z_dim": ("z_dim", [3.0, 4.0])}),
        xr.Dataset({"lat": ("lat", [1.5, 2.5]), "lat_dim": ("lat", [1, 2])}),
        xr.Dataset({None: ("x", [1, 2])}),
        xr.Dataset({"v": 3}, {"t": np.datetime64("2001-02-03", "ns"), "name with space": 1}),
        xr.Dataset(coords={"t": pd.to_datetime(["2001-01-01", "NaT", "2001-01-01"])}),
        xr.Dataset({"v": ("x", np.array([], object)), "w": ("x", np.array([], "M8[ns]"))}),
        xr.Dataset({"v": ("x", np.array([1, None, 3], object))}),
        xr.Dataset({"v": ("x", np.array([True, None], object))}),
        xr.Dataset({"v": ("x", np.array([1.5, np.nan, 2], object))}),
        xr.Dataset({"v": ("x", np.array([None, None], object))}),
        xr.Dataset({"v": ("x", np.array(["a", "", None], object))}),
        xr.Dataset({"w": ("x", np.array(["a\0", np.nan, "\0"], object))}),
        xr.Dataset({"v": ("x", np.arange(3, dtype=">i4")), "w": ("x", np.arange(3, dtype=">f8"))}),
        xr.Dataset({"v": ("x", np.array(["ab", None], np.dtypes.StringDType(na_object=None)))}),
        xr.Dataset({"v": ("x", np.array(["ab", ""], np.dtypes.StringDType()))}),
        xr.Dataset({"v": ("x", np.array([2**63, 2**64 - 1], "u8")), "w": ("x", np.array([-(2**63)], "i8").repeat(2))}),
        xr.Dataset({"v": ("x", np.array([b"a", b"b"])), "w": (("x", "y"), np.array([[b"", b"c"]] * 2))}),
        xr.Dataset({"v": (tuple("abcdefgh"), np.arange(256.0).reshape([2] * 8))}),
    ],
)  # fmt: skip
def test_odd_datasets_come_back_identical(tmp_path, dataset):
    with there_and_back(dataset, tmp_path / "d.gs") as found:
        xr.testing.assert_identical(dataset, found)
        for name in dataset.variables:
            dtype = dataset[name].dtype
            assert (dtype if dtype.kind == "T" else dtype.newbyteorder("=")) == found[name].dtype


def test_complex_attributes_keep_infinities(tmp_path):
    given = np.array([complex(0, np.inf), complex(-np.inf, 0), complex(np.nan, -0.0)])
    dataset = xr.Dataset({"v": 1}, attrs={"c": given, "one": given[0].astype("c8")})
    gs.to_gridstone(dataset, tmp_path / "d.gs")
    with opened(tmp_path / "d.gs") as found:
        xr.testing.assert_identical(found, dataset)
        assert found.attrs["c"].tobytes() == given.tobytes()


def test_variables_keep_their_order(tmp_path):
    dataset = xr.Dataset({name: ("x", [1, 2]) for name in "zbya"}, {"x": [5, 6]})
    with there_and_back(dataset, tmp_path / "d.gs") as found:
        assert list(found.variables) == list(dataset.variables)


def test_missing_objects_are_what_they_were(tmp_path):
    dataset = xr.Dataset({"none": ("x", np.array([1, None], object)), "nan": ("x", np.array(["a", np.nan], object))})
    assert dataset["none"].values[1] is None
    with there_and_back(dataset, tmp_path / "d.gs") as found:
        assert found["none"].values[1] is None
        assert np.isnan(found["nan"].values[1])


def test_an_encoding_stays_beside_the_values(tmp_path):
    encoding = {"dtype": np.dtype("i2"), "scale_factor": np.float32(0.1), "_FillValue": np.int16(-9), "source": "f.nc"}
    time = xr.Variable(
        "t", pd.date_range("2000", periods=2), {}, {"units": "days since 1999-01-01", "calendar": "standard"}
    )
    dataset = xr.Dataset({"v": ("t", [1.234567, np.nan], {"a": 1}, encoding)}, {"t": time})
    with there_and_back(dataset, tmp_path / "d.gs") as found:
        xr.testing.assert_identical(dataset, found)
        assert {key: found.v.encoding[key] for key in ("dtype", "scale_factor", "_FillValue")} == {
            key: encoding[key] for key in ("dtype", "scale_factor", "_FillValue")
        }
        assert "source" not in found.v.encoding and "units" not in found.t.attrs
        assert found.t.encoding["units"] == "days since 1999-01-01"
    with opened(tmp_path / "d.gs", decode_cf=False) as raw:
        assert raw.v.values.tolist() == [12, -9] and raw.v.dtype == np.int16
        assert raw.t.values.tolist() == [365, 366] and raw.t.attrs["calendar"] == "standard"
    with opened(tmp_path / "d.gs", mask_and_scale={"v": False}, decode_times=True) as raw:
        assert raw.v.values.tolist() == [12, -9] and raw.t.dtype.kind == "M"


def test_an_encoding_that_is_asked_for_is_applied(tmp_path):
    dataset = xr.Dataset({"v": ("t", [1.26, np.nan])}, {"t": pd.date_range("2000", periods=2)})
    asked = {"v": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}, "t": {"units": "hours since 2000-01-01"}}
    gs.to_gridstone(dataset, tmp_path / "d.gs", encoding=asked)
    assert gs.open(tmp_path / "d.gs", path="/v")[...].tolist() == [3, -1]
    assert gs.open(tmp_path / "d.gs", path="/t")[...].tolist() == [0, 24]
    with opened(tmp_path / "d.gs") as found:
        assert found.v.values[0] == 1.5 and np.isnan(found.v.values[1])
        assert found.t.equals(dataset.t) and "units" not in found.t.attrs


def test_layouts_that_are_asked_for(tmp_path):
    dataset = xr.Dataset({"v": (("t", "x"), np.zeros((8, 9)))})
    gs.to_gridstone(dataset, tmp_path / "d.gs", encoding={"v": {"chunks": (2, 3), "filters": ["shuffle", "zstd:3"]}})
    made = gs.open(tmp_path / "d.gs", path="/v")
    assert made.chunks == (2, 3) and made.schema.attrs[0].filters == "shuffle,zstd:3"
    with opened(tmp_path / "d.gs", chunks={}) as found:
        assert found.v.chunks == ((2, 2, 2, 2), (3, 3, 3))
        assert found.v.encoding["preferred_chunks"] == {"t": 2, "x": 3}


def test_bounds_follow_the_encoding_of_their_times(tmp_path):
    time = pd.date_range("2000", periods=2)
    dataset = xr.Dataset(
        {"t_bnds": (("t", "n"), np.array([time, time]).T)}, {"t": ("t", time, {"bounds": "t_bnds"})}
    )  # fmt: skip
    gs.to_gridstone(dataset, tmp_path / "d.gs", encoding={"t": {"units": "hours since 2000-01-01"}})
    with opened(tmp_path / "d.gs") as found:
        xr.testing.assert_identical(dataset, found)


@pytest.mark.parametrize(
    ("dataset", "error", "words"),
    [
        (xr.Dataset({3: ("x", [1])}), TypeError, "string or None"),
        (xr.Dataset({"a/b": ("x", [1])}), gs.InputError, "slash"),
        (xr.Dataset({"": ("x", [1])}), gs.InputError, "length 1 or"),
        (xr.Dataset({"v": ((4,), [1])}), TypeError, "has to be a string"),
        (xr.Dataset({"v": ("x", np.array(["a", 1], object))}), gs.InputError, "texts, bytes or numbers alone"),
        (xr.Dataset({"v": ("x", [1])}, attrs={"f": print}), gs.InputError, "no JSON form"),
        (xr.Dataset({"v": ("x", [1], {"": 1})}), gs.InputError, "text that is not empty"),
        (xr.Dataset({"v": ("x", np.zeros(2, "i4,f8"))}), gs.InputError, "cannot be stored"),
        (xr.Dataset({"v": ("x", np.zeros(2, np.longdouble))}), gs.InputError, "cannot be stored"),
        (
            xr.Dataset({"v": ("x", pd.array([1, None], dtype="Int64"))}),
            gs.InputError,
            "'v' has a type of pandas, Int64",
        ),
        (xr.Dataset({"v": ("x", pd.array(["a", None], dtype="string"))}), gs.InputError, "type of pandas, string"),
        (xr.Dataset({"v": ("x", pd.Categorical(["a"]))}), gs.InputError, "type of pandas, category"),
        (xr.Dataset(coords={"t": pd.date_range("2000", periods=2, tz="UTC")}), gs.InputError, "without a zone"),
        (xr.Dataset({"v": ("x", [NOLEAP(2000, 1, 1), None])}), gs.InputError, "dates of cftime and None"),
        (xr.Dataset({"v": ("x", [np.nan, NOLEAP(2000, 1, 1)])}), gs.InputError, "dates of cftime and nan"),
        (xr.Dataset({"v": ("x", [NOLEAP(1, 1, 1, 0, 0, 0, 1), NOLEAP(9000, 1, 1)])}), gs.InputError, "another date"),
        (xr.Dataset(attrs={"a": np.zeros(2, "i4,f8")}), gs.InputError, "no structured type"),
        (np.zeros(3), gs.InputError, "takes a Dataset"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(tmp_path, dataset, error, words):
    with pytest.raises(error, match=words):
        gs.to_gridstone(dataset, tmp_path / "d.gs")
    assert not gs.exists(tmp_path / "d.gs")


@pytest.mark.parametrize("name", ["v", "x", None, "two words"])
def test_data_arrays(tmp_path, name):
    given = xr.DataArray([1.0, 2.0], {"x": [3, 4]}, name=name, attrs={"units": "K"})
    gs.to_gridstone(given, tmp_path / "d.gs")
    with xr.open_dataarray(tmp_path / "d.gs", engine="gridstone") as found:
        xr.testing.assert_identical(given, found)


def test_trees(tmp_path):
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"a": ("x", [1, 2])}, {"x": [3, 4]}, {"n": 1}),
            "/b": xr.Dataset(attrs={"empty": "yes"}),
            "/b/c": xr.Dataset({"d": ("x", [5, 6]), "e": ("y", [7.0])}),
        }
    )
    gs.to_gridstone(tree, tmp_path / "d.gs", group="/under/this")
    with xr.open_datatree(tmp_path / "d.gs", engine="gridstone", group="under/this") as found:
        xr.testing.assert_identical(tree, found)
    groups = xr.open_groups(tmp_path / "d.gs", engine="gridstone", group="under/this")
    assert sorted(groups) == ["/", "/b", "/b/c"]
    with opened(tmp_path / "d.gs", group="/under/this/b/c") as found:
        xr.testing.assert_identical(found, tree["/b/c"].to_dataset(inherit=False))


def test_calendars_of_no_type_come_back_with_their_dates(tmp_path):
    dates = np.array([cftime.Datetime360Day(2000, 2, 30), cftime.Datetime360Day(2000, 3, 1)], object)
    dataset = xr.Dataset({"v": ("t", [1, 2])}, {"t": dates})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with there_and_back(dataset, tmp_path / "d.gs") as found:
            xr.testing.assert_identical(dataset, found)
            assert found.t.encoding["calendar"] == "360_day"


def test_the_labels_of_arrays_are_the_coordinates(tmp_path):
    dataset = xr.Dataset({"v": (("t", "x"), np.arange(6).reshape(2, 3))}, {"t": pd.date_range("2000", periods=2)})
    gs.to_gridstone(dataset, tmp_path / "d.gs")
    plain = gs.open(tmp_path / "d.gs", path="/v")
    assert plain.sel(t="2000-01-02").to_numpy()["v"].tolist() == [3, 4, 5]
    assert plain.dim("x").labels is None


def test_a_lazy_dataset_pickles_without_data(tmp_path):
    dataset = xr.Dataset({"v": (("t", "x"), np.random.default_rng(1).random((300, 400)))})
    with there_and_back(dataset, tmp_path / "d.gs") as found:
        kept = pickle.dumps(found)
        assert len(kept) < 10_000
        xr.testing.assert_identical(pickle.loads(kept), dataset)


@pytest.mark.parametrize("dtype", [object, "U1", np.dtypes.StringDType()])
def test_coordinates_that_an_encoding_names_are_no_attribute(tmp_path, dtype):
    dataset = xr.Dataset({"v": ("x", np.array(["a", "b"], dtype))}, {"lat": ("x", [1.0, 2.0])})
    dataset.v.encoding = {"coordinates": "lat"}
    with there_and_back(dataset, tmp_path / "d.gs") as found:
        xr.testing.assert_identical(dataset, found)
        assert found.v.dtype == dtype and found.v.encoding["coordinates"] == "lat"


def test_bytes_of_plain_arrays_are_no_characters(tmp_path):
    gs.array(tmp_path / "a.gs", np.array([b"a", b"b"]), dims=["x"], name="v")
    with opened(tmp_path / "a.gs") as found:
        assert found.v.dims == ("x",) and found.v.values.tolist() == [b"a", b"b"]
