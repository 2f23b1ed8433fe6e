"""The load shapes: the number of users over time.

`--users` is the peak and `--run-time` the duration.
"""

from typing import Any

from locust import LoadTestShape, User

# The load study (docs/load-tests.md): numbers of readers at the ends of three equal periods, and the writers.
READERS = (0, 1_000, 2_500, 0)
WRITERS, ITERATIONS, THINK_SECONDS = 20, 20, 120.0


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
        self.users = options.num_users or type(self).users
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


SHAPES: dict[str, type[Shape]] = {
    "storm": Storm,
    "readers-and-writers": ReadersAndWriters,
}
