"""Merges the fragments of an array, at once or in the background, and reports what was merged."""

import json
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from .. import _native
from ..base import html
from ..base.arguments import checked, several, text
from ..base.progress import Progress, reporting
from ..context.settings import size_bytes
from ..errors import InputError
from ..query.box import BoxLike, region_of
from ..schema.array_schema import Schema

_SLICE_MS = 50


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge: fragments that new ones took the place of, in a commit of its own."""

    kind: str
    """ "dense": boxes became dense fragments; "sparse": cells became fragments of cells; "tombstones": fragments of
    these became one; "hidden": fragments that newer ones hide went, and nothing was read or written."""
    fragments: int
    """Fragments taken out."""
    cells: int
    """Cells read, at most."""
    bytes_read: int
    """At most."""
    memory: int
    """Bytes of memory that it takes, about."""
    fragments_expected: int
    """Fragments to be written, about."""
    bytes_expected: int
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
    tiles_copied: int
    """Data tiles that were copied as they are stored, since nothing lay over them."""
    blocks_decoded: int
    background_failure: str | None
    """The error of the last consolidation of this array in the background; reported once."""

    def __str__(self) -> str:
        read = sum(merge.bytes_read for merge in self.merges)
        lines = [f"{self.fragments_before:,} fragments, {self.fragments_after:,} after {len(self.merges):,} merges"]
        lines.append(f"{sum(merge.cells for merge in self.merges):,} cells in {read:,} bytes read")
        written = [merge.bytes_written for merge in self.merges if merge.bytes_written is not None]
        if len(written) == len(self.merges):
            lines.append(f"{sum(written):,} bytes written, {self.tiles_copied:,} tiles copied")
        else:
            expected, memory = sum(m.bytes_expected for m in self.merges), max(m.memory for m in self.merges)
            lines.append(f"about {expected:,} bytes to write, {memory:,} bytes of memory")
        if self.overtaken:
            lines.append(f"{self.overtaken:,} merges left to another process")
        if self.background_failure:
            lines.append(f"the last one in the background failed: {self.background_failure}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        planned = " planned" if any(merge.bytes_written is None for merge in self.merges) else ""
        return (
            f"<gridstone.Consolidation: {self.fragments_before:,} fragments, {self.fragments_after:,} after "
            f"{len(self.merges):,} merges{planned}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (
                merge.kind,
                f"{merge.fragments:,}",
                f"{merge.cells:,}",
                f"{merge.bytes_read:,}",
                _made(merge.fragments_written, merge.fragments_expected),
                _made(merge.bytes_written, merge.bytes_expected),
            )
            for merge in self.merges
        ]
        header = ("kind", "fragments", "cells", "bytes read", "fragments written", "bytes written")
        lines = html.lines(str(self).splitlines())
        return f"<div><b>gridstone.Consolidation</b>{lines}{html.table(header, rows) if rows else ''}</div>"


def _made(written: int | None, expected: int) -> str:
    return f"about {expected:,}" if written is None else f"{written:,}"


def of_json(text: str) -> Consolidation:
    """The report that the core gives in JSON."""
    found = json.loads(text)
    merges = []
    for merge in found["merges"]:
        count, size = merge["written"] or (None, None)
        merges.append(
            Merge(
                merge["kind"],
                merge["fragments"],
                merge["cells"],
                merge["bytes"],
                merge["memory"],
                merge["estimate"][0],
                merge["estimate"][1],
                count,
                size,
            )
        )
    return Consolidation(
        tuple(merges),
        found["before"],
        found["after"],
        found["overtaken"],
        found["tiles_copied"],
        found["blocks_decoded"],
        found["failure"],
    )


class BackgroundConsolidation:
    """A consolidation that goes on beside everything else, on one thread at low priority.

    A process that ends does not wait for it: what it was doing is as if it had not begun. In a forked child it is
    done, and `wait` raises InputError: it goes on in the parent.
    """

    __slots__ = ("_native", "_report")

    def __init__(self, native: "_native.Upkeep") -> None:
        self._native = native
        self._report: Consolidation | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._native.done

    def wait(self, timeout: float | None = None) -> Consolidation:
        """Waits, and gives the report; raises what it failed with, and TimeoutError after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while self._report is None:
            left = _SLICE_MS if until is None else round(1000 * (until - time.monotonic()))
            text = self._native.wait(max(0, min(left, _SLICE_MS)))
            if text is not None:
                self._report = of_json(text)
            elif left <= 0:
                raise TimeoutError("the consolidation goes on still")
        return self._report

    @property
    def result(self) -> Consolidation:
        """The report; waits for the end."""
        return self.wait()

    def cancel(self) -> None:
        """Asks it to stop. Merges that are committed stay; `wait` raises KeyboardInterrupt unless it was done."""
        self._native.cancel()

    def __repr__(self) -> str:
        return f"BackgroundConsolidation({'done' if self.done else 'running'})"


class Mergeable:
    """The part of an array that is about its fragments."""

    @property
    @abstractmethod
    def _schema(self) -> Schema: ...

    @property
    @abstractmethod
    def native(self) -> "_native.Array":
        """The core's handle."""

    @abstractmethod
    def _writable(self) -> "_native.Array": ...

    @overload
    def consolidate(
        self,
        strategy: str = ...,
        *,
        box: BoxLike = ...,
        fragments: Sequence[str] | None = ...,
        target: int | str = ...,
        dry_run: bool = ...,
        background: Literal[False] = ...,
        progress: Progress = ...,
    ) -> Consolidation: ...

    @overload
    def consolidate(
        self,
        strategy: str = ...,
        *,
        box: BoxLike = ...,
        fragments: Sequence[str] | None = ...,
        target: int | str = ...,
        dry_run: bool = ...,
        background: Literal[True],
    ) -> BackgroundConsolidation: ...

    @checked(fragments=several)
    def consolidate(
        self,
        strategy: str = "tiered",
        *,
        box: BoxLike = None,
        fragments: Sequence[str] | None = None,
        target: int | str = "512MiB",
        dry_run: bool = False,
        background: bool = False,
        progress: Progress = None,
    ) -> Consolidation | BackgroundConsolidation:
        """Merges fragments, so that reads open fewer of them, and drops what was deleted or overwritten. Those of
        labels too, unless a box or fragments are named or it goes on in the background.

        Readers and writers go on meanwhile; older versions stay as they were. Each merge is a commit of its own.

        Args:
            strategy: "tiered" merges eight and more of similar size; "all" as much as can be; "updates" small
                fragments of cells with each other; "manifest" nothing, it packs the list of fragments.
            box: merge what touches this box (or the one around a list of boxes), and what must go with it, whatever the
                strategy.
            fragments: ids of fragments (see `fragments`) that are merged, and no others.
            target: bytes of a merged fragment, about.
            dry_run: only tell what would be done, and what it would cost.
            background: start it and give a handle to wait for; this array stays at its version until `refresh`.
            progress: True for a bar, or a callable `f(done, total)`: cells. Not in the background.
        """
        if background and progress:
            raise InputError("a consolidation in the background reports no progress: leave progress= out")
        array = self.native if dry_run else self._writable()
        where = None if box is None or fragments is not None else region_of(self._schema, box)
        if where is not None and where.empty:
            raise InputError("the box is empty, or lies outside the domain: there is nothing in it to merge")
        ids, within = None if fragments is None else list(fragments), None if where is None else where.native
        for fragment in ids or ():
            text("fragments", fragment)
        size = size_bytes(target, "target")
        if background and not dry_run:
            return BackgroundConsolidation(array.consolidate_in_background(strategy, ids, within, size))
        if not dry_run and ids is None and within is None:
            self._merge_labels(array, strategy, size)
        with reporting(progress, "merging", "cells") as report:
            return of_json(array.consolidate(strategy, ids, within, size, dry_run, report))

    def _merge_labels(self, array: "_native.Array", strategy: str, size: int) -> None:
        """Merges the fragments that labels in lists lie in, in the same way; what is small is not told of."""
        for place, dim in enumerate(self._schema.dims):
            hidden = _native.labels_of(array, place) if isinstance(dim._stored_labels, str) else None
            if hidden is not None:
                hidden.consolidate(strategy, None, None, size, False)
