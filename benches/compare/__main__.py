"""Gridstone beside what else a user would pick: `gridstone bench --help`, or `python benches/compare --help`.

Rules: a fresh process for each (system, case) and repeat; systems interleaved, their order rotated; medians with their
spread; every result compared with NumPy before anything is timed. No timing decides over pass or fail: only wrong
results do (exit status 1). docs/performance.md tells row by row what is timed.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import charts
import front
import machine
import publish
import report
from harness import Harness, judge
from inputs import Size
from plan import PLAN, Case
from profiles import Profiler, markdown


def _chosen(only: str) -> list[Case]:
    """The cases of these rows, or with these keys; all if none are named."""
    names = [name.strip().lower() for name in only.split(",") if name.strip()]
    known = {name.lower() for case in PLAN for name in (case.key, case.row)}
    unknown = [name for name in names if not any(key == name or key.startswith(f"{name}-") for key in known)]
    if unknown:
        raise click.UsageError(f"no row or case is called {', '.join(unknown)}; --list shows them")
    return [c for c in PLAN if not names or any(f"{c.key.lower()}-".startswith(f"{name}-") for name in names)]


def _families(systems: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in systems.split(",") if name.strip())
    known = {system.family for case in PLAN for system in case.systems}
    if not names <= known:
        raise click.UsageError(
            f"no system is called {', '.join(sorted(names - known))}; there are {', '.join(sorted(known))}"
        )
    return names


@click.command(help=__doc__)
@click.option("--scale", default=1.0, show_default=True, type=click.FloatRange(0, min_open=True),
              help="1: 400 MB dense, 5 M cells, 10 M rows.")  # fmt: skip
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(1))
@click.option("--out", default="benches-out", show_default=True, type=click.Path(path_type=Path, file_okay=False))
@click.option("--only", default="", metavar="ROW[,ROW]", help="Only these rows (D3c) or cases (D3c-cold).")
@click.option("--systems", default="", metavar="NAME[,NAME]", help="Only these systems, and what is no peer.")
@click.option("--list", "list_only", is_flag=True, help="List the cases and stop.")
@click.option("--minutes", type=float, help="Begin no further case after so long.")
@click.option("--json", "as_json", is_flag=True, help="Print results.json instead of tables.")
@click.option("--write-docs", is_flag=True, help="Put the tables into README.md and docs/performance.md.")
@click.option("--profile", "profile_seconds", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
              help="Instead: where Gridstone's time goes, sampled for so long per case (Linux's perf).")  # fmt: skip
def main(
    scale: float,
    repeats: int,
    out: Path,
    only: str,
    systems: str,
    list_only: bool,
    minutes: float | None,
    as_json: bool,
    write_docs: bool,
    profile_seconds: float | None,
) -> None:
    """Checks, measures, and writes results.json, results.md and charts into `out`."""
    size, chosen, families = Size(scale), _chosen(only), _families(systems)
    if write_docs and (only or systems):
        raise click.UsageError("--write-docs replaces all tables: it takes neither --only nor --systems")
    if list_only:
        _list(chosen, size, as_json)
        return
    out.mkdir(parents=True, exist_ok=True)
    (out / ".gitignore").write_text("*\n")
    asked = (out.resolve(), size, repeats, lambda line: click.echo(line, err=True), chosen, families, minutes)
    if profile_seconds is not None:
        _profile(out, Profiler(*asked), profile_seconds)
        return
    disclosed = machine.disclosure(out, size, repeats)
    harness = Harness(*asked)
    figures = harness.run()
    measured = {figure["key"] for figure in figures}
    judge([case for case in chosen if case.key in measured], figures)
    results: dict[str, Any] = {
        "disclosure": {**disclosed, "load_average_at_end": os.getloadavg()[0]},
        "systems": machine.about(chosen, families),
        "missing": harness.missing,
        "failures": harness.failures,
        "cases": figures,
    }
    written = _write(out, results)
    if write_docs:
        chosen_figures = front.renew(results)
        front.record(chosen_figures)
        written += [*publish.publish(results), *front.write(chosen_figures)]
    if as_json:
        click.echo(json.dumps(results, indent=1))
    else:
        report.show(Console(width=None if sys.stdout.isatty() else 160), results)
        click.echo(f"written: {', '.join(map(str, written))}")
    sys.exit(1 if harness.failures else 0)


def _profile(out: Path, profiler: Profiler, seconds: float) -> None:
    """Profiles, and writes them into `out`."""
    profiles = profiler.profile(seconds)
    (out / "profiles.json").write_text(json.dumps([asdict(one) for one in profiles], indent=1) + "\n")
    (out / "profiles.md").write_text(markdown(profiles), encoding="utf-8")
    click.echo(markdown(profiles))
    sys.exit(1 if profiler.failures else 0)


def _list(cases: list[Case], size: Size, as_json: bool) -> None:
    if as_json:
        told = [{"key": c.key, "title": c.title(size), "systems": [s.name for s in c.systems]} for c in cases]
        click.echo(json.dumps(told))
        return
    for case in cases:
        click.echo(f"{case.key:16} {case.title(size)}")


def _write(out: Path, results: dict[str, Any]) -> list[Path]:
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "results.md").write_text(report.markdown(results), encoding="utf-8")
    return [out / "results.json", out / "results.md", *charts.draw(out, results)]


if __name__ == "__main__":
    main()
