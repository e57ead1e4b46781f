"""Reads the cells of a sparse array at chosen positions: slices with steps, and lists of positions per axis.

The rules of keys are NumPy's. What is read for them is planned in the core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column import datatype
from ..column.datatype import AnyArray
from ..errors import UnsupportedError
from ..query.axis import axis_of, expand
from ..query.box import box_of_parts, whole
from ..result.cells import Result, of_selected
from ..result.selection import Along
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from ..schema.fields import asked_of_core
from . import chosen, fancy, lists
from .handle import Handle

if TYPE_CHECKING:
    from .. import _native


@dataclass(frozen=True, slots=True)
class _Part:
    """What is asked for along one axis."""

    chosen: "_native._Chosen"
    """As the core takes it."""
    ends: tuple[int, int] | None
    """The lowest and the highest position, (0, -1) if there is none; None: all, of texts and floats too."""
    along: Along | None
    """In the order asked for; None: all of texts or floats."""


def read(array: Handle, schema: Schema, key: Any, names: Sequence[str] | None) -> Result:
    """The cells at the positions that `a[key]` asks for, each once, in row order."""
    given = key if isinstance(key, tuple) else (key,)
    arrays = [found for found in map(fancy.array_of, given) if found is not None]
    if arrays:
        return _listed(array, schema, key, arrays, names)
    parts = expand(key, schema.ndim)
    asked = [_along(dim, part, i) for i, (dim, part) in enumerate(zip(schema.dims, parts, strict=True))]
    return _read(array, schema, asked, names)


def _listed(array: Handle, schema: Schema, key: Any, arrays: Sequence[AnyArray], names: Sequence[str] | None) -> Result:
    """The cells at a list of positions, or where a mask is true."""
    if len(arrays) > 1:
        raise UnsupportedError(
            f"{len(arrays)} lists were given for a sparse array, which could mean two things: .vindex[...] pairs them "
            f"point by point, .oindex[...] takes every combination of them"
        )
    (found,) = arrays
    if found.dtype.kind != "b" or found.ndim == 1:
        return orthogonal(array, schema, key, names)
    if isinstance(key, tuple) and len(key) > 1:
        raise UnsupportedError(
            f"a mask of {found.ndim} dimensions stands alone in the key of a sparse array, where it has the array's "
            f"shape; along one axis a flat one is taken"
        )
    wanted = [attr.name for attr in schema.attrs] if names is None else names
    return lists.read(array, lists.points_of(schema, found), wanted)


def orthogonal(array: Handle, schema: Schema, key: Any, names: Sequence[str] | None) -> Result:
    """The cells at the positions that `a.oindex[key]` asks for, each once, in row order."""
    parts = expand(key, schema.ndim)
    asked = []
    for i, (dim, part) in enumerate(zip(schema.dims, parts, strict=True)):
        if isinstance(part, slice):
            asked.append(_along(dim, part, i))
        else:
            positions, _ = lists.axis_list(dim, part, i)
            low, high = _ends(positions)
            along = Along(positions.size, listed=positions - np.uint64(low))
            asked.append(_Part(chosen.listed(positions), (low, high), along))
    return _read(array, schema, asked, names)


def _along(dim: Dim, part: Any, axis: int) -> _Part:
    """What a slice or an integer asks for along one axis."""
    if isinstance(part, slice) and part == slice(None):
        return _Part(None, None, None if dim.is_text or datatype.is_float(dim.dtype) else Along(dim.size))
    found = axis_of(dim, part, axis)
    ends = found.covering if found.count else (0, -1)
    return _Part(chosen.ascending(found, dim.size), ends, Along(found.count, found.step))


def _ends(positions: AnyArray) -> tuple[int, int]:
    return (int(positions.min()), int(positions.max())) if positions.size else (0, -1)


def _read(array: Handle, schema: Schema, parts: Sequence[_Part], names: Sequence[str] | None) -> Result:
    wanted = [attr.name for attr in schema.attrs] if names is None else names
    cells = array._read_positions([part.chosen for part in parts], None, asked_of_core(schema, wanted))
    box = box_of_parts(schema.dims, [_range(dim, part) for dim, part in zip(schema.dims, parts, strict=True)])
    selection = tuple([part.along for part in parts])
    return of_selected(schema, box, wanted, "row", cells, array.context.memory_budget, selection)


def _range(dim: Dim, part: _Part) -> Any:
    """The coordinates between the ends of a part."""
    if part.ends is None:
        return whole(dim)
    first = datatype.ticks_of(dim.reach[0])
    return first + part.ends[0], first + part.ends[1]
