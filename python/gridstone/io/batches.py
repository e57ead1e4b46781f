"""Writes record batches one by one, with progress."""

from collections.abc import Callable, Iterable
from typing import Any

from ..base.progress import Progress, reporting


def pour(batches: Iterable[Any], write: Callable[[Any], None], progress: Progress) -> int:
    """Hands on every batch; the number of rows."""
    rows = 0
    with reporting(progress, "writing", "rows") as report:
        for batch in batches:
            write(batch)
            rows += batch.num_rows
            if report is not None:
                report(rows, 0)
    return rows
