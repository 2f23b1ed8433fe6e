"""The definition of a sustained rate of job starts, and its evaluation for a step of load."""

from dataclasses import dataclass

import numpy

from loadtests.recording.outcome import NOT_SENT, OK
from loadtests.recording.reading import Recording
from loadtests.reporting.summaries import percentiles_of

# The share of the offered rate that may be missing, because the window cuts jobs at its edges.
LOSS = 0.02
LEAST_LOSS_JOBS = 3
# A share of the bound on times. The queue may grow within the window by the jobs that are due in this time (by
# Little's law, jobs then take that much longer). The generator is late if more than one job in a hundred is
# late by more than this time.
MARGIN = 0.25
LEAST_GROWTH_JOBS = 5
CHECK_INTERVAL_SECONDS = 0.1

MEANING = (
    "A rate is sustained if all of these hold in the window after the first seconds of a step. Jobs succeeded at no less than "
    f"{100 - 100 * LOSS:g} % of the rate at which they were due (or {LEAST_LOSS_JOBS} jobs fewer, if that is more). No request "
    "of the whole step failed; 504 is a failure, and so is a job that the generator could not start. The number of jobs in "
    "progress, fitted by a straight line, did not grow from the beginning to the end of the window by more than the jobs due in "
    f"{100 * MARGIN:g} % of the bound (or {LEAST_GROWTH_JOBS} jobs). 95 % of the jobs ended within the bound, counted from when "
    f"they were due, not from when they began. The generator was on time: 99 % of its jobs began within {100 * MARGIN:g} % of "
    "the bound after they were due."
)


@dataclass(frozen=True)
class Step:
    """The evaluation of one step, in its window.

    `offered` and `answered` are the jobs per second that were due and that succeeded, `requests` the requests
    per second that were due. `p50`, `p95` and `p99` are times of jobs in milliseconds from when they were due.
    `failures` counts failed requests and jobs that were not sent, in the whole step. `in_progress` is the mean
    number of jobs in progress, `growth` its increase over the window. `late` is the 99th percentile of the
    lateness of jobs in milliseconds. `begin` and `end` of the window are seconds since the epoch. `faults` are
    the reasons why the rate was not sustained; `was_late` says that the generator was late.
    """

    offered: float
    answered: float
    requests: float
    p50: float | None
    p95: float | None
    p99: float | None
    failures: int
    in_progress: float
    growth: float
    late: float
    begin: float
    end: float
    faults: tuple[str, ...]
    was_late: bool

    @property
    def sustained(self) -> bool:
        """Whether the rate was sustained."""
        return not self.faults


def judge(recording: Recording, *, begin: float, end: float, bound_ms: float) -> Step:
    """Evaluate the window of a step from `begin` to `end`, in seconds after the recording's origin.

    `bound_ms` is the bound for 95 % of the jobs. The window ends with the last job that was due, if that was
    before `end`.
    """
    whole = recording.jobs
    # By jobs, not by requests: the second request of a job is due after the first response.
    end = min(end, float(whole.due.max()))
    seconds, jobs = end - begin, whole.where((whole.due >= begin) & (whole.due < end))
    if not len(jobs):
        return _empty(recording.origin)
    sent = jobs.where(jobs.outcomes != NOT_SENT)
    ended = whole.where((whole.end >= begin) & (whole.end < end) & (whole.outcomes == OK))
    requests = recording.requests
    failures = int((requests.outcomes != OK).sum() + (whole.outcomes == NOT_SENT).sum())
    times = percentiles_of(sent.milliseconds)
    late = percentiles_of((sent.begin - sent.due) * 1000)["p99_ms"] or 0.0
    mean, growth = in_progress(whole, begin, end)
    offered, answered = len(jobs) / seconds, len(ended) / seconds
    margin_ms, faults = MARGIN * bound_ms, []
    if answered < offered - max(LOSS * offered, LEAST_LOSS_JOBS / seconds):
        faults.append(f"answered {answered:.1f}/s of {offered:.1f}/s")
    if failures:
        faults.append(f"{failures:,} failures")
    if growth > max(margin_ms / 1000 * offered, LEAST_GROWTH_JOBS):
        faults.append(f"{growth:.0f} more jobs in progress")
    if times["p95_ms"] is None or times["p95_ms"] > bound_ms:
        faults.append(f"p95 {times['p95_ms'] or 0:.0f} ms" if len(sent) else "nothing was sent")
    if late > margin_ms:
        faults.append(f"the generator was {late:.0f} ms late")
    return Step(
        offered, answered, float(((requests.due >= begin) & (requests.due < end)).sum()) / seconds, times["p50_ms"],
        times["p95_ms"], times["p99_ms"], failures, mean, growth, late, recording.origin + begin, recording.origin + end,
        tuple(faults), late > margin_ms,
    )  # fmt: skip


def _empty(origin: float) -> Step:
    """The evaluation of a step that ended before its window began."""
    fault = "the generator was so late that no job was due in the window"
    return Step(0.0, 0.0, 0.0, None, None, None, 0, 0.0, 0.0, 0.0, origin, origin, (fault,), True)


def in_progress(jobs: Recording, begin: float, end: float) -> tuple[float, float]:
    """The jobs that were due and had not ended: their mean over a window, and the rise of a fitted line."""
    sent = jobs.outcomes != NOT_SENT
    moments = numpy.arange(begin, end, CHECK_INTERVAL_SECONDS)
    started = numpy.searchsorted(numpy.sort(jobs.due[sent]), moments, side="right")
    ended = numpy.searchsorted(numpy.sort(jobs.end[sent]), moments, side="right")
    open_jobs = started - ended
    if len(moments) < 2:
        return float(open_jobs.mean()), 0.0
    slope = numpy.polyfit(moments, open_jobs, 1)[0]
    return float(open_jobs.mean()), float(slope * (end - begin))
