"""Filters of Dask's frames as conditions of arrays, where both select the same rows.

pandas and the core agree about numbers that a column's type holds exactly, texts, bools and instants. They differ in
what is missing: NumPy's columns compare a null, which is NaN or NaT there, as false, and its opposite is true; a column
of pandas' nullable types, and the core, have a third value. So each comparison is translated together with the question
whether it, or its opposite, is wanted.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from dask.dataframe.dask_expr._expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    Invert,
    IsNa,
    NotNull,
    Or,
    Projection,
)

from ..column import datatype
from ..errors import GridstoneError
from ..query.condition import Column, Expression
from ..schema.array_schema import Schema

_SIGNS = {EQ: "==", NE: "!=", LT: "<", LE: "<=", GT: ">", GE: ">="}
_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT_MAX = 1 << 53
"""Whole numbers below this are the same as integers and as floats of 64 bits."""
_UNITS = frozenset(("D", "h", "m", "s", "ms", "us", "ns"))
"""Units of time that pandas reads without a change of meaning."""


class Unsaid(Exception):
    """No condition selects the same rows."""


class Reading(NamedTuple):
    """What is read: the expression of Dask, the schema, and the types of the frame's columns."""

    source: Any
    schema: Schema
    like: Any


def split(predicate: Any, source: Any, schema: Schema, like: Any) -> tuple[Expression | None, Any]:
    """The condition that selects what `predicate` does, and None; or that of some parts that all must hold, and the
    others joined."""
    reading = Reading(source, schema, like)
    said: Expression | None = None
    left: Any = None
    for part in _parts(predicate):
        try:
            found = _where(reading, part, True)
            found._condition.check(schema.to_json())
        except (Unsaid, GridstoneError, RecursionError):
            left = part if left is None else And(left, part)
            continue
        said = found if said is None else said & found
    return said, left


def _parts(predicate: Any) -> list[Any]:
    """The parts of a predicate that all must hold."""
    if type(predicate) is And:
        return [*_parts(predicate.left), *_parts(predicate.right)]
    return [predicate]


def _where(reading: Reading, part: Any, wanted: bool) -> Expression:
    """The condition that is true in the rows where `part` is `wanted`."""
    kind = type(part)
    if kind in (And, Or):
        left, right = (_where(reading, side, wanted) for side in (part.left, part.right))
        return left & right if (kind is And) == wanted else left | right
    if kind is Invert:
        return _where(reading, part.frame, not wanted)
    if kind in (IsNa, NotNull):
        return _missing(reading, part.frame, (kind is IsNa) == wanted)
    if kind in _SIGNS:
        return _compared(reading, part, wanted)
    if kind is Projection and _dtype(reading, name := _name(reading, part)) == "bool":
        return Column(name)._compared("==", wanted)
    raise Unsaid


def _name(reading: Reading, part: Any) -> str:
    """The column that is meant; `Unsaid` if it is none of what is read."""
    if type(part) is not Projection or part.frame._name != reading.source._name or part.ndim != 1:
        raise Unsaid
    name = part.operand("columns")
    if not isinstance(name, str):
        raise Unsaid
    return name


def _dtype(reading: Reading, name: str) -> str:
    """The datatype of a column whose values are compared; `Unsaid` of those with categories."""
    for dim in reading.schema.dims:
        if dim.name == name:
            return dim.dtype
    attr = reading.schema.attr(name)
    if attr.enumeration is not None:
        raise Unsaid
    return attr.dtype


def _is_nullable(reading: Reading, name: str) -> bool:
    return any(attr.name == name and attr.nullable for attr in reading.schema.attrs)


def _has_third_value(reading: Reading, name: str) -> bool:
    """Whether comparisons with a null are neither true nor false in pandas."""
    kind = reading.like[name].dtype
    return not isinstance(kind, np.dtype) and getattr(kind, "na_value", None) is pd.NA


def _missing(reading: Reading, part: Any, wanted: bool) -> Expression:
    """Whether a value is null, NaN or NaT; or whether it is none of these."""
    name = _name(reading, part)
    dtype, column = _dtype(reading, name), Column(name)
    found: Expression | None = column.is_null() if _is_nullable(reading, name) else None
    if datatype.is_float(dtype) or datatype.is_time(dtype):
        found = column.is_nan() if found is None else found | column.is_nan()
    elif dtype not in (*datatype.INTEGERS, "bool", "string"):
        raise Unsaid
    if found is None:
        raise Unsaid  # It is the same for all cells, and costs nothing.
    return found if wanted else ~found


def _compared(reading: Reading, part: Any, wanted: bool) -> Expression:
    sign, left, right = _SIGNS[type(part)], part.left, part.right
    if type(left) is not Projection:
        sign, left, right = _TURNED[sign], right, left
    name = _name(reading, left)
    value = _value(_dtype(reading, name), right)
    if _dtype(reading, name) == "bool" and sign not in ("==", "!="):
        raise Unsaid
    found: Expression = Column(name)._compared(sign, value)
    if not wanted:
        found = ~found
    if not _is_nullable(reading, name) or _has_third_value(reading, name):
        return found
    # A null is unequal to everything, and nothing else: so it is among the opposite of all other comparisons.
    return found | Column(name).is_null() if (sign == "!=") == wanted else found


def _value(dtype: str, value: Any) -> Any:
    """The value, if pandas compares the column with it exactly."""
    for is_kind, made in _VALUES:
        if is_kind(dtype):
            found = made(dtype, value)
            if found is not None:
                return found
    raise Unsaid


def _number(dtype: str, value: Any) -> Any:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, int | float) or not math.isfinite(number) or abs(number) >= _EXACT_MAX:
        return None
    if datatype.is_float(dtype) and float(np.float64(number).astype(dtype)) != number:
        return None  # NumPy rounds a number to the type of the column.
    return number


def _text(dtype: str, value: Any) -> Any:
    return value if type(value) is str else None


def _bool(dtype: str, value: Any) -> Any:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _instant(dtype: str, value: Any) -> Any:
    if datatype.step_of(dtype) not in _UNITS or isinstance(value, int | float | np.number):
        return None
    try:
        found = pd.Timestamp(value)
    except (TypeError, ValueError):
        return None
    return None if pd.isna(found) or found.tzinfo is not None else found.to_datetime64()


_VALUES: list[tuple[Callable[[str], bool], Callable[[str, Any], Any]]] = [
    (lambda dtype: dtype in datatype.INTEGERS or datatype.is_float(dtype), _number),
    (lambda dtype: dtype == "string", _text),
    (lambda dtype: dtype == "bool", _bool),
    (lambda dtype: dtype.startswith("datetime64[") and datatype.is_time(dtype), _instant),
]
