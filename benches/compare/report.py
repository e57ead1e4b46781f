"""The figures as tables on the terminal and in Markdown."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

_BRIEF = ("row", "workload", "Gridstone", "best peer", "× best", "to reach", "reached")
_FULL = ("system", "median", "min – max", "single operations", "× best", "CPU", "peak MB", "disk MB")

NOTES = (
    "× best: the best peer's time over this one's (2.0 = half the best peer's time, below 1 = slower). To reach: "
    "what the plan asks for, and what was measured. CPU: seconds of all threads, per operation. Peak: growth of "
    "the process's memory over what it held before, input included. Limits (raw file, memcpy) are no peers; one "
    "that is slower than a system of its row is none, is marked, and judges nothing. Orientation (mapped file, "
    "zstd alone, NumPy's import): something simpler, not a limit. Single operations: of those that one process "
    "times, the quickest, what nine of ten stay below, the slowest. Gridstone: the variant that is judged, named "
    "where there are several. Stores: S1a writes 12 commits; S2a to S2c and S3b-0 read, and S3a adds to, what one "
    "write of all cells left (peers: sorted or consolidated); 'auto, 12 commits' in S2a reads what S1a leaves, "
    "not merged; S3b and D5a with a number: so many small commits more; S1b merges 12 commits as those of S1a, "
    "S3c and D5c what S3b-1000 and D5a-1000 read, and rows called merged read what that leaves; O1 and O2: "
    "nothing but small commits; other dense rows: one load."
)


def show(console: Console, results: dict[str, Any]) -> None:
    """Prints the brief table, one table for each case, then the disclosure."""
    table = Table(title="What was to be reached", title_justify="left", title_style="bold")
    for head in _BRIEF:
        table.add_column(head, overflow="fold")
    for case in results["cases"]:
        table.add_row(*_brief(case))
    console.print(table)
    for case in results["cases"]:
        table = Table(title=f"{case['key']}: {case['title']}", title_justify="left", title_style="bold")
        for i, head in enumerate(_FULL):
            table.add_column(head, justify="right" if i else "left", no_wrap=True)
        for row in case["systems"]:
            table.add_row(*_full(row, case["no_limits"]), style="bold" if row["role"] == "gridstone" else None)
        console.print(table)
    for line in (NOTES, *disclosed(results)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def brief(results: dict[str, Any]) -> str:
    """One line for each case, in Markdown."""
    lines = [f"| {' | '.join(_BRIEF)} |", "|---|---|---:|---:|---:|---|---|"]
    lines += [f"| {' | '.join(_brief(case))} |" for case in results["cases"]]
    return "\n".join(lines)


def full(results: dict[str, Any]) -> str:
    """One line for each case and system, in Markdown."""
    lines = [f"| row | workload | {' | '.join(_FULL)} |", "|---|---|---|" + "---:|" * (len(_FULL) - 1)]
    for case in results["cases"]:
        key, title = case["key"], case["title"]
        for row in case["systems"]:
            cells = [
                f"**{cell}**" if cell and row["role"] == "gridstone" else cell for cell in _full(row, case["no_limits"])
            ]
            lines.append(f"| {key} | {title} | {' | '.join(cells)} |")
            key = title = ""
    return "\n".join(lines)


def markdown(results: dict[str, Any]) -> str:
    """Everything."""
    told = "\n".join(f"- {line}" for line in disclosed(results))
    return f"{brief(results)}\n\n{full(results)}\n\n{NOTES}\n\n{told}\n"


def disclosed(results: dict[str, Any]) -> Iterable[str]:
    """The disclosure, line by line."""
    for name, value in results["disclosure"].items():
        shown = ", ".join(f"{k} {v}" for k, v in value.items()) if name == "versions" else value
        yield f"{name.replace('_', ' ')}: {shown}"
    for name, about in results["systems"].items():
        yield f"{name}: {about['settings']}; durability: {about['durability']}"
    for case in results["cases"]:
        for limit, faster in case["no_limits"].items():
            yield f"{case['key']}: {limit} is no limit here: slower than {faster}"
    yield from results["missing"]
    yield from (f"FAILED: {line}" for line in results["failures"])


def _brief(case: dict[str, Any]) -> tuple[str, ...]:
    variants = [row for row in case["systems"] if row["role"] == "gridstone"]
    own = variants[0] if variants else None
    peers = [row for row in case["systems"] if row["role"] == "peer"]
    best = min(peers, key=lambda row: float(row["seconds"]["median"]), default=None)
    conditions = [f"{reach['text']}: {_found(reach)}" for reach in case["reach"]]
    return (
        case["key"],
        case["title"],
        _judged(variants),
        "" if best is None else f"{seconds_text(best['seconds']['median'])} {best['system']}",
        "" if own is None else _value(own["times_best_peer"]),
        "; ".join(conditions),
        "; ".join({True: "yes", False: "no", None: "?"}[reach["reached"]] for reach in case["reach"]),
    )


def _judged(variants: list[dict[str, Any]]) -> str:
    """The time of the first variant, and which that is if there are others."""
    if not variants:
        return "no figure"
    own = variants[0]
    name = own["system"].partition(", ")[2] if len(variants) > 1 else ""
    return ", ".join(filter(None, (seconds_text(own["seconds"]["median"]), name, _read(own))))


def _found(reach: dict[str, Any]) -> str:
    """The value, and what it is to be read with."""
    remark = reach.get("remark", "")
    return (
        f"{_value(reach['value'])} ({remark})"
        if remark and reach["value"] is not None
        else remark or _value(reach["value"])
    )


def _named(row: dict[str, Any], no_limits: dict[str, str]) -> str:
    """The system, and what its figure is not."""
    faster = no_limits.get(row["system"])
    remarks = (
        f"no limit: slower than {faster}" if faster else "",
        "orientation" if row["role"] == "orientation" else "",
        _read(row),
    )
    told = "; ".join(filter(None, remarks))
    return f"{row['system']} ({told})" if told else str(row["system"])


def _read(row: dict[str, Any]) -> str:
    """At which read a process was at full speed."""
    return f"read {row['read']:g}" if "read" in row else ""


def _operations(row: dict[str, Any]) -> str:
    found = row.get("operations")
    return "" if found is None else " – ".join(seconds_text(found[name]) for name in ("min", "p90", "max"))


def _full(row: dict[str, Any], no_limits: dict[str, str]) -> tuple[str, ...]:
    seconds = row["seconds"]
    return (
        _named(row, no_limits),
        seconds_text(seconds["median"]),
        f"{seconds_text(seconds['min'])} – {seconds_text(seconds['max'])}",
        _operations(row),
        _value(row["times_best_peer"]),
        seconds_text(row["cpu_seconds"]),
        f"{row['rss_growth_bytes'] / 1e6:.1f}",
        f"{row['disk_bytes'] / 1e6:.1f}" if row["disk_bytes"] else "",
    )


def seconds_text(seconds: float) -> str:
    """A time with three digits."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 0.1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
