"""gunicorn's threaded worker with buffered requests and responses, and a time limit for waiting requests."""

import ctypes
import gc
import logging
import selectors
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial
from select import POLLIN, poll
from socket import MSG_DONTWAIT, SHUT_WR, socket
from time import monotonic
from typing import Any, NamedTuple

from gunicorn.http import wsgi
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request
from gunicorn.workers.gthread import ThreadWorker

from cdb.worker.client_socket import TAKING_SECONDS, ClientSocket
from cdb.worker.connection import Connection
from cdb.worker.limits import LARGE_BYTES, MOST_BYTES, QUEUE_SECONDS, Limits
from cdb.worker.request_reader import RequestReader
from cdb.worker.spool import PIECE_BYTES, SpoolFullError, of_this_process
from cdb.worker.substitutes import INCOMPLETE, NO_SPACE, OVERLOADED, Substitute
from cdb_rest.metrics import counts
from cdb_rest.metrics.place import here
from cdb_rest.metrics.values import Buckets, add
from cdb_rest.observe.exchange import Exchange, current
from cdb_rest.observe.observed import INSTEAD

logger = logging.getLogger(__name__)

# How long a thread waits for the next request of a connection before it gives the connection back.
LINGER_MILLISECONDS = 5
# How long, and how much, a client may go on sending a body that was refused by its head.
DISCARD_SECONDS, DISCARD_BYTES = 20, 256 * 1024 * 1024
# How long a thread waits for the client of one response, where there are threads for all connections.
PATIENCE_SECONDS = 1.0
# How often the deadlines of waiting connections are looked at.
LOOK_SECONDS = 0.5
# Of one address: requests on their way into a process for longer than this. Beyond, the oldest is refused.
SLOW_SECONDS, SLOW_OF_AN_ADDRESS = 2, 64


class Wait(NamedTuple):
    """Until when the main loop waits on behalf of a connection, on the monotonic clock, and what it does then."""

    expires: float
    expired: Callable[[], None]


class BufferingWorker(ThreadWorker):
    """A worker whose threads get only complete requests, and do not wait for a client to receive a response.

    The main loop reads requests until they are complete, sends what clients did not take at once, and goes on reading
    where a request was refused by its head, because a client that still sends might not see the response otherwise.

    A request that has waited `CDB_QUEUE_TIMEOUT_SECONDS` for a thread is answered with 504, by a thread of a pool of
    its own where all others are busy. The time counts from when the request was complete.

    A thread stays with a connection while its client sends request after request and there are threads for all
    connections. gunicorn's own worker gives the connection back to the main loop after each response, which can cost
    as much as the Python code of a lookup.
    """

    def init_process(self) -> None:
        """Run, as the worker's process, until it is told to stop."""
        self._refusing = ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="refusing")
        self._spool = of_this_process()
        self._waits: dict[Connection, Wait] = {}
        self._looked = 0.0
        self._queued: deque[tuple[Connection, Future]] = deque()
        self._limits = Limits(self.cfg.threads)
        self._waited = Buckets(counts.QUEUE.labels(here.pool))
        self._refused = counts.REFUSALS.labels(here.pool)
        # gunicorn would retire the worker after so many requests at once, whoever still takes a response.
        self._most_requests, self.max_requests = self.max_requests, sys.maxsize
        super().init_process()

    # The main loop.

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

    def enqueue_req(self, conn: Connection) -> None:
        """Read the next request of a connection, and give it to a thread when it is complete."""
        conn.init()
        self._read(conn)

    def finish_request(self, conn: Connection, future: Future) -> None:
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
        for wait in list(self._waits.values()):
            if now > wait.expires:
                wait.expired()
        self._limit_slow(now)
        for conn in self._limits.overdue():
            self._refuse(conn, OVERLOADED)
        # A worker that retires gets its successor when its last connection has ended, and a client that takes a response slowly
        # may need an hour.
        if self.nr >= self._most_requests and not any(conn.sock.unsent for conn in self._waits):
            self.alive = False

    def _limit_slow(self, now: float) -> None:
        slow = defaultdict(list)
        for conn in self._waits:
            if not conn.reader.is_complete and conn.reader.has_begun and now > conn.reader.begun + SLOW_SECONDS:
                slow[conn.address].append(conn)
        for conns in slow.values():
            conns.sort(key=lambda conn: conn.reader.begun)
            for conn in conns[:-SLOW_OF_AN_ADDRESS]:
                self._refuse(conn, OVERLOADED)

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
            self._wait(conn, selectors.EVENT_READ, self._read, conn.read_deadline(), self._read_no_more)

    def _read_no_more(self, conn: Connection) -> None:
        if conn.reader.has_begun:
            conn.reader.give_up()
            self._submit(conn)
        else:
            # Nothing was asked, so nothing is answered.
            self._drop(conn)

    def _submit(self, conn: Connection) -> None:
        """Let a complete request wait for a thread, for other large ones to end, or refuse it."""
        self._stop_waiting(conn)
        conn.waits_since = monotonic()
        if conn.reader.is_cut:
            # There is nothing to do but to say so.
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
        """Answer that there is no room, without reading the rest of the request."""
        self._stop_waiting(conn)
        conn.refusal = refusal
        if not conn.reader.is_complete:
            conn.reader.leave_body()
        self._start(self._refusing, conn)

    def _start(self, pool: ThreadPoolExecutor, conn: Connection) -> Future:
        future = pool.submit(self.handle, conn)
        future.add_done_callback(partial(self._hand_back, conn))
        return future

    def _hand_back(self, conn: Connection, future: Future) -> None:
        if not future.cancelled():
            self.method_queue.defer(self.finish_request, conn, future)

    def _finish(self, conn: Connection, _socket: Any = None, *, future: Future) -> None:
        """Send the rest of the response, then keep the connection or close it."""
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if conn.sock.unsent:
            # Called because the client has taken something.
            expires = monotonic() + TAKING_SECONDS
            self._wait(conn, selectors.EVENT_WRITE, partial(self._finish, future=future), expires, self._cut)
            return
        self._stop_waiting(conn)
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
        self._wait(conn, selectors.EVENT_READ, self._discard, monotonic() + DISCARD_SECONDS, self._drop)

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
        self._stop_waiting(conn)
        self.nr_conns -= 1
        conn.close()

    def _wait(
        self,
        conn: Connection,
        event: int,
        ready: Callable[..., None],
        expires: float,
        expired: Callable[[Connection], None],
    ) -> None:
        """Call `ready` whenever the connection can be read from or written to, and `expired` at that time.

        Called again for a connection that waits already, it changes the time.
        """
        is_new = conn not in self._waits
        self._waits[conn] = Wait(expires, partial(expired, conn))
        if is_new:
            self.poller.register(conn.sock, event, partial(ready, conn))

    def _stop_waiting(self, conn: Connection) -> None:
        if self._waits.pop(conn, None):
            self.poller.unregister(conn.sock)

    # The threads.

    @property
    def _is_crowded(self) -> bool:
        """Whether there are more connections than threads."""
        return self.nr_conns > self.cfg.threads

    def handle(self, conn: Connection) -> Any:
        """Answer the connection's requests, in a thread, as long as it may stay there."""
        while True:
            # Whatever this thread did before is over.
            current.set(None)
            size = conn.reader.size
            keeps = super().handle(conn)
            if size >= LARGE_BYTES:
                _give_memory_back()
            if keeps is not True:
                return keeps
            conn.reader.next_request()
            # The main loop counts a limited request until it has the connection back.
            must_leave = not self.alive or self._is_crowded or self._limits.is_counted(conn) or conn.sock.unsent
            if must_leave or not _asks_again(conn):
                return keeps
            conn.waits_since = monotonic()

    def handle_request(self, req: Request, conn: Connection) -> bool:
        """Answer a request; returns whether the connection may be kept."""
        conn.sock.begin_response(0 if self._is_crowded else PATIENCE_SECONDS)
        if conn.reader.is_unread or conn.reader.is_cut:
            req.force_close()
        waited = monotonic() - conn.waits_since
        add(((self._waited.sum, waited), (self._waited.count_of(waited), 1)))
        if conn.reader.is_cut:
            keeps = self._answer_instead(INCOMPLETE, req, conn)
        elif conn.refusal or waited > QUEUE_SECONDS:
            self._refused.inc()
            keeps = self._answer_instead(conn.refusal or OVERLOADED, req, conn)
        else:
            keeps = super().handle_request(req, conn)
        conn.refusal = None
        while keeps and conn.reader.length and req.body.read(PIECE_BYTES):
            # The next request is behind the body, which nobody may have read.
            pass
        return keeps

    def _answer_instead(self, substitute: Substitute, req: Request, conn: Connection) -> bool:
        begin = datetime.now()
        counts.ERRORS.labels(substitute.code).inc()
        response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg)
        if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        body = self.wsgi(environ | {INSTEAD: substitute}, response.start_response)
        try:
            for piece in body:
                response.write(piece)
            response.close()
        finally:
            body.close()
        self.log.access(response, req, environ, datetime.now() - begin)
        return not response.should_close()

    def handle_error(self, req: Request | None, client: socket, addr: Any, exc: BaseException) -> None:
        """Answer a request that can't be read, or whose answer failed."""
        exchange = current.get()
        if exchange is None:
            exchange = Exchange({})
            current.set(exchange)
        if not exchange.status:
            exchange.status = 400 if isinstance(exc, ParseException) else 500
            self.wsgi.refuse(exchange)
        super().handle_error(req, client, addr, exc)


def _still_waits(future: Future) -> bool:
    return not (future.running() or future.done())


def _is_overdue(conn: Connection) -> bool:
    return monotonic() - conn.waits_since > QUEUE_SECONDS


def _asks_again(conn: Connection) -> bool:
    """Whether another small request is complete, or comes within a moment."""
    if not conn.reader.has_begun:
        poller = poll()
        poller.register(conn.sock, POLLIN)
        if not poller.poll(LINGER_MILLISECONDS):
            return False
    try:
        return conn.reader.receive() and conn.reader.size < LARGE_BYTES and not conn.reader.is_long_read
    except SpoolFullError:
        conn.refusal = NO_SPACE
        conn.reader.leave_body()
        return True


def _give_memory_back() -> None:
    """Return memory that a large request took to the system, which Python and the C library would keep."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
