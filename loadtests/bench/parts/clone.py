"""The cost of cloning over HTTP, as a bare statement, and without column and index; and its effect on lookups."""

import threading
import time
from typing import Any

from loadtests import usage
from loadtests.bench.rig import LOADED, Rig, table
from loadtests.client import Client
from loadtests.database import text_of
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, ratio
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
INTRO = (
    "A clone over HTTP, compared with INSERT … SELECT of the same rows by SQL into existing lists, which is rolled back. "
    "The time of the bare statement includes the checks of foreign keys that the commit of the service makes. The other tables "
    "show the cost of column and index."
)


def measure(rig: Rig) -> Result:
    """Measure clones of each size; then lookups during a clone."""
    result = Result("clone", TITLE, INTRO)
    rig.seed(*rig.sizes.clone_scenarios)
    rig.database.run(text_of("bare_tables"))
    try:
        with running(rig.settings) as service:
            _delete(rig, service)
            for tag in rig.sizes.clone_scenarios:
                # The largest tag takes minutes, with little variation.
                rounds = 1 if tag == "worst-case" else rig.sizes.clone_rounds
                for number in range(1, rounds + 1):
                    rig.say(f"clone: {tag}, round {number} of {rounds}")
                    result.raw += _round(rig, service, tag, number)
            tag = "heavy-usage" if "heavy-usage" in rig.sizes.clone_scenarios else rig.sizes.clone_scenarios[-1]
            _lookups_meanwhile(rig, service, tag, result)
    finally:
        rig.database.run("DROP SCHEMA IF EXISTS bare CASCADE")
    _show(rig, result)
    return result


def _round(rig: Rig, service: Service, tag: str, number: int) -> list[dict[str, Any]]:
    rows = [{"what": SERVICE, **_over_http(rig, service, tag)}]
    for what, target in TARGETS.items():
        rows.append({"what": what, "seconds": _bare(rig, tag, target)})
        if target.startswith("bare."):
            rig.database.run(f"TRUNCATE {target}")
        else:
            rig.database.run('VACUUM "PayloadIOV"')
    return [{"tag": tag, "round": number, **row} for row in rows]


def _over_http(rig: Rig, service: Service, tag: str) -> dict[str, Any]:
    rig.database.run("CHECKPOINT")
    gunicorn = service.gunicorn()
    with usage.peak_of(lambda: usage.largest_worker(gunicorn)) as peak:
        begin, end = _clone(service, tag)
    _delete(rig, service)
    mebibytes = {"worker_before_mib": peak.first / 2**20, "worker_peak_mib": peak.most / 2**20}
    return {"seconds": end - begin, **mebibytes}


def _clone(service: Service, tag: str) -> tuple[float, float]:
    """Clone the tag; returns begin and end by `time.perf_counter`."""
    with Client(service.port) as client:
        begin = time.perf_counter()
        client.write("POST", f"cloneGlobalTag/{tag}/{CLONE}")
        return begin, time.perf_counter()


def _delete(rig: Rig, service: Service) -> None:
    """Delete the clone, if it exists: an earlier run may have been interrupted."""
    with Client(service.port) as client:
        client.call("DELETE", f"deleteGlobalTag/{CLONE}")
    rig.database.run('VACUUM "PayloadIOV"')


def _bare(rig: Rig, tag: str, table: str) -> float:
    rig.database.run("CHECKPOINT")
    with rig.database.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(text_of("clone_pairs"), {"source": tag, "target": f"{CLONE}-bare"})
        begin = time.perf_counter()
        cursor.execute(text_of("clone_insert").replace("{target}", table))
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        return time.perf_counter() - begin


def _lookups_meanwhile(rig: Rig, service: Service, tag: str, result: Result) -> None:
    """Measure lookups without and with a concurrent clone, for at most the time of a clone."""
    known = [row["seconds"] for row in result.raw if row["tag"] == tag and row["what"] == SERVICE]
    # Lookups slow the clone down, so that it covers the whole run.
    seconds = max(1, min(rig.sizes.look_seconds, int(min(known))))
    rig.say(f"clone: lookups in {tag} during a clone")
    rig.warm_up(service, tag)
    rig.database.run("CHECKPOINT")
    url = service.lookup_url(tag)
    rows = [{"clone": "without", **rig.load(service, url, connections=CONNECTIONS, seconds=seconds)}]
    took: list[tuple[float, float]] = []
    cloning = threading.Thread(target=lambda: took.append(_clone(service, tag)), daemon=True)
    cloning.start()
    begin = time.perf_counter()
    rows.append({"clone": "with", **rig.load(service, url, connections=CONNECTIONS, seconds=seconds)})
    end = time.perf_counter()
    cloning.join()
    _delete(rig, service)
    if not took:
        raise RuntimeError("the clone failed")
    clone_begin, clone_end = took[0]
    together = max(0.0, min(end, clone_end) - max(begin, clone_begin))
    rows[1] |= {"clone_seconds": clone_end - clone_begin, "together_percent": 100 * together / (end - begin)}
    title, keys = (
        f"Lookups in {tag}, {CONNECTIONS} connections, {seconds} s",
        f"clone {LOADED} max_ms others_cpu_percent",
    )
    times = {"clone_seconds": "seconds of the clone", "together_percent": "part of the lookups beside it, %"}
    result.tables.append(table(title, rows, f"{keys} {' '.join(times)}", **times))
    result.notes.append(
        "If a clone blocked lookups, the longest lookup would take about as long as the clone. Lookups are somewhat slower "
        "during a clone, as during any other work on the same cores."
    )
    result.raw += [{"tag": tag, "what": f"lookups, {row['clone']} a clone", **row} for row in rows]


def _show(rig: Rig, result: Result) -> None:
    rows, lines = [], {}
    for tag in rig.sizes.clone_scenarios:
        of_tag = {
            what: Spread.of([row["seconds"] for row in result.raw if row["tag"] == tag and row["what"] == what])
            for what in (SERVICE, *TARGETS)
        }
        size = rig.database.value('SELECT payload_iov_count FROM "GlobalTag" WHERE name = %s', (tag,))
        for what, spread in of_tag.items():
            rows.append(
                (tag, size, what, spread.median, spread.low, spread.high, ratio(spread.median, of_tag[SAME].median))
            )
            lines.setdefault(what, []).append((size, spread.median))
        if size >= JUDGED_FROM:
            value = ratio(of_tag[SERVICE].median, of_tag[SAME].median)
            result.targets.append(Target(f"clone of {tag} over HTTP ÷ bare INSERT … SELECT", value, 2, at_most=True))
    columns = ("tag", "IOVs", "what", "median s", "least s", "most s", "÷ bare, same table")
    result.tables.insert(0, Table("Seconds", columns, rows))
    memory = [row for row in result.raw if row["what"] == SERVICE]
    heads = {"worker_before_mib": "before MiB", "worker_peak_mib": "peak MiB"}
    title = "Memory of the largest gunicorn worker"
    result.tables.append(table(title, memory, f"tag round {' '.join(heads)}", **heads))
    result.plots.append(plots.lines("Clone time", lines, x="IOVs", y="seconds", log_x=True, log_y=True))
