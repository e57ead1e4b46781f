"""`DimView`: one dimension of an array."""

from typing import Any, Protocol

from .. import _native
from ..base.printable import brief
from ..column.datatype import AnyArray, Value
from ..errors import SchemaError
from ..labels import along
from ..schema.array_schema import Schema
from ..schema.dimension import Dim
from .metadata import Metadata


class Dimensioned(Protocol):
    """The array of a dimension, as `gridstone.Array` is."""

    @property
    def native(self) -> "_native.Array": ...

    @property
    def _schema(self) -> Schema: ...

    def _note_ends(self, key: Any = ...) -> None: ...

    def _writable(self) -> "_native.Array": ...


class DimView:
    """One dimension of an array, in the version that its handle shows: `a.dim("lat")`."""

    def __init__(self, array: Dimensioned, name: str) -> None:
        array._schema.dim(name)
        self._array, self._name = array, name

    @property
    def _dim(self) -> Dim:
        return self._array._schema.dim(self._name)

    @property
    def array(self) -> Dimensioned:
        """The array that it belongs to."""
        return self._array

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def axis(self) -> int:
        """Its number, from 0."""
        return [dim.name for dim in self._array._schema.dims].index(self._dim.name)

    @property
    def dtype(self) -> str:
        """The type of its coordinates."""
        return self._dim.dtype

    @property
    def domain(self) -> Any:
        """The lowest and the highest coordinate, both inclusive; None of texts."""
        self._array._note_ends()
        return self._dim.reach

    @property
    def size(self) -> int:
        """The number of positions; a `SchemaError` for floats and texts."""
        self._array._note_ends()
        return self._dim.size

    @property
    def tile(self) -> Value | None:
        """The extent of a space tile in coordinates; None: one tile."""
        return self._dim.tile

    @property
    def labels(self) -> AnyArray | None:
        """The labels of its positions, of a dense array; None if it has none. Positions without a label are masked, NaN
        or NaT. `array.alter(labels={name: …})` sets them."""
        self._array._note_ends()
        return along.read(self._array.native, self._dim, self.axis)

    @property
    def meta(self) -> Metadata:
        """Metadata of the dimension: a mutable mapping of text to JSON values, as that of the array."""
        array, name = self._array, self._name
        return Metadata(lambda: _native.Field(array.native, name), lambda: _native.Field(array._writable(), name))

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        try:
            return f"<gridstone.DimView {self._dim!r}>"
        except SchemaError:
            return f"<gridstone.DimView {brief(self._name)} (renamed)>"
