"""Promise: the history says what each version did in the user's words, with cells and bytes."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from click.testing import CliRunner

import gridstone as gs
from gridstone.cli import cli

QUICK = gs.Context("64MiB", 2, durability="close")
CELLS = gs.Schema([gs.Dim("x", (0, 9_999), 1_000)], [gs.Attr("v", "int64")], sparse=True)


def lived(uri: Path) -> gs.Array:
    a = gs.create(uri, CELLS, path="/a", context=QUICK)
    a.write_cells({"x": np.arange(100)}, {"v": np.arange(100)}, message="first")
    a.write_cells({"x": np.arange(50, 150)}, {"v": np.arange(100)})
    a.delete(coords={"x": np.arange(10)})
    a.delete({"x": (20, 29)})
    a.meta["unit"] = "m"
    a.alter(add=[gs.Attr("w", "float32")])
    gs.tag(uri, "good", a.version, context=QUICK)
    a.refresh()
    a.consolidate("all")
    return a


def test_each_kind_has_its_word_and_its_counts(tmp_path: Path) -> None:
    a = lived(tmp_path / "a.gs")
    found = gs.group(tmp_path / "a.gs", context=QUICK).history()
    assert [v.kind for v in found] == [
        "create",
        "write",
        "write",
        "delete",
        "delete",
        "metadata",
        "alter",
        "tag",
        "merge",
    ]
    assert [v.cells for v in found[:5]] == [0, 100, 100, 0, 0]
    assert [v.deleted_cells for v in found[:5]] == [0, 0, 0, 10, 0]
    assert [v.fragments for v in found[:5]] == [0, 1, 1, 1, 1] and found[1].message == "first"
    assert found[6].tags == ("good",) and found[7].operations[0]["tag"] == "good"
    fragments: pa.Table = a.at(version=5).fragments
    by_version = dict(zip(fragments["version"].to_pylist(), fragments["bytes"].to_pylist(), strict=True))
    assert [v.bytes for v in found[1:5]] == [by_version[v] for v in (2, 3, 4, 5)]
    merged = found[8]
    assert (merged.cells, merged.removed) == (130, 4) and merged.removed_bytes == sum(by_version.values())
    assert merged.bytes == a.fragments["bytes"].to_pylist()[0]
    # The sum over the history is what is there.
    assert sum(v.bytes - (v.removed_bytes or 0) for v in found) == sum(a.fragments["bytes"].to_pylist())
    assert [v.version for v in a.history()] == [1, 2, 3, 4, 5, 6, 7, 9], "the tag is about the store"


def test_bytes_of_what_a_vacuum_forgot_the_adding_of_are_known(tmp_path: Path) -> None:
    a = gs.create(tmp_path / "a.gs", CELLS, path="/a", context=QUICK)
    for step in range(20):
        a.write_cells({"x": np.arange(step, 10_000, 100)}, {"v": np.arange(100)})
    sizes = a.fragments["bytes"].to_pylist()
    a.vacuum(versions=3, safety_age=0)
    a.consolidate("all")
    found = a.history()
    assert found[0].version > 10 and found[-1].kind == "merge"
    assert (found[-1].removed, found[-1].removed_bytes) == (20, sum(sizes))
    assert [v.cells for v in gs.group(tmp_path / "a.gs", context=QUICK).history() if v.kind == "vacuum"] == [0]


def test_a_transaction_and_a_grown_write_have_all_their_words(tmp_path: Path) -> None:
    uri = tmp_path / "a.gs"
    gs.create(uri, CELLS, path="/a", context=QUICK)
    with gs.transaction(uri, message="both", context=QUICK) as tx:
        tx["/a"].delete(coords={"x": [5]})
        tx["/a"].write_cells({"x": [7]}, {"v": [7]})
        tx["/a"].meta["k"] = 1
        tx.create("/b", CELLS)
    last = gs.group(uri, context=QUICK).history()[-1]
    assert set(last.kind.split(", ")) == {"create", "delete", "write", "metadata"}
    assert (last.cells, last.deleted_cells, last.message) == (1, 1, "both")
    assert repr(last).endswith(f"{last.kind}>")
    gs.move(uri, "/b", "/c", context=QUICK)
    gs.untag(uri, _tagged(uri), context=QUICK)
    assert [v.kind for v in gs.group(uri, context=QUICK).history()[-3:]] == ["move", "tag", "untag"]


def _tagged(uri: Path) -> str:
    gs.tag(uri, "name", context=QUICK)
    return "name"


def test_the_command_lists_them(tmp_path: Path) -> None:
    lived(tmp_path / "a.gs")
    run = CliRunner().invoke(cli, ["history", str(tmp_path / "a.gs")])
    assert run.exit_code == 0 and all(word in run.output for word in ("create", "write", "merge", "first", "good"))
    assert "+1 -4" in run.output and "add_fragments" not in run.output
    found = json.loads(CliRunner().invoke(cli, ["history", str(tmp_path / "a.gs"), "--json"]).output)
    assert [v["kind"] for v in found][-1] == "merge" and found[1]["cells"] == 100 and found[1]["bytes"] > 0
    assert found[-1]["removed"] == 4 and found[-1]["removed_bytes"] > 0
