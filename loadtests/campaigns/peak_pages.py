"""The report of the campaign peak: ends and rates of jobs, and figures of the client compared with the server's."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy

from loadtests import metrics
from loadtests.campaigns.access_log import AccessLog
from loadtests.recording.outcome import OK, WRONG
from loadtests.recording.reading import Recording
from loadtests.reporting import plots
from loadtests.reporting.findings import Findings, Run
from loadtests.reporting.result import Plot, Table, Target
from loadtests.reporting.summaries import Rates
from loadtests.signals.counts import WATCHING

# The percentages of jobs whose end is reported.
SHARES = (50.0, 90.0, 99.0, 99.9, 100.0)
POINTS = 200


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
        """The sorted ends of jobs in seconds after the common moment, which is the beginning of the first job."""
        jobs = self.run.recording.jobs
        return numpy.sort(jobs.end - jobs.begin.min())

    @property
    def failures(self) -> int:
        """The number of requests without the correct response."""
        return int((self.requests.outcomes != OK).sum())

    @property
    def answered(self) -> int:
        """The number of requests with a response of any status."""
        return int((self.requests.statuses > 0).sum())

    @property
    def counted(self) -> int:
        """The number of requests that gunicorn counted, without those of monitoring."""
        counts = self.run.counters.items()
        watching = [f'route="{path}"' for path in WATCHING]
        rises = {name: value for name, value in counts if not any(path in name for path in watching)}
        return round(metrics.total(rises, "cdb_requests_total"))

    def until(self, share: float) -> float:
        """Seconds from the common moment until so many percent of the jobs had ended (nearest rank)."""
        return _percentile(self.ends, share)

    def begun(self, count: int) -> float:
        """Seconds from the common moment until so many jobs had begun."""
        begins = numpy.sort(self.run.recording.jobs.begin)
        return float(begins[min(count, len(begins)) - 1] - begins[0])

    def times(self) -> dict[str, numpy.ndarray]:
        """The times of requests in milliseconds, as measured by the client (from their begin), nginx and gunicorn."""
        requests = self.requests
        answered = requests.where(requests.statuses > 0)
        times = {"client": (answered.end - answered.begin) * 1000}
        if self.log is not None and len(self.log):
            times |= {"nginx": self.log.seconds * 1000, "gunicorn": self.log.passed_on.upstream * 1000}
        return times


def _percentile(values: numpy.ndarray, share: float) -> float:
    return float(numpy.percentile(values, share, method="inverted_cdf")) if len(values) else float("nan")


def findings_of(bursts: Sequence[Burst], *, scenario: str, jobs: int, together: int, within: float) -> Findings:
    """The findings for `jobs` jobs with `together` concurrent connections, all of which had to end `within` seconds."""
    first = bursts[0]
    rates = [Rates.of(burst.ends) for burst in bursts]
    share = 100 * (1 - sum(burst.failures for burst in bursts) / sum(len(burst.requests) for burst in bursts))
    return Findings(
        summary=f"{jobs:,} jobs that were due together had all ended after {first.until(100):.1f} s, "
        f"{int(rates[0].counts.max()):,} of them in the busiest second; {share:.3f} % of the requests got the correct response",
        question=f"What is the outcome of {jobs:,} jobs that are launched together?",
        targets=_targets(bursts, jobs, within),
        tables=[_overview(bursts, rates), _counts(bursts), _times(bursts)],
        plots=_plots(first),
        runs=[burst.run for burst in bursts],
        notes=_notes(first, jobs, together),
        figures={
            f"{scenario}: jobs/s": [len(burst.ends) / burst.until(100) for burst in bursts],
            f"{scenario}: jobs in the busiest second": [float(rate.counts.max()) for rate in rates],
            f"{scenario}: seconds until 50 % had ended": [burst.until(50) for burst in bursts],
            f"{scenario}: seconds until all had ended": [burst.until(100) for burst in bursts],
        },
        raw=[{"run": burst.run.label, "second": second, "jobs ended": count}
             for burst, rate in zip(bursts, rates, strict=True)
             for second, count in zip(rate.seconds.tolist(), rate.counts.tolist(), strict=True)],
    )  # fmt: skip


def _targets(bursts: Sequence[Burst], jobs: int, within: float) -> list[Target]:
    missing = max(abs(jobs - len(burst.ends)) for burst in bursts)
    wrong = sum(int((burst.requests.outcomes == WRONG).sum()) for burst in bursts)
    known = [burst for burst in bursts if burst.log is not None]
    unlogged = max((abs(burst.answered - len(burst.log)) for burst in known), default=None)
    uncounted = max(abs(burst.counted - _passed_on(burst)) for burst in bursts) if known else None
    return [
        Target("jobs that did not end", missing, 0, at_most=True),
        Target("requests without the correct response", sum(burst.failures for burst in bursts), 0, at_most=True),
        Target("of these, with wrong content", wrong, 0, at_most=True),
        Target("time until all jobs had ended", max(burst.until(100) for burst in bursts), within, at_most=True, unit="s"),
        *([Target("responses: difference between client and nginx's log", unlogged, 0, at_most=True),
           Target("requests passed on: difference between nginx and gunicorn", uncounted, 0, at_most=True)]
          if known else []),
    ]  # fmt: skip


def _passed_on(burst: Burst) -> int:
    return 0 if burst.log is None else len(burst.log.passed_on)


def _notes(first: Burst, jobs: int, together: int) -> list[str]:
    samples = first.run.recording.samples
    busiest = max((sample.cpu for sample in samples), default=0.0)
    lag = statistics.median([sample.lag_ms for sample in samples]) if samples else 0.0
    waited = first.times()["client"]
    notes = [
        f"{jobs:,} jobs are due when the first of them begins. {together:,} connections are open at a time: the first "
        f"{together:,} jobs began within {first.begun(together):.1f} s, each of the others when an earlier one had ended. A "
        "job is two requests, each over a new connection. The ends of jobs are counted from the common moment.",
        f"A process of the generator used at most {busiest:.2f} of a core within a second, and the median lag of its event loop "
        f"was {lag:,.0f} ms. By this lag the generator handles responses late, so that the client's times are longer than the "
        "server's.",
    ]
    if first.log is not None and len(first.log):
        difference = _percentile(waited, 50) - _percentile(first.log.seconds * 1000, 50)
        notes.append(
            f"The median time of a request is {difference:,.0f} ms longer for the client than for nginx. nginx measures from the "
            "first bytes that it reads, the client from before it connects until it has handled the last byte. The difference is "
            "the time in the queue of connections that nginx has not accepted yet, and in the queue of the generator."
        )
    return notes


def _overview(bursts: Sequence[Burst], rates: Sequence[Rates]) -> Table:
    rows = []
    for burst, rate in zip(bursts, rates, strict=True):
        busiest = int(rate.counts.argmax())
        rows.append(
            (burst.run.label, len(burst.ends), len(burst.requests), burst.failures, len(burst.ends) / burst.until(100),
             int(rate.counts[busiest]), int(rate.seconds[busiest]), *(burst.until(share) for share in SHARES))
        )  # fmt: skip
    columns = (
        "burst", "jobs", "requests", "failures", "jobs/s", "in the busiest second", "which was, s",
        *(f"{share:g} % ended after, s" for share in SHARES),
    )  # fmt: skip
    return Table("Jobs that are due together", columns, rows)


def _counts(bursts: Sequence[Burst]) -> Table:
    rows = [
        (burst.run.label, len(burst.requests), burst.answered, None if burst.log is None else len(burst.log),
         None if burst.log is None else _passed_on(burst), burst.counted)
        for burst in bursts
    ]  # fmt: skip
    columns = (
        "burst", "sent by the client", "answers that it got", "lines of nginx's log", "of these passed on", "counted by gunicorn",
    )  # fmt: skip
    return Table("The client's count against the server's", columns, rows)


def _times(bursts: Sequence[Burst]) -> Table:
    rows = []
    for burst in bursts:
        times = burst.times()
        for share in SHARES:
            client, *server = (_percentile(values, share) for values in times.values())
            nginx, gunicorn = server or (None, None)
            rows.append(
                (burst.run.label, f"{share:g} %", client, nginx, gunicorn, None if nginx is None else client - nginx)
            )
    columns = (
        "burst",
        "of the requests took no more than",
        "client, ms",
        "nginx, ms",
        "gunicorn, ms",
        "client less nginx, ms",
    )
    return Table("The client's times against the server's", columns, rows)


def _plots(burst: Burst) -> list[Plot]:
    recording = burst.run.recording
    begin = recording.jobs.begin.min()
    series: dict[str, Sequence[tuple[float, float]]] = {
        "jobs that ended": _points(Rates.of(burst.ends)),
        "answers, by the client": _points(Rates.of(burst.requests.end - begin)),
    }
    if burst.log is not None and len(burst.log):
        series["answers, by nginx"] = _points(Rates.of(burst.log.ends - recording.origin - begin))
    shares = numpy.linspace(0, 100, POINTS)
    ended = {"jobs": [(_percentile(burst.ends, share), float(share)) for share in shares]}
    return [
        plots.lines("Frequency", series, x="time since all were due, s", y="a second"),
        plots.lines("Jobs that had ended", ended, x="time since all were due, s", y="share of the jobs, %"),
        _quantiles(burst.times()),
    ]


def _quantiles(times: Mapping[str, numpy.ndarray]) -> Plot:
    shares = [*numpy.linspace(1, 99, 50), 99.5, 99.9, 100.0]
    series = {
        name: [(float(share), max(0.1, _percentile(values, share))) for share in shares]
        for name, values in times.items()
    }
    return plots.lines(
        "Times of requests by who measured them", series, x="share of the requests, %", y="ms", log_y=True
    )


def _points(rates: Rates) -> list[tuple[float, float]]:
    return list(zip(rates.seconds.tolist(), rates.counts.tolist(), strict=True))
