"""The shell of `gridstone sql`: statements over several lines, each answered when it ends with a semicolon."""

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

from ..errors import GridstoneError

_PROMPT, _MORE = "sql> ", "...> "


def shell(answer: Callable[[str], None], tell: Callable[[BaseException], None]) -> int:
    """Reads statements and answers them until Ctrl-D; Ctrl-C drops what was typed, or ends what is running.

    Args:
        answer: answers one statement and prints that.
        tell: prints an error, after which the shell goes on.

    Returns the exit code.
    """
    read = _reader()
    lines: list[str] = []
    while True:
        try:
            lines.append(read(_MORE if lines else _PROMPT))
        except KeyboardInterrupt:
            lines.clear()
            continue
        except EOFError:
            # What was typed without a semicolon is asked for too.
            _answered("\n".join(lines), answer, tell)
            return 0
        if _ends("\n".join(lines)):
            _answered("\n".join(lines), answer, tell)
            lines.clear()


def _answered(statement: str, answer: Callable[[str], None], tell: Callable[[BaseException], None]) -> None:
    if not statement.strip().strip(";").strip():
        return
    try:
        answer(statement)
    except KeyboardInterrupt:
        tell(GridstoneError("interrupted"))
    except (GridstoneError, OSError) as error:
        tell(error)


def _ends(text: str) -> bool:
    """Whether a statement is whole: it ends with a semicolon that is in no text, name or comment; or it is blank."""
    if not text.strip():
        return True
    place, ends = 0, False
    while place < len(text):
        here = text[place]
        if here in "'\"":
            close = text.find(here, place + 1)
            if close < 0:
                return False
            place, ends = close + 1, False
        elif text.startswith("--", place):
            line = text.find("\n", place)
            place = len(text) if line < 0 else line
        elif text.startswith("/*", place):
            close = text.find("*/", place + 2)
            if close < 0:
                return False
            place = close + 2
        else:
            ends = here == ";" or (ends and here.isspace())
            place += 1
    return ends


def _reader() -> Callable[[str], str]:
    """What reads a line: with history and editing where prompt_toolkit is installed, else plainly."""
    with contextlib.suppress(ImportError):
        session: Any = importlib.import_module("prompt_toolkit").PromptSession()
        return lambda prompt: str(session.prompt(prompt))
    return input
