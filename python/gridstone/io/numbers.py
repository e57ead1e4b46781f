"""The grammar of numbers in text, and exact conversions of columns of text by it.

    number = [sign] (digits ["." [digits]] | "." digits) [("e" | "E") [sign] digits]
           | [sign] ("inf" | "infinity" | "nan")          in any case, as values of float types
    sign   = "+" | "-"

Spaces and tabs around it do not count. A dialect's decimal point stands in place of ".". Hexadecimal digits,
underscores and separators of thousands are no numbers.

An integer type takes the numbers that it holds: 300 is no int8, 1.5 no integer, 1.0 and 1e3 are. A float type rounds to
the nearest value, and takes no finite number whose nearest value is infinite. The same holds of numbers that are not
text (`column/cast.py`).
"""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.printable import brief
from ..column import arrow_types, datatype
from ..column.datatype import AnyArray

_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_INFINITE = r"^[+-]?(?:[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)$"
_NAN = r"^[+-]?[nN][aA][nN]$"
WHOLE = r"^[+-]?[0-9]+$"
_DIGITS_SAFE = 18
"""Whole numbers of so many digits fit into int64."""
_LENGTH_MAX = 20
"""Digits of the largest number of 64 bits."""
_is_number = re.compile(f"{_NUMBER}|{_INFINITE}|{_NAN}")


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    return _is_number.match(text.strip(" \t")) is not None


def bare(texts: Any, decimal: str = ".") -> Any:
    """Texts without the spaces around them, with a point as decimal point."""
    made = pc.utf8_trim(texts, " \t")
    if decimal == ".":
        return made
    # A point is none in this dialect: no number has an underscore.
    return pc.replace_substring(pc.replace_substring(made, ".", "_"), decimal, ".")


def matches(texts: Any, pattern: str) -> AnyArray:
    """Which texts match; nulls do not."""
    return np.asarray(pc.match_substring_regex(texts, pattern).fill_null(False))


def converted(texts: Any, kind: Any, decimal: str = ".") -> tuple[Any, AnyArray]:
    """An array of texts as numbers of an Arrow type, null where there is none; and which texts make none."""
    present, given = np.asarray(texts.is_valid()), bare(texts, decimal)
    made, good = _integers(given, kind) if pa.types.is_integer(kind) else _floats(given, kind)
    return made, present & ~good


def _floats(texts: Any, kind: Any) -> tuple[Any, AnyArray]:
    infinite = matches(texts, _INFINITE)
    good = matches(texts, _NUMBER) | infinite | matches(texts, _NAN)
    made = _chosen(texts, good).cast(kind)
    over = np.isinf(np.asarray(made.fill_null(0))) & ~infinite
    good &= ~over
    return _chosen(made, good), good


def _integers(texts: Any, kind: Any) -> tuple[Any, AnyArray]:
    """Most whole numbers are read by Arrow; long ones and those with an exponent one by one."""
    target = np.dtype(str(kind))
    low, high = int(np.iinfo(target).min), int(np.iinfo(target).max)
    number = matches(texts, _NUMBER)
    plain = pc.replace_substring_regex(texts, r"^([+-]?[0-9]+)\.0*$", r"\1")
    plain = pc.replace_substring_regex(plain, r"^(?:\+|(-?))0*([0-9]+)$", r"\1\2")
    short = matches(plain, rf"^-?[0-9]{{1,{_DIGITS_SAFE}}}$")
    values = np.asarray(_chosen(plain, short).cast(pa.int64()).fill_null(0))
    good = short & (values >= low) & (values <= min(high, 2**63 - 1))
    made = np.where(good, values, 0).astype(target)
    known: dict[str, int | None] = {}
    others = np.flatnonzero(number & ~short)
    for row, text in zip(others, texts.take(pa.array(others)).to_pylist(), strict=True):
        value = known[text] if text in known else known.setdefault(text, _whole(text))
        if value is not None and low <= value <= high:
            made[row], good[row] = value, True
    return pa.array(made, mask=~good), good


def _whole(text: str) -> int | None:
    """The whole number of at most some digits that a number is; None if it is none."""
    try:
        value = Decimal(text)
    except ArithmeticError:  # an exponent beyond any
        return None
    if not value.is_finite() or value.adjusted() > _LENGTH_MAX:
        return 0 if value == 0 else None
    if value != 0 and value.adjusted() < 0:
        return None
    whole = value.to_integral_value()
    return int(whole) if whole == value else None


def whole(text: str) -> int | None:
    """The whole number that a text is, of any size; None if it is none."""
    given = text.strip(" \t")
    if re.match(WHOLE, given):
        return int(given)
    return _whole(given) if re.match(_NUMBER, given) else None


def number(dtype: str, text: str) -> int | float:
    """The value of a type of numbers that a text is; a `ValueError` says why it is none."""
    kind = pa.float32() if dtype == "float16" else arrow_types.type_of(dtype)
    made, bad = converted(pa.array([text]), kind)
    value: int | float = made[0].as_py() if not bad[0] else 0
    if bad[0] or (datatype.is_float(dtype) and np.isinf(datatype.rounded(dtype, value)) and not np.isinf(value)):
        raise ValueError(unfit(text, arrow_types.type_of(dtype)))
    return value


def _chosen(values: Any, good: AnyArray) -> Any:
    """The values, null where not good."""
    return values if good.all() else pc.if_else(pa.array(good), values, pa.scalar(None, values.type))


def unfit(text: str, kind: Any, decimal: str = ".") -> str:
    """Why a text is no number of an Arrow type."""
    given, name = bare(pa.array([text]), decimal)[0].as_py(), arrow_types.dtype_of(kind)
    if not is_number(given):
        return f"{brief(text)} is no {name}"
    if pa.types.is_integer(kind):
        ends = np.iinfo(name)
        return f"{brief(text)} is no {name}, which holds whole numbers from {ends.min} to {ends.max}"
    return f"{brief(text)} is no {name}, whose largest number is {float(np.finfo(name).max):.8g}"
