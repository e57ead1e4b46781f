"""Cells chosen by lists: of coordinates (`points`), of positions point by point (`vindex`), of positions per axis
(`oindex`)."""

import math
import operator
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..base.printable import brief
from ..column import columns, datatype, decode, encode
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import BoundsError, UnsupportedError
from ..query.axis import check_positions, expand
from ..query.box import Box
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from ..schema.fields import asked_of_core, attr_field, column_of, empty_of
from ..write.values import by_attribute
from . import dense
from .handle import Handle
from .stretches import stretches

Arrays = dict[str, AnyArray]

_BOX_CELLS = 512
"""Boxes of fewer cells than this are read point by point: a call costs as much as some hundred points."""
_POINTS_MAX = 1 << 22
"""Points looked up in one call, which bounds the memory of their coordinates."""


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

    return array._steadily(look)


def values_at(array: Handle, dims: Mapping[str, Column], names: Sequence[str], shape: tuple[int, ...]) -> Arrays:
    """The attributes of a dense array at these coordinates, as arrays of `shape`."""
    cells = array._read_points(dims, names, None)
    made = {name: column_of(array.schema.attr(name), cells.attrs[name]) for name in names}
    return {name: decode.one(decode.numpy_of(column.shaped(shape, "row"))) for name, column in made.items()}


def assign(array: Handle, name: str | None, dims: Mapping[str, Column], shape: tuple[int, ...], value: Any) -> None:
    """Writes the cells at these coordinates, from values of `shape`."""
    schema = array.schema
    given = by_attribute(schema, value, name)
    made = {n: dense.row_major(encode.from_values(attr_field(schema, n), v, shape)) for n, v in given.items()}
    if math.prod(shape):
        array._stage_cells(dims, made, sorted=False, dedup="last", message=None, progress=None)


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
    ticks = offsets + np.uint64(datatype.ticks_of(dim.domain[0]) & (2**64 - 1))
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


def points_of(schema: Schema, key: Any) -> tuple[dict[str, Column], tuple[int, ...]]:
    """The coordinates of the cells that `vindex[key]` asks for, and the shape that they make."""
    given = _point_lists(schema, key)
    try:
        lists = np.broadcast_arrays(*given)
    except ValueError:
        shapes = " ".join(str(positions.shape) for positions in given)
        raise BoundsError(f"the lists of positions have shapes {shapes}, which do not broadcast together") from None
    dims = {
        dim.name: Column(dim.dtype, coordinates(dim, np.ravel(offsets)))
        for dim, offsets in zip(schema.dims, lists, strict=True)
    }
    return dims, lists[0].shape


def axis_lists(schema: Schema, key: Any) -> list[tuple[AnyArray, bool]]:
    """The positions that `oindex[key]` asks for along each axis, and whether a single integer drops it."""
    parts = expand(key, schema.ndim)
    return [axis_list(dim, part, axis) for axis, (dim, part) in enumerate(zip(schema.dims, parts, strict=True))]


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


def orthogonal(array: Handle, names: Sequence[str], lists: Sequence[AnyArray]) -> Arrays:
    """The cells at every combination of the lists, read as few boxes, or as points where boxes would be small."""
    schema = array.schema
    shape = tuple(offsets.size for offsets in lists)
    if 0 in shape:
        return {name: decode.numpy_of(empty_of(schema.attr(name), shape)) for name in names}
    unique = [np.unique(offsets, return_inverse=True) for offsets in lists]
    sorted_lists = [offsets for offsets, _ in unique]
    runs = _box_runs(schema, sorted_lists)
    boxes = math.prod(len(run) for run in runs)
    # All reads of one version, whatever is committed through the handle meanwhile.
    still = array if boxes == 1 else array._still()
    if math.prod(offsets.size for offsets in sorted_lists) < boxes * _BOX_CELLS:
        made = _by_points(still, names, sorted_lists)
    else:
        made = _by_boxes(still, names, sorted_lists, runs)
    array._stats = still._stats
    if all(
        offsets.size == given.size and bool((offsets == given).all())
        for (offsets, _), given in zip(unique, lists, strict=True)
    ):
        return made
    places = np.ix_(*(inverse.ravel() for _, inverse in unique))
    return {name: values[places] for name, values in made.items()}


def _box_runs(schema: Schema, lists: Sequence[AnyArray]) -> list[list[slice]]:
    """The runs of ascending positions along each axis whose product is read box by box, each of bounded size."""
    apart = [stretches(schema, i, offsets, 1) for i, offsets in enumerate(lists)]
    found: list[list[slice]] = []
    for i, offsets in enumerate(lists):
        # The other axes as they are cut already, or will be at least.
        others = [*found, *apart[i:]]
        longest = [_longest(other, runs) for other, runs in zip(lists, others, strict=True)]
        found.append(stretches(schema, i, offsets, math.prod(longest) // longest[i]))
    return found


def _longest(offsets: AnyArray, runs: Sequence[slice]) -> int:
    """The most positions from the first to the last of a run."""
    return max(int(offsets[run.stop - 1] - offsets[run.start]) + 1 for run in runs)


def is_run(offsets: AnyArray) -> bool:
    """Whether positions follow each other one by one."""
    return bool((np.diff(offsets) == 1).all())


def product_of(schema: Schema, lists: Sequence[AnyArray]) -> dict[str, Column]:
    """The coordinates of every combination of the lists, in row-major order."""
    along = [coordinates(dim, offsets) for dim, offsets in zip(schema.dims, lists, strict=True)]
    spread = np.broadcast_arrays(*np.ix_(*along))
    return {dim.name: Column(dim.dtype, np.ravel(s)) for dim, s in zip(schema.dims, spread, strict=True)}


def _by_boxes(
    array: Handle, names: Sequence[str], lists: Sequence[AnyArray], runs: Sequence[Sequence[slice]]
) -> Arrays:
    made: Arrays = {}
    shape = tuple(offsets.size for offsets in lists)
    for place in product(*runs):
        parts = [offsets[run] for offsets, run in zip(lists, place, strict=True)]
        low = [datatype.ticks_of(dim.domain[0]) for dim in array.schema.dims]
        ends = tuple((base + int(part[0]), base + int(part[-1])) for base, part in zip(low, parts, strict=True))
        found = array.read(Box(array.schema.dims, ends), list(names)).to_numpy()
        whole = all(int(part[-1] - part[0]) + 1 == part.size for part in parts)
        inside = () if whole else np.ix_(*((part - part[0]).astype(np.int64) for part in parts))
        if all(len(run) == 1 for run in runs):
            return {name: values[inside] for name, values in found.items()}
        for name, values in found.items():
            target(made, name, values, shape)[place] = values[inside]
    return made


def _by_points(array: Handle, names: Sequence[str], lists: Sequence[AnyArray]) -> Arrays:
    made: Arrays = {}
    shape = tuple(offsets.size for offsets in lists)
    step = max(1, _POINTS_MAX // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        part = [lists[0][start : start + step], *lists[1:]]
        found = values_at(array, product_of(array.schema, part), names, tuple(offsets.size for offsets in part))
        if step >= shape[0]:
            return found
        for name, values in found.items():
            target(made, name, values, shape)[start : start + step] = values
    return made


def target(made: Arrays, name: str, values: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """The array that an attribute's parts are put together in; masked if they are."""
    if name not in made:
        empty: AnyArray = np.empty(shape + values.shape[len(shape) :], values.dtype)
        masked = np.ma.isMaskedArray(values)
        made[name] = np.ma.MaskedArray(empty, mask=np.zeros(empty.shape, np.bool_)) if masked else empty
    return made[name]
