"""The result of `advise`: a schema, the reasons for it, what was measured, and the code that makes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base import html
from ..column import datatype
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim

Queries = Sequence[Mapping[str, Any]]
"""Boxes as `read` takes them: what the array is going to be asked for."""


@dataclass(slots=True)
class Trial:
    """What came out of one candidate."""

    what: str
    """ "order", "capacity", "filters of v", "tile" or "kind"."""
    candidate: str
    bytes: int
    """That the sample takes, all of it or, of filters, the attribute."""
    blocks: float | None = None
    """Blocks decoded by a box, on average."""
    fetched: float | None = None
    """Bytes fetched by a box, on average."""
    chosen: bool = False


@dataclass(slots=True)
class Health:
    """How an array that exists is stored."""

    fragments: int
    tiles: int
    fullness: float | None
    """Cells of a data tile, as a part of the capacity; None of a dense array."""
    overlap: float | None
    """Other tiles whose MBR meets a tile's, on average; None of a dense array, or of too many tiles to compare."""
    touched: float
    """Fragments that a box touches, on average."""
    merged_fragments: int
    """Fragments after `consolidate("all")`, about."""
    merge_bytes: int
    """Bytes that this reads, at most."""
    tile_bytes: int
    """Bytes of the largest data tile in memory."""
    fits: bool
    """Whether the tiles that the threads work on fit a quarter of the memory budget."""


@dataclass(slots=True)
class Advice:
    """A schema, why it is proposed, and what was measured."""

    schema: Schema
    reasons: list[str] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    health: Health | None = None
    """How the array is stored, if it exists."""
    rows: int = 0
    """Cells of the sample."""
    rows_total: int = 0
    """Cells in all, about."""

    @property
    def code(self) -> str:
        """Python that creates the schema."""
        return code_of(self.schema)

    def __str__(self) -> str:
        lines = list(self.reasons)
        for trial in self.trials:
            figures = f"{trial.bytes:,} bytes"
            figures += (
                "" if trial.blocks is None else f", {trial.blocks:.1f} blocks and {trial.fetched:,.0f} bytes a box"
            )
            lines.append(f"  {trial.what}: {trial.candidate}: {figures}{'  <- chosen' if trial.chosen else ''}")
        return "\n".join([*lines, "", self.code])

    def __repr__(self) -> str:
        kind = "sparse" if self.schema.sparse else "dense"
        names = ", ".join([*(dim.name for dim in self.schema.dims), *(attr.name for attr in self.schema.attrs)])
        return (
            f"<gridstone.Advice: a {kind} schema of {names}; {len(self.trials):,} candidates measured on "
            f"{self.rows:,} cells>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (
                trial.what,
                trial.candidate,
                f"{trial.bytes:,}",
                "" if trial.blocks is None else f"{trial.blocks:.1f}",
                "" if trial.fetched is None else f"{trial.fetched:,.0f}",
                "chosen" if trial.chosen else "",
            )
            for trial in self.trials
        ]
        header = ("choice", "candidate", "bytes", "blocks a box", "bytes a box", "")
        measured = html.table(header, rows) if rows else ""
        code = html.escape(self.code)
        return f"<div><b>gridstone.Advice</b>{html.lines(self.reasons)}{measured}<pre>{code}</pre></div>"


def code_of(schema: Schema) -> str:
    """Python that makes the schema."""
    lines = ["import gridstone as gs", "import numpy as np", "", "schema = gs.Schema(", "    dims=["]
    lines += [f"        {_dim(dim)}," for dim in schema.dims]
    lines += ["    ],", "    attrs=["]
    lines += [f"        {_attr(attr)}," for attr in schema.attrs]
    lines.append("    ],")
    if schema.sparse:
        lines += ["    sparse=True,", f"    capacity={schema.capacity},", f"    duplicates={schema.duplicates},"]
        lines.append(f"    coord_filters={_filters(schema.coord_filters)},")
    lines += [f"    tile_order={schema.tile_order!r},", f"    cell_order={schema.cell_order!r},", ")"]
    return "\n".join(lines)


def _dim(dim: Dim) -> str:
    if dim.is_text:
        return f"gs.Dim({dim.name!r}, dtype='string', max_bytes={dim.max_bytes})"
    lo, hi = (_literal(bound) for bound in dim.domain)
    tile = "None" if dim.tile is None else _literal(dim.tile)
    return f"gs.Dim({dim.name!r}, ({lo}, {hi}), {tile}, {dim.dtype!r})"


def _attr(attr: Attr) -> str:
    parts = [repr(attr.name), repr(attr.dtype), f"nullable={attr.nullable}"]
    known = attr.categories
    if known is not None:
        parts += [f"categories=[{', '.join(map(_literal, known))}]", f"ordered={attr.ordered}", f"codes={attr.codes!r}"]
    blank = known[0] if known else datatype.default_fill(attr.dtype)
    if repr(attr.fill) != repr(blank):
        parts.append(f"fill={_literal(attr.fill)}")
    return f"gs.Attr({', '.join(parts)}, filters={_filters(attr.filters)})"


def _filters(text: Any) -> str:
    parts = str(text).split(",") if isinstance(text, str) else list(text)
    return repr(parts[0] if len(parts) == 1 else [part.strip() for part in parts])


def _step(value: Any) -> str:
    unit, count = np.datetime_data(value)
    return unit if count == 1 else f"{count}{unit}"


def _literal(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return f"np.datetime64({int(value.astype(np.int64))}, {_step(value)!r})"
    if isinstance(value, np.timedelta64):
        return f"np.timedelta64({int(value.astype(np.int64))}, {_step(value)!r})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))},)" if value else "()"
    if isinstance(value, complex | np.complexfloating):
        return f"complex({_literal(float(value.real))}, {_literal(float(value.imag))})"
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value.item() if isinstance(value, np.generic) else value)


def check(condition: bool, message: str) -> None:
    """An `InputError` that says `message` unless `condition` holds."""
    if not condition:
        raise InputError(message)
