"""Which plane of an array of three or more dimensions a picture shows.

A plane has one position along each dimension that is not drawn. `at` chooses it. Else the first of these dimensions is
at its newest written position, and the others at the first written one there.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.printable import brief
from ..column import datatype
from ..errors import BoundsError, InputError
from ..labels import lookup
from ..query.box import Box
from ..schema.dimension import Dim
from .axis import text_of, units_of

if TYPE_CHECKING:
    from ..arrays.array import Array

Ends = tuple[tuple[int, int], ...]
"""The least and the greatest tick of each dimension, both inclusive."""


@dataclass(frozen=True, slots=True)
class Plane:
    """Ticks along the dimensions that are not drawn, by the number of the dimension."""

    ticks: Mapping[int, int]
    text: str
    """What is said of it in the picture; "" where nothing is left out."""


def plane_of(array: "Array", names: Sequence[str], box: Box, at: Mapping[str, Any], attr: str) -> Plane:
    """The plane of a dense array that is shown.

    Raises:
        BoundsError: there is nothing at a place of `at`.
        InputError: `at` names a dimension that is drawn.
    """
    hidden = [axis for axis, name in enumerate(array.dims) if name not in names]
    ends = ticks_of_box(box)
    for name in at:
        if name in names:
            raise InputError(f"at= was given {name!r}, which is drawn along an axis; choose its part with box=")
    chosen = {axis: _asked(array, axis, at[array.dims[axis]], ends[axis]) for axis in hidden if array.dims[axis] in at}
    found = _newest(array, [axis for axis in hidden if axis not in chosen], ends, chosen, attr)
    ticks = {axis: {**chosen, **found}[axis] for axis in hidden}
    return Plane(ticks, ", ".join(_told(array, axis, tick) for axis, tick in ticks.items()))


def ticks_of_box(box: Box) -> Ends:
    """The ends of a box of integers or times as ticks."""
    return tuple((datatype.ticks_of(low), datatype.ticks_of(high)) for low, high in box.bounds)


def written_boxes(array: "Array", attr: str | None) -> "list[tuple[dict[str, Any], Ends]]":
    """The fragments that change an attribute, oldest first, each with its box."""
    rows = sorted(map(json.loads, array.native.fragments()), key=lambda row: (row["version"], row["index"]))
    return [
        (row, tuple((int(low), int(high)) for low, high in row["domain"]))
        for row in rows
        if attr is None or row["kind"] not in ("dense", "sparse") or attr in row["attrs"]
    ]


def _asked(array: "Array", axis: int, value: Any, ends: tuple[int, int]) -> int:
    """The tick of a place that was asked for; of a period the first one in it."""
    dim = array.schema.dims[axis]
    index = array._index(dim, axis)
    if isinstance(value, slice | Mapping) or lookup.is_list(value):
        raise InputError(
            f"at= takes one place along dimension {dim.name!r}, found {brief(value)}; choose a part of what is drawn "
            f"with box=, or draw several planes one by one"
        )
    if isinstance(value, str) and index.dtype != "string" and not datatype.is_time(index.dtype):
        value = _number(dim.name, value)
    try:
        found = lookup.positions_of(index, value, None).positions
    except BoundsError as error:
        # A picture takes no `method`.
        told = str(error).partition(", which method=")[0]
        raise BoundsError(f"{told}; choose another plane with at=") from None
    if len(found) == 0:
        raise BoundsError(f"dimension {dim.name!r} has nothing at {brief(value)}; choose another plane with at=")
    tick = datatype.ticks_of(dim.reach[0]) + int(found.min())
    if not ends[0] <= tick <= ends[1]:
        raise BoundsError(f"at= chooses {_told(array, axis, tick)}, which lies outside of box=")
    return tick


def _number(name: str, text: str) -> int | float:
    """A number that is written."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    raise InputError(f"dimension {name!r} is chosen by a number, {brief(text)} is none: at={name}=3")


def _newest(array: "Array", hidden: Sequence[int], ends: Ends, chosen: Mapping[int, int], attr: str) -> dict[int, int]:
    """The newest written position along the first of these dimensions, and the first written ones there along the
    others; the first of all where nothing is written."""
    if not hidden:
        return {}
    left: list[Ends] = []
    for row, box in written_boxes(array, attr):
        cut = _within(box, tuple((chosen[a], chosen[a]) if a in chosen else pair for a, pair in enumerate(ends)))
        if row["kind"] == "deletion":
            left = [part for one in left if (part := _without(one, box)) is not None]
        elif row["kind"] in ("dense", "sparse") and cut is not None:
            left.append(cut)
    made: dict[int, int] = {}
    for place, axis in enumerate(hidden):
        if not left:
            made[axis] = ends[axis][0]
            continue
        made[axis] = max(box[axis][1] for box in left) if place == 0 else min(box[axis][0] for box in left)
        left = [box for box in left if box[axis][0] <= made[axis] <= box[axis][1]]
    return made


def _within(box: Ends, other: Ends) -> Ends | None:
    cut = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, other, strict=True))
    return cut if all(low <= high for low, high in cut) else None


def _without(box: Ends, gone: Ends) -> Ends | None:
    """What a deletion leaves of a box; where that is no box, the box."""
    open_axes = [a for a, ((b, c), (d, e)) in enumerate(zip(box, gone, strict=True)) if not d <= b <= c <= e]
    if not open_axes:
        return None
    (low, high), (first, last) = box[open_axes[0]], gone[open_axes[0]]
    if len(open_axes) > 1 or last < low or first > high or (first > low and last < high):
        return box
    kept = (low, first - 1) if first > low else (last + 1, high)
    return tuple(kept if axis == open_axes[0] else pair for axis, pair in enumerate(box))


def _told(array: "Array", axis: int, tick: int) -> str:
    """A dimension and where along it the plane lies: its label, or its coordinate."""
    dim: Dim = array.schema.dims[axis]
    labels = array.dim(dim.name).labels
    low = datatype.ticks_of(dim.reach[0])
    found = labels[tick - low] if labels is not None else datatype.from_text(dim.dtype, str(tick))
    units = units_of(array.dim(dim.name).meta)
    return f"{dim.name} = {text_of(found)}{f' {units}' if units else ''}"
