"""A change that is made of what was read, in one commit.

1. In a transaction of the caller's it is staged there.
2. Else it is a transaction of its own, on the newest version. If another commit wrote to cells that were read and
   written, or changed the schema, all is read and made again on what is there then.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .. import _native
from ..errors import ConflictError, InputError, SnapshotExpiredError
from ..version.change import Change
from ..version.receipt import Closing, NoCommit, given_key, message_of

_TRIES = 200
"""How often a change is made again that others overtake. Each time one of them has committed."""
_PAUSE_S_MAX = 0.05


class Changeable(Protocol):
    """What a change needs of an array."""

    @property
    def version(self) -> int: ...

    @property
    def stats(self) -> dict[str, int]: ...

    def refresh(self) -> int: ...

    def _begun(self, key: tuple[bytes, bool] | None) -> "tuple[Any, _native.Transaction] | None": ...

    def _noted_stats(self, stats: Mapping[str, int]) -> None: ...

    def _commit(self, staged: Sequence["_native.Staged"], message: Closing) -> Any: ...


Work = Callable[[Any, Closing], Change]
"""Stages a change in an array that is given; what ends each write to it is given too."""


def committed(array: Changeable, ending: Closing, work: Work) -> Change:
    """The version in which `work` was committed, and its cells.

    Raises:
        ConflictError: the commit key was given to other content, or others were faster again and again.
    """
    if isinstance(ending, NoCommit):
        raise InputError("a receipt counts no cells: leave commit=False out, or count them before")
    for tries in range(_TRIES):
        begun = array._begun(given_key(ending))
        if begun is None:
            return work(array, ending)
        staged, transaction = begun
        # One whose key was committed before reads the version that it read then: it comes to the same end again.
        repeats = transaction.base_version < array.version
        try:
            cells = work(staged, None).cells
            version = transaction.commit(message_of(ending))
        except (ConflictError, SnapshotExpiredError):
            if repeats or tries + 1 == _TRIES:
                raise
            time.sleep(random.uniform(0, min(_PAUSE_S_MAX, 0.001 * 2**tries)))
            continue
        finally:
            transaction.abort()
        array.refresh()
        array._noted_stats(staged.stats)
        return Change(version, cells)
    raise AssertionError("the last try returns or raises")
