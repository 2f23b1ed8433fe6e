"""How many requests a process takes at a time, and which of them may go to a thread."""

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
# A body of this size or more is large: all large ones in progress together are no larger than one may be. The others wait,
# which holds no thread, and which clients that send so much expect.
LARGE_BYTES = 1024 * 1024
QUEUE_SECONDS: float = VALUES["CDB_QUEUE_TIMEOUT_SECONDS"]
LARGE_QUEUE_SECONDS = 3 * QUEUE_SECONDS
# Requests of one address may take longer than this to arrive, so many at a time. With one more, the oldest is refused.
SLOW_SECONDS, SLOW_OF_AN_ADDRESS = 2, 64


class Share(NamedTuple):
    """What a request takes of the limits while a thread has it.

    `large_bytes` is the size of its body if that is large, else 0. `address` is its client's if that is limited, else None.
    """

    large_bytes: int
    is_long_read: bool
    address: str | None


class Limits:
    """The limits of one process; only its main loop uses them.

    - Large bodies: no more bytes together than one body may have.
    - Reads that may be large: all threads but one, so that one is left for lookups, short reads and writes.
    - In the pool of writes and long reads, for each client's address: all threads but one, too.
    - In that pool, `REQUESTS_OF_A_THREAD` complete requests for each thread, of which half may be one address's.

    A request over the last of these is refused. One over another waits, without a thread, until others have ended.
    """

    def __init__(self, threads: int) -> None:
        is_others = here.pool == "others"
        self._most = REQUESTS_OF_A_THREAD * threads if is_others else None
        self._most_reads = None if here.pool == "lookups" else max(1, threads - 1)
        self._most_of_an_address = max(1, threads - 1) if is_others else None
        # Complete requests of each address, and those of them that are with a thread.
        self._queued: dict[Connection, str] = {}
        self._requests: Counter[str] = Counter()
        self._running: dict[Connection, Share] = {}
        self._at_work: Counter[str] = Counter()
        self._reads = self._large_bytes = 0
        self._waiting: dict[Connection, Share] = {}

    def may_queue(self, conn: Connection) -> bool:
        """Count a complete request; returns whether there is room for it."""
        if self._most is None:
            return True
        address = conn.address
        if self._requests.total() >= self._most or self._requests[address] >= self._most // 2:
            return False
        self._requests[address] += 1
        self._queued[conn] = address
        return True

    def admit(self, conn: Connection) -> bool:
        """Whether a complete request may go to a thread now; otherwise `release` returns it later."""
        share = self._share_of(conn)
        # A large body waits behind all others, which would pass it for ever.
        if self._fits(share) and not (share.large_bytes and any(one.large_bytes for one in self._waiting.values())):
            self._take(conn, share)
            return True
        self._waiting[conn] = share
        return False

    def apply_to(self, conn: Connection) -> bool:
        """Whether the connection's request has a share of any limit, so that `admit` has to decide about it."""
        return any(self._share_of(conn))

    @property
    def has_long_read(self) -> bool:
        """Whether a thread has a read whose response may be large."""
        return self._reads > 0

    def is_counted(self, conn: Connection) -> bool:
        """Whether `release` has to be called before the connection may ask for something else."""
        return conn in self._running

    def release(self, conn: Connection) -> list[Connection]:
        """Count no longer a request that was answered; returns those that may go to a thread now."""
        if conn in self._queued:
            self._requests[self._queued.pop(conn)] -= 1
            # Addresses that ask nothing any more are forgotten.
            self._requests += Counter()
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
        """Take out the requests that have waited too long."""
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
            and (self._most_reads is None or not share.is_long_read or self._reads < self._most_reads)
            and (
                self._most_of_an_address is None
                or share.address is None
                or self._at_work[share.address] < self._most_of_an_address
            )
        )

    def _share_of(self, conn: Connection) -> Share:
        return Share(
            conn.reader.size if conn.reader.size >= LARGE_BYTES else 0,
            self._most_reads is not None and conn.reader.head.is_long_read,
            None if self._most_of_an_address is None else conn.address,
        )

    def _take(self, conn: Connection, share: Share) -> None:
        if not any(share):
            return
        self._running[conn] = share
        self._count(share, 1)
        if share.large_bytes:
            # From here on it waits for a thread alone.
            conn.waits_since = monotonic()

    def _count(self, share: Share, sign: int) -> None:
        self._large_bytes += sign * share.large_bytes
        self._reads += sign * share.is_long_read
        if share.address is not None:
            self._at_work[share.address] += sign
            self._at_work += Counter()


def too_slow(conns: Iterable[Connection], now: float) -> list[Connection]:
    """The connections whose request takes too long to arrive, beyond `SLOW_OF_AN_ADDRESS` of an address: the oldest."""
    slow = defaultdict(list)
    for conn in conns:
        if not conn.reader.is_complete and conn.reader.has_begun and now > conn.reader.begun + SLOW_SECONDS:
            slow[conn.address].append(conn)
    found = []
    for of_an_address in slow.values():
        of_an_address.sort(key=lambda conn: conn.reader.begun)
        found += of_an_address[:-SLOW_OF_AN_ADDRESS]
    return found
