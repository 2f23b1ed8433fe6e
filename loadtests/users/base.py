"""The base class of all users: scheduling of jobs; sending, checking and recording of requests."""

import logging
import random
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import gevent
import geventhttpclient.client
import orjson
from gevent.event import Event
from gevent.pool import Group
from locust import FastHttpUser, task
from locust.contrib.fasthttp import FastHttpSession, ResponseContextManager
from locust.exception import StopUser
from locust.user.users import LOCUST_STATE_STOPPING

from loadtests import bearer
from loadtests.recording import outcome
from loadtests.recording.rows import JOB, Request, now
from loadtests.recording.writer import Writer
from loadtests.service import PREFIX
from loadtests.users.options import CLOSED, OPEN
from loadtests.users.reply import Check, Reply, kind_of, verdict

CUT_SHORT = "cut short by the end of the test"
CHECK_INTERVAL_SECONDS = 0.05
# geventhttpclient retries requests with these methods when the connection closes before the response, and
# locust does not see it. The load test would report successes where real jobs abort, and the server would count
# more requests than were recorded.
geventhttpclient.client.IDEMPOTENT_METHODS = frozenset()
logger = logging.getLogger(__name__)


class JobEndedError(Exception):
    """A request of a job failed; the job ends."""


class FailedRequestError(Exception):
    """The error that locust shows for a failed request; it begins with the outcome, by which locust groups failures."""


class Barrier:
    """A barrier for users: they wait until those of all processes are spawned, so that a storm begins at one moment."""

    def __init__(self) -> None:
        self.is_open = Event()
        self._since = 0.0

    def open(self) -> None:
        """Release all users now."""
        self._since = now()
        self.is_open.set()

    def wait(self, user: FastHttpUser) -> float:
        """Wait for all users or the end of the test; returns when all were due, in seconds since the epoch."""
        # The event is polled: of thousands of greenlets that wait for it with a timeout, gevent wakes only some.
        while user._state != LOCUST_STATE_STOPPING and not self.is_open.is_set():
            gevent.sleep(CHECK_INTERVAL_SECONDS)
        return self._since or now()


class Calls:
    """The requests of one job, over the connections of its session."""

    def __init__(self, user: "CheckedUser", session: FastHttpSession, due: float) -> None:
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
        sent = (
            {"Accept-Encoding": "identity"}
            | bearer.headers()
            | ({} if content is None else {"Content-Type": "application/json"})
        )
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
            found, detail = outcome.RIG_ERROR, repr(unexpected)[: outcome.DETAIL_LENGTH]
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


class CheckedUser(FastHttpUser):
    """A user that runs `job`, a series of requests, again and again."""

    abstract = True
    # False: each request uses a new connection, which is closed after the response.
    keeps_connections = False
    writer: Writer | None = None
    all_there = Barrier()

    def __init__(self, environment: Any) -> None:
        self.options = environment.parsed_options
        super().__init__(environment)
        self._idle: list[FastHttpSession] = []
        self._progress = Group()
        self._stopping = Event()
        self._left = self.options.jobs_per_user or None
        # When the first job was due, if that was before this user could start it.
        self._due: float | None = None

    def job(self, calls: Calls) -> None:
        """Run one job. A `JobEndedError` of a request ends it."""
        raise NotImplementedError

    def on_start(self) -> None:
        """Count this user in the recording, and wait for the others if all begin together."""
        if CheckedUser.writer:
            CheckedUser.writer.users += 1
        if self.options.start_together:
            self._due = self.all_there.wait(self)

    def on_stop(self) -> None:
        """Remove this user from the count in the recording."""
        if CheckedUser.writer:
            CheckedUser.writer.users -= 1

    def has_next_job(self) -> bool:
        """Whether another job follows; called before each job, and no more after it has returned False."""
        return True

    def record(self, request: Request) -> None:
        """Add a request to the recording, if there is one."""
        if CheckedUser.writer:
            CheckedUser.writer.add(request)

    @task
    def work(self) -> None:
        """Closed loop: run one job and pause. Open model: start jobs at the given rate until the test ends."""
        if self.options.start_jobs == CLOSED:
            if self._left == 0 or not self.has_next_job():
                raise StopUser
            due, self._due = self._due, None
            self._run(now() if due is None else due)
            self._left = self._left and self._left - 1
            self._stopping.wait(self.options.pause)
            return
        try:
            for due in self._moments():
                if self._stopping.wait(max(0.0, due - now())):
                    break
                self._start(due)
            self._progress.join()
        finally:
            # Jobs for which the test no longer waits record that they were cut short.
            self._progress.kill()
        raise StopUser

    def stop(self, force: bool = False) -> bool:
        """Start no more jobs."""
        self._stopping.set()
        return super().stop(force)

    def _moments(self) -> Iterator[float]:
        """The times at which jobs are due: regular or random, from a random start so that users do not synchronise."""
        mean = 1 / self.options.jobs_per_second
        due = now() + random.uniform(0, mean)
        while self._left != 0 and self.has_next_job():
            yield due
            self._left = self._left and self._left - 1
            due += mean if self.options.start_jobs == OPEN else random.expovariate(1 / mean)

    def _start(self, due: float) -> None:
        writer = CheckedUser.writer
        if writer and writer.in_progress >= self.options.most_in_progress:
            self._record_job(due, now(), outcome.NOT_SENT, -1, "too many in progress")
            return
        self._progress.spawn(self._run, due)

    def _run(self, due: float) -> None:
        writer = CheckedUser.writer
        if writer:
            writer.in_progress += 1
        session = self._idle.pop() if self._idle else self._new_session()
        calls, begin, found, detail = Calls(self, session, due), now(), outcome.OK, ""
        try:
            self.job(calls)
            found = outcome.WRONG if calls.failed else outcome.OK
        except JobEndedError:
            found = outcome.WRONG
        except gevent.GreenletExit:
            found, detail = outcome.NO_RESPONSE, CUT_SHORT
            raise
        except Exception as unexpected:
            found, detail = outcome.RIG_ERROR, repr(unexpected)[: outcome.DETAIL_LENGTH]
            logger.exception("a job of %s", type(self).__name__)
        finally:
            self._idle.append(session)
            if writer:
                writer.in_progress -= 1
            self._record_job(due, begin, found, calls.count, detail)

    def _new_session(self) -> FastHttpSession:
        """A session with one connection at a time, which never retries a request and never hides an error."""
        patience = self.options.patience
        limits = {"concurrency": 1, "max_retries": 0, "max_redirects": 0}
        timeouts = {"network_timeout": patience, "connection_timeout": patience, "insecure": self.insecure}
        event = self.environment.events.request
        session = FastHttpSession(base_url=self.host, request_event=event, user=self, **limits, **timeouts)
        # For other statuses the client would close the connection before it has read the body.
        session.client.valid_response_codes = range(1000)
        return session

    def _record_job(self, due: float, begin: float, found: str, calls: int, detail: str) -> None:
        name = type(self).__name__
        self.record(Request(due, begin, now(), name, name, JOB, 0, found, calls, 0, detail))
