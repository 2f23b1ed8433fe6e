"""Responses per second and response times for each number of gunicorn workers and of clients.

This is the campaign `workers` of `make load` with the scenario and the numbers of the bench, each measured once. The service
is started with each number of gunicorn workers (four threads each). Once all cores are busy, more clients only wait: the
rate is constant and the response time grows in proportion.
"""

from loadtests.bench.harness import Harness
from loadtests.campaigns import closed
from loadtests.reporting.result import Result

TITLE = "Workers and clients"


def measure(harness: Harness, result: Result) -> None:
    """Run the campaign on the data of the bench."""
    sizes = harness.sizes
    with harness.stage() as stage:
        counts = (sizes.worker_counts, sizes.connection_counts)
        result.add(closed.workers_of(stage, sizes.worker_scenario, *counts, repetitions=1), "workers: ")
