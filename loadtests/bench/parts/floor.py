"""The rate of the service compared with that of the database alone (the floor), on the same data at the same time.

Responses per second for random moments: over HTTP with three gunicorn workers; by pgbench with the function that a lookup
calls (the floor: a service that uses it cannot be faster); and by pgbench with the LATERAL query of the load study
(docs/load-tests.md), on its own table and an index that does not cover the result. A Django application sends statements
that are planned each time. A search first finds the number of clients at which each contender is fastest; then all are
measured in rounds, in alternating order. Bars are medians, whiskers the slowest and the fastest round.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadtests.bench.harness import COSTS, Harness, columns
from loadtests.client import Client, lookups
from loadtests.database import text_of
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "Distance to the floor"
HTTP, FLOOR = "HTTP, the service's own lookup", "floor: pgbench calls the same function"
STUDY_SIMPLE, STUDY_PREPARED = "study: LATERAL, planned each time", "study: LATERAL, prepared"
LATERAL, ORDER_BY = "HTTP, sql_lateral", "HTTP, orm_orderby"
ORDER_BY_ROUTE = "payloadiovs_orm_orderby/"
HTTP_CONNECTIONS = (2, 3, 4, 6, 8, 12)
SAME_ROWS = (
    'SELECT (SELECT (count(*), min(payload_list_id), max(payload_list_id)) FROM study."PayloadIOV") = '
    '(SELECT (count(*), min(list.id), max(list.id)) FROM "PayloadIOV" AS iov '
    'JOIN "PayloadList" AS list ON list.id = iov.payload_list_id '
    'JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id WHERE tag.name = %s)'
)


@dataclass(frozen=True)
class Contender:
    """One way to execute lookups. `run` takes clients, seconds and seed, and returns a row."""

    run: Callable[[int, int, int], dict[str, Any]]
    client_counts: tuple[int, ...]
    seconds: int

    def measured(self, clients: int, seconds: int, seed: int) -> dict[str, Any]:
        """The row of a run, with `clients` and `rate`."""
        row = self.run(clients, seconds, seed)
        return row | {"clients": clients, "rate": row["responses_per_s"]}


def measure(harness: Harness, result: Result) -> None:
    """Search for the best number of clients of each contender, then measure them in rounds."""
    harness.seed(harness.sizes.largest)
    create_study_table(harness)
    with running(harness.settings) as service:
        harness.warm_up(service, harness.sizes.largest)
        contenders = _contenders(harness, service)
        best = {name: _search(harness, name, one, result) for name, one in contenders.items()}
        for number, name in harness.rounds("floor", list(contenders)):
            row = contenders[name].measured(best[name], contenders[name].seconds, number)
            result.raw.append({"phase": "round", "round": number, "what": name, **row})
    _show(harness, result, best)


def create_study_table(harness: Harness) -> None:
    """Copy the rows of the largest tag, which must exist, unless an earlier copy has the same number of rows and ids of lists."""
    there = harness.database.value("SELECT to_regclass('study.study_lookup') IS NOT NULL")
    if not there or not harness.database.value(SAME_ROWS, (harness.sizes.largest,)):
        harness.say("floor: copying the rows into the study's table")
        harness.database.run(text_of("study_table"), {"tag": harness.sizes.largest})
    harness.database.run('VACUUM (ANALYZE) study."PayloadIOV"')


def _contenders(harness: Harness, service: Service) -> dict[str, Contender]:
    sizes = harness.sizes
    counts = HTTP_CONNECTIONS if sizes.name in ("full", "large") else sizes.client_counts

    def over_http(route: str, client_counts: tuple[int, ...] = counts, seconds: int = sizes.floor_seconds) -> Contender:
        url = service.lookup_url(sizes.largest, route)

        def run(clients: int, seconds: int, seed: int) -> dict[str, Any]:
            return harness.load(service, url, connections=clients, seconds=seconds, seed=seed)

        return Contender(run, client_counts, seconds)

    def directly(script: str, mode: str) -> Contender:
        text = text_of(script).replace("{tag}", sizes.largest)

        def run(clients: int, seconds: int, seed: int) -> dict[str, Any]:
            return harness.transactions(text, clients=clients, seconds=seconds, mode=mode, seed=seed)

        return Contender(run, sizes.client_counts, sizes.floor_seconds)

    # A lookup takes seconds in large tags: two clients, for the time of some lookups.
    with Client(service.host) as client:
        slow = lookups(client, sizes.largest, "random", calls=3, seconds=0, route=ORDER_BY_ROUTE)
    longest = math.ceil(2.5 * max(one.wall for one in slow) / 1000)
    return {
        HTTP: over_http("payloadiovs/"),
        FLOOR: directly("floor", "prepared"),
        STUDY_SIMPLE: directly("study_lookup", "simple"),
        STUDY_PREPARED: directly("study_lookup", "prepared"),
        LATERAL: over_http("payloadiovs_sql_lateral/"),
        ORDER_BY: over_http(ORDER_BY_ROUTE, (2,), max(sizes.floor_seconds, longest)),
    }


def _search(harness: Harness, name: str, one: Contender, result: Result) -> int:
    """The number of clients at which a contender is fastest."""
    if len(one.client_counts) == 1:
        return one.client_counts[0]
    harness.say(f"floor: best number of clients for {name}")
    rows = [one.measured(clients, harness.sizes.search_seconds, 0) for clients in one.client_counts]
    result.raw += [{"phase": "search", "what": name, **row} for row in rows]
    return max(rows, key=lambda row: row["rate"])["clients"]


def _show(harness: Harness, result: Result, best: dict[str, int]) -> None:
    tag, rounds = harness.sizes.largest, [row for row in result.raw if row["phase"] == "round"]
    found = spreads(rounds, "what", "rate")
    to_floor = ratios_to(found, FLOOR)
    rows = [
        (name, best[name], harness.sizes.rounds, *vars(one).values(), to_floor[name]) for name, one in found.items()
    ]
    shown = ("what", "clients", "rounds", "median responses/s", "slowest", "fastest", "÷ floor")
    result.tables += [
        Table(f"{tag}, random moments, rounds", shown, rows),
        Table.of("What a response costs, by round", rounds, columns(f"what round {COSTS} p50_ms p99_ms errors")),
    ]
    result.targets += [
        Target(f"HTTP ÷ floor ({tag})", to_floor[HTTP], 0.8, at_most=False),
        Target(f"HTTP ÷ study, planned each time ({tag})", ratios_to(found, STUDY_SIMPLE)[HTTP], 1.15, at_most=False),
        Target(f"HTTP ÷ study, prepared ({tag})", ratios_to(found, STUDY_PREPARED)[HTTP], 1.15, at_most=False),
        Target(f"sql_lateral ÷ orm_orderby, over HTTP ({tag})", ratios_to(found, ORDER_BY)[LATERAL], 50, at_most=False),
    ]
    # It is slower by orders of magnitude and would compress the others; the table has it.
    near = {name: spread for name, spread in found.items() if name != ORDER_BY}
    result.plots.append(plots.bars(f"{tag}: responses a second, medians of rounds", near, x="responses/s"))
    searched = [row for row in result.raw if row["phase"] == "search"]
    if searched:
        ticks, series = sorted({row["clients"] for row in searched}), curves(searched, "what", "clients", "rate")
        title = "Search for the best number of clients"
        result.plots.append(plots.lines(title, series, x="clients", y="responses/s", ticks=ticks))
