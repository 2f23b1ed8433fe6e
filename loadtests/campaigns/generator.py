"""The number of locust processes and users for jobs that start at a given rate."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from loadtests.campaigns.locusts import Load

# A Python process that uses more of a core handles responses late.
FULL = 0.8
MOST_USERS = 100
CONSTANT = "at a constant rate"
# The part of locust's run time before the first job.
START_SECONDS = 2.0


@dataclass
class Generator:
    """A load generator that adds a process when its processes are full, up to the number of cores."""

    processes: int = 1

    def grows(self, cores: float | None) -> bool:
        """Add a process if one that used `cores` of a core was full; returns whether one was added."""
        if cores is None or cores < FULL or self.processes >= len(os.sched_getaffinity(0)):
            return False
        self.processes += 1
        return True

    def load(self, users: Mapping[str, int], rate: float, seconds: float, options: Mapping[str, str]) -> Load:
        """A load of `rate` jobs per second for `seconds`, shared equally by all users.

        At a constant rate it has exactly the jobs that are due in this time; at random the run time of locust
        limits them.
        """
        count = max(self.processes, min(MOST_USERS, round(rate)))
        each = rate / count
        settings = {"start-jobs": CONSTANT, **options, "jobs-per-second": f"{each:.6g}", "start-together": True}
        if settings["start-jobs"] != CONSTANT:
            return Load(users, count, seconds=seconds + START_SECONDS, options=settings, processes=self.processes)
        settings["jobs-per-user"] = max(1, round(each * seconds))
        return Load(users, count, options=settings, processes=self.processes)
