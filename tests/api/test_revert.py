"""POST global-tags/<name>/revert: the request, the response, and what reads see afterwards."""

import pytest

from cdb_rest.models import GlobalTagChange
from tests.api.helpers import insert

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "global-tags/tag/revert"
LOOKUPS = [f"payloadiovs/?gtName=tag&majorIOV={major}&minorIOV=0&strict=1&window=1" for major in range(6)]


@pytest.fixture
def changed(api, tag):
    """The tag of `tag`, whose IOV is cut by a second one. Returns its revision before."""
    before = tag.revision
    insert(api, "second", [3, 0])
    return before


def answers(api, suffix=""):
    """The lookups with the headers that say how long they are valid."""
    found = [api.get(path + suffix) for path in LOOKUPS]
    windows = [(one.headers["CDB-Valid-Since"], one.headers["CDB-Valid-Until"]) for one in found]
    return [one.ok() for one in found], windows


def test_lookups_answer_as_they_did(api, tag):
    before, number = answers(api), tag.revision
    insert(api, "second", [3, 0])
    assert answers(api) != before
    answer = api.post(PATH, {"revision": number, "comment": "wrong gains"}).ok()
    assert answer == {
        "detail": "Payload lists attached: 0, of them new: 0; detached: 0; payload IOVs removed: 2; added: 1.",
        "dry_run": False,
        "changed": True,
        "revision": number + 2,
        "payload_types": [
            {
                "payload_type": "Gain",
                "list_detached": None,
                "list_attached": None,
                "list_created": False,
                "payload_iovs_removed": 2,
                "payload_iovs_added": 1,
            }
        ],
    }
    assert answers(api) == before == answers(api, f"&rev={number}") == answers(api, f"&rev={number + 2}")
    change = api.get("global-tags/tag/changes").ok()["results"][0]
    assert (change["action"], change["comment"], change["revision"]) == ("revert", "wrong gains", number + 2)
    assert (change["payload_iovs_before"], change["payload_iovs_after"]) == (2, 1)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(("status", "code"), [("locked", "global_tag_locked"), ("frozen", "global_tag_frozen")])
def test_a_protected_tag_is_not_reverted(api, changed, status, code, dry_run):
    api.put(f"gt_change_status/tag/{status}").ok()
    before = answers(api)
    api.post(PATH, {"revision": changed, "dry_run": dry_run}).error(409, code)
    assert answers(api) == before


def test_the_body_is_strict(api, changed):
    before = answers(api)
    assert api.post(PATH, {"revision": changed, "dryrun": True}).error(400, "invalid_input")["dryrun"]
    assert api.post(PATH, {"dry_run": True}).error(400, "invalid_input")["revision"]
    for wrong in (-1, 2**63, 1.5, "x", True, None, [1]):
        assert api.post(PATH, {"revision": wrong}).error(400, "invalid_input")["revision"]
    assert api.post(PATH, {"revision": changed, "dry_run": "perhaps"}).error(400, "invalid_input")["dry_run"]
    assert api.post(PATH, {"revision": changed, "comment": "x" * 1001}).error(400, "invalid_input")["comment"]
    for body in ([], 5, None, "x"):
        api.post(PATH, body).error(400)
    api.post(f"{PATH}?dryrun=1", {"revision": changed}).error(400, "unknown_parameter")
    assert api.post(f"{PATH}?dry_run=1", {"revision": changed}).ok()["dry_run"] is True
    assert answers(api) == before


def test_unknown_and_unreadable_revisions(api, changed):
    api.post(PATH, {"revision": 99}).error(404, "revision_not_found")
    api.post("global-tags/unknown/revert", {"revision": 1}).error(404, "global_tag_not_found")
    GlobalTagChange.objects.filter(revision=changed).update(has_history=False)
    api.post(PATH, {"revision": changed}).error(410, "revision_pruned")


def test_a_key_that_was_used_for_another_tag_is_refused(api, changed):
    """The bodies are the same; only the paths differ."""
    key = {"Idempotency-Key": "7d1c"}
    api.post("cloneGlobalTag/tag/copy").ok()
    api.post(PATH, {"revision": 1}, **key).ok()
    api.post("global-tags/copy/revert", {"revision": 1}, **key).error(409, "idempotency_key_reused")
