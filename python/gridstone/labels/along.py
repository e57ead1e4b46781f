"""The labels along a dimension of a stored array."""

import posixpath
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _native
from ..column import datatype, decode, encode
from ..column.columns import Field
from ..column.datatype import AnyArray
from ..errors import InputError, NotFoundError, SchemaError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..schema.fields import column_of
from ..schema.labels import (
    Listed,
    Shared,
    Steps,
    check_count,
    check_pair,
    given_labels,
    labels_of,
    missing,
    placed,
)


def offset_of(dim: Dim) -> int:
    """How far the low end of the domain lies behind the origin, whose label is the first."""
    low = datatype.ticks_of(dim.reach[0])
    return 0 if dim._origin is None else low - dim._origin


def dtype_of(native: "_native.Array", dim: Dim, place: int) -> str | None:
    """The type of the labels of the dimension at a place; None if it has none."""
    if isinstance(dim._stored_labels, Steps):
        return dim._stored_labels.dtype
    hidden = None if dim._stored_labels is None else _native.labels_of(native, place)
    return None if hidden is None else _attribute(hidden)[1].dtype


def read(native: "_native.Array", dim: Dim, place: int) -> AnyArray | None:
    """The labels of all positions of a dimension, in the version that `native` shows; None if it has none. Missing ones
    are masked, NaN or NaT."""
    if dim._stored_labels is None:
        return None
    if isinstance(dim._stored_labels, Steps):
        return dim._stored_labels.values(offset_of(dim), dim.size)
    hidden = _native.labels_of(native, place)
    if hidden is None:
        return None
    along, attr = _attribute(hidden)
    low, high = (datatype.ticks_of(end) for end in dim.reach)
    first, last = (datatype.ticks_of(end) for end in along.reach)
    start, stop = max(low, first), min(high, last)
    if start > stop:
        return _none(attr.dtype, dim.size)
    cells = hidden.read([(start, stop)], [attr.name], "row", None)
    found = decode.numpy_of(column_of(attr, cells.attrs[attr.name]))
    if np.ma.isMaskedArray(found) and not np.ma.getmaskarray(found).any():
        found = np.ma.getdata(found)
    if (start, stop) == (low, high):
        return found
    made = _none(attr.dtype, dim.size)
    made[start - low : stop - low + 1] = found
    return made


def labels_asked(
    native: "_native.Array", schema: Schema, given: Mapping[str, Any]
) -> "tuple[list[list[Any]], list[tuple[str, str, _native._Column]]]":
    """Labels by dimension as the core takes them: those at steps or in another array, or None, and those in lists.

    Raises:
        NotFoundError: no array at a path.
        InputError: not one label for each position.
        SchemaError: no such dimension, or what cannot be labels; an array that is sparse.
    """
    steps: list[list[Any]] = []
    listed: list[tuple[str, str, _native._Column]] = []
    for name, value in given.items():
        dim, what = schema.dim(name), f"dimension {name!r}"
        if schema.sparse:
            raise SchemaError(
                f"{what}: labels are of the positions of dense arrays; the cells of a sparse one have coordinates"
            )
        if value is None:
            steps.append([name, None])
            continue
        check_pair(what, value, dim.size)
        found = given_labels(what, value)
        if isinstance(found, Shared):
            steps.append([name, {"shared": _shared(native, name, found.path)}])
            continue
        check_count(what, found, dim.size)
        if isinstance(found, Listed) and not len(found):
            continue  # They come with the first positions.
        found = placed(found, offset_of(dim))
        if isinstance(found, Steps):
            steps.append([name, found.json])
        else:
            listed.append((name, found.dtype, found.column(name).native()))
    return steps, listed


def _shared(native: "_native.Array", name: str, given: str) -> str:
    """The id of the array at a path, in which the labels of the dimension of this name are to lie."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(native.path), given))
    try:
        return _native.shared_labels(native, name, path)
    except NotFoundError as error:
        raise NotFoundError(
            f"labels={given!r} of dimension {name!r} names an array that has them: {error}; labels in a list are "
            f"labels=[…]"
        ) from None


def more_labels(
    native: "_native.Array", schema: Schema, axis: int, given: Any, count: int
) -> "tuple[str, str, _native._Column]":
    """Labels for so many more positions along an axis as the core takes them."""
    found, name = typed_labels(native, schema, axis, given, count), schema.dims[axis].name
    return name, found.dtype, found.column(name).native()


def typed_labels(native: "_native.Array", schema: Schema, axis: int, given: Any, count: int) -> Listed:
    """Labels for so many more positions along an axis, of the type that those of the dimension have.

    Raises:
        InputError: not one for each, or one that the type does not hold.
    """
    dim = schema.dims[axis]
    what = f"dimension {dim.name!r}"
    if count == 1 and (
        isinstance(given, str | bytes) or getattr(given, "ndim", None) == 0 or not hasattr(given, "__len__")
    ):
        given = [given]
    # A pair is no start and step here: labels at steps go on by themselves.
    found = labels_of(what, list(given) if isinstance(given, tuple) else given)
    if isinstance(found, Steps):
        found = Listed(found.dtype, found.values(0, count))
    check_count(what, found, count)
    return as_type(what, found, dtype_of(native, dim, axis))


def as_type(what: str, found: Listed, dtype: str | None) -> Listed:
    """Labels of another type; an `InputError` if it does not hold one of them."""
    if dtype is None or dtype == found.dtype:
        return found
    gone = missing(found.values)
    if gone.all():
        return Listed(dtype, _none(dtype, len(found)))
    values = np.ma.getdata(found.values).copy()
    # What any type holds, so that messages count rows as they were given.
    values[gone] = "NaT" if found.dtype == "string" else np.zeros((), values.dtype)
    if found.dtype == "string" and datatype.is_time(dtype):
        values = np.asarray(values, np.str_)
    elif (found.dtype == "string") != (dtype == "string") or datatype.is_time(found.dtype) != datatype.is_time(dtype):
        raise InputError(
            f"the labels of {what} are {dtype}, those given {found.dtype}; convert them, or give all positions others: "
            f"alter(labels=…)"
        )
    made = decode.numpy_of(encode.from_values(Field(what, dtype, False, "the labels of"), values, (len(values),)))
    if not gone.any():
        return Listed(dtype, made)
    with_gaps = _none(dtype, len(found))
    with_gaps[~gone] = made[~gone]
    return Listed(dtype, with_gaps)


def _attribute(hidden: "_native.Array") -> tuple[Dim, Attr]:
    schema = Schema._stored(hidden.schema_json)
    return schema.dims[0], schema.attrs[0]


def _none(dtype: str, count: int) -> AnyArray:
    """So many labels, all of them missing."""
    kind = datatype.numpy_of(dtype)
    if kind.kind == "f":
        return np.full(count, np.nan, kind)
    if kind.kind in "mM":
        return np.full(count, "NaT", kind)
    empty = np.full(count, "", object) if kind.kind == "O" else np.zeros(count, kind)
    return np.ma.MaskedArray(empty, mask=np.ones(count, np.bool_))
