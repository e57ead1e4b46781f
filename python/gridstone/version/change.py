"""The version that a correction committed, and how many cells it was of."""

from typing import Any


class Change(int):
    """A version, as an `int`, that knows how many cells it deleted or updated.

    Compares, prints and converts to JSON as the number of the version does.

        deleted = a.delete(where="sog > 100", count=True)
        deleted.cells, a.at(version=deleted - 1)
    """

    cells: int | None
    """Cells deleted or updated; None where they were not counted."""

    def __new__(cls, version: int, cells: int | None = None) -> "Change":
        """The version, and its cells."""
        made = super().__new__(cls, version)
        made.cells = cells
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Change, (int(self), self.cells)

    def __str__(self) -> str:
        return int.__repr__(self)

    def __repr__(self) -> str:
        counted = "not counted" if self.cells is None else f"{self.cells:,}"
        return f"<version {int(self)}, cells: {counted}>"
