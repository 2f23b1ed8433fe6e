"""The number of SQL statements of each GET route, and of each POST route that only reads: fixed, however many rows there are."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cdb_rest.access import rules
from cdb_rest.api.proposals import read_proposal
from cdb_rest.api.urls import STRATEGY_ROUTES, view_of
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.routes import ROUTES
from cdb_rest.rules.access import Origin, Principal
from cdb_rest.writes import global_tags
from cdb_rest.writes.requests import make_request

pytestmark = pytest.mark.django_db

# What stands for the names in a path; where two routes call theirs alike, by the path.
NAMES = {
    "name": "tag0",
    "a": "tag0",
    "b": "tag1",
    "revision": "1",
    "number": "{number}",
    "tag_id": "{tag_id}",
    "list_id": "{list_id}",
    "iov_id": "{iov_id}",
    "user_settings/<str:name>": "CDB_IOV_MODE",
    "payload-types/<str:name>/description": "Type0",
    "payload-types/<str:name>/changes": "Type0",
    "payload-lists/by-name/<str:name>": "{list_name}",
}


def example_of(path):
    """A path with names of what `fill` makes."""
    return re.sub(r"<str:(\w+)>", lambda found: NAMES.get(path, NAMES[found[1]]), path)


BUDGETS = {
    example_of(route.paths[0]) + (query and f"?{query}"): count
    for route in ROUTES + STRATEGY_ROUTES
    for query, count in route.queries.items()
} | {"/health/live": 0, "/health/ready": 1}
POST_BUDGETS = {
    (example_of(route.paths[-1]), body): count for route in ROUTES for body, count in route.reads_by_post.items()
}


def fill(build, count):
    """`count` tags, but at least two, of `count` lists of `count` IOVs each. The status of `tag0` has changed twice."""
    numbers = range(count)
    types = PayloadType.objects.bulk_create(PayloadType(name=f"Type{number}") for number in numbers)
    tags = [build.tag(f"tag{number}") for number in range(max(count, 2))]
    lists = PayloadList.objects.bulk_create(
        PayloadList(name=f"{tag.name}_{kind.name}", payload_type=kind, global_tag=tag) for tag in tags for kind in types
    )
    PayloadIOV.objects.bulk_create(
        PayloadIOV(payload_list=payload_list, payload_url="u", major_iov=major, minor_iov=0)
        for payload_list in lists
        for major in numbers
    )

    for status in ("locked", "unlocked"):
        global_tags.change_status(name="tag0", status=status)


def statements(send, *arguments):
    """The SQL statements of the request that `send` makes with these arguments. It must succeed.

    Without the one that a process needs once for each frozen tag and each revision, to know whether it is durable.
    """
    with CaptureQueriesContext(connection) as queries:
        send(*arguments).ok()
    return [query["sql"] for query in queries if "pg_replication_slots" not in query["sql"]]


def report(requests):
    """A message that shows the statements of each request."""
    return "\n".join("\n".join([f"{request}: {len(sent)} statements:", *sent]) for request, sent in requests.items())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rows", [1, 10])
def test_budgets(api, build, strategies_on, rows):
    fill(build, rows)
    payload_list = PayloadList.objects.first()
    names = {
        "tag_id": GlobalTag.objects.first().id,
        "list_id": payload_list.id,
        "list_name": payload_list.name,
        "iov_id": PayloadIOV.objects.first().id,
    }
    proposal = read_proposal("status", "tag0", {"status": "locked"})
    origin = Origin("alice", principal=Principal("alice", "token"))
    for _ in range(rows):
        names["number"] = make_request(proposal=proposal, document={}, reason="why", origin=origin).id
    found = {}
    for path in BUDGETS:
        # Each request is the first one of a process, which has not read the rules yet.
        rules.forget()
        found[path] = statements(api.get, path.format(**names))
    wrong = {path: sent for path, sent in found.items() if len(sent) != BUDGETS[path]}
    assert not wrong, report(wrong)
    found = {}
    for path, body in POST_BUDGETS:
        rules.forget()
        found[path, body] = statements(api.post, path, json.loads(body))
    wrong = {request: sent for request, sent in found.items() if len(sent) > POST_BUDGETS[request]}
    assert not wrong, report(wrong)


def test_every_get_route_has_a_budget():
    assert [
        route.paths[0] for route in ROUTES + STRATEGY_ROUTES if hasattr(view_of(route), "get") != bool(route.queries)
    ] == []
