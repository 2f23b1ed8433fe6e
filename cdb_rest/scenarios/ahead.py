"""Making things in one thread while another one uses them."""

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")

WAIT_SECONDS = 0.1


@contextlib.contextmanager
def made_ahead(items: Iterator[Item], depth: int) -> Iterator[Iterator[Item]]:
    """The same items, made by a thread that runs up to `depth` of them ahead and ends with the block.

    What goes wrong in the making is raised in the using. `items` must not touch the database: the thread has no
    connection that anybody would close.
    """
    made: queue.Queue = queue.Queue(depth)
    ended = threading.Event()

    def hand_over(item: object) -> bool:
        while not ended.is_set():
            with contextlib.suppress(queue.Full):
                made.put(item, timeout=WAIT_SECONDS)
                return True
        return False

    def make() -> None:
        try:
            for item in items:
                if not hand_over((item, None)):
                    return
            hand_over((None, StopIteration()))
        except BaseException as error:
            hand_over((None, error))

    def use() -> Iterator[Item]:
        while True:
            item, error = made.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item

    maker = threading.Thread(target=make, name="made-ahead", daemon=True)
    maker.start()
    try:
        yield use()
    finally:
        ended.set()
        maker.join()
