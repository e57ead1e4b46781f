"""Takes a sample of data and the schema that its types and bounds give."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays.array import Array
from ..column import arrow, arrow_types, datatype, decode, pandas
from ..column.columns import Field
from ..column.datatype import AnyArray
from ..errors import GridstoneError, InputError
from ..io import infer, integers
from ..io.files import delimiter_of
from ..io.load import named_dims
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..schema.dimension import Dim
from ..schema.fields import field_of
from ..schema.tile_shape import auto_tile
from .report import check

_CSV_BYTES = 32 << 20
_PARTS = 8
"""A sample of a long file is taken from so many places of it."""

_NAMED = (
    ("lat", "lon"),
    ("latitude", "longitude"),
    ("y", "x"),
    ("z", "y", "x"),
    ("row", "col"),
    ("i", "j"),
    ("chrom", "pos"),
)
_NAMES = {name for names in _NAMED for name in names}
_TIMES = ("time", "timestamp", "date", "datetime", "t")
_VALUES = ("value", "values", "val")
"""Names of what is measured, not of where."""
_NO_DIMENSION = (
    "no column can be guessed to be a dimension: it needs one of numbers or times without nulls; name others, of texts "
    "too, with dims="
)
_DENSE_SHARE = 0.5
"""From such a part of the grid's places on a table is a dense array with gaps."""


@dataclass(slots=True)
class Sample:
    """Cells, and the schema that they fit."""

    name: str
    schema: Schema
    columns: dict[str, Any]
    """An Arrow column per dimension and attribute of a sparse array; an ndarray per attribute of a dense one."""
    rows: int
    rows_total: int
    reasons: list[str] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    """The shape of a dense sample."""


def of_data(data: Any, dims: Sequence[str] | None, rows: int) -> Sample:
    """A sample of a file, a table or an ndarray."""
    if isinstance(data, np.ndarray):
        check(dims is None, "dims= names columns of a table; an ndarray has axes")
        return _of_ndarray(data, f"an array of shape {data.shape}", rows)
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        check(path.exists(), f"{os.fspath(data)!r} is no file, and there is no store")
        check(not path.is_dir(), f"{os.fspath(data)!r} is a directory with no store in it; give a file or a store")
        if path.suffix == ".npy":
            with _readable(path):
                values = np.load(path, mmap_mode="r")
            return _of_ndarray(values, path.name, rows)
        with _readable(path):
            table, total = _of_file(path, rows)
        return _of_table(table, total, path.name, dims)
    if not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "columns"):
        raise InputError(f"advise() takes a file, a table, an ndarray or an Array, not {type(data).__name__}")
    with _readable("the table"):
        table = pandas.table_of(data) if hasattr(data, "iloc") else pa.table(data)
    return _of_table(_thinned(table, rows), table.num_rows, "the table", dims)


@contextmanager
def _readable(what: str | Path) -> Iterator[None]:
    """Makes what readers raise of a source that is not what it should be an `InputError` with its name."""
    try:
        yield
    except GridstoneError:
        raise
    except (ValueError, TypeError, NotImplementedError, LookupError, OSError, EOFError) as error:
        instead = "give a CSV, Parquet, Arrow IPC or .npy file with the ending of its format"
        if not isinstance(what, Path):
            instead = "give columns of one type each, under names that differ"
        raise InputError(f"{os.fspath(what)} cannot be read: {error}; {instead}") from error


def _of_file(path: Path, rows: int) -> tuple[pa.Table, int]:
    """Rows of a table's file, and how many it has, about."""
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".parquet"):
        return _of_parquet(path, rows)
    if name.endswith((".arrow", ".feather", ".ipc")):
        with pa.memory_map(os.fspath(path)) as source:
            table = pa.ipc.open_file(source).read_all()
            return _in_one(_thinned(table, rows)), table.num_rows
    return _of_csv(path, rows)


def _of_parquet(path: Path, rows: int) -> tuple[pa.Table, int]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    total, groups = file.metadata.num_rows, file.metadata.num_row_groups
    chosen = sorted({i * groups // _PARTS for i in range(_PARTS)}) if groups else []
    parts = [_thinned(file.read_row_group(group), max(1, rows // len(chosen))) for group in chosen]
    return (pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()), total


def _of_csv(path: Path, rows: int) -> tuple[pa.Table, int]:
    table, more = _first_of_csv(path, None)
    numbers = [
        field.name for field in table.schema if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    ]
    written = _first_of_csv(path, numbers)[0] if numbers else table
    for name in numbers:
        texts = written.column(name)
        found = integers.exact(table.column(name), integers.Hints(), partial(written.column, name))
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, texts if found.type == integers.LONG else found)
    plain = path.suffix not in (".gz", ".zst", ".bz2")
    total = round(table.num_rows * path.stat().st_size / _CSV_BYTES) if more and plain else table.num_rows
    return _thinned(table, rows), max(total, table.num_rows)


def _first_of_csv(path: Path, texts: Sequence[str] | None) -> tuple[pa.Table, bool]:
    """The first block, or some columns of it as they are written, and whether there are more."""
    from pyarrow import csv

    wanted = None
    if texts is not None:
        types = dict.fromkeys(texts, pa.string())
        wanted = csv.ConvertOptions(include_columns=list(texts), column_types=types, strings_can_be_null=True)
    parsing = csv.ParseOptions(delimiter=delimiter_of([path]))
    with csv.open_csv(path, csv.ReadOptions(block_size=_CSV_BYTES), parsing, wanted) as reader:
        table = pa.Table.from_batches([next(iter(reader), pa.record_batch([], pa.schema([])))])
        return table, next(iter(reader), None) is not None


def _thinned(table: pa.Table, rows: int) -> pa.Table:
    """Runs of rows from several places: neighbours stay neighbours."""
    if table.num_rows <= rows:
        return table
    length = max(1, rows // _PARTS)
    return pa.concat_tables(
        [table.slice(i * (table.num_rows - length) // max(1, _PARTS - 1), length) for i in range(_PARTS)]
    )


def _of_table(table: pa.Table, total: int, name: str, dims: Sequence[str] | None) -> Sample:
    names = table.column_names
    check(len(set(names)) == len(names), f"{name} has columns of the same name: {', '.join(names)}; rename them")
    check(table.num_rows > 0, f"{name} has no rows to look at")
    asked = None if dims is None else _named(table, dims)
    table, columns = _looked_at(table, asked)
    reasons: list[str] = []
    chosen = _guessed(columns, table, reasons) if asked is None else _able(columns, asked)
    check(
        len(chosen) < len(columns),
        f"{name} has no column left for an attribute: {', '.join(chosen)} are dimensions; name fewer with dims=",
    )
    whole = table.num_rows >= total
    reasons.append(
        f"the domains are those of {'the data' if whole else 'the sample; widen them to what the rest holds'}"
    )
    for dim in (column for column in columns if column.is_text and column.name in chosen and not whole):
        reasons.append(
            f"the longest {dim.name} of the sample has {dim.longest} bytes; give max_bytes what the rest needs"
        )
    open_ended = [column.name for column in columns if column.entries is not None and column.name not in chosen]
    if open_ended and not whole:
        reasons.append(f"the categories of {', '.join(open_ended)} are those of the sample; add what the rest holds")
    held = {name: arrow_types.joined(table.column(name)) for name in table.column_names}
    repeats = _repeats(table, chosen)
    schema = infer.schema_of(columns, chosen, total, sparse=True, duplicates=repeats > 0, capacity=10_000)
    if repeats:
        reasons.append(f"{repeats:,} rows lie at a place that another one has: the array allows duplicates")
    dense = None if repeats else _grid(schema, held, table.num_rows)
    if dense is not None and whole:
        share = table.num_rows / int(np.prod([dim.size for dim in schema.dims]))
        reasons.append(f"the rows fill {share:.0%} of a grid: a dense array")
        return _dense_of_cells(schema, held, name, table.num_rows, reasons)
    reasons.append("the rows lie scattered over the domain: a sparse array")
    return Sample(name, schema, held, table.num_rows, total, reasons)


def _looked_at(table: pa.Table, dims: list[str] | None) -> tuple[pa.Table, list[infer.Column]]:
    """The table, with dictionaries of categories only, and what its columns are; bounds of what may be a dimension."""
    columns = []
    for at, spec in enumerate(table.schema):
        typed = infer.Column.of_field(spec)
        column = infer.Column(spec.name, known_dtype=typed.known_dtype, known_categories=typed.known_categories)
        stored = table.column(at)
        coded = pa.types.is_dictionary(spec.type)
        values = pa.chunked_array([arrow_types.decoded(chunk) for chunk in stored.chunks]) if coded else stored
        if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
            values = values.cast(pa.string())
        able = _has_order(typed.dtype) or (typed.is_text and (dims is not None or spec.name.lower() in _NAMES))
        bounded = able and (spec.name in dims if dims is not None else not coded)
        column.see(values, bounds=bounded)
        if typed.entries is not None and spec.name not in (dims or ()):
            column.entries, column.ordered = typed.entries, typed.ordered
            column.collect(stored)
        if column.entries is None:
            table = table.set_column(at, spec.name, values)
        columns.append(column)
    return _in_one(table), columns


def _in_one(table: pa.Table) -> pa.Table:
    """Each column in one chunk."""
    return pa.table([arrow_types.joined(column) for column in table.columns], schema=table.schema)


def _named(table: pa.Table, dims: Sequence[str]) -> list[str]:
    names = list(named_dims(dims))
    for dim in names:
        check(dim in table.column_names, f"there is no column {dim!r}; there are {', '.join(table.column_names)}")
    return names


def _able(columns: list[infer.Column], dims: list[str]) -> list[str]:
    """The columns that were asked for as dimensions, which they can be."""
    for column in columns:
        if column.name not in dims:
            continue
        what = f"column {column.name!r} cannot be a dimension:"
        sortable = _has_order(column.dtype) or column.is_text
        check(sortable, f"{what} it is {column.dtype}; name columns of numbers, times or texts")
        check(not column.nulls, f"{what} it has nulls; fill them, or drop the rows")
    return dims


def _has_order(kind: str) -> bool:
    """Whether a dimension may be of this type: numbers or times."""
    return kind in datatype.INTEGERS or datatype.is_time(kind) or kind in ("float32", "float64")


def _can_be_dim(column: infer.Column) -> bool:
    if column.is_text:
        return column.low is not None and not column.nulls and not column.numeric
    if not _has_order(column.dtype) or column.nulls or column.low is None:
        return False
    return not datatype.is_float(column.dtype) or bool(
        np.isfinite(float(column.low.as_py()) + float(column.high.as_py()))
    )


def _guessed(columns: list[infer.Column], table: pa.Table, reasons: list[str]) -> list[str]:
    """The columns that look like coordinates: by name, else the fewest, of numbers or times, whose values tell most
    rows apart."""
    able = {column.name.lower(): column.name for column in columns if _can_be_dim(column)}
    moments = [c.name for c in columns if c.name in able.values() and c.dtype.startswith("datetime64")]
    times = [*(able[name] for name in _TIMES if name in able), *moments][:1]
    for names in _NAMED[::-1]:
        if all(name in able for name in names):
            found = [*times, *(able[name] for name in names if able[name] not in times)]
            reasons.append(f"{', '.join(found)} are dimensions: their names are those of coordinates")
            return found
    texts = {c.name for c in columns if c.is_text}
    able = {lower: name for lower, name in able.items() if name not in texts}
    if not able:
        raise InputError(_NO_DIMENSION)
    exact = [c.name for c in columns if c.name in able.values() and not datatype.is_float(c.dtype)]
    chosen, most = [*times], _distinct(table, times) if times else 0
    others = [n for n in exact or able.values() if n not in times and n.lower() not in _VALUES]
    for name in sorted(others or ([] if times else able.values()), key=lambda n: _distinct(table, [n])):
        if chosen and (most >= table.num_rows or len(chosen) + 1 == len(columns)):
            break
        count = _distinct(table, [*chosen, name])
        if not chosen or count > most:
            chosen, most = [*chosen, name], count
    chosen = chosen[:3] or [next(iter(able.values()))]
    count = _distinct(table, chosen)
    reasons.append(
        f"{', '.join(chosen)} are dimensions: their values tell {count / table.num_rows:.0%} of the rows apart"
    )
    return chosen


def _distinct(table: pa.Table, names: list[str]) -> int:
    return int(table.select(names).group_by(names).aggregate([]).num_rows)


def _repeats(table: pa.Table, dims: list[str]) -> int:
    return int(table.num_rows) - _distinct(table, dims)


def _grid(schema: Schema, held: dict[str, Any], rows: int) -> list[int] | None:
    """The sides of the grid that the rows fill well enough; None if they do not."""
    if any(dim.is_text or datatype.is_float(dim.dtype) for dim in schema.dims):
        return None
    sizes = [dim.size for dim in schema.dims]
    cells = 1
    for size in sizes:
        cells *= size
    fixed = all(not datatype.is_var(attr.dtype) for attr in schema.attrs) and len(schema.attrs) > 0
    return sizes if fixed and rows >= _DENSE_SHARE * cells else None


def _dense_of_cells(schema: Schema, held: dict[str, Any], name: str, rows: int, reasons: list[str]) -> Sample:
    """The rows as arrays over the grid."""
    from ..column.columns import Field

    shape = tuple(dim.size for dim in schema.dims)
    places = [
        _ticks(arrow.column_of(Field(dim.name, dim.dtype, False, "dimension"), held[dim.name]).values, dim)
        for dim in schema.dims
    ]
    width = max(datatype.cell_bytes(attr.dtype) for attr in schema.attrs)
    extents = auto_tile(shape, width)
    dims = [Dim(d.name, d.domain, t, d.dtype) for d, t in zip(schema.dims, extents, strict=True)]
    flat = np.ravel_multi_index(places, shape)
    arrays: dict[str, AnyArray] = {}
    for attr in schema.attrs:
        column = arrow.column_of(field_of(attr), held[attr.name])
        values = decode.numpy_of(column)
        whole: AnyArray = np.empty((int(np.prod(shape)), *values.shape[1:]), np.ma.getdata(values).dtype)
        whole[:] = attr.fill
        whole[flat] = np.ma.getdata(values)
        if attr.nullable or len(flat) < len(whole):
            mask: AnyArray = np.ones(len(whole), np.bool_)
            mask[flat] = np.ma.getmaskarray(values) if attr.nullable else False
            arrays[attr.name] = (
                np.ma.MaskedArray(whole, mask=mask).reshape(shape) if attr.nullable else whole.reshape(shape)
            )
        else:
            arrays[attr.name] = whole.reshape((*shape, *values.shape[1:]))
    return Sample(name, Schema(dims, schema.attrs), arrays, rows, rows, reasons, shape)


def _ticks(values: AnyArray, dim: Dim) -> AnyArray:
    lo = datatype.ticks_of(dim.reach[0])
    return (values.view(np.int64) if values.dtype.kind in "mM" else values.astype(np.int64)) - lo


def _of_ndarray(values: AnyArray, name: str, rows: int) -> Sample:
    check(values.ndim > 0 and values.size > 0, "an array needs at least one dimension and cell")
    check(values.dtype.names is None and values.dtype.kind != "O", f"an array of {values.dtype} cannot be measured")
    shape = values.shape
    crop = _cropped(shape, rows)
    middle = tuple(slice((n - c) // 2, (n - c) // 2 + c) for n, c in zip(shape, crop, strict=True))
    taken = np.array(values[middle])
    extents = auto_tile(shape, values.dtype.itemsize)
    dims = [Dim(f"d{i}", (0, n - 1), t) for i, (n, t) in enumerate(zip(shape, extents, strict=True))]
    nullable = isinstance(values, np.ma.MaskedArray)
    schema = Schema(dims, [Attr("value", datatype.parse(values.dtype), nullable=nullable)])
    nonzero = int(np.count_nonzero(taken)) if values.dtype.kind not in "SUmM" else taken.size
    reasons = [f"{nonzero / taken.size:.1%} of the values are not zero"]
    return Sample(name, schema, {"value": taken}, int(taken.size), int(values.size), reasons, taken.shape)


def _cropped(shape: tuple[int, ...], cells: int) -> list[int]:
    """A box of about so many cells in the middle."""
    crop = list(shape)
    while np.prod(np.array(crop, object)) > cells * 4 and max(crop) > 1:
        longest = max(range(len(crop)), key=lambda i: crop[i])
        crop[longest] = -(-crop[longest] // 2)
    return crop


def of_array(array: "Array", rows: int) -> Sample:
    """A sample of an array that exists."""
    name = array.uri if array.path == "/" else f"{array.uri} {array.path}"
    reasons = [f"it is a {'sparse' if array.sparse else 'dense'} array, version {array.version}"]
    if not array.sparse:
        crop = _cropped(array.shape, rows)
        key = tuple(slice((n - c) // 2, (n - c) // 2 + c) for n, c in zip(array.shape, crop, strict=True))
        held = {attr: array[attr][key] for attr in array.schema_names}
        cells = int(np.prod(crop))
        total = int(np.prod(np.array(array.shape, object)))
        return Sample(name, array.schema, held, cells, total, reasons, tuple(crop))
    total = int(sum(row["cells"] for row in array.fragments.to_pylist() if row["kind"] == "sparse"))
    table = _limited(array.scan(order="any"), rows)
    check(table.num_rows > 0, f"{name} has no cells to look at")
    held = {column: arrow_types.joined(table.column(column)) for column in table.column_names}
    return Sample(name, array.schema, held, table.num_rows, max(total, table.num_rows), reasons)


def _limited(stream: Any, rows: int) -> pa.Table:
    """Runs of a stream's batches, as long as there are more, thinned whenever they are too many."""
    kept: list[Any] = []
    for batch in stream:
        kept.append(batch)
        if sum(b.num_rows for b in kept) > 4 * rows:
            kept = _thinned(pa.Table.from_batches(kept), 2 * rows).to_batches()
    table = pa.Table.from_batches(kept, stream.schema)
    return _thinned(table, rows)


def texts_of(sample: Sample, name: str) -> list[str]:
    """The texts along a dimension in the sample, each once, ascending."""
    return sorted(sample.columns[name].unique().to_pylist())


def bounds(sample: Sample) -> list[tuple[Any, Any]]:
    """The least and greatest coordinate of each dimension in the sample, as numbers; of texts, their places in
    `texts_of`."""
    found = []
    for dim in sample.schema.dims:
        if dim.is_text:
            found.append((0, len(texts_of(sample, dim.name)) - 1))
            continue
        values = arrow.column_of(Field(dim.name, dim.dtype, False, "dimension"), sample.columns[dim.name]).values
        ends = values.view(np.int64) if values.dtype.kind in "mM" else values
        found.append((ends.min().item(), ends.max().item()))
    return found


def reasons_for(sample: Sample) -> list[str]:
    """What was found out before anything was measured."""
    some = f"{sample.rows:,} of about {sample.rows_total:,}"
    seen = some if sample.rows_total > sample.rows else f"all {sample.rows:,}"
    return [f"looked at {seen} cells of {sample.name}", *sample.reasons]
