"""The number of SQL statements of each GET route: fixed, however many rows there are."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cdb_rest.api.urls import STRATEGY_ROUTES, view_of
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.routes import ROUTES
from cdb_rest.services import global_tags

pytestmark = pytest.mark.django_db

# What stands for the names in a path; where two routes call theirs alike, by the path.
NAMES = {
    "name": "tag0",
    "a": "tag0",
    "b": "tag0",
    "revision": "1",
    "tag_id": "{tag_id}",
    "list_id": "{list_id}",
    "iov_id": "{iov_id}",
    "user_settings/<str:name>": "CDB_IOV_MODE",
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


def fill(build, count):
    """`count` tags of `count` lists of `count` IOVs each."""
    numbers = range(count)
    types = PayloadType.objects.bulk_create(PayloadType(name=f"Type{number}") for number in numbers)
    tags = [build.tag(f"tag{number}") for number in numbers]
    lists = PayloadList.objects.bulk_create(
        PayloadList(name=f"{tag.name}_{kind.name}", payload_type=kind, global_tag=tag) for tag in tags for kind in types
    )
    PayloadIOV.objects.bulk_create(
        PayloadIOV(payload_list=payload_list, payload_url="u", major_iov=major, minor_iov=0)
        for payload_list in lists
        for major in numbers
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rows", [1, 10])
@pytest.mark.parametrize("path", BUDGETS)
def test_budget(api, build, strategies_on, path, rows):
    fill(build, rows)
    for status in ("locked", "unlocked"):
        global_tags.change_status(name="tag0", status=status)
    payload_list = PayloadList.objects.first()
    url = path.format(
        tag_id=GlobalTag.objects.first().id,
        list_id=payload_list.id,
        list_name=payload_list.name,
        iov_id=PayloadIOV.objects.first().id,
    )
    with CaptureQueriesContext(connection) as queries:
        api.get(url).ok()
    sent = "\n".join(query["sql"] for query in queries)
    assert len(queries) == BUDGETS[path], f"{len(queries)} statements:\n{sent}"


def test_every_get_route_has_a_budget():
    assert [
        route.paths[0] for route in ROUTES + STRATEGY_ROUTES if hasattr(view_of(route), "get") != bool(route.queries)
    ] == []
