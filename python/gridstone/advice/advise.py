"""Proposes a schema for data, or reports how an array is stored.

Every figure is measured: the sample is written to a store in memory under each candidate, and boxes are read from it.
"""

import os
from collections.abc import Sequence
from typing import Any

from ..arrays.array import Array
from ..base.arguments import checked, several
from ..context.settings import Context, default
from ..stores import store
from . import trials
from .report import Advice, Health, Queries, check
from .sample import of_array, of_data


@checked(queries=several)
def advise(
    data: Any,
    *,
    dims: Sequence[str] | None = None,
    queries: Queries | None = None,
    sample: int = 100_000,
    context: Context | None = None,
) -> Advice:
    """Proposes a schema for data, or looks at how an array is stored.

    Args:
        data: a CSV, Parquet, Arrow IPC or .npy file; an Arrow table or data frame; an ndarray; an `Array`, or the place
            of a store that holds one.
        dims: the columns of a table that are dimensions; None: guessed, and said why.
        queries: boxes that are going to be read, `{dim: (lo, hi)}` each, for which the order, the tiles and the
            capacity are chosen; None: random boxes that hold about a hundredth of the cells, of several shapes.
        sample: so many cells are measured, about.
        context: budget and threads; None: the process's default.

    Raises:
        InputError: there is nothing to look at, it cannot be read, or no column can be a dimension.
        UnsupportedError: a column that no array can hold.
    """
    used = context or default()
    check(sample > 0, f"sample= is a positive number of cells, not {sample}")
    array = data if isinstance(data, Array) else _array_at(data, used)
    taken = of_array(array, sample) if array is not None else of_data(data, dims, sample)
    found = trials.run(taken, queries, used)
    if array is not None:
        found.health = trials.health(array, queries, used)
        found.reasons += _health_reasons(found.health, array)
    return found


def _array_at(data: Any, context: Context) -> "Array | None":
    if not isinstance(data, str | os.PathLike):
        return None
    return store.open_array(data, context=context) if store.exists(data, context=context) else None


def _health_reasons(health: Health, array: "Array") -> list[str]:
    reasons = [
        f"it has {health.fragments:,} fragments with {health.tiles:,} data tiles; "
        f"a box touches {health.touched:.1f} fragments"
    ]
    if health.fullness is not None:
        overlap = "" if health.overlap is None else f", and the MBR of one meets {health.overlap:.2f} others"
        reasons.append(f"data tiles are {health.fullness:.0%} full{overlap}")
    if health.merged_fragments < health.fragments:
        reasons.append(
            f'consolidate("all") would make {health.merged_fragments:,} fragments of them, '
            f"reading {health.merge_bytes:,} bytes"
        )
    fit = "fits" if health.fits else "does not fit"
    reasons.append(
        f"the largest tile takes {health.tile_bytes:,} bytes in memory: one for each of "
        f"{array.context.threads} threads {fit} a quarter of the memory budget of {array.context.memory_budget:,} bytes"
    )
    return reasons
