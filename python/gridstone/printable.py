"""Text as it may be shown.

New names hold no control characters, line separators or marks that turn the direction of text; those of stores written
by earlier releases, and texts among the cells, may. On a terminal these do something instead of being shown.
"""

import re

_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""The text with `\x1b` and the like in the place of what would act on a terminal."""
    return _ACTING.sub(lambda found: repr(found[0])[1:-1], text)
