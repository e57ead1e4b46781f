"""Blocks to append that bring the names and labels of their dimensions: those of xarray and pandas."""

from typing import Any

import numpy as np

from .. import _native
from ..base.printable import brief
from ..column.datatype import AnyArray
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.labels import Listed, Steps, labels_of, missing
from . import along, frames, xarrays


def taken(native: "_native.Array", schema: Schema, given: Any, axis: int, labels: Any) -> tuple[Any, Any]:
    """The values to append along an axis, in the order of the array's dimensions, and the labels of their positions:
    `labels` where there are some, else those that the values bring.

    Raises:
        InputError: other dimensions, or labels along the others that the array does not have there.
    """
    if xarrays.is_xarray(given):
        values, found = _of_xarray(native, schema, given, axis)
    elif frames.is_pandas(given):
        values, found = _of_pandas(native, schema, given, axis)
    else:
        return given, labels
    return values, found if labels is None else labels


def _of_xarray(native: "_native.Array", schema: Schema, given: Any, axis: int) -> tuple[Any, Any]:
    along_name = schema.dims[axis].name
    made: dict[str | None, Any] = {}
    for name, variable in xarrays.variables_of(given).items():
        attr = schema.attrs[0].name if name is None else name
        found = xarrays.in_order(schema, attr, variable)
        left = [dim.name for dim in schema.dims if dim.name != along_name and dim.name not in found.dims]
        if left:
            raise InputError(
                f"the array has the dimensions {', '.join(repr(dim.name) for dim in schema.dims)}, the block "
                f"{tuple(variable.dims)}; rename or select until they are the same"
            )
        made[name] = found.values
    for place, dim in enumerate(schema.dims):
        if place != axis:
            beside = xarrays.labels_along(given, dim.name)
            _check_same(native, schema, place, None if beside is None else beside.values)
    labels = xarrays.labels_along(given, along_name)
    return made.get(None, made), None if labels is None else labels.values


def _of_pandas(native: "_native.Array", schema: Schema, given: Any, axis: int) -> tuple[Any, Any]:
    axes = frames.axes_of(given)
    names = [dim.name for dim in schema.dims]
    places = list(range(len(names)))
    if len(axes) == len(names) - 1:
        places.remove(axis)  # One position, which the axes leave out.
    if len(axes) != len(places):
        raise InputError(
            f"the array has the dimensions {', '.join(map(repr, names))}, a {type(given).__name__} has {len(axes)}; "
            f"append an array of as many: x.to_numpy().reshape(…)"
        )
    if [one.name for one in axes] == [names[place] for place in reversed(places)] and len(axes) > 1:
        given, axes = given.T, axes[::-1]
    labels = _own_label(native, schema, given, axis) if axis not in places else None
    for place, index in zip(places, axes, strict=True):
        if place != axis:
            _check_same(native, schema, place, None if frames.is_counted(index) else index)
        elif not _counts_on(schema, place, index):
            labels = index
    return given.to_numpy() if frames.is_frame(given) else given, labels


def _counts_on(schema: Schema, axis: int, index: Any) -> bool:
    """Whether the index of a block only counts: from 0, or from the end of an array without labels."""
    dim = schema.dims[axis]
    goes_on = dim._stored_labels is None and frames.is_counted(index, dim.size)
    return frames.is_counted(index) or goes_on


def _own_label(native: "_native.Array", schema: Schema, given: Any, axis: int) -> Any:
    """The label of a series that is one position, as a row of a frame has it for its name; None if it has none."""
    name = getattr(given, "name", None)
    dtype = along.dtype_of(native, schema.dims[axis], axis)
    if name is None or dtype is None or isinstance(name, str) != (dtype == "string"):
        return None
    return [name]


def _check_same(native: "_native.Array", schema: Schema, place: int, given: Any) -> None:
    """An `InputError` unless the labels of a block are those of the array along another axis."""
    if given is None:
        return
    dim = schema.dims[place]
    there = along.read(native, dim, place)
    if there is None:
        return
    what = f"dimension {dim.name!r}"
    found = labels_of(what, given)
    if isinstance(found, Steps):
        found = Listed(found.dtype, found.values(0, len(there)))
    values = along.as_type(what, found, along.dtype_of(native, dim, place)).values
    if _are_same(values, there):
        return
    raise InputError(
        f"{what}: the block has the labels {brief(values.tolist())}, the array {brief(there.tolist())}; "
        f"select or sort until they are the same, or append without labels: append(block.values)"
    )


def _are_same(one: AnyArray, other: AnyArray) -> bool:
    """Whether these are the same labels, which lack the same ones."""
    gone = missing(one)
    if not np.array_equal(gone, missing(other)):
        return False
    return np.array_equal(np.ma.getdata(one)[~gone], np.ma.getdata(other)[~gone])
