"""The commands that change the schema of an array."""

from collections.abc import Sequence
from typing import Any

import click

from ..arrays.array import Array
from ..column import datatype
from . import options, report
from .output import emit_json


@click.command()
@click.argument("uri")
@click.argument("domains", nargs=-1, required=True, metavar="DIM=LOW:HIGH...")
@click.option("--message", "-m", help="Kept with the version.")
@options.at_path
@options.as_json
def resize(uri: str, domains: Sequence[str], message: str | None, path: str, json_out: bool) -> None:
    """Make the domain of an array larger; both ends are included, one that is left out stays."""
    array = options.opened(uri, path, "r+")
    array.resize(options.box_of(array, domains), message=message)
    _tell(array, json_out)


@click.command()
@click.argument("uri")
@click.option("--add", multiple=True, metavar="NAME:DTYPE[:nullable][:fill=V][:FILTERS]", help="A new attribute.")
@click.option("--drop", multiple=True, metavar="NAME", help="An attribute that goes.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="A new name.")
@click.option("--fill", multiple=True, metavar="NAME=VALUE", help="What unwritten dense cells read as.")
@click.option("--filters", multiple=True, metavar="NAME=FILTERS", help="The filters of what is written from now on.")
@click.option("--nullable", multiple=True, metavar="NAME", help="An attribute that may be null from now on.")
@click.option("--category", multiple=True, metavar="NAME=VALUE", help="A category more of an enumerated attribute.")
@click.option("--message", "-m", help="Kept with the version.")
@options.at_path
@options.as_json
def alter(
    uri: str,
    add: Sequence[str],
    drop: Sequence[str],
    rename: Sequence[str],
    fill: Sequence[str],
    filters: Sequence[str],
    nullable: Sequence[str],
    category: Sequence[str],
    message: str | None,
    path: str,
    json_out: bool,
) -> None:
    """Add, drop, rename and change attributes; nothing that was written is written again."""
    if not (add or drop or rename or fill or filters or nullable or category):
        raise click.UsageError("say what changes: --add, --drop, --rename, --fill, --filters, --nullable or --category")
    array = options.opened(uri, path, "r+")
    array.alter(
        add=[options.attr_of(text) for text in add],
        drop=drop,
        rename=options.pairs_of(rename, "--rename"),
        fill=_fills(array, options.pairs_of(fill, "--fill")),
        filters=options.pairs_of(filters, "--filters"),
        nullable=nullable,
        categories=_categories(array, category),
        message=message,
    )
    _tell(array, json_out)


def _categories(array: Array, parts: Sequence[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for part in parts:
        (name, value), *_ = options.pairs_of([part], "--category").items()
        found.setdefault(name, []).append(
            options.typed(array.schema.attr(name).dtype, value, f"attribute {name!r}: the category")
        )
    return found


def _fills(array: Array, given: dict[str, str]) -> dict[str, Any]:
    return {
        name: options.fill_of(datatype.parse(array.schema.attr(name).dtype), text, name) for name, text in given.items()
    }


def _tell(array: Array, json_out: bool) -> None:
    if json_out:
        emit_json(report.summary(array))
    else:
        click.echo(repr(array))


COMMANDS: tuple[click.Command, ...] = (resize, alter)
