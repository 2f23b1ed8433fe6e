"""Prefetching of an iterator in a background thread."""

import contextlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")

WAIT_SECONDS = 0.1


@contextlib.contextmanager
def prefetch(items: Iterator[Item], depth: int) -> Iterator[Iterator[Item]]:
    """A context manager that yields an iterator over the same items, which a thread produces in advance.

    The thread puts up to `depth` items into a queue and holds one more; `depth` must be at least 1. The end of the
    block stops the thread and waits until it has ended, which includes the item that it is producing. The iterator
    must not be used after the block, because it could wait forever.

    The new iterator raises an error of `items` after the items before it. `items` must not use the database, because
    nothing would close the thread's connection.
    """
    producer = _Producer(items, depth)
    producer.start()
    try:
        yield producer.produced()
    finally:
        producer.end()


@dataclass(frozen=True)
class _End:
    """The end of the items, either after the last one or because of an error."""

    error: BaseException | None = None


class _Producer(threading.Thread, Generic[Item]):
    """A thread that puts items into a queue, and then an `_End`. After `end` it puts nothing more."""

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        super().__init__(name="prefetch", daemon=True)
        self._items = items
        self._queue: queue.Queue[Item | _End] = queue.Queue(depth)
        self._ended = threading.Event()

    def run(self) -> None:
        """Produce all items, or stop early after `end`."""
        try:
            for item in self._items:
                if not self._put(item):
                    return
            self._put(_End())
        except BaseException as error:
            self._put(_End(error))

    def produced(self) -> Iterator[Item]:
        """The items in order. Raises the error of the original iterator, if any."""
        while not isinstance(item := self._queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    def end(self) -> None:
        """Stop the thread and wait for its end."""
        self._ended.set()
        self.join()

    def _put(self, item: Item | _End) -> bool:
        """Put an item into the queue when there is space. Returns False if the thread must end instead."""
        while not self._ended.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(item, timeout=WAIT_SECONDS)
                return True
        return False
