"""Output of the commands: tables, JSON, and progress on a terminal only."""

import base64
import contextlib
import datetime as dt
import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import numpy as np

from ..base.printable import printable
from . import tables
from .outcome import json_text
from .values import is_fixed, is_number, iso_duration, texts_of


def on_terminal() -> bool:
    """Whether a progress bar has somewhere to be drawn."""
    return sys.stderr.isatty()


def note(text: str) -> None:
    """A remark beside the output proper."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def emit_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json_text(plain(value)))


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
        return _iso(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return _iso(np.timedelta64(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _iso(length: np.timedelta64) -> str | None:
    """A length of time as ISO text; months and years, which have no fixed length, by themselves."""
    if np.isnat(length):
        return None
    unit, several = np.datetime_data(length.dtype)
    ticks = int(length.astype(np.int64)) * several
    if unit in ("Y", "M"):
        return f"{'-' if ticks < 0 else ''}P{abs(ticks)}{unit}"
    seconds = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60}.get(unit)
    if seconds is not None:
        return iso_duration(ticks * seconds, 1)
    return iso_duration(ticks, {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15}.get(unit, 1))


def emit_table(title: str | None, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output. Texts that are wider than the screen go on in the next line."""
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    shown = [_column(name, values) for name, values in zip(header, columns, strict=True)]
    if title is not None:
        click.echo(click.style(printable(title), bold=True))
    _echo(tables.words(shown, screen_width()))
    if title is not None:
        click.echo()


def emit_cells(found: Any, *, all_columns: bool, hint: str = "--all-columns shows all") -> None:
    """The rows of an Arrow table as a table that fits the screen; beside it how many columns are left out."""
    columns = [
        tables.Column(printable(field.name), texts_of(column), is_number(field.type), is_fixed(field.type))
        for field, column in zip(found.schema, found.columns, strict=True)
    ]
    if not columns:
        return
    made = tables.cells(columns, None if all_columns else screen_width())
    _echo(made.lines)
    if made.left_out:
        verb = "is" if made.left_out == 1 else "are"
        note(f"{made.left_out} of {len(columns)} columns {verb} left out; {hint}")


def screen_width() -> int | None:
    """The characters of a line: `COLUMNS`, or what the terminal has; None where there is no bound, as in a pipe."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _echo(lines: Iterable[str]) -> None:
    """Prints lines of a table in the characters that the output has."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        "─…".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        lines = [tables.plain(line).encode(encoding, "backslashreplace").decode(encoding) for line in lines]
    click.echo("\n".join(lines))


def _column(name: str, values: Sequence[Any]) -> tables.Column:
    times = [value for value in values if isinstance(value, dt.datetime)]
    if times and all(value.time() == dt.time() for value in times):
        values = [value.date() if isinstance(value, dt.datetime) else value for value in values]
    texts = [cell_text(value) for value in values]
    is_number, is_time = (bool(texts) and all(map(one, texts)) for one in (_is_number, _TIME.fullmatch))
    return tables.Column(printable(name), texts, is_number, is_number or is_time)


_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]*)?")


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
        return str(value)
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
