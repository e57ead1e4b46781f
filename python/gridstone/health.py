"""Checking whole stores, and repairing them."""

import json
import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from . import _native
from .arguments import checked
from .context import Context, default


@checked()
def verify(uri: str | os.PathLike[str], *, context: Context | None = None) -> dict[str, Any]:
    """Checks everything that a kept version of a store needs, also where nothing of it can be opened.

    Returns:
        What was looked at, and "damage": for each damaged or missing object its name ("object"), the versions that
        cannot be read whole (pairs, both ends in them), the "cells" in them that are affected (array, fragment,
        domain; none: all, or none), and a "message". "orphans" are objects that no kept version names; a vacuum
        deletes them.

    Raises:
        NotFoundError: there is no store.
    """
    found: dict[str, Any] = json.loads(_native.verify_store((context or default()).native, os.fspath(uri)))
    return found


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did, or would do."""

    damage: list[dict[str, Any]]
    """What was damaged; as `verify` tells it."""
    actions: list[dict[str, str]]
    """What was done: the "object", and "what"."""
    remaining: list[dict[str, Any]]
    """What is damaged afterwards."""
    kept: list[str]
    """Where damaged objects were put that something else took the name of."""
    committed: int | None
    """The version that was committed to name a new root."""
    dry_run: bool

    def __str__(self) -> str:
        done = "to be done" if self.dry_run else "done"
        lines = [f"{len(self.damage)} damaged, {len(self.actions)} {done}, {len(self.remaining)} not mended"]
        lines += [f"{action['object']}: {action['what']}" for action in self.actions]
        lines += [f"{d['object']}: {_versions(d)}: {d['message']}" for d in self.remaining]
        return "\n".join(lines)


def _versions(damage: dict[str, Any]) -> str:
    spans = [f"{low}" if low == high else f"{low} to {high}" for low, high in damage["versions"]]
    return f"versions {', '.join(spans)}" if spans else "no version"


@checked()
def repair(uri: str | os.PathLike[str], *, dry_run: bool = True, context: Context | None = None) -> Repair:
    """Makes damaged and lost objects of a store again, as far as the rest of it tells how.

    Nothing that is sound is deleted or written over; a damaged object is kept in `_damaged/`.

    Args:
        uri: the store.
        dry_run: only say what would be done.
        context: None: the process's default.

    Raises:
        NotFoundError: there is no store.
        ConflictError: the store was written to meanwhile.
    """
    done = json.loads(_native.repair((context or default()).native, os.fspath(uri), dry_run))
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
    def verify(self, *, store: bool = False) -> dict[str, Any]:
        """Checks every checksum and reports what is damaged: fragments, tiles, blocks, bytes, damage.

        Args:
            store: check the whole store and all its versions; see `gridstone.verify`.
        """
        if store:
            return verify(self.native.uri, context=self.context)
        found: dict[str, Any] = json.loads(self.native.verify())
        return found
