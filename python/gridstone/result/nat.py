"""NaT beside null: Arrow has one of the two, so that a nullable time attribute that holds NaT loses something in it."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..column import datatype
from ..column.columns import Column
from ..errors import InputError
from ..schema.array_schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa


class NatWarning(UserWarning):
    """NaT of a nullable attribute became null in Arrow."""


WARN, ERROR, NULL, KEEP = "warn", "error", "null", "keep"
"""What becomes of such a NaT: null with a warning, an error, null, or a value that only this package reads."""


def array_of(schema: Schema, name: str, column: Column, how: str) -> "pa.Array":
    """The Arrow array of a column that was read."""
    from ..column import arrow

    if not _is_nullable_time(schema, name):
        return arrow.array_of(column)
    if how in (WARN, ERROR) and arrow.has_nat(column):
        lost = f"attribute {name!r} holds NaT and may hold null, which are one in Arrow"
        if how == ERROR:
            raise InputError(f"{lost}; give nat='null' to write both as null, or write CSV, which tells them apart")
        warnings.warn(f"{lost}: both are null now. to_numpy() tells them apart", NatWarning, stacklevel=3)
    return arrow.array_of(column, keep_nat=how == KEEP)


def _is_nullable_time(schema: Schema, name: str) -> bool:
    if name in [dim.name for dim in schema.dims]:
        return False
    attr = schema.attr(name)
    return attr.nullable and datatype.is_time(attr.dtype) and attr.enumeration is None


def arrays_of(schema: Schema, found: dict[str, Column], how: str) -> "Sequence[pa.Array]":
    """The Arrow arrays of columns that were read."""
    return [array_of(schema, name, column, how) for name, column in found.items()]
