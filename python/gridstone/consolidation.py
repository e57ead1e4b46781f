"""What merging an array's fragments did, or would do."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge: fragments that new ones took the place of, in a commit of its own."""

    fragments: int
    """Fragments taken out."""
    cells: int
    """Cells read, at most."""
    bytes_read: int
    fragments_written: int | None
    """None while it is but planned."""
    bytes_written: int | None


@dataclass(frozen=True, slots=True)
class Consolidation:
    """The merges of one call of `Array.consolidate`."""

    merges: tuple[Merge, ...]
    fragments_before: int
    fragments_after: int
    overtaken: int
    """Merges given up because another process had merged the same fragments."""

    def __str__(self) -> str:
        read = sum(merge.bytes_read for merge in self.merges)
        lines = [f"{self.fragments_before:,} fragments, {self.fragments_after:,} after {len(self.merges):,} merges"]
        lines.append(f"{sum(merge.cells for merge in self.merges):,} cells in {read:,} bytes read")
        if self.overtaken:
            lines.append(f"{self.overtaken:,} merges left to another process")
        return "\n".join(lines)


def of_json(text: str) -> Consolidation:
    """The report that the core gives in JSON."""
    found = json.loads(text)
    merges = []
    for merge in found["merges"]:
        count, size = merge["written"] or (None, None)
        merges.append(Merge(merge["fragments"], merge["cells"], merge["bytes"], count, size))
    return Consolidation(tuple(merges), found["before"], found["after"], found["overtaken"])
