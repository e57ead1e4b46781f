"""Attributes that are added to an array, and cells that are written to it, in one commit.

1. In a transaction of the caller's both are staged there. An error takes the attributes back.
2. Else they are a transaction of their own, on the newest version. If another commit has changed the schema meanwhile,
   the call is tried again on what is there now.
3. With a commit key it is a transaction whatever the array has: repeated, it reads the version that it read first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .. import _native
from ..errors import ConflictError, InputError
from ..schema.array_schema import Schema
from ..version import receipt
from ..version.receipt import Closing, Message, NoCommit
from ..write.new_attrs import new_attrs

_TRIES = 20
"""How often a call that adds attributes is tried while others change the schema too."""


class Extensible(Protocol):
    """What an extension needs of an array."""

    @property
    def _schema(self) -> Schema: ...

    def _evolve(self, asked: Mapping[str, Any], message: Message) -> int: ...

    def refresh(self) -> int: ...

    def _writable(self) -> "_native.Array": ...

    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int | receipt.Receipt: ...

    def _begun(self, key: tuple[bytes, bool] | None) -> "tuple[Any, _native.Transaction] | None": ...

    def _noted_stats(self, stats: Mapping[str, int]) -> None: ...

    @property
    def stats(self) -> dict[str, int]: ...


class Extension:
    """One such commit: `add` attributes, write to `staged`, commit."""

    def __init__(self, array: Extensible, closing: Closing) -> None:
        self._array, self._message = array, receipt.message_of(_committed(closing))
        begun = array._begun(receipt.given_key(closing))
        self.staged: Extensible = array if begun is None else begun[0]
        self._transaction = None if begun is None else begun[1]
        self.ending: Closing = closing if begun is None else None
        """What ends a write to `staged`."""
        self._added: list[str] = []

    @property
    def _schema(self) -> Schema:
        return self.staged._schema

    def add(self, data: Any, attrs: Any) -> None:
        """Adds the attributes that the array lacks for these columns."""
        found = new_attrs(self._schema, data, attrs)
        if found:
            self.staged._evolve({"add": [attr._json() for attr in found]}, None)
            self._added = [attr.name for attr in found]

    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> int:
        version = self.staged._commit(staged, message)
        assert not isinstance(version, receipt.Receipt)
        return self.commit(version)

    def commit(self, staged_version: int) -> int:
        """Commits what was written to `staged`, unless the caller's transaction does."""
        self._added = []
        if self._transaction is None:
            return staged_version
        version = self._transaction.commit(self._message)
        self._array.refresh()
        self._array._noted_stats(self.staged.stats)
        return version

    def give_up(self) -> None:
        """Leaves the array as it was."""
        added, self._added = self._added, []
        if self._transaction is not None:
            self._transaction.abort()
        elif added:
            self.staged._evolve({"drop": added}, None)


def write(array: Extensible, data: Any, attrs: Any, closing: Closing, stage: Callable[[Any, Closing], Any]) -> int:
    """Adds attributes for the columns that the array lacks, and has `stage` write to the array that has them."""
    for tries in range(_TRIES):
        seen = array._schema
        try:
            extension = Extension(array, closing)
            try:
                extension.add(data, attrs)
                version: int = stage(extension.staged, extension.ending)
                return extension.commit(version)
            except BaseException:
                extension.give_up()
                raise
        except ConflictError:
            if array._writable().in_transaction or tries + 1 == _TRIES:
                raise
            array.refresh()
            if array._schema == seen:
                raise
    raise AssertionError("the last try returns or raises")


def _committed(closing: Closing) -> "Message | receipt.Keyed":
    if isinstance(closing, NoCommit):
        raise InputError(
            "a receipt holds cells, not the attributes that evolve=True adds: leave commit=False out, or add them "
            "first with alter(add=...)"
        )
    return closing
