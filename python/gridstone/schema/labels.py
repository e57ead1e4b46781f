"""Labels of a dense dimension: what its positions stand for, at equal steps or in a list.

Labels are integers, floats, times or texts. Those at steps are `start + n * step` for the coordinate that lies `n`
behind the origin of the dimension; of floats a sum of 64-bit floats, which is then rounded to the type. Labels may also
be the values of another array of the store, which several arrays share.
"""

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import datatype, encode, masked
from ..column.columns import Column, Field
from ..column.datatype import AnyArray
from ..column.stored import Stored
from ..errors import InputError, SchemaError

SHARED = "shared "
"""What stands before the id of an array that labels share."""

_TAKES = "labels are whole numbers, floats, times or texts"


@dataclass(frozen=True, slots=True)
class Steps:
    """Labels at equal steps, as the store keeps them: numbers, of times ticks."""

    dtype: str
    start: int | float
    step: int | float

    def values(self, offset: int, count: int) -> AnyArray:
        """The labels of `count` coordinates from the one `offset` behind the origin on. Those that the type does not
        hold are missing: masked, NaN or NaT."""
        kind = datatype.numpy_of(self.dtype)
        if kind.kind == "f":
            places = _floats(offset, count)
            with np.errstate(over="ignore", invalid="ignore"):
                made: AnyArray = (np.float64(self.start) + places * np.float64(self.step)).astype(kind)
            made[~np.isfinite(made)] = np.nan
            return made
        low, high = datatype.ends_of(self.dtype)
        first, last = (self.start + n * self.step for n in (offset, offset + max(count, 1) - 1))
        ticks = np.arange(count, dtype=np.uint64) * np.uint64(int(self.step) % 2**64) + np.uint64(int(first) % 2**64)
        made = ticks.view(np.int64).view(kind) if kind.kind in "mM" else ticks.astype(kind)
        if min(first, last) >= low and max(first, last) <= high:
            return made
        inside = np.array([low <= self.start + (offset + n) * self.step <= high for n in range(count)], np.bool_)
        if kind.kind in "mM":
            made[~inside] = kind.type("NaT")
            return made
        return np.ma.MaskedArray(made, mask=~inside)

    @property
    def json(self) -> dict[str, str]:
        """As the core takes them."""
        start, step = (repr(one) if isinstance(one, float) else str(one) for one in (self.start, self.step))
        return {"start": start, "step": step, "dtype": self.dtype}

    def __str__(self) -> str:
        if not datatype.is_time(self.dtype):
            return f"from {self.start} in steps of {self.step}"
        span = self.dtype.replace("datetime64", "timedelta64")
        start, step = datatype.from_text(self.dtype, str(self.start)), datatype.from_text(span, str(self.step))
        return f"from {datatype.show(start)} in steps of {datatype.show(step)}"


@dataclass(frozen=True, slots=True)
class Listed:
    """Labels in a list; missing ones are masked, NaN or NaT."""

    dtype: str
    values: AnyArray

    def __len__(self) -> int:
        return len(self.values)

    def column(self, what: str) -> Column:
        """The labels as the core takes them; `what` names the dimension for messages."""
        field = Field(what, self.dtype, self.dtype == "string" or self.dtype in datatype.INTEGERS, "labels of")
        return encode.from_values(field, self.values, (len(self.values),))


@dataclass(frozen=True, slots=True)
class Shared:
    """Labels in another array of the store, by its path: absolute, or from the group of the array on."""

    path: str


Labels = Steps | Listed
Given = Steps | Listed | Shared
"""Labels as a user gives them for an array that is made."""


def check_pair(what: str, given: Any, count: int | None) -> None:
    """A `SchemaError` if a pair may be a start and a step, or the labels of exactly two positions."""
    if count != 2 or not isinstance(given, tuple) or len(given) != 2:
        return
    start, step = _moment(given[0]), _span(given[1])
    is_time = isinstance(start, np.datetime64) or getattr(getattr(start, "dtype", None), "kind", "") == "M"
    is_step = isinstance(step, np.timedelta64) or getattr(getattr(step, "dtype", None), "kind", "") == "m"
    if is_time and is_step:
        return
    shown = f"({brief(given[0])}, {brief(given[1])})"
    raise SchemaError(
        f"{what} has two positions, so that labels={shown} may be a start and a step, or two labels: "
        f"labels=[…] for two labels, such as the start and the one after it"
    )


def given_labels(what: str, given: Any) -> Given:
    """What a user gives as labels: see `labels_of`; or the path of an array that has them.

    Raises:
        SchemaError: those of `labels_of`; no path.
    """
    if isinstance(given, Shared):
        return given
    if not isinstance(given, str):
        return labels_of(what, given)
    if not given.strip("/") or "//" in given or given.endswith("/"):
        raise SchemaError(f"{what}: labels={given!r} is no path of an array; labels in a list are labels=[…]")
    return Shared(given)


def labels_of(what: str, given: Any) -> Labels:
    """What a user gives as labels: one per position, or a pair `(start, step)`.

    Raises:
        SchemaError: not one list of them, or of a type that labels do not have.
    """
    if isinstance(given, Steps | Listed):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return _pair(what, *given)
    return Listed(*_listed(what, given))


def placed(labels: Labels, offset: int) -> Labels:
    """The labels with those that are at equal steps as such; `offset`: how far the first lies behind the origin.
    A pair `(start, step)` begins at the first coordinate too."""
    if isinstance(labels, Listed):
        return steps_of(labels, offset) or labels
    if offset == 0:
        return labels
    start = labels.start - offset * labels.step
    return Steps(labels.dtype, start, labels.step)


def steps_of(labels: Listed, offset: int = 0) -> Steps | None:
    """The start at the origin and the step that give exactly these labels; None if there are none."""
    values, dtype = labels.values, labels.dtype
    if len(values) < 2 or dtype == "string" or np.ma.isMaskedArray(values):
        return None
    kind = values.dtype.kind
    numbers = values.view(np.int64) if kind in "mM" else values
    first, second, last = (one.item() for one in (numbers[0], numbers[1], numbers[-1]))
    steps = [second - first]
    if kind == "f":
        steps.append((float(last) - float(first)) / (len(values) - 1))
    for step in steps:
        found = _stepped(dtype, first, step, offset)
        if found is not None and np.array_equal(np.ma.getdata(found.values(offset, len(values))), values):
            return found
    return None


def _stepped(dtype: str, first: int | float, step: int | float, offset: int) -> Steps | None:
    """Labels whose first is `first`; None where the type has not such a start or step."""
    start = first - offset * step
    if step == 0 or not (np.isfinite(float(start)) and np.isfinite(float(step))):
        return None
    if datatype.is_float(dtype):
        start, step = datatype.rounded(dtype, start), datatype.rounded(dtype, step)
        return Steps(dtype, start, step) if step else None
    low, high = datatype.ends_of(dtype)
    return Steps(dtype, start, step) if all(low <= one <= high for one in (start, step)) else None


def missing(values: AnyArray) -> AnyArray:
    """Which labels are missing: masked, NaN, NaT."""
    found: AnyArray = np.ma.getmaskarray(values).copy()
    plain = np.ma.getdata(values)
    if plain.dtype.kind == "f":
        found |= np.isnan(plain)
    elif plain.dtype.kind in "mM":
        found |= np.isnat(plain)
    return found


def _floats(offset: int, count: int) -> AnyArray:
    """The numbers from `offset` on, each rounded to a float."""
    if abs(offset) + count < 2**53:
        return np.arange(count, dtype=np.float64) + offset
    return np.array([float(offset + n) for n in range(count)], np.float64)


def _pair(what: str, start: Any, step: Any) -> Steps:
    """Labels from a start and a step."""
    first, by = (_alone(what, one) for one in (_moment(start), _span(step)))
    if first.ndim or by.ndim or first.dtype.kind not in "iufMm" or by.dtype.kind not in "iufm":
        raise SchemaError(
            f"{what}: labels=({brief(start)}, {brief(step)}) is a start and a step, which are numbers, or a time and a "
            f"length of time; two labels in a list are labels=[…]"
        )
    try:
        kind = (first + by).dtype
    except TypeError as error:
        raise SchemaError(f"{what}: {brief(step)} is no step from {brief(start)}: {error}") from None
    dtype = datatype.parse(kind)
    span = np.dtype(kind.str.replace("M8", "m8")) if kind.kind == "M" else kind
    low, by_ticks = first.astype(kind), by.astype(span)
    ticks = [one.view(np.int64).item() if kind.kind in "mM" else one.item() for one in (low, by_ticks)]
    if not np.isfinite(ticks[0]) or not np.isfinite(ticks[1]) or ticks[1] == 0 or -(2**63) in ticks:
        raise SchemaError(
            f"{what}: labels from {brief(start)} in steps of {brief(step)}: both are finite, no step is 0"
        )
    return Steps(dtype, *ticks)


def _alone(what: str, value: Any) -> AnyArray:
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise SchemaError(f"{what}: {brief(value)} is no start or step of labels: {error}") from None


def _moment(value: Any) -> Any:
    """A start that is written, or is of Python, as a time of NumPy."""
    if hasattr(value, "to_datetime64"):
        return value.to_datetime64()
    if isinstance(value, str | dt.date):
        return datatype.time_of("datetime64[us]", value)
    return value


def _span(value: Any) -> Any:
    if hasattr(value, "to_timedelta64"):
        return value.to_timedelta64()
    return np.timedelta64(value) if isinstance(value, dt.timedelta) else value


def _listed(what: str, given: Any) -> tuple[str, AnyArray]:
    """Labels in a list, and their type."""
    values = _array_of(what, given)
    if values.ndim != 1:
        raise SchemaError(f"{what}: labels are one list, found an array of shape {values.shape}")
    kind = values.dtype.kind
    if kind == "O":
        values = _of_objects(what, values)
    elif kind in "UT":
        values = values.astype(object)
    elif kind == "f" and values.dtype.itemsize == 2:
        values = values.astype(np.float32)
    elif kind not in "iufmM" or values.dtype.itemsize > 8:
        raise SchemaError(f"{what}: {_TAKES}, found {values.dtype}")
    if values.dtype.kind == "O":
        return "string", values
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    dtype = datatype.parse(values.dtype)
    if np.ma.isMaskedArray(values) and not np.ma.getmaskarray(values).any():
        values = np.ma.getdata(values)
    if np.ma.isMaskedArray(values) and values.dtype.kind in "fmM":
        values = values.filled(np.nan if values.dtype.kind == "f" else values.dtype.type("NaT"))
    return dtype, values


def _array_of(what: str, given: Any) -> AnyArray:
    """A copy of what is given, of which pandas, Arrow and xarray have values."""
    if isinstance(given, Stored):
        given = encode.of_handle(given)
    if getattr(getattr(given, "dtype", None), "tz", None) is not None:
        zoned = given.dt if hasattr(given, "dt") else given
        given = zoned.tz_convert("UTC").dt.tz_localize(None) if hasattr(given, "dt") else given.tz_convert(None)
    if isinstance(given, list | tuple | range):
        given = masked.of_list(list(given))
        if any(isinstance(one, str) for one in given) and not all(isinstance(one, str) for one in given):
            given = np.array([*given, None], object)[:-1]  # NumPy would write numbers as texts.
    if isinstance(given, str | bytes) or given is None:
        raise SchemaError(f"{what}: labels are a list, one for each position, not {brief(given)}")
    try:
        made = np.ma.array(given) if np.ma.isMaskedArray(given) else np.array(given)
    except (ValueError, TypeError, OverflowError) as error:
        raise SchemaError(f"{what}: labels are a list, not {brief(given)}: {error}") from None
    return made


def _of_objects(what: str, values: AnyArray) -> AnyArray:
    """Texts, or dates of Python as times; None is missing."""
    flat = [None if _is_none(one) else one for one in values.tolist()]
    held = [one for one in flat if one is not None]
    if all(isinstance(one, str) for one in held):
        made = np.array(flat, object)
        mask = np.array([one is None for one in flat], np.bool_)
        return np.ma.MaskedArray(made, mask=mask) if mask.any() else made
    if all(isinstance(one, dt.date | np.datetime64) for one in held):
        return _of_moments(what, flat)
    if all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in held):
        if not all(-(2**63) <= one < 2**63 for one in held):
            raise SchemaError(f"{what}: {_TAKES} of 64 bits, found {brief(held)}")
        mask = np.array([one is None for one in flat], np.bool_)
        return np.ma.MaskedArray([0 if one is None else int(one) for one in flat], mask=mask, dtype=np.int64)
    if all(isinstance(one, int | float | np.integer | np.floating) and not isinstance(one, bool) for one in held):
        return np.array([np.nan if one is None else one for one in flat], np.float64)
    found = next(one for one in held if not isinstance(one, str))
    raise SchemaError(f"{what}: {_TAKES}, all of one kind; found {brief(found)} of type {type(found).__name__}")


def _of_moments(what: str, flat: list[Any]) -> AnyArray:
    """Dates and times as times of the finest unit among them: days if all are dates, else at least microseconds."""
    found = [np.datetime64("NaT", "D") if one is None else datatype.time_of("datetime64", one) for one in flat]
    moments = [np.datetime64("NaT", "D") if one is None else one for one in found]
    units = [str(np.datetime_data(one.dtype)[0]) for one in moments if not np.isnat(one)]
    if any(isinstance(one, dt.datetime | np.datetime64) for one in flat):
        units.append("us")
    kind = np.dtype(f"datetime64[{max(units, key=datatype.fineness, default='D')}]")
    made = np.empty(len(moments), kind)
    for place, one in enumerate(moments):
        try:
            made[place] = one
        except (OverflowError, ValueError):
            made[place] = np.datetime64("NaT")
        if made[place].astype(one.dtype) != one and not np.isnat(one):
            raise SchemaError(
                f"{what}: {brief(str(one))} is no value of {kind}, the unit of the finest label; give one unit to all"
            )
    return made


def _is_none(value: Any) -> bool:
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType") or value != value


def check_count(what: str, labels: Given, count: int) -> None:
    """An `InputError` unless there is one label for each position."""
    if isinstance(labels, Listed) and len(labels) != count:
        raise InputError(f"{what} has {count} positions, and {len(labels)} labels were given; each needs one")
