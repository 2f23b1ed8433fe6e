"""The search for the highest sustained rate: rising steps, a bisection, and a final longer try."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# (rate, purpose, seconds or None for the default) -> a result with the attribute `sustained`.
Try = Callable[[float, str, float | None], Any]

RAMP, AGAIN, BISECT, HOLD = "raising", "once more", "between", "holding"


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
    """The result of a search.

    `tries` are (rate, result) in their order; `held` is the rate that was finally sustained, or None;
    `failed` is the lowest rate that was not sustained, or None.
    """

    tries: list[tuple[float, Any]] = field(default_factory=list)
    held: float | None = None
    failed: float | None = None

    def attempt(self, at: Try, rate: float, purpose: str, seconds: float | None = None) -> bool:
        """Try a rate and record the result; returns whether it was sustained."""
        result = at(rate, purpose, seconds)
        self.tries.append((rate, result))
        if not result.sustained:
            self.failed = rate if self.failed is None else min(rate, self.failed)
        return result.sustained

    def last(self, rate: float | None) -> Any:
        """The result of the last try at a rate; None without one."""
        return next((result for tried, result in reversed(self.tries) if tried == rate), None)


def search(at: Try, plan: Plan) -> Found:
    """Search for the highest sustained rate.

    While the rate is raised, it counts as failed only if it fails twice: otherwise a short disturbance of the
    machine would end the search too low.
    """
    found = Found()
    good = _ramp(at, plan, found)
    while good and found.failed and found.failed > good * plan.precision:
        between = math.sqrt(good * found.failed)
        if found.attempt(at, between, BISECT):
            good = between
    for _ in range(plan.holds):
        if good is None or good < plan.least:
            break
        if found.attempt(at, good, HOLD, plan.hold_seconds):
            found.held = good
            break
        good *= plan.lower
    return found


def _ramp(at: Try, plan: Plan, found: Found) -> float | None:
    """The highest sustained rate of rising steps, or of falling ones if the first was not sustained; None if none."""
    rate, good = plan.start, None
    while rate <= plan.most:
        if not found.attempt(at, rate, RAMP):
            if not found.attempt(at, rate, AGAIN):
                break
            # The first try no longer counts.
            found.failed = None
        good, rate = rate, rate * plan.factor
    while good is None and rate > plan.least:
        rate /= plan.factor
        if found.attempt(at, rate, RAMP):
            good = rate
    return good
