"""Reports to a transaction what is read."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from .. import _native
from ..context.settings import Context
from ..query.box import Region
from ..schema.array_schema import Schema

_Found = TypeVar("_Found")


class Noting:
    """The part of an array that tells its transaction what was looked at."""

    @abstractmethod
    def _note_ends(self, key: Any = ...) -> None: ...

    def _note_cut(self, region: Region) -> None:
        """All beyond the ends of the domain counts as read, if a box of the region is empty since the domain ends."""
        if region.is_cut:
            self._note_ends()


class Looking(Noting):
    """The part of an array that its parts which read have in common."""

    _schema: Schema
    _context: Context
    _stats: dict[str, int]

    @property
    @abstractmethod
    def native(self) -> "_native.Array": ...

    @abstractmethod
    def _retry_if_schema_moved(self, look: Callable[[Schema], _Found]) -> _Found: ...
