"""The standard figures of a recording, for tables, figures and targets of campaigns."""

from collections.abc import Iterator
from typing import Any

import numpy

from loadtests.recording.outcome import GENERATOR_ERROR, NOT_SENT, OK, OVERLOADED
from loadtests.recording.reading import Recording
from loadtests.reporting.figures import place_of

# The names of percentiles in summaries, and the percentage of the values.
PERCENTILES = {"p50_ms": 50.0, "p90_ms": 90.0, "p95_ms": 95.0, "p99_ms": 99.0, "p999_ms": 99.9, "max_ms": 100.0}


def percentiles_of(values: numpy.ndarray) -> dict[str, float | None]:
    """The percentiles by the names of `PERCENTILES`, by nearest rank; None without values."""
    ordered = numpy.sort(values)
    if not len(ordered):
        return dict.fromkeys(PERCENTILES)
    return {name: float(ordered[place_of(share, len(ordered))]) for name, share in PERCENTILES.items()}


def summary_of(recording: Recording) -> dict[str, Any]:
    """The summary of a recording. Values that are unknown are None.

    `requests` and `jobs` are counts. `seconds` is the time from when the first request was due to the end of
    the last one. Rates are per second: `mean_rate` of all requests and `ok_rate` of correct responses in that
    time, `peak_rate` the largest number of requests that ended within any one second. `p50_ms` … `max_ms` are
    times of all requests, including failed ones, from when each was due. `ok_share` is the fraction of correct
    responses among all requests and jobs that could not be started; `failures` counts the failed ones of both
    by outcome. `rows_per_response` is the mean of correct responses that have rows, `bytes_per_response` that of
    all correct responses.
    """
    requests = recording.requests
    failures, tried, good = failures_of(recording), len(requests), requests.outcomes == OK
    right, unsent = int(good.sum()), failures.get(NOT_SENT, 0)
    seconds = float(requests.end.max() - requests.due.min()) if tried else 0.0
    # Wherever the second begins, so that it is never less than the mean rate of a run that is longer than a second.
    ends = numpy.sort(requests.end)
    within = numpy.searchsorted(ends, ends + 1, side="left") - numpy.arange(len(ends))
    return {
        "requests": tried,
        "jobs": len(recording) - tried - unsent,
        "seconds": seconds,
        "mean_rate": tried / seconds if seconds else None,
        "ok_rate": right / seconds if seconds else None,
        "peak_rate": int(within.max(initial=0)),
        **percentiles_of(requests.milliseconds),
        "ok_share": right / (tried + unsent) if tried + unsent else None,
        "failures": failures,
        "rows_per_response": _mean(requests.rows[good & (requests.rows >= 0)]),
        "bytes_per_response": _mean(requests.bytes[good]),
    }


def by_name(recording: Recording) -> Iterator[tuple[str, Recording]]:
    """The requests grouped by name, in the order of names."""
    requests = recording.requests
    for name in numpy.unique(requests.names):
        yield str(name), requests.where(requests.names == name)


def parts_of(recording: Recording) -> list[tuple[str, Recording]]:
    """All requests, if they have several names, the requests by name, and the jobs that were started."""
    parts = list(by_name(recording))
    if len(parts) > 1:
        parts.insert(0, ("all requests", recording.requests))
    jobs = recording.jobs.where(recording.jobs.outcomes != NOT_SENT)
    return [*parts, ("whole jobs", jobs)] if len(jobs) else parts


def failures_of(recording: Recording) -> dict[str, int]:
    """Counts of failed requests and of jobs that were not started, by outcome, in the order of `OUTCOMES`."""
    counts = recording.requests.counts | {NOT_SENT: recording.counts[NOT_SENT]}
    return {outcome: count for outcome, count in counts.items() if count and outcome != OK}


def faults_of(recording: Recording) -> int:
    """The number of failures that load does not excuse, including errors in jobs of the generator.

    Responses with 504 and jobs that were not started do not count.
    """
    failed = sum(count for outcome, count in failures_of(recording).items() if outcome not in (OVERLOADED, NOT_SENT))
    return failed + recording.jobs.counts[GENERATOR_ERROR]


def _mean(values: numpy.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
