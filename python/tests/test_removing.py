"""Arrays and groups taken away, one at a time: the store and its earlier versions stay."""

import json
from pathlib import Path

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import AccessError, InputError, NotFoundError


def filled(uri: str | Path) -> gs.Group:
    for path in ("/a/x", "/a/y", "/b"):
        gs.array(uri, np.arange(5), path=path)
    return gs.group(uri)


def test_what_goes_and_what_stays(stores: Stores) -> None:
    uri = stores("s")
    top = filled(uri)
    before = gs.open(uri, path="/b").version
    assert top.group("a").remove("x", message="x goes") == before + 1
    del gs.group(uri)["b"]
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
    with pytest.raises(InputError, match="past"):
        gs.open(uri, version=version).remove("b")
    with pytest.raises(AccessError):
        gs.open(uri).remove("b")
    assert gs.open(uri).version == version and gs.exists(uri)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = str(tmp_path / "s.gs")
    filled(uri)
    version = gs.open(uri).version
    assert run(["delete", uri, "--path", "/a", "--all", "--yes", "--json", "-m", "why"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": "/a", "version": version + 1}
    assert [entry.path for entry in gs.ls(uri)] == ["/b"], "only what lies at --path is removed"
    assert gs.open(uri, path="/b").history()[-1].version <= version + 1
    assert run(["delete", uri, "--path", "/a", "--all", "--yes"]) == 1
    assert run(["delete", uri, "--path", "/b", "--all", "--yes"]) == 0
    assert "earlier versions keep it" in capsys.readouterr().out
    assert gs.ls(uri) == [] and gs.open(uri, path="/b", version=version)[0] == 0
    assert run(["delete", uri, "--all", "--yes", "-m", "why"]) == 2
    assert run(["delete", uri, "--all", "--yes"]) == 0
    assert not gs.exists(uri)


def test_progress_of_a_new_array(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    gs.array(tmp_path / "s.gs", np.arange(100_000), progress=lambda done, total: told.append((done, total)))
    assert told and told[-1] == (100_000, 100_000)
