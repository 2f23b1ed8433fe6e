"""The patterns of moments that jobs look up. This module imports neither locust nor gevent."""

import random
from collections.abc import Callable
from itertools import accumulate

from cdb_rest.domain.moment import Moment
from cdb_rest.scenarios.layouts import RANDOM_MOMENTS, RUN_SECONDS

RANDOM, FIRST, LAST, FIXED, RUN_STORM = PATTERNS = ("random", "first", "last", "fixed", "run-storm")
BEGINNING, END = Moment(0, 0), Moment(RANDOM_MOMENTS - 1, RANDOM_MOMENTS - 1)
# The number of runs that have jobs at the same time; the n-th newest has 1/n of the jobs of the newest (Zipf's law).
RECENT_RUNS = 10


def drawing(pattern: str, layout: str, last_major: int, *, fixed: Moment, seed: int) -> Callable[[], Moment]:
    """A function that draws the moment of a job.

    `random` draws where the layout has data: anywhere in 0…2^31-1 for the random layout, otherwise in the runs
    (majors) up to `last_major`, the last major with a start. `run-storm` draws one of the newest runs, the
    newest most often. All processes have the same runs; in the random layout these are moments that depend on
    `seed`. Raises `KeyError` for an unknown pattern.
    """
    runs = _recent_runs(layout, last_major, seed)
    weights = list(accumulate(1 / rank for rank in range(1, len(runs) + 1)))
    return {
        RANDOM: lambda: _anywhere(layout, last_major),
        FIRST: lambda: BEGINNING,
        LAST: lambda: END,
        FIXED: lambda: fixed,
        RUN_STORM: lambda: random.choices(runs, cum_weights=weights)[0],
    }[pattern]


def _anywhere(layout: str, last_major: int) -> Moment:
    if layout == "random":
        return Moment(random.randrange(RANDOM_MOMENTS), random.randrange(RANDOM_MOMENTS))
    # Runs are numbered from 1, the majors of the sequential layout from 0. A minor after the end of a run is
    # valid as well.
    first = 0 if layout == "sequential" else 1
    return Moment(random.randint(min(first, last_major), last_major), random.randrange(RUN_SECONDS[1]))


def _recent_runs(layout: str, last_major: int, seed: int) -> list[Moment]:
    if layout == "random":
        source = random.Random(f"{seed}/recent runs")
        return [Moment(source.randrange(RANDOM_MOMENTS), source.randrange(RANDOM_MOMENTS)) for _ in range(RECENT_RUNS)]
    return [Moment(max(0, last_major - place), 0) for place in range(RECENT_RUNS)]
