"""Labels and times that could be taken for something else: pairs, dates without hyphens, fine units, duplicates."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridstone as gs
from gridstone.errors import InputError, SchemaError, UnsupportedError


def line(name: str, labels: object, **options: object) -> gs.Array:
    count = len(labels)  # type: ignore[arg-type]
    return gs.array(f"mem://ambiguous-{name}", np.arange(count), dims=["t"], coords={"t": labels}, name="v", **options)  # type: ignore[arg-type]


def labels_of(a: gs.Array) -> np.ndarray:
    found = a.dim("t").labels
    assert found is not None
    return found


def test_a_list_of_timestamps_keeps_nanoseconds() -> None:
    fine = [pd.Timestamp("2026-03-01T00:00:00.000000001"), pd.Timestamp("2026-03-01T00:00:00.000000007")]
    found = labels_of(line("nanoseconds", [*fine, None]))
    assert found.dtype == "M8[ns]" and found.tolist()[:2] == [one.value for one in fine] and np.isnat(found[2])
    coarse = line("seconds", [dt.datetime(2026, 3, 1, 12), dt.date(2026, 3, 2)])
    assert labels_of(coarse).dtype == "M8[us]"
    assert labels_of(line("dates", [dt.date(2026, 3, 1), dt.date(2026, 3, 5)])).dtype == "M8[D]"
    with pytest.raises(SchemaError, match=r"3000-01-01.*one unit"):
        line("far", [fine[0], dt.datetime(3000, 1, 1)])


def test_a_date_without_hyphens_is_a_day() -> None:
    a = line("days", np.array(["2026-03-01", "2026-03-02", "2026-03-09"], "M8[D]"))
    assert a.sel(t="20260302")["v"].tolist() == 1
    assert a.sel(t=slice("20260302", "20260309"))["v"].tolist() == [1, 2]
    with pytest.raises(InputError, match="no date or time; write 2026"):
        a.sel(t="202603")
    a.append([3], labels=["20260310"])
    assert str(labels_of(a)[-1]) == "2026-03-10"
    with pytest.raises(InputError):
        a.append([4], labels=["202603110"])


def test_a_pair_for_two_positions_is_ambiguous() -> None:
    for make in (
        lambda: line("pair", (10, 20)),
        lambda: gs.Dim("t", (0, 1), labels=(10, 20)),
        lambda: line("pair-alter", [1, 5]).alter(labels={"t": (10, 20)}),
    ):
        with pytest.raises(SchemaError, match=r"two positions.*labels=\[…\] for two labels"):
            make()
    dim = gs.Dim("t", (0, 1), labels=(np.datetime64("2026-03-01"), np.timedelta64(1, "D")))
    assert dim.labels is not None and str(dim.labels[1]) == "2026-03-02", "a length of time is no label of a time"
    assert gs.Dim("t", (0, 2), labels=(10, 20)).labels.tolist() == [10, 30, 50]  # type: ignore[union-attr]


def test_a_tuple_of_labels_for_a_block_is_a_list() -> None:
    a = line("tuple", [1, 5, 6])
    a.append([3, 4], labels=(10, 20))
    assert labels_of(a).tolist() == [1, 5, 6, 10, 20]
    with a.writer(axis=0) as writer:
        writer.append([5, 6], label=(30, 31))
    assert labels_of(a).tolist() == [1, 5, 6, 10, 20, 30, 31]


def test_a_label_at_several_positions_is_taken_by_a_slice_in_any_order() -> None:
    a = line("twice", ["b", "a", "b", "c"])
    with pytest.raises(InputError, match=r"t=slice\('b', 'b'\)"):
        a.sel(t="b")
    assert a.sel(t=slice("b", "b"))["v"].tolist() == [0, 2]
    with pytest.raises(InputError, match="are in no order, so that no slice begins or ends there") as error:
        a.sel(t=slice("b", "c"))
    assert "slice(" not in str(error.value)
    assert a.sel(t=slice("a", "c"))["v"].tolist() == [1, 2, 3]
    days = line("twice-days", np.array(["2026-03-09", "2026-03-01", "2026-03-09"], "M8[D]"))
    with pytest.raises(InputError, match=r"t=slice\('2026-03-09', '2026-03-09'\)"):
        days.sel(t=dt.date(2026, 3, 9))
    assert days.sel(t=slice("2026-03-09", "2026-03-09"))["v"].tolist() == [0, 2]


def test_fine_times_go_to_xarray_as_nanoseconds_or_not_at_all() -> None:
    ticks = np.array([1_000, 5_000, 7_000], "M8[ps]")
    assert line("ps", ticks).to_xarray()["t"].values.tolist() == [1, 5, 7]
    with pytest.raises(UnsupportedError, match=r"dimension 't' has .* nearest is ns"):
        line("ps-odd", ticks + np.timedelta64(1, "ps")).to_xarray()
    for unit in ("M", "Y"):
        spans = gs.array(f"mem://ambiguous-{unit}", np.array([1, 2], f"m8[{unit}]"))
        with pytest.raises(UnsupportedError, match="no fixed length"):
            spans.to_xarray()


def test_large_integers_with_nulls_do_not_go_to_xarray_rounded() -> None:
    def masked(name: str, values: list[int]) -> gs.Array:
        return gs.array(f"mem://ambiguous-{name}", np.ma.array(values, mask=[False, True, False]))

    found = masked("whole", [2**60, 0, 7]).to_xarray()
    assert found.values[0] == 2**60 and np.isnan(found.values[1])
    with pytest.raises(UnsupportedError, match=r"9007199254740993.*fill the missing values first"):
        masked("lost", [2**53 + 1, 0, 7]).to_xarray()


def test_a_dataarray_along_another_dimension_is_no_list_of_labels() -> None:
    there = xr.DataArray(np.arange(6).reshape(2, 3), {"x": [10, 20], "y": [1, 2, 3]}, ["x", "y"], "v")
    a = gs.array("mem://ambiguous-indexer", there)
    cells = {"x": xr.DataArray([10, 20], dims="p"), "y": xr.DataArray([1, 3], dims="p")}
    with pytest.raises(UnsupportedError, match=r"along 'p'.*points\(\) or vindex"):
        a.sel(cells)
    own = {"x": xr.DataArray([20], dims="x"), "y": xr.DataArray(3)}
    assert a.sel(own)["v"].tolist() == [5]
