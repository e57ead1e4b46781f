"""What a stream gives is what a read gives, whatever the size of its batches."""

import numpy as np
import pytest
from places import Stores

import gridstone as gs


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("batch_bytes", [1, 10_000, "64MiB"])
def test_to_numpy_equals_a_read(stores: Stores, sparse: bool, batch_bytes: int | str) -> None:
    attrs = [gs.Attr("v", "int32", nullable=True), gs.Attr("s", "string")]
    schema = gs.Schema([gs.Dim("y", (-3, 56), 7), gs.Dim("x", (0, 49), 20)], attrs, sparse=sparse, capacity=100)
    a = gs.create(stores("a"), schema)
    y, x = (grid.ravel() for grid in np.meshgrid(np.arange(-3, 57), np.arange(50), indexing="ij"))
    values = np.ma.MaskedArray(y * 100 + x, mask=(y + x) % 5 == 0).astype(np.int32)
    a.write_cells({"y": y, "x": x}, {"v": values, "s": [f"{i}/{j}" for i, j in zip(y, x, strict=True)]})
    found = a.scan(order="row", batch_bytes=batch_bytes).to_numpy()
    assert list(found) == ["y", "x", "v", "s"]
    np.testing.assert_array_equal(found["y"], y)
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["v"].mask, values.mask)
    np.testing.assert_array_equal(found["v"].compressed(), values.compressed())
    assert found["s"].tolist() == [f"{i}/{j}" for i, j in zip(y, x, strict=True)]


def test_to_numpy_of_nothing_keeps_types(stores: Stores) -> None:
    schema = gs.Schema(
        [gs.Dim("t", (0, 9), dtype="datetime64[s]")], [gs.Attr("v", "float32", nullable=True)], sparse=True
    )
    found = gs.create(stores("a"), schema).scan().to_numpy()
    assert found["t"].dtype == "datetime64[s]" and found["v"].dtype == np.float32 and np.ma.isMaskedArray(found["v"])
