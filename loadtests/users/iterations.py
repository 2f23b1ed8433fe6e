"""Iterations that all users of a run share, also those in other processes: the master hands them out."""

from collections import deque

from gevent.event import AsyncResult
from locust.env import Environment
from locust.rpc import Message
from locust.runners import MasterRunner, WorkerRunner

WANTED, GRANTED = "iteration wanted", "iteration granted"
# The master answers in milliseconds, unless it is gone.
PATIENCE_SECONDS = 30


class Iterations:
    """A number of iterations; `take` is called by users, in whatever process."""

    def __init__(self, environment: Environment) -> None:
        """Listen to the other processes."""
        self._runner = environment.runner
        self._left: int | None = None
        self._waiting: deque[AsyncResult] = deque()
        if isinstance(self._runner, MasterRunner):
            self._runner.register_message(WANTED, self._answer)
        elif isinstance(self._runner, WorkerRunner):
            self._runner.register_message(GRANTED, self._hear)

    def begin(self, count: int) -> None:
        """Have so many of them; 0: without end."""
        self._left = count or None
        self._waiting.clear()

    def take(self) -> bool:
        """Whether there is one more, which is then taken."""
        if not isinstance(self._runner, WorkerRunner):
            return self._take()
        answer = AsyncResult()
        self._waiting.append(answer)
        self._runner.send_message(WANTED)
        return bool(answer.get(timeout=PATIENCE_SECONDS))

    def _take(self) -> bool:
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    def _answer(self, environment: Environment, msg: Message) -> None:
        self._runner.send_message(GRANTED, self._take(), client_id=msg.node_id)

    def _hear(self, environment: Environment, msg: Message) -> None:
        # Answers come in the order of the questions, and all questions are alike.
        if self._waiting:
            self._waiting.popleft().set(msg.data)
