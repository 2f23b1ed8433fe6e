"""The requests of a job: sending, checking and recording."""

import logging
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import gevent
import geventhttpclient.client
import orjson
from locust.contrib.fasthttp import FastHttpSession, ResponseContextManager
from locust.env import Environment

from loadtests import bearer
from loadtests.recording import outcome
from loadtests.recording.rows import Request, now
from loadtests.service import PREFIX
from loadtests.users.reply import Check, Reply, kind_of, verdict

CUT_SHORT = "cut short by the end of the test"
# geventhttpclient retries requests with these methods when the connection closes before the response, and
# locust does not see it. The load test would report successes where real jobs abort, and the server would count
# more requests than were recorded.
geventhttpclient.client.IDEMPOTENT_METHODS = frozenset()
logger = logging.getLogger(__name__)


class JobEndedError(Exception):
    """A request of a job failed; the job ends."""


class FailedRequestError(Exception):
    """The error that locust shows for a failed request; it begins with the outcome, by which locust groups failures."""


class Caller(Protocol):
    """The user that sends the requests; without `keeps_connections`, each uses a new connection."""

    options: Any
    environment: Environment
    keeps_connections: bool

    def record(self, request: Request) -> None:
        """Add a request to the recording."""


class Calls:
    """The requests of one job, over the connections of its session."""

    def __init__(self, user: Caller, session: FastHttpSession, due: float) -> None:
        self.count = 0
        self.failed = False
        self._user = user
        self._session = session
        self._due: float | None = due
        self._begin = self._end = 0.0

    def close_connection(self) -> None:
        """Close the connection, so that the next request uses a new one."""
        self._session.client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        name: str,
        check: Check | None = None,
        status: int | Collection[int] = 200,
        json: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request to a route of the API, check the response and record the outcome.

        The response must have the status `status`, or one of several, and `check`, which gets the `Reply`, must
        return None. Raises `JobEndedError` otherwise.
        """
        content = body if json is None else orjson.dumps(json)
        sent = bearer.headers() | {"Accept-Encoding": "identity"}
        sent |= {} if content is None else {"Content-Type": "application/json"}
        reply, found, detail = None, outcome.NO_RESPONSE, CUT_SHORT
        self.count += 1
        self._begin = now()
        self._due, self._end = self._due or self._begin, 0.0
        try:
            response = self._send(method, path, name=name, data=content, headers=sent | dict(headers or {}))
            error = response.request_meta["exception"]
            reply = Reply(response, error)
            found, detail = verdict(reply, status, check, error)
            self._report_to_locust(response, found, detail)
        except Exception as unexpected:
            found, detail = outcome.GENERATOR_ERROR, repr(unexpected)[: outcome.DETAIL_LENGTH]
            logger.exception("%s %s", method, path)
        finally:
            self._record(name, method, reply, found, detail)
            if not self._user.keeps_connections:
                self._session.client.close()
        if found != outcome.OK:
            raise JobEndedError(detail)
        return reply

    def _send(self, method: str, path: str, **options: Any) -> ResponseContextManager:
        # The timeouts of a session apply to each part of a response; this one to the whole request.
        with gevent.Timeout(self._user.options.patience):
            response = self._session.request(
                method, PREFIX + path, catch_response=True, allow_redirects=False, **options
            )
        self._end = now()
        return response

    def _report_to_locust(self, response: ResponseContextManager, found: str, detail: str) -> None:
        fault = None if found == outcome.OK else FailedRequestError(f"{found}: {kind_of(detail)}")
        changes = {"response_time": (self._end - self._due) * 1000, "exception": fault}
        self._user.environment.events.request.fire(**response.request_meta | changes)

    def _record(self, name: str, method: str, reply: Reply | None, found: str, detail: str) -> None:
        result = (reply.status, found, reply.rows, len(reply.body)) if reply else (0, found, -1, 0)
        user = type(self._user).__name__
        self._user.record(Request(self._due, self._begin, self._end or now(), user, name, method, *result, detail))
        self._due = None
        self.failed = self.failed or found != outcome.OK
