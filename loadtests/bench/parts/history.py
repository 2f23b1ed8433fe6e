"""The cost of lookups in the past, and the space that history takes.

Three tags are changed in ways that are hard for a history: the largest scenario by many small inserts at random moments; a
tag with one payload list to which IOVs are appended one at a time; and lists in which the same interval is replaced again and
again. In each, lookups in the present and at earlier revisions alternate. Responses come from gunicorn, not from a cache.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from loadtests.bench.harness import Harness, columns
from loadtests.client import Client
from loadtests.database import Database, text_of
from loadtests.harness import write_sized
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, grouped, ratio, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "History"
LARGEST = 2**31 - 1
ROWS_PER_CHANGE = 5
PRESENT, FIRST, MIDDLE = "present", "first revision", "middle revision"
# The replaced interval, and the list around it.
REPLACED, UNTIL, STEPS = 1_000, 2_000, 100
# The bounds of the targets: p50 in the past ÷ p50 in the present.
BOUNDS = {"small changes": 1.5, "appended": 2.0, "replaced": 3.0}


@dataclass(frozen=True)
class Subject:
    """A tag whose past is measured: its kind and size, the mode of wrk for moments, and the revisions by name."""

    what: str
    size: int
    tag: str
    mode: str
    revisions: dict[str, int]
    moment: str = ""

    def url(self, service: Service, state: str) -> str:
        """The URL of lookups in the tag at the revision with this name, or in the present."""
        revision = f"&rev={self.revisions[state]}" if state in self.revisions else ""
        return service.lookup_url(self.tag) + revision + self.moment


def measure(harness: Harness, result: Result) -> None:
    """Create the tags, and measure lookups in the present and in the past in turns."""
    with (
        harness.empty_database("bench_history") as (database, settings),
        running(settings) as service,
        Client(service.host) as client,
    ):
        write_sized(settings, harness.sizes.largest)
        subjects = [_change(harness, client), _append(harness, client)]
        subjects += [_replace(harness, client, size) for size in harness.sizes.history_replacements]
        database.run(
            'VACUUM (ANALYZE) "PayloadIOV", "PayloadIOVHistory", "PayloadListVersion", "PayloadListMembership"'
        )
        for subject in subjects:
            result.raw += _measure(harness, service, subject)
        result.tables.append(_space(database))
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
    revisions = {FIRST: first, MIDDLE: first + changes // 2}
    return Subject("small changes", changes, tag, "random", revisions)


def _append(harness: Harness, client: Client) -> Subject:
    """Append IOVs to a list one at a time."""
    size = harness.sizes.history_appends
    harness.say(f"history: appending {size:,} IOVs one at a time")
    tag = _tag_of_one_list(client, "append")
    for number in range(size):
        client.call("POST", "payload-iovs/insert", _row(tag, "History", (number, 0), "next"))
    first = _revision(client, tag) - size + 1
    return Subject("appended", size, tag, "last", {FIRST: first, MIDDLE: first + size // 2})


def _replace(harness: Harness, client: Client, size: int) -> Subject:
    """Replace the IOVs of an interval again and again, each time by four with other boundaries."""
    harness.say(f"history: replacing one interval {size:,} times")
    tag, source = _tag_of_one_list(client, f"replace-{size}"), random.Random(size)
    rows = [_row(tag, "History", (start, 0), "next") for start in range(0, STEPS * STEPS, STEPS)]
    client.call("POST", "payload-iovs/insert", rows)
    first = _revision(client, tag)
    for _ in range(size):
        edges = sorted([REPLACED, *source.sample(range(REPLACED + 1, UNTIL), 3), UNTIL])
        client.call(
            "POST",
            "payload-iovs/insert",
            [_row(tag, "History", (start, 0), (end, 0)) for start, end in pairwise(edges)],
        )
    revisions = {FIRST: first, MIDDLE: first + size // 2}
    return Subject("replaced", size, tag, "fixed", revisions, f"&majorIOV={(REPLACED + UNTIL) // 2}&minorIOV=0")


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


def _measure(harness: Harness, service: Service, subject: Subject) -> Sequence[dict[str, Any]]:
    states = [PRESENT, *subject.revisions]
    harness.settle(subject.url(service, PRESENT), connections=service.workers * 4)
    rows = []
    for number, state in harness.rounds(f"history, {subject.what} {subject.size:,}", states):
        load = harness.load(
            service,
            subject.url(service, state),
            connections=1,
            seconds=harness.sizes.wrk_seconds,
            mode=subject.mode,
            seed=number,
        )
        rows.append({"what": subject.what, "changes": subject.size, "state": state, "round": number, **load})
    return rows


def _space(database: Database) -> Table:
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute(text_of("history_space"))
        return Table("Space", tuple(column.name for column in cursor.description), cursor.fetchall())


def _show(result: Result) -> None:
    summary = [row for subject, rows in _by_subject(result.raw).items() for row in _compared(*subject, rows)]
    result.targets += _targets(summary)
    headings = {"to_present": "p50 ÷ present", "cpu_to_present": "PostgreSQL CPU ÷ present"}
    keys = "what changes state p50_ms to_present postgres_cpu_ms cpu_to_present errors"
    result.tables.insert(0, Table.of("Lookups, one client, in turns", summary, columns(keys, **headings)))
    series = curves([row for row in summary if row["what"] == "replaced"], "state", "changes", "p50_ms")
    title = "Replacing one interval: response time, p50"
    result.plots.append(plots.lines(title, series, x="replacements", y="ms", log_x=True))


def _compared(what: str, changes: int, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The medians of each state of a subject, and their ratios to those of the present."""
    medians = {state: one.median for state, one in spreads(rows, "state", "p50_ms").items()}
    costs = {state: one.median for state, one in spreads(rows, "state", "postgres_cpu_ms").items()}
    return [
        {
            "what": what,
            "changes": changes,
            "state": state,
            "p50_ms": medians[state],
            "postgres_cpu_ms": costs[state],
            "to_present": ratio(medians[state], medians[PRESENT]),
            "cpu_to_present": ratio(costs[state], costs[PRESENT]),
            "errors": sum(row["errors"] for row in rows if row["state"] == state),
        }
        for state in medians
    ]


def _targets(summary: Sequence[dict[str, Any]]) -> list[Target]:
    """A target for each past state of the largest subject of each kind."""
    largest = {row["what"]: row["changes"] for row in sorted(summary, key=lambda row: row["changes"])}
    return [
        Target(
            f"lookup p50 at the {row['state']} ÷ present, {row['what']} {row['changes']:,} times",
            row["to_present"],
            BOUNDS[row["what"]],
            at_most=True,
        )
        for row in summary
        if row["state"] != PRESENT and row["changes"] == largest[row["what"]]
    ]


def _by_subject(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    return {
        (what, changes): found
        for what, group in grouped(rows, "what").items()
        for changes, found in grouped(group, "changes").items()
    }
