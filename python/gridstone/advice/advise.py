"""Advice on a schema, from a sample of the data, and on an array that exists, from what it has stored.

Every figure is measured: the sample is written to a store in memory under each candidate, and boxes are read from it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import html
from ..base.arguments import checked, several
from ..column import datatype
from ..context.settings import Context, default
from ..errors import InputError
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim

if TYPE_CHECKING:
    from ..arrays.array import Array
    from .sample import Sample

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
    """Of an array that exists."""
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


@checked(queries=several)
def advise(
    data: Any,
    *,
    dims: Sequence[str] | None = None,
    queries: Queries | None = None,
    sample: int = 100_000,
    context: Context | None = None,
) -> Advice:
    """Proposes a schema for data, or looks at how an array is stored.

    Args:
        data: a CSV, Parquet, Arrow IPC or .npy file; an Arrow table or data frame; an ndarray; an `Array`, or the place
            of a store that holds one.
        dims: the columns of a table that are dimensions; None: guessed, and said why.
        queries: boxes that are going to be read, `{dim: (lo, hi)}` each, for which the order, the tiles and the
            capacity are chosen; None: random boxes that hold about a hundredth of the cells, of several shapes.
        sample: so many cells are measured, about.
        context: budget and threads; None: the process's default.

    Raises:
        InputError: there is nothing to look at, it cannot be read, or no column can be a dimension.
        UnsupportedError: a column that no array can hold.
    """
    from ..arrays.array import Array
    from . import trials
    from .sample import of_array, of_data

    used = context or default()
    check(sample > 0, f"sample= is a positive number of cells, not {sample}")
    array = data if isinstance(data, Array) else _array_at(data, used)
    taken = of_array(array, sample) if array is not None else of_data(data, dims, sample)
    found = trials.run(taken, queries, used)
    if array is not None:
        found.health = trials.health(array, queries, used)
        found.reasons += _health_reasons(found.health, array)
    return found


def _array_at(data: Any, context: Context) -> "Array | None":
    from ..stores import store

    if not isinstance(data, str | os.PathLike):
        return None
    return store.open_array(data, context=context) if store.exists(data, context=context) else None


def _health_reasons(health: Health, array: "Array") -> list[str]:
    reasons = [
        f"it has {health.fragments:,} fragments with {health.tiles:,} data tiles; "
        f"a box touches {health.touched:.1f} fragments"
    ]
    if health.fullness is not None:
        overlap = "" if health.overlap is None else f", and the MBR of one meets {health.overlap:.2f} others"
        reasons.append(f"data tiles are {health.fullness:.0%} full{overlap}")
    if health.merged_fragments < health.fragments:
        reasons.append(
            f'consolidate("all") would make {health.merged_fragments:,} fragments of them, '
            f"reading {health.merge_bytes:,} bytes"
        )
    fit = "fits" if health.fits else "does not fit"
    reasons.append(
        f"the largest tile takes {health.tile_bytes:,} bytes in memory: one for each of "
        f"{array.context.threads} threads {fit} a quarter of the memory budget of {array.context.memory_budget:,} bytes"
    )
    return reasons


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


def _literal(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return f"np.datetime64({int(value.astype(np.int64))}, {np.datetime_data(value)[0]!r})"
    if isinstance(value, np.timedelta64):
        return f"np.timedelta64({int(value.astype(np.int64))}, {np.datetime_data(value)[0]!r})"
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


def reasons_for(sample: "Sample") -> list[str]:
    """What was found out before anything was measured."""
    some = f"{sample.rows:,} of about {sample.rows_total:,}"
    seen = some if sample.rows_total > sample.rows else f"all {sample.rows:,}"
    return [f"looked at {seen} cells of {sample.name}", *sample.reasons]
