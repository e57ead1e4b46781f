"""A question to a sparse array: aggregates by groups and bins, answered block by block on all threads.

Run it in an empty folder: it makes `ships.gs` there. Needs pandas (`pip install 'gridstone[pandas]'`).
"""

import numpy as np

import gridstone as gs

COUNT = 100_000


def main() -> None:
    schema = gs.Schema(
        dims=[gs.Dim("lon", (-180.0, 180.0), dtype="float64"), gs.Dim("lat", (-90.0, 90.0), dtype="float64")],
        attrs=[
            gs.Attr("mmsi", "int32"),
            gs.Attr("knots", "float32", nullable=True),
            gs.Attr("kind", "string", categories=["cargo", "ferry", "tug"]),
        ],
        sparse=True,
        duplicates=True,  # several positions at one place are all kept
    )
    rng = np.random.default_rng(1)
    knots = np.ma.MaskedArray(rng.gamma(2, 5, COUNT).astype("float32"), mask=rng.random(COUNT) < 0.01)
    ships = gs.create("ships.gs", schema)
    ships.write_cells(
        {"lon": rng.normal(10, 3, COUNT), "lat": rng.normal(55, 2, COUNT)},
        {
            "mmsi": rng.integers(1, 400, COUNT).astype("int32"),
            "knots": knots,
            "kind": rng.choice(["cargo", "ferry", "tug"], COUNT).astype(object),
        },
    )

    kinds = ships.aggregate(
        {"positions": "count(*)", "km_h": "mean(knots * 1.852)", "p90": "quantile(knots, 0.9)"}, by="kind"
    )
    assert kinds["positions"].sum() == COUNT
    assert np.isclose((kinds["km_h"] * kinds["positions"]).sum() / COUNT / 1.852, knots.mean(), rtol=1e-2)
    print(kinds.to_pandas().to_string(index=False))

    # Widths make bins: squares of a degree. The busiest five in which tugs were seen.
    squares = ships.aggregate(
        {"positions": "count(*)", "ships": "count(distinct mmsi)"},
        by={"lon": 1.0, "lat": 1.0},
        where="kind == 'tug'",
        order="positions desc",
        limit=5,
    )
    assert len(squares) == 5 and (np.diff(squares["positions"]) <= 0).all()
    print(squares.to_pandas().to_string(index=False))


if __name__ == "__main__":
    main()
