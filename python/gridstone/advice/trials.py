"""Measures candidates: writes a sample to a store in memory under each of them, and reads boxes from it."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..base.printable import brief
from ..column import datatype
from ..context.settings import Context
from ..query.box import box_of
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..stores import store
from . import tile_overlap
from .report import Advice, Health, Queries, Trial, check
from .sample import Sample, bounds, reasons_for, texts_of

_BOXES = 24
_SHARES = (0.001, 0.01, 0.05)
"""Parts of the domain that random boxes take."""
_SEED = 2016
_CAPACITIES = (1_000, 10_000, 100_000)
_WORTH = 0.95
"""What is not at least so much better than the default is not chosen instead of it."""
_ATTRS_MAX = 16
_TASKS = 4
"""A tile under way takes its cells decoded, and encoded, and merged."""

_Bounds = dict[str, tuple[Any, Any]]


def run(sample: Sample, queries: Queries | None, context: Context) -> Advice:
    """The schema for a sample, from what candidates come to."""
    # Blocks that one box left in a cache would make those that are read after it look better.
    context = Context(context.memory_budget, context.threads, cache=0)
    advice = Advice(sample.schema, reasons_for(sample), rows=sample.rows, rows_total=sample.rows_total)
    boxes = _given(sample, queries) if queries is not None else list(_random(sample))
    if sample.schema.sparse:
        _choose_order(sample, boxes, advice, context)
        _choose_capacity(replace(sample, schema=advice.schema), boxes, advice, context)
    else:
        _choose_tile(sample, boxes, advice, context)
    _choose_filters(replace(sample, schema=advice.schema), advice, context)
    return advice


@contextmanager
def _written(sample: Sample, schema: Schema, context: Context) -> "Iterator[Array]":
    """The sample in a store in memory."""
    uri = f"mem://advice-{uuid.uuid4().hex}"
    try:
        array = store.create(uri, schema, context=context)
        if schema.sparse:
            import pyarrow as pa

            names = [dim.name for dim in schema.dims] + [attr.name for attr in schema.attrs]
            array.write_cells(pa.table({name: sample.columns[name] for name in names}), dedup="error")
        else:
            array.write({attr.name: sample.columns[attr.name] for attr in schema.attrs})
        yield array
    finally:
        if store.exists(uri, context=context):
            store.delete(uri, context=context)


def _measured(sample: Sample, schema: Schema, boxes: list[_Bounds], context: Context, what: str, name: str) -> Trial:
    with _written(sample, schema, context) as array:
        size = sum(row["bytes"] for row in array.fragments.to_pylist())
        stats = [array.read(box, order="any").stats for box in boxes]
    mean = {
        key: float(np.mean([s[key] for s in stats])) if stats else 0.0 for key in ("blocks_decoded", "bytes_decoded")
    }
    columns = len(schema.attrs) + (schema.ndim if schema.sparse else 0)
    return Trial(what, name, size, mean["blocks_decoded"] / max(1, columns), mean["bytes_decoded"])


def _best(trials: list[Trial], figure: str, advice: Advice) -> int:
    """The first, which is the default, unless another is worth it; told."""
    figures = [getattr(trial, figure) for trial in trials]
    least = min(range(len(trials)), key=lambda i: figures[i])
    best = least if figures[least] < _WORTH * figures[0] else 0
    trials[best].chosen = True
    advice.trials += trials
    return best


def _random(sample: Sample) -> "Iterator[_Bounds]":
    """Boxes around cells of the sample, of several sizes and shapes: cubes, and slabs thin in one dimension."""
    random = np.random.default_rng(_SEED)
    dims = sample.schema.dims
    sparse = sample.schema.sparse
    ends = bounds(sample) if sparse else [(0, n - 1) for n in sample.shape]
    texts = {dim.name: texts_of(sample, dim.name) for dim in dims if dim.is_text}
    for number in range(_BOXES):
        share = _SHARES[number % len(_SHARES)]
        thin = None if number % 2 == 0 or len(dims) == 1 else int(random.integers(len(dims)))
        side = share ** (1 / len(dims))
        box: _Bounds = {}
        for axis, (dim, (lo, hi)) in enumerate(zip(dims, ends, strict=True)):
            part = (
                side * side
                if axis == thin
                else side ** (1 if thin is None else (len(dims) - 2) / max(1, len(dims) - 1))
            )
            width = (hi - lo) * min(1.0, part)
            low = lo + (hi - lo - width) * float(random.random())
            if datatype.is_float(dim.dtype):
                box[dim.name] = (max(lo, low), min(hi, low + width))
            else:
                first = max(int(lo), int(low))
                last = min(int(hi), first + int(width))
                held = texts.get(dim.name)
                box[dim.name] = (held[first], held[last]) if held else _typed(dim, first, last, sparse)
        yield box


def _typed(dim: Dim, low: int, high: int, sparse: bool) -> tuple[Any, Any]:
    """The ends of a box in a dimension's type; those of a dense sample count from the low end of the domain."""
    base = 0 if sparse else datatype.ticks_of(dim.reach[0])
    pair = (low + base, high + base)
    if datatype.is_time(dim.dtype):
        first, last = (datatype.from_text(dim.dtype, str(end)) for end in pair)
        return first, last
    return pair


def _given(sample: Sample, queries: Queries) -> list[_Bounds]:
    """The boxes asked for; of a dense array as they lie in the part that is measured."""
    found: list[_Bounds] = []
    for query in queries:
        check(isinstance(query, Mapping), f"queries= takes boxes, {{dim: (low, high)}} each, found {brief(query)}")
        box = box_of(sample.schema, query)
        check(not box.empty, f"queries= has the box {brief(query)}, which holds no coordinate; leave it out")
        ends = list(box.bounds)
        for axis, size in enumerate(sample.shape):
            first = datatype.ticks_of(sample.schema.dims[axis].domain[0])
            width = min(int(ends[axis][1]) - int(ends[axis][0]), size - 1)
            low = min(int(ends[axis][0]), first + size - 1 - width)
            ends[axis] = (low, low + width)
        plain = {d.name: (_plain(d, lo), _plain(d, hi)) for d, (lo, hi) in zip(box.dims, ends, strict=True)}
        texts = {d.name: query.get(d.name, slice(None)) for d in box.dims if d.is_text}
        found.append({**plain, **texts})
    return found


def _plain(dim: Dim, bound: Any) -> Any:
    return datatype.from_text(dim.dtype, str(int(bound))) if datatype.is_time(dim.dtype) else bound


def _untiled(dim: Dim) -> Dim:
    return dim if dim.is_text else Dim(dim.name, dim.domain, None, dim.dtype)


def _with(schema: Schema, **changes: Any) -> Schema:
    kept = {name: getattr(schema, name) for name in ("tile_order", "cell_order", "sparse", "capacity", "duplicates")}
    kept["coord_filters"] = schema.coord_filters
    dims, attrs = changes.pop("dims", schema.dims), changes.pop("attrs", schema.attrs)
    return Schema(dims, attrs, **{**kept, **changes})


def _choose_order(sample: Sample, boxes: list[_Bounds], advice: Advice, context: Context) -> None:
    """Row order in tiles, or without, or along a Hilbert curve (with texts, which have none, column order): whichever
    lets boxes touch the fewest blocks."""
    schema = sample.schema
    whole, texts = [_untiled(dim) for dim in schema.dims], any(dim.is_text for dim in schema.dims)
    candidates = [("row order in space tiles", schema)]
    if not all(dim.is_text for dim in schema.dims):
        candidates.append(("row order, one space tile", _with(schema, dims=whole)))
    if schema.cell_order != "row":
        candidates.append(("row order in space tiles", _with(schema, cell_order="row")))
        candidates[0] = (f"{schema.cell_order} order, as it is", schema)
    if schema.ndim > 1 and not texts:
        candidates.append(("a Hilbert curve", _with(schema, dims=whole, cell_order="hilbert")))
    if schema.ndim > 1 and texts and schema.cell_order != "col":
        candidates.append(("column order, one space tile", _with(schema, dims=whole, cell_order="col")))
    scaled = max(64, round(schema.capacity * sample.rows / max(1, sample.rows_total)))
    trials = [_measured(sample, _with(s, capacity=scaled), boxes, context, "order", name) for name, s in candidates]
    best = _best(trials, "fetched", advice)
    advice.schema = candidates[best][1]
    advice.reasons.append(
        f"{candidates[best][0]}: a box decodes {trials[best].fetched:,.0f} bytes, "
        f"{', '.join(f'{t.fetched:,.0f} in {t.candidate}' for i, t in enumerate(trials) if i != best)}"
    )


def _choose_capacity(sample: Sample, boxes: list[_Bounds], advice: Advice, context: Context) -> None:
    """Cells of a data tile. The sample is what it is: tiles larger than it say nothing."""
    schema = sample.schema
    capacities = [schema.capacity, *(c for c in _CAPACITIES if c != schema.capacity and c <= sample.rows)]
    trials = [
        _measured(sample, _with(schema, capacity=c), boxes, context, "capacity", f"{c:,} cells a tile")
        for c in capacities
    ]
    best = _best(trials, "bytes", advice)
    advice.schema = _with(schema, capacity=capacities[best])
    advice.reasons.append(f"{trials[best].candidate}: the sample takes {trials[best].bytes:,} bytes")


def _choose_tile(sample: Sample, boxes: list[_Bounds], advice: Advice, context: Context) -> None:
    """The extents of space tiles: nearly cubic, or whole rows, or whole columns."""
    schema = sample.schema
    extents = {
        "as nearly cubic as can be": [_extent(d, d.tile, n) for d, n in zip(schema.dims, sample.shape, strict=True)]
    }
    if schema.ndim > 1:
        cells = int(
            np.prod([min(n, e) for n, e in zip(sample.shape, extents["as nearly cubic as can be"], strict=True)])
        )
        rest = int(np.prod(sample.shape[1:]))
        extents["whole rows"] = [max(1, min(sample.shape[0], cells // max(1, rest))), *sample.shape[1:]]
        ahead = int(np.prod(sample.shape[:-1]))
        extents["whole columns"] = [*sample.shape[:-1], max(1, min(sample.shape[-1], cells // max(1, ahead)))]
    small = replace(sample, schema=_cut(schema, sample.shape))
    schemas = [_with(small.schema, dims=_tiled(small.schema, e)) for e in extents.values()]
    trials = [
        _measured(small, s, boxes, context, "tile", f"{' x '.join(map(str, e))} ({name})")
        for s, (name, e) in zip(schemas, extents.items(), strict=True)
    ]
    best = _best(trials, "fetched", advice)
    chosen = list(extents.values())[best]
    if best > 0:
        full = [dim.size if e == n else e for dim, n, e in zip(schema.dims, sample.shape, chosen, strict=True)]
        advice.schema = _with(schema, dims=_tiled(schema, full))
    advice.reasons.append(f"space tiles of {trials[best].candidate}: a box decodes {trials[best].fetched:,.0f} bytes")


def _extent(dim: Dim, tile: Any, size: int) -> int:
    return size if tile is None else min(size, datatype.ticks_of(tile))


def _tiled(schema: Schema, extents: list[int]) -> list[Dim]:
    return [Dim(d.name, d.domain, min(e, d.size), d.dtype) for d, e in zip(schema.dims, extents, strict=True)]


def _cut(schema: Schema, shape: tuple[int, ...]) -> Schema:
    """The schema with a domain as large as the sample."""
    dims = []
    for dim, size in zip(schema.dims, shape, strict=True):
        lo = datatype.ticks_of(dim.reach[0])
        pair = [datatype.from_text(dim.dtype, str(end)) for end in (lo, lo + size - 1)]
        tile = None if dim.tile is None else min(size, datatype.ticks_of(dim.tile))
        dims.append(Dim(dim.name, (pair[0], pair[1]), tile, dim.dtype))
    return _with(schema, dims=dims)


def _candidates(attr: Attr) -> list[Attr]:
    """The attribute with filters worth a try, its own first, none at all last. Rounding is never added or left out."""
    rounding = attr.filters.split(",")[:1] if attr.lossy else []
    tried = [_filtered(attr, [*rounding, *filters]) for filters in _pipelines(attr.codes or attr.dtype)]
    return [attr, *(one for one in tried[:-1] if one.filters != attr.filters), tried[-1]]


def _filtered(attr: Attr, filters: list[str]) -> Attr:
    known: dict[str, Any] = {} if attr.categories is None else {"ordered": attr.ordered, "codes": attr.codes}
    return Attr(
        attr.name,
        attr.dtype,
        nullable=attr.nullable,
        fill=attr.fill,
        filters=filters[0] if len(filters) == 1 else filters,
        categories=attr.categories,
        **known,
    )


def _pipelines(dtype: str) -> list[list[str]]:
    """Filters worth a try for a type, none at all last."""
    base = datatype.base_of(dtype)
    if datatype.is_var(dtype) or datatype.is_fixed_bytes(dtype) or base == "bool":
        return [["auto"], ["zstd"], ["zstd:9"], ["none"]]
    if base in datatype.INTEGERS or datatype.is_time(base):
        return [["auto"], ["delta", "zstd"], ["shuffle", "zstd"], ["zstd"], ["none"]]
    return [["auto"], ["shuffle", "zstd"], ["bitshuffle", "zstd"], ["zstd"], ["none"]]


def _choose_filters(sample: Sample, advice: Advice, context: Context) -> None:
    """Filters by the bytes of one attribute; those it has stay unless others are clearly smaller."""
    schema, attrs = sample.schema, list(sample.schema.attrs)
    if not schema.sparse:
        sample = replace(sample, schema=_cut(schema, sample.shape))
    for place, attr in enumerate(attrs[:_ATTRS_MAX]):
        trials, made = [], []
        for asked in _candidates(attr):
            part = _with(sample.schema, attrs=[asked])
            one = part.attrs[0]
            trials.append(_measured(sample, part, [], context, f"filters of {attr.name}", str(one.filters)))
            trials[-1].blocks = trials[-1].fetched = None
            made.append(one)
        best = _best(trials, "bytes", advice)
        attrs[place] = made[best]
        raw = trials[-1].bytes
        advice.reasons.append(
            f"{attr.name}: filters {made[best].filters}: {trials[best].bytes:,} bytes with the coordinates, "
            f"{raw:,} without filters"
        )
    advice.schema = _with(schema, attrs=attrs)


def health(array: "Array", queries: Queries | None, context: Context) -> Health:
    """How an array is stored, and what merging would bring."""
    schema = array.schema
    tiles = array.tiles()
    cells = tiles.column("cells").to_numpy()
    touched = [len(array.tiles(box).column("fragment").unique()) for box in _boxes_of(array, queries)]
    planned = array.consolidate("all", dry_run=True)
    written = sum(merge.fragments_expected for merge in planned.merges)
    taken = sum(merge.fragments for merge in planned.merges)
    kinds = [dim.dtype for dim in schema.dims if schema.sparse] + [attr.dtype for attr in schema.attrs]
    row = sum(64 if datatype.is_var(kind) else datatype.cell_bytes(kind) for kind in kinds)
    tile_bytes = int(cells.max()) * row if len(cells) else 0
    return Health(
        fragments=planned.fragments_before,
        tiles=len(cells),
        fullness=float(cells.mean() / schema.capacity) if schema.sparse and len(cells) else None,
        overlap=tile_overlap.overlap(array) if schema.sparse and len(cells) else None,
        touched=float(np.mean(touched)) if touched else 0.0,
        merged_fragments=planned.fragments_before - taken + written,
        merge_bytes=sum(merge.bytes_read for merge in planned.merges),
        tile_bytes=tile_bytes,
        fits=_TASKS * tile_bytes * array.context.threads <= array.context.memory_budget // 4,
    )


def _boxes_of(array: "Array", queries: Queries | None) -> list[Any]:
    """The boxes asked for, or small ones about the middle of what is written."""
    if queries is not None:
        return list(queries)
    found = array.nonempty_domain
    if found is None:
        return []
    boxes = []
    for part in (2, 4, 8):
        box = {}
        for dim, (lo, hi) in zip(array.schema.dims, found, strict=True):
            if dim.is_text:
                continue  # There is nothing half-way between two texts: all of them.
            step = (hi - lo) // part if not datatype.is_float(dim.dtype) else (hi - lo) / part
            low = lo + step * (part // 2)
            box[dim.name] = (low, min(hi, low + step // 8 if not datatype.is_float(dim.dtype) else low + step / 8))
        boxes.append(box)
    return boxes
