"""Appends and growth by writing in the life of an array: rules for the machine of `test_state_machine`.

Blocks, frames and rows; along any axis; with keys, in transactions, through handles that lag, from threads.
"""

import copy
import itertools
import threading
from abc import abstractmethod
from random import Random
from typing import Any, NamedTuple

import drawing
import numpy as np
import pytest
from drawing import Window
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from model import Place, Plain, State, bounds_of, coordinates, unplain
from schema_rules import CELLS_MAX, SchemaRules

import gridstone as gs
from gridstone import errors
from gridstone.column import datatype as dtypes

RANDOM = st.randoms(use_true_random=True)


class Block(NamedTuple):
    """What is appended along an axis of a dense array."""

    axis: int
    count: int
    columns: dict[str, list[Plain]]
    """Values of the whole block, in row order."""
    values: Any
    """The same, as it is given to the array."""


class AppendRules(SchemaRules):
    """`append`, writers of frames, and writes that grow the domain or add attributes."""

    uri: str
    keys = 0

    @abstractmethod
    def columns(self, r: Random, count: int, subset: bool = False) -> dict[str, list[Plain]]:
        """Values of all attributes, or of some."""

    @abstractmethod
    def given(self, r: Random, columns: dict[str, list[Plain]], shape: tuple[int, ...]) -> Any:
        """Values as NumPy arrays of this shape."""

    @abstractmethod
    def change(self, r: Random, a: gs.Array, **options: Any) -> Any:
        """One change of the array and of the model's present."""

    @abstractmethod
    def context(self, r: Random, **options: Any) -> gs.Context:
        """A context for another handle."""

    @abstractmethod
    def look(self, a: gs.Array, state: State, r: Random) -> None:
        """Compares what the array shows with the model's state."""

    def is_dense(self) -> bool:
        return not self.schema.sparse

    def is_sparse(self) -> bool:
        return self.schema.sparse

    # The model's share.

    def _behind(self, block: Block) -> None:
        """The block lies behind the end, in the model's present."""
        low, high = bounds_of(self.schema.dims[block.axis])
        grown = self._reaching({block.axis: (low, high + block.count)})
        where = self._places_of(block.axis, (high + 1, high + block.count))
        self._grow_to(*grown)
        self.model.put(where, block.columns)

    def _places_of(self, axis: int, ends: tuple[Any, Any]) -> list[Place]:
        whole = [bounds_of(dim) for dim in self.schema.dims]
        whole[axis] = ends
        return list(itertools.product(*(range(lo, hi + 1) for lo, hi in whole)))

    def _reaching(self, ends: dict[int, tuple[Any, Any]]) -> tuple[gs.Schema, list[Window]]:
        """The schema whose domain reaches so far, and the coordinates in use of it."""
        dims, windows = list(self.schema.dims), list(self.windows)
        for axis, (low, high) in ends.items():
            dim, (_, values, huge) = dims[axis], windows[axis]
            domain = tuple(drawing.key_value(dim, end) for end in (low, high))
            dims[axis] = gs.Dim(dim.name, domain, dim.tile, dim.dtype)
            if self.schema.sparse:
                values = sorted({*values, low, high})
            elif not huge:
                others = int(np.prod([len(w.values) for w in windows])) // len(values)
                values = list(range(low, high + 1)) if others * (high - low + 1) <= CELLS_MAX else values
            windows[axis] = windows[axis]._replace(values=values)
        windows = [w._replace(dim=dim) for w, dim in zip(windows, dims, strict=True)]
        return self._made_of(dims=dims), windows

    def _grow_to(self, schema: gs.Schema, windows: list[Window]) -> None:
        """The model's present has another schema, if it is another one."""
        if schema == self.schema:
            return
        self.model.shapes.setdefault(self.model.now.shape, (self.schema, self.windows))
        self.model.now.shape = 1 + max(self.model.shapes)
        self.model.shapes[self.model.now.shape] = (schema, windows)
        self._see(schema, windows)

    def _followed(self, version: int, message: str | None) -> None:
        """One commit more is there, and the array shows it."""
        assert self.a.refresh() == version
        assert self.a.schema == self.schema
        self.committed(version, message)

    # Blocks.

    def _block(self, r: Random, axis: int | None = None, count: int | None = None) -> Block | None:
        """A block for the present schema; None if the array is too large elsewhere."""
        ndim = self.schema.ndim
        small = [place for place in range(ndim) if self._across(place) <= CELLS_MAX // 10]
        axis = r.choice(small) if axis is None and small else axis
        if axis is None or axis not in small:
            return None
        dim = self.schema.dims[axis]
        tile = min(10, 1 if dim.tile is None else dtypes.ticks_of(dim.tile))
        count = r.choice([1, 1, 2, 3, tile, 2 * tile]) if count is None else count
        count = min(count, max(1, CELLS_MAX // self._across(axis)))
        shape = tuple(count if place == axis else d.size for place, d in enumerate(self.schema.dims))
        columns = self.columns(r, int(np.prod(shape)), subset=True)
        given = shape[:axis] + shape[axis + 1 :] if count == 1 and r.random() < 0.4 else shape
        return Block(axis, count, columns, self.given(r, columns, given))

    def _across(self, axis: int) -> int:
        """Cells of one position along the axis."""
        made = 1
        for place, dim in enumerate(self.schema.dims):
            made *= 1 if place == axis else dim.size
        return made

    def _room(self, block: Block) -> bool:
        """Whether the type of the dimension has coordinates for the block."""
        dim = self.schema.dims[block.axis]
        return bool(bounds_of(dim)[1] + block.count <= drawing._limits(dim.dtype)[1])

    def _axis(self, r: Random, block: Block) -> int | str:
        names = [block.axis, block.axis - self.schema.ndim, self.schema.dims[block.axis].name]
        return r.choice(names)

    @precondition(is_dense)
    @rule(r=RANDOM, how=st.sampled_from(["plain", "key", "key", "lagging", "other content"]))
    def append_block(self, r: Random, how: str) -> None:
        """`append(x, axis)`: behind the end; with a key once, however often it is repeated, wherever it lies."""
        block = self._block(r)
        if block is None:
            return
        axis = self._axis(r, block)
        event("append a block", how)
        if not self._room(block):
            with pytest.raises(errors.BoundsError):
                self.a.append(block.values, axis)
            assert self.a.refresh() == self.model.newest
            return
        if how == "plain":
            version = self.a.append(block.values, axis, message="block")
            self._behind(block)
            self._followed(version, "block")
            return
        other = gs.open(self.uri, path="/main", mode="r+", context=self.context(r))
        if how == "lagging":
            version = self.change(r, self.a)
            self.committed(version)
            ahead = self._block(r, block.axis)
            if ahead is not None and self._room(ahead._replace(count=ahead.count + block.count)):
                version = self.a.append(ahead.values, block.axis, message="ahead")
                self._behind(ahead)
                self._followed(version, "ahead")
            version = other.append(block.values, axis, message="lagging")
            assert other.version == version
            self._behind(block)
            self._followed(version, "lagging")
            return
        self.keys += 1
        key = f"block {self.keys}"
        version = self.a.append(block.values, axis, message="keyed", commit_key=key)
        self._behind(block)
        self._followed(version, "keyed")
        for _ in range(r.choice([0, 1, 2])):
            self.committed(self.change(r, self.a))
        if how == "key":
            again = r.choice([self.a, other, gs.open(self.uri, path="/main", mode="r+", context=self.context(r))])
            assert again.append(block.values, axis, message="again", commit_key=key) == version
        else:
            longer = self._block(r, block.axis, block.count + 1)
            if longer is not None and self._room(longer):
                with pytest.raises(errors.ConflictError):
                    r.choice([self.a, other]).append(longer.values, axis, commit_key=key)
        assert self.a.refresh() == self.model.newest

    @precondition(is_dense)
    @rule(r=RANDOM, end=st.sampled_from(["commit", "commit", "raise", "conflict"]))
    def append_in_a_transaction(self, r: Random, end: str) -> None:
        """Blocks beside other changes are one version; another append that commits first is a conflict."""
        before, seen = copy.deepcopy(self.model.now), (self.schema, self.windows)
        axes: list[int] = []
        other: Block | None = None
        try:
            with gs.transaction(self.uri, "blocks", context=self.a.context) as tx:
                staged = tx["/main"]
                for _ in range(r.randint(1, 3)):
                    block = self._block(r)
                    if block is not None and self._room(block) and r.random() < 0.7:
                        staged.append(block.values, self._axis(r, block))
                        self._behind(block)
                        axes.append(block.axis)
                        assert staged.schema == self.schema
                    else:
                        self.change(r, staged)
                    self.look(staged, self.model.now, r)
                if end == "raise":
                    raise RuntimeError
                if end == "conflict" and axes:
                    with self.as_of(before):
                        other = self._block(r, r.choice(axes))
                        assert other is not None
                        first = gs.open(self.uri, path="/main", mode="r+", context=self.a.context)
                        first.append(other.values, other.axis, message="first")
        except (RuntimeError, errors.ConflictError) as error:
            self._see(*seen)
            self.model.now = before
            if isinstance(error, errors.ConflictError):
                assert other is not None
                event("append in a transaction", "conflict")
                self._behind(other)
                self._followed(self.model.newest + 1, "first")
            else:
                assert self.a.refresh() == self.model.newest and self.a.schema == self.schema
            return
        assert other is None, "two appends saw the same end"
        assert tx.version is not None
        if tx.version > self.model.newest:
            self._followed(tx.version, "blocks")

    @precondition(is_dense)
    @rule(r=RANDOM)
    def append_from_threads(self, r: Random) -> None:
        """Two handles append at once: every block is there once, in the order of the versions."""
        first = self._block(r)
        if first is None:
            return
        blocks = [first, *(self._block(r, first.axis) for _ in range(3))]
        total = sum(block.count for block in blocks if block is not None)
        if None in blocks or not self._room(first._replace(count=total)):
            return
        versions: dict[int, Block] = {}
        failed: list[BaseException] = []

        def work(handle: gs.Array, mine: list[Block]) -> None:
            try:
                for block in mine:
                    versions[handle.append(block.values, block.axis, message="thread")] = block
            except BaseException as error:
                failed.append(error)

        handles = [gs.open(self.uri, path="/main", mode="r+", context=self.context(r)) for _ in range(2)]
        threads = [
            threading.Thread(target=work, args=(handle, blocks[place::2])) for place, handle in enumerate(handles)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, failed
        self.a.refresh()
        for version, block in sorted(versions.items()):
            self._behind(block)
            self.model.commit(version, "thread")
        assert len(versions) == len(blocks) and self.a.version == self.model.newest
        assert self.a.schema == self.schema

    @precondition(is_dense)
    @rule(r=RANDOM, end=st.sampled_from(["leave", "leave", "abort", "raise"]))
    def append_frames(self, r: Random, end: str) -> None:
        """`writer(axis=, every=)`: what was taken is committed, also by an exception; `abort` drops what is held."""
        first = self._block(r, count=1)
        if first is None:
            return
        every, names = r.choice([1, 2, 3, 5]), list(first.columns)
        made = [first]
        for _ in range(r.choice([0, 2, 5])):
            more = self._block(r, first.axis, r.choice([1, 1, 2]))
            if more is None or set(more.columns) != set(names):
                continue
            made.append(more)
        if not self._room(first._replace(count=sum(frame.count for frame in made))):
            return
        held: list[Block] = []
        try:
            with self.a.writer(axis=self._axis(r, first), every=every, message="frames") as w:
                for frame in made:
                    w.append(frame.values)
                    held.append(frame)
                    if sum(one.count for one in held) >= every:
                        self._commit_frames(held)
                if end == "abort":
                    w.abort()
                    held.clear()
                if end == "raise":
                    raise RuntimeError
        except RuntimeError:
            pass
        if held:
            self._commit_frames(held)
        assert self.a.version == self.model.newest and self.a.schema == self.schema

    def _commit_frames(self, held: list[Block]) -> None:
        for frame in held:
            self._behind(frame)
        held.clear()
        self.model.commit(self.model.newest + 1, "frames")

    # Cells beyond the domain, and columns that the array lacks.

    def _beyond(self, r: Random, axis: int) -> Any:
        """A coordinate in or beyond the domain."""
        dim, values, _ = self.windows[axis]
        if dim.is_text or r.random() < 0.5:
            return r.choice(values)
        low, high = bounds_of(dim)
        if dtypes.is_float(dim.dtype):
            kind = np.dtype(dim.dtype).type
            return float(kind(r.choice([low - r.choice([0.5, 1e3]), high + r.choice([0.25, 1e3])])))
        least, greatest = drawing._limits(dim.dtype)
        return r.choice([max(least, low - r.choice([1, 2, 5])), min(greatest, high + r.choice([1, 2, 7]))])

    @rule(
        r=RANDOM,
        how=st.sampled_from(["append", "write_cells", "writer", "transaction", "raise"]),
        evolves=st.sampled_from([False, False, True]),
    )
    def cells_beyond(self, r: Random, how: str, evolves: bool) -> None:
        """`append(table)`, `write_cells` and writers with `grow=True`, and `evolve=True`: one commit."""
        where = [tuple(self._beyond(r, axis) for axis in range(self.schema.ndim)) for _ in range(r.choice([1, 2, 5]))]
        where = list(dict.fromkeys(where))
        if how == "append" and (self.is_dense() or evolves):
            return
        before, seen = copy.deepcopy(self.model.now), (self.schema, self.windows)
        columns = self.columns(r, len(where), subset=self.is_dense() and how != "writer")
        fresh: gs.Attr | None = None
        if evolves:
            fresh = gs.Attr(f"e{self.made}", r.choice(["int64", "float32", "string"]), nullable=True)
            self.made += 1
        attrs = {name: unplain(self.schema.attr(name).dtype, found) for name, found in columns.items()}
        if fresh is not None:
            columns[fresh.name] = drawing.values(r, fresh, len(where))
            attrs[fresh.name] = unplain(fresh.dtype, columns[fresh.name])
        coords = {d.name: coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)}
        self._stage_beyond(where, columns, fresh)
        event("cells beyond", f"{how}{' evolves' if evolves else ''}")
        if how == "append":
            version = self.a.append({**coords, **attrs}, message="beyond")
        elif how == "write_cells":
            options = {"evolve": True} if evolves or r.random() < 0.2 else {}
            version = self.a.write_cells(coords, attrs, grow=True, message="beyond", **options)
        elif how == "writer":
            with self.a.writer(order="any", grow=True, evolve=evolves, message="beyond") as w:
                half = len(where) // 2 if r.random() < 0.5 else len(where)
                for part in (slice(0, half), slice(half, None)):
                    if part.start < len(where) and part.start != part.stop:
                        w.append({n: c[part] for n, c in coords.items()}, {n: v[part] for n, v in attrs.items()})
            version = w.outcome
        else:
            try:
                with gs.transaction(self.uri, "beyond", context=self.a.context) as tx:
                    tx["/main"].write_cells(coords, attrs, grow=True, evolve=evolves)
                    self.look(tx["/main"], self.model.now, r)
                    if how == "raise":
                        raise RuntimeError
            except RuntimeError:
                self._see(*seen)
                self.model.now = before
                assert self.a.refresh() == self.model.newest and self.a.schema == self.schema
                return
            version = tx.version
        self._followed(version, "beyond")

    def _stage_beyond(self, where: list[Place], columns: dict[str, list[Plain]], fresh: gs.Attr | None) -> None:
        """The model's share: the domain holds the cells, the new attribute is there, the cells are written."""
        if not hasattr(self, "first"):
            self.first = set(self.a.schema_names)
        if fresh is not None:
            self._follow("add", "", fresh, fresh.name)
            self._grow_to(self._made_of(attrs=[*self.schema.attrs, fresh]), self.windows)
        ends = {}
        for axis, dim in enumerate(self.schema.dims):
            if not dim.is_text:
                (low, high), used = bounds_of(dim), [place[axis] for place in where]
                if min(used) < low or max(used) > high:
                    ends[axis] = (min(low, *used), max(high, *used))
        self._grow_to(*self._reaching(ends))
        self.model.put(where, columns)
