"""Values to be written, by attribute."""

from collections.abc import Mapping
from typing import Any

from ..column import masked
from ..column.datatype import AnyArray
from ..column.stored import Stored
from ..errors import InputError
from ..labels import frames, xarrays
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.fields import attr_field


def _only(read: Mapping[str, AnyArray], name: str) -> AnyArray:
    """What was read of the only attribute, for one of another name."""
    if len(read) != 1:
        raise InputError(f"{list(read)} were read, none of them {name!r}; say which one: result['{next(iter(read))}']")
    return next(iter(read.values()))


def _of_one(value: Any, name: str, key: Any) -> Any:
    """The values for one attribute: of a handle or result that one, or its only one, masked where null."""
    if isinstance(value, Stored):
        found: Any = value._taken(key)
    elif isinstance(value, Result):
        found = value.in_place()
    else:
        return masked.of_list(value) if isinstance(value, list | tuple) else value
    if not isinstance(found, Mapping):
        return found
    return found[name] if name in found else _only(found, name)


def _in_order(schema: Schema, value: Any, name: str) -> Any:
    """The values of a DataArray of xarray, with its dimensions in the order of the array's, and of a frame of pandas;
    anything else as it is."""
    if frames.is_frame(value):
        return value.to_numpy()
    if xarrays.is_xarray(value) and not isinstance(value, Mapping):
        return xarrays.in_order(schema, name, value).values
    return value


def by_attribute(schema: Schema, value: Any, name: str | None, key: Any = ...) -> Mapping[str, Any]:
    """`value` by attribute: a dict or what was read as it is, anything else for the only attribute (or `name`). Handles
    (those cells of them that `key` chooses) and results, in a dict too, are read with their nulls."""
    if name is not None:
        return {name: _of_one(_in_order(schema, value, name), name, key)}
    if isinstance(value, Result):
        value = value.in_place()
    elif isinstance(value, Stored):
        found = value._taken(key)
        value = found
        if isinstance(found, Mapping) and len(found) == len(schema.attrs) == 1:
            value = next(iter(found.values()))
    if isinstance(value, Mapping):
        if not value:
            raise InputError("an empty dict was given; name at least one attribute")
        for given in value:
            attr_field(schema, given)
        return {given: _of_one(_in_order(schema, part, given), given, key) for given, part in value.items()}
    if len(schema.attrs) != 1:
        names = [attr.name for attr in schema.attrs]
        raise InputError(
            f"the array has {len(names)} attributes {names}; give a dict of arrays, or write a['{names[0]}'][...]"
        )
    only = schema.attrs[0].name
    return {only: _of_one(_in_order(schema, value, only), only, key)}


def frozen(value: Any, shape: tuple[int, ...]) -> Any:
    """The handle, or the dict of handles, that `value` is, each at the version that it shows now; None if anything
    else is in it, or one of another shape."""
    if isinstance(value, Mapping):
        found = {name: frozen(part, shape) for name, part in value.items()}
        return found if found and None not in found.values() else None
    return value._frozen() if isinstance(value, Stored) and not value.sparse and value.shape == shape else None


def nbytes_of(value: Any) -> int:
    """Bytes of the values that a handle, or a dict of handles, stands for."""
    if isinstance(value, Mapping):
        return sum(nbytes_of(part) for part in value.values())
    return value.nbytes if isinstance(value, Stored) else 0
