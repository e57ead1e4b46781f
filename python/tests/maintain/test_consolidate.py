"""Merging fragments from Python and from the command line."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Stores

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
def test_it_changes_nothing_that_is_read(stores: Stores, sparse: bool) -> None:
    array = made(stores("a"), sparse=sparse)
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


def test_fragments_by_id_and_bad_requests(stores: Stores) -> None:
    array = made(stores("a"), 4)
    ids = array.fragments["id"].to_pylist()
    assert array.consolidate(fragments=ids[1:3]).fragments_after == 3
    with pytest.raises(InputError, match="cannot be merged"):
        array.consolidate(fragments=[ids[0], ids[3]])
    for wrong in ("", "1", ids[0].upper() + "x"):
        with pytest.raises(InputError, match=r"^fragments: an id has 32"):
            array.consolidate(fragments=[wrong])
    with pytest.raises(InputError, match="unknown strategy"):
        array.consolidate("best")
    with pytest.raises(InputError, match="target"):
        array.consolidate(target="much")
    with pytest.raises(GridstoneError):
        gs.open(stores("a")).consolidate()


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
    assert run(["verify", uri, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["damage"]


def dense(path: Path, **settings: object) -> gs.Array:
    context = gs.Context(durability="close", **settings)  # type: ignore[arg-type]
    dims = [gs.Dim("t", (0, 99), 1), gs.Dim("x", (0, 49), 25)]
    array = gs.create(path, gs.Schema(dims, [gs.Attr("v", "int64")]), context=context)
    for step in range(20):
        array[step] = np.arange(50) + step
    return array


def test_dense_fragments_and_what_it_costs(stores: Stores) -> None:
    array = dense(stores("a"))
    before, version = array[:20], array.version
    planned = array.consolidate("all", dry_run=True)
    assert (planned.fragments_before, planned.fragments_after, planned.merges[0].kind) == (20, 1, "dense")
    assert planned.merges[0].bytes_expected > 0
    assert planned.merges[0].memory > 0
    assert "bytes of memory" in str(planned)
    done = array.consolidate("all")
    assert (done.fragments_after, done.tiles_copied, done.blocks_decoded) == (1, 40, 0)
    assert "40 tiles copied" in str(done)
    assert np.array_equal(array[:20], before)
    assert np.array_equal(array.at(version=version)[:20], before)
    array[3:5, 10:12] = 7
    array[30] = 1
    assert array.consolidate(box={"t": (3, 4)}).fragments_after == 2
    assert array.consolidate(box={"t": (3, 400)}, dry_run=True).fragments_before > 1
    with pytest.raises(gs.errors.InputError, match="outside the domain"):
        array.consolidate(box={"t": (300, 400)})
    version = array.version
    assert array.consolidate("manifest").merges == ()
    assert array.version == version + 1


def test_in_the_background(stores: Stores) -> None:
    array = dense(stores("a"), threads=1)
    before, version = array[:20], array.version
    running = array.consolidate("all", background=True)
    assert running.wait(60).fragments_after == 1
    assert running.done
    assert running.result.background_failure is None
    assert "done" in repr(running)
    assert array.version == version
    array.refresh()
    assert len(array.fragments) == 1
    assert np.array_equal(array[:20], before)
    running.cancel()
    with pytest.raises(GridstoneError):
        gs.open(stores("a")).consolidate(background=True)


def test_a_policy_of_the_context(stores: Stores) -> None:
    array = dense(stores("a"), auto_consolidate={"fragments": 8})
    while (running := array.native.upkeep()) is not None:
        running.wait(1000)
    array.refresh()
    assert len(array.fragments) < 20
    assert np.array_equal(array[19], np.arange(50) + 19)
    context = gs.Context(auto_consolidate=True)
    assert pickle.loads(pickle.dumps(context)) == context
    assert "auto_consolidate" in repr(context)
    for wrong in ({"fragments": 1}, {"often": 3}, 7, {"target": "much"}):
        with pytest.raises(InputError):
            gs.Context(auto_consolidate=wrong)  # type: ignore[arg-type]


_LEAVING = """
import os, sys
import numpy as np
import gridstone as gs
array = gs.open(sys.argv[1], mode="r+")
running = array.consolidate("all", background=True)
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            running.wait(30)
        except gs.errors.InputError:
            code = 0
        array.refresh()
        array[50] = np.zeros(50, dtype="int64")
        os._exit(code if running.done else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("left")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_and_an_end_do_not_wait_for_it(tmp_path: Path) -> None:
    dense(tmp_path / "a.gs").close()
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVING, str(tmp_path / "a.gs")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "left\n"), ended.stderr
    array = gs.open(tmp_path / "a.gs")
    assert np.array_equal(array[19], np.arange(50) + 19)
    assert np.array_equal(array[50], np.zeros(50))


KINDS: list[tuple[str, Any]] = [
    ("bool", True),
    ("int8", -3),
    ("uint64", 2**63 + 5),
    ("float16", 1.5),
    ("float32", 2.5),
    ("float64", -2.25),
    ("complex64", 1 + 2j),
    ("complex128", 3 - 4j),
    ("datetime64[us]", np.datetime64("2026-11-21T01:02:03", "us")),
    ("timedelta64[s]", np.timedelta64(77, "s")),
    ("string", "häfen"),
    ("bytes", b"\x00\xff"),
    ("bytes[3]", b"abc"),
    ("uint8[3]", np.array([1, 2, 3], "uint8")),
    ("list[int32]", np.array([4, 5], "int32")),
]


@pytest.mark.parametrize(("dtype", "value"), KINDS, ids=[name for name, _ in KINDS])
def test_deleted_cells_of_every_type_stay_deleted(stores: Stores, dtype: str, value: Any) -> None:
    schema = gs.Schema([gs.Dim("x", (0, 19), 5)], [gs.Attr("v", dtype), gs.Attr("w", "int32", fill=-1)])
    arrays = [gs.create(stores(name), schema) for name in ("merged", "plain")]

    def filled(count: int) -> np.ndarray[Any, Any]:
        column = np.empty(count, object)
        column[:] = [value] * count
        return column

    for array in arrays:
        array.write({"v": filled(16), "w": np.arange(16, dtype="int32")}, box={"x": (0, 15)})
        array.delete(coords={"x": [3, 7, 12]})
        array.write({"v": filled(4), "w": np.arange(50, 54, dtype="int32")}, box={"x": (6, 9)})
        array.delete(coords={"x": [0]})
    merged, plain = arrays
    report = merged.consolidate("all")
    assert report.fragments_after == 2
    assert [f["kind"] for f in merged.fragments.to_pylist()] == ["dense", "tombstones"]
    expected, found = plain.read().to_arrow(), merged.read().to_arrow()
    assert found.equals(expected)
    assert found["w"].to_pylist()[:8] == [-1, 1, 2, -1, 4, 5, 50, 51]
    version = merged.version
    assert merged.consolidate("all").merges == ()
    assert merged.version == version


@pytest.mark.parametrize("strategy", ["all", "tiered", "updates"])
def test_what_one_commit_deletes_and_writes_again_stays(store_uri: str, strategy: str) -> None:
    """A box, cells deleted of it, and cells written where they were: all of one commit, merged afterwards."""
    a = gs.create(store_uri, gs.Schema([gs.Dim("x", (0, 15), 4)], [gs.Attr("v", "int64", fill=-1)]))
    with gs.transaction(store_uri) as tx:
        tx["/"][0:12] = np.arange(12)
        tx["/"].delete(coords={"x": np.arange(2, 14)})
        tx["/"].write_cells({"x": [3, 7, 13]}, [30, 70, 130])
    expected = [0, 1, -1, 30, -1, -1, -1, 70, -1, -1, -1, -1, -1, 130, -1, -1]
    a.refresh()
    assert a[...].tolist() == expected
    a.consolidate(strategy, target=1 << 20)
    assert a[...].tolist() == expected
    a.write_cells({"x": [4]}, [40])
    a.consolidate("all")
    expected[4] = 40
    assert gs.open(store_uri)[...].tolist() == expected


def test_what_newer_writes_hide_goes_unread(stores: Stores) -> None:
    array = gs.create(
        stores("a"), gs.Schema([gs.Dim("x", (0, 999), 100)], [gs.Attr("v", "int64"), gs.Attr("w", "int8")])
    )
    for number in range(6):
        array[:] = {"v": np.full(1_000, number), "w": np.full(1_000, number, "int8")}
    array.delete(slice(0, 500))
    array["v"][:] = 7
    array["w"][:] = 8
    version = array.version
    planned = array.consolidate(dry_run=True)
    assert next((merge.kind, merge.fragments, merge.bytes_read) for merge in planned.merges) == ("hidden", 7, 0)
    done = array.consolidate()
    assert done.merges[0].kind == "hidden" and done.fragments_before == 9
    assert (array["v"][:] == 7).all() and (array["w"][:] == 8).all()
    assert len(array.at(version=version).fragments) == 9
