"""Pages that manage tags, payload types, statuses, and what is in no tag: previews, names to type, and who sees which form."""

import re
from html import unescape

import pytest
from django.urls import reverse

from cdb_rest.models import GlobalTag, GlobalTagChange, GlobalTagStatus, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.access import Role
from tests.api.helpers import body, grant, insert
from tests.web.forms import Forms
from tests.web.test_forms import rows

pytestmark = pytest.mark.django_db(transaction=True)


def forms_of(page):
    """The labels of the forms that write."""
    return set(re.findall(r'<form method="post"[^>]* aria-label="([^"]*)"', page))


def table_of(page):
    """The texts in the rows of the table of the only payload type in the preview."""
    part = page.partition('<details class="differences"')[2]
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", part.partition("</table>")[0], re.DOTALL)[1:]
    return [re.findall(r"<td[^>]*>(?:<[^>]*>)*([^<]*)", row) for row in found]


def hidden_of(page):
    """The hidden fields of the form that stores what was previewed."""
    part = page.partition('name="planned"')
    return {
        name: unescape(value)
        for name, value in re.findall(
            r'type="hidden" name="(\w+)" value="([^"]*)"', part[0][-40:] + part[1] + part[2].partition("</form>")[0]
        )
    }


def test_an_iov_is_deleted_after_a_preview(forms, api, tag):
    for major in (4, 7):
        insert(api, f"from{major}", [major, 0], payload_type="Gain")
    page = forms.open("/tags/tag/lists/Gain")
    path = unescape(re.search(r'href="([^"]*)" aria-label="Delete the IOV from 4, 0"', page)[1])
    before = rows()
    page, _ = forms.preview(path, {})
    assert table_of(page) == [["4, 0", "7, 0", "from4", "none"]] and rows() == before
    insert(api, "later", [9, 0])
    refused = forms.send(path, page, hidden_of(page) | {"comment": "kept"}, 409).content.decode()
    assert "has changed since" in refused and 'value="kept"' in refused
    forms.send(path, refused, hidden_of(refused) | {"comment": "wrong"}, 303)
    assert [url for url, *_ in rows()] == ["first", "from7", "later"]
    change = GlobalTagChange.objects.order_by("-number")[0]
    assert (change.action, change.comment) == ("delete_iov", "wrong")
    assert forms.client.get(path).status_code == 404


def test_a_removed_iov_is_attached_after_a_preview(forms, api, tag):
    api.post("payload-iovs/insert", body(payload_url="short", since=[5, 0], until=[6, 0])).ok()
    api.post("payload-iovs/insert", body(payload_url="over", since=[4, 0], until=[8, 0])).ok()
    page = forms.open("/detached?tag=tag")
    path = re.search(r'href="(/detached/iovs/\d+)"', page)[1]
    assert "short" in page and "No IOV that left" in forms.open("/detached?tag=other")
    assert re.findall(r'name="(?:tag|type)" list="\w+" value="(\w+)"', forms.open(path)) == ["tag", "Gain"]
    page, _ = forms.preview(path, {"tag": "tag", "type": "Gain"})
    assert table_of(page) == [["5, 0", "6, 0", "over", "short"]]
    assert PayloadIOV.objects.filter(payload_list=None).count() == 1
    forms.send(path, page, hidden_of(page), 303)
    assert {url for url, *_ in rows()} == {"first", "short", "over"}
    assert forms.client.get(path).status_code == 404
    assert "All payload IOVs are in a payload list." in forms.open("/detached")


def test_a_payload_list_is_attached_and_an_empty_one_deleted(forms, api, tag):
    first = PayloadList.objects.get().name
    other = api.post("pl", {"payload_type": "Gain"}).ok()["name"]
    path = reverse("web:attach_list", args=[other])
    page, _ = forms.preview(path, {"tag": "tag"})
    assert f"The payload list {first} with 1 IOV leaves the tag." in page
    assert table_of(page) == [["1, 0", "open", "first", "none"]]
    forms.send(path, page, hidden_of(page), 303)
    assert not GlobalTag.objects.get().payload_iov_count
    # The empty list is deleted as that of the tag, and the other one comes back.
    page, _ = forms.preview("/tags/tag/lists/Gain/delete", {})
    assert "The same payloads are valid before and after." in page
    forms.send("/tags/tag/lists/Gain/delete", page, hidden_of(page), 303)
    path = reverse("web:attach_list", args=[first])
    assert first in forms.open("/detached") and first in forms.open("/detached?tag=tag&type=Gain")
    page, _ = forms.preview(path, {"tag": "tag"})
    forms.send(path, page, hidden_of(page), 303)
    assert [url for url, *_ in rows()] == ["first"]
    # A list with IOVs is cleared first.
    for action in ("clear", "delete_list"):
        page, _ = forms.preview("/tags/tag/lists/Gain/delete", {})
        forms.send("/tags/tag/lists/Gain/delete", page, hidden_of(page) | {"comment": "why"}, 303)
        assert GlobalTagChange.objects.order_by("-number")[0].action == action
    assert not GlobalTag.objects.get().payload_lists_count
    # A detached list is deleted by its name.
    spare = api.post("pl", {"payload_type": "Gain"}).ok()["name"]
    path = reverse("web:attach_list", args=[spare])
    page = forms.open(path)
    forms.send(path, page, {"action": "delete", "confirm": "other"}, 400)
    forms.send(path, page, {"action": "delete", "confirm": spare}, 303)
    assert not PayloadList.objects.exists()


def test_texts_of_tags_and_types_are_changed(forms, tag):
    page = forms.open("/tags/tag/manage")
    forms.send("/tags/tag/manage", page, {"action": "describe", "author": "a" * 81}, 400)
    values = {"action": "describe", "author": "me", "description": "autumn", "comment": "why"}
    location = forms.send("/tags/tag/manage", page, values, 303)["Location"]
    assert "why" in forms.open(location) and "autumn" in forms.open("/tags/tag")
    changed = forms.open(f"/tags/tag/history/{GlobalTag.objects.get().revision}")
    assert "autumn" in changed
    page = forms.open("/types/Gain")
    # The last change of the type is no later one of the tag.
    assert re.findall(r'<a href="/tags/tag/history/(\d)">(\w+)</a>', page) == [("2", "Insert")]
    forms.send("/types/Gain", page, {"action": "describe", "description": "of each channel", "comment": "clear"}, 303)
    page = forms.open("/types/Gain")
    assert page.count("of each channel") == 3 and "clear" in page and 'href="/tags/tag"' in page
    assert "of each channel" in forms.open("/types?q=CHANNEL") and "No payload type matches" in forms.open("/types?q=x")


def test_types_and_statuses_are_deleted_by_their_names_when_nothing_uses_them(forms, api, tag):
    page = forms.open("/types/Gain")
    assert "Deletion" not in forms_of(page)
    forms.send("/types/Gain", page, {"action": "delete", "confirm": "Gain"}, 409)
    api.post("pt", {"name": "Spare"}).ok()
    assert "Deletion" in forms_of(forms.open("/types/Spare"))
    forms.send("/types/Spare", page, {"action": "delete", "confirm": "other"}, 400)
    location = forms.send("/types/Spare", page, {"action": "delete", "confirm": "Spare"}, 303)["Location"]
    assert "Spare was deleted" in forms.open(location) and PayloadType.objects.get().name == "Gain"
    page = forms.open("/statuses")
    forms.send("/statuses", page, {"name": "reviewed", "description": "Checked"}, 303)
    assert "already exists" in forms.send("/statuses", page, {"name": "reviewed"}, 400).content.decode()
    api.put("gt_change_status/tag/reviewed").ok()
    assert "Deletion" not in forms_of(forms.open("/statuses"))
    api.put("gt_change_status/tag/unlocked").ok()
    assert forms_of(forms.open("/statuses")) == {"New status", "Deletion"}
    for name, confirm, status in (("reviewed", "", 400), ("locked", "locked", 409), ("reviewed", "reviewed", 303)):
        forms.send("/statuses", page, {"action": "delete", "name": name, "confirm": confirm}, status)
    assert not GlobalTagStatus.objects.filter(name="reviewed").exists()


PROPOSALS = re.compile(r'<form method="post"[^>]* aria-label="Propose .*?</form>', re.DOTALL)
FORMS_BY_PATH = {
    "/tags/tag/manage": {"Clone", "Author and description", "Status", "Limits", "Deletion"},
    "/types/Spare": {"Description", "Deletion"},
    "/statuses": {"New status"},
}


@pytest.mark.parametrize(
    ("role", "status", "hidden"),
    [
        (None, "unlocked", FORMS_BY_PATH),
        (Role.CONTRIBUTOR, "unlocked", FORMS_BY_PATH),
        (Role.MANAGER, "unlocked", {}),
        (Role.MANAGER, "locked", {"/tags/tag/manage": {"Deletion"}}),
        (Role.MANAGER, "frozen", {"/tags/tag/manage": {"Author and description", "Status", "Limits", "Deletion"}}),
    ],
)
def test_a_page_has_the_forms_that_its_reader_may_use(
    api, tag, build, settings, django_user_model, role, status, hidden
):
    api.post("pt", {"name": "Spare"}).ok()
    build.iov(None, (1, 0))
    build.list(None, "Gain")
    if status != "unlocked":
        api.put(f"gt_change_status/tag/{status}").ok()
    settings.CDB_OPEN_WRITES = False
    visitor = Forms()
    if role:
        grant(kind="user", subject="expert", role=str(role))
        visitor.client.force_login(django_user_model.objects.create_user("expert"))
    for path, names in FORMS_BY_PATH.items():
        page, count = PROPOSALS.subn("", visitor.open(path))
        assert forms_of(page) == names - hidden.get(path, set()), path
        assert count == (role is not None and status != "frozen") * path.endswith("manage") * (
            1 + (role != Role.MANAGER)
        )
        if path == "/tags/tag/manage":
            offered = set(re.findall("<option[^>]*>([^<]*)</option>", page))
            # Only a publisher freezes a tag.
            expected = {"unlocked": {"locked"}, "locked": {"unlocked"}, "frozen": set()}[status]
            assert offered == (expected if role == Role.MANAGER else set())
    assert ("Delete the IOV" in visitor.open("/tags/tag/lists/Gain")) == (role == Role.MANAGER and status == "unlocked")
    assert ("/detached/iovs/" in visitor.open("/detached")) == (role is not None)


def test_lists_and_tags_are_exported(forms, api, tag):
    insert(api, "later", [7, 0])
    for path, count in (("/tags/tag", 2), ("/tags/tag/lists/Gain", 2), ("/tags/tag/lists/Gain?rev=2", 1)):
        address = unescape(re.search(r'download href="([^"]*)"', forms.open(path))[1])
        response = forms.client.get(address)
        assert response.status_code == 200 and "attachment" in response["Content-Disposition"]
        assert len(b"".join(response).splitlines()) == count + 1
