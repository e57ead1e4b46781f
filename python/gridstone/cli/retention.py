"""The commands for tags and vacuum, and what a store takes."""

from dataclasses import asdict
from typing import Any

import click

from ..maintain import retention
from ..maintain.retention import Vacuum
from ..stores.store import open as open_store
from ..stores.usage import du
from . import options
from .output import bytes_text, emit_json, emit_table, on_terminal
from .recursion import Done, over_store

_FORGOTTEN = ("versions", "objects", "bytes")


@click.command()
@click.argument("uri")
@click.option(
    "--keep", help='Versions that were the newest within this time stay: "1h", "7d", "P1DT12H".  [default: 1h]'
)
@click.option("--versions", type=click.IntRange(min=1), help="So many versions stay, instead of an age.")
@click.option(
    "--safety-age",
    default="1d",
    show_default=True,
    help="Files that no version names go when they are older; 0s if no other process writes: young log records go too.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option(
    "-r",
    "--recursive",
    is_flag=True,
    help="A vacuum is of all arrays of the store always; with this it is told in the shape of the other commands that "
    "take --recursive: one row, and with --json an object in arrays, of the path /.",
)
@options.as_json
def vacuum(
    uri: str,
    keep: str | None,
    versions: int | None,
    safety_age: str,
    dry_run: bool,
    recursive: bool,
    json_out: bool,
) -> int:
    """Forget old versions of a store and delete what only they needed; tagged ones stay."""
    found = open_store(uri, mode="r" if dry_run else "r+")
    progress = True if on_terminal() and not json_out else None

    def done() -> Vacuum:
        return found.vacuum(keep, versions=versions, dry_run=dry_run, safety_age=safety_age, progress=progress)

    if recursive:
        return over_store(lambda: _one_of_many(done()), _FORGOTTEN, json_out=json_out)
    report = done()
    if json_out:
        emit_json(_plain(report))
    else:
        click.echo(str(report))
    return 0


def _plain(report: Vacuum) -> dict[str, Any]:
    return {**asdict(report), "versions": report.versions, "objects": report.objects, "bytes": report.bytes}


def _one_of_many(report: Vacuum) -> Done:
    row = (report.versions, report.objects, report.bytes)
    nothing = report.versions == report.objects == 0
    return Done(_plain(report), row, "nothing to delete" if nothing else "would go" if report.dry_run else "vacuumed")


@click.command("du")
@click.argument("uri")
@click.option("--keep", help='What a vacuum would free that keeps this: "1h", "7d".  [default: 1h]')
@click.option("--versions", type=click.IntRange(min=1), help="So many versions, instead of an age.")
@options.as_json
def du_command(uri: str, keep: str | None, versions: int | None, json_out: bool) -> None:
    """Show what a store takes: per array, for the newest and older versions, and what a vacuum would free."""
    found = du(uri, keep=keep, versions=versions)
    freed = found.reclaimable
    if json_out:
        parts = {"total": asdict(found.total), "attached_bytes": found.attached_bytes}
        emit_json(
            {**asdict(found), **parts, "reclaimable": {**asdict(freed), "bytes": freed.bytes, "objects": freed.objects}}
        )
        return
    arrays = [
        (a.path, a.fragments, a.cells, bytes_text(a.bytes), bytes_text(a.attached_bytes) if a.attached_files else "")
        for a in found.arrays
    ]
    emit_table("arrays", ("path", "fragments", "cells", "size", "attached, outside"), arrays)
    rows = [(name, part.objects, bytes_text(part.bytes)) for name, part in found.parts.items()]
    rows.append(("total", found.total.objects, bytes_text(found.total.bytes)))
    emit_table("store", ("what", "objects", "size"), rows)
    click.echo(f"a vacuum now would free {bytes_text(freed.bytes)} in {freed.objects:,} objects")


@click.command()
@click.argument("uri")
@click.argument("name", required=False)
@click.option("--version", type=int, help="The version to be named.  [default: the newest]")
@click.option("--replace", is_flag=True, help="Move a name that is in use.")
@click.option("--delete", is_flag=True, help="Take the name away.")
@options.as_json
def tag(uri: str, name: str | None, version: int | None, replace: bool, delete: bool, json_out: bool) -> None:
    """Name a version of a store, which keeps it; without NAME, list the names."""
    if delete and (name is None or version is not None or replace):
        raise click.UsageError("--delete takes a NAME and no other option")
    if name is None:
        if version is not None or replace:
            raise click.UsageError("give a NAME for the version")
        tags = open_store(uri).tags
        if json_out:
            emit_json(tags)
        else:
            emit_table(None, ("tag", "version"), [(known, str(number)) for known, number in tags.items()])
        return
    named = retention.untag(uri, name) if delete else retention.tag(uri, name, version, replace=replace)
    if json_out:
        emit_json({"tag": name, "version": named, "deleted": delete})
        return
    click.echo(f"{name!r} named version {named:,}" if delete else f"{name!r} names version {named:,}")


COMMANDS: tuple[click.Command, ...] = (vacuum, du_command, tag)
