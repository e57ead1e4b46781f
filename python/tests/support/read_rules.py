"""Reads in the life of an array: rules for the machine of `test_state_machine`, and how what they give is judged."""

from random import Random
from typing import Any

import drawing
import numpy as np
from drawing import Window
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from model import Model, Place, State, as_arrow_shows, bounds_of, cells_shape, plain
from plainly import Plainly

import gridstone as gs
from gridstone.column import datatype as dtypes

RANDOM = st.randoms(use_true_random=True)
ORDERS = ["row", "col", "global", "any"]


class ReadRules(Plainly):
    """What the machine reads: boxes, positions, coordinates and streams, now or at a version."""

    a: gs.Array
    model: Model
    schema: gs.Schema
    windows: list[Window]

    def is_dense(self) -> bool:
        return not self.schema.sparse

    def is_sparse(self) -> bool:
        return self.schema.sparse

    def places_of(self, key: tuple[Any, ...]) -> tuple[list[Place], tuple[int, ...]]:
        """The places that a key of positions means, by NumPy's rules, and the shape of the outcome."""
        axes, shape = [], []
        for w, part in zip(self.windows, key, strict=True):
            low, found = bounds_of(w.dim)[0], range(w.dim.size)[part]
            if isinstance(found, range):
                shape.append(len(found))
            axes.append([low + p for p in (found if isinstance(found, range) else [found])])
        mesh = [()]
        for axis in axes:
            mesh = [(*place, c) for place in mesh for c in axis]
        return mesh, tuple(shape)

    def check_dense(self, state: State, name: str, found: Any, where: list[Place], shape: tuple[int, ...]) -> None:
        """An attribute of a dense read against the model."""
        attr = self.schema.attr(name)
        if found is np.ma.masked:
            assert shape == ()
            assert self.model.dense(state, name, where) == [None]
            return
        # NumPy would make a text of its own type of it, which ends before a zero; arrays of no axis hold it as it is.
        if dtypes.is_var(attr.dtype) and shape == () and not (isinstance(found, np.ndarray) and found.ndim == 0):
            boxed = np.empty(1, object)
            boxed[0] = found
            found = boxed.reshape(())
        found = found if np.ma.isMaskedArray(found) else np.asarray(found)
        assert found.shape == cells_shape(attr.dtype, shape)
        assert plain(attr.dtype, found) == self.model.dense(state, name, where), name

    def check_rows(
        self, state: State, columns: dict[str, list[Any]], bounds: Any, order: str, arrow: bool = False
    ) -> None:
        """Cells of a sparse read against the model, in order; "any" in no order."""
        names = [name for name in columns if name in self.model.dtypes]
        expected = self.model.rows(state, bounds, order)
        rows = [tuple(row[name] for name in names) for _, row in expected]
        if arrow:
            shown = [as_arrow_shows(self.model.dtypes[n], [row[i] for row in rows]) for i, n in enumerate(names)]
            rows = list(zip(*shown, strict=True)) if rows else []
        wanted = [(place, row) for (place, _), row in zip(expected, rows, strict=True)]
        dims = [columns[d.name] for d in self.schema.dims]
        got = list(zip(zip(*dims, strict=True), zip(*(columns[n] for n in names), strict=True), strict=True))
        if order == "any":
            assert sorted(got, key=repr) == sorted(wanted, key=repr)
        else:
            assert got == wanted

    def look(self, a: gs.Array, state: State, r: Random) -> None:
        """One read of a random box in a random order, in a random form."""
        with self.as_of(state):  # type: ignore[attr-defined]
            bounds, order = drawing.box(r, self.windows), r.choice(ORDERS)
            form = drawing.box_form(r, self.windows, bounds)
            names = r.sample(a.schema_names, r.randint(1, len(a.schema_names)))
            # Of what is not damaged nothing is left out.
            damaged = r.choice(["error", "error", "skip"])
            found = a.read(form, names, order=order, damaged=damaged)
            assert found.damage == ()
            self.check_result(found, state, bounds, order, r)

    def check_result(self, found: Any, state: State, bounds: Any, order: str, r: Random) -> None:
        names = [name for name in found if name in self.model.dtypes]
        how = r.choice(["numpy", "arrow", "pandas"]) if self.in_arrow(bounds) else "numpy"
        if how == "numpy":
            columns = found.to_numpy()
            if self.schema.sparse:
                self.check_rows(state, self.numpy_columns(columns), bounds, order)
                return
            shape = tuple(hi - lo + 1 for lo, hi in bounds)
            where = self.model.places(bounds, "global" if order in ("global", "any") else "row")
            for name in names:
                self.check_dense(
                    state, name, columns[name], where, (len(where),) if order in ("global", "any") else shape
                )
            return
        table = found.to_arrow()
        columns = self.arrow_columns(table)
        if how == "pandas":
            assert len(found.to_pandas()) == table.num_rows
        self.check_table(state, columns, bounds, order)

    def check_table(self, state: State, columns: dict[str, list[Any]], bounds: Any, order: str) -> None:
        """Cells with their coordinates, of a sparse or a dense array."""
        if self.schema.sparse:
            self.check_rows(state, columns, bounds, order, arrow=True)
            return
        where = self.model.places(bounds, order)
        assert list(zip(*(columns[d.name] for d in self.schema.dims), strict=True)) == where
        for name in (n for n in columns if n in self.model.dtypes):
            assert columns[name] == as_arrow_shows(self.model.dtypes[name], self.model.dense(state, name, where))

    @rule(r=RANDOM)
    def read(self, r: Random) -> None:
        """`read(box, attrs, order)` in each form."""
        self.look(self.a, self.model.now, r)

    @precondition(is_dense)
    @rule(r=RANDOM)
    def read_positions(self, r: Random) -> None:
        """`a[…]`, `a["v"][…]` by NumPy's rules."""
        key = drawing.positions(r, self.windows)
        where, shape = self.places_of(key)
        found = self.a[key]
        if len(self.schema.attrs) == 1:
            found = {self.schema.attrs[0].name: found}
        for name, values in found.items():
            self.check_dense(self.model.now, name, values, where, shape)
        name = r.choice(self.a.schema_names)
        self.check_dense(self.model.now, name, self.a[name][key], where, shape)

    @precondition(is_sparse)
    @rule(r=RANDOM)
    def read_sparse_positions(self, r: Random) -> None:
        """`a[…]` of a sparse array: positions where there are some, `:` of floats and texts."""
        bounds = drawing.box(r, self.windows)
        key = []
        for axis, (w, (lo, hi)) in enumerate(zip(self.windows, bounds, strict=True)):
            if dtypes.is_float(w.dim.dtype) or w.dim.is_text:
                key.append(slice(None))
                bounds[axis] = bounds_of(w.dim)
            else:
                low = bounds_of(w.dim)[0]
                key.append(slice(lo - low, hi - low + 1) if lo < hi or r.random() < 0.5 else lo - low)
        self.check_rows(self.model.now, self.numpy_columns(self.a[tuple(key)].to_numpy()), bounds, "row")

    @rule(r=RANDOM)
    def read_coordinates(self, r: Random) -> None:
        """`a.loc[…]`: half-open slices and single coordinates."""
        bounds = drawing.box(r, self.windows)
        key, shape = [], []
        for w, (lo, hi) in zip(self.windows, bounds, strict=True):
            if lo == hi and r.random() < 0.5:
                key.append(drawing.key_value(w.dim, lo))
                continue
            key.append(drawing.coordinate_slice(r, w.dim, lo, hi))
            shape.append(0 if self.schema.sparse else hi - lo + 1)
        name = r.choice(self.a.schema_names)
        if self.schema.sparse:
            found = self.numpy_columns(self.a.loc[tuple(key)].to_numpy())
            self.check_rows(self.model.now, found, bounds, "row")
            return
        found = self.a[name].loc[tuple(key)]
        self.check_dense(self.model.now, name, found, self.model.places(bounds), tuple(shape))

    @rule(r=RANDOM, batch_bytes=st.sampled_from([1, 64, 1000, "64MiB"]))
    def scan(self, r: Random, batch_bytes: int | str) -> None:
        """A stream in tiny batches or large ones, in every order."""
        bounds, order = drawing.box(r, self.windows), r.choice(ORDERS)
        if not self.in_arrow(bounds):
            return
        names = r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs)))
        table = self.a.scan(drawing.box_form(r, self.windows, bounds), names, None, order, batch_bytes).to_arrow()
        self.check_table_in_any_order(self.arrow_columns(table), bounds, order)

    def check_table_in_any_order(self, columns: dict[str, list[Any]], bounds: Any, order: str) -> None:
        if self.schema.sparse or order != "any":
            self.check_table(self.model.now, columns, bounds, order)
            return
        where = list(zip(*(columns[d.name] for d in self.schema.dims), strict=True))
        assert sorted(where) == self.model.places(bounds)
        for name in (n for n in columns if n in self.model.dtypes):
            assert columns[name] == as_arrow_shows(
                self.model.dtypes[name], self.model.dense(self.model.now, name, where)
            )
