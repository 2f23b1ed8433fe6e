"""The requests of a job: sending, checking and recording."""

import logging
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import gevent
import geventhttpclient.client
import orjson
from locust.contrib.fasthttp import FastHttpSession, ResponseContextManager

from loadtests import recording
from loadtests.client import authorization
from loadtests.content.expected import kind_of
from loadtests.recording import Request, now
from loadtests.service import PREFIX

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


class Reply:
    """A response: status, body, headers; `json` is parsed on first use.

    An incomplete one has status 0 and an empty body. `rows` is the number of rows, -1 if it is unknown.
    """

    def __init__(self, response: ResponseContextManager, error: Exception | None) -> None:
        self.status: int = 0 if error else response.status_code or 0
        self.body: bytes = b"" if error else response.content or b""
        self.headers: Mapping[str, str] = response.headers or {}
        self.rows = -1

    @cached_property
    def json(self) -> Any:
        """The parsed body; `rows` becomes the length of a list. Raises `ValueError` if the body is not JSON."""
        found = orjson.loads(self.body)
        if isinstance(found, list):
            self.rows = len(found)
        return found


# Returns a description of what is wrong with a response, or None. It may raise any exception for an unexpected form.
Check = Callable[[Reply], str | None]


def lists(name: str) -> Check:
    """A check that a list has an item with a name."""
    return lambda reply: None if any(item["name"] == name for item in reply.json) else f"no item {name}"


class Calls:
    """The requests of one job, over the connections of its session; `user` is a `CheckedUser`."""

    def __init__(self, user: Any, session: FastHttpSession, due: float) -> None:
        self.count = 0
        self.failed = False
        self._user = user
        self._session = session
        self._due: float | None = due
        self._begin = self._end = 0.0

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
        sent = authorization() | {"Accept-Encoding": "identity"}
        sent |= {} if content is None else {"Content-Type": "application/json"}
        reply, found, detail = None, recording.NO_RESPONSE, CUT_SHORT
        self.count += 1
        self._begin = now()
        self._due, self._end = self._due or self._begin, 0.0
        try:
            response = self._send(method, path, name=name, data=content, headers=sent | dict(headers or {}))
            error = response.request_meta["exception"]
            reply = Reply(response, error)
            accepted = [status] if isinstance(status, int) else status
            text = repr(error).encode() if error else reply.body
            found, detail = recording.judged(reply.status, text, accepted, lambda: check(reply) if check else None)
            fault = None if found == recording.OK else FailedRequestError(f"{found}: {kind_of(detail)}")
            changes = {"response_time": (self._end - self._due) * 1000, "exception": fault}
            self._user.environment.events.request.fire(**response.request_meta | changes)
        except Exception as unexpected:
            found, detail = recording.GENERATOR_ERROR, repr(unexpected)[: recording.DETAIL_LENGTH]
            logger.exception("%s %s", method, path)
        finally:
            result = (reply.status, found, reply.rows, len(reply.body)) if reply else (0, found, -1, 0)
            times, user = (self._due, self._begin, self._end or now()), type(self._user).__name__
            self._user.record(Request(*times, user, name, method, *result, detail))
            self._due, self.failed = None, self.failed or found != recording.OK
            if not self._user.keeps_connections:
                self._session.client.close()
        if found != recording.OK:
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
