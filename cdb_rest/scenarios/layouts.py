"""The layouts of a scenario: three distributions of the intervals of one payload type.

`source` determines the intervals of the payload type. `seed` determines the runs, which all types of a scenario share.
The same `seed`, and the same `source` in the same state, give the same intervals on every machine.
"""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate

from cdb_rest.rules.moment import END_OF_TIME, Moment
from cdb_rest.scenarios.definitions import HOUR, MINUTE, Scenario

# Starts and ends of IOVs, ordered by start.
Intervals = Iterator[tuple[Moment, Moment]]

# Moments of the random layout are drawn from 0…2^31-1, as in the load study (docs/load-tests.md).
RANDOM_MOMENTS = 2**31

# Range of the length of a run.
RUN_SECONDS = (20 * MINUTE, 3 * HOUR)
# The factors by which the time between updates of a type is longer than that of the scenario. Every type has its first
# payload at the start of the first run.
SLOWNESS = (1, 1, 2, 4)
# The time between two updates varies by up to this fraction.
JITTER = 0.3
# On average, one of GAP_EVERY intervals ends before the next one starts, after the fraction GAP_AFTER of its length.
GAP_EVERY = 20
GAP_AFTER = 0.8


def sequential(source: random.Random, scenario: Scenario, seed: int) -> Intervals:
    """Open intervals that start at majors 0, 1, 2…; each is valid until the next one starts."""
    for major in range(scenario.iovs_per_type):
        yield Moment(major, 0), END_OF_TIME


def uniform(source: random.Random, scenario: Scenario, seed: int) -> Intervals:
    """Open intervals with different, uniformly distributed random starts."""
    starts: set[Moment] = set()
    while len(starts) < scenario.iovs_per_type:
        starts.add(Moment(source.randrange(RANDOM_MOMENTS), source.randrange(RANDOM_MOMENTS)))
    for start in sorted(starts):
        yield start, END_OF_TIME


def realistic(source: random.Random, scenario: Scenario, seed: int) -> Intervals:
    """A data-taking period: major is the number of the run, from 1, and minor the second within it.

    Each type has its own rate of updates, with random variations. Intervals end where the next one starts, some earlier.
    The last interval is open.
    """
    runs = run_starts(scenario, seed)
    mean = scenario.update_seconds * source.choice(SLOWNESS)
    now = 0
    for number in range(scenario.iovs_per_type):
        start, length = now, max(1, round(mean * source.uniform(1 - JITTER, 1 + JITTER)))
        now += length
        is_last = number == scenario.iovs_per_type - 1
        end = start + max(1, round(length * GAP_AFTER)) if source.randrange(GAP_EVERY) == 0 else now
        yield _moment(runs, start), END_OF_TIME if is_last else _moment(runs, end)


@cache
def run_starts(scenario: Scenario, seed: int) -> list[int]:
    """The start times of a scenario's runs, in seconds, until after the last update of its slowest type.

    The list is cached, so callers must not change it.
    """
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
