"""Making things in one thread while another one uses them."""

import contextlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")

WAIT_SECONDS = 0.1


@contextlib.contextmanager
def made_ahead(items: Iterator[Item], depth: int) -> Iterator[Iterator[Item]]:
    """The same items, made by a thread that runs up to `depth` of them ahead and ends with the block.

    What goes wrong in the making is raised in the using. `items` must not touch the database: the thread has no
    connection that anybody would close.
    """
    maker = _Maker(items, depth)
    maker.start()
    try:
        yield maker.made()
    finally:
        maker.end()


@dataclass(frozen=True)
class _End:
    """The end of the items: after the last one, or by an error."""

    error: BaseException | None = None


class _Maker(threading.Thread, Generic[Item]):
    """Makes items, and hands each over, and then their end."""

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        super().__init__(name="made-ahead", daemon=True)
        self._items = items
        self._made: queue.Queue[Item | _End] = queue.Queue(depth)
        self._ended = threading.Event()

    def run(self) -> None:
        """Make all items, or as many as are wanted."""
        try:
            for item in self._items:
                if not self._hand_over(item):
                    return
            self._hand_over(_End())
        except BaseException as error:
            self._hand_over(_End(error))

    def made(self) -> Iterator[Item]:
        """The items as they come."""
        while not isinstance(item := self._made.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    def end(self) -> None:
        """Want no more of them."""
        self._ended.set()
        self.join()

    def _hand_over(self, item: Item | _End) -> bool:
        while not self._ended.is_set():
            with contextlib.suppress(queue.Full):
                self._made.put(item, timeout=WAIT_SECONDS)
                return True
        return False
