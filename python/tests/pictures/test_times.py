"""Maps of sparse arrays along times of any unit, also those that Arrow lacks, show cells at their places."""

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone import plot
from gridstone.query.box import domain_of


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "6h"])
def test_cells_lie_at_their_times(stores: Stores, unit: str) -> None:
    start = np.datetime64(100, "h" if unit == "6h" else unit).astype(f"M8[{unit}]")
    times = start + np.arange(30)
    dims = [gs.Dim("t", (times[0], times[-1]), 10, dtype=f"datetime64[{unit}]"), gs.Dim("y", (0, 4))]
    a = gs.create(stores("a"), gs.Schema(dims, [gs.Attr("v", "int8")], sparse=True))
    a.write_cells([times[::3], np.arange(10) % 5], np.arange(10))
    counts = plot.density(a, ("t", "y"), domain_of(a.schema), (30, 5))
    assert np.argwhere(counts).tolist() == [[3 * place, place % 5] for place in range(10)]
    tick = int(start.astype(np.int64))
    rectangles = plot.tile_rectangles(a, ("t", "y"))
    assert rectangles[:, 0].min() == tick and rectangles[:, 2].max() == tick + 27
    with gs.set_options(pictures=True, remote_pictures=True):
        assert "<img" in a._repr_html_()
