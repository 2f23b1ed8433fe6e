"""The main loop of the gunicorn worker: it reads requests, queues them for threads, and sends what threads could not send."""

import logging
import selectors
import sys
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from socket import MSG_DONTWAIT, SHUT_WR, socket
from time import monotonic
from typing import Any

from cdb.worker.client_socket import TAKING_SECONDS, ClientSocket
from cdb.worker.connection import Connection
from cdb.worker.limits import MOST_BYTES, QUEUE_SECONDS, too_slow
from cdb.worker.request_reader import RequestReader
from cdb.worker.responding import RespondingWorker
from cdb.worker.spool import PIECE_BYTES, SpoolFullError, of_this_process
from cdb.worker.substitutes import NO_SPACE, OVERLOADED, Substitute
from cdb.worker.waits import Waits

logger = logging.getLogger(__name__)

# How long, and how much, a client may go on sending a body that was refused by its head.
DISCARD_SECONDS, DISCARD_BYTES = 20, 256 * 1024 * 1024
# How often the deadlines of waiting connections are looked at.
LOOK_SECONDS = 0.5


class BufferingWorker(RespondingWorker):
    """A worker whose threads get only complete requests, and do not wait for a client to receive a response.

    The main loop reads requests until they are complete, sends what clients did not take at once, and goes on reading
    where a request was refused by its head, because a client that still sends might not see the response otherwise.

    A request that has waited `CDB_QUEUE_TIMEOUT_SECONDS` for a thread is answered with 504, by a thread of a pool of
    its own where all others are busy. The time counts from when the request was complete.
    """

    def run(self) -> None:
        """Run the main loop until the worker is told to stop."""
        self._refusing = ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="refusing")
        self._spool = of_this_process()
        self._waits = Waits(self.poller)
        self._looked = 0.0
        self._queued: deque[tuple[Connection, Future[bool]]] = deque()
        # After max_requests, gunicorn would stop accepting connections while clients still receive responses.
        self._most_requests, self.max_requests = self.max_requests, sys.maxsize
        super().run()

    def accept(self, listener: socket) -> None:
        """Accept a connection, and read what it says already."""
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        client = ClientSocket(accepted, self._spool)
        reader = RequestReader(client, self._spool, MOST_BYTES)
        self.enqueue_req(Connection(self.cfg, client, address, listener.getsockname(), reader))

    # `accept` makes no other connections, which gunicorn's types can't say.
    def enqueue_req(self, conn: Connection) -> None:  # type: ignore[override]
        """Read the next request of a connection, and give it to a thread when it is complete."""
        conn.init()
        self._read(conn)

    def finish_request(self, conn: Connection, future: Future[bool]) -> None:  # type: ignore[override]  # as above
        """Let a connection go on after a thread has answered a request."""
        for admitted in self._limits.release(conn):
            self._queue(admitted)
        self._finish(conn, future=future)

    def murder_pending(self) -> None:
        """Look after connections that wait; called between all events, and every second."""
        super().murder_pending()
        self._refuse_overdue()
        now = monotonic()
        if now < self._looked + LOOK_SECONDS:
            return
        self._looked = now
        self._waits.expire(now)
        for conn in [*too_slow(self._waits, now), *self._limits.overdue()]:
            self._refuse(conn, OVERLOADED)
        # From then on gunicorn accepts no connection, gives those that are left 30 s, and starts another worker after that. A
        # client that receives slowly may need an hour.
        if self.nr >= self._most_requests and not self._has_large_responses():
            self.alive = False

    def _has_large_responses(self) -> bool:
        return self._limits.has_long_read or any(conn.sock.unsent for conn in self._waits)

    def _read(self, conn: Connection, _socket: Any = None) -> None:
        try:
            is_complete = conn.reader.receive()
        except SpoolFullError as error:
            logger.warning("a request of %s bytes was refused: %s", conn.reader.length, error)
            self._refuse(conn, NO_SPACE)
            return
        except OSError:
            self._drop(conn)
            return
        if is_complete and conn.reader.is_empty:
            self._drop(conn)
        elif is_complete:
            self._submit(conn)
        else:
            self._waits.add(conn, selectors.EVENT_READ, self._read, conn.read_deadline(), self._read_no_more)

    def _read_no_more(self, conn: Connection) -> None:
        if conn.reader.has_begun:
            conn.reader.give_up()
            self._submit(conn)
        else:
            # Without a request there is no response.
            self._drop(conn)

    def _submit(self, conn: Connection) -> None:
        """Queue a complete request for a thread, let it wait for a limit, or refuse it."""
        self._waits.remove(conn)
        conn.waits_since = monotonic()
        if conn.reader.is_cut:
            # The client gets an error, so the request takes no place in the queue.
            self._start(self._refusing, conn)
        elif not self._limits.may_queue(conn):
            self._refuse(conn, OVERLOADED)
        elif self._limits.admit(conn):
            self._queue(conn)

    def _queue(self, conn: Connection) -> None:
        self._queued.append((conn, self._start(self.tpool, conn)))
        while self._queued and not _still_waits(self._queued[0][1]):
            self._queued.popleft()

    def _refuse_overdue(self) -> None:
        while self._queued:
            conn, future = self._queued[0]
            if _still_waits(future) and not _is_overdue(conn):
                return
            self._queued.popleft()
            if future.cancel():
                self._start(self._refusing, conn)

    def _refuse(self, conn: Connection, refusal: Substitute) -> None:
        """Send a refusal, without reading the rest of the request."""
        self._waits.remove(conn)
        conn.refusal = refusal
        if not conn.reader.is_complete:
            conn.reader.leave_body()
        self._start(self._refusing, conn)

    def _start(self, pool: ThreadPoolExecutor, conn: Connection) -> Future[bool]:
        future = pool.submit(self.handle, conn)
        future.add_done_callback(partial(self._hand_back, conn))
        return future

    def _hand_back(self, conn: Connection, future: Future[bool]) -> None:
        if not future.cancelled():
            self.method_queue.defer(self.finish_request, conn, future)

    def _finish(self, conn: Connection, _socket: Any = None, *, future: Future[bool]) -> None:
        """Send the rest of the response, then keep the connection or close it."""
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if conn.sock.unsent:
            # Called because the client has taken something.
            expires = monotonic() + TAKING_SECONDS
            self._waits.add(conn, selectors.EVENT_WRITE, partial(self._finish, future=future), expires, self._cut)
            return
        self._waits.remove(conn)
        if future.exception() or not future.result():
            self._close(conn)
        elif conn.reader.has_begun:
            self.enqueue_req(conn)
        else:
            super().finish_request(conn, future)

    def _cut(self, conn: Connection) -> None:
        logger.info("a client took nothing for %s s; %s bytes were not sent", TAKING_SECONDS, conn.sock.unsent)
        self._drop(conn)

    def _close(self, conn: Connection) -> None:
        """Close a connection, after its client has had time to send what was not read of its request."""
        if not conn.reader.is_unread and not conn.sock.has_unread:
            self._drop(conn)
            return
        try:
            conn.sock.shutdown(SHUT_WR)
        except OSError:
            self._drop(conn)
            return
        conn.discarded = 0
        self._waits.add(conn, selectors.EVENT_READ, self._discard, monotonic() + DISCARD_SECONDS, self._drop)

    def _discard(self, conn: Connection, _socket: Any = None) -> None:
        try:
            count = len(conn.sock.recv(PIECE_BYTES, MSG_DONTWAIT))
        except BlockingIOError:
            return
        except OSError:
            count = 0
        conn.discarded += count
        if not count or conn.discarded > DISCARD_BYTES:
            self._drop(conn)

    def _drop(self, conn: Connection) -> None:
        self._waits.remove(conn)
        self.nr_conns -= 1
        conn.close()


def _still_waits(future: Future[bool]) -> bool:
    return not (future.running() or future.done())


def _is_overdue(conn: Connection) -> bool:
    return monotonic() - conn.waits_since > QUEUE_SECONDS
