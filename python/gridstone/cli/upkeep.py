"""The commands that merge, check and repair."""

import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from ..arrays.array import Array
from ..maintain import health
from . import options
from .outcome import FOUND
from .output import emit_json, emit_table, on_terminal
from .recursion import Done, over_arrays, recursive

_MERGED = ("version", "fragments before", "after", "merges")
_CHECKED = ("fragments", "tiles", "blocks", "bytes")
_ID = re.compile("[0-9a-f]{32}")
_STRATEGIES = ["tiered", "all", "updates", "manifest"]


@click.command()
@click.argument("uri")
@click.option("--strategy", type=click.Choice(_STRATEGIES), default="tiered", show_default=True)
@click.option("--fragment", "fragments", multiple=True, metavar="ID", help="Merge these fragments and no others.")
@click.option("--target", default="512MiB", show_default=True, help="Bytes of a merged fragment, about.")
@click.option("--dry-run", is_flag=True, help="Only show what would be merged, and what it costs.")
@recursive
@options.within_box
@options.at_path
@options.as_json
def consolidate(
    uri: str,
    strategy: str,
    fragments: tuple[str, ...],
    target: str,
    dry_run: bool,
    is_recursive: bool,
    box: tuple[str, ...],
    path: str,
    json_out: bool,
) -> int:
    """Merge the fragments of an array; reads give the same as before."""
    wrong = next((one for one in fragments if not _ID.fullmatch(one)), None)
    if wrong is not None:
        raise click.BadParameter(
            f"{wrong!r} is no id; info --json lists them: 32 digits of 0-9a-f", param_hint="--fragment"
        )
    mode = "r" if dry_run else "r+"
    if is_recursive:
        if fragments or box:
            raise click.UsageError("--fragment and --box are parts of one array: leave them out, or --recursive")
        return over_arrays(uri, path, mode, _merged(strategy, target, dry_run), _MERGED, json_out=json_out)
    array = options.opened(uri, path, mode)
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
        return 0
    click.echo(str(report))
    if dry_run and report.merges:
        rows = [(m.kind, m.fragments, m.cells, m.bytes_read, m.bytes_expected, m.memory) for m in report.merges]
        emit_table("merges", ("kind", "fragments", "cells", "bytes read", "bytes written", "memory"), rows)
    return 0


def _merged(strategy: str, target: str, dry_run: bool) -> Callable[[Array], Done]:
    """Merges the fragments of one array among others."""

    def work(array: Array) -> Done:
        found = array.consolidate(strategy, target=target, dry_run=dry_run)
        row = (str(array.version), found.fragments_before, found.fragments_after, len(found.merges))
        done = "nothing to merge" if not found.merges else "would be merged" if dry_run else "merged"
        return Done({"version": array.version, **asdict(found)}, row, done)

    return work


def _checked(array: Array) -> Done:
    """Checks one array among others."""
    found = array.verify()
    row = (found.fragments, found.tiles, found.blocks, found.bytes)
    said = "sound" if found.ok else "damaged: " + "; ".join(one.message for one in found.damage)
    return Done(found.as_dict(), row, said, found=not found.ok)


@click.command()
@click.argument("uri")
@click.option("--store", is_flag=True, help="Check the whole store: all its arrays and versions.")
@recursive
@options.at_path
@options.as_json
def verify(uri: str, store: bool, is_recursive: bool, path: str, json_out: bool) -> int:
    """Check every stored byte; exit code 3 if something is damaged."""
    if is_recursive:
        if store:
            raise click.UsageError("--store checks all versions, and --recursive the newest of each array: give one")
        return over_arrays(uri, path, "r", _checked, _CHECKED, json_out=json_out)
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
