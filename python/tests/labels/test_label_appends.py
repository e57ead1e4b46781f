"""Labels come with the blocks that are appended, in the same commit."""

import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridstone as gs
from gridstone import _native
from gridstone.errors import InputError, StorageError


def stack(name: str, labels: Any, **options: Any) -> gs.Array:
    """Rows of three cells, with these labels."""
    if isinstance(labels, tuple):  # a start and a step, of two rows
        labels = np.array([labels[0], labels[0] + labels[1]])
    count = len(labels)
    dims = [gs.Dim("time", (0, count - 1), labels=labels, **options), gs.Dim("x", (0, 2))]
    a = gs.create(f"mem://label-appends-{name}", gs.Schema(dims, [gs.Attr("v", "int64")]))
    a[...] = np.arange(3 * count).reshape(count, 3)
    return a


def labels_of(a: gs.Array) -> list[Any]:
    found = a.dim("time").labels
    assert found is not None
    return list(found.tolist())


def test_listed_labels_grow_with_the_blocks() -> None:
    a = stack("listed", ["a", "b"])
    before = a.version
    a.append(np.full((2, 3), 7), labels=["c", "d"])
    a.append([8, 8, 8], labels="e")
    assert (
        a.version == before + 2
        and labels_of(a) == ["a", "b", "c", "d", "e"]
        and a.sel(time="d")["v"].tolist() == [7, 7, 7]
    )
    assert labels_of(a.at(version=before)) == ["a", "b"] and labels_of(a.at(version=before + 1)) == ["a", "b", "c", "d"]
    assert not gs.verify(a.uri).damage


def test_a_block_without_labels_is_refused_where_they_are_listed() -> None:
    a = stack("without", [1.0, 1.5, 7.0])
    version = a.version
    for block in (np.zeros((2, 3)), np.zeros(3)):
        with pytest.raises(InputError, match=r"has a list of labels, and .* give .*labels=.*alter\(labels="):
            a.append(block)
    for labels, said in (
        ([1.0], "2 positions, and 1 labels"),
        (["a", "b"], "are float64, those given string"),
        ([pd.Timestamp("2026-03-01")] * 2, "are float64, those given datetime64"),
    ):
        with pytest.raises(InputError, match=said):
            a.append(np.zeros((2, 3)), labels=labels)
    assert a.version == version and a.shape == (3, 3)
    a.append(np.zeros((2, 3)), labels=[9, 11])  # whole numbers are floats too
    assert labels_of(a) == [1.0, 1.5, 7.0, 9.0, 11.0]


def test_labels_at_steps_go_on_by_themselves() -> None:
    a = stack("steps", (10, 5), tile=2)
    a.append(np.zeros((2, 3)))
    a.append(np.zeros((1, 3)), labels=[30])
    assert labels_of(a) == [10, 15, 20, 25, 30] and "from 10 in steps of 5" in repr(a)


def test_labels_that_leave_the_steps_become_a_list_in_the_same_commit() -> None:
    for name, start, step, more, wanted in (
        ("integers", 10, 5, [20, 100], [10, 15, 20, 100]),
        ("floats", 0.0, 0.1, [0.3], [0.0, 0.1, 0.3]),
        ("days", np.datetime64("2026-03-01"), np.timedelta64(1, "D"), ["2026-03-03", "2026-03-09"], None),
        ("missing", 10, 5, np.ma.array([20, 0], mask=[False, True]), [10, 15, 20, None]),
    ):
        a = stack(f"leave-{name}", (start, step))
        before = a.version
        a.append(np.ones((len(more), 3)), labels=more)
        wanted = wanted or np.array(["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-09"], "M8[D]").tolist()
        assert a.version == before + 1 and labels_of(a) == wanted and "in a list" in repr(a)
        assert len(labels_of(a.at(version=before))) == 2 and not gs.verify(a.uri).damage
        with pytest.raises(InputError, match="give theirs"):
            a.append(np.ones((1, 3)))


def test_too_many_labels_to_be_listed_are_an_error_that_says_what_goes_on() -> None:
    dims = [gs.Dim("time", (0, 2**24), tile=1 << 20, labels=(0.0, 0.5))]
    a = gs.create("mem://label-appends-many", gs.Schema(dims, [gs.Attr("v", "int8")]))
    with pytest.raises(InputError, match=r"go on from 0.0 in steps of 0.5, and those given do not; 16777218 labels"):
        a.append([1], labels=[3.25])
    a.append([1], labels=[(2**24 + 1) * 0.5])
    assert a.sel(time=(2**24 + 1) * 0.5)["v"] == 1


def test_a_dimension_without_labels_takes_none() -> None:
    a = gs.array("mem://label-appends-none", np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"has no labels that those of a block could continue.*alter\(labels="):
        a.append(np.zeros((1, 3)), labels=["a"])
    sparse = gs.create(
        "mem://label-appends-sparse", gs.Schema([gs.Dim("x", (0, 1))], [gs.Attr("v", "int8")], sparse=True)
    )
    with pytest.raises(InputError, match="rows have coordinates"):
        sparse.append({"x": [1], "v": [2]}, labels=["a"])


def test_a_labelled_block_with_a_key_is_appended_once() -> None:
    a = stack("key", ["a", "b"])
    version = a.append(np.ones((1, 3)), labels=["c"], commit_key="k")
    assert gs.open(a.uri, mode="r+").append(np.ones((1, 3)), labels=["c"], commit_key="k") == version
    with pytest.raises(gs.ConflictError, match="key"):
        a.append(np.ones((1, 3)), labels=["d"], commit_key="k")
    assert labels_of(gs.open(a.uri)) == ["a", "b", "c"]


@pytest.mark.parametrize("start", [["r-0", "r-1"], (0, 1)], ids=["listed", "steps"])
def test_threads_append_labelled_blocks_and_each_label_lies_at_its_block(start: Any) -> None:
    a = stack(f"threads-{type(start).__name__}", start, tile=1)
    texts = isinstance(start, list)

    def work(part: int) -> None:
        mine = gs.open(a.uri, mode="r+")
        for number in range(12):
            numbers = [1000 * part + 10 * number + n for n in range(1 + number % 3)]
            labels = [f"r-{n}" for n in numbers] if texts else numbers
            mine.append(np.repeat(np.array(numbers)[:, None], 3, axis=1), labels=labels)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = gs.open(a.uri)
    rows, labels = found[2:, 0].tolist(), labels_of(found)[2:]
    assert len(rows) == 72 and labels == ([f"r-{n}" for n in rows] if texts else rows)
    assert not gs.verify(a.uri).damage


def test_an_append_and_new_labels_at_once_leave_no_label_at_the_wrong_place() -> None:
    a = stack("relabelled", ["a", "b"])
    other = gs.open(a.uri, mode="r+")
    a.alter(labels={"time": ["p", "q"]})
    other.append(np.ones((1, 3)), labels=["r"])
    assert labels_of(gs.open(a.uri)) == ["p", "q", "r"]
    a.refresh()
    stepped = gs.open(a.uri, mode="r+")
    a.alter(labels={"time": (10, 10)})
    with pytest.raises(InputError, match=r"labels of dimension .time. are int64, those given string"):
        stepped.append(np.ones((1, 3)), labels=["s"])
    assert labels_of(gs.open(a.uri)) == [10, 20, 30]


def test_blocks_are_appended_with_labels_in_a_transaction() -> None:
    a = stack("transaction", ["a", "b"])
    with gs.transaction(a.uri) as tx:
        tx["/"].append(np.ones((1, 3)), labels=["c"])
        tx["/"].append(np.ones((1, 3)), labels=["d"])
        assert labels_of(tx["/"]) == ["a", "b", "c", "d"]
    with pytest.raises(ZeroDivisionError), gs.transaction(a.uri) as tx:
        tx["/"].append(np.ones((1, 3)), labels=["e"])
        raise ZeroDivisionError
    found = gs.open(a.uri)
    assert labels_of(found) == ["a", "b", "c", "d"] and found.version == a.version + 1 and not gs.verify(a.uri).damage


def test_frames_come_with_their_labels() -> None:
    a = stack("frames", np.array(["2026-03-01", "2026-03-05"], "datetime64[D]"))
    with a.writer(axis="time", every=4) as writer:
        for day in range(6, 12):
            writer.append(np.full(3, day), label=f"2026-03-{day:02}")
        writer.append(np.full((2, 3), 12), label=["2026-03-12", "2026-03-13"])
        with pytest.raises(InputError, match=r"give that of the frame, append\(frame, label="):
            writer.append(np.zeros(3))
    assert a.sel(time="2026-03-09")["v"].tolist() == [9, 9, 9] and len(a) == 10 and writer.committed == 8
    stepped = stack("frames-steps", (0, 10))
    with stepped.writer(axis=0) as writer:
        writer.append(np.zeros(3))
        with pytest.raises(InputError, match="frames before have no labels"):
            writer.append(np.zeros(3), label=30)
    assert labels_of(stepped) == [0, 10, 20]
    with stepped.writer(axis=0) as writer:
        writer.append(np.zeros(3), label=35)
        with pytest.raises(InputError, match="frames before have labels"):
            writer.append(np.zeros(3))
    assert labels_of(stepped) == [0, 10, 20, 35]


def test_frames_whose_commit_ended_unknown_keep_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    a = stack("frames-unknown", ["a", "b"])
    writer, append = a.writer(axis=0), type(a).append

    def done_but_unknown(self: gs.Array, *given: object, **named: object) -> int:
        append(self, *given, **named)  # type: ignore[arg-type]
        raise StorageError("the answer was lost")

    writer.append(np.full(3, 1), label="c")
    monkeypatch.setattr(type(a), "append", done_but_unknown)
    with pytest.raises(StorageError):
        writer.flush()
    monkeypatch.undo()
    writer.append(np.full(3, 2), label="d")
    writer.close()
    assert labels_of(a) == ["a", "b", "c", "d"] and a[2:, 0].tolist() == [1, 2]


def test_a_dataarray_brings_its_labels_and_dimensions_by_name() -> None:
    days = pd.date_range("2026-03-01", periods=6)
    whole = xr.DataArray(
        np.arange(12).reshape(6, 2),
        dims=["time", "s"],
        coords={"time": days[[0, 1, 2, 3, 4, 5]], "s": ["p", "q"]},
        name="v",
    )
    a = gs.array("mem://label-appends-xarray", whole[[0, 2]])
    a.append(whole[3:5].transpose("s", "time"), axis="time")
    a.append(whole[5])  # one position, whose label is a coordinate alone
    assert a.to_xarray().equals(whole[[0, 2, 3, 4, 5]])
    with pytest.raises(InputError, match=r"the block has the labels \['q', 'p'\], the array \['p', 'q'\]"):
        a.append(whole[:, ::-1])
    with pytest.raises(InputError, match="the array has the dimensions 'time', 's', the block"):
        a.append(whole.rename(s="x"))
    with a.writer(axis="time") as writer:
        writer.append(np.array([7, 8]), label=pd.Timestamp("2026-03-09"))
    assert a.sel(time="2026-03-09")["v"].tolist() == [7, 8]
    both = xr.Dataset({"v": whole[:2], "w": whole[:2] * 0.5})
    b = gs.array("mem://label-appends-dataset", both)
    b.append(xr.Dataset({"v": whole[4:], "w": whole[4:] * 0.5}), axis="time")
    assert b.to_xarray().equals(xr.Dataset({"v": whole[[0, 1, 4, 5]], "w": whole[[0, 1, 4, 5]] * 0.5}))


def test_consolidate_merges_what_labels_lie_in_too() -> None:
    a = stack("consolidate", ["a", "b"])
    for number in range(20):
        a.append(np.full((1, 3), number), labels=[f"r{number}"])

    def parts() -> int:
        found = _native.labels_of(a.native, 0)
        assert found is not None
        found.refresh()
        return len(found.fragments())

    assert parts() == 21
    before = labels_of(a)
    a.consolidate("all", dry_run=True)
    assert parts() == 21
    a.consolidate("all")
    assert parts() == 1 and len(a.fragments) == 1 and labels_of(a) == before == labels_of(gs.open(a.uri))
    assert a.sel(time="r7")["v"].tolist() == [7, 7, 7]
    a.append(np.full((1, 3), 50), labels=["last"])
    assert a.sel(time="last")["v"][0] == 50 and not gs.verify(a.uri).damage


def test_a_handle_that_chose_before_finds_labels_that_came_since() -> None:
    a = stack("index", ["a", "b"])
    assert a.sel(time="b")["v"][0] == 3
    other = gs.open(a.uri, mode="r+")
    other.append(np.full((1, 3), 7), labels=["c"])
    with pytest.raises(KeyError):
        a.sel(time="c")
    a.refresh()
    assert a.sel(time="c")["v"][0] == 7
    a.alter(labels={"time": ["x", "y", "z"]})
    assert a.sel(time="y")["v"][0] == 3


def test_an_open_dimension_takes_labels_with_its_first_block() -> None:
    a = gs.create(
        "mem://label-appends-open", gs.Schema([gs.Dim("time", (0, None)), gs.Dim("x", (0, 2))], [gs.Attr("v", "int64")])
    )
    a.append(np.full((2, 3), 7), labels=["2026-03-01", "2026-03-05"])
    assert labels_of(a) == ["2026-03-01", "2026-03-05"]
    b = gs.create("mem://label-appends-open-2", a.at(version=1).schema)
    before = b.version
    b.append(np.full((2, 3), 7), labels=np.array(["2026-03-01", "2026-03-05"], "M8[D]"))
    b.append(np.full((1, 3), 8), labels="2026-03-09")
    assert b.version == before + 2 and b.sel(time="2026-03-09")["v"].tolist() == [8, 8, 8]
    assert b.at(version=before).dim("time").labels is None
    with pytest.raises(InputError, match="give theirs"):
        b.append(np.zeros((1, 3)))
    stepped = gs.create(
        "mem://label-appends-open-steps",
        gs.Schema([gs.Dim("time", (0, None), labels=("2026-03-01", np.timedelta64(1, "D")))], [gs.Attr("v", "int64")]),
    )
    empty = stepped.dim("time").labels
    assert empty is not None and len(empty) == 0 and "from 2026-03-01" in repr(stepped)
    with pytest.raises(KeyError, match="there are none"):
        stepped.sel(time="2026-03-01")
    stepped.append([1, 2, 3])
    assert stepped.sel(time="2026-03-02")["v"] == 2 and stepped.to_xarray()["time"].values[2] == np.datetime64(
        "2026-03-03"
    )
    assert not gs.verify(b.uri).damage and not gs.verify(stepped.uri).damage


def test_a_side_of_length_0_takes_labels_with_its_first_block() -> None:
    empty = xr.DataArray(np.zeros((0, 2)), dims=["time", "s"], coords={"time": np.array([], "M8[ns]"), "s": ["p", "q"]})
    a = gs.array("mem://label-appends-length-0", empty)
    assert a.shape == (0, 2) and a.dim("time").labels is None
    a.append(
        xr.DataArray(
            [[1.0, 2.0]], dims=["time", "s"], coords={"time": pd.date_range("2026-03-01", periods=1), "s": ["p", "q"]}
        )
    )
    assert a.sel(time="2026-03-01", s="q")["value"] == 2


def test_an_array_of_no_dimension_is_chosen_and_shown() -> None:
    a = gs.array("mem://label-appends-scalar", 7)
    a.meta["units"] = "K"
    assert a.sel()["value"] == 7 and a.to_xarray().item() == 7 and a.to_xarray().attrs == {"units": "K"}
    assert gs.array("mem://label-appends-scalar-2", a.to_xarray()).meta["units"] == "K"
