"""The command line: `gridstone create load export info ls read sql query aggregate filter write delete history …`.

Exit codes: 0; 1 the work failed; 2 usage; 130 interrupted, the store as it was.
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
    drawing,
    evolution,
    files,
    grouping,
    places,
    retention,
    upkeep,
)
from .output import error_text

_INTERRUPTED = 130
_STOPPED = "interrupted: what was not committed by then is not in the store"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="gridstone")
def cli() -> None:
    """Dense and sparse multi-dimensional arrays, stored."""


for module in (
    commands,
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
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    try:
        code = cli.main(args=arguments, prog_name="gridstone", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo(_STOPPED, err=True)
        return _INTERRUPTED
    except KeyboardInterrupt:
        click.echo(_STOPPED, err=True)
        return _INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (GridstoneError, OSError) as error:
        words = sys.argv[1:] if arguments is None else arguments
        name = next((word for word in words if word in cli.commands), "")
        click.echo(error_text(error, cli.commands.get(name), cli), err=True)
        return 1
    return code if isinstance(code, int) else 0
