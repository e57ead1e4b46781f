"""Stores of the older format: read as they are, written after an upgrade, the same before and after."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import NotFoundError, UnsupportedError

VECTORS = Path(__file__).parents[3] / "vectors" / "gs0"


def older(tmp_path: Path, case: str = "groups") -> str:
    """A store of the older format."""
    copied = shutil.copytree(VECTORS / case / "store", tmp_path / case)
    # Empty folders are in no repository.
    for folder in ("_data", "_manifest"):
        (copied / folder).mkdir(exist_ok=True)
    return str(copied)


def seen(uri: str, version: int | None = None) -> dict[str, Any]:
    """What lies in the store at a version: kinds, metadata, cells."""
    found: dict[str, Any] = {}
    root = gs.open(uri, version=version)
    assert isinstance(root, gs.Group)
    for path, kind in [("/", "group"), *((entry.path, entry.kind) for entry in root.walk())]:
        node = gs.open(uri, path=path, version=version)
        cells = None
        if isinstance(node, gs.Array):
            cells = {name: column.tolist() for name, column in node.read().to_numpy().items()}
        found[path] = (kind, dict(node.meta), cells)
    return found


def test_an_older_store_is_read_upgraded_and_written(tmp_path: Path) -> None:
    uri = older(tmp_path)
    before = {version: seen(uri, version) for version in range(1, 5)}
    ships = gs.open(uri, path="/city/ships", mode="r+")
    assert isinstance(ships, gs.Array)
    for write in (
        lambda: ships.write_cells({"p": [1]}, {"v": np.array([5], np.int16)}),
        lambda: gs.group(uri, mode="r+")["city"].meta.update(new=1),
        lambda: gs.tag(uri, "old", 2),
    ):
        with pytest.raises(UnsupportedError, match="gridstone upgrade"):
            write()
    files = sorted((tmp_path / "groups").rglob("*"))
    assert gs.upgrade(uri) == 5
    assert set(files) <= set((tmp_path / "groups").rglob("*"))
    assert gs.upgrade(uri) == 5
    assert {version: seen(uri, version) for version in range(1, 5)} == before
    assert seen(uri) == before[4]
    ships.refresh()
    ships.write_cells({"p": [1]}, {"v": np.array([5], np.int16)})
    assert ships.version == 6
    gs.tag(uri, "old", 2)
    assert seen(uri, 4) == before[4]
    assert not gs.verify(uri).damage


def test_the_command_upgrades(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = older(tmp_path, "many_commits")
    newest = gs.open(uri).version
    assert run(["upgrade", uri, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"uri": uri, "version": newest + 1}
    assert run(["upgrade", uri]) == 0
    assert f"version {newest + 1} " in capsys.readouterr().out
    assert run(["upgrade", str(tmp_path / "nothing")]) == 4
    with pytest.raises(NotFoundError):
        gs.upgrade(tmp_path / "nothing")


def test_an_upgrade_of_a_new_store_writes_nothing(tmp_path: Path) -> None:
    uri = str(tmp_path / "new")
    gs.create(uri, gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")]))
    files = sorted((tmp_path / "new").rglob("*"))
    assert gs.upgrade(uri) == 1
    assert sorted((tmp_path / "new").rglob("*")) == files
