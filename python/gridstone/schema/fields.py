"""The fields that columns of a schema must fit, and columns of attributes that were read."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import _native
from ..base.printable import brief
from ..column import columns, datatype, encode
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


def has_own_fill(attr: Attr) -> bool:
    """Whether an attribute has a fill that was chosen: another one than its type has anyway."""
    known = attr.enumeration
    if known is not None:
        return bool(known.values) and repr(attr.fill) != repr(known.values[0])
    return repr(attr.fill) != repr(datatype.default_fill(attr.dtype))


def without_values(attr: Attr, rows: int) -> Any:
    """The Arrow array of an attribute that there is no column of: nulls, or its fill."""
    import pyarrow as pa

    from ..column import arrow, arrow_types

    if attr.nullable:
        return pa.nulls(rows, arrow_types.type_of(attr.dtype))
    plain = field_of(attr)._replace(categories=None)
    one = arrow.array_of(encode.from_values(plain, [attr.fill]))
    return one.take(pa.nulls(rows, pa.int64()).fill_null(0))


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


_VAR_BYTES = 64
"""What a value of variable length takes, about."""


def bytes_of_first(schema: Schema, names: Sequence[str], count: int, most: int) -> int:
    """How many bytes a batch of the first so many cells takes, about; no more than `most`."""
    kinds = [dim.dtype for dim in schema.dims]
    kinds += [attr.codes or attr.dtype for attr in schema.attrs if attr.name in names]
    width = sum(_VAR_BYTES if datatype.is_var(kind) else datatype.cell_bytes(kind) for kind in kinds)
    return max(1, min(most, count * width))


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
