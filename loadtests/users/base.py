"""The base class of all users: when their jobs are due, and how they run."""

import logging
import random
from collections.abc import Iterator
from typing import Any

import gevent
from gevent.event import Event
from gevent.pool import Group
from locust import FastHttpUser, task
from locust.contrib.fasthttp import FastHttpSession
from locust.exception import StopUser
from locust.user.users import LOCUST_STATE_STOPPING

from loadtests import recording
from loadtests.recording import JOB, Request, Writer, now
from loadtests.users.calls import CUT_SHORT, Calls, JobEndedError
from loadtests.users.options import CLOSED, OPEN

CHECK_INTERVAL_SECONDS = 0.05
logger = logging.getLogger(__name__)


class CheckedUser(FastHttpUser):
    """A user that runs `job`, a series of requests, again and again."""

    abstract = True
    # False: each request uses a new connection, which is closed after the response.
    keeps_connections = False
    writer: Writer | None = None
    # The number of jobs in progress of all users of this process.
    in_progress = 0
    # Set when the users of all processes are spawned, and when that was, so that a storm begins at one moment.
    all_there = Event()
    all_since = 0.0

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
        """Wait for the other users if all begin together."""
        if self.options.start_together:
            # The event is polled: of thousands of greenlets that wait for it with a timeout, gevent wakes only some.
            while self._state != LOCUST_STATE_STOPPING and not self.all_there.is_set():
                gevent.sleep(CHECK_INTERVAL_SECONDS)
            self._due = CheckedUser.all_since or now()

    @property
    def pause(self) -> float:
        """The seconds between two jobs in a closed loop."""
        return self.options.pause

    def record(self, request: Request) -> None:
        """Add a request to the recording, if there is one."""
        if CheckedUser.writer:
            CheckedUser.writer.write(request)

    @task
    def work(self) -> None:
        """Closed loop: run one job and pause. Open model: start jobs at the given rate until the test ends."""
        if self.options.start_jobs == CLOSED:
            if self._left == 0:
                shape = self.environment.shape_class
                if shape and shape.writers:
                    # This shape changes the number of users every second, and locust would then start a new user
                    # in the place of one that has stopped.
                    self._stopping.wait()
                raise StopUser
            due, self._due = self._due, None
            self._run(now() if due is None else due)
            self._left = self._left and self._left - 1
            self._stopping.wait(self.pause)
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
        while self._left != 0:
            yield due
            self._left = self._left and self._left - 1
            due += mean if self.options.start_jobs == OPEN else random.expovariate(1 / mean)

    def _start(self, due: float) -> None:
        if CheckedUser.in_progress >= self.options.most_in_progress:
            self._record_job(due, now(), recording.NOT_SENT, -1, "too many in progress")
            return
        self._progress.spawn(self._run, due)

    def _run(self, due: float) -> None:
        CheckedUser.in_progress += 1
        session = self._idle.pop() if self._idle else self._new_session()
        calls, begin, found, detail = Calls(self, session, due), now(), recording.OK, ""
        try:
            self.job(calls)
            found = recording.WRONG if calls.failed else recording.OK
        except JobEndedError:
            found = recording.WRONG
        except gevent.GreenletExit:
            found, detail = recording.NO_RESPONSE, CUT_SHORT
            raise
        except Exception as unexpected:
            found, detail = recording.GENERATOR_ERROR, repr(unexpected)[: recording.DETAIL_LENGTH]
            logger.exception("a job of %s", type(self).__name__)
        finally:
            self._idle.append(session)
            CheckedUser.in_progress -= 1
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
