"""Zarr that xarray writes, attached: values, dimensions and labels as xarray shows them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridstone as gs
from gridstone import cli

zarr = pytest.importorskip("zarr", minversion="3")
xr = pytest.importorskip("xarray")

pytestmark = pytest.mark.filterwarnings("ignore")
KINDS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"]


@st.composite
def variables(draw: st.DrawFn) -> dict[str, Any]:
    """Stored values with attributes of CF, as a variable of xarray that is not decoded."""
    kind = np.dtype(draw(st.sampled_from(KINDS)))
    low, high = (-100, 100) if kind.kind == "f" else (max(-100, np.iinfo(kind).min), 100)
    values = np.asarray(draw(st.lists(st.integers(low, high), min_size=6, max_size=6)), kind)
    attributes: dict[str, Any] = {}
    fill = draw(st.sampled_from([None, values[0], kind.type(high), *([np.nan] if kind.kind == "f" else [])]))
    if fill is not None:
        attributes["_FillValue"] = kind.type(fill)
    if draw(st.booleans()):
        attributes["missing_value"] = kind.type(values[1])
    if draw(st.booleans()):
        attributes["scale_factor"] = draw(st.sampled_from([0.01, 2.0, 0.1]))
    if draw(st.booleans()):
        attributes["add_offset"] = draw(st.sampled_from([0.5, 273.15]))
    # The JSON of a missing value has no type: xarray does not find a negative one among unsigned numbers, and we do.
    if kind.str[1:] in ("i1", "i2") and attributes.get("missing_value", 0) >= 0 and draw(st.booleans()):
        attributes["_Unsigned"] = "true"
    version = draw(st.sampled_from([2, 3]))
    return {"values": values, "attributes": attributes, "version": version, "chunk": draw(st.integers(1, 7))}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(made=variables())
def test_values_are_those_that_xarray_shows(tmp_path_factory: pytest.TempPathFactory, made: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("cf")
    stored = xr.Dataset({"v": ("n", made["values"], made["attributes"])})
    stored.to_zarr(folder / "x.zarr", zarr_format=made["version"], encoding={"v": {"chunks": (made["chunk"],)}})
    a = gs.attach(folder / "x.gs", folder / "x.zarr", "/v")
    found = np.ma.asarray(a[...])
    with xr.open_zarr(folder / "x.zarr", chunks=None) as shown:
        expected = shown["v"].values
    if {"scale_factor", "add_offset"} & set(made["attributes"]):
        assert found.dtype == expected.dtype
    missing = np.isnan(expected) if expected.dtype.kind == "f" else np.zeros(6, bool)
    assert (np.isnan(np.ma.filled(found.astype("f8"), np.nan)) == missing).all()
    assert (found.astype(expected.dtype)[~missing] == expected[~missing]).all()
    plain = gs.attach(folder / "y.gs", folder / "x.zarr", "/v", decode=False)
    assert np.array_equal(np.asarray(plain), made["values"], equal_nan=made["values"].dtype.kind == "f")


@pytest.mark.parametrize("version", [2, 3])
def test_dimensions_labels_times_and_texts(tmp_path: Path, version: int) -> None:
    times = np.array(["2000-01-01", "2000-01-02T12", "2000-01-05"], "M8[ns]")
    made = xr.Dataset(
        {
            "t": (("time", "lat"), np.arange(6.0).reshape(3, 2), {"long_name": "some values"}),
            "name": (("lat",), np.array(["a", "bc"], dtype="U2")),
            "single": ((), 5),
        },
        coords={"time": times, "lat": ("lat", [-10.0, 10.0], {"units": "degrees_north"})},
        attrs={"title": "a test", "numbers": [1, 2]},
    )
    made.to_zarr(tmp_path / "x.zarr", zarr_format=version)
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.zarr", "/t")
    assert a.dims == ("time", "lat")
    assert a.sel(time="2000-01-05", lat=10)["t"] == 5
    assert dict(a.meta)["long_name"] == "some values"
    assert "_ARRAY_DIMENSIONS" not in a.meta
    tree = gs.attach(tmp_path / "y.gs", tmp_path / "x.zarr")
    assert (tree.meta["title"], tree.meta["numbers"]) == ("a test", [1, 2])
    assert tree["t"].sel(time="2000-01-02T12", lat=-10)["t"] == 2
    assert tree["name"][...].tolist() == ["a", "bc"]
    assert tree["single"][()] == 5
    assert (tree["time"][...] == times).all()
    assert tree["lat"].meta["units"] == "degrees_north"
    assert "not attached" not in tree.meta


@pytest.mark.parametrize("version", [2, 3])
def test_runs_that_follow_each_other(tmp_path: Path, version: int) -> None:
    for n in (10, 2):
        coords = {"time": np.arange(3) + n}
        xr.Dataset({"t": (("time", "x"), np.full((3, 2), n))}, coords).to_zarr(
            tmp_path / f"run_{n}.zarr", zarr_format=version
        )
    with pytest.warns(UserWarning, match="gaps"):
        a = gs.attach(tmp_path / "x.gs", str(tmp_path / "run_*.zarr"), "/t", concat="time")
    assert a.shape == (6, 2)
    assert np.asarray(a.dim("time").labels).tolist() == [2, 3, 4, 10, 11, 12]
    assert np.asarray(a[:, 0]).tolist() == [2, 2, 2, 10, 10, 10]


def test_a_fill_of_zero_is_a_number_where_xarray_would_not_read(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x", shape=(4,), chunks=(2,), dtype="i4", zarr_format=2, fill_value=0)
    array[:2] = [0, 3]
    assert np.asarray(gs.attach(tmp_path / "x.gs", tmp_path / "x", "/")[...]).tolist() == [0, 3, 0, 0]
    array.attrs["_ARRAY_DIMENSIONS"] = ["n"]
    a = gs.attach(tmp_path / "y.gs", tmp_path / "x", "/")
    assert np.ma.getmaskarray(a[...]).tolist() == [True, False, True, True]
    assert a["array"].meta["encoding"]["_FillValue"] == 0
    assert a.dims == ("n",)


def test_the_command_line_takes_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(2):
        zarr.create_array(tmp_path / f"r{n}", shape=(4,), chunks=(3,), dtype="i4")[...] = np.arange(4) + n
    uri = str(tmp_path / "x.gs")
    assert cli.run(["attach", uri, str(tmp_path / "r0"), str(tmp_path / "r1"), "-d", "/", "--concat", "d0"]) == 0
    assert np.asarray(gs.open(uri)[...]).tolist() == [0, 1, 2, 3, 1, 2, 3, 4]
    assert cli.run(["verify", uri]) == 0
    (tmp_path / "r1/c/1").unlink()
    capsys.readouterr()
    assert cli.run(["verify", uri]) != 0
    told = capsys.readouterr()
    assert "r1/c/1" in told.out + told.err
