"""Arrays and groups taken away, one at a time: the store and its earlier versions stay."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import AccessError, InputError, NotFoundError


def filled(uri: str) -> gs.Group:
    for path in ("/a/x", "/a/y", "/b"):
        gs.array(uri, np.arange(5), path=path)
    return gs.group(uri, mode="r+")


def test_what_goes_and_what_stays(stores: Stores) -> None:
    uri = stores("s")
    top = filled(uri)
    before = gs.open(uri, path="/b").version
    assert top.group("a").remove("x", message="x goes") == before + 1
    del gs.group(uri, mode="r+")["b"]
    gs.delete(uri, path="/a/y", message="y too")
    assert [entry.path for entry in gs.ls(uri)] == ["/a"] and gs.ls(uri, path="/a") == []
    for path in ("/a/x", "/a/y", "/b"):
        with pytest.raises(NotFoundError):
            gs.open(uri, path=path)
        assert gs.open(uri, path=path, version=before)[...].tolist() == [0, 1, 2, 3, 4]
    gs.delete(uri, path="/a")
    assert gs.ls(uri) == []
    gs.array(uri, np.arange(3), path="/b")
    assert len(gs.open(uri, path="/b")[...]) == 3, "the place is free again"


def test_a_group_goes_with_all_below_it(stores: Stores) -> None:
    uri = stores("s")
    del filled(uri)["a"]
    assert [entry.path for entry in gs.ls(uri)] == ["/b"]


def test_what_cannot_be_removed(stores: Stores) -> None:
    uri = stores("s")
    top = filled(uri)
    version = gs.open(uri).version
    with pytest.raises(NotFoundError):
        del top["c"]
    with pytest.raises(NotFoundError):
        gs.delete(uri, path="/a/z")
    for root in ("/", ""):
        with pytest.raises(InputError, match="root"):
            gs.delete(uri, path=root)
    with pytest.raises(InputError, match="message"):
        gs.delete(uri, message="why")
    with pytest.raises(AccessError, match="past"):
        gs.open(uri, version=version).remove("b")
    with pytest.raises(AccessError):
        gs.open(uri).remove("b")
    assert gs.open(uri).version == version and gs.exists(uri)


def test_from_the_command_line(stores: Stores, capsys: pytest.CaptureFixture[str]) -> None:
    uri = stores("s")
    filled(uri)
    version = gs.open(uri).version
    assert run(["delete", uri, "--path", "/a", "--all", "--yes", "--json", "-m", "why"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": "/a", "version": version + 1}
    assert [entry.path for entry in gs.ls(uri)] == ["/b"], "only what lies at --path is removed"
    assert gs.open(uri, path="/b").history()[-1].version <= version + 1
    assert run(["delete", uri, "--path", "/a", "--all", "--yes"]) == 4
    assert run(["delete", uri, "--path", "/b", "--all", "--yes"]) == 0
    assert "earlier versions keep it" in capsys.readouterr().out
    assert gs.ls(uri) == [] and gs.open(uri, path="/b", version=version)[0] == 0
    assert run(["delete", uri, "--all", "--yes", "-m", "why"]) == 2
    assert run(["delete", uri, "--all", "--yes"]) == 0
    assert not gs.exists(uri)


def test_progress_of_a_new_array(store_uri: str) -> None:
    told: list[tuple[int, int]] = []
    gs.array(store_uri, np.arange(100_000), progress=lambda done, total: told.append((done, total)))
    assert told and told[-1] == (100_000, 100_000)


def _is_told(work: Callable[[], object]) -> None:
    """What is committed to a store that is gone is refused: it would lie among what others make there."""
    # Its place in the log may be taken by what its key does not open: what is found there is told.
    unreadable = (gs.errors.CorruptionError, gs.errors.CommitUnknownError, gs.errors.AccessError)
    with pytest.raises((gs.errors.NotFoundError, gs.errors.StorageError, gs.errors.ConflictError, *unreadable)):
        work()


@pytest.mark.parametrize("keys", [(None, None), ("5a" * 32, None), (None, "5a" * 32), ("5a" * 32, "c7" * 32)])
@pytest.mark.parametrize("again", [0, 1, 2, 5])
def test_a_store_that_is_gone_takes_no_commits(store_uri: str, again: int, keys: tuple[str | None, str | None]) -> None:
    """Deleted after it was opened; `again`: versions of another one in its place, 0: none; sealed with these keys."""
    before, after = (None if key is None else gs.Context(key=key) for key in keys)
    a = gs.array(store_uri, np.arange(10), context=before)
    gs.delete(store_uri)
    if again:
        schema = gs.Schema([gs.Dim("x", (0, 2))], [gs.Attr("value", "int64")])
        made = gs.create(store_uri, schema, context=after)
        for version in range(again - 1):
            made[:] = [version] * 3
        made.meta["kept"] = again
    _is_told(lambda: a.write(np.full(10, 7)))
    _is_told(lambda: a.write_cells(([1],), {"value": [5]}))
    _is_told(lambda: a.meta.update(broken=1))
    _is_told(lambda: a.delete([slice(1, 3)]))
    assert gs.exists(store_uri, context=after) == bool(again)
    if again:
        found = gs.open(store_uri, mode="r+", context=after)
        assert found[...].tolist() == [max(again - 2, 0)] * 3 and dict(found.meta) == {"kept": again}
        found[:] = [4, 5, 6]
        assert gs.open(store_uri, context=after)[...].tolist() == [4, 5, 6]
        assert gs.verify(store_uri, context=after).ok
    else:
        gs.array(store_uri, np.arange(3)).close()
        assert gs.open(store_uri)[...].tolist() == [0, 1, 2] and gs.verify(store_uri).ok
