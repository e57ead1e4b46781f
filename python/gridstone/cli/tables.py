"""Tables as lines of text that fit a screen.

In a table of cells, columns in the middle give way to one of "…", and wide texts are cut; numbers and times are whole.
Other tables keep their columns, whose texts go on in the next line.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

_GAP = 2
_NARROWEST_CELLS = (20, 8)
"""Characters that a text keeps before columns are left out; the second, where all stay by that, or else only two."""
_KEPT_MIN = 3
_NARROWEST_WORDS, _WORD_MAX = 8, 24
_MORE = "…"
_ASCII = str.maketrans({"─": "-", "…": "~"})


class Column(NamedTuple):
    """One column of a table."""

    name: str
    texts: Sequence[str]
    is_number: bool
    is_whole: bool = False
    """Values are never cut: numbers and times."""


class Table(NamedTuple):
    """The lines of a table, and how many of its columns are not in it."""

    lines: list[str]
    left_out: int


def cells(columns: Sequence[Column], width: int | None) -> Table:
    """A table of cells, no wider than the screen; None: as wide as it needs."""
    natural = [_width(column) for column in columns]
    if width is None or _total(natural) <= width:
        return Table(list(_lines(columns, natural)), 0)
    least, kept = _kept(columns, natural, width)
    rows = len(columns[0].texts)
    gone = Column(_MORE, [_MORE] * rows, is_number=False)
    shown = list(columns) if kept == len(columns) else [*columns[: (kept + 1) // 2], gone]
    if kept < len(columns):
        shown += columns[len(columns) - kept // 2 :]
    wide = _parted(natural, kept, len(columns))
    fitted = _filled(_parted(least, kept, len(columns)), wide, width)
    if kept == 1 and _total(fitted) > width:
        fitted[0] = max(1, width - _total(fitted) + fitted[0])
    cut = [
        Column(_cut(column.name, room), [_cut(text, room) for text in column.texts], column.is_number)
        for column, room in zip(shown, fitted, strict=True)
    ]
    return Table(list(_lines(cut, fitted)), len(columns) - kept)


def _kept(columns: Sequence[Column], natural: Sequence[int], width: int) -> tuple[list[int], int]:
    """The least widths of columns, and how many of them stay."""
    choices = [
        [_least(column, full, narrowest) for column, full in zip(columns, natural, strict=True)]
        for narrowest in _NARROWEST_CELLS
    ]
    for least in choices:
        if _total(least) <= width:
            return least, len(columns)
    for least in choices:
        kept = len(columns) - 1
        while kept > 1 and _total(_parted(least, kept, len(columns))) > width:
            kept -= 1
        if kept >= _KEPT_MIN:
            break
    return least, max(kept, 1)


def words(columns: Sequence[Column], width: int | None) -> list[str]:
    """A table whose texts go on in the next line where the screen is narrower."""
    natural = [_width(column) for column in columns]
    if width is None or _total(natural) <= width:
        return list(_lines(columns, natural))
    whole_words = [_least_words(column, full, _WORD_MAX) for column, full in zip(columns, natural, strict=True)]
    parts = [_least_words(column, full, _NARROWEST_WORDS) for column, full in zip(columns, natural, strict=True)]
    fitted = _filled(whole_words if _total(whole_words) <= width else parts, natural, width)
    return list(_wrapped(columns, fitted))


def plain(line: str) -> str:
    """A line for an output that knows ASCII only; all else is as it was."""
    return line.translate(_ASCII)


def _width(column: Column) -> int:
    return max(cell_len(column.name), _values_width(column))


def _values_width(column: Column) -> int:
    return max(map(cell_len, column.texts), default=0)


def _least(column: Column, full: int, narrowest: int) -> int:
    """What a column needs: numbers all of it, texts and names a part."""
    least = min(full, narrowest)
    return max(least, _values_width(column)) if column.is_whole else least


def _least_words(column: Column, full: int, longest: int) -> int:
    """What a column needs whose texts go on in the next line: its longest word, or as much of it as is given."""
    if column.is_number or column.is_whole:
        return full
    return min(full, longest, max(_longest_word(text) for text in (column.name, *column.texts)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _parted(widths: Sequence[int], kept: int, count: int) -> list[int]:
    """The widths of the columns that are kept, with that of "…" between them."""
    if kept == count:
        return list(widths)
    return [*widths[: (kept + 1) // 2], 1, *widths[count - kept // 2 :]]


def _filled(least: Sequence[int], natural: Sequence[int], width: int) -> list[int]:
    """Widths between the least and the natural ones: all are cut at one width, the largest that fits."""
    low, high = 0, max(natural)
    while low < high:
        middle = (low + high + 1) // 2
        if _total(_at(least, natural, middle)) <= width:
            low = middle
        else:
            high = middle - 1
    return _at(least, natural, low)


def _at(least: Sequence[int], natural: Sequence[int], most: int) -> list[int]:
    return [min(full, max(few, most)) for few, full in zip(least, natural, strict=True)]


def _lines(columns: Sequence[Column], widths: Sequence[int]) -> Iterator[str]:
    """The names, a line below them, and the rows."""
    sides = [column.is_number for column in columns]
    yield _row([column.name for column in columns], widths, sides)
    yield (" " * _GAP).join("─" * width for width in widths)
    for row in zip(*(column.texts for column in columns), strict=True):
        yield _row(row, widths, sides)


def _row(texts: Sequence[str], widths: Sequence[int], sides: Sequence[bool]) -> str:
    parts = []
    for text, width, is_right in zip(texts, widths, sides, strict=True):
        space = " " * (width - cell_len(text))
        parts.append(space + text if is_right else text + space)
    return (" " * _GAP).join(parts).rstrip()


def _cut(text: str, width: int) -> str:
    """The text, or its beginning and "…"."""
    if cell_len(text) <= width:
        return text
    kept = text[:width]
    while kept and cell_len(kept) >= width:
        kept = kept[:-1]
    return kept + _MORE


def _wrapped(columns: Sequence[Column], widths: Sequence[int]) -> Iterator[str]:
    sides = [column.is_number for column in columns]
    for place, row in enumerate([[column.name for column in columns], *zip(*(c.texts for c in columns), strict=True)]):
        parts = [_pieces(text, width) for text, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, parts))):
            yield _row([part[line] if line < len(part) else "" for part in parts], widths, sides)
        if place == 0:
            yield (" " * _GAP).join("─" * width for width in widths)


def _pieces(text: str, width: int) -> list[str]:
    """A text in lines of at most a width, parted at spaces where there are some."""
    found = []
    while cell_len(text) > width:
        end = len(_cut(text, width + 1)) - 1
        space = text.rfind(" ", 1, end + 1)
        stop = space if space > 0 else max(1, end)
        found.append(text[:stop].rstrip())
        text = text[stop:].lstrip()
    return [*found, text]


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)
