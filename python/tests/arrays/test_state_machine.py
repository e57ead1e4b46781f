"""The whole life of an array, at random, beside a model in plain Python: whatever is written, deleted, refused, opened
again or looked at in the past, both must show the same.

It begins in a folder, in memory, or in the bucket of a server where there is one. HYPOTHESIS_PROFILE=deep runs very
many more cases.
"""

import os
import pickle
from collections import Counter
from random import Random
from typing import Any
from unittest import TestCase

import buckets
import drawing
import numpy as np
import pytest
from access_rules import AccessRules
from append_rules import AppendRules
from boxes import BoxRules
from commit_rules import SECOND, CommitRules
from export_rules import ExportRules
from gate import lives
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RULE_MARKER, initialize, invariant, precondition, rule
from keeping_rules import KeepingRules
from load_rules import LoadRules
from model import (
    Failed,
    Model,
    Place,
    Plain,
    State,
    bounds_of,
    coordinates,
    positive,
    shaped,
    unplain,
)
from places import Anywhere
from read_rules import ReadRules
from schema_rules import SchemaRules
from wheres import WhereRules

import gridstone as gs
from gridstone import errors
from gridstone.column import datatype as dtypes

RANDOM = st.randoms(use_true_random=True)
ORDERS = ["row", "col", "global", "any"]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


class Machine(
    ReadRules,
    CommitRules,
    WhereRules,
    BoxRules,
    AccessRules,
    ExportRules,
    KeepingRules,
    LoadRules,
    AppendRules,
    SchemaRules,
):
    """One array: `a` writes, `reader` is a second handle that follows only when told to."""

    a: gs.Array
    reader: gs.Array
    kind: str
    kinds: tuple[str, ...] = ("local", "memory")
    """Of the stores that it copies to and exports to; it begins in one of its own `kind`."""

    def __init__(self) -> None:
        super().__init__()
        self.places = Anywhere()
        self.seen = 0

    @initialize(r=RANDOM, sparse=st.booleans(), ndim=st.integers(1, 4), sealed=st.sampled_from([0, 0, 1]))
    def create(self, r: Random, sparse: bool, ndim: int, sealed: int) -> None:
        """Starts with an array of any kind, sealed or not."""
        gs.register_filter("machine.xor", encode=_xor, decode=_xor, overwrite=True)
        self.key, self.tags = ("c3" * 32 if sealed else None), {}
        self.schema, self.windows = drawing.schema(r, sparse, ndim)
        self.uri = self.places(self.kind)
        self.model = Model(self.schema)
        gs.create(self.uri, SECOND, path="/second", context=self.context(r))
        self.a = gs.create(self.uri, self.schema, path="/main", context=self.context(r))
        self.model.commit(self.a.version)
        self.second = [0] * 10
        self.seconds, self.unlisted = {self.a.version: self.second}, set()
        self.reader = gs.open(self.uri, path="/main", context=self.context(r))
        # Tiles of an array that has grown are cut at both ends, and count from where the first domain began.
        for _ in range(r.choice([0, 1, ndim, ndim])):
            self.grow(r)
            if self.is_dense():
                self.load_box(r, "npz")
        # Much of what can be asked of an array says little of an empty one.
        for _ in range(r.choice([0, 3, 5])):
            self.committed(self.change(r, self.a))

    def teardown(self) -> None:
        try:
            if hasattr(self, "a") and self.a.verify()["damage"]:
                pytest.fail(f"damage in {self.schema!r}")
        finally:
            self.places.clear()

    def context(self, r: Random, **options: Any) -> gs.Context:
        """A context with little memory or much; a few fragments with blobs pass the first one's overlay."""
        budget = r.choice(["1MiB", "1GiB"])
        durability = "full" if r.random() < 0.1 else "close"
        verify = r.choice(["once", "always"])
        cache = r.choice([0, "256MiB"])
        options |= {"cache": cache, "durability": durability, "verify": verify, "key": self.key}
        return gs.Context(budget, r.choice([1, 2]), **options)

    def again(self, a: gs.Array) -> gs.Array:
        """An array pickled and back; the key is left behind and comes from the environment."""
        made = pickle.dumps(a)
        with pytest.MonkeyPatch.context() as patch:
            if self.key is not None:
                patch.delenv("GRIDSTONE_KEY", raising=False)
                with pytest.raises(errors.AccessError):
                    pickle.loads(made)
                patch.setenv("GRIDSTONE_KEY", self.key)
            return pickle.loads(made)

    # Helpers.

    def committed(self, version: int, message: str | None = None) -> None:
        """The model follows a commit."""
        assert self.a.version == version
        self.model.commit(version, message)

    def columns(self, r: Random, count: int, subset: bool = False) -> dict[str, list[Plain]]:
        """Values of all attributes, or of some."""
        attrs = list(self.schema.attrs)
        if subset:
            attrs = r.sample(attrs, r.randint(1, len(attrs)))
        return {attr.name: drawing.values(r, attr, count) for attr in attrs}

    def given(self, r: Random, columns: dict[str, list[Plain]], shape: tuple[int, ...]) -> Any:
        """Values as NumPy arrays of this shape, in either memory order; bare where there is one attribute."""
        made = {}
        for name, found in columns.items():
            array = shaped(self.schema.attr(name).dtype, found, shape)
            made[name] = np.asfortranarray(array) if r.random() < 0.3 and not np.ma.isMaskedArray(array) else array
        return next(iter(made.values())) if len(self.schema.attrs) == 1 and r.random() < 0.7 else made

    def message(self, r: Random) -> str | None:
        return r.choice([None, "why", "naïve"])

    def is_dense(self) -> bool:
        return not self.schema.sparse

    def is_sparse(self) -> bool:
        return self.schema.sparse

    # Writing.

    @precondition(is_dense)
    @rule(r=RANDOM)
    def write_box(self, r: Random) -> None:
        """`write(data, box)`, every form of box, all attributes or some."""
        bounds = drawing.box(r, self.windows)
        where = self.model.places(bounds)
        columns = self.columns(r, len(where), subset=True)
        shape = tuple(hi - lo + 1 for lo, hi in bounds)
        if r.random() < 0.15:
            columns = {name: [found[0]] * len(where) for name, found in columns.items() if found[0] is not None}
            data: Any = {name: unplain(self.schema.attr(name).dtype, v[:1])[0] for name, v in columns.items()}
        else:
            data = self.given(r, columns, shape)
        if not columns:
            return
        form, message = drawing.box_form(r, self.windows, bounds), self.message(r)
        version = self.a.write(data, form, message=message)
        self.model.put(where, columns)
        self.committed(version, message)

    @precondition(is_dense)
    @rule(r=RANDOM, by_attribute=st.booleans())
    def assign(self, r: Random, by_attribute: bool) -> None:
        """`a[…] = values` and `a["v"][…] = values`: integers, slices, steps, negative ones."""
        key = drawing.positions(r, self.windows)
        where, shape = self.places_of(key)
        target: Any = self.a
        if by_attribute:
            name = r.choice(self.a.schema_names)
            columns = {name: drawing.values(r, self.schema.attr(name), len(where))}
            value = shaped(self.schema.attr(name).dtype, columns[name], shape)
            target = self.a[name]
        else:
            columns = self.columns(r, len(where))
            value = self.given(r, columns, shape)
        target[key if len(key) > 1 or r.random() < 0.5 else key[0]] = value
        if where:
            self.model.put(where, columns)
            self.committed(max(self.model.versions) + 1)

    @precondition(is_dense)
    @rule(r=RANDOM)
    def assign_at_coordinates(self, r: Random) -> None:
        """`a.loc[…] = values`: half-open slices of coordinates."""
        bounds = drawing.box(r, self.windows)
        where = self.model.places(bounds)
        columns = self.columns(r, len(where))
        key = tuple(
            drawing.coordinate_slice(r, w.dim, lo, hi) for w, (lo, hi) in zip(self.windows, bounds, strict=True)
        )
        self.a.loc[key] = self.given(r, columns, tuple(hi - lo + 1 for lo, hi in bounds))
        self.model.put(where, columns)
        self.committed(max(self.model.versions) + 1)

    @rule(r=RANDOM, dedup=st.sampled_from(["error", "first", "last"]))
    def write_cells(self, r: Random, dedup: str) -> None:
        """`write_cells` in every form, sorted or not, into sparse and dense arrays; repeated places may be refused."""
        where = drawing.places(r, self.windows, r.choice([1, 2, 5, 5, 30, 200]))
        if dedup == "error" and r.random() < 0.6:
            where = list(dict.fromkeys(where))
        in_order = r.random() < 0.4
        if in_order:
            where.sort(key=lambda place: self.model.order_key(place, "global"))
        columns = self.columns(r, len(where), subset=self.is_dense())
        given, columns = drawing.cells(r, self.schema, where, columns)
        if self.is_dense() and len(given) == 2 and len(columns) < len(self.schema.attrs):
            given = (given[0], {n: unplain(self.schema.attr(n).dtype, v) for n, v in columns.items()})
        message = self.message(r)
        try:
            self.model.put(where, columns, dedup)
        except Failed:
            with pytest.raises(errors.InputError, match="same cell"):
                self.a.write_cells(*given, sorted=in_order, dedup=dedup)
            return
        self.committed(self.a.write_cells(*given, sorted=in_order, dedup=dedup, message=message), message)

    @rule(r=RANDOM, abort=st.sampled_from([False, False, False, True]))
    def stream(self, r: Random, abort: bool) -> None:
        """A writer fed in portions; one that is given up leaves nothing."""
        if self.is_sparse():
            where = drawing.places(r, self.windows, r.choice([1, 4, 60]))
            where = where if self.schema.duplicates else list(set(where))
            where.sort(key=lambda place: self.model.order_key(place, "global"))
            form = None
        else:
            bounds = drawing.box(r, self.windows)
            where = self.model.places(bounds, "global")
            form = drawing.box_form(r, self.windows, bounds)
        columns = self.columns(r, len(where))
        with self.a.writer(form) as w:
            start = 0
            while start < len(where):
                stop = min(len(where), start + r.randint(1, 20))
                self.append(w, where[start:stop], {n: v[start:stop] for n, v in columns.items()})
                start = stop
            if abort:
                w.abort()
        if not abort:
            self.model.put(where, columns)
            self.committed(max(self.model.versions) + 1)
        assert self.a.version == self.model.newest

    def append(self, w: Any, where: list[Place], columns: dict[str, list[Plain]]) -> None:
        attrs = {name: unplain(self.schema.attr(name).dtype, found) for name, found in columns.items()}
        if self.is_dense():
            w.append(attrs)
            return
        w.append({d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}, attrs)

    @rule(r=RANDOM)
    def delete(self, r: Random) -> None:
        """Deletes places, written ones and others, some twice."""
        written = sorted(self.model.written_places(self.model.now))
        where = drawing.places(r, self.windows, r.choice([0, 1, 3]))
        where += r.choices(written, k=r.choice([1, 5])) if written else []
        if not where:
            return
        coords = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}
        version = self.a.delete(coords=coords if r.random() < 0.5 else tuple(coords.values()), message="delete")
        self.model.delete(where)
        self.committed(version, "delete")

    @rule(r=RANDOM, key=st.sampled_from(["k", "été", "x" * 100]), remove=st.booleans())
    def metadata(self, r: Random, key: str, remove: bool) -> None:
        """Sets and removes metadata; each change is a version."""
        meta = self.model.now.meta
        if not remove:
            value = r.choice([None, 1, 2**70, 1.5, "text", b"\xff", [1, [2]], {"$a": 1}, {}, True, -(2**63)])
            self.a.meta[key] = meta[key] = value
        elif key in meta:
            del self.a.meta[key], meta[key]
        else:
            with pytest.raises(KeyError):
                del self.a.meta[key]
            return
        self.committed(max(self.model.versions) + 1)

    # Writes that are refused.

    @rule(r=RANDOM)
    def refused(self, r: Random) -> None:
        """Whatever is wrong with a write, the error says so by its class and nothing is written."""
        name, wrong = r.choice(self.wrong_writes(r))
        kinds = (errors.InputError, errors.BoundsError)
        with pytest.raises(kinds):
            wrong()
            pytest.fail(f"{name} was not refused")
        assert self.a.version == self.model.newest, name
        assert self.a.refresh() == self.model.newest, name

    def wrong_writes(self, r: Random) -> list[tuple[str, Any]]:
        """Calls that must fail."""
        where = list(dict.fromkeys(drawing.places(r, self.windows, 6)))
        columns = self.columns(r, len(where))
        coords = [coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)]
        attrs = {name: unplain(self.schema.attr(name).dtype, found) for name, found in columns.items()}
        attr = r.choice(self.schema.attrs)
        write = self.a.write_cells
        found: list[tuple[str, Any]] = [
            ("an unknown attribute", lambda: write(tuple(coords), {**attrs, "no": [0] * len(where)})),
            ("too many values", lambda: write(tuple(coords), {**attrs, attr.name: drawing.repeated(attrs[attr.name])})),
            (
                "a wrong type",
                lambda: write(tuple(coords), {**attrs, attr.name: np.full(len(where), np.void(b"ab" * 99))}),
            ),
            ("a missing dimension", lambda: write({self.schema.dims[0].name: coords[0], "no": coords[0]}, attrs)),
        ]
        if not attr.nullable:
            nulls = np.ma.MaskedArray(np.ma.getdata(attrs[attr.name]), mask=True)
            found.append(("null", lambda: write(tuple(coords), {**attrs, attr.name: nulls})))
        for axis, dim in enumerate(self.schema.dims):
            outside = drawing.outside(dim, len(where))
            if outside is not None:
                moved = [outside if i == axis else column for i, column in enumerate(coords)]
                found.append(("outside", lambda moved=moved: write(tuple(moved), attrs)))
                found.append(("delete outside", lambda moved=moved: self.a.delete(coords=tuple(moved))))
        backwards = sorted(where, key=lambda place: self.model.order_key(place, "global"), reverse=True)
        if len(backwards) > 1:
            turned = [coordinates(d, [p[i] for p in backwards]) for i, d in enumerate(self.schema.dims)]
            found.append(("not sorted", lambda: write(tuple(turned), attrs, sorted=True)))
        return found + (self.wrong_boxes(r) if self.is_dense() else [])

    def wrong_boxes(self, r: Random) -> list[tuple[str, Any]]:
        bounds = drawing.box(r, self.windows)
        form = {
            w.dim.name: tuple(drawing.key_value(w.dim, c) for c in b) for w, b in zip(self.windows, bounds, strict=True)
        }
        name = r.choice(self.a.schema_names)
        shape = tuple(hi - lo + 1 for lo, hi in bounds)
        count = int(np.prod(shape))
        value = shaped((attr := self.schema.attr(name)).dtype, drawing.values(r, attr, count), shape)

        def short() -> None:
            with self.a.writer(form) as w:
                if count > 1:
                    self.append(w, [()] * (count - 1), self.columns(r, count - 1))

        def long() -> None:
            with self.a.writer(form) as w:
                self.append(w, [()] * (count + 1), self.columns(r, count + 1))

        return [
            ("a wrong shape", lambda: self.a.write({name: value[None]}, form)),
            ("too few cells", short),
            ("too many cells", long),
        ]

    # Versions and handles.

    @rule(r=RANDOM)
    def look_back(self, r: Random) -> None:
        """`at(version=)`, `at(timestamp=)` and `open(version=)` show what was."""
        version = r.choice(sorted(self.model.versions))
        old = self.a.at(version=version)
        state = self.model.versions[version]
        how = r.choice(["at", "timestamp", "open", "open timestamp", "pickle"])
        if how == "timestamp":
            old = self.a.at(timestamp=old.timestamp)
        elif how == "open":
            old = gs.open(self.uri, path="/main", version=version, context=self.context(r))
        elif how == "open timestamp":
            old = gs.open(self.uri, path="/main", timestamp=old.timestamp, context=self.a.context)
        elif how == "pickle":
            old = self.again(old)
        schema = self.model.shapes.get(state.shape, (self.schema,))[0]
        assert (old.version, old.mode, old.schema) == (version, "r", schema)
        assert dict(old.meta) == state.meta
        self.look(old, state, r)
        with pytest.raises(errors.AccessError):
            old.delete(coords=[coordinates(w.dim, w.values[:1]) for w in self.windows])
        with pytest.raises(errors.BoundsError):
            old.refresh()

    @precondition(is_sparse)
    @rule(r=RANDOM)
    def differences(self, r: Random) -> None:
        """`diff` of two versions of one schema: cells by place, those at one place as a multiset."""
        versions = [v for v, state in self.model.versions.items() if state.shape == self.model.now.shape]
        chosen = r.choice(versions), r.choice(versions)
        handles = [self.a.at(version=version) for version in chosen]
        everywhere = [bounds_of(w.dim) for w in self.windows]
        for version in chosen:
            with self.as_of(self.model.versions[version]):
                if not self.in_arrow(everywhere):
                    return  # Cells are compared by way of Arrow.

        def cells(version: int) -> Counter[Any]:
            rows = self.model.rows(self.model.versions[version], everywhere, "row")
            types = [(name, self.model.dtypes[name]) for name in self.a.schema_names]
            return Counter((place, tuple(positive(dtype, row[name]) for name, dtype in types)) for place, row in rows)

        ours, theirs = map(cells, chosen)
        left, right = (Counter(place for place, _ in side.elements()) for side in (ours - theirs, theirs - ours))
        found = gs.diff(*handles)
        assert found.compared and found.schema == ()
        assert (found.same, found.different) == ((ours & theirs).total(), (left & right).total())
        assert (found.only_a, found.only_b) == ((left - right).total(), (right - left).total())
        assert found.cells_equal == (ours == theirs)

    @rule(r=RANDOM)
    def second_handle(self, r: Random) -> None:
        """A second handle shows its version until it is told to move on."""
        seen = self.reader.version
        self.look(self.reader, self.model.versions[seen], r)
        assert self.reader.version == seen
        assert self.reader.refresh() == self.model.newest
        self.look(self.reader, self.model.now, r)

    @rule(r=RANDOM)
    def reopen(self, r: Random) -> None:
        """A new context knows nothing of the old one's caches."""
        self.a.close()
        with pytest.raises(errors.InputError, match="closed"):
            self.a.version  # noqa: B018
        self.a = gs.open(self.uri, path="/main", mode="r+", context=self.context(r))
        if r.random() < 0.3:
            self.a = self.again(self.a)
        assert (self.a.mode, self.a.version) == ("r+", self.model.newest)
        self.look(self.a, self.model.now, r)

    @rule()
    def history(self) -> None:
        """Every commit is in the history, with its message, and times grow."""
        found = self.a.history()
        listed = {v: message for v, message in self.model.messages.items() if v not in self.unlisted}
        assert [v.version for v in found] == sorted(listed)
        named = {(name, v) for name, v in self.tags.items() if v in listed}
        assert {(name, v.version) for v in found for name in v.tags} == named
        assert {v.version: v.message for v in found} == listed
        times = [v.timestamp for v in found]
        assert times == sorted(set(times))

    @invariant()
    def shows_what_was_written(self) -> None:
        """After every step all of it is looked at once it has changed."""
        if not hasattr(self, "a") or self.seen == self.model.newest:
            return
        self.seen = self.model.newest
        state = self.model.now
        assert self.a.version == self.seen
        assert dict(self.a.meta) == state.meta
        whole = [(w.values[0], w.values[-1]) for w in self.windows]
        pairs = {
            w.dim.name: tuple(drawing.key_value(w.dim, c) for c in b) for w, b in zip(self.windows, whole, strict=True)
        }
        found = self.a.read(pairs, order=ORDERS[self.seen % 4] if self.is_dense() else "row").in_place()
        if self.schema.sparse:
            self.check_rows(state, self.numpy_columns(found), whole, "row")
        else:
            for name, column in found.items():
                shape = tuple(hi - lo + 1 for lo, hi in whole)
                self.check_dense(state, name, column, self.model.places(whole), shape)
        self.check_nonempty(state)

    def check_nonempty(self, state: State) -> None:
        """The non-empty domain holds every cell; there is none where nothing was written, or is left after a merge."""
        box = self.a.nonempty_domain
        assert state.wrote or box is None
        if box is None:
            assert not self.model.written_places(state)
            return
        for place in self.model.written_places(state):
            for (lo, hi), coordinate, dim in zip(box, place, self.schema.dims, strict=True):
                exact = dtypes.is_float(dim.dtype) or dim.is_text
                assert (lo if exact else dtypes.ticks_of(lo)) <= coordinate <= (hi if exact else dtypes.ticks_of(hi))


def _xor(data: bytes, width: int) -> bytes:
    """A filter of a user's own, its own mirror."""
    return bytes(byte ^ (0x50 | width) for byte in data)


class OnDisk(Machine):
    """Begins in a folder."""

    kind = "local"


class InMemory(Machine):
    """Begins in memory."""

    kind = "memory"


class InBucket(Machine):
    """Begins in a bucket, and more often goes to another place in it than to a folder or to memory."""

    kind = "bucket"
    kinds = ("bucket", "bucket", "local", "memory")

    def context(self, r: Random, **options: Any) -> gs.Context:
        """What reaches the bucket is given, or comes from the environment."""
        return super().context(r, storage_options=r.choice([None, buckets.options()]), **options)


def _rules_of(machine: type[Machine]) -> set[str]:
    """The names of its rules."""
    return {name for name in dir(machine) if hasattr(getattr(machine, name), RULE_MARKER)}


class Growing(InMemory):
    """Grows in most of its steps: the rules that have little to do with growth are left out."""


GROWTH = {
    "alter", "append_block", "append_frames", "append_from_threads", "append_in_a_transaction", "cells_beyond",
    "consolidate", "delete", "look_back", "read", "rename_dimensions", "reopen", "resize", "second_handle", "vacuum",
    "write_box", "write_cells",
}  # fmt: skip
for _name in _rules_of(InMemory) - GROWTH:
    setattr(Growing, _name, None)


def _lives(machine: type[Machine], number: int) -> type[TestCase]:
    """Lives of so many examples."""
    case = machine.TestCase
    case.settings = settings(
        max_examples=lives(number),
        stateful_step_count=60 if DEEP else 25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    return case


def _parts(name: str, machine: type[Machine], number: int, deep: int) -> dict[str, type[TestCase]]:
    """Tests of so many lives; of very many, in parts that can be run again by themselves and end before the guard
    against hangs does."""
    if not DEEP:
        return {name: _lives(machine, number)}
    cases = {}
    for part in range(deep // number):
        # Each part has a class of its own: Hypothesis tells lives that it has seen by the class.
        copy = type(f"{machine.__name__}Part{part}", (machine,), {})
        cases[f"{name}Part{part}"] = _lives(copy, number)
    return cases


globals().update(_parts("TestOnDisk", OnDisk, 150, 5_000))
globals().update(_parts("TestInMemory", InMemory, 150, 5_000))
globals().update(_parts("TestGrowing", Growing, 60, 2_000))
if buckets.BUCKET:
    # A life is some 430 requests: so many take half a minute, and a minute beside other work.
    globals().update(_parts("TestInBucket", InBucket, 120, 1_000))
