"""The client's counts compared with the server's access log, which would reveal a harness that counts incorrectly."""

import json
import re
from collections import Counter
from pathlib import Path

from loadtests.bench.rig import Rig
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import running
from loadtests.wrk import Load
from loadtests.wrk import run as run_wrk

TITLE = "Cross-check with the access log"
CONNECTIONS = 8
TAG = "tiny"
INTRO = (
    "A second service on the same database writes an access log. wrk requests two tags, one of which does not exist, and counts "
    "the responses by status. When its time is over, each connection may have a request in progress, which the server logs and "
    "wrk does not count: the log may have more lines, by at most the number of connections."
)


def measure(rig: Rig) -> Result:
    """Run wrk once and compare its counts with the log."""
    result = Result("crosscheck", TITLE, INTRO)
    rig.seed(TAG)
    log = rig.data / "access.log"
    log.unlink(missing_ok=True)
    settings = rig.settings.with_database(rig.database.url)
    with running(settings, CDB_ACCESS_LOG=str(log)) as service:
        load = run_wrk(
            service.lookup_url(TAG),
            other_url=service.lookup_url("not-there"),
            seconds=rig.sizes.cross_check_seconds,
            connections=CONNECTIONS,
            count_statuses=True,
        )
    # The service has ended, so the file is complete.
    logged = statuses_in(log) if log.exists() else None
    _show(result, load, logged)
    return result


def statuses_in(log: Path) -> Counter[int]:
    """The lookups in an access log by status.

    A line is JSON with `status`, or has the status after the quoted request.
    """
    found: Counter[int] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        if "payloadiovs" not in line:
            continue
        if line.startswith("{"):
            found[int(json.loads(line)["status"])] += 1
        elif match := re.search(r'" (\d{3})(?: |$)', line):
            found[int(match[1])] += 1
    return found


def _show(result: Result, load: Load, logged: Counter[int] | None) -> None:
    name = "requests in the log that wrk did not count"
    if logged is None:
        result.notes.append("Not available: the service wrote no access log.")
        result.targets.append(Target(name, None, CONNECTIONS, at_most=True, note="no access log"))
    else:
        missing = sum(logged.values()) - load.requests
        note = "" if missing >= 0 else "wrk counted responses that are not in the log"
        # A log that lacks requests must miss the target as well.
        value = missing if missing >= 0 else float(CONNECTIONS - missing)
        result.targets.append(Target(name, value, CONNECTIONS, at_most=True, note=note))
    statuses = sorted({*load.statuses, *(logged or {})})
    rows = [(str(one), load.statuses.get(one, 0), logged[one] if logged is not None else None) for one in statuses]
    rows.append(("all", load.requests, sum(logged.values()) if logged is not None else None))
    result.tables.append(Table(f"{CONNECTIONS} connections", ("status", "wrk", "access log"), rows))
    result.tables.append(
        Table(
            "Other counts of wrk",
            ("refused (400 and above)", "timeouts", "broken connections"),
            [(load.refused, load.timeouts, load.broken)],
        )
    )
    result.raw += [{"status": status, "wrk": counted, "access_log": line} for status, counted, line in rows]
