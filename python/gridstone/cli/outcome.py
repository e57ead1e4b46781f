"""How a command ends: its exit code, and the error as a line or as JSON.

Each class of error answers "what would the caller do?", and so does each code. A command returns 3 by itself.
"""

import contextlib
import json
import re
from collections.abc import Sequence

import click

from .. import errors
from ..base.printable import printable
from ..errors import GridstoneError
from .words import in_options

DONE, FAILED, USAGE, FOUND, ABSENT, CONFLICT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 4, 5, 130, 141

CODES = """\b
Exit codes:
  0    done
  1    the work failed: damage, memory, disk, network, no permission
  2    usage: an option, a name, a condition or what a file holds is wrong
  3    found what was looked for: diff differs, verify and repair find damage
  4    not found: a store, an array, a version, an input file
  5    conflict: it exists, or another commit came in between
  130  interrupted; the store is as it was, but for what was committed
  141  the reader of a pipe closed it, as head does

With --json an error is the last line of standard error, as JSON:
{"error": {"kind": "NotFound", "message": "…", "exit_code": 4}}
"""

_KINDS: tuple[tuple[type[BaseException], int], ...] = (
    (errors.NotFoundError, ABSENT),
    (errors.SnapshotExpiredError, ABSENT),
    (errors.ExistsError, CONFLICT),
    (errors.ConflictError, CONFLICT),
    (errors.InputError, USAGE),
    (errors.SchemaError, USAGE),
    (errors.BoundsError, USAGE),
    (GridstoneError, FAILED),
    (FileNotFoundError, ABSENT),
    (FileExistsError, CONFLICT),
)
"""The first that fits decides."""
_SYSTEM: tuple[tuple[type[OSError], str], ...] = (
    (FileNotFoundError, "NotFound"),
    (FileExistsError, "Exists"),
    (PermissionError, "Access"),
)
_STOPPED = "interrupted: what was not committed by then is not in the store"


class PipeClosedError(Exception):
    """What read the output takes no more of it."""


def failed(error: BaseException, *, as_json: bool, command: click.Command | None, group: click.Group) -> int:
    """Tells how a command of a group failed, on standard error; its exit code."""
    code = code_of(error)
    with contextlib.suppress(OSError):
        _tell(error, code, message_of(error, command, group), as_json=as_json)
    return code


def _tell(error: BaseException, code: int, message: str, *, as_json: bool) -> None:
    if as_json:
        told = {"kind": kind_of(error), "message": message, "exit_code": code}
        click.echo(json_text({"error": told}), err=True)
    elif isinstance(error, click.ClickException):
        error.show()
    elif isinstance(error, KeyboardInterrupt | click.Abort):
        click.echo(_STOPPED, err=True)
    else:
        click.echo(_error_line(message), err=True)


def code_of(error: BaseException) -> int:
    """The exit code of an error."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        return error.exit_code
    return next((code for kind, code in _KINDS if isinstance(error, kind)), FAILED)


def kind_of(error: BaseException) -> str:
    """What scripts tell errors apart by: the name of the class in `gridstone.errors`, without its last word."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "Interrupted"
    if isinstance(error, click.UsageError):
        return "Usage"
    for kind in type(error).__mro__:
        if kind.__name__ in errors.__all__:
            return kind.__name__.removesuffix("Error")
    if isinstance(error, OSError):
        return next((name for kind, name in _SYSTEM if isinstance(error, kind)), "Storage")
    return "Failed"


def message_of(error: BaseException, command: click.Command | None = None, group: click.Group | None = None) -> str:
    """What an error says in the words of the command line, in lines that act on no terminal. The command that runs is
    known by itself."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return _STOPPED
    if isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, OSError) and not isinstance(error, GridstoneError):
        text = _system(error)
    else:
        context = click.get_current_context(silent=True)
        if context is not None:
            command, above = context.command, context.find_root().command
            group = above if isinstance(above, click.Group) else group
        text = str(error) if group is None else in_options(str(error), command, group)
    return "\n".join(printable(line) for line in text.split("\n"))


def _system(error: OSError) -> str:
    """The error of a file: its name, and what the system says."""
    if error.strerror is None:
        return str(error)
    what = error.strerror[:1].lower() + error.strerror[1:]
    return what if error.filename is None else f"{error.filename}: {what}"


def error_text(error: BaseException) -> str:
    """The line that a failed command ends with."""
    return _error_line(message_of(error))


def _error_line(message: str) -> str:
    return f"{click.style('error:', fg='red', bold=True)} {message}"


def is_asked_for_json(arguments: Sequence[str]) -> bool:
    """Whether arguments ask for JSON, which holds for mistakes in them too."""
    before = list(arguments)[: arguments.index("--")] if "--" in arguments else list(arguments)
    pairs = zip(before, [*before[1:], ""], strict=True)
    return any(one in ("--json", "--format=json") or (one, then) == ("--format", "json") for one, then in pairs)


_ACTING = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_text(value: object) -> str:
    """A JSON document on one line; what acts on a terminal, or cannot be written, is escaped."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
