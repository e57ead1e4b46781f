"""HTML for notebooks: escaped text, tables, lines."""

from collections.abc import Iterable, Sequence
from html import escape as escaped

from .printable import printable


def escape(text: str) -> str:
    """Text in HTML."""
    return escaped(printable(text))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with every cell escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def lines(texts: Iterable[str]) -> str:
    """Lines of text below each other."""
    return "".join(f"<br>{escape(text)}" for text in texts)
