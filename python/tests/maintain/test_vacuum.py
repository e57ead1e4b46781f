"""Tags, vacuum and what they keep, from Python and the command line."""

import datetime as dt
import json
import os
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs
from gridstone import cli, errors
from gridstone.maintain import retention


def bytes_of(uri: str) -> int:
    return sum(path.stat().st_size for path in Path(uri).rglob("*") if path.is_file())


def filled(uri: str) -> str:
    """Versions 1 (empty) to 11: each sets every cell to its number."""
    array = gs.create(uri, gs.Schema([gs.Dim("x", (0, 19_999), 5_000)], [gs.Attr("v", "int64", filters="none")]))
    for version in range(2, 12):
        assert array.write(np.full(20_000, version)) == version
    return uri


@pytest.fixture
def store(store_uri: str) -> str:
    return filled(store_uri)


@pytest.fixture
def files(tmp_path: Path) -> str:
    """The same in a folder, for tests that look at what is in it."""
    return filled(str(tmp_path / "a.gs"))


def all_equal(array: gs.Array, value: int) -> bool:
    return bool((array[:] == value).all())


def test_a_vacuum_frees_space_and_keeps_what_it_should(store):
    array, old = gs.open(store, mode="r+"), gs.open(store, version=5)
    gs.tag(store, "seven", 7)
    planned = array.vacuum(versions=2, dry_run=True)
    assert planned.committed is None and planned.dry_run
    done = array.vacuum(versions=2)
    assert (done.oldest_before, done.oldest, done.versions) == (1, 7, 6)
    assert done.held_by == (retention.Holder("seven", 7),)
    # The five data files of versions 2 to 6 are still read by version 7 and later: nothing replaced them.
    assert (done.data, done.records) == (planned.data, retention.Tally(0, 0)), "records stay for an hour"
    done = array.vacuum(versions=2, safety_age="0s")
    assert (done.oldest_before, done.records.objects) == (7, 6)
    for version in range(7, 12):
        assert all_equal(gs.open(store, version=version), version)
    with pytest.raises(errors.SnapshotExpiredError, match="refresh"):
        gs.open(store, version=6)
    with pytest.raises(errors.SnapshotExpiredError):
        array.at(version=3)
    assert all_equal(array, 11) and all_equal(gs.open(store, version="seven"), 7)
    assert not old.history()


def test_what_a_vacuum_plans_it_leaves_and_what_it_does_frees_files(files):
    array, before = gs.open(files, mode="r+"), bytes_of(files)
    gs.tag(files, "seven", 7)
    tagged = bytes_of(files)
    array.vacuum(versions=2, dry_run=True)
    assert bytes_of(files) == tagged > before
    array.vacuum(versions=2)
    log = Path(files) / "_log"
    assert (log / f"{1:020}").exists(), "records stay for an hour"
    with_records = bytes_of(files)
    array.vacuum(versions=2, safety_age="0s")
    assert min(int(path.name) for path in log.iterdir() if path.name.isdigit()) == 7
    assert bytes_of(files) < with_records


def test_files_of_an_array_that_was_replaced_go(store):
    schema = gs.open(store).schema
    array = gs.create(store, schema, overwrite=True)
    array.write(np.full(20_000, 12))
    old = gs.open(store, version=10)
    report = array.vacuum("0s")
    assert report.data.objects == 10 and report.data.bytes > 10 * 160_000
    with pytest.raises(errors.SnapshotExpiredError):
        old[:]
    assert all_equal(array, 12) and all_equal(gs.open(store), 12)
    assert str(report).startswith("12 versions forgotten; 13 to 13 stay")
    again = array.vacuum("0s")
    assert (again.versions, again.objects, again.committed) == (0, 0, None)


def test_tags(store):
    array = gs.open(store, mode="r+")
    assert gs.tag(store, "first", 2) == 2 and gs.tag(store, "now") == 12
    array.refresh()
    assert array.tags == {"first": 2, "now": 12}
    assert [(v.version, v.tags) for v in array.history() if v.tags] == [(2, ("first",))]
    with pytest.raises(errors.ExistsError, match="replace=True"):
        gs.tag(store, "first", 3)
    assert gs.tag(store, "first", 3, replace=True) == 3
    assert all_equal(array.at(version="first"), 3)
    with pytest.raises(errors.NotFoundError, match="first"):
        gs.open(store, version="second")
    with pytest.raises(errors.NotFoundError):
        gs.tag(store, "later", 1_000)
    with pytest.raises(errors.InputError):
        gs.tag(store, "")
    with pytest.raises(errors.InputError):
        gs.open(store, version="first", mode="r+")
    assert gs.untag(store, "first") == 3
    with pytest.raises(errors.NotFoundError):
        gs.untag(store, "first")


def test_orphans_go_when_they_are_old(files):
    array = gs.open(files, mode="r+")
    orphan, half = (Path(files) / name for name in ("_data/" + "0" * 32 + ".frag", "_log/.tmp-1-2-3"))
    for path in (orphan, half):
        path.write_bytes(b"left behind")
    young = array.vacuum("1h")
    assert (young.young.objects, young.data.objects, young.temporary.objects) == (1, 0, 0)
    for path in (orphan, half):
        os.utime(path, (0, 0))
    old = array.vacuum("1h")
    assert (old.data.objects, old.temporary.objects) == (1, 1)
    assert not orphan.exists() and not half.exists()
    assert all_equal(gs.open(files), 11)


def test_what_is_asked_for_is_checked(store):
    array = gs.open(store, mode="r+")
    bad_calls = [{"keep": "1h", "versions": 1}, {"versions": 0}, {"versions": True}, {"keep": "soon"}, {"keep": -1}]
    for bad in [*bad_calls, {"safety_age": "never"}, {"keep": float("nan")}, {"keep": "P"}]:
        with pytest.raises(errors.InputError):
            array.vacuum(**bad)
    with pytest.raises(errors.AccessError, match=r"r\+"):
        gs.open(store).vacuum("0s")
    assert gs.open(store).vacuum("0s", dry_run=True).oldest == 11


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1.5h", 5400),
        (" 7 D ", 604_800),
        ("2w", 1_209_600),
        ("30min", 1800),
        ("250ms", 0.25),
        ("P1DT12H", 129_600),
        ("PT0.5S", 0.5),
        (dt.timedelta(minutes=2), 120),
        (np.timedelta64(3, "h"), 10_800),
        (60, 60),
        (0.5, 0.5),
    ],
)
def test_durations(text, seconds):
    assert retention.microseconds(text, "keep") == round(seconds * 1e6)


def test_a_group_vacuums_its_store(store_uri):
    uri = store_uri
    group = gs.group(uri, mode="a")
    schema = gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")])
    made = group.create("a", schema)
    for value in range(5):
        made.write(np.full(10, value))
    gs.tag(uri, "kept", 4)
    assert group.tags == {"kept": 4}
    report = group.vacuum(versions=1)
    assert report.oldest == 4 and all_equal(gs.open(uri, path="/a", version="kept"), 1)
    with pytest.raises(errors.AccessError):
        gs.open(uri).vacuum(versions=1)
    assert gs.open(uri).vacuum(versions=1, dry_run=True).oldest == 4


def run(capsys, *arguments: str) -> tuple[int, str]:
    code = cli.run(arguments)
    return code, capsys.readouterr().out


def test_the_command_line(store, capsys):
    assert run(capsys, "tag", store, "good", "--version", "9") == (0, "'good' names version 9\n")
    assert run(capsys, "tag", store, "good")[0] == 5
    code, out = run(capsys, "tag", store, "--json")
    assert (code, json.loads(out)) == (0, {"good": 9})
    assert "good" in run(capsys, "history", store)[1]
    assert json.loads(run(capsys, "history", store, "--json")[1])[8]["tags"] == ["good"]
    code, out = run(capsys, "vacuum", store, "--versions", "1", "--dry-run")
    assert code == 0 and "would be forgotten" in out and "'good'" in out
    code, out = run(capsys, "vacuum", store, "--versions", "1", "--json")
    found = json.loads(out)
    assert (code, found["oldest"], found["versions"], found["held_by"]) == (0, 9, 8, [{"tag": "good", "version": 9}])
    assert run(capsys, "info", store, "--version", "good")[0] == 0
    assert run(capsys, "info", store, "--version", "3")[0] == 4
    assert run(capsys, "tag", store, "good", "--delete")[0] == 0
    assert run(capsys, "tag", store, "--replace")[0] == 2
    assert run(capsys, "vacuum", store, "--keep", "1h", "--versions", "2")[0] == 2
    assert run(capsys, "vacuum", store, "--versions", "0")[0] == 2


def test_a_store_that_only_overwrites_shrinks(files):
    """Versions 2 to 11 write every cell: what the last one hides goes without a consolidation."""
    array = gs.open(files, mode="r+")
    planned = array.vacuum(versions=1, dry_run=True)
    assert (planned.hidden, planned.data.objects) == (9, 9)
    assert "9 fragments that newer ones hide would be taken out" in str(planned)
    done = array.vacuum(versions=1)
    assert (done.hidden, done.data, done.oldest) == (9, planned.data, 12)
    assert len(list(Path(files, "_data").iterdir())) == 1 == len(array.fragments)
    assert all_equal(array, 11) and all_equal(gs.open(files), 11)
    assert array.vacuum(versions=1).hidden == 0


def test_ages_are_those_of_the_records_on_the_disk(files):
    """Whatever their writers' clocks showed: all of these were committed within a second, by them."""
    array = gs.open(files, mode="r+")
    now = dt.datetime.now().timestamp()
    for version in range(1, 12):
        record = Path(files, "_log", f"{version:020}")
        os.utime(record, (now, now - (11 - version) * 86_400))
    assert array.vacuum("36h", dry_run=True).oldest == 9
    record.touch()
    os.utime(Path(files, "_log", f"{5:020}"))  # a copy, or a repair, makes it young: more is kept
    assert array.vacuum("36h", dry_run=True).oldest == 4
