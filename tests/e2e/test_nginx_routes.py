"""The routes that each of the two gunicorn instances gets."""

import http.client
import re
import uuid

import pytest

from cdb_rest.routes import ROUTES, Pool
from tests.e2e.behind_nginx import PREFIX, ask

POOLS = [(path, route.pool) for route in ROUTES for path in route.paths]


def test_each_route_goes_where_it_should(served, log):
    sent = {}
    expected = [(path, "", pool) for path, pool in POOLS]
    expected += [(path, "light=1", "lookups") for path, pool in POOLS if pool == Pool.LOOKUPS_IF_LIGHT]
    for path, query, pool in expected:
        if not query and pool == Pool.LOOKUPS_IF_LIGHT:
            pool = "reads"
        for name in ("missing", "%C3%96%20s", "a.b"):
            filled = re.sub("<str:.*?>", name, path).rstrip("/")
            for method in ("GET", "HEAD", "POST", "DELETE", "BREW"):
                for target in (filled, f"{filled}/"):
                    request_id = uuid.uuid4().hex
                    ask(served, method, f"{PREFIX}{target}?{query}", **{"X-Request-ID": request_id})
                    sent[request_id] = method, target, pool if method in ("GET", "HEAD") else "writes"
    found = log.pools(set(sent))
    assert [(method, target, found[key]) for key, (method, target, pool) in sent.items() if found[key] != pool] == []


@pytest.mark.parametrize(
    ("target", "pool"),
    [
        ("/health/live", "lookups"),
        ("/health/ready/", "lookups"),
        ("/api/cdb_rest/globalTag/light", "reads"),
        ("/api/cdb_rest/globalTag/tiny?a=1&light=", "lookups"),
        ("/api/cdb_rest/globalTag/tiny?lights=1", "reads"),
        ("/api/cdb_rest/globalTag/tiny?light=no&a=1", "lookups"),
        ("/api/cdb_rest/globalTag/tiny?light=0", "reads"),
        ("/api/cdb_rest/globalTag/tiny?light=false&a=1", "reads"),
        ("/api/cdb_rest/globalTag/tiny?light=0&light", "lookups"),
        ("/api/cdb_rest/globalTag/tiny?light=%30", "reads"),
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
