"""The answer to a question: a `Result` with a row per group, its keys before its aggregates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .. import _native
from ..column import columns
from ..column.columns import Column
from ..query.box import Box
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from .cells import Result
from .stream import Stream


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


@dataclass(frozen=True, slots=True)
class _Groups:
    """Some groups of an answer."""

    count: int
    attrs: "dict[str, _native._OutColumn]"
    stats: dict[str, int]

    @property
    def dims(self) -> "dict[str, _native._OutColumn]":
        """There are none: rows are groups."""
        return {}


class _Batches:
    """The batches of an answer as a stream takes them."""

    def __init__(self, native: "_native.Answers") -> None:
        self._native = native

    def next(self) -> _Groups | None:
        """The next groups, None at the end."""
        found = self._native.next()
        if found is None:
            return None
        count, columns_found, _, stats = found
        return _Groups(count, {name: column for name, _, column in columns_found}, stats)


def stream_of(asked: Schema, native: "_native.Answers", budget: int) -> Stream:
    """The answer to a question to an array of a schema as a stream: rows are groups, so there are no dimensions."""
    (_, found, categories, stats), nullable = native.nothing()
    named = named_columns(asked, found, categories)
    pairs = zip(named.items(), nullable, strict=True)
    schema = Schema((), tuple(_attr_of(name, column, may_be_null) for (name, column), may_be_null in pairs))
    made = Stream(schema, list(named), _Batches(native), Box((), ()), budget)
    made._stats = stats
    return made


def _attr_of(name: str, column: Column, may_be_null: bool = False) -> Attr:
    known, nullable = column.categories, may_be_null or column.validity is not None
    if known is None:
        return Attr(name, column.dtype, nullable=nullable)
    return Attr(name, known.dtype, nullable=nullable, categories=known.values, ordered=known.ordered, codes=known.codes)


def reduced_of(
    schema: Schema,
    box: Box,
    kept: Sequence[int],
    found: Mapping[str, Column],
    stats: Mapping[str, int],
    budget: int,
) -> Result:
    """The result of a reduction: a dense box of the dimensions that remain."""
    dims = tuple(schema.dims[axis] for axis in kept)
    made = Schema(tuple(_plain(dim) for dim in dims), tuple(_attr_of(name, column) for name, column in found.items()))
    within = Box(made.dims, tuple(box.bounds[axis] for axis in kept))
    shaped = {name: column.shaped(within.shape, "row") for name, column in found.items()}
    return Result(made, within, list(found), "row", shaped, stats, budget)


def _plain(dim: Dim) -> Dim:
    """A dimension without labels, which lie in the array that it comes from."""
    return Dim(dim.name, dim.domain, tile=dim.tile, dtype=dim.dtype)
