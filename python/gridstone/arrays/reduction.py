"""A reduction as a new dense array: written block by block, in one commit."""

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _native
from ..base.naming import target
from ..base.progress import Progress, Reporter
from ..column import datatype
from ..column.columns import Column
from ..query.box import Box
from ..result.answer import named_columns, stream_of
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from .aggregate import quoted
from .filtering import created_with

_SHARE = 16
"""What part of the budget the results of a block may take."""
_TEXT_BYTES = 64
"""What a text or a run of bytes takes, about."""
Cells = tuple["_native.Condition | None", bytes | None]
"""Which cells count, as the core takes it."""
_Side = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Written:
    """What is reduced, and how."""

    source: Any
    """The array at one version, or in a transaction."""
    box: Box
    kept: tuple[int, ...]
    texts: list[tuple[str, str]]
    where: Any
    """A condition, or an array of booleans of the box's shape."""

    def cells(self, part: Box, condition: "_native.Condition | None") -> Cells:
        """Which cells of a part of the box count."""
        if condition is not None or not isinstance(self.where, np.ndarray):
            return condition, None
        ends = zip(part.bounds, self.box.bounds, strict=True)
        places = tuple(slice(int(lo) - int(first), int(hi) - int(first) + 1) for (lo, hi), (first, _) in ends)
        return None, np.ascontiguousarray(self.where[places]).tobytes()

    def reduced(self, box: Box, cells: Cells) -> dict[str, Column]:
        """The results over a part of the box."""
        native, kept = self.source.native, list(self.kept)
        _, found, categories, _ = _native.reduce(native, [box.native], cells, self.texts, kept, None)
        return named_columns(self.source._schema, found, categories)


def written(asked: Written, condition: "_native.Condition | None", to: str, progress: Progress) -> Any:
    """The array at `to`, made of the results of a reduction, in one commit.

    What does not fit, and an array that is there, are errors before a cell is read.
    """
    source, schema = asked.source, asked.source._schema
    dims = [_dim_of(schema.dims[axis], asked.box.bounds[axis]) for axis in asked.kept]
    attrs = _attrs_of(asked, condition)
    made = Schema(dims, attrs, tile_order=schema.tile_order, cell_order=schema.cell_order)
    sides = [(int(lo), int(hi)) for lo, hi in (asked.box.bounds[axis] for axis in asked.kept)]
    places = source._context.memory_budget // _SHARE // sum(_width(attr) for attr in attrs)
    grids = [_grid(schema.dims[axis]) for axis in asked.kept]

    def fill(new: Any) -> None:
        reporter = Reporter(progress, "reducing", math.prod(hi - lo + 1 for lo, hi in sides))
        try:
            for block in blocks(sides, grids, max(places, 1)):
                part = _part(asked, block)
                found = asked.reduced(part, asked.cells(part, condition))
                native = {attr.name: _fitting(found[attr.name], attr).native() for attr in attrs}
                within = Box(made.dims, block)
                new._stage_box(within, native, "row", None, None)
                reporter.more(math.prod(within.shape))
            reporter.end()
        finally:
            reporter.give_up()
        _copy_dims(source, new, asked)

    uri, path = target(to)
    return created_with(source, uri, path, made, fill, "a reduction of")


def _dim_of(dim: Dim, side: tuple[Any, Any]) -> Dim:
    """A dimension that remains: as it is, or cut to a side of a box."""
    lo, hi = (datatype.ticks_of(end) for end in dim.reach)
    whole = (lo, hi) == (int(side[0]), int(side[1]))
    given = dim.reach if dim._given is None else dim._given
    ends = given if whole else (int(side[0]), int(side[1]))
    return Dim(dim.name, ends, tile=dim.tile, dtype=dim.dtype)


def _attrs_of(asked: Written, condition: "_native.Condition | None") -> list[Attr]:
    """The attributes of the results. They may be null where a place may have no cell that counts."""
    source, schema = asked.source, asked.source._schema
    names = [schema.dims[axis].name for axis in asked.kept]
    # Groups have cells; what is asked without groups may be asked of nothing.
    keys: list[tuple[str, str, int | float | None]] = []
    if condition is None and asked.where is None:
        keys = [(name, quoted(name), None) for name in names]
    found = _native.answers(source.native, [], condition, keys, asked.texts, (None, [], None), None)
    with closing(stream_of(schema, found, source._context.memory_budget)) as stream:
        return list(stream._array_schema.attrs[len(keys) :])


def _width(attr: Attr) -> int:
    """Bytes of one result."""
    dtype = attr.dtype if attr.enumeration is None else attr.enumeration.codes
    return 1 + (_TEXT_BYTES if datatype.is_var(dtype) else datatype.cell_of(dtype).itemsize)


def _grid(dim: Dim) -> _Side:
    """A coordinate at which a tile begins, and how many a tile has."""
    origin = datatype.ticks_of(dim.reach[0]) if dim._origin is None else dim._origin
    return origin, dim.size if dim.tile is None else datatype.ticks_of(dim.tile)


def blocks(sides: Sequence[_Side], grids: Sequence[_Side], places: int) -> Iterator[tuple[_Side, ...]]:
    """The boxes that a box is cut into, in row order, of about so many places each at most; they end at tiles if a tile
    has no more."""
    lengths = [min(tile, hi - lo + 1) for (lo, hi), (_, tile) in zip(sides, grids, strict=True)]
    for axis, (lo, hi) in reversed(list(enumerate(sides))):
        others, tile = math.prod(lengths) // lengths[axis], grids[axis][1]
        lengths[axis] = min(hi - lo + 1, max(lengths[axis], places // others // tile * tile))
        if lengths[axis] < hi - lo + 1:
            break
    for axis in range(len(lengths)):
        others = math.prod(lengths) // lengths[axis]
        lengths[axis] = min(lengths[axis], max(1, places // others))
    return itertools.product(*map(_cut, sides, grids, lengths))


def _cut(side: _Side, grid: _Side, length: int) -> list[_Side]:
    """The parts of a side, of so many places each at most."""
    (lo, hi), (origin, tile) = side, grid
    if length > hi - lo:
        return [side]
    made = []
    while lo <= hi:
        # Within a tile parts begin at its own begin.
        begin = origin + (lo - origin) // tile * tile if length >= tile else lo
        last = min(begin + length - 1, hi)
        made.append((lo, last))
        lo = last + 1
    return made


def _part(asked: Written, block: Sequence[_Side]) -> Box:
    """The cells that a block of results is made of."""
    bounds = list(asked.box.bounds)
    for axis, side in zip(asked.kept, block, strict=True):
        bounds[axis] = side
    return Box(asked.box.dims, tuple(bounds))


def _fitting(column: Column, attr: Attr) -> Column:
    """A column with a validity where the attribute has one."""
    if not attr.nullable:
        return replace(column, validity=None)
    return column if column.validity is not None else replace(column, validity=np.ones(len(column), np.bool_))


def _copy_dims(source: Any, new: Any, asked: Written) -> None:
    """Gives the new array the labels and metadata of the dimensions that remain."""
    labels: dict[str, Any] = {}
    for axis in asked.kept:
        dim = source._schema.dims[axis]
        if dim._stored_labels is not None:
            first = datatype.ticks_of(dim.reach[0])
            lo, hi = asked.box.bounds[axis]
            labels[dim.name] = source.dim(dim.name).labels[int(lo) - first : int(hi) - first + 1]
    if labels:
        new.alter(labels=labels)
    for axis in asked.kept:
        name = source._schema.dims[axis].name
        new.dim(name).meta.update(source.dim(name).meta)
