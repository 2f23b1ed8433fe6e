"""The shapes as plain functions of time and of what was seen; locust is not imported here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

RAMP_STEPS = 10
# Of the study: readers at the ends of equal parts of the time, and the writers beside them.
READERS = (0, 1_000, 2_500, 0)
WRITERS, ITERATIONS, THINK_SECONDS = 20, 400, 120.0
START_SECONDS = 60.0


class Target(NamedTuple):
    """How many users there are to be, and how many come or go each second until then."""

    users: int
    rate: float


class Seen(NamedTuple):
    """What is known of the last seconds: users, requests since the last look and failures among them, and the 95th percentile
    of the response times in milliseconds (None: no answer yet)."""

    users: int
    requests: int
    failures: int
    p95: float | None


class Settings(Protocol):
    """The options that plans read and, before a test begins, settle."""

    num_users: int | None
    run_time: float | None
    scale: float
    pause: float
    iterations: int
    jobs_per_user: int
    start_together: bool
    step_seconds: float
    slow_milliseconds: float
    failing_percent: float


@dataclass
class Plan:
    """One shape. `users` is the peak and `seconds` how long it takes (None: until all users are gone); both are what the
    shape has by itself, multiplied by `--scale` or replaced by `--users` and `--run-time`. `over` says why it ended early."""

    users: int = 10
    seconds: float | None = 20.0
    over: str = ""

    def settle(self, options: Settings) -> None:
        """Take numbers from the options, and settle those that the shape needs to be what it is."""
        self.over = ""
        self.users = options.num_users or max(1, round(type(self).users * options.scale))
        self.seconds = options.run_time or type(self).seconds

    def target(self, seconds: float, seen: Seen) -> Target | None:
        """The users after so many seconds; None: the test is over."""
        return None if self.seconds is not None and seconds >= self.seconds else self.hold(seconds, seen)

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """The same before the time is over."""
        return Target(self.users, self.users)


class Smoke(Plan):
    """A few users for some seconds: does all work?"""


@dataclass
class Steady(Plan):
    """All users from the beginning on, for five minutes."""

    users: int = 50
    seconds: float | None = 300.0


@dataclass
class Ramp(Plan):
    """Ten steps up to the peak, each as long as --step-seconds; ends early where the service breaks."""

    users: int = 1_000
    seconds: float | None = None
    step: int = -1
    requests: int = 0
    failures: int = 0

    def settle(self, options: Settings) -> None:
        """The bounds are options."""
        super().settle(options)
        self.step, self.requests, self.failures = -1, 0, 0
        self._step_seconds, self._slow_milliseconds = options.step_seconds, options.slow_milliseconds
        self._failing_percent = options.failing_percent / 100

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """A step further if it is time and nothing broke."""
        self.requests += seen.requests
        self.failures += seen.failures
        step = int(seconds / self._step_seconds)
        if self.failures > self._failing_percent * self.requests:
            self.over = f"broke at {seen.users} users: {self.failures} of {self.requests} requests failed"
        elif seen.p95 is not None and seen.p95 > self._slow_milliseconds:
            self.over = f"broke at {seen.users} users: 95 % of the answers took up to {seen.p95:.0f} ms"
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
    """10,000 jobs that begin at the same moment, one of each user, unless --jobs-per-user says more."""

    users: int = 10_000
    seconds: float | None = None

    def settle(self, options: Settings) -> None:
        """All together, and once."""
        super().settle(options)
        options.start_together = True
        options.jobs_per_user = options.jobs_per_user or 1


@dataclass
class ReadersAndWriters(Plan):
    """Readers that ramp from 0 to 1,000, to 2,500 and back to 0 in six minutes and think for two between jobs, and 20 writers
    that share 400 iterations of create, wait, delete."""

    users: int = READERS[2]
    seconds: float | None = 360.0
    writers: int = WRITERS

    def settle(self, options: Settings) -> None:
        """Think, and limit the writers."""
        super().settle(options)
        part = self.users / READERS[2]
        self.writers = max(1, round(WRITERS * part))
        options.pause = options.pause or THINK_SECONDS
        options.iterations = options.iterations or max(1, round(ITERATIONS * part))

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """Readers on their way from one of the study's numbers to the next, and the writers."""
        place, rest = divmod(seconds / self.seconds * (len(READERS) - 1), 1)
        before, after = (number * self.users / READERS[2] for number in READERS[int(place) : int(place) + 2])
        rate = abs(after - before) * (len(READERS) - 1) / self.seconds
        return Target(self.writers + round(before + (after - before) * rest), max(1.0, self.writers, 2 * rate))


@dataclass
class Endurance(Plan):
    """All users for four hours, after a minute in which they come."""

    users: int = 50
    seconds: float | None = 4 * 3600.0

    def hold(self, seconds: float, seen: Seen) -> Target | None:
        """Slowly at first."""
        return Target(self.users, max(0.1, self.users / START_SECONDS))


PLANS: dict[str, Callable[[], Plan]] = {
    "smoke": Smoke,
    "steady": Steady,
    "ramp": Ramp,
    "storm": Storm,
    "readers-and-writers": ReadersAndWriters,
    "endurance": Endurance,
}
