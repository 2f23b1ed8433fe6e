"""The threads of the gunicorn worker: they respond to complete requests."""

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
from cdb.worker.limits import LARGE_BYTES, QUEUE_SECONDS, Limits
from cdb.worker.spool import PIECE_BYTES, SpoolFullError
from cdb.worker.substitutes import INCOMPLETE, INTERNAL_ERROR, NO_SPACE, OVERLOADED, Substitute, malformed
from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here
from cdb_rest.metrics.values import Buckets, add
from cdb_rest.observe.exchange import Exchange, current
from cdb_rest.wsgi.observed import INSTEAD, Observed

# How long a thread waits for the next request of a connection before it gives the connection back.
LINGER_MILLISECONDS = 5
# How long a thread waits for the client of one response, where there are threads for all connections.
PATIENCE_SECONDS = 1.0


class RespondingWorker(ThreadWorker):
    """A worker whose threads respond to requests that have arrived completely, or refuse them.

    A thread stays with a connection while its client sends request after request and there are threads for all
    connections. gunicorn's own worker gives the connection back to the main loop after each response, which can cost
    as much as the Python code of a lookup.
    """

    wsgi: Observed  # type: ignore[assignment]  # gunicorn's types say MutableMapping where WSGI says dict

    def run(self) -> None:
        """Run the main loop until the worker is told to stop."""
        self._limits = Limits(self.cfg.threads)
        self._waited = Buckets(counts.QUEUE.labels(here.pool))
        self._refused = counts.REFUSALS.labels(here.pool)
        # The connection that a thread is at work on: gunicorn gives `handle_error` the socket alone.
        self._thread = threading.local()
        super().run()

    def handle(self, conn: Connection) -> bool:  # type: ignore[override]  # `accept` makes no other connections
        """Answer the connection's requests, in a thread, as long as it may stay there."""
        self._thread.conn = conn
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
            if must_leave or not self._asks_again(conn):
                return keeps
            conn.waits_since = monotonic()

    def handle_request(self, req: Request, conn: Connection) -> bool:  # type: ignore[override]  # as above
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
        conn.sock.end_response()
        conn.refusal = None
        while keeps and conn.reader.length and req.body is not None and req.body.read(PIECE_BYTES):
            # The next request comes after the body, which the application may not have read.
            pass
        return keeps

    @property
    def _is_crowded(self) -> bool:
        """Whether there are more connections than threads."""
        is_crowded: bool = self.nr_conns > self.cfg.threads
        return is_crowded

    def _asks_again(self, conn: Connection) -> bool:
        """Whether another request to which no limit applies is complete, or arrives within a moment."""
        if not conn.reader.has_begun:
            poller = poll()
            poller.register(conn.sock, POLLIN)
            if not poller.poll(LINGER_MILLISECONDS):
                return False
        try:
            return conn.reader.receive() and not self._limits.apply_to(conn)
        except SpoolFullError:
            conn.refusal = NO_SPACE
            conn.reader.leave_body()
            return True

    def _answer_instead(self, substitute: Substitute, req: Request, conn: Connection) -> bool:
        begin = datetime.now()
        counts.ERRORS.labels(substitute.code).inc()
        response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg)
        if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        # gunicorn's types leave out that WSGI's third argument may be three times None.
        body = self.wsgi({**environ, INSTEAD: substitute}, response.start_response)  # type: ignore[arg-type]
        try:
            for piece in body:
                response.write(piece)
            response.close()
        finally:
            body.close()
        self.log.access(response, req, environ, datetime.now() - begin)
        return not response.should_close()

    def handle_error(self, req: Request | None, client: socket, addr: Any, exc: BaseException) -> None:
        """Answer a request that can't be parsed, or whose response failed before it began. gunicorn's own responses are HTML."""
        conn: Connection = self._thread.conn
        exchange = current.get()
        if exchange is None:
            exchange = Exchange(conn.reader.head.identity)
            current.set(exchange)
        substitute = malformed(exc) if req is None and isinstance(exc, ParseException) else INTERNAL_ERROR
        if not exchange.status:
            exchange.status = int(substitute.status[:3])
            self.wsgi.refuse(exchange)
        if substitute is INTERNAL_ERROR:
            self.log.exception("Error handling request %s %s", exchange.method, exchange.path)
        else:
            self.log.warning("Invalid request from ip=%s: %s", addr[0] if addr else "", exc)
        counts.ERRORS.labels(substitute.code).inc()
        if req is not None:
            # Only a response has what the access log needs.
            response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg)
            response.start_response(substitute.status, [])
            self.log.access(response, req, environ, timedelta(seconds=exchange.seconds()))
        try:
            conn.sock.abandon_response()
            conn.sock.sendall(substitute.on_the_wire(exchange.request_id))
        except OSError as error:
            self.log.debug("An error's response could not be sent: %s", error)


def _give_memory_back() -> None:
    """Return the memory of a large request to the system. Python and the C library would keep it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
