"""An array that is created by the commit that has its cells: workers write blocks of it before it is there."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..context.settings import Context
from ..errors import NotFoundError
from ..query.box import Box
from ..schema.array_schema import Schema
from ..stores import store as stores
from ..stores.transaction import Transaction, transaction
from ..version.receipt import CommitKey, Message, Receipt


@dataclass(frozen=True)
class Unborn:
    """An array to be: its place, its schema, and the id that it will have."""

    uri: str
    path: str
    schema: Schema
    context: Context
    replaces: bool
    """Whether the store was made for it, so that it may be its root."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def written(self, data: Mapping[str, Any], box: Box) -> Receipt:
        """The receipt of a block, which is written in a transaction that ends without a commit."""
        own = transaction(self.uri, context=self.context)
        try:
            if self._is_there(own):
                # A graph that is computed once more, after the commit.
                return stores.open_array(self.uri, mode="r+", path=self.path, context=self.context).write(
                    data, box, commit=False
                )
            made: Receipt = own.create(self.path, self.schema, overwrite=True, id=self.id).write(
                data, box, commit=False
            )
            return made
        finally:
            own.abort()

    def created(self, receipts: Sequence[Receipt], message: Message, key: CommitKey) -> int:
        """Creates the array with the cells of receipts, in one commit, and returns its version. Once that is done it
        only tells the version.

        Raises:
            ExistsError: there is another array or a group.
        """
        with transaction(self.uri, message, context=self.context, commit_key=key) as tx:
            if self._is_there(tx):
                # A worker may have died after the commit, and its task been tried again.
                tx.abort()
                return self._version()
            is_root = self.replaces and self.path == "/" and not tx.ls("/")
            tx.create(self.path, self.schema, overwrite=is_root, id=self.id)
            tx.add(receipts)
        assert tx.version is not None
        return tx.version

    def _is_there(self, tx: Transaction) -> bool:
        try:
            return bool(tx[self.path].native.id == self.id)
        except NotFoundError:
            return False

    def _version(self) -> int:
        """The version that created it."""
        return stores.open_array(self.uri, path=self.path, context=self.context).history()[0].version
