"""Makes Ctrl-C work during calls into other libraries that cannot be stopped."""

import threading
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")

_BYTES_MIN = 16 << 20
_LOOK_EVERY_S = 0.05


def interruptible(size: int, work: Callable[[], R]) -> R:
    """What `work` gives. If `size`, the bytes it handles, is large, it runs on a thread of its own, so that Ctrl-C is
    raised at once; the thread then ends unheard. `work` must change nothing that others see."""
    if size < _BYTES_MIN or threading.current_thread() is not threading.main_thread():
        return work()
    made: list[R] = []
    done = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            raised.append(error)
        done.set()

    # No daemon: the interpreter must not end under a thread that is inside a C++ library.
    threading.Thread(target=run, name="gridstone-convert").start()
    # Waiting without an end could miss a signal that comes just before it.
    while not done.wait(_LOOK_EVERY_S):
        pass
    if raised:
        raise raised[0]
    return made[0]
