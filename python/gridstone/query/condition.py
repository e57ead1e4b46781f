"""Conditions built in Python: `gs.col("sog") > 3`.

A `Column` makes an `Expression` when it is compared; expressions are joined with `&`, `|` and `~`. An expression holds
a condition of the core, which is made once and passed to every call as it is. Text and expressions mean the same, and
the `repr` of an expression is text that parses back to it.

    (gs.col("sog") > 3) & gs.col("status").isin([1, 5])
    gs.Expression.parse("sog > 3 and status in (1, 5)")
"""

import datetime as dt
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, final

import numpy as np

from .. import _native
from ..base.arguments import checked, is_iterable, utf8
from ..base.printable import brief
from ..errors import InputError


class Expression:
    """A condition on the cells of an array. Immutable, hashable, picklable; equal to one that reads the same."""

    __slots__ = ("_condition",)

    # NumPy's scalars leave comparisons with an expression to the expression.
    __array_ufunc__: Final = None

    def __init__(self, condition: "_native.Condition") -> None:
        self._condition = condition

    @staticmethod
    @checked()
    def parse(text: str) -> "Expression":
        """The condition written in `text`. Raises `InputError`, which shows the place that is wrong."""
        return Expression(_native.parse_condition(text))

    @staticmethod
    @checked()
    def from_json(text: str) -> "Expression":
        """The condition of `to_json`."""
        return _of_json(text)

    def to_json(self) -> str:
        """The condition as the core and the log have it."""
        return self._condition.to_json()

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _of_json, (self.to_json(),)

    def __and__(self, other: "Expression | bool") -> "Expression":
        return Expression(self._condition.both(_condition(other)))

    def __rand__(self, other: "Expression | bool") -> "Expression":
        return Expression(_condition(other).both(self._condition))

    def __or__(self, other: "Expression | bool") -> "Expression":
        return Expression(self._condition.either(_condition(other)))

    def __ror__(self, other: "Expression | bool") -> "Expression":
        return Expression(_condition(other).either(self._condition))

    def __invert__(self) -> "Expression":
        return Expression(self._condition.negated())

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Expression) and self._condition == other._condition

    def __hash__(self) -> int:
        return hash(self._condition)

    def __repr__(self) -> str:
        return self._condition.text

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition on cells is neither true nor false by itself; join conditions with & | ~ instead of and, or, "
            "not, each in parentheses: (gs.col('a') > 1) & (gs.col('b') < 2); write 1 < x < 5 as two, or as text"
        )


@final
class Column(Expression):
    """A dimension or attribute, by name. Comparing it makes an `Expression`; a column of bools is one by itself.

    Not hashable, as `==` builds a condition.
    """

    __slots__ = ("_name",)

    __hash__ = None  # type: ignore[assignment]  # `==` says nothing of equality

    def __init__(self, name: Any) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"the name of a dimension or attribute is a text, not {brief(name)}")
        self._name = str(utf8("name", name))
        super().__init__(_native.Condition.column(self._name))

    def __reduce__(self) -> tuple[type["Column"], tuple[str]]:
        return Column, (self.name,)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _compared(self, sign: str, other: Any) -> Expression:
        if isinstance(other, Column):
            return Expression(_native.Condition.compare_columns(self._name, sign, other._name))
        return Expression(_native.Condition.compare(self._name, sign, _literal(other)))

    def __eq__(self, other: object) -> Any:
        return self._compared("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("!=", other)

    def __lt__(self, other: Any) -> Expression:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Expression:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Expression:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Expression:
        return self._compared(">=", other)

    def isin(self, values: Iterable[Any]) -> Expression:
        """Whether the value equals one of `values` (NaN equals nothing)."""
        if isinstance(values, str | bytes) or not is_iterable(values):
            raise InputError(f"isin takes a list of values, not {brief(values)}")
        return Expression(_native.Condition.among(self._name, [_literal(value) for value in values]))

    def between(self, low: Any, high: Any) -> Expression:
        """Whether the value lies between the two, both included."""
        return Expression(_native.Condition.between(self._name, _literal(low), _literal(high)))

    def is_null(self) -> Expression:
        """Whether there is no value."""
        return Expression(_native.Condition.null(self._name))

    def is_not_null(self) -> Expression:
        """Whether there is a value."""
        return Expression(_native.Condition.not_null(self._name))

    def is_nan(self) -> Expression:
        """Whether the value is NaN or NaT."""
        return self._compared("!=", self)

    def is_not_nan(self) -> Expression:
        """Whether there is a value, and not NaN or NaT."""
        return self._compared("==", self)


@final
class Literal:
    """A value as it is, where a text would be an expression: `gs.lit("moored")`. Immutable, picklable."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def value(self) -> Any:
        """The value."""
        return self._value

    def __reduce__(self) -> tuple[type["Literal"], tuple[Any]]:
        return Literal, (self._value,)

    def __repr__(self) -> str:
        return f"gridstone.lit({brief(self._value)})"


Where: TypeAlias = str | Expression
"""What `where=` takes: a text or an expression."""


def col(name: str) -> Column:
    """The dimension or attribute called `name`, to build a condition: `gs.col("sog") > 3`.

    Example:
        >>> fast = (gs.col("sog") > 12) & ~gs.col("kind").isin(["tug", "ferry"])
        >>> a.count(where=fast) == a.count(where="sog > 12 and kind not in ('tug', 'ferry')")
        True
    """
    return Column(name)


def lit(value: Any) -> Literal:
    """The value itself, where `Array.update` takes texts for expressions.

        a.update({"status": gs.lit("moored")}, where="sog < 0.2")

    Conditions take it too: `gs.col("status") == gs.lit("moored")`.
    """
    return Literal(value)


def condition_of(where: Any) -> "_native.Condition":
    """The condition that a caller gave as `where=`, for the core. Raises `InputError` if it is none."""
    if isinstance(where, Expression):
        return where._condition
    if isinstance(where, str):
        return _native.parse_condition(utf8("where", where))
    hint = "; did a comparison happen in Python already?" if isinstance(where, bool | np.bool_) else ""
    raise InputError(
        f'a condition is a text such as "sog > 3" or built with gs.col("sog") > 3, not {type(where).__name__}{hint}'
    )


def condition_json(where: Any) -> str:
    """The same condition as JSON."""
    return condition_of(where).to_json()


def _of_json(text: str) -> Expression:
    return Expression(_native.Condition.from_json(text))


def _condition(part: Any) -> "_native.Condition":
    """A side of `&` or `|`."""
    if isinstance(part, Expression):
        return part._condition
    if isinstance(part, bool | np.bool_):
        return _native.Condition.constant(bool(part))
    raise InputError(
        f"& and | join conditions; {brief(part)} is none (comparisons need parentheses: (gs.col('a') > 1) & …)"
    )


def _literal(value: Any) -> "_native._Literal":
    """`value` as the core takes it, nothing rounded."""
    value = _unwrapped(value)
    if value is None:
        raise InputError("nothing equals null; use .is_null() or .is_not_null()")
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _time(value)
    if isinstance(value, int | np.integer):
        if not -(2**127) <= int(value) < 2**127:
            raise InputError(f"{brief(value)} does not fit 128 bits")
        return int(value)
    if isinstance(value, float | np.floating):
        if float(value) != value and value == value:
            raise InputError(f"{brief(value)} does not fit a float of 64 bits")
        return float(value)
    if isinstance(value, str):
        return str(utf8("value", value))
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, dt.datetime):
        naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return _time(np.datetime64(naive, "us"))
    if isinstance(value, dt.date):
        return _time(np.datetime64(value, "D"))
    if isinstance(value, dt.timedelta):
        return _time(np.timedelta64(value, "us"))
    raise InputError(
        f"{brief(value)} ({type(value).__name__}) cannot stand in a condition; use a number, bool, text, bytes, "
        f"datetime or timedelta"
    )


def _unwrapped(value: Any) -> Any:
    """The plain value of a pandas time, an Arrow scalar or an array without dimensions."""
    if isinstance(value, Literal):
        value = value.value
    for method in ("to_datetime64", "to_timedelta64", "as_py"):
        if hasattr(value, method):
            return getattr(value, method)()
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _time(value: Any) -> tuple[str, int | None]:
    """The type of a time, and its ticks; None for NaT."""
    kind = "datetime64" if isinstance(value, np.datetime64) else "timedelta64"
    unit, count = np.datetime_data(value.dtype)
    if np.isnat(value):
        return f"{kind}[{'s' if unit == 'generic' else unit}]", None
    ticks = int(value.astype(np.int64)) * count
    if unit == "generic" or not -(2**63) < ticks < 2**63:
        raise InputError(f"{brief(value)} has no unit of time, or passes 64 bits of it")
    return f"{kind}[{unit}]", ticks
