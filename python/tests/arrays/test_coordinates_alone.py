"""`attrs=[]`: the coordinates of cells, without a value."""

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import InputError

DIMS = [gs.Dim("y", (-2, 7), 4), gs.Dim("x", (0, 9), 3)]


@pytest.fixture(scope="module")
def dense() -> gs.Array:
    a = gs.create("mem://coordinates-alone", gs.Schema(DIMS, [gs.Attr("s", "string"), gs.Attr("v", "int64")]))
    a.write({"s": np.full((10, 10), "t", object), "v": np.arange(100).reshape(10, 10)})
    return a


def test_a_condition_selects_cells_of_a_dense_array(dense: gs.Array) -> None:
    values = np.arange(100).reshape(10, 10)
    y, x = np.nonzero((values % 7 == 0) & (values > 20))
    question = "v > 20 and v in (" + ", ".join(str(n) for n in range(0, 100, 7)) + ")"
    found = dense.read(where=question, attrs=[])
    assert list(found.to_numpy()) == ["y", "x"] and len(found) == len(y)
    assert np.array_equal(found["y"], y - 2) and np.array_equal(found["x"], x)
    streamed = dense.scan(where=question, attrs=[], order="row").to_pandas()
    assert streamed.columns.tolist() == ["y", "x"] and streamed["x"].tolist() == x.tolist()
    none = dense.read(where="v > 1000", attrs=[])
    assert len(none) == 0 and none["x"].dtype == np.int64
    plan = dense.explain("read", where=question, attrs=[])
    assert "v" in str(plan)


def test_boxes_select_cells_of_a_dense_array(dense: gs.Array) -> None:
    found = dense.read([{"y": (0, 1), "x": (4, 4)}, {"y": (7, 7), "x": (0, 0)}], attrs=[])
    assert list(zip(found["y"].tolist(), found["x"].tolist(), strict=True)) == [(0, 4), (1, 4), (7, 0)]


def test_a_box_of_a_dense_array_needs_an_attribute(dense: gs.Array) -> None:
    for call in (
        lambda: dense.read(attrs=[]),
        lambda: dense.scan(attrs=[]),
        lambda: dense.points({"y": [1], "x": [1]}, attrs=[]),
    ):
        with pytest.raises(InputError, match="a condition or a list of boxes selects; name an attribute"):
            call()
