"""gunicorn's threaded worker, with less handing over between its threads, and a queue that nobody stays in for long."""

import json
import select
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial
from socket import socket
from time import monotonic
from typing import Any

from gunicorn.http import wsgi
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request
from gunicorn.workers.gthread import _DEFER, TConn, ThreadWorker

from cdb import env
from cdb_rest.api import security
from cdb_rest.metrics import counts
from cdb_rest.metrics.place import here
from cdb_rest.metrics.values import Buckets, add
from cdb_rest.observe.exchange import Exchange, current
from cdb_rest.observe.observed import INSTEAD

# How long a thread waits for the next request of a connection before it gives the connection back.
LINGER_MILLISECONDS = 5

# How much of a refused request's body is taken, and for how long.
BODY_BYTES, BODY_SECONDS = 256 * 1024 * 1024, 5

QUEUE_SECONDS = env.read()["CDB_QUEUE_TIMEOUT_SECONDS"]
OVERLOADED = json.dumps(
    {"detail": "The service has more requests than it can answer; try again later.", "code": "overloaded"}
).encode()
OVERLOADED_HEADERS = [
    ("Content-Type", "application/json"),
    ("Content-Length", str(len(OVERLOADED))),
    ("Cache-Control", "no-store"),
    ("Retry-After", "5"),
    *security.HEADERS.items(),
]


class LingeringWorker(ThreadWorker):
    """A worker whose threads stay with a connection while its client asks again at once, as a proxy does, or a busy job.

    gunicorn's own worker gives each connection back to its main thread after every answer, and gets it again with the
    next request: some ten system calls and two switches of threads, which can cost as much as the lookup's Python.
    A thread stays only while there are threads for all connections, so that nobody waits for its turn meanwhile.

    A request that has waited `CDB_QUEUE_TIMEOUT_SECONDS` for a thread is answered with 504, by a thread of a pool of its own
    where all others are busy. The time counts from when the connection was accepted, or had something to read again.
    """

    def init_process(self) -> None:
        """Run, as the worker's process, until it is told to stop."""
        self._refusing = ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="refusing")
        self._waiting: deque[tuple[TConn, Future]] = deque()
        self._waited = Buckets(counts.QUEUE.labels(here.pool))
        self._refused = counts.REFUSALS.labels(here.pool)
        super().init_process()

    def enqueue_req(self, conn: TConn) -> None:
        """Let the connection wait for a thread."""
        conn.waits_since = monotonic()
        self._waiting.append((conn, self._submit(self.tpool, conn)))
        while self._waiting and not _still_waits(self._waiting[0][1]):
            self._waiting.popleft()

    def murder_pending(self) -> None:
        """Look after connections that wait; called between all events, and every second."""
        super().murder_pending()
        while self._waiting:
            conn, future = self._waiting[0]
            if _still_waits(future) and not _is_overdue(conn):
                return
            self._waiting.popleft()
            if future.cancel():
                self._submit(self._refusing, conn)

    def handle(self, conn: TConn) -> Any:
        """Answer the connection's requests, in a thread, as long as it may stay there."""
        # Nobody has asked anything yet, so there is nothing to refuse.
        if _is_overdue(conn) and not conn.initialized and not conn.wait_for_data(0):
            return _DEFER
        while True:
            # Whatever this thread did before is over.
            current.set(None)
            keeps = super().handle(conn)
            if keeps is not True or not self.alive or self.nr_conns > self.cfg.threads or not _asks_again(conn):
                return keeps
            conn.waits_since = monotonic()

    def handle_request(self, req: Request, conn: TConn) -> bool:
        """Answer a request; returns whether the connection may be kept."""
        waited = monotonic() - conn.waits_since
        add(((self._waited.sum, waited), (self._waited.count_of(waited), 1)))
        if waited <= QUEUE_SECONDS:
            return super().handle_request(req, conn)
        begin = datetime.now()
        self._refused.inc()
        counts.ERRORS.labels("overloaded").inc()
        response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg)
        # The body is taken first, because who still sends may not see the answer.
        taken = conn.parser.finish_body(monotonic() + BODY_SECONDS, BODY_BYTES)
        if not taken or not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        body = self.wsgi(environ | {INSTEAD: _overloaded}, response.start_response)
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

    def _submit(self, pool: ThreadPoolExecutor, conn: TConn) -> Future:
        future = pool.submit(self.handle, conn)
        future.add_done_callback(partial(self._hand_back, conn))
        return future

    def _hand_back(self, conn: TConn, future: Future) -> None:
        if not future.cancelled():
            self.method_queue.defer(self.finish_request, conn, future)


def _overloaded(environ: dict[str, Any], start_response: Callable) -> list[bytes]:
    start_response("504 Gateway Timeout", OVERLOADED_HEADERS)
    return [OVERLOADED] if environ["REQUEST_METHOD"] != "HEAD" else []


def _still_waits(future: Future) -> bool:
    return not (future.running() or future.done())


def _is_overdue(conn: TConn) -> bool:
    return monotonic() - conn.waits_since > QUEUE_SECONDS


def _asks_again(conn: TConn) -> bool:
    """Whether another request is there, or comes within a moment."""
    if conn.parser.unreader.buf.getvalue():
        return True
    poller = select.poll()
    poller.register(conn.sock, select.POLLIN)
    return bool(poller.poll(LINGER_MILLISECONDS))
