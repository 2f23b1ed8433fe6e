"""The effect of nginx, and of a streaming replica, on lookups that no cache can serve.

Lookups at random moments, alternately in three services on the same database: granian alone, `make serve`, and granian with
a streaming replica. All processes share the machine, so that a replica does not make lookups faster here: the figure that
matters is the primary's CPU per lookup, which a replica on another machine would save. For a frozen tag only the replica is
queried; for a tag that may change, the primary is queried whether it has changed. The client's counts are compared with
nginx's access log, which would reveal a client that counts incorrectly. When the time is over, each connection may have a
request in progress, which is in the log but was not counted. Then the first two services are compared in each scenario with
compiled tags, in which nothing has changed, and with fewer connections, so that requests do not wait for threads. The
campaign storm-cache measures what nginx's cache saves.
"""

import contextlib
import time
from typing import Any

from loadtests import usage
from loadtests.access_log import FLUSH_SECONDS, AccessLog, size_of
from loadtests.bench.harness import Harness
from loadtests.bench.parts.compiled import CONNECTIONS, SMALL, compiled_by_command
from loadtests.client import Client
from loadtests.harness import clone_with_statuses
from loadtests.reporting.figures import grouped, ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, manage, running
from loadtests.standby import Standby

TITLE = "Serving as in production"
ALONE, SERVE, REPLICATED = "make run", "make serve", "make run with a streaming replica"
KEYS = "tag what round responses_per_s p50_ms p99_ms errors service_cpu_ms primary_cpu_ms replica_cpu_ms others_cpu_percent"


def measure(harness: Harness, result: Result) -> None:
    """Measure lookups in the largest tag and in a frozen tag, with each service in turn."""
    largest, source = harness.sizes.largest, harness.sizes.cloned
    # A run of another size may have left a clone of another scenario.
    frozen = f"bench-frozen-{source}"
    harness.seed(largest, source)
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(running(harness.settings))
        clone_with_statuses(Client(alone.host), source, {"frozen": frozen})
        harness.say("serving: copying the database")
        standby = stack.enter_context(Standby(harness.data, harness.data / "standby").running())
        services = {ALONE: alone, SERVE: stack.enter_context(running(harness.settings, command="serve"))}
        services[REPLICATED] = stack.enter_context(running(harness.settings, DATABASE_REPLICA_URLS=standby.url))
        standby.wait_until_caught_up()
        for tag in (largest, frozen):
            for service in services.values():
                harness.warm_up(service, tag)
            for number, name in harness.rounds(f"serving, {tag}", list(services)):
                row = {"tag": tag, "what": name, "round": number}
                result.raw.append(row | _load(harness, services[name], standby, tag, number))
    _show(harness, result)
    _compare_compiled(harness, result)


def _compare_compiled(harness: Harness, result: Result) -> None:
    """Compare granian alone and `make serve` in each scenario, with compiled tags."""
    tags = list(dict.fromkeys((SMALL, *harness.sizes.scenarios)))
    harness.seed(*tags)
    rows: list[dict[str, Any]] = []
    with compiled_by_command(harness, harness.settings) as settings, contextlib.ExitStack() as stack:
        for tag in tags:
            manage(settings, "compile_tag", tag)
        commands = {ALONE: "run", SERVE: "serve"}
        services = {name: stack.enter_context(running(settings, command=one)) for name, one in commands.items()}
        for tag in tags:
            for service in services.values():
                harness.warm_up(service, tag)
            found: list[dict[str, Any]] = []
            for number, name in harness.rounds(f"serving, {tag}, compiled", list(services)):
                load = {"connections": CONNECTIONS, "seconds": harness.sizes.seconds, "seed": number}
                row = harness.load(services[name], services[name].lookup_url(tag), **load)
                found.append({"tag": tag, "what": name, "round": number, **row})
            rows += found
            rate = ratios_to(spreads(found, "what", "responses_per_s"), ALONE)[SERVE]
            result.targets.append(Target(f"compiled {tag}: make serve ÷ make run", rate, 0.9, at_most=False))
    result.raw += rows
    title = f"Random moments, {CONNECTIONS} connections, compiled tags"
    keys = "tag what round responses_per_s p50_ms p99_ms errors service_cpu_ms postgres_cpu_ms client_cpu_percent"
    result.tables.append(Table.of(title, rows, keys))


def _load(harness: Harness, service: Service, standby: Standby, tag: str, seed: int) -> dict[str, Any]:
    """The figures of a round; for `make serve`, with the number of requests in nginx's log that were not counted."""
    path, is_logged = harness.data / "serve" / "access.log", service.command == "serve"
    if is_logged:
        # nginx may still have lines of earlier requests in its buffer.
        time.sleep(FLUSH_SECONDS)
    offset, url = size_of(path), service.lookup_url(tag)
    load = {"connections": harness.sizes.serving_connections, "seconds": harness.sizes.seconds, "seed": seed}
    row = harness.load(service, url, **load, replica=usage.postmaster(standby.data))
    row["primary_cpu_ms"] = row.pop("postgres_cpu_ms")
    if is_logged:
        row["not_counted"] = len(AccessLog.read(path, offset, count=row["responses"])) - row["responses"]
    return row


def _show(harness: Harness, result: Result) -> None:
    title = f"Random moments, {harness.sizes.serving_connections} connections"
    result.tables.append(Table.of(title, result.raw, KEYS))
    of_largest, of_frozen = grouped(result.raw, "tag").values()
    rates = ratios_to(spreads(of_largest, "what", "responses_per_s"), ALONE)
    result.targets.append(Target("lookups: make serve ÷ make run", rates[SERVE], 0.8, at_most=False))
    for rows, most in ((of_largest, 0.25), (of_frozen, 0.05)):
        cost = ratios_to(spreads(rows, "what", "primary_cpu_ms"), ALONE)[REPLICATED]
        name = f"primary's CPU for a lookup in {rows[0]['tag']}: with ÷ without a replica"
        result.targets.append(Target(name, cost, most, at_most=True))
    not_counted = [row["not_counted"] for row in result.raw if "not_counted" in row]
    result.targets += [
        Target(
            "requests in nginx's log that wrk did not count", max(not_counted), harness.sizes.serving_connections, True
        ),
        Target("requests in nginx's log less those that wrk counted", min(not_counted), 0, at_most=False),
    ]
