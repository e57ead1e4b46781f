"""What xarray and pandas have comes in with its names, and goes out to xarray with them."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridstone as gs
from gridstone.errors import InputError, UnsupportedError


def cube() -> xr.DataArray:
    """Two days of a small map."""
    made = xr.DataArray(
        np.arange(24, dtype="float32").reshape(2, 3, 4),
        dims=["time", "lat", "lon"],
        coords={
            "time": pd.date_range("2026-03-01", periods=2),
            "lat": ("lat", [60.0, 50.0, 40.0], {"units": "degrees_north"}),
            "lon": ("lon", [1.0, 2.5, 3.0, 9.0], {"units": "degrees_east", "axis": "X"}),
        },
        name="t2m",
        attrs={"units": "K", "valid": [200.0, 320.0], "levels": 3},
    )
    return made


def test_a_dataarray_comes_back_as_it_was() -> None:
    there = cube()
    a = gs.array("mem://xarray-round", there)
    assert a.dims == ("time", "lat", "lon") and a.schema_names == ["t2m"]
    assert dict(a.meta) == {"units": "K", "valid": [200.0, 320.0], "levels": 3}
    assert dict(a.dim("lon").meta) == {"units": "degrees_east", "axis": "X"} and dict(a.dim("time").meta) == {}
    assert gs.open(a.uri).to_xarray().identical(there)
    # All of it is one commit, which an older version does not have.
    assert len(a.history()) == 1


def test_a_part_of_it_is_what_xarray_has() -> None:
    there = cube()
    a = gs.array("mem://xarray-part", there)
    assert a.read({"lat": (1, 2), "lon": slice(1, 3)}).to_xarray().identical(there[:, 1:3, 1:3])
    for order in ("col", "global", "any"):
        assert a.read({"lat": (1, 2)}, order=order).to_xarray().identical(there[:, 1:3]), order
    assert (
        a.sel(time="2026-03-02", lat=slice(50, 40))
        .to_xarray()
        .identical(there.sel(time="2026-03-02", lat=slice(50, 40)))
    )
    assert a["t2m"].sel(lon=[9, 1]).to_xarray().identical(there.sel(lon=[9, 1]))


def test_a_dataset_is_an_array_of_several_attributes() -> None:
    there = xr.Dataset({"t2m": cube(), "n": cube().astype("int16")}, attrs={"title": "two days"})
    there["n"].attrs = {"units": "1"}
    a = gs.array("mem://xarray-dataset", there)
    assert a.schema_names == ["t2m", "n"] and dict(a.meta) == {"title": "two days"} and a["n"].meta["units"] == "1"
    assert a.to_xarray().identical(there)
    with pytest.raises(InputError, match="have the same dimensions"):
        gs.array("mem://xarray-dataset-2", there.assign(mean=there["n"].mean("lat")))
    with pytest.raises(InputError, match="no variable"):
        gs.array("mem://xarray-dataset-3", xr.Dataset())
    with pytest.raises(InputError, match="found a dict"):
        gs.array("mem://xarray-dataset-4", {"t2m": cube().values})


def test_names_can_be_given_beside_what_comes() -> None:
    a = gs.array("mem://xarray-beside", cube(), dims=["t", "y", "x"], coords={"x": ["a", "b", "c", "d"]}, name="v")
    assert a.dims == ("t", "y", "x") and a.schema_names == ["v"] and a.dim("y").meta["units"] == "degrees_north"
    assert a.sel(t="2026-03-01", y=60, x="c")["v"] == 2


def test_coordinates_that_are_no_labels_are_left_out_with_a_warning() -> None:
    there = cube().assign_coords(mask=(("lat", "lon"), np.ones((3, 4), bool)), run=7)
    with pytest.warns(UserWarning, match="left out: 'mask', 'run'"):
        a = gs.array("mem://xarray-left-out", there)
    assert a.to_xarray().identical(cube())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.array("mem://xarray-none", cube())
    with pytest.raises(InputError, match="several levels"):
        gs.array("mem://xarray-levels", cube().stack(place=["lat", "lon"]))


def test_what_has_no_labels_shows_coordinates() -> None:
    schema = gs.Schema([gs.Dim("y", (5, 6)), gs.Dim("x", (0, 2))], [gs.Attr("v", "int64"), gs.Attr("rgb", "uint8[3]")])
    a = gs.create("mem://xarray-coordinates", schema)
    found = a.to_xarray()
    assert (
        found["y"].values.tolist() == [5, 6]
        and found["x"].values.tolist() == [0, 1, 2]
        and found["v"].dims == ("y", "x")
    )
    assert found["rgb"].dims == ("y", "x", "rgb_0") and found["rgb"].shape == (2, 3, 3)


def test_nulls_and_times_are_what_xarray_has_for_them() -> None:
    attrs = [
        gs.Attr("n", "int32", nullable=True),
        gs.Attr("s", "string", nullable=True),
        gs.Attr("day", "datetime64[D]"),
        gs.Attr("at", "datetime64[6h]", nullable=True),
    ]
    a = gs.create("mem://xarray-nulls", gs.Schema([gs.Dim("x", (0, 1), labels=["a", None])], attrs))
    a[0] = {"n": 3, "s": "b", "day": np.datetime64("2026-03-01"), "at": np.datetime64("2026-03-01T06")}
    found = a.to_xarray()
    assert (
        found["n"].values[0] == 3
        and np.isnan(found["n"].values[1])
        and pd.isna(found["s"].values).tolist() == [False, True]
    )
    assert found["day"].values[0] == np.datetime64("2026-03-01") and np.isnat(found["day"].values[1])
    assert found["at"].values[0] == np.datetime64("2026-03-01T06") and np.isnat(found["at"].values[1])


def test_a_list_of_cells_and_a_sparse_array_are_refused() -> None:
    a = gs.array("mem://xarray-cells", cube())
    for cells in (a.read(where="t2m > 3"), a.points({"time": [0], "lat": [1], "lon": [2]})):
        with pytest.raises(UnsupportedError, match="a list of cells"):
            cells.to_xarray()
    sparse = gs.create("mem://xarray-sparse", gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "int8")], sparse=True))
    with pytest.raises(UnsupportedError, match="needs a dense array"):
        sparse.to_xarray()


def test_without_xarray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    a = gs.array("mem://xarray-missing", [1, 2])
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(UnsupportedError, match=r"to_xarray\(\) needs xarray.*pip install 'gridstone\[xarray\]'"):
        a.to_xarray()


def test_a_frame_and_a_series_keep_names_and_labels() -> None:
    frame = pd.DataFrame(
        {"oslo": [1.5, 2.0], "rome": [9.0, np.nan]},
        index=pd.Index(pd.to_datetime(["2026-03-01", "2026-03-04"]), name="day"),
    )
    frame.columns.name = "city"
    a = gs.array("mem://xarray-frame", frame)
    assert a.dims == ("day", "city") and a.sel(day="2026-03-04", city="oslo")["value"] == 2
    assert a.to_xarray().to_pandas().equals(frame)
    series = pd.Series([3, 4], index=["a", "b"], name="n")
    b = gs.array("mem://xarray-series", series)
    assert b.schema_names == ["n"] and b.dims == ("d0",) and b.sel(d0="b")["n"] == 4
    plain = gs.array("mem://xarray-frame-plain", pd.DataFrame(np.zeros((2, 2))))
    assert plain.dims == ("d0", "d1") and plain.dim("d0").labels is None and plain.dim("d1").labels is None
    with pytest.raises(InputError, match="columns of the frame have several types"):
        gs.array("mem://xarray-frame-mixed", pd.DataFrame({"n": [1, 2], "s": ["x", "y"]}))
    with pytest.raises(InputError, match="several levels"):
        gs.array("mem://xarray-frame-levels", frame.stack().to_frame())
