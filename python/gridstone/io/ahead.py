"""Reading ahead: what an iterator gives, made on a thread of its own while what it gave before is worked on."""

import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T], count: int) -> Generator[T, None, None]:
    """The items in their order, up to `count` of them (and the one under way) made before they are asked for.

    An exception comes behind the items before it. Who closes this iterator, or leaves it by an exception, waits for the
    thread to finish the item that it is at. With a count of 0 there is no thread.
    """
    if count <= 0:
        yield from items
        return
    made: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(count)
    stopped = threading.Event()

    def work() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                made.put((item,))
                if stopped.is_set():
                    return
        except BaseException as error:
            end = error
        made.put(end)

    thread = threading.Thread(target=work, name="gridstone-ahead", daemon=True)
    thread.start()
    try:
        while isinstance(found := made.get(), tuple):
            yield found[0]
        if found is not None:
            raise found
    finally:
        stopped.set()
        while thread.is_alive():
            # Room for what it still has to give; it looks up then.
            try:
                made.get(timeout=0.01)
            except queue.Empty:
                continue
        thread.join()
