"""`Plan`: how DuckDB answers a query, and what reaches each array."""

import functools
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays.array import Array
from ..datasets.dataset import ArrayDataset
from ..datasets.source import Scanned
from ..query.condition import Expression

_SHOWN = ("fragments_pruned", "tiles_pruned", "blocks_rejected", "blocks_decoded", "bytes_fetched", "cells_returned")
_SCAN = "PYTHON_ARROW_SCAN"
_INFO = (
    "Array",
    "Projections",
    "Filters",
    "Expression",
    "Groups",
    "Aggregates",
    "Conditions",
    "Join Type",
    "Order By",
    "Table",
    "Condition",
    "Counters",
)


@dataclass(frozen=True)
class ArrayScan:
    """One scan of an array.

    Args:
        table: the array's name in the query.
        columns: those that are read; None: all, or not known before the query runs.
        where: the condition that the array is read with, as a text; None: none.
        stats: counters of the scan; empty unless the query ran.
    """

    table: str
    columns: tuple[str, ...] | None
    where: str | None
    stats: Mapping[str, int]

    def __str__(self) -> str:
        read = "" if self.columns is None else f"reads {', '.join(self.columns) or 'no column'}; "
        found = f"{self.table}: {read}{'no condition' if self.where is None else f'where {self.where}'}"
        counters = [f"{self.stats[name]:,} {name}" for name in _SHOWN if name in self.stats]
        return f"{found}; {', '.join(counters)}" if counters else found


@dataclass(frozen=True)
class Plan:
    """How a query is answered; `print(plan)` shows it.

    Args:
        tree: DuckDB's plan, a mapping for each step: `name`, `extra_info`, `children`; with "analyze" rows and times.
            Steps that read arrays have three entries more in `extra_info`: `Array`, its name; `Condition`, what it is
            read with; `Counters`, with "analyze", what was pruned and read.
        scans: what reaches each array, in the order of the tree.
    """

    tree: Sequence[Mapping[str, Any]]
    scans: tuple[ArrayScan, ...]

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps({"plan": self.tree, "scans": [_plain(scan) for scan in self.scans]}, ensure_ascii=False)

    def __str__(self) -> str:
        lines = [line for node in self.tree for line in _lines(node, 0)]
        return "\n".join([*lines, "", "Arrays:" if self.scans else "No array is read.", *map(_indented, self.scans)])


def _indented(scan: ArrayScan) -> str:
    return f"  {scan}"


def _plain(scan: ArrayScan) -> dict[str, Any]:
    columns = None if scan.columns is None else list(scan.columns)
    return {"table": scan.table, "columns": columns, "where": scan.where, "stats": dict(scan.stats)}


def _lines(node: Mapping[str, Any], depth: int) -> Iterator[str]:
    told = node.get("extra_info") or {}
    parts = [f"{name.lower()}: {_joined(told[name])}" for name in _INFO if told.get(name)]
    for name, text in (("intermediate_rows", "rows"), ("timing", "s")):
        if name in node:
            parts.append(f"{node[name]:.4f} s" if text == "s" else f"{node[name]:,} rows")
    yield f"{'  ' * depth}{node.get('name', '').strip()}" + (f"  ({'; '.join(parts)})" if parts else "")
    for child in node.get("children", ()):
        yield from _lines(child, depth + 1)


def _joined(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{value[name]:,} {name}" for name in _SHOWN if name in value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def plan_of_condition(array: Array, condition: str, *, analyze: bool) -> Plan:
    """The plan of a question for the cells of a condition, which reaches the array as it is.

    Raises:
        InputError: the condition does not fit the schema.
    """
    parsed = Expression.parse(condition)
    parsed._condition.check(array.schema.to_json())
    stats: dict[str, int] = {}
    if analyze:
        stream = array.scan(where=parsed)
        for _ in stream:
            pass
        stats = stream.stats
    return Plan([], (ArrayScan(array.uri, None, repr(parsed), stats),))


def scans_of(
    tree: Sequence[Mapping[str, Any]],
    datasets: Mapping[str, ArrayDataset],
    scanned: Sequence[tuple[str, Scanned]] | None,
) -> tuple[ArrayScan, ...]:
    """The scans of arrays in a plan, whose steps are told of them.

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
    """What is told of each step that reads from Python."""
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
