"""The section of a report about one run, with verdicts: was the generator the bottleneck, did both sides count the same?"""

import re
from collections.abc import Sequence
from typing import Any

from loadtests import metrics
from loadtests.recording.outcome import GENERATOR_ERROR, NOT_SENT, OK
from loadtests.recording.reading import Recording
from loadtests.reporting import resources, summaries, timelines
from loadtests.reporting.figures import ratio
from loadtests.reporting.report import notes
from loadtests.reporting.result import Result, Run, Table

OVERVIEW = "label requests jobs seconds mean_rate ok_rate peak_rate p50_ms p95_ms p99_ms right rows_per_response"
REQUESTS = "name count p50_ms p90_ms p95_ms p99_ms p999_ms max_ms rows_per_response bytes_per_response rate"
RATES = {"mean_rate": "mean frequency, requests/s", "ok_rate": "correct responses/s"}
RATES |= {"peak_rate": "peak frequency, requests/s"}
# A Python process that uses more of a core is probably late.
BUSY_CORES = 0.8
LATE_MS, LAG_MS = 50.0, 200.0
# Smaller differences between counts are normal: requests in progress when the counts were read, and requests of
# the harness.
SAME_SHARE, SAME_COUNT = 0.01, 20
# nginx counts two requests for each GET /metrics: the request, and that of the service for nginx's status.
METRICS_ROUTE, REQUESTS_BY_READING = 'route="/metrics"', 2


def result_of(run: Run) -> Result:
    """The section of a run, with verdicts, tables and plots."""
    part = f"run-{re.sub(r'[^a-z0-9]+', '-', run.label.lower()).strip('-')}"
    load = f"Load: {', '.join(f'{name} {value}' for name, value in run.settings.items())}." if run.settings else ""
    tables = [table_of([run], ""), _requests(run.recording), _failures(run.recording)]
    result = Result(part, run.label, load, notes=notes_of(run), tables=[table for table in tables if table.rows])
    if len(run.recording.requests):
        result.plots = [*timelines.plots_of(run.recording.requests), resources.plot_of(run)]
    return result


def notes_of(run: Run) -> list[str]:
    """Notes on a run: the meaning of its times, the verdict on the generator, and warnings about its figures.

    With counters of the service, they also compare the counts and times of both sides.
    """
    good = run.recording.requests.where(run.recording.requests.outcomes == OK)
    counted = {name: one.rows[one.rows >= 0] for name, one in summaries.by_name(good)}
    empty = {name: len(rows) for name, rows in counted.items() if len(rows) and not rows.any()}
    start = run.settings.get("start-jobs", "after the last one" if run.settings else "")
    counts = _counts(run) if run.counters and len(run.recording.requests) else None
    return notes("run", start=start, generator=generator_verdict(run.recording), counts=counts, empty=empty)


def table_of(runs: Sequence[Run], title: str = "Runs") -> Table:
    """A table with one line for each run."""
    rows = []
    for run in runs:
        of = summaries.summary_of(run.recording)
        # Not formatted by the report, which would round 99.96 to 100.
        of["right"] = "–" if of["ok_share"] is None else f"{of['ok_share'] * 100:.3f}"
        rows.append(of | {"label": run.label})
    return Table.of(title, rows, OVERVIEW, label="run", seconds="duration, s", right="correct, %", **RATES)


def _requests(recording: Recording) -> Table:
    """The times of requests and of whole jobs by name, and the rows and bytes of correct responses."""
    rows, seconds = [], summaries.summary_of(recording)["seconds"]
    for name, part in summaries.parts_of(recording):
        row = summaries.summary_of(part) | summaries.percentiles_of(part.milliseconds)
        sent = float(part.bytes[part.outcomes == OK].sum())
        rows.append(row | {"name": name, "count": len(part), "rate": ratio(sent / 1e6, seconds) or None})
    return Table.of("Requests", rows, REQUESTS, name="request", rate="MB/s")


def _failures(recording: Recording) -> Table:
    counts = summaries.failures_of(recording)
    tried = len(recording.requests) + counts.get(NOT_SENT, 0)
    rows = [
        (kind, count, count / tried * 100, *recording.examples.get(kind, ("", ""))) for kind, count in counts.items()
    ]
    return Table("Failures, with one example each", ("outcome", "count", "share, %", "request", "example"), rows)


def generator_verdict(recording: Recording) -> str:
    """Whether the generator was the bottleneck or failed; the recording must have at least one row.

    Its CPU is that of the busiest process in its busiest second, its lag the longest of an event loop. The CPU and
    the lag are unknown without samples.
    """
    # Only the first request of a job can be late, so jobs are used if there are any.
    starts = recording.jobs if len(recording.jobs) else recording
    times = summaries.percentiles_of((starts.begin - starts.due) * 1000)
    cores = max((sample.cpu for sample in recording.samples), default=None)
    lag = max((sample.lag_ms for sample in recording.samples), default=0.0)
    limits = {"busy_cores": BUSY_CORES, "most_late": LATE_MS, "most_lag": LAG_MS}
    counts = {"unsent": recording.counts[NOT_SENT], "broken": recording.counts[GENERATOR_ERROR]}
    late = {"late": times["p99_ms"], "latest": times["max_ms"]}
    return notes("generator", cores=cores, lag=lag, **late, **counts, **limits)[0]


def _counts(run: Run) -> dict[str, Any]:
    """The counts of responses on both sides, and the mean times of a request in milliseconds; `inside` may be None."""
    answered, counters = len(run.recording.answered), run.counters
    names = ("cdb_requests_total", "cdb_request_duration_seconds_sum", "cdb_request_duration_seconds_count")
    application, seconds, timed = (metrics.total(counters, name, without=metrics.WATCHING) for name in names)
    # Without the requests for /metrics; 0 if the count is unknown.
    readings = REQUESTS_BY_READING * metrics.total(counters, "cdb_requests_total", of=METRICS_ROUTE)
    nginx = max(0, round(metrics.total(counters, "cdb_nginx_requests_total") - readings))
    return {
        "answered": answered,
        "nginx": nginx,
        "application": round(application),
        "is_cached": nginx and application + SAME_COUNT < answered * (1 - SAME_SHARE),
        "lookups": round(metrics.total(counters, "cdb_lookups_finished_total")),
        "agree": abs((nginx or application) - answered) <= SAME_SHARE * answered + SAME_COUNT,
        "waited": float(run.recording.requests.milliseconds.mean()),
        "inside": ratio(1000 * seconds, timed),
    }
