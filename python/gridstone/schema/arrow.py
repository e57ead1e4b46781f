"""Schemas as Arrow schemas: a field per dimension and attribute, whose metadata keeps what Arrow has no type for."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ..column import category, codes
from ..column.arrow_types import NULLABLE, dtype_of, field_of, metadata_dtype
from .attribute import Attr
from .dimension import Dim

_CATEGORIES = b"gridstone.categories"


def attr_field(attr: Attr) -> "pa.Field":
    """The Arrow field of an attribute; of an enumerated one with a dictionary type."""
    made, known = field_of(attr.name, attr.dtype, attr.nullable), attr.enumeration
    if known is None:
        return made
    metadata = {**made.metadata, _CATEGORIES: known.to_json().encode()}
    return pa.field(attr.name, codes.type_of(known), attr.nullable, metadata)


def schema_of(dims: Iterable[Dim], attrs: Iterable[Attr]) -> "pa.Schema":
    """The fields of dimensions, then those of attributes."""
    return pa.schema([*(field_of(dim.name, dim.dtype, False) for dim in dims), *map(attr_field, attrs)])


def attr_of(field: "pa.Field") -> Attr:
    """The attribute that an Arrow field describes."""
    kept = field.metadata or {}
    dtype = metadata_dtype(field) or dtype_of(field.type)
    nullable = kept[NULLABLE] == b"true" if NULLABLE in kept else bool(field.nullable)
    return Attr(field.name, dtype, nullable=nullable, **(metadata_categories(field) or {}))


def metadata_categories(field: "pa.Field") -> dict[str, Any] | None:
    """The categories in a field's metadata, where this package wrote it, as arguments of `Attr`."""
    kept = field.metadata or {}
    dtype = metadata_dtype(field)
    return category.attr_arguments(dtype, kept[_CATEGORIES]) if dtype is not None and _CATEGORIES in kept else None
