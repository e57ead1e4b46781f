"""Reports to a transaction what is read."""

from abc import abstractmethod
from typing import Any


class Noting:
    """The part of an array that tells its transaction what was looked at."""

    @abstractmethod
    def _note_ends(self, key: Any = ...) -> None: ...
