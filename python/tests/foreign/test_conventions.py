"""Fill values, packed numbers and times as xarray shows them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridstone as gs

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")

KINDS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"]


def _write(path: Path, made: dict[str, Any]) -> None:
    kind = made["kind"]
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("n", 6)
        variable = file.createVariable("v", kind, ("n",), fill_value=made["fill"], zlib=made["zlib"])
        variable.set_auto_maskandscale(False)
        for name, value in made["attributes"].items():
            variable.setncattr(name, value)
        variable[:] = np.asarray(made["values"], kind)


@st.composite
def variables(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(KINDS))
    dtype = np.dtype(kind)
    low, high = (-100, 100) if dtype.kind == "f" else (max(-100, np.iinfo(dtype).min), 100)
    values = draw(st.lists(st.integers(low, high), min_size=6, max_size=6))
    fill = draw(st.sampled_from([None, values[0], high]))
    attributes: dict[str, Any] = {}
    if draw(st.booleans()):
        attributes["missing_value"] = dtype.type(values[1])
    width = draw(st.sampled_from([np.float32, np.float64]))
    if draw(st.booleans()):
        attributes["scale_factor"] = width(draw(st.sampled_from([0.01, 2.0, 0.1])))
    if draw(st.booleans()):
        attributes["add_offset"] = draw(st.sampled_from([width, np.float64]))(draw(st.sampled_from([0.5, 273.15])))
    if kind in ("i1", "i2") and draw(st.booleans()):
        attributes["_Unsigned"] = "true"
    return {"kind": kind, "fill": fill, "attributes": attributes, "values": values, "zlib": draw(st.booleans())}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(made=variables())
def test_values_are_those_that_xarray_shows(tmp_path_factory: pytest.TempPathFactory, made: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("cf")
    _write(folder / "x.nc", made)
    a = gs.attach(folder / "x.gs", folder / "x.nc", "/v")
    assert isinstance(a, gs.Array)
    found = np.ma.asarray(a[...])
    with xr.open_dataset(folder / "x.nc", engine="netcdf4") as shown:
        expected = shown["v"].values
    packed = {"scale_factor", "add_offset"} & set(made["attributes"])
    if packed:
        assert found.dtype == expected.dtype, made
    missing = np.isnan(expected) if expected.dtype.kind == "f" else np.zeros(6, bool)
    assert (np.ma.getmaskarray(found) == missing).all() or (
        np.isnan(np.ma.filled(found.astype("f8"), np.nan)) == missing
    ).all()
    assert (found.astype(expected.dtype)[~missing] == expected[~missing]).all()
    plain = gs.attach(folder / "y.gs", folder / "x.nc", "/v", decode=False)
    assert (np.asarray(plain) == np.asarray(made["values"], made["kind"])).all()


@pytest.mark.parametrize(
    ("units", "calendar"),
    [
        ("days since 2000-01-01", None),
        ("hours since 1900-01-01 00:00:0.0", "gregorian"),
        ("seconds since 1970-01-01T00:00:00Z", "standard"),
        ("minutes since 2020-02-28 23:30:15", "proleptic_gregorian"),
        ("days since 0001-01-01", "standard"),
        ("days since 0001-01-01", "proleptic_gregorian"),
        ("hours since 2000-01-01 12:00:00 +02:00", None),
        ("milliseconds since 2001-09-09 01:46:40", None),
    ],
)
@pytest.mark.parametrize("kind", ["i4", "i8", "f8"])
def test_times_are_datetimes(tmp_path: Path, units: str, calendar: str | None, kind: str) -> None:
    stored = np.array([0, 1, 59, 731000 if "0001" in units else 4000], kind) + (0.25 if kind == "f8" else 0)
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("time", 4)
        variable = file.createVariable("t", kind, ("time",))
        variable.units = units
        if calendar:
            variable.calendar = calendar
        variable[:] = stored
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.nc", "/t")
    assert isinstance(a, gs.Array)
    assert a.dtype == np.dtype("datetime64[us]")
    expected = netCDF4.num2date(stored, units.replace("+02:00", "").strip(), calendar or "standard")
    shift = 2 * 3600 * 10**6 if "+02:00" in units else 0
    for found, wanted in zip(a[...][-1:], expected[-1:], strict=True):
        day = np.datetime64(f"{wanted.year:04d}-{wanted.month:02d}-{wanted.day:02d}", "us").astype("i8")
        seconds = wanted.hour * 3600 + wanted.minute * 60 + wanted.second
        wanted_us = day + seconds * 10**6 + wanted.microsecond
        assert abs(int(found.astype("i8")) + shift - int(wanted_us)) <= 1
    assert a["t"].meta["encoding"]["units"] == units


def test_other_calendars_stay_numbers_with_their_attributes(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("time", 2)
        variable = file.createVariable("t", "i4", ("time",))
        variable.units, variable.calendar = "days since 2000-01-01", "noleap"
        variable[:] = [1, 2]
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.nc", "/t")
    assert isinstance(a, gs.Array)
    assert (a.dtype, a.meta["calendar"]) == (np.dtype("i4"), "noleap")


def test_scales_are_labels(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("lat", 3)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        lat = file.createVariable("lat", "f4", ("lat",))
        v = file.createVariable("v", "f4", ("time", "lat"))
        v.long_name = "some values"
        time[:], lat[:], v[:] = np.arange(4), [-10, 0, 10], np.arange(12).reshape(4, 3)
        file.title = "a test"
        inner = file.createGroup("inner")
        inner.createDimension("k", 2)
        inner.createVariable("w", "i2", ("k",))[:] = [5, 6]
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.nc", "/v")
    assert isinstance(a, gs.Array)
    assert a.dims == ("time", "lat")
    assert a.sel(time="2000-01-03", lat=10)["v"] == 8
    assert a.meta["long_name"] == "some values"
    tree = gs.attach(tmp_path / "y.gs", tmp_path / "x.nc")
    assert isinstance(tree, gs.Group)
    assert tree.meta["title"] == "a test"
    assert (tree["inner/w"][...] == [5, 6]).all()
    assert tree["v"].sel(time="2000-01-03", lat=10)["v"] == 8


@pytest.mark.parametrize(
    ("zone", "minutes"), [("+5:30", 330), ("-9:30", -570), ("+0530", 330), ("-03", -180), ("Z", 0), ("+2", 120)]
)
def test_time_zones(tmp_path: Path, zone: str, minutes: int) -> None:
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("n", 1)
        variable = file.createVariable("t", "i4", ("n",))
        variable.units = f"seconds since 1970-01-02 00:00:00 {zone}"
        variable[:] = [0]
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.nc", "/t")
    assert isinstance(a, gs.Array)
    assert a[0] == np.datetime64("1970-01-02", "us") - np.timedelta64(minutes, "m")


@pytest.mark.parametrize(("kind", "fill"), [("u1", 255), ("u2", 65_535)])
def test_fills_of_the_other_sign(tmp_path: Path, kind: str, fill: int) -> None:
    made = {
        "kind": kind,
        "fill": fill,
        "attributes": {"_Unsigned": "false"},
        "values": [1, fill, 2, 3, 4, 5],
        "zlib": True,
    }
    _write(tmp_path / "x.nc", made)
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.nc", "/v")
    assert isinstance(a, gs.Array)
    assert np.ma.getmaskarray(a[...]).tolist() == [False, True, False, False, False, False]


@pytest.mark.parametrize(
    ("kind", "fill"),
    [
        *((kind, fill) for kind in ("i8", "u4", "i2", "f4", "f8") for fill in (None, 100)),
        *((kind, float("nan")) for kind in ("f4", "f8")),
    ],
)
@pytest.mark.parametrize("width", ["f4", "f8"])
@pytest.mark.parametrize("offset", [None, 1.0])
def test_types_of_unpacked_numbers(tmp_path: Path, kind: str, width: str, fill: Any, offset: float | None) -> None:
    attributes = {"scale_factor": np.dtype(width).type(0.5)}
    if offset is not None:
        attributes["add_offset"] = np.dtype(width).type(offset)
    _write(tmp_path / "x.nc", {"kind": kind, "fill": fill, "attributes": attributes, "values": range(6), "zlib": False})
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.nc", "/v")
    assert isinstance(a, gs.Array)
    with xr.open_dataset(tmp_path / "x.nc", engine="netcdf4") as shown:
        assert a.dtype == shown["v"].dtype
        assert (np.asarray(a[...]) == shown["v"].values).all()


def test_times_that_are_packed_stay_numbers_with_their_attributes(tmp_path: Path) -> None:
    attributes = {"scale_factor": 0.5, "units": "days since 2000-01-01"}
    _write(tmp_path / "x.nc", {"kind": "i4", "fill": None, "attributes": attributes, "values": range(6), "zlib": False})
    a = gs.attach(tmp_path / "x.gs", tmp_path / "x.nc", "/v")
    assert isinstance(a, gs.Array)
    assert (a.dtype, a.meta["units"], a.meta["scale_factor"]) == (np.dtype("i4"), "days since 2000-01-01", 0.5)
