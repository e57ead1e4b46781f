"""What pandas and xarray have is appended, streamed and written with the names and labels that it brings."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridstone as gs
from gridstone.errors import InputError


def days(first: str, count: int) -> pd.DatetimeIndex:
    return pd.date_range(first, periods=count, name="time")


def series(first: str, values: list[float]) -> "pd.Series[float]":
    return pd.Series(values, index=days(first, len(values)), name="price")


def shown(a: gs.Array, name: str = "time") -> list[str]:
    found = a.dim(name).labels
    assert found is not None
    return [str(one)[:10] for one in found.tolist()] if found.dtype.kind != "M" else [str(one)[:10] for one in found]


def test_a_series_that_is_appended_keeps_its_own_dates() -> None:
    a = gs.array("mem://frames-series", series("2026-03-01", [1.0, 2.0, 3.0]))
    a.append(series("2026-03-10", [4.0, 5.0]))  # not the days that steps would go on with
    assert shown(a) == ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-10", "2026-03-11"]
    assert a.sel(time="2026-03-10")["price"].tolist() == 4.0
    a.append(series("2026-04-01", [6.0]), labels=["2026-05-01"])  # what is said beside it is meant
    assert shown(a)[-1] == "2026-05-01"


def test_a_frame_that_is_appended_keeps_its_own_dates() -> None:
    def frame(first: str, count: int, columns: list[str]) -> pd.DataFrame:
        values = np.arange(count * len(columns), dtype=float).reshape(count, -1)
        return pd.DataFrame(values, index=days(first, count), columns=pd.Index(columns, name="city"))

    a = gs.array("mem://frames-frame", frame("2026-03-01", 3, ["Bonn", "Ulm"]))
    a.append(frame("2026-03-10", 2, ["Bonn", "Ulm"]))
    assert shown(a)[3:] == ["2026-03-10", "2026-03-11"] and a["value"][3:].tolist() == [[0, 1], [2, 3]]
    with pytest.raises(InputError, match="'city': the block has the labels"):
        a.append(frame("2026-03-12", 1, ["Ulm", "Bonn"]))
    a.append(frame("2026-03-12", 1, ["Bonn", "Ulm"]).T)  # the axes have names
    a.append(frame("2026-03-20", 2, ["Bonn", "Ulm"]).iloc[1])  # one row, whose name is its date
    assert shown(a)[5:] == ["2026-03-12", "2026-03-21"] and a["value"][5:].tolist() == [[0, 1], [2, 3]]


def test_a_frame_whose_index_only_counts_brings_no_labels() -> None:
    table = pd.DataFrame(np.arange(12.0).reshape(6, 2))
    a = gs.array("mem://frames-counted", table[:2])
    a.append(table[2:4])  # rows 2 and 3, which they are in the array
    a.append(table[4:].reset_index(drop=True))
    assert a.dim("d0").labels is None and a.read()["value"].tolist() == table.to_numpy().tolist()
    with pytest.raises(InputError, match=r"has no labels .* leave labels= out"):
        a.append(table[:2].set_index(days("2026-03-01", 2)))


def test_streamed_blocks_of_xarray_and_pandas_keep_dates_and_order() -> None:
    def cube(first: str, count: int) -> xr.DataArray:
        values = np.arange(count * 6.0).reshape(count, 2, 3)
        return xr.DataArray(values, {"time": days(first, count), "x": ["a", "b"]}, ["time", "x", "y"], "v")

    a = gs.array("mem://frames-stream", cube("2026-03-01", 2))
    with a.writer(axis="time") as writer:
        writer.append(cube("2026-03-10", 2).transpose("y", "time", "x"))
        writer.append(cube("2026-04-01", 1)[0].transpose("y", "x"))  # one position, whose date is a scalar coordinate
        with pytest.raises(InputError, match="'x': the block has the labels"):
            writer.append(cube("2026-05-01", 1)[:, ::-1])
    assert shown(a)[2:] == ["2026-03-10", "2026-03-11", "2026-04-01"]
    assert np.array_equal(a["v"][2:4], cube("2026-03-10", 2).values)
    assert np.array_equal(a["v"][4], cube("2026-04-01", 1).values[0])
    line = gs.array("mem://frames-stream-line", series("2026-03-01", [1.0, 2.0]))
    with line.writer(axis=0) as frames:
        frames.append(series("2026-03-05", [3.0]))
        frames.append(series("2026-03-07", [4.0, 5.0]))
    assert shown(line)[2:] == ["2026-03-05", "2026-03-07", "2026-03-08"]
    assert line.read()["price"].tolist() == [1, 2, 3, 4, 5]


def test_a_frame_with_a_label_is_refused_at_once_where_there_are_none() -> None:
    a = gs.array("mem://frames-never", np.zeros((2, 3)))
    with a.writer(axis=0) as writer:
        writer.append(np.ones(3))
        with pytest.raises(InputError, match=r"'d0' has no labels .* leave label= out"):
            writer.append(np.ones(3), label="b")
    assert a.shape == (3, 3), "the frames before are committed"


def test_a_frame_is_written_and_assigned_as_its_values() -> None:
    table = pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=["a", "b"])
    a = gs.array("mem://frames-written", table)
    a.write(table + 10)
    assert a.read()["value"].tolist() == (table + 10).to_numpy().tolist()
    a[...] = table + 20
    a["value"][1:] = table[1:] + 30
    assert a.read()["value"].tolist() == [[20, 21], [32, 33], [34, 35]]
    a[...] = {"value": table}
    assert a.read()["value"].tolist() == table.to_numpy().tolist()


def test_a_dataarray_is_written_and_assigned_by_the_names_of_its_dimensions() -> None:
    there = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=["x", "y"], name="v")
    a = gs.array("mem://frames-by-name", there)
    turned = there.transpose("y", "x")
    for put in (
        lambda: a.write(turned + 1),
        lambda: a.__setitem__(..., turned + 1),
        lambda: a.__setitem__(..., {"v": turned + 1}),
        lambda: a["v"].__setitem__(..., turned + 1),
        lambda: a.__setitem__(..., (turned + 1).to_dataset()),
    ):
        a[...] = np.zeros((2, 3))
        put()
        assert np.array_equal(a.read()["v"], (there + 1).values)
    a[0] = there[1]
    a[[1, 0]] = turned
    assert a.read()["v"].tolist() == [[3, 4, 5], [0, 1, 2]]
    a[...] = xr.DataArray(np.ones((2, 3)))  # dim_0 and dim_1 are no names that a user gave
    with pytest.raises(InputError, match=r"dimensions 'x', 'y', the block \('x', 'z'\); rename"):
        a[...] = there.rename(y="z")
    assert a.read()["v"].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_attrs_of_a_frame_are_metadata() -> None:
    table = pd.DataFrame(np.zeros((2, 2)))
    table.attrs = {"source": "survey", "year": 2026}
    a = gs.array("mem://frames-attrs", table)
    assert dict(a.meta) == {"source": "survey", "year": 2026}
    alone = series("2026-03-01", [1.0])
    alone.attrs = {"unit": "EUR"}
    assert dict(gs.array("mem://frames-attrs-series", alone).meta) == {"unit": "EUR"}
