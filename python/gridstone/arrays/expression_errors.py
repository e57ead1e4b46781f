"""Errors about the expressions of an update, in words that fit one cell and the type of its attribute.

The core computes an expression as an aggregate of one cell. Its messages speak of what stands around the expression;
here they speak of what the caller wrote.
"""

import re
from collections.abc import Callable, Iterator

from ..column import datatype
from ..column.columns import Field
from ..errors import InputError

_AROUND = "any_value(("
_WORDS = re.compile(r"[^\W\d]\w*([ .,-]+\w+)*")
"""Texts that are rather words than an expression."""
_UNKNOWN = re.compile(r'there is no function "(\w+)"')
_OF_ALL = re.compile(r"(\w+)\s*\(\s*(?:\*|distinct\b)", re.IGNORECASE)
_CONVERT = re.compile(r"; (?:convert the values with \.astype\([^)]*\)|make the values str or bytes first)")


def check_written(field: Field, text: str) -> None:
    """An `InputError` of a text that is empty, or that is null written."""
    literal = _takes_text(field)
    if not text.strip():
        instead = f"gs.lit({text!r}) is the text itself" if literal else "give a number or an expression"
        raise InputError(f"the value of {field.name!r} is an empty text, which is no expression; {instead}")
    if text.strip().lower() == "null":
        instead = f", and gs.lit({text!r}) for the word itself" if literal else ""
        raise InputError(f"the value of {field.name!r} is null as a text; give None for null{instead}")


def _takes_text(field: Field) -> bool:
    return field.dtype in ("string", "bytes") or datatype.is_fixed_bytes(field.dtype)


def would_be_null(field: Field) -> str:
    """What is said where an attribute that is not nullable would become null."""
    value = _other_value(field)
    other = f"coalesce(…, {value}) gives another value, " if value else ""
    return (
        f"{field.title} is not nullable, and would become null: {other}where= leaves cells out, "
        f"a.alter(nullable={field.name!r}) allows null. Nothing was changed"
    )


def _other_value(field: Field) -> str:
    """A value of the type as expressions write it; "" where they have none."""
    if field.categories is not None:
        first = next(iter(field.categories.values), None)
        return repr(first) if isinstance(first, str | int) else ""
    if field.dtype in datatype.INTEGERS or datatype.is_float(field.dtype):
        return "0"
    return {"string": "''", "bool": "false"}.get(field.dtype, "")


def of_expression(message: str) -> str:
    """A message about values that did not fit, without advice for values that a caller has."""
    return _CONVERT.sub("; give an expression of its type", message)


def check_parentheses(text: str) -> None:
    """An `InputError` at a parenthesis that closes none."""
    for place, depth in _depths(text):
        if depth < 0:
            raise InputError(f'this ")" closes none\n  {text}\n  {" " * place}^')


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """The places of characters outside of quotes, with how many parentheses are open after them."""
    depth, quote = 0, ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character == "(") - (character == ")")
            yield place, depth


def explained(field: Field, text: str, message: str, is_aggregate: Callable[[str], bool]) -> str:
    """The core's message about an expression in the words of an update."""
    found = _UNKNOWN.search(message) or (_OF_ALL.search(text) if _AROUND in message else None)
    if found is not None and is_aggregate(found[1]):
        return (
            f"the value of {field.name!r}: {found[1]} is an aggregate, made of many cells, and here each cell gets "
            f"a value of its own: ask for it before, a.aggregate({{'n': '{found[1]}(…)'}}), and give the number"
        )
    lines = [line.replace(f"{_AROUND}{text}))", text) for line in message.split("\n")]
    if len(lines) > 1 and lines[-1].strip() == "^":
        lines[-1] = lines[-1].replace(" " * len(_AROUND), "", 1) if _AROUND in message else lines[-1]
        _name_end(lines, text)
    if _takes_text(field) and _WORDS.fullmatch(text.strip()):
        lines[0] += f"; write \"'{text.strip()}'\" or gs.lit({text.strip()!r}) for the text itself"
    where = "" if lines[0].startswith(f'"{field.name}"') else f"the value of {field.name!r}: "
    return where + "\n".join(lines)


def _name_end(lines: list[str], text: str) -> None:
    """Says "the end" where the parentheses around the expression were expected or found."""
    place = lines[-1].index("^") - 2
    if place >= len(text):
        lines[0] = lines[0].replace('found ")"', "found its end")
    elif max(((at, depth) for at, depth in _depths(text) if at < place), default=(0, 0))[1] == 0:
        lines[0] = lines[0].replace('expected ")"', "expected the end")
