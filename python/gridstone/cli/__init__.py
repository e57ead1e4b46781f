"""The command line: `gridstone create load export info ls read sql query aggregate filter write update delete …`.

Exit codes are those of `outcome`.
"""

import sys
from collections.abc import Sequence

import click

from .._native import __version__
from ..errors import GridstoneError
from . import (
    advice,
    asking,
    attach,
    bench,
    commands,
    completion,
    corrections,
    drawing,
    evolution,
    files,
    grouping,
    outcome,
    places,
    retention,
    streams,
    upkeep,
)
from .outcome import CODES, PipeClosedError, failed, is_asked_for_json

_HELP_NAMES = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Commands(click.Group):
    """The commands. What one printed is written when it ends, while a failure can be told."""

    def invoke(self, ctx: click.Context) -> object:
        found = super().invoke(ctx)
        sys.stdout.flush()
        return found


@click.group(cls=_Commands, context_settings=_HELP_NAMES, epilog=CODES)
@click.version_option(__version__, prog_name="gridstone")
def cli() -> None:
    """Dense and sparse multi-dimensional arrays, stored."""


for module in (
    commands,
    corrections,
    attach,
    asking,
    grouping,
    files,
    evolution,
    places,
    advice,
    upkeep,
    retention,
    drawing,
    bench,
    completion,
):
    for command in module.COMMANDS:
        cli.add_command(command)
attach.allowing_sources(cli)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits."""
    streams.complete()
    code = run(arguments)
    streams.end()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code (see `outcome`)."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = cli.main(args=given, prog_name="gridstone", standalone_mode=False)
    except PipeClosedError:
        return outcome.PIPE_CLOSED
    except (click.ClickException, click.Abort, KeyboardInterrupt, GridstoneError, OSError) as error:
        name = next((word for word in given if word in cli.commands), "")
        return failed(error, as_json=is_asked_for_json(given), command=cli.commands.get(name), group=cli)
    return code if isinstance(code, int) else 0
