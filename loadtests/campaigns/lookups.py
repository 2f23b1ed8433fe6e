"""Common parts of the campaigns with closed loops: warm-up, repetitions, and figures with their spread."""

import argparse
import time
import urllib.request
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

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
from loadtests.reporting.result import Table, Target
from loadtests.service import PREFIX

NAME = "lookup"
WARM_UP_SECONDS, QUICK_WARM_UP_SECONDS, WARM_UP_THREADS = 1.0, 0.2, 16
WARM_UP_TIMEOUT_SECONDS = 120
QUICK_CALLS = 10

COLUMNS = (
    "lookups", "lookups/s", "busiest second", "p50 ms", "p95 ms", "p99 ms", "rows per answer", "failed requests",
    "generator, cores",
)  # fmt: skip


@dataclass(frozen=True)
class Lookups:
    """The lookups of one run.

    `rate` is the number of correct responses per second, from the start of the first request to the end of the
    last one. `peak` is the number of all lookups in the busiest second, None for runs of two seconds or less.
    `p50`, `p95` and `p99` are in milliseconds. `rows` is the mean over correct responses. `failed` counts
    failed requests of all names. `cores` is the maximum of the generator's CPU, None for runs of less than a
    second.
    """

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
        """The figures of a run; 0 if there is no correct response."""
        requests = run.recording.requests
        of = summaries.of_recording(requests.where(requests.names == NAME))
        cores = [sample.cpu for sample in run.recording.samples]
        return cls(
            count=of["requests"], rate=of["ok_rate"] or 0.0, peak=float(of["peak_rate"]) if of["seconds"] > 2 else None,
            **{name: of[f"{name}_ms"] or 0.0 for name in ("p50", "p95", "p99")}, rows=of["rows_per_answer"] or 0.0,
            failed=int((run.recording.requests.outcomes != OK).sum()), cores=max(cores) if cores else None,
        )  # fmt: skip


@dataclass
class Repeated:
    """The runs of all measured points, and their figures with the values of all repetitions."""

    runs: dict[Hashable, list[Run]] = field(default_factory=dict)
    measured: dict[Hashable, list[Lookups]] = field(default_factory=dict)

    def add(self, point: Hashable, run: Run) -> None:
        """Add a repetition of a point."""
        self.runs.setdefault(point, []).append(run)
        self.measured.setdefault(point, []).append(Lookups.of(run))

    def values(self, point: Hashable, name: str) -> list[float]:
        """The values of a figure of `Lookups` in all repetitions that have it."""
        found = [getattr(one, name) for one in self.measured[point]]
        return [value for value in found if value is not None]

    def median(self, point: Hashable, name: str) -> float | None:
        """The median of a figure of `Lookups`; None without values."""
        values = self.values(point, name)
        return Spread.of(values).median if values else None

    def cells(self, point: Hashable) -> tuple:
        """The cells of a table row about a point, in the order of `COLUMNS`."""
        spreads = {name: self.values(point, name) for name in ("rate", "peak", "p50", "p95", "p99", "rows", "cores")}
        shown = {name: str(Spread.of(values)) if values else None for name, values in spreads.items()}
        counts = sum(map(int, self.values(point, "count"))), sum(map(int, self.values(point, "failed")))
        times = (shown["p50"], shown["p95"], shown["p99"])
        return (counts[0], shown["rate"], shown["peak"], *times, shown["rows"], counts[1], shown["cores"])

    def raw(self, *names: str) -> list[dict[str, Any]]:
        """A row with all figures for each repetition; `names` are the names of the parts of a point."""
        rows = []
        for point, repetitions in self.measured.items():
            parts = dict(zip(names, _parts(point), strict=True))
            rows += [parts | {"repetition": number} | asdict(one) for number, one in enumerate(repetitions, 1)]
        return rows

    def table(self, title: str, heads: Sequence[str], points: Sequence[Hashable]) -> Table:
        """A table with a row for each point; `heads` are the headings of the parts of a point."""
        rows = [(*_parts(point), *self.cells(point)) for point in points]
        return Table(f"{title}: median (least–most) of repetitions", (*heads, *COLUMNS), rows)

    def figures(self, points: Sequence[Hashable], label: str, names: Sequence[str]) -> dict[str, list[float]]:
        """The values of figures of `Lookups`, for `compare`; `label` is a format of the parts of a point."""
        units = {"rate": "lookups/s"}
        return {
            f"{label.format(*_parts(point))}: {units.get(name, f'{name} ms')}": self.values(point, name)
            for point in points
            for name in names
        }

    @property
    def all_runs(self) -> list[Run]:
        """All runs, grouped by point."""
        return [run for runs in self.runs.values() for run in runs]

    def targets(self, with_rows: Sequence[Hashable]) -> list[Target]:
        """The targets that all responses are correct and that lookups of the points `with_rows` return rows."""
        requests = [run.recording.requests.outcomes for run in self.all_runs]
        right = sum(int((outcomes == OK).sum()) for outcomes in requests) / max(1, sum(map(len, requests)))
        fewest = min((min(self.values(point, "rows")) for point in with_rows), default=None)
        return [
            Target("correct responses", right * 100, 100, at_most=False, unit="%"),
            Target("fewest rows per response, where rows are expected", fewest, 1, at_most=False),
        ]


def _parts(point: Hashable) -> tuple:
    return point if isinstance(point, tuple) else (point,)


def warm_up(stage: Stage, tag: str, pattern: str, *, route: str = "payloadiovs/") -> None:
    """Send uncounted lookups for a second, so that threads have connections and plans, and data are in memory.

    The expected rows are generated first, if they do not exist, because users cannot begin without them. Raises
    `OSError` if a lookup fails.
    """
    Starts(scenario_of(tag), "random", seed=1)
    end = time.monotonic() + (QUICK_WARM_UP_SECONDS if stage.quick else WARM_UP_SECONDS)
    address = f"{stage.url}{PREFIX}{route}?gtName={tag}"

    def send(number: int) -> None:
        for moment in moments(pattern, seed=1000 + number):
            with urllib.request.urlopen(f"{address}&{moment}", timeout=WARM_UP_TIMEOUT_SECONDS) as response:  # noqa: S310
                response.read()
            if time.monotonic() > end:
                break

    with ThreadPoolExecutor(WARM_UP_THREADS) as pool:
        list(pool.map(send, range(WARM_UP_THREADS)))


def lookups_alone(
    stage: Stage, tag: str, threads: int, seconds: float, *, route: str = "payloadiovs/", patience: float = 60
) -> Load:
    """A load of threads that send only lookups at random moments, each after the response to the previous one.

    It lasts for some seconds, or with --quick for a few lookups per thread. `route` may be that of a strategy;
    `patience` is the timeout in seconds.
    """
    options: dict[str, str | int | float] = {"lookup-tag": tag, "route": route, "patience": patience}
    if stage.quick:
        # A number instead of a time, so that there are responses on a slow machine too.
        options["jobs-per-user"] = QUICK_CALLS
    return Load(
        {"StudyLookup": 1}, count=threads, seconds=None if stage.quick else seconds, options=options, campaign_users=True
    )  # fmt: skip


def add_scenario(parser: argparse._ArgumentGroup, default: str) -> None:
    """Add the option for the scenario of the tag."""
    parser.add_argument("--scenario", choices=list(SCENARIOS), help=f"scenario of the tag (default: {default})")
