"""`Plan`: how DuckDB answers a query, and what reaches each array."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays.array import Array
from ..query.condition import Expression

_SHOWN = ("fragments_pruned", "tiles_pruned", "blocks_rejected", "bytes_fetched", "cells_returned")
_INFO = ("Projections", "Filters", "Expression", "Groups", "Aggregates", "Conditions", "Join Type", "Order By", "Table")


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
        scans: what reaches each array.
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
