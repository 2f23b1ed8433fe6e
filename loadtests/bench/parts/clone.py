"""The cost of cloning over HTTP, as a bare statement, and without column and index; and its effect on lookups.

A clone over HTTP, compared with INSERT … SELECT of the same rows by SQL into existing lists, which is rolled back. The time
of the bare statement includes the checks of foreign keys that the commit of the service makes. The other tables show the
cost of column and index.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from loadtests import usage
from loadtests.bench.rig import LOADED, Rig, columns
from loadtests.client import Client
from loadtests.database import text_of
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, grouped, ratio, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "Clone"
CLONE = "bench-clone"
CONNECTIONS = 4
# The time of a smaller clone is mostly its commit, which the bare statement does not have, because it is rolled back.
JUDGED_FROM = 100_000
SERVICE, SAME = "service, over HTTP", "bare INSERT … SELECT into the same table"
TARGETS = {
    SAME: '"PayloadIOV"',
    "… without foreign key and triggers": "bare.with_both",
    "… and without the combined column's index": "bare.without_index",
    "… and without the column": "bare.without_column",
}


def measure(rig: Rig, result: Result) -> None:
    """Measure clones of each size; then lookups during a clone."""
    tags = rig.sizes.clone_scenarios
    rig.seed(*tags)
    rig.database.run(text_of("bare_tables"))
    try:
        with running(rig.settings) as service:
            _delete(rig, service)
            for tag in tags:
                # The largest tag takes minutes, with little variation.
                rounds = 1 if tag == "worst-case" else rig.sizes.clone_rounds
                size = rig.database.value('SELECT payload_iov_count FROM "GlobalTag" WHERE name = %s', (tag,))
                for number in range(1, rounds + 1):
                    rig.say(f"clone: {tag}, round {number} of {rounds}")
                    one = {"tag": tag, "round": number, "iovs": size}
                    result.raw.append(one | {"what": SERVICE, **_over_http(rig, service, tag)})
                    result.raw += [one | {"what": what, "seconds": _bare(rig, tag, what)} for what in TARGETS]
            _lookups_meanwhile(rig, service, "heavy-usage" if "heavy-usage" in tags else tags[-1], result)
    finally:
        rig.database.run("DROP SCHEMA IF EXISTS bare CASCADE")
    _show(result)


def _over_http(rig: Rig, service: Service, tag: str) -> dict[str, Any]:
    rig.database.run("CHECKPOINT")
    with usage.peak_of_workers(service.gunicorn()) as memory:
        begin, end = _clone(service, tag)
    _delete(rig, service)
    return {"seconds": end - begin, **memory}


def _clone(service: Service, tag: str) -> tuple[float, float]:
    """Clone the tag; returns begin and end by `time.perf_counter`."""
    begin = time.perf_counter()
    Client(service.host).call("POST", f"cloneGlobalTag/{tag}/{CLONE}")
    return begin, time.perf_counter()


def _delete(rig: Rig, service: Service) -> None:
    """Delete the clone, if it exists: an earlier run may have been interrupted."""
    Client(service.host).call("DELETE", f"deleteGlobalTag/{CLONE}", also=(404,))
    rig.database.run('VACUUM "PayloadIOV"')


def _bare(rig: Rig, tag: str, what: str) -> float:
    """The seconds of the bare statement into one of the tables, which is empty or unchanged afterwards."""
    target = TARGETS[what]
    rig.database.run("CHECKPOINT")
    with rig.database.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(text_of("clone_pairs"), {"source": tag, "target": f"{CLONE}-bare"})
        begin = time.perf_counter()
        cursor.execute(text_of("clone_insert").replace("{target}", target))
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        seconds = time.perf_counter() - begin
    rig.database.run(f"TRUNCATE {target}" if target.startswith("bare.") else f"VACUUM {target}")
    return seconds


def _show(result: Result) -> None:
    rows, clones = [], [row for row in result.raw if "round" in row]
    for tag, of_tag in grouped(clones, "tag").items():
        found, size = spreads(of_tag, "what", "seconds"), of_tag[0]["iovs"]
        for what, one in found.items():
            rows.append(
                {"tag": tag, "iovs": size, "what": what, **vars(one), "ratio": ratio(one.median, found[SAME].median)}
            )
        if size >= JUDGED_FROM:
            value = ratio(found[SERVICE].median, found[SAME].median)
            result.targets.append(Target(f"clone of {tag} over HTTP ÷ bare INSERT … SELECT", value, 2, at_most=True))
    heads = {"tag": "tag", "iovs": "IOVs", "what": "what", "median": "median s", "low": "least s", "high": "most s"}
    result.tables.insert(0, Table.of("Seconds", rows, heads | {"ratio": "÷ bare, same table"}))
    lines = curves(rows, "what", "iovs", "median")
    result.plots.append(plots.lines("Clone time", lines, x="IOVs", y="seconds", log_x=True, log_y=True))
    memory = [row for row in clones if row["what"] == SERVICE]
    shown = {"tag": "tag", "round": "round", "worker_before_mib": "before MiB", "worker_peak_mib": "peak MiB"}
    result.tables.append(Table.of("Memory of the largest gunicorn worker", memory, shown))


def _lookups_meanwhile(rig: Rig, service: Service, tag: str, result: Result) -> None:
    """Measure lookups without and with a concurrent clone, for at most the time of a clone."""
    known = [row["seconds"] for row in result.raw if row["tag"] == tag and row["what"] == SERVICE]
    # Lookups slow the clone down, so that it covers the whole run.
    seconds = max(1, min(rig.sizes.look_seconds, int(min(known))))
    rig.say(f"clone: lookups in {tag} during a clone")
    rig.warm_up(service, tag)
    rig.database.run("CHECKPOINT")
    load = {"url": service.lookup_url(tag), "connections": CONNECTIONS, "seconds": seconds}
    rows = [{"clone": "without", **rig.load(service, **load)}]
    with ThreadPoolExecutor() as pool:
        cloning = pool.submit(_clone, service, tag)
        begin = time.perf_counter()
        rows.append({"clone": "with", **rig.load(service, **load)})
        end = time.perf_counter()
        clone_begin, clone_end = cloning.result()
    _delete(rig, service)
    together = max(0.0, min(end, clone_end) - max(begin, clone_begin))
    rows[1] |= {"clone_seconds": clone_end - clone_begin, "together_percent": 100 * together / (end - begin)}
    shown = columns(
        f"clone {LOADED} max_ms others_cpu_percent clone_seconds together_percent",
        clone_seconds="seconds of the clone",
        together_percent="part of the lookups beside it, %",
    )
    result.tables.append(Table.of(f"Lookups in {tag}, {CONNECTIONS} connections, {seconds} s", rows, shown))
    result.notes.append(
        "If a clone blocked lookups, the longest lookup would take about as long as the clone. Lookups are somewhat slower "
        "during a clone, as during any other work on the same cores."
    )
    result.raw += [{"tag": tag, "what": f"lookups, {row['clone']} a clone", **row} for row in rows]
