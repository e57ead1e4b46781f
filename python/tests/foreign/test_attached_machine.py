"""The life of an array over attached files, at random, beside NumPy: files are attached and appended, written over,
deleted from, merged in every way, forgotten by vacuums and looked back at; and the files stay as they were.

HYPOTHESIS_PROFILE=deep runs very many more cases.
"""

import copy
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import TestCase

import numpy as np
import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import gridstone as gs
from gridstone import errors

h5py = pytest.importorskip("h5py")

RANDOM = st.randoms(use_true_random=True)
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
FILES_MAX = 7
ATTRS = {"e": "<i4", "f": ">f8"}
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"chunks": True},
    {"chunks": True, "compression": "gzip", "shuffle": True},
    {"chunks": True, "fletcher32": True},
]


@dataclass
class State:
    """The cells of one version by attribute, nulls apart."""

    cells: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    nulls: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    fills: dict[str, Any] = field(default_factory=dict)
    """What an unwritten or deleted cell reads as; None: null."""
    origins: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """The number of the file that each cell is of; -1: of none, or of one that a merge may have copied it from."""
    homed: bool = False
    """Whether no cell of the version lies in a file."""

    def lying(self) -> set[str]:
        """The names of the files that hold cells for certain."""
        return {f"run_{number}.h5" for cells in self.origins.values() for number in np.unique(cells) if number >= 0}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return next(iter(self.cells.values())).shape

    def put(self, key: Any, columns: dict[str, Any]) -> None:
        """Writes cells."""
        for name, values in columns.items():
            self.cells[name][key] = values
            self.nulls[name][key] = False
            self.origins[name][key] = -1

    def delete(self, key: Any) -> None:
        """Deletes cells: they read as never written."""
        for name, fill in self.fills.items():
            self.cells[name][key] = 0 if fill is None else fill
            self.nulls[name][key] = fill is None
            self.origins[name][key] = -1

    def add(self, name: str, dtype: Any, fill: Any) -> None:
        """Adds an attribute, that no cell has yet."""
        self.cells[name] = np.full(self.shape, 0 if fill is None else fill, dtype)
        self.nulls[name] = np.full(self.shape, fill is None)
        self.origins[name] = np.full(self.shape, -1)
        self.fills[name] = fill

    def append(self, more: dict[str, Any], number: int, axis: int) -> None:
        """The cells of a file behind the others; those of attributes that were added later have none there."""
        shape = next(iter(more.values())).shape
        for name in [name for name in self.cells if name not in more]:
            fill, dtype = self.fills[name], self.cells[name].dtype
            cells = np.full(shape, 0 if fill is None else fill, dtype)
            self.cells[name] = np.concatenate([self.cells[name], cells], axis)
            self.nulls[name] = np.concatenate([self.nulls[name], np.full(shape, fill is None)], axis)
            self.origins[name] = np.concatenate([self.origins[name], np.full(shape, -1)], axis)
        for name, cells in more.items():
            self.cells[name] = np.concatenate([self.cells[name], cells], axis)
            self.nulls[name] = np.concatenate([self.nulls[name], np.zeros(cells.shape, bool)], axis)
            self.origins[name] = np.concatenate([self.origins[name], np.full(cells.shape, number)], axis)
        self.homed = False


class Attached(RuleBasedStateMachine):
    """One array `/main` whose files lie beside its store."""

    a: gs.Array

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="gridstone-attached-"))
        self.uri = str(self.folder / "store.gs")
        self.states: dict[int, State] = {}
        self.hashes: dict[Path, str] = {}
        self.oldest = self.newest = self.seen = 0
        self.tags: dict[str, int] = {}
        self.steps = 0

    def other(self, r: Random) -> Random:
        """Chances that differ from step to step, where those of the rules are often alike."""
        self.steps += 1
        return Random(f"{r.getrandbits(32)} {self.steps}")

    # Files.

    def file(self, r: Random) -> tuple[Path, dict[str, np.ndarray[Any, Any]]]:
        """A new file of the life's cross section, and what h5py reads of it."""
        path, r = self.folder / f"run_{len(self.hashes)}.h5", self.other(r)
        shape = list(self.cross)
        if not self.is_new:
            shape[self.axis] = r.randint(1, 5)
        found = {}
        with h5py.File(path, "w") as made:
            for name, dtype in ATTRS.items():
                layout = dict(r.choice(LAYOUTS))
                if layout.get("chunks"):
                    layout["chunks"] = tuple(r.randint(1, n) for n in shape)
                values = np.random.default_rng(r.getrandbits(32)).integers(1, 1_000, shape).astype(dtype)
                dataset = made.create_dataset(name, shape, dtype, fillvalue=self.file_fill, **layout)
                if r.random() < 0.8:
                    dataset[...] = values
                else:
                    dataset[: r.randint(0, shape[0])] = values[0]  # the rest is the file's own fill
                found[name] = dataset[...].astype(np.dtype(dtype).newbyteorder("="))
        self.hashes[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return path, {name: values[np.newaxis] for name, values in found.items()} if self.is_new else found

    def context(self, r: Random) -> gs.Context:
        """A context with little memory or much, with a cache or none."""
        cache, verify = r.choice([0, "64KiB", "256MiB"]), r.choice(["once", "always"])
        return gs.Context(r.choice(["1MiB", "1GiB"]), r.choice([1, 2]), cache=cache, durability="close", verify=verify)

    @initialize(r=RANDOM, ndim=st.integers(1, 3), count=st.integers(1, 3), new=st.booleans())
    def begin(self, r: Random, ndim: int, count: int, new: bool) -> None:
        """Attaches files along an axis that they have, or along a new one."""
        self.cross = [r.randint(1, 6) for _ in range(ndim)]
        self.is_new, self.file_fill = new, r.choice([0, 7])
        self.axis = 0 if new else r.randrange(ndim)
        concat = "new:run" if new else f"d{self.axis}"
        made = [self.file(r) for _ in range(count)]
        source = r.choice([[path for path, _ in made], str(self.folder / "run_*.h5")])
        names: Any = r.choice([list(ATTRS), {"e": "/e", "f": "f"}])
        found = gs.attach(self.uri, source, names, path="/main", concat=concat, context=self.context(r))
        assert isinstance(found, gs.Array)
        self.a, state = found, State()
        for name, cells in made[0][1].items():
            state.cells[name], state.nulls[name] = cells, np.zeros(cells.shape, bool)
            state.origins[name], state.fills[name] = np.zeros(cells.shape, int), found.schema.attr(name).fill or 0
        for number, (_, more) in enumerate(made[1:], 1):
            state.append(more, number, self.axis)
        self.oldest = self.newest = self.a.version
        self.states[self.newest] = state

    def teardown(self) -> None:
        try:
            for path, digest in self.hashes.items():
                assert hashlib.sha256(path.read_bytes()).hexdigest() == digest, f"{path.name} is not as it was"
            if hasattr(self, "a"):
                assert not self.a.verify().damage
        finally:
            shutil.rmtree(self.folder)

    # What is there.

    @property
    def now(self) -> State:
        """The newest state."""
        return self.states[self.newest]

    def committed(self, state: State, version: int | None = None) -> None:
        """The model follows a commit."""
        assert self.a.version == (self.a.version if version is None else version) > self.newest
        self.newest = self.a.version
        self.states[self.newest] = state

    def unchanged(self) -> None:
        """Commits that change no cell may have come: the model goes along."""
        state = copy.deepcopy(self.now)
        self.newest = self.a.refresh()
        self.states[self.newest] = state

    def state_at(self, version: int) -> State:
        """The state of a version: of the newest one up to it that changed cells."""
        return self.states[max(known for known in self.states if known <= version)]

    def box(self, r: Random, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """A box that is not empty."""
        lows = [r.randrange(n) for n in shape]
        return tuple(slice(low, r.randint(low + 1, n)) for low, n in zip(lows, shape, strict=True))

    def bounds(self, box: tuple[slice, ...]) -> dict[str, tuple[int, int]]:
        """A box by coordinates."""
        return {name: (one.start, one.stop - 1) for name, one in zip(self.a.dims, box, strict=True)}

    def values(self, r: Random, state: State, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Values for cells, none of which is a file's."""
        drawn = np.random.default_rng(r.getrandbits(32)).integers(-1_000, 0, shape)
        return np.asarray(drawn, state.cells[name].dtype)

    def places(self, r: Random, shape: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], ...]:
        """Coordinates of different cells."""
        size = int(np.prod(shape))
        chosen = r.sample(range(size), r.randint(1, min(size, 12)))
        return np.unravel_index(np.array(chosen), shape)

    # Changes. Each is made to an array (in a transaction or not) and to a state.

    def change(self, r: Random, array: gs.Array, state: State) -> None:
        """One change of cells."""
        r = self.other(r)
        kind = r.choice(["box", "box", "assign", "cells", "delete box", "delete cells", "delete where"])
        event("change", kind)
        box, places = self.box(r, state.shape), self.places(r, state.shape)
        names = r.sample(sorted(state.cells), r.randint(1, len(state.cells)))
        if kind == "box":
            shape = tuple(one.stop - one.start for one in box)
            columns = {name: self.values(r, state, name, shape) for name in names}
            array.write(columns, self.bounds(box))
            state.put(box, columns)
        elif kind == "assign":
            key = tuple(slice(one.start, one.stop, r.randint(1, 3)) for one in box)
            columns = {name: self.values(r, state, name, state.cells[name][key].shape) for name in names[:1]}
            array[names[0]][key] = columns[names[0]]
            state.put(key, columns)
        elif kind == "cells":
            columns = {name: self.values(r, state, name, places[0].shape) for name in names}
            array.write_cells(places, columns)
            state.put(places, columns)
        elif kind == "delete box":
            array.delete(self.bounds(box))
            state.delete(box)
        elif kind == "delete cells":
            array.delete(coords=places)
            state.delete(places)
        else:
            bound = r.randint(-1_000, 1_000)
            array.delete(self.bounds(box), f"e > {bound}")
            kept = np.zeros(state.shape, bool)
            kept[box] = (state.cells["e"][box] > bound) & ~state.nulls["e"][box]
            state.delete(kept)

    @rule(r=RANDOM)
    def commit(self, r: Random) -> None:
        """A change by itself. A delete that finds nothing makes no version."""
        state = copy.deepcopy(self.now)
        self.change(r, self.a, state)
        if self.a.version > self.newest:
            self.committed(state)
        else:
            self.same(state, self.now)

    def same(self, one: State, other: State) -> None:
        """Both have the same cells."""
        for name in one.cells:
            assert np.array_equal(one.nulls[name], other.nulls[name])
            assert np.array_equal(one.cells[name], other.cells[name])

    @rule(r=RANDOM, end=st.sampled_from(["commit", "commit", "abort"]), attach=st.sampled_from([False, False, True]))
    def transaction(self, r: Random, end: str, attach: bool) -> None:
        """Several changes as one version, or none; in it they are seen at once."""
        state, before = copy.deepcopy(self.now), self.newest
        with gs.transaction(self.uri, context=self.a.context) as tx:
            array = tx["/main"]
            for _ in range(r.randint(1, 3)):
                self.change(r, array, state)
                self.look(r, array, state)
            if attach and self.takes_files():
                path, more = self.file(r)
                array.attach(path)
                state.append(more, len(self.hashes) - 1, self.axis)
                self.change(r, array, state)
                self.look(r, array, state)
            assert gs.open(self.uri, path="/main").version == before
            if end == "abort":
                tx.abort()
        if end == "commit" and self.a.refresh() > before:
            self.committed(state)

    def takes_files(self) -> bool:
        """Whether there are not so many files yet that lives become slow."""
        return len(self.hashes) < FILES_MAX

    @rule(r=RANDOM, count=st.integers(1, 2))
    def attach(self, r: Random, count: int) -> None:
        """More files behind, in one commit."""
        if not self.takes_files():
            return
        first = len(self.hashes)
        made = [self.file(r) for _ in range(count)]
        version = self.a.attach([path for path, _ in made], message="more")
        state = copy.deepcopy(self.now)
        for number, (_, more) in enumerate(made, first):
            state.append(more, number, self.axis)
        self.committed(state, version)

    @rule()
    def attach_what_does_not_fit(self) -> None:
        """A file of another cross section is refused, and nothing is changed."""
        if not self.takes_files() or (len(self.cross) == 1 and not self.is_new):
            return
        path, before = self.folder / "wrong.h5", self.a.version
        shape = [n + (axis != self.axis or self.is_new) for axis, n in enumerate(self.cross)]
        with h5py.File(path, "w") as made:
            for name, dtype in ATTRS.items():
                made.create_dataset(name, shape, dtype)
        with pytest.raises(errors.InputError, match="differ"):
            self.a.attach(path)
        path.unlink()
        assert (self.a.version, self.a.refresh(), self.a.shape) == (before, before, self.now.shape)

    @rule(nullable=st.booleans(), fill=st.sampled_from([0, 5]), often=st.integers(0, 3))
    def alter(self, nullable: bool, fill: int, often: int) -> None:
        """A new attribute, which no file has."""
        if len(self.now.cells) == 4 or often:
            return
        name = f"added{len(self.now.cells)}"
        state = copy.deepcopy(self.now)
        attr = gs.Attr(name, "int64", nullable=True) if nullable else gs.Attr(name, "int64", fill=fill)
        version = self.a.alter(add=attr)
        state.add(name, np.int64, None if nullable else fill)
        self.committed(state, version)

    # What changes no cell.

    @rule(r=RANDOM, kind=st.sampled_from(["tiered", "updates", "all", "all", "manifest", "box", "box", "fragments"]))
    def consolidate(self, r: Random, kind: str) -> None:
        """Cells come home or stay in their files, and are the same."""
        sources, lying = self.a.sources.num_rows, self.now.lying()
        target = r.choice(["1KiB", "512MiB"])
        if kind == "box":
            self.a.consolidate(box=self.bounds(self.box(r, self.now.shape)), target=target)
        elif kind == "fragments":
            ids = self.a.fragments.column("id").to_pylist()
            try:
                self.a.consolidate(fragments=r.sample(ids, r.randint(1, len(ids))) if ids else [], target=target)
            except errors.InputError as error:
                event("fragments refused", str(error)[:40])
        else:
            self.a.consolidate(kind, target=target)
        self.a.refresh()
        named = set(self.a.sources.column("uri").to_pylist())
        assert len(named) == self.a.sources.num_rows and named <= {path.name for path in self.hashes}
        end = "home" if sources and not named else "fewer" if len(named) < sources else "as before"
        event("consolidate", f"{kind}: {end}")
        self.unchanged()
        self.now.homed = not named
        if kind in ("box", "fragments", "all"):
            assert kind != "all" or not named
            for cells in self.now.origins.values():
                cells[...] = -1
        else:
            assert lying <= named, f"{kind} copies no cell of a file; what is wholly hidden may go"

    @rule(r=RANDOM, versions=st.sampled_from([1, 2, 5]), age=st.sampled_from(["0s", "1d"]))
    def vacuum(self, r: Random, versions: int, age: str) -> None:
        """What was forgotten raises; what is kept is as it was; no file is touched."""
        done = self.a.vacuum(versions=versions, safety_age=age)
        self.unchanged()
        assert done.oldest <= min([self.newest, *self.tags.values()])
        gone = [version for version in self.states if self.oldest <= version < done.oldest]
        self.oldest = max(self.oldest, done.oldest)
        event("vacuum", "forgot" if gone else "nothing to forget")
        for version in r.sample(gone, min(1, len(gone))):
            with pytest.raises(errors.SnapshotExpiredError):
                self.a.at(version=version)
        # The newest of the forgotten ones stays: it tells of versions up to the next one.
        for version in sorted(v for v in self.states if v < self.oldest)[:-1]:
            del self.states[version]

    @rule(r=RANDOM, name=st.sampled_from(["x", "y"]))
    def tag(self, r: Random, name: str) -> None:
        """A name keeps a version."""
        version = r.randint(self.oldest, self.newest)
        gs.tag(self.uri, name, version, replace=True, context=self.a.context)
        self.tags[name] = version
        self.unchanged()

    @rule(r=RANDOM)
    def reopen(self, r: Random) -> None:
        """A new context knows nothing of the old one's caches."""
        self.a.close()
        found = gs.open(self.uri, path="/main", mode="r+", context=self.context(r))
        assert isinstance(found, gs.Array)
        self.a, self.seen = found, 0
        assert self.a.version == self.newest

    @rule(r=RANDOM)
    def look_back(self, r: Random) -> None:
        """Older versions are as they were."""
        version = r.choice([r.randint(self.oldest, self.newest), *self.tags.values()])
        old = self.a.at(version=version)
        self.whole(old, self.state_at(version))
        self.look(r, old, self.state_at(version))

    @rule(r=RANDOM)
    def lose_a_file(self, r: Random) -> None:
        """Without its file nothing that came home is missed; versions of before name it."""
        if not self.now.homed:
            self.a.consolidate("all")
            self.unchanged()
            self.now.homed = True
            for cells in self.now.origins.values():
                cells[...] = -1
        path = r.choice(sorted(self.hashes))
        away = path.with_suffix(".away")
        path.rename(away)
        try:
            fresh = gs.open(self.uri, path="/main", context=self.context(r))
            assert isinstance(fresh, gs.Array)
            self.whole(fresh, self.now)
            version = r.randint(self.oldest, self.newest)
            old = fresh.at(version=version)
            try:
                self.whole(old, self.state_at(version))
            except errors.SourceChangedError as error:
                assert path.name in str(error)
                event("a lost file", "named")
        finally:
            away.rename(path)

    # Looking.

    def whole(self, array: gs.Array, state: State) -> None:
        """All cells."""
        assert array.shape == state.shape
        found = array.read()
        assert set(found) == set(state.cells)
        for name, cells in state.cells.items():
            self.equal(found[name], cells, state.nulls[name], name)

    def equal(self, found: Any, cells: Any, nulls: Any, name: str) -> None:
        """These are the cells."""
        values, missing = np.ma.getdata(found), np.ma.getmaskarray(found)
        assert values.dtype == cells.dtype and values.shape == np.shape(cells), name
        assert np.array_equal(missing, nulls) and np.array_equal(values[~missing], cells[~missing]), name

    @rule(r=RANDOM)
    def read(self, r: Random) -> None:
        """Boxes, steps, points and questions of the newest version."""
        for _ in range(3):
            self.look(r, self.a, self.now)

    def look(self, r: Random, array: gs.Array, state: State) -> None:
        """One read of an array."""
        r = self.other(r)
        name, box = r.choice(sorted(state.cells)), self.box(r, state.shape)
        cells, nulls = state.cells[name], state.nulls[name]
        kind = r.choice(["box", "steps", "points", "where", "sum", "max", "groups"])
        if kind == "box":
            self.equal(array.read(self.bounds(box), name)[name], cells[box], nulls[box], name)
        elif kind == "steps":
            key = tuple(slice(one.start, one.stop, r.randint(1, 3)) for one in box)
            self.equal(array[name][key], cells[key], nulls[key], name)
        elif kind == "points":
            places = self.places(r, state.shape)
            self.equal(array[name].vindex[places], cells[places], nulls[places], name)
        else:
            self.ask(r, array, state, (kind, name, box))

    def ask(self, r: Random, array: gs.Array, state: State, asked: tuple[str, str, tuple[slice, ...]]) -> None:
        """One question."""
        kind, name, box = asked
        cells, there = state.cells[name][box], ~state.nulls[name][box]
        bound = r.randint(-1_000, 1_000)
        above = there & (cells > bound)
        if kind == "where":
            found = array.read(self.bounds(box), name, f"{name} > {bound}", order="row")
            assert np.ma.getdata(found[name]).tolist() == cells[above].tolist()
        elif kind == "sum":
            answer = array.aggregate({"n": f"count({name})", "s": f"sum({name})"}, box=self.bounds(box))
            assert int(answer["n"][0]) == there.sum()
            assert not there.any() or float(answer["s"][0]) == float(cells[there].sum(dtype=np.float64))
        elif kind == "max":
            answer = array.aggregate({"m": f"max({name})"}, box=self.bounds(box), where=f"{name} > {bound}")
            found = np.ma.masked_array(answer["m"])
            assert found.tolist() == ([cells[above].max()] if above.any() else [None])
        else:
            answer = array.aggregate({"n": "count(*)"}, {name: 100}, self.bounds(box), f"{name} > {bound}")
            keys, counts = np.unique(cells[above] // 100 * 100, return_counts=True)
            assert (answer[name].tolist(), answer["n"].tolist()) == (keys.tolist(), counts.tolist())

    @invariant()
    def shows_what_was_done(self) -> None:
        """After every step all of it is looked at once it has changed."""
        if hasattr(self, "a") and self.seen != self.newest:
            self.seen = self.newest
            assert self.a.version == self.newest
            self.whole(self.a, self.now)


def _lives(machine: type[Attached]) -> type[TestCase]:
    case = machine.TestCase
    case.settings = settings(
        max_examples=100 if DEEP else settings.default.max_examples * 2 // 3,
        stateful_step_count=50 if DEEP else 20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    return case


# Very many lives come in parts, which can be run again by themselves.
for _part in range(20 if DEEP else 1):
    _copy = type(f"AttachedPart{_part}", (Attached,), {})
    globals()[f"TestAttachedPart{_part}" if DEEP else "TestAttached"] = _lives(_copy)
