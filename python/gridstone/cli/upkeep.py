"""The commands that keep arrays healthy."""

from dataclasses import asdict

import click

from . import options
from .output import emit_json, emit_table


@click.command()
@click.argument("uri")
@click.option("--strategy", type=click.Choice(["tiered", "all"]), default="tiered", show_default=True)
@click.option("--target", default="512MiB", show_default=True, help="Bytes of a merged fragment, about.")
@click.option("--dry-run", is_flag=True, help="Only show what would be merged.")
@options.at_path
@options.as_json
def consolidate(uri: str, strategy: str, target: str, dry_run: bool, path: str, json_out: bool) -> None:
    """Merge the fragments of an array; nobody reads anything else than before."""
    array = options.opened(uri, path, "r" if dry_run else "r+")
    report = array.consolidate(strategy, target=target, dry_run=dry_run)
    if json_out:
        emit_json({"version": array.version, **asdict(report)})
        return
    click.echo(str(report))


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
