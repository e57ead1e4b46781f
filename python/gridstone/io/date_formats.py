"""Times in the formats of Python's `strptime`, exactly as it takes them, for columns of text.

1. A format of plain directives is scanned for all texts at once: a place in each text moves on directive by directive.
2. What the scan takes is what `strptime` takes, with its value. What it leaves is tried by `strptime` itself, each
   distinct text once, unless nothing in it (white space, other alphabets, digits without a mark between two numbers)
   could make the two differ.
3. Formats with other directives (`%j`, `%U`, `%G`, names of days) are tried by `strptime` alone.
"""

import calendar
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..column.datatype import AnyArray
from ..errors import InputError

_WIDTHS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6}
"""Directives that are numbers, with the most digits that they have."""
_FIXED = ("Y", "y")
"""Those that have all of their digits always."""
_LIMITS = {"m": (1, 12), "d": (1, 31), "H": (0, 23), "I": (1, 12), "M": (0, 59), "S": (0, 59), "Y": (1, 9999)}
_ZERO, _NINE, _BLANK = b"09 "
_MONTH_ENDS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


class Found(NamedTuple):
    """What formats make of texts."""

    known: AnyArray
    """Whether a format takes the text."""
    seconds: AnyArray
    """Since 1970; of times with an offset in UTC."""
    micros: AnyArray
    aware: AnyArray
    """Whether the text has an offset."""
    shaped: AnyArray
    """Whether the text has the shape of a format, though it is no time: `31.02.2020`."""


_KINDS = (np.bool_, np.int64, np.int64, np.bool_, np.bool_)
"""The types of the columns of `Found`."""


class _Part(NamedTuple):
    """A directive without its percent sign, or one byte that a text must have."""

    directive: str
    byte: int = 0


def check(form: Any) -> None:
    """An `InputError` for what is no format of `strptime`."""
    if not isinstance(form, str):
        raise InputError(f"times= holds formats such as '%d.%m.%Y', not {type(form).__name__}")
    try:
        datetime.strptime("", form)
    except (ValueError, re.error, IndexError) as error:
        if "does not match" not in str(error) and "unconverted" not in str(error):
            raise InputError(f"times=: {form!r} is no format that Python's strptime takes: {error}") from None


def read(texts: Any, formats: Sequence[str]) -> Found:
    """What the first format that takes it makes of each text of an Arrow array; nulls are taken by none."""
    count, present = len(texts), np.asarray(texts.is_valid())
    found = Found(*(np.zeros(count, kind) for kind in _KINDS))
    for form in formats:
        left = np.flatnonzero(present & ~found.known)
        if len(left) == 0:
            break
        some = texts if len(left) == count else texts.take(pa.array(left))
        taken = _taken(some, form)
        shaped = found.shaped[left] | taken.shaped
        for column, values in zip(found, taken._replace(shaped=shaped), strict=True):
            column[left] = values
    return found


def _taken(texts: Any, form: str) -> Found:
    """What one format makes of texts, none of them null."""
    parts = _parts(form)
    if parts is None:
        return _one_by_one(texts, form)
    found, certain = _scanned(texts, parts)
    left = np.flatnonzero(~found.known & ~certain)
    if len(left):
        tried = _one_by_one(texts.take(pa.array(left)), form)
        for column, values in zip(found, tried._replace(shaped=tried.shaped | found.shaped[left]), strict=True):
            column[left] = values
    return found


def _one_by_one(texts: Any, form: str) -> Found:
    """The same by `strptime`, each distinct text once."""
    coded = texts.dictionary_encode()
    rows = [_strptime(text, form) for text in coded.dictionary.to_pylist()]
    made: list[AnyArray] = [np.array([row[at] for row in rows], kind) for at, kind in enumerate(_KINDS)]
    places = np.asarray(coded.indices)
    return Found(*(column[places] for column in made))


def _strptime(text: str, form: str) -> tuple[bool, int, int, bool, bool]:
    try:
        found = datetime.strptime(text, form)
        aware = found.tzinfo is not None
        since = (found if aware else found.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        shaped = "does not match" not in str(error) and "unconverted" not in str(error)
        return False, 0, 0, False, shaped
    return True, since.days * 86_400 + since.seconds, since.microseconds, aware, False


@cache
def _parts(form: str) -> tuple[_Part, ...] | None:
    """The parts of a format that can be scanned; None for any other."""
    made: list[_Part] = []
    rest = iter(form)
    for char in rest:
        directive = next(rest, "") if char == "%" else ""
        if directive in ("", "%"):
            char = directive or char
            if not char.isascii() or char.isdigit() or (char.isspace() and char != " "):
                return None
            made.append(_Part("", ord(char.lower())))
        elif directive in _WIDTHS or directive in ("z", "b", "p"):
            made.append(_Part(directive))
        else:
            return None
    used = [part.directive for part in made if part.directive]
    twice = len(set(used)) < len(used) or {"Y", "y"} <= set(used) or {"H", "I"} <= set(used)
    # White space beside white space, or at an end, is one of `strptime`'s own rules.
    blanks = [part.byte == _BLANK and not part.directive for part in made]
    odd = any(a and b for a, b in pairwise(blanks)) or (blanks and (blanks[0] or blanks[-1]))
    if twice or odd or ("I" in used) != ("p" in used) or not _english():
        return None
    return tuple(made)


@cache
def _english() -> bool:
    """Whether names are those of the C locale."""
    return calendar.month_abbr[1:4] == ["Jan", "Feb", "Mar"] and calendar.month_abbr[12] == "Dec"


class _Scan:
    """Bytes of many texts, and a place in each that moves on."""

    def __init__(self, texts: Any) -> None:
        array = texts.cast(pa.large_string())
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        held = np.frombuffer(array.buffers()[2] or b"", np.uint8)[first:last]
        # Behind the last text there are as many bytes as any format reads at once.
        self.bytes = np.concatenate([held, np.zeros(8, np.uint8)])
        self.at, self.ends = offsets[:-1] - first, offsets[1:] - first
        self.starts, self.good = self.at, np.ones(len(array), np.bool_)

    def peek(self, ahead: int = 0) -> AnyArray:
        """The byte at each place; one behind all texts at most."""
        return self.bytes[np.minimum(self.at + ahead, len(self.bytes) - 1)]

    def literal(self, byte: int) -> None:
        """Takes one byte, letters in either case."""
        found = self.peek()
        if chr(byte).isalpha():
            found = found | 32
        self.good &= found == byte
        self.at = self.at + 1

    def number(self, width: int, *, whole: bool) -> tuple[AnyArray, AnyArray]:
        """Takes up to so many digits, or just so many: their value and number."""
        value, count = np.zeros(len(self.at), np.int64), np.zeros(len(self.at), np.int64)
        going = np.ones(len(self.at), np.bool_)
        for ahead in range(width):
            byte = self.peek(ahead)
            going = going & (byte >= _ZERO) & (byte <= _NINE) & (self.at + ahead < self.ends)
            value = np.where(going, value * 10 + (byte - np.int64(_ZERO)), value)
            count += going
        self.good &= (count == width) if whole else (count > 0)
        self.at = self.at + count
        return value, count

    def word(self, words: Sequence[str]) -> AnyArray:
        """Takes one of some words of one length, in either case: its place among them."""
        length = len(words[0])
        found, value = np.zeros(len(self.at), np.bool_), np.zeros(len(self.at), np.int64)
        letters = [self.peek(ahead) | 32 for ahead in range(length)]
        for place, word in enumerate(words):
            same = np.logical_and.reduce([a == ord(b) for a, b in zip(letters, word.lower(), strict=True)])
            found |= same
            value[same] = place
        self.good &= found
        self.at = self.at + length
        return value

    def offset(self) -> AnyArray:
        """Takes `Z`, `+hhmm` or `+hh:mm`: seconds east of UTC."""
        mark = self.peek()
        zulu = mark == ord("Z")
        signed = (mark == ord("+")) | (mark == ord("-"))
        digits = [self.peek(ahead).astype(np.int64) - _ZERO for ahead in (1, 2, 3, 4, 5)]
        colon = self.peek(3) == ord(":")
        tens, ones = np.where(colon, digits[3], digits[2]), np.where(colon, digits[4], digits[3])
        fits = [(digit >= 0) & (digit <= 9) for digit in (digits[0], digits[1], ones)]
        signed &= np.logical_and.reduce(fits) & (tens >= 0) & (tens <= 5)
        hours = digits[0] * 10 + digits[1]
        self.good &= zulu | (signed & (hours < 24))
        self.at = self.at + np.where(zulu, 1, np.where(colon, 6, 5))
        seconds = hours * 3600 + (tens * 10 + ones) * 60
        return np.where(zulu, 0, np.where(mark == ord("-"), -seconds, seconds))


def _scanned(texts: Any, parts: Sequence[_Part]) -> tuple[Found, AnyArray]:
    """What a scan makes of texts; and which of those that it does not take `strptime` does not take either."""
    scan, fields = _Scan(texts), dict[str, AnyArray]()
    certain = _plain(scan, parts)
    for place, part in enumerate(parts):
        behind = parts[place + 1].directive if place + 1 < len(parts) else ""
        if not part.directive:
            scan.literal(part.byte)
        elif part.directive == "z":
            fields["z"] = scan.offset()
        elif part.directive == "b":
            fields["m"] = scan.word(calendar.month_abbr[1:]) + 1
        elif part.directive == "p":
            fields["p"] = scan.word(("AM", "PM"))
        else:
            # Between two numbers without a mark only `strptime` knows where the first one ends.
            beside = behind in _WIDTHS
            value, count = scan.number(_WIDTHS[part.directive], whole=beside or part.directive in _FIXED)
            certain &= not beside
            fields[part.directive] = value * 10 ** (6 - count) if part.directive == "f" else value
    scan.good &= scan.at == scan.ends
    # Offsets with seconds, and hours that are none, are left to `strptime`.
    certain &= "z" not in fields
    return _of_fields(fields, scan.good), certain


def _plain(scan: _Scan, parts: Sequence[_Part]) -> AnyArray:
    """Which texts have nothing that `strptime` has rules of its own for: as many blanks as the format, no other white
    space, ASCII alone.
    """
    usual = ((scan.bytes > _BLANK) & (scan.bytes < 127)).astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(usual)])
    blanks = np.concatenate([[0], np.cumsum(scan.bytes == _BLANK)])
    lengths = scan.ends - scan.starts
    spaces = blanks[scan.ends] - blanks[scan.starts]
    wanted = sum(not part.directive and part.byte == _BLANK for part in parts)
    made: AnyArray = (sums[scan.ends] - sums[scan.starts] + spaces == lengths) & (spaces == wanted)
    return made


def _of_fields(fields: dict[str, AnyArray], good: AnyArray) -> Found:
    """Times of the values of directives; those that a text does not have are those of 1900-01-01."""

    def field(name: str, default: int) -> AnyArray:
        return fields.get(name, np.full(len(good), default, np.int64))

    shape, good = good, good.copy()
    for name, (low, high) in _LIMITS.items():
        if name in fields:
            good &= (fields[name] >= low) & (fields[name] <= high)
    year = field("Y", 1900)
    if "y" in fields:
        year = fields["y"] + np.where(fields["y"] < 69, 2000, 1900)
    month, day = np.where(good, field("m", 1), 1), field("d", 1)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    good &= (day <= _MONTH_ENDS[month]) & ((month != 2) | (day < 29) | leap)
    hour = field("H", 0)
    if "I" in fields:
        hour = fields["I"] % 12 + 12 * fields["p"]
    months = (np.where(good, year, 1970) - 1970) * 12 + month - 1
    days = months.astype("M8[M]").astype("M8[D]").astype(np.int64) + day - 1
    seconds = ((days * 24 + hour) * 60 + field("M", 0)) * 60 + field("S", 0) - field("z", 0)
    aware = np.full(len(good), "z" in fields)
    return Found(good, np.where(good, seconds, 0), np.where(good, field("f", 0), 0), aware & good, shape & ~good)
