"""The command that changes values of cells."""

from collections.abc import Sequence

import click

from . import options
from .output import emit_json, on_terminal


@click.command()
@click.argument("uri")
@click.option(
    "--set",
    "values",
    multiple=True,
    required=True,
    metavar="ATTR=EXPRESSION",
    help='"sog=sog * 0.5", "status=\'moored\'"; "n=null"; may be given again. All expressions see the old values.',
)
@options.within_box
@click.option("--where", metavar="CONDITION", help='Cells for which it is true: "sog > 3 and status in (1, 5)".')
@click.option("--dry-run", is_flag=True, help="Compute all new values, and change nothing.")
@click.option("--message", "-m", help="Kept with the version.")
@options.at_path
@options.as_json
def update(
    uri: str,
    values: Sequence[str],
    box: Sequence[str],
    where: str | None,
    dry_run: bool,
    message: str | None,
    path: str,
    json_out: bool,
) -> None:
    """Change values of the cells of a box, or those of them that a condition selects, in one commit."""
    array = options.opened(uri, path, "r" if dry_run else "r+")
    changed = {name.strip(): _value(text.strip()) for name, text in options.pairs_of(values, "--set").items()}
    within, progress = options.box_of(array, box), True if on_terminal() else None
    version = array.update(changed, where, within, message=message, dry_run=dry_run, progress=progress)
    if json_out:
        emit_json({"version": int(version), "cells": version.cells, "dry_run": dry_run})
    elif dry_run:
        click.echo(f"{version.cells:,} cells would change; version {version} stays the newest")
    else:
        click.echo(f"version {version}: {version.cells:,} cells changed")


def _value(text: str) -> str | None:
    """An expression, or null."""
    return None if text.lower() == "null" else text


COMMANDS: tuple[click.Command, ...] = (update,)
