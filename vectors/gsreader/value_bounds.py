"""Bounds of values in the description of a fragment: ``docs/format/log.md``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from .bytes import Cursor, need
from .keys import SIGN
from .schema import Cell, Datatype, Schema

NULLS, NANS, VALUES, LOW, HIGH = 1, 2, 4, 8, 16
KNOWN = NULLS | NANS | VALUES | LOW | HIGH
BYTES_MAX, BOUND_BYTES_MAX, ATTRS_MAX = 4096, 16, 32


def of_hex(value: object) -> bytes:
    """The bytes of the field ``stats``; absent, nothing is known."""
    if value is None:
        return b""
    need(isinstance(value, str) and re.fullmatch("([0-9a-f]{2})*", value), "stats are pairs of hexadecimal digits")
    return of_bytes(bytes.fromhex(str(value)))


def of_bytes(value: bytes) -> bytes:
    need(len(value) <= BYTES_MAX, "stats of too many bytes")
    return value


def check(stats: bytes, schema: Schema, attrs: dict[int, list[Cell]]) -> None:
    """No value of a fragment lies beyond what is said of its attribute. Other forms, and other flags, say nothing."""
    if stats[:1] != b"\0":
        return
    r, last = Cursor(stats[1:], "bounds of values"), -1
    for _ in range(ATTRS_MAX + 1):
        if r.at == len(r.data):
            return
        number, flags = r.u32(), r.u8()
        if flags & ~KNOWN:
            return
        low, high = (r.take(_length(r.u8())) if flags & flag else None for flag in (LOW, HIGH))
        need(number > last, "bounds of values out of order")
        last = number
        attr = schema.attr(number)
        if attr is not None and number in attrs:
            _check(attr.datatype, attrs[number], flags, low, high)
    need(False, "bounds of the values of too many attributes")


def _length(length: int) -> int:
    need(length <= BOUND_BYTES_MAX, "a bound that is too long")
    return length


def _check(datatype: Datatype, cells: list[Cell], flags: int, low: bytes | None, high: bytes | None) -> None:
    need(datatype.order, "bounds of values that have no order")
    form: Callable[[bytes], bytes] = bytes
    if datatype.order == "number":

        def form(raw: bytes) -> bytes:
            return datatype.key(raw).to_bytes(8, "big")

    for raw in cells:
        if raw is None:
            need(flags & NULLS, "a null that no bounds tell of")
        elif datatype.order == "number" and _is_nan(datatype, raw):
            need(flags & NANS, "a NaN or NaT that no bounds tell of")
        else:
            value = form(raw)
            need(flags & VALUES, "a value that no bounds tell of")
            need((low is None or low <= value) and (high is None or value <= high), "a value beyond its bounds")


def _is_nan(datatype: Datatype, raw: bytes) -> bool:
    value = datatype.number(raw)
    return math.isnan(value) if isinstance(value, float) else datatype.time and value == -SIGN
