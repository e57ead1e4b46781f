"""Variables behind the end of those that a group holds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.printable import brief
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from ..schema.labels import SHARED
from ..stores.nodes import joined
from ..stores.transaction import Transaction
from . import creation, notes
from .blocks import Block
from .dataset import _own_coordinates as own_coordinates
from .encoded import as_stored
from .form import is_missing
from .plan import Planned
from .stored import dims_of, noted_of, shares_labels

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
    held.above = creation.above(tx, "/", path, plans)
    before = held.sizes.get(dim, 0)
    _check(path, plans, held, dim)
    labels = _labels(held, along, dim)
    later: list[Block] = []
    goes_on = _goes_on(held, dim, before, labels, sum(one.shape[0] for one in along if one.labels_name == dim))
    new = [one for one in plans if one.name not in held.arrays and not (goes_on and one.labels_name == dim)]
    for one in creation.coordinates_first(plans):
        if one.name not in held.arrays:
            continue
        if one.axis_of(dim) is not None:
            later += _behind(held.arrays[one.name], one, dim, before, labels)
        else:
            _check_same(path, held.arrays[one.name], one, dim)
    for one in creation.coordinates_first(new):
        later += _added(tx, path, one, dim, before)
    return later


def _goes_on(held: creation.There, dim: str, before: int, labels: Any, count: int) -> bool:
    """Whether arrays of the group have the coordinates of a dimension themselves, without an array for them: as labels,
    or as a dimension that does not count from 0. Then those of the new positions go there too.

    Raises:
        InputError: other coordinates than those that follow in such a dimension.
    """
    if dim in held.arrays or before == 0:
        return False
    found = False
    for array in held.arrays.values():
        if array.sparse or dim not in dims_of(array):
            continue
        axis = dims_of(array).index(dim)
        if shares_labels(array, axis):
            _check_elsewhere(array, axis, dim, held.above.get(dim))
        elif array.schema.dims[axis]._stored_labels is not None:
            found = True
        elif labels is not None and (own := own_coordinates(array, axis)) is not None:
            found = True
            _check_next(array, dim, own, labels, count)
    return found


def _check_elsewhere(array: Array, axis: int, dim: str, above: Array | None) -> None:
    """An `InputError` if labels lie in an array of another group, unless that is one above which has grown already: a
    tree grows from the top. An array that was removed has none."""
    stored = array.schema.dims[axis]._stored_labels
    if above is not None and stored == f"{SHARED}{above.native.id}" and above.shape[0] > array.shape[axis]:
        return
    if array.dim(array.dims[axis]).labels is not None:
        raise InputError(
            f"the labels of {array.path!r} along {dim!r} lie in an array of another group, which would stay shorter; "
            f"append to the group that has the coordinate first, or to the whole tree"
        )


def _check_next(array: Array, dim: str, own: Any, labels: Any, count: int) -> None:
    """An `InputError` unless labels are the next coordinates of a dimension."""
    follow = own[-1:] + np.arange(1, count + 1)
    if labels.dtype.kind in "iufmM" and np.array_equal(follow, labels):
        return
    raise InputError(
        f"the dimension {dim!r} of {array.path!r} has coordinates of its own, of which the next is {follow[0]}, and "
        f"the Dataset has {brief(labels[0])}; drop them with ds.drop_vars({dim!r}), or append with gridstone.open"
    )


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
        if array is not None and dims_of(array) != tuple(one.variable.dims):
            raise InputError(
                f"{one.name!r} has the dimensions {tuple(one.variable.dims)}, the variable of the group "
                f"{dims_of(array)}; transpose it, or rename dimensions"
            )
    given = {one.name for one in plans}
    shorter = [n for n, a in held.arrays.items() if not a.sparse and n not in given and dim in dims_of(a)]
    if shorter:
        raise InputError(
            f"the group {path!r} has variables along {dim!r} that the Dataset lacks: {', '.join(map(repr, shorter))}; "
            f"a Dataset has one length for each dimension, so append them together"
        )


def _labels(held: creation.There, along: Sequence[Planned], dim: str) -> Any:
    """The labels of the new positions, of which the coordinate tells."""
    own = next((one for one in along if one.labels_name == dim), None)
    if own is None or 0 in own.shape:
        return None
    if dim in held.arrays:
        # Those of an array that is encoded are what its encoding makes of them.
        own = as_stored(held.arrays[dim], own, widens=True)
        own = replace(own, noted={**own.noted, **noted_of(held.arrays[dim])})
    return creation.own_labels(own)


def _behind(array: Array, one: Planned, dim: str, before: int, labels: Any) -> list[Block]:
    """Appends a variable to its array."""
    axis = one.axis_of(dim)
    assert axis is not None
    one = as_stored(array, one, widens=True)
    noted = dict(array[array.schema_names[0]].meta.get(notes.KEY) or {})
    count = one.shape[axis]
    if count == 0:
        return []
    widened = _wider(noted, one.noted)
    is_shared = shares_labels(array, axis)
    array[array.schema_names[0]].meta[notes.KEY] = {**noted, **widened, _LENGTH: before + count}
    starts = tuple(before if place == axis else 0 for place in range(len(one.shape)))
    given = labels if _takes_labels(array, axis, before) and one.labels_name != dim else None
    if given is not None:
        given = _of_type(array.dim(array.dims[axis]).labels, given, dim)
    if given is None and before and array.schema.dims[axis]._stored_labels is not None and not is_shared:
        raise InputError(
            f"{one.name!r} has labels along {dim!r}, and the Dataset has no coordinate there that can be their "
            f"continuation: give {dim!r} coordinates, or take the labels away with gridstone.open"
        )
    if not one.is_lazy and len(list(creation.slabs(one.variable))) == 1 and 0 not in one.shape:
        from .form import prepared

        array.append({array.schema_names[0]: prepared(one.form, one.variable.values, one.name)}, axis, labels=given)
        return []
    return _grown(array, one, axis, before, given, starts)


def _takes_labels(array: Array, axis: int, before: int) -> bool:
    """Whether labels of new positions go to this array, and not to that of the coordinate."""
    if shares_labels(array, axis):
        return False
    return array.schema.dims[axis]._stored_labels is not None or before == 0


def _grown(array: Array, one: Planned, axis: int, before: int, labels: Any, starts: tuple[int, ...]) -> list[Block]:
    """Makes the array longer, and writes what does not fit into memory block by block."""
    name, count = array.dims[axis], one.shape[axis]
    old = None if shares_labels(array, axis) else array.dim(name).labels
    if old is not None:
        array.alter(labels={name: None})
    array.resize([before + count if place == axis else None for place in range(array.ndim)])
    if labels is not None:
        array.alter(labels={name: labels if old is None else _joined(old, labels)})
    if one.is_lazy:
        return [Block(array.path, one, starts)]
    creation.fill(array, one, starts)
    return []


def _of_type(there: Any, given: Any, dim: str) -> Any:
    """Labels in the type of those that are there; an `InputError` if that does not have them."""
    if there is None or there.dtype == given.dtype:
        return given
    kinds = {there.dtype.kind, given.dtype.kind}
    if kinds <= set("iuf") or kinds in ({"M"}, {"m"}):
        with np.errstate(all="ignore"):
            made = given.astype(there.dtype)
            back = made.astype(given.dtype)
        is_rounded = there.dtype.kind == given.dtype.kind == "f"
        same = (back == given) | ((back != back) & (given != given)) | (is_rounded & np.isfinite(made))
        if same.all():
            return made
        given = given[~same]
    raise InputError(
        f"the labels along {dim!r} are of {there.dtype}, which does not have {brief(given.ravel()[0])}; convert the "
        f"coordinates, or give the group others of a wider type first"
    )


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


def _check_same(path: str, array: Array, one: Planned, dim: str) -> None:
    """An `InputError` unless a variable holds what its array does; one that is not in memory is looked through slab by
    slab."""
    from .form import Shown

    # The sizes are those of the group: they are checked before.
    stored = as_stored(array, one, widens=True)
    shown = Shown(array.schema.attrs[0], noted_of(array))
    for part in creation.slabs(stored.variable):
        there = shown.values(array[array.schema_names[0]][part or ...])
        if not _are_same(there, np.asarray(stored.variable[part].values)):
            raise InputError(
                f"{one.name!r} is without {dim!r}, and has other values than in the group {path!r}; leave it out with "
                f'ds.drop_vars({one.name!r}), or replace it first, mode="a"'
            )


def _are_same(there: Any, given: Any) -> bool:
    """Whether two arrays of values are equal, gaps at the same places among them; floats as those of the group."""
    if there.shape != given.shape:
        return False
    if "O" in (there.dtype.kind, given.dtype.kind) or "T" in (there.dtype.kind, given.dtype.kind):
        pairs = zip(there.ravel().tolist(), given.ravel().tolist(), strict=True)
        return all(is_missing(one) == is_missing(other) and (is_missing(one) or one == other) for one, other in pairs)
    if there.dtype.kind == given.dtype.kind and there.dtype.kind in "fc":
        given = given.astype(there.dtype)
    has_gaps = there.dtype.kind in "fcmM" and given.dtype.kind in "iufcmM"
    return bool(np.array_equal(there, given, equal_nan=has_gaps))


def _added(tx: Transaction, path: str, one: Planned, dim: str, before: int) -> list[Block]:
    """A variable that the group lacks: its earlier positions are missing."""
    axis = one.axis_of(dim)
    if axis is None or before == 0:
        return creation.created(tx, path, [one], creation.there(tx, path))
    one = _with_gaps(one, dim)
    made = tx.create(joined(path, one.name), _longer(one, axis, before, creation.there(tx, path)))
    creation.describe(made, one)
    starts = tuple(before if place == axis else 0 for place in range(len(one.shape)))
    if one.is_lazy:
        return [Block(made.path, one, starts)]
    creation.fill(made, one, starts)
    return []


def _with_gaps(one: Planned, dim: str) -> Planned:
    """A variable in a form that has missing values.

    Raises:
        InputError: a variable that has an encoding with no place for them.
    """
    is_float = one.form.dtype in ("float16", "float32", "float64")
    is_time = one.form.dtype.startswith(("datetime64", "timedelta64"))
    if one.form.nullable or is_float or is_time or one.form.fill is not None:
        return one
    if "encoded" in one.noted:
        raise InputError(
            f"{one.name!r} is new, so that its earlier positions along {dim!r} are missing, and its encoding has no "
            f'place for them: append it with a fill value, without encoding=, or write it whole first, mode="a"'
        )
    # The type that is noted has no missing values either.
    form = replace(one.form, nullable=True, noted={k: v for k, v in one.form.noted.items() if k != "dtype"})
    return replace(one, form=form, noted={key: value for key, value in one.noted.items() if key != "dtype"})


def _longer(one: Planned, axis: int, before: int, held: creation.There) -> Schema:
    dims = []
    for place, (name, size) in enumerate(zip(one.dims, one.shape, strict=True)):
        length = size + (before if place == axis else 0)
        dim = one.variable.dims[place]
        labels = None if dim == one.name else creation.labels_along(dim, {}, held)
        if labels is not None and not isinstance(labels, str) and len(labels) != length:
            labels = None
        dims.append(Dim(name, (0, length - 1), one.layout.tile[place], labels=labels))
    return Schema(dims, [one.form.attribute(one.name, one.layout.filters)])
