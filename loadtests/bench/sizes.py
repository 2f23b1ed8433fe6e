"""The sizes of a bench run: the default and the options --quick, --large and --tiny as numbers."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    """The size of a bench run, by default the full one; durations are in seconds, scenarios are names.

    The parts define the use of each value.
    """

    name: str = "full"
    # The largest scenario, used for the floor and the ratios.
    largest: str = "worst-case"
    strategy_scenarios: tuple[str, ...] = ("tiny", "tiny-moderate", "moderate", "heavy-usage", "worst-case")
    # The patterns for which whole responses are measured; database time is measured for all.
    http_patterns: tuple[str, ...] = ("first", "random", "last")
    calls: int = 100
    calls_seconds: float = 1.0
    # The seconds of a point of most parts.
    wrk_seconds: int = 2
    # The limit for a run of a slow strategy.
    longest_seconds: int = 12
    rounds: int = 5
    floor_seconds: int = 5
    search_seconds: int = 3
    client_counts: tuple[int, ...] = (1, 2, 3, 4, 8)
    growth: tuple[int, ...] = (1, 10, 100, 1_000, 5_000, 26_000)
    growth_repeats: int = 50
    # For the part history: changes of the largest scenario, IOVs that are appended, replacements of one interval.
    history_changes: int = 1_000
    history_appends: int = 26_000
    history_replacements: tuple[int, ...] = (1, 10, 100, 1_000)
    worker_counts: tuple[int, ...] = (1, 2, 3, 4)
    connection_counts: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    worker_scenario: str = "worst-case"
    clone_scenarios: tuple[str, ...] = ("moderate", "heavy-usage", "worst-case")
    clone_rounds: int = 3
    # The longest time for lookups during a clone.
    look_seconds: int = 10
    cross_check_seconds: int = 10
    # For the parts serving, replicas and overload: tag to clone, connections, jobs of a storm, storms, seconds
    # of a point.
    largest_clone: str = "heavy-usage"
    serving_connections: int = 64
    jobs: int = 10_000
    storm_rounds: int = 3
    overload_seconds: int = 15
    # Whether the size is too small for verdicts: ratios of a few milliseconds are mostly the cost of an HTTP request.
    too_small: bool = False


FULL = Sizes()
LARGE = replace(FULL, name="large", growth=(*FULL.growth, 250_000))
QUICK = Sizes(
    name="quick",
    largest="heavy-usage",
    strategy_scenarios=("tiny", "heavy-usage"),
    http_patterns=("random",),
    calls=20,
    calls_seconds=0.3,
    wrk_seconds=1,
    longest_seconds=3,
    rounds=3,
    floor_seconds=1,
    search_seconds=1,
    client_counts=(2, 4),
    growth=(1, 10, 100, 500),
    growth_repeats=10,
    history_changes=100,
    history_appends=1_000,
    history_replacements=(10, 100),
    worker_counts=(1, 3),
    connection_counts=(1, 4, 16),
    worker_scenario="heavy-usage",
    clone_scenarios=("moderate", "heavy-usage"),
    clone_rounds=1,
    look_seconds=2,
    cross_check_seconds=2,
    largest_clone="moderate",
    serving_connections=16,
    jobs=2_000,
    storm_rounds=1,
    overload_seconds=5,
    too_small=True,
)
# For the tests of the harness itself.
TINY = replace(
    QUICK,
    name="tiny",
    largest="tiny",
    strategy_scenarios=("tiny",),
    rounds=1,
    client_counts=(2,),
    growth=(1, 10),
    history_changes=5,
    history_appends=5,
    history_replacements=(3,),
    worker_scenario="tiny",
    clone_scenarios=("tiny",),
    cross_check_seconds=1,
    largest_clone="tiny",
    jobs=100,
    overload_seconds=1,
)
