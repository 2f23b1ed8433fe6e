"""The section of a report about one run."""

import re
from collections.abc import Sequence

from loadtests.recording.outcome import NOT_SENT, OK
from loadtests.recording.reading import Recording
from loadtests.reporting import resources, summaries, timelines, verdict
from loadtests.reporting.findings import Run
from loadtests.reporting.result import Result, Table

SHOWN_PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9", "max")
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
    tables = [_overview([run]), _percentiles(run.recording), _responses(run.recording), _failures(run.recording)]
    result = Result(part_of(run.label), run.label, _settings(run), notes=notes_of(run))
    result.tables = [table for table in tables if table.rows]
    if len(run.recording.requests):
        result.plots = [*timelines.plots_of(run.recording), resources.plot_of(run)]
    return result


def notes_of(run: Run) -> list[str]:
    """Notes on a run: the meaning of its times, the verdict on the generator, and warnings about its figures."""
    return [_model(run), *verdict.sentences(run), *_emptiness(run.recording)]


def table_of(runs: Sequence[Run]) -> Table:
    """A table with one line for each run."""
    return _overview(runs, "Runs")


def part_of(label: str) -> str:
    """The name of a run in file names and links."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "run"


def _overview(runs: Sequence[Run], title: str = "") -> Table:
    columns = ("run", "requests", "jobs", "duration, s", "mean frequency, requests/s", "right answers/s")
    columns += ("peak frequency, requests/s", "p50, ms", "p95, ms", "p99, ms", "right, %", "rows per answer")
    rows = []
    for run in runs:
        of = summaries.of(run)
        # Not formatted by the report, which would round 99.96 to 100.
        share = "–" if of["ok_share"] is None else f"{of['ok_share'] * 100:.3f}"
        # A run of less than a second has no busiest second.
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


def _responses(recording: Recording) -> Table:
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
    warnings = []
    for name, one in summaries.by_name(recording):
        counted = one.rows[(one.outcomes == OK) & (one.rows >= 0)]
        if len(counted) and not counted.any():
            warnings.append(
                f"Warning: all {len(counted):,} responses to {name} were empty: these figures are of empty responses."
            )
    return warnings


def _model(run: Run) -> str:
    known = run.settings.get("start-jobs", "after the last one" if run.settings else "")
    return MODEL.get(known, UNKNOWN_MODEL)


def _settings(run: Run) -> str:
    return f"Load: {', '.join(f'{name} {value}' for name, value in run.settings.items())}." if run.settings else ""
