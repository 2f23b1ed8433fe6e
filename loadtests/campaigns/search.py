"""The search for the highest sustained rate: rising steps, a bisection, and a final longer try."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# (rate, purpose, seconds or None for the default) -> a result with the attributes `rate` and `sustained`.
Try = Callable[[float, str, float | None], Any]


@dataclass(frozen=True)
class Plan:
    """The parameters of a search; rates are in jobs per second.

    `start` and `most` are the first and the highest rate, `factor` that of each step. The bisection ends when
    the lowest rate that failed is at most `precision` times the highest that did not. The found rate is held for
    `hold_seconds`; if that fails it is multiplied by `lower`, up to `holds` tries and down to `least`.
    """

    start: float
    factor: float
    most: float
    precision: float
    hold_seconds: float
    lower: float = 0.95
    least: float = 0.5
    holds: int = 6


@dataclass
class Found:
    """The results of a search.

    `tries` are in their order; `held` is the one at the rate that was finally sustained, `failed` the last one at the
    lowest rate that was not sustained, if there are any.
    """

    tries: list[Any] = field(default_factory=list)
    held: Any = None
    failed: Any = None

    def attempt(self, at: Try, rate: float, purpose: str, seconds: float | None = None) -> bool:
        """Try a rate and record the result; returns whether it was sustained."""
        result = at(rate, purpose, seconds)
        self.tries.append(result)
        if not result.sustained and (self.failed is None or rate <= self.failed.rate):
            self.failed = result
        return result.sustained


def search(at: Try, plan: Plan) -> Found:
    """Search for the highest sustained rate.

    While the rate is raised, it counts as failed only if it fails twice: otherwise a short disturbance of the
    machine would end the search too low.
    """
    found = Found()
    good = _ramp(at, plan, found)
    while good and found.failed and found.failed.rate > good * plan.precision:
        between = math.sqrt(good * found.failed.rate)
        if found.attempt(at, between, "between"):
            good = between
    for _ in range(plan.holds):
        if good is None or good < plan.least:
            break
        if found.attempt(at, good, "holding", plan.hold_seconds):
            found.held = found.tries[-1]
            break
        good *= plan.lower
    return found


def _ramp(at: Try, plan: Plan, found: Found) -> float | None:
    """The highest sustained rate of rising steps, or of falling ones if the first was not sustained; None if none."""
    rate, good = plan.start, None
    while rate <= plan.most:
        if not found.attempt(at, rate, "raising"):
            if not found.attempt(at, rate, "once more"):
                break
            # The first try no longer counts.
            found.failed = None
        good, rate = rate, rate * plan.factor
    while good is None and rate > plan.least:
        rate /= plan.factor
        if found.attempt(at, rate, "raising"):
            good = rate
    return good
