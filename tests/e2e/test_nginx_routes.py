"""The server that nginx chooses for each route: granian or gunicorn."""

import http.client
import re
import uuid

import pytest

from cdb_rest.routes import ROUTES, Pool
from tests.e2e.behind_nginx import PREFIX, ask


def routes():
    """Each path of a GET, with a query and the pool that it belongs to."""
    for route in ROUTES:
        for path in route.paths:
            if route.pool == Pool.LOOKUPS_IF_LIGHT:
                yield from ((route, path, "", "heavy"), (route, path, "light=1", "lookups"))
            elif route.pool == Pool.HEAVY_IF_WHOLE:
                yield from ((route, path, "", "heavy"), (route, path, "page=1", "reads"))
            else:
                yield route, path, "", route.pool


def test_each_route_goes_where_it_should(served, log):
    sent = {}
    for route, path, query, pool in routes():
        if pool == "reads" and not route.queries and route.writes:
            continue  # It has no reads.
        pools = {"GET": pool, "HEAD": pool, "POST": "heavy" if route.reads_by_post else "writes"}
        for name in ("missing", "%C3%96%20s", "a.b"):
            filled = re.sub("<str:.*?>", name, path).rstrip("/")
            for method in ("GET", "HEAD", "POST", "DELETE", "BREW"):
                for target in (filled, f"{filled}/"):
                    request_id = uuid.uuid4().hex
                    ask(served, method, f"{PREFIX}{target}?{query}", **{"X-Request-ID": request_id})
                    sent[request_id] = method, target, pools.get(method, "writes")
    found = log.pools(set(sent))
    assert [(method, target, found[key]) for key, (method, target, pool) in sent.items() if found[key] != pool] == []


@pytest.mark.parametrize(
    ("target", "pool"),
    [
        ("/health/live", "lookups"),
        ("/health/ready/", "lookups"),
        ("/api/cdb_rest/globalTag/light", "heavy"),
        ("/api/cdb_rest/globalTag/tiny?a=1&light=", "lookups"),
        ("/api/cdb_rest/globalTag/tiny?lights=1", "heavy"),
        ("/api/cdb_rest/globalTag/tiny?light=no&a=1", "lookups"),
        ("/api/cdb_rest/globalTag/tiny?light=0", "heavy"),
        ("/api/cdb_rest/globalTag/tiny?light=false&a=1", "heavy"),
        ("/api/cdb_rest/globalTag/tiny?light=0&light", "lookups"),
        ("/api/cdb_rest/globalTag/tiny?light=%30", "heavy"),
        ("/api/cdb_rest/globalTag/tiny?light=00", "lookups"),
        ("/api/cdb_rest/globalTag/a%2Fb", "reads"),
        ("/api/cdb_rest//payloadiovs/", "reads"),
        ("/api/docs/", "reads"),
        ("/", "reads"),
        ("/favicon.ico", "reads"),
        ("/api/cdb_rest", "reads"),
        ("/api/cdb_rest/", "reads"),
    ],
)
def test_other_paths_go_where_they_should(served, log, target, pool):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", target)
    response = connection.getresponse()
    response.read()
    assert log[response.headers["X-Request-ID"]]["pool"] == pool
