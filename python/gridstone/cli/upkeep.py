"""The commands that keep arrays healthy."""

from dataclasses import asdict

import click

from . import options
from .output import emit_json, emit_table

_STRATEGIES = ["tiered", "all", "updates", "manifest"]


@click.command()
@click.argument("uri")
@click.option("--strategy", type=click.Choice(_STRATEGIES), default="tiered", show_default=True)
@click.option("--fragment", "fragments", multiple=True, metavar="ID", help="Merge these fragments and no others.")
@click.option("--target", default="512MiB", show_default=True, help="Bytes of a merged fragment, about.")
@click.option("--dry-run", is_flag=True, help="Only show what would be merged, and what it costs.")
@options.within_box
@options.at_path
@options.as_json
def consolidate(
    uri: str,
    strategy: str,
    fragments: tuple[str, ...],
    target: str,
    dry_run: bool,
    box: tuple[str, ...],
    path: str,
    json_out: bool,
) -> None:
    """Merge the fragments of an array; nobody reads anything else than before."""
    array = options.opened(uri, path, "r" if dry_run else "r+")
    report = array.consolidate(
        strategy, box=options.box_of(array, box), fragments=fragments or None, target=target, dry_run=dry_run
    )
    if json_out:
        emit_json({"version": array.version, **asdict(report)})
        return
    click.echo(str(report))
    if dry_run and report.merges:
        rows = [(m.kind, m.fragments, m.cells, m.bytes_read, m.bytes_expected, m.memory) for m in report.merges]
        emit_table("merges", ("kind", "fragments", "cells", "bytes read", "bytes written", "memory"), rows)


@click.command()
@click.argument("uri")
@options.at_path
@options.as_json
def verify(uri: str, path: str, json_out: bool) -> int:
    """Check every stored byte; exit status 1 if something is damaged."""
    report = options.opened(uri, path).verify()
    damage = report["damage"]
    if json_out:
        emit_json(report)
    else:
        click.echo(f"{report['fragments']:,} fragments, {report['blocks']:,} blocks, {report['bytes']:,} bytes checked")
        if damage:
            rows = [(d["fragment"], d["tile"], d["attribute"], d["message"]) for d in damage]
            emit_table("damaged", ("fragment", "tile", "column", "what"), rows)
    return 1 if damage else 0


COMMANDS: tuple[click.Command, ...] = (consolidate, verify)
