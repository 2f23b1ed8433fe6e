"""Queueing theory: the response time of a system with several servers and a number of users.

- Arrivals per second = users / (service time + think time). Maximum responses per second = servers /
  service time (Little's law; Lazowska, Zahorjan, Graham, Sevcik: Quantitative System Performance,
  1984, chapters 3 and 5).
- Below saturation, the waiting time is that of an M/M/c queue, by Erlang's C formula (Kleinrock:
  Queueing Systems, volume 1, 1975, section 3.5), which assumes independent arrivals.
- Above saturation, the interactive response time law applies: users / responses per second - think time.
"""

import math
from dataclasses import dataclass

# The highest utilisation that leaves a reserve. Above it the waiting time grows much faster than the load.
COMFORTABLE = 0.8


@dataclass(frozen=True)
class Queue:
    """A closed system with a fixed number of users.

    Each of `users` sends a request, waits for the response, thinks for `think_seconds`, and repeats. All
    servers together give at most `most_per_second` responses; one response takes a server `service_seconds`.
    `most_per_second` * `service_seconds` is the number of servers, which must be at least 1.
    """

    most_per_second: float
    service_seconds: float
    users: int
    think_seconds: float

    @property
    def arrivals_per_second(self) -> float:
        """The rate of requests if no request had to wait for a server."""
        return self.users / (self.service_seconds + self.think_seconds) if self.users else 0.0

    @property
    def utilisation(self) -> float:
        """Arrivals divided by the maximum rate of responses; from 1 on, the system is saturated."""
        return self.arrivals_per_second / self.most_per_second

    @property
    def answers_per_second(self) -> float:
        """The rate of responses: that of arrivals, or the maximum."""
        return min(self.arrivals_per_second, self.most_per_second)

    @property
    def response_seconds(self) -> float:
        """The mean response time, including the time in the queue."""
        servers = round(self.most_per_second * self.service_seconds)
        saturated = self.users / self.most_per_second - self.think_seconds
        if self.utilisation >= 1:
            return max(self.service_seconds, saturated)
        load = self.arrivals_per_second * self.service_seconds
        wait = erlang_c(servers, load) * self.service_seconds / (servers - load)
        # A waiting user sends no other request, so the queue can't be longer than the number of users.
        return self.service_seconds + min(wait, self.users * self.service_seconds / servers)

    @property
    def most_users(self) -> int:
        """The number of users at which the utilisation is `COMFORTABLE`, at this think time."""
        return math.floor(COMFORTABLE * self.most_per_second * (self.service_seconds + self.think_seconds))


def erlang_c(servers: int, load: float) -> float:
    """The fraction of arrivals that find all servers busy; `load`, below `servers`, is the mean number of busy ones."""
    # Computed from Erlang's B formula, whose recursion does not overflow for any number of servers.
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return servers * blocked / (servers - load * (1 - blocked))
