"""Blocks are appended behind the end of a dense array, rows to a sparse one, frames as they come."""

import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gridstone as gs


def stack(uri: str, **options: object) -> gs.Array:
    """An array of no row yet written, whose rows have three cells."""
    dims = [gs.Dim("t", (0, 1), tile=2), gs.Dim("x", (0, 2))]
    return gs.create(uri, gs.Schema(dims, [gs.Attr("v", "int64", **options)]))  # type: ignore[arg-type]


def test_a_user_appends_rows_along_the_first_axis() -> None:
    a = stack("mem://append-rows")
    a[...] = np.arange(6).reshape(2, 3)
    assert a.append(np.arange(6, 12).reshape(2, 3)) == a.version
    a.append([12, 13, 14])  # one position, without the axis
    assert a.shape == (5, 3) and len(a) == 5
    assert np.array_equal(a[...], np.arange(15).reshape(5, 3)) and a[-1].tolist() == [12, 13, 14]


def test_a_user_appends_along_another_axis_by_number_and_by_name() -> None:
    a = stack("mem://append-axis")
    a[...] = np.zeros((2, 3))
    a.append(np.ones((2, 1)), axis=-1)
    a.append(np.full((2, 2), 2), axis="x")
    assert a[...].tolist() == [[0, 0, 0, 1, 2, 2]] * 2


def test_a_user_appends_to_several_attributes_and_nulls_stay() -> None:
    schema = gs.Schema([gs.Dim("t", (0, 0))], [gs.Attr("n", "int32", nullable=True), gs.Attr("s", "string")])
    a = gs.create("mem://append-several", schema)
    a.append({"n": np.ma.array([1, 2], mask=[True, False]), "s": ["a", "bc"]})
    found = a.read()
    assert found["n"].tolist() == [None, None, 2] and found["s"].tolist() == ["", "a", "bc"]


def test_an_older_version_keeps_its_shape() -> None:
    a = stack("mem://append-versions")
    before = a.version
    a.append(np.zeros((4, 3)))
    assert a.at(version=before).shape == (2, 3) and a.at(version=a.version).shape == (6, 3)


def test_a_block_of_another_shape_is_refused_and_nothing_grows() -> None:
    a = stack("mem://append-shapes")
    for block in (np.zeros((2, 4)), np.zeros((1, 1, 3)), np.zeros(4), np.float64(3)):
        with pytest.raises(gs.InputError, match=r"\(any, 3\) is appended along axis 0"):
            a.append(block)
        assert a.shape == (2, 3)


def test_a_block_that_another_append_made_too_short_is_refused_with_the_new_shape() -> None:
    a = stack("mem://append-beside-another-axis")
    late = gs.open("mem://append-beside-another-axis", mode="r+")
    a.append(np.ones((2, 1)), axis="x")
    with pytest.raises(gs.InputError, match=r"\(any, 4\) is appended along axis 0, found \(1, 3\)"):
        late.append(np.ones((1, 3)))
    assert a.refresh() == 2 and a.shape == (2, 4)


def test_an_append_says_what_is_wrong_with_its_arguments() -> None:
    a = stack("mem://append-arguments")
    with pytest.raises(gs.InputError, match="finds its place when it is committed"):
        a.append(np.zeros((1, 3)), commit=False)
    with pytest.raises(gs.BoundsError, match="no axis 2"):
        a.append(np.zeros((1, 3)), axis=2)
    with pytest.raises(gs.BoundsError, match="no dimension 'y'"):
        a.append(np.zeros((1, 3)), axis="y")
    with pytest.raises(gs.AccessError, match="opened for reading"):
        gs.open(a.uri).append(np.zeros((1, 3)))
    assert a.append(np.zeros((0, 3))) == a.version == 1


def test_a_user_appends_a_table_whose_places_lie_beyond_the_domain() -> None:
    schema = gs.Schema([gs.Dim("lon", (0.0, 1.0), dtype="float64")], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create("mem://append-table", schema)
    a.append(pd.DataFrame({"lon": [0.5, -3.5], "v": [1, 2]}))
    a.append({"lon": [7.25], "v": [3]})
    assert a.schema.dims[0].domain == (-3.5, 7.25)
    assert a.read()["v"].tolist() == [2, 1, 3]
    with pytest.raises(gs.InputError, match="say themselves where they are"):
        a.append({"lon": [7.25], "v": [3]}, axis=1)


def test_an_infinite_place_is_no_place_to_grow_to() -> None:
    schema = gs.Schema([gs.Dim("x", (0.0, 1.0), dtype="float32")], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create("mem://append-infinite", schema)
    for wrong in (np.inf, -np.inf, np.nan):
        with pytest.raises(gs.GridstoneError, match="row 1"):
            a.append({"x": np.array([0.5, wrong], dtype="float32"), "v": [1, 2]})
    assert a.version == 1 and a.schema.dims[0].domain == (0.0, 1.0)


def test_write_cells_grows_only_when_it_is_told_to() -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), tile=4)], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create("mem://write-cells-grow", schema)
    with pytest.raises(gs.BoundsError, match="grow=True"):
        a.write_cells({"x": [12]}, [1])
    a.write_cells({"x": [12, -3]}, [1, 2], grow=True)
    with a.writer(order="any", grow=True) as writer:
        writer.append({"x": [40]}, [3])
    assert a.schema.dims[0].domain == (-3, 40) and a.read()["v"].tolist() == [2, 1, 3]
    with pytest.raises(gs.BoundsError, match="grow=True"), a.writer() as writer:
        writer.append({"x": [41]}, [4])
    with a.writer(grow=True) as writer:  # in global order
        writer.append({"x": [41, 50]}, [4, 5])
    assert a.schema.dims[0].domain == (-3, 50) and a.read()["v"].tolist() == [2, 1, 3, 4, 5]


def test_a_writer_of_a_box_beyond_the_domain_grows_it_when_it_is_told_to() -> None:
    schema = gs.Schema([gs.Dim("x", (0, 9), tile=4)], [gs.Attr("v", "int64")])
    a = gs.create("mem://writer-grow", schema)
    a[...] = np.arange(10)
    with pytest.raises(gs.BoundsError, match="grow=True"):
        a.writer({"x": (8, 13)})
    with a.writer({"x": (8, 13)}, grow=True) as writer:
        writer.append(np.arange(80, 86))
    assert a.shape == (14,) and a.read()["v"].tolist() == [*range(8), *range(80, 86)]


def test_a_repeated_append_with_a_key_is_done_once() -> None:
    a = stack("mem://append-key")
    version = a.append(np.ones((2, 3)), commit_key="day-1")
    a.append(np.zeros((1, 3)))
    assert gs.open(a.uri, mode="r+").append(np.ones((2, 3)), commit_key="day-1") == version
    assert gs.open(a.uri).shape == (5, 3)


def test_frames_are_appended_in_commits_of_every_so_many() -> None:
    a = stack("mem://frames-every")
    before = a.version
    with a.writer(axis=0, every=10) as writer:
        frame = np.zeros(3)
        for number in range(25):
            frame[:] = number  # the same buffer again
            writer.append(frame)
        assert writer.committed == 20 and gs.open(a.uri).shape == (22, 3)
    assert a.version == before + 3 and a[2:, 0].tolist() == list(range(25))


def test_a_live_reader_sees_frames_once_they_are_so_many_seconds_old(tmp_path: Path) -> None:
    a = stack(f"{tmp_path}/live.gs")
    reader = gs.open(a.uri)
    with a.writer(axis="t", seconds=0.05) as writer:
        writer.append(np.full(3, 7))
        deadline = time.monotonic() + 30
        while reader.shape == (2, 3) and time.monotonic() < deadline:
            time.sleep(0.01)
            reader.refresh()
        assert reader[-1].tolist() == [7, 7, 7]


def test_frames_that_were_taken_are_kept_when_the_block_ends_with_an_error() -> None:
    a = stack("mem://frames-error")
    with pytest.raises(ZeroDivisionError), a.writer(axis=0, every=100) as writer:
        writer.append(np.ones(3))
        raise ZeroDivisionError
    assert a[2:].tolist() == [[1, 1, 1]]
    writer = a.writer(axis=0)
    writer.append(np.ones(3))
    writer.abort()
    assert a.shape == (3, 3)
    with pytest.raises(gs.InputError, match="finished"):
        writer.append(np.ones(3))


def test_threads_append_frames_through_one_writer_and_each_is_there_once() -> None:
    a = stack("mem://frames-threads")
    with a.writer(axis=0, every=7) as writer:
        ranges = [range(part * 40, part * 40 + 40) for part in range(4)]
        threads = [threading.Thread(target=lambda r=r: [writer.append(np.full(3, i)) for i in r]) for r in ranges]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(a[2:, 0].tolist()) == list(range(160)) and (a[2:] == a[2:, :1]).all()


def test_threads_append_through_handles_of_their_own() -> None:
    a = stack("mem://append-threads")

    def work(part: int) -> None:
        mine = gs.open(a.uri, mode="r+")
        for number in range(20):
            mine.append(np.full((1 + (part + number) % 5, 3), part * 100 + number))

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = gs.open(a.uri)[2:]
    assert (found == found[:, :1]).all()
    values, counts = np.unique(found[:, 0], return_counts=True)
    want = {part * 100 + number: 1 + (part + number) % 5 for part in range(4) for number in range(20)}
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == want
    assert np.count_nonzero(np.diff(found[:, 0])) == 79, "each block is in one piece"


def test_a_writer_of_frames_needs_a_number_that_can_be() -> None:
    a = stack("mem://frames-arguments")
    for wrong in ({"every": 0}, {"every": True}, {"seconds": 0}):
        with pytest.raises(gs.GridstoneError):
            a.writer(axis=0, **wrong)  # type: ignore[call-overload]
    with pytest.raises(gs.InputError, match="axis="):
        a.writer(every=3)  # type: ignore[call-overload]


def test_frames_whose_commit_ended_unknown_are_there_once_whatever_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    a = stack("mem://frames-unknown")
    writer = a.writer(axis=0, every=2)
    append = type(a).append

    def done_but_unknown(self: gs.Array, *given: object, **named: object) -> int:
        append(self, *given, **named)  # type: ignore[arg-type]
        raise gs.errors.StorageError("the answer was lost")

    writer.append(np.full(3, 1))
    monkeypatch.setattr(type(a), "append", done_but_unknown)
    with pytest.raises(gs.errors.StorageError):
        writer.append(np.full(3, 2))
    monkeypatch.undo()
    writer.append(np.full(3, 3))
    writer.close()
    assert a[2:, 0].tolist() == [1, 2, 3] and writer.committed == 3
