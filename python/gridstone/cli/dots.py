"""The dot commands of the shell of `gridstone sql`, as those of DuckDB and SQLite: lines that are no SQL."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..base.printable import printable
from ..errors import GridstoneError, InputError
from .forms import FORMS
from .outcome import error_text
from .output import note, seconds_text

if TYPE_CHECKING:
    from ..queries.console import Console

_MODES = ("table", "csv", "json", *FORMS)
_SWITCH = ("on", "off")


@dataclass(slots=True)
class Settings:
    """How the shell shows answers."""

    form: str = "table"
    timer: bool = False

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Shows how long the work took, if that was asked for."""
        began = time.perf_counter()
        try:
            yield
        finally:
            if self.timer:
                note(f"time: {seconds_text(time.perf_counter() - began)}")


class Dot(NamedTuple):
    """One dot command."""

    usage: str
    help: str
    run: Callable[[str], bool]
    """Takes what follows the command; whether the shell goes on."""
    arguments: Sequence[str] | None = ()
    """The words that may follow; None: the name of an array."""


class DotCommands:
    """The commands, over the connection of a shell.

    Args:
        console: knows the arrays.
        settings: how the shell shows answers, which the commands change.
        show: prints an Arrow table.
    """

    def __init__(self, console: "Console", settings: Settings, show: Callable[[Any], None]) -> None:
        self._console, self._settings, self._show = console, settings, show
        self._commands = {
            ".exit": Dot(".exit", "leave the shell", self._leave),
            ".help": Dot(".help", "list these commands", self._help),
            ".mode": Dot(f".mode {'|'.join(_MODES)}", "how rows are shown", self._mode, _MODES),
            ".quit": Dot(".quit", "leave the shell", self._leave),
            ".schema": Dot(".schema [NAME]", "columns and their types, of one array or of all", self._schema, None),
            ".tables": Dot(".tables [STORE]", "the arrays in this folder, or those of a store", self._tables, None),
            ".timer": Dot(".timer on|off", "how long each answer takes", self._timer, _SWITCH),
        }

    def arguments(self) -> Mapping[str, Sequence[str] | None]:
        """The commands, each with the words that may follow; None: the name of an array."""
        return {name: dot.arguments for name, dot in self._commands.items()}

    def run(self, line: str) -> bool:
        """Carries a line out; whether the shell goes on.

        Raises:
            InputError: there is no such command, or it does not take what follows it.
        """
        name, _, rest = line.strip().partition(" ")
        known = self._commands.get(name.rstrip(";").lower())
        if known is None:
            raise InputError(f"there is no command {printable(name)!r}; there are {', '.join(self._commands)}")
        argument = _bare(rest)
        if argument and known.arguments == ():
            raise InputError(f"{known.usage} takes nothing, found {printable(argument)!r}")
        return known.run(argument)

    def _leave(self, _argument: str) -> bool:
        return False

    def _help(self, _argument: str) -> bool:
        width = max(len(dot.usage) for dot in self._commands.values())
        for dot in self._commands.values():
            click.echo(f"{dot.usage:<{width}}  {dot.help}")
        return True

    def _mode(self, argument: str) -> bool:
        if argument:
            self._settings.form = _one_of(".mode", _MODES, argument)
        else:
            click.echo(f"mode: {self._settings.form}")
        return True

    def _timer(self, argument: str) -> bool:
        if argument:
            self._settings.timer = _one_of(".timer", _SWITCH, argument) == "on"
        else:
            click.echo(f"timer: {'on' if self._settings.timer else 'off'}")
        return True

    def _tables(self, argument: str) -> bool:
        for name in self._console.names(argument or None):
            click.echo(printable(name))
        return True

    def _schema(self, argument: str) -> bool:
        """A row for each column. An array that cannot be opened hides no other."""
        import pyarrow as pa

        rows: list[tuple[str, str, str]] = []
        for name in [argument] if argument else self._console.names():
            try:
                rows += [(name, column, kind) for column, kind in self._console.columns(name)]
            except (GridstoneError, OSError) as error:
                if argument:
                    raise
                note(error_text(error))
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        self._show(pa.table({"table": columns[0], "column": columns[1], "type": columns[2]}))
        return True


def _one_of(command: str, known: Sequence[str], argument: str) -> str:
    found = argument.lower()
    if found not in known:
        raise InputError(f"{command} takes {', '.join(known[:-1])} or {known[-1]}, found {printable(argument)!r}")
    return found


def _bare(text: str) -> str:
    """An argument without the quotes around it, and without a semicolon at its end."""
    text = text.strip().rstrip(";").rstrip()
    for quote in "'\"":
        if len(text) >= 2 and text.startswith(quote) and text.endswith(quote):
            return text[1:-1].replace(2 * quote, quote)
    return text
