"""Copies of a store share its ids and those of its files: each is read, mended and written where it lies."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs

LINE = gs.Schema([gs.Dim("x", (0, 49_999), 10_000)], [gs.Attr("v", "int64", filters="none")])
VALUES = np.random.default_rng(7).integers(0, 2**62, 50_000)


def shared() -> gs.Context:
    return gs.Context("64MiB", 2, durability="close")


def written(uri: Path) -> gs.Array:
    a = gs.create(uri, LINE, context=shared())
    a.write(VALUES)
    return a


def damage(uri: Path) -> None:
    """Other bytes where the cells of the files lie."""
    for file in (uri / "_data").iterdir():
        data = bytearray(file.read_bytes())
        data[1_000 : len(data) // 2] = bytes(len(data) // 2 - 1_000)
        file.write_bytes(data)


def read(uri: Path, context: gs.Context) -> bool:
    """Whether the store reads; what it reads is right."""
    a = gs.open(uri, context=context)
    try:
        np.testing.assert_array_equal(a[:], VALUES)
    except gs.CorruptionError:
        return False
    return True


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_damaged_original_spoils_no_copy(tmp_path: Path, by_hand: bool) -> None:
    original, copy, context = tmp_path / "a.gs", tmp_path / "b.gs", shared()
    written(original)
    if by_hand:
        shutil.copytree(original, copy)
    else:
        gs.copy(original, copy, history=True)
    damage(original)
    for _ in range(2):
        assert not read(original, context)
        assert read(copy, context)
    copy.rename(tmp_path / "c.gs")
    assert read(tmp_path / "c.gs", context)


@pytest.mark.parametrize("by_hand", [True, False])
def test_what_is_restored_in_its_place_is_read(tmp_path: Path, by_hand: bool) -> None:
    live, backup, context = tmp_path / "live.gs", tmp_path / "backup.gs", shared()
    written(live)
    gs.copy(live, backup, history=True)
    damage(live)
    assert not read(live, context)
    if by_hand:
        shutil.rmtree(live)
        shutil.copytree(backup, live)
    else:
        gs.delete(live, context=context)
        gs.copy(backup, live, history=True)
    assert read(live, context)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a manifest."""
    uri = tmp_path_factory.mktemp("packed") / "a.gs"
    a = written(uri)
    for n in range(66):
        a.meta["n"] = n
    return uri


@pytest.mark.parametrize("loss", ["gone", "cut"])
@pytest.mark.parametrize("folder", ["_data", "_manifest"])
@pytest.mark.parametrize("is_newer", [True, False])
def test_what_a_copy_has_lost_comes_again(packed: Path, tmp_path: Path, loss: str, folder: str, is_newer: bool) -> None:
    source, copy = tmp_path / "a.gs", tmp_path / "b.gs"
    shutil.copytree(packed, source)
    gs.copy(source, copy, history=True)
    if is_newer:
        gs.open(source, "r+", context=shared()).write(VALUES[:10], {"x": (0, 9)})
    for file in (copy / folder).iterdir():
        if loss == "gone":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:-7])
    copied = gs.copy(source, copy, history=True)
    assert copied.stats["versions_copied"] == int(is_newer) and copied.stats["bytes_copied"] > 0
    assert read(copy, shared()) and gs.verify(copy).ok
    assert gs.copy(source, copy, history=True).stats["bytes_copied"] == 0


@pytest.mark.parametrize("loss", ["gone", "cut"])
def test_a_sound_copy_of_a_damaged_source_stays(packed: Path, tmp_path: Path, loss: str) -> None:
    source, copy = tmp_path / "a.gs", tmp_path / "b.gs"
    shutil.copytree(packed, source)
    gs.copy(source, copy, history=True)
    for file in (source / "_data").iterdir():
        file.unlink() if loss == "gone" else file.write_bytes(file.read_bytes()[:-7])
    assert gs.copy(source, copy, history=True).stats["bytes_copied"] == 0
    assert read(copy, shared()) and gs.verify(copy).ok and not gs.verify(source).ok
