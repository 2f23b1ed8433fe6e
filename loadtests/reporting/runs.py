"""What the report tells of each run."""

import re
from collections.abc import Sequence

from loadtests.recording.outcome import NOT_SENT, OK
from loadtests.recording.reading import Recording
from loadtests.reporting import resources, summaries, timelines, verdict
from loadtests.reporting.findings import Run
from loadtests.reporting.result import Result, Table

SHOWN_PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9", "max")
MODEL = {
    "after the last one": "Closed loop: each user waits for its answers before it goes on, so a stall holds users back and "
    "hides requests that others would have sent meanwhile (coordinated omission).",
    "at a constant rate": "Open model: jobs start at a constant rate, and times count from when each was due.",
    "at random": "Open model: jobs start at random moments at a given rate, and times count from when each was due.",
    "all at once": "A storm: all jobs are due at the same moment, and times count from that.",
}
UNKNOWN_MODEL = (
    "Times count from when each request was due; where users waited for their answers (a closed loop), a stall held them "
    "back and hides requests that others would have sent meanwhile (coordinated omission)."
)


def result_of(run: Run) -> Result:
    """A section of its own: verdicts, tables, plots."""
    tables = [_overview([run]), _percentiles(run.recording), _answers(run.recording), _failures(run.recording)]
    result = Result(part_of(run.label), run.label, _settings(run), notes=notes_of(run))
    result.tables = [table for table in tables if table.rows]
    if len(run.recording.requests):
        result.plots = [*timelines.plots_of(run.recording), resources.plot_of(run)]
    return result


def notes_of(run: Run) -> list[str]:
    """How to read its times, who was the bottleneck, and what makes its figures worth nothing."""
    return [_model(run), *verdict.sentences(run), *_emptiness(run.recording)]


def table_of(runs: Sequence[Run]) -> Table:
    """One line for each run."""
    return _overview(runs, "Runs")


def part_of(label: str) -> str:
    """A name for files and links."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "run"


def _overview(runs: Sequence[Run], title: str = "") -> Table:
    columns = ("run", "requests", "jobs", "duration, s", "mean frequency, requests/s", "right answers/s")
    columns += ("peak frequency, requests/s", "p50, ms", "p95, ms", "p99, ms", "right, %", "rows per answer")
    rows = []
    for run in runs:
        of = summaries.of(run)
        # Not rounded to three digits, in which 99.96 would be 100.
        share = "–" if of["ok_share"] is None else f"{of['ok_share'] * 100:.3f}"
        # The busiest second of less than a second is none.
        of["peak_rate"] = of["peak_rate"] if of["seconds"] >= 1 else None
        keys = ("requests", "jobs", "seconds", "mean_rate", "ok_rate", "peak_rate", "p50_ms", "p95_ms", "p99_ms")
        rows.append((run.label, *(of[key] for key in keys), share, of["rows_per_answer"]))
    return Table(title, columns, rows)


def _percentiles(recording: Recording) -> Table:
    parts: list[tuple[str, Recording]] = list(summaries.by_name(recording))
    if len(parts) > 1:
        parts.insert(0, ("all requests", recording.requests))
    if len(recording.jobs):
        parts.append(("whole jobs", recording.jobs.where(recording.jobs.outcomes != NOT_SENT)))
    rows = [(name, len(one), *summaries.percentiles_of(one.milliseconds).values()) for name, one in parts]
    return Table("Response times, ms", ("request", "count", *SHOWN_PERCENTILES), rows)


def _answers(recording: Recording) -> Table:
    columns = ("request", "right answers", "rows in all", "rows per answer", "MB in all", "bytes per answer", "MB/s")
    rows = []
    seconds = summaries.of_recording(recording)["seconds"]
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
        (kind, count, count / tried * 100, *recording.examples.get(kind, ("", "")))
        for kind, count in counts.items()
    ]  # fmt: skip
    return Table("Failures, with one example each", ("outcome", "count", "share, %", "request", "example"), rows)


def _emptiness(recording: Recording) -> list[str]:
    told = []
    for name, one in summaries.by_name(recording):
        counted = one.rows[(one.outcomes == OK) & (one.rows >= 0)]
        if len(counted) and not counted.any():
            told.append(f"Warning: all {len(counted):,} answers to {name} were empty: this measures an empty answer.")
    return told


def _model(run: Run) -> str:
    known = run.settings.get("start-jobs", "after the last one" if run.settings else "")
    return MODEL.get(known, UNKNOWN_MODEL)


def _settings(run: Run) -> str:
    return f"Load: {', '.join(f'{name} {value}' for name, value in run.settings.items())}." if run.settings else ""
