"""Variables behind the end of those that a group holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.printable import brief
from ..errors import InputError
from ..schema.array_schema import Schema
from ..stores.nodes import joined
from ..stores.transaction import Transaction
from . import creation, notes
from .blocks import Block
from .encoded import as_stored
from .plan import Planned

_LENGTH = "length"
"""Noted of a variable that was appended to: two appends that read and write it cannot both be committed."""


def appended(tx: Transaction, path: str, plans: Sequence[Planned], dim: str) -> list[Block]:
    """Writes variables behind the end of a dimension; those that do not have it must be as they are there. What is a
    graph of Dask is returned.

    Raises:
        InputError: no variable has the dimension, other sizes, or a variable of the group that would stay shorter.
    """
    held = creation.there(tx, path)
    along = [one for one in plans if one.axis_of(dim) is not None]
    if not along:
        raise InputError(
            f"append_dim={brief(dim)}: no variable of the Dataset has this dimension; they have "
            f"{', '.join(sorted({repr(d) for one in plans for d in one.variable.dims}))}"
        )
    before = held.sizes.get(dim, 0)
    _check(path, plans, held, dim)
    labels = _labels(along, dim)
    later: list[Block] = []
    new = [one for one in plans if one.name not in held.arrays]
    for one in creation.coordinates_first(plans):
        if one.name not in held.arrays:
            continue
        if one.axis_of(dim) is not None:
            later += _behind(held.arrays[one.name], one, dim, before, labels)
        elif not one.is_lazy and not _is_same(held.arrays[one.name], one):
            later += creation.created(tx, path, [one], held)
    for one in new:
        later += _added(tx, path, one, dim, before)
    return later


def _check(path: str, plans: Sequence[Planned], held: creation.There, dim: str) -> None:
    """An `InputError` unless all other sizes are those of the group, and every variable of it along the dimension
    grows."""
    for one in plans:
        for name, size in zip(one.variable.dims, one.shape, strict=True):
            if name != dim and held.sizes.get(name, size) != size:
                raise InputError(
                    f"{path}: Unable to update size for existing dimension {name!r}: {one.name!r} has {size} positions "
                    f"along it, the group {path!r} has {held.sizes[name]}; only {dim!r}, the append_dim, grows"
                )
        array = held.arrays.get(one.name)
        if array is not None and creation.dims_of(array) != tuple(one.variable.dims):
            raise InputError(
                f"{one.name!r} has the dimensions {tuple(one.variable.dims)}, the variable of the group "
                f"{creation.dims_of(array)}; transpose it, or rename dimensions"
            )
    given = {one.name for one in plans}
    shorter = [n for n, a in held.arrays.items() if not a.sparse and n not in given and dim in creation.dims_of(a)]
    if shorter:
        raise InputError(
            f"the group {path!r} has variables along {dim!r} that the Dataset lacks: {', '.join(map(repr, shorter))}; "
            f"a Dataset has one length for each dimension, so append them together"
        )


def _labels(along: Sequence[Planned], dim: str) -> Any:
    """The labels of the new positions, of which the coordinate tells."""
    own = next((one for one in along if one.labels_name == dim), None)
    if own is None or own.is_lazy or 0 in own.shape:
        return None
    return creation.as_labels(own.given.values)


def _behind(array: Array, one: Planned, dim: str, before: int, labels: Any) -> list[Block]:
    """Appends a variable to its array."""
    axis = one.axis_of(dim)
    assert axis is not None
    one = as_stored(array, one)
    noted = dict(array[array.schema_names[0]].meta.get(notes.KEY) or {})
    count = one.shape[axis]
    if count == 0:
        return []
    widened = _wider(noted, one.noted)
    array[array.schema_names[0]].meta[notes.KEY] = {**noted, **widened, _LENGTH: before + count}
    starts = tuple(before if place == axis else 0 for place in range(len(one.shape)))
    given = labels if _takes_labels(array, axis, before) and one.labels_name != dim else None
    if not one.is_lazy and len(list(creation.slabs(one.variable))) == 1 and 0 not in one.shape:
        from .form import prepared

        array.append({array.schema_names[0]: prepared(one.form, one.variable.values, one.name)}, axis, labels=given)
        return []
    return _grown(array, one, axis, before, given, starts)


def _takes_labels(array: Array, axis: int, before: int) -> bool:
    """Whether labels of new positions go to this array, and not to that of the coordinate."""
    if creation.shares_labels(array, axis):
        return False
    return array.schema.dims[axis]._stored_labels is not None or before == 0


def _grown(array: Array, one: Planned, axis: int, before: int, labels: Any, starts: tuple[int, ...]) -> list[Block]:
    """Makes the array longer, and writes what does not fit into memory block by block."""
    name, count = array.dims[axis], one.shape[axis]
    old = None if creation.shares_labels(array, axis) else array.dim(name).labels
    if old is not None:
        array.alter(labels={name: None})
    array.resize([before + count if place == axis else None for place in range(array.ndim)])
    if labels is not None:
        array.alter(labels={name: labels if old is None else _joined(old, labels)})
    if one.is_lazy:
        return [Block(array.path, one, starts)]
    creation.fill(array, one, starts)
    return []


def _joined(one: Any, other: Any) -> Any:
    if np.ma.isMaskedArray(one) or np.ma.isMaskedArray(other):
        return np.ma.concatenate([one, other])  # type: ignore[no-untyped-call]
    return np.concatenate([one, other])


def _wider(noted: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The width of texts of a fixed width, with longer ones behind them; texts of any width have none."""
    mine, theirs = noted.get("dtype"), other.get("dtype")
    if not (isinstance(mine, str) and mine.startswith("U")) or mine == theirs:
        return {}
    if isinstance(theirs, str) and theirs.startswith("U"):
        return {"dtype": f"U{max(int(mine[1:]), int(theirs[1:]))}"}
    return {"dtype": "O"}


def _is_same(array: Array, one: Planned) -> bool:
    """Whether a variable holds what its array does."""
    from .form import Shown

    if array.shape != one.shape or array.schema_names != [one.name]:
        return False
    there = Shown(array.schema.attrs[0], creation.noted_of(array)).values(array[one.name][...])
    values = as_stored(array, one).variable.values
    if there.dtype.kind in "fcmM" and values.dtype.kind == there.dtype.kind:
        return bool(np.array_equal(there, values, equal_nan=True))
    return bool(np.array_equal(there, values))


def _added(tx: Transaction, path: str, one: Planned, dim: str, before: int) -> list[Block]:
    """A variable that the group lacks: its earlier positions are unwritten."""
    axis = one.axis_of(dim)
    if axis is None or before == 0:
        return creation.created(tx, path, [one], creation.there(tx, path))
    made = tx.create(joined(path, one.name), _longer(one, axis, before))
    creation.describe(made, one)
    starts = tuple(before if place == axis else 0 for place in range(len(one.shape)))
    if one.is_lazy:
        return [Block(made.path, one, starts)]
    creation.fill(made, one, starts)
    return []


def _longer(one: Planned, axis: int, before: int) -> Schema:
    from ..schema.dimension import Dim

    dims = [
        Dim(name, (0, size - 1 + (before if place == axis else 0)), one.layout.tile[place])
        for place, (name, size) in enumerate(zip(one.dims, one.shape, strict=True))
    ]
    return Schema(dims, [one.form.attribute(one.name, one.layout.filters)])
