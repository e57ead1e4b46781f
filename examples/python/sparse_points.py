"""Earthquakes as a sparse array: cells at coordinates, found by boxes and conditions, as data frames.

Run it in an empty folder: it makes `quakes.gs` there. Needs pandas (`pip install 'gridstone[pandas]'`).
"""

import numpy as np

import gridstone as gs


def catalogue(count: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Made-up earthquakes along a ring: coordinates and values by name."""
    rng = np.random.default_rng(7)
    angle = rng.uniform(0, 2 * np.pi, count)
    minutes = np.sort(rng.integers(0, 365 * 24 * 60, count))
    coordinates = {
        "time": np.datetime64("2025-01-01T00:00", "m") + minutes,
        "lon": 170 * np.cos(angle) + rng.normal(0, 2, count),
        "lat": 60 * np.sin(angle) + rng.normal(0, 2, count),
    }
    values = {
        "magnitude": (4 + rng.exponential(0.5, count)).astype("float32"),
        "depth_km": rng.gamma(2, 20, count).astype("float32"),
        "kind": np.where(rng.random(count) < 0.05, "explosion", "earthquake").astype(object),
    }
    return coordinates, values


def main() -> None:
    schema = gs.Schema(
        dims=[
            gs.Dim("time", ("2025-01-01T00:00", "2026-12-31T23:59"), tile=30 * 24 * 60, dtype="datetime64[m]"),
            gs.Dim("lon", (-180.0, 180.0), tile=30.0, dtype="float64"),
            gs.Dim("lat", (-90.0, 90.0), tile=30.0, dtype="float64"),
        ],
        attrs=[
            gs.Attr("magnitude", "float32"),
            gs.Attr("depth_km", "float32", nullable=True),
            gs.Attr("kind", "string", categories=["earthquake", "explosion"]),
        ],
        sparse=True,
    )
    quakes = gs.create("quakes.gs", schema)
    coordinates, values = catalogue(20_000)
    quakes.write_cells(coordinates, values)

    # A box of places and times; both ends belong to it.
    spring = quakes.read({"time": ("2025-03-01", "2025-05-31"), "lon": (100.0, 180.0), "lat": (-60.0, 60.0)})
    print(f"{len(spring)} in the west of the ring, in spring")
    assert (spring["lon"] >= 100).all() and (spring["time"] >= np.datetime64("2025-03-01")).all()

    # A condition rules out most blocks by their statistics, before they are read.
    strong = quakes.read(where="magnitude > 7 and kind == 'earthquake'", attrs=["magnitude", "depth_km"])
    assert len(strong) == ((values["magnitude"] > 7) & (values["kind"] == "earthquake")).sum()
    print(strong.to_pandas().nlargest(3, "magnitude").to_string(index=False))

    # What does not belong there goes, by condition. The version before still has it.
    quakes.delete(where="kind == 'explosion'")
    assert len(quakes.read(where="kind == 'explosion'")) == 0
    assert len(quakes.at(version=2).read(where="kind == 'explosion'")) == (values["kind"] == "explosion").sum()


if __name__ == "__main__":
    main()
