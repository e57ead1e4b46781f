"""Looks at a labelled array from all sides, beside the model: for the machine of `test_label_machine`."""

from random import Random
from typing import Any

import label_choice
import numpy as np
import pyarrow as pa
import pytest
from label_choice import Chosen, Ladder
from label_drawing import coordinate
from label_model import Axis, Refused, State, plain

import gridstone as gs
from gridstone import errors


def look(a: gs.Array, state: State, r: Random) -> None:
    """The array shows the state: its sides, values and labels, whatever they are asked by."""
    assert (a.shape, a.dims, a.ndim) == (state.shape, tuple(state.names), len(state.axes))
    assert a.size == int(np.prod(state.shape)) and len(a) == state.shape[0]
    assert a.schema_names == [column.name for column in state.columns]
    for place, axis in enumerate(state.axes):
        _look_along(a, place, axis)
    _look_at_cells(a, state, r)
    for _ in range(2):
        _choose(a, state, r)
    for shown in (repr(a), repr(a.schema), a._repr_html_(), repr(a.dim(r.choice(state.names)))):
        assert shown


def _look_along(a: gs.Array, place: int, axis: Axis) -> None:
    """A dimension: its ends and its labels."""
    dim = a.dim(axis.name)
    assert (dim.axis, dim.dtype, dim.size, len(dim)) == (place, axis.dtype, axis.size, axis.size)
    ends = tuple(coordinate(axis, end) for end in (axis.low, axis.high))
    assert dim.domain == ends == a.domain[place] and a.schema.dims[place].open == axis.is_open
    assert a.schema.dims[place].is_empty == (axis.size == 0)
    same_labels(dim.labels, axis)


def same_labels(found: Any, axis: Axis) -> None:
    """These are the labels of a dimension."""
    if axis.labels is None:
        assert found is None
        return
    assert found is not None
    assert plain(found) == axis.shown, (plain(found), axis.shown, axis)
    wanted = np.dtype(object) if axis.labels.dtype == "string" else np.dtype(axis.labels.dtype)
    assert found.dtype == wanted


def _look_at_cells(a: gs.Array, state: State, r: Random) -> None:
    """Values and nulls: of all cells, of the last position, of positions from either end, by coordinates."""
    whole = a[...]
    for column, cells in zip(state.columns, state.cells, strict=True):
        found = whole if len(state.columns) == 1 else whole[column.name]
        assert found.shape == state.shape and plain(found) == cells.tolist(), column
    place = r.randrange(len(state.columns))
    column, cells = state.columns[place], state.cells[place]
    view = a[column.name]
    if state.shape[0] == 0:
        with pytest.raises(errors.BoundsError):
            view[-1]
    elif cells.size:
        assert plain(view[-1]) == cells[-1].tolist() if cells.ndim > 1 else plain(view[-1]) == cells[-1]
    if not cells.size:
        return
    key: list[Any] = []
    for size in state.shape:
        start, stop = sorted([r.randint(-size - 1, size + 1), r.randint(-size - 1, size + 1)])
        key.append(r.choice([r.randint(-size, size - 1), slice(start, stop), slice(None, None, -1)]))
    wanted = cells[tuple(key)]
    assert plain(view[tuple(key)]) == (wanted.tolist() if isinstance(wanted, np.ndarray) else wanted), key
    at = tuple(r.randrange(size) for size in state.shape)
    point = {axis.name: [coordinate(axis, axis.low + n)] for axis, n in zip(state.axes, at, strict=True)}
    assert plain(a.points(point)[column.name]) == [cells[at]]


def _choose(a: gs.Array, state: State, r: Random) -> None:
    """`sel` along some dimensions gives what the labels choose, or the error that it should."""
    axes = r.sample(range(len(state.axes)), r.randint(1, len(state.axes)))
    keys = {place: label_choice.asked(r, state.axes[place]) for place in axes}
    method = next(iter(keys.values())).method
    if any(one.method != method for one in keys.values()):
        keys = dict([next(iter(keys.items()))])
    asked = {state.axes[place].name: one.key for place, one in keys.items()}
    found: list[Chosen] = []
    try:
        for place, axis in enumerate(state.axes):
            whole = Chosen(list(range(axis.size)), False)
            found.append(Ladder(axis).choose(keys[place]) if place in keys else whole)
    except Refused as refused:
        with pytest.raises(refused.kinds):
            a.sel(asked, method=method)
            pytest.fail(f"{asked}, {method} was not refused: {refused}")
        return
    result = a.sel(asked, method=method)
    drops = tuple(0 if one.drop else slice(None) for one in found)
    for column, cells in zip(state.columns, state.cells, strict=True):
        wanted = cells[np.ix_(*(one.positions for one in found))][drops]
        got = result[column.name]
        assert plain(got) == (wanted.tolist() if isinstance(wanted, np.ndarray) else wanted), (asked, method)
        assert result.shape == np.shape(wanted)
    for axis, one in zip(state.axes, found, strict=True):
        if axis.labels is not None and not one.drop:
            assert plain(result.labels[axis.name]) == [axis.shown[place] for place in one.positions], asked
    assert repr(result)


def look_from_outside(a: gs.Array, state: State) -> None:
    """As xarray and Arrow have the array."""
    there = a.to_xarray()
    assert there.sizes == dict(zip(state.names, state.shape, strict=True))
    for place, axis in enumerate(state.axes):
        values = there[axis.name].values
        ladder = Ladder(axis)
        if ladder.is_time:
            unit = "datetime64[ns]" if ladder.dtype.startswith("datetime64") else "timedelta64[ns]"
            values = values.astype(unit)
        assert plain(values) == ladder.shown, (place, axis)
    for column, cells in zip(state.columns, state.cells, strict=True):
        values = there.values if len(state.columns) == 1 else there[column.name].values
        assert plain(values) == cells.tolist(), column
    table = a.read().to_arrow()
    assert table.num_rows == int(np.prod(state.shape))
    for place, axis in enumerate(state.axes):
        values = np.array([None, *_arrow_plain(table[axis.name])], object)[1:].reshape(state.shape)
        for position, label in enumerate(Ladder(axis).shown):
            assert set(np.ravel(np.take(values, position, place))) <= {label}, axis


def _arrow_plain(column: pa.ChunkedArray) -> list[Any]:
    """Labels as they compare: of times nanoseconds."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_temporal(column.type):
        fine = pa.timestamp("ns") if pa.types.is_timestamp(column.type) else pa.duration("ns")
        column = column.cast(fine).cast(pa.int64())
    return [None if one is None or one != one else one for one in column.to_pylist()]
