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


def test_a_group_at_a_version_is_as_it_was(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("i", (0, 9))], [gs.Attr("v", "int8")])
    root = gs.group(store_uri)
    inner = root.group("inner")
    inner.create("a", schema)[...] = 1
    inner.meta["units"] = "m"
    then = gs.open(store_uri).version
    inner["a"][...] = 2
    inner.meta["units"] = "km"
    inner.create("later", schema)
    with gs.transaction(store_uri) as tx:
        tx.remove("/inner/a")
    root.move("inner", "moved")
    past = gs.open(store_uri, version=then)
    for group in (past, pickle.loads(pickle.dumps(past))):
        assert list(group) == ["inner"] and len(group) == 1 and "moved" not in group
        below = group["inner"]
        assert list(below) == ["a"] and "later" not in below and below.meta["units"] == "m"
        assert (below["a"][...] == 1).all() and below["a"].version == then == below.version
        with pytest.raises(gs.errors.NotFoundError):
            below["later"]
        for write in (lambda g=below: g.create("b", schema), lambda g=below: g.group("b")):
            with pytest.raises(gs.errors.InputError, match=rf"version {then}, which is the past"):
                write()
        with pytest.raises(gs.errors.AccessError):
            below.meta["units"] = "cm"
        with pytest.raises(gs.errors.AccessError):
            below.move("a", "b")
    assert list(past.refreshed()) == ["moved"]
    with pytest.raises(gs.errors.NotFoundError):
        past["inner"].refreshed()["a"]


def test_a_handle_means_the_group_and_not_its_path(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("i", (0, 9))], [gs.Attr("v", "int8")])
    root = gs.group(store_uri)
    inner = root.group("a").group("inner")
    array = inner.create("cells", schema)
    inner.meta["units"] = "m"
    old = pickle.dumps(inner)
    root.move("a", "/b")
    # Something else, of the same shape, where it was.
    other = root.group("a").group("inner")
    other.meta["units"] = "km"
    other.create("others", schema)
    array.refresh()
    assert (array.path, inner.refreshed().path) == ("/b/inner/cells", "/b/inner")
    assert list(inner) == ["cells"] and "others" not in inner and len(inner) == 1 and inner.meta["units"] == "m"
    assert inner["cells"].path == "/b/inner/cells"
    inner.meta["units"] = "cm"
    assert gs.open(store_uri, path="/b/inner").meta["units"] == "cm" and other.meta["units"] == "km"
    assert inner.create("more", schema).path == "/b/inner/more"
    assert inner.group("below").path == "/b/inner/below"
    inner.move("more", "further")
    assert list(inner) == ["below", "cells", "further"] and list(other) == ["others"]
    # At its own version a handle shows what was.
    assert inner.path == "/a/inner" and inner.children() == []
    assert pickle.loads(old).path == "/a/inner"
    with gs.transaction(store_uri) as tx:
        tx.remove("/b/inner")
    for asked in (lambda: list(inner), lambda: inner["cells"], lambda: inner.create("x", schema), inner.refreshed):
        with pytest.raises(gs.errors.NotFoundError, match=r"/a/inner .* removed"):
            asked()
    with pytest.raises(gs.errors.NotFoundError):
        inner.meta["units"] = "m"
    assert list(other) == ["others"]
