"""What an exception of a progress callable leaves behind, and what is told where little is to be done."""

import inspect
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import data_files

import gridstone as gs
from gridstone import io
from gridstone.arrays.view import AttrView
from gridstone.base import progress
from gridstone.errors import BudgetError, CorruptionError, InputError, NotFoundError


class Stop(Exception):
    """Raised by a progress callable."""


def stops(done: int, total: int) -> None:
    raise Stop(f"{done} of {total}")


def points(uri: str) -> gs.Array:
    """A sparse array of 100,000 cells in one file."""
    schema = gs.Schema([gs.Dim("x", (0, 10**6), 1000)], [gs.Attr("v", "int64")], sparse=True)
    a = gs.create(uri, schema, context=gs.Context("16MiB", 1, durability="close"))
    a.write_cells({"x": np.arange(100_000)}, np.random.default_rng(2016).integers(0, 2**62, 100_000))
    return a


def test_a_stream_never_goes_on_behind_a_batch_that_was_lost(store_uri: str) -> None:
    stream = points(store_uri).scan(batch_bytes="256KiB", progress=stops)
    with pytest.raises(Stop):
        next(stream)
    for again in (stream.__next__, stream.to_numpy, stream.to_arrow):
        with pytest.raises(InputError, match="cells went with it"):
            again()


def test_a_stream_whose_end_could_not_be_told_is_not_empty(store_uri: str) -> None:
    """What was gathered is lost with the exception."""

    def report(done: int, total: int) -> None:
        if done == total:
            raise Stop

    stream = points(store_uri).scan(batch_bytes="256KiB", progress=report)
    with pytest.raises(Stop):
        stream.to_numpy()
    with pytest.raises(InputError, match="cells went with it"):
        stream.to_numpy()


def test_a_stream_that_damage_has_ended_is_not_taken_for_one_at_its_end(tmp_path: Path) -> None:
    a = points(str(tmp_path / "a.gs"))
    file = next((tmp_path / "a.gs" / "_data").glob("*.frag"))
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    stream = gs.open(a.uri).scan(batch_bytes="64KiB", progress=lambda done, total: None)
    with pytest.raises(CorruptionError):
        stream.to_numpy()
    with pytest.raises(InputError, match="an error ended it"):
        stream.to_numpy()


def test_a_second_thread_does_not_end_a_stream(store_uri: str) -> None:
    stream = points(store_uri).scan(batch_bytes="64KiB")
    seen, refused = [0, 0], []

    def read(place: int) -> None:
        while True:
            try:
                batch = next(stream, None)
            except InputError as error:
                refused.append(error)
                continue
            if batch is None:
                return
            seen[place] += len(batch)

    threads = [threading.Thread(target=read, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(seen) == 100_000, f"{len(refused)} calls were refused"


def test_a_read_in_portions_never_goes_on_behind_one_that_was_lost(store_uri: str) -> None:
    filling = points(store_uri).read_into({"v": np.empty(30_000, "int64")}, progress=stops)
    with pytest.raises(Stop):
        filling.submit()
    assert not filling.complete
    with pytest.raises(InputError, match="a portion went with it"):
        filling.submit()


def test_a_read_whose_last_portion_was_lost_is_not_complete(store_uri: str) -> None:
    filling = points(store_uri).read_into({"v": np.empty(100_000, "int64")}, progress=stops)
    with pytest.raises(Stop):
        filling.submit()
    assert not filling.complete


def test_a_portion_that_does_not_fit_ends_nothing(store_uri: str) -> None:
    told: list[tuple[int, int]] = []
    a = points(store_uri)
    filling = a.read_into({"v": np.empty(0, "int64")}, progress=lambda *pair: told.append(pair))
    with pytest.raises(BudgetError):
        filling.submit()
    assert filling.submit({"v": np.empty(100_000, "int64")}) == 100_000
    assert told[-1] == (100_000, 100_000)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_an_exception_at_the_last_cell_looked_at_deletes_nothing(store_uri: str, sparse: bool, commit: bool) -> None:
    dims = [gs.Dim("x", (0, 99_999), 10_000)]
    a = gs.create(store_uri, gs.Schema(dims, [gs.Attr("v", "int64")], sparse=sparse))
    v = np.random.default_rng(2016).integers(0, 2**62, 100_000)
    a.write_cells({"x": np.arange(100_000)}, v)
    before, kept = a.version, data_files(store_uri)

    def report(done: int, total: int) -> None:
        if done == total:
            raise Stop

    for where in ("v >= 0", f"v < {2**61}"):
        with pytest.raises(Stop):
            a.delete(where=where, commit=commit, progress=report)
        assert a.refresh() == before
        assert data_files(store_uri) == kept


def test_a_writer_aborted_by_its_last_report_commits_nothing(store_uri: str) -> None:
    a = points(store_uri)
    before = a.version
    writer = a.writer(progress=lambda done, total: writer.abort() if total else None)
    writer.append({"x": [300_000]}, [1])
    with pytest.raises(InputError, match="aborted"):
        writer.close()
    assert a.refresh() == before


@pytest.mark.parametrize("at", [0, 1])
def test_an_exception_of_a_writers_last_report_commits_nothing(store_uri: str, at: int) -> None:
    a = points(store_uri)
    before, told, kept = a.version, [], data_files(store_uri)

    def report(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) > at:
            raise Stop

    def write() -> None:
        with a.writer(progress=report) as writer:
            writer.append({"x": np.arange(200_000, 200_100)}, np.arange(100))

    with pytest.raises(Stop):
        write()
    assert len(told) == at + 1
    assert a.refresh() == before
    assert data_files(store_uri) == kept, "no half-written fragment stays"


def test_a_bar_ends_with_what_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer whose commit fails, and one that cannot be finished."""
    ended: list[int] = []
    give_up = progress.Reporter.give_up
    monkeypatch.setattr(progress.Reporter, "give_up", lambda told: (ended.append(told._done), give_up(told))[1])
    a = points(str(tmp_path / "a.gs"))
    writer = a.writer(progress=True)
    writer.append({"x": [300_000]}, [1])
    gs.delete(a.uri)
    with pytest.raises(NotFoundError), writer:
        pass
    assert ended
    assert ended[-1] == 1


def test_an_arrow_stream_never_goes_on_behind_a_batch_that_was_lost(store_uri: str) -> None:
    a, told = points(store_uri), []
    reader = io.to_arrow(a, batch_bytes="256KiB", progress=lambda done, total: told.append((done, total)))
    assert told == [], "nothing is read before it is asked for"
    assert reader.read_all().num_rows == 100_000
    done = [d for d, _ in told]
    assert len(told) > 2 and done == sorted(done) and told[-1] == (100_000, 100_000)
    assert all(total == 0 for _, total in told[:-1])
    reader = io.to_arrow(a, batch_bytes="256KiB", progress=stops)
    with pytest.raises(Stop):
        reader.read_next_batch()
    for again in (reader.read_next_batch, reader.read_all):
        with pytest.raises(InputError, match="cells went with it"):
            again()


def test_points_of_one_attribute_tell_how_far_they_are(store_uri: str) -> None:
    a, told = points(store_uri), []
    found = a["v"].points({"x": np.arange(99_999, -1, -1)}, progress=lambda done, total: told.append((done, total)))
    np.testing.assert_array_equal(found, a.read()["v"][::-1])
    assert [d for d, _ in told] == sorted(d for d, _ in told) and told[-1][0] == told[-1][1] > 0
    with pytest.raises(Stop):
        a["v"].points({"x": np.arange(100_000)}, progress=stops)
    assert len(a["v"].points({"x": np.arange(100_000)})) == 100_000


def test_a_matrix_file_that_a_report_has_stopped_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    schema = gs.Schema([gs.Dim("i", (0, 999)), gs.Dim("j", (0, 999))], [gs.Attr("v", "float64")], sparse=True)
    a = gs.create(str(tmp_path / "m.gs"), schema, context=gs.Context("16MiB", 1, durability="close"))
    at = np.random.default_rng(2016).choice(10**6, 50_000, replace=False)
    a.write_cells({"i": at // 1000, "j": at % 1000}, at / 7)
    told: list[tuple[int, int]] = []
    assert io.to_mtx(a, tmp_path / "m.mtx", progress=lambda done, total: told.append((done, total))) == 50_000
    assert [d for d, _ in told] == sorted(d for d, _ in told) and told[-1][0] == told[-1][1] > 0
    with pytest.raises(Stop):
        io.to_mtx(a, tmp_path / "n.mtx", progress=stops)
    assert [path.name for path in tmp_path.glob("*.mtx*")] == ["m.mtx"]


def test_reading_csv_tells_how_far_it_is(tmp_path: Path) -> None:
    a = points(str(tmp_path / "a.gs"))
    files = [tmp_path / "a.csv", tmp_path / "b.csv.gz"]
    for file in files:
        io.to_csv(a, file)
    told: list[tuple[int, int]] = []
    table = io.read_csv(files, a.schema, progress=lambda done, total: told.append((done, total)))
    assert table.num_rows == 200_000
    total = sum(file.stat().st_size for file in files)
    assert [d for d, _ in told] == sorted(d for d, _ in told) and told[-1] == (total, total)
    with pytest.raises(Stop):
        io.read_csv(files, a.schema, progress=stops)
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("gridstone-csv")]
    assert threads == [], "what reads ahead has ended"


def test_every_read_and_write_takes_progress() -> None:
    """What looks at cells, or moves them. What is left out works on a sample, on names, or on what is in memory."""
    without = {"advise", "commit"}  # A sample is looked at; a record is written.
    calls = {
        **{f"io.{name}": getattr(io, name) for name in io.__all__},
        **{name: getattr(gs, name) for name in ("array", "copy", "diff", "verify", "repair", *without)},
        **{name: getattr(gs.Array, name) for name in ("read", "scan", "read_into", "points", "write", "write_cells")},
        **{name: getattr(gs.Array, name) for name in ("writer", "delete", "consolidate", "vacuum", "verify")},
        "a['v'].points": AttrView.points,
    }
    calls = {name: call for name, call in calls.items() if inspect.isfunction(call)}
    assert {name for name, call in calls.items() if "progress" not in inspect.signature(call).parameters} == without


def test_what_has_nothing_to_do_tells_of_nothing(store_uri: str) -> None:
    a = points(store_uri)
    told: list[Any] = []
    a.consolidate(progress=lambda done, total: told.append(done / total))
    assert told == []


def test_a_dense_merge_of_more_updates_than_fit_goes_forward(store_uri: str) -> None:
    schema = gs.Schema([gs.Dim("y", (0, 999), 250), gs.Dim("x", (0, 999), 250)], [gs.Attr("v", "int64")])
    a = gs.create(store_uri, schema, context=gs.Context("1MiB", 1, durability="close"))
    a[:] = 1
    draw = np.random.default_rng(2016)
    for _ in range(60):
        at = draw.choice(10**6, 5_000, replace=False)
        a.write_cells({"y": at // 1000, "x": at % 1000}, draw.integers(0, 100, 5_000))
    expected = a[:]
    told: list[tuple[int, int]] = []
    a.consolidate("all", progress=lambda done, total: told.append((done, total)))
    done = [d for d, _ in told]
    assert done == sorted(done), "progress goes forward"
    assert told[-1][0] == told[-1][1] > 0
    np.testing.assert_array_equal(a[:], expected)
