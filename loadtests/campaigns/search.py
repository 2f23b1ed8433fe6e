"""Finds the highest rate that is sustained: in steps until it breaks, between the last two, and held."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Attempt(Protocol):
    """What a try at a rate must tell."""

    @property
    def sustained(self) -> bool:
        """Whether the rate was sustained."""


Tried = TypeVar("Tried", bound=Attempt)
# (rate, what the try is for, seconds or None for the usual ones) -> what came of it.
Try = Callable[[float, str, float | None], Tried]

RAMP, AGAIN, BISECT, HOLD = "raising", "once more", "between", "holding"


@dataclass(frozen=True)
class Plan:
    """Rates in jobs a second: the first one and the highest that is tried, the factor of each step, the relation of the lowest
    rate that broke to the highest that did not at which the search ends, how long the found rate is held (seconds), the
    factor by which it is lowered when that fails, and how often."""

    start: float
    factor: float
    most: float
    precision: float
    hold_seconds: float
    lower: float = 0.95
    least: float = 0.5
    holds: int = 6


@dataclass
class Found(Generic[Tried]):
    """`tries` has (rate, what for, what came of it) in their order; `held` is the rate that was sustained in the end, or None;
    `broke` the lowest rate that was not, or None where none was found."""

    tries: list[tuple[float, str, Tried]] = field(default_factory=list)
    held: float | None = None
    broke: float | None = None

    def attempt(self, at: Try, rate: float, purpose: str, seconds: float | None = None) -> bool:
        """Try a rate and keep what came of it; whether it was sustained."""
        result = at(rate, purpose, seconds)
        self.tries.append((rate, purpose, result))
        if not result.sustained:
            self.broke = rate if self.broke is None else min(rate, self.broke)
        return result.sustained

    def last(self, rate: float | None) -> Tried | None:
        """What came of the last try at a rate."""
        return next((result for tried, _, result in reversed(self.tries) if tried == rate), None)


def search(at: Try, plan: Plan) -> Found:
    """A rate counts as broken in the first part only if it breaks twice, since a hiccup of the machine would end it too low."""
    found: Found = Found()
    good = _ramp(at, plan, found)
    while good and found.broke and found.broke > good * plan.precision:
        between = math.sqrt(good * found.broke)
        if found.attempt(at, between, BISECT):
            good = between
    for _ in range(plan.holds):
        if good is None or good < plan.least:
            return found
        if found.attempt(at, good, HOLD, plan.hold_seconds):
            found.held = good
            return found
        good *= plan.lower
    return found


def _ramp(at: Try, plan: Plan, found: Found) -> float | None:
    """The highest rate that was sustained on the way up, or on the way down where the first one was not."""
    rate, good = plan.start, None
    while rate <= plan.most:
        if found.attempt(at, rate, RAMP):
            good, rate = rate, rate * plan.factor
            continue
        if found.attempt(at, rate, AGAIN):
            # The first try does not count any more.
            found.broke, good, rate = None, rate, rate * plan.factor
            continue
        break
    while good is None and rate > plan.least:
        rate /= plan.factor
        if found.attempt(at, rate, RAMP):
            good = rate
    return good
