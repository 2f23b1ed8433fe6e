"""What campaigns of closed loops share: lookups under one load, measured again in turns, and shown with their spread."""

import argparse
import time
import urllib.request
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.client import moments
from loadtests.content.starts import Starts
from loadtests.content.tags import scenario_of
from loadtests.recording.outcome import OK
from loadtests.reporting import summaries
from loadtests.reporting.figures import Spread
from loadtests.reporting.findings import Run
from loadtests.reporting.result import Target
from loadtests.service import PREFIX

NAME = "lookup"
WARM_UP_SECONDS, QUICK_WARM_UP_SECONDS, WARM_UP_THREADS = 1.0, 0.2, 16
WARM_UP_PATIENCE_SECONDS = 120
QUICK_CALLS = 10

COLUMNS = (
    "lookups", "lookups/s", "busiest second", "p50 ms", "p95 ms", "p99 ms", "rows per answer", "failed requests",
    "generator, cores",
)  # fmt: skip
Point = TypeVar("Point", bound=Hashable)


@dataclass(frozen=True)
class Lookups:
    """The lookups of one run. `rate` is the number of right ones by the wall clock from the first to the end of the last, `peak`
    that of all in the busiest second, None where it all took less than two; times in milliseconds; `rows` is the mean of right
    answers; `failed` counts requests of every kind that failed; `cores` is the generator's CPU at most, None for less than a
    second."""

    count: int
    rate: float
    peak: float | None
    p50: float
    p95: float
    p99: float
    rows: float
    failed: int
    cores: float | None

    @classmethod
    def of(cls, run: Run) -> "Lookups":
        """All zero where nothing was answered."""
        requests = run.recording.requests
        told = summaries.of_recording(requests.where(requests.names == NAME))
        cores = [sample.cpu for sample in run.recording.samples]
        return cls(
            count=told["requests"], rate=told["ok_rate"] or 0.0, peak=float(told["peak_rate"]) if told["seconds"] > 2 else None,
            **{name: told[f"{name}_ms"] or 0.0 for name in ("p50", "p95", "p99")}, rows=told["rows_per_answer"] or 0.0,
            failed=int((run.recording.requests.outcomes != OK).sum()), cores=max(cores) if cores else None,
        )  # fmt: skip


@dataclass
class Repeated:
    """Runs by what they measure, and each of their figures with all its values."""

    runs: dict[Hashable, list[Run]] = field(default_factory=dict)
    measured: dict[Hashable, list[Lookups]] = field(default_factory=dict)

    def add(self, point: Hashable, run: Run) -> None:
        """One more repetition."""
        self.runs.setdefault(point, []).append(run)
        self.measured.setdefault(point, []).append(Lookups.of(run))

    def values(self, point: Hashable, name: str) -> list[float]:
        """A figure of `Lookups` in every repetition that has it."""
        found = [getattr(one, name) for one in self.measured[point]]
        return [value for value in found if value is not None]

    def median(self, point: Hashable, name: str) -> float | None:
        """The middle one of these."""
        values = self.values(point, name)
        return Spread.of(values).median if values else None

    def cells(self, point: Hashable) -> tuple:
        """What a row of a table says of a point, by COLUMNS."""
        spreads = {name: self.values(point, name) for name in ("rate", "peak", "p50", "p95", "p99", "rows", "cores")}
        shown = {name: str(Spread.of(values)) if values else None for name, values in spreads.items()}
        counts = sum(map(int, self.values(point, "count"))), sum(map(int, self.values(point, "failed")))
        times = (shown["p50"], shown["p95"], shown["p99"])
        return (counts[0], shown["rate"], shown["peak"], *times, shown["rows"], counts[1], shown["cores"])

    def raw(self, *names: str) -> list[dict[str, Any]]:
        """A row for each repetition with all its figures; `names` are those of a point's parts."""
        rows = []
        for point, repetitions in self.measured.items():
            parts = dict(zip(names, point if isinstance(point, tuple) else (point,), strict=True))
            rows += [parts | {"repetition": number} | asdict(one) for number, one in enumerate(repetitions, 1)]
        return rows

    @property
    def all_runs(self) -> list[Run]:
        """Every run, by point."""
        return [run for runs in self.runs.values() for run in runs]

    def targets(self, with_rows: Sequence[Hashable]) -> list[Target]:
        """Every answer of every run is right, and lookups of these points return rows."""
        requests = [run.recording.requests.outcomes for run in self.all_runs]
        right = sum(int((outcomes == OK).sum()) for outcomes in requests) / max(1, sum(map(len, requests)))
        fewest = min((min(self.values(point, "rows")) for point in with_rows), default=None)
        return [
            Target("right answers", right * 100, 100, at_most=False, unit="%"),
            Target("fewest rows per answer, where there are some", fewest, 1, at_most=False),
        ]


def in_turns(points: Sequence[Point], repetitions: int) -> Iterator[tuple[int, Point]]:
    """Every point, then every point again, the other way round each second time, so that a machine that gets slower meanwhile
    favours none: the number of the repetition, from 1 on, and the point."""
    for number in range(1, repetitions + 1):
        for point in points if number % 2 else reversed(points):
            yield number, point


def warm_up(stage: Stage, tag: str, pattern: str, *, route: str = "payloadiovs/") -> None:
    """Lookups that nobody counts, for a second, so that threads have their connections and plans, and the database what it
    reads in memory. What the answers have to be is drawn before, if it never was, because users could not begin until it is.

    Raises `OSError` where there is no good answer.
    """
    Starts(scenario_of(tag), "random", seed=1)
    end = time.monotonic() + (QUICK_WARM_UP_SECONDS if stage.quick else WARM_UP_SECONDS)
    address = f"{stage.url}{PREFIX}{route}?gtName={tag}"

    def ask(number: int) -> None:
        for moment in moments(pattern, seed=1000 + number):
            with urllib.request.urlopen(f"{address}&{moment}", timeout=WARM_UP_PATIENCE_SECONDS) as answer:  # noqa: S310
                answer.read()
            if time.monotonic() > end:
                break

    with ThreadPoolExecutor(WARM_UP_THREADS) as pool:
        list(pool.map(ask, range(WARM_UP_THREADS)))


def lookups_alone(
    stage: Stage, tag: str, threads: int, seconds: float, *, route: str = "payloadiovs/", patience: float = 60
) -> Load:
    """Threads that ask for lookups at random moments and for nothing else, each again when it has its answer, for some seconds;
    a few times each where it has to be quick. `route` may be that of a strategy; `patience` is in seconds."""
    options: dict[str, str | int | float] = {"lookup-tag": tag, "route": route, "patience": patience}
    if stage.quick:
        # However slow the machine is, there are answers.
        options["jobs-per-user"] = QUICK_CALLS
    return Load(
        {"StudyLookup": 1}, count=threads, seconds=None if stage.quick else seconds, options=options, campaign_users=True
    )  # fmt: skip


def add_scenario(parser: argparse._ArgumentGroup, default: str) -> None:
    """An option for the scenario that is asked about."""
    parser.add_argument("--scenario", choices=list(SCENARIOS), help=f"to ask about ({default})")
