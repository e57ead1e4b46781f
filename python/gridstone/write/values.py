"""Values to be written, by attribute."""

from collections.abc import Mapping
from typing import Any

from ..column.datatype import AnyArray
from ..errors import InputError
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.fields import attr_field


def _only(read: Mapping[str, AnyArray], name: str) -> AnyArray:
    """What was read of the only attribute, for one of another name."""
    if len(read) != 1:
        raise InputError(f"{list(read)} were read, none of them {name!r}; say which one: result['{next(iter(read))}']")
    return next(iter(read.values()))


def by_attribute(schema: Schema, value: Any, name: str | None) -> Mapping[str, Any]:
    """`value` by attribute: a dict or what was read as it is, anything else for the only attribute (or `name`)."""
    if isinstance(value, Result):
        value = value.in_place()
        if name is not None:
            value = value[name] if name in value else _only(value, name)
    if name is not None:
        return {name: value}
    if isinstance(value, Mapping):
        if not value:
            raise InputError("an empty dict was given; name at least one attribute")
        for given in value:
            attr_field(schema, given)
        return value
    if len(schema.attrs) != 1:
        names = [attr.name for attr in schema.attrs]
        raise InputError(
            f"the array has {len(names)} attributes {names}; give a dict of arrays, or write a['{names[0]}'][...]"
        )
    return {schema.attrs[0].name: value}
