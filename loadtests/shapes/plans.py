"""The shapes as plain functions of time and of recent statistics; this module does not import locust."""

from dataclasses import dataclass
from typing import Any, NamedTuple

RAMP_STEPS = 10
# The load study (docs/load-tests.md): numbers of readers at the ends of three equal periods, and the writers.
READERS = (0, 1_000, 2_500, 0)
WRITERS, ITERATIONS, THINK_SECONDS = 20, 20, 120.0
START_SECONDS = 60.0


class Target(NamedTuple):
    """The intended number of users, and how many are started or stopped per second until it is reached."""

    users: int
    rate: float


class Seen(NamedTuple):
    """Statistics: users, requests and failures since the last tick, and the 95th percentile of recent response times.

    `p95` is in milliseconds; None before the first response.
    """

    users: int
    requests: int
    failures: int
    p95: float | None


@dataclass
class Plan:
    """A shape. `users` is the peak, `seconds` the duration (None: until all users have stopped).

    `--users` and `--run-time` replace these defaults; without `--users`, `--scale` multiplies the peak. `over`
    is the reason of the end, for a shape that ends by its statistics. `writers` is the number of users that write, of a
    shape that fixes it.
    """

    users: int = 10
    seconds: float | None = 20.0
    over: str = ""
    writers: int = 0

    def settle(self, options: Any) -> None:
        """Read the options of `loadtests/users/options.py`, and set those on which the shape depends."""
        self.over = ""
        self.users = options.num_users or max(1, round(type(self).users * options.scale))
        self.seconds = options.run_time or type(self).seconds

    def target(self, seconds: float, seen: Seen) -> Target | None:
        """The users after `seconds`; None ends the test."""
        return None if self.seconds is not None and seconds >= self.seconds else self.hold(seconds, seen)

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """The users after `seconds`, before the duration has passed; None ends the test."""
        return Target(self.users, self.users)


class Smoke(Plan):
    """A few users for some seconds, to check that everything works."""


@dataclass
class Steady(Plan):
    """All users from the start, for five minutes."""

    users: int = 50
    seconds: float | None = 300.0


@dataclass
class Ramp(Plan):
    """Ten steps of --step-seconds up to the peak; ends early if too many requests fail or responses are too slow."""

    users: int = 1_000
    seconds: float | None = None
    step: int = -1
    requests: int = 0
    failures: int = 0

    def settle(self, options: Any) -> None:
        """Read the length of a step and the bounds from the options."""
        super().settle(options)
        self.step, self.requests, self.failures = -1, 0, 0
        self._options = options

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """Go to the next step when it is due, unless a bound is exceeded."""
        self.requests += seen.requests
        self.failures += seen.failures
        step = int(seconds / self._options.step_seconds)
        if self.failures > self._options.failing_percent / 100 * self.requests:
            self.over = f"failed at {seen.users} users: {self.failures} of {self.requests} requests failed"
        elif seen.p95 is not None and seen.p95 > self._options.slow_milliseconds:
            self.over = f"failed at {seen.users} users: 95 % of the responses took up to {seen.p95:.0f} ms"
        elif step >= RAMP_STEPS:
            self.over = f"held {self.users} users"
        if self.over:
            return None
        if step != self.step:
            self.step, self.requests, self.failures = step, 0, 0
        users = max(1, round(self.users * (step + 1) / RAMP_STEPS))
        return Target(users, users)


@dataclass
class Storm(Plan):
    """10,000 users that begin at the same moment, with one job each unless --jobs-per-user is given."""

    users: int = 10_000
    seconds: float | None = None

    def settle(self, options: Any) -> None:
        """Set --start-together, and one job per user."""
        super().settle(options)
        options.start_together = True
        options.jobs_per_user = options.jobs_per_user or 1


@dataclass
class ReadersAndWriters(Plan):
    """Readers and 20 writers, for six minutes.

    The number of readers changes linearly from 0 to 1,000, to 2,500 and back to 0; they pause for two minutes
    between jobs. Each writer creates, waits and deletes 20 times.
    """

    users: int = READERS[2]
    seconds: float | None = 360.0
    writers: int = WRITERS

    def settle(self, options: Any) -> None:
        """Set the pause of readers and the iterations of writers."""
        super().settle(options)
        self.writers = max(1, round(WRITERS * self.users / READERS[2]))
        options.pause = options.pause or THINK_SECONDS
        options.iterations = options.iterations or ITERATIONS

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """The writers, and the readers interpolated between two numbers of the study."""
        place, rest = divmod(seconds / self.seconds * (len(READERS) - 1), 1)
        before, after = (number * self.users / READERS[2] for number in READERS[int(place) : int(place) + 2])
        rate = abs(after - before) * (len(READERS) - 1) / self.seconds
        return Target(self.writers + round(before + (after - before) * rest), max(1.0, self.writers, 2 * rate))


@dataclass
class Endurance(Plan):
    """All users for four hours; they are started during the first minute."""

    users: int = 50
    seconds: float | None = 4 * 3600.0

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """All users, started over `START_SECONDS`."""
        return Target(self.users, max(0.1, self.users / START_SECONDS))


# In the order of `loadtests.shapes.shapes`.
PLANS: dict[str, type[Plan]] = {"smoke": Smoke, "steady": Steady, "ramp": Ramp, "storm": Storm}
PLANS |= {"readers-and-writers": ReadersAndWriters, "endurance": Endurance}
