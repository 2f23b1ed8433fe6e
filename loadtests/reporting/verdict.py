"""The verdicts whether the generator was the bottleneck, and whether clients and server counted the same."""

from dataclasses import dataclass

import numpy

from loadtests import metrics
from loadtests.recording.outcome import NOT_SENT, RIG_ERROR
from loadtests.recording.reading import Recording
from loadtests.reporting.figures import number
from loadtests.reporting.result import Run

# A Python process that uses more of a core is probably late.
BUSY_CORES = 0.8
LATE_MS, LAG_MS = 50.0, 200.0
# Smaller differences between counts are normal: requests in progress when the counts were read, and requests of
# the harness.
SAME_SHARE, SAME_COUNT = 0.01, 20
# nginx counts two requests for each GET /metrics: the request, and that of the service for nginx's status.
METRICS_ROUTE, REQUESTS_BY_READING = 'route="/metrics"', 2


@dataclass(frozen=True)
class Generator:
    """The state of the generator during a run.

    `cores` is the CPU of the busiest process in its busiest second, `lag_ms` the longest lag of an event loop;
    both are None without samples. `latest_ms` and `late_ms` are the maximum and the 99th percentile of the
    lateness of jobs in milliseconds, `not_sent` the jobs that were not started, `broken` the failures of the
    generator itself.
    """

    cores: float | None
    lag_ms: float | None
    latest_ms: float
    late_ms: float
    not_sent: int
    broken: int = 0

    @classmethod
    def of(cls, recording: Recording) -> "Generator":
        """The generator of a recording, which must have at least one row."""
        # Only the first request of a job can be late, so jobs are used if there are any.
        starts = recording.jobs if len(recording.jobs) else recording
        late = (starts.begin - starts.due) * 1000
        cores = max((sample.cpu for sample in recording.samples), default=None)
        lag = max((sample.lag_ms for sample in recording.samples), default=None)
        high = float(numpy.percentile(late, 99, method="inverted_cdf"))
        return cls(cores, lag, float(late.max()), high, recording.counts[NOT_SENT], recording.counts[RIG_ERROR])

    @property
    def faults(self) -> list[str]:
        """The signs that the generator was the bottleneck or failed."""
        faults = []
        if self.cores is not None and self.cores > BUSY_CORES:
            faults.append(f"a process used {self.cores:.2f} of a core, which is more than {BUSY_CORES:.2f}")
        if self.late_ms > LATE_MS:
            faults.append(f"one start in a hundred was {number(self.late_ms)} ms late or more")
        if self.lag_ms is not None and self.lag_ms > LAG_MS:
            faults.append(f"its event loop was blocked for {number(self.lag_ms)} ms")
        if self.not_sent:
            faults.append(f"{self.not_sent:,} jobs were not started, because too many were in progress")
        if self.broken:
            faults.append(f"it failed {self.broken:,} times with unexpected exceptions (see its log)")
        return faults

    def __str__(self) -> str:
        if self.faults:
            return f"Warning: the generator may have been the bottleneck: {'; '.join(self.faults)}."
        known = [] if self.cores is None else [f"at most {self.cores:.2f} of a core by each process"]
        known.append(f"latest start {number(self.latest_ms)} ms")
        known += [] if self.lag_ms is None else [f"longest lag of its event loop {number(self.lag_ms)} ms"]
        unknown = " (its CPU was not recorded)" if self.cores is None else ""
        return f"The generator was not the bottleneck{unknown}: {', '.join(known)}."


def sentences(run: Run) -> list[str]:
    """The verdict on the generator and, if there are counters, comparisons of counts and times with the server."""
    verdicts = [str(Generator.of(run.recording))]
    if run.counters and len(run.recording.requests):
        verdicts += [_counts(run), *_times(run)]
    return verdicts


def _counts(run: Run) -> str:
    answered, counters = int((run.recording.requests.statuses > 0).sum()), run.counters
    application = round(_served(run, "cdb_requests_total"))
    # Without the requests for /metrics; 0 if the count is unknown.
    readings = REQUESTS_BY_READING * metrics.total(counters, "cdb_requests_total", of=METRICS_ROUTE)
    nginx = max(0, round(metrics.total(counters, "cdb_nginx_requests_total") - readings))
    lookups = round(metrics.total(counters, "cdb_lookups_finished_total"))
    counted = f"nginx counted {nginx:,}" if nginx else f"the application counted {application:,}"
    text = f"clients counted {answered:,} responses and {counted} requests"
    if nginx and application + SAME_COUNT < answered * (1 - SAME_SHARE):
        text += f", of which {application:,} reached the application: the others were served from the cache"
    elif nginx:
        text += f", the application {application:,}"
    text += f"; the database finished {lookups:,} lookups" if lookups else ""
    if abs((nginx or application) - answered) <= SAME_SHARE * answered + SAME_COUNT:
        return f"The {text}. The two sides agree."
    return f"Warning: the {text}. The two sides do not agree: there were other clients, or requests were lost."


def _times(run: Run) -> list[str]:
    count = _served(run, "cdb_request_duration_seconds_count")
    if not count:
        return []
    inside = _served(run, "cdb_request_duration_seconds_sum") / count * 1000
    waited = float(run.recording.requests.milliseconds.mean())
    place = "in the application and its database"
    if waited > 2 * inside:
        place = "outside the application, in a queue, in nginx or in the generator"
    text = f"On average a client waited {number(waited)} ms, and the application worked for {number(inside)} ms"
    return [f"{text}: most of the time was spent {place}."]


def _served(run: Run, name: str) -> float:
    """The sum of a metric over all routes except /health and /metrics."""
    return metrics.total(run.counters, name, without=metrics.WATCHING)
