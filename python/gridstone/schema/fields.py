"""The fields that columns of a schema must fit, and columns of attributes that were read."""

from collections.abc import Sequence
from dataclasses import replace

from .. import _native
from ..base.printable import brief
from ..column import columns, datatype
from ..column.columns import Column, Field
from ..errors import InputError
from .array_schema import Schema
from .attribute import Attr


def dim_fields(schema: Schema) -> list[Field]:
    """What the columns of the coordinates must hold."""
    return [Field(dim.name, dim.dtype, False, "dimension") for dim in schema.dims]


def field_of(attr: Attr) -> Field:
    """What the column of an attribute must hold."""
    return Field(attr.name, attr.dtype, attr.nullable, "attribute", attr.enumeration)


def attr_field(schema: Schema, name: str) -> Field:
    """What the column of an attribute must hold; an `InputError` lists the attributes there are."""
    for attr in schema.attrs:
        if attr.name == name:
            return field_of(attr)
    known = ", ".join(repr(attr.name) for attr in schema.attrs)
    raise InputError(f"no attribute {brief(name)}; there are {known}")


def asked_of_core(schema: Schema, names: Sequence[str]) -> list[str]:
    """The attributes to read where these are wanted: of none the narrowest, for the core gives no coordinates alone."""

    def width(attr: Attr) -> int:
        if attr.var and attr.enumeration is None:
            return 1 << 17
        return datatype.cell_bytes(attr.codes or attr.dtype)

    return list(names) or [min(schema.attrs, key=width).name]


def column_of(attr: Attr, column: "_native._OutColumn") -> Column:
    """The values of an attribute over the core's buffers."""
    known = attr.enumeration
    made = columns.from_native(attr.dtype if known is None else known.codes, column)
    return made if known is None else replace(made, categories=known)


def empty_of(attr: Attr, shape: tuple[int, ...]) -> Column:
    """No cells of an attribute, shown as an array of `shape`."""
    known = attr.enumeration
    made = columns.empty(attr.dtype if known is None else known.codes, shape, attr.nullable)
    return made if known is None else replace(made, categories=known)
