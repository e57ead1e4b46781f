"""Receipts: cells that one process has written and another one commits."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _native
from ..base.arguments import is_iterable, utf8
from ..base.printable import brief
from ..errors import InputError


class Receipt:
    """Cells that are written and durable, and that nothing refers to yet: what `write(..., commit=False)` gives.

    A small value that pickles, converts to text and may be sent to any process; `gridstone.commit` makes the cells of
    many visible in one version. A receipt is bound to its store and array by their ids, and can be committed once.
    """

    __slots__ = ("_bytes", "_cells", "_text")

    def __init__(self, text: str) -> None:
        """The receipt that `to_json` gave.

        Raises:
            InputError: the text is no receipt.
            UnsupportedError: it is one of a later version.
        """
        if not isinstance(text, str):
            raise InputError(f"a receipt is made of the text that to_json() gave, found {type(text).__name__}")
        self._text, self._cells, self._bytes = _native.check_receipt(utf8("text", text))

    def to_json(self) -> str:
        """The receipt as text."""
        return self._text

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """The receipt that `to_json` gave as text."""
        return cls(text)

    @property
    def _said(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._text)
        return said

    @property
    def id(self) -> str:
        """Its own id."""
        return str(self._said["id"])

    @property
    def store(self) -> str:
        """The id of the store."""
        return str(self._said["store"])

    @property
    def array(self) -> str:
        """The id of the array."""
        return str(self._said["array"])

    @property
    def path(self) -> str:
        """Where the array was when it was written."""
        return str(self._said["path"])

    @property
    def version(self) -> int:
        """The store's version when it was written."""
        return int(self._said["version"])

    @property
    def writer(self) -> str:
        """What wrote it."""
        return str(self._said["writer"])

    @property
    def fragments(self) -> list[str]:
        """The ids of its fragments; the files are `_data/<id>.frag`."""
        return [str(fragment["id"]) for fragment in self._said["fragments"]]

    @property
    def cells(self) -> int:
        """Cells written."""
        return self._cells

    @property
    def bytes(self) -> int:
        """Bytes written."""
        return self._bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return Receipt, (self._text,)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Receipt) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return (
            f"<gridstone.Receipt {self.id[:8]}: {self._cells} cells, {self._bytes} bytes for {self.path!r}, "
            f"written at version {self.version} by {self.writer}>"
        )


class NoCommit:
    """Stands in the place of a message where nothing is to be committed."""


class LoadKey(bytes):
    """The commit key of a load, whose array is known by its path: repeated, it may find the array that it created."""


class Keyed(NamedTuple):
    """A commit with a key."""

    message: str | None
    key: bytes


Message = str | None
CommitKey = str | bytes | None
Closing = Message | NoCommit | Keyed
"""What ends a write: a commit with a message, and perhaps with a key, or a receipt."""

_KEY_BYTES_MAX = 128


def commit_key(key: CommitKey) -> bytes | None:
    """The bytes of a commit key; an `InputError` if it cannot be one."""
    if key is None:
        return None
    if not isinstance(key, str | bytes):
        raise InputError(f"commit_key= takes text or bytes, not {brief(key)}")
    made = utf8("commit_key", key).encode() if isinstance(key, str) else key
    if not 1 <= len(made) <= _KEY_BYTES_MAX:
        raise InputError(
            f"commit_key= takes 1 to {_KEY_BYTES_MAX} bytes, found {len(made)}: a UUID, or a job and a number"
        )
    return made


def closing(message: Message, commit: bool, key: CommitKey = None) -> Closing:
    """How a write is to end; an `InputError` for a message or a key that nothing would keep."""
    made = commit_key(key)
    if commit:
        return message if made is None else Keyed(message, made)
    if message is not None or made is not None:
        what = "a message is" if message is not None else "a commit key is"
        raise InputError(f"{what} kept with a version; with commit=False give it to gridstone.commit")
    return NoCommit()


def key_of(ending: Closing) -> bytes | None:
    """The key of the commit."""
    return ending.key if isinstance(ending, Keyed) else None


def given_key(ending: Closing) -> tuple[bytes, bool] | None:
    """The key of the commit, and whether it is that of a load."""
    return (ending.key, isinstance(ending.key, LoadKey)) if isinstance(ending, Keyed) else None


def message_of(ending: Message | Keyed) -> Message:
    """The message of the commit."""
    return ending.message if isinstance(ending, Keyed) else ending


def texts(receipts: Sequence[Receipt]) -> list[str]:
    """The receipts as the core takes them."""
    if isinstance(receipts, Receipt) or not is_iterable(receipts):
        raise InputError(f"commit() takes a list of receipts: [receipt]; found {type(receipts).__name__}")
    given = list(receipts)
    for place, receipt in enumerate(given):
        if not isinstance(receipt, Receipt):
            raise InputError(
                f"number {place} of the receipts is a {type(receipt).__name__}; write(commit=False) gives receipts"
            )
    return [receipt.to_json() for receipt in given]
