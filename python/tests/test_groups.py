"""Groups: their children and their metadata, beside others who change them."""

import pickle

import numpy as np
import pytest

import gridstone as gs


def test_metadata_of_groups(store_uri: str) -> None:
    root = gs.group(store_uri)
    inner = root.group("inner")
    inner.create("a", gs.Schema([gs.Dim("i", (0, 9))], [gs.Attr("v", "int8")]))
    inner.meta["units"] = "m"
    inner.meta.update({"box": [1, 2.5, None], "when": np.datetime64("2026-01-01")})
    assert dict(inner.meta) == {"box": [1, 2.5, None], "units": "m", "when": np.datetime64("2026-01-01")}
    assert dict(root.meta) == {} and dict(inner["a"].meta) == {}
    other = gs.open(store_uri, path="/inner")
    assert other.meta["units"] == "m" and "nothing" not in other.meta
    with pytest.raises(KeyError):
        other.meta["nothing"]
    with pytest.raises(gs.errors.AccessError, match="r\\+"):
        other.meta["units"] = "km"
    del inner.meta["units"]
    assert "units" not in pickle.loads(pickle.dumps(other)).meta
    inner.meta.clear()
    assert len(inner.meta) == 0


def test_a_group_that_is_gone_is_told(store_uri: str) -> None:
    root = gs.group(store_uri)
    gone = root.group("g")
    root.create("g", gs.Schema([gs.Dim("i", (0, 9))], [gs.Attr("v", "int8")]), overwrite=True)
    with pytest.raises(gs.errors.NotFoundError):
        gone.meta["x"] = 1
    assert "x" not in root["g"].meta
