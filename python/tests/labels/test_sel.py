"""`sel` chooses by labels, as xarray does."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridstone as gs
from gridstone.errors import BoundsError, InputError, SchemaError, UnsupportedError

DAYS = pd.date_range("2026-02-25", periods=40).to_numpy()
HOURS = np.arange("2026-03-01T00", "2026-03-03T00", dtype="datetime64[h]")
GAPS = np.array(["2026-01-05", "2026-01-31", "2026-02-01", "2026-03-09", "2027-01-01"], "datetime64[s]")


def both(name: str, **coords: Any) -> tuple[gs.Array, xr.DataArray]:
    """The same values, here and in xarray."""
    shape = tuple(len(labels) for labels in coords.values())
    there = xr.DataArray(np.arange(np.prod(shape)).reshape(shape), dims=list(coords), coords=coords, name="v")
    return gs.array(f"mem://sel-{name}", there), there


def same(found: gs.Result, wanted: xr.DataArray) -> None:
    made = found.to_xarray()
    assert made.dims == wanted.dims and found.shape == wanted.shape
    assert np.array_equal(made.values, wanted.values)
    for name, coordinate in wanted.coords.items():
        assert np.array_equal(made.coords[name].values, coordinate.values), name


def keys_of(labels: Any) -> list[Any]:
    first, second, last = labels[0], labels[1], labels[-1]
    return [
        first, last, [last, first], [second, second], slice(first, second), slice(second, last), slice(None, second),
        slice(second, None), slice(None), slice(first, last, 2), [first],
    ]  # fmt: skip


LABELS = [
    ("rising", np.array([30.0, 40.0, 50.0, 60.0])),
    ("falling", np.array([60.0, 50.0, 40.0, 30.0])),
    ("narrow", np.linspace(-1, 1, 9, dtype="float32")),
    ("uneven", np.array([1.0, 1.5, 7.0, 100.0])),
    ("uneven down", np.array([100, 7, 2, 1])),
    ("integers", np.arange(1990, 2000, dtype="int16")),
    ("days", DAYS),
    ("hours", HOURS.astype("datetime64[ns]")),
    ("gaps", GAPS),
    ("spans", np.array([0, 6, 12, 18], "timedelta64[h]").astype("timedelta64[s]")),
    ("texts", np.array(["a", "b", "d", "e"])),
    ("texts in no order", np.array(["north", "south", "east", "west"])),
    ("numbers in no order", np.array([5, 1, 9, 3])),
    ("large", np.array([0, 2**63, 2**64 - 1], "uint64")),
]


@pytest.mark.parametrize(("name", "labels"), LABELS, ids=[name for name, _ in LABELS])
def test_labels_choose_what_they_choose_in_xarray(name: str, labels: Any) -> None:
    a, there = both(f"as-{name}", y=np.arange(2), x=labels, z=np.array(["p", "q"]))
    for key in keys_of(labels):
        same(a.sel(x=key), there.sel(x=key))
        same(a.sel({"x": key}, z="q", y=[1, 0]), there.sel(x=key, z="q", y=[1, 0]))
        same(a["v"].sel(x=key), there.sel(x=key))


def test_ends_of_slices_need_be_no_labels() -> None:
    for name, labels in (("up", [30.0, 40.0, 50.0, 60.0]), ("down", [60.0, 50.0, 40.0, 30.0])):
        a, there = both(f"ends-{name}", x=np.array(labels))
        low, high = (35, 51.5) if name == "up" else (51.5, 35)
        for ends in ((low, high), (low, None), (None, high), (labels[0], high)):
            same(a.sel(x=slice(*ends)), there.sel(x=slice(*ends)))
        # Either order means what lies between.
        assert a.sel(x=slice(high, low)).labels["x"].tolist() == there.sel(x=slice(low, high)).x.values.tolist()
    a, there = both("ends-apart", x=np.array([1, 2, 3]))
    assert a.sel(x=slice(10, 20)).shape == (0,) == there.sel(x=slice(10, 20)).shape
    assert a.sel(x=slice(10, 20)).to_xarray().dtype == np.int64


@pytest.mark.parametrize(
    ("name", "labels"),
    [("days", DAYS), ("hours", HOURS.astype("datetime64[ns]")), ("gaps", GAPS)],
)
def test_a_written_date_is_a_period_as_in_xarray(name: str, labels: Any) -> None:
    a, there = both(f"dates-{name}", time=labels)
    keys: list[Any] = [
        "2026-03",
        "2026",
        "2026-03-01",
        "2026-03-02T07",
        slice("2026-03", "2026-03"),
        slice("2026-02-28", None),
    ]
    keys += [slice(None, "2026-02"), slice("2026-01", "2026-03")]
    keys += [
        ["2026-03-01", "2026-03-02"],
        pd.Timestamp("2026-03-01"),
        np.datetime64("2026-03-01"),
        slice("2026", "2027"),
    ]
    for key in keys:
        try:
            wanted = there.sel(time=key)
        except KeyError:
            with pytest.raises(KeyError, match="the nearest is"):
                a.sel(time=key)
        else:
            same(a.sel(time=key), wanted)


def test_written_dates_choose_among_labels_that_descend() -> None:
    a = gs.array("mem://sel-dates-down", np.arange(5), coords={"d0": GAPS[::-1]})
    for key, wanted in (
        ("2026-01", [3, 4]),
        ("2026", [1, 2, 3, 4]),
        (slice("2026-03", "2026-01"), [1, 2, 3, 4]),
        (slice("2026-01-31", "2026-02"), [2, 3]),
        (slice("2026-02", None), [2, 3, 4]),
        (slice(None, "2026-03"), [0, 1]),
    ):
        assert a.sel(d0=key)["value"].tolist() == wanted, key


def test_a_date_of_the_unit_of_the_labels_is_one_of_them() -> None:
    months = np.arange("2026-01", "2026-07", dtype="datetime64[M]")
    a = gs.array("mem://sel-months", np.arange(6), coords={"d0": months})
    assert a.sel(d0="2026-03")["value"] == 2 and a.sel(d0="2026").shape == (6,)
    assert a.sel(d0=slice("2026-02", "2026-04-15"))["value"].tolist() == [1, 2, 3]
    hours = gs.array("mem://sel-six-hours", np.arange(8), coords={"d0": np.arange(0, 8).astype("datetime64[6h]")})
    assert hours.sel(d0="1970-01-02")["value"].tolist() == [4, 5, 6, 7] and hours.sel(d0="1970-01-01T18")["value"] == 3
    with pytest.raises(InputError, match="'soon' is no date or time"):
        a.sel(d0="soon")


def test_the_nearest_label_is_taken_as_in_xarray() -> None:
    for name, labels in (("up", [30.0, 40.0, 50.0]), ("uneven", [1.0, 1.5, 7.0]), ("down", [50.0, 40.0, 30.0])):
        a, there = both(f"nearest-{name}", x=np.array(labels))
        for key in (-100, 1.1, 33, 44.9, 46, 1000, [31, 49]):
            same(a.sel(x=key, method="nearest"), there.sel(x=key, method="nearest"))
    a, there = both("nearest-tie", x=np.array([1, 3]))
    same(a.sel(x=2, method="nearest"), there.sel(x=2, method="nearest"))
    a, there = both("nearest-time", x=DAYS)
    for key in ("2026-03-01T13", "2026-03", np.datetime64("2026-03-01T11:59")):
        same(a.sel(x=key, method="nearest"), there.sel(x=np.datetime64(key), method="nearest"))
    unsorted = gs.array("mem://sel-nearest-unsorted", np.arange(3), coords={"d0": [9, 1, 5]})
    assert unsorted.sel(d0=[6, 100], method="nearest")["value"].tolist() == [2, 0]


def test_what_is_not_there_is_told_with_the_nearest() -> None:
    a, _ = both("missing", lat=np.array([60.0, 50.0]), time=DAYS, s=np.array(["north", "south"]))
    for key, near in (
        ({"lat": 52}, "the labels of dimension 'lat' have no 52; the nearest is 50.0, which method=\"nearest\" takes"),
        ({"lat": [60, 41.5]}, "have no 41.5; the nearest is 50.0"),
        ({"time": "2025-12-31"}, "have no '2025-12-31'; the nearest is 2026-02-25"),
        ({"time": "2027"}, "have no '2027'; the nearest is 2026-04-05"),
        ({"s": "nord"}, "have no 'nord'; the nearest is 'north'"),
    ):
        for kind in (KeyError, BoundsError, IndexError):
            with pytest.raises(kind) as caught:
                a.sel(key)
            assert near in str(caught.value)


def test_other_types_and_names_are_told() -> None:
    a, _ = both("wrong", lat=np.array([60.0, 50.0]), s=np.array(["north", "south"]))
    for key, method, kind, said in (
        ({"lon": 3}, None, SchemaError, "no dimension 'lon'; there are 'lat', 's'"),
        ({"lat": "x"}, None, InputError, "are float64; 'x' is none"),
        ({"lat": None}, None, InputError, "None is none"),
        ({"s": 3}, None, InputError, "are texts, 3 is none"),
        ({"s": slice(1, 2)}, None, InputError, "are texts, 1 is none"),
        ({"s": "north"}, "nearest", InputError, "texts, of which none is nearest"),
        ({"lat": slice(50, 60)}, "nearest", InputError, "single labels and lists"),
        ({"lat": 50}, "pad", InputError, "method is one of 'nearest'"),
        ({"lat": slice(50, 60, -1)}, None, InputError, "step"),
        ({"lat": np.array([True, False])}, None, InputError, "a mask"),
        ({"lat": np.array([[50.0]])}, None, UnsupportedError, "flat list"),
    ):
        with pytest.raises(kind, match=said):
            a.sel(key, method=method)


def test_a_label_that_stands_twice_is_taken_by_a_slice_alone() -> None:
    a = gs.array("mem://sel-twice", np.arange(5), coords={"d0": [1, 2, 2, 2, 3]})
    with pytest.raises(
        InputError, match=r"have 2 at 3 positions \(1, 2, 3\); a slice takes all of them: d0=slice\(2, 2\)"
    ):
        a.sel(d0=2)
    with pytest.raises(InputError, match="3 positions"):
        a.sel(d0=[1, 2])
    with pytest.raises(InputError, match="3 positions"):
        a.sel(d0=2.2, method="nearest")
    assert a.sel(d0=slice(2, 2))["value"].tolist() == [1, 2, 3] and a.sel(d0=slice(2, 3)).shape == (4,)
    unsorted = gs.array("mem://sel-twice-unsorted", np.arange(4), coords={"d0": ["b", "a", "b", "c"]})
    with pytest.raises(InputError, match="2 positions"):
        unsorted.sel(d0=slice("a", "b"))


def test_dimensions_without_labels_are_chosen_by_coordinates() -> None:
    schema = gs.Schema(
        [gs.Dim("t", ("2026-03-01", "2026-03-31"), dtype="datetime64[D]"), gs.Dim("x", (-5, 4), tile=4)],
        [gs.Attr("v", "int64")],
    )
    a = gs.create("mem://sel-coordinates", schema)
    a[...] = np.arange(310).reshape(31, 10)
    assert a.sel(t="2026-03-02", x=-5)["v"] == 10 and a.sel(t="2026-03", x=slice(-1, 1)).shape == (31, 3)
    assert a.sel(x=[4, -5])["v"][0].tolist() == [9, 0] and a.sel(x=3.4, method="nearest")["v"][0] == 8
    with pytest.raises(KeyError, match="the coordinates of dimension 'x' have no 5; the nearest is 4"):
        a.sel(x=5)
    wide = gs.create("mem://sel-wide", gs.Schema([gs.Dim("x", (0, 2**62), tile=100)], [gs.Attr("v", "int8")]))
    assert wide.sel(x=slice(2**61, 2**61 + 3)).shape == (4,) and wide.sel(x=2**62)["v"] == 0
    with pytest.raises(KeyError, match="the nearest is 0"):
        wide.sel(x=-1)


def test_a_sparse_array_is_chosen_by_coordinates() -> None:
    dims = [
        gs.Dim("t", ("2026-01-01", "2026-12-31"), dtype="datetime64[D]"),
        gs.Dim("g", dtype="string"),
        gs.Dim("x", (0.0, 9.0), dtype="float64"),
    ]
    a = gs.create("mem://sel-sparse", gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True))
    days = np.array(["2026-01-05", "2026-03-01", "2026-03-31", "2026-04-01"], "datetime64[D]")
    a.write_cells({"t": days, "g": ["a", "b", "c", "d"], "x": [0.5, 1.5, 2.5, 3.5]}, {"v": [1, 2, 3, 4]})
    assert a.sel(t="2026-03")["v"].tolist() == [2, 3] and a.sel(t=slice("2026-04", "2026-03"))["v"].tolist() == [
        2,
        3,
        4,
    ]
    assert a.sel(g=["d", "a"], x=slice(0, 3))["v"].tolist() == [1] and a.sel(g=slice("b", "c"))["v"].tolist() == [2, 3]
    assert a["v"].sel(t="2026-01-05").keys() == ["t", "g", "x", "v"] and a.sel(x=1.5)["v"].tolist() == [2]
    assert a.sel(t=slice(None, "2026-03"))["v"].tolist() == [1, 2, 3]
    for key, method, kind in (
        ({"x": 1}, "nearest", UnsupportedError),
        ({"g": 3}, None, InputError),
        ({"z": 3}, None, SchemaError),
    ):
        with pytest.raises(kind):
            a.sel(key, method=method)


def test_what_is_chosen_is_a_result_like_any() -> None:
    a, there = both("result", lat=np.array([60.0, 50.0, 40.0]), lon=np.array([5.0, 6.0]), s=np.array(["p", "q"]))
    found = a.sel(lat=[40, 60], s="q")
    assert found.shape == (2, 2) and np.asarray(found).tolist() == there.sel(lat=[40, 60], s="q").values.tolist()
    assert (
        found.to_dense().tolist() == found["v"].tolist() and found.to_scipy().toarray().tolist() == found["v"].tolist()
    )  # type: ignore[union-attr]
    table = found.to_pandas()
    assert table.columns.tolist() == ["lat", "lon", "s", "v"] and table["lat"].tolist() == [40, 40, 60, 60]
    assert table["s"].tolist() == ["q"] * 4 and found["lat"].tolist() == [2, 0], "coordinates"
    assert found.labels["lat"].tolist() == [40, 60] and found.stats == a.stats
    assert "box (2, 2)" in repr(found) and len(found) == 4
    point = a.sel(lat=50, lon=6, s="p")
    assert point.shape == () and point["v"] == there.sel(lat=50, lon=6, s="p").item() and len(point) == 1
    assert point.to_xarray().item() == point["v"] and point.to_arrow().num_rows == 1
    b = gs.array("mem://sel-write", np.zeros((2, 2), np.int64), name="v")
    b.write(found)
    assert b[...].tolist() == found["v"].tolist()


def test_a_transaction_that_chose_by_a_period_sees_what_others_append() -> None:
    a = gs.array(
        "mem://sel-serializable",
        np.arange(3),
        coords={"d0": np.array(["2026-03-01", "2026-03-02", "2026-03-05"], "M8[D]")},
    )
    tx = gs.transaction(a.uri, isolation="serializable")
    total = int(np.sum(tx["/"].sel(d0="2026-03")["value"]))
    tx["/"].meta["total"] = total
    gs.open(a.uri, mode="r+").append([9], labels="2026-03-09")
    with pytest.raises(gs.ConflictError):
        tx.commit()


@pytest.mark.parametrize("asked", [0, [0]])
def test_a_nearest_label_looks_at_all_labels_in_a_serializable_transaction(asked: object) -> None:
    """What another commit appends may be nearer, so that a transaction that asked for the nearest one conflicts."""
    uri = f"mem://sel-nearest-transaction-{type(asked).__name__}"
    a = gs.array(uri, np.arange(3), dims=["t"], coords={"t": [1, 3, 5]}, name="v")
    with pytest.raises(gs.ConflictError), gs.transaction(uri, isolation="serializable") as transaction:
        inside = transaction["/"]
        assert np.ravel(inside.sel(t=asked, method="nearest")["v"]).tolist() == [0]
        inside.write(np.array([7]), {"t": (0, 0)})
        a.append([3], labels=[0])


def test_a_label_that_is_not_there_is_looked_for_among_all_labels_in_a_serializable_transaction() -> None:
    uri = "mem://sel-missing-transaction"
    a = gs.array(uri, np.arange(3), dims=["t"], coords={"t": [1, 3, 5]}, name="v")
    with pytest.raises(gs.ConflictError), gs.transaction(uri, isolation="serializable") as transaction:
        inside = transaction["/"]
        with pytest.raises(KeyError):
            inside.sel(t=7)
        inside.write(np.array([7]), {"t": (0, 0)})
        a.append([3])
