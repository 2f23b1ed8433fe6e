"""Measure the steps of a lookup and of an insert in one process: python -m tests.profile_requests

It starts an embedded PostgreSQL with its own data, seeds the scenarios, and calls the functions that a request calls. It
prints the tables of docs/life-of-a-lookup.md and docs/life-of-an-insert.md. Times are medians in microseconds.
"""

import argparse
import os
import random
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import orjson

SCENARIOS = ("tiny", "heavy-usage")
PATH = "/api/cdb_rest/payloadiovs/"
INSERT_PATH = "/api/cdb_rest/payload-iovs/insert"
PLACES = 2**31
# Parts of statements, and the rows of the table in which they are counted.
STATEMENTS = {
    "lock_timeout": "3: `limit_write.sql`",
    "pg_advisory_xact_lock_shared": "4: `advisory_lock_shared.sql`",
    'SELECT id FROM "GlobalTag" WHERE id = ANY': "4: `lock_global_tags_shared.sql`",
    "AS stretch": "6: `neighbours.sql`",
    "nextval": "8: `next_payload_iov_ids.sql`",
    'INSERT INTO "PayloadIOV"': "8: `insert_payload_iovs.sql`",
    "WITH raised": "9: `record_changes.sql`",
    "AS place": "8: `place_payload_iovs.sql`",
    'SELECT "GlobalTag"."id" AS "id"': "4: ids of the tags",
    'SELECT "GlobalTag"."id", ': "4: the tags with their statuses",
    'SELECT "PayloadType"': "5: the payload types",
    'SELECT "PayloadList"."id" AS "id"': "5: ids of the lists",
    'SELECT "PayloadList"."id", ': "5: lock the lists",
}


def main() -> int:
    """Seed, measure, print. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.profile_requests", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("var/profile"), help="directory for the data")
    parser.add_argument("--lookups", type=int, default=5000, help="number of lookups for each scenario")
    parser.add_argument("--inserts", type=int, default=2000, help="number of inserts for each scenario")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "CDB_DATA_DIR": str(options.directory.resolve()),
        "CDB_LOG_FILE": str((options.directory / "service.log").resolve()),
        "DJANGO_SETTINGS_MODULE": "cdb.settings",
    }
    os.environ.pop("DATABASE_URL", None)
    from cdb import database

    with database.available():
        from cdb.wsgi import application

        for scenario in SCENARIOS:
            seed(scenario)
        lookups = {scenario: lookup_steps(application, scenario, options.lookups) for scenario in SCENARIOS}
        print_table("step of a lookup", lookups)
        inserts = {scenario: insert_steps(application, scenario, options.inserts) for scenario in SCENARIOS}
        print_table("part of an insert", inserts)
    return 0


def seed(scenario: str) -> None:
    """Create the tables and the tag of the scenario with the random layout, if it does not exist."""
    from django.core.management import call_command

    from cdb_rest.models import GlobalTag

    call_command("migrate", verbosity=0)
    if not GlobalTag.objects.filter(name=scenario).exists():
        call_command("seed_scenario", scenario, layout="random", verbosity=0)


def environ_of(method: str, path: str, query: str = "", body: bytes = b"", **headers: str) -> dict[str, Any]:
    """The WSGI variables of a request, as gunicorn sets them."""
    return {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "RAW_URI": path,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_ACCEPT": "*/*",
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.version": (1, 0),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(len(body)) if body else "",
    } | headers


def call(application: Any, environ: dict[str, Any]) -> tuple[str, dict[str, str], bytes]:
    """Status, headers and body of the response to a request."""
    started: list[Any] = []
    body = application(environ, lambda *head: started.append(head))
    content = b"".join(body)
    if hasattr(body, "close"):
        body.close()
    return started[0][0], dict(started[0][1]), content


def ignore(*head: Any) -> None:
    """A `start_response` that does nothing."""


def lookup_steps(application: Any, scenario: str, count: int) -> dict[str, float]:
    """The median time of each step of a lookup at random moments, in microseconds."""
    from django.core.wsgi import get_wsgi_application
    from gunicorn.config import Config
    from gunicorn.http import RequestParser

    from cdb_rest.connections.reads import choose_replica, fetch_all
    from cdb_rest.http.caching import digest_of, headers_of, read_validators
    from cdb_rest.lookup import queries
    from cdb_rest.lookup.model import State
    from cdb_rest.observe.request_context import RequestContext
    from cdb_rest.wsgi.fast_lookup import FastLookup, send

    django, config, places = get_wsgi_application(), Config(), random.Random(1)
    fast = FastLookup(django, [PATH])
    times: dict[str, list[int]] = defaultdict(list)

    def timed(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        begin = perf_counter_ns()
        result = function(*arguments)
        times[name].append(perf_counter_ns() - begin)
        return result

    def parse_head(head: bytes) -> Any:
        return next(RequestParser(config, [head], ("127.0.0.1", 1)))

    def random_query() -> str:
        # A new moment each time, because the pages of a moment that was just looked up are in the processor's caches.
        return f"gtName={scenario}&majorIOV={places.randrange(PLACES)}&minorIOV={places.randrange(PLACES)}"

    for number in range(count + 200):
        if number == 200:
            # Until here, connection, plan and caches were being prepared.
            times.clear()
        query = random_query()
        head = f"GET {PATH}?{query} HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: */*\r\n\r\n".encode()
        environ = environ_of("GET", PATH, query)
        context = RequestContext(environ)
        timed("2: parse the request head", parse_head, head)
        lookup, extras = timed("4, 5: recognise the lookup, parse its query", fast._parse, environ)
        parts = (lookup.tag, *lookup.moment, lookup.only_valid, lookup.as_objects, lookup.mode.value)
        digest = timed("6: digest of the query", digest_of, *parts, extras.window, extras.canonical)
        validators = timed("6: read the validators", read_validators, environ, digest)
        timed("7: choose the server", choose_replica)
        parameters = {"tag": lookup.tag, "versions": list(validators.versions), "modified": None, "with_window": False}
        parameters |= queries.parameters_of(lookup)
        [row] = timed("7 to 9: the SQL statement, one round trip", fetch_all, queries.CALL, parameters)
        timed("for comparison: `SELECT 1`, one round trip", fetch_all, "SELECT 1", {})
        state = State(*row[:3])
        headers = timed("10: caching headers", headers_of, state, digest)
        body = timed("10: encode the body", row[3].encode)
        timed("11: other headers, start of the response", send, ignore, context, 200, headers, body)
        query = random_query()
        environ = environ_of("GET", PATH, query)
        status, sent, _ = timed("3 to 11: the whole WSGI call", call, application, environ)
        assert status.startswith("200")
        known = environ_of("GET", PATH, query, HTTP_IF_NONE_MATCH=sent["ETag"])
        status, _, _ = timed("3 to 11: the whole WSGI call, if the response is 304", call, application, known)
        assert status.startswith("304")
        slow = environ_of("GET", PATH, random_query())
        timed("for comparison: the same through Django, without step 3", call, django, slow)
    return {name: statistics.median(values) / 1000 for name, values in times.items()}


def insert_steps(application: Any, scenario: str, count: int) -> dict[str, float]:
    """The median time of each statement of an insert, of the commit and of the whole, in microseconds."""
    from django.db import connection

    from cdb_rest.models import GlobalTag, PayloadList

    tag = GlobalTag.objects.get(name=scenario)
    types = sorted(PayloadList.objects.filter(global_tag=tag).values_list("payload_type__name", flat=True))
    times: dict[str, list[int]] = defaultdict(list)
    # Other places at each run, because a second IOV with the same start would replace the first one.
    places = random.Random()

    def timed_statement(execute: Any, sql: Any, *rest: Any) -> Any:
        begin = perf_counter_ns()
        try:
            return execute(sql, *rest)
        finally:
            times[label_of(sql)].append(perf_counter_ns() - begin)

    commit = connection.commit

    def timed_commit() -> None:
        begin = perf_counter_ns()
        commit()
        times["the commit, with 10"].append(perf_counter_ns() - begin)

    connection.commit = timed_commit
    with connection.execute_wrapper(timed_statement):
        for number in range(count + 50):
            if number == 50:
                times.clear()
            place = [places.randrange(PLACES), places.randrange(PLACES)]
            row = {
                "global_tag": scenario,
                "payload_type": types[number % len(types)],
                "since": place,
                "until": "next",
                "payload_url": f"profile-{number}",
                "checksum": "0",
            }
            body = orjson.dumps(row)
            environ = environ_of("POST", INSERT_PATH, body=body, CONTENT_TYPE="application/json")
            begin = perf_counter_ns()
            status, _, content = call(application, environ)
            times["the whole WSGI call"].append(perf_counter_ns() - begin)
            assert status.startswith("20"), (status, content)
    connection.commit = commit
    return {name: statistics.median(values) / 1000 for name, values in times.items()}


def label_of(statement: Any) -> str:
    """The row of the table in which a statement is counted."""
    text = " ".join(re.sub(r"--[^\n]*\n", "", str(statement)).split())
    return next((label for part, label in STATEMENTS.items() if part in text), f"`{text[:60]}`")


def print_table(title: str, found: dict[str, dict[str, float]]) -> None:
    """Print a Markdown table with a column for each scenario."""
    names = list(dict.fromkeys(name for times in found.values() for name in times))
    lines = [f"| {title} | {' | '.join(f'`{scenario}`, µs' for scenario in found)} |\n|---|{'---|' * len(found)}"]
    for name in names:
        cells = (
            f"{times[name]:,.0f}" if times.get(name, 0) >= 10 else f"{times.get(name, 0):.1f}"
            for times in found.values()
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join(lines) + "\n\n")


if __name__ == "__main__":
    sys.exit(main())
