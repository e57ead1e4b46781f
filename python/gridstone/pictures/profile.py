"""Pictures of arrays of one dimension: values of a dense one as a line, cells of a sparse one as counts in bars.

A line of many cells goes through the least and the greatest of each few, so that no peak is lost. Cells are read in
pieces.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import UnsupportedError
from ..query.box import Box
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from . import density, line, presence, theme
from .axis import named, range_of, text_of
from .plane import Ends, Plane, ticks_of_box, written_boxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..arrays.array import Array
    from .figure import Picture

POINTS_MAX = 20_000
"""Up to so many cells are drawn one by one, and more in half as many groups."""
CELLS_MAX = 1 << 26
"""In a longer part cells are left out."""
BARS_MAX = 240
_PIECE = 1 << 20

Spans = Callable[[AnyArray], AnyArray]
"""Places along x of the low and high ends of ranges, [range, end]."""
Drawn = tuple["Picture", "Axes", Spans]


def draw_line(array: "Array", attr: Attr, box: Box, heading: str) -> Drawn:
    """The values of an attribute of a dense array."""
    from .figure import canvas

    if box.empty or 0 in box.shape:
        raise UnsupportedError("the box has no cells; there is nothing to draw")
    dim = array.schema.dims[0]
    (low, high) = ticks_of_box(box)[0]
    skip = -(-(high - low + 1) // CELLS_MAX)
    count = -(-(high - low + 1) // skip)
    size = 1 if count <= POINTS_MAX else -(-count // (POINTS_MAX // 2))
    pieces = [_grouped(one, size) for one in _pieces(array, attr, (low, high), skip, size)]
    values = _joined(pieces)
    notes = [f"the least and the greatest of each {size:,} cells" if size > 1 else ""]
    notes.append(f"every {skip:,}th cell" if skip > 1 else "")
    figure, axes, bar = canvas(heading, " · ".join(note for note in notes if note), line.RATIO, below=0.3)
    bar.remove()
    # A group stands at the middle of its cells.
    ticks = low + skip * np.minimum(np.arange(len(values.gone)) * size + (size - 1) // 2, count - 1)
    ends = line.draw(axes, _places(array, dim, ticks), values)
    _label(axes, array, dim)
    axes.set_ylabel(named(attr.name, array[attr.name].meta), color=theme.current().text)

    def spans(found: AnyArray) -> AnyArray:
        group = np.clip((found - low) / (skip * size) + [0.0, 1 / (skip * size)], 0, len(values.gone))
        return np.interp(group, np.arange(len(ends)), ends)

    return figure, axes, spans


def _pieces(array: "Array", attr: Attr, ends: tuple[int, int], skip: int, size: int) -> Iterator[line.Values]:
    """The values of the part that is shown, each time of whole groups."""
    step = skip * size * max(1, _PIECE // size)
    boxes = written_boxes(array, attr.name)
    first = datatype.ticks_of(array.schema.dims[0].reach[0])
    for low in range(ends[0], ends[1] + 1, step):
        part: Ends = ((low, min(ends[1], low + step - 1)),)
        empty = presence.unwritten_by(boxes, Plane({}, ""), (0,), part, (skip,))
        values: AnyArray = array[attr.name][part[0][0] - first : part[0][1] - first + 1 : skip]
        yield line.values_of(attr, values, empty & ~presence.told_apart(attr, values))


def _grouped(values: line.Values, size: int) -> line.Values:
    """The least and the greatest value of each `size` cells."""
    if size == 1:
        return values
    room = -len(values.gone) % size
    numbers = np.pad(values.least, (0, room), "edge").reshape(-1, size)
    gone = np.pad(values.gone, (0, room), constant_values=True).reshape(-1, size)
    empty = np.pad(values.unwritten, (0, room), constant_values=True).reshape(-1, size)
    held = np.ma.MaskedArray(numbers, mask=gone)
    ends = [np.ma.getdata(one) for one in (held.min(axis=1), held.max(axis=1))]
    return line.Values(
        values.attr, ends[0], ends[1], np.asarray(gone.all(axis=1)), np.asarray(empty.all(axis=1)), values.counts
    )


def _joined(pieces: list[line.Values]) -> line.Values:
    first = pieces[0]
    greatest = None if first.greatest is None else np.concatenate([one.greatest for one in pieces])
    counts = {name: sum(one.counts[name] for one in pieces) for name in first.counts}
    least, gone, empty = (
        np.concatenate([getattr(one, name) for one in pieces]) for name in ("least", "gone", "unwritten")
    )
    return replace(first, least=least, greatest=greatest, gone=gone, unwritten=empty, counts=counts)


def _places(array: "Array", dim: Dim, ticks: AnyArray) -> line.Places:
    """Where positions stand: at their labels, or at their coordinates."""
    labels = array.dim(dim.name).labels
    if labels is None:
        return line.Places(_coordinates(dim, ticks), dim.dtype)
    held = np.ma.getdata(labels)
    dtype = f"{held.dtype}" if held.dtype.kind in "mM" else dim.dtype
    return line.places_of(labels, ticks, datatype.ticks_of(dim.reach[0]), dtype)


def _coordinates(dim: Dim, ticks: AnyArray) -> AnyArray:
    """Ticks as coordinates."""
    if not datatype.is_time(dim.dtype):
        return ticks
    example: Any = datatype.from_text(dim.dtype, "0")
    return ticks.astype(np.int64).view(example.dtype)


def _label(axes: "Axes", array: "Array", dim: Dim) -> None:
    axes.set_xlabel(named(dim.name, array.dim(dim.name).meta), color=theme.current().text)


def draw_bars(array: "Array", box: Box, heading: str) -> Drawn:
    """The number of cells along the dimension of a sparse array."""
    dim = array.schema.dims[0]
    if dim.is_text:
        raise UnsupportedError(
            f"dimension {dim.name!r} is string, which has no scale to draw along; group by it and draw the answer: "
            f'a.aggregate({{"cells": "count(*)"}}, by=[{dim.name!r}]).plot(keys=[{dim.name!r}])'
        )
    if box.empty:
        raise UnsupportedError("the box has no cells; there is nothing to draw")
    # Arrow has no days or hours: it gives seconds.
    kind = datatype.numpy_of(dim.dtype)
    batches = (np.asarray(batch.column(dim.name).to_numpy()).astype(kind) for batch in array.scan(box, []))
    figure, axes = counted(dim, box.bounds[0], batches, heading)
    _label(axes, array, dim)
    return figure, axes, lambda ends: _on_bars(axes, dim, ends)


def counted(dim: Dim, bounds: tuple[Any, Any], batches: Iterable[AnyArray], heading: str) -> "tuple[Picture, Axes]":
    """Coordinates between the ends of a box as bars of counts."""
    from .figure import canvas

    bars = _float_bars(dim, bounds) if datatype.is_float(dim.dtype) else _tick_bars(dim, bounds)
    counts = np.zeros(len(bars.edges) - 1, np.int64)
    for values in batches:
        counts += np.bincount(bars.place(values), minlength=len(counts))
    figure, axes, bar = canvas(heading, bars.note, line.RATIO)
    bar.remove()
    line.draw_bars(axes, bars.edges, dim.dtype, counts)
    return figure, axes


@dataclass(frozen=True, slots=True)
class _Bars:
    edges: AnyArray
    place: Callable[[AnyArray], AnyArray]
    """The bar of each coordinate."""
    note: str


def _float_bars(dim: Dim, bounds: tuple[Any, Any]) -> _Bars:
    low, high = range_of(dim, bounds)
    if not math.isfinite(high - low):
        raise UnsupportedError(
            f"dimension {dim.name!r} from {low:g} to {high:g} is too long for an axis; choose a part with box="
        )

    def place(values: AnyArray) -> AnyArray:
        return density.counted([values.astype(np.float64)], [(low, high)], (BARS_MAX,))

    return _Bars(np.linspace(low, high, BARS_MAX + 1), place, f"each bar: {text_of((high - low) / BARS_MAX)}")


def _tick_bars(dim: Dim, ends: tuple[Any, Any]) -> _Bars:
    """Bars of equally many coordinates, in exact arithmetic."""
    low, high = (datatype.ticks_of(end) for end in ends)
    width = -(-(high - low + 1) // BARS_MAX)
    count = -(-(high - low + 1) // width)
    edges = [low + place * width for place in range(count + 1)]

    def place(values: AnyArray) -> AnyArray:
        # Differences of 64 bits are right where the values wrap.
        away = values.astype(values.dtype if values.dtype.kind in "iu" else np.int64).astype(np.uint64)
        found: AnyArray = ((away - np.uint64(low % 2**64)) // np.uint64(width)).astype(np.int64)
        return found

    if not datatype.is_time(dim.dtype):
        return _Bars(np.array(edges, np.float64), place, f"each bar: {width:,} coordinate{'' if width == 1 else 's'}")
    unit = datatype.unit_of(dim.dtype)
    step = int(datatype.step_of(dim.dtype).removesuffix(unit) or 1)
    held = np.array([min(edge, 2**63 - 1) for edge in edges], np.int64)
    return _Bars(_coordinates(dim, held), place, f"each bar: {width * step:,} {unit}")


def _on_bars(axes: "Axes", dim: Dim, ends: AnyArray) -> AnyArray:
    """Places along x of the low and high ends of ranges; whole coordinates reach to the next one."""
    if datatype.is_float(dim.dtype):
        return ends
    after: AnyArray = ends + np.array([0, 1])
    if not datatype.is_time(dim.dtype):
        return after
    whole = np.clip(after, -9.2e18, 9.2e18).astype(np.int64)
    return line.to_scale(axes.xaxis, _coordinates(dim, whole), dim.dtype)
