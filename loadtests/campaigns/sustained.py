"""Whether a service sustained a rate at which jobs were started: what that means, said once."""

from dataclasses import dataclass

import numpy

from loadtests.recording.outcome import NOT_SENT, OK
from loadtests.recording.reading import Recording
from loadtests.reporting.summaries import percentiles_of

# Of the offered rate that may be missing from the answered one: jobs that the edges of the window cut.
LOSS = 0.02
LEAST_LOSS_JOBS = 3
# Of the bound on times: the queue may be longer at the end of the window than at its beginning by what is due in this time (by
# Little's law jobs take that much longer then), and the generator was late if more of its jobs than one in a hundred were.
MARGIN = 0.25
LEAST_GROWTH_JOBS = 5
LOOK_SECONDS = 0.1

MEANING = (
    "A rate is sustained if, in the window after the first seconds of a step, jobs were answered rightly at no less than "
    f"{100 - 100 * LOSS:g} % of the rate at which they were due (or {LEAST_LOSS_JOBS} jobs fewer, where that is more); no "
    "request of the whole step failed (504 is a failure, and so is a job that the generator had no room to start); the number of "
    "jobs in progress, by a straight line through it, did not grow from the beginning to the end of the window by more than "
    f"what is due in {100 * MARGIN:g} % of the bound (or {LEAST_GROWTH_JOBS} jobs); 95 % of the jobs ended within the bound, "
    "counted from when they were due, not from when they began; and the generator was on time: 99 % of its jobs began within "
    f"{100 * MARGIN:g} % of the bound after they were due."
)


@dataclass(frozen=True)
class Step:
    """What was measured at one rate, in the window: jobs a second that were due and that were answered rightly, times of jobs
    in ms from when they were due, failed requests and jobs not sent in all of the step, jobs in progress (mean, and growth
    from one end of the window to the other), how late jobs began (ms, p99); `begin` and `end` of the window are seconds since
    the epoch. `faults` says what kept the rate from being sustained, in words."""

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
        """Whether nothing spoke against it."""
        return not self.faults


def judge(recording: Recording, *, begin: float, end: float, bound_ms: float) -> Step:
    """The window from `begin` to `end` (seconds after the recording's origin) of a step; `bound_ms` is what 95 % of the jobs must
    keep. The window ends with the last job that was due, if that was before `end`."""
    whole = recording.jobs
    # Not with the second requests of jobs, which are due when the first ones have been answered.
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
    """A step that was over before its window began."""
    fault = "the generator was so late that no job was due in the window"
    return Step(0.0, 0.0, 0.0, None, None, None, 0, 0.0, 0.0, 0.0, origin, origin, (fault,), True)


def in_progress(jobs: Recording, begin: float, end: float) -> tuple[float, float]:
    """How many jobs were due and had not ended: the mean over a window, and by how many a straight line through them rises."""
    sent = jobs.outcomes != NOT_SENT
    moments = numpy.arange(begin, end, LOOK_SECONDS)
    started = numpy.searchsorted(numpy.sort(jobs.due[sent]), moments, side="right")
    ended = numpy.searchsorted(numpy.sort(jobs.end[sent]), moments, side="right")
    open_jobs = started - ended
    if len(moments) < 2:
        return float(open_jobs.mean()), 0.0
    slope = numpy.polyfit(moments, open_jobs, 1)[0]
    return float(open_jobs.mean()), float(slope * (end - begin))
