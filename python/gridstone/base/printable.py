"""Texts without characters that act on a terminal, and values shortened for messages.

New names hold no control characters, line separators or marks that turn the direction of text. Names in stores of
earlier releases, and texts among the cells, may.
"""

import re
import reprlib
from typing import Any

_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_DIGITS_MAX = 60
"""Digits of a number that are shown: more than any type holds."""


def printable(text: str) -> str:
    r"""The text with `\x1b` and the like in the place of what would act on a terminal."""
    return _ACTING.sub(lambda found: repr(found[0])[1:-1], text)


class _Brief(reprlib.Repr):
    """`repr` that neither grows without a bound nor fails: Python refuses to write integers of many digits."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 12
        self.maxstring = self.maxother = 200

    def repr_int(self, x: int, level: int) -> str:
        # A digit takes more than 3 bits.
        if x.bit_length() <= 3 * _DIGITS_MAX:
            return repr(x)
        return f"{'a negative' if x < 0 else 'an'} integer of {x.bit_length():,} bits"


_BRIEF = _Brief()


def brief(value: Any) -> str:
    """`repr(value)` as a message shows it: of what is long the beginning and the end, of huge integers the bits."""
    return _BRIEF.repr(value)
