"""The CPU that a streaming replica saves on the primary, per lookup, in a tag that may change and in a frozen one.

Lookups at random moments, alternately on two services: one with a streaming replica and one without. The replica is on the
same machine, so that lookups do not become faster here. The figure that matters is the primary's CPU per lookup, which a
second machine for the replica would free. For a frozen tag only the replica is queried; for a tag that may change, the
primary is queried whether it has changed.
"""

from loadtests import usage
from loadtests.bench.harness import Harness
from loadtests.bench.parts.serving import FROZEN, TAGS, serving_load
from loadtests.client import Client
from loadtests.harness import clone_with_statuses
from loadtests.reporting.figures import ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import running
from loadtests.standby import Standby

TITLE = "Read replicas"
WITH, WITHOUT = "primary and replica", "primary alone"


def measure(harness: Harness, result: Result) -> None:
    """Measure random lookups in both tags, with and without the replica."""
    largest = harness.sizes.largest
    harness.seed(largest)
    with running(harness.settings) as alone:
        clone_with_statuses(Client(alone.host), harness.sizes.largest_clone, TAGS)
        harness.say("replicas: copying the database")
        standby = Standby(harness.data, harness.data / "standby")
        with standby.running(), running(harness.settings, DATABASE_REPLICA_URLS=standby.url) as replicated:
            standby.wait_until_caught_up()
            services = {WITH: replicated, WITHOUT: alone}
            for service in services.values():
                harness.warm_up(service, largest, FROZEN)
            for tag in (largest, FROZEN):
                for number, name in harness.rounds(f"replicas, {tag}", list(services)):
                    with usage.measured(None, usage.postmaster(standby.data)) as used:
                        row = serving_load(harness, services[name], tag, number)
                    row["primary_cpu_ms"] = row.pop("postgres_cpu_ms")
                    row["replica_cpu_ms"] = used.postgres * 1000 / max(1, row["responses"])
                    result.raw.append({"tag": tag, "what": name, "round": number, **row})
    keys = "tag what round responses_per_s p50_ms p99_ms errors primary_cpu_ms replica_cpu_ms gunicorn_cpu_ms"
    result.tables.append(Table.of("Lookups", result.raw, keys))
    for tag, most in ((largest, 0.25), (FROZEN, 0.05)):
        costs = spreads((row for row in result.raw if row["tag"] == tag), "what", "primary_cpu_ms")
        title = f"primary's CPU for a lookup in {tag}: with ÷ without a replica"
        result.targets.append(Target(title, ratios_to(costs, WITHOUT)[WITH], most, at_most=True))
