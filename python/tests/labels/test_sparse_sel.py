"""`sel` on sparse arrays: as far as there are coordinates, and values as the type holds them."""

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import BoundsError, InputError


def cells(name: str) -> gs.Array:
    dims = [gs.Dim("x", (0, 9), tile=4), gs.Dim("f", (0.0, 9.0), dtype="float32")]
    a = gs.create(f"mem://sparse-sel-{name}", gs.Schema(dims, [gs.Attr("v", "int64")], sparse=True))
    a.write_cells({"x": [3, 5], "f": np.array([0.1, 2], "float32")}, [1, 2])
    return a


def test_what_reaches_past_the_data_is_cut() -> None:
    a = cells("past")
    assert a.sel(x=slice(4, 20))["v"].tolist() == [2] and a.sel(x=slice(20, 30))["v"].tolist() == []
    assert a.sel(x=slice(-5, None))["v"].tolist() == [1, 2] and a.sel(x=slice(None, -5))["v"].tolist() == []
    for asked in (20, [3, 20]):
        with pytest.raises(BoundsError, match="have no 20: they reach from 0 to 9"):
            a.sel(x=asked)
    with pytest.raises(KeyError):
        a.sel(f=10.5)


def test_a_written_time_that_reaches_past_the_data_is_cut() -> None:
    dim = gs.Dim("t", (np.datetime64("2026-03-05"), np.datetime64("2026-04-05")), dtype="datetime64[D]")
    a = gs.create("mem://sparse-sel-times", gs.Schema([dim], [gs.Attr("v", "int64")], sparse=True))
    a.write_cells({"t": np.array(["2026-03-05", "2026-04-05"], "M8[D]")}, [1, 2])
    assert a.sel(t="2026-03")["v"].tolist() == [1] and a.sel(t=slice("2026-04", "2027"))["v"].tolist() == [2]
    assert a.sel(t="20260405")["v"].tolist() == [2]
    with pytest.raises(BoundsError, match="have no '2025': they reach from 2026-03-05 to 2026-04-05"):
        a.sel(t="2025")


def test_one_value_is_taken_as_the_type_holds_it() -> None:
    a = cells("held")
    assert a.sel(f=0.1)["v"].tolist() == [1] and a.sel(f=[0.1, 2])["v"].tolist() == [1, 2]
    assert a.sel(f=slice(0.1, 0.1))["v"].tolist() == [1]
    assert a.sel(x=slice(3.2, 3.8))["v"].tolist() == []
    with pytest.raises(BoundsError, match=r"have no 3\.5: they are int64"):
        a.sel(x=3.5)
    with pytest.raises(InputError):
        a.sel(x="three")
