"""Arrays of variables: created in a transaction, or written anew."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..column import datatype
from ..errors import InputError, NotFoundError
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from ..stores.nodes import joined
from ..stores.transaction import Transaction
from . import notes
from .blocks import Block
from .boxes import box_of
from .encoded import decoded, shown
from .form import prepared
from .plan import Planned
from .stored import dims_of, noted_of

_SLAB_BYTES = 64 << 20
"""What is read at once of a variable that is not in memory."""

_LABELLED = "iufmMO"
"""The kinds of coordinates that labels may be."""


class There:
    """What a group holds already."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self.sizes: dict[Any, int] = {}
        """The lengths of its dimensions, by the names that they have in a Dataset."""
        for array in arrays.values():
            if not array.sparse:
                self.sizes.update(zip(dims_of(array), array.shape, strict=True))
        self.above: dict[Any, Array] = {}
        """Coordinates of the groups above in the tree that is written, by their dimension; see `above`."""


def there(tx: Transaction, path: str) -> There:
    """The arrays of a group by name."""
    return There({entry.name: tx[entry.path] for entry in tx.ls(path) if entry.kind == "array"})


def above(tx: Transaction, top: str, path: str, plans: Iterable[Planned]) -> dict[Any, Array]:
    """The dimension coordinates that variables in a group of a tree have of the groups above it, from the one at the
    top on, where they can be shared."""
    dims = {dim for one in plans for dim in one.variable.dims}
    made: dict[Any, Array] = {}
    while path != top:
        path = path.rpartition("/")[0] or "/"
        for entry in tx.ls(path):
            if entry.kind == "array" and entry.name in dims and entry.name not in made:
                made[entry.name] = tx[entry.path]
    return {name: array for name, array in made.items() if _is_shareable(array, name)}


def _is_shareable(array: Array, dim: Any) -> bool:
    """Whether an array is the coordinate of a dimension, whose labels may lie in it."""
    if array.sparse or dims_of(array) != (dim,) or array.schema_names != [dim]:
        return False
    return _can_share(array.schema.attrs[0].dtype, noted_of(array)) and _counts_from_0(array, 0)


def check_there(path: str, plans: Iterable[Planned], held: There) -> None:
    """A `NotFoundError` unless every variable is there."""
    if lacking := [one.name for one in plans if one.name not in held.arrays]:
        raise NotFoundError(
            f'the group {path!r} has no variable {", ".join(map(repr, lacking))}; mode="a" adds variables'
        )


def created(tx: Transaction, path: str, plans: Sequence[Planned], held: There) -> list[Block]:
    """Creates the arrays of variables, in the place of those that are there, and writes what is in memory. What is a
    graph of Dask is returned.

    Raises:
        InputError: a dimension of another length than in the variables that stay.
    """
    _check_sizes(path, plans, held)
    coordinates = {one.labels_name: one for one in plans if one.labels_name is not None}
    later = []
    for one in coordinates_first(plans):
        made = tx.create(joined(path, one.name), _schema(one, coordinates, held), overwrite=one.name in held.arrays)
        describe(made, one)
        if one.is_lazy:
            later.append(Block(made.path, one, (0,) * len(one.shape)))
        else:
            fill(made, one)
    written = {one.name for one in plans}
    for name, one in coordinates.items():
        if name is not None:
            relabel(tx, path, one, [n for n in held.arrays if n not in written])
    return later


def coordinates_first(plans: Iterable[Planned]) -> list[Planned]:
    """The variables in an order in which each finds the arrays that its labels lie in."""
    return sorted(plans, key=lambda one: one.labels_name is None)


def _check_sizes(path: str, plans: Sequence[Planned], held: There) -> None:
    for one in plans:
        for dim, size in zip(one.variable.dims, one.shape, strict=True):
            if held.sizes.get(dim, size) != size:
                raise InputError(
                    f"{path}: Unable to update size for existing dimension {dim!r}: {one.name!r} has {size} positions "
                    f"along it, the group {path!r} has {held.sizes[dim]}; append with append_dim={dim!r}, write a part "
                    f'with region=, or replace the group with mode="w"'
                )


def _schema(one: Planned, coordinates: Mapping[Any, Planned], held: There) -> Schema:
    dims = []
    for axis, dim in enumerate(one.variable.dims):
        labels = None if dim == one.name else labels_along(dim, coordinates, held)
        if labels is None and dim not in held.arrays and dim != one.name and dim in held.above:
            labels = held.above[dim].path if held.above[dim].shape[0] == one.shape[axis] else None
        tile = one.layout.tile[axis] if one.layout.tile else None
        dims.append(Dim(one.dims[axis], (0, one.shape[axis] - 1), tile, labels=labels))
    return Schema(dims, [one.form.attribute(one.name, one.layout.filters)])


def labels_along(dim: Any, coordinates: Mapping[Any, Planned], held: There) -> Any:
    """The labels of a dimension: those of its coordinate, whose array all of the group share. Where that holds them in
    an encoded form each array has its own."""
    if dim in coordinates:
        return labels_of(coordinates[dim])
    array = held.arrays.get(dim)
    if array is None or array.sparse or dims_of(array) != (dim,) or array.schema_names != [dim]:
        return None
    if _is_shareable(array, dim):
        return str(dim)
    return as_labels(decoded(array, dim).values)


def labels_of(one: Planned) -> Any:
    """The labels that a coordinate has for other arrays: its name, by which they find its array, or its values; None if
    these cannot be labels."""
    if _can_share(one.form.dtype, one.noted):
        return one.name
    return None if one.is_lazy or 0 in one.shape else own_labels(one)


def own_labels(one: Planned) -> Any:
    """The values of a coordinate as labels, numbers as they are shown after their encoding; None if they cannot be
    labels."""
    is_rounded = "encoded" in one.noted and one.given.dtype.kind in "iuf"
    return as_labels(shown(one) if is_rounded else one.given.values)


def _can_share(dtype: str, noted: Mapping[str, Any]) -> bool:
    """Whether an array holds labels as they are."""
    is_label = dtype == "string" or (datatype.numpy_of(dtype).kind in "iufmM" and dtype != "float16")
    return is_label and "encoded" not in noted


def as_labels(values: Any) -> Any:
    """Values as labels, texts as objects; None if they cannot be labels."""
    if values.dtype.kind in "TU":
        return values.astype(object)
    if values.dtype.kind == "O" and not all(isinstance(one, str) for one in values.tolist()):
        return None
    return values if values.dtype.kind in _LABELLED and values.size else None


def relabel(tx: Transaction, path: str, coordinate: Planned, others: Iterable[str]) -> None:
    """Gives the dimension of other arrays the labels that its coordinate has now."""
    dim, labels = coordinate.name, labels_of(coordinate)
    for name in others:
        array = tx[joined(path, name)]
        if array.sparse or dim not in dims_of(array):
            continue
        axis = dims_of(array).index(dim)
        if labels is None and array.schema.dims[axis]._stored_labels is None:
            continue
        if labels is not None and coordinate.shape[0] != array.shape[axis]:
            continue
        own = labels
        if isinstance(labels, str) and not _counts_from_0(array, axis):
            # Labels in another array are found by coordinate, which differ here.
            own = None if coordinate.is_lazy or 0 in coordinate.shape else own_labels(coordinate)
        array.alter(labels={array.dims[axis]: own})


def _counts_from_0(array: Array, axis: int) -> bool:
    """Whether the coordinates of a dimension are those that variables of a Dataset have."""
    dim = array.schema.dims[axis]
    return dim.dtype == "int64" and datatype.ticks_of(dim.reach[0]) == 0


def describe(array: Array, one: Planned) -> None:
    """Metadata of a variable: its attributes at the array, its encoding and what is noted at the attribute."""
    if one.attrs:
        array.meta.update(one.attrs)
    encoding = {"encoding": one.encoding} if one.encoding else {}
    array[one.name].meta.update({**encoding, notes.KEY: one.noted})


def fill(array: Array, one: Planned, starts: Sequence[int] | None = None) -> None:
    """Writes the values of a variable, of one that is not in memory slab by slab."""
    if 0 in one.shape:
        return
    at = starts or (0,) * len(one.shape)
    for part in slabs(one.variable):
        write(
            array, one, one.variable[part].values, [low + (cut.start or 0) for low, cut in zip(at, part, strict=True)]
        )


def write(array: Array, one: Planned, values: Any, starts: Sequence[int], **options: Any) -> Any:
    """Writes a block at positions; options as `Array.write`."""
    made = prepared(one.form, values, one.name)
    name = array.schema_names[0]
    if not array.ndim:
        return array.write({name: made}, **options)
    return array.write({name: made}, box_of(array, starts, np.shape(made)), **options)


def slabs(variable: Any) -> Iterator[tuple[slice, ...]]:
    """Parts of a variable, along its first dimension, of about 64 MiB each; of one in memory the whole."""
    shape = tuple(variable.shape)
    if not shape or getattr(variable, "_in_memory", True) or variable.nbytes <= _SLAB_BYTES:
        yield tuple(slice(0, size) for size in shape)
        return
    rows = max(1, _SLAB_BYTES * shape[0] // variable.nbytes)
    for start in range(0, shape[0], rows):
        yield (slice(start, min(shape[0], start + rows)), *(slice(0, size) for size in shape[1:]))
