"""Queueing theory: how long users wait for one of several servers.

- arrivals a second = users / (service time + think time), and answers a second = servers / service
  time (Little's law; Lazowska, Zahorjan, Graham, Sevcik: Quantitative System Performance, 1984,
  chapters 3 and 5);
- the wait below saturation is that of M/M/c, by Erlang's C formula (Kleinrock: Queueing Systems,
  volume 1, 1975, section 3.5), as for users who ask independently; beyond it the interactive
  response time law holds, users / answers a second - think time.
"""

import math
from dataclasses import dataclass

# Above it the wait grows faster than the load, and one machine's bad minute is everybody's.
COMFORTABLE = 0.8


@dataclass(frozen=True)
class Queue:
    """Users who ask, wait for the answer, think for `think_seconds`, and ask again.

    The servers answer `most_per_second` together, and each takes `service_seconds` for an answer.
    """

    most_per_second: float
    service_seconds: float
    users: int
    think_seconds: float

    @property
    def arrivals_per_second(self) -> float:
        """How many the users would ask if each answer took no longer than its service time."""
        return self.users / (self.service_seconds + self.think_seconds) if self.users else 0.0

    @property
    def utilisation(self) -> float:
        """Arrivals as a share of what it answers; from 1 on there is a queue that grows until users wait."""
        return self.arrivals_per_second / self.most_per_second

    @property
    def answers_per_second(self) -> float:
        """What users get."""
        return min(self.arrivals_per_second, self.most_per_second)

    @property
    def response_seconds(self) -> float:
        """The mean time until an answer, queue and all."""
        servers = round(self.most_per_second * self.service_seconds)
        saturated = self.users / self.most_per_second - self.think_seconds
        if self.utilisation >= 1:
            return max(self.service_seconds, saturated)
        load = self.arrivals_per_second * self.service_seconds
        wait = erlang_c(servers, load) * self.service_seconds / (servers - load)
        # Users who wait ask nothing, so that no more than all of them can be in the queue.
        return self.service_seconds + min(wait, self.users * self.service_seconds / servers)

    @property
    def most_users(self) -> int:
        """How many users it takes comfortably at this think time."""
        return math.floor(COMFORTABLE * self.most_per_second * (self.service_seconds + self.think_seconds))


def erlang_c(servers: int, load: float) -> float:
    """The share of arrivals that find all servers busy, `load` being the mean number of busy ones, below `servers`."""
    # By Erlang's B, whose recursion stays within what a float holds for any number of servers.
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return servers * blocked / (servers - load * (1 - blocked))
