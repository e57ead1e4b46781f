"""Draws earth.png, the first picture of the README: a dense array and a sparse one, both read from Gridstone.

The dense array is the relief of the earth (ETOPO5 by NOAA, public domain), 2,161 x 4,320 cells. The sparse one holds
the 23,412 earthquakes of magnitude 5.5 and more from 1965 to 2016 (USGS, public domain). The data is not part of the
repository. Run it with the folder of real data:

    python docs/pictures/earth.py "$GRIDSTONE_TEST_DATA"
"""

import gzip
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LightSource, LinearSegmentedColormap
from PIL import Image
from scipy.io import netcdf_file

import gridstone as gs

HERE = Path(__file__).parent
SEA = ["#040b1d", "#08204a", "#0f4273", "#2a7397", "#5fa6b5"]
LAND = ["#24402c", "#4c6136", "#8b7d4f", "#b39a76", "#e9e4da", "#ffffff"]
"""Colours from the deepest trench to the coast, and from the coast to the highest summit."""


def stores(data: Path, folder: Path) -> tuple[gs.Array, gs.Array]:
    """The relief as a dense array and the earthquakes as a sparse one, both new in `folder`."""
    with gzip.open(data / "netcdf" / "ferret_etopo5.cdf.gz") as packed, netcdf_file(packed, mmap=False) as source:
        metres = np.asarray(source.variables["ROSE"].data, np.float32)
    schema = gs.Schema(
        [
            gs.Dim("lat", (0, len(metres) - 1), tile=256),
            gs.Dim("lon", (0, metres.shape[1] - 1), tile=256),
        ],
        [gs.Attr("metres", "float32")],
    )
    relief = gs.create(str(folder / "relief.gs"), schema)
    relief["metres"][...] = metres
    quakes = gs.io.from_csv(
        str(folder / "quakes.gs"), data / "points" / "earthquakes-23k.csv", dims=["Longitude", "Latitude"]
    )
    return relief, quakes


def draw(relief: gs.Array, quakes: gs.Array, target: Path) -> None:
    """Shaded relief with a dot for each earthquake, the larger the stronger, in degrees from 180 W to 180 E."""
    metres = np.roll(relief["metres"][::2, ::2], relief.shape[1] // 4, axis=1)
    strong = quakes.read(where="Magnitude >= 5.5").to_pandas().sort_values("Magnitude")
    half = 0.5
    stops = [*np.linspace(0, half, len(SEA)), *np.linspace(half + 1e-6, 1, len(LAND))]
    colours = LinearSegmentedColormap.from_list("earth", list(zip(stops, SEA + LAND, strict=True)), N=1024)
    scaled = np.where(metres < 0, half + half * metres / 9_000, half + 1e-6 + half * np.sqrt(metres.clip(0) / 6_500))
    lit = LightSource(315, 40).shade_rgb(colours(scaled.clip(0, 1))[..., :3], metres, vert_exag=0.0006, dx=1, dy=1)
    figure, axes = plt.subplots(figsize=(12, 140 / 30), dpi=100)
    figure.subplots_adjust(0, 0, 1, 1)
    axes.imshow(lit, origin="lower", extent=(-180, 180, -90, 90), aspect="auto", interpolation="antialiased")
    sizes = 0.9 * 2.4 ** (strong["Magnitude"] - 5.5)
    axes.scatter(strong["Longitude"], strong["Latitude"], sizes, strong["Magnitude"], cmap="autumn", alpha=0.55,
                 linewidths=0, vmin=5.5, vmax=8)  # fmt: skip
    axes.set(xlim=(-180, 180), ylim=(-62, 78))
    axes.axis("off")
    figure.savefig(target)
    Image.open(target).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        draw(*stores(Path(sys.argv[1]), Path(made)), HERE / "earth.png")
