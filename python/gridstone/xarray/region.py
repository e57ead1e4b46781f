"""Parts of variables that are there: regions, which several processes may write at once."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.extras import needed
from ..base.printable import brief
from ..errors import InputError, NotFoundError
from ..stores.group import Group
from ..stores.store import open as open_store
from . import blocks, creation
from .asked import Asked
from .blocks import Block
from .dataset import arrays_of
from .encoded import as_stored, decoded
from .form import Shown
from .plan import Planned, planned

_AUTO = "auto"


def written(asked: Asked, dataset: Any, encoding: Any, compute: bool) -> Any:
    """Writes the variables of a Dataset to a region, in one commit of receipts: no tile is read and written back.

    Raises:
        InputError: slices that do not fit, coordinates that are not there, or others than those that are there.
        NotFoundError: a variable that the group lacks.
    """
    if encoding:
        raise InputError("region= writes to variables that are there, whose encoding is known: leave out encoding=")
    node = open_store(asked.uri, "r+", path=asked.path, context=asked.context)
    if not isinstance(node, Group):
        raise InputError(f"{asked.path!r} is an array; region= writes to the variables of a group")
    held = {name: array for array, name in arrays_of(node)}
    shown = dataset.drop_vars([name for name in dataset.variables if not dataset[name].dims and name in held])
    place = _place(asked.region, shown, held)
    plans = [one for one in planned(shown, None, frozenset()) if any(dim in place for dim in one.variable.dims)]
    _check(shown, place, plans, held)
    now: list[Any] = []
    later: list[Block] = []
    for one in plans:
        array = held[one.name]
        starts = _starts(one, place, array)
        if one.labels_name is not None:
            _check_coordinate(array, one, starts)
            continue
        made = as_stored(array, one)
        if 0 in made.shape:
            continue
        if made.is_lazy:
            later.append(Block(array.path, made, starts))
            continue
        for part in creation.slabs(made.variable):
            at = [low + (cut.start or 0) for low, cut in zip(starts, part, strict=True)]
            now.append(creation.write(array, made, made.variable[part].values, at, commit=False))
    if not later:
        return _ended(asked, now, compute)
    return _computed(asked, now, later, compute)


def _ended(asked: Asked, receipts: Sequence[Any], compute: bool) -> Any:
    version = blocks.committed(os.fspath(asked.uri), receipts, asked.message, asked.context)
    return version if compute else blocks.delayed(asked, [], version)


def _computed(asked: Asked, now: Sequence[Any], later: Sequence[Block], compute: bool) -> Any:
    """Commits what was written with the blocks of Dask, or what will do so."""
    ending = needed("dask", "dask", "a variable of Dask").delayed(blocks.committed, pure=False)(
        os.fspath(asked.uri), [*now, *blocks.receipts_of(asked, later)], asked.message, asked.context
    )
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
        if not array.sparse and dim in creation.dims_of(array):
            return array.shape[creation.dims_of(array).index(dim)]
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


def _check(dataset: Any, place: Mapping[Any, slice], plans: Sequence[Planned], held: Mapping[str, Array]) -> None:
    chosen = {one.name for one in plans}
    if outside := [name for name in dataset.data_vars if name not in chosen and name is not None]:
        raise InputError(
            f"region= names no dimension of {', '.join(map(repr, outside))}, so that it would replace them whole; drop "
            f"them first: ds.drop_vars({outside!r})"
        )
    if lacking := [one.name for one in plans if one.name not in held]:
        raise NotFoundError(
            f"the group has no variable {', '.join(map(repr, lacking))}; a region is a part of one that is there"
        )


def _starts(one: Planned, place: Mapping[Any, slice], array: Array) -> tuple[int, ...]:
    """The positions that a variable begins at."""
    dims = creation.dims_of(array)
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


def _check_coordinate(array: Array, one: Planned, starts: tuple[int, ...]) -> None:
    """An `InputError` if a region would change coordinates, which other variables have too."""
    stop = starts[0] + one.shape[0]
    there = Shown(array.schema.attrs[0], creation.noted_of(array)).values(
        array[array.schema_names[0]][starts[0] : stop]
    )
    given = as_stored(array, one).variable.values
    is_number = there.dtype.kind in "fcmM" and given.dtype.kind == there.dtype.kind
    if not (np.array_equal(there, given, equal_nan=True) if is_number else np.array_equal(there, given)):
        raise InputError(
            f"the coordinates along {one.name!r} are others than those of the group in this region; "
            f'ds.drop_vars({one.name!r}) writes the values alone, mode="a" other coordinates'
        )
