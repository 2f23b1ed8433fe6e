"""The lookup strategies by scenario and pattern: database time, and whole responses.

Database time is the value that the service reports in Server-Timing, for sequential requests of one client. Whole
responses are measured by wrk with several connections. Patterns: first is the moment (0, 0), random is uniform in
0…2^31-1, last is (2^31-1, 2^31-1). At the first moment nothing is valid, so that first returns no rows.
"""

import json
import math
import re
from typing import Any

from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.bench.harness import COSTS, Harness
from loadtests.client import Client, Response, lookups
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, grouped, percentile
from loadtests.reporting.result import Result, Table
from loadtests.service import Service, manage, running

TITLE = "Strategies"
OWN = "the service's own"
# Larger tags do not stay in memory and are warmed up, unless a single lookup takes longer than SLOW_MILLISECONDS.
LARGE, SLOW_MILLISECONDS = 500_000, 100
PATTERNS = ("first", "random", "last")
VERDICT = "strategy scan index condition rows_read rows_removed heap_fetches buffers rows planning_ms execution_ms"
KEYS = (
    "strategy scenario pattern rows calls db_p50_ms db_p95_ms db_p99_ms wall_p50_ms connections responses_per_s p50_ms p95_ms "
    "p99_ms bytes_per_response errors"
)


def measure(harness: Harness, result: Result) -> None:
    """Measure every combination for a limited time."""
    scenarios = harness.sizes.strategy_scenarios
    harness.seed(*scenarios)
    manage(harness.settings, "strategy_indexes", "create")
    try:
        with running(harness.settings) as service:
            harness.warm_up(service, *scenarios)
            for name, route in routes(service).items():
                harness.say(f"strategies: {name}")
                for scenario in scenarios:
                    for pattern in PATTERNS:
                        row = _combination(harness, service, route, scenario, pattern)
                        result.raw.append({"strategy": name, **row})
        plans = manage(harness.settings, "explain_lookup", "--global-tag", harness.sizes.largest, "--json").output
    finally:
        manage(harness.settings, "strategy_indexes", "drop")
    _show(result, plans)


def routes(service: Service) -> dict[str, str]:
    """The route of each strategy by name."""
    with Client(service.host) as client:
        listed = client.call("GET", "payloadiovs_strategies/").json
    return {OWN: "payloadiovs/"} | {entry["name"]: f"payloadiovs_{entry['name']}/" for entry in listed}


def _combination(harness: Harness, service: Service, route: str, scenario: str, pattern: str) -> dict[str, Any]:
    url = service.lookup_url(scenario, route)
    with Client(service.host) as client:
        first = lookups(client, scenario, pattern, calls=2, seconds=0, route=route)
        is_quick = max(one.wall for one in first) < SLOW_MILLISECONDS
        if is_quick and pattern == "random" and SCENARIOS[scenario].iovs >= LARGE:
            # Earlier strategies have displaced its data from memory.
            harness.settle(url, connections=8)
        calls, seconds = harness.sizes.calls, harness.sizes.calls_seconds
        responses = lookups(client, scenario, pattern, calls=calls, seconds=seconds, route=route)
    row = {"scenario": scenario, "pattern": pattern, **_times(responses)}
    if pattern in harness.sizes.http_patterns:
        alone = row["wall_p50_ms"] / 1000
        # Slow lookups get the time of a few of them, with fewer connections, so that they do not wait for each other.
        connections = 8 if alone < 0.5 else 2
        seconds = min(max(1, math.ceil(2.5 * alone)), harness.sizes.longest_seconds)
        row |= harness.load(service, url, connections=connections, seconds=seconds, mode=pattern)
    return row


def _times(responses: list[Response]) -> dict[str, Any]:
    """The number of calls and of rows, and percentiles of database time and of whole responses."""
    times = {"db": [one.database for one in responses], "wall": [one.wall for one in responses]}
    row = {"calls": len(responses), "rows": max(one.rows for one in responses)}
    return row | {f"{kind}_p{share}_ms": percentile(times[kind], share) for kind in times for share in (50, 95, 99)}


def _show(result: Result, plans: str) -> None:
    for row in result.raw:
        row["iovs"] = SCENARIOS[row["scenario"]].iovs
    # After warnings, which are on lines of their own.
    document = json.loads(plans[re.search(r"^\[", plans, re.MULTILINE).start() :])
    loaded = [row for row in result.raw if "responses" in row]
    result.tables += [
        Table.of("All combinations", result.raw, KEYS),
        Table.of("Plans", document, VERDICT),
        Table.of("What whole responses cost", loaded, f"strategy scenario pattern {COSTS}"),
    ]
    chosen = [row for row in result.raw if row["pattern"] == "random"]
    series = curves(chosen, "strategy", "iovs", "db_p50_ms")
    if min(map(len, series.values())) > 1:
        title = "Random moments: median database time by the size of the tag"
        result.plots.append(plots.lines(title, series, x="IOVs in the tag", y="ms", log_x=True, log_y=True))
    for scenario, rows in grouped(chosen, "scenario").items():
        times = {row["strategy"]: tuple(row[f"db_p{share}_ms"] for share in (50, 95, 99)) for row in rows}
        result.plots.append(plots.percentiles(f"{scenario}, random moments: database time", times, x="ms"))
