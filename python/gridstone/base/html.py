"""HTML for notebooks: escaped text, tables, lines."""

from collections.abc import Iterable, Sequence
from html import escape as escaped

from .printable import printable


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: str) -> str:
    """Text in HTML."""
    return escaped(printable(text))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with every cell escaped, but for those that are HTML."""
    head = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def lines(texts: Iterable[str]) -> str:
    """Lines of text below each other."""
    return "".join(f"<br>{escape(text)}" for text in texts)


def beside(text: str, picture: Markup) -> str:
    """HTML with a picture at its right; the HTML alone where there is none."""
    if not picture:
        return text
    sides = f"<div>{text}</div><div>{picture}</div>"
    return f"<div style='display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start'>{sides}</div>"


def _cell(cell: object) -> str:
    return cell if isinstance(cell, Markup) else escape(str(cell))
