"""Series, Arrow arrays and what was read, in assignments: they mean what a table means and broadcast as NumPy does."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from places import Stores

import gridstone as gs


@pytest.mark.parametrize("nullable", [False, True])
def test_a_series_means_what_a_data_frame_means(store_uri: str, nullable: bool) -> None:
    dims = [gs.Dim("x", (0, 9))]
    a = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", "float64", nullable=nullable)]))
    series = pd.Series([1.0, np.nan, 3.0])
    a[0:3] = series
    a.write_cells({"x": pd.Series([5, 6])}, {"v": pd.Series([np.nan, 6.0])})
    a.write_cells(pd.DataFrame({"x": [7, 8], "v": [7.0, np.nan]}))
    found = a[...]
    missing = np.ma.getmaskarray(found) if nullable else np.isnan(found)
    assert missing[[1, 5, 8]].all() and not missing[[0, 2, 6, 7]].any()
    assert np.asarray(found)[[0, 2, 6, 7]].tolist() == [1, 3, 6, 7]
    words = gs.create(store_uri, gs.Schema(dims, [gs.Attr("s", "string", nullable=True)]), overwrite=True)
    words[2:5] = pd.Series(["a", None, "c"], dtype="string")
    assert words[2:5].tolist() == ["a", None, "c"]


def test_arrow_broadcasts_as_numpy_does(store_uri: str) -> None:
    dims = [gs.Dim("y", (0, 3)), gs.Dim("x", (0, 2))]
    attrs = [gs.Attr("v", "float64"), gs.Attr("s", "string", nullable=True)]
    a = gs.create(store_uri, gs.Schema(dims, attrs))
    a["v"][0:2] = pa.array([1.0, 2.0, 3.0])
    a["v"][2] = pa.array([5.0])
    a["s"][1:3] = pa.array(["p", None, "q"])
    a["s"][0, 0:2] = pa.chunked_array([["x"], ["y"]])
    assert a["v"][0:3].tolist() == [[1, 2, 3], [1, 2, 3], [5, 5, 5]]
    assert a["s"][1:3].tolist() == [["p", None, "q"]] * 2 and a["s"][0, 0:2].tolist() == ["x", "y"]
    for value in (pa.array(np.arange(6.0)), pa.array([1.0, 2.0]), pd.Series(np.arange(6.0))):
        with pytest.raises(gs.errors.InputError, match=r"do not fit the selection's shape \(2, 3\)"):
            a["v"][0:2] = value
    with pytest.raises(gs.errors.InputError, match="do not fit"):
        a["s"][0:2] = pa.array(["a", "b"])


def test_what_was_read_is_written(store_uri: str, stores: Stores) -> None:
    dims = [gs.Dim("y", (0, 3)), gs.Dim("x", (0, 2))]
    schema = gs.Schema(dims, [gs.Attr("v", "float64"), gs.Attr("s", "string", nullable=True)])
    a, b = gs.create(store_uri, schema), gs.create(stores("b"), schema)
    a[...] = {"v": np.arange(12.0).reshape(4, 3), "s": np.full((4, 3), "w", object)}
    b[...] = a.read()
    assert (b["v"][...] == a["v"][...]).all() and (b["s"][...] == "w").all()
    b["v"][0:2] = a.read({"y": (2, 3)})
    assert b["v"][0:2].tolist() == a["v"][2:4].tolist()
    gs.delete(stores("b"))
