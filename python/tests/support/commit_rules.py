"""Commits of other kinds, for the machine of `test_state_machine`: transactions over two arrays, receipts, writers in
any order, deletes by box and by condition, merges; and reads that go on, or ask for lists, meanwhile.
"""

import copy
import itertools
from abc import abstractmethod
from random import Random
from typing import Any

import drawing
import numpy as np
import pyarrow as pa
import pytest
from drawing import Window
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from model import Failed, Model, Place, Plain, State, bounds_of, coordinates, shaped, unplain
from wheres import condition, selected

import gridstone as gs
from gridstone import errors

RANDOM = st.randoms(use_true_random=True)
SECOND = gs.Schema([gs.Dim("i", (0, 9), 4)], [gs.Attr("n", "int64")])


class CommitRules:
    """What the machine commits besides single writes. `second` is a small array that only transactions write."""

    a: gs.Array
    uri: str
    model: Model
    schema: gs.Schema
    windows: list[Window]
    second: list[int]
    seconds: dict[int, list[int]]
    unlisted: set[int]

    # What the machine has.

    @abstractmethod
    def committed(self, version: int, message: str | None = None) -> None:
        """The model follows a commit."""

    @abstractmethod
    def columns(self, r: Random, count: int, subset: bool = False) -> dict[str, list[Plain]]:
        """Values of all attributes, or of some."""

    @abstractmethod
    def append(self, w: Any, where: list[Place], columns: dict[str, list[Plain]]) -> None:
        """Hands cells at these places to a writer."""

    @abstractmethod
    def look(self, a: gs.Array, state: State, r: Random) -> None:
        """Compares what the array shows with the model's state."""

    def is_dense(self) -> bool:
        return not self.schema.sparse

    # Writing.

    def change(self, r: Random, a: gs.Array, **options: Any) -> Any:
        """One change of the array and of the model's present, not of its versions; what the call returned."""
        written = sorted(self.model.written_places(self.model.now))
        kind = r.choice(["cells", "cells", "box", "delete", "delete box"])
        if kind == "delete" and written:
            where = r.choices(written, k=r.choice([1, 4]))
            self.model.delete(where)
            coords = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}
            return a.delete(coords=coords, **options)
        bounds = drawing.box(r, self.windows)
        form = drawing.box_form(r, self.windows, bounds) or (...,)
        if kind == "delete box":
            self.delete_from_model(bounds)
            return a.delete(form, **options)
        if kind == "box" and self.is_dense():
            where = self.model.places(bounds)
            columns = self.columns(r, len(where), subset=True)
            shape = tuple(hi - lo + 1 for lo, hi in bounds)
            self.model.put(where, columns)
            given = {name: shaped(self.schema.attr(name).dtype, v, shape) for name, v in columns.items()}
            return a.write(given, form, **options)
        where = list(dict.fromkeys(drawing.places(r, self.windows, r.choice([1, 3, 30]))))
        columns = self.columns(r, len(where), subset=self.is_dense())
        self.model.put(where, columns)
        attrs = {name: unplain(self.schema.attr(name).dtype, v) for name, v in columns.items()}
        coords = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}
        return a.write_cells(coords, attrs, **options)

    def delete_from_model(self, bounds: Any) -> None:
        inside = [p for p in self.model.written_places(self.model.now) if _inside(p, bounds)]
        self.model.delete(inside)

    @rule(
        r=RANDOM,
        end=st.sampled_from(["commit", "commit", "raise"]),
        isolation=st.sampled_from(["snapshot", "serializable"]),
    )
    def transaction(self, r: Random, end: str, isolation: str) -> None:
        """Several changes of two arrays are one version, or none; inside they are seen at once."""
        before, second = copy.deepcopy(self.model.now), list(self.second)
        message = r.choice([None, "both"])
        try:
            with gs.transaction(self.uri, message, isolation=isolation, context=self.a.context) as tx:
                staged, other = tx["/main"], tx["/second"]
                for _ in range(r.randint(1, 3)):
                    self.change(r, staged)
                    self.look(staged, self.model.now, r)
                place, number = r.randrange(10), r.randrange(1_000)
                other[place] = second[place] = number
                assert other[...].tolist() == second
                assert self.a.version == self.model.newest, "nothing is seen outside"
                if end == "raise":
                    raise Failed
        except Failed:
            self.model.now = before
            assert self.a.refresh() == self.model.newest
            return
        self.second = second
        assert self.a.refresh() == tx.version
        self.committed(tx.version, message)
        self.seconds[tx.version] = list(second)

    @rule(r=RANDOM)
    def look_at_the_second(self, r: Random) -> None:
        """The second array is, at any version, what the last transaction before it left."""
        version = r.choice(sorted(self.model.versions))
        last = max(v for v in self.seconds if v <= version)
        found = gs.open(self.uri, path="/second", version=version, context=self.a.context)
        assert found[...].tolist() == self.seconds[last] and found.version == version
        assert gs.open(self.uri, path="/second", context=self.a.context)[...].tolist() == self.second

    @rule(r=RANDOM)
    def receipts(self, r: Random) -> None:
        """Writes that are committed later, together and in the order given; nothing of them is seen before."""
        made = [self.change(r, self.a, commit=False) for _ in range(r.randint(1, 3))]
        assert self.a.refresh() == self.model.newest
        given = [gs.Receipt.from_json(m.to_json()) if r.random() < 0.3 else m for m in made]
        version = gs.commit(self.uri, given, message="receipts", context=self.a.context)
        assert self.a.refresh() == version
        self.committed(version, "receipts")

    @rule(
        r=RANDOM, dedup=st.sampled_from(["error", "first", "last"]), abort=st.sampled_from([False, False, False, True])
    )
    def stream_in_any_order(self, r: Random, dedup: str, abort: bool) -> None:
        """A writer fed in portions of any order; what repeats is judged over all of them."""
        dedup = "error" if self.schema.duplicates else dedup
        where = drawing.places(r, self.windows, r.choice([1, 4, 60]))
        # What is given up may have been refused before.
        if dedup == "error" and (abort or r.random() < 0.7):
            where = list(dict.fromkeys(where))
        columns = self.columns(r, len(where))

        def write() -> None:
            with self.a.writer(order="any", dedup=dedup, message="any") as w:
                start = 0
                while start < len(where):
                    stop = min(len(where), start + r.randint(1, 25))
                    attrs = {n: unplain(self.schema.attr(n).dtype, v[start:stop]) for n, v in columns.items()}
                    part = where[start:stop]
                    w.append(
                        {d.name: coordinates(d, [p[i] for p in part]) for i, d in enumerate(self.schema.dims)}, attrs
                    )
                    start = stop
                if abort:
                    w.abort()

        try:
            if not abort:
                self.model.put(where, columns, dedup)
        except Failed:
            with pytest.raises(errors.InputError, match="same cell"):
                write()
            assert self.a.refresh() == self.model.newest
            return
        write()
        if not abort:
            self.committed(self.model.newest + 1, "any")
        assert self.a.version == self.model.newest

    @rule(r=RANDOM, by_condition=st.booleans())
    def delete_what_is_in_a_box(self, r: Random, by_condition: bool) -> None:
        """Deletes by box, and by condition in a box or everywhere."""
        bounds = drawing.box(r, self.windows)
        form = drawing.box_form(r, self.windows, bounds) or (...,)
        if not by_condition:
            self.delete_from_model(bounds)
            self.committed(self.a.delete(form, message="box"), "box")
            return
        expression, judge = condition(r, self.windows, self.schema.attrs)
        found = selected(self.model, self.model.now, bounds, "row", judge)
        version = self.a.delete(form, where=expression, message="where")
        if self.schema.sparse:
            gone = [id(row) for _, row in found]
            for place in {place for place, _ in found}:
                left = [row for row in self.model.now.cells[place] if id(row) not in gone]
                if left:
                    self.model.now.cells[place] = left
                else:
                    del self.model.now.cells[place]
        else:
            self.model.delete([place for place, _ in found])
        if version == self.model.newest:
            wrote = self.model.written_places(self.model.now)
            assert not wrote & {place for place, _ in found}, "it says that there was nothing to delete"
        else:
            self.committed(version, "where")

    @rule(r=RANDOM, strategy=st.sampled_from(["tiered", "updates", "all", "all", "manifest"]))
    def consolidate(self, r: Random, strategy: str) -> None:
        """Merges change nothing that anybody reads, at any version."""
        self.a.consolidate(strategy)
        for version in range(self.model.newest + 1, self.a.version + 1):
            self.model.commit(version)
            if strategy == "manifest":
                self.unlisted.add(version)  # It packs the store's list and touches no array.
        self.look(self.a, self.model.now, r)
        version = r.choice(sorted(self.model.versions))
        self.look(self.a.at(version=version), self.model.versions[version], r)

    # Reading.

    @rule(r=RANDOM)
    def resume_a_stream(self, r: Random) -> None:
        """A stream goes on with the version that it began with, whatever is committed between its batches."""
        bounds = drawing.box(r, self.windows)
        if not self.in_arrow(bounds):  # type: ignore[attr-defined]
            return
        table = self.a.scan(drawing.box_form(r, self.windows, bounds), order="row", batch_bytes=1)
        state, batches = copy.deepcopy(self.model.now), iter(table)
        first = list(itertools.islice(batches, r.randint(0, 3)))
        version = self.change(r, self.a)
        self.committed(version)
        found = pa.Table.from_batches([*first, *batches], table.schema)
        self.check_table(state, self.arrow_columns(found), bounds, "row")  # type: ignore[attr-defined]

    @rule(r=RANDOM)
    def read_points(self, r: Random) -> None:
        """`points`, repeated ones and such where nothing is."""
        where = drawing.places(r, self.windows, r.choice([0, 1, 8]))
        written = sorted(self.model.written_places(self.model.now))
        where += r.choices(written, k=5) if written else []
        coords = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}
        names = r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs)))
        found = self.a.points(coords, names)
        columns = self.numpy_columns(found.to_numpy())  # type: ignore[attr-defined]
        if self.schema.sparse:
            rows = [(p, row) for p in where for row in self.model.now.cells.get(p, [])]
        else:
            values = {n: self.model.dense(self.model.now, n, where) for n in names}
            rows = [(p, {n: values[n][i] for n in names}) for i, p in enumerate(where)]
        assert list(zip(*(columns[d.name] for d in self.schema.dims), strict=True)) == [p for p, _ in rows]
        for name in names:
            assert columns[name] == [row[name] for _, row in rows]

    @precondition(is_dense)
    @rule(r=RANDOM, assign=st.booleans(), orthogonal=st.booleans())
    def lists(self, r: Random, assign: bool, orthogonal: bool) -> None:
        """`oindex` and `vindex`, reads and assignments; of a cell that is named twice the last value stays."""
        count = r.choice([1, 2, 5])
        picked = [r.choices(w.values, k=r.choice([1, 3]) if orthogonal else count) for w in self.windows]
        lows = [bounds_of(w.dim)[0] for w in self.windows]
        key = tuple(
            _positions(r, w, [v - low for v in values])
            for w, values, low in zip(self.windows, picked, lows, strict=True)
        )
        if orthogonal:
            where: list[Place] = [()]
            for values in picked:
                where = [(*place, v) for place in where for v in values]
            shape = tuple(len(values) for values in picked)
        else:
            where, shape = list(zip(*picked, strict=True)), (count,)
        name = r.choice(self.a.schema_names)
        target = self.a[name].oindex if orthogonal else self.a[name].vindex
        if assign:
            columns = {name: drawing.values(r, self.schema.attr(name), len(where))}
            target[key] = shaped(self.schema.attr(name).dtype, columns[name], shape)
            self.model.put(where, columns, "last")
            self.committed(self.model.newest + 1)
        self.check_dense(self.model.now, name, target[key], where, shape)  # type: ignore[attr-defined]


def _inside(place: Place, bounds: Any) -> bool:
    return all(lo <= c <= hi for c, (lo, hi) in zip(place, bounds, strict=True))


def _positions(r: Random, w: Window, offsets: list[int]) -> Any:
    """A list of positions as users write it, some counted from the end."""
    size = w.dim.size
    found = [p - size if r.random() < 0.3 and p - size >= -(2**63) else p for p in offsets]
    if max(found) >= 2**63:
        found = offsets
    return np.array(found, np.uint64 if max(found) >= 2**63 else np.int64) if r.random() < 0.5 else found
