"""What appends and regions keep: no value becomes another one on its way into what is there."""

import cftime
import dask.array
import numpy as np
import pytest
import xarray as xr
from xarray_stores import opened

import gridstone as gs
import gridstone.xarray.lazy
from gridstone.errors import InputError

DAYS = np.array(["2000-01-01", "2000-01-02", "2000-01-03"], "datetime64[ns]")
NOON = np.array(["2000-01-04T12"], "datetime64[ns]")


def _timed(times, **options):
    return xr.Dataset({"v": ("t", np.arange(len(times), dtype="f8"))}, {"t": ("t", times)}, **options)


def _of_calendar(*days):
    return np.array([cftime.DatetimeNoLeap(2000, 1, 1, 12 * half) + (day - 1) * ONE for day, half in days], object)


ONE = cftime.DatetimeNoLeap(2000, 1, 2) - cftime.DatetimeNoLeap(2000, 1, 1)


def _refused(uri, words, act):
    version = gs.open(uri).version
    with pytest.raises(InputError, match=words):
        act()
    assert gs.open(uri).version == version


def test_dates_that_the_units_of_an_array_cannot_have_are_refused(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(_timed(_of_calendar((1, 0), (2, 0))), uri)
    _refused(uri, "units", lambda: gs.to_gridstone(_timed(_of_calendar((4, 1))), uri, append_dim="t"))
    gs.to_gridstone(_timed(_of_calendar((4, 0))), uri, append_dim="t")
    assert opened(uri).t.values.tolist() == _of_calendar((1, 0), (2, 0), (4, 0)).tolist()


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("time", ["2000-01-04T12", "2000-01-04T05:07:11.123456789"])
def test_times_that_their_encoding_cannot_have_are_refused(tmp_path, time, is_lazy):
    uri = tmp_path / "a.gs"
    encoding = {"when": {"units": "days since 2000-01-01", "dtype": "int64"}}
    gs.to_gridstone(xr.Dataset({"when": ("x", DAYS)}), uri, encoding=encoding)
    times = np.array([time], "datetime64[ns]")
    other = xr.Dataset({"when": ("x", dask.array.from_array(times) if is_lazy else times)})
    _refused(uri, "dtype|encoding", lambda: gs.to_gridstone(other, uri, append_dim="x"))
    _refused(uri, "dtype|encoding", lambda: gs.to_gridstone(other, uri, region={"x": slice(1, 2)}))
    assert opened(uri).when.values.tolist() == DAYS.tolist()


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("value", [np.nan, 1e6, -4000.0])
def test_values_that_packing_cannot_have_are_refused(tmp_path, is_lazy, value):
    uri = tmp_path / "a.gs"
    encoding = {"v": {"dtype": "int16", "scale_factor": 0.1}}
    gs.to_gridstone(xr.Dataset({"v": ("x", [0.1, 20.3])}), uri, encoding=encoding)
    values = np.array([1.0, value])
    more = xr.Dataset({"v": ("x", dask.array.from_array(values) if is_lazy else values)})
    _refused(uri, "encoding", lambda: gs.to_gridstone(more, uri, append_dim="x"))
    # What packing rounds by less than half a step is what packing is for.
    gs.to_gridstone(xr.Dataset({"v": ("x", [0.52, -0.33])}), uri, append_dim="x")
    np.testing.assert_allclose(opened(uri).v, [0.1, 20.3, 0.5, -0.3])


@pytest.mark.parametrize("is_lazy", [False, True])
def test_the_same_encoding_given_again_loses_nothing_either(tmp_path, is_lazy):
    uri = tmp_path / "a.gs"
    encoding = {"v": {"dtype": "int16", "scale_factor": 0.01, "add_offset": 273.15}}
    values = np.arange(-10000, 30000, dtype="f4") * np.float32(0.005)
    first = xr.Dataset({"v": ("x", values)})
    gs.to_gridstone(first, uri, encoding=encoding)
    gs.to_gridstone(first.chunk() if is_lazy else first, uri, append_dim="x", encoding=encoding)
    np.testing.assert_array_equal(opened(uri).v[: values.size], opened(uri).v[values.size :])
    lost = xr.Dataset({"v": ("x", [1e6])})
    more = {"append_dim": "x", "encoding": encoding}
    _refused(uri, "'v'", lambda: gs.to_gridstone(lost.chunk() if is_lazy else lost, uri, **more))
    finer = {"append_dim": "x", "encoding": {"v": {"dtype": "int32", "scale_factor": 0.5}}}
    gs.to_gridstone(xr.Dataset({"v": ("x", [1.26])}), uri, **finer)
    assert float(opened(uri).v[-1]) == pytest.approx(1.26, abs=0.0051)


def test_what_equals_the_fill_value_is_refused(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", [1.0, np.nan])}), uri, encoding={"v": {"dtype": "int16", "_FillValue": -1}})
    _refused(uri, "encoding", lambda: gs.to_gridstone(xr.Dataset({"v": ("x", [-1.0])}), uri, append_dim="x"))
    gs.to_gridstone(xr.Dataset({"v": ("x", [np.nan, 7.0])}), uri, append_dim="x")
    np.testing.assert_array_equal(opened(uri).v, [1.0, np.nan, np.nan, 7.0])


@pytest.mark.parametrize("chunks", [None, {"t": 1}])
def test_times_that_are_shown_encoded_have_one_unit(tmp_path, chunks):
    uri = tmp_path / "a.gs"
    days = _timed(DAYS)
    days["w"] = ("t", DAYS)
    days.w.encoding = {"units": "days since 2000-01-01", "dtype": np.dtype("int64")}
    gs.to_gridstone(days, uri)
    noon = _timed(NOON)
    noon["w"] = ("t", NOON)
    gs.to_gridstone(noon, uri, append_dim="t")
    with opened(uri, decode_times=False, chunks=chunks) as shown:
        assert shown.w.attrs["units"].startswith("days since 2000-01-01")
        assert shown.w.values.tolist() == [0, 1, 2, 3.5]
        assert shown.w.dtype == np.float64 and shown.w[:2].values.tolist() == [0, 1]
        back = xr.decode_cf(shown)
        assert back.w.values.astype("M8[ns]").tolist() == [*DAYS.tolist(), *NOON.tolist()]


@pytest.mark.parametrize("chunks", [None, {}])
def test_packing_that_loses_is_shown_as_floats_or_refused(tmp_path, monkeypatch, chunks):
    uri = tmp_path / "a.gs"
    packed = xr.Dataset({"v": ("x", [0.1, 20.3])})
    packed.v.encoding = {"dtype": np.dtype("int16"), "scale_factor": 0.1}
    gs.to_gridstone(packed, uri)
    gs.to_gridstone(xr.Dataset({"v": ("x", [np.nan, 1e6])}), uri, append_dim="x")
    with opened(uri, mask_and_scale=False, chunks=chunks) as shown:
        assert shown.v[:2].values.tolist() == pytest.approx([1, 203])
        np.testing.assert_allclose(shown.v.values, [1, 203, np.nan, 1e7])
    monkeypatch.setattr(gridstone.xarray.lazy, "_LOOKED_THROUGH_CELLS", 0)
    with opened(uri, mask_and_scale=False, chunks=chunks) as shown:
        if chunks is None:
            assert shown.v[:2].values.tolist() == [1, 203] and shown.v.dtype == np.int16
        with pytest.raises(InputError, match="mask_and_scale"):
            shown.v.load()


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["a", "bc"], np.array(["q", None], object)),
        (["a", "bc"], np.array([np.nan, "q"], object)),
        ([1, 2], np.array([3, None], object)),
        ([True, False], np.array([True, None], object)),
        (np.array([1, None], object), np.array([2.7, np.nan], object)),
        (np.array([1, None], object), np.array([2**63], object)),
        (np.array([1.5, None], object), np.array([2**60 + 1, 0.5], object)),
        (np.array([True, None], object), np.array([2, None], object)),
        (np.array([1, None], object), np.array(["x"], object)),
        (np.array(["a", None], object), np.array([1], object)),
    ],
)
def test_objects_that_an_array_cannot_have_are_refused(tmp_path, first, then):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", first)}), uri)
    before = opened(uri).load()
    _refused(uri, "'v'", lambda: gs.to_gridstone(xr.Dataset({"v": ("x", then)}), uri, append_dim="x"))
    region = xr.Dataset({"v": ("x", then[:1] if then[0] is not None and then[0] == then[0] else then)})
    part = {"x": slice(0, region.sizes["x"])}
    if len(then) == region.sizes["x"]:
        _refused(uri, "'v'", lambda: gs.to_gridstone(region, uri, region=part))
    xr.testing.assert_identical(before, opened(uri).load())


def test_objects_that_lose_digits_are_refused(tmp_path):
    with pytest.raises(InputError, match="'v'"):
        gs.to_gridstone(xr.Dataset({"v": ("x", np.array([2**60 + 1, 0.5], object))}), tmp_path / "a.gs")
    assert not (tmp_path / "a.gs").exists()


def test_objects_that_fit_are_appended(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", np.array([1, None], object))}), uri)
    gs.to_gridstone(xr.Dataset({"v": ("x", np.array([3.0, None, np.int8(4)], object))}), uri, append_dim="x")
    assert opened(uri).v.values.tolist() == [1, None, 3, None, 4]


def test_the_name_of_what_has_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="__values__"):
        gs.to_gridstone(xr.Dataset({"__values__": ("x", [1.0])}), tmp_path / "a.gs")
    gs.to_gridstone(xr.Dataset({None: ("x", [1.0])}), tmp_path / "b.gs")
    assert list(opened(tmp_path / "b.gs").variables) == [None]


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("is_region", [False, True])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (np.array([b"abc", b"d"]), np.array([b"longer", b"x"], object)),
        (np.array([b"abc", b"d"]), np.array([b"x\0", b"x"], object)),
        (np.array([b"abc", b"d"]), np.array([1, 2], object)),
        (DAYS[:2], np.array([1, 2])),
        (DAYS[:2], np.array([1, None], object)),
        (DAYS[:2], np.array(["2001-01-01", "2001-01-02"])),
        (DAYS[:2] - DAYS[0], np.array([1.5, 2])),
        (DAYS[:2], _of_calendar((1, 0), (2, 0))),
        (_of_calendar((1, 0), (2, 0)), DAYS[:2]),
        (_of_calendar((1, 0), (2, 0)), np.array([*_of_calendar((1, 0)), None], object)),
        (_of_calendar((1, 0), (2, 0)), np.array([None, *_of_calendar((1, 0))], object)),
    ],
)
@pytest.mark.filterwarnings("ignore::xarray.SerializationWarning")
def test_what_would_be_cut_or_become_a_date_is_refused(tmp_path, first, then, is_lazy, is_region):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", first)}), uri)
    before = opened(uri).load()
    given = xr.Dataset({"v": ("x", then)})
    where = {"region": {"x": slice(0, 2)}} if is_region else {"append_dim": "x"}
    _refused(uri, "'v'", lambda: gs.to_gridstone(given.chunk() if is_lazy else given, uri, **where))
    xr.testing.assert_identical(before, opened(uri).load())


def test_objects_that_are_missing_among_times(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"v": ("x", DAYS[:1])}), uri)
    gs.to_gridstone(xr.Dataset({"v": ("x", np.array([None, np.nan], object))}), uri, append_dim="x")
    assert opened(uri).v.values.tolist() == [*DAYS[:1].tolist(), None, None]


def test_the_variable_of_a_block_is_named(tmp_path):
    uri = tmp_path / "a.gs"
    gs.to_gridstone(xr.Dataset({"speed": ("x", np.array(["a"], np.dtypes.StringDType()))}), uri)
    gaps = np.array(["b", None], np.dtypes.StringDType(na_object=None))
    more = xr.Dataset({"speed": ("x", gaps)}).chunk({"x": 1})
    _refused(uri, "'speed' has missing values", lambda: gs.to_gridstone(more, uri, append_dim="x"))


@pytest.mark.parametrize("is_lazy", [False, True])
def test_labels_of_an_encoded_coordinate_are_what_is_shown(tmp_path, is_lazy):
    uri = tmp_path / "a.gs"
    encoding = {"lat": {"dtype": "int16", "scale_factor": 0.5}}
    first = xr.Dataset({"v": ("lat", [1.0, 2.0])}, {"lat": [1, 2]})
    gs.to_gridstone(first, uri, encoding=encoding)
    more = xr.Dataset({"v": ("lat", [3.0, 4.0])}, {"lat": [3.4, 4.1]})
    gs.to_gridstone(more.chunk() if is_lazy else more, uri, append_dim="lat")
    labels = gs.open(uri, path="/v").dim("lat").labels
    assert labels.tolist() == opened(uri).lat.values.tolist() == [1, 2, 3.5, 4]
    assert labels.dtype == opened(uri).lat.dtype


@pytest.mark.parametrize("is_lazy", [False, True])
def test_labels_that_the_type_of_those_before_lacks_are_refused(tmp_path, is_lazy):
    uri = tmp_path / "a.gs"
    schema = gs.Schema([gs.Dim("x", (0, 1), labels=np.array([1, 2]))], [gs.Attr("v", "float64")])
    gs.group(uri, mode="a").create("v", schema)
    more = xr.Dataset({"v": ("x", [3.0, 4.0])}, {"x": [3.5, 4.0]})
    _refused(
        uri,
        "labels along 'x'.*int64.*3.5",
        lambda: gs.to_gridstone(more.chunk() if is_lazy else more, uri, append_dim="x"),
    )
    more["x"] = [3.0, 4.0]
    gs.to_gridstone(more.chunk() if is_lazy else more, uri, append_dim="x")
    labels = gs.open(uri, path="/v").dim("x").labels
    assert labels.dtype == np.int64 and labels.tolist() == [1, 2, 3, 4]
