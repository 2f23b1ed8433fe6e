"""Which side was the bottleneck, and whether the clients and the server tell the same."""

from dataclasses import dataclass

import numpy

from loadtests import metrics
from loadtests.recording.outcome import NOT_SENT, RIG_ERROR
from loadtests.recording.reading import Recording
from loadtests.reporting.figures import number
from loadtests.reporting.findings import Run

# A Python program that takes more of a core than this cannot be trusted to be in time.
BUSY_CORES = 0.8
LATE_MS, LAG_MS = 50.0, 200.0
# Counts that differ by more are told apart: what was under way when they were read, and questions of ours, are not.
SAME_SHARE, SAME_COUNT = 0.01, 20

# Asked by ourselves and by others that look after the service.
STATUS_ROUTES = ("/health", "/metrics")
# Each look at the metrics is two requests to nginx: itself, and nginx's own status, which it asks for.
METRICS_ROUTE, REQUESTS_BY_LOOK = 'route="/metrics"', 2


@dataclass(frozen=True)
class Generator:
    """How much of a core the busiest process took in its busiest second (None without samples), the longest lag of a loop, how
    late the latest job began and how late the latest of 99 in 100 (milliseconds), jobs that were not started, and failures of the
    generator itself."""

    cores: float | None
    lag_ms: float | None
    latest_ms: float
    late_ms: float
    not_sent: int
    broken: int = 0

    @classmethod
    def of(cls, recording: Recording) -> "Generator":
        """At least one row has to be there."""
        # Requests of a job after its first one are never late.
        starts = recording.jobs if len(recording.jobs) else recording
        late = (starts.begin - starts.due) * 1000
        cores = max((sample.cpu for sample in recording.samples), default=None)
        lag = max((sample.lag_ms for sample in recording.samples), default=None)
        high = float(numpy.percentile(late, 99, method="inverted_cdf"))
        counts = [int((recording.outcomes == called).sum()) for called in (NOT_SENT, RIG_ERROR)]
        return cls(cores, lag, float(late.max()), high, *counts)

    @property
    def faults(self) -> list[str]:
        """What speaks against the generator."""
        told = []
        if self.cores is not None and self.cores > BUSY_CORES:
            told.append(f"a process took {self.cores:.2f} of a core, which is more than {BUSY_CORES:.2f}")
        if self.late_ms > LATE_MS:
            told.append(f"one start in a hundred was {number(self.late_ms)} ms late or more")
        if self.lag_ms is not None and self.lag_ms > LAG_MS:
            told.append(f"its loop stood still for {number(self.lag_ms)} ms")
        if self.not_sent:
            told.append(f"of the jobs {self.not_sent:,} were not started, because too many were in progress")
        if self.broken:
            told.append(f"it failed itself {self.broken:,} times, by exceptions that nobody expected (see its log)")
        return told

    def __str__(self) -> str:
        if self.faults:
            return f"Warning: the generator may have been the bottleneck: {'; '.join(self.faults)}."
        known = [] if self.cores is None else [f"at most {self.cores:.2f} of a core by each process"]
        known.append(f"latest start {number(self.latest_ms)} ms")
        known += [] if self.lag_ms is None else [f"longest lag of its loop {number(self.lag_ms)} ms"]
        unknown = " (its CPU was not recorded)" if self.cores is None else ""
        return f"The generator was not the bottleneck{unknown}: {', '.join(known)}."


def sentences(run: Run) -> list[str]:
    """The verdict on the generator; then, where the server tells, its own count and times beside those of the clients."""
    told = [str(Generator.of(run.recording))]
    if run.counters and len(run.recording.requests):
        told += [_counts(run), *_times(run)]
    return told


def _counts(run: Run) -> str:
    answered = int((run.recording.requests.statuses > 0).sum())
    application = _served(run.counters, "cdb_requests_total")
    nginx = _read_by_nginx(run.counters)
    lookups = round(metrics.total(run.counters, "cdb_lookups_finished_total"))
    seen = nginx or application
    counted = f"nginx counted {nginx:,}" if nginx else f"the application counted {application:,}"
    text = f"The clients counted {answered:,} answers and {counted} requests"
    if nginx and application + SAME_COUNT < answered * (1 - SAME_SHARE):
        text += f", of which {application:,} reached the application: the others were answered from the cache"
    elif nginx:
        text += f", the application {application:,}"
    text += f"; the database finished {lookups:,} lookups" if lookups else ""
    if abs(seen - answered) <= SAME_SHARE * answered + SAME_COUNT:
        return f"{text}. The two sides agree."
    return f"Warning: {text[0].lower()}{text[1:]}. The two sides do not agree: others asked too, or something was lost."


def _read_by_nginx(counters: dict[str, float]) -> int:
    """Requests that nginx has read, without what was asked to know it; 0 where it does not tell."""
    looks = sum(
        value for key, value in counters.items() if key.startswith("cdb_requests_total{") and METRICS_ROUTE in key
    )
    return max(0, round(metrics.total(counters, "cdb_nginx_requests_total") - REQUESTS_BY_LOOK * looks))


def _times(run: Run) -> list[str]:
    count = _served(run.counters, "cdb_request_duration_seconds_count")
    if not count:
        return []
    inside = _served(run.counters, "cdb_request_duration_seconds_sum", whole=False) / count * 1000
    waited = float(run.recording.requests.milliseconds.mean())
    text = f"On the mean a client waited {number(waited)} ms, and the application was at work for {number(inside)} ms"
    if waited > 2 * inside:
        return [f"{text}: most of the time was spent before it or after it, in a queue, in nginx or in the generator."]
    return [f"{text}: most of the time was spent in the application and its database."]


def _served(counters: dict[str, float], name: str, *, whole: bool = True) -> float:
    """The sum over all routes but those that ask how the service is."""
    total = sum(
        value
        for key, value in counters.items()
        if key.startswith(f"{name}{{") and not any(f'route="{route}' in key for route in STATUS_ROUTES)
    )
    return round(total) if whole else total
