"""Tries an installed package: writes, reads, looks back, asks, and opens a store by the name that xarray knows."""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import numpy as np

import gridstone as gs


def main(environment: str) -> None:
    package = Path(gs.__file__).resolve()
    assert package.is_relative_to(Path(environment).resolve()), f"{package} is not the package that was installed"
    assert (package.parent / "py.typed").is_file()

    image = gs.array("image.gs", np.zeros((200, 300), "uint8"), name="grey")
    image[50:60, 5:8] = 7
    again = gs.open("image.gs")
    assert (again[50:60, 5:8] == 7).all() and again[0, 0] == 0
    assert again.at(version=2)[50, 5] == 0

    schema = gs.Schema(
        [gs.Dim("lon", (-180.0, 180.0), dtype="float64"), gs.Dim("lat", (-90.0, 90.0), dtype="float64")],
        [gs.Attr("name", "string"), gs.Attr("knots", "float32", nullable=True)],
        sparse=True,
    )
    ships = gs.create("ships.gs", schema)
    ships.write_cells(
        {"lon": [-74.01, 4.05, -74.02], "lat": [40.70, 51.95, 40.69]},
        {"name": ["Ada", "Büßer", "Zoë"], "knots": [0.1, None, 12.5]},
    )
    harbour = gs.open("ships.gs").read({"lon": (-75.0, -73.0), "lat": (40.0, 41.0)}, where="knots > 1")
    assert harbour["name"].tolist() == ["Zoë"]
    assert ships.aggregate({"n": "count(*)"})["n"].tolist() == [3]

    # TLS and HTTP are compiled in: what refuses is the address, and not the build.
    try:
        gs.open("s3://no-such-bucket/store", context=gs.Context(storage_options={"no_such_option": "1"}))
    except gs.GridstoneError as error:
        assert "no_such_option" in str(error), error

    found = {entry.name for entry in importlib.metadata.entry_points(group="xarray.backends")}
    if importlib.util.find_spec("xarray") is not None and "gridstone" in found:
        import xarray as xr

        assert (xr.open_dataset("image.gs", engine="gridstone")["grey"][50:60, 5:8] == 7).all()
        print("xarray opens it")
    print(f"gridstone {importlib.metadata.version('gridstone')} on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main(sys.argv[1])
