"""Reads from replicas, for GET requests that Django handles."""

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.connections.reads import choose_replica, fetch_all
from cdb_rest.connections.replicas.replica import Replica
from cdb_rest.wsgi.fast_lookup import is_plain
from cdb_rest.wsgi.instrumentation import Body

logger = logging.getLogger(__name__)

PRIMARY_POSITION = named_sql.load("primary_position")


class ReplicaReads:
    """A WSGI application that lets another one read from a replica for GET requests below `prefix`.

    The replica must have everything that was committed when the request arrived. Without such a replica, the other
    application reads from the primary. If the replica fails before the response begins, the other application is called
    a second time, to read from the primary. Until the body is closed, all queries of the thread go to the replica.
    """

    def __init__(self, application: WSGIApplication, prefix: str) -> None:
        self._application = application
        self._prefix = prefix

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        replica = choose_replica() if environ["PATH_INFO"].startswith(self._prefix) and is_plain(environ) else None
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
                # A large response is read from the database while it is sent.
                leave = block.pop_all().close
                return Body(body, lambda _error: leave())
            close = getattr(body, "close", None)
            if close:
                close()
        # This read alone may be at fault. The monitor decides whether the replica stays in rotation.
        replica.count("failed")
        logger.info("%s failed with status %s; reading from the primary instead", replica.alias, status)
        return self._application(environ, start_response)


def _write(piece: bytes) -> None:
    """The `write` callable of `start_response`, which this service does not support."""
    raise RuntimeError("the application called write(); it must return its body instead")


def _is_up_to_date(replica: Replica) -> bool:
    try:
        [(position,)] = fetch_all(PRIMARY_POSITION, {})
    except Error:
        # The application will fail in the same way and report it.
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
    """Whether the primary may succeed where the replica failed, according to the status of the response.

    The replica is down or overloaded (5xx), or it cancelled a read that conflicted with replication (409).
    """
    return status >= 500 or status == 409
