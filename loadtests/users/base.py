"""What all users share: when jobs start, how requests are sent, checked and written down."""

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import gevent
import orjson
from gevent.pool import Group
from locust import FastHttpUser, task
from locust.contrib.fasthttp import FastHttpSession, FastResponse
from locust.exception import StopUser
from locust.user.users import LOCUST_STATE_STOPPING

from loadtests.recording import outcome
from loadtests.recording.reading import JOB
from loadtests.recording.writer import Request, Writer
from loadtests.users import together
from loadtests.users.options import CLOSED, OPEN

PREFIX = "/api/cdb_rest/"
DETAIL_LENGTH = 300
NO_STATUS = -1

# Returns what is wrong with an answer, or None; may raise whatever a value of another form than expected raises.
Check = Callable[[Any], str | None]


class JobEndedError(Exception):
    """A request of a job failed, and the job goes no further."""


class FailedRequestError(Exception):
    """What locust shows for a failed request: the outcome first, so that it groups them by it."""


class Reply:
    """An answer: its status, body and headers; `json` is parsed when it is asked for."""

    def __init__(self, response: FastResponse) -> None:
        self.status: int = response.status_code or 0
        self.body: bytes = response.content or b""
        self.headers: Mapping[str, str] = response.headers or {}
        self.rows = -1
        self._json: Any = None

    @property
    def json(self) -> Any:
        """The parsed body; a list's length is noted as the number of rows. Raises `ValueError` if it is none."""
        if self._json is None:
            self._json = orjson.loads(self.body)
            if isinstance(self._json, list):
                self.rows = len(self._json)
        return self._json


class Calls:
    """The requests of one job, over connections of its own."""

    def __init__(self, user: "CheckedUser", session: FastHttpSession, due: float) -> None:
        self.count = 0
        self.failed = False
        self._user = user
        self._session = session
        self._due: float | None = due

    def hang_up(self) -> None:
        """Send the next request over a new connection."""
        self._session.client.close()

    def ask(
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
        """Send a request to a route of the API and hold the answer against `status`, or several, and `check`, which is given
        the `Reply`.

        Raises `JobEndedError` where it is not what it has to be.
        """
        user, begin = self._user, time.time()
        due, self._due = (begin if self._due is None else self._due), None
        content = body if json is None else orjson.dumps(json)
        sent = {"Accept-Encoding": "identity"} | ({} if content is None else {"Content-Type": "application/json"})
        with self._session.request(
            method, PREFIX + path, name=name, data=content, headers=sent | dict(headers or {}), catch_response=True,
            allow_redirects=False,
        ) as response:  # fmt: skip
            end = begin + response.request_meta["response_time"] / 1000
            response.request_meta["response_time"] = (end - due) * 1000
            reply = Reply(response)
            error = response.request_meta["exception"] if not reply.status else None
            found, detail = _verdict(reply, status, check, error)
            if found == outcome.OK:
                response.success()
            else:
                response.failure(FailedRequestError(f"{found}: {detail[:80]}"))
        if not user.keeps_connections:
            self._session.client.close()
        self.count += 1
        user.note(
            Request(
                due,
                begin,
                end,
                type(user).__name__,
                name,
                method,
                reply.status,
                found,
                reply.rows,
                len(reply.body),
                detail,
            )
        )
        if found != outcome.OK:
            self.failed = True
            raise JobEndedError(detail)
        return reply


def _verdict(
    reply: Reply, status: int | Collection[int], check: Check | None, error: Exception | None
) -> tuple[str, str]:
    accepted = [status] if isinstance(status, int) else status
    found = outcome.of_status(reply.status, reply.status if reply.status in accepted else NO_STATUS)
    if found != outcome.OK:
        told = repr(error) if error else reply.body.decode(errors="replace")
        return found, f"status {reply.status}: {told}"[:DETAIL_LENGTH]
    try:
        fault = check(reply) if check else None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as unexpected:
        fault = f"not of the expected form: {unexpected!r}: {reply.body[:100]!r}"
    return (outcome.WRONG, fault[:DETAIL_LENGTH]) if fault else (outcome.OK, "")


class CheckedUser(FastHttpUser):
    """A user whose jobs are `job`, a series of calls."""

    abstract = True
    # Else each request has a connection of its own, which is closed after the answer.
    keeps_connections = False
    writer: Writer | None = None

    def __init__(self, environment: Any) -> None:
        self.options = environment.parsed_options
        self.network_timeout = self.connection_timeout = self.options.patience
        super().__init__(environment)
        self._idle: list[FastHttpSession] = [self.client]
        self._progress = Group()
        self._left = self.options.jobs_per_user or None

    def job(self, calls: Calls) -> None:
        """What this user does, once. A `JobEndedError` of a call ends it."""
        raise NotImplementedError

    def on_start(self) -> None:
        """Be counted, and wait for the others if all are to begin together."""
        if CheckedUser.writer:
            CheckedUser.writer.users += 1
        if self.options.start_together:
            together.wait(self)

    def on_stop(self) -> None:
        """Be counted no more."""
        if CheckedUser.writer:
            CheckedUser.writer.users -= 1

    def more(self) -> bool:
        """Whether there is another job; asked before each, and not again after the first no."""
        return True

    def note(self, request: Request) -> None:
        """Write a request down, if that was asked for."""
        if CheckedUser.writer:
            CheckedUser.writer.add(request)

    @task
    def work(self) -> None:
        """One job and the pause after it, or jobs at a rate until the test ends."""
        if self.options.start_jobs == CLOSED:
            if self._left == 0 or not self.more():
                raise StopUser
            self._run(time.time())
            self._left = self._left and self._left - 1
            gevent.sleep(self.options.pause)
            return
        try:
            for due in self._moments():
                gevent.sleep(max(0.0, due - time.time()))
                if self._state == LOCUST_STATE_STOPPING:
                    break
                self._start(due)
        finally:
            self._progress.join()
        raise StopUser

    def _moments(self) -> Iterator[float]:
        """When jobs are due: regularly, from a moment on that is drawn so that users do not march in step, or at random."""
        mean = 1 / self.options.jobs_per_second
        due = time.time() + random.uniform(0, mean)
        while self._left != 0 and self.more():
            yield due
            self._left = self._left and self._left - 1
            due += mean if self.options.start_jobs == OPEN else random.expovariate(1 / mean)

    def _start(self, due: float) -> None:
        writer = CheckedUser.writer
        if writer and writer.in_progress >= self.options.most_in_progress:
            now, name = time.time(), type(self).__name__
            self.note(Request(due, now, now, name, name, JOB, 0, outcome.NOT_SENT, -1, 0, "too many in progress"))
            return
        self._progress.spawn(self._run, due)

    def _run(self, due: float) -> None:
        writer = CheckedUser.writer
        if writer:
            writer.in_progress += 1
        session = self._idle.pop() if self._idle else self._new_session()
        calls, begin, name = Calls(self, session, due), time.time(), type(self).__name__
        try:
            self.job(calls)
        except JobEndedError:
            pass
        finally:
            self._idle.append(session)
            if writer:
                writer.in_progress -= 1
        found = outcome.WRONG if calls.failed else outcome.OK
        self.note(Request(due, begin, time.time(), name, name, JOB, 0, found, calls.count, 0, ""))

    def _new_session(self) -> FastHttpSession:
        return FastHttpSession(
            base_url=self.host, request_event=self.environment.events.request, user=self, concurrency=1,
            network_timeout=self.network_timeout, connection_timeout=self.connection_timeout, insecure=self.insecure,
        )  # fmt: skip
