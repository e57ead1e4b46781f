"""What xarray hands over: values with the names and labels of their dimensions."""

from collections.abc import Mapping
from typing import Any

from ..column import datatype
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.fields import attr_field


def is_xarray(given: Any) -> bool:
    """Whether this is a DataArray or a Dataset."""
    kind = type(given)
    return kind.__name__ in ("DataArray", "Dataset") and kind.__module__.partition(".")[0] == "xarray"


def variables_of(given: Any) -> Mapping[str | None, Any]:
    """The variables of a Dataset by name, or the one of a DataArray under None."""
    if type(given).__name__ == "DataArray":
        return {None: given}
    found: dict[str | None, Any] = {str(name): variable for name, variable in given.data_vars.items()}
    if not found:
        raise InputError("the Dataset has no variable; an array needs one")
    first_name, first = next(iter(found.items()))
    for name, variable in found.items():
        if variable.dims != first.dims:
            raise InputError(
                f"the attributes of an array have the same dimensions; {first_name!r} of the Dataset has {first.dims}, "
                f"{name!r} {variable.dims}. Choose variables: dataset[[{name!r}]]"
            )
    return found


def labels_along(given: Any, name: str) -> Any:
    """The labels that come with a dimension; None if there are none."""
    if name not in given.coords:
        return None  # `coords.get` would count positions.
    return given.coords[name]


def in_order(schema: Schema, attr: str, variable: Any) -> Any:
    """A variable for an attribute, with its dimensions in the order of the array's. Those that xarray has named itself,
    as `dim_0`, stay in the order that they have.

    Raises:
        InputError: a dimension that the array does not have.
    """
    names = [dim.name for dim in schema.dims]
    sides = len(datatype.shape_of(attr_field(schema, attr).dtype))
    own = [dim for dim in variable.dims if dim not in names]
    if len(own) == len(variable.dims) and own == [f"dim_{place}" for place in range(len(own))]:
        return variable
    if len(own) > sides:
        raise InputError(
            f"the array has the dimensions {', '.join(map(repr, names))}, the block {tuple(variable.dims)}; rename "
            f"or select until they are the same"
        )
    return variable.transpose(*[name for name in names if name in variable.dims], *own)
