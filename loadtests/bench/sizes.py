"""The sizes of a bench run: the default and the options --quick, --large and --tiny as numbers."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    """The size of a bench run, by default the full one; durations are in seconds.

    The parts define the use of each value.
    """

    name: str = "full"
    # By size. The last one is used for the floor and the ratios, the one before it where a tag is cloned.
    scenarios: tuple[str, ...] = ("moderate", "heavy-usage", "worst-case")
    rounds: int = 5
    # The seconds of a round, and of a point that is measured once.
    seconds: int = 5
    short_seconds: int = 2
    client_counts: tuple[int, ...] = (1, 2, 3, 4, 8)
    # IOVs per type of the tags, and the number of requests of each kind.
    growth: tuple[int, ...] = (1, 10, 100, 1_000, 5_000, 26_000)
    growth_repeats: int = 50
    # For the part history: changes of the largest scenario, IOVs that are appended, replacements of one interval.
    history_changes: int = 1_000
    history_appends: int = 26_000
    history_replacements: tuple[int, ...] = (1, 10, 100, 1_000)
    bulk_rounds: int = 3
    # The longest time for lookups beside another activity.
    look_seconds: int = 10
    # For the parts serving and overload: connections, jobs of a burst, seconds of a point.
    serving_connections: int = 64
    jobs: int = 10_000
    overload_seconds: int = 15
    # Whether the size is too small for verdicts: ratios of a few milliseconds are mostly the cost of an HTTP request.
    too_small: bool = False

    @property
    def largest(self) -> str:
        """The largest scenario."""
        return self.scenarios[-1]

    @property
    def cloned(self) -> str:
        """The scenario of the tag that is cloned: the largest but one, if there are several."""
        return self.scenarios[-2:][0]


FULL = Sizes()
LARGE = replace(FULL, name="large", growth=(*FULL.growth, 250_000))
QUICK = Sizes(
    name="quick",
    scenarios=("moderate", "heavy-usage"),
    rounds=3,
    seconds=1,
    short_seconds=1,
    client_counts=(2, 4),
    growth=(1, 10, 100, 500),
    growth_repeats=10,
    history_changes=100,
    history_appends=1_000,
    history_replacements=(10, 100),
    bulk_rounds=1,
    look_seconds=2,
    serving_connections=16,
    jobs=2_000,
    overload_seconds=5,
    too_small=True,
)
# For the tests of the harness itself.
TINY = replace(
    QUICK,
    name="tiny",
    scenarios=("tiny",),
    rounds=1,
    client_counts=(2,),
    growth=(1, 10),
    history_changes=5,
    history_appends=5,
    history_replacements=(3,),
    jobs=100,
    overload_seconds=1,
)
