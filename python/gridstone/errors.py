"""Errors and warnings: one class per answer to "what would the caller do about it?".

Each class also derives from the built-in exception that Python code already catches for that case. The compiled core
raises these classes by name. Every message says what was asked, what was found, and what to do.
"""

__all__ = [
    "AccessError",
    "BoundsError",
    "BudgetError",
    "ClockWarning",
    "CommitUnknownError",
    "ConflictError",
    "CorruptionError",
    "ExistsError",
    "GridstoneError",
    "InputError",
    "MissingAttributeError",
    "MissingColumnError",
    "MissingLabelError",
    "MissingNameError",
    "NotFoundError",
    "SchemaError",
    "SnapshotExpiredError",
    "SourceChangedError",
    "StorageError",
    "UnsupportedError",
]


class GridstoneError(Exception):
    """The base of every error of this package."""

    def __str__(self) -> str:
        """The message; never a number and a file name, which `OSError` would make of two arguments."""
        return " ".join(str(a) for a in self.args)


class SchemaError(GridstoneError, ValueError):
    """The schema is contradictory, or the data does not fit it."""


class BoundsError(GridstoneError, IndexError):
    """A position or coordinate lies outside the domain."""


class NotFoundError(GridstoneError, FileNotFoundError):
    """The store, array, group, attribute or version does not exist."""


class MissingNameError(NotFoundError, KeyError):
    """A group has nothing of that name; also a `KeyError`, as of a mapping."""


class ExistsError(GridstoneError, FileExistsError):
    """The thing to be created exists."""


class ConflictError(GridstoneError):
    """Another commit made this one impossible; read again and repeat."""


class CommitUnknownError(GridstoneError):
    """Whether the commit happened could not be found out; nothing was deleted."""


class CorruptionError(GridstoneError):
    """Stored bytes are not what was written."""


class SourceChangedError(GridstoneError):
    """A foreign file changed since it was attached."""


class SnapshotExpiredError(GridstoneError):
    """The version asked for has been vacuumed."""


class BudgetError(GridstoneError, MemoryError):
    """The work does not fit into the memory budget."""

    def __new__(cls, *args: object) -> "BudgetError":
        # That of MemoryError, which Python would find, refuses classes of another layout. Dask calls it to unpickle.
        return Exception.__new__(cls, *args)


class StorageError(GridstoneError, OSError):
    """The storage refused: full, read-only, unreachable."""


class AccessError(GridstoneError, PermissionError):
    """A key, credential or permission is missing or wrong."""


class UnsupportedError(GridstoneError):
    """Valid, but not supported by this version or this storage."""


class InputError(GridstoneError, ValueError):
    """The values given are wrong: type, shape, NaN, duplicates; names the row and column where known."""


class ClockWarning(UserWarning):
    """The clock of a machine that writes to a store is far off. Nothing failed: times of versions only label them."""


class MissingAttributeError(SchemaError, KeyError):
    """An array has no attribute of the name that its brackets were given: also what a mapping would raise."""


class MissingColumnError(InputError, KeyError):
    """A result has no column of the name that its brackets were given: also what a mapping would raise."""


class MissingLabelError(BoundsError, KeyError):
    """A dimension has no such label: also what a mapping, or xarray, would raise."""
