"""The shapes as locust classes; each delegates to its plan."""

import logging
from typing import Any

from locust import LoadTestShape, User

from loadtests.shapes.plans import PLANS, Seen

logger = logging.getLogger(__name__)


class PlannedShape(LoadTestShape):
    """A shape that follows its plan; --users is the peak and --run-time the duration."""

    abstract = True
    use_common_options = True
    plan_name = ""

    def __init__(self) -> None:
        super().__init__()
        self.plan = PLANS[self.plan_name]()
        self._requests = self._failures = 0

    def settle(self, options: Any) -> None:
        """Prepare the plan; called before each test."""
        self.plan.settle(options)
        self._requests = self._failures = 0

    def restore(self) -> None:
        """Undo changes to user classes; called after each test."""

    def tick(self) -> tuple[int, float] | tuple[int, float, list[type[User]]] | None:
        """The users and spawn rate, which locust requests every second; None ends the test."""
        total = self.runner.stats.total
        requests, failures = total.num_requests - self._requests, total.num_failures - self._failures
        self._requests, self._failures = total.num_requests, total.num_failures
        p95 = total.get_current_response_time_percentile(0.95)
        target = self.plan.target(self.get_run_time(), Seen(self.runner.user_count, requests, failures, p95))
        if target is None and self.plan.over:
            logger.info("%s: %s", self.plan_name, self.plan.over)
        return None if target is None else (target.users, target.rate)


class Smoke(PlannedShape):
    """A few users for some seconds."""

    plan_name = "smoke"


class Steady(PlannedShape):
    """All users from the start."""

    plan_name = "steady"


class Ramp(PlannedShape):
    """More users step by step, until the service breaks."""

    plan_name = "ramp"


class Storm(PlannedShape):
    """Very many jobs at the same moment."""

    plan_name = "storm"


class Endurance(PlannedShape):
    """All users for hours."""

    plan_name = "endurance"


class ReadersAndWriters(PlannedShape):
    """A varying number of readers and a few writers."""

    plan_name = "readers-and-writers"

    def __init__(self) -> None:
        super().__init__()
        self._fixed: dict[type[User], int] = {}

    def settle(self, options: Any) -> None:
        """Give the Indecisive users, which are the writers, a fixed count; all other selected users are readers."""
        super().settle(options)
        for kind in self.runner.user_classes:
            if kind.__name__ == "Indecisive":
                self._fixed.setdefault(kind, kind.fixed_count)
                kind.fixed_count = self.plan.writers

    def restore(self) -> None:
        """Restore the counts, because the next test of the web UI may have another shape."""
        for kind, count in self._fixed.items():
            kind.fixed_count = count
        self._fixed.clear()
