"""Checks arrays and whole stores, and repairs stores."""

import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import _native
from ..base import html
from ..base.arguments import checked
from ..base.progress import Progress, reporting
from ..context.settings import Context, default
from .retention import Tally


@dataclass(frozen=True, slots=True)
class AffectedCells:
    """Cells that cannot be read because of damage."""

    array: str | None
    """The path of their array; None in the report of one array."""
    fragment: str
    """The id of the fragment."""
    tile: int | None
    """The data tile, where only that."""
    attribute: str | None
    """The attribute (or dimension) whose bytes are damaged, where only that."""
    domain: tuple[tuple[str, str], ...]
    """The box around them, as text: lowest and highest coordinate per dimension, inclusive."""
    cells: int
    """How many they are at most."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is damaged or missing."""

    object: str | None
    """The name of the object of the store; None in the report of one array, whose fragments tell."""
    versions: tuple[tuple[int, int], ...]
    """The versions that cannot be read whole, pairs with both ends in them; of one array none are named."""
    affected: tuple[AffectedCells, ...]
    """The cells in them that cannot be read; of a store none: all of them, or none."""
    message: str
    """What is wrong."""

    def __str__(self) -> str:
        where = [_cells_text(cells) for cells in self.affected]
        if self.object is not None:
            where = [f"{self.object}: {_versions(self.versions)}", *where]
        return f"{'; '.join(where)}: {self.message}"


def _cells_text(found: AffectedCells) -> str:
    parts = [found.array, f"fragment {found.fragment}", None if found.tile is None else f"tile {found.tile}"]
    parts += [None if found.attribute is None else repr(found.attribute), f"up to {found.cells:,} cells"]
    box = " x ".join(f"{low}..{high}" for low, high in found.domain)
    return f"{', '.join(part for part in parts if part is not None)} in {box}"


@dataclass(frozen=True, slots=True, eq=False)
class Report(Mapping[str, Any]):
    """What a check looked at, and what is damaged. As a mapping it has what `as_dict` gives: `report["damage"]`.

    Fields that do not belong to the kind of check, of one array or of a store, are None.
    """

    blocks: int
    """Blocks decoded."""
    bytes: int
    """Bytes of blocks read."""
    damage: tuple[Damage, ...]
    """What is damaged or missing."""
    fragments: int | None = None
    """Fragments checked, in the report of one array."""
    tiles: int | None = None
    """Data tiles checked, in the report of one array."""
    oldest: int | None = None
    """The oldest version that is kept, in the report of a store, as all that follows."""
    newest: int | None = None
    """The newest version."""
    records: int | None = None
    """Log records read."""
    manifest: int | None = None
    """Manifest roots and pages read."""
    files: int | None = None
    """Data files that kept versions name."""
    leases: int | None = None
    """Leases checked."""
    orphans: Tally | None = None
    """Objects that no kept version names. They are no damage; a vacuum deletes them."""
    unchecked: tuple[str, ...] = ()
    """What this release cannot read, and so has not checked: sentences, in the report of a store."""

    @property
    def ok(self) -> bool:
        """Whether nothing that was checked is damaged."""
        return not self.damage

    def as_dict(self) -> dict[str, Any]:
        """The same as dicts, lists, numbers and text. "damage" has a dict for each damaged part.

        In the report of a store it has "object", "versions" (pairs), "cells" and "message"; "cells" is a list of dicts
        with array, fragment, tile, attribute, domain and cells. "unchecked", beside "damage", is a list of sentences.
        In that of one array it has "fragment", "tile", "attribute", "domain", "cells" (their number) and "message".
        """
        if self.oldest is None:
            parts = [{**_cells_dict(part), "message": one.message} for one in self.damage for part in one.affected]
            counts = {name: getattr(self, name) for name in ("fragments", "tiles", "blocks", "bytes")}
            return {**counts, "damage": parts}
        names = ("oldest", "newest", "records", "manifest", "files", "blocks", "bytes", "leases")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        found["orphans"] = None if self.orphans is None else asdict(self.orphans)
        found["damage"] = []
        for one in self.damage:
            cells = [{"array": part.array, **_cells_dict(part)} for part in one.affected]
            versions = [list(pair) for pair in one.versions]
            found["damage"].append({"object": one.object, "versions": versions, "cells": cells, "message": one.message})
        found["unchecked"] = list(self.unchecked)
        return found

    def to_json(self) -> str:
        """`as_dict` as JSON."""
        return json.dumps(self.as_dict(), ensure_ascii=False)

    def __getitem__(self, key: str) -> Any:
        return self.as_dict()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return len(self.as_dict())

    def __str__(self) -> str:
        if self.oldest is None:
            line = f"{self.fragments:,} fragments, {self.blocks:,} blocks, {self.bytes:,} bytes checked"
        else:
            line = (
                f"versions {self.oldest} to {self.newest}: {self.records:,} records, {self.manifest:,} roots and "
                f"pages, {self.files:,} data files, {self.bytes:,} bytes checked"
            )
        sound = "all that was checked is sound" if self.unchecked else "all is sound"
        verdict = f"{len(self.damage):,} damaged" if self.damage else sound
        return "\n".join([line, verdict, *map(str, self.damage), *self.unchecked])

    def _repr_html_(self) -> str:
        title, verdict = str(self).splitlines()[:2]
        head = f"<div><b>gridstone.Report</b> {html.escape(title)}: <b>{html.escape(verdict)}</b>"
        head += "".join(f"<div>{html.escape(text)}</div>" for text in self.unchecked)
        if self.ok:
            return f"{head}</div>"
        rows = [(one.object or "", _spans_text(one.versions), _boxes_text(one), one.message) for one in self.damage]
        return f"{head}{html.table(('object', 'versions', 'cells', 'what'), rows)}</div>"


def _spans_text(spans: Iterable[tuple[object, object]]) -> str:
    return ", ".join(f"{low}..{high}" for low, high in spans)


def _boxes_text(damage: Damage) -> str:
    """Which cells cannot be read."""
    boxes = []
    for part in damage.affected:
        named = [part.array, part.fragment, None if part.tile is None else f"tile {part.tile}", part.attribute]
        box = " x ".join(f"{low}..{high}" for low, high in part.domain)
        boxes.append(f"{' '.join(name for name in named if name is not None)}: {box}")
    return "; ".join(boxes)


def _cells_dict(found: AffectedCells) -> dict[str, Any]:
    return {
        "fragment": found.fragment,
        "tile": found.tile,
        "attribute": found.attribute,
        "domain": [list(ends) for ends in found.domain],
        "cells": found.cells,
    }


def _cells_of(given: Mapping[str, Any]) -> AffectedCells:
    domain = tuple((low, high) for low, high in given["domain"])
    return AffectedCells(
        given.get("array"), given["fragment"], given["tile"], given["attribute"], domain, given["cells"]
    )


def _report_of(text: str) -> Report:
    """The report that the core gives in JSON, of an array or a store."""
    found: dict[str, Any] = json.loads(text)
    if "oldest" not in found:
        found["damage"] = tuple(Damage(None, (), (_cells_of(one),), one["message"]) for one in found["damage"])
        return Report(**found)
    found["damage"] = tuple(
        Damage(
            one["object"],
            tuple((low, high) for low, high in one["versions"]),
            tuple(map(_cells_of, one["cells"])),
            one["message"],
        )
        for one in found["damage"]
    )
    found["unchecked"] = tuple(found["unchecked"])
    return Report(**{**found, "orphans": Tally(**found["orphans"])})


@checked()
def verify(uri: str | os.PathLike[str], *, context: Context | None = None, progress: Progress = None) -> Report:
    """Checks everything that a kept version of a store needs, also where nothing of it can be opened.

    Args:
        uri: the store.
        context: None: the process's default, whose threads all read and decode.
        progress: True for a bar, or a callable `f(done, total)`: stored bytes of fragments. It begins anew if a vacuum
            came between and the check is made once more.

    Returns:
        What was looked at, and for each damaged or missing object the versions that cannot be read whole and the cells
        in them that are affected.

    Raises:
        NotFoundError: there is no store.

    Example:
        >>> report = gs.verify("sea.gs")
        >>> report.ok, report["damage"]
        (True, [])
    """
    with reporting(progress, "checking") as report:
        return _report_of(_native.verify_store((context or default()).native, os.fspath(uri), report))


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did, or would do."""

    damage: list[dict[str, Any]]
    """What was damaged; as `Report.as_dict` of a store tells it."""
    actions: list[dict[str, str]]
    """What was done: the "object", and "what"."""
    remaining: list[dict[str, Any]]
    """What is damaged afterwards."""
    kept: list[str]
    """Where damaged objects were put that something else took the name of."""
    committed: int | None
    """The version that was committed to name a new root."""
    lost: list[dict[str, Any]]
    """Versions that are cut off the log, oldest first: "version", "time_us" (UTC, microseconds since 1970; None where
    the record does not tell), "message", "operations" (their names in the log)."""
    dry_run: bool

    def __str__(self) -> str:
        done = "to be done" if self.dry_run else "done"
        lines = [f"{len(self.damage)} damaged, {len(self.actions)} {done}, {len(self.remaining)} not mended"]
        lines += [f"{action['object']}: {action['what']}" for action in self.actions]
        lines += [_lost_text(lost, self.dry_run) for lost in self.lost]
        lines += [f"{d['object']}: {_versions(d['versions'])}: {d['message']}" for d in self.remaining]
        return "\n".join(lines)


def _lost_text(lost: Mapping[str, Any], dry_run: bool) -> str:
    done = ", ".join(lost["operations"]) or "its record does not tell what it did"
    message = "" if lost["message"] is None else f" ({lost['message']!r})"
    return f"version {lost['version']} {'would be' if dry_run else 'is'} lost: {done}{message}"


def _versions(pairs: Sequence[Sequence[int]]) -> str:
    spans = [f"{low}" if low == high else f"{low} to {high}" for low, high in pairs]
    word = "version" if len(pairs) == 1 and pairs[0][0] == pairs[0][1] else "versions"
    return f"{word} {', '.join(spans)}" if spans else "no version"


@checked()
def repair(
    uri: str | os.PathLike[str],
    *,
    dry_run: bool = True,
    cut: bool = False,
    context: Context | None = None,
    progress: Progress = None,
) -> Repair:
    """Makes damaged and lost objects of a store again, as far as the rest of it tells how.

    Nothing that is sound is deleted or written over; a damaged object is kept in `_damaged/`. After a power cut that a
    store with `durability="close"` did not survive whole, look at `gs.repair(uri, cut=True)`, then do it:

        print(gs.repair("quick.gs", cut=True))
        gs.repair("quick.gs", cut=True, dry_run=False)

    Args:
        uri: the store.
        dry_run: only say what would be done.
        cut: also cut the log at its last sound version. It is cut if a record after it is missing or damaged, or if a
            commit that was not durable (`durability="close"`) names such a file. The versions after it are lost: `lost`
            lists them, in a dry run too. Their records are kept in `_damaged/`. Never done unless asked for.
        context: None: the process's default.
        progress: True for a bar, or a callable `f(done, total)`: stored bytes of fragments that a check has read. There
            is one before and, where something is damaged, more of what was made; each begins anew.

    Raises:
        NotFoundError: there is no store.
        ConflictError: the store was written to meanwhile.
    """
    with reporting(progress, "checking") as report:
        done = json.loads(_native.repair((context or default()).native, os.fspath(uri), dry_run, cut, report))
    return Repair(**done, dry_run=dry_run)


class Checked:
    """What arrays can check."""

    @property
    @abstractmethod
    def native(self) -> "_native.Array":
        """The core's handle."""

    @property
    @abstractmethod
    def context(self) -> Context:
        """Budget and threads."""

    @checked()
    def verify(self, *, store: bool = False, progress: Progress = None) -> Report:
        """Checks every stored byte of the array at its version, and says what is damaged and which cells it affects.

        Args:
            store: check the whole store and all its versions; see `gridstone.verify`.
            progress: True for a bar, or a callable `f(done, total)`: stored bytes of fragments.
        """
        if store:
            return verify(self.native.uri, context=self.context, progress=progress)
        with reporting(progress, "checking") as report:
            return _report_of(self.native.verify(report))
