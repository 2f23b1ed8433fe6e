"""What is the outcome of 100,000 jobs that are launched together?

All jobs are due at the same moment. The generator limits the number of concurrent connections (--together): so
many jobs begin at once, and each of the others when an earlier one has ended, as in a batch farm where slots
become free. The end of a job is counted from the common moment, the duration of a request from its own
beginning.
"""

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_SECONDS
from loadtests import metrics
from loadtests.access_log import FLUSH_SECONDS, AccessLog, size_of
from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.recording.outcome import WRONG
from loadtests.recording.reading import Recording
from loadtests.reporting import plots
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Plot, Run, Table, Target
from loadtests.reporting.summaries import by_second

JOBS, QUICK_JOBS = 100_000, 1_000
TOGETHER, QUICK_TOGETHER = 5_000, 200
WARM_UP_JOBS = 200
# locust starts users at this rate; all users exist before the first job.
SPAWN_RATE = 1_000
PATIENCE_SECONDS = 120
# The percentages of jobs whose end is reported, and the columns of the tables.
SHARES = (50.0, 90.0, 99.0, 99.9, 100.0)
JOB_COLUMNS = ("burst", "jobs", "requests", "failures", "jobs/s", "in the busiest second", "which was, s")
COUNT_COLUMNS = ("burst", "sent by the client", "responses that it got", "lines of nginx's log", "of these passed on")
COUNT_COLUMNS += ("counted by gunicorn",)
TIME_COLUMNS = ("burst", "of the requests took no more than", "client, ms", "nginx, ms", "gunicorn, ms")
TIME_COLUMNS += ("client less nginx, ms",)


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; with the defaults, each repetition takes some minutes."""
    options.add(parser, "--scenario", "scenario in the tag; none: other data", "moderate", "tiny")
    options.add_content(parser)
    options.add(parser, "--pattern", "pattern of the moments", "random")
    options.add(parser, "--jobs", "number of jobs", JOBS, QUICK_JOBS, **AT_LEAST_ONE)
    options.add(parser, "--together", "concurrent connections", TOGETHER, QUICK_TOGETHER, **AT_LEAST_ONE)
    options.add(parser, "--repetitions", "number of repetitions", 2, 1, **AT_LEAST_ONE)
    options.add(parser, "--processes", "processes of the generator", 1, **AT_LEAST_ONE)
    options.add(parser, "--within", "time in which all jobs must end", 900.0, **IN_SECONDS)


@dataclass(frozen=True)
class Burst:
    """One repetition; `log` is nginx's access log, None for a remote deployment."""

    run: Run
    log: AccessLog | None

    @property
    def requests(self) -> Recording:
        """The requests, without the rows of whole jobs."""
        return self.run.recording.requests

    @property
    def ends(self) -> numpy.ndarray:
        """The ends of jobs in seconds after the common moment, which is the beginning of the first job."""
        jobs = self.run.recording.jobs
        return jobs.end - jobs.begin.min()

    @property
    def rates(self) -> dict[int, int]:
        """The number of jobs that ended in each second after the common moment."""
        return by_second(self.ends)

    @property
    def counts(self) -> tuple[int, int, int | None, int | None, int]:
        """Requests sent and responses that the client got, lines of nginx's log, passed on, counted by gunicorn."""
        logged = (None, None) if self.log is None else (len(self.log), len(self.log.passed_on))
        gunicorn = metrics.total(self.run.counters, "cdb_requests_total", without=metrics.WATCHING)
        return len(self.requests), len(self.requests.answered), *logged, round(gunicorn)

    def until(self, share: float) -> float:
        """Seconds from the common moment until `share` percent of the jobs had ended (nearest rank)."""
        return _percentile(self.ends, share)

    def times(self) -> dict[str, numpy.ndarray]:
        """The times of requests in milliseconds, as measured by the client (from their begin), nginx and gunicorn."""
        answered = self.requests.answered
        times = {"client": (answered.end - answered.begin) * 1000}
        if self.log:
            times |= {"nginx": self.log.seconds * 1000, "gunicorn": self.log.passed_on * 1000}
        return times


def _percentile(values: numpy.ndarray, share: float) -> float:
    return float(numpy.percentile(values, share, method="inverted_cdf")) if len(values) else math.nan


def run(stage: Stage) -> Findings:
    """Warm up, and launch the jobs in each repetition; their number is rounded up to the same one for each connection."""
    given = stage.options
    together = min(given.jobs, given.together)
    each = math.ceil(given.jobs / together)
    with stage.serving(scenarios=(given.scenario,)):
        stage.load("warm-up", _load(given, min(20, together), WARM_UP_JOBS // 20), detailed=False)
        bursts = []
        for number in range(1, given.repetitions + 1):
            label = f"{together * each:,} jobs together, {number} of {given.repetitions}"
            bursts.append(_burst(stage, label, _load(given, together, each)))
    return findings_of(bursts, scenario=given.scenario, jobs=together * each, together=together, within=given.within)


def _load(given: argparse.Namespace, together: int, each: int) -> Load:
    settings = {"scenario": given.scenario, "pattern": given.pattern, "jobs-per-user": each, "start-together": True}
    settings |= {"patience": PATIENCE_SECONDS, **options.content(given)}
    processes = min(given.processes, together)
    return Load({"ReconstructionJob": 1}, together, spawn_rate=SPAWN_RATE, options=settings, processes=processes)


def _burst(stage: Stage, label: str, load: Load) -> Burst:
    path = stage.data / "serve" / "access.log"
    if not stage.host:
        # nginx may still have lines of earlier requests in its buffer.
        time.sleep(FLUSH_SECONDS)
    offset = size_of(path)
    run = stage.load(label, load)
    log = None if stage.host else AccessLog.read(path, offset, count=len(run.recording.answered))
    burst = Burst(run, log)
    stage.say(f"  all ended after {burst.until(100):.1f} s, {burst.requests.failures:,} requests failed")
    return burst


def findings_of(bursts: Sequence[Burst], *, scenario: str, jobs: int, together: int, within: float) -> Findings:
    """The findings for `jobs` jobs with `together` concurrent connections, all of which had to end `within` seconds."""
    first, busiest = bursts[0], [float(max(burst.rates.values())) for burst in bursts]
    share = 100 * (1 - sum(burst.requests.failures for burst in bursts) / sum(len(burst.requests) for burst in bursts))
    return Findings(
        summary=f"{jobs:,} jobs that were due together had all ended after {first.until(100):.1f} s, "
        f"{busiest[0]:,.0f} of them in the busiest second; {share:.3f} % of the requests got the correct response",
        question=f"What is the outcome of {jobs:,} jobs that are launched together?",
        targets=_targets(bursts, jobs, within),
        tables=_tables(bursts),
        plots=_plots(first),
        runs=[burst.run for burst in bursts],
        notes=_notes(first, jobs, together),
        figures={
            f"{scenario}: jobs/s": [len(burst.ends) / burst.until(100) for burst in bursts],
            f"{scenario}: jobs in the busiest second": busiest,
            f"{scenario}: seconds until 50 % had ended": [burst.until(50) for burst in bursts],
            f"{scenario}: seconds until all had ended": [burst.until(100) for burst in bursts],
        },
        raw=[
            {"run": burst.run.label, "second": second, "jobs ended": count}
            for burst in bursts
            for second, count in burst.rates.items()
        ],
    )


def _tables(bursts: Sequence[Burst]) -> list[Table]:
    ends, counts, times = [], [], []
    for burst in bursts:
        label, number, second = burst.run.label, len(burst.ends), max(burst.rates, key=burst.rates.__getitem__)
        row = (label, number, len(burst.requests), burst.requests.failures, number / burst.until(100))
        ends.append((*row, burst.rates[second], second, *(burst.until(share) for share in SHARES)))
        counts.append((label, *burst.counts))
        for share in SHARES:
            client, *server = (_percentile(values, share) for values in burst.times().values())
            nginx, gunicorn = server or (None, None)
            row = (label, f"{share:g} %", client, nginx, gunicorn)
            times.append((*row, None if nginx is None else client - nginx))
    shares = tuple(f"{share:g} % ended after, s" for share in SHARES)
    return [
        Table("Jobs that are due together", (*JOB_COLUMNS, *shares), ends),
        Table("The client's count against the server's", COUNT_COLUMNS, counts),
        Table("The client's times against the server's", TIME_COLUMNS, times),
    ]


def _targets(bursts: Sequence[Burst], jobs: int, within: float) -> list[Target]:
    missing = max(abs(jobs - len(burst.ends)) for burst in bursts)
    wrong = sum(burst.requests.counts[WRONG] for burst in bursts)
    targets = [
        Target("jobs that did not end", missing, 0, at_most=True),
        Target(
            "requests without the correct response", sum(burst.requests.failures for burst in bursts), 0, at_most=True
        ),
        Target("of these, with wrong content", wrong, 0, at_most=True),
        Target("time until all jobs had ended", max(burst.until(100) for burst in bursts), within, True, unit="s"),
    ]
    counts = [burst.counts for burst in bursts if burst.log is not None]
    if counts:
        unlogged = max(abs(answered - logged) for _, answered, logged, _, _ in counts)
        uncounted = max(abs(counted - passed_on) for *_, passed_on, counted in counts)
        targets += [
            Target("responses: difference between client and nginx's log", unlogged, 0, at_most=True),
            Target("requests passed on: difference between nginx and gunicorn", uncounted, 0, at_most=True),
        ]
    return targets


def _notes(first: Burst, jobs: int, together: int) -> list[str]:
    samples, begins = first.run.recording.samples, numpy.sort(first.run.recording.jobs.begin)
    busiest = max((sample.cpu for sample in samples), default=0.0)
    lag = statistics.median([sample.lag_ms for sample in samples]) if samples else 0.0
    begun, times = begins[min(together, len(begins)) - 1] - begins[0], first.times()
    difference = _percentile(times["client"], 50) - _percentile(times["nginx"], 50) if "nginx" in times else None
    return notes("peak", jobs=jobs, together=together, begun=begun, cores=busiest, lag=lag, difference=difference)


def _plots(burst: Burst) -> list[Plot]:
    recording = burst.run.recording
    begin = recording.jobs.begin.min()
    ends = {"jobs that ended": burst.ends, "responses, by the client": burst.requests.end - begin}
    if burst.log:
        ends["responses, by nginx"] = burst.log.ends - recording.origin - begin
    frequency = {name: list(by_second(values).items()) for name, values in ends.items()}
    ended = {"jobs": [(burst.until(share), share) for share in numpy.linspace(0, 100, 200)]}
    shares = [*numpy.linspace(1, 99, 50), 99.5, 99.9, 100.0]
    times = {
        name: [(share, max(0.1, _percentile(values, share))) for share in shares]
        for name, values in burst.times().items()
    }
    since = "time since all were due, s"
    return [
        plots.lines("Frequency", frequency, x=since, y="a second"),
        plots.lines("Jobs that had ended", ended, x=since, y="share of the jobs, %"),
        plots.lines("Times of requests by who measured them", times, x="share of the requests, %", y="ms", log_y=True),
    ]
