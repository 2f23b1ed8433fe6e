"""The forms that write: previews, confirmations, permissions, protection against other sites."""

import json
import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV
from tests.api.helpers import grant, insert
from tests.web.forms import hidden_of

pytestmark = pytest.mark.django_db(transaction=True)
ROW = {"kind": "one", "payload_type": "Gain", "payload_url": "new", "checksum": "c", "since": "5,0", "until": "6,0"}
CLEAR = {"kind": "clear", "payload_type": "Gain", "since": "5,0", "until": "6,0"}
INSERT = "/tags/tag/insert"


def file_of(content):
    content = content if isinstance(content, bytes) else content.encode()
    return {"kind": "file", "file": SimpleUploadedFile("rows", content)}


def rows():
    return sorted(
        PayloadIOV.objects.filter(payload_list__isnull=False).values_list("payload_url", "major_iov", "major_iov_end")
    )


def test_a_preview_stores_nothing_and_is_what_is_done(forms, tag):
    before = rows()
    page, hidden = forms.preview(INSERT, ROW)
    assert rows() == before
    numbers = re.search(r"<td>Gain</td>(.*?)</tr>", page)[1]
    # One row is added, and one existing IOV is split.
    assert re.findall(r'"number">(\d+)<', numbers) == ["1", "0", "0", "0", "1", "0", "0"] and "5, 0" in numbers
    assert re.search(r"<code>first</code></a></td>\s*<td><a [^>]*><code>new</code>", page)
    response = forms.send(INSERT, page, ROW | hidden | STORE, 303)
    change = GlobalTagChange.objects.order_by("-number")[0]
    assert response["Location"] == f"/tags/tag/history/{change.revision}?new"
    assert "This change was stored." in forms.open(response["Location"])
    assert (change.comment, change.action) == ("why", "insert")
    assert [one[:2] for one in rows()] == [("first", 1), ("first", 6), ("new", 5)]
    assert "No change." in forms.preview(INSERT, ROW)[0]


def test_a_preview_of_an_earlier_state_or_of_other_input_is_not_stored(forms, api, tag):
    page, hidden = forms.preview(INSERT, ROW)
    insert(api, "other", [8, 0])
    before = rows()
    found = forms.send(INSERT, page, ROW | hidden | STORE, 409).content.decode()
    assert "has changed since revision" in found and rows() == before and 'value="why"' in found
    # It shows the preview for the new state, which can be confirmed, but only for the same input.
    other = ROW | {"until": "7,0"}
    found = forms.send(INSERT, page, other | hidden_of(found) | STORE, 400).content.decode()
    assert "The input has changed since the preview." in found and rows() == before
    forms.send(INSERT, found, other | hidden_of(found) | STORE, 303)
    # Also if somebody else has just stored the same, so that nothing is left to change.
    same = ROW | {"since": "30,0", "until": "open"}
    _, hidden = forms.preview(INSERT, same)
    insert(api, "new", [30, 0])
    assert "has changed since revision" in forms.send(INSERT, page, same | hidden | STORE, 409).content.decode()


def test_what_removes_iovs_or_leaves_a_gap_needs_a_confirmation(forms, api, tag):
    insert(api, "second", [5, 0])
    insert(api, "third", [7, 0])
    before, values = rows(), ROW | {"since": "4,0", "until": "9,0"}
    page, hidden = forms.preview(INSERT, values)
    [warning] = re.findall(r'<li data-kind="(\w+)">', page)
    assert warning == "removed" and page.index("second") < page.index("<code>new")
    found = forms.send(INSERT, page, values | hidden | STORE, 409).content.decode()
    assert 'data-code="confirmation_required"' in found and 'name="confirm"' in found and rows() == before
    forms.send(INSERT, page, values | hidden | STORE | {"confirm": "1"}, 303)
    assert [one[0] for one in rows()] == ["first", "new", "third"]


def test_an_interval_is_cleared_with_a_reason(forms, tag):
    before = rows()
    page, hidden = forms.preview(INSERT, CLEAR)
    assert re.findall(r'<li data-kind="(\w+)">', page) == ["gap"]
    assert re.search(r'<code>first</code></a></td>\s*<td><span class="badge gap">none</span></td>', page)
    assert "A reason is required" in forms.send(INSERT, page, CLEAR | hidden, 400).content.decode()
    assert rows() == before
    forms.send(INSERT, page, CLEAR | hidden | STORE, 303)
    assert [one[:2] for one in rows()] == [("first", 1), ("first", 6)]
    assert "No change." in forms.preview(INSERT, CLEAR)[0]


STORE = {"comment": "why"}
JSON_FILE = [
    {"payload_type": "Gain", "payload_url": f"url{major}", "checksum": "", "since": [major, 0], "until": "next"}
    for major in (2, 3)
]
CSV_FILE = """payload_type,payload_url,checksum,major_iov,minor_iov,major_iov_end,minor_iov_end
Gain,url2,,2,0,3,0
Gain,url3,,3,0,,
"""


def drawn(page):
    """The lanes before and after: what is valid, and what is removed or added, in short."""
    found = re.findall(r'data-states="(\w+)" data-changes="\w+" data-(?:removed|added)="(\w+)"', page)
    short = [[re.sub(r"(.)\1+", r"\1", text) for text in lane] for lane in found]
    # The axis may begin before the first IOV.
    return [(states.removeprefix("o").removeprefix("p"), marks) for states, marks in short]


def test_the_states_before_and_after_are_drawn(forms, api, tag):
    # Some space is on both sides of the interval from 5,0 up to 6,0.
    page, _ = forms.preview(INSERT, ROW)
    assert drawn(page) == [("v", "010"), ("v", "010")]
    assert '"6"' in unescape(re.search('data-labels="([^"]+)"', page)[1])
    before, (states, _) = drawn(forms.preview(INSERT, CLEAR)[0])
    assert before == ("v", "010") and states.replace("p", "") == "vgv"
    # An open change is drawn with the last start that it removes, and one far away with the last start before it.
    insert(api, "last", [1000, 0])
    page, _ = forms.preview(INSERT, ROW | {"until": "open"})
    assert '"1000"' in unescape(re.search('data-labels="([^"]+)"', page)[1])
    page, _ = forms.preview(INSERT, ROW | {"since": "2000000,0", "until": "next"})
    assert 'data-kind="far_start"' in page and '"0"' in unescape(re.search('data-labels="([^"]+)"', page)[1])


@pytest.mark.parametrize("content", [json.dumps(JSON_FILE), CSV_FILE, "\ufeff" + CSV_FILE], ids=["json", "csv", "mark"])
def test_many_rows_come_from_a_file(forms, tag, content):
    page, hidden = forms.preview(INSERT, file_of(content))
    assert re.findall(r'"number">(\d+)<', re.search(r"<td>Gain</td>(.*?)</tr>", page)[1])[0] == "2"
    forms.send(INSERT, page, {"kind": "file"} | hidden | STORE, 303)
    assert {"url2", "url3"} <= {one[0] for one in rows()}


def test_rows_with_problems_are_shown_of_any_file(forms, tag):
    lines = [f"Gain,u{number},,{number},0,,\n" for number in range(5, 500)]
    page, _ = forms.preview(
        INSERT, file_of("".join([CSV_FILE.splitlines()[0] + "\n", *lines, "Gain,far,,99999,0,,\n"]))
    )
    assert re.findall(r'<tr class="wrong"><td class="number">(\d+)</td>', page) == ["496", "497"]
    assert "of 496 rows" in page


def test_wrong_lines_are_corrected_in_place(forms, tag):
    content = f"{CSV_FILE}Gain,url4,,x,0,,\nGain,url5,,5\nGain,url6,,6,0,,"
    page, hidden = forms.preview(INSERT, file_of(content), 400)
    assert "no line break" in page and hidden["text"].endswith("url6,,6,0,,")
    # In the form, one sees whether the last line is whole.
    found = forms.send(INSERT, page, {"kind": "file"} | hidden, 400).content.decode()
    wrong = {name: unescape(value) for name, value in re.findall(r'name="((?:was|line)-\d+)" value="([^"]*)"', found)}
    assert wrong["line-4"] == "Gain,url4,,x,0,," and wrong["was-5"] == "Gain,url5,,5"
    values = {"kind": "file"} | hidden | wrong | {"line-4": "Gain,url4,,4,0,,", "line-5": ""}
    found = forms.send(INSERT, page, values, 200).content.decode()
    forms.send(INSERT, found, {"kind": "file"} | hidden_of(found) | STORE, 303)
    assert {"url4", "url6"} <= {one[0] for one in rows()} and "url5" not in str(rows())


def test_a_frozen_tag_offers_a_clone_and_a_reader_a_role(forms, tag, settings):
    page = forms.open(INSERT)
    assert 'href="/api/cdb_rest/global-tags/tag/export"' in page
    forms.send("/tags/tag/manage", page, {"action": "status", "status": "frozen", "confirm": "tag"}, 303)
    page = forms.open(INSERT)
    assert 'name="payload_url"' not in page and 'name="file"' not in page
    assert forms.send("/tags/tag/manage", page, {"action": "clone", "target": "copy"}, 303)
    settings.CDB_OPEN_WRITES = False
    page = forms.open("/tags/copy/insert")
    assert "contributor" in page and 'name="payload_url"' not in page


@pytest.mark.parametrize(
    ("values", "status", "message"),
    [
        (ROW | {"since": "5,x"}, 400, "since must be a number from 0"),
        (ROW | {"until": "soon,1"}, 400, "until must be a number from 0"),
        (ROW | {"payload_type": "none"}, 404, "There is no payload type &#x27;none&#x27;"),
        (ROW | {"size": "many"}, 400, "size must be a number from 0 to 9223372036854775807 (got &#x27;many&#x27;)"),
        (ROW | {"since": ""}, 400, "The start is missing."),
        ({"file": "[1]"}, 400, "A row must be a JSON object."),
        ({"file": "[{"}, 400, "not valid JSON"),
        ({"file": b"\xff\xfe"}, 400, "must be text in UTF-8"),
        (ROW | {"payload_type": "", "payload_url": ""}, 400, "payload_type is missing."),
        (ROW | {"payload_type": "a<b"}, 404, "There is no payload type &#x27;a&lt;b&#x27;"),
        (ROW | {"payload_type": " Gain"}, 404, "There is no payload type"),
        ({"file": "a,b\n1,2\n"}, 400, "(missing: payload_type, payload_url, major_iov, minor_iov;"),
        ({"file": '{"a": 1}\n'}, 400, "Unknown columns: a"),
        ({"file": ""}, 400, "must be JSON, or CSV"),
        ({}, 400, "Choose a file."),
        ({"kind": "file", "text": "{}"}, 400, "The start is missing"),
        ({"kind": "file", "text": CSV_FILE, "planned": "x"}, 400, "The input has changed"),
        ({"file": "[]"}, 400, "The file has no rows."),
        ({"file": "payload_type,payload_url,major_iov,minor_iov\nGain," + "x" * 200_000}, 400, "at most 65,536 bytes"),
        ({"file": "payload_type,payload_url,major_iov,minor_iov\nGain,a\0b,9,0\n"}, 400, "control character"),
    ],
)
def test_faults_are_shown_in_the_form(forms, tag, values, status, message):
    before = rows()
    page, _ = forms.preview(INSERT, file_of(values["file"]) if "file" in values else values, status)
    assert 'role="alert"' in page and message in page
    assert rows() == before


def test_a_tag_and_a_payload_type_are_created(forms):
    page = forms.open("/new")
    assert forms.send("/new", page, {"action": "type", "name": "NewType"}, 303)["Location"] == "/types/NewType?new"
    assert "The payload type was created." in forms.open("/types/NewType?new")
    response = forms.send("/new", page, {"name": "first", "description": "A try", "comment": "why"}, 303)
    assert response["Location"] == "/tags/first/insert?new"
    assert list(GlobalTag.objects.values_list("name", "description", "status__name")) == [
        ("first", "A try", "unlocked")
    ]
    assert GlobalTagChange.objects.get().comment == "why"
    page, hidden = forms.preview("/tags/first/insert", ROW | {"payload_type": "NewType"})
    assert "new payload list" in page
    forms.send("/tags/first/insert", page, ROW | {"payload_type": "NewType"} | hidden | STORE, 303)
    assert [row[0] for row in rows()] == ["new"]


def test_all_wrong_rows_of_a_file_are_shown(forms, tag):
    wrong = [{"payload_type": "Gain", "payload_url": "u", "checksum": "", "since": [9, 0], "until": [1, 0]}] * 3
    page, _ = forms.preview(INSERT, file_of(json.dumps(wrong)), 400)
    assert re.findall(r'<td class="number">(\d)</td>', page) == ["1", "2", "3"]
    lines = ["payload_type,payload_url,major_iov,minor_iov,major_iov_end,minor_iov_end"]
    lines += ["Gain,u,9,0,,", "Gain,,9,0,,", "Gain,u,x,0,,", "Gain,u,9,0,10,", "Gain", ",u,1,1,1,2", ""]
    page, _ = forms.preview(INSERT, file_of("\n".join(lines)), 400)
    assert re.findall(r'<td class="number">(\d)</td>', page) == ["3", "4", "5", "6", "7"]


def test_clone_lock_and_freeze(forms, tag):
    path = "/tags/tag/manage"
    page = forms.open(path)
    assert forms.send(path, page, {"action": "clone", "target": "copy"}, 303)["Location"] == "/tags/copy/history?new"
    assert "already exists" in forms.send(path, page, {"action": "clone", "target": "copy"}, 400).content.decode()
    forms.send(path, page, {"action": "clone", "target": " "}, 400)
    for confirm in ("", "other"):
        values = {"action": "status", "status": "frozen", "confirm": confirm, "comment": "kept"}
        found = forms.send(path, page, values, 400).content.decode()
        assert "<option selected>frozen</option>" in found and 'value="kept"' in found
    found = forms.send(path, page, {"action": "status", "status": "unlocked", "confirm": "tag"}, 400).content.decode()
    assert "The global tag already has the status unlocked." in found
    forms.send(path, page, {"action": "status", "status": "\0", "confirm": "tag"}, 400)
    assert GlobalTag.objects.get(name="tag").status.name == "unlocked"
    forms.send(path, page, {"action": "status", "status": "frozen", "confirm": "tag"}, 303)
    assert GlobalTag.objects.get(name="tag").status.name == "frozen"
    found = forms.send(path, page, {"action": "status", "status": "unlocked", "confirm": "tag"}, 409).content.decode()
    assert 'role="alert"' in found


def test_a_tag_is_reverted_after_a_preview(forms, api, tag):
    revision = GlobalTagChange.objects.order_by("-number")[0].revision
    before = rows()
    insert(api, "mistake", [4, 0])
    path = f"/tags/tag/revert/{revision}"
    page, hidden = forms.preview(path, {})
    assert "Gain" in page and "mistake" in str(rows())
    found = forms.send(path, page, hidden | {"confirm": "no", "comment": "kept"}, 400).content.decode()
    # The preview is still there.
    assert 'value="kept"' in found and hidden_of(found) == hidden and "Type the name of the global tag" in found
    forms.send(path, page, hidden | {"confirm": "tag"}, 303)
    assert rows() == before
    assert "already has the contents of revision" in forms.preview(path, {})[0]
    insert(api, "later", [6, 0])
    page, hidden = forms.preview(path, {})
    insert(api, "another", [7, 0])
    assert "has changed since" in forms.send(path, page, hidden | {"confirm": "tag"}, 409).content.decode()


def test_a_change_is_undone_after_a_preview_of_its_net_effect(forms, api, tag):
    before = rows()
    insert(api, "mistake", [4, 0])
    revision = GlobalTagChange.objects.latest("number").revision
    change = forms.open(f"/tags/tag/history/{revision}")
    path = f"/tags/tag/undo/{revision}"
    # The button of the page of the change leads to the preview.
    page = forms.send(path, change, {}, 200).content.decode()
    for shown, order in ((change, ["first", "mistake"]), (page, ["mistake", "first"])):
        assert re.findall("<code>(first|mistake)</code>", shown) == order and shown.count('class="plan"') == 2
    assert "mistake" in str(rows())
    api.put("gt_change_status/tag/locked").ok()
    assert "is locked" in forms.send(path, page, {}, 409).content.decode()
    api.put("gt_change_status/tag/unlocked").ok()
    assert "has changed since" in forms.send(path, page, hidden_of(page), 409).content.decode()
    page, hidden = forms.preview(path, {})
    response = forms.send(path, page, hidden | {"comment": "wrong gains"}, 303)
    assert rows() == before and "wrong gains" in forms.open(response["Location"])
    undone = f"has first at (4, 0) since revision {revision + 3} (undo of revision {revision} by"
    assert undone in forms.preview(path, {}, 409)[0]
    assert "Delete the tag instead" in forms.preview("/tags/tag/undo/1", {}, 409)[0]


@pytest.mark.parametrize("path", [INSERT, "/tags/tag/manage", "/tags/tag/revert/1", "/tags/tag/undo/2", "/login"])
def test_a_form_needs_its_token(forms, tag, path):
    response = forms.client.post(path, ROW)
    assert response.status_code == 403 and "reload the page" in response.content.decode()


def test_writes_need_a_role(forms, tag, settings):
    page = forms.open(INSERT)
    settings.CDB_OPEN_WRITES = False
    before = rows()
    assert "needs the role contributor" in forms.send(INSERT, page, ROW, 401).content.decode()
    forms.send("/tags/tag/manage", page, {"action": "clone", "target": "copy"}, 401)
    forms.send("/tags/tag/manage", page, {"action": "status", "status": "locked", "confirm": "tag"}, 401)
    for path in ("/tags/tag/revert/1", "/tags/tag/undo/2"):
        forms.send(path, page, {}, 401)
        assert '<button type="submit">Preview' not in forms.open(path)
    assert "Undo this change" not in forms.open("/tags/tag/history/2")
    # The pages have no form, but a request may be sent nevertheless.
    forms.send("/new", page, {"name": "mine"}, 401)
    forms.send("/new", page, {"name": "Mine", "action": "type"}, 401)
    assert rows() == before and GlobalTag.objects.count() == 1


@pytest.mark.parametrize(
    ("role", "tags", "types", "shown"),
    [
        (None, ".*", ".*", set()),
        ("reader", ".*", ".*", set()),
        ("contributor", ".*", ".*", {"New payload type"}),
        ("contributor", "mine.*", "Gain", {"New payload type"}),
        ("manager", ".*", "Gain", {"New payload type"}),
        ("manager", "mine.*", ".*", {"New global tag", "New payload type"}),
    ],
)
def test_the_page_new_has_the_forms_that_the_visitor_may_use(settings, django_user_model, role, tags, types, shown):
    settings.CDB_OPEN_WRITES, settings.CDB_ACCESS_CONTACT = False, "the database group"
    client = Client(headers={"Accept": "text/html"})
    if role:
        grant(kind="user", subject="expert", role=role, tags=tags, types=types)
        client.force_login(django_user_model.objects.create_user("expert"))
    page = client.get("/new").content.decode()
    assert set(re.findall('<form method="post" class="row" aria-label="([^"]*)"', page)) == shown
    assert len(re.findall("[Aa]sk *the database group", page)) == 2 - len(shown)
    # Once in the header.
    assert page.count('href="/login?next=%2Fnew"') == (0 if role else 3)
    for kind, needed in (("New global tag", "manager"), ("New payload type", "contributor")):
        assert (f"needs the role {needed}." in page) == (kind not in shown)


def test_the_page_of_a_clone_names_its_base_and_its_author_is_the_caller(forms, tag):
    path = "/tags/tag/manage"
    forms.send(path, forms.open(path), {"action": "clone", "target": "copy"}, 303)
    assert GlobalTag.objects.get(name="copy").author == "127.0.0.1"
    revision = GlobalTag.objects.get(name="tag").revision
    for query in ("", f"?rev={GlobalTag.objects.get(name='copy').revision}"):
        page = forms.open(f"/tags/copy{query}")
        assert f'<dt>Clone of</dt><dd><a href="/tags/tag?rev={revision}">tag, revision {revision}</a>' in page
    assert "Clone of" not in forms.open("/tags/tag")


@pytest.mark.parametrize("name", ["tag", "a/b", " x ", "a\nb", "..", ""])
def test_a_tag_with_any_name_is_cloned_and_deleted(forms, build, name):
    build.iov(build.list(build.tag(name)), (1, 0))
    path = reverse("web:manage", args=[name])
    page = forms.open(path)
    forms.send(path, page, {"action": "clone", "target": "copy"}, 303)
    forms.send(path, page, {"action": "delete", "confirm": "other"}, 400)
    response = forms.send(path, page, {"action": "delete", "confirm": name, "comment": "why"}, 303)
    assert "Delete" in forms.open(response["Location"]) and GlobalTag.objects.get().name == "copy"
    build.tag("locked", "locked")
    forms.send("/tags/locked/manage", page, {"action": "delete", "confirm": "locked"}, 409)
