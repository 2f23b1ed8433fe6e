"""The load shapes: the number of users over time.

`--users` is the peak and `--run-time` the duration; without `--users`, `--scale` multiplies the peak of the shape.
"""

import logging
from typing import Any

from locust import LoadTestShape, User

RAMP_STEPS = 10
# The load study (docs/load-tests.md): numbers of readers at the ends of three equal periods, and the writers.
READERS = (0, 1_000, 2_500, 0)
WRITERS, ITERATIONS, THINK_SECONDS = 20, 20, 120.0
START_SECONDS = 60.0

logger = logging.getLogger(__name__)


class Shape(LoadTestShape):
    """A shape with a peak of `users` and a duration of `seconds` (None: until all users have stopped).

    `writers` is the number of Indecisive users of a shape that fixes it; all other selected users are then readers.
    """

    abstract = True
    use_common_options = True
    users = 10
    seconds: float | None = 20.0
    writers = 0

    def __init__(self) -> None:
        super().__init__()
        self._fixed: dict[type[User], int] = {}

    def settle(self, options: Any) -> None:
        """Read the options of `loadtests/users/options.py`, and set those on which the shape depends."""
        self.options = options
        self.users = options.num_users or max(1, round(type(self).users * options.scale))
        self.seconds = options.run_time or type(self).seconds

    def reset_time(self) -> None:
        """Prepare a test, before the first tick. The options may differ from those of the last test in the web UI."""
        super().reset_time()
        self.runner.stats.clear_all()
        self.settle(self.runner.environment.parsed_options)
        for kind in self.runner.user_classes if self.writers else ():
            if kind.__name__ == "Indecisive":
                self._fixed.setdefault(kind, kind.fixed_count)
                kind.fixed_count = self.writers

    def restore(self) -> None:
        """Restore the counts, because the next test of the web UI may have another shape."""
        for kind, count in self._fixed.items():
            kind.fixed_count = count
        self._fixed.clear()

    def tick(self) -> tuple[int, float] | None:
        """The users and spawn rate, which locust requests every second; None ends the test."""
        seconds = self.get_run_time()
        return None if self.seconds is not None and seconds >= self.seconds else self.target(seconds)

    def target(self, seconds: float) -> tuple[int, float] | None:
        """The users and spawn rate after `seconds`, before the duration has passed; None ends the test."""
        return self.users, self.users


class Smoke(Shape):
    """A few users for some seconds, to check that everything works."""


class Steady(Shape):
    """All users from the start, for five minutes."""

    users = 50
    seconds = 300.0


class Ramp(Shape):
    """Ten steps of --step-seconds up to the peak; ends early if too many requests fail or responses are too slow."""

    users = 1_000
    seconds = None

    def settle(self, options: Any) -> None:
        """Begin with the first step."""
        super().settle(options)
        self._step = self._requests = self._failures = 0

    def target(self, seconds: float) -> tuple[int, float] | None:
        """Go to the next step when it is due, unless a bound is exceeded."""
        total, users = self.runner.stats.total, self.runner.user_count
        requests, failures = total.num_requests - self._requests, total.num_failures - self._failures
        p95 = total.get_current_response_time_percentile(0.95)
        step = int(seconds / self.options.step_seconds)
        end = ""
        if failures > self.options.failing_percent / 100 * requests:
            end = f"failed at {users} users: {failures} of {requests} requests failed"
        elif p95 is not None and p95 > self.options.slow_milliseconds:
            end = f"failed at {users} users: 95 % of the responses took up to {p95:.0f} ms"
        elif step >= RAMP_STEPS:
            end = f"held {self.users} users"
        if end:
            logger.info("ramp: %s", end)
            return None
        if step != self._step:
            self._step, self._requests, self._failures = step, total.num_requests, total.num_failures
        target = max(1, round(self.users * (step + 1) / RAMP_STEPS))
        return target, target


class Storm(Shape):
    """10,000 users that begin at the same moment, with one job each unless --jobs-per-user is given."""

    users = 10_000
    seconds = None

    def settle(self, options: Any) -> None:
        """Set --start-together, and one job per user."""
        super().settle(options)
        options.start_together = True
        options.jobs_per_user = options.jobs_per_user or 1


class ReadersAndWriters(Shape):
    """Readers and 20 writers, for six minutes.

    The number of readers changes linearly from 0 to 1,000, to 2,500 and back to 0; they pause for two minutes
    between jobs. Each writer creates, waits and deletes 20 times.
    """

    users = READERS[2]
    seconds = 360.0
    writers = WRITERS

    def settle(self, options: Any) -> None:
        """Set the pause of readers and the iterations of writers."""
        super().settle(options)
        self.writers = max(1, round(WRITERS * self.users / READERS[2]))
        options.pause = options.pause or THINK_SECONDS
        options.iterations = options.iterations or ITERATIONS

    def target(self, seconds: float) -> tuple[int, float]:
        """The writers, and the readers interpolated between two numbers of the study."""
        place, rest = divmod(seconds / self.seconds * (len(READERS) - 1), 1)
        before, after = (number * self.users / READERS[2] for number in READERS[int(place) : int(place) + 2])
        rate = abs(after - before) * (len(READERS) - 1) / self.seconds
        return self.writers + round(before + (after - before) * rest), max(1.0, self.writers, 2 * rate)


class Endurance(Shape):
    """All users for four hours; they are started during the first minute."""

    users = 50
    seconds = 4 * 3600.0

    def target(self, seconds: float) -> tuple[int, float]:
        """All users, started over `START_SECONDS`."""
        return self.users, max(0.1, self.users / START_SECONDS)


SHAPES: dict[str, type[Shape]] = {
    "smoke": Smoke,
    "steady": Steady,
    "ramp": Ramp,
    "storm": Storm,
    "readers-and-writers": ReadersAndWriters,
    "endurance": Endurance,
}
