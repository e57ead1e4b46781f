"""One commit, tried again where another commit came first."""

import contextlib
import os
import random
import time
from collections.abc import Callable

from .. import _native
from ..errors import CommitUnknownError, ConflictError, GridstoneError
from ..stores.transaction import Transaction, transaction
from .asked import Asked, touched

_TRIES = 40
_WAIT_S = 0.02


def committed(asked: Asked, fill: Callable[[Transaction], None]) -> int:
    """The version of a transaction on what `fill` does, which is tried again if another commit was in its way. A store
    that was made for it goes if it fails.

    What `fill` sees of the group holds when its commit comes: a variable that is added has the lengths of those that
    others add or append to at the same time.
    """
    used, place = asked.context, os.fspath(asked.uri)
    first = None if _native.exists(used.native, place) else _native.create_group(used.native, place, "/").version
    for left in reversed(range(_TRIES)):
        try:
            with transaction(asked.uri, asked.message, "serializable", context=used) as tx:
                fill(tx)
            version = tx.version
            assert version is not None
            touched(place)
            return version
        except ConflictError:
            if not left:
                raise
            time.sleep(random.uniform(0, _WAIT_S * min(_TRIES - left, 10)))
        except BaseException as error:
            # What may have been committed stays. A commit of another process between the look and the removal would be
            # lost: no call removes a store only if it is at a version. The time between the two is that of one look.
            if first is not None and not isinstance(error, CommitUnknownError):
                with contextlib.suppress(GridstoneError):
                    if _native.create_group(used.native, place, "/").version == first:
                        _native.delete_store(used.native, place)
            raise
    raise AssertionError("the last try returns or raises")
