"""Promise: what cp and rsync make of a live store is sound if the log comes first, and never shows what never was."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gridstone as gs

QUICK = gs.Context("64MiB", 2, durability="close")
CELLS = gs.Schema([gs.Dim("x", (0, 99_999), 10_000)], [gs.Attr("v", "int64")], sparse=True)
FOLDERS = ("_log", "_manifest", "_data")


class Live:
    """A store that is written to while its files are copied, and what each version holds."""

    def __init__(self, uri: Path) -> None:
        self.uri, self.copy, self.number = uri, uri.with_suffix(".copy"), 0
        self.array = gs.create(uri, CELLS, context=QUICK)
        self.versions: dict[int, dict[int, int]] = {1: {}}
        self.write(6)
        self.write(1, large=True)
        self.fold()
        self.write(6)

    def write(self, count: int, large: bool = False) -> None:
        """Small commits, which lie in records until a fold packs them, or a large one, which is a file."""
        for _ in range(count):
            self.number += 1
            size = 30_000 if large else 20
            random = np.random.default_rng(self.number)
            x = np.unique(random.integers(0, 100_000, size))
            v = random.integers(0, 2**62, len(x))
            version = self.array.write_cells({"x": x}, {"v": v})
            cells = dict(self.versions[max(self.versions)])
            cells.update(zip(x.tolist(), v.tolist(), strict=True))
            self.versions[version] = cells

    def fold(self) -> None:
        """Packs what lies in records, and the list of fragments."""
        self.array.consolidate("manifest")
        self.versions[self.array.refresh()] = self.versions[max(self.versions)]

    def change(self) -> None:
        """All that may be copied in the wrong order."""
        self.write(2)
        self.write(1, large=True)
        self.fold()
        self.write(1)

    def merge(self) -> None:
        """Merges all."""
        self.array.consolidate("all")
        self.versions[self.array.refresh()] = self.versions[max(self.versions)]

    def vacuum(self) -> None:
        self.array.vacuum(versions=1, safety_age=0)
        self.versions[self.array.refresh()] = self.versions[max(self.versions)]

    def take(self, folder: str) -> None:
        shutil.copytree(self.uri / folder, self.copy / folder, dirs_exist_ok=True)

    def at(self, version: int) -> dict[int, int]:
        """What a version holds; those of merges and vacuums hold what the one before did."""
        return self.versions[max(v for v in self.versions if v <= version)]

    def shown(self) -> int | None:
        """The version that the copy shows if it is sound; None if it says that it is not. Wrong cells are a failure."""
        try:
            a = gs.open(self.copy, context=gs.Context("64MiB", 2, cache=0))
            found = a.read()
        except (gs.CorruptionError, gs.NotFoundError, gs.SnapshotExpiredError):
            return None
        assert dict(zip(found["x"].tolist(), found["v"].tolist(), strict=True)) == self.at(a.version), "wrong cells"
        return a.version if not gs.verify(self.copy, context=QUICK)["damage"] else None


MEANWHILE: dict[str, Callable[[Live], None]] = {
    "small commits": lambda live: live.write(3),
    "a fold and a large commit": Live.change,
    "a merge": Live.merge,
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_the_log_first_is_sound_and_no_order_shows_what_never_was(tmp_path: Path, what: str) -> None:
    unsound = 0
    for number, order in enumerate(itertools.permutations(FOLDERS)):
        live = Live(tmp_path / f"{number}.gs")
        (live.copy / "_lease").mkdir(parents=True)
        newest = 0
        for folder in order:
            if folder == "_log":
                newest = live.array.refresh()
            live.take(folder)
            MEANWHILE[what](live)
        shown = live.shown()
        if order[0] == "_log":
            assert shown == newest, f"{order}: {shown}"
        unsound += shown is None
    assert unsound or what == "small commits", "an unlucky order was tried"


@pytest.mark.parametrize("order", list(itertools.permutations(FOLDERS)), ids="".join)
def test_a_vacuum_meanwhile_is_found(tmp_path: Path, order: tuple[str, ...]) -> None:
    live = Live(tmp_path / "a.gs")
    live.copy.mkdir()
    for folder in order:
        live.take(folder)
        live.change()
        live.merge()
        live.vacuum()
    live.shown()


def test_a_gap_in_the_listing_of_the_log_is_found_and_cut(tmp_path: Path) -> None:
    live = Live(tmp_path / "a.gs")
    for missing in range(live.array.version - 3, live.array.version):
        shutil.rmtree(live.copy, ignore_errors=True)
        for folder in FOLDERS:
            live.take(folder)
        (live.copy / "_log" / f"{missing:020}").unlink()
        assert live.shown() is None
        done = gs.repair(live.copy, dry_run=False, cut=True, context=QUICK)
        assert not done.remaining and live.shown() == missing - 1


def test_an_unlucky_copy_is_cut_at_its_last_sound_version(tmp_path: Path) -> None:
    live = Live(tmp_path / "a.gs")
    live.copy.mkdir()
    live.take("_data")
    live.take("_manifest")
    before = live.array.version
    live.write(5)  # small
    live.write(1, large=True)  # a file that the copy has not
    live.take("_log")
    assert live.shown() is None
    gs.repair(live.copy, dry_run=False, cut=True, context=QUICK)
    shown = live.shown()
    assert shown is not None and shown >= before


def test_a_whole_copy_of_a_store_at_rest_is_the_store(tmp_path: Path) -> None:
    live = Live(tmp_path / "a.gs")
    shutil.copytree(live.uri, live.copy)
    assert live.shown() == live.array.version
    again = gs.open(live.copy, mode="r+", context=QUICK)
    again.write_cells({"x": [3]}, {"v": [3]})
    assert gs.open(live.copy, context=QUICK).version == live.array.version + 1
