"""Responses per second and response times for each number of gunicorn workers and of client connections.

The service is started with each number of gunicorn workers (four threads each). Lookups are at random moments. Once all
cores are busy, more connections only wait: the rate is constant and the response time grows in proportion.
"""

from loadtests.bench.harness import COSTS, LOADED, Harness
from loadtests.reporting import plots
from loadtests.reporting.figures import curves
from loadtests.reporting.result import Result, Table
from loadtests.service import running

TITLE = "Workers and connections"


def measure(harness: Harness, result: Result) -> None:
    """Measure each combination of a number of workers and a number of connections."""
    tag = harness.sizes.worker_scenario
    harness.seed(tag)
    for workers in harness.sizes.worker_counts:
        harness.say(f"workers: {workers}")
        name = f"{workers} worker{'s' if workers > 1 else ''}"
        with running(harness.settings, workers=workers) as service:
            harness.warm_up(service, tag)
            for connections in harness.sizes.connection_counts:
                row = harness.load(
                    service, service.lookup_url(tag), connections=connections, seconds=harness.sizes.wrk_seconds
                )
                result.raw.append({"workers": workers, "name": name, **row})
    result.tables.append(Table.of(tag, result.raw, f"workers connections {LOADED} {COSTS}"))
    axes = {"x": "connections", "log_x": True, "ticks": harness.sizes.connection_counts}
    rates = curves(result.raw, "name", "connections", "responses_per_s")
    times = curves(result.raw, "name", "connections", "p50_ms", "p95_ms")
    result.plots += [
        plots.lines(f"{tag}: responses a second", rates, y="responses/s", **axes),
        plots.lines(f"{tag}: response time, p50 to p95", times, y="ms", log_y=True, **axes),
    ]
