"""A store that may be read but not written: tried as a user without rights, even if the superuser runs the tests."""

import os
import shutil
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="users and rights as POSIX has them")

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may enter (pytest's own are private)."""
    made = Path(tempfile.mkdtemp(prefix="gridstone-"))
    made.chmod(0o755)
    yield made
    for path in made.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(made)


def as_nobody(work: Callable[[], None]) -> None:
    """Runs `work` in a fork, as a user without rights if this one is the superuser; fails if it raises."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def forbid_writing(store: Path) -> None:
    for path in [store, *store.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def contents(store: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(store.rglob("*")) if p.is_file()}


def test_a_store_that_may_not_be_written_is_read_and_refuses_writes(folder: Path) -> None:
    store, values = folder / "a.gs", np.arange(12, dtype=np.int32).reshape(3, 4)
    gs.array(store, values).close()
    forbid_writing(store)
    before = contents(store)

    def work() -> None:
        with gs.open(store) as array:
            assert np.array_equal(array[:], values)
        with gs.open(store, mode="r+") as array:
            with pytest.raises(gs.errors.AccessError, match=r"a\.gs.*ermission") as caught:
                array[0, 0] = 7
            assert isinstance(caught.value, PermissionError)
            assert np.array_equal(array[:], values)
        with pytest.raises(gs.errors.AccessError):
            gs.delete(store)
        with gs.open(store) as array:
            assert np.array_equal(array[:], values)

    as_nobody(work)
    assert contents(store) == before


def test_a_large_write_is_refused_too(folder: Path) -> None:
    """Larger than a record's body, so it is the data file that cannot be made."""
    store, values = folder / "a.gs", np.zeros((400, 400), dtype=np.int64)
    gs.array(store, values, filters="none").close()
    forbid_writing(store)
    before = contents(store)

    def work() -> None:
        with gs.open(store, mode="r+") as array, pytest.raises(gs.errors.AccessError):
            array[:] = values + 1

    as_nobody(work)
    assert contents(store) == before


def test_a_store_is_not_made_where_nothing_may_be_written(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o555)

    def work() -> None:
        with pytest.raises(gs.errors.AccessError, match=r"ermission"):
            gs.array(closed / "a.gs", np.zeros(3))
        assert not gs.exists(closed / "a.gs")

    as_nobody(work)
    assert not any(closed.iterdir())


def test_a_store_that_may_not_be_read_is_an_access_error(folder: Path) -> None:
    store = folder / "a.gs"
    gs.array(store, np.zeros(3)).close()
    store.chmod(0o000)

    def work() -> None:
        with pytest.raises(gs.errors.AccessError, match=r"a\.gs.*ermission"):
            gs.open(store)

    as_nobody(work)
