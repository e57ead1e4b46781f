"""The command that runs the comparison benchmark, which is part of a checkout and not of the wheel."""

import subprocess
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import click

_PROGRAM = Path("benches") / "compare"


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def bench(options: tuple[str, ...]) -> int:
    """Measure beside what else a user would pick (needs a checkout; --help shows its options)."""
    found = _program(chain(_upwards(Path.cwd()), _upwards(Path(__file__).resolve().parent)))
    if found is None:
        raise click.ClickException(
            f"found no {_PROGRAM} in or above {Path.cwd()}: the benchmark is part of Gridstone's source, not of the "
            "installed package; get the repository, install the peers with pip install 'gridstone[bench]', and run "
            "gridstone bench inside it"
        )
    return subprocess.run([sys.executable, str(found), *options], check=False).returncode


def _upwards(folder: Path) -> Iterable[Path]:
    return (folder, *folder.parents)


def _program(roots: Iterable[Path]) -> Path | None:
    """The benchmark of the first root that is a checkout of Gridstone, not of something that has such a folder too."""
    for root in roots:
        project, program = root / "pyproject.toml", root / _PROGRAM
        there = (program / "__main__.py").is_file() and project.is_file()
        if there and 'name = "gridstone"' in project.read_text(encoding="utf-8"):
            return program
    return None


COMMANDS: tuple[click.Command, ...] = (bench,)
