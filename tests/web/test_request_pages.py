"""The pages of requests: proposals by all forms, previews, the discussion, decisions, and what stops them."""

import re
from html import unescape

import pytest

from cdb_rest.models import ChangeRequest, GlobalTag, GlobalTagChange
from cdb_rest.writes.global_tags import change_status, create_global_tag, delete_global_tag
from tests.api.helpers import insert
from tests.web.forms import Forms, hidden_of
from tests.web.test_forms import CLEAR, INSERT, ROW, file_of, rows
from tests.web.test_manage import forms_of

pytestmark = pytest.mark.django_db(transaction=True)
MANAGE, UNDO = "/tags/tag/manage", "/tags/tag/undo/2"
FILE = '[{"payload_type": "Gain", "payload_url": "new", "since": [5, 0], "until": [6, 0]}]'
TARGET = {"action": "clone", "target": "copy"}
STATUS = {"action": "propose_status", "status": "frozen"}
# The form, and what the acceptance makes: the action of the change, its tag and the rows.
SPLIT = [("first", 1, 5), ("first", 6, 2**63 - 1), ("new", 5, 6)]
PROPOSALS = {
    "one": (INSERT, ROW, "bulk", "tag", SPLIT),
    "file": (INSERT, file_of(FILE), "bulk", "tag", SPLIT),
    "clear": (INSERT, CLEAR, "clear", "tag", [SPLIT[0], SPLIT[1]]),
    "undo": (UNDO, {}, "revert", "tag", None),
    "status": (MANAGE, STATUS, "status", "tag", None),
    "clone": (MANAGE, TARGET, "clone", "copy", None),
}


def propose(forms, path, values, **more):
    """Propose what a form has, after a preview if the form has one; return the path of the request."""
    if path == MANAGE:
        page, hidden = forms.open(path), {"propose": "1"}
    else:
        page, hidden = forms.preview(path, values)
        assert 'name="propose" value="1"' in page and ">Propose</button>" in page
        hidden |= {"propose": "1"}
        values = {name: value for name, value in values.items() if name != "file"}
    assert "reason is required" in forms.send(path, page, values | hidden, 400).content.decode()
    location = forms.send(path, page, values | hidden | {"comment": "why"} | more, 303)["Location"]
    assert "The request was stored." in forms.open(location)
    return location.removesuffix("?new")


@pytest.mark.parametrize("kind", PROPOSALS)
def test_what_each_form_proposes_is_previewed_and_accepted(tag, person, kind):
    path, values, action, name, stored = PROPOSALS[kind]
    ann, boss = person("ann"), person("boss", "publisher")
    before = rows()
    location = propose(ann, path, values)
    assert rows() == before and ("1 open" in ann.open("/tags/tag")) == (kind != "clone")
    # Others see the preview, and who may accept.
    page = ann.send(location, ann.open(location), {}, 200).content.decode()
    assert "it needs the role" in page and ">Accept<" not in page and forms_of(page) >= {"Withdraw", "Comment"}
    assert 'data-code="' not in page
    page = boss.send(location, boss.open(location), {}, 200).content.decode()
    assert ">Accept</button>" in page and forms_of(page) == {"Accept", "Reject", "Comment"} and rows() == before
    given = hidden_of(page) | {"comment": "fine", "confirm": "tag" if kind == "status" else "1"}
    assert boss.send(location, page, given, 303)["Location"] == location
    change = GlobalTagChange.objects.order_by("-number")[0]
    number = ChangeRequest.objects.get().id
    assert (change.action, change.actor, change.comment, change.global_tag) == (action, "boss", "why", name)
    assert change.source["request"] == number and change.source["requested_by"] == "ann"
    assert stored is None or rows() == stored
    page = boss.open(location)
    assert f"/tags/{name}/history/{change.revision}" in page and "fine" in page and "Accepted by" in page
    # Who comes later sees it, and nothing is applied again.
    assert boss.send(location, page, given, 303)["Location"] == location
    assert GlobalTagChange.objects.order_by("-number")[0] == change
    assert f'<a href="/requests/{number}">request {number}</a> by ann' in ann.open(f"/tags/{name}/history")
    assert f'ann (<a href="/requests/{number}">' in ann.open(f"/tags/{name}/history/{change.revision}")


def test_a_request_is_discussed_rejected_and_withdrawn(tag, person):
    ann, boss, eve = person("ann"), person("boss", "contributor"), person("eve")
    first, second = (propose(ann, INSERT, ROW | {"payload_url": url}) for url in ("a", "b"))
    page = eve.open(first)
    assert forms_of(page) == {"Comment"}
    eve.send(first, page, {"action": "comment", "comment": "<b>Which run?"}, 303)
    assert "&lt;b&gt;Which run?" in eve.open(first)
    assert "comment is empty" in eve.send(first, page, {"action": "comment", "comment": " "}, 400).content.decode()
    for action, status, text in (("reject", 403, "no permission"), ("withdraw", 403, "Only ann")):
        found = eve.send(first, page, {"action": action, "comment": "kept"}, status).content.decode()
        assert text in found
    assert "A reason is required." in boss.send(first, boss.open(first), {"action": "reject"}, 400).content.decode()
    boss.send(first, boss.open(first), {"action": "reject", "comment": "bad run"}, 303)
    ann.send(second, ann.open(second), {"action": "withdraw"}, 303)
    assert "Rejected by" in eve.open(first) and "bad run" in eve.open(first) and "withdrawn" in eve.open(second)
    for query, numbers in (("", []), ("?state=rejected", [first]), ("?state=&mine=1&tag=tag", [second, first])):
        assert re.findall(r'<a href="(/requests/\d+)">', ann.open(f"/requests{query}")) == numbers
    assert "No request matches" in eve.open("/requests?state=&mine=1")
    assert eve.client.get("/requests/999999").status_code == 404


def test_a_contributor_proposes_for_a_locked_tag_or_instead_of_an_insertion(tag, person):
    carl = person("carl", "contributor")
    again = {"again": "propose"}
    page = carl.send(INSERT, carl.open(INSERT), ROW | again, 200).content.decode()
    assert ">Propose</button>" in page and 'name="propose" value="1"' in page
    page = carl.send(UNDO, carl.open(UNDO), again, 200).content.decode()
    assert ">Propose</button>" in page
    change_status(name="tag", status="locked")
    location = propose(carl, INSERT, ROW)
    boss = person("boss", "manager")
    page = boss.send(location, boss.open(location), {}, 200).content.decode()
    assert "locked" in page and ">Accept<" not in page and "after the tag was unlocked" in page
    limits = {"action": "limits", "accepts_requests": "1"}
    boss.send(MANAGE, boss.open(MANAGE), limits, 303)
    page = boss.send(location, boss.open(location), {}, 200).content.decode()
    assert ">Accept</button>" in page
    # A change meanwhile: the preview is shown again.
    change_status(name="tag", status="unlocked")
    before = rows()
    found = boss.send(location, page, hidden_of(page) | {"comment": "kept"}, 409).content.decode()
    assert "has changed since revision" in found and 'value="kept"' in found and rows() == before
    assert "Changes of the tag since the request" in found
    boss.send(location, found, hidden_of(found), 303)
    assert ("new", 5, 6) in rows()


@pytest.mark.parametrize(
    ("is_made_again", "text"), [(True, "an earlier global tag tag, which was deleted"), (False, "no global tag")]
)
def test_what_cannot_be_applied_any_more_says_why(tag, person, is_made_again, text):
    ann, boss = person("ann"), person("boss", "publisher")
    location = propose(ann, INSERT, ROW)
    delete_global_tag(name="tag")
    if is_made_again:
        create_global_tag(name="tag", status="unlocked")
    page = boss.open(location)
    found = boss.send(location, page, {}, 409 if is_made_again else 404).content.decode()
    assert text in unescape(found) and ">Accept<" not in found
    # htmx gets it as a part that it shows.
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
    part = boss.client.post(location, {"csrfmiddlewaretoken": token}, headers={"HX-Request": "true"})
    assert part.status_code == 200 and text in unescape(part.content.decode())
    boss.send(location, page, {"action": "reject", "comment": "too late"}, 303)


def test_removals_are_confirmed_and_the_unknown_only_read(api, settings, tag, person):
    settings.CDB_OPEN_WRITES = True
    insert(api, "second", [5, 0])
    insert(api, "third", [7, 0])
    settings.CDB_OPEN_WRITES = False
    ann, boss = person("ann"), person("boss", "manager")
    location = propose(ann, INSERT, ROW | {"since": "4,0", "until": "9,0"})
    page = boss.send(location, boss.open(location), {}, 200).content.decode()
    assert 'name="confirm"' in page
    before = rows()
    found = boss.send(location, page, hidden_of(page), 409).content.decode()
    assert 'data-code="confirmation_required"' in found and rows() == before
    unknown = Forms()
    page = unknown.open(location)
    assert forms_of(page) == set() and "What it would have changed" in page and "Log in" in page
    assert "Propose" not in unknown.open(INSERT) + unknown.open(MANAGE)
    token = unknown.open("/login")
    assert "data-refused" in unknown.send(location, token, {"action": "comment", "comment": "x"}, 401).content.decode()
    assert "needs a login" in unknown.send(location, token, {}, 401).content.decode()
    assert GlobalTag.objects.get().revision == 4
