"""Attributes and dimensions have metadata and names of their own."""

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import AccessError, SchemaError

SCHEMA = gs.Schema(
    [gs.Dim("lat", (0, 3), tile=2), gs.Dim("lon", (0, 4))],
    [gs.Attr("t", "float32"), gs.Attr("q", "int8", nullable=True)],
)


def test_a_user_describes_an_attribute_and_a_dimension() -> None:
    a = gs.create("mem://fields-described", SCHEMA)
    before = a.version
    a["t"].meta.update(units="K", valid=[200.0, 320.0])
    a.dim("lat").meta["units"] = "degrees_north"
    a.meta["title"] = "a day"
    assert a.version == before + 3, "each change is one commit"
    again = gs.open(a.uri)
    assert dict(again["t"].meta) == {"units": "K", "valid": [200.0, 320.0]}
    assert again.dim("lat").meta["units"] == "degrees_north" and dict(again.meta) == {"title": "a day"}
    assert dict(again["q"].meta) == {} and dict(again.dim("lon").meta) == {}
    assert dict(a.at(version=before)["t"].meta) == {}
    del a["t"].meta["valid"]
    assert list(a["t"].meta) == ["units"]
    with pytest.raises(KeyError):
        a["t"].meta["valid"]


def test_a_dimension_says_what_it_is() -> None:
    a = gs.create("mem://fields-dim", SCHEMA)
    lat = a.dim("lat")
    assert (lat.name, lat.axis, lat.dtype, lat.domain, lat.tile, lat.size, len(lat)) == (
        "lat", 0, "int64", (0, 3), 2, 4, 4
    )  # fmt: skip
    assert lat.labels is None and "Dim('lat'" in repr(lat) and lat.array is a
    a.resize(lat=(0, 9))
    assert lat.size == 10
    with pytest.raises(SchemaError, match="no dimension 'time'; there are 'lat', 'lon'"):
        a.dim("time")


def test_metadata_of_fields_is_written_by_no_old_version_and_no_reader() -> None:
    a = gs.create("mem://fields-modes", SCHEMA)
    for handle in (gs.open(a.uri), a.at(version=1)):
        for field in (handle["t"], handle.dim("lat")):
            with pytest.raises(AccessError, match=r"cannot be written|opened for reading"):
                field.meta["k"] = 1
    assert a.version == 1


def test_metadata_of_fields_takes_part_in_transactions() -> None:
    a = gs.create("mem://fields-transactions", SCHEMA)
    with pytest.raises(ZeroDivisionError), gs.transaction(a.uri) as tx:
        tx["/"]["t"].meta["units"] = "K"
        assert tx["/"]["t"].meta["units"] == "K"
        raise ZeroDivisionError
    assert dict(gs.open(a.uri)["t"].meta) == {}
    with gs.transaction(a.uri) as tx:
        tx["/"]["t"].meta["n"] = 1
        tx["/"].dim("lon").meta["n"] = 2
    found = gs.open(a.uri)
    assert (found.version, found["t"].meta["n"], found.dim("lon").meta["n"]) == (2, 1, 2)


def test_of_two_transactions_that_count_a_key_up_one_is_a_conflict() -> None:
    a = gs.create("mem://fields-lost", SCHEMA)
    a["t"].meta["n"] = 0
    one, other = gs.transaction(a.uri), gs.transaction(a.uri)
    for tx in (one, other):
        tx["/"]["t"].meta["n"] = tx["/"]["t"].meta["n"] + 1
    one.commit()
    with pytest.raises(gs.ConflictError):
        other.commit()


def test_metadata_follows_new_names_and_goes_with_a_dropped_attribute() -> None:
    a = gs.create("mem://fields-renamed", SCHEMA)
    a["t"].meta["units"], a.dim("lat").meta["axis"] = "K", "Y"
    a.alter(rename={"t": "temperature", "lat": "y"})
    assert a["temperature"].meta["units"] == "K" and a.dim("y").meta["axis"] == "Y"
    a.alter(drop="temperature", add=gs.Attr("temperature", "int8"))
    assert dict(a["temperature"].meta) == {}


def test_all_that_uses_names_follows_a_renamed_dimension() -> None:
    a = gs.create("mem://fields-names", SCHEMA)
    a.write({"t": np.arange(20).reshape(4, 5)})
    a.alter(labels={"lat": [60, 50, 40, 20]})
    old = gs.open(a.uri)
    a.alter(rename={"lat": "y", "lon": "x"}, message="short names")
    assert a.dims == ("y", "x") and a.schema.dim("y").tile == 2 and a.dim("y").labels.tolist() == [60, 50, 40, 20]
    assert a.read({"y": (1, 2), "x": slice(0, 2)}, "t")["t"].tolist() == [[5, 6], [10, 11]]
    assert a.read(where="y = 3 and x > 3", attrs="t")["t"].tolist() == [19]
    assert a.points({"y": [2], "x": [1]}, "t")["t"].tolist() == [11]
    assert a.read(attrs="t").to_arrow().column_names == ["y", "x", "t"]
    assert a.sel(y=50, x=4)["t"] == 9 and a["t"].loc[1:2, 3].tolist() == [8]
    a.resize(x=(0, 5))
    a.append({"t": np.zeros((1, 6)), "q": np.zeros((1, 6))}, axis="y", labels=[10])
    a.write_cells({"y": [0], "x": [5]}, {"t": [7], "q": [1]})
    assert a["t"][0, 5] == 7
    for name in ("lat", "lon"):
        for use in (
            lambda name=name: a.dim(name),
            lambda name=name: a.read({name: (0, 1)}),
            lambda name=name: a.sel({name: 0}),
        ):
            with pytest.raises(gs.GridstoneError, match=name):
                use()
    # An older version has the names that it had.
    assert old.dims == ("lat", "lon") and old.sel(lat=50)["t"].tolist() == [5, 6, 7, 8, 9]
    swapped = a.alter(rename={"x": "y", "y": "x"})
    assert gs.open(a.uri, version=swapped).dims == ("x", "y") and a.dim("x").labels[0] == 60
    with pytest.raises(SchemaError, match=r"twice|taken"):
        a.alter(rename={"x": "t"})
