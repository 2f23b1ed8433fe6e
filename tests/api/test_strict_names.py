"""Unknown parameters and fields: rejected on our own paths, ignored on those of nopayloaddb."""

import pytest

from cdb_rest.models import PayloadIOV, PayloadType

pytestmark = pytest.mark.django_db
MISSPELT = {"payload_url": "a", "checksum": "", "major_iov": 1, "minor_iov": 0, "major_iov_ends": 2}


@pytest.fixture
def world(build):
    tag = build.tag()
    return build.list(tag)


def test_a_misspelt_member_is_refused_at_a_readable_path_and_ignored_at_a_legacy_one(api, world):
    [message] = api.post("payload-iovs", MISSPELT).error(400, "invalid_input")["major_iov_ends"]
    assert message == "major_iov_ends is not known here; did you mean major_iov_end?"
    assert not PayloadIOV.objects.exists()
    api.post("piov", MISSPELT).ok()
    rows = [MISSPELT | {"payload_list": world.name}]
    [row] = api.post("payload-iovs/bulk", rows).error(400, "invalid_input")["rows"]
    assert row["major_iov_ends"] == [message]
    api.post("bulk_piov", rows).ok()
    api.post("payload-types", {"name": "A", "nme": "B"}).error(400, "invalid_input")
    api.post("pt", {"name": "A", "nme": "B"}).ok()
    api.put("payload-lists/attach", {"global_tag": "tag", "payload_list": world.name, "x": 1}).error(400)
    assert {kind.name for kind in PayloadType.objects.all()} == {"Gain", "A"}


def test_many_and_long_names_make_no_large_response(api):
    body = {"name": "A"} | {f"{number}{'x' * 100_000}": 0 for number in range(100)}
    answer = api.post("payload-types", body)
    answer.error(400, "invalid_input")
    assert len(answer.content) < 2000


def test_a_comment_may_stand_in_every_body(api):
    api.post("payload-types", {"name": "A", "comment": "why"}).ok()


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
    row = {
        "global_tag": "tag",
        "payload_type": "Gain",
        "payload_url": "a",
        "checksum": "",
        "since": [1, 0],
        "until": "open",
    }
    api.post("payload-iovs/insert?dryrun", row).error(400, "unknown_parameter")
    assert not PayloadIOV.objects.exists()


@pytest.mark.parametrize(
    "path",
    [
        "payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1",
        "payload-iovs/query/?gtName=tag&majorIOV=1&minorIOV=1",
        "globalTags?a=b",
    ],
)
def test_on_routes_that_existing_clients_know_unknown_parameters_are_ignored(api, world, path):
    api.get(f"{path}&unknown=1").ok()
