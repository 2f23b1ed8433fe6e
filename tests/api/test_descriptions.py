"""Authors and descriptions of tags, and descriptions of payload types: set by the API, recorded, and kept by the past."""

import pytest

from cdb_rest.models import GlobalTag, PayloadType
from cdb_rest.rules.access import Role
from tests.api.helpers import OF_THE_TAG

pytestmark = pytest.mark.django_db(transaction=True)
TAG, TYPE = "global-tags/tag/description", "payload-types/Gain/description"


def test_a_tag_is_described_and_its_past_keeps_its_texts(api, tag):
    before = {path: api.get(path) for path in OF_THE_TAG}
    old = GlobalTag.objects.get()
    answer = api.put(TAG, {"author": "me", "comment": "why"}).ok()
    assert answer == {"global_tag": "tag", "revision": old.revision + 1, "author": "me", "description": ""}
    assert api.put(TAG, {"author": "me"}).ok() == answer
    answer = api.put(TAG, {"description": "autumn"}).ok()
    assert api.get(TAG).ok() == answer | {"author": "me", "description": "autumn", "revision": old.revision + 2}
    change = api.get(f"global-tags/tag/changes/{old.revision + 2}").ok()
    assert (change["action"], change["before"]) == ("describe", {"author": "me", "description": ""})
    assert change["after"] == {"author": "me", "description": "autumn"}
    # Documents have other authors, but no other members and no other payloads. Caches see that they changed.
    for path, answer in before.items():
        now = api.get(path)
        assert now.headers["ETag"] != answer.headers["ETag"]
        if "globalTag/" in path:
            assert now.json["author"] == "me" and now.json.keys() == answer.json.keys()
        else:
            assert now.content == answer.content
    # The past has the texts of then, also in a clone and after the deletion of the tag.
    api.post(f"cloneGlobalTag/tag/copy?rev={old.revision + 1}").ok()
    assert GlobalTag.objects.get(name="copy").description == ""
    api.delete("deleteGlobalTag/tag").ok()
    authors = [api.get(f"globalTag/tag?light&rev={old.revision + more}").ok()["author"] for more in range(3)]
    assert authors == [old.author, "me", "me"]


def test_the_status_and_the_role_decide_who_describes_a_tag(api, tag, closed, login):
    contributor, manager = login(Role.CONTRIBUTOR), login(Role.PUBLISHER)
    api.put(TAG, {"author": "me"}).error(401)
    api.put(TAG, {"author": "me"}, **contributor).error(403)
    for status, expected in (("locked", 200), ("frozen", 409)):
        api.put(f"gt_change_status/tag/{status}", **manager).ok()
        assert api.put(TAG, {"author": status}, **manager).status == expected
    for wrong in ({}, {"author": None}, {"author": "a" * 81}, {"description": 5}, {"name": "other"}):
        api.put(TAG, wrong, **manager).error(400)
    api.get("global-tags/none/description").error(404, "global_tag_not_found")


def test_a_payload_type_has_a_history(api, tag, closed, login):
    manager = login(Role.MANAGER)
    documents = api.get("pt").json
    api.put(TYPE, {"description": "new"}, **login(Role.CONTRIBUTOR)).error(403)
    for text in ("of each channel", "of each channel", ""):
        api.put(TYPE, {"description": text, "comment": "why"}, **manager).ok()
    assert api.get("pt").json == documents and PayloadType.objects.get().description == ""
    api.delete("deleteGlobalTag/tag", **manager).ok()
    api.delete("deletePayloadType/Gain", **manager).ok()
    found = api.get("payload-types/Gain/changes").ok()["results"]
    texts = [(one["action"], one["before"], one["after"], one["comment"]) for one in found]
    assert texts == [
        ("delete", "", "", ""),
        ("describe", "of each channel", "", "why"),
        ("describe", "", "of each channel", "why"),
        ("create", "", "", ""),
    ]
    api.get("payload-types/None/changes").error(404, "payload_type_not_found")
    api.put(TYPE, {"description": "gone"}, **manager).error(404, "payload_type_not_found")
