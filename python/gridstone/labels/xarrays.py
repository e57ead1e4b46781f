"""What xarray hands over: values with the names and labels of their dimensions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _native
from ..base.printable import brief
from ..column.datatype import AnyArray
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.labels import Listed, Steps, labels_of
from . import along


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
    return given.coords.get(name)


def block_of(native: "_native.Array", schema: Schema, given: Any, axis: int) -> tuple[Any, Any]:
    """The values to append along an axis, in the order of the array's dimensions, and the labels of their positions.

    Raises:
        InputError: other dimensions, or labels along the others that the array does not have there.
    """
    along_name = schema.dims[axis].name
    names = [dim.name for dim in schema.dims]
    made: dict[str | None, AnyArray] = {}
    for name, variable in variables_of(given).items():
        wanted = [one for one in names if one != along_name or along_name in variable.dims]
        if sorted(map(str, variable.dims)) != sorted(wanted):
            raise InputError(
                f"the array has the dimensions {', '.join(map(repr, names))}, the block {tuple(variable.dims)}; rename "
                f"or select until they are the same"
            )
        made[name] = variable.transpose(*wanted).values
    for place, dim in enumerate(schema.dims):
        if place != axis:
            _check_same(native, schema, place, labels_along(given, dim.name))
    labels = labels_along(given, along_name)
    labels = None if labels is None else labels.values
    return made.get(None, made), labels


def _check_same(native: "_native.Array", schema: Schema, place: int, given: Any) -> None:
    """An `InputError` unless the labels of a block are those of the array along another axis."""
    dim = schema.dims[place]
    there = along.read(native, dim, place)
    if given is None or there is None:
        return
    what = f"dimension {dim.name!r}"
    found = labels_of(what, given.values)
    if isinstance(found, Steps):
        found = Listed(found.dtype, found.values(0, len(there)))
    dtype = along.dtype_of(native, dim, place)
    values = along.as_type(what, found, dtype).values
    if len(values) == len(there) and np.array_equal(np.ma.getdata(values), np.ma.getdata(there)):
        return
    raise InputError(
        f"{what}: the block has the labels {brief(values.tolist())}, the array {brief(np.ma.getdata(there).tolist())}; "
        f"select or sort until they are the same, or append without labels: append(block.values)"
    )
