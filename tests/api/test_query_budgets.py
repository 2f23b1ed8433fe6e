"""How many statements each GET route sends to the database: a fixed number, however many rows there are."""

import json
import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cdb_rest.api.routes import ROUTES, STRATEGY_ROUTES
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.services import global_tags

pytestmark = pytest.mark.django_db

BUDGETS = json.loads((Path(__file__).parent / "query_budgets.json").read_text())


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
    def shape(path):
        return re.sub(r"<str:\w+>|\{\w+\}|tag0|CDB_IOV_MODE|(?<=changes/)1", "*", path.split("?")[0])

    budgeted = {shape(path) for path in BUDGETS}
    missing = {
        paths[0]
        for view, paths in ROUTES + STRATEGY_ROUTES
        if hasattr(view, "get") and not budgeted & {shape(path) for path in paths}
    }
    assert missing == set()
