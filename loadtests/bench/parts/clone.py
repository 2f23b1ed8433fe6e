"""The cost of cloning over HTTP, as a bare statement, and without column and index; and its effect on lookups.

A clone over HTTP, compared with INSERT … SELECT of the same rows by SQL into existing lists, which is rolled back. The time
of the bare statement includes the checks of foreign keys that the commit of the service makes. The other rows show the cost
of column and index. If a clone blocked lookups, the longest lookup would take about as long as the clone; lookups are
somewhat slower during a clone, as during any other work on the same cores.
"""

import time
from typing import Any

from loadtests import usage
from loadtests.bench.harness import Harness, compare_seconds
from loadtests.client import Client
from loadtests.database import text_of
from loadtests.reporting.result import Result, Target
from loadtests.service import Service, running

TITLE = "Clone"
CLONE = "bench-clone"
# The time of a smaller clone is mostly its commit, which the bare statement does not have, because it is rolled back.
JUDGED_FROM = 100_000
SERVICE, SAME = "service, over HTTP", "bare INSERT … SELECT into the same table"
TARGETS = {
    SAME: '"PayloadIOV"',
    "… without foreign key and triggers": "bare.with_both",
    "… and without the combined column's index": "bare.without_index",
    "… and without the column": "bare.without_column",
}


def measure(harness: Harness, result: Result) -> None:
    """Measure clones of each size; then lookups during a clone."""
    tags, cloned = harness.sizes.scenarios, harness.sizes.cloned
    harness.seed(*tags)
    harness.database.run(text_of("bare_tables"))
    try:
        with running(harness.settings) as service:
            _delete(harness, service)
            for tag in tags:
                _measure(harness, result, service, tag)
            # Lookups slow the clone down, so that it covers the whole run.
            known = [row["seconds"] for row in result.raw if row["tag"] == cloned and row["what"] == SERVICE]
            seconds = max(1, min(harness.sizes.look_seconds, int(min(known))))
            harness.warm_up(service, cloned)
            harness.database.run("CHECKPOINT")
            harness.lookups_beside(result, service, cloned, "a clone", seconds, lambda _: _clone(service, cloned))
            _delete(harness, service)
    finally:
        harness.database.run("DROP SCHEMA IF EXISTS bare CASCADE")


def _measure(harness: Harness, result: Result, service: Service, tag: str) -> None:
    size, rows = harness.database.value('SELECT payload_iov_count FROM "GlobalTag" WHERE name = %s', (tag,)), []
    # The largest tag takes minutes, with little variation.
    rounds = 1 if tag == "worst-case" else harness.sizes.bulk_rounds
    for number in range(1, rounds + 1):
        harness.say(f"clone: {tag}, round {number} of {rounds}")
        one = {"tag": tag, "round": number, "iovs": size}
        rows.append(one | {"what": SERVICE, **_over_http(harness, service, tag)})
        rows += [one | {"what": what, "seconds": _bare(harness, tag, what)} for what in TARGETS]
    result.raw += rows
    ratios = compare_seconds(result, f"{tag}: {size:,} IOVs", rows, SAME, "worker_peak_mib")
    if size >= JUDGED_FROM:
        name = f"clone of {tag} over HTTP ÷ bare INSERT … SELECT"
        result.targets.append(Target(name, ratios[SERVICE], 2, at_most=True))


def _over_http(harness: Harness, service: Service, tag: str) -> dict[str, Any]:
    harness.database.run("CHECKPOINT")
    with usage.peak_of_workers(service.program("granian")) as memory:
        begin = time.perf_counter()
        _clone(service, tag)
        seconds = time.perf_counter() - begin
    _delete(harness, service)
    return {"seconds": seconds, **memory}


def _clone(service: Service, tag: str) -> None:
    Client(service.host).call("POST", f"cloneGlobalTag/{tag}/{CLONE}")


def _delete(harness: Harness, service: Service) -> None:
    """Delete the clone, if it exists: an earlier run may have been interrupted."""
    Client(service.host).call("DELETE", f"deleteGlobalTag/{CLONE}", also=(404,))
    harness.database.run('VACUUM "PayloadIOV"')


def _bare(harness: Harness, tag: str, what: str) -> float:
    """The seconds of the bare statement into one of the tables, which is empty or unchanged afterwards."""
    target = TARGETS[what]
    harness.database.run("CHECKPOINT")
    with harness.database.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(text_of("clone_pairs"), {"source": tag, "target": f"{CLONE}-bare"})
        begin = time.perf_counter()
        cursor.execute(text_of("clone_insert").replace("{target}", target))
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        seconds = time.perf_counter() - begin
    harness.database.run(f"TRUNCATE {target}" if target.startswith("bare.") else f"VACUUM {target}")
    return seconds
