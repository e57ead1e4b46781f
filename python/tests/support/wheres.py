"""Random conditions on any schema, as `gs.col` builds them and as the oracle judges them, cell by cell; and the rule of
the state machine that reads with them.
"""

import operator
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import drawing
import numpy as np
from drawing import Window
from hypothesis import strategies as st
from hypothesis.stateful import rule
from model import NAT, Bounds, Model, Place, Plain, State, as_arrow_shows, coordinates

import gridstone as gs
from gridstone.column import datatype as dtypes

Judge = Callable[[Place, dict[str, Plain]], bool | None]
"""Whether a condition is true of a cell with these values of all attributes; None: unknown."""

_SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def condition(r: Random, windows: Sequence[Window], attrs: Sequence[gs.Attr], depth: int = 2) -> tuple[Any, Judge]:
    """Comparisons and null tests, joined at random."""
    kind = r.random()
    if depth and kind < 0.15:
        inner, judge = condition(r, windows, attrs, depth - 1)
        return ~inner, lambda place, row: None if (found := judge(place, row)) is None else not found
    if depth and kind < 0.5:
        (a, x), (b, y) = condition(r, windows, attrs, depth - 1), condition(r, windows, attrs, depth - 1)
        every = r.random() < 0.6
        return (a & b) if every else (a | b), lambda place, row: _joined(x(place, row), y(place, row), every)
    return _of_dim(r, windows) if r.random() < 0.25 else _of_attr(r, r.choice(attrs))


def _joined(a: bool | None, b: bool | None, every: bool) -> bool | None:
    if (not every) in (a, b):
        return not every
    return None if None in (a, b) else every


def _of_dim(r: Random, windows: Sequence[Window]) -> tuple[Any, Judge]:
    axis = r.randrange(len(windows))
    dim, tick = windows[axis].dim, r.choice(windows[axis].values)
    sign = r.choice(list(_SIGNS))
    value = coordinates(dim, [tick])[0]
    return _compared(gs.col(dim.name), sign, value), lambda place, row: _SIGNS[sign](place[axis], tick)


def _of_attr(r: Random, attr: gs.Attr) -> tuple[Any, Judge]:
    name, column = attr.name, gs.col(attr.name)
    # Of several numbers it can only be said whether they are there.
    scalar = dtypes.is_primitive(attr.dtype) and not dtypes.is_complex(attr.dtype)
    single = scalar or attr.dtype in ("string", "bytes")
    if not single or r.random() < 0.15:
        return column.is_null(), lambda place, row: row[name] is None
    if attr.dtype == "bool":
        return column, lambda place, row: row[name]
    limit, sign = r.choice(drawing.pool(attr.dtype, False, name == "blob")), r.choice(list(_SIGNS))
    if attr.ordered and sign not in ("==", "!="):
        known = drawing.values_of(attr)
        limit = r.choice(known)
        places = {value: place for place, value in enumerate(known)}

        def by_place(place: Place, row: dict[str, Plain]) -> bool | None:
            return None if row[name] is None else _SIGNS[sign](places[row[name]], places[limit])

        return _compared(column, sign, _value(attr.dtype, limit)), by_place

    def judge(place: Place, row: dict[str, Plain]) -> bool | None:
        return None if row[name] is None else _holds(attr.dtype, sign, row[name], limit)

    return _compared(column, sign, _value(attr.dtype, limit)), judge


def _compared(column: Any, sign: str, value: Any) -> Any:
    return _SIGNS[sign](column, value)


def _holds(dtype: str, sign: str, found: Any, limit: Any) -> bool:
    if dtypes.is_float(dtype):
        return _SIGNS[sign](float(found), float(limit))
    if NAT in (found, limit) and dtypes.is_time(dtype):
        return sign == "!="
    if dtype == "string":
        return _SIGNS[sign](found.encode(), limit.encode())
    return _SIGNS[sign](found, limit)


def _value(dtype: str, limit: Any) -> Any:
    """A value in plain form as users write it."""
    if dtypes.is_float(dtype):
        return float(limit)
    if dtypes.is_time(dtype):
        kind = np.datetime64 if dtype.startswith("datetime") else np.timedelta64
        return kind("NaT" if limit == NAT else limit, dtypes.unit_of(dtype))
    return limit


def selected(
    model: Model, state: State, bounds: Bounds, order: str, judge: Judge
) -> list[tuple[Place, dict[str, Plain]]]:
    """The cells of a box that a condition selects, in this order; of a dense array the unwritten ones too."""
    if model.schema.sparse:
        rows = model.rows(state, bounds, order)
    else:
        places = model.places(bounds, order)
        columns = {name: model.dense(state, name, places) for name in model.dtypes}
        rows = [(place, {name: found[i] for name, found in columns.items()}) for i, place in enumerate(places)]
    return [(place, row) for place, row in rows if judge(place, row) is True]


class WhereRules:
    """What the state machine does with conditions."""

    a: gs.Array
    model: Model
    schema: gs.Schema
    windows: list[Window]

    @rule(r=st.randoms(use_true_random=True))
    def read_where(self, r: Random) -> None:
        """`read(where=)` and `scan(where=)`, as an expression or as text, in every order."""
        bounds, order = drawing.box(r, self.windows), r.choice(["row", "col", "global", "any"])
        form = drawing.box_form(r, self.windows, bounds)
        names = r.sample(self.a.schema_names, r.randint(1, len(self.schema.attrs)))
        expression, judge = condition(r, self.windows, self.schema.attrs)
        where = repr(expression) if r.random() < 0.5 else expression
        expected = selected(self.model, self.model.now, bounds, order, judge)
        found = self.a.read(form, names, where, order)
        assert found.shape is None and len(found) == len(expected) == found.stats["cells_returned"]
        columns = self.numpy_columns(found.to_numpy())  # type: ignore[attr-defined]
        wanted = [(place, tuple(row[name] for name in names)) for place, row in expected]
        self.check_cells(columns, wanted, names, order)
        if r.random() < 0.4 and self.in_arrow(bounds):  # type: ignore[attr-defined]
            stream = self.a.scan(form, names, where, order, r.choice([1, 500, "64MiB"]))
            shown = [as_arrow_shows(self.model.dtypes[n], [row[n] for _, row in expected]) for n in names]
            rows = list(zip(*shown, strict=True)) if expected else []
            wanted = [(place, row) for (place, _), row in zip(expected, rows, strict=True)]
            self.check_cells(self.arrow_columns(stream.to_arrow()), wanted, names, order)  # type: ignore[attr-defined]

    def check_cells(
        self, columns: dict[str, list[Any]], wanted: list[tuple[Place, tuple[Plain, ...]]], names: list[str], order: str
    ) -> None:
        """Columns in plain form against cells, in order; those of a sparse array by "any" in no order."""
        dims = [columns[dim.name] for dim in self.schema.dims]
        got = list(zip(zip(*dims, strict=True), zip(*(columns[n] for n in names), strict=True), strict=True))
        if order == "any" and self.schema.sparse:
            got, wanted = sorted(got, key=repr), sorted(wanted, key=repr)
        assert got == wanted
