"""Work of DuckDB beside the main thread, so that Ctrl-C ends it at once.

On the main thread DuckDB takes part in a query itself and looks for signals between its parts, which may take minutes.
An interrupt that comes up in a function that DuckDB calls is lost, or looks like another error.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

_Made = TypeVar("_Made")
_LOOK = 0.03
"""Seconds between looks for an interrupt."""
_AGAIN = 0.02
"""Seconds after which a query is stopped again: one that begins later goes on."""


def beside(work: Callable[[], _Made], stop: Callable[[], None]) -> _Made:
    """What `work` gives. Called on the main thread, it runs on another one, and an interrupt here calls `stop`.

    Raises:
        KeyboardInterrupt: Ctrl-C, after the work has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    made: list[_Made] = []
    failed: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, name="gridstone-sql", daemon=True).start()
    try:
        # The handler of signals that polars brings has a wait go on: one without an end is never interrupted.
        while not ended.wait(_LOOK):
            pass
    except BaseException:
        while not ended.is_set():
            stop()
            ended.wait(_AGAIN)
        raise
    if failed:
        raise failed.pop()
    return made.pop()
