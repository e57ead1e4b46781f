"""Columns as the core takes and gives them.

A `Column` holds the values of one dimension or attribute. For fixed-width types they are an array of the type's dtype
and any shape, in which a vector is one element (see `datatype.packed`). For strings, bytes and lists they are the
concatenated bytes with n + 1 offsets. Contiguous arrays of the right dtype pass without a copy, in both directions;
everything else is copied once.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from . import datatype
from .category import Categories
from .datatype import AnyArray


class Field(NamedTuple):
    """What a column must hold."""

    name: str
    dtype: str
    nullable: bool
    kind: str
    """ "attribute" or "dimension", for messages."""
    categories: Categories | None = None
    """Those that the values must be of; `dtype` is the type of the values."""

    @property
    def title(self) -> str:
        """The field for messages."""
        return f"{self.kind} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one field. `offsets` only for strings, bytes and lists; `validity` is None or one bool per cell.

    A column that was read is flat; `shape` and `layout` say which array its cells make. For an enumerated
    attribute `dtype` and `values` are those of codes, and `categories` says what these mean.
    """

    dtype: str
    values: AnyArray
    offsets: AnyArray | None = None
    validity: AnyArray | None = None
    shape: tuple[int, ...] | None = None
    layout: str = "row"
    categories: Categories | None = None

    def __len__(self) -> int:
        return self.values.size if self.offsets is None else self.offsets.size - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        parts = (self.values, self.offsets, self.validity)
        return sum(part.nbytes for part in parts if part is not None)

    def native(self, layout: str = "row") -> "_native._Column":
        """The buffers for the core, cells in row- or column-major order of the values' shape."""
        order: Any = "F" if layout == "col" else "C"
        values: Any = np.ravel(self.values, order=order).view(np.uint8)
        validity: Any = None if self.validity is None else np.ravel(self.validity, order=order).view(np.uint8)
        offsets: Any = self.offsets
        return values, offsets, validity

    def shaped(self, shape: tuple[int, ...], layout: str) -> "Column":
        """The same cells, to be shown as an array of `shape` laid out "row" or "col"."""
        return Column(self.dtype, self.values, self.offsets, self.validity, shape, layout, self.categories)


def from_native(dtype: str, column: "_native._OutColumn") -> Column:
    """A column over the core's buffers, without a copy; cells in the order they were read in."""
    values, offsets, validity = column
    width = np.dtype(np.uint8) if datatype.is_var(dtype) else datatype.cell_of(dtype)
    return Column(
        dtype,
        _view(values, width),
        None if offsets is None else _view(offsets, np.dtype(np.int64)),
        None if validity is None else _view(validity, np.dtype(np.bool_)),
    )


def empty(dtype: str, shape: tuple[int, ...], nullable: bool) -> Column:
    """A column of no cells, shown as an array of `shape`."""
    validity = np.ones(0, np.bool_) if nullable else None
    if datatype.is_var(dtype):
        return Column(dtype, np.empty(0, np.uint8), np.zeros(1, np.int64), validity, shape)
    return Column(dtype, np.empty(0, datatype.cell_of(dtype)), None, validity, shape)


def first(column: Column, count: int) -> Column:
    """The first cells of a flat column, at most so many."""
    if len(column) <= count:
        return column
    validity = None if column.validity is None else column.validity[:count]
    if column.offsets is None:
        return Column(column.dtype, column.values[:count], None, validity, categories=column.categories)
    offsets = column.offsets[: count + 1]
    return Column(column.dtype, column.values[: offsets[-1]], offsets, validity)


def joined(runs: "list[Column]") -> Column:
    """Flat columns of one type, one behind the other."""
    first = runs[0]
    values = np.concatenate([run.values for run in runs])
    validity = None
    if any(run.validity is not None for run in runs):
        validity = np.concatenate(
            [np.ones(len(run), np.bool_) if run.validity is None else run.validity for run in runs]
        )
    if first.offsets is None:
        return Column(first.dtype, values, None, validity, categories=first.categories)
    before, parts = 0, [np.zeros(1, np.int64)]
    for run in runs:
        if run.offsets is not None:
            parts.append(run.offsets[1:] + before)
            before += run.values.size
    return Column(first.dtype, values, np.concatenate(parts), validity)


def where(column: Column, mask: AnyArray) -> Column:
    """The cells of a flat column at which a mask is true."""
    validity = None if column.validity is None else column.validity[mask]
    if column.offsets is None:
        return Column(column.dtype, column.values[mask], None, validity, categories=column.categories)
    lengths = np.diff(column.offsets)
    values = column.values[np.repeat(mask, lengths)]
    return Column(column.dtype, values, np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[mask]))), validity)


def _view(buffer: Any, dtype: np.dtype[Any]) -> AnyArray:
    if len(buffer) == 0:
        return np.empty(0, dtype)
    ticks = dtype.kind in "mM"
    made: AnyArray = np.frombuffer(buffer, np.int64 if ticks else dtype)
    return made.view(dtype) if ticks else made
