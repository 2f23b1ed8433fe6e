"""The cost of reading and writing as the database grows.

Tags of 200 payload types are created one after the other in a separate database, each larger than the last. After each, the
following is measured: lookups in the new tag, the list of all tags, attaching a closed IOV, inserting a row with one
request (both split an existing row), and cloning the tag. Clones are deleted again. A list with few IOVs often begins after
a random moment, so that small tags return fewer rows. At the end, lookups in all tags alternate, so that a machine that is
slower for a while affects all of them.
"""

import random
from collections.abc import Iterator
from typing import Any

from loadtests import wrk
from loadtests.bench.harness import Harness, columns
from loadtests.client import Client, Response, lookups
from loadtests.content.tags import sized_tag
from loadtests.database import Database
from loadtests.harness import write_sized
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, percentile, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, manage, running

TITLE = "Growth"
NAME = "bench_growth"
TYPES = 200
TAGS = 1_000
CONNECTIONS = 4
LARGEST = 2**31 - 1
# A larger clone takes many minutes and twice the disk space.
LARGEST_CLONE = 10_000_000
# The target compares lookups in tags of these sizes, whose times should be nearly the same.
SMALL, LARGE = 20_000, 5_000_000
BESIDE = "lookup, in turns with other tags"
EMPTY, FULL = (f"globalTags, {TAGS:,} tags, {what}" for what in ("empty", "as grown"))
READS = ("lookup, one client", f"lookup, {CONNECTIONS} connections", "globalTags")
WRITES = ("piov_attach", "payload-iovs/insert")
SIZE = 'SELECT sum(iov_count)::bigint FROM "PayloadList"'
VACUUM = 'VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"'


def measure(harness: Harness, result: Result) -> None:
    """Create the tags and measure at each size."""
    database = harness.database.create_sibling(NAME)
    settings = harness.settings.with_database(database.url)
    try:
        manage(settings, "migrate", "--verbosity", "0")
        with running(settings) as service:
            empty = _row(EMPTY, None, _list_of_tags(harness, service, database))
            database.run("DELETE FROM \"GlobalTag\" WHERE name LIKE 'empty-%'")
            for iovs in harness.sizes.growth:
                harness.say(f"growth: seeding {TYPES * iovs:,} IOVs")
                write_sized(settings, _tag(iovs))
                result.raw += _at_this_size(harness, service, database, iovs)
            full = _row(FULL, None, _list_of_tags(harness, service, database))
            result.raw += [*_side_by_side(harness, service, database), empty, full]
    finally:
        harness.database.drop_sibling(NAME)
    _show(result)


def _tag(iovs: int) -> str:
    return sized_tag("growth", TYPES, iovs)


def _list_of_tags(harness: Harness, service: Service, database: Database) -> list[Response]:
    """Add empty tags up to `TAGS` tags, and request the list of all tags repeatedly."""
    there = database.value('SELECT count(*) FROM "GlobalTag"')
    database.run(
        "INSERT INTO \"GlobalTag\" (name, status_id) SELECT 'empty-' || number, "
        "(SELECT id FROM \"GlobalTagStatus\" WHERE name = 'unlocked') FROM generate_series(%s, %s) AS number",
        (there + 1, TAGS),
    )
    database.run(VACUUM)
    # Every thread opens its connection before the measurement.
    wrk.run(service.url("globalTags"), seconds=1, connections=service.workers * 4, mode="fixed")
    with Client(service.host) as client:
        return [client.request("GET", "globalTags") for _ in range(harness.sizes.growth_repeats)]


def _at_this_size(harness: Harness, service: Service, database: Database, iovs: int) -> Iterator[dict[str, Any]]:
    tag, repeats, size = _tag(iovs), range(harness.sizes.growth_repeats), database.value(SIZE)
    harness.say(f"growth: measuring at {size:,} IOVs")
    harness.warm_up(service, tag)
    with Client(service.host) as client:
        calls = harness.sizes.growth_repeats * 5
        yield _row(READS[0], size, lookups(client, tag, "random", calls=calls, seconds=5), iovs)
        load = harness.load(
            service, service.lookup_url(tag), connections=CONNECTIONS, seconds=harness.sizes.wrk_seconds
        )
        yield {"what": READS[1], "iovs_in_database": size, "iovs_per_type": iovs, **load}
        yield _row(READS[2], size, [client.request("GET", "globalTags") for _ in repeats], iovs)
        writes = _Writes(client, tag, iovs)
        yield _row(WRITES[0], size, [writes.attach() for _ in repeats], iovs)
        yield _row(WRITES[1], size, [writes.insert() for _ in repeats], iovs)
        if TYPES * iovs <= LARGEST_CLONE:
            clones = 3 if TYPES * iovs <= SMALL else 1
            yield _row("clone", size, [_clone(client, tag) for _ in range(clones)], iovs)
            database.run(VACUUM)


def _side_by_side(harness: Harness, service: Service, database: Database) -> list[dict[str, Any]]:
    responses: dict[int, list[Response]] = {iovs: [] for iovs in harness.sizes.growth}
    # Cloning and deleting have displaced the data from memory.
    harness.warm_up(service, *map(_tag, responses))
    with Client(service.host) as client:
        for number in range(harness.sizes.rounds):
            for iovs, found in responses.items():
                calls = harness.sizes.growth_repeats
                found += lookups(client, _tag(iovs), "random", calls=calls, seconds=5, seed=number)
    return [_row(BESIDE, database.value(SIZE), found, iovs) for iovs, found in responses.items()]


class _Writes:
    """Writes of new IOVs, each valid for a single minor at a random moment."""

    def __init__(self, client: Client, tag: str, iovs: int) -> None:
        self._client = client
        self._tag = tag
        self._source = random.Random(f"growth/{iovs}")
        self._lists = client.call("GET", f"gtPayloadLists/{tag}").json

    def attach(self) -> Response:
        """Create an IOV and attach it; returns the response to attaching."""
        major, minor, payload = self._draw()
        times = {"major_iov": major, "minor_iov": minor, "major_iov_end": major, "minor_iov_end": minor + 1}
        created = self._client.call("POST", "piov", payload | times)
        payload_list = self._lists[self._source.choice(sorted(self._lists))]
        return self._client.call("PUT", "piov_attach", {"payload_list": payload_list, "piov_id": created.json["id"]})

    def insert(self) -> Response:
        """Insert an IOV with one request."""
        major, minor, payload = self._draw()
        place = {"global_tag": self._tag, "payload_type": self._source.choice(sorted(self._lists))}
        times = {"since": [major, minor], "until": [major, minor + 1]}
        return self._client.call("POST", "payload-iovs/insert", place | payload | times)

    def _draw(self) -> tuple[int, int, dict[str, str]]:
        """A random moment, and the payload that begins there."""
        major, minor = self._source.randint(0, LARGEST), self._source.randint(0, LARGEST)
        return major, minor, {"payload_url": f"bench/{major}-{minor}.root", "checksum": "00"}


def _clone(client: Client, tag: str) -> Response:
    cloned = client.call("POST", f"cloneGlobalTag/{tag}/{tag}-clone")
    client.call("DELETE", f"deleteGlobalTag/{tag}-clone")
    return cloned


def _row(what: str, size: int | None, responses: list[Response], iovs: int | None = None) -> dict[str, Any]:
    walls = [response.wall for response in responses]
    return {
        "what": what,
        "iovs_in_database": size,
        "iovs_per_type": iovs,
        "responses": len(responses),
        "rows": percentile([response.rows for response in responses], 50) if what.startswith("lookup") else None,
        "p50_ms": percentile(walls, 50),
        "p95_ms": percentile(walls, 95),
        "db_p50_ms": percentile([response.database for response in responses], 50),
        "bytes_per_response": len(responses[-1].body),
        "errors": sum(response.status >= 400 for response in responses),
    }


def _show(result: Result) -> None:
    beside = [row | {"iovs": row["iovs_per_type"] * TYPES} for row in result.raw if row["what"] == BESIDE]
    steps = [row for row in result.raw if row["what"] != BESIDE]
    times = {row["iovs"]: row["p50_ms"] for row in beside}
    small = SMALL if SMALL in times else min(times)
    large = max(size for size in times if size <= 2 * LARGE)
    name = f"lookup p50 in a tag of {large:,} IOVs ÷ {small:,} IOVs, in turns"
    remark = "" if large >= LARGE else f"the larger tag has less than {LARGE:,} IOVs"
    result.targets.append(Target(name, ratio(times[large], times[small]), 1.3, at_most=True, note=remark))
    name = f"globalTags, {TAGS:,} tags, the largest of {max(times):,} IOVs ÷ all empty"
    empty, full = (row["p50_ms"] for row in result.raw[-2:])
    result.targets.append(Target(name, ratio(full, empty), 3, at_most=True))
    keys = "what iovs_in_database iovs_per_type responses rows p50_ms p95_ms db_p50_ms errors"
    shown = columns("iovs responses p50_ms p95_ms db_p50_ms", iovs="IOVs in the tag")
    result.tables += [
        Table.of("Lookups in the full database, in turns", beside, shown),
        Table.of("By size", sorted(steps, key=lambda row: row["what"]), columns(keys)),
    ]
    series, axes = curves(steps, "what", "iovs_in_database", "p50_ms", "p95_ms"), {"log_x": True, "log_y": True}
    for title, names in (
        ("Reading: response time, p50 to p95", READS),
        ("Writing one IOV: response time, p50 to p95", WRITES),
        ("Time of a clone", ("clone",)),
    ):
        chosen = {name: series[name] for name in names if name in series}
        result.plots.append(plots.lines(title, chosen, x="IOVs in the database", y="ms", **axes))
    if max(times) > LARGEST_CLONE:
        result.notes.append(f"Tags of more than {LARGEST_CLONE:,} IOVs were not cloned.")
