"""The commands that merge, check and repair."""

import re
from dataclasses import asdict
from typing import Any

import click

from ..maintain import health
from . import options
from .outcome import FOUND
from .output import emit_json, emit_table, on_terminal

_ID = re.compile("[0-9a-f]{32}")
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
    """Merge the fragments of an array; reads give the same as before."""
    wrong = next((one for one in fragments if not _ID.fullmatch(one)), None)
    if wrong is not None:
        raise click.BadParameter(
            f"{wrong!r} is no id; info --json lists them: 32 digits of 0-9a-f", param_hint="--fragment"
        )
    array = options.opened(uri, path, "r" if dry_run else "r+")
    report = array.consolidate(
        strategy,
        box=options.box_of(array, box),
        fragments=fragments or None,
        target=target,
        dry_run=dry_run,
        progress=True if on_terminal() and not json_out else None,
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
@click.option("--store", is_flag=True, help="Check the whole store: all its arrays and versions.")
@options.at_path
@options.as_json
def verify(uri: str, store: bool, path: str, json_out: bool) -> int:
    """Check every stored byte; exit code 3 if something is damaged."""
    shown = True if on_terminal() and not json_out else None
    report = health.verify(uri, progress=shown) if store else options.opened(uri, path).verify(progress=shown)
    if json_out:
        emit_json(report)
        return 0 if report.ok else FOUND
    click.echo(str(report).splitlines()[0])
    if store:
        _show_damage(report["damage"])
    elif not report.ok:
        rows = [(d["fragment"], d["tile"], d["attribute"], _box(d), d["message"]) for d in report["damage"]]
        emit_table("damaged", ("fragment", "tile", "column", "cells", "what"), rows)
    return 0 if report.ok else FOUND


def _show_damage(damage: list[dict[str, Any]]) -> None:
    if damage:
        rows = [
            (d["object"], _spans(d), "; ".join(f"{c['array']} {_box(c)}" for c in d["cells"]), d["message"])
            for d in damage
        ]
        emit_table("damaged", ("object", "versions", "cells", "what"), rows)


def _box(place: dict[str, Any]) -> str:
    return " x ".join(f"{low}..{high}" for low, high in place["domain"])


def _spans(damage: dict[str, Any]) -> str:
    return ", ".join(f"{low}..{high}" for low, high in damage["versions"])


@click.command()
@click.argument("uri")
@click.option("--yes", is_flag=True, help="Do it; without this option it is only said what would be done.")
@click.option("--cut", is_flag=True, help="Cut the log at its last sound version; what is lost is listed first.")
@options.as_json
def repair(uri: str, yes: bool, cut: bool, json_out: bool) -> int:
    """Make lost and damaged objects again where the rest tells how; exit code 3 if damage remains."""
    done = health.repair(uri, dry_run=not yes, cut=cut, progress=True if on_terminal() and not json_out else None)
    if json_out:
        emit_json(asdict(done))
    else:
        rows = [(action["object"], action["what"]) for action in done.actions]
        click.echo(str(done).splitlines()[0])
        if rows:
            emit_table("done" if yes else "would be done", ("object", "what"), rows)
        if done.lost:
            lost = [(v["version"], ", ".join(v["operations"]) or "unknown", v["message"] or "") for v in done.lost]
            emit_table("lost" if yes else "would be lost", ("version", "what it did", "message"), lost)
        _show_damage(done.remaining)
    return FOUND if done.remaining else 0


COMMANDS: tuple[click.Command, ...] = (consolidate, verify, repair)
