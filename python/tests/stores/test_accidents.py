"""Wrong places, forks and interrupts: what a mistake leaves behind."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs
from gridstone.errors import InputError, NotFoundError

SCHEMA = gs.Schema([gs.Dim("x", (0, 999_999), 1000)], [gs.Attr("v", "int64", filters="none")])


def test_a_file_is_no_store_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("x,y\n")
    for place in (file, file / "a.gs"):
        assert not gs.exists(place)
        with pytest.raises(NotFoundError):
            gs.open(place)
        with pytest.raises(InputError, match="file is where a folder should be"):
            gs.create(place, SCHEMA)
    assert file.read_text() == "x,y\n"


def test_a_bad_path_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        gs.create(tmp_path / "a.gs", SCHEMA, path="/a//b")
    assert list(tmp_path.iterdir()) == []


def staged(array: gs.Array, low: int):  # type: ignore[no-untyped-def]
    """A fragment too large for the log, so that it is a file."""
    values = (np.arange(100_000, dtype="int64"), None, None)
    return array._native.stage_dense([(str(low), str(low + 99_999))], {"v": values}, "row")


def files(place: Path) -> int:
    return len(list((place / "_data").iterdir()))


def test_a_commit_takes_all_fragments_or_none(tmp_path: Path) -> None:
    array = gs.create(tmp_path / "a.gs", SCHEMA)
    other = gs.create(tmp_path / "b.gs", SCHEMA)
    one, two, foreign = staged(array, 0), staged(array, 200_000), staged(other, 0)
    reader = gs.open(tmp_path / "a.gs")
    assert array._native.commit([two], None) == 2
    for refused in ([one, two], [one, one], [one, foreign]):
        with pytest.raises(InputError):
            array._native.commit(refused, None)
    with pytest.raises(InputError, match="reading"):
        reader._native.commit([one], None)
    assert files(tmp_path / "a.gs") == 2
    assert array._native.commit([one], None) == 3
    assert other._native.commit([foreign], None) == 2
    assert array[99_999] == 99_999


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_removes_nothing_of_its_parents(tmp_path: Path) -> None:
    # A small budget, so that the stream starts its file early.
    array = gs.create(tmp_path / "a.gs", SCHEMA, context=gs.Context(memory_budget="1 MiB"))
    mine = staged(array, 0)
    writer = array._native.writer([("200000", "999999")], None)
    writer.append(None, {"v": (np.arange(500_000, dtype="int64"), None, None)})
    assert files(tmp_path / "a.gs") == 2
    child = os.fork()
    if child == 0:
        del mine
        writer.abort()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert files(tmp_path / "a.gs") == 2
    writer.append(None, {"v": (np.arange(300_000, dtype="int64"), None, None)})
    assert array._native.commit([mine, writer.finish()], None) == 2
    assert array[99_999] == 99_999
    assert array[200_000 + 499_999] == 499_999


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals")
def test_ctrl_c_stops_a_stream(tmp_path: Path) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 2**40), 1 << 16)], [gs.Attr("v", "float64", filters="zstd:19")])
    array = gs.create(tmp_path / "a.gs", schema)
    values = np.random.default_rng(1).standard_normal(8_000_000)
    main = threading.get_ident()
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), array.writer({"x": (0, (1 << 36) - 1)}) as writer:
        timer.start()
        while time.monotonic() - began < 60:
            writer.append(values)
    assert time.monotonic() - began < 30
    assert array.refresh() == 1
    assert files(tmp_path / "a.gs") == 0
