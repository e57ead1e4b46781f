"""The answer to a question as a new array: a cell per group, whose keys are its coordinates."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from ..base.naming import target
from ..column import datatype, decode, encode
from ..column.columns import Column, Field
from ..errors import InputError
from ..result.stream import Stream
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from .filtering import created_with


def check_keys(schema: Schema, names: Sequence[str]) -> None:
    """An `InputError` unless these columns of an answer can be dimensions."""
    if not names:
        raise InputError("to= writes a cell per group, whose keys are its coordinates: give by= too")
    for attr in (schema.attr(name) for name in names):
        if not _is_dimension(attr.dtype):
            raise InputError(
                f"the key {attr.name!r} of by= is {attr.dtype}, which is no type of a dimension; group by a number, a "
                f'time or a text, such as by="cast({attr.name} as int32)"'
            )


def _is_dimension(dtype: str) -> bool:
    return (
        dtype in datatype.INTEGERS or dtype in ("float32", "float64", "string") or datatype.is_time(dtype)
    ) and dtype != "bool"


def written(
    source: Any, stream: Stream, names: Sequence[str], to: str, longest: Mapping[str, int], *, ascends: bool
) -> Any:
    """The array at `to`, made of the groups of a stream in one commit.

    Args:
        source: the array that was asked.
        names: the columns that are dimensions.
        longest: bytes of the longest text of those that are texts.
        ascends: whether the groups ascend by their keys.
    """
    given = stream._array_schema
    # An end that is open reaches to what is written.
    dims = [_dim_of(given.attr(name), longest.get(name)) for name in names]
    attrs = [attr for attr in given.attrs if attr.name not in names]
    # Codes ascend in the order of categories, not of values.
    in_order = ascends and all(given.attr(name).enumeration is None for name in names)

    def fill(new: Any) -> None:
        order = "global" if in_order else "any"
        with closing(stream), new.writer(order=order, attrs=[attr.name for attr in attrs]) as writer:
            while (found := stream._next_columns()) is not None:
                coordinates = [coordinates_of(name, found[name]) for name in names]
                writer.append_columns(coordinates, {attr.name: found[attr.name] for attr in attrs})

    uri, path = target(to)
    return created_with(source, uri, path, Schema(dims, attrs, sparse=True), fill, "groups of")


def _dim_of(attr: Attr, longest: int | None) -> Dim:
    if attr.dtype != "string":
        return Dim(attr.name, (None, None), dtype=attr.dtype)
    known = attr.enumeration
    if known is not None:
        longest = max((len(str(value).encode()) for value in known.values), default=1)
    return Dim(attr.name, dtype="string", max_bytes=max(longest or 1, 1))


def coordinates_of(name: str, column: Column) -> Column:
    """The keys of groups as coordinates.

    Raises:
        InputError: a null, NaN, NaT or infinity among them.
    """
    if column.validity is not None and not np.all(column.validity):
        raise InputError(_no_coordinate(name, "null", "is not null"))
    if column.categories is not None:
        field = Field(name, column.categories.dtype, False, "dimension")
        return encode.from_values(field, decode.numpy_of(column))
    values = column.values
    if datatype.is_float(column.dtype) and np.isnan(values).any():
        raise InputError(_no_coordinate(name, "NaN", "is not nan"))
    if datatype.is_float(column.dtype) and np.isinf(values).any():
        raise InputError(_no_coordinate(name, "infinite", f"> -inf and {name} < inf"))
    if datatype.is_time(column.dtype) and np.isnat(decode.numpy_of(column)).any():
        raise InputError(_no_coordinate(name, "NaT", "is not nat"))
    return Column(column.dtype, values, column.offsets)


def _no_coordinate(name: str, what: str, condition: str) -> str:
    return (
        f"a key of the groups in {name!r} is {what}, which is no coordinate: to= writes a cell per group at its keys; "
        f'leave such cells out (where="{name} {condition}"), or group by another value'
    )
