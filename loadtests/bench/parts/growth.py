"""The cost of reading and writing as the database grows."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from loadtests import wrk
from loadtests.bench.rig import Rig, table
from loadtests.client import LARGEST, Client, Response, lookups
from loadtests.content.tags import sized_tag
from loadtests.database import Database
from loadtests.reporting import plots
from loadtests.reporting.figures import percentile, ratio
from loadtests.reporting.result import Result, Target
from loadtests.rig import write_sized
from loadtests.service import Service, Settings, manage, running

TITLE = "Growth"
NAME = "bench_growth"
TYPES = 200
TAGS = 1_000
CONNECTIONS = 4
# A larger clone takes many minutes and twice the disk space.
LARGEST_CLONE = 10_000_000
# The target compares lookups in tags of these sizes, whose times should be nearly the same.
SMALL, LARGE = 20_000, 5_000_000
BESIDE = "lookup, in turns with other tags"
VACUUM = 'VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"'
INTRO = (
    f"Tags of {TYPES} payload types are created one after the other in a separate database, each larger than the last. After "
    "each, the following is measured: lookups in the new tag, the list of all tags, attaching a closed IOV, inserting a row with "
    "one request (both split an existing row), and cloning the tag. Clones are deleted again. A list with few IOVs often begins "
    "after a random moment, so that small tags return fewer rows. At the end, lookups in all tags alternate, so that a machine "
    "that is slower for a while affects all of them."
)


def measure(rig: Rig) -> Result:
    """Create the tags and measure at each size."""
    result = Result("growth", TITLE, INTRO)
    database = rig.database.create_sibling(NAME)
    settings = rig.settings.with_database(database.url)
    try:
        manage(settings, "migrate", "--verbosity", "0")
        with running(settings) as service:
            empty = _tags(rig, service, database)
            database.run("DELETE FROM \"GlobalTag\" WHERE name LIKE 'empty-%'")
            for iovs in rig.sizes.growth:
                _write(rig, settings, iovs)
                result.raw += _at_this_size(rig, service, database, iovs)
            full = _tags(rig, service, database)
            result.raw += _side_by_side(rig, service, database)
    finally:
        rig.database.drop_sibling(NAME)
    for what, walls in (("empty", empty), ("as grown", full)):
        result.raw.append(_row(f"globalTags, {TAGS:,} tags, {what}", None, walls))
    _show(result)
    return result


def _tag(iovs: int) -> str:
    return sized_tag("growth", TYPES, iovs)


def _write(rig: Rig, settings: Settings, iovs: int) -> None:
    rig.say(f"growth: seeding {TYPES * iovs:,} IOVs")
    write_sized(settings, _tag(iovs))


def _tags(rig: Rig, service: Service, database: Database) -> list[Response]:
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
    with Client(service.port) as client:
        return [client.call("GET", "globalTags") for _ in range(rig.sizes.growth_repeats)]


def _at_this_size(rig: Rig, service: Service, database: Database, iovs: int) -> Iterator[dict[str, Any]]:
    tag, repeats = _tag(iovs), rig.sizes.growth_repeats
    size = database.value('SELECT sum(iov_count)::bigint FROM "PayloadList"')
    rig.say(f"growth: measuring at {size:,} IOVs")
    rig.warm_up(service, tag)
    with Client(service.port) as client:
        path = f"payloadiovs/?gtName={tag}"
        yield _row("lookup, one client", size, lookups(client, path, "random", calls=repeats * 5, seconds=5), iovs)
        load = rig.load(service, service.lookup_url(tag), connections=CONNECTIONS, seconds=rig.sizes.wrk_seconds)
        yield {"what": f"lookup, {CONNECTIONS} connections", "iovs_in_database": size, "iovs_per_type": iovs, **load}
        yield _row("globalTags", size, [client.call("GET", "globalTags") for _ in range(repeats)], iovs)
        writes = _Writes(client, tag, iovs)
        yield _row("piov_attach", size, [writes.attach() for _ in range(repeats)], iovs)
        yield _row("payload-iovs/insert", size, [writes.insert() for _ in range(repeats)], iovs)
        if TYPES * iovs <= LARGEST_CLONE:
            clones = 3 if TYPES * iovs <= SMALL else 1
            yield _row("clone", size, [_clone(client, tag) for _ in range(clones)], iovs)
            database.run(VACUUM)


def _side_by_side(rig: Rig, service: Service, database: Database) -> list[dict[str, Any]]:
    responses: dict[int, list[Response]] = {iovs: [] for iovs in rig.sizes.growth}
    size = database.value('SELECT sum(iov_count)::bigint FROM "PayloadList"')
    # Cloning and deleting have displaced the data from memory.
    rig.warm_up(service, *(_tag(iovs) for iovs in responses))
    with Client(service.port) as client:
        for number in range(rig.sizes.rounds):
            for iovs, found in responses.items():
                path = f"payloadiovs/?gtName={_tag(iovs)}"
                found += lookups(client, path, "random", calls=rig.sizes.growth_repeats, seconds=5, seed=number)
    return [_row(BESIDE, size, found, iovs) for iovs, found in responses.items()]


class _Writes:
    """Writes of new IOVs, each valid for a single minor at a random moment."""

    def __init__(self, client: Client, tag: str, iovs: int) -> None:
        self._client = client
        self._tag = tag
        self._source = random.Random(f"growth/{iovs}")
        self._lists = json.loads(client.call("GET", f"gtPayloadLists/{tag}").body)

    def attach(self) -> Response:
        """Create an IOV and attach it; returns the response to attaching."""
        major, minor = self._moment()
        created = self._client.write(
            "POST",
            "piov",
            {
                "payload_url": f"bench/{major}-{minor}.root",
                "checksum": "00",
                "major_iov": major,
                "minor_iov": minor,
                "major_iov_end": major,
                "minor_iov_end": minor + 1,
            },
        )
        payload_list = self._lists[self._source.choice(sorted(self._lists))]
        body = {"payload_list": payload_list, "piov_id": json.loads(created.body)["id"]}
        return self._client.write("PUT", "piov_attach", body)

    def insert(self) -> Response:
        """Insert an IOV with one request."""
        major, minor = self._moment()
        row = {
            "global_tag": self._tag,
            "payload_type": self._source.choice(sorted(self._lists)),
            "payload_url": f"bench/{major}-{minor}.root",
            "checksum": "00",
            "since": [major, minor],
            "until": [major, minor + 1],
        }
        return self._client.write("POST", "payload-iovs/insert", row)

    def _moment(self) -> tuple[int, int]:
        return self._source.randint(0, LARGEST), self._source.randint(0, LARGEST)


def _clone(client: Client, tag: str) -> Response:
    cloned = client.write("POST", f"cloneGlobalTag/{tag}/{tag}-clone")
    client.write("DELETE", f"deleteGlobalTag/{tag}-clone")
    return cloned


def _row(what: str, size: int | None, responses: list[Response], iovs: int | None = None) -> dict[str, Any]:
    walls = [response.wall for response in responses]
    times = [response.database for response in responses if response.database is not None]
    return {
        "what": what,
        "iovs_in_database": size,
        "iovs_per_type": iovs,
        "answers": len(responses),
        "rows": percentile([response.rows for response in responses], 50) if what.startswith("lookup") else None,
        "p50_ms": percentile(walls, 50),
        "p95_ms": percentile(walls, 95),
        "db_p50_ms": percentile(times, 50) if times else None,
        "bytes_per_answer": len(responses[-1].body),
        "errors": sum(response.status != 200 for response in responses),
    }


def _show(result: Result) -> None:
    beside = [row for row in result.raw if row["what"] == BESIDE]
    of_lookup = {row["iovs_per_type"] * TYPES: row["p50_ms"] for row in beside}
    _show_targets(result, of_lookup)
    _show_tables(result, beside)
    _show_plots(result, [row for row in result.raw if row["iovs_in_database"] is not None and row not in beside])
    if max(of_lookup) > LARGEST_CLONE:
        result.notes.append(f"Tags of more than {LARGEST_CLONE:,} IOVs were not cloned.")


def _show_targets(result: Result, of_lookup: dict[int, float]) -> None:
    small = SMALL if SMALL in of_lookup else min(of_lookup)
    large = max(size for size in of_lookup if size <= 2 * LARGE)
    tags = [row["p50_ms"] for row in result.raw[-2:]]
    name = f"lookup p50 in a tag of {large:,} IOVs ÷ {small:,} IOVs, in turns"
    remark = "" if large >= LARGE else f"the larger tag has less than {LARGE:,} IOVs"
    result.targets.append(Target(name, ratio(of_lookup[large], of_lookup[small]), 1.3, at_most=True, note=remark))
    name = f"globalTags, {TAGS:,} tags, the largest of {max(of_lookup):,} IOVs ÷ all empty"
    result.targets.append(Target(name, ratio(tags[1], tags[0]), 3, at_most=True))


def _show_tables(result: Result, beside: list[dict[str, Any]]) -> None:
    shown = [row | {"iovs": row["iovs_per_type"] * TYPES} for row in beside]
    title, keys = "Lookups in the full database, in turns", "iovs answers p50_ms p95_ms db_p50_ms"
    result.tables.append(table(title, shown, keys, iovs="IOVs in the tag"))
    ordered = sorted([row for row in result.raw if row not in beside], key=lambda row: row["what"])
    keys = "what iovs_in_database iovs_per_type answers rows p50_ms p95_ms db_p50_ms errors"
    result.tables.append(table("By size", ordered, keys))


def _show_plots(result: Result, steps: list[dict[str, Any]]) -> None:
    def draw(title: str, wanted: Callable[[str], bool]) -> None:
        series: dict[str, list[tuple[float, float, float]]] = {}
        for row in steps:
            if wanted(row["what"]) and row["p50_ms"] is not None:
                point = (row["iovs_in_database"], row["p50_ms"], row["p95_ms"])
                series.setdefault(row["what"], []).append(point)
        result.plots.append(plots.bands(title, series, x="IOVs in the database", y="ms", log_x=True, log_y=True))

    draw("Reading: response time, p50 to p95", lambda what: what.startswith(("lookup", "globalTags")))
    draw("Writing one IOV: response time, p50 to p95", lambda what: what in ("piov_attach", "payload-iovs/insert"))
    draw("Time of a clone", lambda what: what == "clone")
