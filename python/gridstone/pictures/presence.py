"""Which cells of a plane are written, from the boxes of fragments.

A dense fragment writes all cells of its box, a deletion makes all of its box unwritten. A sparse fragment writes some
cells of its box: which of them is seen where the value is not the one that unwritten cells read as. A cell of such a
box that reads as an unwritten one is not known to be one, and is not called unwritten.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column.datatype import AnyArray
from ..schema.attribute import Attr
from .plane import Ends, Plane, written_boxes

if TYPE_CHECKING:
    from ..arrays.array import Array

_UNWRITTEN, _WRITTEN, _UNKNOWN = range(3)


def unwritten(
    array: "Array", plane: Plane, axes: tuple[int, ...], ends: Ends, steps: tuple[int, ...], attr: str
) -> AnyArray:
    """[y, x]: where a cell of the plane is known to be unwritten.

    Args:
        array: a dense one.
        plane: the ticks along the other dimensions.
        axes: the numbers of the dimensions of x and y, or of x alone.
        ends: the ticks of the part that is shown.
        steps: every how many cells of x and y one is shown.
        attr: the attribute that is shown.
    """
    return unwritten_by(written_boxes(array, attr), plane, axes, ends, steps)


def unwritten_by(
    boxes: "list[tuple[dict[str, Any], Ends]]", plane: Plane, axes: tuple[int, ...], ends: Ends, steps: tuple[int, ...]
) -> AnyArray:
    """As `unwritten`, by the boxes of the fragments."""
    lows = [ends[axis][0] for axis in axes]
    counts = [-(-(ends[axis][1] - ends[axis][0] + 1) // step) for axis, step in zip(axes, steps, strict=True)]
    found = np.full(counts[::-1], _UNWRITTEN, np.uint8)
    for row, box in boxes:
        if all(box[axis][0] <= tick <= box[axis][1] for axis, tick in plane.ticks.items()):
            cuts = [
                _cut(box[axis], low, step, count)
                for axis, low, step, count in zip(axes, lows, steps, counts, strict=True)
            ]
            _paint(found[tuple(cuts[::-1])], row, math.prod(high - low + 1 for low, high in box))
    made: AnyArray = found == _UNWRITTEN
    return made


def told_apart(attr: Attr, values: AnyArray) -> AnyArray:
    """Where a value is not what unwritten cells read as."""
    plain, gone = np.ma.getdata(values), np.ma.getmaskarray(np.ma.asarray(values))
    if attr.nullable:
        found: AnyArray = ~gone
    elif plain.dtype.kind == "O":
        return np.zeros(plain.shape, bool)
    else:
        fill = np.asarray(attr.fill, plain.dtype)
        # NaN and NaT are values like others here.
        found = (plain != fill) & ~((plain != plain) & (fill != fill))
    return np.asarray(found.any(axis=2) if found.ndim == 3 else found)


def _cut(ends: tuple[int, int], low: int, step: int, count: int) -> slice:
    """The places of the picture that a range covers."""
    first, last = max(0, -(-(ends[0] - low) // step)), min(count - 1, (ends[1] - low) // step)
    return slice(first, max(first, last + 1))


def _paint(part: AnyArray, row: Any, size: int) -> None:
    """Marks the cells of a fragment's box."""
    whole = row["cells"] == size
    if row["kind"] == "deletion" or (row["kind"] == "tombstones" and whole):
        part[...] = _UNWRITTEN
    elif row["kind"] == "tombstones":
        part[part == _WRITTEN] = _UNKNOWN
    elif whole:
        part[...] = _WRITTEN
    else:
        part[part == _UNWRITTEN] = _UNKNOWN
