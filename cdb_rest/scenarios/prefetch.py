"""Prefetching of an iterator in a background thread."""

import contextlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


@contextlib.contextmanager
def prefetch(items: Iterator[Item], depth: int) -> Iterator[Iterator[Item]]:
    """A context manager that yields an iterator over the same items, of which a thread produces up to `depth` in advance.

    No item may be None. The new iterator raises an error of `items` after the items before it, and must not be used after
    the block, whose end waits for the item that is being produced. `items` must not use the database, because nothing
    would close the thread's connection.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    ahead = deque(pool.submit(next, items, None) for _ in range(depth))

    def produced() -> Iterator[Item]:
        while (item := ahead.popleft().result()) is not None:
            ahead.append(pool.submit(next, items, None))
            yield item

    try:
        yield produced()
    finally:
        pool.shutdown(cancel_futures=True)
