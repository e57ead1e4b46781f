"""Sparse matrices and arrays of SciPy and pydata/sparse, and Matrix Market files, as sparse arrays."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from ..arrays.array import Array
from ..base.arguments import checked, file
from ..base.extras import needed
from ..base.progress import Progress
from ..column import arrow, arrow_types, datatype
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..context.settings import Context
from ..errors import InputError, UnsupportedError
from ..query.box import BoxLike, box_of
from ..result.damage import Damaged
from ..schema.array_schema import Schema
from ..stores import store
from . import infer
from .files import Scratch, compression_of, expand, path_of, written
from .handles import opened, stored
from .load import Keywords, Options, Place, context_or_default, existing_array, load
from .matrix_place import Layout, Offset, Tile, check_rows_free, offsets_of
from .numpy.dense import from_array
from .table.feed import Known, Piece, TableFeed

_PIECE_CELLS = 1 << 18


def from_scipy(
    uri: store.Uri,
    source: Any,
    dims: Sequence[str] | None = None,
    schema: Schema | None = None,
    sparse: bool = True,
    context: Context | None = None,
    progress: Progress = None,
    *,
    name: str | None = None,
    offset: Offset = None,
    tile: Tile = "auto",
    by: str | None = None,
    **options: Unpack[Keywords],
) -> Array:
    """Loads a sparse matrix or array of SciPy, or an array of pydata/sparse, in one commit.

    Each stored value becomes a cell, zeros too; the dimensions are int64, from 0 to the side less one. Values at one
    place are added up first, as SciPy means them, so that a new array has no duplicates unless `duplicates=True`.

    More rows go into an array that is there with `offset=`: `from_scipy("m.gs", more, offset=1000)`. Its domain grows.
    It also says that cells which are there may be replaced.

    Args:
        uri: the store.
        source: CSR and CSC are read in slices of their buffers, as COO is; other formats are made COO first.
        dims: names of the dimensions; None: those of the array or schema, else row and col, or d0, d1, … unless there
            are two.
        schema: the schema of the new array; None: made of shape and dtype.
        sparse: False: a dense array; what is not stored reads as its fill.
        context: None: the process's default. What passes a sixteenth of its budget is sorted in the store and merged.
        progress: True for a bar, or a callable `f(done_cells, total_cells)`.
        name: of the attribute; None: that of the array or schema, else "value".
        offset: the coordinates of the matrix's first position, one per dimension; a number: of its first row. None:
            0, and the rows of an array that is there have to be empty.
        tile: of a new array: the extent of a space tile per dimension (None: the whole side), or one number for all.
            "auto": as `by` says.
        by: what a new sparse array is read by: "rows" (cells lie in row order: batches of rows are quick; None means
            this), "cols" (column order), or "boxes" (square tiles, for blocks of a matrix).
        options: `path overwrite duplicates capacity dedup grow message commit_key`: see `gridstone.io.Options`.

    Returns the array, open for reading and writing.

    Raises:
        InputError: a side of length 0, positions outside the shape or domain, or rows that hold cells and no `offset`.
        UnsupportedError: the dtype cannot be stored.
    """
    chosen, used = Options.of({"duplicates": False, **options}), context_or_default(context)
    layout = Layout.of(tile, by, sparse)
    existing = existing_array(Place(uri, dims, schema, sparse, chosen), used)
    target = schema if existing is None else existing._schema
    if target is not None:
        dims = dims or [dim.name for dim in target.dims]
        name = name or target.attrs[0].name
        layout.check_unused()
    matrix = _Matrix(source, dims, name or "value", offset, canonical=not chosen.duplicates)
    if existing is not None and offset is None and matrix.total:
        check_rows_free(existing, matrix.shape[0], chosen.load_key)
    return load(Place(uri, dims, schema, sparse, chosen), _MatrixFeed(matrix, used, layout), progress)


class _Matrix:
    """The stored values of a matrix as a source of columns."""

    def __init__(self, source: Any, dims: Sequence[str] | None, name: str, offset: Offset, *, canonical: bool) -> None:
        if not hasattr(source, "nnz") or not getattr(source, "shape", ()):
            raise InputError(f"from_scipy takes a sparse array of SciPy or pydata/sparse, not {type(source).__name__}")
        self.title, self.name = "the matrix", name
        self.shape = tuple(int(side) for side in source.shape)
        if 0 in self.shape:
            raise InputError(f"an array needs at least one position along each dimension, found shape {self.shape}")
        plain = ["row", "col"] if len(self.shape) == 2 else [f"d{i}" for i in range(len(self.shape))]
        self.dims = plain if dims is None else list(dims)
        if len(self.dims) != len(self.shape):
            raise InputError(f"dims= names {len(self.dims)} dimensions, the matrix has {len(self.shape)}")
        self.offset = offsets_of(offset, self.shape)
        self.fill = getattr(source, "fill_value", None)
        self.dtype = datatype.parse(source.dtype)
        self._source = _readable(source, canonical)
        self.total = int(self._source.nnz)
        fields = [pa.field(dim, pa.int64()) for dim in self.dims]
        self.schema = pa.schema([*fields, pa.field(name, arrow_types.type_of(self.dtype))])

    def streams(self, names: Sequence[str], again: bool) -> list[Callable[[], Iterator[Piece]]]:
        """One of all of it."""
        return [lambda: self._pieces(names)]

    def _pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """Slices of the stored values."""
        for first in range(0, self.total, _PIECE_CELLS):
            last = min(self.total, first + _PIECE_CELLS)
            places, values = _stored(self._source, first, last)
            self._check_places(places)
            made = {
                dim: pa.array(place.astype(np.int64) + low)
                for dim, place, low in zip(self.dims, places, self.offset, strict=True)
            }
            native = values.astype(datatype.numpy_of(self.dtype), copy=False)
            made[self.name] = arrow.array_of(Column(self.dtype, np.ascontiguousarray(native)))
            yield Piece(pa.table(made).select(list(names)), self.title, first, last)

    def _check_places(self, places: Sequence[AnyArray]) -> None:
        for dim, place, side in zip(self.dims, places, self.shape, strict=True):
            wrong = np.flatnonzero((place < 0) | (place >= side))
            if len(wrong):
                raise InputError(
                    f"the matrix is damaged: it has a value at {dim}={place[wrong[0]]}, outside the domain of its "
                    f"shape {self.shape}"
                )

    def known(self, names: Sequence[str]) -> Mapping[str, Known]:
        """The schema is made of the shape."""
        return {}

    def count(self) -> int | None:
        """The number of stored values."""
        return self.total

    def close(self) -> None:
        """Nothing is held."""


class _MatrixFeed(TableFeed):
    """A matrix, whose domain is its shape, and what lies before its offset."""

    def __init__(self, matrix: _Matrix, context: Context, layout: Layout) -> None:
        super().__init__(matrix, context)
        self._matrix, self._layout = matrix, layout

    def inferred(self, dims: Sequence[str] | None, sparse: bool, options: Options) -> Schema:
        matrix = self._matrix
        made = [
            infer.Column(name, pa.int64(), low=pa.scalar(min(0, low)), high=pa.scalar(low + side - 1))
            for name, side, low in zip(matrix.dims, matrix.shape, matrix.offset, strict=True)
        ]
        kind = arrow_types.type_of(matrix.dtype)  # Which of a complex number is that of a pair.
        made.append(infer.Column(matrix.name, kind, known_dtype=matrix.dtype, fill=matrix.fill))
        plain = infer.schema_of(
            made, matrix.dims, matrix.total, sparse=sparse, duplicates=options.duplicates, capacity=options.capacity
        )
        return self._layout.of_schema(plain)


def _readable(source: Any, canonical: bool) -> Any:
    """The matrix in a format that `_stored` takes slices of; `canonical`: with one value at each place."""
    if type(source).__module__.partition(".")[0] == "sparse":
        return source if hasattr(source, "coords") else source.asformat("coo")
    if source.format not in ("csr", "csc", "coo"):
        source = source.tocoo()
    if canonical and not source.has_canonical_format:
        source = source.copy()
        source.sum_duplicates()
    return source


def _stored(source: Any, first: int, last: int) -> tuple[list[AnyArray], AnyArray]:
    """The positions, an array per dimension, and the values that are stored from `first` to before `last`."""
    values = source.data[first:last]
    if getattr(source, "format", "coo") == "coo":
        return [np.asarray(along[first:last]) for along in source.coords], values
    ends = source.indptr
    low = int(np.searchsorted(ends, first, "right")) - 1
    high = int(np.searchsorted(ends, last, "left"))
    counts = np.diff(np.clip(ends[low : high + 1], first, last))
    places = [np.repeat(np.arange(low, high), counts), source.indices[first:last]]
    return (places if source.format == "csr" else places[::-1]), values


def from_mtx(
    uri: store.Uri,
    source: str | os.PathLike[str],
    dims: Sequence[str] | None = None,
    schema: Schema | None = None,
    sparse: bool | None = None,
    context: Context | None = None,
    progress: Progress = None,
    *,
    name: str | None = None,
    offset: Offset = None,
    tile: Tile = "auto",
    by: str | None = None,
    **options: Unpack[Keywords],
) -> Array:
    """Loads a Matrix Market file, which SciPy reads whole into memory; see `from_scipy`.

    Args:
        uri, dims, schema, context, progress, name, offset, tile, by, options: as in `from_scipy`; the last three before
            options are for matrices that become sparse arrays.
        source: one file; `.gz .bz2 .xz .zst .lz4` are decompressed. A symmetric matrix becomes a whole one.
        sparse: None: as the file says: sparse for its format "coordinate", dense for "array".

    Raises:
        InputError: the file is no Matrix Market file.
    """
    reader = needed("scipy.io", "scipy", "from_mtx")
    files, scratch = expand(source), Scratch()
    if len(files) > 1:
        raise InputError(f"from_mtx loads one matrix, found {len(files)} files; load each into an array of its own")
    try:
        matrix = reader.mmread(scratch.plain(files[0]))
    except (ValueError, IndexError, OverflowError, OSError, TypeError, UnicodeDecodeError) as error:
        raise InputError(f"{files[0]} is no Matrix Market file, or is damaged: {error}") from error
    finally:
        scratch.close()
    if isinstance(matrix, np.ndarray):
        if sparse:
            matrix = needed("scipy.sparse", "scipy", "from_mtx").coo_array(matrix)
        else:
            if (offset, tile, by) != (None, "auto", None):
                raise InputError(
                    f"{files[0]} holds a dense matrix: offset=, tile= and by= are for sparse ones; pass "
                    f"sparse=True, or write the part: array.write(matrix, box=...)"
                )
            return from_array(uri, matrix, dims, schema, context, progress, name=name, **options)
    kept = sparse is not False
    return from_scipy(
        uri, matrix, dims, schema, kept, context, progress, name=name, offset=offset, tile=tile, by=by, **options
    )


@checked(array=stored, target=file)
def to_mtx(
    array: Array | store.Uri,
    target: str | os.PathLike[str],
    box: BoxLike = None,
    attr: str | None = None,
    *,
    progress: Progress = None,
    damaged: Damaged = "error",
) -> int:
    """Writes a box of a two-dimensional array as a Matrix Market file, through a sparse array of SciPy in memory.

    Args:
        array: an array, or the store of one.
        target: the file; it appears, or is replaced, once all is written.
        box: in coordinates, as in `Array.read`; None: everything. Positions count from its low corner.
        attr: the attribute; None: the only one.
        progress: True for a bar, or a callable `f(done, total)`: bytes read. The file is written after that.
        damaged: "error", or "skip" to leave out what is damaged, with a warning; as in `Array.read`.

    Returns the number of values stored.

    Raises:
        UnsupportedError: a file name that asks for compression, and as in `Result.to_scipy`.
    """
    writer = needed("scipy.io", "scipy", "to_mtx")
    if compression_of(path_of(target)) is not None:
        raise UnsupportedError("to_mtx writes plain files; compress the file afterwards")
    source = opened(array)
    where = box_of(source._schema, box)
    found = source.read(where, None if attr is None else [attr], progress=progress, damaged=damaged)
    matrix = found.to_scipy(attr)

    def write(part: Path) -> None:
        with part.open("wb") as file:
            writer.mmwrite(file, matrix)

    written(target, write)
    return int(matrix.nnz)
