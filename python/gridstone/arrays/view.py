"""Views of an array: one attribute, and access by coordinates."""

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import _native
from ..base import drawer
from ..base.arguments import checked, file, mapping, several, text
from ..base.printable import brief
from ..base.progress import Progress
from ..column import datatype
from ..column.datatype import AnyArray, Value
from ..errors import BoundsError, InputError, MissingAttributeError, SchemaError, UnsupportedError
from ..indexing import dense, fancy, indexers, positions
from ..indexing.handle import Handle
from ..query.box import BoxLike, Room, axes_of_coordinates
from ..result.cells import Result
from ..schema.array_schema import Schema
from ..write.input import coordinate_columns
from . import conversion
from .metadata import Metadata
from .reduce import Found, Question, Reducible

if TYPE_CHECKING:
    from ..result.stream import Stream


class Viewed(Handle, Protocol):
    """The array behind a view, as `gridstone.Array` is."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def chunks(self) -> tuple[int, ...]: ...

    def points(self, coords: Any, attrs: Sequence[str] | str | None = ..., *, progress: Progress = ...) -> Result: ...

    def _names(self, attrs: Sequence[str] | str | None, schema: Schema | None = ...) -> list[str]: ...

    def _cells_held(self) -> int: ...

    def _pinned(self) -> "Viewed": ...

    def scan(self, *, attrs: str) -> "Stream": ...

    def _no_membership(self, name: str) -> TypeError: ...

    def _reduced(self, aggregates: Mapping[str, str], question: Question) -> Found: ...

    @property
    def native(self) -> "_native.Array": ...

    def __dask_tokenize__(self) -> Any: ...

    def _selected(self, asked: Mapping[str, Any], method: str | None, attrs: str | None) -> Result: ...

    def __len__(self) -> int: ...


class AttrView(Reducible):
    """One attribute of an array: `a["v"]`. Indexing gives an ndarray (masked if nullable), of positions, lists of them
    and masks by NumPy's rules; `.loc` takes coordinates; assignment writes this attribute alone. For a sparse array the
    values of the cells found, in row order.
    """

    def __init__(self, array: Viewed, name: str) -> None:
        try:
            self._array, self._attr = array, array._schema.attr(name)
        except SchemaError as error:
            raise MissingAttributeError(str(error)) from None

    @property
    def array(self) -> Viewed:
        """The array that this attribute belongs to."""
        return self._array

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self._attr.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of what indexing gives: object for strings and bytes."""
        return datatype.numpy_of(self._attr.dtype)

    @property
    def fill(self) -> Value:
        """What unwritten cells read as unless the attribute is nullable."""
        return self._attr.fill

    @property
    def nullable(self) -> bool:
        """Whether values may be null."""
        return self._attr.nullable

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """Cells of the domain, of a sparse array empty ones too."""
        return self._array.size

    @property
    def sparse(self) -> bool:
        """Whether only non-empty cells exist."""
        return self._array.sparse

    @property
    def nbytes(self) -> int:
        """Bytes in memory (without the content of strings and lists) of all cells; of a sparse array of those that its
        fragments hold."""
        return self._array._cells_held() * datatype.cell_bytes(self._attr.dtype)

    @property
    def chunks(self) -> tuple[int, ...]:
        """The space tile's shape."""
        return self._array.chunks

    @property
    def loc(self) -> "Loc":
        """This attribute by coordinates: `a["v"].loc[100:110]`, half-open."""
        return Loc(self._array, self.name)

    @property
    def meta(self) -> Metadata:
        """Metadata of the attribute: a mutable mapping of text to JSON values, as that of the array."""
        array, name = self._array, self.name
        return Metadata(lambda: _native.Field(array.native, name), lambda: _native.Field(array._writable(), name))

    @checked(labels=mapping)
    def sel(self, labels: Mapping[str, Any] | None = None, /, method: str | None = None, **more: Any) -> Result:
        """This attribute by labels; see `Array.sel`."""
        return self._array._selected({**(labels or {}), **more}, method, self.name)

    @checked(target=file, dims=several, at=mapping, title=text, theme=text)
    def plot(
        self,
        target: str | os.PathLike[str] | None = None,
        *,
        dims: tuple[str, str] | None = None,
        box: BoxLike = None,
        at: Mapping[str, Any] | None = None,
        title: str | None = None,
        theme: str = "dark",
    ) -> Any:
        """This attribute of a dense array as an image: `a["t"].plot("t.png")`. See `Array.plot`."""
        told = {"dims": dims, "box": box, "at": at, "title": title, "theme": theme}
        return drawer.draw("array", self._array, target, attr=self.name, **told)

    @property
    def vindex(self) -> indexers.VIndex:
        """This attribute at lists of positions, point by point: `a["v"].vindex[[1, 5], [2, 2]]`."""
        return indexers.VIndex(self._array, self.name)

    @property
    def oindex(self) -> indexers.OIndex:
        """This attribute at lists of positions per axis: `a["v"].oindex[[1, 5], :]`."""
        return indexers.OIndex(self._array, self.name)

    @checked()
    def points(self, coords: Any, *, progress: Progress = None) -> AnyArray:
        """This attribute's values at these coordinates (see `Array.points`), one per point; of a sparse array those of
        the cells that exist.

        Raises:
            BoundsError: of a dense array, a point outside the domain: values alone do not say which points are there.
        """
        found = self._array.points(coords, self.name, progress=progress)
        if self._array.sparse:
            return found[self.name]
        asked = len(next(iter(coordinate_columns(self._array._schema, coords).values())))
        if len(found) < asked:
            raise BoundsError(
                f"{asked - len(found)} of {asked} points lie outside the domain; a.points(coords) leaves them out, "
                f"and says by its coordinates which are there"
            )
        return found[self.name]

    def __getitem__(self, key: Any) -> Any:
        array, name = self._array, self.name
        array._note_ends(key)
        if array.sparse:
            return array._retry_if_schema_moved(lambda schema: positions.read(array, schema, key, [name])[name])

        def look(schema: Schema) -> Any:
            return fancy.read_at(array, schema, array._names(name, schema), key)[name]

        return array._retry_if_schema_moved(look)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._check_dense("assignment to positions")
        self._array._note_ends(key)
        fancy.assign(self._array, self.name, key, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """The values; an `UnsupportedError` if there are nulls among them, which NumPy has no place for."""
        masked = conversion.is_for_masked_array(self)
        return conversion.plain(f"a[{self.name!r}]", self[...], dtype, copy, masked=masked)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The cells with this attribute as a stream of Arrow batches: coordinates, then values."""
        array = self._array if self._array.native.in_transaction else self._array._pinned()
        return array.scan(attrs=self.name).__arrow_c_stream__(requested_schema)

    def __dask_tokenize__(self) -> Any:
        """What Dask names graphs by: the attribute of the array at its version, whatever its values."""
        return self._array.__dask_tokenize__(), self.name

    @property
    def _mask(self) -> Any:
        """Where values are null, as numpy.ma asks for it."""
        return np.ma.getmask(self[...]) if self.nullable else np.ma.nomask

    def __copy__(self) -> "AttrView":
        return AttrView(copy.copy(self._array), self.name)

    def to_numpy(self) -> AnyArray:
        """All values, as `a["v"][...]` gives them: masked where null."""
        found: AnyArray = self[...]
        return found

    def _own(self) -> np.dtype[Any]:
        return self.dtype

    def _reduction(self, asked: Callable[[str], Mapping[str, str]], question: Question) -> Found:
        return self._array._reduced(asked(self.name), question)

    def _frozen(self) -> "AttrView":
        return AttrView(self._array._pinned(), self.name)

    def _taken(self, key: Any = ...) -> AnyArray:
        found: AnyArray = self[key]
        return found

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        self._array._check_dense("iteration")
        frozen, count = self._frozen(), len(self)
        return conversion.rows(frozen.__getitem__, count, self.nbytes // max(1, count), self.chunks[0])

    def __contains__(self, value: object) -> bool:
        raise self._array._no_membership(self.name)

    def __repr__(self) -> str:
        return f"<gridstone.AttrView {self.name!r}: {self._attr.described}, of {self._array!r}>"


class Loc:
    """Access by the dimensions' own coordinates: `a.loc[100:110, 5]`. Slices are half-open; a single coordinate drops
    its axis; in dense arrays a slice may have a positive step.
    """

    def __init__(self, array: Viewed, name: str | None = None) -> None:
        self._array, self._name = array, name

    def __repr__(self) -> str:
        return indexers.repr_of("Loc", self._array, self._name)

    def __getitem__(self, key: Any) -> AnyArray | dict[str, AnyArray] | Result | Any:
        array, name = self._array, self._name
        names = array.schema_names if name is None else [name]
        if array.sparse:
            parts = key if isinstance(key, tuple) else (key,)
            for dim, part in zip(array._schema.dims, parts, strict=False):
                if isinstance(part, tuple | list):
                    raise InputError(
                        f"dimension {dim.name!r}: .loc[] takes a coordinate or a slice, not {brief(part)}; sel() takes "
                        f"lists, read(box=) takes pairs and lists of boxes"
                    )
            found = array.read(parts, names)
            return found if name is None else found[name]

        def look(schema: Schema) -> dict[str, AnyArray]:
            axes, is_cut = axes_of_coordinates(schema, key, Room.CLIPPED)
            if is_cut or any(axis.count == 0 for axis in axes):
                array._note_ends()  # The domain may end before what was asked for.
            return dense.read(array, names, axes)

        made = array._retry_if_schema_moved(look)
        return made[names[0]] if len(names) == 1 else made

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._array.sparse:
            raise UnsupportedError("a sparse array has no boxes to assign to; use write_cells(coords, attrs)")
        axes = axes_of_coordinates(self._array._schema, key, Room.DOMAIN).axes
        dense.write(self._array, self._name, axes, value)
