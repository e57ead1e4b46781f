"""Arrays and data frames in the other byte order are taken everywhere."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gridstone as gs

KINDS = ["i2", "i4", "i8", "u2", "u8", "f2", "f4", "f8", "M8[s]", "m8[ms]", "c8", "c16"]
OTHER = np.dtype(np.int32).newbyteorder("S").byteorder
"""The sign of the byte order that the machine has not."""


def swapped(kind: str) -> Any:
    """Three values in the other byte order."""
    made = np.array([1, 2, 3]).astype(f"{OTHER}{kind}")
    assert not made.dtype.isnative
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_frames_and_arrays_in_the_other_byte_order(kind: str) -> None:
    values, native = swapped(kind), np.array([1, 2, 3]).astype(kind)
    places = swapped("i4")
    frame = pd.DataFrame({"i": places, "v": values})
    kept = frame.dtypes.tolist()
    schema = gs.Schema([gs.Dim("i", (0, 9))], [gs.Attr("v", kind, nullable=True)], sparse=True)
    a = gs.create("mem://cells", schema, overwrite=True)
    a.write_cells(frame)
    a.write_cells({"i": pd.Series(swapped("i2") + 3)}, {"v": pd.Series(values)})
    a.write_cells(swapped("u2") + 6, np.ma.array(values, mask=[0, 1, 0]))
    assert np.ma.getdata(a["v"][...]).tolist()[:6] == native.tolist() * 2
    assert np.ma.getmaskarray(a["v"][...]).tolist() == [False] * 7 + [True, False]
    loads = [lambda: gs.io.from_pandas("mem://load", frame, dims=["i"], overwrite=True)]
    loads.append(lambda: gs.io.from_pandas("mem://load", frame.set_index("i"), dims=["i"], overwrite=True))
    if not kind.startswith("c"):
        loads.append(lambda: gs.io.from_arrow("mem://load", frame, dims=["i"], overwrite=True))
    for load in loads:
        found = load().read()
        assert found["i"].tolist() == [1, 2, 3] and found["v"].tolist() == native.tolist()
    assert frame.dtypes.tolist() == kept, "the frame stays as it was"
    dense = gs.array("mem://dense", values, overwrite=True)
    assert dense[...].dtype == native.dtype and dense[...].tolist() == native.tolist()
    dense[...] = values[::-1]
    dense.write(values)
    dense["value"][swapped("i8")[:1]] = values[1]
    assert dense[...].tolist() == native.tolist()
    out = np.empty_like(values)
    dense.read(out=out)
    assert out.tolist() == native.tolist()


def test_columns_of_lists_in_the_other_byte_order() -> None:
    lists = [np.array([1, 2], f"{OTHER}i4"), np.array([3], f"{OTHER}i4"), np.empty(0, "i4")]
    floats = [np.array([1.5], "f4"), None, np.array([2.5], f"{OTHER}f4")]
    frame = pd.DataFrame({"i": [0, 1, 2], "v": lists, "f": floats, "m": [np.ones((2, 2), f"{OTHER}i4")] * 3})
    found = gs.io.from_pandas("mem://lists", frame, dims=["i"], overwrite=True).read()
    assert [part.tolist() for part in found["v"]] == [[1, 2], [3], []]
    assert found["f"][0].tolist() == [1.5] and found["f"][2].tolist() == [2.5]
    assert found["m"].sum() == 12


def test_columns_of_one_name_and_positions_in_the_other_byte_order() -> None:
    frame = pd.DataFrame(np.arange(6, dtype=f"{OTHER}f8").reshape(3, 2), columns=["v", "v"])
    with pytest.raises(gs.errors.InputError, match="duplicate"):
        gs.io.from_pandas("mem://twice", frame, overwrite=True)
    a = gs.array("mem://grid", np.arange(20).reshape(4, 5), overwrite=True)
    rows, columns = np.array([1, 3], f"{OTHER}i8"), np.array([0, 4], f"{OTHER}u2")
    assert a[rows].tolist() == a[[1, 3]].tolist()
    assert a.oindex[rows, columns].tolist() == [[5, 9], [15, 19]] and a.vindex[rows, columns].tolist() == [5, 19]
    assert a.points({"d0": rows, "d1": columns})["value"].tolist() == [5, 19]
    assert a.read(where=gs.col("value").isin(columns))["value"].tolist() == [0, 4]
    assert a.read({"d0": tuple(rows)}).shape == (3, 5)
    a.delete(coords={"d0": rows, "d1": columns})
    assert a[1, 0] == a[3, 4] == 0
    records = np.array([(1, 2.5)], [("a", f"{OTHER}i4"), ("b", f"{OTHER}f8")])
    assert {name: x.tolist() for name, x in gs.array("mem://records", records)[...].items()} == {"a": [1], "b": [2.5]}
    assert gs.advise(pd.DataFrame({"i": rows, "v": columns}), dims=["i"]) is not None
