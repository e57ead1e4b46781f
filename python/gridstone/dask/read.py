"""Dense arrays as dask arrays: chunks along the space tiles, and a graph of addresses."""

import itertools
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.arguments import checked, text
from ..base.extras import needed
from ..base.printable import brief
from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import InputError, UnsupportedError
from ..schema.attribute import Attr
from .place import Place, array_and_attr, place_of

_VAR_BYTES = 64
"""What a value of variable length is taken for where sizes of chunks are chosen."""


class Values:
    """The values of one attribute at an address, which are read where they are indexed. Dask slices it."""

    __slots__ = ("dtype", "masked", "name", "ndim", "place", "shape", "sides")

    def __init__(
        self, place: Place, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], masked: bool, sides: int
    ) -> None:
        self.place, self.name, self.shape, self.dtype, self.masked = place, name, shape, dtype, masked
        self.ndim, self.sides = len(shape), sides
        """How many of the last axes are those of a vector."""

    def __getitem__(self, key: Any) -> AnyArray:
        given = key if isinstance(key, tuple) else (key,)
        cells = self.ndim - self.sides
        # An ellipsis keeps a single cell an array.
        found: AnyArray = self.place.reader()[self.name][(*given[:cells], ...)]
        return found[(..., *given[cells:])] if self.sides else found

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return self.place.__dask_tokenize__(), self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return Values, (self.place, self.name, self.shape, self.dtype, self.masked, self.sides)


@checked(attr=text)
def array(a: Any, chunks: Any = "auto", *, attr: str | None = None) -> Any:
    """A dense array as a `dask.array.Array` that reads the version which the handle shows now.

        x = gs.dask.array(gs.open("sea.gs"))
        x.mean(axis=0).compute()

    The graph has the address of the array, its version and its context without secrets: no data, no open handle and no
    lock. Each process opens the array for itself, at that version, whatever is committed meanwhile.

    Args:
        a: a dense array, or one attribute of it: `a["t"]`.
        chunks: "auto": whole space tiles, as many as `dask.config` has for `array.chunk-size`; a size of chunks in
            bytes ("64MiB") likewise. Else what Dask takes: a number, a shape, all sizes along each dimension, or a dict
            of these, by position or by name of a dimension. `a.chunks` gives one tile each.
        attr: which attribute, if there are several.

    Returns:
        A dask array of the shape of `a`, and behind it the axes of vectors, which are in one chunk. Chunks of nullable
        attributes are masked arrays; those of texts have the dtype object.

    Raises:
        InputError: several attributes and none chosen, or chunks that do not fit.
        UnsupportedError: the array is sparse (`gridstone.dask.frame` reads it) or in a transaction, or dask is missing.
    """
    da = needed("dask.array", "dask", "gridstone.dask.array")
    handle, name = array_and_attr(a, "gridstone.dask.array", attr)
    if handle.sparse:
        raise UnsupportedError(
            "gridstone.dask.array takes dense arrays; gridstone.dask.frame(a) reads the cells of a sparse one"
        )
    place = place_of(handle, "gridstone.dask.array")
    pinned = handle._pinned()
    values = _values(pinned, place, pinned._schema.attr(name))
    sizes = _chunks(pinned, values, chunks)
    empty = np.empty((0,) * values.ndim, values.dtype)
    tokenize = needed("dask.base", "dask", "gridstone.dask.array").tokenize
    return da.from_array(
        values,
        chunks=sizes,
        name=f"gridstone-{tokenize(values, sizes)}",
        asarray=False,
        fancy=not values.sides,
        meta=np.ma.masked_array(empty) if values.masked else empty,
    )


def _values(handle: Array, place: Place, attr: Attr) -> Values:
    inner = datatype.shape_of(attr.dtype)
    return Values(
        place, attr.name, (*handle.shape, *inner), datatype.numpy_of(attr.dtype), bool(attr.nullable), len(inner)
    )


def _chunks(handle: Array, values: Values, chunks: Any) -> tuple[tuple[int, ...], ...]:
    """The sizes of chunks along each axis."""
    normalize_chunks = needed("dask.array.core", "dask", "gridstone.dask.array").normalize_chunks
    width = np.dtype(f"V{_VAR_BYTES}") if values.dtype.hasobject else values.dtype
    given = _by_axis(handle, chunks)
    cells = handle.ndim
    if not isinstance(given, dict) and values.sides:
        given = {axis: part for axis, part in enumerate(_spread(given, cells))}
    if isinstance(given, dict):
        given |= dict.fromkeys(range(cells, values.ndim), -1)
    extents = (*(max(1, min(c, n) if n else c) for c, n in zip(handle.chunks, handle.shape, strict=True)),)
    inner = values.shape[cells:]
    try:
        sizes = normalize_chunks(given, values.shape, dtype=width, previous_chunks=(*extents, *inner))
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(f"chunks={brief(chunks)} does not fit the shape {values.shape}: {error}") from error
    return tuple(
        _at_tiles(handle, axis, found) if axis < cells and _is_chosen(given, axis) else found
        for axis, found in enumerate(sizes)
    )


def _by_axis(handle: Array, chunks: Any) -> Any:
    """`chunks`, a dict by position where it is one by names of dimensions."""
    if not isinstance(chunks, Mapping):
        return chunks
    known = {name: axis for axis, name in enumerate(handle.dims)}
    made: dict[int, Any] = {}
    for key, size in chunks.items():
        axis = known.get(key) if isinstance(key, str) else operator.index(key) if hasattr(key, "__index__") else None
        if axis is None or not -handle.ndim <= axis < handle.ndim:
            raise InputError(
                f"chunks= names {brief(key)}, which is no dimension; there are {', '.join(map(repr, handle.dims))}"
            )
        made[axis % handle.ndim] = size
    return made


def _spread(chunks: Any, ndim: int) -> list[Any]:
    """Sizes for each of the dimensions."""
    if isinstance(chunks, tuple | list) and len(chunks) == ndim:
        return list(chunks)
    return [chunks] * ndim


def _is_chosen(given: Any, axis: int) -> bool:
    """Whether the sizes along an axis are left to be chosen."""
    if isinstance(given, Mapping):
        given = given.get(axis)
    elif isinstance(given, tuple | list):
        given = given[axis] if axis < len(given) else None
    return isinstance(given, str)


def _at_tiles(handle: Array, axis: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of whole tiles, moved to where tiles begin: the low end of a domain may cut the first one."""
    dim, longest = handle._schema.dims[axis], max(sizes, default=0)
    extent = dim.positions_per_tile
    if len(sizes) < 2 or extent < 1 or longest % extent:
        return sizes
    starts = dim._tile_starts(datatype.ticks_of(dim.reach[0]), dim.size)
    edges = [*starts[:: longest // extent].tolist(), dim.size]
    return tuple(int(end) - int(start) for start, end in itertools.pairwise(edges))
