"""Stores dask arrays: the blocks are written in parallel, and one commit has them all."""

import contextlib
import os
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array
from ..base.arguments import checked, flag, instance
from ..base.extras import needed
from ..base.printable import brief
from ..column import datatype
from ..context.settings import Context, default
from ..errors import ExistsError, InputError, NotFoundError
from ..query.box import BoxLike, Room, box_of
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..schema.tile_shape import auto_tile
from ..stores import at_once
from ..stores import store as stores
from ..stores.transaction import commit
from ..version.receipt import CommitKey, Message
from .blocks import check_sizes, is_in_threads, receipts_of, write_blocks
from .once import commit_once
from .unborn import Unborn


class _Target(NamedTuple):
    """Where blocks go."""

    uri: str
    path: str
    context: Context


@checked(schema=instance(Schema, "a gridstone.Schema"), compute=flag)
def store(
    x: Any,
    uri: str | os.PathLike[str],
    path: str = "/",
    schema: Schema | None = None,
    compute: bool = True,
    *,
    box: BoxLike = None,
    message: Message = None,
    commit_key: CommitKey = None,
    context: Context | None = None,
) -> Any:
    """Writes a dask array block by block, in parallel, and commits all blocks at once.

        gs.dask.store(x, "sea.gs", path="/t")
        gs.dask.store({"t": t, "salt": s}, "sea.gs", path="/water")

    Every block is a fragment of its own, so that blocks need no alignment to tiles and no lock. Workers may be threads,
    processes or machines that reach the store. If the graph fails, nothing of it is visible, and an array that the call
    has created is gone again; the files of blocks that were written are removed by a vacuum. A block that was tried
    several times is committed once, as the try wrote it that came back.

    Args:
        x: a dask array, or several of one shape by attribute. One with a structured dtype has an attribute for each
            field.
        uri: the store, which is made if there is none.
        path: the place of the array. If it is there, it is written to; else it is created, in the same commit.
        schema: of an array that is created; None: dimensions d0, d1, … from 0 on, tiles that divide the chunks, and
            the attribute "value", nullable where blocks are masked. Objects are taken for texts.
        compute: False: give a `dask.delayed.Delayed` that writes, commits, and has the version. Computed again it only
            tells the version. A store that is not there is made at once, without an array.
        box: the box of an array that is there, in coordinates as for `Array.write`; None: the whole domain.
        message: kept with the version.
        commit_key: says which commit this is, see `gridstone.commit`. A key that a commit had before is refused, before
            anything is computed.
        context: budget, threads and durability, of the workers too, without secrets; None: the process's default.

    Returns:
        The version committed.

    Raises:
        InputError: shapes that do not fit, blocks of unknown sizes, no dask array.
        ExistsError: the array that is there has another schema than the one that is given.
        ConflictError: the array was removed meanwhile, or the key is known.
        UnsupportedError: the array is sparse, or dask is missing.
    """
    da = needed("dask.array", "dask", "gridstone.dask.store")
    target = _Target(os.fspath(uri), path if path.startswith("/") else f"/{path}", context or default())
    if stores.exists(target.uri, target.path, context=target.context):
        found = _opened(target, schema)
        values = _values(da, x, found._schema)
        offset = _offset(found._schema, values, box)
        _check_key(target, commit_key)
        return _write(found, values, offset, compute, target, message, commit_key)
    if box is not None:
        raise InputError(f"box= is of an array that is there; {target.uri!r} has none at {target.path!r}")
    values = _values(da, x, schema)
    if schema is None:
        schema = _schema_of(values)
    offset = _offset(schema, values, None)
    _check_key(target, commit_key)
    blocks = next(iter(values.values()))
    if compute and commit_key is None and is_in_threads(blocks):
        return _in_one_commit(target, schema, values, offset, message)
    return _with_receipts(target, schema, values, offset, (compute, message, commit_key))


def _opened(target: _Target, schema: Schema | None) -> Array:
    """The array that is there, open for writing."""
    found = stores.open_array(target.uri, path=target.path, mode="r+", context=target.context)
    found._check_dense("gridstone.dask.store")
    if schema is not None and schema != found.schema:
        raise ExistsError(
            f"{target.uri!r} has an array at {target.path!r} with another schema; leave schema= out to write to it, or "
            f"choose another path"
        )
    return found


def _values(da: Any, x: Any, schema: Schema | None) -> dict[str, Any]:
    """The dask arrays by attribute."""
    if isinstance(x, Mapping):
        if not x:
            raise InputError("x= is an empty dict; give a dask array for at least one attribute")
        given = {str(name): _dask_array(da, part) for name, part in x.items()}
    else:
        whole = _dask_array(da, x)
        names = None if schema is None else [attr.name for attr in schema.attrs]
        if whole.dtype.names:
            given = {field: whole[field] for field in whole.dtype.names}
        elif names is None or len(names) == 1:
            given = {"value" if names is None else names[0]: whole}
        else:
            raise InputError(f"the array has the attributes {names}; say which: x={{{names[0]!r}: …}}")
    for part in given.values():
        check_sizes(part)
    return given


def _dask_array(da: Any, given: Any) -> Any:
    if not isinstance(given, da.Array | np.ndarray):
        hint = "; gridstone.to_gridstone stores what xarray has" if hasattr(given, "dims") else ""
        raise InputError(f"x= takes a dask array, or a dict of them by attribute, found {brief(given)}{hint}")
    return da.asanyarray(given)


def _schema_of(values: Mapping[str, Any]) -> Schema:
    """The schema of an array that these fill, with dimensions that count from 0."""
    first = next(iter(values.values()))
    kinds = {name: "string" if x.dtype == object else datatype.parse(x.dtype) for name, x in values.items()}
    width = max(map(datatype.cell_bytes, kinds.values()))
    sides = [max(sizes, default=0) for sizes in first.chunks]
    tile = [_divisor(n, t) for n, t in zip(sides, auto_tile([max(1, n) for n in sides], width), strict=True)]
    dims = [Dim(f"d{i}", (0, n - 1), t) for i, (n, t) in enumerate(zip(first.shape, tile, strict=True))]
    masked = np.ma.MaskedArray
    attrs = [Attr(name, kinds[name], nullable=isinstance(x._meta, masked)) for name, x in values.items()]
    return Schema(dims, attrs)


def _divisor(side: int, extent: int) -> int:
    """An extent of tiles that divides the chunk, not far below this one; this one if there is none."""
    fits = (size for size in range(extent, extent // 2, -1) if side % size == 0)
    return next(fits, extent)


def _offset(schema: Schema, values: Mapping[str, Any], box: BoxLike) -> tuple[int, ...]:
    """The position in the array of the first cell; an `InputError` unless the shapes are those of the box."""
    where = box_of(schema, box, Room.OPEN)
    for name, x in values.items():
        inner = datatype.shape_of(schema.attr(name).dtype)
        if x.shape != (*where.shape, *inner):
            place = "array" if box is None else f"box {where}"
            more = "; box= writes to a part of it" if box is None else ""
            wanted = (*where.shape, *inner)
            raise InputError(
                f"attribute {name!r}: the dask array has the shape {x.shape}, the {place} has {wanted}{more}"
            )
    pairs = zip(schema.dims, where.bounds, strict=True)
    return tuple(int(low) - datatype.ticks_of(dim.reach[0]) for dim, (low, _) in pairs)


def _check_key(target: _Target, key: CommitKey) -> None:
    """A `ConflictError` if a commit had this key before."""
    if key is not None:
        # A commit of nothing has no version of its own; one with a known key is refused, its receipts being others.
        with contextlib.suppress(NotFoundError):
            commit(target.uri, [], context=target.context, commit_key=key)


def _in_one_commit(
    target: _Target, schema: Schema, values: Mapping[str, Any], offset: tuple[int, ...], message: Message
) -> int:
    """Creates the array and writes all blocks in one transaction, which threads of this process share."""
    dask = needed("dask", "dask", "gridstone.dask.store")

    def fill(made: Array) -> None:
        dask.compute(write_blocks(made, values, offset))

    made = at_once.create_at_once(target.uri, schema, target.path, False, target.context, fill, message)
    return made.version


def _with_receipts(
    target: _Target,
    schema: Schema,
    values: Mapping[str, Any],
    offset: tuple[int, ...],
    ending: tuple[bool, Message, CommitKey],
) -> Any:
    """Writes the blocks of an array that is not there, and creates it with them. A store that was made for it goes if
    that fails; where the graph is computed later it stays, with nothing but its root."""
    dask = needed("dask", "dask", "gridstone.dask.store")
    compute, message, key = ending
    with at_once.made_for(target.uri, target.context) as fresh:
        made = Unborn(target.uri, target.path, schema, target.context, fresh)
        blocks = write_blocks(made, values, offset)
        if not compute:
            return dask.delayed(_created, pure=False)(blocks, made, message, key)
        return _created(dask.compute(blocks), made, message, key)


def _created(computed: Any, made: Unborn, message: Message, key: CommitKey) -> int:
    return made.created(receipts_of(computed), message, key)


def _write(
    array: Array,
    values: Mapping[str, Any],
    offset: tuple[int, ...],
    compute: bool,
    target: _Target,
    message: Message,
    key: CommitKey,
) -> Any:
    """The version that has all blocks, or a delayed one."""
    dask = needed("dask", "dask", "gridstone.dask.store")
    blocks = write_blocks(array, values, offset)
    if compute:
        return _commit(dask.compute(blocks), target, message, key)
    if key is not None:
        return dask.delayed(_commit, pure=False)(blocks, target, message, key)
    # A worker may die after the commit: with a key the task commits once, however often it is tried.
    return dask.delayed(_commit_once, pure=False)(blocks, target, message, uuid.uuid4().hex)


def _commit(computed: Any, target: _Target, message: Message, key: CommitKey) -> int:
    return commit(target.uri, receipts_of(computed), message, target.context, commit_key=key)


def _commit_once(computed: Any, target: _Target, message: Message, key: str) -> int:
    return commit_once(target.uri, receipts_of(computed), message, target.context, key)
