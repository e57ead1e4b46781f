"""The job of who keeps a store alive: weeks of writes, a backup every night with its own retention, then a disaster.

A model remembers what the store held each night. After each disaster the store is restored to a night, and compared.
"""

import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import gridstone as gs

QUICK = gs.Context("64MiB", 2, durability="close")
DAY, KEPT_NIGHTS = 86_400, 5
SEA = gs.Schema(
    [gs.Dim("y", (0, 199), 50), gs.Dim("x", (0, 199), 50)],
    [gs.Attr("depth", "float32"), gs.Attr("seen", "int32")],
)
SHIPS = gs.Schema(
    [gs.Dim("x", (0, 9_999), 1_000)], [gs.Attr("id", "int64"), gs.Attr("name", "string")], sparse=True, capacity=200
)


def held(uri: Any, version: int | None = None, context: gs.Context = QUICK) -> dict[str, Any]:
    """All that a store shows at a version, in plain values."""
    root = gs.open(uri, version=version, context=context)
    assert isinstance(root, gs.Group)
    found: dict[str, Any] = {"meta": dict(root.meta)}
    for entry in root.walk():
        if entry.kind == "array":
            a = root[entry.path.lstrip("/")]
            assert isinstance(a, gs.Array)
            values = {name: column.tolist() for name, column in a.read().to_numpy().items()}
            found[entry.path] = (a.schema_names, dict(a.meta), values)
    return found


class Keeper:
    """A store, its backup, and what the store held at the end of each night."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random, self.folder = Random(seed), folder
        self.live, self.backup = folder / "live.gs", folder / "backup-0.gs"
        self.nights: list[tuple[int, dict[str, Any]]] = []
        self.cells: dict[int, tuple[int, str]] = {}
        gs.group(self.live, mode="a", context=QUICK)
        gs.create(self.live, SEA, path="/sea", context=QUICK)
        gs.create(self.live, SHIPS, path="/ships", context=QUICK)

    def opened(self, path: str) -> gs.Array:
        found = gs.open(self.live, path=path, mode="r+", context=QUICK)
        assert isinstance(found, gs.Array)
        return found

    def day(self, number: int) -> None:
        """Writes, deletes, merges, metadata, other schemas, in a random order."""
        draw = np.random.default_rng(self.random.randrange(2**32))
        work = [self.paint, self.sail, self.sink, self.note, self.sail, self.paint, self.together]
        self.random.shuffle(work)
        for one in work:
            one(draw, number)
        if number % 3 == 0:
            depths = draw.random((200, 200), np.float32)
            self.opened("/sea").write({"depth": depths, "seen": draw.integers(0, 2**31, (200, 200))})
        if number % 4 == 3:
            self.opened("/ships").consolidate("all")
        if number == 6:
            self.opened("/sea").alter(add=[gs.Attr("salt", "float32", fill=35.0)])
        if number == 9:
            gs.create(self.live, SHIPS, path="/more/ships", context=QUICK)

    def paint(self, draw: np.random.Generator, number: int) -> None:
        y, x = (int(low) for low in draw.integers(0, 150, 2))
        box = {"y": (y, y + 49), "x": (x, x + 49)}
        self.opened("/sea").write({"depth": np.float32(number), "seen": draw.integers(0, 99, (50, 50))}, box)

    def sail(self, draw: np.random.Generator, number: int) -> None:
        x = np.unique(draw.integers(0, 10_000, 150))
        ids = draw.integers(0, 2**40, len(x))
        names = [f"ship {number}-{place}" for place in x]
        self.opened("/ships").write_cells({"x": x}, {"id": ids, "name": names}, message=f"day {number}")
        self.cells.update(zip(x.tolist(), zip(ids.tolist(), names, strict=True), strict=True))

    def sink(self, draw: np.random.Generator, number: int) -> None:
        low = int(draw.integers(0, 9_000))
        self.opened("/ships").delete({"x": (low, low + 300)})
        for place in range(low, low + 301):
            self.cells.pop(place, None)

    def note(self, draw: np.random.Generator, number: int) -> None:
        gs.group(self.live, mode="r+", context=QUICK).meta["day"] = number
        self.opened("/sea").meta["painter"] = f"of day {number}"

    def together(self, draw: np.random.Generator, number: int) -> None:
        with gs.transaction(self.live, context=QUICK) as tx:
            tx["/ships"].write_cells({"x": [number]}, {"id": [number], "name": ["tug"]})
            tx["/sea"].meta["tug"] = number
        self.cells[number] = (number, "tug")

    def night(self, number: int) -> None:
        """Tag, copy, vacuum, as the guide has it; then a day passes for the backup."""
        if number % 7 == 6:
            gs.tag(self.live, f"week {number // 7}", context=QUICK)
        gs.tag(self.live, "backup", replace=True, context=QUICK)
        copied = gs.copy(self.live, self.backup, history=True, keep=f"{KEPT_NIGHTS}d", context=QUICK)
        assert copied.stats["versions_copied"] > 0
        self.opened("/ships").vacuum("0s", safety_age=0)
        state = held(self.live)
        places = state["/ships"][2]
        assert dict(zip(places["x"], zip(places["id"], places["name"], strict=True), strict=True)) == self.cells
        self.nights.append((copied.version, state))
        assert not gs.verify(self.backup, context=QUICK)["damage"]
        for where, _, names in os.walk(self.backup):
            for name in names:
                file = os.path.join(where, name)
                passed = os.stat(file).st_mtime - DAY
                os.utime(file, (passed, passed))

    def restore(self, night: int) -> None:
        """The store as it was at the end of a night, from the backup. Life goes on there, with a backup of its own."""
        version, state = self.nights[night]
        gs.copy(self.backup, self.live, history=True, version=version, context=QUICK)
        assert held(self.live) == state and not gs.verify(self.live, context=QUICK)["damage"]
        places = state["/ships"][2]
        self.cells = dict(zip(places["x"], zip(places["id"], places["name"], strict=True), strict=True))
        if night < len(self.nights) - 1:
            del self.nights[night + 1 :]
            self.backup = self.folder / f"backup-{version}.gs"


@pytest.mark.parametrize("seed", [1, 2])
def test_two_weeks_of_nights_and_their_disasters(tmp_path: Path, seed: int) -> None:
    keeper = Keeper(tmp_path, seed)
    for number in range(14):
        keeper.day(number)
        keeper.night(number)
    # Retention: the nights of the last days are there, and the tagged week; what is older is gone.
    kept = keeper.nights[-KEPT_NIGHTS:]
    for version, state in kept:
        assert held(keeper.backup, version) == state
    assert gs.group(keeper.backup, context=QUICK).tags.keys() == {"week 0", "week 1", "backup"}
    week, state = keeper.nights[6]
    assert held(keeper.backup, week) == state, "the tag of the first week holds it"
    with pytest.raises(gs.SnapshotExpiredError):
        gs.open(keeper.backup, version=keeper.nights[5][0], context=QUICK)
    sizes = gs.du(keeper.backup, context=QUICK)
    assert sizes.older.bytes > 0 and sizes.orphans.objects == 0

    # The disk dies: back to the last night, and on with the same backup.
    shutil.rmtree(keeper.live)
    keeper.restore(13)
    keeper.day(14)
    keeper.night(14)
    assert held(keeper.backup) == keeper.nights[-1][1]

    # Someone deletes the wrong thing, and it is noticed two nights later: back to before.
    gs.delete(keeper.live, path="/ships", context=QUICK)
    gs.delete(keeper.live, context=QUICK)
    keeper.restore(12)
    spoilt = keeper.folder / "backup-0.gs"
    with pytest.raises(gs.ConflictError):
        gs.copy(keeper.live, spoilt, history=True, context=QUICK)
    keeper.day(13)
    keeper.night(13)
    assert held(keeper.backup) == keeper.nights[-1][1] and held(keeper.live) == keeper.nights[-1][1]


def test_a_damaged_object_is_taken_from_the_backup(tmp_path: Path) -> None:
    """Objects have the same names and bytes in a backup: one that is damaged is there."""
    keeper = Keeper(tmp_path, 3)
    for number in range(5):
        keeper.day(number)
        keeper.night(number)
    version, state = keeper.nights[-1]
    live, backup = ({file.name: file for file in (root / "_data").iterdir()} for root in (keeper.live, keeper.backup))
    shared = max(live.keys() & backup.keys(), key=lambda name: live[name].stat().st_size)
    sound = live[shared].read_bytes()
    live[shared].write_bytes(sound[:500] + bytes(1_000) + sound[1_500:])
    damage = gs.verify(keeper.live, context=QUICK)["damage"]
    assert [found["object"] for found in damage] == [f"_data/{shared}"]
    assert backup[shared].read_bytes() == sound
    # The backup is not spoilt by the damage: it has the file, and sends it to nobody again.
    gs.copy(keeper.live, keeper.backup, history=True, context=QUICK)
    # A context keeps files of a store open by their ids, which a copy has too: another one opens those of the backup.
    other = gs.Context(durability="close")
    assert held(keeper.backup, version, other) == state and not gs.verify(keeper.backup, context=other)["damage"]
    shutil.copy(backup[shared], live[shared])
    assert not gs.verify(keeper.live, context=QUICK)["damage"] and held(keeper.live) == state
