"""The versions of a store, as `history()` lists them."""

import datetime as dt
import json
import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native
from ..base.printable import brief
from ..column import instant, period
from ..errors import InputError, NotFoundError, UnsupportedError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Version:
    """One commit that touched the array."""

    version: int
    time_us: int
    """When it was committed: microseconds since 1970, UTC."""
    message: str | None
    operations: tuple[dict[str, Any], ...]
    """What it did; each has a key `op`. Those about fragments have also `fragments`, `cells` and `bytes` added,
    `deleted_cells`, `deleted_boxes`, and what was `removed`: fragments, with `removed_cells` and `removed_bytes`."""
    commit_id: str
    tags: tuple[str, ...] = ()
    """The names that the version has."""

    @property
    def kind(self) -> str:
        """What it did, in words: "create", "write", "delete", "merge", "vacuum", "tag" … joined by commas."""
        words = [word for operation in self.operations for word in _words(operation)]
        return ", ".join(dict.fromkeys(words)) or "fold"

    @property
    def fragments(self) -> int:
        """Fragments added."""
        return self._sum("fragments")

    @property
    def cells(self) -> int:
        """Cells written; those of a merge are written anew."""
        return self._sum("cells")

    @property
    def bytes(self) -> int:
        """Bytes of the fragments added."""
        return self._sum("bytes")

    @property
    def deleted_cells(self) -> int:
        """Single cells deleted; boxes and conditions that delete count no cells."""
        return self._sum("deleted_cells")

    @property
    def removed(self) -> int:
        """Fragments that others took the place of."""
        return self._sum("removed")

    @property
    def removed_bytes(self) -> int | None:
        """Bytes of these; None if a vacuum forgot the versions that added them."""
        found = [operation["removed_bytes"] for operation in self.operations if "removed_bytes" in operation]
        return None if None in found else sum(found)

    def _sum(self, name: str) -> int:
        return sum(operation.get(name, 0) for operation in self.operations)

    @property
    def timestamp(self) -> dt.datetime:
        """When it was committed, UTC; an `UnsupportedError` outside the years that `datetime` has."""
        return time_of(self.time_us)

    def __repr__(self) -> str:
        parts = [time_text(self.time_us)]
        parts += [] if self.message is None else [reprlib.repr(self.message)]
        parts += [f"tagged {', '.join(map(repr, self.tags))}"] if self.tags else []
        return f"<gridstone.Version {self.version}: {', '.join([*parts, self.kind])}>"


_WORDS = {
    "create_group": "create",
    "create_array": "create",
    "alter_array": "alter",
    "set_metadata": "metadata",
    "condemn": "vacuum",
    "keep": "files beside",
    "release": "files beside",
    "set_base": "base",
}


def _words(operation: dict[str, Any]) -> list[str]:
    """What an operation is called by those who asked for it."""
    name = str(operation.get("op", "?"))
    if name == "replace_fragments":
        return ["merge"]
    if name != "add_fragments":
        return [_WORDS.get(name, name)]
    deletes = operation.get("deleted_cells", 0) or operation.get("deleted_boxes", 0)
    writes = operation.get("cells", 0) or not deletes
    return ["delete"] * bool(deletes) + ["write"] * bool(writes)


def version_of(text: str) -> Version:
    """The version that the core describes in JSON."""
    found = json.loads(text)
    return Version(
        found["version"],
        found["time_us"],
        found.get("message"),
        tuple(found.get("operations", ())),
        found.get("commit_id", ""),
        tuple(found.get("tags", ())),
    )


def check_kept(context: "_native.Context", uri: str) -> None:
    """A `NotFoundError` if the store of an open handle was deleted: a log without news looks the same."""
    if not _native.exists(context, uri):
        raise NotFoundError(
            f"the store {uri!r} was deleted: this handle shows its last version, whose cells may be gone; open what is "
            f"there now, or read a copy"
        )


def time_of(microseconds: int) -> dt.datetime:
    """An aware UTC datetime of microseconds since 1970; an `UnsupportedError` outside the years 1 to 9999."""
    try:
        return _EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        raise UnsupportedError(
            f"the version says that it was committed {microseconds:,} microseconds after 1970, and datetime holds the "
            f"years 1 to 9999; its cells can be read, and history() tells the number as time_us"
        ) from None


def time_text(microseconds: int) -> str:
    """Such a time for people, whatever it is."""
    try:
        return f"{time_of(microseconds):%Y-%m-%d %H:%M:%S} UTC"
    except UnsupportedError:
        return f"{microseconds:,} microseconds since 1970"


def _microseconds(timestamp: np.datetime64) -> int:
    """NumPy turns a time that does not fit into another one, and says nothing."""
    whole = timestamp.astype("datetime64[us]")
    if (
        np.datetime_data(timestamp.dtype)[0] not in ("ns", "ps", "fs", "as")
        and whole.astype(timestamp.dtype) != timestamp
    ):
        raise InputError(f"a timestamp in microseconds has 64 bits, {brief(timestamp)} has more")
    return int(whole.astype(np.int64))


def _checked(microseconds: int, given: Any) -> int:
    if -(2**63) <= microseconds < 2**63:
        return microseconds
    raise InputError(f"a timestamp in microseconds has 64 bits, {brief(given)} has more")


def microseconds_of(timestamp: Any) -> int | None:
    """Microseconds since 1970 of a datetime (naive: UTC), `numpy.datetime64`, ISO text or integer; None of None. A
    written date or time is a period, of which it is the last microsecond."""
    if timestamp is None:
        return None
    if period.is_written("datetime64[us]", timestamp) and (found := period.period_of(timestamp)) is not None:
        return _checked(instant.ticks_of(found.last_instant, "us", False), timestamp)
    if isinstance(timestamp, int | np.integer) and not isinstance(timestamp, bool | np.timedelta64):
        return _checked(int(timestamp), timestamp)
    try:
        if isinstance(timestamp, str):
            timestamp = dt.datetime.fromisoformat(timestamp)
        if isinstance(timestamp, dt.datetime) and timestamp == timestamp:
            aware = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=dt.UTC)
            return (aware - _EPOCH) // dt.timedelta(microseconds=1)
        if isinstance(timestamp, np.datetime64) and not np.isnat(timestamp):
            return _microseconds(timestamp)
    except InputError:
        raise
    except ValueError:
        pass
    raise InputError(
        f"a timestamp is a datetime, numpy.datetime64, ISO text or microseconds since 1970 (UTC), not "
        f"{brief(timestamp)}"
    )
