"""Promise: a copy with its history, copied to again, gets what is new; it stays readable whatever happens meanwhile.

Another history never overwrites it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gridstone as gs
from gridstone.cli import cli

QUICK = gs.Context("64MiB", 2, durability="close")
KEY = "09f911029d74e35bd84156c5635688c009f911029d74e35bd84156c5635688c0"
LINE = gs.Schema([gs.Dim("x", (0, 199_999), 20_000)], [gs.Attr("v", "int64")])


def store(uri: str, context: gs.Context = QUICK) -> gs.Array:
    return gs.create(uri, LINE, path="/line", context=context)


def step(a: gs.Array, number: int) -> None:
    """A large write, a small one, metadata; every third time a tag."""
    random = np.random.default_rng(number)
    low = int(random.integers(0, 100_000))
    a.write(random.integers(0, 2**62, 100_000), {"x": (low, low + 99_999)}, message=f"step {number}")
    a[number] = number
    a.meta["step"] = number
    if number % 3 == 0:
        gs.tag(a.uri, f"tag {number}", context=a.context)


def same(source: str, target: str, versions: Any, contexts: tuple[gs.Context, gs.Context] = (QUICK, QUICK)) -> None:
    for version in versions:
        a = gs.open(source, path="/line", version=version, context=contexts[0])
        b = gs.open(target, path="/line", version=version, context=contexts[1])
        np.testing.assert_array_equal(a[:], b[:], f"version {version}")
        assert dict(a.meta) == dict(b.meta) and a.timestamp == b.timestamp
    one, other = gs.group(source, context=contexts[0]), gs.group(target, context=contexts[1])
    assert one.tags == other.tags
    told = [[(v.version, v.message, v.commit_id) for v in g.history()] for g in (one, other)]
    shared = min(map(len, told))
    assert told[0][-shared:] == told[1][-shared:]


def files_of(uri: str) -> dict[str, int]:
    """Files with their inodes: what is written anew has another one."""
    return {
        os.path.relpath(os.path.join(where, name), uri): os.stat(os.path.join(where, name)).st_ino
        for where, _, names in os.walk(uri)
        for name in names
        if name != "latest"
    }


@pytest.mark.parametrize("kinds", ["folders", "memory", "sealed"])
def test_every_night_sends_what_is_new(tmp_path: Path, kinds: str) -> None:
    source = str(tmp_path / "a.gs")
    target = "mem://onward" if kinds == "memory" else str(tmp_path / "b.gs")
    sealed = gs.Context("64MiB", 2, durability="close", key=KEY) if kinds == "sealed" else QUICK
    a, done = store(source), 1
    for night in range(5):
        for number in range(3):
            step(a, 3 * night + number)
        a.refresh()
        before = {} if kinds == "memory" or not night else files_of(target)
        copied = gs.copy(source, target, history=True, context=QUICK, target_context=sealed)
        assert isinstance(copied, gs.Group) and copied.version == gs.group(source, context=QUICK).version
        assert copied.stats["versions_copied"] == copied.version - (done if night else 0)
        assert copied.stats["bytes_copied"] > 3 * 700_000 and copied.mode == "r+"
        if kinds != "memory":
            after = files_of(target)
            assert {name: after.get(name) for name in before} == before, "nothing that was there was written again"
            assert len(after) - len(before) == copied.stats["objects_copied"]
        done = copied.version
        again = gs.copy(source, target, history=True, context=QUICK, target_context=sealed)
        assert again.stats == {"versions_copied": 0, "objects_copied": 0, "bytes_copied": 0}
    same(source, target, range(2, done + 1, 3), (QUICK, sealed))
    assert not gs.verify(target, context=sealed)["damage"]
    if kinds == "memory":
        gs.delete(target)


def test_versions_that_the_source_forgets_stay_in_the_copy(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.gs"), str(tmp_path / "b.gs")
    a, seen = store(source), {}
    for night in range(4):
        step(a, 1 + night)
        a.refresh()
        seen[a.version] = a[:]
        gs.copy(source, target, history=True, context=QUICK)
        gs.tag(source, "backup", replace=True, context=QUICK)
        a.refresh()
        a.consolidate("all")
        a.vacuum(versions=1, safety_age=0)
    with pytest.raises(gs.SnapshotExpiredError):
        gs.open(source, path="/line", version=min(seen), context=QUICK)
    for version, values in seen.items():
        np.testing.assert_array_equal(gs.open(target, path="/line", version=version, context=QUICK)[:], values)
    report = gs.verify(target, context=QUICK)
    assert not report["damage"] and report["oldest"] == 1 and report["orphans"]["objects"] == 0
    assert gs.du(target, context=QUICK).older.bytes > 700_000


def test_a_gap_is_refused_and_the_copy_stays(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.gs"), str(tmp_path / "b.gs")
    a = store(source)
    step(a, 1)
    gs.copy(source, target, history=True, context=QUICK)
    for number in (2, 4):
        step(a, number)
        a.refresh()
        a.vacuum(versions=1, safety_age=0)
    before = files_of(target)
    with pytest.raises(gs.SnapshotExpiredError, match=r"ends at version 4.*tag"):
        gs.copy(source, target, history=True, context=QUICK)
    assert files_of(target) == before and not gs.verify(target, context=QUICK)["damage"]
    gs.copy(source, tmp_path / "c.gs", history=True, context=QUICK)


def test_retention_is_the_copy_s_own(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.gs"), str(tmp_path / "b.gs")
    a, ends = store(source), []
    for night in range(6):
        step(a, 1 + 3 * night)
        a.refresh()
        gs.copy(source, target, history=True, keep="2d", context=QUICK)
        ends.append(gs.group(target, context=QUICK).version)
        if night == 2:
            gs.tag(source, "month", ends[-1], context=QUICK)
        # The night passes: what is there is a day older.
        for file in Path(target, "_log").iterdir():
            passed = file.stat().st_mtime - 86_400
            os.utime(file, (passed, passed))
    oldest = gs.verify(target, context=QUICK)["oldest"]
    assert oldest == ends[2], "the tag holds the third night, and two nights are younger anyway"
    same(source, target, ends[2:])
    assert gs.verify(target, context=QUICK)["damage"] == []
    with pytest.raises(gs.SnapshotExpiredError):
        gs.open(target, path="/line", version=ends[1], context=QUICK)
    gs.untag(source, "month", context=QUICK)
    a.refresh()
    gs.copy(source, target, history=True, keep="2d", context=QUICK)
    found = gs.verify(target, context=QUICK)
    assert found["oldest"] == ends[4] or found["oldest"] == ends[3]
    assert gs.verify(source, context=QUICK)["oldest"] == 1, "the source keeps its own"
    with pytest.raises(gs.InputError, match="history=True"):
        gs.copy(source, tmp_path / "c.gs", keep="2d", context=QUICK)
    with pytest.raises(gs.InputError, match="keep"):
        gs.copy(source, target, history=True, keep="soon", context=QUICK)


def test_a_history_of_its_own_is_not_overwritten(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.gs"), str(tmp_path / "b.gs")
    a = store(source)
    step(a, 1)
    gs.copy(source, target, history=True, context=QUICK)
    b = gs.open(target, path="/line", mode="r+", context=QUICK)
    b[0] = 77
    before = files_of(target)
    with pytest.raises(gs.ConflictError, match=r"goes on to version 5, and .* ends at version 4"):
        gs.copy(source, target, history=True, context=QUICK)
    step(a, 2)
    with pytest.raises(gs.ConflictError, match="different commits"):
        gs.copy(source, target, history=True, context=QUICK)
    assert files_of(target) == before
    assert gs.open(target, path="/line", context=QUICK)[0] == 77
    other = str(tmp_path / "other.gs")
    store(other)
    with pytest.raises(gs.ExistsError, match="another store"):
        gs.copy(source, other, history=True, context=QUICK)
    with pytest.raises(gs.InputError, match="itself"):
        gs.copy(source, source, history=True, context=QUICK)


WORK = """
import sys
import gridstone as gs
context = gs.Context("64MiB", 2)
print("go", flush=True)
gs.copy(sys.argv[1], sys.argv[2], history=True, context=context)
"""


def test_a_killed_copy_is_the_store_at_one_of_its_versions(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.gs"), str(tmp_path / "b.gs")
    a = store(source)
    step(a, 1)
    gs.copy(source, target, history=True, context=QUICK)
    first, seen = a.refresh(), set()
    for number in range(2, 9):
        step(a, number)
    newest = gs.group(source, context=QUICK).version
    for attempt in range(4):
        child = subprocess.Popen([sys.executable, "-c", WORK, source, target], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None and child.stdout.readline() == "go\n"
        time.sleep(0.003 * 3**attempt)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        version = gs.group(target, context=QUICK).version
        assert first <= version <= newest
        seen.add(version)
        same(source, target, [first]) if version == newest else None
        np.testing.assert_array_equal(
            gs.open(target, path="/line", context=QUICK)[:],
            gs.open(source, path="/line", version=version, context=QUICK)[:],
        )
        assert not gs.verify(target, context=QUICK)["damage"]
    gs.copy(source, target, history=True, context=QUICK)
    same(source, target, range(first, newest + 1, 7))
    assert not gs.verify(target, context=QUICK)["damage"]


def test_attached_files_are_referred_to_by_the_copy_too(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(1000))
    np.save(tmp_path / "y.npy", np.arange(1000) * 2)
    context = gs.Context("64MiB", 2, durability="close", sources=[str(tmp_path)])
    source, target = tmp_path / "a.gs", tmp_path / "b.gs"
    gs.attach(source, tmp_path / "x.npy", path="/x", context=context)
    gs.copy(source, target, history=True, context=context)
    gs.attach(source, tmp_path / "y.npy", path="/y", context=context)
    copied = gs.copy(source, target, history=True, context=context)
    assert copied.stats["versions_copied"] >= 1
    np.testing.assert_array_equal(gs.open(target, path="/y/array", context=context)[:], np.arange(1000) * 2)
    np.testing.assert_array_equal(gs.open(target, path="/x/array", context=context)[:], np.arange(1000))


def test_the_command_says_what_was_sent(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.gs"), str(tmp_path / "b.gs")
    a = store(source)
    step(a, 1)
    command = ["copy", source, target, "--history"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    step(a, 2)
    run = CliRunner().invoke(cli, [*command, "--keep", "30d"])
    assert run.exit_code == 0 and "3 new versions" in run.output, run.output
    run = CliRunner().invoke(cli, [*command, "--json"])
    found = json.loads(run.output)
    assert (found["versions_copied"], found["bytes_copied"], found["version"]) == (0, 0, 7)
    assert CliRunner().invoke(cli, ["copy", source, target, "--keep", "1d"]).exit_code != 0


@pytest.mark.parametrize("pinned", [False, True])
def test_tags_of_a_writable_handle_are_those_of_now(tmp_path: Path, pinned: bool) -> None:
    uri = str(tmp_path / "a.gs")
    w = store(uri)
    r = w.at(version=1) if pinned else gs.open(uri, path="/line", context=QUICK)
    gs.tag(uri, "first", 1, context=QUICK)
    assert w.tags == {"first": 1} and w.version == 1, "the handle itself does not move"
    assert r.tags == {}, "a reader shows its version"
    gs.tag(uri, "first", 2, replace=True, context=QUICK)
    gs.tag(uri, "second", 1, context=QUICK)
    assert w.tags == {"first": 2, "second": 1} == gs.group(uri, context=QUICK).tags
    gs.untag(uri, "first", context=QUICK)
    assert w.tags == {"second": 1}
    with gs.transaction(uri, context=QUICK) as tx:
        inside = tx["/line"]
        gs.tag(uri, "third", 1, context=QUICK)
        assert inside.tags == {"second": 1}, "a transaction sees what it began with"
        assert w.tags == {"second": 1, "third": 1}


def test_a_copy_onto_itself_by_another_name_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "a.gs")
    a = store(uri)
    for number in range(4):
        a[number] = number
    (tmp_path / "link").symlink_to(tmp_path / "a.gs")
    for name in (uri, str(tmp_path / "link"), f"{uri}/../a.gs", f"file://{uri}"):
        with pytest.raises(gs.InputError, match="onto itself"):
            gs.copy(uri, name, history=True, keep="0s", context=QUICK)
    assert gs.open(uri, path="/line", version=1, context=QUICK)[0] == 0
