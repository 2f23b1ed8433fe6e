"""WSGI applications that refuse requests: those that have waited for too long, and reads without the role for them."""

import time
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.authorization import REFUSED, is_closed_read
from cdb_rest.observe.metrics import QUEUE
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import OverloadedError

# A request that has waited for less shows that there is no overload. There is one when all requests of so many seconds have
# waited for longer, and then they may wait for `OVERLOAD_WAIT_SECONDS` only: a longer queue would make all of them late.
SHORT_WAIT_SECONDS, OVERLOAD_SECONDS, OVERLOAD_WAIT_SECONDS = 0.1, 10.0, 1.0


class Overload:
    """A WSGI application that refuses requests that have waited longer than CDB_QUEUE_TIMEOUT_SECONDS, or 1 s in an overload.

    All others are passed to another application, and so are those without the header, and health checks.
    """

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        # The time of the first long wait after the last short one.
        self._long_since: float | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        waited = _waited(environ)
        if waited is not None:
            QUEUE.observe(waited)
            now = time.monotonic()
            self._long_since = None if waited < SHORT_WAIT_SECONDS else self._long_since or now
            is_overload = self._long_since is not None and now - self._long_since > OVERLOAD_SECONDS
            limit = OVERLOAD_WAIT_SECONDS if is_overload else settings.CDB_QUEUE_TIMEOUT_SECONDS
            if waited > limit and not environ["PATH_INFO"].startswith("/health/"):
                raise OverloadedError("The service has more requests than it can answer; try again later.")
        return self._application(environ, start_response)


def _waited(environ: dict[str, Any]) -> float | None:
    """The seconds since nginx received the request; None without a valid header."""
    try:
        return max(0.0, time.time() - float(environ["HTTP_X_REQUEST_START"]))
    except (KeyError, ValueError):
        return None


class ReadAccess:
    """A WSGI application that refuses reads without the role reader, through `refuse`, and passes all others to `application`."""

    def __init__(self, application: WSGIApplication, refuse: WSGIApplication) -> None:
        self._application = application
        self._refuse = refuse

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_closed_read(environ["REQUEST_METHOD"], environ["PATH_INFO"]):
            try:
                principal_of(environ).require(Role.READER)
            except Exception as error:
                environ[REFUSED] = error
                return self._refuse(environ, start_response)
        return self._application(environ, start_response)
