"""What an array says of the variable that it holds: names of dimensions, notes, where its labels lie."""

from collections.abc import Mapping
from typing import Any

from ..arrays.array import Array
from ..schema.labels import SHARED
from . import names, notes


def dims_of(array: Array) -> tuple[str, ...]:
    """The names of the dimensions in a Dataset."""
    return names.dims_in_dataset(array.schema_names, array.dims, noted_of(array).get("dims"))


def noted_of(array: Array) -> Mapping[str, Any]:
    """What is noted of the variable in an array."""
    found = array[array.schema_names[0]].meta.get(notes.KEY)
    return found if isinstance(found, Mapping) else {}


def shares_labels(array: Array, axis: int) -> bool:
    """Whether the labels along an axis lie in the array of a coordinate."""
    stored = array.schema.dims[axis]._stored_labels
    return isinstance(stored, str) and stored.startswith(SHARED)
