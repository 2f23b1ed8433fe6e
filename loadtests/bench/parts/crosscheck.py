"""The client's counts compared with the server's access log, which would reveal a harness that counts incorrectly.

nginx of `make serve` writes the access log. wrk requests two tags, one of which does not exist, and counts the responses by
status. When its time is over, each connection may have a request in progress, which nginx logs, with status 499 if it had
no response, and wrk does not count: the log may have more lines, by at most the number of connections.
"""

from collections import Counter

from loadtests import wrk
from loadtests.access_log import AccessLog, size_of
from loadtests.bench.harness import Harness
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import running

TITLE = "Cross-check with the access log"
CONNECTIONS = 8
TAG = "tiny"


def measure(harness: Harness, result: Result) -> None:
    """Run wrk once and compare its counts with the log."""
    harness.seed(TAG)
    path = harness.data / "serve" / "access.log"
    offset = size_of(path)
    with running(harness.settings, command="serve") as service:
        other = service.lookup_url("not-there")
        load = {"other_url": other, "seconds": harness.sizes.cross_check_seconds, "connections": CONNECTIONS}
        found = wrk.run(service.lookup_url(TAG), count_statuses=True, **load)
    # The service has ended, so the file is complete.
    logged = Counter(AccessLog.read(path, offset).statuses.astype(int).tolist())
    missing = logged.total() - found.requests
    note = "" if missing >= 0 else "wrk counted responses that are not in the log"
    # A log that lacks requests must miss the target as well.
    value = missing if missing >= 0 else float(CONNECTIONS - missing)
    name = "requests in the log that wrk did not count"
    result.targets.append(Target(name, value, CONNECTIONS, at_most=True, note=note))
    statuses = sorted({*found.statuses, *logged})
    rows = [(str(one), found.statuses.get(one, 0), logged[one]) for one in statuses]
    rows.append(("all", found.requests, logged.total()))
    others = ("refused (400 and above)", "timeouts", "broken connections")
    result.tables += [
        Table(f"{CONNECTIONS} connections", ("status", "wrk", "access log"), rows),
        Table("Other counts of wrk", others, [(found.refused, found.timeouts, found.broken)]),
    ]
    result.raw += [{"status": status, "wrk": counted, "access_log": line} for status, counted, line in rows]
