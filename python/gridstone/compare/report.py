"""The result of `diff`."""

from dataclasses import dataclass, field
from typing import Any

from ..base import html

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
