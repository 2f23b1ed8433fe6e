"""Where the intervals of one payload type lie: three layouts, each the same for the same random source on every machine."""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate

from cdb_rest.domain.moment import END_OF_TIME, Moment
from cdb_rest.scenarios.definitions import HOUR, MINUTE, Scenario

# Starts and ends of IOVs, by start.
Intervals = Iterator[tuple[Moment, Moment]]

# Moments of the random layout are drawn from 0…2^31-1, as in the load study (docs/load-tests.md).
RANDOM_MOMENTS = 2**31

RUN_SECONDS = (20 * MINUTE, 3 * HOUR)
# Types are updated at the scenario's rate, or so many times more slowly; all have their first payload from the first run on.
SLOWNESS = (1, 1, 2, 4)
# An update comes this much earlier or later than it is due.
JITTER = 0.3
# One interval in so many is over before the next one starts, after this part of its time.
GAP_EVERY = 20
GAP_AFTER = 0.8


def sequential(source: random.Random, scenario: Scenario, seed: int) -> Intervals:
    """Starts at majors 0, 1, 2…, each open, so that the next one ends it."""
    for major in range(scenario.iovs_per_type):
        yield Moment(major, 0), END_OF_TIME


def uniform(source: random.Random, scenario: Scenario, seed: int) -> Intervals:
    """Starts anywhere, no two alike; each open."""
    starts: set[Moment] = set()
    while len(starts) < scenario.iovs_per_type:
        starts.add(Moment(source.randrange(RANDOM_MOMENTS), source.randrange(RANDOM_MOMENTS)))
    for start in sorted(starts):
        yield start, END_OF_TIME


def realistic(source: random.Random, scenario: Scenario, seed: int) -> Intervals:
    """A data-taking period: major is the run, from 1 on, minor the second within it.

    A type is updated at a rate of its own, not quite regularly. Intervals end where the next one starts, some earlier;
    the last one is open.
    """
    runs = run_starts(scenario, seed)
    pace = scenario.update_seconds * source.choice(SLOWNESS)
    now = 0
    for number in range(scenario.iovs_per_type):
        start, length = now, max(1, round(pace * source.uniform(1 - JITTER, 1 + JITTER)))
        now += length
        is_last = number == scenario.iovs_per_type - 1
        over = start + max(1, round(length * GAP_AFTER)) if source.randrange(GAP_EVERY) == 0 else now
        yield _moment(runs, start), END_OF_TIME if is_last else _moment(runs, over)


@cache
def run_starts(scenario: Scenario, seed: int) -> list[int]:
    """The seconds at which the runs of a scenario start, for as long as its slowest type is updated."""
    source = random.Random(f"{seed}/{scenario.name}/runs")  # noqa: S311 -- reproducible data, not secrets
    longest = scenario.update_seconds * max(SLOWNESS) * (1 + JITTER) * scenario.iovs_per_type
    count = int(longest / RUN_SECONDS[0]) + 1
    return list(accumulate((source.randrange(*RUN_SECONDS) for _ in range(count)), initial=0))


def _moment(runs: list[int], second: int) -> Moment:
    run = bisect_right(runs, second)
    return Moment(run, second - runs[run - 1])


LAYOUTS: dict[str, Callable[[random.Random, Scenario, int], Intervals]] = {
    "realistic": realistic,
    "random": uniform,
    "sequential": sequential,
}
