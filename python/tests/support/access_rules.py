"""Other ways to reach cells in the life of an array: masks, lists that broadcast, NumPy's protocol, arrays and buffers
of the caller. Rules for the machine of `test_state_machine`.
"""

import copy
import itertools
import math
import pickle
from random import Random
from typing import Any

import drawing
import numpy as np
import pytest
from drawing import Window
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from model import Model, Place, Plain, bounds_of, cells_shape, coordinates, plain, shaped
from wheres import condition

import gridstone as gs
from gridstone import errors
from gridstone.column import datatype as dtypes

RANDOM = st.randoms(use_true_random=True)
MASK_CELLS_MAX = 20_000
"""A mask is as large as its array."""


def has_positions(schema: gs.Schema) -> bool:
    """Whether every dimension is of whole numbers or times."""
    return not any(dim.is_text or dtypes.is_float(dim.dtype) for dim in schema.dims)


def is_small(schema: gs.Schema) -> bool:
    """Whether a mask of the array's shape can be made."""
    cells = 1
    for dim in schema.dims:
        cells *= dim.size
    return cells <= MASK_CELLS_MAX


class AccessRules:
    """What the machine does with masks, broadcasting lists, and memory that is the caller's."""

    a: gs.Array
    model: Model
    schema: gs.Schema
    windows: list[Window]

    def is_dense(self) -> bool:
        return not self.schema.sparse

    def can_be_masked(self) -> bool:
        return has_positions(self.schema) and is_small(self.schema)

    def counts_positions(self) -> bool:
        return has_positions(self.schema)

    # Positions.

    def _put_or_look(self, r: Random, target: Any, key: Any, name: str, where: list[Place], shape: Any) -> None:
        """Assigns to these places of one attribute, sometimes one value to all, or not; then reads them."""
        attr = self.schema.attr(name)
        if r.random() < 0.5:
            values = drawing.values(r, attr, len(where))
            value = shaped(attr.dtype, values, shape)
            if values and values[0] is not None and r.random() < 0.3:
                values = [values[0]] * len(where)
                value = shaped(attr.dtype, values[:1], ()) if not dtypes.is_var(attr.dtype) else value
                value = shaped(attr.dtype, values, shape) if dtypes.is_var(attr.dtype) else value
            target[key] = value
            if where:
                self.model.put(where, {name: values}, "last")
                self.committed(self.model.newest + 1)  # type: ignore[attr-defined]
        self.check_dense(self.model.now, name, target[key], where, shape)  # type: ignore[attr-defined]

    @precondition(can_be_masked)
    @rule(r=RANDOM)
    def masks(self, r: Random) -> None:
        """`vindex[mask]` of the array's shape: cells in row order; written and read."""
        mask = np.zeros(self.schema.shape, bool)
        where = sorted(set(drawing.places(r, self.windows, r.choice([0, 1, 4, 20]))))
        for place in where:
            lows = [bounds_of(w.dim)[0] for w in self.windows]
            mask[tuple(c - low for c, low in zip(place, lows, strict=True))] = True
        name = r.choice(self.a.schema_names)
        event("mask", "sparse" if self.schema.sparse else "dense")
        if self.schema.sparse:
            self._check_found(self.a.vindex[mask], where)
            return
        key = mask.tolist() if r.random() < 0.2 else mask
        self._put_or_look(r, self.a[name].vindex, key, name, where, (len(where),))

    def _check_found(self, found: Any, where: list[Place]) -> None:
        """The cells that a sparse array has at these places, in their order."""
        columns = self.numpy_columns(found.to_numpy())  # type: ignore[attr-defined]
        rows = [(p, row) for p in where for row in self.model.now.cells.get(p, [])]
        assert list(zip(*(columns[d.name] for d in self.schema.dims), strict=True)) == [p for p, _ in rows]
        for name in (name for name in columns if name in self.model.dtypes):
            assert columns[name] == [row[name] for _, row in rows]

    @precondition(counts_positions)
    @rule(r=RANDOM)
    def broadcast_lists(self, r: Random) -> None:
        """`vindex` with lists of shapes that broadcast together, and single positions among them."""
        shapes = r.choice([[(3, 1), (1, 2), (), (2,)], [(2,), (), (1,), (2,)], [(1, 1), (2, 1), (3,), ()]])
        places, key = [], []
        for w, shape in zip(self.windows, shapes, strict=False):
            low, size = bounds_of(w.dim)[0], w.dim.size
            picked = np.empty(shape, object)
            picked.ravel()[...] = [r.choice(w.values) for _ in range(picked.size)]
            places.append(picked)
            found = np.array([v - low for v in picked.ravel().tolist()], object).reshape(shape)
            found = found.astype(np.uint64 if size > 2**63 else np.int64)
            if size < 2**63 and r.random() < 0.3:
                found = found - size
            key.append(found if shape else r.choice([found, int(found), found[()]]))
        spread = np.broadcast_arrays(*places)
        where = list(zip(*(part.ravel().tolist() for part in spread), strict=True))
        if self.schema.sparse:
            self._check_found(self.a.vindex[tuple(key)], where)
            return
        name = r.choice(self.a.schema_names)
        self._put_or_look(r, self.a[name].vindex, tuple(key), name, where, spread[0].shape)

    @precondition(is_dense)
    @rule(r=RANDOM)
    def mixed_axes(self, r: Random) -> None:
        """`oindex` with an integer, a slice, a list or a boolean list for each axis."""
        picked, shape, key = [], [], []
        for w, part in zip(self.windows, drawing.positions(r, self.windows), strict=True):
            low, size = bounds_of(w.dim)[0], w.dim.size
            form = r.choice(["as it is", "list", "booleans"])
            if form == "booleans" and size <= MASK_CELLS_MAX:
                chosen = sorted({v - low for v in r.choices(w.values, k=r.choice([0, 1, 3]))})
                part = np.zeros(size, bool)
                part[chosen] = True
                part = part.tolist() if r.random() < 0.3 and size else part
            elif form == "list":
                chosen = [v - low for v in r.choices(w.values, k=r.choice([0, 1, 4]))]
                part = np.array(chosen, np.uint64) if r.random() < 0.5 else chosen
            else:
                found = range(size)[part]
                chosen = list(found) if isinstance(found, range) else found
            if isinstance(chosen, list):
                shape.append(len(chosen))
            picked.append([low + p for p in (chosen if isinstance(chosen, list) else [chosen])])
            key.append(part)
        where: list[Place] = [()]
        for values in picked:
            where = [(*place, v) for place in where for v in values]
        name = r.choice(self.a.schema_names)
        self._put_or_look(r, self.a[name].oindex, tuple(key), name, where, tuple(shape))

    @precondition(is_dense)
    @rule(r=RANDOM)
    def plain_lists(self, r: Random) -> None:
        """Lists, masks, slices and integers in plain brackets, an ellipsis among them: what NumPy makes of them."""
        axes, small, key = [], [], []
        together = r.choice([0, 1, 3])
        for w, part in zip(self.windows, drawing.positions(r, self.windows), strict=True):
            low, size = bounds_of(w.dim)[0], w.dim.size
            form = r.choice(["as it is", "list", "list", "column", "mask"])
            if form == "as it is":
                found = range(size)[part]
                chosen = list(found) if isinstance(found, range) else [found]
                small.append(slice(None) if isinstance(found, range) else 0)
            elif form == "mask" and size <= MASK_CELLS_MAX:
                part = np.zeros(size, bool)
                part[[v - low for v in r.choices(w.values, k=min(together, 1))]] = True
                chosen = np.flatnonzero(part).tolist()
                small.append(np.arange(len(chosen)))
            else:
                chosen = [v - low for v in r.choices(w.values, k=r.choice([1, together]))]
                at = (-1, 1) if form == "column" else (-1,)
                part = np.array(chosen, np.uint64).reshape(at) if form == "column" or r.random() < 0.5 else chosen
                small.append(np.arange(len(chosen)).reshape(at))
            axes.append([low + p for p in chosen])
            key.append(part)
        if r.random() < 0.3:
            at = r.randint(0, len(key))
            key, small = [*key[:at], ..., *key[at:]], [*small[:at], ..., *small[at:]]
        grid = np.arange(math.prod(map(len, axes))).reshape([len(axis) for axis in axes])
        picked = grid[tuple(small)]
        spread = np.unravel_index(np.ravel(picked), grid.shape) if grid.size else [[]] * grid.ndim
        where = list(zip(*([axis[i] for i in along] for axis, along in zip(axes, spread, strict=True)), strict=True))
        name = r.choice(self.a.schema_names)
        event("plain lists", f"{sum(isinstance(part, np.ndarray) for part in small)} of them")
        self._put_or_look(r, self.a[name], tuple(key), name, where, np.shape(picked))

    @precondition(is_dense)
    @rule(r=RANDOM)
    def ellipsis(self, r: Random) -> None:
        """An ellipsis stands for axes that are read whole, or for none; with it a single cell stays an array."""
        key = drawing.positions(r, self.windows)
        where, shape = self.places_of(key)  # type: ignore[attr-defined]
        at = r.randint(0, len(key))
        name = r.choice(self.a.schema_names)
        found = self.a[name][(*key[:at], ..., *key[at:])]
        attr = self.schema.attr(name)
        assert isinstance(found, np.ndarray) and found.shape == cells_shape(attr.dtype, shape)
        assert plain(attr.dtype, found) == self.model.dense(self.model.now, name, where)
        if not any(w.huge for w in self.windows) and self.schema.shape[1:] and is_small(self.schema):
            first = self.windows[0].values[0] - bounds_of(self.windows[0].dim)[0]
            whole = [range(lo, hi + 1) for lo, hi in (bounds_of(w.dim) for w in self.windows[1:])]
            rows = self.model.places([(self.windows[0].values[0],) * 2, *((s[0], s[-1]) for s in whole)])
            self.check_dense(self.model.now, name, self.a[name][first, ...], rows, self.schema.shape[1:])  # type: ignore[attr-defined]

    @precondition(is_dense)
    @rule(r=RANDOM, assign=st.booleans())
    def coordinates_in_steps(self, r: Random, assign: bool) -> None:
        """`loc` with a step along the way; half-open."""
        key, axes, shape = [], [], []
        for w, (lo, hi) in zip(self.windows, drawing.box(r, self.windows), strict=True):
            step = r.choice([None, 1, 2, 3])
            chosen = range(lo, hi + 1, step or 1)
            plainly = drawing.coordinate_slice(r, w.dim, lo, hi)
            key.append(slice(plainly.start, plainly.stop, step))
            axes.append(chosen)
            shape.append(len(chosen))
        where: list[Place] = [()]
        for axis in axes:
            where = [(*place, c) for place in where for c in axis]
        name = r.choice(self.a.schema_names)
        target, attr = self.a[name].loc, self.schema.attr(name)
        if assign:
            columns = {name: drawing.values(r, attr, len(where))}
            target[tuple(key)] = shaped(attr.dtype, columns[name], tuple(shape))
            self.model.put(where, columns)
            self.committed(self.model.newest + 1)  # type: ignore[attr-defined]
        self.check_dense(self.model.now, name, target[tuple(key)], where, tuple(shape))  # type: ignore[attr-defined]

    # As NumPy and Python see it.

    @rule(r=RANDOM)
    def says_what_it_is(self, r: Random) -> None:
        """Schema, shape, domain and names; by JSON, pickles and Arrow too."""
        a, schema = self.a, self.schema
        assert a.schema == schema == gs.Schema.from_json(schema.to_json()) == pickle.loads(pickle.dumps(schema))
        assert a.dims == tuple(d.name for d in schema.dims) and a.ndim == len(self.windows)
        assert a.domain == tuple(d.domain for d in schema.dims) and a.tile == tuple(d.tile for d in schema.dims)
        assert a.sparse is schema.sparse and a.mode == "r+" and a.uri == self.uri  # type: ignore[attr-defined]
        assert a.schema_names == [attr.name for attr in schema.attrs]
        if has_positions(schema):
            assert a.shape == tuple(d.size for d in schema.dims)
            assert a.chunks == tuple(d.positions_per_tile for d in schema.dims)
        else:
            with pytest.raises(errors.SchemaError):
                a.shape  # noqa: B018
        for shown in (repr(a), a._repr_html_(), repr(schema), schema._repr_html_()):
            assert all(name.isascii() is False or name in shown for name in a.schema_names)
        fields = schema.to_arrow()
        assert fields.names == [*a.dims, *a.schema_names]
        again = gs.Schema.from_arrow(fields, dims=list(schema.dims), sparse=schema.sparse)
        assert [(x.name, x.dtype, x.nullable) for x in again.attrs] == [
            (x.name, x.dtype, x.nullable) for x in schema.attrs
        ]
        kinds = a.fragments.column("kind").to_pylist()
        assert len(kinds) >= (1 if self.model.written_places(self.model.now) else 0)

    @precondition(is_dense)
    @rule(r=RANDOM)
    def as_numpy_sees_it(self, r: Random) -> None:
        """`numpy.asarray` of an attribute, and rows one after the other; of results, tensors without a copy."""
        name = r.choice(self.a.schema_names)
        dtype = self.schema.attr(name).dtype
        bounds = drawing.box(r, self.windows)
        shape, where = tuple(hi - lo + 1 for lo, hi in bounds), self.model.places(bounds)
        expected = self.model.dense(self.model.now, name, where)
        order = r.choice(["row", "col", "global"])
        found = self.a.read(drawing.box_form(r, self.windows, bounds), name, order=order)
        assert len(found) == len(where) and found.keys() == [name]
        if self.schema.attr(name).nullable:
            with pytest.raises(errors.UnsupportedError):
                np.asarray(found)
        else:
            self.check_dense(self.model.now, name, np.asarray(found), where, shape)  # type: ignore[attr-defined]
            if not dtypes.is_var(dtype) and np.asarray(found).dtype.kind in "iufc":
                assert plain(dtype, np.from_dlpack(found)) == expected
        for axis, (lo, hi) in enumerate(bounds):
            along = coordinates(self.schema.dims[axis], list(range(lo, hi + 1)))
            assert np.array_equal(found[self.schema.dims[axis].name], along)
        if is_small(self.schema) and not self.schema.attr(name).nullable:
            every = self.model.places([bounds_of(d) for d in self.schema.dims])
            whole = np.asarray(self.a[name])
            self.check_dense(self.model.now, name, whole, every, self.schema.shape)  # type: ignore[attr-defined]
            assert len(list(self.a)) == len(self.a) == self.schema.shape[0]

    @rule(r=RANDOM)
    def points_in_other_forms(self, r: Random) -> None:
        """`points` of tuples and matrices, of one attribute."""
        written = sorted(self.model.written_places(self.model.now))
        where = drawing.places(r, self.windows, r.choice([1, 6])) + (r.choices(written, k=4) if written else [])
        columns = [coordinates(d, [p[i] for p in where]) for i, d in enumerate(self.schema.dims)]
        same = len({d.dtype for d in self.schema.dims}) == 1
        given: Any = np.stack(columns, axis=1) if same and r.random() < 0.6 else tuple(columns)
        name = r.choice(self.a.schema_names)
        found = plain(self.model.dtypes[name], self.a[name].points(given))
        if self.schema.sparse:
            assert found == [row[name] for p in where for row in self.model.now.cells.get(p, [])]
        else:
            assert found == self.model.dense(self.model.now, name, where)

    # Into the caller's memory.

    @rule(r=RANDOM)
    def read_out(self, r: Random) -> None:
        """`read(out=)`: arrays of the caller are filled, in every order and layout; there is none for cells."""
        bounds, order = drawing.box(r, self.windows), r.choice(["row", "col", "global", "any"])
        form = drawing.box_form(r, self.windows, bounds)
        names = r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs)))
        if self.schema.sparse:
            with pytest.raises(errors.UnsupportedError, match="out="):
                self.a.read(form, names, order=order, out={name: np.zeros(1) for name in names})
            return
        flat = order in ("global", "any")
        where = self.model.places(bounds, "global" if flat else "row")
        shape = (len(where),) if flat else tuple(hi - lo + 1 for lo, hi in bounds)
        out = {name: _empty(r, self.schema.attr(name), shape) for name in names}
        given: Any = out[names[0]] if len(names) == 1 and r.random() < 0.5 else out
        self.a.read(form, names, order=order, out=given)
        for name in names:
            self.check_dense(self.model.now, name, out[name], where, shape)  # type: ignore[attr-defined]

    @rule(r=RANDOM, how=st.sampled_from(["box", "boxes", "where"]), change=st.booleans())
    def fill_buffers(self, r: Random, how: str, change: bool) -> None:
        """`read_into` buffers that are too small: portions are the whole read of the version that it began with."""
        order = r.choice(["row", "col", "global", "any"])
        all_bounds, forms = self._boxes(r) if how == "boxes" else ([drawing.box(r, self.windows)], [])  # type: ignore[attr-defined]
        form: Any = forms if how == "boxes" else drawing.box_form(r, self.windows, all_bounds[0])
        rows, where = self._inside(all_bounds, order), None  # type: ignore[attr-defined]
        if how == "where":
            where, judge = condition(r, self.windows, self.schema.attrs)
            rows = [(place, row) for place, row in rows if judge(place, row) is True]
        names = r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs)))
        rows = copy.deepcopy([(place, tuple(row[name] for name in names)) for place, row in rows])
        held = Buffers(r, self.schema, [*(d.name for d in self.schema.dims), *names])
        filling = self.a.read_into(held.buffers, form, where, order)
        got: list[Any] = []
        while not filling.complete:
            try:
                count = filling.submit(held.buffers)
            except errors.BudgetError:
                event("read_into: buffers were too small for a cell")
                held.grow()
                continue
            got += held.rows(count)
            if change and r.random() < 0.3:
                change = False
                self.committed(self.change(r, self.a))  # type: ignore[attr-defined]
        event("read_into", how)
        ndim = self.schema.ndim
        found = [(row[:ndim], row[ndim:]) for row in got]
        if order == "any":
            found, rows = sorted(found, key=repr), sorted(rows, key=repr)
        assert found == rows


def _empty(r: Random, attr: gs.Attr, shape: tuple[int, ...]) -> Any:
    """An array to be filled, in either memory order, perhaps a part of a larger one."""
    whole = cells_shape(attr.dtype, shape)
    made = np.empty((*whole[:-1], whole[-1] * 2) if whole else whole, dtypes.numpy_of(attr.dtype))
    made = made[..., ::2] if whole and r.random() < 0.3 else np.empty(whole, made.dtype, order=r.choice(["C", "F"]))
    return np.ma.MaskedArray(made, mask=np.zeros(whole, bool)) if attr.nullable else made


class Buffers:
    """Buffers for some columns of an array, and what is in them in plain form."""

    def __init__(self, r: Random, schema: gs.Schema, names: list[str]) -> None:
        self.schema, self.names = schema, names
        self.cells, self.bytes = r.choice([1, 2, 7, 50]), r.choice([1, 16, 200, 5_000])
        self.buffers: dict[str, Any] = {}
        self._make()

    def grow(self) -> None:
        """Larger ones."""
        self.cells, self.bytes = self.cells + 1, self.bytes * 8
        self._make()

    def _kind(self, name: str) -> tuple[str, bool, gs.Attr | None]:
        """Its datatype in the buffers, whether it may be null, and the attribute."""
        if name in [d.name for d in self.schema.dims]:
            return self.schema.dim(name).dtype, False, None
        attr = self.schema.attr(name)
        return attr.codes if attr.categories is not None else attr.dtype, attr.nullable, attr  # type: ignore[return-value]

    def _make(self) -> None:
        for name in self.names:
            dtype, nullable, _ = self._kind(name)
            made: Any = {}
            if dtypes.is_var(dtype):
                base = np.dtype(dtypes.base_of(dtype) if dtypes.is_list(dtype) else np.uint8)
                made["values"] = np.zeros(max(1, self.bytes // base.itemsize), base)
                made["offsets"] = np.zeros(self.cells + 1, np.int64)
            else:
                made["values"] = np.zeros((self.cells, *dtypes.shape_of(dtype)), dtypes.numpy_of(dtype))
            if nullable:
                made["validity"] = np.zeros(self.cells, bool)
            self.buffers[name] = made["values"] if list(made) == ["values"] else made

    def rows(self, count: int) -> list[tuple[Plain, ...]]:
        """The first cells, a tuple of the columns' values each."""
        return list(zip(*(self._column(name, count) for name in self.names), strict=True))

    def _column(self, name: str, count: int) -> list[Any]:
        dtype, nullable, attr = self._kind(name)
        held = self.buffers[name]
        parts = held if isinstance(held, dict) else {"values": held}
        valid = parts["validity"][:count].tolist() if nullable else [True] * count
        if dtypes.is_var(dtype):
            found = _cut(dtype, parts, count)
        elif attr is None:
            values = parts["values"][:count]
            found = (values.view(np.int64) if values.dtype.kind in "mM" else values).tolist()
        elif attr.categories is not None:
            known = drawing.values_of(attr)
            found = [known[code] if ok else None for code, ok in zip(parts["values"][:count], valid, strict=True)]
        else:
            found = plain(dtype, parts["values"][:count])
        return [value if ok else None for value, ok in zip(found, valid, strict=True)]


def _cut(dtype: str, parts: dict[str, Any], count: int) -> list[Plain]:
    """Texts, bytes and lists between their offsets, which count bytes."""
    values, offsets = parts["values"], parts["offsets"][: count + 1].tolist()
    size = values.dtype.itemsize
    cells = [values[lo // size : hi // size] for lo, hi in itertools.pairwise(offsets)]
    if dtypes.is_list(dtype):
        return [tuple(plain(dtypes.base_of(dtype), cell)) for cell in cells]
    found = [cell.tobytes() for cell in cells]
    return [cell.decode() for cell in found] if dtype == "string" else found  # type: ignore[return-value]
