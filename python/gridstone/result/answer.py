"""The answer to a question: a `Result` with a row per group, its keys before its aggregates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .. import _native
from ..column import columns
from ..column.columns import Column
from ..query.box import Box
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from .cells import Result


def named_columns(
    asked: Schema, found: Sequence["_native._Named"], categories: Sequence[str | None]
) -> dict[str, Column]:
    """The columns of an answer by name; where one holds codes of an attribute, with its categories."""
    made = {}
    for (name, dtype, column), attr in zip(found, categories, strict=True):
        made[name] = columns.from_native(dtype, column)
        if attr is not None:
            made[name] = replace(made[name], categories=asked.attr(attr).enumeration)
    return made


def answer_of(found: Mapping[str, Column], stats: Mapping[str, int], budget: int) -> Result:
    """The result with these columns: rows are groups, so there are no dimensions."""
    schema = Schema((), tuple(_attr_of(name, column) for name, column in found.items()))
    return Result(schema, Box((), ()), list(found), "row", found, stats, budget, listed=True)


def _attr_of(name: str, column: Column) -> Attr:
    known, nullable = column.categories, column.validity is not None
    if known is None:
        return Attr(name, column.dtype, nullable=nullable)
    return Attr(
        name, known.dtype, nullable=nullable, categories=known.values, ordered=known.ordered, codes=known.codes
    )
