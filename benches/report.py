"""The figures as a table on the terminal, as JSON and as Markdown."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

_HEADS = ("system", "median", "min – max", "× best peer", "of the limit", "CPU", "peak memory", "on disk")

NOTES = (
    "× best peer: how many times as fast as the quickest peer of this run (2.0 = half its time). "
    "of the limit: time over that of the raw file. CPU: seconds of all threads. "
    "peak memory: growth over what the process held before, input included."
)


def show(console: Console, results: dict[str, Any]) -> None:
    """Prints one table for each workload, then the disclosure."""
    for workload in results["workloads"]:
        table = Table(title=workload["title"], title_justify="left", title_style="bold")
        for i, head in enumerate(_HEADS):
            table.add_column(head, justify="right" if i else "left", no_wrap=True)
        for row in workload["systems"]:
            table.add_row(*_cells(row), style="bold" if row["role"] == "gridstone" else None)
        console.print(table)
    console.print(NOTES, markup=False)
    for line in _lines(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def markdown(results: dict[str, Any]) -> str:
    """One table of all workloads, then the disclosure."""
    lines = [f"| workload | {' | '.join(_HEADS)} |", "|---|---|" + "---:|" * (len(_HEADS) - 1)]
    for workload in results["workloads"]:
        title = workload["title"]
        for row in workload["systems"]:
            cells = [f"**{cell}**" if cell and row["role"] == "gridstone" else cell for cell in _cells(row)]
            lines.append(f"| {title} | {' | '.join(cells)} |")
            title = ""
    lines += ["", NOTES, "", *(f"- {line}" for line in _lines(results)), ""]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    seconds = row["seconds"]
    return (
        row["system"],
        _time(seconds["median"]),
        f"{_time(seconds['min'])} – {_time(seconds['max'])}",
        _ratio(row["times_best_peer"]),
        _ratio(row["of_limit"]),
        _time(row["cpu_seconds"]),
        _size(row["rss_growth_bytes"]),
        _size(row["disk_bytes"]),
    )


def _lines(results: dict[str, Any]) -> Iterable[str]:
    for name, value in results["disclosure"].items():
        shown = ", ".join(f"{k} {v}" for k, v in value.items()) if name == "versions" else value
        yield f"{name.replace('_', ' ')}: {shown}"
    for name, text in results["durability"].items():
        yield f"durability of {name}: {text}"
    yield from results["missing"]
    yield from (f"FAILED: {line}" for line in results["failures"])


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 0.1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
