"""The shell of `gridstone sql`: statements over several lines, each answered when it ends with a semicolon, and dot
commands, which are lines of their own.
"""

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

from ..errors import GridstoneError
from .completion import Words, completer
from .statement import blank, ends

_PROMPT, _MORE = "sql> ", "...> "

Answer = Callable[[str], None]
"""Answers the statements of a text and prints that."""
Command = Callable[[str], bool]
"""Carries a dot command out; whether the shell goes on."""


def shell(answer: Answer, command: Command, tell: Callable[[BaseException], None], words: Words | None = None) -> int:
    """Reads statements and dot commands and answers them until Ctrl-D; Ctrl-C drops what was typed, or ends what is
    running.

    Args:
        answer: answers statements.
        command: carries dot commands out.
        tell: prints an error, after which the shell goes on.
        words: completes what is typed.

    Returns the exit code.
    """
    lines: list[str] = []
    read = _reader(words, lines)
    while True:
        try:
            line = read(_MORE if lines else _PROMPT)
        except KeyboardInterrupt:
            lines.clear()
            continue
        except EOFError:
            # What was typed without a semicolon is asked for too.
            line = None
        try:
            goes_on = _taken(line, lines, answer, command)
        except KeyboardInterrupt:
            goes_on = True
            tell(GridstoneError("interrupted"))
        except (GridstoneError, OSError) as error:
            goes_on = True
            tell(error)
        if line is None or not goes_on:
            return 0


def script(text: str, answer: Answer, command: Command) -> None:
    """Answers a text as the shell does its lines; the first error ends it.

    Raises:
        InputError: nothing is asked.
    """
    if blank(text):
        answer(text)
    lines: list[str] = []
    for line in text.split("\n"):
        if not _taken(line.removesuffix("\r"), lines, answer, command):
            return
    _taken(None, lines, answer, command)


def _taken(line: str | None, lines: list[str], answer: Answer, command: Command) -> bool:
    """Takes one more line, or the end of all; whether the shell goes on. Lines of a whole statement are taken out."""
    if line is not None and line.startswith(".") and blank("\n".join(lines)):
        lines.clear()
        return command(line)
    if line is not None:
        lines.append(line)
    text = "\n".join(lines)
    if line is None or ends(text):
        lines.clear()
        if not blank(text):
            answer(text)
    return True


def _reader(words: Words | None, before: list[str]) -> Callable[[str], str]:
    """What reads a line: with history, editing and completion where prompt_toolkit is installed, else plainly."""
    with contextlib.suppress(ImportError):
        toolkit: Any = importlib.import_module("prompt_toolkit")
        found = None if words is None else completer(words, before)
        session: Any = toolkit.PromptSession(completer=found, complete_while_typing=False)
        return lambda prompt: str(session.prompt(prompt))
    return input
