"""Statements of SQL as text: where one ends, and what stands in quotes."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

_TAG = re.compile(r"\$(?:[^\W\d]\w*)?\$")
"""What a text without escapes begins and ends with: `$$`, `$tag$`."""
_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"(?:[^'\\]|\\.|'')*+'", re.DOTALL)
"""What follows the first quote of a text with escapes, `E'it\\'s'`."""
_COMMENTS = re.compile(r"/\*|\*/")
_CODE = re.compile(r"(?:[^'\"$/-]|/(?!\*)|-(?!-)|\$(?!(?:[^\W\d]\w*)?\$))+")


class Kind(Enum):
    """What a piece of a statement is."""

    CODE = "code"
    TEXT = "'"
    NAME = '"'
    RAW = "$"
    COMMENT = "--"


class Piece(NamedTuple):
    """A piece of a statement: it begins at `start` and ends before `end`."""

    kind: Kind
    start: int
    end: int
    closed: bool
    """Whether its end mark is there."""


def pieces(text: str) -> Iterator[Piece]:
    """The pieces of a text, in order; together they are all of it."""
    place = 0
    while place < len(text):
        piece = _piece(text, place)
        yield piece
        place = piece.end


def _piece(text: str, start: int) -> Piece:
    code = _CODE.match(text, start)
    if code is not None:
        return Piece(Kind.CODE, start, code.end(), closed=True)
    if text.startswith("--", start):
        line = text.find("\n", start)
        return Piece(Kind.COMMENT, start, len(text) if line < 0 else line, closed=True)
    if text.startswith("/*", start):
        return _comment(text, start)
    tag = _TAG.match(text, start)
    if tag is not None:
        return _until(Kind.RAW, text, start, tag.end(), tag[0])
    return _quoted(text, start)


def _until(kind: Kind, text: str, start: int, inner: int, mark: str) -> Piece:
    close = text.find(mark, inner)
    return Piece(kind, start, len(text) if close < 0 else close + len(mark), close >= 0)


def _comment(text: str, start: int) -> Piece:
    """A comment, which may have others in it."""
    depth = 0
    for mark in _COMMENTS.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return Piece(Kind.COMMENT, start, mark.end(), closed=True)
    return Piece(Kind.COMMENT, start, len(text), closed=False)


def _has_escapes(text: str, start: int) -> bool:
    """Whether the quote there begins a text in which a backslash keeps the next quote from ending it: `E'…'`."""
    before = text[max(start - 2, 0) : start]
    return text[start] == "'" and before[-1:] in ("e", "E") and not re.match(r"[\w$]", before[:-1])


def _quoted(text: str, start: int) -> Piece:
    """A text or a name; a quote that stands twice is part of it."""
    quote, close = text[start], start + 1
    if _has_escapes(text, start):
        found = _ESCAPED.match(text, close)
        return Piece(Kind.TEXT, start, len(text) if found is None else found.end(), found is not None)
    while (close := text.find(quote, close)) >= 0 and text.startswith(quote, close + 1):
        close += 2
    return Piece(Kind(quote), start, len(text) if close < 0 else close + 1, close >= 0)


def ends(text: str) -> bool:
    """Whether a statement is whole: it ends with a semicolon that is in no text, name or comment; or it is blank."""
    if not text.strip():
        return True
    ended = False
    for kind, start, end, closed in pieces(text):
        if not closed:
            return False
        if kind is Kind.CODE:
            code = text[start:end].rstrip()
            ended = code.endswith(";") if code else ended
        elif kind is not Kind.COMMENT:
            ended = False
    return ended


def blank(text: str) -> bool:
    """Whether nothing is asked: there are comments and semicolons at most."""
    for kind, start, end, closed in pieces(text):
        if not closed or (kind is not Kind.COMMENT and text[start:end].strip("; \t\r\n\f\v")):
            return False
    return True


def quoted(text: str) -> list[str]:
    """What stands in quotes of either kind, without them; what is not closed is left out."""
    found = [piece for piece in pieces(text) if piece.kind in (Kind.TEXT, Kind.NAME) and piece.closed]
    return [_inner(text, one) for one in found]


def _inner(text: str, piece: Piece) -> str:
    """What a piece in quotes stands for; of escapes it knows those of quotes and backslashes."""
    inner = text[piece.start + 1 : piece.end - 1]
    if _has_escapes(text, piece.start):
        return re.sub(r"\\(['\\])|''", lambda found: found[1] or "'", inner)
    return inner.replace(2 * piece.kind.value, piece.kind.value)


def names(text: str) -> set[str]:
    """All words and names in double quotes, as they are written."""
    found = set()
    for kind, start, end, _ in pieces(text):
        if kind is Kind.CODE:
            found.update(_WORD.findall(text[start:end]))
        elif kind is Kind.NAME:
            found.add(text[start + 1 : end - 1].replace('""', '"'))
    return found


def in_quotes(name: str, kind: Kind = Kind.NAME) -> str:
    """A name as SQL has it, in quotes."""
    return kind.value + name.replace(kind.value, 2 * kind.value) + kind.value
