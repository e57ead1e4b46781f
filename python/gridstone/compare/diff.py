"""What differs between two arrays, or two versions of one: schemas, and cells."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..base import html
from ..base.arguments import among, checked, several
from ..base.printable import brief
from ..base.progress import Progress, reporting
from ..column import datatype
from ..context.settings import Context
from ..errors import InputError
from ..query.box import BoxLike, box_of
from ..schema.array_schema import Schema

if TYPE_CHECKING:
    from ..arrays.array import Array


_SHOWN = 20
"""Categories that are printed, at most."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A part of a schema that differs."""

    what: str
    """ "dimension x: tile", "attribute v", "capacity", …"""
    a: Any
    """None: it is not there."""
    b: Any


@dataclass(frozen=True, slots=True)
class Example:
    """A cell that differs."""

    coords: dict[str, Any]
    kind: str
    """ "only_a", "only_b" or "different"."""
    a: dict[str, Any] | None
    """Its values, of a different cell those that differ; None if it is not there."""
    b: dict[str, Any] | None


@dataclass(slots=True)
class Difference:
    """What differs between two arrays; false if nothing does."""

    a: str
    b: str
    schema: tuple[Changed, ...] = ()
    attrs: tuple[str, ...] = ()
    """The attributes that were compared: those that both have, of one type."""
    compared: bool = True
    """Whether cells were compared: not where the dimensions are others, or one array is dense and the other sparse."""
    same: int = 0
    """Cells that are in both, with the same values; of dense arrays those of the box that was looked at."""
    only_a: int = 0
    only_b: int = 0
    different: int = 0
    """Cells that are in both, with other values."""
    values: dict[str, int] = field(default_factory=dict)
    """How many cells differ in an attribute."""
    examples: list[Example] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.schema and self.cells_equal

    @property
    def cells_equal(self) -> bool:
        """Whether the cells were compared and are the same."""
        return self.compared and not (self.only_a or self.only_b or self.different)

    def __bool__(self) -> bool:
        return not self.equal

    def __str__(self) -> str:
        lines = [f"a: {self.a}", f"b: {self.b}"]
        lines += [f"{c.what}: {_shown(c.a)} in a, {_shown(c.b)} in b" for c in self.schema]
        if not self.compared:
            return "\n".join([*lines, "the cells cannot be compared: the arrays are of different kinds"])
        lines.append(
            f"{self.same:,} cells are the same, {self.different:,} differ, {self.only_a:,} are only in a, "
            f"{self.only_b:,} only in b"
        )
        lines += [f"{name}: {count:,} cells differ" for name, count in self.values.items() if count]
        return "\n".join([*lines, *map(_example_text, self.examples)])

    def __repr__(self) -> str:
        schema = f"{len(self.schema):,} parts of the schema" if self.schema else "not the schema"
        if not self.compared:
            return f"<gridstone.Difference: {schema}; the cells cannot be compared>"
        cells = f"{self.different:,} cells differ, {self.only_a:,} are only in a, {self.only_b:,} only in b"
        return f"<gridstone.Difference: {'nothing differs' if self.equal else f'{schema}; {cells}'}>"

    def _repr_html_(self) -> str:
        head = [f"a: {self.a}", f"b: {self.b}", "nothing differs" if self.equal else _counts(self)]
        parts = [f"<div><b>gridstone.Difference</b>{html.lines(head)}"]
        if self.schema:
            rows = [(one.what, "" if one.a is None else one.a, "" if one.b is None else one.b) for one in self.schema]
            parts.append(html.table(("schema", "a", "b"), rows))
        counts = [(name, f"{count:,}") for name, count in self.values.items() if count]
        parts.append(html.table(("attribute", "cells that differ"), counts) if counts else "")
        parts.append(html.table(("cell", "a", "b"), map(_example_row, self.examples)) if self.examples else "")
        return f"{''.join(parts)}</div>"


def _counts(shown: Difference) -> str:
    if not shown.compared:
        return "the cells cannot be compared: the arrays are of different kinds"
    return (
        f"{shown.same:,} cells are the same, {shown.different:,} differ, {shown.only_a:,} are only in a, "
        f"{shown.only_b:,} only in b"
    )


def _example_row(shown: Example) -> tuple[str, str, str]:
    ends = [
        "" if values is None else ", ".join(f"{name}={value}" for name, value in values.items())
        for values in (shown.coords, shown.a, shown.b)
    ]
    return ends[0], ends[1], ends[2]


def _shown(value: Any) -> str:
    if not isinstance(value, tuple):
        return "nothing" if value is None else str(value)
    parts = [repr(part) if isinstance(part, str) else str(part) for part in value[:_SHOWN]]
    return f"({', '.join(parts)}{f', … ({len(value)})' if len(value) > _SHOWN else ''})"


def _example_text(example: Example) -> str:
    place = ", ".join(f"{name}={value}" for name, value in example.coords.items())
    if example.kind == "different":
        return f"  {place}: {example.a} in a, {example.b} in b"
    held = example.a if example.kind == "only_a" else example.b
    return f"  {place}: {held} only in {example.kind[-1]}"


@checked()
def diff(
    a: "Array | str | os.PathLike[str]",
    b: "Array | str | os.PathLike[str]",
    *,
    path: str = "/",
    b_path: str | None = None,
    box: BoxLike = None,
    attrs: Sequence[str] | str | None = None,
    examples: int = 10,
    context: Context | None = None,
    progress: Progress = None,
) -> Difference:
    """Compares two arrays, or two versions of one (`gs.diff(a.at(version=3), a)`), in bounded memory.

    Cells are compared by their coordinates, wherever and in whatever order they are stored. NaN equals NaN, null equals
    null, 0.0 equals -0.0. Of an array that allows duplicates the cells at one place are a multiset: those with the same
    values are the same cell, of the others as many as both have differ, the rest is only in one. Of dense arrays the
    cells of the box around all that is written in either are compared; what neither has written is not.

    Args:
        a, b: arrays, or the stores that they are in.
        path: the place of the arrays in their stores, where these are given.
        b_path: that of `b`, if it is another.
        box: compare cells in this box only, given as for `read`, in the domain of `a`.
        attrs: compare these attributes only; None: all that both have, of one type.
        examples: so many cells that differ are shown.
        context: None: the process's default, for stores that are opened here.
        progress: True for a bar, or a callable `f(done, total)`: boxes.

    Raises:
        InputError: an attribute that one of them has not; something else than arrays or stores.
    """
    from .cells import compare

    first, second = _opened(a, path, context), _opened(b, path if b_path is None else b_path, context)
    found = Difference(_name(first), _name(second), _schemas(first.schema, second.schema))
    found.attrs = _common(first.schema, second.schema, attrs)
    found.compared = first.sparse == second.sparse and _dims(first.schema) == _dims(second.schema)
    if found.compared:
        found.values = dict.fromkeys(found.attrs, 0)
        within = None if box is None else box_of(first.schema, box)
        with reporting(progress, "comparing", "boxes") as report:
            compare(first, second, within, found, examples, report)
    return found


def _opened(given: "Array | str | os.PathLike[str]", path: str, context: Context | None) -> "Array":
    from ..arrays.array import Array
    from ..stores import store

    if isinstance(given, Array):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"diff() takes arrays, or the stores that they are in, not {type(given).__name__}")
    return store.open_array(given, path=path, context=context)


def _name(array: "Array") -> str:
    place = array.uri if array.path == "/" else f"{array.uri} {array.path}"
    return f"{place}, version {array.version}"


def _dims(schema: Schema) -> list[tuple[str, str]]:
    return [(dim.name, dim.dtype) for dim in schema.dims]


def _common(a: Schema, b: Schema, wanted: Sequence[str] | str | None) -> tuple[str, ...]:
    kinds = [{attr.name: attr.dtype for attr in schema.attrs} for schema in (a, b)]
    if wanted is None:
        return tuple(name for name, kind in kinds[0].items() if kinds[1].get(name) == kind)
    several("attrs", wanted)
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    for name in names:
        if not all(among(name, have) for have in kinds) or kinds[0][name] != kinds[1][name]:
            raise InputError(f"attrs= names attributes of one type in both arrays; {brief(name)} is not one")
    return names


_ATTR_PARTS = ("dtype", "nullable", "fill", "filters", "categories", "ordered", "codes")


def _schemas(a: Schema, b: Schema) -> tuple[Changed, ...]:
    found = []
    for name in ("sparse", "capacity", "tile_order", "cell_order", "duplicates", "coord_filters"):
        ours, theirs = getattr(a, name), getattr(b, name)
        if ours != theirs and not (name == "capacity" and not a.sparse and not b.sparse):
            found.append(Changed(name, ours, theirs))
    found += _order("dimensions", [d.name for d in a.dims], [d.name for d in b.dims])
    for name, ours, theirs in _pairs(a.dims, b.dims):
        found += _parts(f"dimension {name}", ours, theirs, ("dtype", "domain", "tile", "max_bytes"))
    for name, ours, theirs in _pairs(a.attrs, b.attrs):
        found += _parts(f"attribute {name}", ours, theirs, _ATTR_PARTS)
    return tuple(found)


def _order(what: str, ours: list[str], theirs: list[str]) -> list[Changed]:
    return [Changed(what, ours, theirs)] if ours != theirs and sorted(ours) == sorted(theirs) else []


def _pairs(ours: Sequence[Any], theirs: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    first, second = ({part.name: part for part in parts} for parts in (ours, theirs))
    return [(name, first.get(name), second.get(name)) for name in {**first, **second}]


def _parts(what: str, ours: Any, theirs: Any, names: tuple[str, ...]) -> list[Changed]:
    if ours is None or theirs is None:
        return [Changed(what, ours and ours.dtype, theirs and theirs.dtype)]
    found = []
    for name in names:
        pair = [getattr(part, name) for part in (ours, theirs)]
        if _plain(name, ours.dtype, pair[0]) != _plain(name, theirs.dtype, pair[1]):
            found.append(Changed(f"{what}: {name}", *pair))
    return found


def _plain(name: str, dtype: str, value: Any) -> Any:
    """Something that can be compared: NaN and NaT are themselves."""
    if name == "fill":
        return datatype.show(value, dtype)
    return [datatype.show(v, dtype) for v in value] if name in ("domain", "categories") and value is not None else value
