"""The main loop of the gunicorn worker: it reads requests, queues them for threads, and sends buffered responses."""

import logging
import selectors
import signal
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from socket import MSG_DONTWAIT, SHUT_WR, socket
from time import monotonic
from typing import Any

from cdb.worker.client_socket import STALL_TIMEOUT_SECONDS, ClientSocket
from cdb.worker.connection import Connection
from cdb.worker.error_responses import NO_SPACE, OVERLOADED, ErrorResponse
from cdb.worker.limits import MOST_BYTES, too_slow
from cdb.worker.listeners import Listeners
from cdb.worker.request_queue import RequestQueue
from cdb.worker.request_reader import RequestReader
from cdb.worker.responding import RespondingWorker
from cdb.worker.spool import PIECE_BYTES, SpoolFullError, process_spool
from cdb.worker.wait_limit import WaitLimit
from cdb.worker.waiting import WaitingConnections
from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here
from cdb_rest.observe.request_context import RequestContext

logger = logging.getLogger(__name__)

# The time and the number of bytes for which the rest of a refused request is read and discarded.
DISCARD_SECONDS, DISCARD_BYTES = 20, 256 * 1024 * 1024
# The interval at which the deadlines of waiting connections are checked.
CHECK_INTERVAL_SECONDS = 0.5


class BufferingWorker(RespondingWorker):
    """A worker whose threads get only complete requests, and do not wait long while a client receives a response.

    The main loop reads requests until they are complete, and sends the buffered rest of responses to slow clients. If a
    request is refused before its body has arrived, the main loop reads and discards the rest of the body for a limited
    time, because a client that still sends may otherwise not receive the response.

    A request that has waited for a thread for `CDB_QUEUE_TIMEOUT_SECONDS` since it was complete gets a 504 response.
    Before that, a request with a large body may wait three times as long for a limit. A separate thread pool sends the
    response if all other threads are busy. In the pool `lookups`, `WaitLimit` refuses requests as soon as they arrive.
    """

    # Set by `post_fork` in deploy/gunicorn.conf.py.
    early_signals: SimpleQueue[int] | None = None

    def init_signals(self) -> None:
        """Install the handlers of signals, and handle the signals to end that arrived since the fork.

        Until then, the handler that was inherited from the master only queues a signal, and gunicorn would lose it: the
        master would wait for this worker until its graceful timeout.
        """
        super().init_signals()
        while self.early_signals and not self.early_signals.empty():
            number = self.early_signals.get()
            if number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
                signal.raise_signal(number)

    def run(self) -> None:
        """Run the main loop until the worker is stopped."""
        self._refusal_pool = ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="refusing")
        self._spool = process_spool()
        self._waiting = WaitingConnections(self.poller)
        self._checked = 0.0
        self._queued = RequestQueue()
        self._wait_limit = WaitLimit() if here.pool == "lookups" else None
        self._listeners = Listeners(self.sockets, self.cfg.backlog)
        self._check_wait_limit()
        # `murder_pending` implements max_requests: gunicorn would stop accepting connections although clients
        # still receive responses.
        self._most_requests, self.max_requests = self.max_requests, sys.maxsize
        super().run()

    def accept(self, listener: socket) -> bool:  # type: ignore[override]  # gunicorn ignores what is returned
        """Accept a connection, and read the data that have already arrived. Returns False if there was no connection."""
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return False
        self.nr_conns += 1
        client = ClientSocket(accepted, self._spool)
        reader = RequestReader(client, self._spool, MOST_BYTES)
        self.enqueue_req(Connection(self.cfg, client, address, listener.getsockname(), reader))
        return True

    # `accept` creates only connections of this class, which gunicorn's types can't express.
    def enqueue_req(self, conn: Connection) -> None:  # type: ignore[override]
        """Read the next request of a connection, and queue it for a thread when it is complete."""
        conn.init()
        self._read(conn)

    def finish_request(self, conn: Connection, future: Future[bool]) -> None:  # type: ignore[override]  # as above
        """Continue with a connection after a thread has handled its request."""
        if self._wait_limit and conn.was_queued:
            self._wait_limit.count_finished()
        for admitted in self._limits.release(conn):
            self._queue(admitted)
        self._finish(conn, future=future)

    def murder_pending(self) -> None:
        """Check the deadlines of connections, and end the worker after its maximum number of requests.

        gunicorn calls this after each batch of events, at least every second.
        """
        super().murder_pending()
        for overdue in self._queued.cancel_overdue():
            self._start(self._refusal_pool, overdue)
        self._check_wait_limit()
        now = monotonic()
        if now < self._checked + CHECK_INTERVAL_SECONDS:
            return
        self._checked = now
        self._waiting.expire(now)
        for conn in [*too_slow(self._waiting, now), *self._limits.overdue()]:
            self._refuse(conn, OVERLOADED)
        # After `alive` is False, gunicorn accepts no more connections and gives existing ones its graceful timeout
        # (30 s; an hour with `make serve`). It starts another worker only then. A slow client may need an hour for a
        # response.
        if self.nr >= self._most_requests and not self._has_large_responses():
            self.alive = False

    def _has_large_responses(self) -> bool:
        return self._limits.has_long_read or any(conn.sock.unsent for conn in self._waiting)

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
            self._waiting.add(conn, selectors.EVENT_READ, self._read, conn.read_deadline(), self._on_read_timeout)

    def _on_read_timeout(self, conn: Connection) -> None:
        if conn.reader.has_begun:
            conn.reader.give_up()
            self._submit(conn)
        else:
            # No request has begun, so there is nothing to respond to.
            self._drop(conn)

    def _submit(self, conn: Connection) -> None:
        """Queue a complete request for a thread, let it wait for a limit, or refuse it."""
        self._waiting.remove(conn)
        conn.waits_since = monotonic()
        if conn.reader.is_truncated:
            # The client gets an error response, so the request must not occupy a place in the queue.
            self._start(self._refusal_pool, conn)
        elif self._wait_limit and self._wait_limit.is_exceeded and not conn.reader.head.is_monitoring:
            self._refuse_now(conn)
        elif not self._limits.may_queue(conn):
            self._refuse(conn, OVERLOADED)
        elif self._limits.admit(conn):
            self._queue(conn)

    def _queue(self, conn: Connection) -> None:
        self._queued.append(conn, self._start(self.tpool, conn))
        self._check_wait_limit()

    def _check_wait_limit(self) -> None:
        """Limit the queue and the number of connections so that no request waits too long, or end these limits."""
        limit = self._wait_limit
        if not limit:
            return
        limit.update(len(self._queued))
        if not self._listeners.can_refuse:
            return
        # gunicorn accepts connections while there are fewer than this. Each has one request at a time, so that the queue is
        # as long as it may be, and no request has to be refused here.
        self.worker_connections = min(self.cfg.worker_connections, limit.full_length + self.cfg.threads)
        if limit.is_nearly_full and not self._listeners.is_short:
            self._listeners.set_short(True)
            # The kernel's queues may be longer than they are allowed to be now. Requests in them would wait too long, where no
            # process sees them.
            for listener in self.sockets:
                while self.accept(listener):
                    pass
        elif limit.is_over:
            self._listeners.set_short(False)

    def _refuse(self, conn: Connection, refusal: ErrorResponse) -> None:
        """Let a thread of the refusal pool send an error response, without reading the rest of the request."""
        self._waiting.remove(conn)
        conn.refusal = refusal
        if not conn.reader.is_complete:
            conn.reader.skip_body()
        self._start(self._refusal_pool, conn)

    def _refuse_now(self, conn: Connection) -> None:
        """Send an error response without a thread, which costs a fraction of a lookup, and close the connection."""
        context = RequestContext(conn.reader.head.identity)
        context.status = int(OVERLOADED.status[:3])
        self.wsgi.refuse(context)
        self._refused.inc()
        counts.ERRORS.labels(OVERLOADED.code).inc()
        try:
            conn.sock.send(OVERLOADED.to_bytes(context.request_id, context.method), MSG_DONTWAIT)
        except OSError as error:
            logger.debug("An error response could not be sent: %s", error)
        self._close(conn)

    def _start(self, pool: ThreadPoolExecutor, conn: Connection) -> Future[bool]:
        conn.was_queued = pool is self.tpool
        future = pool.submit(self.handle, conn)
        future.add_done_callback(partial(self._schedule_finish, conn))
        return future

    def _schedule_finish(self, conn: Connection, future: Future[bool]) -> None:
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
            # The deadline is renewed whenever the client has received something.
            expires = monotonic() + STALL_TIMEOUT_SECONDS
            self._waiting.add(
                conn, selectors.EVENT_WRITE, partial(self._finish, future=future), expires, self._on_send_timeout
            )
            return
        self._waiting.remove(conn)
        if future.exception() or not future.result():
            self._close(conn)
        elif conn.reader.has_begun:
            self.enqueue_req(conn)
        else:
            super().finish_request(conn, future)

    def _on_send_timeout(self, conn: Connection) -> None:
        logger.info(
            "a client received nothing for %s s; %s bytes were not sent", STALL_TIMEOUT_SECONDS, conn.sock.unsent
        )
        self._drop(conn)

    def _close(self, conn: Connection) -> None:
        """Close a connection. If a part of the request is unread, first read and discard it for a limited time."""
        if not conn.reader.is_unread and not conn.sock.has_unread:
            self._drop(conn)
            return
        try:
            conn.sock.shutdown(SHUT_WR)
        except OSError:
            self._drop(conn)
            return
        conn.discarded = 0
        self._waiting.add(conn, selectors.EVENT_READ, self._discard, monotonic() + DISCARD_SECONDS, self._drop)

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
        self._waiting.remove(conn)
        self.nr_conns -= 1
        conn.close()
