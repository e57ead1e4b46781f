"""Predicates of other libraries, as conditions of this package.

A library hands over a tree of its own. Its reader makes a tree of the nodes below, and `condition_of` makes the
condition that is true where the tree is true. Three things differ between libraries:

- NaN: IEEE's comparisons (pyarrow), or NaN equal to itself and above every number (DuckDB, polars).
- NaT: a null in Arrow. Here it is a value that compares as NaN does, so that each comparison of times leaves it out.
- Whether the library filters once more. If so the condition may select more cells (`exact=False`), and parts that
  cannot be said are left out. If not, one such part makes the whole `Untranslatable`.
"""

import datetime as dt
import functools
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .. import _native
from ..column import arrow_types, datatype
from ..errors import GridstoneError
from ..query.condition import Column, Expression
from ..schema.array_schema import Schema


class Untranslatable(Exception):
    """No condition says the same."""


@dataclass(frozen=True)
class Compare:
    """A column beside a value; None is null."""

    column: str
    sign: str
    value: Any


@dataclass(frozen=True)
class Among:
    """Whether a column equals one of some values, none of which is null. NaN equals NaN."""

    column: str
    values: tuple[Any, ...]
    of_null: bool | None
    """What it is for a null."""


@dataclass(frozen=True)
class Missing:
    """Whether a column is null, or with `or_nan` null or NaN."""

    column: str
    or_nan: bool = False


@dataclass(frozen=True)
class NotANumber:
    """Whether a column is NaN; null if it is null."""

    column: str


@dataclass(frozen=True)
class Flag:
    """A column of bools by itself."""

    column: str


@dataclass(frozen=True)
class Constant:
    """The same for every cell; None is null."""

    value: bool | None


@dataclass(frozen=True)
class Negated:
    """The opposite, null where the part is null."""

    part: "Node"


@dataclass(frozen=True)
class Joined:
    """All parts, or any of them."""

    parts: tuple["Node", ...]
    every: bool


@dataclass(frozen=True)
class Unknown:
    """What cannot be said."""

    why: str = ""


Node = Compare | Among | Missing | NotANumber | Flag | Constant | Negated | Joined | Unknown

SIGNS: Final = ("==", "!=", "<", "<=", ">", ">=")
TURNED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The sign of the comparison with its sides exchanged."""

_MIXED_MAX = 1 << 10
"""Whole numbers up to this are the same in every type of float."""


def joined(parts: Iterable[Node], *, every: bool) -> Node:
    """All parts, or any of them. Parts of the same kind are taken apart, so that chains stay flat."""
    flat: list[Node] = []
    for part in parts:
        flat += part.parts if isinstance(part, Joined) and part.every == every else (part,)
    return flat[0] if len(flat) == 1 else Joined(tuple(flat), every)


def condition_of(node: Node, schema: Schema, *, nan_is_greatest: bool, exact: bool) -> Expression:
    """The condition that is true where `node` is true.

    Raises:
        Untranslatable: no condition says it; with `exact=False` none that selects less than everything.
    """
    try:
        return _Translator(schema, nan_is_greatest, exact).where(node, True)
    except (GridstoneError, RecursionError) as error:
        raise Untranslatable(str(error)) from error


def _constant(value: bool) -> Expression:
    return Expression(_native.Condition.constant(value))


def dtypes_of(schema: Schema) -> dict[str, str]:
    """The datatypes of all columns by name."""
    return {dim.name: dim.dtype for dim in schema.dims} | {attr.name: attr.dtype for attr in schema.attrs}


class _Translator:
    def __init__(self, schema: Schema, nan_is_greatest: bool, exact: bool) -> None:
        self._schema, self._total, self._exact = schema, nan_is_greatest, exact
        self._json = schema.to_json()
        self._nullable = {attr.name: attr.nullable for attr in schema.attrs}
        self._dtypes = dtypes_of(schema)
        self._enumerated = {attr.name for attr in schema.attrs if attr.enumeration is not None}

    def where(self, node: Node, wanted: bool) -> Expression:
        """The condition that is true where `node` is `wanted`."""
        match node:
            case Joined(parts, every):
                return self._joined(parts, every == wanted, wanted)
            case Negated(part):
                return self.where(part, not wanted)
            case Constant(value):
                return _constant(value is wanted)
            case Unknown(why):
                raise Untranslatable(why)
        made = self._leaf(node, wanted)
        try:
            made._condition.check(self._json)
        except GridstoneError as error:
            raise Untranslatable(str(error)) from error
        return made

    def _joined(self, parts: tuple[Node, ...], every: bool, wanted: bool) -> Expression:
        made: list[Expression] = []
        for part in parts:
            try:
                made.append(self.where(part, wanted))
            except Untranslatable:
                # Of parts that all must hold one may be left out, where the cells are filtered once more.
                if self._exact or not every:
                    raise
        if not made:
            raise Untranslatable("no part of it can be said")
        return functools.reduce(operator.and_ if every else operator.or_, made)

    def _leaf(self, node: Node, wanted: bool) -> Expression:
        assert not isinstance(node, Joined | Negated | Constant | Unknown)
        if node.column not in self._dtypes:
            raise Untranslatable(f"there is no column {node.column!r}")
        column = Column(node.column)
        match node:
            case Compare():
                return self._compared(node, column, wanted)
            case Among():
                return self._among(node, column, wanted)
            case Missing():
                return self._missing(node, column, wanted)
            case NotANumber():
                if self._kind(node.column) != "float":
                    raise Untranslatable("NaN is a float")
                return column.is_nan() if wanted else column.is_not_nan()
            case Flag():
                if self._kind(node.column) != "bool":
                    raise Untranslatable("a flag is a bool")
                return (column == True) if wanted else (column == False)  # type: ignore[no-any-return] # noqa: E712

    def _compared(self, node: Compare, column: Column, wanted: bool) -> Expression:
        if node.value is None:
            return _constant(False)
        kind, sign = self._kind(node.column), node.sign
        if kind == "bool" and sign not in ("==", "!="):
            raise Untranslatable("bools have no order in conditions")
        if node.column in self._enumerated and sign not in ("==", "!="):
            raise Untranslatable("the order of categories is their own")
        value = self._value(kind, node.column, node.value)
        if value is None:
            return _constant(False)
        if kind == "float" and math.isnan(value):
            return self._beside_nan(sign, column, wanted)
        found: Expression = column._compared(sign, value)
        if kind == "float" and self._total and sign in (">", ">="):
            found = found | column.is_nan()
        found = found if wanted else ~found
        # A NaT is a null for the library.
        return found & column.is_not_nan() if kind in ("time", "span") else found

    def _beside_nan(self, sign: str, column: Column, wanted: bool) -> Expression:
        """A comparison with NaN."""
        if not self._total:
            return column.is_not_null() if (sign == "!=") == wanted else _constant(False)
        if sign in ("<=", ">"):
            return column.is_not_null() if (sign == "<=") == wanted else _constant(False)
        return column.is_nan() if (sign in ("==", ">=")) == wanted else column.is_not_nan()

    def _among(self, node: Among, column: Column, wanted: bool) -> Expression:
        kind = self._kind(node.column)
        values = [self._value(kind, node.column, value) for value in node.values]
        values = [value for value in values if value is not None]
        numbers = [value for value in values if kind != "float" or not math.isnan(value)]
        if kind == "float" and not wanted and not self._exact and 0.0 in numbers:
            raise Untranslatable("libraries differ about -0.0 in a list")
        found = column.isin(numbers)
        if len(numbers) < len(values):
            found = found | column.is_nan()
        found = found if wanted else ~found
        if kind in ("time", "span"):
            found = found & column.is_not_nan()
        return found | self._missing(Missing(node.column), column, True) if node.of_null is wanted else found

    def _missing(self, node: Missing, column: Column, wanted: bool) -> Expression:
        found = column.is_null() if self._nullable.get(node.column, False) else _constant(False)
        dtype = self._dtypes[node.column]
        if datatype.is_time(dtype) and node.column not in self._enumerated:
            found = found | column.is_nan()
        elif datatype.is_time(dtype):
            raise Untranslatable("NaT among categories is a null for others")
        if node.or_nan and self._kind(node.column) == "float":
            found = found | column.is_nan()
        return found if wanted else ~found

    def _kind(self, name: str) -> str:
        """What the values of a column are compared as."""
        dtype = self._dtypes[name]
        if dtype in ("bool", "string", "bytes"):
            return dtype
        if dtype in datatype.INTEGERS:
            return "int"
        if datatype.is_float(dtype):
            return "float"
        if datatype.is_fixed_bytes(dtype):
            return "fixed"
        if datatype.is_time(dtype) and arrow_types.unit_of(dtype) is not None:
            kind = "time" if dtype.startswith("datetime64") else "span"
            if kind == "span" and self._exact:
                raise Untranslatable("lengths of time are compared otherwise there")
            return kind
        raise Untranslatable(f"values of type {dtype} are not compared")

    def _value(self, kind: str, name: str, value: Any) -> Any:
        """A value that a column of this kind is compared with exactly, wherever that is done; None for NaT."""
        if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
            value = value.item()
        is_bool = isinstance(value, bool)
        if kind == "bool" and is_bool:
            return value
        if kind == "int" and isinstance(value, int) and not is_bool:
            ends = np.iinfo(self._dtypes[name])
            if ends.min <= value <= ends.max:
                return value
        elif kind == "int" and isinstance(value, float) and not self._exact and abs(value) <= _MIXED_MAX:
            return value
        elif kind == "float" and isinstance(value, int) and not is_bool and abs(value) <= _MIXED_MAX:
            return float(value)
        elif kind == "float" and isinstance(value, float):
            return value
        elif kind == "string" and isinstance(value, str):
            value.encode()
            return value
        elif kind == "bytes" and isinstance(value, bytes):
            return value
        elif kind == "fixed" and isinstance(value, bytes):
            if len(value) == datatype.length_of(self._dtypes[name]):
                return value
        elif kind in ("time", "span"):
            return _time(kind, value)
        raise Untranslatable(f"a {type(value).__name__} beside column {name!r} of type {self._dtypes[name]}")


def _time(kind: str, value: Any) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        if isinstance(value, np.datetime64) == (kind == "time"):
            return None if np.isnat(value) else value
    elif isinstance(value, dt.datetime):
        if kind == "time" and value.tzinfo is None:
            return np.datetime64(value, "us")
    elif isinstance(value, dt.date) and kind == "time":
        return np.datetime64(value, "D")
    elif isinstance(value, dt.timedelta) and kind == "span":
        return np.timedelta64(value, "us")
    raise Untranslatable(f"a {type(value).__name__} beside a time")
