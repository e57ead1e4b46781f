"""The command that attaches files of other formats, and the option that allows their folders to all commands."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..arrays.array import Array
from ..base.printable import printable
from ..context.settings import prefixes
from ..errors import GridstoneError
from ..stores.attach import NOT_ATTACHED, attach
from ..stores.group import Group
from . import options
from .outcome import message_of
from .output import emit_json, note

_SOURCES = "GRIDSTONE_SOURCES"


@click.command("attach")
@click.argument("uri")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--dataset",
    "-d",
    "datasets",
    multiple=True,
    metavar="[NAME=]PATH",
    help="A dataset of the file, as an attribute. Several of one shape become one array.  [default: the whole tree]",
)
@click.option("--path", default="/", show_default=True, help="The place of the array or group in the store.")
@click.option(
    "--concat", metavar="DIM", help='The dimension along which files follow each other; "new:NAME": a new one.'
)
@click.option("--append", is_flag=True, help="Attach the files behind those of an array that was attached before.")
@click.option(
    "--stored", is_flag=True, help="Show the stored numbers, not what the conventions of NetCDF say they mean."
)
@click.option("--refuse-variable", is_flag=True, help="Fail where values vary in length, instead of leaving them out.")
@options.with_memory
@options.as_json
def attach_command(
    uri: str,
    files: Sequence[str],
    datasets: Sequence[str],
    path: str,
    concat: str | None,
    append: bool,
    stored: bool,
    refuse_variable: bool,
    memory: str,
    threads: int | None,
    json_out: bool,
) -> None:
    """Show cells of HDF5, NetCDF, Zarr or NumPy FILES as an array at URI, without a copy; the files are never written.

    \b
    gridstone attach run.gs run.h5 --dataset /e
    gridstone attach runs.gs "run_*.h5" --dataset /e --concat time
    """
    context = options.context_of(memory, threads)
    given: Any = list(files) if len(files) > 1 else files[0]
    progress = True if sys.stderr.isatty() else None
    if append:
        array = options.opened(uri, path, "r+")
        array.attach(given, concat=concat, progress=progress)
        _tell(array, json_out)
        return
    variable = "refuse" if refuse_variable else "copy"
    made = attach(
        uri, given, _named(datasets), path=path, concat=concat, decode=not stored, variable=variable, context=context,
        progress=progress,
    )  # fmt: skip
    _tell(made, json_out)


def _named(datasets: Sequence[str]) -> Any:
    """The datasets that are asked for: a path, several, or several with names of attributes."""
    if not datasets:
        return None
    if any("=" in one for one in datasets):
        return options.pairs_of(datasets, "--dataset")
    return list(datasets) if len(datasets) > 1 else datasets[0]


def _tell(made: Array | Group, json_out: bool) -> None:
    refused: dict[str, str] = {}
    if isinstance(made, Group):
        refused = dict(made.meta.get(NOT_ATTACHED, {}))
    if json_out:
        found = {"uri": made.uri, "path": made.path, "version": made.version, "not_attached": refused}
        emit_json(found)
        return
    click.echo(repr(made))
    for name, reason in refused.items():
        note(f"{printable(name)} is left out: {reason}")


def _allow(_context: click.Context, _option: click.Parameter, given: Sequence[str]) -> None:
    """Allows what is given to all contexts of the process, besides what the environment allows."""
    if given:
        try:
            more = prefixes(list(given))
        except GridstoneError as error:
            raise click.BadParameter(message_of(error), param_hint="--source") from error
        known = [one for one in os.environ.get(_SOURCES, "").split(";") if one.strip()]
        os.environ[_SOURCES] = ";".join([*known, *more])


def allowing_sources(group: click.Group) -> None:
    """Gives every command of a group `--source`."""
    help_text = "A folder in which stores may read files that are attached to them. Repeatable."
    for command in group.commands.values():
        if not any("--source" in option.opts for option in command.params):
            option = click.Option(
                ["--source", "sources_allowed"],
                multiple=True,
                metavar="PREFIX",
                expose_value=False,
                callback=_allow,
                is_eager=True,
                help=help_text,
            )
            command.params.append(option)


COMMANDS = [attach_command]
