"""Writes the blocks of dask arrays. Each block is a fragment that nothing refers to yet, and a receipt of it.

1. `write_blocks` makes a dask array of receipts, one for each block. A graph may have many of these.
2. Workers write the blocks, in any order, in any process, and a block that is tried again once more.
3. One process commits the receipts that came back: `commit_blocks`. Files of the others are left to a vacuum.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.extras import needed
from ..base.printable import brief
from ..column import datatype
from ..errors import InputError, UnsupportedError
from ..query.box import Box
from ..schema.array_schema import Schema
from ..version.receipt import Receipt
from .place import Place, place_of

Blocks = Any
"""A dask array of receipts, one per block: `None` of a block without cells."""


def write_blocks(array: Array, values: Mapping[str, Any], offset: Sequence[int] | None = None) -> Blocks:
    """A dask array of receipts, which writes blocks when it is computed and commits nothing.

        blocks = write_blocks(a, {"t": x}, offset=(10, 0))
        gs.commit(a.uri, receipts_of(dask.compute(blocks)))

    Args:
        array: a dense array, open for writing. One of a transaction takes the blocks itself, so that they are committed
            with it; they have to be computed by threads of this process then, and there are no receipts.
        values: dask arrays of one shape by attribute. Those of vectors have the vector's axes behind the others.
        offset: the position in the array of the first cell; None: the array's first one.

    Raises:
        InputError: an unknown attribute, or arrays of different shapes, of unknown ones or of other numbers of axes.
    """
    da = needed("dask.array", "dask", "writing blocks")
    from dask.layers import ArraySliceDep

    schema = array._schema
    parts = _aligned(da, schema, values)
    cells = tuple(range(schema.ndim))
    first = next(iter(parts.values()))
    pairs: list[Any] = []
    for place, part in enumerate(parts.values()):
        # A vector's axes are one block long; each attribute has labels of its own for them.
        inner = tuple(schema.ndim + 32 * place + axis for axis in range(part.ndim - schema.ndim))
        pairs += [part, (*cells, *inner)]
    target = array if array.native.in_transaction else place_of(array, "write_blocks")
    start = (0,) * schema.ndim if offset is None else tuple(int(position) for position in offset)
    return da.blockwise(
        _write,
        cells,
        *(_Held(target), None, tuple(parts), None, start, None),
        *(ArraySliceDep(first.chunks[: schema.ndim]), cells),
        *pairs,
        name=f"gridstone-write-{uuid.uuid4().hex}",  # A write is done again whenever it is asked for.
        concatenate=True,
        align_arrays=False,
        adjust_chunks={axis: lambda size: 1 for axis in cells},
        dtype=object,
        meta=np.empty((0,) * schema.ndim, object),
    )


def is_in_threads(blocks: Blocks) -> bool:
    """Whether threads of this process would compute it, so that they can share a transaction."""
    base, threaded, local = (needed(f"dask.{name}", "dask", "writing blocks") for name in ("base", "threaded", "local"))
    return base.get_scheduler(collections=[blocks]) in (threaded.get, local.get_sync)


def receipts_of(computed: Any) -> list[Receipt]:
    """The receipts in what computed blocks are: arrays of them, nested in lists or alone."""
    return list(_receipts(computed))


def _receipts(computed: Any) -> Iterator[Receipt]:
    if isinstance(computed, Receipt):
        yield computed
    elif isinstance(computed, list | tuple | np.ndarray):
        for part in computed.flat if isinstance(computed, np.ndarray) else computed:
            yield from _receipts(part)


class _Held:
    """What blocks are written to, which dask takes as it is."""

    __slots__ = ("target",)

    def __init__(self, target: "Place | Array") -> None:
        self.target = target

    def __dask_tokenize__(self) -> str:
        return uuid.uuid4().hex

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.target, Array):
            raise UnsupportedError(
                "blocks of an array in a transaction are written by threads of this process; compute them with "
                "scheduler='threads', or open the array outside of the transaction"
            )
        return _Held, (self.target,)

    @property
    def array(self) -> Array:
        """The array, open for writing."""
        return self.target if isinstance(self.target, Array) else self.target.writer()


def _write(held: _Held, names: Sequence[str], start: Sequence[int], where: Sequence[slice], *blocks: Any) -> Any:
    """Writes one block of each attribute; an array of the one receipt."""
    made = np.empty((1,) * len(where), object)
    if all(part.stop > part.start for part in where):
        array = held.array
        box = _box(array._schema, start, where)
        given = {name: np.asanyarray(block) for name, block in zip(names, blocks, strict=True)}
        if isinstance(held.target, Array):
            array.write(given, box)
        else:
            made[(0,) * len(where)] = array.write(given, box, commit=False)
    return made


def _box(schema: Schema, start: Sequence[int], where: Sequence[slice]) -> Box:
    """The coordinates at these positions."""
    bounds = []
    for dim, first, part in zip(schema.dims, start, where, strict=True):
        low = datatype.ticks_of(dim.reach[0]) + first
        bounds.append((low + part.start, low + part.stop - 1))
    return Box(schema.dims, tuple(bounds))


def _aligned(da: Any, schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays, with the same blocks of cells and one block along the axes of vectors."""
    if not values:
        raise InputError("there is nothing to write: give a dask array for at least one attribute")
    shapes: dict[str, tuple[int, ...]] = {}
    parts: dict[str, Any] = {}
    for name, given in values.items():
        inner = datatype.shape_of(schema.attr(name).dtype)
        x = given if isinstance(given, da.Array) else da.asanyarray(given)
        check_sizes(x)
        if x.ndim != schema.ndim + len(inner) or (inner and x.shape[schema.ndim :] != inner):
            vectors = f" of vectors {inner}" if inner else ""
            raise InputError(
                f"attribute {name!r} has {schema.ndim} dimensions{vectors}, the dask array the shape {x.shape}"
            )
        shapes[name] = x.shape[: schema.ndim]
        parts[name] = x.rechunk({schema.ndim + axis: -1 for axis in range(len(inner))}) if inner else x
    if len(set(shapes.values())) > 1:
        raise InputError(f"the dask arrays of one write have one shape, found {brief(shapes)}")
    if len(parts) > 1:
        common = _common_chunks(parts, schema.ndim)
        parts = {name: x.rechunk(dict(enumerate(common))) for name, x in parts.items()}
    return parts


def _common_chunks(parts: Mapping[str, Any], ndim: int) -> list[tuple[int, ...]]:
    """The blocks along each dimension that are cut where any of the arrays is."""
    common = []
    for axis in range(ndim):
        cuts = {0} | {int(cut) for x in parts.values() for cut in np.cumsum(x.chunks[axis])}
        common.append(tuple(np.diff(sorted(cuts)).tolist()) or (0,))
    return common


def check_sizes(x: Any) -> None:
    """An `InputError` if the sizes of the blocks are not known."""
    if any(np.isnan(size) for sizes in x.chunks for size in sizes):
        raise InputError(
            "the sizes of this dask array's blocks are not known, and so their places are not: call "
            "x.compute_chunk_sizes() first"
        )
