"""Parts of variables that are there: regions, which several processes may write at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.printable import brief
from ..dask.place import place_of
from ..errors import InputError, NotFoundError
from ..stores.group import Group
from ..stores.store import open as open_store
from ..stores.transaction import Transaction
from . import blocks, creation
from .asked import Asked
from .blocks import Block, Seen
from .commits import committed
from .dataset import arrays_of
from .encoded import as_stored, decoded
from .form import Shown
from .plan import Planned, planned
from .stored import dims_of, noted_of

_AUTO = "auto"


def written(asked: Asked, dataset: Any, encoding: Any, compute: bool) -> Any:
    """Writes the variables of a Dataset to a region, in one commit: no tile is read and written back.

    Raises:
        InputError: slices that do not fit, coordinates that are not there, or others than those that are there.
        NotFoundError: a variable that the group lacks.
        ConflictError: the coordinates along the region changed while blocks of Dask were computed.
    """
    if encoding:
        raise InputError("region= writes to variables that are there, whose encoding is known: leave out encoding=")
    node = open_store(asked.uri, "r+", path=asked.path, context=asked.context)
    if not isinstance(node, Group):
        raise InputError(f"{asked.path!r} is an array; region= writes to the variables of a group")
    plans = planned(dataset, None, frozenset())
    if any(one.is_lazy for one in plans):
        return _with_receipts(asked, dataset, plans, {name: array for array, name in arrays_of(node)}, compute)

    def fill(tx: Transaction) -> None:
        # The coordinates are read in the transaction, which another commit that changes them makes begin again.
        for part in _found_parts(asked, dataset, plans, creation.there(tx, asked.path).arrays).blocks:
            creation.fill(tx[part.path], part.planned, part.starts)

    version = committed(asked, fill)
    return version if compute else blocks.delayed(asked, [], version)


@dataclass
class _Parts:
    """What a region comes to: where values go, and the coordinates that say so."""

    blocks: list[Block] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)


def _found_parts(asked: Asked, dataset: Any, plans: Sequence[Planned], held: Mapping[str, Array]) -> _Parts:
    place = _place(asked.region, dataset, held)
    if lacking := [one.name for one in plans if one.name not in held]:
        raise NotFoundError(
            f"the group has no variable {', '.join(map(repr, lacking))}; a region is a part of one that is there: "
            f"ds.drop_vars({lacking!r}) writes the others"
        )
    made = _Parts()
    _check_outside(dataset, place, plans)
    for one in plans:
        array = held[one.name]
        starts = _starts(one, place, array)
        is_outside = not any(dim in place for dim in one.variable.dims)
        stored = as_stored(array, one)
        if is_outside or one.labels_name is not None:
            seen = _checked(array, stored, starts, is_outside)
            made.seen += [seen] if one.labels_name is not None else []
        elif 0 not in stored.shape:
            made.blocks.append(Block(array.path, stored, starts))
    return made


def _with_receipts(
    asked: Asked, dataset: Any, plans: Sequence[Planned], held: Mapping[str, Array], compute: bool
) -> Any:
    """Commits what was written with the blocks of Dask, or gives what will do so."""
    found = _found_parts(asked, dataset, plans, held)
    arrays = {array.path: array for array in held.values()}
    later, now = [], []
    for part in found.blocks:
        if part.planned.is_lazy:
            later.append(part)
            continue
        for cut in creation.slabs(part.planned.variable):
            at = [low + (one.start or 0) for low, one in zip(part.starts, cut, strict=True)]
            values = part.planned.variable[cut].values
            now.append(creation.write(arrays[part.path], part.planned, values, at, commit=False))
    tasks = [*now, *blocks.receipts_of(arrays, later)]
    ending = blocks.ending(asked, tasks, found.seen)
    return ending.compute() if compute else ending


def _place(region: Any, dataset: Any, held: Mapping[str, Array]) -> dict[Any, slice]:
    """The region as slices of positions."""
    if region == _AUTO:
        region = {dim: _AUTO for dim in dataset.dims}
    if not isinstance(region, Mapping):
        raise InputError(f"region= is a dict of slices by dimension, or 'auto', not {brief(region)}")
    made = {}
    for dim, given in region.items():
        if dim not in dataset.dims:
            raise InputError(
                f"region= names the dimension {brief(dim)}, which the Dataset does not have; it has "
                f"{', '.join(map(repr, dataset.dims))}"
            )
        size = dataset.sizes[dim]
        if given == _AUTO:
            made[dim] = _found(dim, dataset, held)
        elif not isinstance(given, slice) or given.step not in (None, 1):
            raise InputError(f"region= of {dim!r} is a slice without a step, or 'auto', not {brief(given)}")
        else:
            made[dim] = _positions(dim, given, size, _length(dim, held))
    return made


def _length(dim: Any, held: Mapping[str, Array]) -> int:
    for array in held.values():
        if not array.sparse and dim in dims_of(array):
            return array.shape[dims_of(array).index(dim)]
    raise InputError(f"no variable of the group has the dimension {brief(dim)}; write it first")


def _positions(dim: Any, given: slice, size: int, length: int) -> slice:
    start, stop, _ = given.indices(length)
    # `indices` cuts what reaches beyond the end, which is no place.
    beyond = given.stop is not None and given.stop > length
    if beyond or max(0, stop - start) != size:
        raise InputError(
            f"region= of {dim!r} is {given.start}:{given.stop}, the Dataset has {size} positions along it, and the "
            f"group {length}; append with append_dim={dim!r} to make it longer"
        )
    return slice(start, stop)


def _found(dim: Any, dataset: Any, held: Mapping[str, Array]) -> slice:
    """Where the coordinates of a dimension lie in the group."""
    if dim not in dataset.coords or dim not in held:
        raise InputError(
            f"region='auto' needs coordinates along {dim!r}, in the Dataset and in the group; give a slice: "
            f"region={{{dim!r}: slice(…)}}"
        )
    import pandas as pd

    array = held[dim]
    there = pd.Index(decoded(array, dim).values)
    wanted = dataset.indexes[dim]
    places = there.get_indexer(wanted) if there.is_unique else np.full(len(wanted), -1)
    if (places < 0).any():
        lost = wanted[int(np.argmax(places < 0))]
        why = "is not there" if there.is_unique else "may be in several places: coordinates of the group repeat"
        raise InputError(f"region='auto': the coordinate {brief(lost)} along {dim!r} {why}; append it, or give slices")
    if (np.diff(places) != 1).any():
        raise InputError(
            f"region='auto': the coordinates along {dim!r} do not follow each other in the group; sort them as there, "
            f"and write one stretch at a time"
        )
    start = int(places[0]) if len(places) else 0
    return slice(start, start + len(places))


def _check_outside(dataset: Any, place: Mapping[Any, slice], plans: Sequence[Planned]) -> None:
    """An `InputError` if values lie along other dimensions than those of the region. What has no dimension, and
    coordinates, may be there if they are as in the group."""
    named = zip(dataset.variables, plans, strict=True)
    dims = {name: one.variable.dims for name, one in named if name in dataset.data_vars}
    outside = [name for name, own in dims.items() if own and not any(dim in place for dim in own)]
    if outside:
        raise InputError(
            f"region= names no dimension of {', '.join(map(repr, outside))}, so that it would replace them whole; drop "
            f"them first: ds.drop_vars({outside!r})"
        )


def _starts(one: Planned, place: Mapping[Any, slice], array: Array) -> tuple[int, ...]:
    """The positions that a variable begins at."""
    dims = dims_of(array)
    if dims != tuple(one.variable.dims):
        raise InputError(
            f"{one.name!r} has the dimensions {tuple(one.variable.dims)}, the variable of the group {dims}; transpose "
            f"it, or rename dimensions"
        )
    made = []
    for dim, size, length in zip(dims, one.shape, array.shape, strict=True):
        if dim not in place and size != length:
            raise InputError(
                f"{one.name!r} has {size} positions along {dim!r} and the group {length}; region= says where they "
                f"lie: {{{dim!r}: slice(…)}}"
            )
        made.append(place[dim].start if dim in place else 0)
    return tuple(made)


def _checked(array: Array, stored: Planned, starts: tuple[int, ...], is_outside: bool) -> Seen:
    """What lies in an array where a region has coordinates, or a value that belongs to all.

    Raises:
        InputError: the region would change it, and other variables have it too.
    """
    cut = tuple(slice(low, low + size) for low, size in zip(starts, stored.shape, strict=True))
    raw = array[array.schema_names[0]][cut or ...]
    there = Shown(array.schema.attrs[0], noted_of(array)).values(raw)
    if not blocks.is_same(there, stored.variable.values):
        if is_outside:
            raise InputError(
                f"region= names no dimension of {stored.name!r}, and the Dataset has others than the group there; "
                f'ds.drop_vars({stored.name!r}) leaves the group\'s, mode="a" replaces them'
            )
        raise InputError(
            f"the coordinates along {stored.name!r} are others than those of the group in this region; "
            f'ds.drop_vars({stored.name!r}) writes the values alone, mode="a" other coordinates'
        )
    return Seen(place_of(array, "region=") if not array.native.in_transaction else None, cut, raw)
