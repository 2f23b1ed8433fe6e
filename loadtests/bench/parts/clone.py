"""The cost of cloning over HTTP, as a bare statement, and without column and index; and its effect on lookups.

A clone over HTTP, compared with INSERT … SELECT of the same rows by SQL into existing lists, which is rolled back. The time
of the bare statement includes the checks of foreign keys that the commit of the service makes. The other tables show the
cost of column and index.
"""

import time
from typing import Any

from loadtests import usage
from loadtests.bench.harness import Harness
from loadtests.client import Client
from loadtests.database import text_of
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, grouped, ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
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
    tags = harness.sizes.clone_scenarios
    harness.seed(*tags)
    harness.database.run(text_of("bare_tables"))
    try:
        with running(harness.settings) as service:
            _delete(harness, service)
            for tag in tags:
                # The largest tag takes minutes, with little variation.
                rounds = 1 if tag == "worst-case" else harness.sizes.clone_rounds
                size = harness.database.value('SELECT payload_iov_count FROM "GlobalTag" WHERE name = %s', (tag,))
                for number in range(1, rounds + 1):
                    harness.say(f"clone: {tag}, round {number} of {rounds}")
                    one = {"tag": tag, "round": number, "iovs": size}
                    result.raw.append(one | {"what": SERVICE, **_over_http(harness, service, tag)})
                    result.raw += [one | {"what": what, "seconds": _bare(harness, tag, what)} for what in TARGETS]
            _lookups_beside(harness, service, "heavy-usage" if "heavy-usage" in tags else tags[-1], result)
    finally:
        harness.database.run("DROP SCHEMA IF EXISTS bare CASCADE")
    _show(result)


def _over_http(harness: Harness, service: Service, tag: str) -> dict[str, Any]:
    harness.database.run("CHECKPOINT")
    with usage.peak_of_workers(service.gunicorn()) as memory:
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


def _show(result: Result) -> None:
    rows, clones = [], [row for row in result.raw if "round" in row]
    for tag, of_tag in grouped(clones, "tag").items():
        found, size = spreads(of_tag, "what", "seconds"), of_tag[0]["iovs"]
        ratios = ratios_to(found, SAME)
        rows += [
            {"tag": tag, "iovs": size, "what": what, **vars(one), "ratio": ratios[what]} for what, one in found.items()
        ]
        if size >= JUDGED_FROM:
            value = ratios[SERVICE]
            result.targets.append(Target(f"clone of {tag} over HTTP ÷ bare INSERT … SELECT", value, 2, at_most=True))
    headings = {"iovs": "IOVs", "ratio": "÷ bare, same table"}
    result.tables.insert(0, Table.of("Seconds", rows, "tag iovs what median low high ratio", **headings))
    lines = curves(rows, "what", "iovs", "median")
    result.plots.append(plots.lines("Clone time", lines, x="IOVs", y="seconds", log_x=True, log_y=True))
    memory = [row for row in clones if row["what"] == SERVICE]
    keys = "tag round worker_before_mib worker_peak_mib"
    result.tables.append(
        Table.of("Memory of the largest gunicorn worker", memory, keys, worker_before_mib="before, MiB")
    )


def _lookups_beside(harness: Harness, service: Service, tag: str, result: Result) -> None:
    """Measure lookups without and with a concurrent clone, for at most the time of a clone."""
    known = [row["seconds"] for row in result.raw if row["tag"] == tag and row["what"] == SERVICE]
    # Lookups slow the clone down, so that it covers the whole run.
    seconds = max(1, min(harness.sizes.look_seconds, int(min(known))))
    harness.warm_up(service, tag)
    harness.database.run("CHECKPOINT")
    harness.lookups_beside(result, service, tag, "a clone", seconds, lambda _: _clone(service, tag))
    _delete(harness, service)
    result.notes.append(
        "If a clone blocked lookups, the longest lookup would take about as long as the clone. Lookups are somewhat slower "
        "during a clone, as during any other work on the same cores."
    )
