"""The texts of Arrow's columns: in tables, for people, and in JSON.

Floats are at their shortest that reads back. Times of a column have one form: days where all of them are whole days,
else as many digits as the finest of them needs.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ..base.printable import printable
from ..column.datatype import AnyArray

NULL = "null"
_UNITS = ("D", "s", "ms", "us", "ns")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_SECONDS = 86_400


def texts_of(column: Any, *, is_whole: bool = True) -> list[str]:
    """The text of each value of an Arrow array, without what acts on a terminal.

    Args:
        column: a plain or chunked array.
        is_whole: all of a column, so that all its times can be looked at for their form.
    """
    kind = column.type
    if kinds.is_dictionary(kind):
        return texts_of(column.cast(kind.value_type), is_whole=is_whole)
    if kinds.is_timestamp(kind) or kinds.is_date(kind):
        return _texts(column, _times(column, is_whole=is_whole))
    if kinds.is_duration(kind):
        return _texts(column, [_duration(ticks, _PER_SECOND[kind.unit]) for ticks in _ticks(column).tolist()])
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return [f"[{', '.join(_quoted(one.values))}]" if one.is_valid else NULL for one in column]
    return [_text(value, kind) for value in column.to_pylist()]


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type stand at the right of their column."""
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind) or kinds.is_duration(kind))


def is_fixed(kind: pa.DataType) -> bool:
    """Whether values of a type are of a kind that is shown whole: numbers, times, true and false."""
    return is_number(kind) or bool(kinds.is_temporal(kind) or kinds.is_boolean(kind))


def _text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(_narrow(value, kind))
    return repr(value)[2:-1] if isinstance(value, bytes) else printable(str(value))


def _narrow(value: float, kind: pa.DataType) -> Any:
    """A float of its own width, whose text has the digits that this width needs."""
    return np.float32(value) if kinds.is_float32(kind) else np.float16(value) if kinds.is_float16(kind) else value


def _quoted(values: Any) -> list[str]:
    """The texts of the values of a list; strings in quotes, so that a comma within them parts nothing."""
    found = texts_of(values)
    return (
        [f"'{one}'" for one in found] if kinds.is_string(values.type) or kinds.is_large_string(values.type) else found
    )


def _texts(column: Any, texts: list[str]) -> list[str]:
    """The texts, and that of null where there is no value."""
    return [text if there else NULL for text, there in zip(texts, column.is_valid().to_pylist(), strict=True)]


def _ticks(column: Any) -> AnyArray:
    """The numbers that times are stored as; 0 where there is no value."""
    made = column.cast(pa.int32()).cast(pa.int64()) if kinds.is_date32(column.type) else column.cast(pa.int64())
    found: AnyArray = np.asarray(made.fill_null(0).to_numpy(), np.int64)
    return found


def _times(column: Any, *, is_whole: bool) -> list[str]:
    kind, ticks = column.type, _ticks(column)
    if kinds.is_date32(kind):
        return [str(one) for one in ticks.astype("datetime64[D]")]
    unit = "ms" if kinds.is_date64(kind) else kind.unit
    zone = "+00:00" if kinds.is_timestamp(kind) and kind.tz is not None else ""
    shown = unit if not is_whole else _coarsest(ticks, unit, may_be_days=not zone)
    values = ticks.astype(f"datetime64[{unit}]").astype(f"datetime64[{shown}]")
    return [f"{one}{zone}".replace("T", " ") for one in np.datetime_as_string(values).tolist()]


def _coarsest(ticks: AnyArray, unit: str, *, may_be_days: bool) -> str:
    """The coarsest unit that holds all times."""
    per_second = _PER_SECOND[unit]
    for one in _UNITS[0 if may_be_days else 1 : _UNITS.index(unit)]:
        step = per_second * _DAY_SECONDS if one == "D" else per_second // _PER_SECOND[one]
        if not (ticks % step).any():
            return one
    return unit


def _duration(ticks: int, per_second: int) -> str:
    """A length of time as days, hours, minutes and seconds: "2 days 03:00:00.5"."""
    sign, (seconds, rest) = "-" if ticks < 0 else "", divmod(abs(ticks), per_second)
    days, seconds = divmod(seconds, _DAY_SECONDS)
    whole = f"{sign}{days} day{'' if days == 1 else 's'}" if days else ""
    if whole and not seconds and not rest:
        return whole
    digits = f".{rest:0{len(str(per_second)) - 1}d}".rstrip("0") if rest else ""
    clock = f"{sign}{seconds // 3600:02d}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}{digits}"
    return f"{whole} {clock}".strip()


def iso_duration(ticks: int, per_second: int) -> str:
    """A length of time in ISO 8601: "P2DT3H0.5S"."""
    sign, (seconds, rest) = "-" if ticks < 0 else "", divmod(abs(ticks), per_second)
    days, seconds = divmod(seconds, _DAY_SECONDS)
    digits = f".{rest:0{len(str(per_second)) - 1}d}".rstrip("0") if rest else ""
    hours, minutes, last = seconds // 3600, seconds % 3600 // 60, f"{seconds % 60}{digits}"
    clock = "".join(f"{n}{mark}" for n, mark in ((hours, "H"), (minutes, "M"), (last, "S")) if n not in (0, "0"))
    date = f"{days}D" if days else ""
    return f"{sign}P{date}{'T' + clock if clock else '' if date else 'T0S'}"


def json_of(column: Any) -> list[Any]:
    """The values of an Arrow array as JSON has them, but for what `output.plain` makes of them: times as ISO text."""
    kind = column.type
    if kinds.is_dictionary(kind):
        return json_of(column.cast(kind.value_type))
    if kinds.is_timestamp(kind) or kinds.is_date(kind):
        found = [one.replace(" ", "T") for one in _times(column, is_whole=False)]
    elif kinds.is_duration(kind):
        found = [iso_duration(ticks, _PER_SECOND[kind.unit]) for ticks in _ticks(column).tolist()]
    elif kinds.is_float32(kind) or kinds.is_float16(kind):
        return [None if one is None else float(str(_narrow(one, kind))) for one in column.to_pylist()]
    elif kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return [json_of(one.values) if one.is_valid else None for one in column]
    else:
        values: list[Any] = column.to_pylist()
        return values
    return [text if there else None for text, there in zip(found, column.is_valid().to_pylist(), strict=True)]
