"""The threads of the gunicorn worker, which respond to complete requests."""

import ctypes
import gc
import threading
from datetime import datetime, timedelta
from select import POLLIN, poll
from socket import socket
from time import monotonic
from typing import Any

from gunicorn.http import wsgi
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request
from gunicorn.workers.gthread import ThreadWorker

from cdb.worker.connection import Connection
from cdb.worker.error_responses import (
    INCOMPLETE,
    INTERNAL_ERROR,
    NO_SPACE,
    OVERLOADED,
    ErrorResponse,
    malformed_request,
)
from cdb.worker.limits import LARGE_BYTES, QUEUE_SECONDS, Limits
from cdb.worker.spool import PIECE_BYTES, SpoolFullError
from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here
from cdb_rest.metrics.values import Buckets, add
from cdb_rest.observe.request_context import RequestContext, arrived, current_context
from cdb_rest.wsgi.instrumentation import REPLACEMENT, Instrumented

# A thread waits this long for the next request of a connection before it returns the connection to the main loop.
LINGER_MILLISECONDS = 5
# While the number of connections is limited because of an overload, one is closed after so many responses. Otherwise those in
# the queue of the kernel would not be accepted as long as a proxy uses the ones that it has.
RESPONSES_UNTIL_CLOSE = 8
# A thread waits this long, in total, for the client to receive one response, if there are threads for all connections.
SEND_WAIT_SECONDS = 1.0


class RespondingWorker(ThreadWorker):
    """A worker whose threads respond to complete requests, or refuse them.

    A thread keeps a connection while its client sends one request after the other and there are threads for all
    connections. gunicorn's own worker returns the connection to the main loop after each response, which can take
    as long as the Python code of a lookup.

    `handle`, `handle_request` and `handle_error` run in threads, `run` in the main loop.
    """

    wsgi: Instrumented  # type: ignore[assignment]  # gunicorn's types say MutableMapping where WSGI says dict

    def run(self) -> None:
        """Run the main loop until the worker is stopped."""
        self._limits = Limits(self.cfg.threads)
        self._waited = Buckets(counts.QUEUE.labels(here.pool))
        self._refused = counts.QUEUE_TIMEOUTS.labels(here.pool)
        # Stores the connection that a thread handles, because gunicorn passes only the socket to `handle_error`.
        self._thread = threading.local()
        super().run()

    def handle(self, conn: Connection) -> bool:  # type: ignore[override]  # `accept` creates no other connections
        """Respond to a request of the connection, and to its next ones as long as the thread may keep the connection.

        Returns whether the connection may be kept open.
        """
        self._thread.conn = conn
        while True:
            # Removes the context of the thread's previous request.
            current_context.set(None)
            size = conn.reader.size
            keep_alive = super().handle(conn)
            if size >= LARGE_BYTES:
                _release_memory()
            if keep_alive is not True:
                return keep_alive
            conn.reader.next_request()
            # The main loop counts a limited request until the connection is returned to it.
            must_return = not self.alive or self._is_crowded or self._limits.is_counted(conn) or conn.sock.unsent
            if must_return or not self._has_next_request(conn):
                return keep_alive
            conn.waits_since = monotonic()

    def handle_request(self, req: Request, conn: Connection) -> bool:  # type: ignore[override]  # as above
        """Respond to a request. Returns whether the connection may be kept open.

        The response is an `ErrorResponse` if the worker has refused the request, if its body is truncated, or if it has
        waited for a thread for more than `QUEUE_SECONDS`.
        """
        conn.sock.begin_response(0 if self._is_crowded else SEND_WAIT_SECONDS)
        must_give_way = self._has_few_connections and self.nr % RESPONSES_UNTIL_CLOSE == 0
        if conn.reader.is_unread or conn.reader.is_truncated or must_give_way:
            req.force_close()
        arrived.set(conn.waits_since)
        waited = monotonic() - conn.waits_since
        add(((self._waited.sum, waited), (self._waited.count_of(waited), 1)))
        if conn.reader.is_truncated:
            keep_alive = self._respond_with_error(INCOMPLETE, req, conn)
        elif conn.refusal or waited > QUEUE_SECONDS:
            self._refused.inc()
            keep_alive = self._respond_with_error(conn.refusal or OVERLOADED, req, conn)
        else:
            keep_alive = super().handle_request(req, conn)
        conn.sock.end_response()
        conn.refusal = None
        while keep_alive and conn.reader.length and req.body is not None and req.body.read(PIECE_BYTES):
            # The next request follows the body, of which the application may have left a part unread.
            pass
        return keep_alive

    @property
    def _is_crowded(self) -> bool:
        """Whether there are more connections than threads."""
        is_crowded: bool = self.nr_conns > self.cfg.threads
        return is_crowded

    @property
    def _has_few_connections(self) -> bool:
        """Whether the number of connections is limited because of an overload."""
        has_few: bool = self.worker_connections < self.cfg.worker_connections
        return has_few

    def _has_next_request(self, conn: Connection) -> bool:
        """Whether another request, to which no limit applies, is complete or arrives within `LINGER_MILLISECONDS`.

        Also True if the spool has no space for the request. It is then refused.
        """
        if not conn.reader.has_begun:
            poller = poll()
            poller.register(conn.sock, POLLIN)
            if not poller.poll(LINGER_MILLISECONDS):
                return False
        try:
            return conn.reader.receive() and not self._limits.apply_to(conn)
        except SpoolFullError:
            conn.refusal = NO_SPACE
            conn.reader.skip_body()
            return True

    def _respond_with_error(self, error_response: ErrorResponse, req: Request, conn: Connection) -> bool:
        begin = datetime.now()
        counts.ERRORS.labels(error_response.code).inc()
        response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg)
        if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        # gunicorn's types do not allow a tuple of three None, as WSGI does, for the third argument of start_response.
        body = self.wsgi({**environ, REPLACEMENT: error_response}, response.start_response)  # type: ignore[arg-type]
        try:
            for piece in body:
                response.write(piece)
            response.close()
        finally:
            body.close()
        self.log.access(response, req, environ, datetime.now() - begin)
        return not response.should_close()

    def handle_error(self, req: Request | None, client: socket, addr: Any, exc: BaseException) -> None:
        """Send an `ErrorResponse` to a request that can't be parsed, or whose response failed before it began.

        gunicorn's own error responses are HTML.
        """
        conn: Connection = self._thread.conn
        context = current_context.get()
        if context is None:
            context = RequestContext(conn.reader.head.identity)
            current_context.set(context)
        error_response = malformed_request(exc) if req is None and isinstance(exc, ParseException) else INTERNAL_ERROR
        if not context.status:
            context.status = int(error_response.status[:3])
            self.wsgi.refuse(context)
        if error_response is INTERNAL_ERROR:
            self.log.exception("Error handling request %s %s", context.method, context.path)
        else:
            self.log.warning("Invalid request from ip=%s: %s", addr[0] if addr else "", exc)
        counts.ERRORS.labels(error_response.code).inc()
        if req is not None:
            # The access log needs a response object.
            response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg)
            response.start_response(error_response.status, [])
            self.log.access(response, req, environ, timedelta(seconds=context.seconds()))
        try:
            conn.sock.abandon_response()
            conn.sock.sendall(error_response.to_bytes(context.request_id))
        except OSError as error:
            self.log.debug("An error response could not be sent: %s", error)


def _release_memory() -> None:
    """Return the memory of a large request to the operating system. Python and the C library would keep it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
