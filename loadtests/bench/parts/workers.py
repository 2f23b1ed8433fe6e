"""Responses per second and response times for each number of gunicorn workers and of client connections."""

from loadtests.bench.rig import Rig
from loadtests.reporting import plots
from loadtests.reporting.result import Result, Table
from loadtests.service import running

TITLE = "Workers and connections"
INTRO = (
    "The service is started with each number of gunicorn workers (four threads each). Lookups are at random moments. Once all "
    "cores are busy, more connections only wait: the rate is constant and the response time grows in proportion."
)
KEYS = (
    "workers", "connections", "answers_per_s", "p50_ms", "p95_ms", "p99_ms", "errors", "gunicorn_cpu_ms", "postgres_cpu_ms",
    "client_cpu_percent", "others_cpu_percent",
)  # fmt: skip
COLUMNS = (
    "workers", "connections", "answers/s", "p50 ms", "p95 ms", "p99 ms", "errors", "gunicorn CPU ms/answer",
    "PostgreSQL CPU ms/answer", "client CPU %", "others CPU %",
)  # fmt: skip


def measure(rig: Rig) -> Result:
    """Measure each combination of a number of workers and a number of connections."""
    result = Result("workers", TITLE, INTRO)
    tag = rig.sizes.worker_scenario
    rig.seed(tag)
    for workers in rig.sizes.worker_counts:
        rig.say(f"workers: {workers}")
        with running(rig.settings, workers=workers) as service:
            rig.warm_up(service, tag)
            for connections in rig.sizes.connection_counts:
                row = rig.load(service, service.lookup_url(tag), connections=connections, seconds=rig.sizes.wrk_seconds)
                result.raw.append({"workers": workers, **row})
    result.tables.append(Table(tag, COLUMNS, [tuple(row[key] for key in KEYS) for row in result.raw]))
    rates, times = {}, {}
    for row in result.raw:
        name = f"{row['workers']} worker{'s' if row['workers'] > 1 else ''}"
        rates.setdefault(name, []).append((row["connections"], row["answers_per_s"]))
        if row["p50_ms"] is not None:
            times.setdefault(name, []).append((row["connections"], row["p50_ms"], row["p95_ms"]))
    common = {"x": "connections", "log_x": True, "ticks": rig.sizes.connection_counts}
    result.plots.append(plots.lines(f"{tag}: answers a second", rates, y="answers/s", **common))
    result.plots.append(plots.bands(f"{tag}: time of an answer, p50 to p95", times, y="ms", log_y=True, **common))
    return result
