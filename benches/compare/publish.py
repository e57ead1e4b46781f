"""The tables in the documentation: what lies between two markers is replaced, and nothing else."""

from pathlib import Path
from typing import Any

import report

_ROOT = Path(__file__).parents[2]


class MarkerError(Exception):
    """A document has lost a marker."""


def publish(results: dict[str, Any], root: Path = _ROOT) -> list[Path]:
    """Writes all tables into docs/performance.md; `front.py` writes the README's."""
    page = root / "docs" / "performance.md"
    text = f"{_when(results['disclosure'])}\n\n{report.markdown(results)}"
    page.write_text(replace(page.read_text(encoding="utf-8"), text, page.name), encoding="utf-8")
    return [page]


def replace(document: str, text: str, name: str, marker: str = "figures") -> str:
    """The document with `text` between its markers.

    Raises:
        MarkerError: not exactly one pair of markers.
    """
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise MarkerError(f"{name} needs one {begin} and, after it, one {end}")
    before, _, rest = document.partition(begin)
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{rest.partition(end)[2]}"


def _when(told: dict[str, Any]) -> str:
    return (
        f"Medians of {told['repeats']} run(s) at scale {told['scale']:g}, {told['date'][:10]}: {told['cpu']}, "
        f"{told['memory']}, {told['kernel']}, {told['filesystem']}; code: {told['code']}. {report.NOTES}"
    )
