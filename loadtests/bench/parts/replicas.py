"""The CPU that a streaming replica saves on the primary, per lookup, in a tag that may change and in a frozen one."""

from loadtests import usage
from loadtests.bench.parts.serving import FROZEN, make_tags, serving_load
from loadtests.bench.rig import Rig, table
from loadtests.reporting.figures import Spread, ratio
from loadtests.reporting.result import Result, Target
from loadtests.rig import in_turns
from loadtests.service import Service, running
from loadtests.standby import Standby

TITLE = "Read replicas"
WITH, WITHOUT = "primary and replica", "primary alone"
INTRO = (
    "Lookups at random moments, alternately on two services: one with a streaming replica and one without. The replica is on the "
    "same machine, so that lookups do not become faster here. The figure that matters is the primary's CPU per lookup, which a "
    "second machine for the replica would free. For a frozen tag only the replica is queried; for a tag that may change, the "
    "primary is queried whether it has changed."
)


def measure(rig: Rig) -> Result:
    """Measure random lookups in both tags, with and without the replica."""
    result = Result("replicas", TITLE, INTRO)
    rig.seed(rig.sizes.largest)
    tags = (rig.sizes.largest, FROZEN)
    with running(rig.settings) as alone:
        make_tags(alone, rig.sizes.largest_clone)
        rig.say("replicas: copying the database")
        standby = Standby(rig.data, rig.data / "standby")
        with standby.running(), running(rig.settings, DATABASE_REPLICA_URLS=standby.url) as replicated:
            standby.wait_until_caught_up()
            services = {WITH: replicated, WITHOUT: alone}
            for service in services.values():
                rig.warm_up(service, *tags)
            for tag in tags:
                for number, name in in_turns(list(services), rig.sizes.rounds):
                    rig.say(f"replicas: {tag}, round {number} of {rig.sizes.rounds}, {name}")
                    row = _load(rig, services[name], standby, tag, number)
                    result.raw.append({"tag": tag, "what": name, "round": number, **row})
    keys = "tag what round answers_per_s p50_ms p99_ms errors primary_cpu_ms replica_cpu_ms gunicorn_cpu_ms"
    result.tables.append(table("Lookups", result.raw, keys))
    for tag, most in ((rig.sizes.largest, 0.25), (FROZEN, 0.05)):
        title = f"primary's CPU for a lookup in {tag}: with ÷ without a replica"
        value = ratio(_primary(result, tag, WITH), _primary(result, tag, WITHOUT))
        result.targets.append(Target(title, value, most, at_most=True))
    return result


def _load(rig: Rig, service: Service, standby: Standby, tag: str, number: int) -> dict:
    with usage.measured(None, usage.postmaster(standby.data)) as used:
        row = serving_load(rig, service, tag, number)
    row["primary_cpu_ms"] = row.pop("postgres_cpu_ms")
    return row | {"replica_cpu_ms": used.postgres * 1000 / max(1, row["answers"])}


def _primary(result: Result, tag: str, what: str) -> float:
    return Spread.of([row["primary_cpu_ms"] for row in result.raw if (row["tag"], row["what"]) == (tag, what)]).median
