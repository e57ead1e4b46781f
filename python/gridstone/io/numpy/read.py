"""Files of NumPy loaded into arrays: dense ones through memory maps, or as columns of cells."""

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from ...arrays.array import Array
from ...base.extras import needed
from ...base.progress import Progress
from ...column import arrow, arrow_types, datatype
from ...column.columns import Field
from ...column.datatype import AnyArray
from ...column.encode import from_values
from ...context.settings import Context
from ...errors import InputError
from ...query.box import BoxLike
from ...schema.array_schema import Schema
from ...stores import store
from ..files import Scratch, Source, expand, shown
from ..load import Keywords, Options, Place, context_or_default, load
from ..matrix import from_scipy
from ..matrix_place import Offset
from ..table.feed import Known, Piece, TableFeed
from .dense import Beside, Stacked, check_filled, load_dense

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
        sparse: True: the data is a list of records (one axis, named fields). Each becomes a cell of a sparse array, as
            the rows of a table do.
        context: None: the process's default.
        progress: True for a bar, or a callable `f(done_cells, total_cells)`.
        box: the box of an array that is there to write; None: the whole.
        name: of the attribute; None: that of the array or schema, else "value". Records have an attribute per field.
        options: `path overwrite attrs message commit_key`, and with `sparse` all others: see `gridstone.io.Options`.

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
        data = Stacked(parts, [str(file) for file in files])
        return load_dense(uri, data, dims, schema, context, progress, box=box, name=name, options=Options.of(options))
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
    offset: Offset = None,
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
        offset: of such a matrix, as in `from_scipy`.
        options: as in `from_npy`.
    """
    files, scratch, chosen = expand(source), Scratch(), Options.of(options)
    if len(files) > 1:
        raise InputError(f"from_npz loads one file, found {len(files)}; load each into an array of its own")
    try:
        plain = scratch.plain(files[0])
        members = _unpacked(plain, files[0], scratch)
        if sparse is None and {"format.npy", "shape.npy", "data.npy"} <= set(members):
            matrix = _matrix(plain, files[0])
            return from_scipy(uri, matrix, dims, schema, True, context, progress, offset=offset, **options)
        if offset is not None:
            raise InputError(f"offset= is for matrices of scipy.sparse.save_npz, {files[0]} is none; box= says where")
        arrays = {
            name.removesuffix(".npy"): _mapped(path, f"{files[0]}, {name}", listed=bool(sparse))
            for name, path in members.items()
        }
        if sparse:
            feed = TableFeed(_Columns(str(files[0]), _flat(arrays, files[0])), context_or_default(context))
            return load(Place(uri, dims, schema, True, chosen), feed, progress)
        data = Beside(_chosen(arrays, chosen.attrs, files[0]), str(files[0]))
        return load_dense(uri, data, dims, schema, context, progress, box=box, name=None, options=chosen)
    finally:
        scratch.close()


def _mapped(file: Path, title: str, *, listed: bool = False) -> AnyArray:
    """The array of a file, mapped; only a list of values or records may be empty."""
    try:
        if file.stat().st_size == 0:
            raise ValueError("it is empty")
        found: AnyArray = np.lib.format.open_memmap(file, mode="r")
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, UnicodeDecodeError) as error:
        raise InputError(f"{title} is no .npy file of plain values, or is damaged: {error}") from error
    if found.ndim == 0 or not listed:
        check_filled(found, title)
    return found


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
                cells = {name: run[first : first + _PIECE_ROWS] for name, run in zip(names, runs, strict=True)}
                made = {
                    name: arrow.array_of(from_values(self._field(name), np.array(part)), keep_nat=True)
                    for name, part in cells.items()
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
