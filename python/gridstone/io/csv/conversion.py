"""Makes numbers and times of columns of text where Arrow's reader of CSV would not be exact.

Arrow converts what it converts as the grammar of numbers and ISO 8601 have it. It takes hexadecimal digits, and makes
infinity of numbers that are too large. It knows no plus sign of integers, no NaT, and its own kind of formats of times.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base.printable import brief
from ...column import arrow_types
from ...column.datatype import AnyArray
from .. import date_formats, integers, numbers
from ..text_values import TICKS
from .dialect import Dialect

_NAT = int(np.iinfo(np.int64).min)
"""The ticks of NaT, which is a value here and no null."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_HEAD = 100

Types = Mapping[str, Any]


def plain(kind: Any) -> Any:
    """The type that Arrow's reader is given."""
    return pa.int64() if kind == TICKS else kind


def is_exact(kind: Any) -> bool:
    """Whether values of a type are made here, of text."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp)
    return bool(kind == TICKS) or any(is_kind(kind) for is_kind in kinds)


def by_text(dialect: Dialect, data: bytes, types: Types) -> list[str]:
    """The columns of a block whose text has to be looked at, whatever Arrow makes of it."""
    nat = b"NaT" in data
    hexadecimal = integers.Hints.of_digits(data, dialect.quote, dialect.escape)

    def doubtful(kind: Any) -> bool:
        if pa.types.is_timestamp(kind):
            return nat or bool(dialect.times)
        return (kind == TICKS and (nat or hexadecimal)) or (pa.types.is_integer(kind) and hexadecimal)

    return [name for name, kind in types.items() if doubtful(kind)]


def is_doubtful(found: Any, data: bytes) -> bool:
    """Whether Arrow may have taken text that is no number of the type for one of these floats."""
    if not pa.types.is_floating(found.type):
        return False
    if pc.any(pc.is_inf(found)).as_py():
        return True
    return b"(" in data and bool(pc.any(pc.is_nan(found)).as_py())


def converted(dialect: Dialect, texts: Any, kind: Any) -> tuple[Any, AnyArray]:
    """Texts as values of a type; and which of them are none."""
    if pa.types.is_timestamp(kind):
        return _times(texts, kind, date_formats.read(texts, dialect.times))
    if kind != TICKS:
        return numbers.converted(texts, kind, dialect.decimal)
    nat = _nat(texts)
    made, bad = numbers.converted(texts, pa.int64())
    return pc.if_else(pa.array(nat), pa.scalar(_NAT, pa.int64()), made), bad & ~nat


def reason(dialect: Dialect, text: str, kind: Any) -> str:
    """Why a text is no value of a type."""
    told = "correct the file or give another schema"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return f"{numbers.unfit(text, kind, dialect.decimal)}; {told}"
    name = arrow_types.dtype_of(plain(kind))
    if pa.types.is_timestamp(kind) and dialect.times:
        forms = " or ".join(map(repr, dialect.times))
        return f"{brief(text)} is no {name} in the form {forms}, nor in ISO 8601; {told}"
    return f"{brief(text)} is no {name}; {told}"


def _nat(texts: Any) -> AnyArray:
    return np.asarray(pc.equal(texts, "NaT").fill_null(False))


def _times(texts: Any, kind: Any, found: date_formats.Found) -> tuple[Any, AnyArray]:
    """Times as formats make them, or else in ISO 8601, or NaT."""
    present, nat = np.asarray(texts.is_valid()), _nat(texts)
    ticks, good = _ticks(found, kind)
    ticks[nat], good[nat] = _NAT, True
    rest = np.flatnonzero(present & ~found.known & ~nat)
    if len(rest):
        iso = _iso(texts if len(rest) == len(texts) else texts.take(pa.array(rest)), kind)
        ticks[rest], good[rest] = np.asarray(iso.cast(pa.int64()).fill_null(0)), np.asarray(iso.is_valid())
    return pa.array(ticks, mask=~good).cast(kind), present & ~good


def _ticks(found: date_formats.Found, kind: Any) -> tuple[AnyArray, AnyArray]:
    """Times in the unit of a type; and which of them it holds."""
    per = _PER_SECOND[kind.unit]
    good = found.known & (found.aware == (kind.tz is not None))
    good &= np.abs(found.seconds) < (2**63 - 1) // per
    if per < 10**6:
        good &= found.micros % (10**6 // per) == 0
    fraction = found.micros * per // 10**6
    return np.where(good, found.seconds, 0) * per + fraction, good


def _iso(texts: Any, kind: Any) -> Any:
    """Times in ISO 8601; null where there is none, which is found by halving."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, kind)
    coded = texts.dictionary_encode()
    if len(coded.dictionary) < len(texts):
        return _iso(coded.dictionary, kind).take(coded.indices)
    middle = len(texts) // 2
    return pa.concat_arrays([_iso(texts.slice(0, middle), kind), _iso(texts.slice(middle), kind)])


def inferred(
    dialect: Dialect, found: Any, hints: integers.Hints, nat: bool, read: Callable[[], Any]
) -> tuple[Any, AnyArray | None]:
    """A column as Arrow inferred it, or what its texts make, which `read` gives; and which rows have a text in the
    shape of a time that is none. `nat`: some text may be NaT.
    """
    kinds, kind = pa.types, found.type
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return integers.exact(found, hints, read, dialect.decimal), None
    timely = kinds.is_timestamp(kind) or kinds.is_date32(kind) or kinds.is_time(kind)
    if (dialect.times and timely) or (kinds.is_string(kind) and (dialect.times or nat)):
        return _inferred_times(dialect, found, found if kinds.is_string(kind) else read())
    return found, None


def _inferred_times(dialect: Dialect, found: Any, texts: Any) -> tuple[Any, AnyArray | None]:
    """Times in the dialect's formats, or with NaT among them; else what was found."""
    if not _may_be_times(texts.drop_null().slice(0, _HEAD), dialect.times):
        return found, None
    first = date_formats.read(texts, dialect.times)
    own = first.known | first.shaped
    if not own.any() and not _nat(texts).any():
        return found, None
    zones = ["UTC"] if first.aware.any() else [None] if own.any() else [None, "UTC"]
    for zone in zones:
        for unit in ("s", "us", "ns"):
            made, bad = _times(texts, pa.timestamp(unit, zone), first)
            if not (bad & ~first.shaped).any():
                return made, bad
    return texts, None


def _may_be_times(texts: Any, formats: Sequence[str]) -> bool:
    """Whether some texts may all be times, with an offset or without."""
    first = date_formats.read(texts, formats)
    others = texts.filter(pa.array(~(first.known | first.shaped)))
    nothing, left = date_formats.read(others, ()), np.ones(len(others), np.bool_)
    for unit, zone in (("s", None), ("ns", None), ("s", "UTC"), ("ns", "UTC")):
        left &= _times(others, pa.timestamp(unit, zone), nothing)[1]
    return not left.any()
