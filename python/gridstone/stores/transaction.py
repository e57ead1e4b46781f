"""Transactions over the arrays of a store, and commits of receipts."""

import os
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from .. import _native
from ..arrays.array import Array
from ..arrays.metadata import Metadata
from ..base.arguments import checked, text, utf8
from ..base.printable import brief
from ..context.settings import Context, default
from ..errors import InputError, UnsupportedError
from ..schema.array_schema import Schema
from ..version import receipt
from ..version.receipt import CommitKey, Receipt
from .nodes import Entry, joined

_ID = re.compile("[0-9a-f]{32}")


class _Node:
    """What lies at a path in a transaction, as metadata asks for it."""

    def __init__(self, native: "_native.Transaction", path: str) -> None:
        self._native, self._path = native, path

    def meta_get(self, key: str) -> str | None:
        return self._native.meta_get(self._path, key)

    def meta_keys(self) -> list[str]:
        return self._native.meta_keys(self._path)

    def meta_set(self, changes: Mapping[str, str | None]) -> None:
        self._native.meta_set(self._path, changes)


class Transaction:
    """Changes of any number of arrays of a store that become one version, or none; made by `gridstone.transaction`.

    `tx["/path"]` is an array as usual: what is written to it, its metadata included, is staged; what is read from it
    is the snapshot that the transaction began with and, above that, what was staged so far. Its `version` is the
    snapshot's.
    Leaving the block commits; an exception in it, Ctrl-C too, leaves the store as it was. Threads may write through one
    transaction at the same time.
    """

    def __init__(self, native: "_native.Transaction", context: Context, message: str | None, isolation: str) -> None:
        self._native, self._context, self._message, self._isolation = native, context, message, isolation
        self._entered = False

    @property
    def uri(self) -> str:
        """The store."""
        return self._native.uri

    @property
    def isolation(self) -> str:
        """ "snapshot" or "serializable"."""
        return self._isolation

    @property
    def base_version(self) -> int:
        """The version that it reads."""
        return self._native.base_version

    @property
    def version(self) -> int | None:
        """The version that it made; None before it is committed. Without any change it is the version that it read."""
        return self._native.version

    def __getitem__(self, path: str) -> Array:
        """The array at `path`, within the transaction; a `NotFoundError` if there is none."""
        return Array(self._native.array(_absolute(path)), self._context)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._native.kind(_absolute(path)) is not None

    def ls(self, path: str = "/") -> list[Entry]:
        """The arrays and groups in the group at `path`, those created and without those removed in the transaction."""
        path = _absolute(path)
        return [Entry(name, joined(path, name), kind) for name, kind in self._native.children(path)]

    @checked(id=text)
    def create(self, path: str, schema: Schema, *, overwrite: bool = False, id: str | None = None) -> Array:
        """Creates an array, and the groups above it that are missing.

        With `id` other processes can write its cells before it is there. Each does so in a transaction of its own,
        which creates the array with the same id and is aborted: `tx.create(path, schema, id=id).write(…,
        commit=False)` gives receipts for `add` of this transaction.

        Args:
            path: where it lies.
            schema: what it is.
            overwrite: whether what is there is replaced.
            id: a random id of 32 hexadecimal digits, such as `uuid.uuid4().hex`.

        Raises:
            ExistsError: there is something, and `overwrite` is False.
        """
        if not isinstance(schema, Schema):
            raise InputError(f"create() takes a gridstone.Schema, found {type(schema).__name__}")
        if id is not None and not _ID.fullmatch(utf8("id", id)):
            raise InputError(f"the id of an array is 32 hexadecimal digits, such as uuid.uuid4().hex, not {brief(id)}")
        made = Array(self._native.create_array(_absolute(path), schema.to_json(), overwrite, id), self._context)
        labels = {dim.name: dim._labels for dim in schema.dims if dim._labels is not None}
        if labels:
            made.alter(labels=labels)
        return made

    def add(self, receipts: Sequence[Receipt]) -> None:
        """Adds cells that other processes have written to arrays that this transaction has created; see `create`.

        Where cells of several lie at one place the one later in the list wins.

        Raises:
            InputError: a receipt of another array: `gridstone.commit` commits it by itself.
            NotFoundError: a file is gone; nothing was added.
            CorruptionError: a file was changed; nothing was added.
        """
        self._native.add_receipts(receipt.texts(receipts))

    def meta(self, path: str = "/") -> Metadata:
        """The metadata of the array or group at `path`, within the transaction: `tx.meta("/seas")["title"] = "all"`.

        Raises:
            NotFoundError: there is nothing, once it is read or set.
        """
        node: Any = _Node(self._native, _absolute(path))
        return Metadata(lambda: node, lambda: node)

    def group(self, path: str) -> None:
        """Creates a group if there is none."""
        self._native.create_group(_absolute(path))

    def remove(self, path: str) -> None:
        """Removes what lies at `path` and everything below it; earlier versions keep it."""
        self._native.remove(_absolute(path))

    def move(self, path: str, target_path: str) -> None:
        """Moves what lies at `path`, with everything below it, to the free path `target_path`; see `gridstone.move`."""
        self._native.move_node(_absolute(path), _absolute(target_path))

    def commit(self) -> int:
        """Commits and returns the version; the transaction has ended then, whatever the outcome. Leaving the block
        does it.

        Raises:
            ConflictError: another commit made this one impossible, wrote to what this one has both read and written or,
                with isolation="serializable", changed what was read; run it again.
            CommitUnknownError: whether it was committed is not known.
            SnapshotExpiredError: what was committed meanwhile is not known any more; run it again.
        """
        return self._native.commit(self._message)

    def abort(self) -> None:
        """Gives up all that was staged. One that has ended stays as it is."""
        self._native.abort()

    def __enter__(self) -> "Transaction":
        if self._entered or not self._native.is_open:
            raise InputError("a transaction is entered once; begin another one with gridstone.transaction")
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._native.abort()
        elif self._native.is_open:
            self.commit()

    def __reduce__(self) -> tuple[Any, ...]:
        raise UnsupportedError("a transaction cannot be pickled; send receipts, which write(commit=False) gives")

    def __repr__(self) -> str:
        made = self.version
        state = "open" if self._native.is_open else "ended" if made is None else f"committed as version {made}"
        return f"<gridstone.Transaction {self.uri!r} {self._isolation} on version {self.base_version}: {state}>"


def _absolute(path: str) -> str:
    if not isinstance(path, str):
        raise InputError(f"a path in a store is text such as '/temp', not {brief(path)}")
    return utf8("path", path if path.startswith("/") else f"/{path}")


@checked()
def transaction(
    uri: str | os.PathLike[str],
    message: str | None = None,
    isolation: str = "snapshot",
    context: Context | None = None,
    *,
    commit_key: CommitKey = None,
) -> Transaction:
    """Begins a transaction on the newest version of a store: `with gs.transaction(uri) as tx: tx["/temp"][...] = 1`.

    Args:
        uri: a store that exists.
        message: kept with the version.
        isolation: "snapshot": it fails if another commit made its changes impossible. No update is lost: it also fails
            if another commit wrote to cells or metadata keys that it has both read and written. "serializable": also if
            another commit changed anything that it has read: cells of a box, a metadata key, what lies at a path or in
            a group.
        context: budget, threads and durability; None: the process's default.
        commit_key: text or bytes, at most 128 bytes of it, that say which commit this is. The block, run again after
            any error or in another process, commits once. If a commit had the key before, the block reads the version
            that this one had read, so that it does the same again, and its end gives that commit's version:

                with gs.transaction(uri, commit_key="increment-17") as tx:
                    tx["/counter"][...] = tx["/counter"][...] + 1

            Writes count in their order within an array: threads that write to one array at once have to agree on one.
            The last 100,000 keys of a store are known.

    Raises:
        NotFoundError: there is no store.
        ConflictError: at the end, the key was given to other content.

    Example:
        >>> with gs.transaction("store.gs", "noon") as both:
        ...     deleted = both["/ships"].delete({"day": (0, 1)})
        ...     written = both["/north/buoys"].write_cells([7], [0.5])
        >>> both.version == gs.group("store.gs").version
        True
    """
    used = context or default()
    key = receipt.commit_key(commit_key)
    given = None if key is None else (key, isinstance(key, receipt.LoadKey))
    native = _native.Transaction(used.native, os.fspath(uri), isolation, given)
    return Transaction(native, used, message, isolation)


@checked()
def commit(
    uri: str | os.PathLike[str],
    receipts: Sequence[Receipt],
    message: str | None = None,
    context: Context | None = None,
    *,
    commit_key: CommitKey = None,
) -> int:
    """Commits what was written with `commit=False`, in any processes and to any arrays of the store, in one version.

    Args:
        uri: the store that they were written to.
        receipts: where several have the same cell the one later in the list wins.
        message: kept with the version.
        context: budget, threads and durability; None: the process's default.
        commit_key: as in `Array.write`: `commit(uri, receipts, commit_key="job-7")` may be repeated with the same
            receipts in the same order, and gives the version of the first time.

    Returns:
        The version committed; without any cell nothing is committed, and the newest version is returned.

    Raises:
        InputError: a receipt of another store, or given twice.
        ConflictError: a receipt was committed before, its array was removed, or the key was given to other receipts.
        NotFoundError: a file is gone; CorruptionError: it was changed. Both name it.
        SnapshotExpiredError: a receipt is so old that the log cannot say whether it was committed.

    Example:
        >>> receipts = [a.write(np.full((1, 10, 20), day), box={"day": (day, day)}, commit=False) for day in (3, 4)]
        >>> version = gs.commit("sea.gs", receipts)
        >>> float(gs.open("sea.gs")[4, 0, 0])
        4.0
    """
    used = context or default()
    texts, key = receipt.texts(receipts), receipt.commit_key(commit_key)
    return _native.commit_receipts(used.native, os.fspath(uri), texts, message, key)
