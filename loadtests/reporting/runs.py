"""The section of a report about one run."""

import re
from collections.abc import Sequence

from loadtests.recording.outcome import NOT_SENT, OK
from loadtests.recording.reading import Recording
from loadtests.reporting import resources, summaries, timelines, verdict
from loadtests.reporting.result import Result, Run, Table

OVERVIEW = {"label": "run", "requests": "requests", "jobs": "jobs", "seconds": "duration, s"}
OVERVIEW |= {"mean_rate": "mean frequency, requests/s", "ok_rate": "right answers/s"}
OVERVIEW |= {"peak_rate": "peak frequency, requests/s", "p50_ms": "p50, ms", "p95_ms": "p95, ms", "p99_ms": "p99, ms"}
OVERVIEW |= {"right": "right, %", "rows_per_answer": "rows per answer"}
PERCENTILES = {"name": "request", "count": "count", "p50_ms": "p50", "p90_ms": "p90", "p95_ms": "p95", "p99_ms": "p99"}
PERCENTILES |= {"p999_ms": "p99.9", "max_ms": "max"}
MODEL = {
    "after the last one": "Closed loop: each user waits for a response before it continues. A stall of the service therefore "
    "also stops the users, and hides the requests that real clients would have sent meanwhile (coordinated omission).",
    "at a constant rate": "Open model: jobs start at a constant rate, and times count from when each job was due.",
    "at random": "Open model: jobs start at random moments at a given rate, and times count from when each job was due.",
    "all at once": "A storm: all jobs are due at the same moment, and times count from that moment.",
}
UNKNOWN_MODEL = (
    "Times count from when each request was due. If users waited for responses (a closed loop), a stall of the service also "
    "stopped the users, and hides the requests that real clients would have sent meanwhile (coordinated omission)."
)


def result_of(run: Run) -> Result:
    """The section of a run, with verdicts, tables and plots."""
    part = re.sub(r"[^a-z0-9]+", "-", run.label.lower()).strip("-") or "run"
    load = f"Load: {', '.join(f'{name} {value}' for name, value in run.settings.items())}." if run.settings else ""
    times = [
        {"name": name, "count": len(one), **summaries.percentiles_of(one.milliseconds)}
        for name, one in summaries.parts_of(run.recording)
    ]
    tables = [table_of([run], ""), Table.of("Response times, ms", times, PERCENTILES)]
    tables += [_responses(run.recording), _failures(run.recording)]
    result = Result(part, run.label, load, notes=notes_of(run), tables=[table for table in tables if table.rows])
    if len(run.recording.requests):
        result.plots = [*timelines.plots_of(run.recording), resources.plot_of(run)]
    return result


def notes_of(run: Run) -> list[str]:
    """Notes on a run: the meaning of its times, the verdict on the generator, and warnings about its figures."""
    known = run.settings.get("start-jobs", "after the last one" if run.settings else "")
    notes = [MODEL.get(known, UNKNOWN_MODEL), *verdict.sentences(run)]
    for name, one in summaries.by_name(run.recording):
        counted = one.rows[(one.outcomes == OK) & (one.rows >= 0)]
        if len(counted) and not counted.any():
            text = f"all {len(counted):,} responses to {name} were empty: these figures are of empty responses."
            notes.append(f"Warning: {text}")
    return notes


def table_of(runs: Sequence[Run], title: str = "Runs") -> Table:
    """A table with one line for each run."""
    rows = []
    for run in runs:
        of = summaries.summary_of(run.recording)
        # Not formatted by the report, which would round 99.96 to 100.
        of["right"] = "–" if of["ok_share"] is None else f"{of['ok_share'] * 100:.3f}"
        # A run of less than a second has no busiest second.
        of["peak_rate"] = of["peak_rate"] if of["seconds"] >= 1 else None
        rows.append(of | {"label": run.label})
    return Table.of(title, rows, OVERVIEW)


def _responses(recording: Recording) -> Table:
    columns = ("request", "right answers", "rows in all", "rows per answer", "MB in all", "bytes per answer", "MB/s")
    rows = []
    seconds = summaries.summary_of(recording)["seconds"]
    for name, one in summaries.by_name(recording):
        good = one.where(one.outcomes == OK)
        if not len(good):
            continue
        counted = good.rows[good.rows >= 0]
        mega = float(good.bytes.sum()) / 1e6
        lines = (int(counted.sum()), float(counted.mean())) if len(counted) else (None, None)
        rows.append((name, len(good), *lines, mega, float(good.bytes.mean()), mega / seconds if seconds else None))
    return Table("Rows and bytes returned", columns, rows)


def _failures(recording: Recording) -> Table:
    counts = summaries.failures_of(recording)
    tried = len(recording.requests) + counts.get(NOT_SENT, 0)
    rows = [
        (kind, count, count / tried * 100, *recording.examples.get(kind, ("", ""))) for kind, count in counts.items()
    ]
    return Table("Failures, with one example each", ("outcome", "count", "share, %", "request", "example"), rows)
