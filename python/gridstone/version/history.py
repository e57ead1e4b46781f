"""The versions of a store, as `history()` lists them."""

import datetime as dt
import json
import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native
from ..base.printable import brief
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
    """What it did; each has a key `op`."""
    commit_id: str
    tags: tuple[str, ...] = ()
    """The names that the version has."""

    @property
    def timestamp(self) -> dt.datetime:
        """When it was committed, UTC; an `UnsupportedError` outside the years that `datetime` has."""
        return time_of(self.time_us)

    def __repr__(self) -> str:
        parts = [time_text(self.time_us)]
        parts += [] if self.message is None else [reprlib.repr(self.message)]
        parts += [f"tagged {', '.join(map(repr, self.tags))}"] if self.tags else []
        done = list(dict.fromkeys(str(operation.get("op")) for operation in self.operations))
        return f"<gridstone.Version {self.version}: {', '.join([*parts, *done])}>"


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


def microseconds_of(timestamp: Any) -> int | None:
    """Microseconds since 1970 of a datetime (naive: UTC), `numpy.datetime64`, ISO text or integer; None of None."""
    if timestamp is None:
        return None
    if isinstance(timestamp, int | np.integer) and not isinstance(timestamp, bool | np.timedelta64):
        if -(2**63) <= timestamp < 2**63:
            return int(timestamp)
        raise InputError(f"a timestamp in microseconds has 64 bits, {brief(timestamp)} has more")
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
