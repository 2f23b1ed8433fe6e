"""Limits on the requests that a worker process queues and on those that its threads handle at a time."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from time import monotonic
from typing import NamedTuple

from cdb import env
from cdb.serving.pools import REQUESTS_OF_A_THREAD
from cdb.worker.connection import Connection
from cdb_rest.metrics.slots import here

VALUES = env.read()
MOST_BYTES: int = VALUES["CDB_MAX_BODY_BYTES"]
# A body of this size or more is large. All large bodies in progress together must not exceed the maximum size
# of one body. Other large requests wait without a thread; their clients expect to wait.
LARGE_BYTES = 1024 * 1024
QUEUE_SECONDS: float = VALUES["CDB_QUEUE_TIMEOUT_SECONDS"]
LARGE_QUEUE_SECONDS = 3 * QUEUE_SECONDS
# A request that takes longer than SLOW_SECONDS to arrive is slow. An address may send so many slow requests
# at a time; with one more, the oldest is refused.
SLOW_SECONDS, SLOW_PER_ADDRESS = 2, 64


class Share(NamedTuple):
    """What a request counts towards the limits from its admission until a thread has handled it.

    `large_bytes` is the size of its body if that is large, otherwise 0. `is_long_read` is False if long reads are not
    limited. `address` is the client's address if requests are limited by address, otherwise None.
    """

    large_bytes: int
    is_long_read: bool
    address: str | None


class Limits:
    """The limits of one worker process. Only its main loop changes them.

    Threads call only `is_counted` and `apply_to`, which change nothing.

    - Large bodies: together at most the maximum size of one body.
    - Long reads, except in the pool `lookups`: all threads but one, which remains for lookups, short reads and writes.
    - Requests of one client address, in the pool `others`: also all threads but one.
    - Complete requests, in the pool `others`: `REQUESTS_OF_A_THREAD` for each thread, at most half of them from one
      address.

    A request over the last limit is refused. A request over another limit waits, without a thread, until others have
    finished, or is refused after its queue timeout.
    """

    def __init__(self, threads: int) -> None:
        is_others = here.pool == "others"
        self._max_requests = REQUESTS_OF_A_THREAD * threads if is_others else None
        self._max_reads = None if here.pool == "lookups" else max(1, threads - 1)
        self._max_running_of_address = max(1, threads - 1) if is_others else None
        # Complete requests of each address, and among them those that were admitted to a thread.
        self._queued: dict[Connection, str] = {}
        self._requests_of_address: Counter[str] = Counter()
        self._running: dict[Connection, Share] = {}
        self._running_of_address: Counter[str] = Counter()
        self._reads = self._large_bytes = 0
        self._waiting: dict[Connection, Share] = {}

    def may_queue(self, conn: Connection) -> bool:
        """Count a complete request until `release`.

        Returns False, without counting it, if the limit on complete requests is reached.
        """
        if self._max_requests is None:
            return True
        address = conn.address
        if (
            self._requests_of_address.total() >= self._max_requests
            or self._requests_of_address[address] >= self._max_requests // 2
        ):
            return False
        self._requests_of_address[address] += 1
        self._queued[conn] = address
        return True

    def admit(self, conn: Connection) -> bool:
        """Admit a complete request to a thread, or let it wait. Returns whether it was admitted.

        An admitted request counts until `release`. A waiting one is returned by a later `release` of another request,
        which admits it, or by `overdue`. `conn.waits_since` must be set; the admission of a large body sets it again.
        """
        share = self._share_of(conn)
        # Large bodies are admitted in their order. Otherwise smaller ones could overtake a very large one forever.
        if self._fits(share) and not (share.large_bytes and any(one.large_bytes for one in self._waiting.values())):
            self._take(conn, share)
            return True
        self._waiting[conn] = share
        return False

    def apply_to(self, conn: Connection) -> bool:
        """Whether any of the limits that `admit` checks applies to the connection's request."""
        return any(self._share_of(conn))

    @property
    def has_long_read(self) -> bool:
        """Whether a read whose response may be large was admitted and has not finished; False in the pool `lookups`."""
        return self._reads > 0

    def is_counted(self, conn: Connection) -> bool:
        """Whether the request was admitted and counts towards a limit, so `release` must precede the next request."""
        return conn in self._running

    def release(self, conn: Connection) -> list[Connection]:
        """Stop counting a request that was handled or refused. Returns the connections whose requests are admitted now.

        These are counted already; the caller passes them to threads without calling `admit` again.
        """
        if conn in self._queued:
            self._requests_of_address[self._queued.pop(conn)] -= 1
            # Removes addresses without requests.
            self._requests_of_address += Counter()
        share = self._running.pop(conn, None)
        if share is None:
            return []
        self._count(share, -1)
        admitted, is_large_waiting = [], False
        for one, wanted in list(self._waiting.items()):
            if self._fits(wanted) and not (wanted.large_bytes and is_large_waiting):
                del self._waiting[one]
                self._take(one, wanted)
                admitted.append(one)
            else:
                is_large_waiting |= bool(wanted.large_bytes)
        return admitted

    def overdue(self) -> list[Connection]:
        """Remove and return the connections whose waiting requests are past their timeout. The caller must refuse them.

        The timeout is `QUEUE_SECONDS`, or `LARGE_QUEUE_SECONDS` for large bodies. `release` is still required.
        """
        now = monotonic()
        found = [
            conn
            for conn, share in self._waiting.items()
            if now - conn.waits_since > (LARGE_QUEUE_SECONDS if share.large_bytes else QUEUE_SECONDS)
        ]
        for conn in found:
            del self._waiting[conn]
        return found

    def _fits(self, share: Share) -> bool:
        return (
            self._large_bytes + share.large_bytes <= MOST_BYTES
            and (self._max_reads is None or not share.is_long_read or self._reads < self._max_reads)
            and (
                self._max_running_of_address is None
                or share.address is None
                or self._running_of_address[share.address] < self._max_running_of_address
            )
        )

    def _share_of(self, conn: Connection) -> Share:
        return Share(
            conn.reader.size if conn.reader.size >= LARGE_BYTES else 0,
            self._max_reads is not None and conn.reader.head.is_long_read,
            None if self._max_running_of_address is None else conn.address,
        )

    def _take(self, conn: Connection, share: Share) -> None:
        if not any(share):
            return
        self._running[conn] = share
        self._count(share, 1)
        if share.large_bytes:
            # From here on it only waits for a thread, for which the shorter QUEUE_SECONDS apply.
            conn.waits_since = monotonic()

    def _count(self, share: Share, sign: int) -> None:
        self._large_bytes += sign * share.large_bytes
        self._reads += sign * share.is_long_read
        if share.address is not None:
            self._running_of_address[share.address] += sign
            self._running_of_address += Counter()


def too_slow(conns: Iterable[Connection], now: float) -> list[Connection]:
    """The connections to refuse because their address sends too many slow requests: the oldest in excess of the limit.

    A request is slow if it is incomplete `SLOW_SECONDS` after its first byte; an address may send `SLOW_PER_ADDRESS` of
    them at a time. `now` is the time on the monotonic clock.
    """
    slow = defaultdict(list)
    for conn in conns:
        if not conn.reader.is_complete and conn.reader.has_begun and now > conn.reader.begun + SLOW_SECONDS:
            slow[conn.address].append(conn)
    found = []
    for of_an_address in slow.values():
        of_an_address.sort(key=lambda conn: conn.reader.begun)
        found += of_an_address[:-SLOW_PER_ADDRESS]
    return found
