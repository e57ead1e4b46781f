"""NumPy's files: dense arrays through memory maps, tile by tile; columns of cells; and writing both."""

import itertools
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from ...arrays.array import Array
from ...base.progress import Progress, reporting
from ...column import arrow, arrow_types, datatype
from ...column.columns import Field
from ...column.datatype import AnyArray
from ...column.encode import from_values
from ...context.settings import Context
from ...errors import InputError, UnsupportedError
from ...query.box import Box, BoxLike, box_of
from ...schema.array_schema import Schema
from ...schema.attribute import Attr
from ...schema.dimension import Dim
from ...schema.fields import attr_field
from ...stores import store
from ..files import Scratch, Source, expand, shown
from ..load import Keywords, Options, Place, context_or_default, created, existing_array, load
from ..table.feed import Known, Piece, TableFeed

_PIECE_BYTES = 8 << 20
_PIECE_ROWS = 1 << 18


def from_npy(
    uri: store.Uri,
    source: Source,
    dims: Sequence[str] | None = None,
    schema: Schema | None = None,
    sparse: bool = False,
    context: Context | None = None,
    progress: Progress = None,
    *,
    box: BoxLike = None,
    name: str | None = None,
    **options: Unpack[Keywords],
) -> Array:
    """Loads `.npy` files, mapped into memory and read tile by tile, into a dense array, in one fragment and commit.

    Where an array or schema that is given has an attribute of vectors, their axes are the last ones of the data.

    Args:
        uri: the store.
        source: a path, a pattern or a list of them; compressed files are unpacked into a temporary one. Several files
            are put behind one another along the first axis.
        dims: names of the dimensions, of coordinates from 0; None: d0, d1, … With `sparse`: the fields that they are.
        schema: the schema of the new array, whose domain has the shape of the data.
        sparse: True: the data is a list of records (one axis, named fields), each of which becomes a cell of a sparse
            array, as the rows of a table do.
        context: None: the process's default.
        progress: True for a bar, or a callable `f(done_cells, total_cells)`.
        box: the box of an array that is there to write; None: the whole.
        name: of the attribute; None: that of the array or schema, else "value". Records have an attribute per field.
        options: `path overwrite attrs message`, and with `sparse` all others: see `gridstone.io.Options`.

    Returns the array, open for reading and writing.

    Raises:
        InputError: no `.npy` file, a damaged one, one of Python objects, or shapes that do not fit.
        UnsupportedError: the dtype cannot be stored.
    """
    scratch = Scratch()
    try:
        files = expand(source)
        parts = [_mapped(scratch.plain(file), str(file), listed=sparse) for file in files]
        if sparse:
            columns = {field: [part[field] for part in parts] for field in _fields(parts, files)}
            feed = TableFeed(_Columns(shown(files), columns), context_or_default(context))
            return load(Place(uri, dims, schema, True, Options.of(options)), feed, progress)
        data = _Stacked(parts, [str(file) for file in files])
        return _dense(uri, data, dims, schema, context, progress, box=box, name=name, options=Options.of(options))
    finally:
        scratch.close()


def from_npz(
    uri: store.Uri,
    source: str | os.PathLike[str],
    dims: Sequence[str] | None = None,
    schema: Schema | None = None,
    sparse: bool | None = None,
    context: Context | None = None,
    progress: Progress = None,
    *,
    box: BoxLike = None,
    **options: Unpack[Keywords],
) -> Array:
    """Loads a `.npz` file. Its arrays are unpacked into temporary files and read from there.

    Args:
        uri, schema, context, progress, box: as in `from_npy`.
        source: one file.
        dims: names of the dimensions, of coordinates from 0. With `sparse`: the arrays that are the dimensions.
        sparse: False: every array (of `attrs`) has one shape and becomes an attribute of a dense array. True: every
            array has one axis (of vectors, more) and becomes a column of cells of a sparse array. None: False, unless
            the file is a matrix written by `scipy.sparse.save_npz`, which is loaded as by `from_scipy`.
        options: as in `from_npy`.
    """
    files, scratch, chosen = expand(source), Scratch(), Options.of(options)
    if len(files) > 1:
        raise InputError(f"from_npz loads one file, found {len(files)}; load each into an array of its own")
    try:
        plain = scratch.plain(files[0])
        members = _unpacked(plain, files[0], scratch)
        if sparse is None and {"format.npy", "shape.npy", "data.npy"} <= set(members):
            from ..matrix import from_scipy

            matrix = _matrix(plain, files[0])
            return from_scipy(uri, matrix, dims, schema, True, context, progress, **options)
        arrays = {
            name.removesuffix(".npy"): _mapped(path, f"{files[0]}, {name}", listed=bool(sparse))
            for name, path in members.items()
        }
        if sparse:
            feed = TableFeed(_Columns(str(files[0]), _flat(arrays, files[0])), context_or_default(context))
            return load(Place(uri, dims, schema, True, chosen), feed, progress)
        data = _Beside(_chosen(arrays, chosen.attrs, files[0]), str(files[0]))
        return _dense(uri, data, dims, schema, context, progress, box=box, name=None, options=chosen)
    finally:
        scratch.close()


def from_array(
    uri: store.Uri,
    source: AnyArray,
    dims: Sequence[str] | None,
    schema: Schema | None,
    context: Context | None,
    progress: Progress,
    *,
    name: str | None = None,
    **options: Unpack[Keywords],
) -> Array:
    """Loads an array in memory as `from_npy` loads one in a file."""
    data = _Stacked([source], ["the array"])
    return _dense(uri, data, dims, schema, context, progress, box=None, name=name, options=Options.of(options))


def _mapped(file: Path, title: str, *, listed: bool = False) -> AnyArray:
    """The array of a file, mapped; only a list of values or records may be empty."""
    try:
        if file.stat().st_size == 0:
            raise ValueError("it is empty")
        found: AnyArray = np.lib.format.open_memmap(file, mode="r")
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, UnicodeDecodeError) as error:
        raise InputError(f"{title} is no .npy file of plain values, or is damaged: {error}") from error
    if found.ndim == 0 or not listed:
        _check_filled(found, title)
    return found


def _check_filled(array: AnyArray, title: str) -> None:
    if array.ndim == 0 or array.size == 0:
        raise InputError(f"{title}: an array needs at least one dimension and cell, found shape {array.shape}")


def _unpacked(plain: Path, file: Path, scratch: Scratch) -> dict[str, Path]:
    """The files in a zip, each in a file of its own."""
    made = {}
    try:
        with zipfile.ZipFile(plain) as archive:
            for member in archive.namelist():
                made[member] = scratch.file("member.npy")
                with archive.open(member) as packed, made[member].open("wb") as out:
                    while piece := packed.read(1 << 20):
                        out.write(piece)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise InputError(f"{file} is no .npz file, or is damaged: {error}") from error
    if not made:
        raise InputError(f"{file} holds no arrays")
    return made


def _matrix(plain: Path, file: Path) -> Any:
    from ...base.extras import needed

    try:
        return needed("scipy.sparse", "scipy", "from_npz of a sparse matrix").load_npz(plain)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise InputError(f"{file} is no matrix of scipy.sparse.save_npz: {error}") from error


def _fields(parts: Sequence[AnyArray], files: Sequence[Path]) -> tuple[str, ...]:
    for part, file in zip(parts, files, strict=True):
        if part.dtype.names is None or part.ndim != 1:
            raise InputError(
                f"{file} holds {part.dtype} of shape {part.shape}; sparse=True takes records: one axis, named fields"
            )
        if part.dtype != parts[0].dtype:
            raise InputError(f"{file} holds records of other fields than {files[0]}: {part.dtype}")
    return parts[0].dtype.names or ()


def _flat(arrays: Mapping[str, AnyArray], file: Path) -> dict[str, list[AnyArray]]:
    shapes = {name: array.shape for name, array in arrays.items()}
    if len({shape[:1] for shape in shapes.values()}) > 1 or () in shapes.values():
        raise InputError(f"{file}: columns of cells have one length, found shapes {shapes}")
    return {name: [array] for name, array in arrays.items()}


def _chosen(arrays: Mapping[str, AnyArray], attrs: Sequence[str] | None, file: Path) -> dict[str, AnyArray]:
    missing = [name for name in attrs or [] if name not in arrays]
    if missing:
        raise InputError(f"{file} has no array {missing[0]!r}; there are {', '.join(arrays)}")
    return {name: arrays[name] for name in (arrays if attrs is None else attrs)}


class _Columns:
    """Columns of NumPy arrays as a source of tables."""

    def __init__(self, title: str, columns: Mapping[str, Sequence[AnyArray]]) -> None:
        self.title, self._columns = title, columns
        self._kinds = {name: _kind_of(runs[0]) for name, runs in columns.items()}
        self.schema = pa.schema([arrow_types.field_of(name, kind, False) for name, kind in self._kinds.items()])
        self.total = sum(len(run) for run in next(iter(columns.values())))

    def streams(self, names: Sequence[str], again: bool) -> list[Callable[[], Iterator[Piece]]]:
        """One of all of it."""
        return [lambda: self._pieces(names)]

    def _pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """Slices of the columns."""
        before = 0
        for runs in zip(*(self._columns[name] for name in names), strict=True):
            for first in range(0, len(runs[0]), _PIECE_ROWS):
                made = {
                    name: arrow.array_of(from_values(self._field(name), np.array(run[first : first + _PIECE_ROWS])))
                    for name, run in zip(names, runs, strict=True)
                }
                table = pa.table(made)
                yield Piece(table, self.title, before + first, before + first + table.num_rows)
            before += len(runs[0])

    def _field(self, name: str) -> Field:
        return Field(name, self._kinds[name], False, "column")

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """Nothing."""
        return {}

    def count(self) -> int | None:
        """The length of the columns."""
        return self.total

    def close(self) -> None:
        """Nothing is held."""


def _kind_of(values: AnyArray) -> str:
    """The datatype of the cells along the first axis."""
    kind = datatype.parse(values.dtype)
    return datatype.shaped(kind, values.shape[1:]) if values.ndim > 1 else kind


class _Stacked:
    """Arrays behind one another along the first axis; records have an attribute per field."""

    def __init__(self, parts: Sequence[AnyArray], titles: Sequence[str]) -> None:
        for part, title in zip(parts, titles, strict=True):
            _check_filled(part, title)
            if part.shape[1:] != parts[0].shape[1:] or part.dtype != parts[0].dtype:
                raise InputError(
                    f"{title} holds {part.dtype} of shape {part.shape}, {titles[0]} {parts[0].dtype} of shape "
                    f"{parts[0].shape}: arrays are put behind one another along the first axis only"
                )
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])
        self.shape = (int(self._ends[-1]), *parts[0].shape[1:])
        self.title = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
        self.dtypes = _named_types(parts[0].dtype)
        self.shapes = dict.fromkeys(self.dtypes, self.shape)

    def take(self, where: tuple[slice, ...]) -> dict[str | None, AnyArray]:
        """The values of a box of positions by attribute; None: the one attribute."""
        found, before = [], 0
        for part, end in zip(self._parts, self._ends, strict=True):
            low, high = max(where[0].start, before), min(where[0].stop, int(end))
            if low < high:
                found.append(part[(slice(low - before, high - before), *where[1:])])
            before = int(end)
        values = found[0] if len(found) == 1 else np.concatenate(found)
        return {name: np.asarray(values if name is None else values[name]) for name in self.dtypes}


class _Beside:
    """Arrays of one shape, an attribute each."""

    def __init__(self, arrays: Mapping[str, AnyArray], title: str) -> None:
        self._arrays, self.title = arrays, title
        self.shapes: dict[str | None, tuple[int, ...]] = {name: array.shape for name, array in arrays.items()}
        self.shape = next(iter(self.shapes.values()))
        self.dtypes: dict[str | None, Any] = {name: array.dtype for name, array in arrays.items()}

    def take(self, where: tuple[slice, ...]) -> dict[str | None, AnyArray]:
        """The values of a box of positions by attribute."""
        return {name: np.asarray(array[where]) for name, array in self._arrays.items()}


def _named_types(dtype: np.dtype[Any]) -> dict[str | None, Any]:
    """The dtypes of the attributes that a dtype makes."""
    if dtype.names is None:
        return {None: dtype}
    for name in dtype.names:
        if dtype[name].subdtype is not None:
            raise UnsupportedError(f"field {name!r} is {dtype[name]}: fields of several values are not supported")
    return {name: dtype[name] for name in dtype.names}


def _dense(
    uri: store.Uri,
    data: _Stacked | _Beside,
    dims: Sequence[str] | None,
    schema: Schema | None,
    context: Context | None,
    progress: Progress,
    *,
    box: BoxLike,
    name: str | None,
    options: Options,
) -> Array:
    """Writes data into a dense array, one fragment, tile by tile."""
    used = context_or_default(context)
    place = Place(uri, dims, schema, False, options)
    existing = existing_array(place, used)
    if existing is None:
        _check_new(data, schema, box, name)
        fresh = schema or _schema_of(data, dims, name)
        return created(place, fresh, used, lambda array, message: _write(array, message, data, None, name, progress))
    _write(existing, options.message, data, box, name, progress)
    return existing


def _check_new(data: _Stacked | _Beside, schema: Schema | None, box: BoxLike, name: str | None) -> None:
    if box is not None:
        raise InputError("box= is for an array that is there; a new one has the shape of the data")
    if schema is not None and not schema.sparse:
        _check_shapes(data, schema, name, schema.shape, "the schema's domain")
    elif schema is None and len(set(data.shapes.values())) > 1:
        raise InputError(
            f"{data.title}: attributes of one array have one shape, found {data.shapes}; choose some with attrs="
        )


def _check_shapes(
    data: _Stacked | _Beside, schema: Schema, name: str | None, shape: tuple[int, ...], what: str
) -> None:
    """Every array has this shape, behind which come the axes of vectors."""
    only = name or (schema.attrs[0].name if len(schema.attrs) == 1 else None)
    for given, found in data.shapes.items():
        if given is None and only is None:
            names = [attr.name for attr in schema.attrs]
            raise InputError(f"the array has the attributes {names}; say which one with name=")
        inner = datatype.shape_of(attr_field(schema, given or only or "").dtype)
        if found != shape + inner:
            vectors = f", and each value {inner}" if inner else ""
            raise InputError(f"{data.title} has shape {found}, {what} has shape {shape}{vectors}")


def _schema_of(data: _Stacked | _Beside, dims: Sequence[str] | None, name: str | None) -> Schema:
    names = [f"d{i}" for i in range(len(data.shape))] if dims is None else list(dims)
    if len(names) != len(data.shape):
        raise InputError(f"dims= names {len(names)} dimensions, {data.title} has shape {data.shape}")
    attrs = [Attr(given or name or "value", datatype.parse(kind)) for given, kind in data.dtypes.items()]
    width = max(datatype.numpy_of(attr.dtype).itemsize for attr in attrs)
    extents = store.auto_tile(data.shape, width)
    return Schema([Dim(n, (0, s - 1), t) for n, s, t in zip(names, data.shape, extents, strict=True)], attrs)


def _write(
    array: Array, message: str | None, data: _Stacked | _Beside, box: BoxLike, name: str | None, progress: Progress
) -> None:
    array._check_dense("loading an array of values")
    schema, where = array.schema, box_of(array.schema, box)
    _check_shapes(data, schema, name, where.shape, f"the box {where}")
    only, ndim = name or schema.attrs[0].name, schema.ndim
    names = [given or only for given in data.dtypes]
    total, done = math.prod(where.shape), 0
    width = sum(
        max(1, np.dtype(kind).itemsize) * math.prod(data.shapes[given][ndim:]) for given, kind in data.dtypes.items()
    )
    with reporting(progress, "loading", "cells") as report, array.writer(where, attrs=names, message=message) as out:
        for part in runs(schema, where, max(1, _PIECE_BYTES // width)):
            found = data.take(part)
            out.append({given or only: _listed(values, ndim, schema.cell_order) for given, values in found.items()})
            done += math.prod(span.stop - span.start for span in part)
            if report is not None:
                report(done, total)


def _listed(values: AnyArray, ndim: int, order: str) -> AnyArray:
    """The cells of a box in this order along one axis; those of vectors behind it stay."""
    inner = values.shape[ndim:]
    if order == "col":
        values = values.transpose(*reversed(range(ndim)), *range(ndim, values.ndim))
    return values.reshape(-1, *inner)


def runs(schema: Schema, box: Box, cells_max: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of positions in `box` that follow each other in global order: its tiles, cut where they are large."""
    spans = []
    for dim, (low, high) in zip(schema.dims, box.bounds, strict=True):
        origin, extent, low, high = datatype.ticks_of(dim.domain[0]), dim.positions_per_tile, int(low), int(high)
        starts = range(low - (low - origin) % extent, high + 1, extent)
        spans.append([(max(start, low) - low, min(start + extent - 1, high) - low + 1) for start in starts])
    if schema.tile_order == "row":
        tiles: Any = itertools.product(*spans)
    else:
        tiles = (tile[::-1] for tile in itertools.product(*spans[::-1]))
    for tile in tiles:
        yield from _cut(tuple(slice(*span) for span in tile), schema.cell_order == "row", cells_max)


def _cut(tile: tuple[slice, ...], row_major: bool, cells_max: int) -> Iterator[tuple[slice, ...]]:
    """A box of positions in parts of at most so many cells, which follow each other in its cell order."""
    sizes = [part.stop - part.start for part in tile]
    axes = [axis for axis in (range(len(tile)) if row_major else reversed(range(len(tile)))) if sizes[axis] > 1]
    count = math.prod(sizes)
    if count <= cells_max or not axes:
        yield tile
        return
    axis = axes[0]
    step = max(1, cells_max // (count // sizes[axis]))
    for start in range(tile[axis].start, tile[axis].stop, step):
        part = slice(start, min(start + step, tile[axis].stop))
        yield from _cut((*tile[:axis], part, *tile[axis + 1 :]), row_major, cells_max)
