"""The standard numbers of a run, for tables, figures and targets of campaigns."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy

from loadtests.recording.outcome import NOT_SENT, OK, OUTCOMES, OVERLOADED, RIG_ERROR
from loadtests.recording.reading import Recording
from loadtests.reporting.findings import Run

# Name of a percentile in summaries, and the share of the values in percent.
PERCENTILES = {"p50_ms": 50.0, "p90_ms": 90.0, "p95_ms": 95.0, "p99_ms": 99.0, "p999_ms": 99.9, "max_ms": 100.0}

Number = float | None


@dataclass(frozen=True)
class Rates:
    """How many ended in each second since the origin of the recording, from the first to the last of them: `seconds` are the
    beginnings of these bins."""

    seconds: numpy.ndarray
    counts: numpy.ndarray

    @classmethod
    def of(cls, ends: numpy.ndarray) -> "Rates":
        """Of moments in seconds; one empty bin where there is none."""
        if not len(ends):
            return cls(numpy.zeros(1, dtype=int), numpy.zeros(1, dtype=int))
        bins = numpy.floor(ends).astype(int)
        first = bins.min()
        counts = numpy.bincount(bins - first)
        return cls(numpy.arange(len(counts)) + first, counts)


def busiest_second(ends: numpy.ndarray) -> int:
    """The most moments (seconds) that lie within any one second, wherever that begins, so that it is never less than the mean of
    a run that takes longer."""
    ordered = numpy.sort(ends)
    return int((numpy.searchsorted(ordered, ordered + 1, side="left") - numpy.arange(len(ordered))).max(initial=0))


def percentiles_of(values: numpy.ndarray) -> dict[str, Number]:
    """By the names above, each the smallest value that so many percent do not exceed (nearest rank); None without values."""
    ordered = numpy.sort(values)
    return {name: _ranked(ordered, share) for name, share in PERCENTILES.items()}


def of(run: Run) -> dict[str, Number | dict[str, int]]:
    """What tables of campaigns show of a run. `requests` and `jobs` are counts; `seconds` go from when the first request was due
    to when the last one ended; `mean_rate` is requests by these, `ok_rate` right answers, `peak_rate` the most requests
    that ended within any one second (all a second).

    `p50_ms` … `max_ms` are times of all requests, those that failed included, from when each was due. `ok_share` is of one, of
    all requests and of the jobs that could not be started; `failures` counts these by outcome. `rows_per_answer` is the mean of
    right answers that have rows, `bytes_per_answer` that of all right answers. What cannot be known is None.
    """
    return of_recording(run.recording)


def of_recording(recording: Recording) -> dict[str, Number | dict[str, int]]:
    """The same of a recording."""
    requests = recording.requests
    failures, tried, good = failures_of(recording), len(requests), requests.outcomes == OK
    unsent = failures.get(NOT_SENT, 0)
    seconds = float(requests.end.max() - requests.due.min()) if tried else 0.0
    return {
        "requests": tried,
        "jobs": len(recording) - tried - unsent,
        "seconds": seconds,
        "mean_rate": tried / seconds if seconds else None,
        "ok_rate": int(good.sum()) / seconds if seconds else None,
        "peak_rate": busiest_second(requests.end),
        **percentiles_of(requests.milliseconds),
        "ok_share": int(good.sum()) / (tried + unsent) if tried + unsent else None,
        "failures": failures,
        "rows_per_answer": _mean(requests.rows[good & (requests.rows >= 0)]),
        "bytes_per_answer": _mean(requests.bytes[good]),
    }


def by_name(recording: Recording) -> Iterator[tuple[str, Recording]]:
    """The requests of each name, by name."""
    requests = recording.requests
    for name in numpy.unique(requests.names):
        yield str(name), requests.where(requests.names == name)


def failures_of(recording: Recording) -> dict[str, int]:
    """Requests that failed, and jobs that were not started, by outcome, in the order of outcomes."""
    unsent = recording.outcomes == NOT_SENT
    failed = recording.requests.outcomes
    counts = {outcome: int((failed == outcome).sum()) for outcome in OUTCOMES if outcome not in (OK, NOT_SENT)}
    counts[NOT_SENT] = int(unsent.sum())
    return {outcome: count for outcome, count in counts.items() if count}


def faults_of(recording: Recording) -> int:
    """Requests and users that failed in a way that no load excuses: all but 504, and jobs that were not started."""
    failed = sum(count for outcome, count in failures_of(recording).items() if outcome not in (OVERLOADED, NOT_SENT))
    return failed + int((recording.jobs.outcomes == RIG_ERROR).sum())


def _ranked(ordered: numpy.ndarray, share: float) -> Number:
    if not len(ordered):
        return None
    # Rounded, because 99.9 % of 1,000 is a little more than 999 in binary.
    rank = math.ceil(round(share * len(ordered) / 100, 9))
    return float(ordered[max(1, rank) - 1])


def _mean(values: numpy.ndarray) -> Number:
    return float(values.mean()) if len(values) else None
