"""The commands that copy, move, upgrade and compare arrays, groups and stores."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from ..base.printable import printable
from ..compare.diff import diff
from ..stores.copies import copy, move, upgrade
from . import options
from .outcome import FOUND
from .output import bytes_text, emit_json


@click.command("copy")
@click.argument("source")
@click.argument("target")
@click.option("--path", default="/", show_default=True, help="What is copied; /: all that the store holds.")
@click.option("--to", "target_path", default="/", show_default=True, help="Where it is put in the target.")
@click.option("--version", callback=options.version_of, help="Copy this version: its number, or its tag.")
@click.option(
    "--history", is_flag=True, help="Copy a whole store with all its versions; onto an earlier copy what is new."
)
@click.option("--keep", metavar="AGE", help='With --history: forget versions of the copy that are older: "30d".')
@click.option("--overwrite", is_flag=True, help="Replace what lies there.")
@click.option("--type", "types", multiple=True, metavar="NAME=DTYPE", help="A wider type; writes the cells anew.")
@click.option("--max-bytes", multiple=True, metavar="DIM=N", help="Longer texts of a dimension; likewise.")
@options.with_memory
@options.as_json
def copy_command(
    source: str,
    target: str,
    path: str,
    target_path: str,
    version: int | str | None,
    history: bool,
    overwrite: bool,
    keep: str | None,
    types: Sequence[str],
    max_bytes: Sequence[str],
    memory: str,
    threads: int | None,
    json_out: bool,
) -> None:
    """Copy an array, a group or a store, at one version or with its history, to any other place."""
    lengths = options.pairs_of(max_bytes, "--max-bytes")
    made = copy(
        source,
        target,
        path=path,
        target_path=target_path,
        version=version,
        history=history,
        overwrite=overwrite,
        keep=keep,
        types=options.pairs_of(types, "--type"),
        max_bytes={name: options.count_of(text, "--max-bytes") for name, text in lengths.items()},
        context=options.context_of(memory, threads),
        progress=True if sys.stderr.isatty() else None,
    )
    stats = made.stats
    text = f"{made!r}\n{_copied(stats)}" if history else repr(made)
    _tell({"uri": made.uri, "path": made.path, "version": made.version, **stats}, text, json_out)


def _copied(stats: Mapping[str, int]) -> str:
    """What a copy of a history sent."""
    size = bytes_text(stats["bytes_copied"])
    return f"{stats['versions_copied']:,} new versions in {stats['objects_copied']:,} objects, {size}"


@click.command("move")
@click.argument("uri")
@click.argument("path")
@click.argument("target_path")
@click.option("--message", "-m", help="Kept with the version.")
@options.as_json
def move_command(uri: str, path: str, target_path: str, message: str | None, json_out: bool) -> None:
    """Move an array or a group to another path of its store."""
    version = move(uri, path, target_path, message=message)
    text = f"version {version}: {printable(path)} is {printable(target_path)}"
    _tell({"uri": uri, "path": target_path, "version": version}, text, json_out)


@click.command("upgrade")
@click.argument("uri")
@options.as_json
def upgrade_command(uri: str, json_out: bool) -> None:
    """Make a store of an older format one that this release writes."""
    version = upgrade(uri)
    _tell({"uri": uri, "version": version}, f"version {version} has the format that this release writes", json_out)


@click.command("diff")
@click.argument("a")
@click.argument("b", required=False)
@options.within_box
@click.option("--attr", "attrs", multiple=True, help="An attribute to compare; may be given again.  [default: all]")
@click.option("--path", default="/", show_default=True, help="The array's place in its store.")
@click.option("--path-b", help="That of B, if it is another.")
@click.option("--version", callback=options.version_of, help="The version of A: its number, or its tag.")
@click.option("--version-b", callback=options.version_of, help="The version of B.")
@click.option("--examples", type=click.IntRange(min=0), default=10, show_default=True, help="Cells shown.")
@click.option("--cells", is_flag=True, help="Compare cells only: other schemas are shown, and no difference.")
@options.as_json
def diff_command(
    a: str,
    b: str | None,
    box: tuple[str, ...],
    attrs: tuple[str, ...],
    path: str,
    path_b: str | None,
    version: int | str | None,
    version_b: int | str | None,
    examples: int,
    cells: bool,
    json_out: bool,
) -> int:
    """Compare two arrays, or without B two versions of A; exit code 3 if they differ."""
    if b is None and version == version_b and path_b is None:
        raise click.UsageError("give B, or two versions of A: --version and --version-b")
    first = options.opened(a, path, "r", version)
    second = options.opened(a if b is None else b, path if path_b is None else path_b, "r", version_b)
    found = diff(
        first,
        second,
        box=options.box_of(first, box),
        attrs=attrs or None,
        examples=examples,
        progress=True if sys.stderr.isatty() else None,
    )
    if json_out:
        emit_json({"equal": found.equal, "cells_equal": found.cells_equal, **asdict(found)})
    else:
        click.echo(str(found))
    return 0 if (found.cells_equal if cells else found.equal) else FOUND


def _tell(found: dict[str, Any], text: str, json_out: bool) -> None:
    if json_out:
        emit_json(found)
    else:
        click.echo(text)


COMMANDS: tuple[click.Command, ...] = (copy_command, move_command, upgrade_command, diff_command)
