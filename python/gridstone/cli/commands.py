"""The commands that create, show, read and write."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..arrays.array import Array
from ..base.printable import printable
from ..result.damage import Damaged
from ..stores import store
from ..stores.group import Group
from . import files, options, report
from .output import bytes_text, emit_json, emit_table

_CELLS_SHOWN = 20
_ENDS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".arrow": "arrow", ".arrows": "arrow"}
_FILE = options.InputFile()


@click.command()
@click.argument("uri")
@click.option(
    "--dim",
    "dims",
    multiple=True,
    metavar="NAME:DTYPE:LOW:HIGH[:TILE]",
    help='"x:int64:0:999:100", "gene:string:32"; LOW..HIGH for times of day, with their seconds: '
    '"t:datetime64[s]:2020-01-01T00:00:00..2020-01-31T23:59:59:3600".',
)
@click.option(
    "--attr", "attrs", multiple=True, metavar="NAME:DTYPE[:nullable][:fill=V][:FILTERS]", help='"v:float32:zstd"'
)
@click.option("--schema", "schema_file", type=_FILE, help="A schema as JSON (see info --json).")
@click.option("--sparse/--dense", default=False, help="Only non-empty cells exist.  [default: dense]")
@click.option("--capacity", type=int, default=10_000, show_default=True, help="Cells per data tile (sparse).")
@click.option("--tile-order", type=click.Choice(["row", "col"]), default="row", show_default=True)
@click.option("--cell-order", type=click.Choice(["row", "col", "hilbert"]), default="row", show_default=True)
@click.option("--duplicates", is_flag=True, help="Several cells may lie at one place (sparse).")
@click.option("--overwrite", is_flag=True, help="Replace an array that is there.")
@options.at_path
@options.as_json
def create(
    uri: str,
    dims: Sequence[str],
    attrs: Sequence[str],
    schema_file: Path | None,
    overwrite: bool,
    path: str,
    json_out: bool,
    **layout: Any,
) -> None:
    """Create an array."""
    schema = options.schema_of(dims, attrs, schema_file, layout)
    array = store.create(uri, schema, path=path, overwrite=overwrite)
    if json_out:
        emit_json(report.summary(array))
    else:
        click.echo(repr(array))


@click.command()
@click.argument("uri")
@options.at_path
@options.at_version
@options.as_json
def info(uri: str, path: str, version: int | str | None, timestamp: str | None, json_out: bool) -> None:
    """Show the schema, the versions, the fragments, and how full and overlapping the tiles are.

    For a group: its version, what is in it, and its metadata.
    """
    found = store.open(uri, path=path, version=version, timestamp=timestamp)
    if json_out:
        emit_json(report.group_details(found._pinned()) if isinstance(found, Group) else report.details(found))
    elif isinstance(found, Group):
        report.show_group(found._pinned())
    else:
        report.show(found)


@click.command()
@click.argument("uri")
@click.option("-r", "--recursive", is_flag=True, help="Also what is in the groups below.")
@options.at_path
@options.as_json
def ls(uri: str, recursive: bool, path: str, json_out: bool) -> None:
    """List the arrays and groups of a store."""
    found = store.open(uri, path=path) if recursive else None
    entries = found.walk() if isinstance(found, Group) else store.ls(uri, path=path)
    if json_out:
        emit_json([entry._asdict() for entry in entries])
    else:
        report.show_entries(entries)


@click.command()
@click.argument("uri")
@options.within_box
@click.option("--attr", "attrs", multiple=True, help="An attribute to read; may be given again.  [default: all]")
@click.option("--where", metavar="CONDITION", help='Cells for which it is true: "sog > 3 and status in (1, 5)".')
@click.option("--order", type=click.Choice(["row", "col", "global", "any"]), default="row", show_default=True)
@click.option(
    "--limit",
    "-n",
    "--head",
    type=click.IntRange(min=0),
    help=f"At most this many cells.  [default: {_CELLS_SHOWN} in a table]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "arrow"]),
    help="Of what is printed.  [default: table; with --out by its name]",
)
@click.option("--csv", "csv_out", is_flag=True, help="Print CSV.")
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@options.all_columns
@options.around_damage
@options.at_path
@options.at_version
@options.as_json
def read(
    uri: str,
    box: Sequence[str],
    attrs: Sequence[str],
    where: str | None,
    order: str,
    limit: int | None,
    form: str | None,
    csv_out: bool,
    out: Path | None,
    all_columns: bool,
    damaged: Damaged,
    path: str,
    version: int | None,
    timestamp: str | None,
    json_out: bool,
) -> None:
    """Read the cells of a box, or those of them that a condition selects."""
    from . import export

    form = _form_of(form, csv_out, json_out, out)
    if form == "arrow" and out is None and sys.stdout.isatty():
        raise click.UsageError("an Arrow stream is not for a terminal; give --out FILE or a pipe")
    array = options.opened(uri, path, "r", version, timestamp)
    with options.telling_losses():
        shown = _CELLS_SHOWN if limit is None and form == "table" else limit
        box_asked = options.box_of(array, box)
        stream = array.scan(
            box_asked, list(attrs) or None, where, order, damaged=damaged, limit=None if shown is None else shown + 1
        )
        export.write(stream, form, out, shown, all_columns=all_columns)


def _form_of(form: str | None, csv_out: bool, json_out: bool, out: Path | None) -> str:
    """The form of the cells; a file's, unless it is given, goes by its name."""
    given = {one for one, is_given in ((form, form), ("csv", csv_out), ("json", json_out)) if one and is_given}
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(sorted(given))} are forms of the same cells: give one")
    if given:
        found = str(given.pop())
    elif out is None:
        found = "table"
    elif out.suffix.lower() not in _ENDS:
        raise click.UsageError(
            f"{out}: a file is {', '.join(_ENDS)} by its name; give --format, or use gridstone export for other formats"
        )
    else:
        found = _ENDS[out.suffix.lower()]
    if found == "table" and out is not None:
        raise click.UsageError("--out takes csv, json or arrow, and a table is for the screen: leave one of them out")
    return found


@click.command()
@click.argument("uri")
@click.argument("source", type=_FILE, metavar="FILE")
@click.option("--format", "form", type=click.Choice(files.FORMATS), help="Of the file.  [default: by its name]")
@options.within_box
@click.option("--attr", help="The attribute that a .npy file holds.  [default: the only one]")
@click.option("--message", "-m", help="Kept with the version.")
@options.at_path
@options.as_json
def write(
    uri: str,
    source: Path,
    form: str | None,
    box: Sequence[str],
    attr: str | None,
    message: str | None,
    path: str,
    json_out: bool,
) -> None:
    """Write cells from a file of a format that load knows, or a dense box from a .npy file."""
    array, kind = options.opened(uri, path, "r+"), files.kind_of([source], form)
    placed: dict[str, Any] = {"box": options.box_of(array, box), "name": attr} if kind == "npy" else {}
    if (box or attr) and not placed:
        raise click.UsageError("--box and --attr are for .npy files; other files say themselves where their cells are")
    _written(files.loaded(kind, uri, [source], path=path, message=message, **placed), json_out)


def _written(array: Array, json_out: bool) -> None:
    if json_out:
        emit_json({"version": array.version, **array.stats})
    else:
        cells, size = array.stats.get("cells_written", 0), array.stats.get("bytes_written", 0)
        click.echo(f"version {array.version}: {cells:,} cells, {bytes_text(size)}")


@click.command()
@click.argument("uri")
@click.option(
    "--coord", "coords", multiple=True, metavar="DIM=VALUE,...", help='A cell: "x=1,y=2"; may be given again.'
)
@click.option("--csv", "source", type=_FILE, help="Cells from the dimensions' columns of a CSV file.")
@options.within_box
@click.option("--where", metavar="CONDITION", help='Cells for which it is true: "sog > 3 and status in (1, 5)".')
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help="Delete the whole store, every version; with --path what lies there, from now on.",
)
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
@click.option("--dry-run", is_flag=True, help="Count the cells that would go, and delete nothing.")
@click.option("--message", "-m", help="Kept with the version.")
@options.at_path
@options.as_json
def delete(
    uri: str,
    coords: Sequence[str],
    source: Path | None,
    box: Sequence[str],
    where: str | None,
    whole: bool,
    yes: bool,
    dry_run: bool,
    message: str | None,
    path: str,
    json_out: bool,
) -> None:
    """Delete cells, or with --all the store, or the array or group at --path."""
    if sum((bool(coords), source is not None, bool(box) or where is not None, whole)) != 1:
        raise click.UsageError("give --coord, --csv, --all, or --box and --where: one of them")
    if whole and dry_run:
        raise click.UsageError("--dry-run counts cells; with --all everything goes: gridstone info shows what that is")
    if whole:
        if path.strip("/"):
            _delete_node(uri, path, yes, message, json_out)
        else:
            _delete_store(uri, yes, message, json_out)
        return
    array = options.opened(uri, path, "r" if dry_run else "r+")
    chosen: dict[str, Any] = {"box": options.box_of(array, box), "where": where}
    if source is not None:
        from ..io import read_csv

        chosen = {"coords": read_csv(source, array.schema, attrs=[])}
    elif coords:
        chosen = {"coords": options.coordinates_of(array, coords)}
    version = array.delete(**chosen, message=message, dry_run=dry_run)
    if not dry_run:
        _written(array, json_out)
    elif json_out:
        emit_json({"version": int(version), "cells": version.cells, "dry_run": True})
    else:
        click.echo(f"{version.cells:,} cells would go; version {version} stays the newest")


def _delete_node(uri: str, path: str, yes: bool, message: str | None, json_out: bool) -> None:
    store.open(uri, path=path)
    options.confirm(f"Remove {printable(path)} and all below it from {uri}? Earlier versions keep it.", yes)
    version = store.removed(uri, path, message, None)
    if json_out:
        emit_json({"removed": path, "version": version})
    else:
        gone = printable(path)
        click.echo(f"version {version}: removed {gone}; earlier versions keep it until a vacuum forgets them")


def _delete_store(uri: str, yes: bool, message: str | None, json_out: bool) -> None:
    if message is not None:
        raise click.UsageError("a store that is deleted keeps no message; leave out --message, or give --path")
    if not store.exists(uri):
        store.delete(uri)
    options.confirm(f"Delete {uri} and every version of it, for good?", yes)
    store.delete(uri)
    if json_out:
        emit_json({"deleted": uri})
    else:
        click.echo(f"deleted {uri}")


@click.command()
@click.argument("uri")
@options.at_path
@options.as_json
def history(uri: str, path: str, json_out: bool) -> None:
    """List the versions that touched an array, or of a group all of its store, oldest first."""
    versions = store.open(uri, path=path).history()
    if json_out:
        emit_json([report.version(v) for v in versions])
        return
    emit_table(None, report.VERSION_HEADER, [report.version_row(v) for v in versions])


COMMANDS: tuple[click.Command, ...] = (create, info, ls, read, write, delete, history)
