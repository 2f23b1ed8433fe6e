"""The rate of the service compared with that of the database alone (the floor), on the same data at the same time.

Responses per second for random moments: over HTTP with three processes of granian; by pgbench with the function that a lookup
calls (the floor: a service that uses it cannot be faster); and by pgbench with the LATERAL query of the load study
(docs/load-tests.md), on its own table and an index that does not cover the result. A Django application sends statements
that are planned each time. A search first finds the number of clients at which each contender is fastest; then all are
measured in rounds, in alternating order. Bars are medians, whiskers the slowest and the fastest round.
"""

from collections.abc import Callable, Sequence
from typing import Any

from loadtests.bench.harness import COSTS, Harness
from loadtests.database import text_of
from loadtests.reporting import plots
from loadtests.reporting.figures import ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "Distance to the floor"
HTTP, FLOOR = "HTTP, the service's own lookup", "floor: pgbench calls the same function"
STUDY_SIMPLE, STUDY_PREPARED = "study: LATERAL, planned each time", "study: LATERAL, prepared"
# The modes of pgbench for them.
STUDY = {STUDY_SIMPLE: "simple", STUDY_PREPARED: "prepared"}
HTTP_CONNECTIONS = (2, 3, 4, 6, 8, 12)


# One way to execute lookups: clients, seconds and the seed of a run -> its row.
Run = Callable[[int, int, int], dict[str, Any]]


def measure(harness: Harness, result: Result) -> None:
    """Search for the best number of clients of each contender, then measure them in rounds."""
    tag, best, few = harness.sizes.largest, {}, harness.sizes.client_counts
    harness.seed(tag)
    study = study_runs(harness)
    with running(harness.settings) as service:
        harness.warm_up(service, tag)
        contenders = {HTTP: over_http(harness, service, tag), FLOOR: directly(harness, "floor", "prepared"), **study}
        for name, run in contenders.items():
            counts = HTTP_CONNECTIONS if name == HTTP and not harness.sizes.too_small else few
            best[name], rows = search(harness, name, run, counts)
            result.raw += [{"phase": "search", "what": name, **row} for row in rows]
        for number, name in harness.rounds("floor", list(contenders)):
            row = {"phase": "round", "round": number, "what": name, "clients": best[name]}
            result.raw.append(row | contenders[name](best[name], harness.sizes.seconds, number))
    _show(harness, result, best)


def over_http(harness: Harness, service: Service, tag: str) -> Run:
    """Lookups over HTTP at random moments."""
    url = service.lookup_url(tag)
    return lambda clients, seconds, seed: harness.load(service, url, connections=clients, seconds=seconds, seed=seed)


def directly(harness: Harness, script: str, mode: str) -> Run:
    """A script of pgbench, for the largest tag; `mode` is simple or prepared."""
    text = text_of(script).replace("{tag}", harness.sizes.largest)
    return lambda clients, seconds, seed: harness.transactions(
        text, clients=clients, seconds=seconds, mode=mode, seed=seed
    )


def search(harness: Harness, name: str, run: Run, counts: Sequence[int]) -> tuple[int, list[dict[str, Any]]]:
    """The number of clients for which a contender is fastest, and the rows of the search."""
    if len(counts) == 1:
        return counts[0], []
    harness.say(f"best number of clients for {name}")
    rows = [{"clients": clients, **run(clients, harness.sizes.short_seconds, 0)} for clients in counts]
    return max(rows, key=lambda row: row["responses_per_s"])["clients"], rows


def study_runs(harness: Harness) -> dict[str, Run]:
    """The study's query on its own table, in each mode of pgbench.

    The rows of the largest tag, which must exist, are copied unless an earlier copy has the same number of rows and ids of lists.
    """
    there = harness.database.value("SELECT to_regclass('study.study_lookup') IS NOT NULL")
    if not there or not harness.database.value(text_of("study_has_rows"), {"tag": harness.sizes.largest}):
        harness.say("floor: copying the rows into the study's table")
        harness.database.run(text_of("study_table"), {"tag": harness.sizes.largest})
    harness.database.run('VACUUM (ANALYZE) study."PayloadIOV"')
    return {name: directly(harness, "study_lookup", mode) for name, mode in STUDY.items()}


def _show(harness: Harness, result: Result, best: dict[str, int]) -> None:
    tag, rounds = harness.sizes.largest, [row for row in result.raw if row["phase"] == "round"]
    found = spreads(rounds, "what", "responses_per_s")
    to_floor = ratios_to(found, FLOOR)
    rows = [(name, best[name], *vars(one).values(), to_floor[name]) for name, one in found.items()]
    shown = ("what", "clients", "median responses/s", "slowest", "fastest", "÷ floor")
    result.tables += [
        Table(f"{tag}, random moments, rounds: {harness.sizes.rounds}", shown, rows),
        Table.of("What a response costs, by round", rounds, f"what round {COSTS} p50_ms p99_ms errors"),
    ]
    result.targets += [
        Target(f"HTTP ÷ floor ({tag})", to_floor[HTTP], 0.8, at_most=False),
        Target(f"HTTP ÷ study, planned each time ({tag})", ratios_to(found, STUDY_SIMPLE)[HTTP], 1.15, at_most=False),
        Target(f"HTTP ÷ study, prepared ({tag})", ratios_to(found, STUDY_PREPARED)[HTTP], 1.15, at_most=False),
    ]
    result.plots.append(plots.bars(f"{tag}: responses a second, medians of rounds", found, x="responses/s"))
