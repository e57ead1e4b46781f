"""Progress of long operations: a callable, or a bar drawn by rich."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Callback = Callable[[int, int], object]
"""Called with (done, total); total is 0 while unknown."""

Progress = bool | Callback | None
"""What `progress=` takes: True for a bar on standard error, a callable, or None (False) for silence."""


@contextmanager
def reporting(progress: Progress, label: str, unit: str = "bytes") -> Iterator[Callback | None]:
    """Gives the callable to report to, or None; a bar closes with the block."""
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        yield progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
    columns += [DownloadColumn()] if unit == "bytes" else []
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
