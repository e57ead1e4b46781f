"""The names of dimensions and variables: what they are in a store, and in a Dataset."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..base.printable import brief
from ..errors import InputError

UNNAMED = "__values__"
"""The array of a variable without a name."""

_SUFFIX = "_dim"


def array_name(name: Hashable) -> str:
    """The name of the array of a variable.

    Raises:
        TypeError: a name that is no text.
        InputError: a text that cannot be a part of a path.
    """
    if name is None:
        return UNNAMED
    if not isinstance(name, str):
        raise TypeError(
            f"{name!r} cannot be the name of a variable here: it has to be a string or None; rename it with "
            f"Dataset.rename"
        )
    if not name:
        raise InputError(f"{name!r} cannot be the name of a variable here: the string must be length 1 or greater")
    if name == UNNAMED:
        raise InputError(
            f"{name!r} cannot be the name of a variable here: the array of a variable without a name is called so; "
            f"rename it with Dataset.rename"
        )
    if "/" in name:
        raise InputError(
            f"the variable {brief(name)} has a slash in its name, which separates groups in a store; rename it, or "
            f"write a DataTree"
        )
    return name


def variable_name(name: str) -> str | None:
    """The name of the variable in an array."""
    return None if name == UNNAMED else name


def dims_in_store(array: str, dims: Sequence[Hashable]) -> tuple[str, ...]:
    """The names of dimensions in the array of a variable. A dimension and an attribute cannot share a name there, nor
    two dimensions.

    Raises:
        TypeError: a name that is no text.
    """
    made: list[str] = []
    for dim in dims:
        if not isinstance(dim, str):
            raise TypeError(f"variable {array!r}: the dimension {dim!r} has to be a string; rename it")
        name = f"{dim}{_SUFFIX}" if dim == array else dim
        while name in made or name == array or (name != dim and name in dims):
            name += _SUFFIX
        made.append(name)
    return tuple(made)


def dims_in_dataset(attrs: Sequence[str], dims: Sequence[str], noted: Any = None) -> tuple[str, ...]:
    """The names of dimensions in a Dataset: `lat_dim` of an array with the attribute `lat` is `lat`, unless another
    name is noted."""
    if isinstance(noted, list) and len(noted) == len(dims):
        return tuple(noted)
    short = [dim.removesuffix(_SUFFIX) for dim in dims]
    return tuple(
        name if name in attrs and dim != name and name not in dims else dim
        for dim, name in zip(dims, short, strict=True)
    )


def noted_dims(array: str, dims: Sequence[Hashable]) -> Mapping[str, Any]:
    """A note of the dimensions' names where the stored ones do not tell them."""
    stored = dims_in_store(array, dims)
    return {} if dims_in_dataset([array], stored) == tuple(dims) else {"dims": list(dims)}
