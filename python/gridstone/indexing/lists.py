"""Reads and writes cells chosen by lists of coordinates or of positions."""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native
from ..base.printable import brief
from ..column import columns, datatype, encode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import BoundsError, UnsupportedError
from ..query.axis import Axis, axis_of, check_positions, expand
from ..query.box import Box
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from ..schema.fields import asked_of_core, attr_field, column_of
from ..write.values import by_attribute
from . import chosen, dense
from .handle import Handle

Arrays = dict[str, AnyArray]


def one_of(found: Arrays, name: str | None) -> Any:
    """One array where one attribute was asked for or is all there is."""
    return next(iter(found.values())) if name is not None or len(found) == 1 else found


def read(array: Handle, dims: Mapping[str, Column], names: Sequence[str], progress: Any = None) -> Result:
    """The cells at these coordinates, in their order, with coordinates: of a dense array one per point, of a sparse one
    those that exist."""

    def look(schema: Schema) -> Result:
        cells = array._read_points(dims, asked_of_core(schema, names), progress)
        found = dict(dims)
        if schema.sparse:
            found = {name: columns.from_native(schema.dim(name).dtype, column) for name, column in cells.dims.items()}
        for name in names:
            found[name] = column_of(schema.attr(name), cells.attrs[name])
        box = _box_around(schema, dims)
        return Result(schema, box, names, "row", found, cells.stats, array.context.memory_budget, listed=True)

    return array._retry_if_schema_moved(look)


def inside(schema: Schema, dims: Mapping[str, Column]) -> Mapping[str, Column]:
    """The points that lie in the domain, in their order; `dims` itself if all do."""
    outside: AnyArray | None = None
    for dim in schema.dims:
        if dim.is_text:
            continue
        values = dims[dim.name].values
        plain = values.view(np.int64) if values.dtype.kind in "mM" else values
        low, high = (datatype.ticks_of(end) if datatype.is_time(dim.dtype) else end for end in dim.reach)
        # NaN and NaT are no coordinates, which the core says.
        beyond = (plain < low) | (plain > high)
        if values.dtype.kind in "mM":
            beyond &= ~np.isnat(values)
        outside = beyond if outside is None else outside | beyond
    if outside is None or not outside.any():
        return dims
    return {name: columns.where(column, ~outside) for name, column in dims.items()}


def assign(
    array: Handle, name: str | None, choices: Sequence["_native._Chosen"], shape: tuple[int, ...], value: Any
) -> None:
    """Writes the cells at these positions, from values of `shape`."""
    array._writable()
    schema = array._schema
    given = by_attribute(schema, value, name)
    made = {n: dense.row_major(encode.from_values(attr_field(schema, n), v, shape)) for n, v in given.items()}
    if math.prod(shape):
        chosen.write(array, choices, None, made)


def _box_around(schema: Schema, dims: Mapping[str, Column]) -> Box:
    """The least box around the points; an empty one around none."""
    bounds: list[tuple[Any, Any]] = []
    for dim in schema.dims:
        if dim.is_text:
            bounds.append((0, 0 if len(dims[dim.name]) else -1))
            continue
        values = dims[dim.name].values
        plain = values.view(np.int64) if values.dtype.kind in "mM" else values
        bounds.append((plain.min().item(), plain.max().item()) if plain.size else (1, 0))
    return Box(schema.dims, tuple(bounds))


def coordinates(dim: Dim, offsets: AnyArray) -> AnyArray:
    """The coordinates at these positions (uint64, from 0), in the dimension's dtype."""
    target = datatype.numpy_of(dim.dtype)
    ticks = offsets + np.uint64(datatype.ticks_of(dim.reach[0]) & (2**64 - 1))
    return ticks.view(np.int64).view(target) if target.kind in "mM" else ticks.astype(target)


def _integers(dim: Dim, part: Any, axis: int) -> AnyArray:
    """A list of positions, or the places where a boolean one is true, as an array; checked against nothing yet."""
    try:
        found = np.asarray(part)
    except ValueError as error:
        raise BoundsError(
            f"dimension {dim.name!r} (axis {axis}): {brief(part)} is no list of positions: {error}"
        ) from error
    if found.size == 0 and not isinstance(part, np.ndarray):
        found = found.astype(np.int64)
    if found.dtype.kind in "fO" and not isinstance(part, np.ndarray):
        found = _large(dim, part, found)
    if found.dtype.kind == "b" and found.ndim == 1:
        if found.size != dim.size:
            raise BoundsError(
                f"a boolean list of {found.size} was given for dimension {dim.name!r} (axis {axis}), "
                f"which has {dim.size} positions"
            )
        found = np.flatnonzero(found)
    if found.dtype.kind not in "iu":
        raise BoundsError(f"dimension {dim.name!r} (axis {axis}): positions are integers, found {brief(part)}")
    return found


def _large(dim: Dim, part: Any, found: AnyArray) -> AnyArray:
    """Integers on both sides of 2^63, which NumPy takes for floats; negative ones counted from the end. Others as they
    are."""
    whole = np.array(part, object)
    if not all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in whole.ravel()):
        return found
    counted = [int(value) + (dim.size if -dim.size <= value < 0 else 0) for value in whole.ravel()]
    if min(counted) < 0 or max(counted) >= 2**64:
        raise BoundsError(
            f"positions {brief(part)} are out of bounds for dimension {dim.name!r} with {dim.size} positions"
        )
    return np.array(counted, np.uint64).reshape(whole.shape)


def _offsets(dim: Dim, found: AnyArray, axis: int) -> AnyArray:
    """Positions as uint64 from 0, negative ones counted from the end."""
    size = dim.size
    if found.size and (int(found.min()) < -size or int(found.max()) >= size):
        bad = next(value for value in map(int, found.ravel()) if not -size <= value < size)
        raise BoundsError(
            f"position {brief(bad)} is out of bounds for dimension {dim.name!r} (axis {axis}) with {size} positions; "
            f"positions count from 0, points() takes coordinates"
        )
    if found.dtype.kind == "u":
        return found.astype(np.uint64)
    signed = found.astype(np.int64)
    return signed.view(np.uint64) + (signed < 0) * np.uint64(size & (2**64 - 1))


def offsets_of(dim: Dim, part: Any, axis: int) -> AnyArray:
    """The positions (uint64) that a list of integers along one axis asks for, in its shape."""
    check_positions(dim, axis)
    return _offsets(dim, _integers(dim, part, axis), axis)


def _point_lists(schema: Schema, key: Any) -> list[AnyArray]:
    """The positions that `vindex[key]` asks for, an array per dimension."""
    if not schema.ndim:
        raise BoundsError("an array of no dimension has one value and no positions: a[()] reads it")
    parts = key if isinstance(key, tuple) else (key,)
    mask = parts[0] if len(parts) == 1 and schema.ndim > 1 else None
    if isinstance(mask, list | np.ndarray) and np.asarray(mask).dtype == np.bool_:
        mask = np.asarray(mask)
        if mask.shape != schema.shape:
            raise BoundsError(f"a boolean array of shape {mask.shape} was given, the array has shape {schema.shape}")
        return [places.astype(np.uint64) for places in np.nonzero(mask)]
    if len(parts) != schema.ndim:
        raise BoundsError(
            f"vindex takes one list of positions per dimension, here {schema.ndim}, or one boolean array of the "
            f"array's shape; {len(parts)} were given"
        )
    made = []
    for axis, (dim, part) in enumerate(zip(schema.dims, parts, strict=True)):
        if isinstance(part, slice) or part is None or part is Ellipsis:
            raise UnsupportedError("vindex takes integers and lists of them; slices beside lists are for oindex")
        made.append(_offsets(dim, _integers(dim, part, axis), axis))
    return made


def points(schema: Schema, key: Any) -> tuple[list[AnyArray], tuple[int, ...]]:
    """The positions of the cells that `vindex[key]` asks for, broadcast, and the shape that they make."""
    given = _point_lists(schema, key)
    try:
        lists = np.broadcast_arrays(*given)
    except ValueError:
        shapes = " ".join(str(positions.shape) for positions in given)
        raise BoundsError(f"the lists of positions have shapes {shapes}, which do not broadcast together") from None
    return list(lists), lists[0].shape


def coordinates_of(schema: Schema, points: Sequence[AnyArray]) -> dict[str, Column]:
    return {
        dim.name: Column(dim.dtype, coordinates(dim, np.ravel(offsets)))
        for dim, offsets in zip(schema.dims, points, strict=True)
    }


def points_of(schema: Schema, key: Any) -> dict[str, Column]:
    """The coordinates of the cells that `vindex[key]` asks for."""
    return coordinates_of(schema, points(schema, key)[0])


@dataclass(frozen=True, slots=True)
class Part:
    """What is asked for along one axis: positions of a slice or an integer, or a list of them (uint64)."""

    axis: Axis | None
    positions: AnyArray | None = None

    @property
    def count(self) -> int:
        """How many positions there are."""
        return self.axis.count if self.axis is not None else self._list.size

    @property
    def drop(self) -> bool:
        """Whether a single integer drops the axis."""
        return self.axis is not None and self.axis.drop

    @property
    def chosen(self) -> "_native._Chosen":
        """The positions as the core takes them."""
        return chosen.listed(self._list) if self.axis is None else chosen.strided(self.axis)

    @property
    def _list(self) -> AnyArray:
        return np.empty(0, np.uint64) if self.positions is None else self.positions


def axis_parts(schema: Schema, key: Any) -> list[Part]:
    """What `oindex[key]` asks for along each axis."""
    parts = expand(key, schema.ndim)
    return [axis_part(dim, part, axis) for axis, (dim, part) in enumerate(zip(schema.dims, parts, strict=True))]


def axis_part(dim: Dim, part: Any, axis: int) -> Part:
    """What is asked for along one axis."""
    if isinstance(part, slice):
        return Part(axis_of(dim, part, axis))
    positions, drop = axis_list(dim, part, axis)
    return Part(Axis(int(positions[0]), 1, 1, True)) if drop else Part(None, positions)


def axis_list(dim: Dim, part: Any, axis: int) -> tuple[AnyArray, bool]:
    """The positions along one axis (uint64), and whether a single integer drops it."""
    check_positions(dim, axis)
    if isinstance(part, slice):
        start, stop, step = part.indices(dim.size)
        count = len(range(start, stop, step))
        ticks = np.arange(count, dtype=np.uint64) * np.uint64(step & (2**64 - 1)) + np.uint64(start & (2**64 - 1))
        return ticks, False
    if part is None:
        raise UnsupportedError("numpy.newaxis is not supported; index the result instead: a.oindex[...][None]")
    if not isinstance(part, bool | np.bool_):
        try:
            part = operator.index(part)
        except TypeError:
            pass
        else:
            return _offsets(dim, _integers(dim, [part], axis), axis), True
    found = _integers(dim, part, axis)
    if found.ndim != 1:
        raise BoundsError(
            f"lists of positions along an axis are flat here; axis {axis} was given one of shape {found.shape}"
        )
    return _offsets(dim, found, axis), False


def orthogonal(array: Handle, schema: Schema, names: Sequence[str], parts: Sequence[Part]) -> Arrays:
    """The cells at every combination of the parts' positions."""
    shape = tuple(part.count for part in parts)
    return chosen.read(array, schema, names, [part.chosen for part in parts], None, shape)
