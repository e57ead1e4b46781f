"""Merging fragments from Python and from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import GridstoneError, InputError


def made(path: Path, commits: int = 20, *, sparse: bool = True) -> gs.Array:
    dims = [gs.Dim("x", (0, 999), 100)]
    array = gs.create(path, gs.Schema(dims, [gs.Attr("v", "int64")], sparse=sparse))
    for number in range(commits):
        array.write_cells({"x": np.array([number, 500 + number % 7])}, {"v": np.array([number, -number])})
    return array


@pytest.mark.parametrize("sparse", [True, False])
def test_it_changes_nothing_that_is_read(tmp_path: Path, sparse: bool) -> None:
    array = made(tmp_path / "a.gs", sparse=sparse)
    before, version = array.read().to_numpy(), array.version
    planned = array.consolidate(dry_run=True)
    assert (planned.fragments_before, planned.fragments_after, array.version) == (20, 1, version)
    assert planned.merges[0].fragments_written is None
    done = array.consolidate()
    assert (done.fragments_after, len(array.fragments), array.version) == (1, 1, version + 1)
    assert done.merges[0].fragments_written == 1
    after = array.read().to_numpy()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    old = array.at(version=version)
    assert len(old.fragments) == 20
    assert np.array_equal(old.read().to_numpy()["v"], before["v"])
    assert array.consolidate().merges == ()


def test_fragments_by_id_and_bad_requests(tmp_path: Path) -> None:
    array = made(tmp_path / "a.gs", 4)
    ids = array.fragments["id"].to_pylist()
    assert array.consolidate(fragments=ids[1:3]).fragments_after == 3
    with pytest.raises(InputError, match="cannot be merged"):
        array.consolidate(fragments=[ids[0], ids[3]])
    with pytest.raises(InputError, match="unknown strategy"):
        array.consolidate("best")
    with pytest.raises(InputError, match="target"):
        array.consolidate(target="much")
    with pytest.raises(GridstoneError):
        gs.open(tmp_path / "a.gs").consolidate()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a.gs").close()
    uri = str(tmp_path / "a.gs")
    assert run(["consolidate", uri, "--dry-run"]) == 0
    assert "20 fragments, 1 after 1 merges" in capsys.readouterr().out
    assert run(["consolidate", uri, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fragments_after"] == 1
    assert run(["verify", uri]) == 0
    # The merged fragment lives in the body of the newest record.
    record = max((tmp_path / "a.gs" / "_log").glob("0*"))
    damaged = bytearray(record.read_bytes())
    damaged[-200] ^= 1
    record.write_bytes(damaged)
    capsys.readouterr()
    assert run(["verify", uri, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["damage"]
