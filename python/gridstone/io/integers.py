"""Numbers of a block of CSV whose type is inferred, where Arrow's reader makes others of them than their text says.

It takes hexadecimal digits for integers, and whole numbers beyond int64 or with a plus sign for floats. It takes
numbers beyond float64 for infinity, and drops leading zeros, which postcodes and names of stations have. `Hints` says
cheaply whether any such text may be in a block; only then the texts of a column are looked at.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..column.datatype import AnyArray
from . import numbers

LONG = pa.decimal256(76, 0)
"""Whole numbers that no type of integers holds. Longer ones than these are text at once."""
ZEROS = r"^[+-]?0[0-9]+$"
"""Whole numbers with leading zeros."""
_ZERO, _TEN = np.uint8(ord("0")), np.uint8(10)
_PORTION = 1 << 18
"""Bytes that stay in a core's cache."""


class Hints(NamedTuple):
    """What some text may have in it. False: it has none."""

    hexadecimal: bool = True
    plus: bool = True
    zeros: bool = True
    words: bool = True
    """`nan` with something behind it."""

    @classmethod
    def of(cls, data: bytes, delimiter: str, quote: str | None, escape: str | None) -> "Hints":
        """The hints of a block of CSV."""
        if escape is not None and escape.encode() in data:
            return cls()
        edges = f"{delimiter}{quote or ''}\r\n".encode()
        hexadecimal = cls.of_digits(data, quote, escape)
        return cls(
            hexadecimal, b"+" in data, _leading_zeros(data, edges, None if quote is None else ord(quote)), b"(" in data
        )

    @staticmethod
    def of_digits(data: bytes, quote: str | None, escape: str | None) -> bool:
        """Whether there may be hexadecimal digits, whatever marks lie within them."""
        if escape is not None and escape.encode() in data:
            return True
        text = np.frombuffer(b"\n\n" + data, np.uint8)
        at = np.flatnonzero((text | 32) == ord("x"))
        mark = ord(quote or "0")
        before, earlier = text[at - 1], text[at - 2]
        return bool(((before == ord("0")) | ((before == mark) & (earlier == ord("0")))).any())


def _leading_zeros(data: bytes, edges: bytes, mark: int | None) -> bool:
    """Whether a value may begin with a zero and another digit, and is no date or time of day."""
    # Two bytes before and behind, so that each place has its neighbours.
    text = np.frombuffer(b"\n\n" + data + b"\n\n", np.uint8)
    edge, inner, outer, stop = (_table(marks) for marks in (edges, b"+- \t", edges + b" \t", b":-/."))
    for start in range(2, len(text) - 2, _PORTION):
        # A place and its neighbours: two before, two behind.
        part = text[start - 2 : min(start + _PORTION, len(text) - 2) + 2]
        digit = (part[3:-1] - _ZERO) < _TEN
        if mark is not None:  # Where a quoted part of a value ends within its digits.
            digit |= (part[3:-1] == mark) & ((part[4:] - _ZERO) < _TEN)
        at = np.flatnonzero((part[2:-2] == _ZERO) & digit) + 2
        before = part[at - 1]
        at = at[edge[before] | (inner[before] & outer[part[at - 2]])]
        if not stop[part[at + 2]].all():
            return True
    return False


def _table(marks: bytes) -> AnyArray:
    """Which bytes are some of these."""
    made = np.zeros(256, np.bool_)
    made[np.frombuffer(marks, np.uint8)] = True
    return made


def exact(found: Any, hints: Hints, read: Callable[[], Any], decimal: str = ".") -> Any:
    """A column that Arrow inferred, or its numbers without a digit lost, or its texts; `read` gives these."""
    if pa.types.is_int64(found.type) and (hints.hexadecimal or hints.zeros):
        texts = read()
        bare = numbers.bare(texts)
        return found if _all(bare, numbers.WHOLE) and not _any(bare, ZEROS) else texts
    if not pa.types.is_float64(found.type) or not _doubtful(found, hints):
        return found
    texts = read()
    bare = numbers.bare(texts)
    if _any(bare, ZEROS):
        return texts
    if _all(bare, numbers.WHOLE):
        return _whole(bare, texts)
    doubtful = hints.words or pc.any(pc.is_inf(found)).as_py()
    return texts if doubtful and not _as_named(texts, found, decimal) else found


def _doubtful(floats: Any, hints: Hints) -> bool:
    """Whether floats may have been something else in their text."""
    if hints.zeros:
        return True
    if pc.any(pc.is_inf(floats)).as_py() or (hints.words and pc.any(pc.is_nan(floats)).as_py()):
        return True
    beyond = pc.any(pc.greater_equal(pc.abs(floats), 2.0**63)).as_py()
    return bool(beyond or hints.plus) and bool(pc.all(pc.equal(pc.floor(floats), floats)).as_py())


def _as_named(texts: Any, found: Any, decimal: str) -> bool:
    """Whether all texts are numbers by the grammar, and none is too large."""
    bad = False
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        bad = bad or bool(numbers.converted(chunk, found.type, decimal)[1].any())
    return not bad


def _whole(bare: Any, texts: Any) -> Any:
    """Whole numbers in the narrowest type that holds them; else their texts."""
    bare = pc.replace_substring_regex(bare, r"^\+", "")
    for kind in (pa.int64(), pa.uint64(), LONG):
        try:
            return bare.cast(kind)
        except pa.ArrowInvalid:
            continue
    return texts


def _all(texts: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _any(texts: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())
