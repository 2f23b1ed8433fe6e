"""Unknown parameters and members: refused by routes that only we have, ignored by others unless they would change much."""

import re

import pytest

from cdb_rest.api.base.authorization import PREFIX, READS_BY_POST
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadType
from cdb_rest.parsing.parameters import SIGNIFICANT
from tests.api.helpers import INSERTION, LOOKUP, ROW
from tests.api.test_description import OPERATIONS

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(build):
    tag = build.tag()
    return build.list(tag)


def test_many_and_long_names_make_no_large_response(api):
    body = {"name": "A"} | {f"{number}{'x' * 100_000}": 0 for number in range(100)}
    answer = api.post("payload-iovs/insert", body)
    answer.error(400, "invalid_input")
    assert len(answer.content) < 2000


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("global-tags/tag/export?fromat=csv", "did you mean format?"),
        ("global-tags/tag/export?until=1,0&zzz", "zzz is not known here."),
        ("global-tags/tag/changes?pagesize=5", "did you mean page_size?"),
        ("global-tags/tag/changes/1?page=1", "page is not known here."),
        ("payload-lists/by-name/Gain_1?a", "a is not known here."),
        ("", None),
    ],
)
def test_an_unknown_parameter_of_a_route_of_ours_is_refused(api, world, path, hint):
    if hint:
        assert hint in api.get(path).error(400, "unknown_parameter")["detail"]
    api.get(path.partition("?")[0] + "?x=1").error(400, "unknown_parameter")
    row = INSERTION | {"global_tag": "tag"}
    api.post("payload-iovs/insert?dryrun", row).error(400, "unknown_parameter")
    assert not PayloadIOV.objects.exists()


MISSPELT_PARAMETERS = ["dryrun", "Dry_run", "Strict", "stric", "strictt", "revisions", "payloadtype", "payload_types"]


@pytest.mark.parametrize("label", OPERATIONS)
def test_each_operation_knows_the_parameters_of_its_description_and_refuses_those_that_would_act_elsewhere(
    api, login, label
):
    method, path = label.split(" ")
    headers = login("administrator")
    url = re.sub(r"{\w+}", "1", path)
    known = {one["name"] for one in OPERATIONS[label].get("parameters", ()) if one["in"] == "query"}
    for name in (*SIGNIFICANT, *MISSPELT_PARAMETERS):
        answer = api(method, f"{url}?{name}=1", {}, **headers)
        is_refused = answer.status == 400 and answer.json["code"] == "unknown_parameter"
        assert is_refused == (name not in known), (name, answer.json)
        assert not is_refused or name in answer.json
    is_read = method == "GET" or PREFIX + re.sub(r"{(\w+)}", r"<str:\1>", path) in READS_BY_POST
    assert ("dry_run" in known) != is_read


@pytest.mark.parametrize(
    "name", ["revs", "state", "majorIov", "reversion", "stricter", "dry", "type", "x" * 5000, "é" * 8]
)
def test_other_unknown_parameters_are_ignored(api, world, name):
    for path in (LOOKUP, "globalTags?", "globalTag/tag?light", "gtstatus?"):
        api.get(f"{path}&{name}=1").ok()
    api.post(f"pt?{name}=1", {"name": "A", name: 1}).ok()


MEMBERS = ["rev", "at", "strict", "payloadType", "dryrun", "Strict", "Dry_Run", "revison"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "gt", {"name": "new", "status": "unlocked"}),
        ("POST", "gtstatus", {"name": "new"}),
        ("POST", "pt", {"name": "new"}),
        ("POST", "pl", {"payload_type": "Gain"}),
        ("PUT", "pl_attach", {"global_tag": "tag", "payload_list": "LIST"}),
        ("POST", "piov", ROW),
        ("POST", "bulk_piov", [ROW | {"payload_list": "LIST"}]),
        ("POST", "payload-iovs/insert", INSERTION | {"global_tag": "tag"}),
        ("POST", "cloneGlobalTag/tag/new", {}),
        ("POST", "global-tags/tag/revert", {"revision": 1}),
        ("PUT", "gt_change_status/tag/locked", {}),
        ("DELETE", "deleteGlobalTag/tag", {}),
        ("DELETE", "deletePayloadType/Unused", [{}]),
        ("DELETE", "payload-lists/LIST/delete", {}),
        ("DELETE", "deletePayloadIOV/tag/Gain/1/0", {}),
    ],
)
def test_such_members_of_bodies_are_refused_and_nothing_is_stored(api, world, build, method, path, body):
    build.iov(world, (1, 0))
    PayloadType.objects.create(name="Unused")
    for name in MEMBERS:
        sent = [row | {name: 1} for row in body] if isinstance(body, list) else body | {name: 1}
        error = api(method, path.replace("LIST", world.name), sent).error(400, "invalid_input")
        assert name in (error["rows"][0] if "rows" in error else error)
    assert not GlobalTagChange.objects.exists() and PayloadType.objects.count() == 2
    assert GlobalTag.objects.count() == PayloadIOV.objects.count() == 1


def test_a_read_with_a_body_knows_no_dry_run(api, world):
    for path in ("payloadiovs/", "payload-iovs/query"):
        error = api.post(path, {"gtName": "tag", "moments": [], "dry_run": 1}).error(400, "invalid_input")
        assert "dry_run has no meaning" in error["dry_run"][0]
        api.post(f"{path}?strict=1", {"gtName": "tag", "moments": []}).error(400, "unknown_parameter")


@pytest.mark.parametrize("body", [None, {"comment": "why", "note": 1}, {"dry_run": False}, [], 5])
def test_writes_without_a_body_take_a_comment_and_ignore_the_rest(api, world, body):
    api.put("gt_change_status/tag/locked", body).ok()
    assert GlobalTagChange.objects.get().comment == ("why" if isinstance(body, dict) and "comment" in body else "")
