"""Output of the commands: tables, JSON, and progress on a terminal only."""

import base64
import datetime as dt
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import numpy as np

from ..base.printable import printable
from .words import in_options


def error_text(error: BaseException, command: click.Command | None = None, group: click.Group | None = None) -> str:
    """The line that a failed command ends with."""
    return f"{click.style('error:', fg='red', bold=True)} {message_of(error, command, group)}"


def message_of(error: BaseException, command: click.Command | None = None, group: click.Group | None = None) -> str:
    """The message of an error in the words of the command line. The running command is known by itself."""
    context = click.get_current_context(silent=True)
    if context is not None:
        command, above = context.command, context.find_root().command
        group = above if isinstance(above, click.Group) else group
    return str(error) if group is None else in_options(str(error), command, group)


def on_terminal() -> bool:
    """Whether a progress bar has somewhere to be drawn."""
    return sys.stderr.isatty()


def note(text: str) -> None:
    """A remark beside the output proper."""
    click.echo(text, err=True)


def emit_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(plain(value), ensure_ascii=False))


def plain(value: Any) -> Any:
    """`value` in terms of JSON: times as ISO text, NaN and null as null, bytes as base64."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ma.MaskedArray) and value.ndim == 0:
        return None
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.timedelta64):
        return None if np.isnat(value) else int(value.astype(np.int64))
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def emit_table(title: str | None, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output; as wide as its content where that is no terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    shown = [[cell_text(cell) for cell in row] for row in rows]
    for place, name in enumerate(header):
        numeric = bool(shown) and all(_is_number(row[place]) for row in shown)
        table.add_column(printable(name), justify="right" if numeric else "left", overflow="fold")
    for row in shown:
        table.add_row(*row)
    terminal = sys.stdout.isatty()
    Console(width=None if terminal else 4_000, markup=False, highlight=False, emoji=False).print(
        table, crop=terminal, no_wrap=not terminal
    )


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(",", "").replace(".", "", 1).split(" ")[0].isdigit()


def cell_text(value: Any) -> str:
    """A value in a table."""
    if value is None or value is np.ma.masked:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return printable(str(value))


def bytes_text(count: int) -> str:
    """Bytes for people."""
    size, units = float(count), ("bytes", "KiB", "MiB", "GiB", "TiB")
    for unit in units:
        if size < 1024 or unit == units[-1]:
            return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return str(count)


def seconds_text(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
