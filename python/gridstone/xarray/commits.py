"""One commit, tried again where another commit came first."""

import os
import random
import time
from collections.abc import Callable

from ..errors import ConflictError
from ..stores.at_once import made_for
from ..stores.transaction import Transaction, transaction
from .asked import Asked

_TRIES = 40
_WAIT_S = 0.02


def committed(asked: Asked, fill: Callable[[Transaction], None]) -> int:
    """The version of a transaction on what `fill` does, which is tried again if another commit was in its way. A store
    that was made for it goes if it fails.

    What `fill` sees of the group holds when its commit comes: a variable that is added has the lengths of those that
    others add or append to at the same time.
    """
    used = asked.context
    with made_for(os.fspath(asked.uri), used):
        for left in reversed(range(_TRIES)):
            try:
                with transaction(asked.uri, asked.message, "serializable", context=used) as tx:
                    fill(tx)
                version = tx.version
                assert version is not None
                return version
            except ConflictError:
                if not left:
                    raise
                time.sleep(random.uniform(0, _WAIT_S * min(_TRIES - left, 10)))
    raise AssertionError("the last try returns or raises")
