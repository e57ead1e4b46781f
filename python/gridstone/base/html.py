"""What notebooks show of schemas, arrays, groups, results, and what advice, comparisons and merges tell."""

import json
from collections.abc import Iterable, Sequence
from html import escape as escaped
from typing import TYPE_CHECKING

from ..column import datatype
from ..result.cells import preview
from ..schema.array_schema import Schema
from ..version.history import time_text
from .printable import printable

if TYPE_CHECKING:
    from ..advice.advise import Advice
    from ..arrays.array import Array
    from ..compare.diff import Difference, Example
    from ..maintain.consolidation import Consolidation
    from ..maintain.health import Damage, Report
    from ..result.cells import Result
    from ..stores.group import Group

_FRAGMENTS_MAX = 10


def escape(text: str) -> str:
    """Text in HTML."""
    return escaped(printable(text))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with every cell escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def schema(shown: Schema) -> str:
    """Dimensions and attributes as two tables."""
    dims = [
        (
            d.name,
            d.dtype,
            *(("", f"{d.max_bytes} bytes") if d.is_text else (datatype.show(end, d.dtype) for end in d.domain)),
            "whole" if d.tile is None else d.tile,
        )
        for d in shown.dims
    ]
    attrs = [
        (
            a.name,
            a.described,
            "yes" if a.nullable else "no",
            datatype.show(a.fill, a.dtype),
            f"{a.filters} (lossy)" if a.lossy else a.filters,
        )
        for a in shown.attrs
    ]
    title = f"{'Sparse' if shown.sparse else 'Dense'} schema"
    return (
        f"<div><b>{title}</b> <small>{escape(shown._options_text())}</small>"
        + table(("dimension", "type", "from", "to", "tile"), dims)
        + table(("attribute", "type", "nullable", "fill", "filters"), attrs)
        + "</div>"
    )


def array(shown: "Array") -> str:
    """Place and version, then the schema."""
    if shown._native is None:
        return f"<div><b>gridstone.Array</b> {escape(shown.uri)} (closed)</div>"
    place = escape(shown.uri if shown.path == "/" else f"{shown.uri} {shown.path}")
    when = time_text(shown.native.timestamp_us)
    head = f"<b>gridstone.Array</b> {place}, version {shown.version} ({when})"
    return f"<div>{head}{schema(shown.schema)}{_fragments(shown)}</div>"


def _fragments(shown: "Array") -> str:
    """How many fragments there are, and the newest of them."""
    found = [json.loads(text) for text in shown.native.fragments()]
    rows = [
        (
            one["kind"],
            one["version"],
            f"{one['cells']:,}",
            f"{one['bytes']:,}",
            " x ".join(f"{lo}..{hi}" for lo, hi in one["domain"]),
        )
        for one in found[-_FRAGMENTS_MAX:]
    ]
    cells, size = (sum(one[key] for one in found) for key in ("cells", "bytes"))
    title = f"<small>{len(found):,} fragments, {cells:,} cells, {size:,} bytes"
    title += f"; the newest {len(rows)}:</small>" if len(rows) < len(found) else "</small>"
    return title + (table(("kind", "version", "cells", "bytes", "box"), rows) if rows else "")


def group(shown: "Group") -> str:
    """Place and version, then the children."""
    path, state, children = shown._shown()
    place = escape(shown.uri if path == "/" else f"{shown.uri} {path}")
    rows = [(entry.name, entry.kind, entry.path) for entry in children or ()]
    listed = "" if children is None else table(("name", "kind", "path"), rows)
    return f"<div><b>gridstone.Group</b> {place}, {state}{listed}</div>"


def report(shown: "Report") -> str:
    """What was looked at, then what is damaged."""
    title, verdict = str(shown).splitlines()[:2]
    head = f"<div><b>gridstone.Report</b> {escape(title)}: <b>{escape(verdict)}</b>"
    if shown.ok:
        return f"{head}</div>"
    rows = [(one.object or "", _pairs(one.versions), _cells(one), one.message) for one in shown.damage]
    return f"{head}{table(('object', 'versions', 'cells', 'what'), rows)}</div>"


def _pairs(spans: Iterable[tuple[object, object]]) -> str:
    return ", ".join(f"{low}..{high}" for low, high in spans)


def _cells(damage: "Damage") -> str:
    """Which cells cannot be read."""
    boxes = []
    for part in damage.affected:
        named = [part.array, part.fragment, None if part.tile is None else f"tile {part.tile}", part.attribute]
        box = " x ".join(f"{low}..{high}" for low, high in part.domain)
        boxes.append(f"{' '.join(name for name in named if name is not None)}: {box}")
    return "; ".join(boxes)


def result(shown: "Result") -> str:
    """The columns with their first and last values."""
    rows = []
    for name, values in shown.to_numpy().items():
        rows.append((name, values.dtype, values.shape, preview(values)))
    return (
        f"<div><b>gridstone.Result</b> {len(shown):,} cells{table(('column', 'type', 'shape', 'values'), rows)}</div>"
    )


def _lines(lines: Iterable[str]) -> str:
    """Lines of text below each other."""
    return "".join(f"<br>{escape(line)}" for line in lines)


def advice(shown: "Advice") -> str:
    """Why the schema is proposed, what was measured, and the code that makes it."""
    rows = [
        (
            trial.what,
            trial.candidate,
            f"{trial.bytes:,}",
            "" if trial.blocks is None else f"{trial.blocks:.1f}",
            "" if trial.fetched is None else f"{trial.fetched:,.0f}",
            "chosen" if trial.chosen else "",
        )
        for trial in shown.trials
    ]
    measured = table(("choice", "candidate", "bytes", "blocks a box", "bytes a box", ""), rows) if rows else ""
    return f"<div><b>gridstone.Advice</b>{_lines(shown.reasons)}{measured}<pre>{escape(shown.code)}</pre></div>"


def difference(shown: "Difference") -> str:
    """How much differs, then which parts of the schemas and some of the cells."""
    head = [f"a: {shown.a}", f"b: {shown.b}", "nothing differs" if shown.equal else _counts(shown)]
    parts = [f"<div><b>gridstone.Difference</b>{_lines(head)}"]
    if shown.schema:
        rows = [(one.what, "" if one.a is None else one.a, "" if one.b is None else one.b) for one in shown.schema]
        parts.append(table(("schema", "a", "b"), rows))
    counts = [(name, f"{count:,}") for name, count in shown.values.items() if count]
    parts.append(table(("attribute", "cells that differ"), counts) if counts else "")
    parts.append(table(("cell", "a", "b"), map(_example, shown.examples)) if shown.examples else "")
    return f"{''.join(parts)}</div>"


def _counts(shown: "Difference") -> str:
    if not shown.compared:
        return "the cells cannot be compared: the arrays are of different kinds"
    return (
        f"{shown.same:,} cells are the same, {shown.different:,} differ, {shown.only_a:,} are only in a, "
        f"{shown.only_b:,} only in b"
    )


def _example(shown: "Example") -> tuple[str, str, str]:
    ends = [
        "" if values is None else ", ".join(f"{name}={value}" for name, value in values.items())
        for values in (shown.coords, shown.a, shown.b)
    ]
    return ends[0], ends[1], ends[2]


def consolidation(shown: "Consolidation") -> str:
    """What was merged, or would be, then each merge."""
    rows = [
        (
            merge.kind,
            f"{merge.fragments:,}",
            f"{merge.cells:,}",
            f"{merge.bytes_read:,}",
            _made(merge.fragments_written, merge.fragments_expected),
            _made(merge.bytes_written, merge.bytes_expected),
        )
        for merge in shown.merges
    ]
    header = ("kind", "fragments", "cells", "bytes read", "fragments written", "bytes written")
    told = _lines(str(shown).splitlines())
    return f"<div><b>gridstone.Consolidation</b>{told}{table(header, rows) if rows else ''}</div>"


def _made(written: int | None, expected: int) -> str:
    return f"about {expected:,}" if written is None else f"{written:,}"
