"""Promise: `gs.du` says what a store takes, and its parts add up to the files that are there."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gridstone as gs
from gridstone.cli import cli

QUICK = gs.Context("64MiB", 2, durability="close")
CELLS = gs.Schema([gs.Dim("x", (0, 9_999), 1_000)], [gs.Attr("v", "int64")], sparse=True)


def on_disk(folder: Path) -> tuple[int, int]:
    files = [Path(where, name) for where, _, names in os.walk(folder) for name in names]
    return len(files), sum(file.stat().st_size for file in files)


def agrees(uri: Path, **options: Any) -> gs.Usage:
    found = gs.du(uri, context=QUICK, **options)
    assert (found.total.objects, found.total.bytes) == on_disk(uri), found
    assert sum(part.bytes for part in found.parts.values()) == found.total.bytes
    assert found.live.bytes >= sum(array.bytes - array.log_bytes for array in found.arrays)
    return found


def large(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 2**62, 100_000)


def test_the_parts_add_up_at_every_step_of_a_life(tmp_path: Path) -> None:
    uri = tmp_path / "s.gs"
    root = gs.group(uri, mode="a", context=QUICK)
    assert agrees(uri).arrays == ()
    image = root.create("image", gs.Schema([gs.Dim("i", (0, 99_999), 10_000)], [gs.Attr("v", "int64")]))
    image.write(large(1))
    first = agrees(uri)
    [one] = first.arrays
    assert (one.path, one.fragments, one.cells) == ("/image", 1, 100_000)
    assert first.live.objects == 1 and first.live.bytes == one.bytes > 700_000 and first.older.bytes == 0
    image.write(large(2))
    second = agrees(uri)
    assert second.arrays[0].fragments == 2, "the older one is hidden, and there until a vacuum"
    cells = root.create("cells", CELLS)
    for step in range(80):
        cells.write_cells({"x": np.arange(step, 10_000, 500)}, {"v": np.arange(step, 10_000, 500)})
    third = agrees(uri)
    assert [array.path for array in third.arrays] == ["/cells", "/image"]
    assert third.arrays[0].cells == 80 * 20 and third.manifest.objects > 0 and third.arrays[0].log_bytes > 0
    cells.consolidate("all")
    fourth = agrees(uri)
    assert fourth.arrays[0].fragments == 1 and fourth.older.bytes > 0
    del root["image"]
    fifth = agrees(uri)
    assert [array.path for array in fifth.arrays] == ["/cells"] and fifth.older.bytes > 1_400_000
    # What it says a vacuum would free is what a vacuum frees.
    now = agrees(uri, keep="0s")
    report = root.vacuum("0s")
    assert now.reclaimable.data == report.data and report.data.bytes > 1_400_000
    after = agrees(uri)
    assert after.total.bytes < now.total.bytes - report.data.bytes + 20_000, "a root, a record and the floor are new"
    assert (after.older.bytes, after.oldest) == (0, report.oldest)
    assert gs.du(uri, keep="0s", context=QUICK).reclaimable.data.objects == 0


def test_what_nothing_names_is_an_orphan(tmp_path: Path) -> None:
    uri = tmp_path / "s.gs"
    a = gs.array(uri, large(1), context=QUICK)
    receipt = a.write(large(2), commit=False)
    found = agrees(uri)
    assert found.orphans.objects == 1 and found.orphans.bytes > 700_000 and found.older.bytes == 0
    assert found.reclaimable.data.objects == 0 and found.reclaimable.young.objects == 1
    assert gs.du(uri, safety_age=0, context=QUICK).reclaimable.data.bytes == found.orphans.bytes
    gs.commit(uri, [receipt], context=QUICK)
    assert agrees(uri).orphans.objects == 0
    (uri / "_data" / ".tmp-1234").write_bytes(b"half of it")
    assert agrees(uri).other.bytes == 10


def test_files_outside_are_told_apart(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", large(1))
    uri = tmp_path / "s.gs"
    context = gs.Context("64MiB", 2, durability="close", sources=[str(tmp_path)])
    gs.attach(uri, tmp_path / "a.npy", path="/out", context=context)
    gs.create(uri, CELLS, path="/in", context=context)
    found = gs.du(uri, context=context)
    size = (tmp_path / "a.npy").stat().st_size
    assert [(a.path, a.attached_files, a.attached_bytes) for a in found.arrays] == [
        ("/in", 0, 0),
        ("/out/array", 1, size),
    ]
    assert found.attached_bytes == size and (found.total.objects, found.total.bytes) == on_disk(uri)
    assert found.total.bytes < size and "outside of the store" in str(found)


def test_labels_count_for_their_array(tmp_path: Path) -> None:
    uri, random = tmp_path / "s.gs", np.random.default_rng(1)
    labels = np.sort(random.choice(10**12, 50_000, replace=False))
    a = gs.array(uri, np.arange(50_000), dims=["t"], coords={"t": labels}, context=QUICK)
    found = agrees(uri)
    [one] = found.arrays
    assert one.path == "/" and one.cells == 50_000 and one.bytes > 100_000
    assert one.fragments == len(a.fragments)


def test_sealed_stores_and_memory(tmp_path: Path) -> None:
    key = "09f911029d74e35bd84156c5635688c009f911029d74e35bd84156c5635688c0"
    sealed = gs.Context("64MiB", 2, durability="close", key=key)
    gs.array(tmp_path / "s.gs", large(1), context=sealed)
    found = gs.du(tmp_path / "s.gs", context=sealed)
    assert (found.total.objects, found.total.bytes) == on_disk(tmp_path / "s.gs")
    gs.array("mem://usage", large(1))
    assert gs.du("mem://usage").live.bytes > 700_000
    gs.delete("mem://usage")
    with pytest.raises(gs.NotFoundError):
        gs.du("mem://usage")


def test_no_data_is_read(tmp_path: Path) -> None:
    """Data files that are replaced by nothing of their length change no answer."""
    uri = tmp_path / "s.gs"
    a = gs.array(uri, large(1), context=QUICK)
    a.write(large(2))
    before = gs.du(uri, context=QUICK)
    for file in (uri / "_data").iterdir():
        size = file.stat().st_size
        file.write_bytes(b"")
        os.truncate(file, size)
    assert gs.du(uri, context=QUICK) == before


def test_the_command_tells_sizes_for_people_and_bytes_in_json(tmp_path: Path) -> None:
    import json

    uri = tmp_path / "s.gs"
    gs.array(uri, large(1), context=QUICK)
    run = CliRunner().invoke(cli, ["du", str(uri)])
    assert run.exit_code == 0 and "KiB" in run.output and "newest version" in run.output, run.output
    run = CliRunner().invoke(cli, ["du", str(uri), "--json"])
    found = json.loads(run.output)
    assert found["total"]["bytes"] == on_disk(uri)[1] and found["arrays"][0]["cells"] == 100_000
    assert found["reclaimable"]["bytes"] == 0
    run = CliRunner().invoke(cli, ["du", str(uri), "--keep", "1h", "--versions", "2"])
    assert run.exit_code != 0


def test_an_age_and_a_number_are_refused_in_words_of_both_calls() -> None:
    a = gs.create("mem://usage-both", gs.Schema([gs.Dim("x", (0, 9), 5)], [gs.Attr("v", "int8")]), overwrite=True)
    for call in (lambda: gs.du(a.uri, keep="1d", versions=3), lambda: a.vacuum("1d", versions=3)):
        with pytest.raises(gs.InputError, match=r"^keep= says what stays by age, and versions= by number: give one"):
            call()
