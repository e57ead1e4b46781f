"""Commits of graphs: a worker may die after the commit, and its task run again, perhaps with other receipts."""

import contextlib
import re
from collections.abc import Sequence

from ..context.settings import Context
from ..errors import ConflictError, NotFoundError
from ..stores.transaction import commit
from ..version.receipt import Message, Receipt


def commit_once(uri: str, receipts: Sequence[Receipt], message: Message, context: Context, key: str) -> int:
    """The version that has the receipts of a graph, whose own key this is. Where that was committed already its blocks
    were written again, so that their receipts are others."""
    try:
        return commit(uri, list(receipts), message, context, commit_key=key)
    except ConflictError:
        known = version_of(uri, context, key)
        if known is None:
            raise
        return known


def version_of(uri: str, context: Context, key: str) -> int | None:
    """The version of the commit that had a key; None if none had."""
    try:
        # A commit of nothing makes no version, and one with a known key is refused.
        with contextlib.suppress(NotFoundError):
            commit(uri, [], context=context, commit_key=key)
    except ConflictError as error:
        found = re.search(r"was given to another commit, version (\d+)", str(error))
        return None if found is None else int(found[1])
    return None
