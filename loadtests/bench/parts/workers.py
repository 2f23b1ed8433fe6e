"""Responses per second and response times for each number of gunicorn workers and of client connections."""

from loadtests.bench.rig import COSTS, LOADED, Rig, table
from loadtests.reporting import plots
from loadtests.reporting.result import Result
from loadtests.service import running

TITLE = "Workers and connections"
INTRO = (
    "The service is started with each number of gunicorn workers (four threads each). Lookups are at random moments. Once all "
    "cores are busy, more connections only wait: the rate is constant and the response time grows in proportion."
)


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
    result.tables.append(table(tag, result.raw, f"workers connections {LOADED} {COSTS}"))
    rates, times = {}, {}
    for row in result.raw:
        name = f"{row['workers']} worker{'s' if row['workers'] > 1 else ''}"
        rates.setdefault(name, []).append((row["connections"], row["answers_per_s"]))
        if row["p50_ms"] is not None:
            times.setdefault(name, []).append((row["connections"], row["p50_ms"], row["p95_ms"]))
    common = {"x": "connections", "log_x": True, "ticks": rig.sizes.connection_counts}
    result.plots.append(plots.lines(f"{tag}: responses a second", rates, y="responses/s", **common))
    result.plots.append(plots.bands(f"{tag}: response time, p50 to p95", times, y="ms", log_y=True, **common))
    return result
