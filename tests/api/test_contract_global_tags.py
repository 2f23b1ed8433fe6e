"""The routes of global tags and statuses, as existing clients know them; test_nopayloaddb.py has more."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.models import GlobalTag
from tests.api.helpers import keys

pytestmark = pytest.mark.django_db
parametrize = pytest.mark.parametrize


@pytest.mark.django_db(transaction=True)
def test_tag_items_have_the_revision_of_the_header(api, tag):
    light = api.get("globalTag/tag?light")
    assert light.json["revision"] == int(light.headers["CDB-Revision"]) == 2
    clone = api.post("cloneGlobalTag/tag/copy").ok()
    assert clone["revision"] == 1
    for items in (api.get("globalTags").ok(), api.get("globalTags?page=1&sort=id").ok()["results"]):
        assert [(item["name"], item["revision"]) for item in items] == [("tag", 2), ("copy", 1)]


@pytest.mark.django_db(transaction=True)
def test_nested_list_of_all_global_tags(api, world, build):
    # The second tag's list is older than the first tag's lists, so ids of tags and lists run crosswise.
    second = build.tag("second")
    world["detached"].global_tag = second
    world["detached"].save()
    build.iov(world["detached"], (1, 1), url="other")
    third = build.list(world["tag"], "Third")
    build.iov(third, (7, 7), url="third")
    build.tag("empty")
    tags = api.get("gt").ok()
    assert [tag["name"] for tag in tags] == ["run24", "second", "empty"]
    found = {
        tag["name"]: {
            one["payload_type"]: [iov["payload_url"] for iov in one["payload_iov"]] for one in tag["payload_lists"]
        }
        for tag in tags
    }
    assert found == {
        "run24": {"Gain": ["early", "late"], "Noise": [], "Third": ["third"]},
        "second": {"Gain": ["other"]},
        "empty": {},
    }


@parametrize("path", ["gt", "global-tags"])
def test_a_duplicate_name_is_reported_as_clients_expect_it(api, path):
    body = {"name": "new", "status": "unlocked"}
    api.post(path, body).ok()
    error = api.post(path, body).error(400, "name_taken")
    assert error["name"] == ["global tag with this name already exists."]


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["deleteGlobalTag/run24", "global-tags/run24/delete"])
def test_delete_global_tag(api, world, path):
    assert keys(api.delete(path).ok()) == ["detail"]
    api.get("globalTag/run24").error(404, "global_tag_not_found")
    api.delete(path).error(404, "global_tag_not_found")
    # Its lists and their IOVs go with it; what was never part of it stays.
    assert [one["name"] for one in api.get("pl").ok()] == [world["detached"].name]
    assert [iov["payload_url"] for iov in api.get("piov").ok()] == ["loose"]


@pytest.mark.django_db(transaction=True)
@parametrize("raw", [b"", b"null", b"{}"])
def test_a_clone_of_a_frozen_tag_is_unlocked_and_has_lists_of_its_own(api, world, raw):
    api.put("gt_change_status/run24/frozen").ok()
    assert api("POST", "cloneGlobalTag/run24/copy", raw=raw).ok()["status"] == "unlocked"
    source, copy = (api.get(f"globalTag/{name}").ok()["payload_lists"] for name in ("run24", "copy"))
    for one, other in zip(source, copy, strict=True):
        assert one["id"] != other["id"] and other["name"] == f"{one['payload_type']}_{other['id']}"
    api.post("cloneGlobalTag/run24/copy").error(400, "name_taken")


@parametrize("path", ["deleteGlobalTagStatus/{}", "global-tags/statuses/{}/delete"])
def test_delete_a_status(api, build, path):
    build.tag("tag")
    api.post("gtstatus", {"name": "online"}).ok()
    before = api.get("gtstatus")
    api.put("gt_change_status/tag/online").ok()
    assert "such as 'tag'" in api.delete(path.format("online")).error(409, "status_in_use")["detail"]
    for built_in in ("unlocked", "locked", "frozen"):
        assert "is built in" in api.delete(path.format(built_in)).error(409, "status_in_use")["detail"]
    api.put("gt_change_status/tag/unlocked").ok()
    assert keys(api.delete(path.format("online")).ok()) == ["detail"]
    left = api.get("gtstatus", if_none_match=before.headers["ETag"]).ok()
    assert [one["name"] for one in left] == ["unlocked", "locked", "frozen"]
    assert "unlocked, locked, frozen" in api.delete(path.format("online")).error(404, "status_not_found")["detail"]


@parametrize("path", ["gt", "global-tags"])
def test_an_empty_tag_is_not_created_as_frozen(api, path):
    error = api.post(path, {"name": "new", "status": "frozen"}).error(409, "status_change_refused")
    assert "would stay empty" in error["detail"]
    api.get("globalTag/new?light").error(404)


@pytest.mark.django_db(transaction=True)
def test_a_frozen_tag_is_never_deleted(api, build):
    build.iov(build.list(build.tag("tiny")), (0, 0))
    api.put("gt_change_status/tiny/frozen").ok()
    for path in ("deleteGlobalTag/tiny", "global-tags/tiny/delete", "deleteGlobalTag/tiny?dry_run=1"):
        api.delete(path).error(409, "global_tag_frozen")
    with pytest.raises(CommandError, match="frozen"):
        call_command("seed_scenario", "tiny", "--reset", "--yes", stdout=StringIO())
    api.put("gt_change_status/tiny/unlocked").error(409, "global_tag_frozen")
    assert api.get("globalTag/tiny?light").ok()["payload_iov_count"] == 1


@pytest.mark.django_db(transaction=True)
@parametrize(
    ("body", "author"),
    [
        (None, "127.0.0.1"),
        ({}, "127.0.0.1"),
        ({"author": None}, "127.0.0.1"),
        ({"author": "shift crew", "comment": "why"}, "shift crew"),
        ({"author": ""}, ""),
        ([], "127.0.0.1"),
    ],
)
def test_the_author_of_a_clone_is_its_caller(api, world, body, author):
    GlobalTag.objects.filter(name="run24").update(author="first author")
    api.post("cloneGlobalTag/run24/copy", body).ok()
    assert api.get("globalTag/copy?light").ok()["author"] == author
    revision = api.get("global-tags/copy/changes").ok()["results"][0]["revision"]
    api.post(f"global-tags/copy/clone/again?rev={revision}", body).ok()
    assert api.get("globalTag/again?light").ok()["author"] == author
    [change] = api.get("global-tags/again/changes").ok()["results"]
    clone = api.get(f"global-tags/again/changes/{change['revision']}").ok()["after"]
    assert clone["clone_of"] == {"global_tag": "copy", "revision": revision}


@parametrize("author", ["x" * 81, 5, ["a"]])
def test_an_invalid_author_of_a_clone_is_refused(api, world, author):
    assert api.post("cloneGlobalTag/run24/copy", {"author": author}).error(400, "invalid_input")["author"]
    api.get("globalTag/copy?light").error(404)
