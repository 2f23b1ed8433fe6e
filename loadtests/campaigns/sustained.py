"""The definition of a sustained rate of job starts, and its evaluation for a step of load."""

from dataclasses import dataclass
from typing import Any

import numpy

from loadtests.campaigns.resources import Watched
from loadtests.recording.outcome import NOT_SENT, OK
from loadtests.recording.reading import Recording
from loadtests.reporting.result import Run
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


@dataclass(frozen=True)
class Step:
    """One step at a `rate`: its run, the signals in its window, and its evaluation.

    `faults` are the reasons why the rate was not sustained; `was_late` says that the generator was late. `due` and
    `answered` are the jobs per second that were due and that succeeded, `requests` the requests per second that were due.
    `p50`, `p95` and `p99` are times of jobs in milliseconds from when they were due. `failures` counts failed requests and
    jobs that were not sent, in the whole step. `in_progress` is the mean number of jobs in progress, `growth` its increase
    over the window. `late` is the 99th percentile of the lateness of jobs in milliseconds.
    """

    rate: float
    run: Run
    watched: Watched
    faults: tuple[str, ...]
    was_late: bool
    due: float = 0.0
    answered: float = 0.0
    requests: float = 0.0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    failures: int = 0
    in_progress: float = 0.0
    growth: float = 0.0
    late: float = 0.0

    @property
    def sustained(self) -> bool:
        """Whether the rate was sustained."""
        return not self.faults

    @property
    def row(self) -> dict[str, Any]:
        """The values for tables, plots and the CSV file; the CPU of programs is `cpu.<program>`, in cores."""
        row = {"label": self.run.label, **vars(self), "result": "; ".join(self.faults) or "sustained"}
        row |= {"cores": self.watched.generator(), "cpu.machine": self.watched.mean("cpu.machine")}
        row |= {f"cpu.{name}": cores for name, cores in self.watched.programs().items()}
        return {name: value for name, value in row.items() if name not in ("run", "watched", "faults")}


def judge(run: Run, rate: float, *, begin: float, end: float, bound_ms: float) -> Step:
    """Evaluate the window of a step from `begin` to `end`, in seconds after the recording's origin.

    `bound_ms` is the bound for 95 % of the jobs. The window ends with the last job that was due, if that was
    before `end`.
    """
    recording, origin = run.recording, run.recording.origin
    whole, requests = recording.jobs, recording.requests
    # By jobs, not by requests: the second request of a job is due after the first response.
    end = min(end, float(whole.due.max()))
    seconds, jobs = end - begin, whole.where((whole.due >= begin) & (whole.due < end))
    watched = Watched(run.signals, recording.samples, origin + begin, origin + end)
    if not len(jobs):
        fault = "the generator was so late that no job was due in the window"
        return Step(rate, run, watched, (fault,), was_late=True)
    sent = jobs.where(jobs.outcomes != NOT_SENT)
    ended = whole.where((whole.end >= begin) & (whole.end < end) & (whole.outcomes == OK))
    failures = requests.failures + whole.counts[NOT_SENT]
    p50, _, p95, p99, *_ = percentiles_of(sent.milliseconds).values()
    late = percentiles_of((sent.begin - sent.due) * 1000)["p99_ms"] or 0.0
    mean, growth = in_progress(whole, begin, end)
    due, answered = len(jobs) / seconds, len(ended) / seconds
    margin_ms = MARGIN * bound_ms
    faults = {
        f"answered {answered:.1f}/s of {due:.1f}/s": answered < due - max(LOSS * due, LEAST_LOSS_JOBS / seconds),
        f"{failures:,} failures": failures > 0,
        f"{growth:.0f} more jobs in progress": growth > max(margin_ms / 1000 * due, LEAST_GROWTH_JOBS),
        "nothing was sent" if p95 is None else f"p95 {p95:.0f} ms": p95 is None or p95 > bound_ms,
        f"the generator was {late:.0f} ms late": late > margin_ms,
    }
    calls = float(((requests.due >= begin) & (requests.due < end)).sum()) / seconds
    found = tuple(fault for fault, is_found in faults.items() if is_found)
    state = (late > margin_ms, due, answered, calls, p50, p95, p99, failures, mean, growth, late)
    return Step(rate, run, watched, found, *state)


def in_progress(jobs: Recording, begin: float, end: float) -> tuple[float, float]:
    """The jobs that were due and had not ended: their mean over a window, and the rise of a fitted line."""
    sent = jobs.where(jobs.outcomes != NOT_SENT)
    moments = numpy.arange(begin, end, CHECK_INTERVAL_SECONDS)
    started, ended = (numpy.searchsorted(numpy.sort(times), moments, side="right") for times in (sent.due, sent.end))
    open_jobs = started - ended
    slope = numpy.polyfit(moments, open_jobs, 1)[0] if len(moments) > 1 else 0.0
    return float(open_jobs.mean()), float(slope * (end - begin))
