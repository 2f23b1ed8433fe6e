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
        self._fixed: dict[type[User], int] = {}

    def settle(self, options: Any) -> None:
        """Prepare the plan, and give its writers a fixed count; all other selected users are readers."""
        self.plan.settle(options)
        self._requests = self._failures = 0
        for kind in self.runner.user_classes if self.plan.writers else ():
            if kind.__name__ == "Indecisive":
                self._fixed.setdefault(kind, kind.fixed_count)
                kind.fixed_count = self.plan.writers

    def restore(self) -> None:
        """Restore the counts, because the next test of the web UI may have another shape."""
        for kind, count in self._fixed.items():
            kind.fixed_count = count
        self._fixed.clear()

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


def shape_of(name: str) -> type[PlannedShape]:
    """The class of a shape by the name of its plan; locust shows the name of the class and its docstring."""
    plan = PLANS[name]
    return type(plan.__name__, (PlannedShape,), {"__doc__": plan.__doc__, "plan_name": name, "abstract": False})


Smoke, Steady, Ramp, Storm, ReadersAndWriters, Endurance = map(shape_of, PLANS)
