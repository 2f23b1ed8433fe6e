"""How many processes and users of locust start jobs at a rate."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from loadtests.campaigns.locusts import Load

# Python's share of a core from which on answers are noticed late.
FULL = 0.8
MOST_USERS = 100
CONSTANT = "at a constant rate"
# Until the first job, of the time that locust is given.
START_SECONDS = 2.0


@dataclass
class Generator:
    """Begins with some processes, and takes one more when they are full, up to as many as there are cores."""

    processes: int = 1

    def grows(self, cores: float | None) -> bool:
        """Whether a process that used so much of a core was full and there is one more from now on."""
        if cores is None or cores < FULL or self.processes >= len(os.sched_getaffinity(0)):
            return False
        self.processes += 1
        return True

    def load(self, users: Mapping[str, int], rate: float, seconds: float, options: Mapping[str, str]) -> Load:
        """So many jobs a second, of all users together, each of whom starts them at the same rate: at a constant rate exactly as
        many jobs as are due in these seconds, at random as many as come in the time that locust is given."""
        count = max(self.processes, min(MOST_USERS, round(rate)))
        each = rate / count
        told = {"start-jobs": CONSTANT, **options, "jobs-per-second": f"{each:.6g}", "start-together": True}
        if told["start-jobs"] != CONSTANT:
            return Load(users, count, seconds=seconds + START_SECONDS, options=told, processes=self.processes)
        told["jobs-per-user"] = max(1, round(each * seconds))
        return Load(users, count, options=told, processes=self.processes)
