"""Reports to a transaction what is read."""

from abc import abstractmethod
from typing import Any

from ..query.box import Region


class Noting:
    """The part of an array that tells its transaction what was looked at."""

    @abstractmethod
    def _note_ends(self, key: Any = ...) -> None: ...

    def _note_cut(self, region: Region) -> None:
        """All beyond the ends of the domain counts as read, if a box of the region is empty since the domain ends."""
        if region.is_cut:
            self._note_ends()
