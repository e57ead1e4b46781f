"""Tags, and the vacuum that forgets versions."""

import datetime as dt
import json
import os
import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _native
from ..base.arguments import checked, number
from ..base.printable import brief
from ..base.progress import Progress, reporting
from ..context.settings import Context, default
from ..errors import InputError

Duration = str | int | float | dt.timedelta | np.timedelta64

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SHORT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|m|h|d|w)\s*", re.IGNORECASE)
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)


def microseconds(duration: Duration, what: str) -> int:
    """Microseconds of a duration: text such as "90s", "1.5h", "7d" or ISO "P1DT12H", a timedelta, or seconds."""
    seconds: float | None = None
    if isinstance(duration, np.timedelta64):
        seconds = None if np.isnat(duration) else float(duration / np.timedelta64(1, "us")) / 1e6
    elif isinstance(duration, dt.timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, int | float) and not isinstance(duration, bool) and 0 <= duration < 9e12:
        seconds = float(duration)
    elif isinstance(duration, str):
        seconds = _seconds_of(duration)
    if seconds is None or not 0 <= seconds < 9e12:
        raise InputError(
            f'{what} is a duration of 0 or more: text such as "90s", "1h", "7d" or "P1DT12H", a timedelta, or seconds; '
            f"not {brief(duration)}"
        )
    return round(seconds * 1e6)


def _seconds_of(text: str) -> float | None:
    short = _SHORT.fullmatch(text)
    if short:
        return float(short[1]) * _UNITS[short[2].lower()]
    iso = _ISO.fullmatch(text.strip())
    parts = {unit: value for unit, value in iso.groupdict().items() if value} if iso else {}
    return sum(float(value) * _UNITS[unit] for unit, value in parts.items()) if parts else None


@dataclass(frozen=True, slots=True)
class Tally:
    """Objects of a store and their bytes."""

    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Holder:
    """What keeps a version that would have been forgotten."""

    tag: str | None
    """None: a reader's lease."""
    version: int


@dataclass(frozen=True, slots=True)
class Vacuum:
    """What a vacuum did, or would do."""

    oldest_before: int
    oldest: int
    """The oldest version that can be opened now."""
    newest: int
    """The newest version, without the one that the vacuum may have committed."""
    records: Tally
    """Log records of forgotten versions deleted; those younger than an hour are left to the next vacuum."""
    data: Tally
    manifest: Tally
    """Manifest objects deleted; a dry run cannot tell all of them."""
    temporary: Tally
    young: Tally
    """Files that no version names and that are younger than the safety age: left alone."""
    leases: int
    """Expired leases deleted."""
    held_by: tuple[Holder, ...]
    """Tags and leases that keep versions older than those asked for."""
    committed: int | None
    """The version in which the vacuum said what it was going to delete."""
    hidden: int
    """Fragments that newer ones hide wholly, taken out of the newest version before."""
    dry_run: bool

    @property
    def versions(self) -> int:
        """Versions forgotten."""
        return self.oldest - self.oldest_before

    @property
    def bytes(self) -> int:
        """Bytes deleted."""
        return self.records.bytes + self.data.bytes + self.manifest.bytes + self.temporary.bytes

    @property
    def objects(self) -> int:
        """Objects deleted."""
        parts = (self.records, self.data, self.manifest, self.temporary)
        return sum(part.objects for part in parts) + self.leases

    def __str__(self) -> str:
        would = "would be " if self.dry_run else ""
        lines = [
            f"{self.versions:,} versions {would}forgotten; {self.oldest:,} to {self.newest:,} stay",
            f"{self.objects:,} objects of {self.bytes:,} bytes {would}deleted",
        ]
        if self.hidden:
            lines.append(f"{self.hidden:,} fragments that newer ones hide {would}taken out")
        for holder in self.held_by:
            what = "a reader" if holder.tag is None else f"the tag {holder.tag!r}"
            lines.append(f"version {holder.version:,} is kept by {what}")
        if self.young.objects:
            lines.append(f"{self.young.objects:,} files of {self.young.bytes:,} bytes are unused and too young to go")
        return "\n".join(lines)


def of_json(text: str, dry_run: bool) -> Vacuum:
    """The report that the core gives in JSON."""
    found: dict[str, Any] = json.loads(text)
    for name in ("records", "data", "manifest", "temporary", "young"):
        found[name] = Tally(**found[name])
    found["held_by"] = tuple(Holder(**holder) for holder in found["held_by"])
    return Vacuum(**found, dry_run=dry_run)


def asked(keep: Duration | None, versions: Any, safety_age: Duration) -> tuple[int | None, int | None, int]:
    """What the core is asked for; an age of an hour where nothing is said."""
    if keep is not None and versions is not None:
        raise InputError("keep= says what stays by age, and versions= by number: give one of them")
    if versions is not None and (
        isinstance(versions, bool) or not isinstance(versions, int) or not 0 < versions < 2**63
    ):
        raise InputError(f"versions is a number of 1 or more, not {brief(versions)}")
    age = None if versions is not None else microseconds("1h" if keep is None else keep, "keep")
    return age, versions, microseconds(safety_age, "safety_age")


@checked(version=number)
def tag(
    uri: str | os.PathLike[str],
    name: str,
    version: int | None = None,
    *,
    replace: bool = False,
    context: Context | None = None,
) -> int:
    """Gives a version of a store a name, which keeps it from being vacuumed; returns the version.

    Args:
        uri: the store.
        name: 1 to 255 bytes without control characters or marks that turn the direction of text;
            `gs.open(uri, version=name)` opens it.
        version: None: the newest.
        replace: move a name that is in use.
        context: None: the process's default.

    Raises:
        ExistsError: the name is in use, and `replace` is False.
        NotFoundError: there is no such store or version.
        SnapshotExpiredError: the version has been vacuumed.

    Example:
        >>> gs.tag("sea.gs", "checked", 3)
        3
        >>> gs.open("sea.gs", version="checked").version
        3
    """
    return _native.tag((context or default()).native, os.fspath(uri), name, version, replace)


@checked()
def untag(uri: str | os.PathLike[str], name: str, *, context: Context | None = None) -> int:
    """Takes a name away; returns the version that it named. A `NotFoundError` if there is no such tag.

    Example:
        >>> gs.tag("sea.gs", "checked", 3), gs.untag("sea.gs", "checked")
        (3, 3)
    """
    return _native.untag((context or default()).native, os.fspath(uri), name)


class Retained:
    """What arrays and groups have in common: tags and vacuum, which are about the whole store."""

    @abstractmethod
    def _vacuum(self, dry_run: bool, *options: Any) -> str: ...

    @abstractmethod
    def _tags(self) -> list[tuple[str, int]]: ...

    @property
    def tags(self) -> dict[str, int]:
        """The versions of the store that have names, as this handle's version knows them."""
        return dict(self._tags())

    @checked()
    def vacuum(
        self,
        keep: Duration | None = None,
        *,
        versions: int | None = None,
        dry_run: bool = False,
        safety_age: Duration = "1d",
        progress: Progress = None,
    ) -> Vacuum:
        """Forgets old versions of the whole store and deletes what only they needed.

        The newest version, tagged ones and those that a reader uses stay, and so does everything after the oldest of
        them. Readers and writers go on meanwhile.

        Args:
            keep: an age: versions that were the newest at some moment of this time stay; "1h" if nothing is said.
            versions: the number of versions that stay, instead of an age.
            dry_run: only tell what would be done.
            safety_age: files that no version names are deleted when they are older: a write that takes longer from its
                first byte to its commit fails. Records of forgotten versions are deleted when they are an hour
                old. With 0 they go at once too: only where no other process writes.
            progress: True, or a callable f(done, total): files deleted.

        Raises:
            CorruptionError: what is needed cannot be determined; nothing was deleted.
        """
        options = asked(keep, versions, safety_age)
        with reporting(progress, "deleting", "files") as report:
            return of_json(self._vacuum(dry_run, *options, dry_run, report), dry_run)
