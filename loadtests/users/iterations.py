"""A limited number of iterations that all users of a run share; the master grants them to users in other processes."""

from collections import deque

from gevent.event import AsyncResult
from locust.env import Environment
from locust.rpc import Message
from locust.runners import MasterRunner, WorkerRunner

WANTED, GRANTED = "iteration wanted", "iteration granted"
# The master responds within milliseconds, unless it has ended.
TIMEOUT_SECONDS = 30


class Iterations:
    """A shared number of iterations; users in any process call `take`."""

    def __init__(self, environment: Environment) -> None:
        """Register the message handlers of the master or of the worker."""
        self._runner = environment.runner
        self._left: int | None = None
        self._waiting: deque[AsyncResult] = deque()
        if isinstance(self._runner, MasterRunner):
            self._runner.register_message(WANTED, self._grant)
        elif isinstance(self._runner, WorkerRunner):
            self._runner.register_message(GRANTED, self._receive)

    def begin(self, count: int) -> None:
        """Start a test with `count` iterations; 0 is no limit."""
        self._left = count or None
        self._waiting.clear()

    def take(self) -> bool:
        """Take an iteration; returns False if none is left."""
        if not isinstance(self._runner, WorkerRunner):
            return self._take()
        grant = AsyncResult()
        self._waiting.append(grant)
        self._runner.send_message(WANTED)
        return bool(grant.get(timeout=TIMEOUT_SECONDS))

    def _take(self) -> bool:
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    def _grant(self, environment: Environment, msg: Message) -> None:
        self._runner.send_message(GRANTED, self._take(), client_id=msg.node_id)

    def _receive(self, environment: Environment, msg: Message) -> None:
        # Grants arrive in the order of the requests, and all requests are alike.
        if self._waiting:
            self._waiting.popleft().set(msg.data)
