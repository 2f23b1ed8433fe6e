"""Every route of the contract with existing clients: verbs, shapes, status codes, both spellings, HEAD."""

import json
import re

import pytest

from cdb_rest.api.routes import ROUTES
from cdb_rest.domain.moment import OPEN
from cdb_rest.models import PayloadIOV
from tests.conftest import PREFIX

pytestmark = pytest.mark.django_db(transaction=True)

FLAT_TAG = ["id", "name", "author", "status", "payload_lists_count", "payload_iov_count", "created", "updated"]
TAG = ["id", "name", "author", "status", "created", "updated"]
NESTED_TAG = ["id", "name", "author", "status", "payload_lists", "created", "updated"]
NAMED = ["id", "name", "created"]
LIST = ["id", "name", "global_tag", "payload_type", "created"]
NESTED_LIST = ["id", "name", "global_tag", "payload_type", "payload_iov", "created"]
IOV = [
    "id", "payload_url", "checksum", "size", "major_iov", "minor_iov", "comb_iov", "major_iov_end", "minor_iov_end",
    "payload_list", "revision", "inserted",
]  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

parametrize = pytest.mark.parametrize


def keys(document):
    return list(document)


@pytest.fixture
def world(build):
    """A tag with two lists, one of them with two IOVs; a detached list and a detached IOV."""
    tag = build.tag("run24")
    gain = build.list(tag, "Gain")
    build.list(tag, "Noise")
    build.iov(gain, (0, 0), (10, 0), url="early", extra="3")
    build.iov(gain, (10, 0), url="late")
    detached = build.list(None, "Gain")
    build.iov(None, (5, 5), url="loose")
    return {"tag": tag, "gain": gain, "detached": detached}


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


@parametrize("path", ["globalTag/run24?light", "globalTag/run24?light=1", "global-tags/run24?light=no"])
def test_light_global_tag(api, world, path):
    tag = api.get(path).ok()
    assert keys(tag) == FLAT_TAG
    assert tag["payload_iov_count"] == 2


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


def test_nested_answers_of_an_empty_database_are_empty_lists(api):
    assert api.get("gt").ok() == api.get("pl").ok() == api.get("piov").ok() == api.get("globalTags").ok() == []


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


@parametrize(("path", "kind"), [("pt", "payload type"), ("gtstatus", "global tag status")])
def test_other_duplicate_names_too(api, path, kind):
    api.post(path, {"name": "new"}).ok()
    assert api.post(path, {"name": "new"}).error(400)["name"] == [f"{kind} with this name already exists."]


@parametrize("path", ["deleteGlobalTag/run24", "global-tags/run24/delete"])
def test_delete_global_tag(api, world, path):
    assert keys(api.delete(path).ok()) == ["detail"]
    api.get("globalTag/run24").error(404, "global_tag_not_found")
    api.delete(path).error(404, "global_tag_not_found")
    # Its lists and their IOVs go with it; what was never part of it stays.
    assert [one["name"] for one in api.get("pl").ok()] == [world["detached"].name]
    assert [iov["payload_url"] for iov in api.get("piov").ok()] == ["loose"]


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
    api.post("cloneGlobalTag/nobody/else").error(404, "global_tag_not_found")
    api.post(f"cloneGlobalTag/run24/{'x' * 81}").error(400, "invalid_input")


@parametrize("path", ["gt_change_status/run24/locked", "global-tags/run24/change-status/locked"])
@parametrize("raw", [b"", b"null", b"{}"])
def test_change_status(api, world, path, raw):
    tag = api("PUT", path, raw=raw).ok()
    assert keys(tag) == TAG
    assert tag["status"] == "locked"
    assert tag["updated"] > tag["created"]
    api.put("gt_change_status/run24/nonsense").error(404, "status_not_found")
    api.put("gt_change_status/nobody/locked").error(404, "global_tag_not_found")


@parametrize("path", ["gtstatus", "global-tags/statuses"])
def test_statuses(api, path):
    assert [status["name"] for status in api.get(path).ok()] == ["unlocked", "locked", "frozen"]
    status = api.post(path, {"name": "online"}).ok()
    assert keys(status) == NAMED
    assert api.get(path).ok()[-1] == status


@parametrize("path", ["gtPayloadLists/run24", "global-tags/run24/payload-lists"])
def test_payload_lists_of_a_global_tag(api, world, build, path):
    assert api.get(path).ok() == {"Gain": world["gain"].name, "Noise": f"Noise_{world['gain'].id + 1}"}
    build.tag("empty")
    assert api.get("gtPayloadLists/empty").ok() == {}
    api.get("gtPayloadLists/nobody").error(404, "global_tag_not_found")


@parametrize("path", ["pt", "payload-types"])
def test_payload_types(api, path):
    created = api.post(path, {"name": "Gain", "description": "of the calorimeter"}).ok()
    assert keys(created) == NAMED
    assert api.get(path).ok() == [created]


@parametrize("path", ["deletePayloadType/{}", "payload-types/{}/delete"])
def test_delete_payload_type(api, world, path):
    api.delete(path.format("Gain")).error(409, "payload_type_in_use")
    api.post("pt", {"name": "Unused"}).ok()
    assert keys(api.delete(path.format("Unused")).ok()) == ["detail"]
    api.delete(path.format("Unused")).error(404, "payload_type_not_found")


@parametrize("path", ["pl", "payload-lists"])
def test_create_payload_list(api, path):
    api.post("pt", {"name": "Gain"}).ok()
    made = api.post(path, {"payload_type": "Gain"}).ok()
    assert keys(made) == LIST
    assert made["name"] == f"Gain_{made['id']}"
    assert made["global_tag"] is None and made["payload_type"] == "Gain"
    api.post(path, {"payload_type": "Unknown"}).error(404, "payload_type_not_found")


def test_a_list_of_the_longest_type_name_can_be_made(api):
    name = "n" * 80
    api.post("pt", {"name": name}).ok()
    made = api.post("pl", {"payload_type": name}).ok()
    assert api.get(f"payload-lists/by-name/{made['name']}").ok()["id"] == made["id"]


@parametrize("path", ["pl", "payload-lists"])
def test_nested_payload_lists(api, world, path):
    lists = api.get(path).ok()
    assert all(keys(one) == NESTED_LIST for one in lists)
    assert [(one["global_tag"], len(one["payload_iov"])) for one in lists] == [("run24", 2), ("run24", 0), (None, 0)]


@parametrize("path", ["pl/{}", "payload-lists/{}"])
def test_nested_payload_list_by_id(api, world, path):
    one = api.get(path.format(world["gain"].id)).ok()
    assert keys(one) == NESTED_LIST
    assert [iov["payload_url"] for iov in one["payload_iov"]] == ["early", "late"]
    api.get(path.format(10**9)).error(404, "payload_list_not_found")
    api.get(path.format(2**63)).error(400, "invalid_input")
    api.get(path.format("abc")).error(400, "invalid_input")


def test_payload_list_by_name(api, world):
    one = api.get(f"payload-lists/by-name/{world['gain'].name}").ok()
    assert keys(one) == [*LIST, "iov_count"]
    assert one["iov_count"] == 2
    api.get("payload-lists/by-name/nothing").error(404, "payload_list_not_found")


@parametrize("path", ["pl_attach", "payload-lists/attach"])
def test_attach_payload_list_in_place_of_the_old_one(api, world, path):
    body = {"global_tag": "run24", "payload_list": world["detached"].name}
    attached = api.put(path, body).ok()
    assert keys(attached) == LIST
    assert (attached["global_tag"], attached["payload_type"]) == ("run24", "Gain")
    assert api.get("gtPayloadLists/run24").ok()["Gain"] == world["detached"].name
    assert api.get(f"pl/{world['gain'].id}").ok()["global_tag"] is None
    assert api.put(path, body).ok() == attached
    api.put(path, body | {"global_tag": "nobody"}).error(404, "global_tag_not_found")
    api.put(path, body | {"payload_list": "nothing"}).error(404, "payload_list_not_found")


@parametrize("path", ["deletePayloadList/{}", "payload-lists/{}/delete"])
def test_delete_payload_list(api, world, path):
    api.delete(path.format(world["gain"].name)).error(409, "payload_list_not_empty")
    assert keys(api.delete(path.format(world["detached"].name)).ok()) == ["detail"]
    api.delete(path.format(world["detached"].name)).error(404, "payload_list_not_found")


@parametrize("path", ["piov", "payload-iovs"])
def test_create_payload_iov(api, path):
    body = {"payload_url": "file", "checksum": "abc", "major_iov": 1, "minor_iov": 2}
    iov = api.post(path, body).ok()
    assert keys(iov) == IOV
    assert iov["comb_iov"] == "1.0000000000000000002"
    assert (iov["major_iov_end"], iov["minor_iov_end"], iov["payload_list"]) == (OPEN, OPEN, None)
    assert (iov["size"], iov["revision"]) == (0, None)
    full = body | {"major_iov_end": 5, "minor_iov_end": 0, "size": 7, "revision": 12}
    iov = api.post(path, full).ok()
    assert (iov["major_iov_end"], iov["minor_iov_end"], iov["size"], iov["revision"]) == (5, 0, 7, "12")
    assert api.get(path).ok()[-1] == iov


def test_the_combined_moment_shows_every_digit(api):
    zero = api.post("piov", {"payload_url": "f", "checksum": "", "major_iov": 0, "minor_iov": 0}).ok()
    assert zero["comb_iov"] == "0.0000000000000000000"
    last = api.post("piov", {"payload_url": "f", "checksum": "", "major_iov": OPEN, "minor_iov": OPEN - 1}).ok()
    assert last["comb_iov"] == "9223372036854775807.9223372036854775806"[:20] + "9223372036854775806"


@parametrize("path", ["piov/{}", "payload-iovs/{}"])
def test_payload_iov_by_id(api, world, path):
    known = PayloadIOV.objects.get(payload_url="early")
    iov = api.get(path.format(known.id)).ok()
    assert keys(iov) == IOV
    assert (iov["payload_list"], iov["revision"]) == (world["gain"].name, "3")
    api.get(path.format(10**9)).error(404, "payload_iov_not_found")
    api.get(path.format("abc")).error(400, "invalid_input")


@parametrize("path", ["bulk_piov", "payload-iovs/bulk"])
def test_bulk_insert(api, world, path):
    row = {"payload_url": "b", "payload_list": world["detached"].name, "minor_iov": 0}
    rows = [
        row | {"major_iov": 1, "checksum": "x", "size": 9, "revision": "4", "major_iov_end": 2, "minor_iov_end": 0},
        row | {"major_iov": 2},
    ]
    assert api.post(path, rows).ok()["count"] == 2
    iovs = api.get(f"pl/{world['detached'].id}").ok()["payload_iov"]
    assert [
        (iov["major_iov"], iov["major_iov_end"], iov["checksum"], iov["size"], iov["revision"]) for iov in iovs
    ] == [
        (1, 2, "x", 9, "4"),
        (2, OPEN, "", 0, None),
    ]
    assert api.post(path, []).ok()["count"] == 0


def test_bulk_is_all_or_nothing_and_names_the_wrong_rows(api, world):
    row = {"payload_url": "b", "payload_list": world["detached"].name, "major_iov": 1, "minor_iov": 0}
    wrong = [row, row | {"major_iov": -1}, 5, row | {"major_iov": 3, "size": "big"}]
    error = api.post("bulk_piov", wrong).error(400, "invalid_input")
    assert [problem["row"] for problem in error["rows"]] == [1, 2, 3]
    error = api.post("bulk_piov", [row, row | {"major_iov": 2}, row]).error(400, "invalid_input")
    assert error["rows"][0]["row"] == 2
    api.post("bulk_piov", [row, row | {"payload_list": "nothing"}]).error(404, "payload_list_not_found")
    taken = row | {"payload_list": world["gain"].name, "major_iov": 10}
    assert "Row 1" in api.post("bulk_piov", [row, taken]).error(409, "iov_overlap")["detail"]
    bounded = row | {"payload_list": world["gain"].name, "major_iov": 4, "major_iov_end": 6, "minor_iov_end": 0}
    assert "Row 1" in api.post("bulk_piov", [row, bounded]).error(409, "iov_overlap")["detail"]
    assert api.get(f"payload-lists/by-name/{world['detached'].name}").ok()["iov_count"] == 0


@parametrize("path", ["piov_attach", "payload-iovs/attach"])
def test_attach_payload_iov(api, world, path):
    iov = PayloadIOV.objects.get(payload_url="loose")
    body = {"payload_list": world["detached"].name, "piov_id": iov.id}
    attached = api.put(path, body).ok()
    assert keys(attached) == IOV
    assert attached["payload_list"] == world["detached"].name
    assert api.put(path, body).ok() == attached
    api.put(path, body | {"payload_list": "nothing"}).error(404, "payload_list_not_found")
    api.put(path, body | {"piov_id": 10**9}).error(404, "payload_iov_not_found")


def test_attaching_where_it_would_overlap_is_refused_and_names_the_other(api, world):
    iov = PayloadIOV.objects.get(payload_url="loose")
    detail = api.put("piov_attach", {"payload_list": world["gain"].name, "piov_id": iov.id}).error(409, "iov_overlap")[
        "detail"
    ]
    assert "early" in detail and "[(0, 0), (10, 0))" in detail and "[(5, 5), open)" in detail


@parametrize("path", ["deletePayloadIOV/run24/Gain/{}", "payload-iovs/run24/Gain/{}/delete"])
def test_delete_payload_iov_by_exact_start_and_end(api, world, path):
    for unlike in ["0/0", "0/0/10/1", "0/1/10/0", "10/0/11/0"]:
        api.delete(path.format(unlike)).error(404, "payload_iov_not_found")
    assert keys(api.delete(path.format("0/0/10/0")).ok()) == ["detail"]
    assert keys(api.delete(path.format("10/0")).ok()) == ["detail"]
    assert api.get("globalTag/run24?light").ok()["payload_iov_count"] == 0
    api.delete(path.format("x/0")).error(400, "invalid_input")
    api.delete(path.format(f"{2**63}/0")).error(400, "invalid_input")
    api.delete("deletePayloadIOV/nobody/Gain/0/0").error(404, "payload_list_not_found")


@parametrize("path", ["user_settings/{}", "settings/{}"])
def test_public_settings_have_their_defaults(api, path):
    assert api.get(path.format("CDB_IOV_MODE")).ok() == {"CDB_IOV_MODE": "continuous"}
    assert api.get(path.format("CDB_PAYLOAD_BASE_URL")).ok() == {"CDB_PAYLOAD_BASE_URL": ""}
    for secret in ("CDB_SECRET_KEY", "SECRET_KEY", "DATABASE_URL", "NONSENSE"):
        api.get(path.format(secret)).error(404, "setting_not_found")


def concrete_paths():
    """Every documented path with values for its parameters."""
    for view, paths in ROUTES:
        for path in paths:
            yield (
                view,
                re.sub(
                    r"<str:(\w+)>",
                    lambda match: "1" if match[1].endswith(("id", "major", "minor", "end")) else "x",
                    path,
                ),
            )


@parametrize(("view", "path"), list(concrete_paths()))
def test_both_spellings_give_the_same_answer_and_none_redirects(api, world, view, path):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "FOO"):
        first, second = (api(method, spelling) for spelling in (path.rstrip("/"), path.rstrip("/") + "/"))
        assert first.status == second.status
        assert first.status not in range(300, 400) and first.status < 500
        if not hasattr(view, method.lower()):
            first.error(405, "method_not_allowed")
            assert first.headers["Allow"]


@parametrize("path", sorted({path for view, path in concrete_paths() if hasattr(view, "get")}))
def test_head_is_get_without_the_body(api, world, path):
    query = "?gtName=run24&majorIOV=1&minorIOV=1"
    get, head = api("GET", path + query), api("HEAD", path + query)
    assert head.content == b""
    assert head.status == get.status
    assert head.headers == get.headers


def test_unknown_paths_are_404_in_json(api):
    for path in (
        "nothing",
        "/",
        "/nothing",
        "/api/",
        "globalTag/",
        "globalTag/a/b/c",
        "globalTag/%FF%FE",
        "globalTag/a%2Fb",
    ):
        answer = api.get(path)
        assert answer.status == (200 if path == "/" else 404), path


def test_health(api):
    assert api.get("/health/live").ok() == {"status": "live"}
    assert api.get("/health/ready").ok() == {"status": "ready"}


def test_the_schema_is_valid_and_has_every_documented_path(api):
    described = set(json.loads(api.get("/api/schema/").content)["paths"])
    assert described == {PREFIX + re.sub(r"<str:(\w+)>", r"{\1}", path) for _, paths in ROUTES for path in paths}
