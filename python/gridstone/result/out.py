"""Arrays of the caller that a read fills: `read(out=...)`."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.printable import brief
from ..column import datatype
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..errors import InputError, UnsupportedError
from ..query.box import Box
from ..schema.array_schema import Schema
from .cells import Result


class Target(NamedTuple):
    """An array of the caller that the core fills."""

    array: AnyArray
    flat: AnyArray
    """Its bytes, in the order of the cells."""


def targets_of(
    schema: Schema, box: Box, names: Sequence[str], order: str, out: AnyArray | Mapping[str, AnyArray]
) -> list[Target] | None:
    """The arrays of `out` that the core can fill itself; None if it cannot, and `fill_out` must copy."""
    if schema.sparse:
        raise needs_dense()
    given = _by_name(names, out)
    found = []
    flat = order in ("global", "any")
    shape = (math.prod(box.shape),) if flat else box.shape
    for name in names:
        target: Any = given[name]
        if not isinstance(target, np.ndarray) or not target.flags.writeable:
            raise InputError(
                f"out= for {name!r} must be a NumPy array that may be written, found {type(target).__name__}"
            )
        if _overlaps(target):
            raise InputError(
                f"out= for {name!r} must have a place of its own for every cell, because several threads may write "
                f"at once; found shape {target.shape} with strides {target.strides}, which puts cells on the same "
                f"bytes: give an array that was made at its full size, as by np.empty"
            )
    for name in names:
        attr, array = schema.attr(name), given[name]
        bits = datatype.base_of(attr.dtype) == "bool"
        if attr.nullable or datatype.is_var(attr.dtype) or bits or attr.enumeration is not None:
            return None
        if np.ma.isMaskedArray(array):
            return None
        dtype, whole = datatype.numpy_of(attr.dtype), shape + datatype.shape_of(attr.dtype)
        if array.shape != whole or array.dtype.newbyteorder("=") != dtype:
            raise _unfit(name, dtype, whole, array)
        if not array.dtype.isnative:
            return None
        ordered = _in_order(array, len(shape), order)
        if not ordered.flags.c_contiguous:
            return None
        found.append(Target(array, ordered.reshape(-1).view(np.uint8)))
    return found


def _in_order(array: AnyArray, ndim: int, order: str) -> AnyArray:
    """The array with the first `ndim` axes turned round where cells are in column-major order."""
    if order != "col":
        return array
    return array.transpose(*reversed(range(ndim)), *range(ndim, array.ndim))


def _overlaps(array: AnyArray) -> bool:
    """Whether two cells of an array have a byte in common."""
    if array.size < 2 or array.flags.c_contiguous or array.flags.f_contiguous:
        return False
    steps = sorted((abs(step), size) for step, size in zip(array.strides, array.shape, strict=True) if size > 1)
    reach, nested = array.itemsize, True
    for step, size in steps:
        nested = nested and step >= reach
        reach += step * (size - 1)
    if nested:
        return False
    if array.size * array.itemsize > reach:
        return True
    # Axes that lie among each other without being nested: only the cells' places can tell.
    places = np.zeros(1, np.int64)
    for step, size in steps:
        places = np.add.outer(places, np.arange(size) * step).ravel()
    return bool((np.diff(np.sort(places)) < array.itemsize).any())


def of_targets(
    schema: Schema,
    box: Box,
    names: Sequence[str],
    order: str,
    filled: Sequence[Target],
    stats: Mapping[str, int],
    budget: int,
) -> Result:
    """The result whose columns are the caller's own arrays."""
    layout = "col" if order == "col" else "row"
    found = {}
    for name, target in zip(names, filled, strict=True):
        dtype = schema.attr(name).dtype
        column = Column(dtype, target.flat.view(datatype.cell_of(dtype)))
        found[name] = column if order in ("global", "any") else column.shaped(box.shape, layout)
    return Result(schema, box, names, order, found, stats, budget)


def needs_dense() -> UnsupportedError:
    """The error of `out=` for what has no shape."""
    return UnsupportedError("out= needs the shape of the result before the read: it is for dense arrays")


def _unfit(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], found: AnyArray) -> InputError:
    return InputError(f"out= for {name!r} must be {dtype} of shape {shape}, found {found.dtype} of shape {found.shape}")


def _by_name(names: Sequence[str], out: AnyArray | Mapping[str, AnyArray]) -> Mapping[str, AnyArray]:
    if not isinstance(out, Mapping):
        if len(names) != 1:
            raise InputError(
                f"out= is one array, but {len(names)} attributes are read: {json.dumps(list(names))}; give a dict"
            )
        out = {names[0]: out}
    if set(out) != set(names):
        raise InputError(f"out= has arrays for {brief(list(out))}, the read is of {sorted(names)}")
    return out


def fill_out(result: Result, out: AnyArray | Mapping[str, AnyArray]) -> None:
    """Copies a dense result into the caller's arrays; an `InputError` says whose shape or type is wrong."""
    if result.shape is None:
        raise needs_dense()
    for name, target in _by_name(list(result._names), out).items():
        values = result[name]
        if target.shape != values.shape or target.dtype.newbyteorder("=") != values.dtype:
            raise _unfit(name, values.dtype, values.shape, target)
        if np.ma.isMaskedArray(values) and values.mask.any() and not np.ma.isMaskedArray(target):
            raise InputError(f"attribute {name!r} has nulls in this box; out= must be a masked array")
        target[...] = values
