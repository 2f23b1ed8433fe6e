"""What every write route accepts: `dry_run` in the query string or body, and an Idempotency-Key."""

import pytest

from cdb_rest.api.base.authorization import WRITES
from cdb_rest.models import (
    ChangeRequest,
    GlobalTagChange,
    GlobalTagStatus,
    IdempotencyRecord,
    PayloadIOV,
    PayloadList,
    PayloadType,
    RequestComment,
)
from cdb_rest.rules.access import Role
from tests.api.helpers import INSERTION, ROW

pytestmark = pytest.mark.django_db
INSERTION_PLACE = {"global_tag": "run24", "payload_type": "Gain"}
# Each write route, by its legacy path where it has one: method, path, body. {loose} is the id of a detached IOV.
REQUESTS = [
    ("POST", "gt", {"name": "new", "status": "unlocked"}),
    ("POST", "cloneGlobalTag/run24/copy", None),
    ("PUT", "gt_change_status/run24/locked", None),
    ("DELETE", "deleteGlobalTag/run24", None),
    ("POST", "gtstatus", {"name": "reviewed"}),
    ("DELETE", "deleteGlobalTagStatus/unused", None),
    ("POST", "pt", {"name": "New"}),
    ("DELETE", "deletePayloadType/Unused", None),
    ("POST", "pl", {"payload_type": "Gain"}),
    ("PUT", "pl_attach", {"global_tag": "run24", "payload_list": "{detached}"}),
    ("DELETE", "deletePayloadList/{detached}", None),
    ("POST", "piov", ROW),
    ("PUT", "piov_attach", {"payload_list": "{gain}", "piov_id": "{loose}"}),
    ("DELETE", "deletePayloadIOV/run24/Gain/0/0/10/0", None),
    ("POST", "payload-iovs/insert", INSERTION | {"global_tag": "run24", "until": [7, 0]}),
    ("POST", "bulk_piov", [ROW | {"payload_list": "{gain}"}]),
    ("POST", "global-tags/run24/revert", {"revision": 1}),
    ("POST", "global-tags/run24/import", [{"payload_type": "Gain", "payload_url": "x", "since": 7}]),
    ("PUT", "global-tags/run24/description", {"author": "me", "description": "new"}),
    ("PUT", "payload-types/Gain/description", {"description": "new"}),
    ("POST", "global-tags/run24/changes/2/undo", {}),
    ("PUT", "global-tags/run24/limits", {"closed_until": [5, 0], "largest_major": 99}),
    ("POST", "requests", {"global_tag": "run24", "kind": "status", "document": {"status": "locked"}, "reason": "why"}),
    ("POST", "requests/{request}/accept", {}),
    ("POST", "requests/{request}/reject", {"comment": "no"}),
    ("POST", "requests/{request}/withdraw", {}),
    ("POST", "requests/{request}/comments", {"text": "hm"}),
    ("POST", "payload-iovs/clear", INSERTION_PLACE | {"since": [5, 0], "until": [7, "end"], "reason": "why"}),
]
each_write = pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=lambda item: str(item)[:40])


def test_the_table_has_every_write_route():
    routes = {route.rstrip("/").removeprefix("api/cdb_rest/").split("/<")[0] for route, role in WRITES.items() if role}
    named = {
        path.split("/run24")[0].split("/{")[0].removesuffix("/Unused").removesuffix("/unused")
        for _, path, _ in REQUESTS
    }
    aliases = {"global-tags", "payload-types", "payload-lists", "payload-iovs"}
    assert {route for route in routes if route.split("/")[0] not in aliases} <= named


@pytest.fixture
def send(api, world, login):
    """Sends a request of the table, with the ids and names of the world, and by default with a token where one is needed."""
    PayloadType.objects.create(name="Unused")
    GlobalTagStatus.objects.create(name="unused")
    for status in ("locked", "unlocked"):
        # So that there is a revision to revert to.
        api.put(f"gt_change_status/run24/{status}").ok()
    iov = PayloadIOV.objects.get(payload_list=None)
    names = {"gain": world["gain"].name, "detached": world["detached"].name, "loose": str(iov.id)}
    headers = login(Role.PUBLISHER, name="robot")
    proposed = {"rows": [{"payload_type": "Gain", "payload_url": "x", "since": 7}]}
    body = {"global_tag": "run24", "kind": "import", "document": proposed, "reason": "why"}
    names["request"] = str(api.post("requests", body, **headers).ok()["number"])

    def fill(value):
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        return value.format(**names) if isinstance(value, str) else value

    def send_one(method, path, body=None, **given):
        return api(method, fill(path), fill(body), **((headers if path.startswith("requests") else {}) | given))

    return send_one


def state():
    """All that a write may change."""
    models = (
        GlobalTagChange, GlobalTagStatus, PayloadType, PayloadList, PayloadIOV, IdempotencyRecord, ChangeRequest,
        RequestComment,
    )  # fmt: skip
    return [list(model.objects.order_by("pk").values()) for model in models]


@each_write
@pytest.mark.parametrize("where", ["query", "body"])
def test_a_dry_run_answers_and_changes_nothing(send, method, path, body, where):
    before = state()
    # The body of an import is the file.
    if where == "query" or path.endswith("import"):
        answer = send(method, f"{path}?dry_run=1", body, **{"Idempotency-Key": "1"})
    elif isinstance(body, list):
        answer = send(method, path, [row | {"dry_run": True} for row in body])
    else:
        answer = send(method, path, (body or {}) | {"dry_run": True})
    assert answer.ok()["dry_run"] is True
    assert state() == before
    send(method, path, body).ok()
    if not path.endswith("revert"):
        assert state() != before


@each_write
def test_a_repeated_key_gets_the_first_answer_and_changes_nothing(send, method, path, body):
    key = {"Idempotency-Key": "1"}
    first = send(method, path, body, **key)
    first.ok()
    after = state()
    again = send(method, path, body, **key)
    assert again.content == first.content and state() == after
    if body is None:
        send(method, f"{path}?other", **key).error(409, "idempotency_key_reused")


@each_write
def test_the_key_of_another_actor_is_another_key(send, closed, login, method, path, body):
    mine, other = login(Role.PUBLISHER, name="mine"), login(Role.PUBLISHER)
    ChangeRequest.objects.update(requester="token:mine")
    key = {"Idempotency-Key": "1"}
    send(method, path, body, **key, **mine).ok()
    again = send(method, path, body, **key, **other)
    assert again.status == 200 or again.json["code"] != "idempotency_key_reused"
    assert IdempotencyRecord.objects.count() == (2 if again.status == 200 else 1)
