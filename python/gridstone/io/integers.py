"""Whole numbers beyond int64, which Arrow's reader of CSV takes for floats that do not hold their digits.

A block's column of floats whose texts are all whole numbers is read again. It is read as uint64 where that holds the
numbers. Else it is read as decimals, which hold whole numbers of any length until the type of the column is known.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LONG = pa.decimal256(76, 0)
"""Whole numbers that no type of integers holds. Longer ones than these are text at once."""


def may_be(floats: Any) -> bool:
    """Whether a column of floats may be whole numbers beyond int64: then all are whole, and one is that large."""
    if not pa.types.is_float64(floats.type):
        return False
    beyond = pc.any(pc.greater_equal(pc.abs(floats), 2.0**63)).as_py()
    return bool(beyond) and bool(pc.all(pc.equal(pc.floor(floats), floats)).as_py())


def exact(floats: Any, read: Callable[[], Any]) -> Any:
    """The column itself, or its whole numbers without a digit lost; `read` gives its texts.

    A plus sign makes a decimal of a number, as it does for Arrow's reader.
    """
    if not may_be(floats):
        return floats
    texts = read()
    bare = pc.utf8_trim_whitespace(texts)
    if not pc.all(pc.match_substring_regex(bare, "^-?[0-9]+$")).as_py():
        return floats
    for kind in (pa.uint64(), LONG):
        try:
            return bare.cast(kind)
        except pa.ArrowInvalid:
            continue
    return texts
