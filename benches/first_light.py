"""Gridstone beside what else a user would pick: `python benches/first_light.py --help`.

Rules: a fresh process for each (system, workload) and repeat; systems interleaved, their order rotated; medians with
their spread; every result compared with NumPy before anything is timed. No timing decides over pass or fail: only wrong
results do (exit status 1).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import machine
import report
from harness import Harness
from inputs import Size
from workloads import PLAN


@click.command(help=__doc__)
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="1: 100 MB dense, 1 M points.",
)
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1))
@click.option("--out", default="benches-out", show_default=True, type=click.Path(path_type=Path, file_okay=False))
@click.option("--only", default="", help="Only the workloads whose key contains this; --list shows them.")
@click.option("--list", "list_only", is_flag=True, help="List the workloads and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print results.json instead of tables.")
def main(scale: float, repeats: int, out: Path, only: str, list_only: bool, as_json: bool) -> None:
    """Checks, measures, and writes results.json and results.md into `out`."""
    size = Size(scale)
    chosen = [w for w in PLAN if only in w.key]
    if list_only:
        for workload in chosen:
            click.echo(f"{workload.key:20} {workload.title(size)}")
        return
    if not chosen:
        raise click.UsageError(f"no workload has {only!r} in its key; --list shows them")
    out.mkdir(parents=True, exist_ok=True)
    (out / ".gitignore").write_text("*\n")
    disclosed = machine.disclosure(out, size, repeats)
    harness = Harness(out.resolve(), size, repeats, lambda line: click.echo(line, err=True), chosen)
    figures = harness.run()
    results: dict[str, Any] = {
        "disclosure": {**disclosed, "load_average_at_end": os.getloadavg()[0]},
        "durability": machine.durability(chosen),
        "missing": harness.missing,
        "failures": harness.failures,
        "workloads": figures,
    }
    text = json.dumps(results, indent=1)
    (out / "results.json").write_text(text + "\n")
    (out / "results.md").write_text(report.markdown(results))
    if as_json:
        click.echo(text)
    else:
        report.show(Console(width=None if sys.stdout.isatty() else 140), results)
        click.echo(f"written: {out / 'results.json'}, {out / 'results.md'}")
    sys.exit(1 if harness.failures else 0)


if __name__ == "__main__":
    main()
