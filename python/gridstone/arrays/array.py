"""`Array`: reading by position and coordinate, writing, versions, metadata."""

import contextlib
import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import _native
from ..base.arguments import checked, flag
from ..base.printable import brief, printable
from ..base.progress import Progress, reporting
from ..base.refusals import read_only
from ..column import datatype
from ..column.columns import Column
from ..column.datatype import AnyArray
from ..column.stored import Stored
from ..context.settings import Context
from ..errors import BoundsError, GridstoneError, InputError, NotFoundError, UnsupportedError
from ..indexing import dense, fancy, indexers, lists, positions
from ..maintain.consolidation import Mergeable
from ..maintain.health import Checked
from ..maintain.retention import Retained
from ..query.box import BoxLike, Room, box_of, region_of
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..schema.attribute import Attr
from ..version import history, receipt
from ..version.history import Version
from ..version.receipt import Closing, CommitKey, Message, NoCommit, Receipt
from ..write.input import coordinate_columns
from . import conversion, display, pickling
from .aggregate import Askable
from .attached import Attached
from .drawing import Drawable
from .evolution import Evolvable
from .explain import Explainable
from .filtering import Filterable
from .frames import Tabled
from .labelled import Labelled
from .metadata import Metadata
from .reduce import ReducibleArray
from .source import ArraySource
from .update import Updatable
from .view import AttrView, Loc
from .write import Writable

if TYPE_CHECKING:
    import pyarrow as pa


class Array(
    Labelled,
    Attached,
    Askable,
    ReducibleArray,
    Explainable,
    Tabled,
    Filterable,
    Evolvable,
    Retained,
    Mergeable,
    Updatable,
    Checked,
    Drawable,
    Writable,
    Stored,
):
    """An array at one version of its store. Made by `gridstone.create`, `open` and `array`.

    Threads may share one; it pickles as its place and version, without data, and survives `fork`.
    """

    def __init__(
        self,
        native: "_native.Array",
        context: Context,
        *,
        pinned: bool = False,
        unpickled: bool = False,
        lags: bool = False,
    ) -> None:
        self._native: _native.Array | None = native
        self._context, self._is_pinned, self._unpickled = context, pinned, unpickled
        self._lags = lags
        """Whether it was opened for writing, and shows the version that it was copied at until it writes."""
        self._load_schema(native)
        self._stats: dict[str, int] = {}
        self._indexes = {}
        self._uri, self._path = native.uri, native.path

    # What it is.

    @property
    def native(self) -> "_native.Array":
        """The core's array; an `InputError` once closed."""
        if self._native is None:
            raise InputError(f"the array {self._uri!r} is closed; open it again with gridstone.open")
        return self._native

    @property
    def context(self) -> Context:
        """The context that it was opened with."""
        return self._context

    @property
    def schema_names(self) -> list[str]:
        """The names of the attributes."""
        return [attr.name for attr in self._schema.attrs]

    @property
    def uri(self) -> str:
        """The store."""
        return self._uri

    @property
    def path(self) -> str:
        """The place in the store at this version; "/" is its root."""
        if self._native is not None:
            # An array without a place (its transaction has ended) keeps the last one.
            with contextlib.suppress(GridstoneError):
                self._path = self._native.path
        return self._path

    @property
    def key_id(self) -> str | None:
        """The id, in hexadecimal digits, of the key that seals (encrypts) the store; None if it is not sealed."""
        return self.native.key_id

    @property
    def mode(self) -> str:
        """ "r" or "r+"."""
        return "r+" if self.native.writable or self._lags else "r"

    @property
    def version(self) -> int:
        """The store's version that this handle shows."""
        return self.native.version

    @property
    def timestamp(self) -> dt.datetime:
        """When that version was committed, UTC; an `UnsupportedError` outside the years that `datetime` has."""
        return history.time_of(self.native.timestamp_us)

    @property
    def sparse(self) -> bool:
        """Whether only non-empty cells exist."""
        return self._known[2].sparse  # No change of a schema changes that, nor the number of dimensions.

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._known[2].ndim

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(dim.name for dim in self._schema.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions per dimension; a `SchemaError` if one is float or string."""
        self._note_ends()
        return self._schema.shape

    @property
    def size(self) -> int:
        """Cells of the domain, of a sparse array empty ones too; a `SchemaError` if a dimension is float or string."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the one attribute, or a structured dtype of several; object for strings, bytes and lists. One
        of vectors has the dtype of their numbers (and adds axes to what is read)."""
        attrs = self._schema.attrs
        if len(attrs) == 1:
            return datatype.numpy_of(attrs[0].dtype)
        return np.dtype([(attr.name, datatype.numpy_of(attr.dtype), datatype.shape_of(attr.dtype)) for attr in attrs])

    @property
    def nbytes(self) -> int:
        """Dense: bytes of all cells in memory (without the content of strings). Sparse: bytes of the fragments."""
        if self.sparse:
            return sum(json.loads(text)["bytes"] for text in self.native.fragments())
        return self.size * sum(datatype.cell_bytes(attr.dtype) for attr in self._schema.attrs)

    def _cells_held(self) -> int:
        """All cells of a dense array; those in the fragments of a sparse one."""
        if not self.sparse:
            return self.size
        return sum(json.loads(text)["cells"] for text in self.native.fragments())

    @property
    def tile(self) -> tuple[Any, ...]:
        """The extent of a space tile per dimension, in coordinates; None: the whole domain."""
        return tuple(dim.tile for dim in self._schema.dims)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Positions per space tile and dimension; a `SchemaError` if a dimension is float. The domain may cut the first
        tile and the last."""
        dims = self._schema.dims
        found = tuple(dim.positions_per_tile for dim in dims)
        if any(count == dim.size for dim, count in zip(dims, found, strict=True)):
            self._note_ends()
        return found

    @property
    def nonempty_domain(self) -> tuple[tuple[Any, Any], ...] | None:
        """The box around everything written, inclusive; None if nothing is. For texts, bounds that no cell lies beyond.
        They need not be texts of cells where texts are longer than 8 bytes."""
        found = self.native.nonempty_domain()
        if found is None:
            return None
        pairs = zip(self._schema.dims, found, strict=True)
        return tuple((datatype.from_text(d.dtype, lo), datatype.from_text(d.dtype, hi)) for d, (lo, hi) in pairs)

    @property
    def meta(self) -> Metadata:
        """Metadata: a mutable mapping of text to JSON values."""
        return Metadata(lambda: self.native, self._writable)

    @property
    def fragments(self) -> "pa.Table":
        """One row per fragment, oldest first: id, kind, version, index, cells, bytes, inline, attrs, domain."""
        from ..result import listings

        return listings.fragments(self.native.fragments())

    def tiles(self, box: BoxLike = None) -> "pa.Table":
        """The data tiles that touch `box` (or a list of boxes): row of `fragments`, cells, and the MBR as `<dim>_lo`,
        `<dim>_hi`; of texts, texts that no cell of the tile lies beyond."""
        from ..result import listings

        region = None if box is None else region_of(self._schema, box)
        return listings.tiles(self._schema, self.native.tiles(None if region is None else region.native))

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the last operation on this handle."""
        return dict(self._stats)

    # Versions.

    def refresh(self) -> int:
        """Moves to the newest version and returns it.

        Raises:
            BoundsError: the array was opened at a version.
            NotFoundError: the store was deleted, or the array removed or replaced.
        """
        if self._is_pinned:
            raise BoundsError(
                f"this array is opened at version {self.version}; open it without one to follow the store"
            )
        if self._unpickled and not self.native.writable:
            # The core opened it at the version that was pickled, and holds it there.
            self._native = pickling.newest_of(self.native, self._context, self._lags)
            self._unpickled = self._lags = False
        before = self.native.version
        version = self.native.refresh()
        if version == before:
            history.check_kept(self._context.native, self._uri)
        self._load_schema(self.native)
        return version

    @checked()
    def at(self, *, version: int | str | None = None, timestamp: Any = None) -> "Array":
        """The same array, read-only, at a version (number or tag) or the last version not after a time (see
        `gridstone.open`), of a written date or time its end: `at(timestamp="2026-03-01")` has what that day left."""
        if (version is None) == (timestamp is None):
            raise InputError("at() takes either version= or timestamp=")
        found = self.native.at(version, history.microseconds_of(timestamp))
        return Array(found, self._context, pinned=True)

    def _pinned(self) -> "Array":
        """The same array, read-only, at the version that this handle shows now, whatever becomes of the handle: for
        several reads that are to fit together. Nothing is read for it."""
        return Array(self.native.still(), self._context, pinned=True)

    def history(self) -> list[Version]:
        """The commits that touched this array, oldest first."""
        return [history.version_of(text) for text in self.native.history()]

    # Reading.

    def __getitem__(self, key: Any) -> Any:
        """Positions by NumPy's rules, or one attribute by its name.

        Dense: an ndarray of the one attribute (a dict of several), of the shape that NumPy gives: integers drop their
        axis, lists of positions and masks are taken point by point. Sparse: a `Result` of the cells there, each once
        and in row order, whatever the sign of a step or the order of a list. A key has one list at most.

        Raises:
            BoundsError: a position that is not there, a mask of another shape, lists that do not broadcast together.
            UnsupportedError: `numpy.newaxis`; several lists for a sparse array.
        """
        if isinstance(key, str):
            return AttrView(self, key)
        self._note_ends(key)
        if self.sparse:
            return self._retry_if_schema_moved(lambda schema: positions.read(self, schema, key, None))

        def look(schema: Schema) -> dict[str, AnyArray]:
            return fancy.read_at(self, schema, [attr.name for attr in schema.attrs], key)

        found = self._retry_if_schema_moved(look)
        return next(iter(found.values())) if len(found) == 1 else found

    @property
    def loc(self) -> Loc:
        """Access by the dimensions' own coordinates, half-open: `a.loc[100:110, :]`."""
        return Loc(self)

    @property
    def vindex(self) -> indexers.VIndex:
        """Cells at lists of positions, point by point: `a.vindex[[1, 5], [2, 2]]`."""
        return indexers.VIndex(self)

    @property
    def oindex(self) -> indexers.OIndex:
        """Lists of positions per axis: `a.oindex[[1, 5], :]`."""
        return indexers.OIndex(self)

    @checked()
    def points(self, coords: Any, attrs: Sequence[str] | str | None = None, *, progress: Progress = None) -> Result:
        """Reads single cells by their coordinates, given as in `write_cells`, in their order; they may repeat.

        Dense: one row per point, with fill or null where nothing was written. Sparse: the cells that exist (all
        duplicates, in order of writing). A point without a cell, or outside the domain, gives no row: the columns of
        coordinates say which points are there.

        Args:
            coords: a dict by dimension, an (n, ndim) array, or a tuple of arrays.
            attrs: the attributes wanted; None: all; [], of a sparse array: coordinates alone.
            progress: True for a bar, or a callable `f(done, total)`.

        Raises:
            InputError: an unknown dimension or attribute, or coordinates that do not fit.
            CorruptionError: stored bytes are not what was written.
        """
        schema = self._schema
        given = coordinate_columns(schema, coords)
        within = lists.inside(schema, given)
        if within is not given:
            self._note_ends()  # That nothing is there is so by the ends of the domain.
        found = lists.read(self, within, self._names(attrs, schema), progress)
        found._source = None if found._schema.sparse else ArraySource(self.native, found._schema)
        return found

    def _read_points(self, dims: Mapping[str, Column], names: Sequence[str], progress: Progress) -> "_native.Cells":
        places = [column.native() for column in dims.values()]
        with reporting(progress, "reading") as report:
            found = self.native.points(places, list(names), report)
        self._stats = found.stats
        return found

    def _read_positions(
        self, chosen: Sequence["_native._Chosen"], mask: "_native._Mask | None", names: Sequence[str]
    ) -> "_native.Cells":
        found = self.native.read_positions(chosen, mask, list(names))
        self._stats = found.stats
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """The one attribute of a dense array; an `UnsupportedError` if it has nulls, which NumPy has no place for."""
        view, masked = self._only("numpy.asarray"), conversion.is_for_masked_array(self)
        return conversion.plain(f"a[{view.name!r}]", view[...], dtype, copy, masked=masked)

    @property
    def _mask(self) -> Any:
        """Where the one attribute is null, as numpy.ma asks for it."""
        return self._only("numpy.ma")._mask

    def _only(self, what: str) -> AttrView:
        self._check_dense(what)
        if len(self._schema.attrs) != 1:
            raise InputError(f"the array has the attributes {self.schema_names}; take one: {what}(a['name'])")
        return AttrView(self, self.schema_names[0])

    def to_numpy(self) -> Any:
        """All that `a[...]` gives: an ndarray of the one attribute, or a dict of several, masked where null. A sparse
        array gives a dict of its coordinates and attributes."""
        return self[...].to_numpy() if self.sparse else self[...]

    def _frozen(self) -> "Array":
        return self._pinned()

    def _taken(self, key: Any = ...) -> AnyArray | Mapping[str, AnyArray]:
        self._check_dense("writing an array's values")
        found = self[key]
        return found if isinstance(found, dict) else {self.schema_names[0]: found}

    def _check_dense(self, what: str) -> None:
        if self.sparse:
            raise UnsupportedError(
                f"{what} needs a dense array; of a sparse one use read(), write_cells() or to_dense()"
            )

    # Writing. Every call commits one version and returns its number.

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes a dense box (or, with steps, lists or masks, single cells) at positions, in one commit; scalars and
        arrays broadcast as in NumPy, and of a cell that is named twice the last value stays."""
        self._check_dense("assignment to positions")
        if isinstance(key, str):
            self[key][...] = value
            return
        self._note_ends(key)
        fancy.assign(self, None, key, value)

    @overload
    def write(
        self,
        data: Any,
        box: BoxLike = ...,
        *,
        grow: bool = ...,
        message: Message = ...,
        progress: Progress = ...,
        commit_key: CommitKey = ...,
    ) -> int: ...
    @overload
    def write(
        self, data: Any, box: BoxLike = ..., *, grow: bool = ..., progress: Progress = ..., commit: Literal[False]
    ) -> Receipt: ...
    @checked(grow=flag)
    def write(
        self,
        data: Any,
        box: BoxLike = None,
        *,
        grow: bool = False,
        message: Message = None,
        progress: Progress = None,
        commit: bool = True,
        commit_key: CommitKey = None,
    ) -> int | Receipt:
        """Writes a dense box: an ndarray, or a dict of them by attribute, of exactly the box's shape (or scalars).

        Args:
            data: the values; a subset of the attributes leaves the others as they are.
            box: in coordinates, as in `read`; None: the whole domain. It may lie beyond an end that is open.
            grow: whether the domain grows, in the same commit, to take in a box beyond ends that are not open.
            message: kept with the version.
            progress: True for a bar, or a callable `f(done, total)`.
            commit: False: only write, and return a `Receipt` for `gridstone.commit`.
            commit_key: text or bytes, at most 128 bytes of it, that say which commit this is. The call, repeated with
                the same data by whatever process, commits once: `a.write(data, box, commit_key="load-2024-06-01")` may
                be tried again after any error. The last 100,000 keys of a store are known.

        Returns:
            The version committed; with a key that a commit had before, its version.

        Raises:
            InputError: shapes or types that do not fit, with what was found and expected.
            BoundsError: a box beyond the domain, unless it grows.
            ConflictError: the key was given to other content.
        """
        self._check_dense("write(data, box)")
        where = box_of(self._schema, box, Room.TYPE if grow else Room.OPEN)
        if where.empty and box is None:
            raise InputError(
                "the array has no coordinate yet, so that there is nothing to write to: give a box, "
                "write(data, box={...}), or append the data"
            )
        if where.empty:
            raise InputError(f"the box {brief(box)} is empty: no coordinate lies in it; there is nothing to write")
        return dense.write_box(self, where, data, receipt.closing(message, commit, commit_key), progress, grow)

    def _writable(self, *, judged: bool = False) -> "_native.Array":
        if self._lags:
            native = pickling.newest_of(self.native, self._context, True)
            pickling.check_current(self.native, native, judged)
            self._native, self._unpickled, self._lags = native, False, False
            self._load_schema(native)
        native = self.native
        if not native.writable:
            past = native.version if self._is_pinned else None
            raise read_only(f"the array {self._path!r} of {self._uri!r}", past)
        return native

    def _begun(self, key: tuple[bytes, bool] | None) -> "tuple[Array, _native.Transaction] | None":
        """The array in a transaction of its own on the newest version; None if it is in one."""
        if self._writable().in_transaction:
            return None
        self.refresh()
        begun = _native.Transaction(self._context.native, self._uri, "snapshot", key)
        made = Array(begun.array(self.path), self._context)
        if made.native.id != self.native.id:
            begun.abort()
            raise NotFoundError(f"the array {self.path!r} of {self._uri!r} was replaced by another one; open it again")
        return made, begun

    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int | Receipt:
        self._stats = {"cells_written": sum(s.cells for s in staged), "bytes_written": sum(s.bytes for s in staged)}
        if isinstance(message, NoCommit):
            return Receipt(self._writable().receipt(staged))
        return self._writable().commit(staged, receipt.message_of(message))

    def _noted_stats(self, stats: Mapping[str, int]) -> None:
        self._stats = dict(stats)

    def _vacuum(self, dry_run: bool, *options: Any) -> str:
        return (self.native if dry_run else self._writable()).vacuum(*options)

    def _tags(self) -> list[tuple[str, int]]:
        return self.native.tags

    # As a Python object.

    def close(self) -> None:
        """Lets go of the store; nothing else can be asked of this handle."""
        self._native = None

    def __enter__(self) -> "Array":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __bool__(self) -> bool:
        """True: a handle is there, whatever its array holds."""
        return True

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("an array of no dimension has no length; its one value is a[()]")
        return self.shape[0]

    def __contains__(self, value: object) -> bool:
        raise self._no_membership(self.schema_names[0])

    def _no_membership(self, name: str) -> TypeError:
        """Python would compare row by row what is read for it; what is meant is better said."""
        return TypeError(
            f"`in` does not look through an array: read(where=gridstone.col({name!r}) == value) finds cells, "
            f"`name in array.schema_names` an attribute"
        )

    def __iter__(self) -> Iterator[Any]:
        self._check_dense("iteration")
        frozen, count = self._pinned(), len(self)
        return conversion.rows(frozen.__getitem__, count, self.nbytes // max(1, count), self.chunks[0])

    def __copy__(self) -> "Array":
        """Another handle of the same version, mode and context; what one does later does not move the other."""
        self._check_movable()
        native, lags = (self.native.still(), False) if self.mode == "r" else pickling.again(self.native, self._context)
        return Array(native, self._context, pinned=self._is_pinned, unpickled=True, lags=lags)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Array":
        return self.__copy__()

    def _check_movable(self) -> None:
        if self.native.in_transaction:
            raise UnsupportedError(
                "an array of a transaction cannot be copied or pickled; open it outside of the transaction"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        self._check_movable()
        place = (self._uri, self.path, self.version, self.mode, self._is_pinned, self._context)
        return _reopened, (*place, self.native.id)

    def __repr__(self) -> str:
        if self._native is None:
            return f"<gridstone.Array {self._uri!r} (closed)>"
        kind = "sparse" if self.sparse else "dense"
        dims = ", ".join(f"{printable(dim.name)}: {dim._shown}" for dim in self._schema.dims)
        attrs = ", ".join(f"{printable(attr.name)}: {attr.dtype}{_of(attr)}" for attr in self._schema.attrs)
        place = self._uri if self.path == "/" else f"{self._uri} {self.path}"
        return f"<gridstone.Array {place!r} {kind} ({dims}) {{{attrs}}} version {self.version}>"

    def _repr_html_(self) -> str:
        return display.closed(self.uri) if self._native is None else display.opened(self)


def _of(attr: Attr) -> str:
    """What is said of the categories of an attribute."""
    return "" if attr.categories is None else f" of {len(attr.categories)} categories"


def _reopened(
    uri: str, path: str, version: int, mode: str, pinned: bool, context: Context, array_id: str | None = None
) -> Array:
    """The array that was pickled."""
    found, lags = pickling.reopened(context, uri, path, version, mode, array_id)
    return Array(found, context, pinned=pinned, unpickled=True, lags=lags)
