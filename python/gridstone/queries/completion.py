"""Completion in the shell: dot commands, arrays in quotes, columns of arrays that a statement names, words of SQL."""

import contextlib
import functools
import importlib
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import GridstoneError
from . import catalog
from .console import Console
from .statement import Kind, blank, in_quotes, pieces, quoted

_WORD = re.compile(r"\w*\Z")
_PLAIN = re.compile(r"[^\W\d]\w*")
"""A name that needs no quotes, if it is no keyword."""
_TABLE_NEXT = re.compile(r"\b(?:from|join|into|describe|summarize)\s+\Z", re.IGNORECASE)
_MORE = (
    "alter", "begin", "by", "commit", "copy", "delete", "drop", "exclude", "exists", "explain", "filter", "first",
    "following", "if", "insert", "last", "macro", "nulls", "over", "partition", "preceding", "range", "recursive",
    "replace", "rollback", "rows", "sample", "set", "temp", "unbounded", "update", "values", "view",
)  # fmt: skip
"""Words of statements that are not reserved in DuckDB, where most others are names of its options."""


class Found(NamedTuple):
    """What may stand in the place of the last characters."""

    length: int
    """How many characters are replaced."""
    words: list[str]


class Words:
    """Finds what a text may go on with.

    Args:
        console: knows arrays, tables and columns.
        commands: dot commands, each with the words that may follow; None: a name of an array does.
    """

    def __init__(self, console: Console, commands: Mapping[str, Sequence[str] | None]) -> None:
        self._console, self._commands = console, commands

    def after(self, before: str, line: str, rest: str = "") -> Found:
        """What the text may go on with.

        Args:
            before: the lines of the statement so far.
            line: what stands on the line before the cursor.
            rest: what stands behind it.
        """
        if line.startswith(".") and blank(before):
            return self._of_command(line)
        text = before + line
        last = next(iter(deque(pieces(text), maxlen=1)), None)
        if last is not None and last.kind in (Kind.TEXT, Kind.NAME) and not last.closed:
            found = self._in_quotes(last.kind, text[last.start + 1 :], text[: last.start] + rest.lstrip("'\""))
            closed = rest.startswith(last.kind.value)
            return Found(found.length, [word.removesuffix(last.kind.value) if closed else word for word in found.words])
        if last is not None and (not last.closed or (last.kind is Kind.COMMENT and not text.endswith(("\n", "*/")))):
            return Found(0, [])
        return self._of_word(text, text + rest)

    def _of_command(self, line: str) -> Found:
        command, space, argument = line.partition(" ")
        if not space:
            return Found(len(command), _beginning(command, self._commands))
        words = self._commands.get(command, ())
        if words is None:
            bare = argument.lstrip("'\"")
            with contextlib.suppress(GridstoneError, OSError):
                return Found(len(bare), _beginning(bare, [*self._console.tables(), *self._places(bare)]))
        return Found(len(argument), _beginning(argument, words or ()))

    def _in_quotes(self, kind: Kind, typed: str, others: str) -> Found:
        """Arrays and folders; in double quotes columns too. What is whole is closed."""
        quote = kind.value
        bare = typed.replace(2 * quote, quote)
        names = [name if name.endswith("/") else in_quotes(name, kind)[1:] for name in self._places(bare)]
        if kind is Kind.NAME:
            names = [in_quotes(name)[1:] for name in [*self._columns(others), *self._console.tables()]] + names
        return Found(len(typed), _beginning(typed, names))

    def _of_word(self, text: str, whole: str) -> Found:
        """Columns, tables, keywords and functions that begin as the last word does; arrays where a table comes next."""
        found = _WORD.search(text)
        typed = found[0] if found else ""
        names = [self._as_written(name) for name in self._console.tables()]
        if _TABLE_NEXT.search(text[: len(text) - len(typed)]):
            arrays = [in_quotes(name, Kind.TEXT) for name in catalog.arrays_in("", self._console.context)]
            return Found(len(typed), _beginning(typed, [*names, *arrays]))
        columns = [self._as_written(name) for name in self._columns(whole)]
        if not typed:
            return Found(0, columns)
        keywords, functions = self._words
        plain = [word.upper() if typed.isupper() else word for word in sorted({*keywords, *_MORE})]
        return Found(len(typed), _beginning(typed, [*columns, *names, *plain, *sorted(functions)]))

    @functools.cached_property
    def _words(self) -> tuple[list[str], list[str]]:
        return self._console.words()

    def _as_written(self, name: str) -> str:
        """A name, in quotes where it needs them."""
        return name if _PLAIN.fullmatch(name) and name.casefold() not in self._words[0] else in_quotes(name)

    def _places(self, prefix: str) -> list[str]:
        return catalog.places_at(prefix, self._console.context)

    def _columns(self, text: str) -> list[str]:
        """The columns of the arrays, tables and views that a text names."""
        named = [*quoted(text), *(name for name in self._console.tables() if name.casefold() in text.casefold())]
        found: dict[str, None] = {}
        for name in dict.fromkeys(named):
            with contextlib.suppress(GridstoneError, OSError, ValueError):
                found.update(dict.fromkeys(self._console.names_of_columns(name)))
        return list(found)


def _beginning(typed: str, words: Iterable[str]) -> list[str]:
    """The words that begin as what was typed does, in either case of letters and with or without a quote, each once."""
    begin = typed.casefold()
    found = ((word, word.casefold()) for word in dict.fromkeys(words))
    return [word for word, plain in found if plain.startswith(begin) or plain.lstrip("'\"").startswith(begin)]


def completer(words: Words, before: list[str]) -> Any:
    """What prompt_toolkit completes with.

    Args:
        words: finds what may come next.
        before: the lines of the statement so far, which the shell keeps.
    """
    completion: Any = importlib.import_module("prompt_toolkit.completion")

    def get_completions(_self: Any, document: Any, _event: Any) -> Iterable[Any]:
        text = "".join(f"{line}\n" for line in before)
        found = words.after(text, document.current_line_before_cursor, document.current_line_after_cursor)
        return [completion.Completion(word, -found.length) for word in found.words]

    return type("SqlCompleter", (completion.Completer,), {"get_completions": get_completions})()
