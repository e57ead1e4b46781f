"""Small pictures of arrays and results for notebooks, at a bounded cost.

What a picture would unpack is reckoned first, from the schema and the list of fragments, which are in memory; nothing
is read where it is more than is allowed. A dense array shows its newest plane, thinned to some pixels. A sparse one
shows where its cells lie: counted one by one where they are few, else by the boxes of its tiles, which the index has.
"""

import json
import logging
import math
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _native
from ..base.drawer import Allowance
from ..base.html import Markup
from ..column import datatype
from ..column.datatype import AnyArray
from ..context import showing
from ..errors import UnsupportedError
from ..query.box import Box, box_of
from ..result.cells import Result
from ..schema.attribute import Attr
from . import axis, density, image, pixels, plane, presence

if TYPE_CHECKING:
    from ..arrays.array import Array
    from ..schema.array_schema import Schema

log = logging.getLogger("gridstone")

CELLS_ACROSS = 160
FRAGMENTS_MAX = 2_000
TILES_MAX = 20_000
_BINS = (128, 96)
_BLOCK_CELLS = 16_384
"""Cells of a dense block, which is unpacked as a whole."""
_COUNTED_MAX = 2**20
_SPARSE_WASTE = 24
"""Bytes that a cell of a small change takes besides its value."""


def thumbnail(handle: Any, allowance: Allowance | None) -> Markup:
    """See `base.drawer.thumbnail`."""
    try:
        with np.errstate(all="ignore"):
            return _of_result(handle, allowance) if isinstance(handle, Result) else _of_array(handle, allowance)
    except Exception:  # A picture is an extra: the text is shown, whatever fails here.
        log.debug("no small picture could be made", exc_info=True)
        return Markup()


def _of_array(array: "Array", allowance: Allowance | None) -> Markup:
    allowance = allowance or Allowance(showing.current().limit(array.uri))
    if allowance.left == 0 or array.ndim == 0 or array.native.in_transaction:
        return Markup()
    frozen = array._pinned()  # Its reads leave the counters of the array as they are.
    texts = frozen.native.fragments()
    written = frozen.nonempty_domain if len(texts) <= FRAGMENTS_MAX else None
    if written is None:
        return Markup()
    rows = [json.loads(text) for text in texts]
    box = box_of(frozen.schema, dict(zip(frozen.dims, written, strict=True)))
    attached = {row["id"] for row in _native.attached_boxes(frozen.native)}
    if attached and any(map(showing.is_remote, frozen.context.native.sources)):
        allowance = Allowance(min(allowance.left, showing.current().remote_pictures))
    if frozen.sparse:
        return _of_sparse(frozen, rows, box, allowance)
    return _of_dense(frozen, box, attached, allowance)


# Dense arrays.


def _of_dense(array: "Array", box: Box, attached: Container[str], allowance: Allowance) -> Markup:
    attr = _drawable(array.schema.attrs)
    if attr is None:
        return Markup()
    ends = plane.ticks_of_box(box)
    names = list(array.dims) if array.ndim == 1 else [*axis.drawn_of(array, list(array.dims))]
    drawn = [array.dims.index(name) for name in names]
    hidden = [place for place in range(array.ndim) if place not in drawn]
    chosen = plane._newest(array, hidden, ends, {}, attr.name)
    sides = [ends[place][1] - ends[place][0] + 1 for place in drawn]
    steps = {place: -(-side // CELLS_ACROSS) for place, side in zip(drawn, sides, strict=True)}
    cut = tuple((chosen[place], chosen[place]) if place in chosen else pair for place, pair in enumerate(ends))
    boxes = [(row, box, row["id"] in attached) for row, box in plane.written_boxes(array, attr.name)]
    if not allowance.take(dense_cost(array.schema, attr, boxes, cut, steps)):
        return Markup()
    values = array[attr.name][_key(array.schema, cut, steps)]
    found = plane.Plane(chosen, ", ".join(plane._told(array, place, tick) for place, tick in chosen.items()))
    if len(drawn) == 1:
        return _as_line(attr, values, attr.name)
    x, y = drawn
    values = np.swapaxes(values, 0, 1) if x < y else values
    empty = presence.unwritten(array, found, (x, y), ends, (steps[x], steps[y]), attr.name)
    colours = _coloured(attr, values, empty)
    if axis.goes_north(array, (names[0], names[1])) and not axis.descends(array, names[1]):
        colours = colours[::-1]
    return pixels.shown(colours, sides[1] / sides[0], " · ".join(part for part in (attr.name, found.text) if part))


def _drawable(attrs: Sequence[Attr]) -> Attr | None:
    """The first attribute whose values have colours."""
    for attr in attrs:
        try:
            image.check_drawable(attr)
        except UnsupportedError:
            continue
        return attr
    return None


def _key(schema: "Schema", cut: plane.Ends, steps: Mapping[int, int]) -> tuple[Any, ...]:
    """The positions that are drawn, as brackets take them."""
    key: list[Any] = []
    for place, (dim, (low, high)) in enumerate(zip(schema.dims, cut, strict=True)):
        first = datatype.ticks_of(dim.reach[0])
        key.append(slice(low - first, high - first + 1, steps[place]) if place in steps else low - first)
    return tuple(key)


def dense_cost(
    schema: "Schema",
    attr: Attr,
    boxes: Sequence[tuple[Mapping[str, Any], plane.Ends, bool]],
    cut: plane.Ends,
    steps: Mapping[int, int],
) -> int:
    """Bytes that are unpacked at most to read a box, every so many cells along some dimensions.

    Args:
        schema: of a dense array.
        attr: the attribute that is read.
        boxes: the fragments, each with the ticks of its box, and whether its cells lie in a file of another format, of
            which whole chunks are unpacked.
        cut: the ticks of the box.
        steps: every how many cells one is read, by the number of the dimension; 1 where it is not named.
    """
    width = datatype.numpy_of(attr.dtype).itemsize if attr.categories is None else 8
    total = 0
    for row, box, is_attached in boxes:
        part = plane._within(box, cut)
        if part is None:
            continue
        if row["kind"] == "sparse":
            total += row["cells"] * (width + _SPARSE_WASTE)
            continue
        total += _unpacked(schema, box, part, steps, whole=is_attached) * width
    return total


def _unpacked(schema: "Schema", box: plane.Ends, part: plane.Ends, steps: Mapping[int, int], *, whole: bool) -> int:
    """Cells that are unpacked at most for a part of a dense fragment's box: of each tile the touched blocks, or all."""
    tiles, taken, extents = 1, [], []
    order = range(len(part)) if schema.cell_order != "col" else range(len(part) - 1, -1, -1)
    for place in order:
        side, step = part[place][1] - part[place][0] + 1, steps.get(place, 1)
        whole_tile = schema.dims[place].positions_per_tile
        # The grid of tiles is counted exactly where that takes little.
        touched = (
            len(schema.dims[place]._tile_starts(part[place][0], side))
            if side < _COUNTED_MAX
            else side // whole_tile + 2
        )
        tiles *= min(-(-side // step), touched)
        tile = min(whole_tile, box[place][1] - box[place][0] + 1)
        taken.append(min(-(-side // step), -(-tile // step)))
        extents.append(tile)
    cells = math.prod(extents)
    # What is taken along the first dimensions chooses stretches of the tile, each with blocks that reach beyond it.
    stretches = (math.prod(taken[:k]) * (math.prod(extents[k:]) + _BLOCK_CELLS) for k in range(len(taken) + 1))
    held = math.prod(high - low + 1 for low, high in box)
    return min(held, tiles * (cells if whole else min(cells, *stretches)))


def _coloured(attr: Attr, values: AnyArray, empty: AnyArray) -> AnyArray:
    """[y, x, 4]: the colours of values."""
    if attr.dtype in ("uint8[3]", "uint8[4]"):
        plain = np.ma.getdata(values)
        gone = np.asarray(np.ma.getmaskarray(np.ma.asarray(values)).reshape(*plain.shape[:2], -1).any(axis=2))
        full = np.full((*plain.shape[:2], 1), 255, np.uint8)
        return pixels.covered(np.concatenate([plain, full], axis=2)[..., :4], gone, empty)
    scale = image._scale(image.Image(attr, "", values, None))
    return pixels.of_numbers(scale.numbers, scale.gone, empty)


def _as_line(attr: Attr, values: AnyArray, note: str) -> Markup:
    """Values in a row: a line of numbers and times, a strip of colours of all others."""
    if attr.dtype in ("uint8[3]", "uint8[4]") or attr.categories is not None:
        row = values.reshape(1, *values.shape)
        return pixels.shown(_coloured(attr, row, np.zeros(row.shape[:2], bool)), 0.25, note)
    scale = image._scale(image.Image(attr, "", values.reshape(1, -1), None))
    numbers = np.where(scale.gone, np.nan, scale.numbers.astype(np.float64)).reshape(-1)
    return pixels.line(numbers, note)


# Sparse arrays.


def _of_sparse(array: "Array", rows: Sequence[Mapping[str, Any]], box: Box, allowance: Allowance) -> Markup:
    free = [dim.name for dim in array.schema.dims if not dim.is_text]
    if not free:
        return Markup()
    names = (free[0],) if len(free) == 1 else axis.drawn_of(array, free)
    cells = sum(row["cells"] for row in rows if row["kind"] == "sparse")
    ranges, bins = _raster(array.schema, names, [box.bounds[array.dims.index(name)] for name in names], cells)
    if not all(math.isfinite(high - low) for low, high in ranges):
        return Markup()
    tiles = sum(-(-row["cells"] // array.schema.capacity) for row in rows if row["kind"] == "sparse")
    note = f"{cells:,} cells by {', '.join(names)}"
    if allowance.take(cells * sum(_width(dim) for dim in array.schema.dims)):
        counts = np.zeros(math.prod(bins))
        for batch in array.scan(None, []):
            columns = [_numbers(array.schema, name, batch.column(name)) for name in names]
            counts += np.bincount(density.counted(columns, ranges, cast("Any", bins)), minlength=counts.size)
        return _as_counts(counts.reshape(bins), note)
    if tiles <= TILES_MAX and allowance.take(tiles * 16 * len(array.dims)):
        return _as_counts(_by_tiles(array, names, ranges, bins), f"{note}, by tiles")
    return Markup()


def _width(dim: Any) -> int:
    return dim.max_bytes or 32 if dim.is_text else datatype.numpy_of(dim.dtype).itemsize


def _raster(
    schema: "Schema", names: Sequence[str], bounds: Sequence[tuple[Any, Any]], cells: int
) -> tuple[list[tuple[float, float]], tuple[int, ...]]:
    """The ends of the axes, and how many bins each has: fewer of few cells, so that each can be seen. A cell of whole
    numbers is as wide as its coordinate."""
    share = min(1.0, max(0.125, math.sqrt(cells) / 24))
    dims = [schema.dim(name) for name in names]
    ranges = [axis.range_of(dim, (_number(low), _number(high))) for dim, (low, high) in zip(dims, bounds, strict=True)]
    counts = [
        int(most * share if datatype.is_float(dim.dtype) else max(1, min(most * share, high - low)))
        for dim, most, (low, high) in zip(dims, _BINS, ranges, strict=False)
    ]
    return ranges, tuple(counts)


def _number(end: Any) -> float:
    """The end of a range as a number; of times ticks."""
    return float(end if isinstance(end, float) else datatype.ticks_of(end))


def _numbers(schema: "Schema", name: str, column: Any) -> AnyArray:
    return axis.numbers_of(schema.dim(name), np.ma.getdata(np.asarray(column.to_numpy())))


def _by_tiles(
    array: "Array", names: Sequence[str], ranges: Sequence[tuple[float, float]], bins: tuple[int, ...]
) -> AnyArray:
    """About how many cells lie in each bin: those of a tile are spread evenly over its box."""
    table = array.tiles()
    cells = np.asarray(table.column("cells").to_numpy()).astype(np.float64)
    changes = np.zeros([count + 1 for count in bins])
    corners, size = [], np.ones(len(cells))
    for name, (low, high), count in zip(names, ranges, bins, strict=True):
        first, last = (
            np.clip(
                ((_numbers(array.schema, name, table.column(f"{name}_{end}")) - low) / (high - low) * count).astype(
                    np.int64
                ),
                0,
                count - 1,
            )
            for end in ("lo", "hi")
        )
        corners.append((first, last + 1))
        size *= last + 1 - first
    if len(bins) == 1:
        np.add.at(changes, corners[0][0], cells / size)
        np.add.at(changes, corners[0][1], -cells / size)
        return changes.cumsum()[:-1]
    for x, sign in ((0, 1), (1, -1)):
        for y, other in ((0, 1), (1, -1)):
            np.add.at(changes, (corners[0][x], corners[1][y]), sign * other * cells / size)
    return changes.cumsum(axis=0).cumsum(axis=1)[:-1, :-1].clip(0)


def _as_counts(counts: AnyArray, note: str) -> Markup:
    """Counts along one side as bars, along two as a map whose first row is below."""
    if counts.ndim == 1:
        return pixels.bars(counts, note)
    return pixels.shown(pixels.of_counts(counts.T[::-1]), 0.75, note)


# Results.


def _of_result(found: Result, allowance: Allowance | None) -> Markup:
    allowance = allowance or Allowance(showing.current().pictures)
    if len(found) == 0 or not allowance.take(found.nbytes):
        return Markup()
    return _of_cells(found) if found.shape is None else _of_box(found, found.shape)


def _of_cells(found: Result) -> Markup:
    """A list of cells: where they lie."""
    names = [dim.name for dim in found._schema.dims if not dim.is_text and dim.name in found]
    if not names:
        return Markup()
    lower = {name.lower(): name for name in names}
    maps = [
        (lower[x], lower[y]) for x, y in (("lon", "lat"), ("longitude", "latitude"), ("x", "y")) if {x, y} <= {*lower}
    ]
    names = list(maps[0]) if maps else names[:2]
    columns = [np.ma.getdata(found[name]) for name in names]
    ranges, bins = _raster(found._schema, names, [_ends(one) for one in columns], len(found))
    numbers = [(one.astype(np.int64) if one.dtype.kind in "mM" else one).astype(np.float64) for one in columns]
    place = density.counted(numbers, ranges, cast("Any", bins))
    counts = np.bincount(place, minlength=math.prod(bins)).reshape(bins)
    return _as_counts(counts, f"{len(found):,} cells by {', '.join(names)}")


def _ends(values: AnyArray) -> tuple[float, float]:
    """The least and the greatest of some coordinates, times as ticks."""
    plain = values.astype(np.int64) if values.dtype.kind in "mM" else values
    return float(plain.min()), float(plain.max())


def _of_box(found: Result, shape: Sequence[int]) -> Markup:
    """A dense box: the last plane of its last two sides, or a line."""
    attr = _drawable([found._schema.attr(name) for name in found._names])
    if attr is None or not shape:
        return Markup()
    values = np.ma.asarray(found[attr.name])
    if values.shape[: len(shape)] != tuple(shape):
        return Markup()  # A flat vector in global order.
    sides = [place for place, side in enumerate(shape) if side != 1] or [len(shape) - 1]
    kept = sides[-2:]
    key = tuple(
        slice(None, None, -(-side // CELLS_ACROSS)) if place in kept else side - 1 for place, side in enumerate(shape)
    )
    values = values[key]
    if len(kept) == 1:
        return _as_line(attr, values, attr.name)
    names = [found._schema.dims[place].name for place in kept]
    colours = _coloured(attr, values, np.zeros(values.shape[:2], bool))
    colours = colours[::-1] if axis.is_latitude(names[0], {}) and _rises(found, kept[0]) else colours
    return pixels.shown(colours, shape[kept[0]] / shape[kept[1]], attr.name)


def _rises(found: Result, place: int) -> bool:
    """Whether what the positions along a side are called gets greater."""
    name = found._schema.dims[place].name
    told = found.labels.get(name)
    along = np.ma.getdata(found[name] if told is None else told)
    return along.dtype.kind in "iufM" and bool(along[0] <= along[-1])
