"""Several files as one array: which of them comes where along a dimension."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.printable import brief
from ..errors import InputError
from .pieces import Pieces
from .tree import dimension_names

NEW = "new:"
"""What stands in front of the name of a new dimension."""


@dataclass(frozen=True)
class Part:
    """A file of a series."""

    path: str
    pieces: Pieces
    coordinates: Any
    """Its coordinates along the dimension; None if it has none."""
    units: Any = None
    """What the coordinates are counted in, if that was not decoded."""
    others: Sequence[Any] = ()
    """The coordinates along each other dimension; None where it has none."""


@dataclass(frozen=True)
class Series:
    """Files in their order, with the place of each along the dimension."""

    axis: int
    name: str
    is_new: bool
    parts: Sequence[Part]
    starts: Sequence[int]
    length: int
    gaps: Sequence[str]
    """What is missing between files, in words."""

    def coordinates(self) -> Any:
        """The coordinates of all files along the dimension; None if one has none."""
        if self.is_new or any(part.coordinates is None for part in self.parts):
            return None
        return np.concatenate([np.asarray(part.coordinates) for part in self.parts])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all together."""
        first = self.parts[0].pieces.shape
        if self.is_new:
            return (self.length, *first)
        return (*first[: self.axis], self.length, *first[self.axis + 1 :])


def axis_of(pieces: Pieces, concat: str | None) -> tuple[int, str, bool]:
    """The axis along which files follow each other, its name, and whether it is a new one.

    Raises:
        InputError: there is no such dimension.
    """
    names = dimension_names(pieces.datasets[0])
    if concat is None:
        raise InputError(
            f"several files need concat=: the dimension along which they follow each other, of {', '.join(names)}, or "
            f'a new one, "{NEW}run"'
        )
    if not isinstance(concat, str):
        raise InputError(f"concat is the name of a dimension, not {brief(concat)}")
    if concat.startswith(NEW):
        name = concat.removeprefix(NEW)
        if not name or name in names:
            raise InputError(f"concat={brief(concat)} needs the name of a dimension that the files do not have")
        return 0, name, True
    if concat not in names:
        raise InputError(f"the files have no dimension {brief(concat)}; they have {', '.join(names)}")
    return names.index(concat), concat, False


def series(parts: Sequence[Part], concat: str | None, *, ordered: bool, before: Any = None) -> Series:
    """The files as one: in the order given, or by their coordinates along the dimension where the order is not the
    caller's.

    Raises:
        InputError: their shapes or types differ, or their coordinates overlap; the message names two files.
    """
    axis, name, is_new = axis_of(parts[0].pieces, concat)
    for part in parts[1:]:
        _check_alike(parts[0], part, axis, is_new)
    located = not is_new and all(part.coordinates is not None and len(part.coordinates) for part in parts)
    falls = located and _falls(parts)
    if located and not ordered:
        parts = sorted(parts, key=lambda part: part.coordinates[0], reverse=falls)
    gaps = _checked_order(parts, name, before, falls=falls) if located else []
    starts, length = [], 0
    for part in parts:
        starts.append(length)
        length += 1 if is_new else part.pieces.shape[axis]
    return Series(axis, name, is_new, parts, starts, length, gaps)


def _falls(parts: Sequence[Part]) -> bool:
    """Whether coordinates descend, in every file that has several."""
    longer = [part.coordinates for part in parts if len(part.coordinates) > 1]
    return bool(longer) and all(values[0] > values[-1] for values in longer)


def _check_alike(first: Part, other: Part, axis: int, is_new: bool) -> None:
    a, b = first.pieces, other.pieces
    both = f"{first.path} and {other.path}"
    shapes = [shape if is_new else (*shape[:axis], *shape[axis + 1 :]) for shape in (a.shape, b.shape)]
    if len(a.shape) != len(b.shape) or shapes[0] != shapes[1]:
        raise InputError(f"{both} have the shapes {a.shape} and {b.shape}: they differ in another dimension")
    names = [dimension_names(pieces.datasets[0]) for pieces in (a, b)]
    if names[0] != names[1]:
        raise InputError(f"{both} have other dimensions, or in another order: {names[0]} and {names[1]}")
    types = [types_of(pieces) for pieces in (a, b)]
    if types[0] != types[1]:
        raise InputError(f"{both} have values of different types: {types[0]} and {types[1]}")
    if first.units != other.units:
        raise InputError(f"{both} have coordinates in different units: {first.units} and {other.units}")
    for own, its in zip(first.others, other.others, strict=True):
        if (own is None) != (its is None) or (own is not None and not np.array_equal(own, its)):
            raise InputError(f"{both} have different coordinates along another dimension")


def types_of(pieces: Pieces) -> list[tuple[Any, ...]]:
    """What the values of datasets are, to be compared with those of others."""
    return [
        (member.attr.name, member.attr.dtype, member.attr.nullable, member.decoded.stored.categories)
        for member in pieces.members
    ] + [(copy.attr.name, copy.attr.dtype, copy.attr.nullable, None) for copy in pieces.copies]


def _checked_order(parts: Sequence[Part], name: str, before: Any, *, falls: bool) -> list[str]:
    """Gaps between files; an error if coordinates overlap or turn back from file to file."""
    gaps: list[str] = []
    last, last_path = before, "what is attached already"
    for part in parts:
        values = np.asarray(part.coordinates)
        near, far = (values.max(), values.min()) if falls else (values.min(), values.max())
        if last is not None and not (last > near if falls else last < near):
            raise InputError(
                f"{last_path} and {part.path} overlap along {name}: {last} and {near}; leave one out, "
                "or give them in the order of their coordinates"
            )
        step = np.median(np.abs(np.diff(values))) if len(values) > 1 else None
        if last is not None and step is not None and abs(near - last) > step * 1.5:
            gaps.append(f"between {last_path} and {part.path}: {last} to {near}")
        last, last_path = far, part.path
    return gaps
