"""Draws the pictures of the guide's page of questions about ships, from answers of Gridstone.

Two come from a sample of 2022-01-03 (NOAA MarineCadastre, public domain), two from positions off Virginia Beach (NOAA
and US Coast Guard, public domain; the selection is Tracktable's, BSD-2-Clause). The data is not part of the repository.
Run it with the folder of real data:

    python docs/pictures/ships.py "$GRIDSTONE_TEST_DATA"
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.dates as dates
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from PIL import Image

import gridstone as gs
from gridstone.plot import INK, PAPER, glow

HERE = Path(__file__).parent
GRID, BAR, MARK = "#2b3a55", "#3fc1b0", "#ff9e64"
KINDS = {
    2: "wing in ground", 3: "fishing, tugs, pleasure", 4: "high-speed craft", 5: "pilots, rescue, tugs",
    6: "passengers", 7: "cargo", 8: "tankers", 9: "others",
}  # fmt: skip
"""What the tens of a vessel type say."""
SHIPS_MIN = 20
"""Kinds of fewer ships are left out of the picture of speeds."""


def stores(data: Path, folder: Path) -> tuple[gs.Array, gs.Array]:
    """The sample of one day and the positions of three, both new in `folder`."""
    files = {
        "ais.gs": "AIS_2022_01_03_sample.csv.gz",
        "bay.gs": "VirginiaBeach_2020_06_04_to_06_filtered.csv.gz",
    }
    ais, bay = (gs.io.from_csv(folder / uri, data / "ais" / name, dims=["LON", "LAT"]) for uri, name in files.items())
    return ais, bay


def canvas(title: str, height: float) -> Axes:
    """Axes in the colours of the package's charts."""
    axes = plt.figure(figsize=(9, height), dpi=100, facecolor=INK, layout="constrained").add_subplot()
    axes.set_facecolor(INK)
    axes.set_title(title, color="white", fontsize=13, loc="left", pad=10)
    axes.tick_params(colors=PAPER, labelsize=10)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_color(GRID)
        spine.set_visible(side in ("left", "bottom"))
    return axes


def named(axes: Axes, x: str, y: str) -> None:
    """Names of both axes, with their units."""
    axes.set_xlabel(x, color=PAPER, fontsize=11)
    axes.set_ylabel(y, color=PAPER, fontsize=11)


def kept(axes: Axes, name: str) -> None:
    """Writes a picture with few colours, so that it is small."""
    target = HERE / name
    axes.figure.savefig(target, facecolor=INK)
    plt.close(axes.figure)
    Image.open(target).convert("RGB").quantize(192, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{name}: {target.stat().st_size:,} bytes")


def hour_text(value: float, _place: int) -> str:
    """An hour below an axis; midnight with its date."""
    moment = dates.num2date(value)
    return f"{moment:%H:%M}" + (f"\n{moment.day} {moment:%B %Y}" if moment.hour == 0 else "")


def draw_hours(bay: gs.Array) -> None:
    """Bars of the ships of each hour."""
    found = bay.aggregate({"ships": "count(distinct MMSI)"}, by={"BaseDateTime": "1h"})
    axes = canvas("Ships heard off Virginia Beach, by the hour", 3.6)
    axes.bar(found["BaseDateTime"], found["ships"], width=0.92 / 24, align="edge", color=BAR)
    axes.grid(axis="y", color=GRID, lw=0.6)
    axes.xaxis.set_major_locator(dates.HourLocator(byhour=(0, 6, 12, 18)))
    axes.xaxis.set_major_formatter(hour_text)
    named(axes, "hour (UTC)", "different ships")
    kept(axes, "ships-hours.png")


def draw_map(ais: gs.Array) -> None:
    """A heat map of the messages in squares of a quarter of a degree."""
    step, coasts = 0.25, "LON >= -130 and LON < -65 and LAT >= 23"
    found = ais.aggregate({"n": "count(*)"}, by={"LON": step, "LAT": step}, where=coasts)
    low = {name: found[name].min() for name in ("LON", "LAT")}
    places = [np.rint((found[name] - low[name]) / step).astype(int) for name in low]
    shape = [place.max() + 1 for place in places]
    cells = np.full(shape, np.nan)
    cells[tuple(places)] = found["n"]
    axes = canvas("Messages of ships along the coasts of the United States", 4.9)
    x, y = (low[name] + step * np.arange(size + 1) for name, size in zip(low, shape, strict=True))
    shown = axes.pcolormesh(x, y, cells.T, cmap=glow(), norm=LogNorm(0.4, np.nanmax(cells)), rasterized=True)
    axes.set_aspect(1 / np.cos(np.radians(37)))
    bar = axes.figure.colorbar(shown, ax=axes, fraction=0.03, pad=0.015)
    bar.ax.tick_params(colors=PAPER, labelsize=10)
    bar.ax.set_ylim(1, None)
    bar.ax.yaxis.set_major_formatter("{x:,.0f}")
    bar.outline.set_visible(False)
    bar.set_label("messages per square of a quarter of a degree", color=PAPER, fontsize=11)
    named(axes, "longitude (degrees)", "latitude (degrees)")
    kept(axes, "ships-map.png")


def draw_speeds(ais: gs.Array) -> None:
    """Bars of the median speed of each kind of ships, with a mark where the fastest tenth begins."""
    found = ais.aggregate(
        {"ships": "count(distinct MMSI)", "median": "median(SOG)", "p90": "quantile(SOG, 0.9)"},
        by="VesselType // 10",
        where="SOG >= 0.5 and SOG < 102.3 and VesselType >= 10 and VesselType < 100",
        having=f"ships >= {SHIPS_MIN}",
        order="median",
    )
    axes, places = canvas("Speed of ships under way, by kind", 3.6), np.arange(len(found))
    axes.barh(places, found["median"], 0.66, color=BAR, label="median")
    axes.scatter(found["p90"], places, 110, color=MARK, marker="|", linewidths=3, label="a tenth is faster")
    names = [KINDS[int(kind)] for kind in found["VesselType // 10"]]
    axes.set_yticks(places, [f"{name}\n{ships:,} ships" for name, ships in zip(names, found["ships"], strict=True)])
    axes.grid(axis="x", color=GRID, lw=0.6)
    axes.set_xlim(0, None)
    axes.legend(labelcolor=PAPER, frameon=False, fontsize=10, loc="lower right")
    named(axes, "speed over ground (knots)", "")
    kept(axes, "ships-speed.png")


def draw_track(bay: gs.Array) -> None:
    """The track of the ship that went furthest, over the positions of all others."""
    mmsi = 367863000
    way = bay.read(where=f"MMSI == {mmsi}").to_pandas().sort_values("BaseDateTime")
    others = bay.read(where=f"MMSI != {mmsi}")
    hours = (way["BaseDateTime"] - way["BaseDateTime"].iloc[0]).dt.total_seconds() / 3_600
    axes = canvas("The ship that went furthest, over the tracks of the others", 4.4)
    axes.scatter(others["LON"], others["LAT"], 1, color="#4a5d80", linewidths=0)
    axes.plot(way["LON"], way["LAT"], color="#6b7fa3", lw=0.8)
    shown = axes.scatter(way["LON"], way["LAT"], 9, hours, cmap="plasma", linewidths=0, vmin=-8)
    axes.set_aspect(1 / np.cos(np.radians(36.6)))
    bar = axes.figure.colorbar(shown, ax=axes, fraction=0.03, pad=0.015, shrink=0.8)
    bar.ax.tick_params(colors=PAPER, labelsize=10)
    bar.ax.set_ylim(0, None)
    bar.outline.set_visible(False)
    bar.set_label("hours since its first message", color=PAPER, fontsize=11)
    named(axes, "longitude (degrees)", "latitude (degrees)")
    kept(axes, "ships-track.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        ais, bay = stores(Path(sys.argv[1]), Path(made))
        draw_hours(bay)
        draw_map(ais)
        draw_speeds(ais)
        draw_track(bay)
