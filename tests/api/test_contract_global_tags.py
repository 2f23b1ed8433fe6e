"""The routes of global tags and statuses, as existing clients know them: shapes and status codes."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.models import GlobalTag
from tests.api.helpers import FLAT_TAG, IOV, LIMITS, NAMED, NESTED_LIST, NESTED_TAG, TAG, TIME, keys

pytestmark = pytest.mark.django_db
parametrize = pytest.mark.parametrize


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["globalTags", "global-tags"])
def test_list_of_global_tags(api, world, build, path):
    build.tag("second", "frozen")
    first, second = api.get(path).ok()
    assert keys(first) == FLAT_TAG
    assert (first["name"], first["status"], first["payload_lists_count"], first["payload_iov_count"]) == (
        "run24",
        "unlocked",
        2,
        2,
    )
    assert (second["name"], second["status"], second["payload_lists_count"]) == ("second", "frozen", 0)
    assert TIME.fullmatch(first["created"]) and TIME.fullmatch(first["updated"])


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["globalTag/run24", "global-tags/run24", "gt/{id}"])
def test_nested_global_tag(api, world, path):
    tag = api.get(path.format(id=world["tag"].id)).ok()
    assert keys(tag) == NESTED_TAG
    assert keys(tag["status"]) == ["id", "name", "description", "created"]
    assert tag["status"]["name"] == "unlocked"
    gain, noise = tag["payload_lists"]
    assert keys(gain) == keys(noise) == NESTED_LIST
    assert (gain["payload_type"], gain["global_tag"]) == ("Gain", "run24")
    assert [iov["payload_url"] for iov in gain["payload_iov"]] == ["early", "late"]
    assert keys(gain["payload_iov"][0]) == IOV
    assert noise["payload_iov"] == []


@pytest.mark.django_db(transaction=True)
def test_light_global_tag(api, world):
    tag = api.get("globalTag/run24?light").ok()
    assert keys(tag) == [*FLAT_TAG, *LIMITS]
    assert (tag["payload_iov_count"], tag["revision"]) == (2, 0)


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
def test_create_global_tag(api, path):
    tag = api.post(path, {"name": "new", "status": "unlocked", "author": "me", "description": "mine"}).ok()
    assert keys(tag) == TAG
    assert (tag["name"], tag["status"], tag["author"]) == ("new", "unlocked", "me")
    assert api.get("globalTag/new?light").ok()["author"] == "me"


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
@parametrize("path", ["cloneGlobalTag/run24/copy", "global-tags/run24/clone/copy"])
@parametrize("raw", [b"", b"null", b"{}"])
def test_clone_global_tag(api, world, path, raw):
    api.put("gt_change_status/run24/frozen").ok()
    clone = api("POST", path, raw=raw).ok()
    assert keys(clone) == FLAT_TAG
    assert (clone["name"], clone["status"], clone["payload_lists_count"], clone["payload_iov_count"]) == (
        "copy",
        "unlocked",
        2,
        2,
    )
    source, copy = (api.get(f"globalTag/{name}").ok()["payload_lists"] for name in ("run24", "copy"))
    for one, other in zip(source, copy, strict=True):
        assert one["id"] != other["id"]
        assert other["name"] == f"{one['payload_type']}_{other['id']}"
        assert [
            {k: v for k, v in iov.items() if k not in ("id", "payload_list", "inserted")} for iov in one["payload_iov"]
        ] == [
            {k: v for k, v in iov.items() if k not in ("id", "payload_list", "inserted")}
            for iov in other["payload_iov"]
        ]
    api.post(path).error(400, "name_taken")
    api.post("cloneGlobalTag/missing/else").error(404, "global_tag_not_found")
    api.post(f"cloneGlobalTag/run24/{'x' * 81}").error(400, "invalid_input")


@parametrize("path", ["gt_change_status/run24/locked", "global-tags/run24/change-status/locked"])
@parametrize("raw", [b"", b"null", b"{}"])
def test_change_status(api, world, path, raw):
    tag = api("PUT", path, raw=raw).ok()
    assert keys(tag) == TAG
    assert tag["status"] == "locked"
    assert tag["updated"] > tag["created"]
    api.put("gt_change_status/run24/nonsense").error(404, "status_not_found")
    api.put("gt_change_status/missing/locked").error(404, "global_tag_not_found")


@parametrize("path", ["gtstatus", "global-tags/statuses"])
def test_statuses(api, path):
    assert [status["name"] for status in api.get(path).ok()] == ["unlocked", "locked", "frozen"]
    status = api.post(path, {"name": "online"}).ok()
    assert keys(status) == NAMED
    assert api.get(path).ok()[-1] == status


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
    assert [one["name"] for one in api.get("gtstatus", if_none_match=before.headers["ETag"]).ok()] == [
        "unlocked",
        "locked",
        "frozen",
    ]
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


@parametrize("path", ["gtPayloadLists/run24", "global-tags/run24/payload-lists"])
def test_payload_lists_of_a_global_tag(api, world, build, path):
    assert api.get(path).ok() == {"Gain": world["gain"].name, "Noise": f"Noise_{world['gain'].id + 1}"}
    build.tag("empty")
    assert api.get("gtPayloadLists/empty").ok() == {}
    api.get("gtPayloadLists/missing").error(404, "global_tag_not_found")
