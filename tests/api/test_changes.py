"""The revision of a global tag and its change log: who changed what, when and why."""

import pytest

from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV
from tests.api.helpers import body

pytestmark = pytest.mark.django_db


def revision(name="tag"):
    return GlobalTag.objects.get(name=name).revision


@pytest.fixture
def filled(api, build):
    """The tag `tag` with a list of two rows, made by the service; a detached list and IOV, and another tag."""
    api.post("gt", {"name": "tag", "status": "unlocked"}).ok()
    api.post("gt", {"name": "other", "status": "unlocked"}).ok()
    for name in ("Gain", "Noise"):
        api.post("pt", {"name": name}).ok()
    for since in (0, 10):
        api.post("payload-iovs/insert", body(payload_url=f"gain{since}", since=[since, 0])).ok()
    return {
        "gain": api.get("gtPayloadLists/tag").ok()["Gain"],
        "spare": api.post("pl", {"payload_type": "Gain"}).ok()["name"],
        "noise": api.post("pl", {"payload_type": "Noise"}).ok()["name"],
        "iov": api.post("piov", {"payload_url": "loose", "checksum": "", "major_iov": 5, "minor_iov": 0}).ok()["id"],
    }


def writes(filled):
    """Every write that changes the tag `tag`: its kind, and how it is asked for."""
    row = {"payload_url": "b", "payload_list": filled["gain"], "major_iov": 20, "minor_iov": 0}
    inserted = body(payload_type="Noise", payload_url="n", since=[0, 0])
    return {
        "attach_list": ("PUT", "pl_attach", {"global_tag": "tag", "payload_list": filled["spare"]}),
        "delete_list": ("DELETE", f"deletePayloadList/{filled['spare']}", None),
        "attach_iov": ("PUT", "piov_attach", {"payload_list": filled["gain"], "piov_id": filled["iov"]}),
        "delete_iov": ("DELETE", "deletePayloadIOV/tag/Gain/10/0", None),
        "bulk": ("POST", "bulk_piov", [row]),
        "insert": ("POST", "payload-iovs/insert", inserted),
        "status": ("PUT", "gt_change_status/tag/locked", None),
        "delete": ("DELETE", "deleteGlobalTag/tag", None),
    }


@pytest.mark.parametrize("comment", ["header", "field"])
@pytest.mark.parametrize(
    "action", ["attach_list", "delete_list", "attach_iov", "delete_iov", "bulk", "insert", "status", "delete"]
)
def test_each_write_raises_the_revision_once_and_leaves_a_row(api, filled, action, comment):
    method, path, body = writes(filled)[action]
    if action == "delete_list":
        # Only an empty list can be deleted.
        api.put("pl_attach", {"global_tag": "tag", "payload_list": filled["spare"]}).ok()
    before = revision()
    if comment == "field":
        said = {"comment": "wärmer"}
        api(method, path, [row | said for row in body] if isinstance(body, list) else (body or {}) | said).ok()
    else:
        api(method, path, body, **{"CDB-Comment": "wärmer".encode().decode("latin-1")}).ok()
    change = api.get("global-tags/tag/changes").ok()["results"][0]
    assert (change["revision"], change["action"], change["comment"]) == (before + 1, action, "wärmer")
    assert change["actor"] == "127.0.0.1" and change["global_tag"] == "tag"
    if action != "delete":
        assert revision() == before + 1
        assert api.get("globalTag/tag?light").ok()["updated"] == change["time"]


def test_a_write_that_changes_nothing_is_not_in_the_change_log(api, filled):
    before = revision(), GlobalTagChange.objects.count()
    api.put("gt_change_status/tag/unlocked").ok()
    api.put("pl_attach", {"global_tag": "tag", "payload_list": filled["gain"]}).ok()
    known = PayloadIOV.objects.get(payload_url="gain0")
    api.put("piov_attach", {"payload_list": filled["gain"], "piov_id": known.id}).ok()
    api.post("bulk_piov", []).ok()
    spare = {"payload_url": "b", "payload_list": filled["spare"], "major_iov": 1, "minor_iov": 0}
    api.post("bulk_piov", [spare]).ok()
    assert api.post("bulk_piov", [spare]).ok()["unchanged"] == 1
    api.post("bulk_piov", [spare | {"payload_url": "c"}]).error(409)
    api.delete("deletePayloadIOV/tag/Gain/77/0").error(404)
    assert (revision(), GlobalTagChange.objects.count()) == before


@pytest.mark.django_db(transaction=True)
def test_the_log_is_paged_newest_first(api, filled):
    page = api.get("global-tags/tag/changes").ok()
    assert [change["revision"] for change in page["results"]] == [3, 2, 1]
    assert (page["count"], page["page"], page["total_pages"]) == (3, 1, 1)
    assert [change["revision"] for change in api.get("global-tags/tag/changes?page=2&page_size=2").json["results"]] == [
        1
    ]
    oldest = api.get("global-tags/tag/changes?order=asc").json["results"]
    assert [change["revision"] for change in oldest] == [1, 2, 3]
    unknown = api.get("global-tags/tag/changes?order=nonsense").json["results"]
    assert [change["revision"] for change in unknown] == [3, 2, 1]
    api.get("global-tags/nothing/changes").error(404, "global_tag_not_found")
    api.get("global-tags/nothing/changes/1").error(404, "global_tag_not_found")
    api.get("global-tags/tag/changes/99").error(404, "change_not_found")
    api.get("global-tags/tag/changes/x").error(400, "invalid_input")
