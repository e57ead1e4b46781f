"""Cells of a sparse array as frames of pandas: one box of it, and the frame without rows that all of them are like."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.array import Array
from ..column import datatype
from ..query.box import Box, TextSpan, box_of_parts
from ..query.condition import Expression
from ..schema.array_schema import Schema
from .place import Place

if TYPE_CHECKING:
    import pandas as pd

Part = tuple[int | float, int | float] | tuple[str | None, str | None, bool]
"""A box along one dimension: both ends, in ticks, inclusive; of texts also whether the high one is left out."""
Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of an array at one version, partition by partition, where the tasks of a graph read them."""

    place: Place
    index: str | None
    """The dimension that is the index, by which each partition is sorted."""

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "gridstone.Cells", self.place.__dask_tokenize__(), self.index

    def read(self, parts: Parts, columns: Sequence[str], where: str | None, like: "pd.DataFrame") -> "pd.DataFrame":
        """The cells of one partition. `where` is a condition as JSON; `like` has the type of each column."""
        a = self.place.reader()
        box = _box(a._schema, parts)
        condition = None if where is None else Expression.from_json(where)
        attrs = [name for name in columns if name in a.schema_names]
        found = a.read(box, attrs, condition, "any" if self.index else "global").to_pandas()
        wanted = list(columns) if self.index is None else [*(n for n in columns if n != self.index), self.index]
        return _framed(found[wanted], self.index, like[list(columns)])


def _box(schema: Schema, parts: Parts) -> Box:
    return box_of_parts(schema.dims, [TextSpan(*part) if len(part) == 3 else part for part in parts])


def _framed(found: "pd.DataFrame", index: str | None, like: "pd.DataFrame") -> "pd.DataFrame":
    """The rows with the index, and columns of the types that all partitions have."""
    if index is not None:
        found = found.sort_values(index, kind="stable").set_index(index)
    moved = {name: kind for name, kind in like.dtypes.items() if found[name].dtype != kind}
    return found.astype(moved) if moved else found


def empty_of(a: Array, columns: Sequence[str], index: str | None) -> "pd.DataFrame":
    """The frame without rows: integers and booleans that may be null have pandas' nullable types in each partition."""
    schema = a._schema
    nothing: list[Any] = [(None, "", True) if dim.is_text else _nothing(dim.dtype) for dim in schema.dims]
    found = a.read(_box(schema, tuple(nothing))).to_pandas()
    for attr in schema.attrs:
        kind = found[attr.name].dtype
        if attr.nullable and isinstance(kind, np.dtype) and kind.kind in "iub":
            name: Any = "boolean" if kind.kind == "b" else kind.name.replace("u", "U").replace("i", "I")
            found[attr.name] = found[attr.name].astype(name)
    if index is not None:
        found = found.set_index(index)
    return found[[name for name in columns if name != index]]


def _nothing(dtype: str) -> tuple[int | float, int | float]:
    return (0.0, -1.0) if datatype.is_float(dtype) else (0, -1)
