"""Which of the two gunicorn instances answers what."""

import http.client
import re
import uuid

import pytest

from cdb_rest.api.routes import ROUTES
from tests.e2e.behind_nginx import PREFIX, ask

# Where a GET goes; each route has to be here. Whatever is no GET or HEAD writes.
LOOKUPS = {
    "payloadiovs/", "payload-iovs/query/", "globalTags", "global-tags", "gtstatus", "global-tags/statuses",
    "gtPayloadLists/<str:name>", "global-tags/<str:name>/payload-lists", "user_settings/<str:name>", "settings/<str:name>",
    "pt", "payload-types", "globalTag/<str:name>?light", "global-tags/<str:name>?light=1",
}  # fmt: skip
READS = {
    "gt", "gt/<str:tag_id>", "globalTag/<str:name>", "global-tags/<str:name>", "pl", "payload-lists", "pl/<str:list_id>",
    "payload-lists/<str:list_id>", "payload-lists/by-name/<str:name>", "piov", "payload-iovs", "piov/<str:iov_id>",
    "payload-iovs/<str:iov_id>", "global-tags/<str:name>/export",
    "global-tags/<str:name>/changes", "global-tags/<str:name>/changes/<str:revision>",
    # There, a GET is refused.
    "deleteGlobalTag/<str:name>", "global-tags/<str:name>/delete", "cloneGlobalTag/<str:source>/<str:target>",
    "global-tags/<str:source>/clone/<str:target>", "gt_change_status/<str:name>/<str:status>",
    "global-tags/<str:name>/change-status/<str:status>", "deletePayloadType/<str:name>", "payload-types/<str:name>/delete",
    "pl_attach", "payload-lists/attach", "deletePayloadList/<str:name>", "payload-lists/<str:name>/delete",
    "bulk_piov", "payload-iovs/bulk", "payload-iovs/insert", "piov_attach", "payload-iovs/attach",
    *ROUTES[[view.__name__ for view, _ in ROUTES].index("PayloadIOVDeleteView")][1],
}  # fmt: skip


def test_the_table_of_routes_is_complete():
    known = {path.partition("?")[0] for path in LOOKUPS | READS}
    assert {path for _, paths in ROUTES for path in paths} - known == set(), "say where a GET of these goes"


def test_each_route_goes_where_it_should(served, log):
    sent = {}
    for path, pool in [(path, "lookups") for path in LOOKUPS] + [(path, "reads") for path in READS]:
        path, _, query = path.partition("?")
        for name in ("nobody", "%C3%96%20s", "a.b"):
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
