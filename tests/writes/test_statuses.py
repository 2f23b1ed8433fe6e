"""What each status of a tag permits, with every kind of write."""

import pytest

from cdb_rest.models import PayloadIOV

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world(build):
    """An unlocked tag with a list of one closed IOV, and things to move into it or out of it."""
    tag = build.tag("tag")
    gain = build.list(tag, "Gain")
    build.iov(gain, (0, 0), (10, 0), url="old")
    free = build.tag("free")
    return {
        "gain": gain,
        "other_gain": build.list(None, "Gain"),
        "noise": build.list(None, "Noise"),
        "gap": build.iov(None, (20, 0), url="new"),
        "free_list": build.list(free, "Time"),
        "empty": build.list(tag, "Empty"),
    }


@pytest.fixture(params=["locked", "frozen", "published"])
def protected(request, api, world):
    """The tag in a status that protects it."""
    if request.param == "published":
        api.post("gtstatus", {"name": "published"}).ok()
    api.put(f"gt_change_status/tag/{request.param}").ok()
    return request.param


def code(status):
    return "global_tag_frozen" if status == "frozen" else "global_tag_locked"


def test_nothing_defined_can_be_taken_out(api, world, protected):
    before, old = api.get("globalTag/tag").content, PayloadIOV.objects.get(payload_url="old")
    refused = [
        api.delete("deleteGlobalTag/tag"),
        api.delete("deletePayloadIOV/tag/Gain/0/0/10/0"),
        api.delete(f"deletePayloadList/{world['empty'].name}"),
        api.put("pl_attach", {"global_tag": "tag", "payload_list": world["other_gain"].name}),
        api.put("pl_attach", {"global_tag": "free", "payload_list": world["gain"].name}),
        *(
            api.put("piov_attach", {"payload_list": world[name].name, "piov_id": old.id})
            for name in ("free_list", "other_gain")
        ),
    ]
    for answer in refused:
        answer.error(409, code(protected))
    assert api.get("globalTag/tag").content == before


def test_locked_tags_may_grow_and_frozen_ones_may_not(api, world, protected):
    answers = [
        api.put("pl_attach", {"global_tag": "tag", "payload_list": world["noise"].name}),
        api.put("piov_attach", {"payload_list": world["gain"].name, "piov_id": world["gap"].id}),
        api.post(
            "bulk_piov", [{"payload_url": "b", "payload_list": world["empty"].name, "major_iov": 1, "minor_iov": 0}]
        ),
    ]
    for answer in answers:
        answer.error(409, "global_tag_frozen") if protected == "frozen" else answer.ok()


@pytest.mark.parametrize("status", ["locked", "published"])
def test_bulk_rows_do_not_change_what_is_defined_in_a_protected_tag(api, build, status):
    tag = build.tag("tag")
    closed, online = build.list(tag, "Closed"), build.list(tag, "Online")
    build.iov(closed, (10, 0), (20, 0), url="first")
    build.iov(closed, (30, 0), url="second")
    build.iov(closed, (40, 0), url="third")
    build.iov(online, (10, 0), url="running")
    if status == "published":
        api.post("gtstatus", {"name": status}).ok()
    api.put(f"gt_change_status/tag/{status}").ok()

    def insert(payload_list, *majors):
        rows = [
            {"payload_url": f"new {major}", "payload_list": payload_list.name, "major_iov": major, "minor_iov": 0}
            for major in majors
        ]
        return api.post("bulk_piov", rows)

    def answers():
        moments = [*range(10, 20), *range(30, 50)]
        return [api.get(f"payloadiovs/?gtName=tag&majorIOV={major}&minorIOV=0&strict=1").json[0] for major in moments]

    before = answers()
    for majors in ([15], [35], [50, 35], [19]):
        detail = insert(closed, *majors).error(409, "iov_overlap")["detail"]
        assert "existing intervals of a protected global tag" in detail and "payload IOV" in detail
    # Before all, in gaps, and online: after the start of a last one that is open, in whatever order.
    assert insert(closed, 5, 20, 25, 50).ok()["count"] == 4
    assert answers() == before
    assert insert(online, 12, 11).ok()["count"] == 2
    assert insert(online, 11).ok()["unchanged"] == 1
