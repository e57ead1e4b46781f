"""Whole stores are checked, and what can be made again is made again."""

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from places import Stores

import gridstone as gs
from gridstone.cli import run
from gridstone.errors import CorruptionError, NotFoundError


def store(path: Path | str, context: gs.Context | None = None) -> gs.Array:
    """70 versions, so that there is a root."""
    used = context or gs.Context(durability="close")
    schema = gs.Schema([gs.Dim("x", (0, 999), 100)], [gs.Attr("v", "int64", filters="none")])
    a = gs.create(path, schema, context=used)
    for step in range(69):
        a.write(np.arange(10) + step, {"x": (step * 10, step * 10 + 9)})
    return a


def values(path: Path, version: int | None = None) -> list[int]:
    fresh = gs.Context(durability="close", cache=0)
    found = gs.open(path, version=version, context=fresh)
    assert isinstance(found, gs.Array)
    return [int(v) for v in found[:]]


def test_a_sound_store(stores: Stores) -> None:
    a = store(stores("a"))
    report = a.verify(store=True)
    assert report["damage"] == []
    assert (report["oldest"], report["newest"], report["records"]) == (1, 70, 70)
    assert report == gs.verify(stores("a"))
    done = gs.repair(stores("a"), dry_run=False)
    assert (done.actions, done.kept, done.committed) == ([], [], None)
    with pytest.raises(NotFoundError):
        gs.verify(stores("nothing"))


def test_a_group_checks_its_store(tmp_path: Path) -> None:
    group = gs.group(tmp_path / "g.gs", mode="a")
    group.create("a", gs.Schema([gs.Dim("x", (0, 9))], [gs.Attr("v", "int64")])).write(np.arange(10))
    assert group.verify()["damage"] == []
    (tmp_path / "g.gs" / "_log" / f"{2:020}").unlink()
    assert [d["object"] for d in group.verify()["damage"]] == [f"_log/{2:020}"]


def test_lost_manifest_objects_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.gs"
    store(path).close()
    before = {version: values(path, version) for version in (1, 30, 66, 70)}
    objects = sorted((path / "_manifest").iterdir())
    assert len(objects) == 2
    for lost in objects:
        whole = lost.read_bytes()
        lost.unlink()
        with pytest.raises(CorruptionError):
            values(path)
        damage = gs.verify(path)["damage"]
        assert [d["object"] for d in damage] == [f"_manifest/{lost.name}"]
        assert damage[0]["versions"] == [[65, 70]]
        planned = gs.repair(path)
        assert planned.dry_run and not lost.exists()
        done = gs.repair(path, dry_run=False)
        assert done.actions == planned.actions and not done.remaining
        assert lost.read_bytes() == whole
    assert {version: values(path, version) for version in before} == before


def test_what_is_lost_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.gs"
    store(path).close()
    record = path / "_log" / f"{20:020}"
    damaged = bytearray(record.read_bytes())
    damaged[30] ^= 1
    record.write_bytes(damaged)
    done = gs.repair(path, dry_run=False)
    assert done.actions == [] and done.remaining == done.damage
    low, high = done.remaining[0]["versions"][0]
    assert (low, high) == (20, 64) and "versions 20 to 64" in str(done)
    assert record.read_bytes() == damaged
    assert len(values(path)) == 1000


def test_cells_of_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.gs"
    a = store(path)
    record = path / "_log" / f"{70:020}"
    damaged = bytearray(record.read_bytes())
    damaged[-200] ^= 1
    record.write_bytes(damaged)
    (damage,) = gs.verify(path)["damage"]
    assert [(c["array"], c["domain"], c["cells"]) for c in damage["cells"]] == [("/", [["680", "689"]], 10)]
    (one,) = a.verify()["damage"]
    assert one["domain"] == [["680", "689"]] and one["cells"] == 10


def stored_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path / "_data").iterdir())


@pytest.mark.parametrize("threads", [1, 3])
def test_checks_tell_how_far_they_are(tmp_path: Path, threads: int) -> None:
    context = gs.Context(threads=threads, durability="close")
    path = tmp_path / "a.gs"
    group = gs.group(path, context=context, mode="a")
    for name in "ab":
        a = group.create(name, gs.Schema([gs.Dim("x", (0, 99_999), 500)], [gs.Attr("v", "int64", filters="none")]))
        a.write(np.arange(100_000))
        a.write(np.arange(7), {"x": (0, 6)})
    told: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        told.append((done, total))

    checks = [
        (lambda: a.verify(progress=report), 1),
        (lambda: group.verify(progress=report), 2),
        (lambda: gs.verify(path, context=context, progress=report), 2),
        (lambda: gs.repair(path, context=context, progress=report), 2),
    ]
    for check, arrays in checks:
        told.clear()
        check()
        done = [d for d, _ in told]
        (total,) = {t for _, t in told}
        assert done == sorted(done) and done[-1] == total
        # The small write lies in the log.
        assert stored_bytes(path) * arrays // 2 <= total < stored_bytes(path) * arrays // 2 + 10_000
        # 200 tiles for each array: it is told on the way, not at the end alone.
        assert any(0 < d < total for d in done)

    def stops(done: int, total: int) -> None:
        raise InterruptedError(f"{done}")

    for stopped in (
        lambda: a.verify(progress=stops),
        lambda: gs.verify(path, progress=stops),
        lambda: gs.repair(path, dry_run=False, progress=stops),
    ):
        with pytest.raises(InterruptedError):
            stopped()
    assert gs.verify(path).ok


@pytest.mark.parametrize("sparse", [False, True])
def test_several_threads_find_what_one_finds(tmp_path: Path, sparse: bool) -> None:
    """Every damaged page once, in the order of the file."""
    path = tmp_path / "a.gs"
    attrs = [gs.Attr("v", "int64", filters="none"), gs.Attr("w", "int32", filters="none")]
    schema = gs.Schema([gs.Dim("x", (0, 39_999), None if sparse else 1000)], attrs, sparse=sparse)
    a = gs.create(path, schema, context=gs.Context(durability="close"))
    values = {"v": np.arange(40_000), "w": np.arange(40_000, dtype=np.int32)}
    if sparse:
        a.write_cells({"x": np.arange(40_000)}, values)
    else:
        a.write(values)
    (file,) = (path / "_data").iterdir()
    sound = file.read_bytes()
    random = np.random.default_rng(2016)
    for _ in range(4):
        content = bytearray(sound)
        for place in random.integers(4096, len(content) // 2, 12):
            content[place] ^= 0x40
        file.write_bytes(content)
        one, three = (gs.open(path, context=gs.Context(threads=threads, cache=0)).verify() for threads in (1, 3))
        assert one == three and 1 <= len(one.damage) <= 12
        tiles = [cells.tile for damage in one.damage for cells in damage.affected]
        assert tiles == sorted(tiles, key=lambda tile: -1 if tile is None else tile)
    file.write_bytes(sound)
    assert gs.verify(path).ok


def damaged_file(folder: Path) -> gs.Array:
    """An array of four tiles, a byte of the second of which is wrong."""
    a = gs.array(folder / "d.gs", np.arange(40_000), tile=10_000, filters="none")
    file = next((folder / "d.gs" / "_data").iterdir())
    content = bytearray(file.read_bytes())
    content[100_000] ^= 1
    file.write_bytes(content)
    return a


def test_a_report_of_an_array(tmp_path: Path) -> None:
    a = damaged_file(tmp_path)
    report = a.verify()
    assert isinstance(report, gs.Report) and not report.ok and report.fragments == 1 and report.tiles == 4
    (one,) = report.damage
    (cells,) = one.affected
    assert (one.object, one.versions, cells.array, cells.tile, cells.attribute) == (None, (), None, 1, "value")
    assert cells.domain == (("10000", "19999"),) and cells.cells == 10_000
    assert one.message and report.oldest is None and report.orphans is None
    # As the mapping that it was.
    assert list(report) == ["fragments", "tiles", "blocks", "bytes", "damage"] == list(report.keys())
    (told,) = report["damage"]
    assert list(told) == ["fragment", "tile", "attribute", "domain", "cells", "message"]
    assert (told["fragment"], told["tile"], told["domain"]) == (cells.fragment, 1, [["10000", "19999"]])
    assert dict(report) == report.as_dict() == json.loads(report.to_json()) == report and "oldest" not in report
    with pytest.raises(KeyError):
        report["oldest"]
    assert pickle.loads(pickle.dumps(report)) == report == a.verify()
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.blocks = 1  # type: ignore[misc]
    lines = str(report).splitlines()
    assert lines[0].startswith("1 fragments, ") and lines[1] == "1 damaged"
    assert cells.fragment in lines[2] and "10000..19999" in lines[2] and one.message in lines[2]
    shown = report._repr_html_()
    assert "1 damaged" in shown and cells.fragment in shown and "10000..19999" in shown
    assert gs.array("mem://report", np.arange(3), overwrite=True).verify().ok


def test_a_report_tells_what_was_not_checked(tmp_path: Path) -> None:
    gs.array(tmp_path / "a.gs", np.arange(3))
    report = gs.verify(tmp_path / "a.gs")
    assert report.unchecked == () and report["unchecked"] == [] and str(report).endswith("all is sound")
    told = dataclasses.replace(report, unchecked=("a fragment of array / on base 3 was not checked",))
    assert told.ok and told["unchecked"] == list(told.unchecked)
    assert str(told).splitlines()[1:] == ["all that was checked is sound", *told.unchecked]
    assert json.loads(told.to_json()) == told.as_dict() and told.unchecked[0] in told._repr_html_()


def test_a_report_of_a_store(tmp_path: Path) -> None:
    damaged_file(tmp_path)
    report = gs.verify(tmp_path / "d.gs")
    names = [
        "oldest",
        "newest",
        "records",
        "manifest",
        "files",
        "blocks",
        "bytes",
        "leases",
        "orphans",
        "damage",
        "unchecked",
    ]
    assert list(report) == names and not report.ok
    assert (report.oldest, report.newest, report.records, report.files, report.fragments) == (1, 2, 2, 1, None)
    assert report.orphans is not None and report.orphans.objects == 0
    (one,) = report.damage
    assert one.object is not None and one.object.startswith("_data/") and one.versions == ((2, 2),)
    assert [(c.array, c.tile, c.cells) for c in one.affected] == [("/", 1, 10_000)]
    (told,) = report["damage"]
    assert list(told) == ["object", "versions", "cells", "message"] and told["versions"] == [[2, 2]]
    assert told == gs.repair(tmp_path / "d.gs").damage[0]
    assert json.loads(report.to_json()) == report.as_dict() == report
    lines = str(report).splitlines()
    assert lines[0].startswith("versions 1 to 2: 2 records, 0 roots and pages, 1 data files, ")
    assert lines[1] == "1 damaged" and one.object in lines[2] and "version 2" in lines[2]
    assert one.object in report._repr_html_() and "<script" not in report._repr_html_()
    # What is lost whole has no cells of its own.
    (tmp_path / "d.gs" / "_log" / f"{1:020}").unlink()
    lost = gs.verify(tmp_path / "d.gs")
    assert any(damage.affected == () for damage in lost.damage) and str(lost) and lost._repr_html_()


def test_the_command_prints_what_it_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = damaged_file(tmp_path)
    for options in ([], ["--store"]):
        report = gs.verify(a.uri) if options else a.verify()
        assert run(["verify", a.uri, *options]) == 3
        out = capsys.readouterr().out
        assert out.splitlines()[0] == str(report).splitlines()[0] and "10000..19999" in out and "damaged" in out
        assert run(["verify", a.uri, *options, "--json"]) == 3
        assert json.loads(capsys.readouterr().out) == report.as_dict()
    assert run(["verify", gs.array(tmp_path / "s.gs", np.arange(3)).uri]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("1 fragments, 1 blocks, ")


def test_a_sealed_store(tmp_path: Path) -> None:
    path = tmp_path / "s.gs"
    context = gs.Context(durability="close", key=bytes(range(32)))
    store(path, context).close()
    for lost in sorted((path / "_manifest").iterdir()):
        damaged = bytearray(lost.read_bytes())
        for place in (3, 12, 20, 30, 40, len(damaged) // 2):
            damaged[place] ^= 1
            lost.write_bytes(damaged)
            found = gs.verify(path, context=context)["damage"]
            assert [d["object"] for d in found] == [f"_manifest/{lost.name}"]
            done = gs.repair(path, dry_run=False, context=context)
            assert not done.remaining and (path / done.kept[0]).read_bytes() == damaged
    a = gs.open(path, context=context)
    assert isinstance(a, gs.Array) and int(a[689]) == 77
    gs.delete(path, context=context)
    assert not path.exists()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.gs"
    store(path).close()
    assert run(["verify", str(path), "--store"]) == 0
    assert "versions 1 to 70: 70 records" in capsys.readouterr().out
    lost = min((path / "_manifest").iterdir())
    lost.write_bytes(b"garbage")
    assert run(["verify", str(path), "--store"]) == 3
    assert lost.name in capsys.readouterr().out
    assert run(["verify", str(path), "--store", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["damage"][0]["object"] == f"_manifest/{lost.name}"
    assert run(["repair", str(path)]) == 0
    assert "would be done" in capsys.readouterr().out and lost.read_bytes() == b"garbage"
    assert run(["repair", str(path), "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == [f"_damaged/manifest-{lost.name}-0"]
    assert run(["verify", str(path), "--store"]) == 0
    (path / "_log" / f"{3:020}").unlink()
    assert run(["repair", str(path), "--yes"]) == 3
    assert f"_log/{3:020}" in capsys.readouterr().out
