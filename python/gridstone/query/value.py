"""Values computed of cells in Python: `gs.col("sog") * 1.852`.

A `Value` holds an expression of the core, as an `Expression` holds a condition. Comparing one makes an `Expression`.
Text and values mean the same, and the `repr` of a value is text that parses back to it, so that aggregates take it too.

    (gs.col("sog") * 1.852 > 10) & gs.col("name").lower().like("a%")
    gs.Value.parse("sog * 1.852")
    array.aggregate({"km": f"mean({gs.col('sog') * 1.852})"})
"""

from collections.abc import Iterable
from typing import Any, Final, final

import numpy as np

from .. import _native
from ..base.arguments import checked, utf8
from ..base.printable import brief
from ..errors import InputError
from .condition import Expression, literal


class Operand:
    """What is computed with: a column or a computed value. Not hashable, as `==` builds a condition."""

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]  # `==` says nothing of equality

    def _term(self) -> "_native.Value":
        """The expression of the core."""
        raise NotImplementedError

    def _joined(self, sign: str, other: Any) -> "Value":
        return Value(_native.Value.function(sign, [self._term(), _term(other)]))

    def _joined_to(self, other: Any, sign: str) -> "Value":
        return Value(_native.Value.function(sign, [_term(other), self._term()]))

    def _called(self, name: str, *args: Any) -> "Value":
        return Value(_native.Value.function(name, [self._term(), *(_term(arg) for arg in args)]))

    def _tested(self, name: str, text: str) -> Expression:
        if not isinstance(text, str):
            raise InputError(f"{name} takes a text, not {brief(text)}")
        return Expression(self._called(name, text)._term().truth())

    def __add__(self, other: Any) -> "Value":
        return self._joined("+", other)

    def __radd__(self, other: Any) -> "Value":
        return self._joined_to(other, "+")

    def __sub__(self, other: Any) -> "Value":
        return self._joined("-", other)

    def __rsub__(self, other: Any) -> "Value":
        return self._joined_to(other, "-")

    def __mul__(self, other: Any) -> "Value":
        return self._joined("*", other)

    def __rmul__(self, other: Any) -> "Value":
        return self._joined_to(other, "*")

    def __truediv__(self, other: Any) -> "Value":
        return self._joined("/", other)

    def __rtruediv__(self, other: Any) -> "Value":
        return self._joined_to(other, "/")

    def __floordiv__(self, other: Any) -> "Value":
        return self._joined("//", other)

    def __rfloordiv__(self, other: Any) -> "Value":
        return self._joined_to(other, "//")

    def __mod__(self, other: Any) -> "Value":
        return self._joined("%", other)

    def __rmod__(self, other: Any) -> "Value":
        return self._joined_to(other, "%")

    def __neg__(self) -> "Value":
        return Value(_native.Value.function("-", [self._term()]))

    def __pos__(self) -> "Value":
        return Value(self._term())

    def __abs__(self) -> "Value":
        return self._called("abs")

    def _compared(self, sign: str, other: Any) -> Expression:
        return Expression(self._term().compare(sign, _term(other)))

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
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InputError(f"isin takes a list of values, not {brief(values)}")
        return Expression(self._term().among([literal(value) for value in values]))

    def between(self, low: Any, high: Any) -> Expression:
        """Whether the value lies between the two, both included."""
        return Expression(self._term().between(_term(low), _term(high)))

    def is_null(self) -> Expression:
        """Whether there is no value."""
        return Expression(self._term().null(True))

    def is_not_null(self) -> Expression:
        """Whether there is a value."""
        return Expression(self._term().null(False))

    def is_nan(self) -> Expression:
        """Whether the value is NaN or NaT."""
        return self._compared("!=", self)

    def is_not_nan(self) -> Expression:
        """Whether there is a value, and not NaN or NaT."""
        return self._compared("==", self)

    def floor(self) -> "Value":
        """The whole number below."""
        return self._called("floor")

    def ceil(self) -> "Value":
        """The whole number above."""
        return self._called("ceil")

    def round(self) -> "Value":
        """The nearest whole number, of two the even one."""
        return self._called("round")

    def sqrt(self) -> "Value":
        """The square root; NaN of negative numbers."""
        return self._called("sqrt")

    def exp(self) -> "Value":
        """e to the power of the value."""
        return self._called("exp")

    def log(self) -> "Value":
        """The natural logarithm."""
        return self._called("ln")

    def log10(self) -> "Value":
        """The logarithm to base 10."""
        return self._called("log10")

    def cast(self, dtype: Any) -> "Value":
        """The value as one of another type: `"float64"`, `np.int8`, `"datetime64[s]"`, `"string"`."""
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        return Value(self._term().cast(str(utf8("dtype", name))))

    def lower(self) -> "Value":
        """The text in lower case."""
        return self._called("lower")

    def upper(self) -> "Value":
        """The text in upper case."""
        return self._called("upper")

    def length(self) -> "Value":
        """How many characters the text has."""
        return self._called("length")

    def like(self, pattern: str) -> Expression:
        r"""Whether the text matches: `%` stands for any characters, `_` for one, `\` takes the next as it is."""
        return self._tested("like", pattern)

    def ilike(self, pattern: str) -> Expression:
        """As `like`, in any case of letters."""
        return self._tested("ilike", pattern)

    def regexp_matches(self, pattern: str) -> Expression:
        """Whether a part of the text matches a regular expression."""
        return self._tested("regexp_matches", pattern)

    def starts_with(self, text: str) -> Expression:
        """Whether the text begins so."""
        return self._tested("starts_with", text)

    def ends_with(self, text: str) -> Expression:
        """Whether the text ends so."""
        return self._tested("ends_with", text)

    def contains(self, text: str) -> Expression:
        """Whether the text is a part of the value."""
        return self._tested("contains", text)

    def date(self) -> "Value":
        """The day of a time, a datetime64[D]."""
        return self._called("date")

    def year(self) -> "Value":
        """The year of a time, in UTC."""
        return self._called("year")

    def month(self) -> "Value":
        """The month of a time, from 1."""
        return self._called("month")

    def day(self) -> "Value":
        """The day of the month of a time, from 1."""
        return self._called("day")

    def hour(self) -> "Value":
        """The hour of a time."""
        return self._called("hour")

    def minute(self) -> "Value":
        """The minute of a time."""
        return self._called("minute")

    def second(self) -> "Value":
        """The second of a time, without its fraction."""
        return self._called("second")

    def dayofweek(self) -> "Value":
        """The day of the week of a time: 0 is Monday."""
        return self._called("dayofweek")

    def period(self, length: str) -> "Value":
        """The beginning of the period in which a time lies: `"15m"`, `"1h"`, `"1D"`, `"1W"` from Monday, `"1M"`."""
        return self._called("period", length)


@final
class Value(Operand):
    """A value computed of each cell. Immutable, picklable; `where=` takes it if it is a bool."""

    __slots__ = ("_expression",)

    # NumPy's scalars leave operators beside a value to the value.
    __array_ufunc__: Final = None

    def __init__(self, expression: "_native.Value") -> None:
        self._expression = expression

    @staticmethod
    @checked()
    def parse(text: str) -> "Value":
        """The value written in `text`. Raises `InputError`, which shows the place that is wrong."""
        return Value(_native.Value.parse(text, False))

    @staticmethod
    @checked()
    def from_json(text: str) -> "Value":
        """The value of `to_json`."""
        return _of_json(text)

    def to_json(self) -> str:
        """The expression as the core has it."""
        return self._expression.to_json()

    def is_true(self) -> Expression:
        """The condition that the value, a bool, is by itself."""
        return Expression(self._expression.truth())

    def same_as(self, other: "Value") -> bool:
        """Whether both read the same."""
        return self._expression == other._expression

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _of_json, (self.to_json(),)

    def __repr__(self) -> str:
        return self._expression.text

    def __bool__(self) -> bool:
        raise TypeError(
            "a value computed of cells is neither true nor false by itself; compare it, and join conditions with & | ~"
        )

    def _term(self) -> "_native.Value":
        return self._expression


@final
class Column(Operand, Expression):
    """A dimension or attribute, by name. Computing with it makes a `Value`, comparing it an `Expression`; a column of
    bools is one by itself.

    Not hashable, as `==` builds a condition.
    """

    __slots__ = ("_name", "_value")

    __hash__ = None  # type: ignore[assignment]  # `==` says nothing of equality

    def __init__(self, name: Any) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"the name of a dimension or attribute is a text, not {brief(name)}")
        self._name = str(utf8("name", name))
        self._value = _native.Value(self._name, True)
        super().__init__(self._value.truth())

    def __reduce__(self) -> tuple[type["Column"], tuple[str]]:
        return Column, (self.name,)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _term(self) -> "_native.Value":
        return self._value


def col(name: str) -> Column:
    """The dimension or attribute called `name`, to build a condition or a value: `gs.col("sog") * 1.852 > 10`."""
    return Column(name)


def coalesce(*values: Any) -> Value:
    """The first of `values` that is not null: `gs.coalesce(gs.col("sog"), 0)`."""
    return Value(_native.Value.function("coalesce", [_term(value) for value in values]))


def case(*whens: tuple[Expression, Any], otherwise: Any = None) -> Value:
    """The value beside the first condition that is true: `gs.case((gs.col("sog") > 30, "fast"), otherwise="slow")`.

    `None` is null.
    """
    pairs: list[tuple[_native.Condition, _native.Value | None]] = []
    given: tuple[Any, ...] = whens
    for when in given:
        if not isinstance(when, tuple) or len(when) != 2 or not isinstance(when[0], Expression):
            raise InputError(
                f"case takes pairs of a condition and a value, as in (gs.col('sog') > 3, 1), not {brief(when)}"
            )
        condition, value = when
        pairs.append((condition._condition, None if value is None else _term(value)))
    return Value(_native.Value.case(pairs, None if otherwise is None else _term(otherwise)))


def _term(value: Any) -> "_native.Value":
    """A side of an operator."""
    return value._term() if isinstance(value, Operand) else _native.Value(literal(value), False)


def _of_json(text: str) -> Value:
    return Value(_native.Value.parse(text, True))
