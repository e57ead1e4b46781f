"""Makes the next items of iterators on threads of their own while earlier ones are processed."""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


def side_by_side(
    streams: Iterable[Callable[[], Iterator[T]]], lanes: int, room: int, size: Callable[[T], int]
) -> Generator[T, None, None]:
    """The items of the streams, one stream after the other, up to `lanes` of them made side by side, each on its own
    thread: the one that is asked for, and those that come next.

    What was made and not asked for yet has a total `size` of `room` and, of each stream, one item more at most. An
    exception comes behind the items before it. Closing this iterator, or leaving it by an exception, waits for
    the threads to finish their current items. Without lanes there is no thread.
    """
    if lanes <= 0:
        yield from itertools.chain.from_iterable(stream() for stream in streams)
        return
    waiting, running = iter(streams), deque[_Lane[T]]()
    try:
        while True:
            while len(running) < lanes and (stream := next(waiting, None)) is not None:
                running.append(_Lane(stream(), room // lanes, size))
            if not running:
                return
            yield from running[0].items()
            running.popleft().join()
    finally:
        for lane in running:
            lane.stop()
        for lane in running:
            lane.join()


class _Lane(Generic[T]):
    """An iterator whose items are made ahead on a thread, as far as there is room."""

    def __init__(self, items: Iterator[T], room: int, size: Callable[[T], int]) -> None:
        self._items, self._room, self._size = items, room, size
        self._made: deque[T] = deque()
        self._held, self._stopped = 0, False
        self._ended: tuple[BaseException | None] | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="gridstone-ahead", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        end: BaseException | None = None
        try:
            for item in self._items:
                with self._changed:
                    self._made.append(item)
                    self._held += self._size(item)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._stopped or self._held <= self._room)
                    if self._stopped:
                        break
        except BaseException as error:
            end = error
        # Files of a generator that was not asked to its end are closed here.
        self._items = iter(())
        with self._changed:
            self._ended = (end,)
            self._changed.notify_all()

    def items(self) -> Iterator[T]:
        """The items; what went wrong behind them is raised."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._made or self._ended)
                if not self._made:
                    break
                item = self._made.popleft()
                self._held -= self._size(item)
                self._changed.notify_all()
            yield item
        if self._ended is not None and self._ended[0] is not None:
            raise self._ended[0]

    def stop(self) -> None:
        """Asks for no more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def join(self) -> None:
        """Waits for the item under way."""
        self._thread.join()
