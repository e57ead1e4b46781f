"""`Context`: budget, threads, cache, durability and keys shared by everything that is opened with it."""

import atexit
import math
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _native
from ..base.arguments import Settings, among, known, several
from ..base.printable import brief
from ..errors import AccessError, InputError, UnsupportedError
from .storage_options import Given, given_options

# What the background did since the last call is logged when the process ends.
atexit.register(_native.log_events)

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


Key = bytes | str | Callable[[bytes | None], bytes | str]


def size_bytes(size: int | str, what: str) -> int:
    """Bytes of a size: a number of bytes, or text such as "64MiB" (2^20), "1.5GB" (10^9), "512"."""
    if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**63:
        return size
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    power = " kmgt".index(found[2].lower() or " ") if found else 0
    bytes_asked = float(found[1]) * (1024 if found[3] else 1000) ** power if found else math.inf
    if not bytes_asked < 2**63:
        raise InputError(f'{what} is a number of bytes or text such as "64MiB" or "1.5GB", not {brief(size)}')
    return int(bytes_asked)


class _Lock:
    """A lock that a forked child finds free: one that another thread held at that moment would stay held for ever."""

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def here(self) -> threading.Lock:
        """The lock of this process."""
        return self._locks.setdefault(os.getpid(), threading.Lock())


class Context(Settings):
    """Settings shared by the arrays opened with it. Immutable, picklable; the core's pool starts on first use and is
    rebuilt in a forked child.

    Args:
        memory_budget: bytes for scratch, caches and indexes; a number or text ("1GiB", "500MB").
        threads: worker threads; None: `GRIDSTONE_THREADS`, else the cores this process may use.
        io: "auto": chosen by the engine.
        cache: bytes of the budget that decoded blocks may stay in.
        storage_options: how object stores are reached, by the names that fsspec and obstore use. For `s3://`: key,
            secret, token, endpoint_url, region, anon; for `gs://`: token (the path of a service account's file), anon;
            for `az://`: account_name, account_key, sas_token; for all: timeout, connect_timeout (seconds), retries.
            What is not given comes from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`). Other stores ignore them.
        durability: "full" syncs files and directories before a commit counts; "close" syncs the log record alone.
        verify: "once" or "always"; both check every block whenever it is read.
        key: of sealed (encrypted) stores: 32 bytes, their hexadecimal digits or base64, or a function. It takes the 16
            bytes of a key's id and returns that key, or takes None and returns the key that seals new objects; it is
            called once for each. With a key, new stores are sealed, and a store that is not sealed is refused. None:
            the key in `GRIDSTONE_KEY` or in the file `GRIDSTONE_KEY_FILE`, if one is set when the context is first
            used. It opens sealed stores and seals new ones; stores that are not sealed are opened too.
        sources: folders and URLs under which stores may read files of other formats that are attached to them. What
            lies in a store's own folder, or below, is always allowed to it. None: those in `GRIDSTONE_SOURCES`,
            separated by `;`.
        auto_consolidate: True, or {"fragments": 64, "target": "512MiB"}: once an array has so many fragments more than
            the last consolidation left, "tiered" runs in the background, on one thread at low priority. The next
            `consolidate` of the array reports an error of it.

    A key is neither shown nor pickled: an unpickled context that had one takes it from the environment, and is refused
    without it. The same holds for credentials in `storage_options`; the other options are pickled.
    """

    __slots__ = ("_given", "_keys", "_left", "_lock", "_made", "_settings", "_sources")

    def __init__(
        self,
        memory_budget: int | str = "1GiB",
        threads: int | None = None,
        io: str = "auto",
        cache: int | str = "256MiB",
        storage_options: Mapping[str, Any] | None = None,
        durability: str = "full",
        verify: str = "once",
        key: Key | None = None,
        auto_consolidate: bool | Mapping[str, Any] = False,
        sources: Sequence[str | os.PathLike[str]] | None = None,
    ) -> None:
        if not among(io, ("auto",)):
            raise UnsupportedError(f'io={brief(io)} is not supported by this version; leave io="auto"')
        if threads is not None:
            _positive("threads", threads)
        known("durability", durability, ("full", "close"))
        known("verify", verify, ("once", "always"))
        budget = size_bytes(memory_budget, "memory_budget")
        if budget == 0:
            raise InputError("memory_budget must be more than 0 bytes")
        upkeep = _upkeep(auto_consolidate)
        self._settings = (budget, threads, size_bytes(cache, "cache"), durability, verify, upkeep)
        self._sources = None if sources is None else prefixes(sources)
        self._given = given_options(storage_options)
        self._keys = None if key is None else _native.Keys(key)
        self._left = False
        """Whether a key was left behind when it was pickled."""
        self._made: _native.Context | None = None
        self._lock = _Lock()

    @property
    def memory_budget(self) -> int:
        """The budget in bytes."""
        return self._settings[0]

    @property
    def threads(self) -> int:
        """How many worker threads the core uses."""
        return self.native.threads

    @property
    def cache(self) -> int:
        """Bytes that decoded blocks may stay in."""
        return self._settings[2]

    @property
    def durability(self) -> str:
        """ "full" or "close"."""
        return self._settings[3]

    @property
    def verify(self) -> str:
        """ "once" or "always"."""
        return self._settings[4]

    @property
    def storage_options(self) -> dict[str, str]:
        """How object stores are reached, without the credentials."""
        return dict(self._given.plain)

    @property
    def sources(self) -> tuple[str, ...]:
        """Folders and URLs under which stores may read files of other formats."""
        return tuple(self.native.sources)

    def allowing(self, prefixes: Sequence[str]) -> "Context":
        """The same settings, by which stores may also read files of other formats under these folders and URLs.

        It has a cache of its own, so that what is opened with this context is allowed no more than before. Without a
        prefix that is new it is this context.
        """
        known = self.sources
        more = [prefix for prefix in prefixes if prefix not in known]
        if not more:
            return self
        made = object.__new__(Context)
        made._settings, made._given, made._keys, made._left = self._settings, self._given, self._keys, self._left
        made._sources = [*known, *more]
        made._lock = _Lock()
        made._made = self.native.allowing(more)
        return made

    @property
    def peak_bytes(self) -> int:
        """The most bytes of the budget that were ever in use at once."""
        return self.native.peak_bytes

    @property
    def native(self) -> _native.Context:
        """The core's context, made on first use."""
        with self._lock.here():
            if self._made is None:
                keys = _environment_keys() if self._left else self._keys
                self._made = _native.Context(*self._settings, keys, self._given.to_pass(), self._sources)
            return self._made

    def _known_key(self) -> Any:
        """What tells keys apart: nothing, the id of a fixed key, or the function."""
        if self._left:
            return "left behind"
        return None if self._keys is None else self._keys.id or self._keys

    def _token(self) -> tuple[Any, ...]:
        """The settings that lead to other values: the service of a bucket, and what attached files may be read."""
        return self._given.left_behind().plain, None if self._sources is None else tuple(self._sources)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        mine = (self._settings, self._given, self._known_key(), self._sources)
        return mine == (other._settings, other._given, other._known_key(), other._sources)

    def __hash__(self) -> int:
        return hash(self._settings)

    def __copy__(self) -> "Context":
        """Itself, with its key and credentials: it never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Context":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        keyed = self._left or self._keys is not None
        return _restore, (*self._settings, keyed, self._given.left_behind(), self._sources)

    def __repr__(self) -> str:
        budget, threads, cache, durability, verify, upkeep = self._settings
        known = self._known_key()
        key = "" if known is None else f", key=<{known if isinstance(known, str) else 'function'}>"
        policy = "" if upkeep is None else f", auto_consolidate={_policy(upkeep)}"
        sources = "" if self._sources is None else f", sources={self._sources}"
        return (
            f"Context(memory_budget={budget}, threads={threads}, cache={cache}, "
            f"durability={durability!r}, verify={verify!r}{policy}{self._given.shown()}{sources}{key})"
        )


def prefixes(given: Any) -> list[str]:
    """Folders as absolute paths, and URLs as they are.

    Raises:
        InputError: it is no list of texts, or one is empty.
    """
    if isinstance(given, str | bytes | os.PathLike):
        raise InputError(f"sources is a list of folders and URLs, not {brief(given)}")
    found = []
    several("sources", given)
    for one in given:
        text = os.fspath(one) if isinstance(one, str | os.PathLike) else None
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"a source that is allowed is a folder or a URL, not {brief(one)}")
        text = text.removeprefix("file://")
        found.append(text if "://" in text else os.path.abspath(text))
    return found


def _policy(upkeep: tuple[int, int]) -> dict[str, int]:
    return {"fragments": upkeep[0], "target": upkeep[1]}


def _upkeep(asked: bool | Mapping[str, Any]) -> tuple[int, int] | None:
    """The number of fragments and the bytes of a merged one; None: no policy."""
    if asked is False:
        return None
    if asked is not True and not isinstance(asked, Mapping):
        raise InputError(
            f'auto_consolidate is True, False or {{"fragments": 64, "target": "512MiB"}}, not {brief(asked)}'
        )
    given = {} if asked is True else dict(asked)
    if unknown := sorted(set(given) - {"fragments", "target"}):
        raise InputError(f"auto_consolidate has fragments and target, no {brief(unknown[0])}")
    fragments = given.get("fragments", 64)
    _positive("fragments", fragments)
    if fragments < 2:
        raise InputError("auto_consolidate needs a number of fragments of at least 2")
    return fragments, size_bytes(given.get("target", "512MiB"), "target")


def _positive(what: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise InputError(f"{what} is a positive number or None, not {brief(value)}")


def _restore(
    budget: int,
    threads: int | None,
    cache: int,
    durability: str,
    verify: str,
    upkeep: tuple[int, int] | None = None,
    keyed: bool = False,
    given: Given | None = None,
    sources: list[str] | None = None,
) -> Context:
    """An unpickled context; the process's default one where the settings are its own, so that caches are shared."""
    policy: bool | Mapping[str, Any] = False if upkeep is None else _policy(upkeep)
    made = Context(budget, threads, cache=cache, durability=durability, verify=verify, auto_consolidate=policy)
    made._given, made._sources = given or Given(), sources
    if keyed:
        made._left = True
        return made
    usual = default()
    return usual if made == usual else made


def _environment_keys() -> _native.Keys:
    """The key of a context that left its own behind."""
    found = _native.environment_keys()
    if found is None:
        raise AccessError(
            "this context had a key when it was pickled, and keys are never pickled: set GRIDSTONE_KEY or "
            "GRIDSTONE_KEY_FILE in this process before unpickling, or open the store anew with Context(key=...)"
        )
    return found


class _Default:
    """The context of everything opened without one, made on first use."""

    context: Context | None = None
    lock = _Lock()


def default() -> Context:
    """The process's default context."""
    with _Default.lock.here():
        if _Default.context is None:
            _Default.context = Context()
        return _Default.context
