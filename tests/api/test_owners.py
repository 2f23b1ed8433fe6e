"""Who may write to what is in no tag: its creator, the managers of the tag that it left, and roles for all tags."""

import io

import pytest
from django.core.management import call_command

from cdb_rest.models import PayloadIOV, PayloadList
from cdb_rest.rules.access import Role
from tests.api.helpers import ROW, body, grant
from tests.conftest import ServiceClient

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed")]


@pytest.fixture
def who(login, build):
    """Headers: contributors for a.* and for z.*, a manager for z.*, and a contributor for all tags. The tags a1 and z1 exist."""
    for name in ("a1", "z1"):
        build.list(build.tag(name), "Noise")
    build.list(None, "Gain").delete()
    return {
        "a": login(Role.CONTRIBUTOR, "a.*", name="a"),
        "z": login(Role.CONTRIBUTOR, "z.*", name="z"),
        "z manager": login(Role.MANAGER, "z.*", name="zm"),
        "all": login(Role.CONTRIBUTOR, name="all"),
    }


def rows_into(name):
    return [ROW | {"payload_list": name}]


# Each write to a detached list or IOV of the contributor z: the writer, and whether it is permitted.
WRITERS = {"z": 200, "a": 403, "all": 200, "z manager": 403}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("way", ["bulk", "attach an IOV to it", "take its IOV", "attach the list", "take the IOV"])
def test_only_the_creator_or_a_role_for_all_tags_writes_to_what_is_detached(api, who, writer, way):
    theirs, expected = who[writer], WRITERS[writer]
    made = api.post("pl", {"payload_type": "Gain"}, **who["z"]).ok()["name"]
    iov = api.post("piov", ROW, **who["z"]).ok()["id"]
    own = api.post("piov", ROW | {"payload_url": "own"}, **theirs).ok()["id"]
    tag = "z1" if writer.startswith("z") else "a1"
    if way == "bulk":
        answer = api.post("bulk_piov", rows_into(made), **theirs)
    elif way == "attach an IOV to it":
        answer = api.put("piov_attach", {"payload_list": made, "piov_id": own}, **theirs)
    elif way == "attach the list":
        answer = api.put("pl_attach", {"global_tag": tag, "payload_list": made}, **theirs)
    else:
        target = api.post("pl", {"payload_type": "Gain"}, **theirs).ok()["name"]
        if way == "take its IOV":
            api.put("piov_attach", {"payload_list": made, "piov_id": iov}, **who["z"]).ok()
        answer = api.put("piov_attach", {"payload_list": target, "piov_id": iov}, **theirs)
    assert answer.status == expected, answer.json


def test_rows_of_others_are_shown_before_a_list_is_attached_and_explained_afterwards(api, who):
    made = api.post("pl", {"payload_type": "Gain"}, **who["z"]).ok()["name"]
    api.post("bulk_piov", rows_into(made), **who["all"]).ok()
    attach = {"global_tag": "z1", "payload_list": made}
    tried = api.put("pl_attach?dry_run=1", attach, **who["z"]).ok()
    assert tried["added_by_others"] == {"token:all": 1}
    api.put("pl_attach", attach, **who["z"]).ok()
    changes = api.get("global-tags/z1/changes").ok()["results"]
    change = api.get(f"global-tags/z1/changes/{changes[0]['revision']}").ok()
    assert (change["actor"], change["after"]["added_by"]) == ("token:z", {"token:all": 1})
    [found] = api.get("payload-iovs/explain?gtName=z1&majorIOV=5&minorIOV=0&payload_type=Gain").ok()
    assert (found["added_by"], found["change"]["actor"]) == ("token:all", "token:z")


def test_what_leaves_a_tag_belongs_to_the_managers_of_the_tag(api, who):
    made = api.post("pl", {"payload_type": "Gain"}, **who["z"]).ok()["name"]
    api.post("bulk_piov", rows_into(made), **who["z"]).ok()
    api.put("pl_attach", {"global_tag": "z1", "payload_list": made}, **who["z"]).ok()
    insert = body(global_tag="z1", payload_url="new", since=[5, 0])
    api.post("payload-iovs/insert", insert, **who["z"]).ok()
    [former] = PayloadIOV.objects.filter(payload_list=None)
    assert (former.left_tag, former.creator) == ("z1", None)
    target = api.post("pl", {"payload_type": "Gain"}, **who["a"]).ok()["name"]
    api.put("piov_attach", {"payload_list": target, "piov_id": former.id}, **who["a"]).error(403)
    other = api.post("pl", {"payload_type": "Gain"}, **who["z manager"]).ok()["name"]
    api.put("pl_attach", {"global_tag": "z1", "payload_list": other}, **who["z manager"]).ok()
    assert PayloadList.objects.get(name=made).left_tag == "z1"
    # The former list keeps the rules of its tag.
    api.post("bulk_piov", [ROW | {"payload_list": made, "major_iov": 9, "major_iov_end": 10}], **who["a"]).error(403)
    api.put("pl_attach", {"global_tag": "a1", "payload_list": made}, **who["a"]).error(403)
    api.delete(f"deletePayloadList/{made}", **who["a"]).error(403)
    api.put("piov_attach", {"payload_list": other, "piov_id": former.id}, **who["z"]).error(403)
    api.put("piov_attach", {"payload_list": other, "piov_id": former.id}, **who["z manager"]).ok()


def test_adopted_rows_without_a_tag_need_a_role_for_all_tags(api, who, build):
    iov, spare = build.iov(None, (1, 0)), build.list(None, "Gain")
    made = api.post("pl", {"payload_type": "Gain"}, **who["z"]).ok()["name"]
    api.put("piov_attach", {"payload_list": made, "piov_id": iov.id}, **who["z"]).error(403)
    api.put("pl_attach", {"global_tag": "z1", "payload_list": spare.name}, **who["z"]).error(403)
    api.put("pl_attach", {"global_tag": "z1", "payload_list": spare.name}, **who["all"]).ok()


def test_clients_of_a_network_are_one_creator(api, who):
    grant(kind="network", subject="127.0.0.0/8", identity="farm", role="contributor", tags="z.*")
    made = api.post("pl", {"payload_type": "Gain"}).ok()["name"]
    assert PayloadList.objects.get(name=made).creator == "network:farm"
    api.put("pl_attach", {"global_tag": "z1", "payload_list": made}).ok()


def test_rows_in_no_list_are_listed_and_deleted(api, who, build):
    build.iov(build.list(None, "Gain"), (1, 0))
    for number in range(2):
        api.post("piov", ROW | {"payload_url": f"loose{number}"}, **who["z"]).ok()
    assert [row["payload_url"] for row in api.get("piov?detached=1").ok()] == ["loose0", "loose1"]
    api.get("piov?detached=1&page=1").error(400)
    out = io.StringIO()
    call_command("detached_iovs", stdout=out)
    assert "loose1" in out.getvalue() and "token:z" in out.getvalue() and "2 payload IOVs" in out.getvalue()
    call_command("detached_iovs", "--delete-older-than=1d", stdout=out)
    assert PayloadIOV.objects.count() == 3
    client = ServiceClient(headers={"Accept": "text/html"})
    assert "loose0" in client.get("/detached").content.decode()
    call_command("detached_iovs", "--delete-older-than=0s", stdout=out)
    assert PayloadIOV.objects.count() == 1 and "Deleted 2" in out.getvalue()
