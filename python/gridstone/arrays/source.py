"""What a result knows of the array that it was read of: labels and metadata, of the version of the read."""

from typing import Any

from .. import _native
from ..column.datatype import AnyArray
from ..labels import along
from ..schema.array_schema import Schema
from .metadata import Metadata


class ArraySource:
    """An array in the version that a read saw. It is opened again when it is asked, if the handle went on."""

    __slots__ = ("_found", "_native", "_schema", "_still", "_version")

    def __init__(self, native: "_native.Array", schema: Schema) -> None:
        self._native, self._schema, self._version = native, schema, native.version
        self._still: _native.Array | None = None
        self._found: dict[int, AnyArray | None] = {}
        if native.in_transaction:
            # A transaction that has ended tells nothing.
            for axis in range(schema.ndim):
                self.labels(axis)

    def _pinned(self) -> "_native.Array":
        if self._still is None:
            native = self._native
            self._still = native.still() if native.version == self._version else native.at(self._version, None)
        return self._still

    def labels(self, axis: int) -> AnyArray | None:
        """The labels of all positions along a dimension; None if it has none."""
        if axis not in self._found:
            dim = self._schema.dims[axis]
            stored = dim._stored_labels
            self._found[axis] = None if stored is None else along.read(self._pinned(), dim, axis)
        return self._found[axis]

    def meta(self, name: str | None) -> dict[str, Any]:
        """The metadata of the array, or of a dimension or attribute."""
        native = self._pinned()
        return dict(Metadata(lambda: native if name is None else _native.Field(native, name), _no_writer))

    def __reduce__(self) -> tuple[Any, ...]:
        found = {axis: self.labels(axis) for axis in range(self._schema.ndim)}
        names = [None, *(dim.name for dim in self._schema.dims), *(attr.name for attr in self._schema.attrs)]
        return FixedSource, (found, {name: self.meta(name) for name in names})


class FixedSource:
    """What was known of an array when a result was pickled."""

    __slots__ = ("_labels", "_meta")

    def __init__(self, labels: dict[int, AnyArray | None], meta: dict[str | None, dict[str, Any]]) -> None:
        self._labels, self._meta = labels, meta

    def labels(self, axis: int) -> AnyArray | None:
        """The labels of all positions along a dimension; None if it has none."""
        return self._labels[axis]

    def meta(self, name: str | None) -> dict[str, Any]:
        """The metadata of the array, or of a dimension or attribute."""
        return self._meta[name]


def _no_writer() -> Any:
    raise AssertionError("metadata of a result is not written")
