"""What reaches each array of a query of DuckDB, told to the steps of its plan."""

import functools
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..datasets.dataset import ArrayDataset
from ..datasets.source import Scanned
from ..result.plan import ArrayScan

_SCAN = "PYTHON_ARROW_SCAN"


def scans_of(
    tree: Sequence[Mapping[str, Any]],
    datasets: Mapping[str, ArrayDataset],
    scanned: Sequence[tuple[str, Scanned]] | None,
) -> tuple[ArrayScan, ...]:
    """The scans of arrays in a plan, whose steps get to know them.

    DuckDB names no table in such a step. An array is known by the number of rows that it gave the planner.

    Args:
        tree: the plan.
        datasets: the arrays by name.
        scanned: the scans of the query that ran, as they began; None: it did not run.
    """
    marks = {str(data._cells.rows() + data.rows_added): name for name, data in datasets.items()}
    left, found = list(scanned or ()), []
    for told in _scan_steps(tree):
        name = marks.get(str(told.get("Estimated Cardinality")), next(iter(datasets)) if len(datasets) == 1 else None)
        if name is None:
            continue
        columns, conditions = _listed(told.get("Projections")), datasets[name].offered
        parts = [conditions[text] for text in _listed(told.get("Filters")) if text in conditions]
        where, stats = repr(functools.reduce(operator.and_, parts)) if parts else None, dict[str, int]()
        one = _begun(left, name, columns)
        if one is not None:
            left.remove(one)
            where, stats = _where(one[1]), dict(one[1].stats)
        told |= {
            "Array": name,
            **({} if where is None else {"Condition": where}),
            **({"Counters": stats} if stats else {}),
        }
        found.append(ArrayScan(name, tuple(columns), where, stats))
    # A scan that fits no step is not left out.
    return (*found, *(ArrayScan(name, _columns(one), _where(one), one.stats) for name, one in left))


def _columns(scan: Scanned) -> tuple[str, ...] | None:
    return None if scan.columns is None else tuple(scan.columns)


def _where(scan: Scanned) -> str | None:
    return None if scan.where is None else repr(scan.where)


def _begun(scans: Sequence[tuple[str, Scanned]], name: str, columns: Sequence[str]) -> tuple[str, Scanned] | None:
    """The first scan of that array with these columns, or else of that array."""
    of_array = [one for one in scans if one[0] == name]
    same = [one for one in of_array if set(one[1].columns or ()) == set(columns)]
    return next(iter([*same, *of_array]), None)


def _scan_steps(tree: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The details of each step that reads from Python."""
    for node in tree:
        if str(node.get("name", "")).strip() == _SCAN:
            yield node["extra_info"]
        yield from _scan_steps(node.get("children", ()))


def _listed(value: Any) -> list[str]:
    """One text, or several."""
    return [] if not value else [value] if isinstance(value, str) else list(value)


def tree_of(text: str) -> list[Mapping[str, Any]]:
    """The steps of a plan that DuckDB gave as JSON."""
    found = json.loads(text)
    if isinstance(found, list):
        return found
    steps = found.get("operator", found.get("children", []))
    # The steps that only carry the plan out say nothing about the query.
    while len(steps) == 1 and steps[0].get("name") in ("RESULT_COLLECTOR", "EXPLAIN_ANALYZE"):
        steps = steps[0].get("children", [])
    return list(steps)
