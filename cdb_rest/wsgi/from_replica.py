"""Reads from replicas, for all requests that are not answered before."""

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.connections.reads import ask, choose
from cdb_rest.connections.replicas.replica import Replica
from cdb_rest.wsgi.lookup_first import is_plain
from cdb_rest.wsgi.observed import Body

logger = logging.getLogger(__name__)

PRIMARY_POSITION = named_sql.load("primary_position")


class FromReplica:
    """A WSGI application that lets another one answer GETs below `prefix` from a replica which has all that was committed
    when the request came, and from the primary where there is none, or it fails."""

    def __init__(self, application: WSGIApplication, prefix: str) -> None:
        self._application = application
        self._prefix = prefix

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        replica = choose() if environ["PATH_INFO"].startswith(self._prefix) and is_plain(environ) else None
        if replica is None or not _is_up_to_date(replica):
            return self._application(environ, start_response)
        begun: list[tuple[Any, ...]] = []

        def begin(*beginning: Any) -> Callable[[bytes], object]:
            begun.append(beginning)
            return _write

        with ExitStack() as block:
            block.enter_context(replica.reading())
            body = self._application(environ, begin)
            status = int(begun[0][0][:3])
            if not _is_the_servers_fault(status):
                replica.count("served")
                start_response(*begun[0])
                # A large answer is read while it is sent.
                leave = block.pop_all().close
                return Body(body, lambda _error: leave())
            close = getattr(body, "close", None)
            if close:
                close()
        # That may be the fault of this read alone: whether others may go there is for the watch to say.
        replica.count("failed")
        logger.info("%s answered with %s; now the primary is asked", replica.alias, status)
        return self._application(environ, start_response)


def _write(piece: bytes) -> None:
    """WSGI's old way to send a body, the callable that `start_response` returns."""
    raise RuntimeError("an application wrote its body by start_response's callable; it must return the body")


def _is_up_to_date(replica: Replica) -> bool:
    try:
        [(position,)] = ask(PRIMARY_POSITION, {})
    except Error:
        # The application will find that out as well, and say so.
        return False
    try:
        if replica.has(position):
            return True
    except Error as error:
        replica.failed(error)
        return False
    replica.count("behind")
    return False


def _is_the_servers_fault(status: int) -> bool:
    """Whether another server might answer better: it does not answer, is full, or cancelled a read that was in the way of what
    it had to replay (as a conflict)."""
    return status >= 500 or status == 409
