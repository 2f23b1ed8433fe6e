"""The rate of the service compared with that of the database alone (the floor), on the same data at the same time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadtests.bench.parts import strategies
from loadtests.bench.rig import COSTS, Rig, table
from loadtests.client import Client, lookups
from loadtests.database import text_of
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.rig import in_turns
from loadtests.service import Service, running

TITLE = "Distance to the floor"
HTTP, FLOOR = "HTTP, the service's own lookup", "floor: pgbench calls the same function"
STUDY_SIMPLE, STUDY_PREPARED = "study: LATERAL, planned each time", "study: LATERAL, prepared"
LATERAL, ORDER_BY = "HTTP, sql_lateral", "HTTP, orm_orderby"
HTTP_CONNECTIONS = (2, 3, 4, 6, 8, 12)
INTRO = (
    "Responses per second for random moments: over HTTP with three gunicorn workers; by pgbench with the function that a lookup "
    "calls (the floor: a service that uses it cannot be faster); and by pgbench with the LATERAL query of the load study "
    "(docs/load-tests.md), on its own table and an index that does not cover the result. A Django application sends statements "
    "that are planned each time. A search first finds the number of clients at which each contender is fastest; then all are "
    "measured in rounds, in alternating order. Bars are medians, whiskers the slowest and the fastest round."
)


@dataclass(frozen=True)
class Contender:
    """One way to execute lookups. `run` takes clients, seconds and seed, and returns a row."""

    name: str
    run: Callable[[int, int, int], dict[str, Any]]
    client_counts: tuple[int, ...]
    seconds: int

    def measured(self, clients: int, seconds: int, seed: int) -> dict[str, Any]:
        """The row of a run, with `clients` and `rate`."""
        row = self.run(clients, seconds, seed)
        return row | {"clients": clients, "rate": row["answers_per_s"]}


def measure(rig: Rig) -> Result:
    """Search for the best number of clients of each contender, then measure them in rounds."""
    result = Result("floor", TITLE, INTRO)
    rig.seed(rig.sizes.largest)
    _create_study_table(rig)
    with running(rig.settings) as service:
        rig.warm_up(service, rig.sizes.largest)
        contenders = _contenders(rig, service, result)
        best = {one.name: _search(rig, one, result) for one in contenders}
        rounds: dict[str, list[float]] = {one.name: [] for one in contenders}
        for number, one in in_turns(contenders, rig.sizes.rounds):
            rig.say(f"floor: round {number} of {rig.sizes.rounds}, {one.name}")
            row = one.measured(best[one.name], one.seconds, number)
            rounds[one.name].append(row["rate"])
            result.raw.append({"phase": "round", "round": number, "what": one.name, **row})
    _show(rig, result, {name: Spread.of(rates) for name, rates in rounds.items()}, best)
    return result


def _create_study_table(rig: Rig) -> None:
    """Copy the rows of the tag, unless an earlier copy has the same number of rows and ids of lists."""
    compare = (
        'SELECT (SELECT (count(*), min(payload_list_id), max(payload_list_id)) FROM study."PayloadIOV") = '
        '(SELECT (count(*), min(list.id), max(list.id)) FROM "PayloadIOV" AS iov '
        'JOIN "PayloadList" AS list ON list.id = iov.payload_list_id '
        'JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id WHERE tag.name = %s)'
    )
    there = rig.database.value("SELECT to_regclass('study.study_lookup') IS NOT NULL")
    if not there or not rig.database.value(compare, (rig.sizes.largest,)):
        rig.say("floor: copying the rows into the study's table")
        rig.database.run(text_of("study_table"), {"tag": rig.sizes.largest})
    rig.database.run('VACUUM (ANALYZE) study."PayloadIOV"')


def _contenders(rig: Rig, service: Service, result: Result) -> list[Contender]:
    sizes = rig.sizes
    found = strategies.routes(service, result)

    def over_http(route: str) -> Callable[[int, int, int], dict[str, Any]]:
        url = service.lookup_url(sizes.largest, route)
        return lambda clients, seconds, seed: rig.load(service, url, connections=clients, seconds=seconds, seed=seed)

    def directly(script: str, mode: str) -> Callable[[int, int, int], dict[str, Any]]:
        text = text_of(script).replace("{tag}", sizes.largest)
        return lambda clients, seconds, seed: rig.transactions(
            text, clients=clients, seconds=seconds, mode=mode, seed=seed
        )

    counts = HTTP_CONNECTIONS if sizes.name in ("full", "large") else sizes.client_counts
    contenders = [
        Contender(HTTP, over_http("payloadiovs/"), counts, sizes.floor_seconds),
        Contender(FLOOR, directly("floor", "prepared"), sizes.client_counts, sizes.floor_seconds),
        Contender(STUDY_SIMPLE, directly("study_lookup", "simple"), sizes.client_counts, sizes.floor_seconds),
        Contender(STUDY_PREPARED, directly("study_lookup", "prepared"), sizes.client_counts, sizes.floor_seconds),
    ]
    if "sql_lateral" in found:
        contenders.append(Contender(LATERAL, over_http(found["sql_lateral"]), counts, sizes.floor_seconds))
    if "orm_orderby" in found:
        # A lookup takes seconds in large tags: two clients, for the time of some lookups.
        seconds = max(sizes.floor_seconds, math.ceil(2.5 * _seconds_of(service, found["orm_orderby"], sizes.largest)))
        contenders.append(Contender(ORDER_BY, over_http(found["orm_orderby"]), (2,), seconds))
    return contenders


def _seconds_of(service: Service, route: str, tag: str) -> float:
    with Client(service.port) as client:
        return max(one.wall for one in lookups(client, f"{route}?gtName={tag}", "random", calls=3, seconds=0)) / 1000


def _search(rig: Rig, one: Contender, result: Result) -> int:
    """The number of clients at which a contender is fastest."""
    if len(one.client_counts) == 1:
        return one.client_counts[0]
    rig.say(f"floor: best number of clients for {one.name}")
    rates = {}
    for clients in one.client_counts:
        row = one.measured(clients, rig.sizes.search_seconds, 0)
        rates[clients] = row["rate"]
        result.raw.append({"phase": "search", "what": one.name, **row})
    return max(rates, key=rates.get)


def _show(rig: Rig, result: Result, spreads: dict[str, Spread], best: dict[str, int]) -> None:
    tag = rig.sizes.largest
    result.targets += _targets(tag, spreads)
    columns = ("what", "clients", "rounds", "median responses/s", "slowest", "fastest", "÷ floor")
    rows = [
        (name, best[name], rig.sizes.rounds, one.median, one.low, one.high, ratio(one.median, spreads[FLOOR].median))
        for name, one in spreads.items()
    ]
    result.tables.append(Table(f"{tag}, random moments, rounds", columns, rows))
    rounds = [row for row in result.raw if row["phase"] == "round"]
    result.tables.append(table("What a response costs, by round", rounds, f"what round {COSTS} p50_ms p99_ms errors"))
    # It is slower by orders of magnitude and would compress the others; the table has it.
    near = {name: spread for name, spread in spreads.items() if name != ORDER_BY}
    result.plots.append(plots.bars(f"{tag}: responses a second, medians of rounds", near, x="responses/s"))
    searched: dict[str, list[tuple[float, float]]] = {}
    for row in result.raw:
        if row["phase"] == "search":
            searched.setdefault(row["what"], []).append((row["clients"], row["rate"]))
    if searched:
        ticks = sorted({clients for points in searched.values() for clients, _ in points})
        title = "Search for the best number of clients"
        result.plots.append(plots.lines(title, searched, x="clients", y="responses/s", ticks=ticks))


def _targets(tag: str, spreads: dict[str, Spread]) -> list[Target]:
    def quotient(above: str, below: str) -> float | None:
        return ratio(*(spreads[name].median if name in spreads else None for name in (above, below)))

    missing = "" if LATERAL in spreads else "the service has no route of that strategy"
    return [
        Target(f"HTTP ÷ floor ({tag})", quotient(HTTP, FLOOR), 0.8, at_most=False),
        Target(f"HTTP ÷ study, planned each time ({tag})", quotient(HTTP, STUDY_SIMPLE), 1.15, at_most=False),
        Target(f"HTTP ÷ study, prepared ({tag})", quotient(HTTP, STUDY_PREPARED), 1.15, at_most=False),
        Target(f"sql_lateral ÷ orm_orderby, over HTTP ({tag})", quotient(LATERAL, ORDER_BY), 50, False, note=missing),
    ]
