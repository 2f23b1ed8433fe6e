"""The patterns of moments that jobs look up. This module imports neither locust nor gevent."""

import random
from collections.abc import Callable
from itertools import accumulate
from types import ModuleType

from cdb_rest.rules.moment import Moment
from cdb_rest.scenarios.layouts import RANDOM_MOMENTS, RUN_SECONDS

RANDOM, FIRST, LAST, FIXED, RUN_STORM = PATTERNS = ("random", "first", "last", "fixed", "run-storm")
BEGINNING, END = Moment(0, 0), Moment(RANDOM_MOMENTS - 1, RANDOM_MOMENTS - 1)
# The number of runs that have jobs at the same time; the n-th newest has 1/n of the jobs of the newest (Zipf's law).
RECENT_RUNS = 10


def drawing(
    pattern: str,
    layout: str = "random",
    last_major: int = RANDOM_MOMENTS - 1,
    *,
    fixed: Moment = BEGINNING,
    seed: int = 1,
    source: random.Random | ModuleType = random,
) -> Callable[[], Moment]:
    """A function that draws the moment of a job, with the generator of random numbers `source`.

    `random` draws where the layout has data: anywhere in 0…2^31-1 for the random layout, otherwise in the runs
    (majors) up to `last_major`, the last major with a start. `run-storm` draws one of the newest runs, the
    newest most often. All processes have the same runs; in the random layout these are moments that depend on
    `seed`. Raises `KeyError` for an unknown pattern.
    """
    runs = _recent_runs(layout, last_major, seed)
    weights = list(accumulate(1 / rank for rank in range(1, len(runs) + 1)))
    return {
        RANDOM: lambda: _anywhere(source, layout, last_major),
        FIRST: lambda: BEGINNING,
        LAST: lambda: END,
        FIXED: lambda: fixed,
        RUN_STORM: lambda: source.choices(runs, cum_weights=weights)[0],
    }[pattern]


def _anywhere(source: random.Random | ModuleType, layout: str, last_major: int) -> Moment:
    if layout == "random":
        return Moment(source.randrange(RANDOM_MOMENTS), source.randrange(RANDOM_MOMENTS))
    # Runs are numbered from 1, the majors of the sequential layout from 0. A minor after the end of a run is
    # valid as well.
    first = 0 if layout == "sequential" else 1
    return Moment(source.randint(min(first, last_major), last_major), source.randrange(RUN_SECONDS[1]))


def _recent_runs(layout: str, last_major: int, seed: int) -> list[Moment]:
    if layout == "random":
        source = random.Random(f"{seed}/recent runs")
        return [_anywhere(source, layout, last_major) for _ in range(RECENT_RUNS)]
    return [Moment(max(0, last_major - place), 0) for place in range(RECENT_RUNS)]
