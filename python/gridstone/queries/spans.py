"""Intervals of SQL as durations.

An interval of DuckDB has months, days and microseconds, each of its own. Arrow's interval has nanoseconds of 64 bits,
and what does not fit them is wrapped there. So intervals leave DuckDB as structs of whole parts, which are put together
here: a day has 24 hours, and months have no fixed length.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InputError
from .statement import in_quotes

INTERVAL = "INTERVAL"
_MICROSECONDS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "microsecond": 1}
_MONTHS = ("year", "month")
_PARTS = ", ".join(f"'{part}'" for part in (*_MONTHS, *_MICROSECONDS))


def in_parts(rows: Any, kinds: Sequence[str]) -> Any:
    """A relation in which the columns that are intervals are structs of their parts."""
    if INTERVAL not in kinds:
        return rows
    made = [
        f"{f'datepart([{_PARTS}], #{place})' if kind == INTERVAL else f'#{place}'} as {in_quotes(name)}"
        for place, (name, kind) in enumerate(zip(rows.columns, kinds, strict=True), 1)
    ]
    return rows.project(", ".join(made))


def durations(name: str, given: Any) -> Any:
    """A column of such structs as durations in microseconds.

    Raises:
        InputError: an interval of months, or one that 64 bits of microseconds do not hold.
    """
    held = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    there = np.asarray(held.field("day").is_valid()) & np.asarray(held.is_valid())
    parts = {part: np.where(there, np.asarray(held.field(part).fill_null(0)), 0) for part in (*_MONTHS, *_MICROSECONDS)}
    if any(parts[part].any() for part in _MONTHS):
        raise InputError(
            f"column {name!r} of the answer holds an interval of months, which have no fixed number of days; cast it "
            f"in the query, for example {name}::varchar, or ask for its months: datepart('month', {name})"
        )
    about = sum(parts[part].astype(np.float64) * size for part, size in _MICROSECONDS.items())
    if (np.abs(about) > 9.223372e18).any():
        raise InputError(
            f"column {name!r} of the answer holds an interval of more than 292,000 years, which 64 bits of "
            f"microseconds do not hold; cast it in the query, for example {name}::varchar"
        )
    total = sum(parts[part] * size for part, size in _MICROSECONDS.items())
    return pa.array(total, pa.int64(), mask=~there).cast(pa.duration("us"))
