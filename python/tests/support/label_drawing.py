"""Random labelled arrays, labels, boxes and keys of `sel`, for the machine of `test_label_machine`."""

from random import Random
from typing import Any

import numpy as np
from label_model import SMALL, Axis, Column, Ends, Given, Listed, State, Steps, holds

import gridstone as gs

DTYPES = (
    *("int64", "int8", "uint8", "float64", "float32", "string"),
    *("datetime64[D]", "datetime64[h]", "datetime64[ns]", "timedelta64[h]"),
)
SIDE_MAX = {1: 30, 2: 9, 3: 5}
_DAY = 20_510
"""2026-02-26, in days: labels of times are around the end of a month."""
_HOUR_NS = 3_600 * 10**9


def label(dtype: str, number: int) -> Any:
    """A label for each small number, in the same order."""
    return {
        "float64": number * 0.25,
        "float32": number * 0.5,
        "datetime64[D]": _DAY + number,
        "datetime64[h]": _DAY * 24 + number,
        "datetime64[ns]": (_DAY * 24 + 12 * number) * _HOUR_NS,
        "string": f"s{number + 50:03}",
    }.get(dtype, number)


def labels(r: Random, count: int, dtype: str | None = None) -> Given:
    """Labels for so many positions: regular or not, ascending or not, with others twice and missing ones."""
    dtype = dtype or r.choice(DTYPES)
    how = r.choice(["regular", "regular", "falling", "up", "up", "down", "any", "twice", "missing"])
    first, step = r.randint(-6, 12), r.choice([1, 1, 2, 24])
    if dtype in SMALL:
        how = r.choice([how, "regular"])
        first, step = r.choice([(first % 13, 1), (100, 10), (3, 7), (120, 2)])
    numbers = sorted(r.sample(range(-8, 3 * count + 12), count))
    if how in ("regular", "falling"):
        numbers = [first + n * step for n in range(count)]
    elif how == "any":
        r.shuffle(numbers)
    elif how == "twice":
        numbers = [r.choice(numbers) for _ in numbers]
        numbers = sorted(numbers) if r.random() < 0.5 else numbers
    if how in ("falling", "down"):
        numbers.reverse()
    made = [label(dtype, n if dtype not in SMALL or holds(dtype, n) else n % 100) for n in numbers]
    if how == "missing":
        made = [None if r.random() < 0.4 else one for one in made]
    return Given(dtype, made)


def pair(r: Random, size: int) -> Given:
    """A start and a step, of a dimension of so many positions; numbers of two may be labels too."""
    dtypes = ["int64", "float64", "datetime64[D]", "datetime64[h]"]
    dtype = r.choice(dtypes[2:] if size == 2 else dtypes)
    first = label(dtype, r.randint(-6, 9))
    return Given(dtype, pair=(first, label(dtype, r.choice([1, 2, 3])) - label(dtype, 0)))


def as_given(r: Random, given: Given) -> Any:
    """Labels as a user may write them: arrays, lists, pairs."""
    if given.pair is not None:
        if given.dtype.startswith("datetime64"):
            start, step = (np.int64(one) for one in given.pair)
            return start.view(given.dtype), step.view(given.dtype.replace("datetime64", "timedelta64"))
        return given.pair
    if given.dtype in ("int64", "float64", "string") and given.values and r.random() < 0.5:
        return list(given.values) if any(one is not None for one in given.values) else given.numpy()
    return given.numpy()


def axis(r: Random, name: str, ndim: int) -> Axis:
    """A dimension of any ends, often with labels."""
    dtype = r.choice(["int64", "int64", "int32", "datetime64[D]"])
    low = r.choice([0, 0, 0, -3, 5])
    size = r.randint(1, min(5, SIDE_MAX[ndim]))
    given: tuple[int | None, int | None] | None = r.choice(
        [(low, low + size - 1)] * 3 + [(low, None)] * 3 + [(None, low), (None, None), None]  # type: ignore[list-item]
    )
    tile = r.choice([1, 2, 3, 100])
    if given is None:
        made = Axis(name, "int64", None, 0, -1, tile)
    elif None in given:
        first = 0 if given == (None, None) else given[0] if given[1] is None else given[1] + 1
        made = Axis(name, dtype, given, first, first - 1, tile)  # type: ignore[arg-type,operator]
    else:
        made = Axis(name, dtype, given, low, low + size - 1, r.choice([tile, None]))
    if r.random() < 0.7:
        if r.random() < 0.4:
            begun = pair(r, made.size)
            made.labels = Steps(begun.dtype, *begun.pair, (given or (0, None))[0] or 0)  # type: ignore[misc]
        elif made.size:
            made.labels = labels(r, made.size).listed(made.low)
    return made


def state(r: Random, ndim: int) -> State:
    """A new array."""
    axes = [axis(r, f"d{place}", ndim) for place in range(ndim)]
    kinds = [("int32", 0), ("int32", -9), ("float64", 0.5), ("string", "-"), ("datetime64[s]", 7)]
    columns = [Column("v", *_of(r.choice(kinds), False))]
    if r.random() < 0.6:
        columns.append(Column("n", *_of(r.choice(kinds), True)))
    made = State(axes, columns, [])
    made.cells = [np.full(made.shape, column.blank, object) for column in columns]
    return made


def _of(kind: tuple[str, Any], nullable: bool) -> tuple[str, bool, Any]:
    return kind[0], nullable, kind[1]


def coordinate(axis: Axis, tick: int) -> Any:
    """A coordinate as a user gives it."""
    return np.int64(tick).view(axis.dtype) if axis.dtype.startswith("datetime64") else tick


def schema(r: Random, made: State) -> gs.Schema:
    """The schema of a new array, with its labels."""
    dims = []
    for one in made.axes:
        given = (0, -1) if one.given is None else one.given
        domain = tuple(None if end is None else coordinate(one, end) for end in given)
        found = None
        if isinstance(one.labels, Steps) and (one.size < 2 or (r.random() < 0.3 and one.size != 2)):
            found = as_given(r, Given(one.labels.dtype, pair=(one.labels.start, one.labels.step)))
            if one.labels.dtype not in ("int64", "float64", "datetime64[D]", "datetime64[h]"):
                found = Given(one.labels.dtype, one.shown).numpy()
        elif one.labels is not None:
            found = as_given(r, Given(one.labels.dtype, one.shown))
        dims.append(gs.Dim(one.name, domain, one.tile, one.dtype, labels=found))
    attrs = []
    for column in made.columns:
        fill = np.int64(column.fill).view(column.dtype) if column.dtype.startswith("datetime64") else column.fill
        options = {"nullable": True} if column.nullable else {"fill": fill}
        attrs.append(gs.Attr(column.name, column.dtype, **options))
    return gs.Schema(dims, attrs)


def values(r: Random, column: Column, shape: tuple[int, ...]) -> Any:
    """Values of an attribute in an array of objects; nulls where it takes them."""
    made = np.empty(int(np.prod(shape)), object)
    for place in range(made.size):
        number = r.randrange(1_000)
        made[place] = {"float64": number * 0.5, "string": f"t{number}"}.get(column.dtype, number)
        if column.nullable and r.random() < 0.3:
            made[place] = None
    return made.reshape(shape)


def numpy_of(column: Column, found: Any) -> Any:
    """Values as NumPy has them."""
    mask = np.array([one is None for one in found.ravel()], np.bool_).reshape(found.shape)
    blank = "" if column.dtype == "string" else 0
    filled = np.where(mask, blank, found) if found.size else found
    if column.dtype == "string":
        made = filled.astype(object)
    elif column.dtype.startswith("datetime64"):
        made = filled.astype(np.int64).view(column.dtype)
    else:
        made = filled.astype(column.dtype)
    return np.ma.MaskedArray(made, mask) if mask.any() else made


def box(r: Random, made: State, beyond: float) -> list[Ends]:
    """A box of coordinates near the domain, some beyond it."""
    bounds = []
    for one in made.axes:
        low, high = (one.low, one.high) if one.size else (one.low, one.low)
        room = SIDE_MAX[len(made.axes)] - one.size
        if one.size and (r.random() >= beyond or room <= 0):
            first = r.randint(low, high)
            bounds.append((first, r.randint(first, high)))
            continue
        first = r.randint(low - min(2, max(room // 2, 0)), high + min(2, room))
        bounds.append((first, first + r.choice([0, 0, 1, min(2, max(room // 2, 0))])))
    return bounds


def box_form(r: Random, made: State, bounds: list[Ends]) -> Any:
    """A box as a user writes it: whole sides may be left out."""
    form = {}
    for one, (low, high) in zip(made.axes, bounds, strict=True):
        if (low, high) == (one.low, one.high) and r.random() < 0.3:
            continue
        form[one.name] = (coordinate(one, low), coordinate(one, high))
    return form or None


def more_labels(r: Random, axis: Axis, count: int) -> Given | None:
    """Labels of a block: mostly those that an axis takes, some that it does not."""
    there, chance = axis.labels, r.random()
    if there is None:
        wanted = 0.5 if axis.size == 0 else 0.1
        return labels(r, count) if chance < wanted else None
    if chance < 0.1 or (isinstance(there, Steps) and chance < 0.4):
        return None
    if isinstance(there, Steps) and chance < 0.6:
        low, high = axis.behind(count)
        return Given(there.dtype, [there.label(c) for c in range(low, high + 1)])
    if chance < 0.65:
        return labels(r, count + r.choice([-1, 1]) if count > 1 else count + 1, there.dtype)
    if chance < 0.7:
        return labels(r, count)
    if chance < 0.75 and there.dtype == "datetime64[D]":
        return Given("string", [str(np.datetime64(_DAY + r.randint(0, 20), "D")) for _ in range(count)])
    made = labels(r, count, there.dtype)
    if isinstance(there, Listed) and there.found and r.random() < 0.2:
        made.values[0] = r.choice(list(there.found.values()))
    return made
