"""Measures how full the data tiles of an array are, and how much they overlap."""

from typing import Any

import numpy as np

from ..arrays.array import Array
from ..column.datatype import AnyArray

_OVERLAP_TILES_MAX = 20_000


def report(array: "Array") -> dict[str, Any]:
    """How many data tiles there are, how full, and how many others the MBR of one overlaps on average."""
    cells = array.tiles().column("cells").to_numpy()
    found: dict[str, Any] = {"count": len(cells), "cells": int(cells.sum())}
    if len(cells) == 0:
        return found
    found |= {"least": int(cells.min()), "mean": float(cells.mean()), "most": int(cells.max())}
    full = array.schema.capacity if array.sparse else _space_tile(array)
    found["fullness"] = float(cells.mean() / full)
    if array.sparse:
        found["overlap"] = overlap(array)
    return found


def text(found: dict[str, Any]) -> str:
    """A report in a line."""
    line = f"tiles: {found['count']:,} with {found['cells']:,} cells"
    if "fullness" not in found:
        return line
    line += f", {found['fullness']:.0%} full ({found['least']:,} to {found['most']:,} cells)"
    return line if found.get("overlap") is None else f"{line}; the MBR of one meets {found['overlap']:.2f} others"


def _space_tile(array: "Array") -> int:
    """Cells of a whole space tile."""
    count = 1
    for positions in array.chunks:
        count *= positions
    return count


def overlap(array: "Array") -> float | None:
    """The mean number of other tiles whose MBR meets a tile's; None of more tiles than can be compared quickly."""
    table = array.tiles()
    count = table.num_rows
    if count > _OVERLAP_TILES_MAX:
        return None
    bounds = [_ranks(table, name) for name in array.dims]
    met = 0
    for first in range(0, count, 500):
        rows = slice(first, first + 500)
        meets: AnyArray = np.ones((len(range(*rows.indices(count))), count), np.bool_)
        for low, high in bounds:
            meets &= (low[rows, None] <= high[None, :]) & (high[rows, None] >= low[None, :])
        met += int(meets.sum())
    return (met - count) / count if count else 0.0


def _ranks(table: Any, name: str) -> tuple[AnyArray, AnyArray]:
    """Low and high ends as numbers of the same order."""
    ends = [table.column(f"{name}_{end}").to_numpy(zero_copy_only=False) for end in ("lo", "hi")]
    both = np.concatenate([end.view(np.int64) if end.dtype.kind in "mM" else end for end in ends])
    ranks = both if both.dtype.kind != "O" else np.unique(both, return_inverse=True)[1]
    return ranks[: len(ends[0])], ranks[len(ends[0]) :]
