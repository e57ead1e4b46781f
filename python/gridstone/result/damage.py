"""The parts that a read with `damaged="skip"` omitted."""

import json
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..column import datatype
from ..schema.array_schema import Schema

Damaged = Literal["error", "skip"]

CHOICES = ("error", "skip")


class DamageWarning(UserWarning):
    """A read omitted what is damaged; `damage` of its result lists it."""


class Skipped(NamedTuple):
    """A part of a box that a read omitted because it is damaged."""

    fragment: str | None
    """The id of the damaged fragment (or the one under a damaged mask); None: all fragments of a manifest page."""
    tile: int | None
    """The data tile, where only that."""
    attribute: str | None
    """The attribute (or the dimension of sparse cells) whose bytes are damaged. A dense box lacks only this attribute;
    sparse cells are omitted as a whole."""
    cells: int
    """How many cells of the fragment at most."""
    box: dict[str, tuple[Any, Any]]
    """The box of what was left out: (lowest, highest) coordinate per dimension, inclusive."""
    reason: str
    """What is wrong."""


def skipped_parts(schema: Schema, texts: Sequence[str], stacklevel: int) -> tuple[Skipped, ...]:
    """The parts that the core omitted, with a warning if there is one."""
    found = tuple(_skipped(schema, json.loads(text)) for text in texts)
    if found:
        first = found[0]
        parts = "part was" if len(found) == 1 else "parts were"
        warnings.warn(
            f"{len(found)} damaged {parts} left out, the first in the box {first.box}: {first.reason}. `damage` lists "
            f"them; `gridstone repair` mends what can be",
            DamageWarning,
            stacklevel=stacklevel + 1,
        )
    return found


def _skipped(schema: Schema, given: dict[str, Any]) -> Skipped:
    pairs = zip(schema.dims, given["domain"], strict=True)
    box = {dim.name: (datatype.from_text(dim.dtype, lo), datatype.from_text(dim.dtype, hi)) for dim, (lo, hi) in pairs}
    return Skipped(given["fragment"], given["tile"], given["attribute"], given["cells"], box, given["reason"])
