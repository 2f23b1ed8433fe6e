"""Requests for changes: what is accepted, also if the tag has changed since they were made; once, and by name."""

import pytest
from django.contrib.auth.models import User
from django.db import connections

from cdb_rest.models import ChangeRequest, GlobalTag, GlobalTagChange
from tests.api.helpers import grant
from tests.conftest import Api, ServiceClient
from tests.writes.test_concurrency import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed")]


def row(url="new", since=(5, 0), **values):
    return {"payload_type": "Gain", "payload_url": url, "since": list(since)} | values


IMPORT = {"rows": [row()]}
# An open IOV extends a locked tag that is running; one with an end changes it.
SHORT = {"rows": [row(until=[6, 0])]}
CLEARED = {"payload_type": "Gain", "since": [5, 0], "until": [6, 0]}
LOCK, UNLOCK, FREEZE = (("PUT", f"gt_change_status/tag/{status}") for status in ("locked", "unlocked", "frozen"))
ACCEPTS = ("PUT", "global-tags/tag/limits", {"accepts_requests": True})
CLOSE = ("PUT", "global-tags/tag/limits", {"closed_until": [7, 0]})
DELETE, MAKE = ("DELETE", "deleteGlobalTag/tag"), ("POST", "gt", {"name": "tag", "status": "unlocked"})
INSERT = ("POST", "global-tags/tag/import", [row()])
OTHER = ("POST", "global-tags/tag/import", [row("other")])


def propose(kind="import", document=None, tag="tag", **values):
    return {"global_tag": tag, "kind": kind, "document": document or IMPORT, "reason": "why"} | values


@pytest.fixture
def users(api, stored, login):
    """The headers of the requester and of an administrator, who has made two changes of the tag: a is valid since 1."""
    stored("a1-O")
    admin = login("administrator", name="bob")
    for status in ("reviewed", "checked"):
        api.post("gtstatus", {"name": status}, **admin).ok()
    for call in (LOCK, UNLOCK, ("POST", "pt", {"name": "Unused"})):
        api(*call, **admin).ok()
    return login("reader", name="alice"), admin


# The request; what others do until it is accepted; the code of the error, or what is valid at 5 and the status of the tag then;
# and what others do before.
CASES = {
    "import": (propose(), [], ("new", "unlocked")),
    "clear": (propose("clear", CLEARED), [], (None, "unlocked")),
    "to the end of a major number": (propose("clear", CLEARED | {"until": [5, "end"]}), [], (None, "unlocked")),
    "status": (propose("status", {"status": "locked"}), [], ("a", "locked")),
    "freeze": (propose("status", {"status": "frozen"}), [LOCK], ("a", "frozen")),
    "clone": (propose("clone", {"clone_of": "tag"}, "copy"), [], ("a", "unlocked")),
    "undo": (propose("undo", {"revision": 3}), [], ("a", "unlocked"), [INSERT]),
    "undo a status": (propose("undo", {"revision": 2}), [], ("a", "locked")),
    "already there": (propose(), [INSERT], ("new", "unlocked")),
    "already there and frozen": (propose(), [INSERT, FREEZE], ("new", "frozen")),
    "another one there": (propose(), [OTHER], ("new", "unlocked")),
    "locked": (propose(document=SHORT), [LOCK], "iov_overlap"),
    "locked before": (propose(document=SHORT), [], "iov_overlap", [LOCK]),
    "clear a locked tag": (propose("clear", CLEARED), [LOCK], "global_tag_locked"),
    "undo in a locked tag": (propose("undo", {"revision": 3}), [LOCK], "global_tag_locked", [INSERT]),
    "an addition to a locked tag": (
        propose(document={"rows": [{**row(), "payload_type": "Unused"}]}), [LOCK], ("a", "locked"),
    ),
    "locked, accepts": (propose(document=SHORT), [LOCK, ACCEPTS], ("new", "locked")),
    "clear, accepts": (propose("clear", CLEARED), [LOCK, ACCEPTS], (None, "locked")),
    "undo, accepts": (propose("undo", {"revision": 3}), [LOCK, ACCEPTS], ("a", "locked"), [INSERT]),
    "another status, accepts": (
        propose(document=SHORT), [ACCEPTS, ("PUT", "gt_change_status/tag/reviewed")], ("new", "reviewed"),
    ),
    "unlocked, accepts": (propose(), [ACCEPTS], ("new", "unlocked")),
    "already there, accepts": (propose(), [INSERT, LOCK, ACCEPTS], ("new", "locked")),
    "frozen, accepts": (propose(), [LOCK, ACCEPTS, FREEZE], "global_tag_frozen"),
    "frozen": (propose(), [FREEZE], "global_tag_frozen"),
    "status of a frozen tag": (propose("status", {"status": "locked"}), [FREEZE], "global_tag_frozen"),
    "to another custom status": (
        propose("status", {"status": "checked"}), [("PUT", "gt_change_status/tag/reviewed")], "status_change_refused",
    ),
    "deleted": (propose(), [DELETE], "global_tag_not_found"),
    "deleted and made again": (propose(), [DELETE, MAKE], "global_tag_changed"),
    "status of a tag made again": (propose("status", {"status": "locked"}), [DELETE, MAKE], "global_tag_changed"),
    "closed": (propose(), [CLOSE], "global_tag_limit"),
    "closed, accepts": (propose(), [CLOSE, LOCK, ACCEPTS], "global_tag_limit"),
    "type deleted": (
        propose(document={"rows": [{**row(), "payload_type": "Unused"}]}),
        [("DELETE", "deletePayloadType/Unused")],
        "payload_type_not_found",
    ),
    "clone, name taken": (
        propose("clone", {"clone_of": "tag"}, "copy"), [("POST", "cloneGlobalTag/tag/copy")], "name_taken",
    ),
    "clone, source deleted": (propose("clone", {"clone_of": "tag"}, "copy"), [DELETE], "global_tag_not_found"),
    "undo, changed since": (propose("undo", {"revision": 3}), [OTHER], "undo_conflict", [INSERT]),
    "undo a status, changed since": (propose("undo", {"revision": 2}), [LOCK], "undo_conflict"),
    "removes": (
        propose(document={"rows": [row(since=(1, 0), until="open")], "open_hides_later": True}), [OTHER],
        "confirmation_required",
    ),
}  # fmt: skip


def state():
    """What no write has changed: also the versions of the tags' rows, which are in the validators of caches."""
    return GlobalTagChange.objects.count(), list(GlobalTag.objects.extra(select={"xmin": "xmin::text"}).values())


def valid_at_5(api, tag):
    found = api.get(f"payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0&strict=1&payloadType=Gain").ok()
    return found[0][1] if found else None


@pytest.mark.parametrize(
    ("case", "mode"),
    [
        *((case, "continuous") for case in CASES),
        ("clear, accepts", "discrete"),
        ("to the end of a major number", "discrete"),
    ],
)
def test_acceptance(api, users, settings, case, mode):
    settings.CDB_IOV_MODE = mode
    body, between, expected, *before = CASES[case]
    requester, admin = users
    for call in before[0] if before else []:
        api(*call, **admin).ok()
    number = api.post("requests", body, **requester).ok()["number"]
    for call in between:
        api(*call, **admin).ok()
    before_it = state()
    if isinstance(expected, str):
        error = api.post(f"requests/{number}/accept", **admin)
        assert error.status in (400, 404, 409) and error.json["code"] == expected
        assert ("accepts_requests" in error.json["detail"]) == (expected in ("iov_overlap", "global_tag_locked"))
        assert api.get(f"requests/{number}").ok()["state"] == "open"
        assert state() == before_it
        if expected == "confirmation_required":
            api.post(f"requests/{number}/accept", {"confirm": True}, **admin).ok()
        return
    tried = api.post(f"requests/{number}/accept?dry_run=1", **admin).ok()
    assert state() == before_it
    found = api.post(f"requests/{number}/accept", {"comment": "thanks"}, **admin).ok()
    assert (found["state"], found["decided_by"], found["answer"]) == ("accepted", "token:bob", "thanks")
    assert tried["result_revision"] == found["result_revision"]
    tag = GlobalTag.objects.select_related("status").get(name=body["global_tag"])
    assert (valid_at_5(api, tag.name), tag.status.name) == expected
    added = GlobalTagChange.objects.count() - before_it[0]
    assert added == (not case.startswith("already there")) and (found["result_revision"] is not None) == added
    assert added or state() == before_it
    if added:
        last = api.get(f"global-tags/{tag.name}/changes").ok()["results"][0]
        assert last["revision"] == found["result_revision"] == tag.revision
        assert (last["actor"], last["comment"]) == ("token:bob", "why")
        assert (last["request"], last["requested_by"]) == (number, "token:alice")
        assert GlobalTagChange.objects.latest("id").status == expected[1]
    api.post(f"requests/{number}/accept", **admin).error(409, "request_closed")
    api.post(f"requests/{number}/reject", {"comment": "no"}, **admin).error(409, "request_closed")
    shown = api.get(f"requests/{number}").ok()
    since = [change["revision"] for change in shown["changes_since"]]
    assert since == ([] if body["kind"] == "clone" else [*range(shown["revision"] + 1, tag.revision + 1)])
    api.post(f"requests/{number}/comments", {"text": "late"}, **requester).ok()


# Requests that are refused when they are made.
REFUSED = {
    "no reason": (propose(reason=""), 400),
    "a blank reason": (propose(reason=" \n"), 400),
    "NUL in the reason": (propose(reason="a\0"), 400),
    "a long reason": (propose(reason="a" * 1001), 400),
    "another kind": (propose("delete", {}), 400),
    "another member": (propose(more=1), 400),
    "no object": (propose(document=[1]), 400),
    "another member of the document": (propose("status", {"status": "locked", "comment": "a\0"}), 400),
    "NUL in the document": (propose("status", {"status": "a\0"}), 400),
    "no rows": (propose(document={"rows": []}), 400),
    "no array of rows": (propose(document={"rows": {}}), 400),
    "a row that is none": (propose(document={"rows": ["\0"]}), 400),
    "NUL in a row": (propose(document={"rows": [row("a\0")]}), 400),
    "NUL in the name of a column": (propose(document={"rows": [row() | {"a\0": 1}]}), 400),
    "a large number": (propose(document={"rows": [row(since=(10**30, 0))]}), 400),
    "too many rows": (propose(document={"rows": [row(since=(major, 0)) for major in range(4)]}), 413),
    "an empty interval": (propose("clear", CLEARED | {"until": [5, 0]}), 400),
    "a bad name": (propose("clone", {"clone_of": "tag"}, "a/b"), 400),
    "a taken name": (propose("clone", {"clone_of": "tag"}), 400),
    "no such tag": (propose(tag="none"), 404),
    "no tag to clone": (propose("clone", {"clone_of": "none"}, "copy"), 404),
    "no such type": (propose("clear", CLEARED | {"payload_type": "None"}), 404),
    "no such revision": (propose("undo", {"revision": 99}), 404),
    "no such status": (propose("status", {"status": "none"}), 404),
}


def test_a_request_that_cannot_be_accepted_is_refused(api, users, settings):
    settings.CDB_MAX_BULK_ROWS = 3
    for name, (body, status) in REFUSED.items():
        answer = api.post("requests", body, **users[0])
        assert answer.error(status) and not ChangeRequest.objects.exists(), name
    api(*FREEZE, **users[1]).ok()
    api.post("requests", propose(), **users[0]).error(409, "global_tag_frozen")
    for text in ("", " ", "a\0", "a" * 1001, 5):
        api.post("requests/1/comments", {"text": text}, **users[0]).error(404 if text == " " else 400)
    for number in ("x", "-1", "99", str(2**63)):
        assert api.get(f"requests/{number}").status in (400, 404)
        assert api.post(f"requests/{number}/accept", **users[1]).status in (400, 404)


def test_the_list_of_requests(api, users):
    requester, admin = users
    bodies = [
        propose(reason="first"),
        propose("status", {"status": "locked"}),
        propose("clone", {"clone_of": "tag"}, "b"),
    ]
    numbers = [api.post("requests", body, **requester).ok()["number"] for body in bodies]
    first = {"payload_type": "Gain", "differences": 1, "since": [5, 0], "until": "open"}
    assert api.get(f"requests/{numbers[0]}").ok()["effect"] == [first]
    api.post(f"requests/{numbers[1]}/reject", **admin).error(400)
    api.post(f"requests/{numbers[1]}/reject", {"comment": "no"}, **admin).ok()
    api.post(f"requests/{numbers[2]}/withdraw", **admin).error(403)
    api.post(f"requests/{numbers[2]}/withdraw", {"comment": "mistake"}, **requester).ok()
    for query, wanted in {
        "": [2, 1, 0], "state=open": [0], "state=rejected": [1], "state=withdrawn": [2], "kind=status": [1],
        "global_tag=tag": [1, 0], "requester=token:alice&order=asc": [0, 1, 2], "requester=token:bob": [], "search=FIRST": [0],
        "page_size=1&page=2": [1],
    }.items():  # fmt: skip
        found = api.get(f"requests?{query}").ok()
        assert [item["number"] for item in found["results"]] == [numbers[index] for index in wanted], query


def test_two_acceptances_at_once_apply_a_request_once(api, users):
    requester, admin = users
    numbers = [api.post("requests", propose(document={"rows": [row(f"x{major}", (major, 0))]}), **requester).ok()["number"]
               for major in range(5, 9)]  # fmt: skip
    changes = GlobalTagChange.objects.count()
    insert = ("POST", "global-tags/tag/import", [row("beside", (20, 0))])
    calls = [("POST", f"requests/{number}/accept") for number in numbers for _ in range(3)]
    calls += [insert, ("POST", f"requests/{numbers[0]}/comments", {"text": "beside"}), LOCK]
    found = together([lambda call=call: Api()(*call, **admin).status for call in calls])
    connections.close_all()
    closed = ChangeRequest.objects.exclude(state="open").count()
    assert found[: len(numbers) * 3].count(200) == closed
    assert set(found) <= {200, 409}
    assert GlobalTagChange.objects.count() - changes == closed + found[-3:-1].count(200) - 1 + found[-1:].count(200)


def test_as_many_open_requests_as_allowed(api, users, settings):
    settings.CDB_MAX_OPEN_REQUESTS = 2
    found = together([lambda: Api().post("requests", propose(), **users[0]).status] * 6)
    assert sorted(found) == [200, 200, 409, 409, 409, 409]
    api.post("requests", propose(), **users[0]).error(409, "too_many_open_requests")
    api.post("requests", propose(), **users[1]).ok()
    number = ChangeRequest.objects.first().id
    api.post(f"requests/{number}/withdraw", **users[0]).ok()
    api.post("requests", propose(), **users[0]).ok()


@pytest.mark.parametrize("open_writes", [False, True])
def test_who_is_known_makes_requests_and_needs_no_role(api, users, login, settings, open_writes):
    settings.CDB_OPEN_WRITES = open_writes
    grant(kind="network", subject="127.0.0.0/8", identity="counting-room", role="manager")
    client = ServiceClient(enforce_csrf_checks=True, raise_request_exception=False)
    for call in (("requests", propose()), ("requests/1/withdraw", {}), ("requests/1/comments", {"text": "hm"})):
        assert "needs a login or a token" in api.post(*call).error(401, "authentication_required")["detail"]
    client.force_login(User.objects.create_user("carol"))
    Api(client).post("requests", propose()).error(403, "not_permitted")
    client = ServiceClient(raise_request_exception=False)
    client.force_login(User.objects.get())
    number = Api(client).post("requests", propose()).ok()["number"]
    assert ChangeRequest.objects.get().requester == "carol"
    api.post(f"requests/{number}/withdraw", **users[0]).error(403, "not_permitted")
    settings.CDB_ANONYMOUS_READS = False
    if not open_writes:
        Api(client).post(f"requests/{number}/withdraw").error(403, "not_permitted")
        grant(kind="user", subject="carol", role="reader")
    Api(client).post(f"requests/{number}/withdraw").ok()
