"""What a caller says of the dimensions of a new array: their names, and types and domains that are not inferred."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.arguments import is_listed
from ..base.printable import brief
from ..column import datatype, period
from ..errors import InputError, SchemaError
from ..schema.array_schema import Schema
from ..schema.dimension import Dim

Dims = Sequence[str] | Mapping[str, Any] | None
"""Names, or what is said of dimensions by name: a datatype, a domain, a `Dim`, or None for what is inferred."""


class Digits(int):
    """An end of a domain that is written in digits, before its type is known: of dates a year, or a year with month and
    day, and of all else a number."""

    def __new__(cls, text: str) -> "Digits":
        """The number that the text is."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


class Chosen(NamedTuple):
    """What is said of one dimension; the rest is inferred."""

    dtype: str | None = None
    domain: tuple[Any, Any] | None = None
    """The lowest and highest coordinate, both included; an end that is None is that of the data."""
    dim: Dim | None = None
    """All of it."""

    @property
    def kind(self) -> str | None:
        """The datatype; None: inferred."""
        return self.dtype if self.dim is None else self.dim.dtype


def of(dims: Any, domain: Any) -> tuple[list[str] | None, dict[str, Chosen]]:
    """The names of the dimensions and what is chosen for them, from `dims=` and `domain=`.

    Raises:
        InputError: what is none of the forms, or a domain of a dimension that is not among them.
    """
    chosen: dict[str, Chosen] = {}
    if isinstance(dims, Mapping):
        chosen = {_name(name): _chosen(name, value) for name, value in dims.items()}
        names: list[str] | None = list(chosen)
    elif isinstance(dims, str) or dims is None:
        names = None if dims is None else _single(dims)
    else:
        names = [dim.name if isinstance(dim, Dim) else _name(dim) for dim in dims]
        chosen = {dim.name: Chosen(dim=dim) for dim in dims if isinstance(dim, Dim)}
    if domain is not None:
        if not isinstance(domain, Mapping):
            raise InputError(
                f"domain= is a dict by dimension, such as domain={{'lon': (-180, 180)}}, not {brief(domain)}"
            )
        for name, ends in domain.items():
            chosen[_name(name)] = _with_domain(name, names, chosen.get(name, Chosen()), ends)
    return names, {name: found for name, found in chosen.items() if found != Chosen()}


def _single(dims: str) -> list[str]:
    raise InputError(f"dims= is a list of the columns that are the dimensions, such as dims=[{dims!r}]")


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"dims= and domain= name columns by text, found {brief(name)} of type {type(name).__name__}")
    return name


def _chosen(name: str, value: Any) -> Chosen:
    if value is None or value is ...:
        return Chosen()
    if isinstance(value, Dim):
        if value.name != name:
            raise InputError(f"dims= has a Dim of name {value.name!r} under {name!r}; give both the same name")
        return Chosen(dim=value)
    if isinstance(value, slice):
        raise InputError(f"dims= of {name!r} takes a domain as a pair (lowest, highest), both included, not a slice")
    if isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim):
        return Chosen(domain=_pair(name, value))
    try:
        return Chosen(datatype.parse(value))
    except (SchemaError, TypeError) as error:
        raise InputError(
            f"dims= of {name!r} takes a datatype, a domain (lowest, highest), a gridstone.Dim, or None for what is "
            f"inferred, not {brief(value)}: {error}"
        ) from None


def _pair(name: str, ends: Any) -> tuple[Any, Any]:
    if not is_listed(ends) or len(ends) != 2:
        raise InputError(f"dimension {name!r}: a domain is a pair (lowest, highest), not {brief(ends)}")
    return ends[0], ends[1]


def _with_domain(name: str, names: list[str] | None, found: Chosen, ends: Any) -> Chosen:
    if names is not None and name not in names:
        raise InputError(f"domain= names {name!r}, and the dimensions are {', '.join(map(repr, names))}")
    if found.dim is not None or found.domain is not None:
        raise InputError(f"dimension {name!r} has a domain in dims= and one in domain=: give one of them")
    return found._replace(domain=_pair(name, ends))


def check_of_array(schema: Schema, names: Sequence[str] | None, chosen: Mapping[str, Chosen], *, stated: bool) -> None:
    """An `InputError` unless what the caller says of dimensions is so in an array, or schema, that is there."""
    known = [dim.name for dim in schema.dims]
    what = "the schema" if stated else "the array"
    if names is not None and sorted(names) != sorted(known):
        raise InputError(
            f"dims= names {', '.join(map(repr, names))}, and {what} has the dimensions {', '.join(map(repr, known))}; "
            f"leave dims= out, or load into another place"
        )
    for name, found in chosen.items():
        if name not in known:
            raise InputError(f"domain= names {name!r}, and {what} has the dimensions {', '.join(map(repr, known))}")
        dim = schema.dim(name)
        if found.dim is not None and (found.dim.dtype != dim.dtype or not _holds(dim, found.dim.domain)):
            raise InputError(f"dims= says {found.dim!r}, and {what} has {dim!r}; {_way(stated)}")
        if found.dtype is not None and found.dtype != dim.dtype:
            raise InputError(
                f"dims= says that {name!r} is {found.dtype}, and in {what} it is {dim.dtype}; {_way(stated)}"
            )
        if found.domain is not None and not _holds(dim, found.domain):
            raise InputError(
                f"domain= of {name!r} is {found.domain}, and in {what} it is {dim.domain}; "
                f"{'give one of them' if stated else 'make it larger with resize() (gridstone resize)'}"
            )


def _way(stated: bool) -> str:
    return "give one of them" if stated else "leave that out, or load into another place"


def _holds(dim: Dim, ends: Any) -> bool:
    """Whether the domain of a dimension holds these ends."""
    if dim.is_text or ends is None:
        return dim.is_text and ends is None
    what = f"dimension {dim.name!r}"
    given = _given(dim.dtype, ends)
    low, high = (None if end is None else datatype.scalar(dim.dtype, end, what) for end in given)
    first, last = dim.reach
    holds_low = low is None or dim.open[0] or (first <= low and not dim.is_empty)
    return bool(holds_low and (high is None or dim.open[1] or (high <= last and not dim.is_empty)))


def ends_of(found: Chosen, name: str, dtype: str, inferred: tuple[Any, Any]) -> tuple[Any, Any]:
    """The domain: as chosen, an end that is None as in the data."""
    if found.domain is None:
        return inferred
    what = f"dimension {name!r}"
    low, high = (
        data if end is None else datatype.scalar(dtype, end, what)
        for end, data in zip(_given(dtype, found.domain), inferred, strict=True)
    )
    return low, high


def _given(dtype: str, ends: tuple[Any, Any]) -> tuple[Any, Any]:
    """Both ends as they are meant for a type; the high one of a written period is the last value in it."""
    is_date = dtype.startswith("datetime64")
    low, high = (end.text if is_date and isinstance(end, Digits) else end for end in ends)
    return low, period.last_value(dtype, high)
