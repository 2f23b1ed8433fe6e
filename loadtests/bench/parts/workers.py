"""Responses per second and response times for each number of gunicorn workers and of client connections.

The service is started with each number of gunicorn workers (four threads each). Lookups are at random moments. Once all
cores are busy, more connections only wait: the rate is constant and the response time grows in proportion.
"""

from loadtests.bench.rig import COSTS, LOADED, Rig, columns
from loadtests.reporting import plots
from loadtests.reporting.figures import curves
from loadtests.reporting.result import Result, Table
from loadtests.service import running

TITLE = "Workers and connections"


def measure(rig: Rig, result: Result) -> None:
    """Measure each combination of a number of workers and a number of connections."""
    tag = rig.sizes.worker_scenario
    rig.seed(tag)
    for workers in rig.sizes.worker_counts:
        rig.say(f"workers: {workers}")
        name = f"{workers} worker{'s' if workers > 1 else ''}"
        with running(rig.settings, workers=workers) as service:
            rig.warm_up(service, tag)
            for connections in rig.sizes.connection_counts:
                row = rig.load(service, service.lookup_url(tag), connections=connections, seconds=rig.sizes.wrk_seconds)
                result.raw.append({"workers": workers, "name": name, **row})
    result.tables.append(Table.of(tag, result.raw, columns(f"workers connections {LOADED} {COSTS}")))
    axes = {"x": "connections", "log_x": True, "ticks": rig.sizes.connection_counts}
    rates = curves(result.raw, "name", "connections", "answers_per_s")
    times = curves(result.raw, "name", "connections", "p50_ms", "p95_ms")
    result.plots += [
        plots.lines(f"{tag}: responses a second", rates, y="responses/s", **axes),
        plots.lines(f"{tag}: response time, p50 to p95", times, y="ms", log_y=True, **axes),
    ]
