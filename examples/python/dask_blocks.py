"""Arrays and tables of Dask: blocks are computed and stored in parallel, in one commit, and read where they are needed.

Run it in an empty folder: it makes `waves.gs` and `ships.gs` there. Needs Dask (`pip install 'gridstone[dask]'`).
"""

import dask
import dask.array as da
import numpy as np

import gridstone as gs


def main() -> None:
    dask.config.set(scheduler="threads")

    # A virtual array of 64 MB: no more than a block for each thread is in memory.
    y, x = (da.arange(n, chunks=500, dtype="float64") for n in (2000, 4000))
    waves = da.sin(y[:, None] / 100) * da.cos(x[None, :] / 70)
    version = gs.dask.store(waves, "waves.gs", path="/height", message="waves")
    height = gs.dask.array(gs.open("waves.gs", path="/height"), chunks="8MiB")
    assert height.shape == (2000, 4000)
    print(f"version {version}: {height.npartitions} chunks, {float(height.max().compute()):.4f} m at most")

    # A part of it. Blocks need no alignment to tiles, and a graph that fails leaves no version.
    calm = da.zeros((300, 700), chunks=(128, 256))
    gs.dask.store(calm, "waves.gs", path="/height", box={"d0": (50, 349), "d1": (1000, 1699)})
    after = gs.dask.array(gs.open("waves.gs", path="/height"))
    assert float(abs(after[50:350, 1000:1700]).max().compute()) == 0
    assert (after[:50].compute() == height[:50].compute()).all()
    assert float(height[200, 1200].compute()) != 0, "a graph reads the version that it was made of"

    # Cells of a sparse array are rows of a frame. Filters and columns reach the array.
    rng = np.random.default_rng(3)
    schema = gs.Schema(
        dims=[gs.Dim("lon", (-180.0, 180.0), dtype="float64"), gs.Dim("lat", (-90.0, 90.0), dtype="float64")],
        attrs=[gs.Attr("mmsi", "int32"), gs.Attr("knots", "float32")],
        sparse=True,
        duplicates=True,
    )
    ships = gs.create("ships.gs", schema)
    knots = rng.gamma(2, 5, 20_000).astype("float32")
    mmsi = rng.integers(1, 50, 20_000).astype("int32")
    ships.write_cells(
        {"lon": rng.normal(10, 3, 20_000), "lat": rng.normal(55, 2, 20_000)}, {"mmsi": mmsi, "knots": knots}
    )
    frame = gs.dask.frame(ships, blocksize="128KiB")
    fast = frame[frame["knots"] > 20]["mmsi"].value_counts().compute()
    assert fast.sum() == (knots > 20).sum()
    print(f"{frame.npartitions} partitions, {fast.sum():,} positions of fast ships")


if __name__ == "__main__":
    main()
