"""Reads of a global tag in the past: responses, headers and errors."""

import itertools
import re

import pytest
from django.test import Client

from cdb_rest.models import GlobalTagChange
from tests.api.helpers import LOOKUP, insert

pytestmark = pytest.mark.django_db(transaction=True)
EXPORT = "global-tags/tag/export"
PATHS = (
    LOOKUP,
    f"{LOOKUP}&strict=1&shape=dict",
    "gtPayloadLists/tag",
    "global-tags/tag/payload-lists",
    "globalTag/tag",
    "globalTag/tag?light",
    "global-tags/tag?light=1",
    EXPORT,
    f"{EXPORT}?format=jsonl&payload_type=Gain&since=2,0&until=7,0",
)
FOREVER = "public, max-age=31536000, immutable"


def past(path, query):
    return f"{path}{'&' if '?' in path else '?'}{query}"


def fetch(path, **headers):
    """Status, headers and body, also of a file."""
    response = Client(raise_request_exception=False).generic("GET", f"/api/cdb_rest/{path}", **headers)
    return response.status_code, response, b"".join(response) if response.streaming else response.content


def time_of(revision, tag="tag"):
    created = GlobalTagChange.objects.get(global_tag=tag, revision=revision).created
    return created.isoformat().replace("+00:00", "Z")


def change_everything(api):
    """Changes after which each response is another one."""
    insert(api, "second", [3, 0])
    api.post("pt", {"name": "Noise"}).ok()
    name = api.post("pl", {"payload_type": "Noise"}).ok()["name"]
    api.put("pl_attach", {"global_tag": "tag", "payload_list": name}).ok()
    api.put("gt_change_status/tag/locked").ok()


@pytest.mark.parametrize("path", PATHS)
def test_a_past_response_is_the_one_of_then(api, tag, path):
    status, response, body = fetch(path)
    assert status == 200 and response["CDB-Revision"] == "2"
    moment = time_of(2)
    change_everything(api)
    assert fetch(path)[2] != body
    for query, cache_control in (("rev=2", FOREVER), (f"at={moment}", "public, no-cache")):
        status, found, past_body = fetch(past(path, query))
        assert (status, past_body) == (200, body)
        assert (found["CDB-Revision"], found["Cache-Control"]) == ("2", cache_control)
        assert found["Content-Type"] == response["Content-Type"] and "Last-Modified" not in found
        again = fetch(past(path, query), HTTP_IF_NONE_MATCH=found["ETag"])
        assert (again[0], again[2], again[1]["ETag"]) == (304, b"", found["ETag"])
        assert again[1]["CDB-Revision"] == "2"
        assert fetch(past(path, query), HTTP_IF_NONE_MATCH='"2-1-0"')[0] == 200
        assert api("HEAD", past(path, query)).headers["ETag"] == found["ETag"]
    # An ETag of the present or of another revision does not match.
    for other in ("rev=1", f"at={time_of(1)}"):
        assert fetch(past(path, other), HTTP_IF_NONE_MATCH=found["ETag"])[0] in (200, 404)


@pytest.mark.parametrize("path", PATHS)
def test_a_deleted_tag_can_be_asked_for_by_revision(api, tag, path):
    body = fetch(path)[2]
    api.delete("deleteGlobalTag/tag").ok()
    api.delete("deletePayloadType/Gain").ok()
    assert fetch(path)[0] == 404
    assert fetch(past(path, "rev=2"))[::2] == (200, body)
    deleted = api.get(past(path, "rev=3"))
    assert (deleted.status, deleted.json["code"]) == (404, "global_tag_not_found")
    api.post("gt", {"name": "tag", "status": "unlocked"}).ok()
    assert fetch(past(path, "rev=2"))[::2] == (200, body)


ERRORS = {
    "rev=9": (404, "revision_not_found"),
    "at=2001-01-01": (404, "revision_not_found"),
    "at=2999-01-01": (404, "revision_not_found"),
    "rev=1": (410, "revision_pruned"),
    "rev=-1": (400, "invalid_input"),
    "rev=": (400, "invalid_input"),
    "at=yesterday": (400, "invalid_input"),
    "rev=1&at=2026-01-01": (400, "invalid_input"),
}


def test_errors(api, tag):
    GlobalTagChange.objects.filter(revision=1).update(has_history=False)
    for path, (query, expected), headers in itertools.product(
        PATHS, ERRORS.items(), ({}, {"if_none_match": '"1-1-0"'})
    ):
        answer = api.get(past(path, query), **headers)
        assert (answer.status, answer.json["code"], answer.headers["Cache-Control"]) == (*expected, "no-store")


def test_a_tag_that_never_existed(api, tag):
    for path, query in itertools.product(PATHS, ("rev=1", "at=2026-01-01")):
        answer = api.get(past(re.sub(r"\btag\b", "missing", path), query))
        assert (answer.status, answer.json["code"]) == (404, "global_tag_not_found")


def test_a_tag_that_another_program_deleted(api, tag):
    GlobalTagChange.objects.filter(revision=2).update(tag_id=tag.id + 1)
    assert api.get("globalTag/tag?light&rev=2").json["code"] == "revision_pruned"


@pytest.mark.parametrize("path", ["cloneGlobalTag/tag/copy", "global-tags/tag/clone/copy"])
def test_a_clone_of_a_time(api, tag, path):
    """tests/histories clones revisions."""
    rows, moment = (fetch(LOOKUP)[2], fetch(EXPORT)[2]), time_of(2)
    change_everything(api)
    clone = api.post(f"{path}?at={moment}").ok()
    assert (clone["name"], clone["status"], clone["revision"], clone["payload_iov_count"]) == ("copy", "unlocked", 1, 1)
    assert (fetch(LOOKUP.replace("=tag", "=copy"))[2], fetch(EXPORT.replace("/tag", "/copy"))[2]) == rows


def test_a_deleted_tag_is_restored_under_its_own_name(api, tag):
    rows = fetch(EXPORT)[2]
    api.delete("deleteGlobalTag/tag").ok()
    assert api.post("cloneGlobalTag/tag/tag").status == 404
    assert api.post("cloneGlobalTag/tag/tag?rev=2").ok()["revision"] == 4
    assert fetch(EXPORT)[2] == rows
    assert api.post("cloneGlobalTag/tag/tag?rev=2").json["code"] == "name_taken"
