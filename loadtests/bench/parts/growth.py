"""The cost of reading and writing as the database grows.

Tags of 200 payload types are created one after the other in a separate database, each larger than the last. After each, the
following is measured: lookups in the new tag, the list of all tags, attaching a closed IOV, and inserting a row with one
request (both split an existing row). The part clone measures how clones grow. A list with few IOVs often begins after a
random moment, so that small tags return fewer rows. At the end, lookups in all tags alternate, so that a machine that is
slower for a while affects all of them; first as before, then with compiled tags (docs/compiled-tags.md).
"""

import random
from collections.abc import Callable
from typing import Any

from loadtests import metrics
from loadtests.bench.harness import Harness
from loadtests.bench.parts.compiled import compiled_by_command
from loadtests.client import Client, Response, lookups
from loadtests.content.tags import sized_tag
from loadtests.database import Database, text_of
from loadtests.harness import in_turns, write_tags
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, percentile, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, manage, running

TITLE = "Growth"
TYPES = 200
TAGS = 1_000
LARGEST = 2**31 - 1
# The target compares lookups in tags of these sizes, whose times should be nearly the same.
SMALL, LARGE = 20_000, 5_000_000
BESIDE, COMPILED = "lookup, in turns with other tags", "lookup in the compiled tag, in turns"
EMPTY, FULL = (f"globalTags, {TAGS:,} tags, {what}" for what in ("empty", "as grown"))
GROWN = ("lookup", "globalTags", "piov_attach", "payload-iovs/insert")
SIZE = 'SELECT sum(iov_count)::bigint FROM "PayloadList"'
VACUUM = 'VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"'


def measure(harness: Harness, result: Result) -> None:
    """Create the tags and measure at each size."""
    with (
        harness.empty_database("bench_growth") as (database, settings),
        compiled_by_command(harness, settings) as settings,
        running(settings) as service,
    ):
        empty = _row(EMPTY, None, _list_of_tags(harness, service, database))
        database.run("DELETE FROM \"GlobalTag\" WHERE name LIKE 'empty-%'")
        for iovs in harness.sizes.growth:
            harness.say(f"growth: seeding {TYPES * iovs:,} IOVs")
            write_tags(settings, _tag(iovs))
            result.raw += _at_this_size(harness, service, database, iovs)
        full = _row(FULL, None, _list_of_tags(harness, service, database))
        result.raw += _side_by_side(harness, service, database, BESIDE)
        for iovs in harness.sizes.growth:
            harness.say(f"growth: compiling {TYPES * iovs:,} IOVs")
            manage(settings, "compile_tag", _tag(iovs))
        result.raw += [*_side_by_side(harness, service, database, COMPILED), empty, full]
    _show(result)


def _tag(iovs: int) -> str:
    return sized_tag("growth", TYPES, iovs)


def _list_of_tags(harness: Harness, service: Service, database: Database) -> list[Response]:
    """Add empty tags up to `TAGS` tags, and request the list of all tags repeatedly."""
    database.run(text_of("growth_empty_tags"), {"tags": TAGS})
    database.run(VACUUM)
    # Every thread opens its connection before the measurement.
    harness.settle(service.url("globalTags"), connections=service.workers * 4, mode="fixed")
    with Client(service.host) as client:
        return [client.request("GET", "globalTags") for _ in range(harness.sizes.growth_repeats)]


def _at_this_size(harness: Harness, service: Service, database: Database, iovs: int) -> list[dict[str, Any]]:
    tag, repeats, size = _tag(iovs), harness.sizes.growth_repeats, database.value(SIZE)
    harness.say(f"growth: measuring at {size:,} IOVs")
    harness.warm_up(service, tag)
    with Client(service.host) as client:
        lists, source = client.call("GET", f"gtPayloadLists/{tag}").json, random.Random(f"growth/{iovs}")
        found = {"lookup": lookups(client, tag, calls=5 * repeats, seconds=5)}
        requests: dict[str, Callable[[], Response]] = {
            "globalTags": lambda: client.request("GET", "globalTags"),
            "piov_attach": lambda: _attach(client, lists, source),
            "payload-iovs/insert": lambda: _insert(client, tag, lists, source),
        }
        found |= {what: [send() for _ in range(repeats)] for what, send in requests.items()}
    return [_row(what, size, responses, iovs) for what, responses in found.items()]


def _side_by_side(harness: Harness, service: Service, database: Database, what: str) -> list[dict[str, Any]]:
    """Lookups in all tags in turns. Raises `RuntimeError` if compiled tags are not used as `what` says."""
    responses: dict[int, list[Response]] = {iovs: [] for iovs in harness.sizes.growth}
    # Writes in other tags have displaced the data from memory.
    harness.warm_up(service, *map(_tag, responses))
    before = metrics.read(service.host)
    with Client(service.host) as client:
        for number, iovs in in_turns(list(responses), harness.sizes.rounds):
            calls = harness.sizes.growth_repeats
            responses[iovs] += lookups(client, _tag(iovs), calls=calls, seconds=5, seed=number)
    used = metrics.total(metrics.difference(before, metrics.read(service.host)), "cdb_compiled_lookups_total")
    if bool(used) != (what == COMPILED):
        raise RuntimeError(f"{what}: {used:.0f} lookups in compiled tags")
    return [_row(what, database.value(SIZE), found, iovs) for iovs, found in responses.items()]


def _attach(client: Client, lists: dict[str, str], source: random.Random) -> Response:
    """Create an IOV and attach it to one of the lists; returns the response to attaching."""
    major, minor, payload = _draw(source)
    times = {"major_iov": major, "minor_iov": minor, "major_iov_end": major, "minor_iov_end": minor + 1}
    created = client.call("POST", "piov", payload | times)
    body = {"payload_list": lists[source.choice(sorted(lists))], "piov_id": created.json["id"]}
    return client.call("PUT", "piov_attach", body)


def _insert(client: Client, tag: str, lists: dict[str, str], source: random.Random) -> Response:
    """Insert an IOV with one request."""
    major, minor, payload = _draw(source)
    place = {"global_tag": tag, "payload_type": source.choice(sorted(lists))}
    times = {"since": [major, minor], "until": [major, minor + 1]}
    return client.call("POST", "payload-iovs/insert", place | payload | times)


def _draw(source: random.Random) -> tuple[int, int, dict[str, str]]:
    """A random moment, and the payload of an IOV that is valid there for a single minor."""
    major, minor = source.randint(0, LARGEST), source.randint(0, LARGEST)
    return major, minor, {"payload_url": f"bench/{major}-{minor}.root", "checksum": "00"}


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
        "bytes_per_response": len(responses[-1].body),
        "errors": sum(response.status >= 400 for response in responses),
    }


def _show(result: Result) -> None:
    for what in (BESIDE, COMPILED):
        times = {row["iovs_per_type"] * TYPES: row["p50_ms"] for row in result.raw if row["what"] == what}
        small = SMALL if SMALL in times else min(times)
        large = max(size for size in times if size <= 2 * LARGE or what == COMPILED)
        name = f"{what}: p50 with {large:,} IOVs ÷ {small:,} IOVs"
        remark = "" if large >= LARGE else f"the larger tag has less than {LARGE:,} IOVs"
        result.targets.append(Target(name, ratio(times[large], times[small]), 1.3, at_most=True, note=remark))
    name = f"globalTags, {TAGS:,} tags, the largest of {max(times):,} IOVs ÷ all empty"
    empty, full = (row["p50_ms"] for row in result.raw[-2:])
    result.targets.append(Target(name, ratio(full, empty), 3, at_most=True))
    keys = "what iovs_in_database iovs_per_type responses rows p50_ms p95_ms errors"
    result.tables.append(Table.of("By request and size", sorted(result.raw, key=lambda row: row["what"]), keys))
    grown = curves([row for row in result.raw if row["what"] in GROWN], "what", "iovs_in_database", "p50_ms")
    axes = {"x": "IOVs in the database", "y": "ms", "log_x": True, "log_y": True}
    result.plots.append(plots.lines("Response time, p50", grown, **axes))
