"""`Plan`: how a question is answered, and what reaches each array."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SHOWN = (
    "fragments_pruned",
    "tiles_pruned",
    "tiles_from_index",
    "tiles_read",
    "blocks_rejected",
    "blocks_decoded",
    "pages_fetched",
    "bytes_fetched",
    "bytes_spilled",
    "cells_returned",
)
_ALWAYS = ("fragments_pruned", "tiles_pruned", "bytes_fetched", "cells_returned")
"""Counters that are shown where they are 0 too."""
_INFO = (
    "Array",
    "Projections",
    "Filters",
    "Expression",
    "Groups",
    "Aggregates",
    "Axes",
    "Having",
    "Conditions",
    "Join Type",
    "Order By",
    "Limit",
    "Table",
    "Box",
    "Condition",
    "Counters",
)


@dataclass(frozen=True)
class ArrayScan:
    """One scan of an array.

    Args:
        table: the array's name in the query, or its store and path.
        columns: those that are read; None: all, or not known before the query runs.
        where: the condition that the array is read with, as a text; None: none.
        stats: counters of the scan; empty unless the question was answered.
        planned: what is known before a cell is read; empty for a query in SQL. `fragments` and `cells` are what the
            array holds, `fragments_planned`, `tiles_planned` and `cells_planned` what the box and the condition's
            bounds along dimensions leave. `tiles_from_index_max`: so many tiles at most need no read.
    """

    table: str
    columns: tuple[str, ...] | None
    where: str | None
    stats: Mapping[str, int]
    planned: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        read = "" if self.columns is None else f"reads {', '.join(self.columns) or 'no column'}; "
        found = f"{self.table}: {read}{'no condition' if self.where is None else f'where {self.where}'}"
        counters = _counted(self.stats)
        if not self.planned:
            return f"{found}; {counters}" if counters else found
        lines = [found, f"planned: {_planned(self.planned)}", *([f"answered: {counters}"] if counters else [])]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Plan:
    """How a question is answered; `print(plan)` shows it. Made by `gridstone.sql(…, explain=True)` and `Array.explain`.

    Args:
        tree: the steps, the last one first: a mapping for each, `name`, `extra_info`, `children`. For SQL it is
            DuckDB's plan, with "analyze" with rows and times. Its steps that read arrays have three entries more in
            `extra_info`: `Array`, its name; `Condition`, what it is read with; `Counters`, with "analyze", what was
            pruned and read.
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
    return "\n".join(f"  {line}" for line in str(scan).splitlines())


def _plain(scan: ArrayScan) -> dict[str, Any]:
    columns = None if scan.columns is None else list(scan.columns)
    told = {"table": scan.table, "columns": columns, "where": scan.where, "stats": dict(scan.stats)}
    return {**told, "planned": dict(scan.planned)} if scan.planned else told


def _planned(planned: Mapping[str, int]) -> str:
    """What a plan knows, in words."""
    fragments = f"{planned['fragments_planned']:,} of {planned['fragments']:,} fragments"
    tiles = f"{planned['tiles_planned']:,} tiles"
    cells = f"at most {planned['cells_planned']:,} of {planned['cells']:,} cells"
    known = planned.get("tiles_from_index_max")
    index = () if known is None else (f"at most {known:,} tiles from the index" if known else "no tile from the index",)
    return "; ".join([fragments, tiles, cells, *index])


def _counted(stats: Mapping[str, int]) -> str:
    shown = (name for name in _SHOWN if name in stats and (stats[name] or name in _ALWAYS))
    return ", ".join(f"{stats[name]:,} {name}" for name in shown)


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
        return _counted(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
