"""Reports the progress of long operations to a callable, or draws a bar with rich."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

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


class Reporter:
    """Progress of work that goes on whenever its caller asks for more: a bar stands from the first piece to the end, or
    until the work is given up.
    """

    def __init__(self, progress: Progress, label: str, total: int = 0) -> None:
        self._progress, self._label, self._total = progress, label, total
        self._done, self._ended = 0, progress is None or progress is False
        self._report: Callback | None = None
        self._bar = ExitStack()

    def more(self, cells: int) -> None:
        """So many cells more are done."""
        if self._ended:
            return
        if self._report is None:
            self._report = self._bar.enter_context(reporting(self._progress, self._label, "cells"))
        self._done += cells
        try:
            if self._report is not None:
                self._report(self._done, self._total)
        except BaseException:
            self.give_up()
            raise

    def end(self) -> None:
        """All is done."""
        if not self._ended:
            self._total = self._done
            self.more(0)
        self.give_up()

    def give_up(self) -> None:
        """There will be no more."""
        self._ended = True
        self._bar.close()

    def __del__(self) -> None:
        self._bar.close()
