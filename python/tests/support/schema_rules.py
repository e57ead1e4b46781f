"""Changes of schema in the life of an array: rules for the machine of `test_state_machine`, and the model's share."""

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import drawing
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from model import Model, State, bounds_of

import gridstone as gs
from gridstone import errors
from gridstone.column import datatype as dtypes

RANDOM = st.randoms(use_true_random=True)
CELLS_MAX = 3_000


class SchemaRules(RuleBasedStateMachine):
    """`alter` and `resize`; states know the schema that they have, and the coordinates that are in use of it."""

    a: gs.Array
    schema: gs.Schema
    windows: list[drawing.Window]
    model: Model
    # How many names were made, and the attributes that the array was created with, by the names that they have now.
    made = 0
    first: set[str]

    @abstractmethod
    def committed(self, version: int, message: str | None = None) -> None:
        """The model follows a commit."""

    @contextmanager
    def as_of(self, state: State) -> Iterator[None]:
        """Looks with the schema of an older state."""
        now = (self.schema, self.windows)
        self._see(*self.model.shapes.get(state.shape, now))
        try:
            yield
        finally:
            self._see(*now)

    def _see(self, schema: gs.Schema, windows: list[drawing.Window]) -> None:
        self.schema, self.windows, self.model.schema = schema, windows, schema
        self.model.dtypes = {attr.name: attr.dtype for attr in schema.attrs}

    def _become(self, schema: gs.Schema, windows: list[drawing.Window], message: str) -> None:
        """The model follows a change that was made, unless it was none."""
        assert self.a.dims == tuple(dim.name for dim in schema.dims), "before anything else asks for the schema"
        assert self.a.schema == schema
        changed = schema != self.schema
        self.model.shapes.setdefault(self.model.now.shape, (self.schema, self.windows))
        if changed:
            self.model.now.shape += 1
            self.model.shapes[self.model.now.shape] = (schema, windows)
            self._see(schema, windows)
            self.committed(self.model.newest + 1, message)

    def _made_of(self, dims: Any = None, attrs: Any = None) -> gs.Schema:
        old = self.schema
        options: dict[str, Any] = {"tile_order": old.tile_order, "cell_order": old.cell_order, "sparse": old.sparse}
        options |= {"capacity": old.capacity, "duplicates": old.duplicates, "coord_filters": old.coord_filters}
        return gs.Schema(dims or old.dims, attrs or old.attrs, **options)

    @rule(r=RANDOM, how=st.sampled_from(["add", "add", "drop", "rename", "nullable", "fill", "filters", "categories"]))
    def alter(self, r: Random, how: str) -> None:
        """Adds, drops, renames an attribute, changes what it reads as where nothing was written, its filters, or adds
        categories."""
        if not hasattr(self, "first"):
            self.first = set(self.a.schema_names)
        attrs, attr = list(self.schema.attrs), r.choice(self.schema.attrs)
        place, name = attrs.index(attr), f"n{self.made}"
        self.made += 1
        changes: dict[str, Any] = {}
        if how == "add":
            new = drawing.attribute(r, name)
            attrs.append(new)
            changes["add"] = new
        elif how == "drop" and len(attrs) > 1:
            attrs.remove(attr)
            changes["drop"] = attr.name
        elif how == "rename":
            attrs[place] = _like(attr, name=name)
            changes["rename"] = {attr.name: name}
        elif how == "filters":
            filters = drawing.rounded(r, attr.dtype, "zstd:2") if attr.categories is None else "zstd:2"
            attrs[place] = _like(attr, filters=filters)
            changes["filters"] = {attr.name: filters}
        elif how == "categories":
            if attr.categories is None:
                return
            more = [v for v in drawing.some_categories(r, attr.dtype, 3) if v not in drawing.as_given(attr)]
            attrs[place] = _like(attr, categories=[*attr.categories, *more])
            changes["categories"] = {attr.name: more}
        elif self.schema.sparse and attr.name not in self.first:
            return
        elif how == "nullable" and not dtypes.is_time(attr.dtype):
            attrs[place] = _like(attr, nullable=True)
            changes["nullable"] = attr.name
        elif how == "fill":
            blank = dtypes.default_fill(attr.dtype) if attr.categories is None else r.choice(attr.categories)
            fill = blank if r.random() < 0.5 else attr.fill
            attrs[place] = _like(attr, fill=fill)
            changes["fill"] = {attr.name: fill}
        if not changes:
            return
        self.a.alter(**changes, message=how)
        self._follow(how, attr.name, attrs[-1] if how == "add" else None, name)
        self._become(self._made_of(attrs=attrs), self.windows, how)

    def _follow(self, how: str, old: str, added: gs.Attr | None, new: str) -> None:
        """What becomes of the model's cells."""
        now = self.model.now
        rows = [row for found in now.cells.values() for row in found]
        if added is not None:
            now.boxes[new] = {}
            for row in rows:
                row[new] = self.model.blank(added)
        elif how == "drop":
            del now.boxes[old]
            for row in rows:
                del row[old]
        elif how == "rename":
            now.boxes[new] = now.boxes.pop(old)
            for row in rows:
                row[new] = row.pop(old)
            self.first |= {new} if old in self.first else set()

    @rule(r=RANDOM, how=st.sampled_from(["new", "swap", "of an attribute", "clash"]), staged=st.booleans())
    def rename_dimensions(self, r: Random, how: str, staged: bool) -> None:
        """Gives a dimension a new name, that of another one, or that of an attribute, which get another one then; what
        is taken is refused. What was staged under the old names is committed under the new ones."""
        if not hasattr(self, "first"):
            self.first = set(self.a.schema_names)
        dims, attrs, attr = list(self.schema.dims), list(self.schema.attrs), r.choice(self.schema.attrs)
        axis, other, name = r.randrange(len(dims)), r.randrange(len(dims)), f"d{self.made}"
        old = dims[axis].name
        self.made += 1
        if how == "clash":
            taken = [part.name for part in (*dims, *attrs) if part.name != old]
            with pytest.raises(errors.SchemaError, match="name"):
                self.a.alter(rename={old: r.choice(taken)})
            assert self.a.refresh() == self.model.newest and self.a.schema == self.schema
            return
        renamed = {old: name}
        if how == "swap" and axis != other:
            renamed = {old: dims[other].name, dims[other].name: old}
        elif how == "of an attribute":
            renamed = {old: attr.name, attr.name: f"n{self.made - 1}"}
        before = copy.deepcopy(self.model.now)
        receipt = self.change(r, self.a, commit=False) if staged and attr.name not in renamed else None  # type: ignore[attr-defined]
        after, self.model.now = self.model.now, before
        seen = self.a.at(version=self.a.version)
        self.a.alter(rename=renamed, message="dimensions")
        if attr.name in renamed:
            attrs[attrs.index(attr)] = _like(attr, name=renamed[attr.name])
            self._follow("rename", attr.name, None, renamed[attr.name])
        dims = [_named(dim, renamed.get(dim.name, dim.name)) for dim in dims]
        windows = [w._replace(dim=dim) for w, dim in zip(self.windows, dims, strict=True)]
        assert seen.dims == tuple(dim.name for dim in self.schema.dims)
        self._become(self._made_of(dims, attrs), windows, "dimensions")
        assert gs.diff(seen, self.a).schema != ()
        if receipt is not None:
            after.shape = self.model.now.shape
            self.model.now = after
            version = gs.commit(self.uri, [receipt], message="staged", context=self.a.context)  # type: ignore[attr-defined]
            assert self.a.refresh() == version
            self.committed(version, "staged")

    def check_global_order(self, r: Random) -> None:
        """Cells of a dense array that are read in global order get their places and coordinates in every form."""
        whole = [(w.values[0], w.values[-1]) for w in self.windows]
        for bounds in (whole, drawing.box(r, self.windows)):
            order = r.choice(["global", "any"])
            found = self.a.read(drawing.box_form(r, self.windows, bounds), order=order)
            where, shape = self.model.places(bounds), tuple(hi - lo + 1 for lo, hi in bounds)
            made = found.to_dense()
            for shown in (found.in_place(), made if isinstance(made, dict) else {self.schema.attrs[0].name: made}):
                assert list(shown) == self.a.schema_names
                for name, values in shown.items():
                    self.check_dense(self.model.now, name, values, where, shape)  # type: ignore[attr-defined]
            if self.in_arrow(bounds):  # type: ignore[attr-defined]
                self.check_table(self.model.now, self.arrow_columns(found.to_arrow()), bounds, order)  # type: ignore[attr-defined]

    @rule(r=RANDOM, by_shape=st.sampled_from([False, False, True]))
    def resize(self, r: Random, by_shape: bool) -> None:
        """Makes one dimension longer, at the high end or at both."""
        self.grow(r, by_shape)
        if not self.schema.sparse:
            self.check_global_order(r)
            self.load_box(r, "npz")  # type: ignore[attr-defined]

    def _growing(self) -> Sequence[int]:
        """The dimensions whose growth may cut a tile; all if there is none."""
        tiled = [
            axis
            for axis, (dim, _, huge) in enumerate(self.windows)
            if not huge and dim.tile is not None and (dtypes.is_float(dim.dtype) or dtypes.ticks_of(dim.tile) > 1)
        ]
        return tiled or range(self.schema.ndim)

    def grow(self, r: Random, by_shape: bool = False) -> None:
        """As `resize` does; nothing is read afterwards."""
        axis = r.choice(self._growing() if r.random() < 0.7 else range(self.schema.ndim))
        window = self.windows[axis]
        dim, (low, high) = window.dim, bounds_of(window.dim)
        if dim.is_text:
            with pytest.raises(errors.UnsupportedError, match="string"):
                self.a.resize({dim.name: ("a", "b")})
            return
        if dtypes.is_float(dim.dtype):
            ends = (low - r.choice([0.0, 0.0, 1.5]), high + abs(high) + 1.0)
            ends = bounds_of(gs.Dim("x", ends, None, dim.dtype))
            values = sorted({*window.values, *ends})
        else:
            cells = 1
            for other in self.windows:
                cells *= len(other.values)
            least, greatest = drawing._limits(dim.dtype)
            step = 1 if dim.tile is None else dtypes.ticks_of(dim.tile)
            # Steps that are no multiples of a tile, and that make the domain end where the type does.
            part = r.randint(0, 2 * min(step, 50))
            downs = [0, 1, step, 2 * step - 1, step + 1, part, min(low - least, 2 * part)]
            down = 0 if by_shape else r.choice(downs)
            ends = (low if low - down < least else low - down, min(high + r.choice([0, 1, 2, 3, part]), greatest))
            values = list(window.values)
            if not window.huge and (self.schema.sparse or cells // len(values) * (ends[1] - ends[0] + 1) <= CELLS_MAX):
                values = list(range(ends[0], ends[1] + 1)) if ends[1] - ends[0] < CELLS_MAX else values
            if self.schema.sparse:
                values = sorted({*values, *ends})
        domain = tuple(drawing.key_value(dim, end) for end in ends)
        new = gs.Dim(dim.name, domain, dim.tile, dim.dtype)
        dims = [new if i == axis else d for i, d in enumerate(self.schema.dims)]
        windows = [w._replace(dim=new, values=values) if i == axis else w for i, w in enumerate(self.windows)]
        if by_shape and not any(dtypes.is_float(d.dtype) or d.is_text for d in self.schema.dims):
            self.a.resize([new.size if i == axis else None for i in range(self.schema.ndim)], message="resize")
        else:
            self.a.resize({dim.name: domain}, message="resize")
        self._become(self._made_of(dims=dims), windows, "resize")


def _like(attr: gs.Attr, **changes: Any) -> gs.Attr:
    kept = {"name": attr.name, "nullable": attr.nullable, "fill": attr.fill, "filters": attr.filters}
    if attr.categories is not None:
        kept |= {"categories": attr.categories, "ordered": attr.ordered, "codes": attr.codes}
    kept |= changes
    return gs.Attr(kept.pop("name"), attr.dtype, **kept)


def _named(dim: gs.Dim, name: str) -> gs.Dim:
    if dim.is_text:
        return gs.Dim(name, dtype="string", max_bytes=dim.max_bytes)
    return gs.Dim(name, dim.domain, dim.tile, dim.dtype)
