"""`Stored`: the handles of stored values that writers take as values."""

from collections.abc import Mapping
from typing import Any

from .datatype import AnyArray


class Stored:
    """A handle of stored values: an array, or one attribute of it.

    NumPy would read one through `__array__`, which has no place for nulls. Writers read it as indexing does, with them.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions per dimension."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of its values in memory, without the content of texts and lists."""
        raise NotImplementedError

    @property
    def sparse(self) -> bool:
        """Whether only non-empty cells exist."""
        raise NotImplementedError

    def _frozen(self) -> "Stored":
        """The same at the version that it shows now, whatever becomes of the handle."""
        raise NotImplementedError

    def _taken(self, key: Any = ...) -> AnyArray | Mapping[str, AnyArray]:
        """The values at positions, masked where null: those of an attribute, or of each attribute by its name."""
        raise NotImplementedError
