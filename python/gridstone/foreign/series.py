"""Several files as one array: which of them comes where along a dimension."""

from collections.abc import Callable, Sequence
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
    if concat.startswith(NEW):
        name = concat.removeprefix(NEW)
        if not name or name in names:
            raise InputError(f"concat={brief(concat)} needs the name of a dimension that the files do not have")
        return 0, name, True
    if concat not in names:
        raise InputError(f"the files have no dimension {brief(concat)}; they have {', '.join(names)}")
    return names.index(concat), concat, False


def series(
    parts: Sequence[Part], concat: str | None, *, ordered: bool, told: Callable[[str], None], before: Any = None
) -> Series:
    """The files as one: in the order given, or by their coordinates along the dimension where the order is not the
    caller's.

    Raises:
        InputError: their shapes or types differ, or their coordinates overlap; the message names two files.
    """
    axis, name, is_new = axis_of(parts[0].pieces, concat)
    for part in parts[1:]:
        _check_alike(parts[0], part, axis, is_new)
    located = not is_new and all(part.coordinates is not None and len(part.coordinates) for part in parts)
    if located and not ordered:
        parts = sorted(parts, key=lambda part: part.coordinates[0])
        told("files are in the order of their coordinates along " + name)
    elif not ordered:
        told("files are in the order of their names: " + ", ".join(part.path for part in parts[:3]) + " …")
    gaps = _checked_order(parts, name, before) if located else []
    starts, length = [], 0
    for part in parts:
        starts.append(length)
        length += 1 if is_new else part.pieces.shape[axis]
    return Series(axis, name, is_new, parts, starts, length, gaps)


def _check_alike(first: Part, other: Part, axis: int, is_new: bool) -> None:
    a, b = first.pieces, other.pieces
    shapes = [shape if is_new else (*shape[:axis], *shape[axis + 1 :]) for shape in (a.shape, b.shape)]
    if len(a.shape) != len(b.shape) or shapes[0] != shapes[1]:
        raise InputError(
            f"{first.path} has the shape {a.shape} and {other.path} {b.shape}: they differ in another dimension"
        )
    attrs = [[(m.attr.name, m.attr.dtype, m.attr.nullable) for m in pieces.members] for pieces in (a, b)]
    if attrs[0] != attrs[1]:
        raise InputError(f"{first.path} and {other.path} have values of different types: {attrs[0]} and {attrs[1]}")


def _checked_order(parts: Sequence[Part], name: str, before: Any) -> list[str]:
    """Gaps between files; an error if coordinates overlap or do not ascend from file to file."""
    gaps: list[str] = []
    last, last_path = before, "what is attached already"
    for part in parts:
        values = np.asarray(part.coordinates)
        if last is not None and not last < values.min():
            raise InputError(
                f"{last_path} and {part.path} overlap along {name}: {last} and {values.min()}; leave one out, "
                "or give them in the order of their coordinates"
            )
        step = np.median(np.diff(values)) if len(values) > 1 else None
        if last is not None and step is not None and values.min() - last > step * 1.5:
            gaps.append(f"between {last_path} and {part.path}: {last} to {values.min()}")
        last, last_path = values.max(), part.path
    return gaps
