"""A labelled dense array in plain Python and NumPy: the model of the machine of `test_label_machine`.

Coordinates are whole numbers: ticks of the dimension's type. Values and labels are plain: numbers, texts, ticks of
times; None is a null or a missing label.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridstone import errors

Ends = tuple[int, int]
"""The lowest and the highest coordinate."""

SMALL = ("int8", "uint8")
"""Types of labels whose ends are reached."""


class Refused(Exception):
    """What was asked for is an error of this kind, and changes nothing."""

    def __init__(self, *kinds: type[Exception]) -> None:
        super().__init__(*kinds)
        self.kinds = kinds


def is_time(dtype: str) -> bool:
    return dtype.startswith(("datetime64", "timedelta64"))


def holds(dtype: str, value: Any) -> bool:
    """Whether a type of integers holds a number; others hold all that are drawn."""
    return dtype not in SMALL or np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


@dataclass
class Steps:
    """Labels at equal steps: the one at the coordinate `at` is `start`."""

    dtype: str
    start: Any
    step: Any
    at: int

    def label(self, coordinate: int) -> Any:
        found = self.start + (coordinate - self.at) * self.step
        return found if holds(self.dtype, found) else None

    def same(self, other: Any) -> bool:
        """Whether all labels are the same."""
        return (
            isinstance(other, Steps)
            and (self.dtype, self.step) == (other.dtype, other.step)
            and self.start + (other.at - self.at) * self.step == other.start
        )


@dataclass
class Listed:
    """Labels in a list, by coordinate; those that are missing are left out."""

    dtype: str
    found: dict[int, Any]
    is_settled: bool = True
    """Whether it is known that they are stored as a list, and do not go on."""

    def label(self, coordinate: int) -> Any:
        return self.found.get(coordinate)


@dataclass
class Axis:
    """A dimension."""

    name: str
    dtype: str
    given: tuple[int | None, int | None] | None
    """The ends that were given; None for a side of length 0."""
    low: int
    high: int
    tile: int | None
    labels: Steps | Listed | None = None

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def is_open(self) -> tuple[bool, bool]:
        return (False, False) if self.given is None else (self.given[0] is None, self.given[1] is None)

    def reaching(self, low: int, high: int) -> Ends:
        """The domain once it holds these coordinates, too."""
        ends = [low, high, *(end for end in self.given or () if end is not None)]
        return min(ends if self.size == 0 else [low, self.low]), max(ends if self.size == 0 else [high, self.high])

    def behind(self, count: int) -> Ends:
        """Where a block lies that is appended."""
        if self.size:
            return self.high + 1, self.high + count
        low, high = self.given or (0, None)
        if low is None and high is not None:
            return high - count + 1, high
        low = 0 if low is None else low
        return low, low + count - 1

    @property
    def shown(self) -> list[Any]:
        """The labels of all positions."""
        assert self.labels is not None
        return [self.labels.label(coordinate) for coordinate in range(self.low, self.high + 1)]


@dataclass
class Column:
    """An attribute."""

    name: str
    dtype: str
    nullable: bool
    fill: Any

    @property
    def blank(self) -> Any:
        """What cells read as that were not written."""
        return None if self.nullable else self.fill


@dataclass
class State:
    """The array at a version."""

    axes: list[Axis]
    columns: list[Column]
    cells: list[Any]
    """An array of objects for each attribute."""
    schemas: int = 0
    """How often the schema was changed: names and labels, not how far the domain reaches."""

    def copy(self) -> "State":
        return copy.deepcopy(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def names(self) -> list[str]:
        return [axis.name for axis in self.axes]

    @property
    def parts(self) -> tuple[Axis | Column, ...]:
        """What has a name."""
        return *self.axes, *self.columns

    def axis(self, name: str) -> Axis:
        return self.axes[self.names.index(name)]

    def column(self, name: str) -> int:
        """The number of an attribute; a state that has it no more refuses it."""
        names = [column.name for column in self.columns]
        if name not in names:
            raise Refused(errors.InputError)
        return names.index(name)

    # Cells.

    def reach(self, bounds: list[Ends]) -> None:
        """The domain holds these coordinates, too."""
        ends = [axis.reaching(*bound) for axis, bound in zip(self.axes, bounds, strict=True)]
        if ends == [(axis.low, axis.high) for axis in self.axes]:
            return
        for place, column in enumerate(self.columns):
            old, made = self.cells[place], np.full([high - low + 1 for low, high in ends], None, object)
            made[...] = column.blank
            if old.size:
                made[
                    tuple(slice(a.low - low, a.high - low + 1) for a, (low, _) in zip(self.axes, ends, strict=True))
                ] = old
            self.cells[place] = made
        for axis, (low, high) in zip(self.axes, ends, strict=True):
            axis.low, axis.high = low, high

    def check_reach(self, bounds: list[Ends], grow: bool) -> None:
        """Refuses a write beyond ends that are closed."""
        for axis, (low, high) in zip(self.axes, bounds, strict=True):
            down, up = axis.is_open
            floor, ceiling = (axis.low, axis.high) if axis.size else axis.given or (0, -1)
            is_below, is_above = not down and low < floor, not up and high > ceiling  # type: ignore[operator]
            if not grow and (is_below or is_above):
                raise Refused(errors.BoundsError)

    def put(self, bounds: list[Ends], values: dict[str, Any]) -> None:
        """A box of cells is written."""
        part = tuple(slice(low - a.low, high - a.low + 1) for a, (low, high) in zip(self.axes, bounds, strict=True))
        for name, found in values.items():
            self.cells[self.column(name)][part] = found

    def delete(self, bounds: list[Ends]) -> None:
        """A box of cells is as if it was never written."""
        self.put(bounds, {column.name: column.blank for column in self.columns})

    # Appends.

    def append(self, axis: int, lengths: list[int], values: dict[str, Any], given: "Given | None") -> None:
        """A block lies behind the end of an axis; it is so long along all axes."""
        for place, length in enumerate(lengths):
            if place != axis and not length:
                raise Refused(errors.BoundsError)
        for place, (length, other) in enumerate(zip(lengths, self.axes, strict=True)):
            if place != axis and length != other.size:
                raise Refused(errors.InputError)
        for name in values:
            self.column(name)
        own = self.axes[axis]
        bounds = [(other.low, other.high) for other in self.axes]
        bounds[axis] = own.behind(lengths[axis])
        self._label(own, bounds[axis], given)
        self.reach(bounds)
        self.put(bounds, values)

    def _label(self, axis: Axis, bounds: Ends, given: "Given | None") -> None:
        """What becomes of the labels of an axis by a block with those given, or none."""
        there, coordinates = axis.labels, range(bounds[0], bounds[1] + 1)
        if given is None:
            if isinstance(there, Listed):
                raise Refused(errors.InputError)
            return
        if (there is None and axis.size) or len(given.values) != len(coordinates):
            raise Refused(errors.InputError)
        if there is not None and given.dtype != there.dtype:
            raise Refused(errors.InputError)
        more = {c: label for c, label in zip(coordinates, given.values, strict=True) if label is not None}
        if isinstance(there, Listed):
            there.found |= more
            return
        before: dict[int, Any] = {}
        if there is not None:
            if list(given.values) == [there.label(c) for c in coordinates] and None not in given.values:
                return
            before = {c: there.label(c) for c in range(axis.low, axis.high + 1)}
            if None in before.values() and "int" not in given.dtype:
                raise Refused(errors.SchemaError)
        axis.labels = Listed(given.dtype, {c: label for c, label in before.items() if label is not None} | more)
        self.schemas += 1

    # Schemas.

    def relabel(self, name: str, given: "Given | None") -> bool:
        """All labels of a dimension are others, or none; whether that changes anything."""
        axis = self.axis(name)
        made: Steps | Listed | None = None
        if given is not None:
            if given.pair is not None:
                made = Steps(given.dtype, *given.pair, axis.low if axis.size else self._first(axis))
            elif len(given.values) != axis.size:
                raise Refused(errors.InputError)
            else:
                made = given.listed(axis.low)
                steps = given.steps(axis.low)
                made = steps if steps is not None and steps.same(axis.labels) else made
        is_same = made is None if axis.labels is None else isinstance(made, Steps) and made.same(axis.labels)
        if is_same:
            return False
        axis.labels = made
        return True

    @staticmethod
    def _first(axis: Axis) -> int:
        """The coordinate whose label is the first of a dimension that has none."""
        return (axis.given or (0, None))[0] or 0

    def rename(self, names: dict[str, str]) -> None:
        for part in self.parts:
            part.name = names.get(part.name, part.name)


@dataclass
class Given:
    """Labels as a user gives them."""

    dtype: str
    values: list[Any] = field(default_factory=list)
    pair: tuple[Any, Any] | None = None

    def steps(self, low: int) -> Steps | None:
        """The start and the step that they have from the coordinate `low` on; None if they are not regular."""
        values = self.values
        if self.dtype == "string" or None in values or len(values) < 2 or values[1] == values[0]:
            return None
        made = Steps(self.dtype, values[0], values[1] - values[0], low)
        is_regular = all(label == values[0] + n * made.step for n, label in enumerate(values))
        return made if is_regular else None

    def listed(self, low: int) -> Steps | Listed:
        """As they are stored where they are all labels of a dimension from `low` on."""
        steps = self.steps(low)
        if steps is not None and self.dtype not in SMALL:
            return steps
        made = Listed(self.dtype, {low + n: label for n, label in enumerate(self.values) if label is not None})
        # Types whose ends are near may not hold the start at the origin, or the step.
        made.is_settled = steps is None
        return made

    def typed(self, dtype: str | None) -> "Given":
        """As the type that the labels of a dimension have; refused if it does not hold them."""
        if dtype is None or dtype == self.dtype:
            return self
        if all(label is None for label in self.values):
            return Given(dtype, self.values)
        made = [None if label is None else _as_type(label, self.dtype, dtype) for label in self.values]
        return Given(dtype, made)

    def numpy(self) -> Any:
        """As NumPy has them."""
        missing = [label is None for label in self.values]
        if self.dtype == "string":
            return np.array([*self.values, None], object)[:-1]
        if is_time(self.dtype):
            nat = np.iinfo(np.int64).min
            return np.array([nat if label is None else label for label in self.values], np.int64).view(self.dtype)
        if self.dtype.startswith("float"):
            return np.array([np.nan if label is None else label for label in self.values], self.dtype)
        made = np.array([0 if label is None else label for label in self.values], self.dtype)
        return np.ma.MaskedArray(made, missing) if any(missing) else made


def _as_type(label: Any, given: str, dtype: str) -> Any:
    """A label as another type has it; refused if that does not hold it."""
    kinds = [dtype_of if dtype_of == "string" else np.dtype(dtype_of).kind for dtype_of in (given, dtype)]
    numbers = {"i", "u", "f"}
    if kinds == ["string", "M"] and len(label) == 10 and label[4] == "-":
        return int(np.datetime64(label).astype(dtype).astype(np.int64))
    if kinds[0] == kinds[1] and is_time(dtype):
        exact = np.int64(label).view(given)
        made = exact.astype(dtype)
        if made.astype(given) == exact:
            return int(made.astype(np.int64))
    elif kinds[1] == "f" and kinds[0] in numbers:
        return float(label)
    elif set(kinds) <= numbers and label == int(label) and holds(dtype, label):
        return int(label)
    raise Refused(errors.InputError)


def plain(found: Any) -> Any:
    """Values of NumPy as nested lists: of times ticks, None for null, NaN and NaT."""
    if found is np.ma.masked:
        return None
    data, mask = np.asarray(np.ma.getdata(found)), np.ma.getmaskarray(np.ma.asanyarray(found))
    missing = np.array(mask)
    if data.dtype.kind in "mM":
        missing |= np.isnat(data)
        data = data.view(np.int64)
    elif data.dtype.kind == "f":
        missing |= np.isnan(data)
    elif data.dtype.kind == "O":
        missing |= np.array([one is None or one != one for one in data.ravel()], np.bool_).reshape(data.shape)
    made = np.empty(data.shape, object)
    made[...] = data
    made[missing] = None
    return made.tolist()
