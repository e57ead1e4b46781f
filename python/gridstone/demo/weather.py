"""A Dataset of xarray as a group: written, appended to and opened again, and read as a plain array by its labels."""

import importlib.util
from typing import Any

import numpy as np

from ..stores.store import open_array
from ..xarray.write import to_gridstone
from . import chart
from .outcome import Outcome, Tell, check

_DAYS, _SHAPE = 30, (90, 180)


def run(uri: str, seed: int, outcome: Outcome, tell: Tell) -> None:
    """Writes 20 days of temperatures and appends 10; without xarray it says so."""
    if importlib.util.find_spec("xarray") is None:
        outcome.found.append("xarray is not installed, so no Dataset was written: pip install 'gridstone[xarray]'.")
        return
    import xarray

    whole = _dataset(xarray, seed)
    with outcome.step("write a Dataset of xarray", tell) as counters:
        to_gridstone(whole.isel(time=slice(0, 20)), uri)
        counters["cells"] = 20 * _SHAPE[0] * _SHAPE[1]
    with outcome.step("append ten days to it", tell) as counters:
        version = to_gridstone(whole.isel(time=slice(20, None)), uri, append_dim="time")
        counters["cells"] = 10 * _SHAPE[0] * _SHAPE[1]
    outcome.stores.append(uri)
    with outcome.step("open it with xarray, and read a point", tell) as counters:
        with xarray.open_dataset(uri, engine="gridstone") as found:
            series = found["t"].sel(lat=51, lon=5).values
            check(bool(found.identical(whole)), uri, "the Dataset that was opened")
        counters["cells"] = len(series)
    plain = open_array(uri, path="/t").sel(time="2026-03-25", lat=51, lon=5)["t"]
    check(plain == series[24], uri, "the day that the array gives for a label")
    outcome.found.append(
        f"A Dataset of {_DAYS} days is a group of version {version}; xarray opens it as it was, and labels choose in "
        f"its arrays: {float(plain):.1f} degrees on 2026-03-25 at 51 N, 5 E."
    )


def _dataset(xarray: Any, seed: int) -> Any:
    """Temperatures that a wave moves through, by day, latitude and longitude."""
    lat, lon = np.arange(-89.0, 90.0, 2.0), np.arange(-179.0, 180.0, 2.0)
    days = np.arange("2026-03-01", "2026-03-31", dtype="datetime64[D]").astype("datetime64[s]")
    ground = chart.heights(_SHAPE[1], seed)[: _SHAPE[0]] / 1_000
    wave = 3 * np.sin(np.deg2rad(lon)[None, None, :] + np.arange(_DAYS)[:, None, None] / 5)
    t = 25 - 40 * np.sin(np.deg2rad(lat))[None, :, None] ** 2 - ground[None] + wave
    return xarray.Dataset(
        {"t": (("time", "lat", "lon"), t.astype("float32"), {"units": "degC"})},
        {"time": days, "lat": lat, "lon": lon},
        {"title": "made-up weather"},
    )
