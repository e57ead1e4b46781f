"""Datasets of xarray in a store: written, appended to, corrected in a region, opened as they were.

Run it in an empty folder: it makes `sea.gs` there. Needs xarray (`pip install 'gridstone[xarray]'`).
"""

import numpy as np
import xarray as xr

import gridstone as gs

RNG = np.random.default_rng(2)


def days(first: str, count: int) -> xr.Dataset:
    """The temperature of some days."""
    time = np.datetime64(first, "ns") + np.arange(count) * np.timedelta64(1, "D")
    values = (280 + RNG.normal(0, 5, (count, 60, 90))).astype("float32")
    return xr.Dataset(
        {"t": (("time", "lat", "lon"), values, {"units": "K"})},
        {"time": time, "lat": np.linspace(60, 30.5, 60), "lon": np.arange(90.0)},
        {"title": "sea surface"},
    )


def main() -> None:
    march, april = days("2026-03-01", 31), days("2026-04-01", 30)
    version = gs.to_gridstone(march, "sea.gs", message="March")
    gs.to_gridstone(april, "sea.gs", append_dim="time", message="April")

    # Variables are lazy: only the cells that are asked for are read.
    sea = xr.open_dataset("sea.gs", engine="gridstone")
    xr.testing.assert_identical(sea, xr.concat([march, april], "time"))
    print(f"{sea.sizes['time']} days, {float(sea['t'].sel(time='2026-04-02', lat=50, lon=8)):.1f} K at one place")

    # Three days were a degree too cold. The region is found by its coordinates, and one commit has all of its cells.
    cold = sea[["t"]].sel(time=slice("2026-03-10", "2026-03-12"), lat=slice(50, 40)).load()
    gs.to_gridstone(cold + 1, "sea.gs", region={"time": "auto", "lat": "auto"}, message="three days corrected")
    mended = xr.open_dataset("sea.gs", engine="gridstone")
    assert float((mended["t"] - sea["t"]).sum()) / cold["t"].size == 1

    # The engine reduces tile by tile; only the result is in memory.
    mean = gs.xarray.reduce(mended["t"], "mean", dim="time")
    xr.testing.assert_allclose(mean, mended["t"].mean("time"))

    # March as it was. Plain arrays of the same store have the coordinates as labels.
    xr.testing.assert_identical(march, xr.open_dataset("sea.gs", engine="gridstone", version=version))
    assert gs.open("sea.gs", path="/t").sel(time="2026-03-10", lat=50, lon=8)["t"] == mended["t"].sel(
        time="2026-03-10", lat=50, lon=8
    )
    for one in gs.group("sea.gs").history()[1:]:
        print(f"version {one.version}: {one.message}")


if __name__ == "__main__":
    main()
