"""The cost of lookups in the past, and the space that history takes.

Three tags are changed in ways that are hard for a history: the largest scenario by many small inserts at random moments; a
tag with one payload list to which IOVs are appended one at a time; and lists in which the same interval is replaced again and
again. In each, lookups in the present and at earlier revisions alternate. Responses come from granian, not from a cache.
"""

import random
from itertools import pairwise
from typing import Any, NamedTuple

from loadtests.bench.harness import Harness
from loadtests.client import Client
from loadtests.database import text_of
from loadtests.harness import write_tags
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, grouped, ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import running

TITLE = "History"
LARGEST = 2**31 - 1
ROWS_PER_CHANGE = 5
PRESENT, FIRST, MIDDLE = "present", "first revision", "middle revision"
# The replaced interval, and the list around it.
REPLACED, UNTIL, STEPS = 1_000, 2_000, 100
# The bounds of the targets: p50 in the past ÷ p50 in the present.
BOUNDS = {"small changes": 1.5, "appended": 2.0, "replaced": 3.0}


class Subject(NamedTuple):
    """A tag whose past is measured: its kind, number of changes and first revision, and the moments of lookups.

    `mode` is that of wrk for moments; with fixed, `moment` is the end of the URL.
    """

    what: str
    size: int
    tag: str
    first: int
    mode: str
    moment: str = ""


def measure(harness: Harness, result: Result) -> None:
    """Create the tags, and measure lookups in the present and in the past in turns."""
    with (
        harness.empty_database("bench_history") as (database, settings),
        running(settings) as service,
        Client(service.host) as client,
    ):
        write_tags(settings, harness.sizes.largest)
        subjects = [_change(harness, client), _append(harness, client)]
        subjects += [_replace(harness, client, size) for size in harness.sizes.history_replacements]
        database.run(
            'VACUUM (ANALYZE) "PayloadIOV", "PayloadIOVHistory", "PayloadListVersion", "PayloadListMembership"'
        )
        for subject in subjects:
            url, middle = service.lookup_url(subject.tag) + subject.moment, subject.first + subject.size // 2
            urls = {PRESENT: url, FIRST: f"{url}&rev={subject.first}", MIDDLE: f"{url}&rev={middle}"}
            harness.settle(url, connections=service.workers * 4, mode=subject.mode)
            for number, state in harness.rounds(f"history, {subject.what} {subject.size:,}", list(urls)):
                load = {"connections": 1, "seconds": harness.sizes.short_seconds, "mode": subject.mode, "seed": number}
                row = {"what": subject.what, "changes": subject.size, "state": state, "round": number}
                result.raw.append(row | harness.load(service, urls[state], **load))
        with database.connect() as connection, connection.cursor() as cursor:
            cursor.execute(text_of("history_space"))
            headings = tuple(column.name for column in cursor.description)
            result.tables.append(Table("Space", headings, cursor.fetchall()))
    _show(result)


def _change(harness: Harness, client: Client) -> Subject:
    """Change the largest scenario by inserts of a few rows at random moments."""
    tag, changes, source = harness.sizes.largest, harness.sizes.history_changes, random.Random("history")
    harness.say(f"history: {changes:,} changes of {ROWS_PER_CHANGE} rows in {tag}")
    first = _revision(client, tag)
    types = sorted(client.call("GET", f"gtPayloadLists/{tag}").json)
    for _ in range(changes):
        rows = [
            _row(tag, source.choice(types), (source.randint(0, LARGEST), 0), "next") for _ in range(ROWS_PER_CHANGE)
        ]
        client.call("POST", "payload-iovs/insert", rows)
    return Subject("small changes", changes, tag, first, "random")


def _append(harness: Harness, client: Client) -> Subject:
    """Append IOVs to a list one at a time."""
    size = harness.sizes.history_appends
    harness.say(f"history: appending {size:,} IOVs one at a time")
    tag = _tag_of_one_list(client, "append")
    for number in range(size):
        client.call("POST", "payload-iovs/insert", _row(tag, "History", (number, 0), "next"))
    return Subject("appended", size, tag, _revision(client, tag) - size + 1, "last")


def _replace(harness: Harness, client: Client, size: int) -> Subject:
    """Replace the IOVs of an interval again and again, each time by four with other boundaries."""
    harness.say(f"history: replacing one interval {size:,} times")
    tag, source = _tag_of_one_list(client, f"replace-{size}"), random.Random(size)
    rows = [_row(tag, "History", (start, 0), "next") for start in range(0, STEPS * STEPS, STEPS)]
    client.call("POST", "payload-iovs/insert", rows)
    first = _revision(client, tag)
    for _ in range(size):
        edges = sorted([REPLACED, *source.sample(range(REPLACED + 1, UNTIL), 3), UNTIL])
        rows = [_row(tag, "History", (start, 0), (end, 0)) for start, end in pairwise(edges)]
        client.call("POST", "payload-iovs/insert", rows)
    return Subject("replaced", size, tag, first, "fixed", f"&majorIOV={(REPLACED + UNTIL) // 2}&minorIOV=0")


def _tag_of_one_list(client: Client, tag: str) -> str:
    client.call("POST", "gt", {"name": tag, "status": "unlocked"})
    client.call("POST", "pt", {"name": "History"}, also=(400,))
    return tag


def _row(tag: str, payload_type: str, since: tuple[int, int], until: tuple[int, int] | str) -> dict[str, Any]:
    payload = {"payload_url": f"bench/{since[0]}.root", "checksum": "00", "since": since, "until": until}
    return {"global_tag": tag, "payload_type": payload_type} | payload


def _revision(client: Client, tag: str) -> int:
    response = client.request("GET", f"payloadiovs/?gtName={tag}&majorIOV=0&minorIOV=0")
    return int(response.headers["cdb-revision"])


def _show(result: Result) -> None:
    summary = []
    for (what, changes), rows in grouped(result.raw, "what", "changes").items():
        times, costs = (spreads(rows, "state", key) for key in ("p50_ms", "postgres_cpu_ms"))
        to_present, cpu_to_present = ratios_to(times, PRESENT), ratios_to(costs, PRESENT)
        for state, group in grouped(rows, "state").items():
            row = {"what": what, "changes": changes, "state": state, "p50_ms": times[state].median}
            row |= {"postgres_cpu_ms": costs[state].median, "errors": sum(one["errors"] for one in group)}
            summary.append(row | {"to_present": to_present[state], "cpu_to_present": cpu_to_present[state]})
    # The targets are for the past of the largest subject of each kind.
    largest = {row["what"]: row["changes"] for row in sorted(summary, key=lambda row: row["changes"])}
    for row in summary:
        if row["state"] != PRESENT and row["changes"] == largest[row["what"]]:
            name = f"lookup p50 at the {row['state']} ÷ present, {row['what']} {row['changes']:,} times"
            result.targets.append(Target(name, row["to_present"], BOUNDS[row["what"]], at_most=True))
    headings = {"to_present": "p50 ÷ present", "cpu_to_present": "PostgreSQL CPU ÷ present"}
    keys = "what changes state p50_ms to_present postgres_cpu_ms cpu_to_present errors"
    result.tables.insert(0, Table.of("Lookups, one client, in turns", summary, keys, **headings))
    series = curves([row for row in summary if row["what"] == "replaced"], "state", "changes", "p50_ms")
    title = "Replacing one interval: response time, p50"
    result.plots.append(plots.lines(title, series, x="replacements", y="ms", log_x=True))
