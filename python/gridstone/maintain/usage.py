"""What a store takes, and what a vacuum would free."""

import json
from dataclasses import dataclass
from typing import Any

from ..base import html
from .retention import Tally, Vacuum, of_json


@dataclass(frozen=True, slots=True)
class ArrayUsage:
    """What an array of the newest version takes."""

    path: str
    fragments: int
    cells: int
    """Cells in its fragments; overwritten and deleted ones count until they are merged."""
    bytes: int
    """Bytes of its fragments in the store, those of its labels among them."""
    log_bytes: int
    """Those of them that lie in log records: small fragments do, until they are folded."""
    attached_files: int
    """Files of other formats outside of the store that it reads."""
    attached_bytes: int
    """Bytes of these files; they belong to no sum of the store."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a store takes. `live`, `older`, `orphans`, `manifest`, `log` and `other` add up to `total`."""

    uri: str
    version: int
    """The newest version."""
    oldest: int
    """The oldest version that is kept."""
    arrays: tuple[ArrayUsage, ...]
    """The arrays of the newest version, by path."""
    live: Tally
    """Data files that the newest version needs."""
    older: Tally
    """Data files that only older versions need."""
    orphans: Tally
    """Data files that no version needs: of writes that are under way or were given up. A vacuum deletes old ones."""
    manifest: Tally
    """The list of fragments."""
    log: Tally
    """Log records, which hold small fragments too."""
    other: Tally
    """Leases of readers, temporary files, copies of damaged objects."""
    reclaimable: Vacuum
    """What a vacuum would delete now; nothing was deleted."""

    @property
    def total(self) -> Tally:
        """All objects of the store."""
        parts = (self.live, self.older, self.orphans, self.manifest, self.log, self.other)
        return Tally(sum(part.objects for part in parts), sum(part.bytes for part in parts))

    @property
    def attached_bytes(self) -> int:
        """Bytes of files outside of the store that arrays read."""
        return sum(array.attached_bytes for array in self.arrays)

    @property
    def parts(self) -> dict[str, Tally]:
        """The parts of the total by what they are for, in words."""
        return {
            "newest version": self.live,
            "older versions": self.older,
            "orphans": self.orphans,
            "manifest": self.manifest,
            "log": self.log,
            "other": self.other,
        }

    def __str__(self) -> str:
        lines = [f"{array.path}: {array.bytes:,} bytes, {array.cells:,} cells" for array in self.arrays]
        lines += [f"{name}: {part.bytes:,} bytes" for name, part in self.parts.items() if part.objects]
        lines.append(f"total: {self.total.bytes:,} bytes in {self.total.objects:,} objects")
        if self.attached_bytes:
            lines.append(f"attached, outside of the store: {self.attached_bytes:,} bytes")
        lines.append(f"a vacuum would free {self.reclaimable.bytes:,} bytes")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(array.path, f"{array.fragments:,}", f"{array.cells:,}", f"{array.bytes:,}") for array in self.arrays]
        parts = [(name, f"{part.objects:,}", f"{part.bytes:,}") for name, part in self.parts.items()]
        tables = html.table(("array", "fragments", "cells", "bytes"), rows)
        return f"<div><b>gridstone.Usage</b>{tables}{html.table(('part', 'objects', 'bytes'), parts)}</div>"


def usage_of(uri: str, taken: str, freed: str, attached: dict[str, tuple[int, int]]) -> Usage:
    """The usage that the core gives in JSON, with the files and bytes of attached files by path."""
    found: dict[str, Any] = json.loads(taken)
    arrays = [
        ArrayUsage(
            one["path"],
            one["fragments"],
            one["cells"],
            one["data_bytes"] + one["log_bytes"],
            one["log_bytes"],
            *attached.get(one["path"], (0, 0)),
        )
        for one in found["arrays"]
    ]
    tallies = {name: Tally(**found[name]) for name in ("live", "older", "orphans", "manifest", "log", "other")}
    freeing = of_json(freed, True)
    return Usage(uri, found["version"], found["oldest"], tuple(arrays), **tallies, reclaimable=freeing)


def attached_paths(taken: str) -> list[str]:
    """The arrays that read files outside of the store."""
    return [one["path"] for one in json.loads(taken)["arrays"] if one["external"]]
